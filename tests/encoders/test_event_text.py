"""A language model that is told what a detector has heard."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from audio_compositionality.encoders import controls
from audio_compositionality.encoders.base import Model, ModelCard, ModelError
from audio_compositionality.support.errors import InputError

from ..clips import each

HEAD = "These sounds were detected in a recording, with the seconds in which they are heard:"


@dataclass(frozen=True)
class Clip:
    waveform: np.ndarray
    sample_rate: int = 16_000


class Levels(Model):
    """Hears a bell for as long as a clip is not silent, and keeps how many clips it was given at a time."""

    card = ModelCard("levels", "1", 16_000, None, trained_on="nothing")

    def __init__(self) -> None:
        self.given: list[int] = []

    def detect_events(self, clips: Sequence[Any]) -> list[list[dict[str, Any]]]:
        self.given.append(len(clips))
        return [
            [{"onset": 0.0, "offset": len(clip.waveform) / clip.sample_rate, "label": "bell"}]
            if clip.waveform.any()
            else []
            for clip in clips
        ]


class Echo(Model):
    """Answers with the prompt."""

    card = ModelCard("echo", "2", 1, None)
    device = "server"

    @property
    def abilities(self) -> frozenset[str]:
        return super().abilities | {"read"}

    def answer(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        assert clips == [[]] * len(prompts)
        return list(prompts)


def cascade(detector: Any = None, model: Model | None = None) -> controls.EventTextModel:
    return controls.EventTextModel(detector or Levels(), model or Echo())


def test_events_stand_before_the_question_in_the_order_of_their_onsets():
    events = [
        {"onset": 2.345, "offset": 3, "label": "dog\nbark "},
        {"onset": 0, "offset": 2.35, "label": "bell"},
        {"onset": 0, "offset": 1.0, "label": "siren", "source": 3},
    ]
    assert controls.prompt_with_events(events, "Which?\nA. bell").splitlines() == [
        HEAD,
        "0.00-1.00 s: siren",
        "0.00-2.35 s: bell",
        "2.35-3.00 s: dog bark",
        "",
        "Which?",
        "A. bell",
    ]
    assert controls.prompt_with_events([], "Which?") == "No sounds were detected in a recording.\n\nWhich?"


def test_a_cascade_answers_from_events():
    model = cascade()
    loud, silent = Clip(np.ones(8_000, np.float32)), Clip(np.zeros(8_000, np.float32))
    answers = model.answer(each([loud, silent]), ["one", "two"])
    assert answers == [f"{HEAD}\n0.00-0.50 s: bell\n\none", "No sounds were detected in a recording.\n\ntwo"]
    card = model.card
    assert (card.id, card.revision) == ("detected-as-text:levels:echo", "1+2+text-1")
    assert (card.sample_rate, card.output_dim, card.trained_on) == (16_000, None, "nothing")
    assert (model.device, model.limit_seconds, model.new_tokens) == ("server", None, None)
    with pytest.raises(ModelError, match="'detected-as-text:levels:echo' cannot score given answers"):
        model.score_options(each([loud]), ["a"], [["bell", "siren"]], "options")
    with pytest.raises(ModelError, match="'echo' has no limit on the tokens of an answer"):
        model.with_new_tokens(1024)


def test_a_clip_is_listened_to_once_whatever_is_asked_about_it():
    detector = Levels()
    clips = [Clip(np.ones(16, np.float32)) for _ in range(2)]
    model = cascade(detector)
    answers = model.answer(each([clips[0], clips[1], clips[0]]), ["a", "b", "c"])
    assert detector.given == [2]
    assert [answer[-1] for answer in answers] == ["a", "b", "c"]
    assert model.answer([], []) == []


def test_what_is_no_event():
    good = {"onset": 0, "offset": 1, "label": "bell"}
    for bad in ({"onset": 2}, {"onset": -1}, {"offset": math.nan}, {"label": " "}, {"onset": None}):
        with pytest.raises(ModelError, match="is not an event"):
            controls.prompt_with_events([{**good, **bad}], "a")
    with pytest.raises(ModelError, match="is not an event"):
        controls.prompt_with_events([(0, 1, "bell")], "a")  # type: ignore[list-item]


def test_a_detector_that_leaves_clips_out():
    class Deaf(Levels):
        def detect_events(self, clips: Sequence[Any]) -> list[list[dict[str, Any]]]:
            return []

    with pytest.raises(ModelError, match="returned events of 0 clips for 1; it must return one list per clip"):
        cascade(Deaf()).answer(each([Clip(np.ones(16, np.float32))]), ["a"])
    with pytest.raises(InputError, match="2 prompts but 1 clips"):
        cascade().answer(each([Clip(np.ones(16, np.float32))]), ["a", "b"])


class Hears(Model):
    """Hears, and answers with whether it heard anything and the prompt; in as many tokens as it is told."""

    device = "cpu"
    limit_seconds = 2.0

    def __init__(self, new_tokens: int = 16) -> None:
        self.new_tokens = new_tokens
        self.card = ModelCard(f"hears@{new_tokens}", "3", 1, None)
        self.counted: list[int] = []

    def answer(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        return [f"{clip.waveform.any()} {len(clip.waveform)} {p}" for (clip,), p in zip(clips, prompts, strict=True)]

    def score_options(
        self, clips: Sequence[Any], prompts: Sequence[str], options: Sequence[Sequence[str]], by: str
    ) -> list[list[float]]:
        return [
            [-float(clip.waveform.any()) - len(one) for one in row] for (clip,), row in zip(clips, options, strict=True)
        ]

    def with_new_tokens(self, count: int) -> Hears:
        return Hears(count)


def test_what_a_run_asks_of_its_language_model_is_asked_of_the_cascade():
    """A model that hears is given silence beside the text."""
    clip = Clip(np.ones(8_000, np.float32))
    model = controls.EventTextModel(Levels(), Hears())
    assert model.answer(each([clip]), ["one"]) == [f"False 8000 {HEAD}\n0.00-0.50 s: bell\n\none"]
    assert model.score_options(each([clip]), ["one"], [["bell", "siren"]], "letters") == [[-4, -5]]
    assert (model.scorings, model.limit_seconds) == (("letters", "options"), 2)
    longer = controls.Controlled(model, controls.CONTROLS["without-audio"]).with_new_tokens(1024)
    assert longer.card.id == "without-audio:detected-as-text:levels:hears@1024"
    assert longer.new_tokens == 1024
    assert longer.answer(each([clip]), ["a"]) == ["False 8000 No sounds were detected in a recording.\n\na"]
    assert "learn" not in model.abilities
    assert not controls.can_control(model, controls.CONTROLS["events-as-text"])

    class Learns(Levels):
        def learn(self, rows: Sequence[Any], clips: Iterable[Any]) -> None:
            self.learnt = [*rows, *clips]

    detector = Learns()
    controls.EventTextModel(detector, Echo()).learn([{"id": "a"}], [1])
    assert detector.learnt == [{"id": "a"}, 1]
