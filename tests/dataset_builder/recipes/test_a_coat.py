"""The quadruples of the presets, and which rows are refused."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.a_coat import RECIPE
from audio_compositionality.dataset_builder.scenes.selection import NUM_BINS, entropy_bins
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES

SOURCE = {"timbre_label": "a", "pitch_label": "b", "rate_label": "c", "amplitude_label": "d"}


def test_the_presets_have_the_sizes_that_are_documented():
    sizes = {name: settings.quadruples for name, settings in RECIPE.presets.items()}
    assert sizes == {"mini": 64, "full": 2_000, "paper-mini": 64, "paper-full": 2_000}
    assert {settings.quadruple_candidates for settings in RECIPE.presets.values()} == {50_000}


@pytest.mark.parametrize("size", ["mini", "full"])
def test_the_presets_after_the_papers_letter_differ_in_onset_and_level_alone(size):
    letter = RECIPE.presets[size].changed(onset="locked", level="clip")
    assert RECIPE.presets[f"paper-{size}"] == letter
    assert letter.values() != RECIPE.presets[size].values()


@pytest.mark.slow
def test_after_the_papers_letter_every_source_starts_at_once_and_the_quadruples_are_the_same():
    ours, letter = (RECIPE.render(RECIPE.presets[name]) for name in ("mini", "paper-mini"))
    assert [row["metadata"] for row in letter.rows] == [row["metadata"] for row in ours.rows]
    assert not any(onset for row in letter.rows for part in row["onsets"].values() for onset in part)
    assert any(onset for row in ours.rows for part in row["onsets"].values() for onset in part)


def test_full_quadruples_are_balanced():
    rows = RECIPE.render(RECIPE.presets["full"]).rows
    assert len({row["id"] for row in rows}) == len(rows) == 2_000
    for attribute in ATTRIBUTES:
        values = [[row["entropy"][attribute]] for row in rows]
        counts = np.bincount(entropy_bins(np.array(values)).ravel(), minlength=NUM_BINS)
        assert counts == pytest.approx([400] * 5, abs=8)


def test_gains_are_those_of_the_labels():
    rendering = RECIPE.render(RECIPE.presets["mini"])
    for row in rendering.rows:
        for part in "ACT":
            decibels = [float(source["amplitude_label"].removesuffix(" dB")) for source in row["metadata"][part]]
            assert row["gains"][part] == pytest.approx([10 ** (decibel / 20) for decibel in decibels], rel=1e-4)
            assert len(row["onsets"][part]) == len(row["gains"][part])


def test_the_level_is_a_setting(small_data):
    settings = small_data.settings["a_coat"].changed(level="clip")
    shared, separate = (RECIPE.render(of_level) for of_level in (small_data.settings["a_coat"], settings))
    assert shared.rows == separate.rows
    assert (_step(shared, 0, "B", "A") == _step(shared, 0, "D", "C")).all()
    assert any(
        (_step(separate, row, "B", "A") != _step(separate, row, "D", "C")).any() for row in range(len(separate.rows))
    )


def _step(rendering, row, to, start):
    clips = dict(zip("ABCD", rendering.clips(row), strict=True))
    return clips[to] - clips[start]


@pytest.mark.parametrize("metadata", [None, [SOURCE], {"A": [SOURCE], "C": [SOURCE]}, {"A": [], "C": [], "T": []}])
def test_a_row_without_its_sources_is_refused(metadata):
    with pytest.raises(DatasetError, match="row x: metadata is"):
        RECIPE.check_row({"id": "x", "metadata": metadata})
    RECIPE.check_row({"id": "x", "metadata": {part: [SOURCE] for part in "ACT"}})
