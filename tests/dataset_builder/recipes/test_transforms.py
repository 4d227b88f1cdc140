"""The clips and copies of the presets, and which rows are refused."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes.transforms import RECIPE
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.bases import DIFFERING, TransformSpec
from audio_compositionality.dataset_builder.scenes.effects import ParameterRange, load_transform
from audio_compositionality.support.errors import InputError

from .transformed import SMALL, by_id, level


def is_base(row):
    return not row["transform"] and not row["candidate"]


FOUR = ("gain", "noise", "lowpass", "reverb")


@pytest.fixture(scope="module")
def small():
    """Every clip of few short scenes by the id of its row."""
    return by_id(SMALL)


class TestRows:
    @pytest.mark.slow
    def test_the_presets_have_the_sizes_that_are_documented(self):
        sizes = {name: len(RECIPE.render(settings).rows) for name, settings in RECIPE.presets.items()}
        paper = {"paper-mini": 48 * 11 + 112, "paper-full": 400 * 11 + 800}
        assert sizes == {"mini": 1_024, "full": 8_400, **paper}

    def test_a_base_comes_before_its_copies(self):
        rows = RECIPE.render(RECIPE.presets["mini"]).rows
        assert len({row["id"] for row in rows}) == 1_024
        assert [row["id"] for row in rows[19:25]] == [
            f"transforms-00001-{copy}" for copy in ("base", "gain-0", "gain-1", "gain-2", "gain-3", "noise-0")
        ]
        assert {row["split"] for row in rows} == {"test"}
        for place in range(0, 912, 19):
            base, *copies = rows[place : place + 17]
            assert (base["transform"], base["parameter"], base["scaled"], base["quarter"]) == ("", None, None, -1)
            assert [row["transform"] for row in copies] == [name for name in FOUR for _ in range(4)]
            for column in ("base", "fold", "metadata", "levels", "values"):
                assert all(row[column] == base[column] for row in copies)
            same, other = rows[place + 17 : place + 19]
            assert {row["candidate"] for row in (base, *copies)} == {""}
            assert (same["candidate"], other["candidate"]) == ("same", DIFFERING[place // 38 % 3])
            assert same["id"] == f"{base['base']}-same"
            assert all(row["base"] == base["base"] and row["fold"] == base["fold"] for row in (same, other))

    def test_half_of_the_bases_are_single_sources_whose_factors_are_known(self):
        settings = RECIPE.presets["mini"]
        bases = [row for row in RECIPE.render(settings).rows[:912] if is_base(row)]
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
        singles = [row for row in rows if row["levels"] and is_base(row)]
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

    @pytest.mark.slow
    def test_the_papers_presets_have_its_ranges(self):
        rows = RECIPE.render(RECIPE.presets["paper-full"]).rows
        ranges = {"noise": (-30, 50), "reverb": (0.1, 3)}
        assert {row["transform"] for row in rows} == {"", *ranges}
        for name, (low, high) in ranges.items():
            parameters = np.array([row["parameter"] for row in rows if row["transform"] == name])
            assert kstest((parameters - low) / (high - low), "uniform").pvalue > 1e-3

    def test_more_draws_a_quarter_keep_their_quarter(self):
        rows = RECIPE.render(SMALL.changed(per_quarter=3)).rows
        noises = [row for row in rows if row["transform"] == "noise"][:12]
        assert [row["quarter"] for row in noises] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
        assert [int(4 * row["scaled"]) for row in noises] == [row["quarter"] for row in noises]
        assert noises[-1]["id"] == "transforms-00000-noise-11"


class TestSound:
    def test_the_same_bits_twice(self, small):
        again = by_id(SMALL.changed())
        assert all((clip == again[name][1]).all() for name, (_, clip) in small.items())
        other = by_id(SMALL.changed(seed=1))
        assert not any((clip == other[name][1]).all() for name, (_, clip) in small.items())

    def test_a_transform_changes_no_other(self, small):
        for transforms in (("reverb",), ("reverb", "noise", "gain")):
            rows = by_id(SMALL.changed(transforms=transforms))
            assert len(rows) == 10 * (3 + 4 * len(transforms))
            for name, (row, clip) in rows.items():
                assert row == small[name][0]
                assert (clip == small[name][1]).all()

    def test_more_bases_change_no_other(self, small):
        rows = by_id(SMALL.changed(bases=12, transforms=("noise",)))
        shared = set(rows) & set(small)
        assert len(shared) == 70
        assert all((rows[name][1] == small[name][1]).all() for name in shared)

    def test_further_clips_change_no_other_and_sound_like_bases(self, small):
        rows = by_id(SMALL.changed(untransformed=6))
        assert list(rows)[: len(small)] == list(small)
        assert all(rows[name][0] == row and (rows[name][1] == clip).all() for name, (row, clip) in small.items())
        rendering = RECIPE.render(SMALL.changed(untransformed=6))
        further = list(rows)[len(small) :]
        assert further == [f"transforms-{number:05d}-base" for number in range(10, 16)]
        for base, name in zip(list(rendering.spec.material.draw())[10:], further, strict=True):
            assert np.abs(rows[name][1] - base.sound() * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    def test_levels_are_those_of_the_base_but_after_gain_and_noise(self, small):
        for row, clip in small.values():
            if row["candidate"]:
                # Those of a loud base can be softer, where one of them would pass full scale.
                continue
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
        for base in list(SMALL.material.draw())[::2]:
            clip = small[f"{base.name}-base"][1]
            assert np.abs(clip - base.sound() * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    @pytest.mark.slow
    def test_no_single_source_of_a_preset_is_lowered_further(self):
        # Those of full begin with those of mini; of the transforms, noise alone raises a peak by so much.
        rendering = RECIPE.render(RECIPE.presets["full"].changed(transforms=("noise",)))
        places = {row["base"]: place for place, row in enumerate(rendering.rows) if is_base(row)}
        for base in rendering.spec.material.draw():
            if base.candidates and base.said["levels"] and base.said["levels"]["amplitude"] >= 5:
                (clip,) = rendering.clips(places[base.name])
                assert np.abs(clip - base.sound() * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    def test_built_and_rendered_are_the_same(self, small, tmp_path):
        data = RenderedData("small", {"transforms": SMALL})
        built = open_data(build_dataset(data, tmp_path / "x", progress=False)).configuration("transforms")
        assert list(built.rows) == list(data.configuration("transforms").rows)
        assert built.fingerprint == data.configuration("transforms").fingerprint
        for clip, (_, samples) in zip(built.clips(), small.values(), strict=True):
            assert (clip.waveform * 32_768 == samples).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bases": 9}, "bases is 9; it must be from 10 to 4,096"),
        ({"untransformed": 1_849}, "untransformed is 1849; it must be from 0 to 1,848"),
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
        TransformSpec(**changes)


def test_the_card_says_what_the_presets_are():
    card = RECIPE.describe(RECIPE.presets["mini"])
    assert "48 sound scenes: by turns a single source, and 2 to 3 sources together." in card
    assert "112 further single sources come after them without copies" in card
    assert "| `lowpass` | 500 to 8,000 Hz, logarithmic |" in card
    assert "Copies by `lowpass` and `reverb` have the root mean square of their base." in card
    assert "| 7 | Breath Pad |" in card


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": None}, "base is None; it is a text"),
        ({"parameter": None}, "parameter is None; a copy has a number, a base none"),
        ({"transform": "", "quarter": -1}, "parameter is 1.5; a copy has a number, a base none"),
        (
            {"candidate": "same"},
            "candidate is 'same'; it is empty where there is a transform",
        ),
        ({"quarter": 4}, "quarter is 4; it is one of -1, 0, 1, 2, 3"),
        ({"fold": 5}, "fold is 5; it is one of 0, 1, 2, 3, 4"),
        ({"number": "3"}, "number is '3'; it is a number"),
        ({"metadata": [{}]}, "metadata is .*; it is a list of structures of timbre_label"),
    ],
)
def test_a_row_that_does_not_say_what_it_is_is_refused(changes, message):
    row = next(row for row in RECIPE.render(SMALL).rows if row["transform"]) | {"parameter": 1.5}
    RECIPE.check_row(row)
    with pytest.raises(DatasetError, match=message):
        RECIPE.check_row(row | changes)
