"""Clips and their copies: of scenes of tones, and of recordings that somebody brings."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.recipes.transforms import RECIPE
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.bases import DIFFERING, TransformSpec
from audio_compositionality.dataset_builder.scenes.effects import load_transform
from audio_compositionality.dataset_builder.sounds.tones import default_voices

from ..sounds.made import made_recordings

SMALL = TransformSpec(
    bases=10,
    untransformed=0,
    num_classes=3,
    voices=default_voices()[:3],
    rate_range=(1, 3),
    duration=2,
    sample_rate=16_000,
)


def by_id(settings):
    rendering = RECIPE.render(settings)
    return {row["id"]: (row, *rendering.clips(index)) for index, row in enumerate(rendering.rows)}


def of_recordings(recordings, **changes):
    return TransformSpec(sounds=recordings, **changes)


def level(clip):
    return np.sqrt(np.mean(clip.astype(float) ** 2))


def is_base(row):
    return not row["transform"] and not row["candidate"]


FOUR = ("gain", "noise", "lowpass", "reverb")


@pytest.fixture(scope="module")
def small():
    """Every clip of few short scenes by the id of its row."""
    return by_id(SMALL)


class TestRows:
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


class TestSound:
    def test_a_transform_changes_no_other(self, small):
        for transforms in (("reverb",), ("reverb", "noise", "gain")):
            rows = by_id(SMALL.changed(transforms=transforms))
            assert len(rows) == 10 * (3 + 4 * len(transforms))
            for name, (row, clip) in rows.items():
                assert row == small[name][0]
                assert (clip == small[name][1]).all()

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


def test_long_ones_are_cut_to_the_middle_and_a_stretch_reads_beyond_it():
    pytest.importorskip("python_stretch")
    recordings = made_recordings(6, seconds=3)
    rendering = RECIPE.render(of_recordings(recordings, duration=1.0, transforms=("stretch",)))
    base, *copies = (rendering.clips(place)[0] for place in range(5))
    assert {len(clip) for clip in (base, *copies)} == {16_000}
    waveform, _ = recordings.waveform(0)
    assert np.abs(base - waveform[16_000:32_000] * 32_766 * 10 ** (-12 / 20)).max() <= 0.51
    # Nothing is padded: there is as much sound in every tenth of a second.
    for clip in copies:
        assert [level(part) for part in clip.reshape(10, -1)] == pytest.approx([level(base)] * 10, rel=0.3)


def test_rates_that_differ_are_brought_to_one():
    recordings = made_recordings(6, rates=[16_000, 32_000, 48_000] * 2)
    rendering = RECIPE.render(of_recordings(recordings, transforms=("gain",), sample_rate=24_000))
    assert rendering.sample_rate == 24_000
    for place in range(3):
        (clip,) = rendering.clips(place * 7)
        spectrum = np.abs(np.fft.rfft(clip))
        assert len(clip) == 24_000
        assert spectrum.argmax() == 300 + 40 * (place + 1)


def test_another_recording_changes_none():
    recordings = made_recordings(12, groups=tuple("uvwxyz"))
    fewer = recordings.without(4)
    before, after = (
        {
            (row["recording"], row["transform"], row["quarter"]): (row["parameter"], clip)
            for row, clip in rows
            if not row["candidate"]
        }
        for rows in (by_id(of_recordings(which, transforms=("noise",))).values() for which in (recordings, fewer))
    )
    assert len(after) == 55
    for name, (parameter, clip) in after.items():
        assert parameter == before[name][0]
        assert (clip == before[name][1]).all()


def test_a_folder_of_recordings_claims_no_licence(tiny_data, tmp_path):
    settings = of_recordings(made_recordings(), transforms=("gain",))
    folder = build_dataset(RenderedData("mine", {"transforms": settings}), tmp_path / "x", progress=False)
    card = (folder / "README.md").read_text()
    assert "license" not in card
    assert "synthetic" not in card
    assert "CC BY" not in card
    assert "`transforms`: the licence of the recordings, which" in card
    build_dataset(tiny_data, folder, recipes=["a_coat"], progress=False)
    card = (folder / "README.md").read_text()
    assert "license" not in card
    assert "`a_coat`: CC BY 4.0. `transforms`: the licence of" in card
