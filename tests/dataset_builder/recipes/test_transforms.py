"""The clips and copies of the presets and of recordings, and which rows are refused."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.opening import open_data
from audio_compositionality.dataset_builder.recipes.transforms import RECIPE
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.synthesis.timbres import default_voices
from audio_compositionality.dataset_builder.synthesis.transform_settings import TransformSettings
from audio_compositionality.dataset_builder.synthesis.transforms import load_transform
from audio_compositionality.dataset_builder.synthesis.transforms.base import ParameterRange
from audio_compositionality.support.errors import InputError

from ..recordings.made import made_recordings

FOUR = ("gain", "noise", "lowpass", "reverb")
SMALL = TransformSettings(
    bases=10,
    untransformed=0,
    num_classes=3,
    voices=default_voices()[:3],
    rate_range=(1, 3),
    duration=2,
    sample_rate=16_000,
)


@pytest.fixture(scope="module")
def small():
    """Every clip of few short scenes by the id of its row."""
    return by_id(SMALL)


def by_id(settings):
    rendering = RECIPE.render(settings)
    return {row["id"]: (row, *rendering.clips(index)) for index, row in enumerate(rendering.rows)}


def of_recordings(recordings, **changes):
    return TransformSettings(recordings=recordings, **changes)


def level(clip):
    return np.sqrt(np.mean(clip.astype(float) ** 2))


class TestRows:
    def test_the_presets_have_the_sizes_that_are_documented(self):
        sizes = {name: len(RECIPE.render(settings).rows) for name, settings in RECIPE.presets.items()}
        paper = {"paper-mini": 48 * 9 + 208, "paper-full": 400 * 9 + 1_600}
        assert sizes == {"mini": 1_024, "full": 8_400, **paper}

    def test_a_base_comes_before_its_copies(self):
        rows = RECIPE.render(RECIPE.presets["mini"]).rows
        assert len({row["id"] for row in rows}) == 1_024
        assert [row["id"] for row in rows[17:23]] == [
            f"transforms-00001-{copy}" for copy in ("base", "gain-0", "gain-1", "gain-2", "gain-3", "noise-0")
        ]
        assert {row["split"] for row in rows} == {"test"}
        for place in range(0, 816, 17):
            base, *copies = rows[place : place + 17]
            assert (base["transform"], base["parameter"], base["scaled"], base["quarter"]) == ("", None, None, -1)
            assert [row["transform"] for row in copies] == [name for name in FOUR for _ in range(4)]
            for column in ("base", "fold", "metadata", "levels", "values"):
                assert all(row[column] == base[column] for row in copies)

    def test_half_of_the_bases_are_single_sources_whose_factors_are_known(self):
        settings = RECIPE.presets["mini"]
        bases = [row for row in RECIPE.render(settings).rows[:816] if not row["transform"]]
        assert [len(row["metadata"]) == 1 for row in bases] == [True, False] * 24
        for row in bases[::2]:
            (labels,) = row["metadata"]
            assert labels["timbre_label"] == settings.labels["timbre"][row["levels"]["timbre"]]
            assert labels["pitch_label"] == f"MIDI {row['values']['pitch']:g}"
            assert labels["rate_label"] == f"{row['values']['rate']:.3f} Hz"
            assert labels["amplitude_label"] == f"{row['values']['amplitude']:.3f} dB"
        assert all(row["levels"] is row["values"] is None for row in bases[1::2])
        assert set(Counter(row["fold"] for row in bases).values()) == {8, 10}

    @pytest.mark.parametrize("preset", ["mini", "full"])
    def test_further_single_sources_come_after_them_without_copies(self, preset):
        settings = RECIPE.presets[preset]
        rows = RECIPE.render(settings).rows
        further = rows[-settings.untransformed :]
        assert further[0]["base"] == f"transforms-{settings.bases:05d}"
        assert all(row["id"] == f"{row['base']}-base" for row in further)
        assert {(row["transform"], row["quarter"]) for row in further} == {("", -1)}
        singles = [row for row in rows if row["levels"] and not row["transform"]]
        assert len(singles) == settings.bases // 2 + settings.untransformed
        sources = [tuple(row["levels"].values()) for row in singles]
        assert len(set(sources)) == len(sources)
        for levels in zip(*sources, strict=True):
            assert set(Counter(levels).values()) == {len(sources) // 8}
        for some in (singles, further):
            sizes = Counter(row["fold"] for row in some).values()
            assert max(sizes) - min(sizes) <= 1

    def test_parameters_are_uniform_in_their_quarter_on_the_scale_of_the_range(self):
        rows = [row for row in RECIPE.render(RECIPE.presets["full"]).rows if row["transform"]]
        for name in FOUR:
            transform = load_transform(name)
            of_transform = [row for row in rows if row["transform"] == name]
            for quarter in range(4):
                scaled = np.array([row["scaled"] for row in of_transform if row["quarter"] == quarter])
                assert len(scaled) == 400
                assert kstest(4 * scaled - quarter, "uniform").pvalue > 1e-3
            parameters = np.array([row["parameter"] for row in of_transform])
            low, high = transform.low, transform.high
            if name == "lowpass":
                low, high, parameters = np.log(low), np.log(high), np.log(parameters)
            assert (parameters - low) / (high - low) == pytest.approx([row["scaled"] for row in of_transform])
            assert {row["unit"] for row in of_transform} == {transform.unit}

    def test_the_papers_presets_have_its_ranges(self):
        rows = RECIPE.render(RECIPE.presets["paper-full"]).rows
        ranges = {"noise": (-30, 50), "reverb": (0.1, 3)}
        assert {row["transform"] for row in rows} == {"", *ranges}
        for name, (low, high) in ranges.items():
            parameters = np.array([row["parameter"] for row in rows if row["transform"] == name])
            assert kstest((parameters - low) / (high - low), "uniform").pvalue > 1e-3

    def test_more_draws_a_quarter_keep_their_quarter(self):
        rows = RECIPE.render(dataclasses.replace(SMALL, per_quarter=3)).rows
        noises = [row for row in rows if row["transform"] == "noise"][:12]
        assert [row["quarter"] for row in noises] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
        assert [int(4 * row["scaled"]) for row in noises] == [row["quarter"] for row in noises]
        assert noises[-1]["id"] == "transforms-00000-noise-11"


class TestSound:
    def test_the_same_bits_twice(self, small):
        again = by_id(dataclasses.replace(SMALL))
        assert all((clip == again[name][1]).all() for name, (_, clip) in small.items())
        other = by_id(dataclasses.replace(SMALL, seed=1))
        assert not any((clip == other[name][1]).all() for name, (_, clip) in small.items())

    def test_a_transform_changes_no_other(self, small):
        for transforms in (("reverb",), ("reverb", "noise", "gain")):
            rows = by_id(dataclasses.replace(SMALL, transforms=transforms))
            assert len(rows) == 10 * (1 + 4 * len(transforms))
            for name, (row, clip) in rows.items():
                assert row == small[name][0]
                assert (clip == small[name][1]).all()

    def test_more_bases_change_no_other(self, small):
        rows = by_id(dataclasses.replace(SMALL, bases=12, transforms=("noise",)))
        shared = set(rows) & set(small)
        assert len(shared) == 50
        assert all((rows[name][1] == small[name][1]).all() for name in shared)

    def test_further_clips_change_no_other_and_sound_like_bases(self, small):
        rows = by_id(dataclasses.replace(SMALL, untransformed=6))
        assert list(rows)[: len(small)] == list(small)
        assert all(rows[name][0] == row and (rows[name][1] == clip).all() for name, (row, clip) in small.items())
        rendering = RECIPE.render(dataclasses.replace(SMALL, untransformed=6))
        further = list(rows)[len(small) :]
        assert further == [f"transforms-{number:05d}-base" for number in range(10, 16)]
        for base, name in zip(rendering.bases[10:], further, strict=True):
            tone = rendering.tone_bank.mix(base.sources, base.onsets)
            assert np.abs(rows[name][1] - tone * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    def test_levels_are_those_of_the_base_but_after_gain_and_noise(self, small):
        for row, clip in small.values():
            share = level(clip) / level(small[f"{row['base']}-base"][1])
            expected = {
                "gain": lambda parameter: 10 ** (parameter / 20),
                "noise": lambda parameter: np.sqrt(1 + 10 ** (-parameter / 10)),
            }.get(row["transform"], lambda parameter: 1)(row["parameter"])
            assert share == pytest.approx(expected, rel=0.02)

    def test_the_noise_of_a_clip_has_its_ratio(self, small):
        for row, clip in small.values():
            base = small[f"{row['base']}-base"][1].astype(float)
            # The softest have so little of the noise that rounding to 16 bits adds to it.
            if row["transform"] == "noise" and level(base) > 300:
                ratio = 20 * np.log10(level(base) / level(clip - base))
                assert ratio == pytest.approx(row["parameter"], abs=0.1)

    def test_the_level_of_a_base_is_that_of_its_source(self, small):
        rendering = RECIPE.render(SMALL)
        for base in rendering.bases[::2]:
            clip = small[f"{base.name}-base"][1]
            tone = rendering.tone_bank.mix(base.sources, base.onsets)
            assert np.abs(clip - tone * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    @pytest.mark.slow
    def test_no_single_source_of_a_preset_is_lowered_further(self):
        # Those of full begin with those of mini; of the transforms, noise alone raises a peak by so much.
        rendering = RECIPE.render(dataclasses.replace(RECIPE.presets["full"], transforms=("noise",)))
        for number, base in enumerate(rendering.bases):
            if len(base.sources) == 1 and base.sources[0].amplitude >= 5:
                (clip,) = rendering.clips(5 * number)
                tone = rendering.tone_bank.mix(base.sources, base.onsets)
                assert np.abs(clip - tone * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    def test_built_and_rendered_are_the_same(self, small, tmp_path):
        data = RenderedData("small", {"transforms": SMALL})
        built = open_data(build_dataset(data, tmp_path / "x", progress=False)).configuration("transforms")
        assert list(built.rows) == list(data.configuration("transforms").rows)
        assert built.fingerprint == data.configuration("transforms").fingerprint
        for clip, (_, samples) in zip(built.clips(), small.values(), strict=True):
            assert (clip.waveform * 32_768 == samples).all()


class TestRecordings:
    def test_rows_say_what_they_are_of(self):
        recordings = made_recordings(12, groups=("x", "y", "z", "u", "v", "w"))
        rows = RECIPE.render(of_recordings(recordings, transforms=("noise",))).rows
        assert len(rows) == 12 * 5
        assert rows[5] == {
            "id": "transforms-00001-base",
            "split": "test",
            "base": "transforms-00001",
            "transform": "",
            "parameter": None,
            "unit": "",
            "scaled": None,
            "quarter": -1,
            "fold": rows[5]["fold"],
            "recording": "1.wav",
            "label": "b",
            "group": "y",
            "metadata": [],
            "levels": None,
            "values": None,
        }
        folds = {(row["group"], row["fold"]) for row in rows}
        assert len(folds) == 6
        assert {fold for _, fold in folds} == set(range(5))

    def test_a_clip_is_the_recording_at_its_own_rate(self):
        recordings = made_recordings(rate=22_050)
        rendering = RECIPE.render(of_recordings(recordings, transforms=("gain",)))
        assert rendering.sample_rate == 22_050
        waveform, _ = recordings.waveform(3)
        (clip,) = rendering.clips(3 * 5)
        assert np.abs(clip - waveform * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    def test_long_ones_are_cut_to_the_middle_and_a_stretch_reads_beyond_it(self):
        pytest.importorskip("python_stretch")
        recordings = made_recordings(6, seconds=3)
        rendering = RECIPE.render(of_recordings(recordings, duration=1.0, rate_range=(3, 9), transforms=("stretch",)))
        base, *copies = (rendering.clips(place)[0] for place in range(5))
        assert {len(clip) for clip in (base, *copies)} == {16_000}
        waveform, _ = recordings.waveform(0)
        assert np.abs(base - waveform[16_000:32_000] * 32_766 * 10 ** (-12 / 20)).max() <= 0.51
        # Nothing is padded: there is as much sound in every tenth of a second.
        for clip in copies:
            assert [level(part) for part in clip.reshape(10, -1)] == pytest.approx([level(base)] * 10, rel=0.3)

    def test_short_ones_give_half_where_they_are_stretched_and_all_else(self):
        pytest.importorskip("python_stretch")
        recordings = made_recordings(6)
        lengths = [
            {len(rendering.clips(place)[0]) for place in range(5)}
            for rendering in (
                RECIPE.render(of_recordings(recordings, transforms=(name,))) for name in ("stretch", "pitch")
            )
        ]
        assert lengths == [{7_999}, {16_000}]

    def test_rates_that_differ_are_brought_to_one(self):
        recordings = made_recordings(6, rates=[16_000, 32_000, 48_000] * 2)
        rendering = RECIPE.render(of_recordings(recordings, transforms=("gain",), sample_rate=24_000))
        assert rendering.sample_rate == 24_000
        for place in range(3):
            (clip,) = rendering.clips(place * 5)
            spectrum = np.abs(np.fft.rfft(clip))
            assert len(clip) == 24_000
            assert spectrum.argmax() == 300 + 40 * (place + 1)

    def test_another_recording_changes_none(self):
        recordings = made_recordings(12, groups=tuple("uvwxyz"))
        fewer = recordings.without(4)
        before, after = (
            {(row["recording"], row["transform"], row["quarter"]): (row["parameter"], clip) for row, clip in rows}
            for rows in (by_id(of_recordings(which, transforms=("noise",))).values() for which in (recordings, fewer))
        )
        assert len(after) == 55
        for name, (parameter, clip) in after.items():
            assert parameter == before[name][0]
            assert (clip == before[name][1]).all()

    def test_so_many_are_drawn_evenly_over_labels(self):
        recordings = made_recordings(40, labels="aaab")
        bases = RECIPE.render(of_recordings(recordings, bases=16, transforms=("gain",))).rows[:80:5]
        assert Counter(row["label"] for row in bases) == {"a": 8, "b": 8}

    def test_further_ones_are_as_many_as_there_are_in_folds_by_group(self):
        recordings = made_recordings(40, labels="aaab", groups=tuple("pqrstuvwxyz"))
        settings = of_recordings(recordings, bases=16, transforms=("gain",))
        rendering = RECIPE.render(settings)
        assert len(rendering.rows) == 16 * 5 + 24
        originals = [row for row in rendering.rows if not row["transform"]]
        assert sorted(row["recording"] for row in originals) == sorted(entry.id for entry in recordings.entries)
        assert len({(row["group"], row["fold"]) for row in originals}) == 11
        fewer = RECIPE.render(dataclasses.replace(settings, untransformed=8)).rows
        assert [row["recording"] for row in fewer[:80]] == [row["recording"] for row in rendering.rows[:80]]
        assert Counter(row["label"] for row in fewer[80:]) == {"a": 6, "b": 2}
        number = next(n for n, row in enumerate(rendering.rows) if row["base"] == "transforms-00020")
        waveform, _ = recordings.waveform(rendering.bases[20].recording)
        assert np.abs(rendering.clips(number)[0] - waveform * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    def test_the_fingerprint_is_that_of_the_content(self):
        recordings = made_recordings()
        values = of_recordings(recordings).values()
        assert values != of_recordings(recordings, untransformed=0).values()
        assert values == of_recordings(dataclasses.replace(recordings, source="elsewhere"), max_sources=5).values()
        assert values != of_recordings(recordings.without(2)).values()
        assert values != of_recordings(recordings, headroom=3).values()
        assert "voices" not in values
        assert "recordings" not in SMALL.values()

    def test_cutoffs_end_below_half_the_rate(self):
        rows = RECIPE.render(of_recordings(made_recordings(rate=8_000), transforms=("lowpass",))).rows
        cutoffs = [row["parameter"] for row in rows if row["transform"]]
        assert 500 <= min(cutoffs) < max(cutoffs) <= 3_600

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"seconds": 0.05}, r"made up: recording 0\.wav lasts 0\.050 s; it needs 0\.1 s"),
            ({"groups": ("x", "y")}, "12 recordings in 2 groups"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, changes, message):
        with pytest.raises(DatasetError, match=message):
            RECIPE.render(of_recordings(made_recordings(**changes), transforms=("gain",))).clips(0)

    def test_a_missing_package_is_said_before_anything_is_drawn(self, monkeypatch):
        settings = of_recordings(made_recordings(), transforms=("pitch",))
        monkeypatch.setitem(__import__("sys").modules, "python_stretch.Signalsmith", None)
        with pytest.raises(InputError, match="need python-stretch"):
            RECIPE.render(settings)

    def test_a_folder_of_recordings_claims_no_licence(self, tiny_data, tmp_path):
        settings = of_recordings(made_recordings(), transforms=("gain",))
        folder = build_dataset(RenderedData("mine", {"transforms": settings}), tmp_path / "x", progress=False)
        card = (folder / "README.md").read_text()
        assert "license" not in card
        assert "synthetic" not in card
        assert "CC BY" not in card
        assert "`transforms`: that of the recordings, which this card does not know." in card
        build_dataset(tiny_data, folder, recipes=["a_coat"], progress=False)
        card = (folder / "README.md").read_text()
        assert "license" not in card
        assert "`a_coat`: CC BY 4.0. `transforms`: that of" in card

    def test_the_card_says_what_was_done_and_nothing_of_scenes(self):
        card = RECIPE.describe(of_recordings(made_recordings(), transforms=("noise", "stretch")))
        assert "recordings, as evenly over their labels" in card
        assert "Other recordings, as many as there are and at most 1,600, come after them without copies" in card
        assert "| `noise` | −10 to 40 dB | white Gaussian noise" in card
        assert "| `stretch` | 0.5 to 2, logarithmic |" in card
        assert "FM voice" not in card


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bases": 9}, "bases is 9; it must be from 10 to 4,096"),
        ({"untransformed": 1_849}, "untransformed is 1849; it must be from 0 to 1,848"),
        ({"per_quarter": 0}, "per_quarter is 0"),
        ({"headroom": -1}, r"headroom is -1\.0 dB; it must be from 0 to 60"),
        ({"transforms": ()}, r"it names some of gain, lowpass, noise, reverb, each once"),
        ({"transforms": ("gain", "gain")}, "each once"),
        ({"transforms": ("revreb",)}, "unknown transform 'revreb'; did you mean 'reverb'"),
        ({"transforms": ("pitch",)}, "the transform 'pitch' is for recordings, not for scenes"),
        ({"ranges": (("nois", ParameterRange(0, 1)),)}, "unknown transform 'nois'"),
        ({"ranges": (("noise", ParameterRange(1, 0)),)}, "low is below high"),
        ({"ranges": (("noise", ParameterRange(0, 1, "log")),)}, "positive on the scale log"),
        ({"ranges": (("lowpass", ParameterRange(15_000, 15_500)),)}, "clips of 32,000 Hz allow no lowpass from 15000"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        TransformSettings(**changes)


def test_the_card_says_what_the_presets_are():
    card = RECIPE.describe(RECIPE.presets["mini"])
    assert "48 sound scenes: by turns a single source, and 2 to 3 sources together." in card
    assert "208 further single sources come after them without copies" in card
    assert "| `lowpass` | 500 to 8,000 Hz, logarithmic |" in card
    assert "Copies by `lowpass` and `reverb` have the root mean square of their base." in card
    assert "| 7 | Breath Pad |" in card


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": None}, "base is None; it is a text"),
        ({"parameter": None}, "parameter is None; a copy has a number, a base none"),
        ({"transform": "", "quarter": -1}, "parameter is 1.5; a copy has a number, a base none"),
        ({"quarter": 4}, "quarter is 4; it is 0 to 3, and -1 for a base"),
        ({"fold": 5}, "fold is 5; it is 0 to 4"),
        ({"metadata": [{}]}, "a source lacks timbre_label"),
    ],
)
def test_a_row_that_does_not_say_what_it_is_is_refused(changes, message):
    row = next(row for row in RECIPE.render(SMALL).rows if row["transform"]) | {"parameter": 1.5}
    RECIPE.check_row(row)
    with pytest.raises(DatasetError, match=message):
        RECIPE.check_row(row | changes)
