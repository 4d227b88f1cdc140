"""Models that are told as text what is heard, and hear silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from audio_compositionality.encoders.base import GivenClip, Model, ModelCard, ModelError
from audio_compositionality.encoders.controls import CONTROLS, TEXT_VERSION, Controlled, prompt_with_events
from audio_compositionality.encoders.loading.registry import load_model

KIND = CONTROLS["events-as-text"]
EVENTS = [{"onset": 0.5, "offset": 2.0, "label": "bell"}, {"onset": 0.0, "offset": 1.0, "label": "reed"}]
ROWS = [{"id": "a", "duration": 2.0, "events": EVENTS}, {"id": "b", "duration": 1.0, "events": []}]
PROMPTS = ["How many?", "Which?"]


class Listener(Model):
    """Keeps what it is given, and answers with the prompt."""

    device, card = "cpu", ModelCard("listener", "v1", 8_000, None)

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def answer(self, clips: Any, prompts: Any) -> list[str]:
        self.heard += [clip for some in clips for clip in some]
        return list(prompts)


class Scorer(Listener):
    def score_options(self, clips: Any, prompts: Any, options: Any, by: str) -> list[list[float]]:
        self.heard += [clip for some in clips for clip in some]
        return [[-float(len(prompt)), float(by == "letters") - 1] for prompt in prompts]


class Reader(Scorer):
    """Answers prompts without a clip as well."""

    @property
    def abilities(self) -> frozenset[str]:
        return super().abilities | {"read"}

    def answer(self, clips: Any, prompts: Any) -> list[str]:
        super().answer(clips, prompts)
        return [f"read {prompt}" for prompt in prompts]


class Pupil(Listener):
    def learn(self, rows: Any, clips: Any) -> None: ...


class Encoder(Model):
    device, card = "cpu", ModelCard("encoder", "v1", 8_000, 2)

    def embed(self, waveforms: Any, sample_rate: int) -> Any: ...


CLIPS = [[GivenClip(np.zeros(0, np.float32), 8_000, row)] for row in ROWS]


def told(model: Any) -> Controlled:
    return Controlled(model, KIND)


def test_a_model_hears_silence_as_long_as_the_clip_and_reads_the_events() -> None:
    listener = Listener()
    model = told(listener)
    assert "labels" in model.abilities
    assert "answer" in model.abilities
    assert not model.abilities & {"learn", "score"}
    answers = model.answer(CLIPS, PROMPTS)
    assert answers == [prompt_with_events(row["events"], prompt) for row, prompt in zip(ROWS, PROMPTS, strict=True)]
    assert answers[0].index("0.00-1.00 s: reed") < answers[0].index("0.50-2.00 s: bell") < answers[0].index("How many?")
    assert [(len(clip.waveform), clip.sample_rate) for clip in listener.heard] == [(16_000, 8_000), (8_000, 8_000)]
    assert all(clip.waveform.dtype == np.float32 and not clip.waveform.any() for clip in listener.heard)


def test_it_says_what_it_is_and_hears_nothing() -> None:
    model = told(Listener())
    assert (model.card.id, model.card.revision) == ("events-as-text:listener", f"v1+text-{TEXT_VERSION}")
    assert model.card.paradigm.startswith("control (")
    with pytest.raises(ModelError, match="'events-as-text:listener' hears nothing"):
        model.answer([[GivenClip(np.zeros(8, np.float32), 8_000)]], ["?"])


def test_a_model_of_texts_is_given_text_alone() -> None:
    reader = Reader()
    assert told(reader).answer(CLIPS, PROMPTS)[1] == f"read {prompt_with_events([], 'Which?')}"
    assert told(reader).score_options(CLIPS, PROMPTS, [["x", "y"]] * 2, "letters")[1] == [
        -float(len(prompt_with_events([], "Which?"))),
        0.0,
    ]
    assert not reader.heard


def test_options_are_scored_where_the_model_can() -> None:
    scorer = Scorer()
    scores = told(scorer).score_options(CLIPS, PROMPTS, [["x", "y"]] * 2, "options")
    assert scores[0] == [-float(len(prompt_with_events(EVENTS, "How many?"))), -1.0]
    assert [len(clip.waveform) for clip in scorer.heard] == [16_000, 8_000]
    assert "score" not in told(Listener()).abilities
    with pytest.raises(ModelError, match="'events-as-text:listener' cannot score given answers; it can answer"):
        told(Listener()).score_options(CLIPS, PROMPTS, [["x", "y"]] * 2, "options")


def test_other_controls_score_options_too() -> None:
    scorer = Scorer()
    model: Any = Controlled(scorer, CONTROLS["without-audio"])
    assert "score" in model.abilities
    clip = type("Clip", (), {"waveform": np.ones(4, np.float32), "sample_rate": 8_000})()
    assert model.score_options([[clip]], ["ab"], [["x", "y"]], "letters") == [[-2.0, 0.0]]
    assert not scorer.heard[0].waveform.any()
    assert "score" not in Controlled(Listener(), CONTROLS["without-audio"]).abilities


@pytest.mark.parametrize("column", ["events", "duration"])
def test_rows_that_do_not_tell(column: str) -> None:
    row = {name: value for name, value in ROWS[0].items() if name != column}
    with pytest.raises(ModelError, match=f"row 'a' has no {column}; to be told as text"):
        told(Listener()).answer([[GivenClip(np.zeros(0, np.float32), 8_000, row)]], ["How many?"])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Encoder(), "answers no questions"),
        (Pupil(), "has learnt from questions without such a list"),
        (Controlled(Listener(), CONTROLS["noise-audio"]), "is a control of what is heard"),
        (Controlled(Listener(), KIND), "is told labels and hears nothing"),
    ],
)
def test_models_that_cannot_be_told(model: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        told(model)


def test_by_name() -> None:
    assert load_model("events-as-text:first").card.id == "events-as-text:first"
    with pytest.raises(ModelError, match="'oracle' is told labels"):
        load_model("events-as-text:oracle")
