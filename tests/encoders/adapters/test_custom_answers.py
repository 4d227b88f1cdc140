"""Classes of users that answer: with what they say of themselves alone they are models."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.adapters.custom import ModelCodeError
from audio_compositionality.encoders.base import GivenClip, ModelError
from audio_compositionality.encoders.loading.registry import load_model

from ...clips import each
from .conftest import Write

ANSWERS = """
class Mine:
    sample_rate, licence = 8_000, "MIT"

    def answer(self, clips, prompts):
        return [f"{len(clip.waveform)} {clip.sample_rate}" for clip in clips]
"""
LEARNS = "    def learn(self, rows, clips):\n        self.learnt = [len(clip.waveform) for clip in clips]\n"
SCORES = (
    "    def score_options(self, clips, prompts, options, by):\n"
    "        return [[-float(len(clip.waveform)), -1.0] for clip in clips]\n"
)
TOLD = "    def answer_from_labels(self, rows, prompts):\n        return list(rows)\n"


def test_a_class_that_answers_needs_no_card(write: Write) -> None:
    clip = Clip("a", np.zeros(32_000, np.float32), 16_000)
    model = load_model(write(ANSWERS))
    assert "answer" in model.abilities
    assert "audio" not in model.abilities
    assert model.answer(each([clip]), ["?"]) == ["16000 8000"]
    assert (model.card.id, model.card.sample_rate, model.card.output_dim) == ("Mine", 8_000, None)
    assert model.card.licence == "MIT"
    assert model.card.revision != load_model(write(ANSWERS + "# other")).card.revision
    with pytest.raises(ModelError, match="has no sample_rate; a model that answers needs sample_rate and answer"):
        load_model(write(ANSWERS.replace("sample_rate, licence = 8_000, ", "licence = ")))
    with pytest.raises(ModelError, match=r"sample_rate is 8000\.5, but must be a positive whole number"):
        load_model(write(ANSWERS.replace("8_000, ", "8_000.5, ")))


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("scores", [False, True])
def test_a_class_that_answers_can_do_as_a_model_what_it_can(
    write: Write, learns: bool, told: bool, scores: bool
) -> None:
    model = load_model(write(ANSWERS + LEARNS * learns + SCORES * scores + TOLD * told))
    assert ("score" in model.abilities) == (scores and not told)
    if "score" in model.abilities:
        clip = Clip("a", np.zeros(32_000, np.float32), 16_000)
        assert model.score_options(each([clip]), ["?"], [["x", "y"]], "letters") == [[-16_000, -1]]
    assert ("learn" in model.abilities) == learns
    assert ("labels" in model.abilities) == told
    if "learn" in model.abilities:
        model.learn([{}], iter([Clip("a", np.zeros(32_000, np.float32), 16_000)]))
    if "labels" in model.abilities:
        told_clip = GivenClip(np.zeros(0, np.float32), 8_000, {"a": 1})
        assert model.answer([[told_clip]], ["?"]) == [{"a": 1}]
        with pytest.raises(ModelError, match="'Mine' hears nothing: it answers from the labels of rows"):
            model.answer(each([Clip("a", np.zeros(8, np.float32), 8_000)]), ["?"])


def test_an_error_of_a_class_that_answers_names_its_line(write: Write) -> None:
    model = load_model(write(ANSWERS.replace("return [", "return 1 / 0, [")))
    with pytest.raises(ModelCodeError, match=r"ZeroDivisionError in mine\.py, line 6"):
        model.answer([], [])
    model = load_model(write(ANSWERS.replace("self, clips, prompts", "self, clips")))
    with pytest.raises(ModelCodeError, match="TypeError in a line unknown"):
        model.answer([], [])


def test_a_class_that_embeds_and_answers_does_both(write: Write) -> None:
    embeds = "    def embed(self, waveforms, sample_rate):\n        return waveforms[:, :4]\n"
    model = load_model(write(ANSWERS + embeds + SCORES))
    assert "audio" in model.abilities
    assert "answer" in model.abilities
    assert "score" in model.abilities
    clip = Clip("a", np.zeros(32_000, np.float32), 16_000)
    assert model.answer(each([clip]), ["?"]) == ["16000 8000"]
    assert model.embed(np.ones((2, 16_000), np.float32), 16_000).shape == (2, 4)
    assert model.card.output_dim == 4
    assert load_model(write(ANSWERS.replace("answer(", "reply(") + embeds)).abilities == {"audio"}
