"""The work of an evaluation before it begins: how long fits and clips are expected to take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run import work
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.processes import Processes
from audio_compositionality.evaluator.run.work import clips_of, score_part
from audio_compositionality.tasks.registry import load_task

from .toys import Numbered


def test_fits_are_foreseen_by_their_steps_seeds_and_the_size_of_an_embedding(tiny_data):
    card = load_model("random").card
    parts = {}
    for seeds in (1, 3):
        opened = open_task(load_task("a_tre"), tiny_data, {"seeds": seeds, "max_steps": 600})
        for dim in (128, 768):
            parts[seeds, dim] = score_part(replace(card, output_dim=dim), opened)[1]
    assert parts[1, 128].seconds == pytest.approx(2.8, rel=0.4)
    assert parts[1, 768].seconds == pytest.approx(51, rel=0.4)
    assert parts[3, 128].seconds == pytest.approx(3 * parts[1, 128].seconds)


class Longer(Numbered):
    """Clips of two seconds."""

    recipe, source, fingerprint = "longer", "longer", "e" * 64

    def sound(self, number):
        waveform, rate = super().sound(number)
        return np.tile(waveform, 4_000), rate


def test_a_model_that_pads_short_clips_is_not_expected_to_take_less_for_them(tmp_path, monkeypatch):
    """One takes 0.3 s for any clip, the other in proportion to its length."""
    padding, other = load_model("random"), load_model("level-statistics")

    def seconds(model, clip, size):
        return 0.3 if model is padding else len(clip.waveform) / 16_000

    monkeypatch.setattr(work, "_seconds_of_clip", seconds)
    short, long = Numbered(100), Longer(100)
    options = RunOptions(store=tmp_path, progress=True)
    foreseen = clips_of([([model], one) for model in (padding, other) for one in (short, long)], options, Processes())
    of_short, of_long, *proportional = foreseen.values()
    assert of_short.size == pytest.approx(0.3, abs=0.05)
    assert of_short.size / of_long.size == pytest.approx(1, abs=0.1)
    assert proportional[1].size == pytest.approx(2, abs=0.1)
    assert proportional[0].size < 0.1
