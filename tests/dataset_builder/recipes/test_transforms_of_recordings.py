"""Recordings that somebody brings, and their copies."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.transforms import RECIPE
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.support.errors import InputError

from ..sounds.made import made_recordings
from .transformed import SMALL, by_id, level, of_recordings


def test_rows_say_what_they_are_of():
    recordings = made_recordings(12, groups=("x", "y", "z", "u", "v", "w"))
    rows = RECIPE.render(of_recordings(recordings, transforms=("noise",))).rows
    assert len(rows) == 12 * 7
    assert rows[7] == {
        "id": "transforms-00001-base",
        "split": "test",
        "base": "transforms-00001",
        "transform": "",
        "candidate": "",
        "parameter": None,
        "unit": "",
        "scaled": None,
        "quarter": -1,
        "fold": rows[7]["fold"],
        "recording": "1.wav",
        "label": "b",
        "number": None,
        "group": "y",
        "metadata": [],
        "levels": None,
        "values": None,
    }
    assert (rows[12]["candidate"], rows[12]["recording"], rows[12]["label"]) == ("same", "1.wav", "b")
    assert rows[13]["candidate"] == "recording"
    assert rows[13]["label"] != "b"
    folds = {(row["group"], row["fold"]) for row in rows if not row["candidate"]}
    assert len(folds) == 6
    assert {fold for _, fold in folds} == set(range(5))


def test_a_clip_is_the_recording_at_its_own_rate():
    recordings = made_recordings(rate=22_050)
    rendering = RECIPE.render(of_recordings(recordings, transforms=("gain",)))
    assert rendering.sample_rate == 22_050
    waveform, _ = recordings.waveform(3)
    (clip,) = rendering.clips(3 * 7)
    assert np.abs(clip - waveform * 32_766 * 10 ** (-12 / 20)).max() <= 0.51


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


def test_short_ones_give_half_where_they_are_stretched_and_all_else():
    pytest.importorskip("python_stretch")
    recordings = made_recordings(6)
    lengths = [
        {len(rendering.clips(place)[0]) for place in range(5)}
        for rendering in (RECIPE.render(of_recordings(recordings, transforms=(name,))) for name in ("stretch", "pitch"))
    ]
    assert lengths == [{7_999}, {16_000}]


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


def test_so_many_are_drawn_evenly_over_labels():
    recordings = made_recordings(40, labels="aaab")
    bases = RECIPE.render(of_recordings(recordings, bases=16, transforms=("gain",))).rows[:112:7]
    assert Counter(row["label"] for row in bases) == {"a": 8, "b": 8}


def test_further_ones_are_as_many_as_there_are_in_folds_by_group():
    recordings = made_recordings(40, labels="aaab", groups=tuple("pqrstuvwxyz"))
    settings = of_recordings(recordings, bases=16, transforms=("gain",))
    rendering = RECIPE.render(settings)
    assert len(rendering.rows) == 16 * 7 + 24
    originals = [row for row in rendering.rows if not row["transform"] and not row["candidate"]]
    assert sorted(row["recording"] for row in originals) == sorted(entry.id for entry in recordings.entries)
    assert len({(row["group"], row["fold"]) for row in originals}) == 11
    fewer = RECIPE.render(settings.changed(untransformed=8)).rows
    assert [row["recording"] for row in fewer[:112]] == [row["recording"] for row in rendering.rows[:112]]
    assert Counter(row["label"] for row in fewer[112:]) == {"a": 6, "b": 2}
    number = next(n for n, row in enumerate(rendering.rows) if row["base"] == "transforms-00020")
    waveform, _ = recordings.waveform(
        [entry.id for entry in recordings.entries].index(rendering.rows[number]["recording"])
    )
    assert np.abs(rendering.clips(number)[0] - waveform * 32_766 * 10 ** (-12 / 20)).max() <= 0.51


def test_the_fingerprint_is_that_of_the_content():
    recordings = made_recordings()
    values = of_recordings(recordings).values()
    assert values != of_recordings(recordings, untransformed=0).values()
    assert values == of_recordings(dataclasses.replace(recordings, source="elsewhere")).values()
    assert values != of_recordings(recordings.without(2)).values()
    assert values != of_recordings(recordings, headroom=3).values()
    assert "voices" not in values
    assert values["sounds"] == recordings.fingerprint
    assert SMALL.values()["sounds"] is None


@pytest.mark.parametrize("change", [{"rate_range": (3, 9)}, {"max_sources": 5}, {"onset": "locked"}])
def test_settings_of_tones_are_refused(change):
    with pytest.raises(InputError, match=f"{next(iter(change))} applies to tones, which recordings replace here"):
        of_recordings(made_recordings(), **change)


def test_cutoffs_end_below_half_the_rate():
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
def test_what_cannot_be_used_is_named(changes, message):
    with pytest.raises(DatasetError, match=message):
        RECIPE.render(of_recordings(made_recordings(**changes), transforms=("gain",))).clips(0)


def test_a_missing_package_is_said_before_anything_is_drawn(monkeypatch):
    settings = of_recordings(made_recordings(), transforms=("pitch",))
    monkeypatch.setitem(__import__("sys").modules, "python_stretch.Signalsmith", None)
    with pytest.raises(InputError, match="need python-stretch"):
        RECIPE.render(settings)


def test_a_folder_of_recordings_claims_no_licence(tiny_data, tmp_path):
    settings = of_recordings(made_recordings(), transforms=("gain",))
    folder = build_dataset(RenderedData("mine", {"transforms": settings}), tmp_path / "x", progress=False)
    card = (folder / "README.md").read_text()
    assert "license" not in card
    assert "synthetic" not in card
    assert "CC BY" not in card
    assert "`transforms`: the licence of the recordings, which is unknown here." in card
    build_dataset(tiny_data, folder, recipes=["a_coat"], progress=False)
    card = (folder / "README.md").read_text()
    assert "license" not in card
    assert "`a_coat`: CC BY 4.0. `transforms`: the licence of the recordings" in card


def test_the_card_says_what_was_done_and_nothing_of_scenes():
    card = RECIPE.describe(of_recordings(made_recordings(), transforms=("noise", "stretch")))
    assert "recordings, as evenly over their labels" in card
    assert "Other recordings, as many as there are and at most 800, come after them without copies" in card
    assert "| `noise` | −10 to 40 dB | white Gaussian noise" in card
    assert "| `stretch` | 0.5 to 2, logarithmic |" in card
    assert "FM voice" not in card
