"""Energy, onsets and span against bursts of which all three are known."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model

RATE = 32_000


@pytest.mark.parametrize("starts", [[0.0], [0.5], [0.0, 0.3], [0.2, 0.7, 1.5]])
def test_bursts_are_counted_wherever_they_are(starts: list[float]) -> None:
    clip = np.zeros(2 * RATE)
    for start in starts:
        clip[round(start * RATE) :][: RATE // 10] = np.sign(np.random.default_rng(0).normal(size=RATE // 10)) / 4
    row = load_model("energy-onsets-span").embed(clip[None].astype(np.float32), RATE)[0]
    energy = np.log10(len(starts) * 0.1 / 16 / 2)
    np.testing.assert_allclose(row, [energy, len(starts), starts[-1] - starts[0]], atol=1e-5)


def test_silence_has_no_onset_and_a_short_dip_is_none() -> None:
    clips = np.zeros((2, RATE), np.float32)
    clips[1] = 0.1
    clips[1, 10_000:11_000] = 0
    rows = load_model("energy-onsets-span").embed(clips, RATE)
    np.testing.assert_allclose(rows[0], [-10, 0, 0])
    np.testing.assert_allclose(rows[1, 1:], [1, 0])


def test_it_is_a_control_of_the_tasks_that_name_it_and_no_bar_elsewhere() -> None:
    listing = {listing.name: listing for listing in list_models()}["energy-onsets-span"]
    assert (listing.is_baseline, listing.is_reference, listing.is_level) == (False, False, False)
