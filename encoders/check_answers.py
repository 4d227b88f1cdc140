"""The checks of `answer`, for models that answer questions about clips; `check` says what a failure of each means.

The questions are multiple-choice, in the words and with the columns that the data have, about clips of different
lengths in which a low and a high tone overlap or do not. A model that learns is given such questions first; one that is
told labels is told those of the tones.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import GivenClip, ModelError
from .check_findings import Finding
from .check_sounds import make_tones
from .protocols import AudioLanguageModel, LabelReader, Learner

TRAINED = 16
"""Questions that a model learns from that learns."""

_LAST_LINE = "Answer with one letter only."
_LETTER = re.compile(r"[A-Z]")


@dataclass
class AnswerSession:
    """A model under check.

    Attributes:
        model: that answers.
        memory: says how far memory has grown.
    """

    model: AudioLanguageModel
    memory: Callable[[], str]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Questions of each kind, about clips of different lengths."""
        return [question_row(number, "test") for number in range(4)]

    @cached_property
    def is_taught(self) -> bool:
        """Whether it learns; it has then."""
        if isinstance(self.model, Learner):
            rows = [question_row(number, "train") for number in range(TRAINED)]
            self.model.learn(rows, (self.clip(row) for row in rows))
        return isinstance(self.model, Learner)

    @cached_property
    def clips(self) -> list[GivenClip]:
        """The clip of each question."""
        return [self.clip(row) for row in self.rows]

    def clip(self, row: dict[str, Any]) -> GivenClip:
        """The clip of a row, at the model's own rate."""
        return GivenClip(row_sound(row, self.model.card.sample_rate), self.model.card.sample_rate)

    def ask(self, places: Sequence[int], clips: Sequence[GivenClip] | None = None) -> list[str]:
        """The answers to some of the questions, together, about their own clips or others."""
        rows = [self.rows[place] for place in places]
        prompts = [prompt_of(row) for row in rows]
        given: Any
        if isinstance(self.model, LabelReader):
            given = self.model.answer_from_labels(rows, prompts)
        else:
            given = self.model.answer([self.clips[place] for place in places] if clips is None else clips, prompts)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ModelError(f"a {type(given).__name__} came back, but must be a list of texts")
        if len(given) != len(places):
            raise ModelError(f"{len(given)} answers to {len(places)} prompts, but must be one to each")
        if not all(isinstance(answer, str) for answer in given):
            wrong = next(type(answer).__name__ for answer in given if not isinstance(answer, str))
            raise ModelError(f"a {wrong} is among the answers, but each must be a text (str)")
        return list(given)


def prompt_of(row: dict[str, Any]) -> str:
    """The prompt of a row: the question, a line for each option with its letter, and that a letter is wanted."""
    lettered = [f"{chr(ord('A') + place)}. {option}" for place, option in enumerate(row["options"])]
    return "\n".join([row["question"], *lettered, _LAST_LINE])


def question_row(number: int, split: str) -> dict[str, Any]:
    """A question about two tones, with all columns that questions have; the numbers from 0 on take turns."""
    place = number % 4 if split == "test" else number // 4 % 4
    # What overlaps is asked where something does.
    together, longer = number % 2 == 0 or place == 3, number % 4 < 2
    seconds, end = 3.0 + number % 3, 1.9 if longer else 1.2
    start = end - 0.7 if together else end + 0.25
    low, high = {"onset": 0.2, "offset": end}, {"onset": start, "offset": start + (0.8 if longer else 1.5)}
    asked: tuple[tuple[str, str, str, str, str, tuple[str, ...], str], ...] = (
        ("counting", "kinds", "", "", "How many different kinds of sound can be heard?", ("1", "2"), "2"),
        (
            *("duration", "total", "", "", "Which of these is heard longest in total?"),
            ("low tone", "high tone"),
            "low tone" if longer else "high tone",
        ),
        (
            *("concurrency", "anchor", "low tone", "alone", "Is the low tone always heard alone?"),
            ("Yes", "No"),
            "No" if together else "Yes",
        ),
        (
            *("classification", "overlap", "low tone", "", "Which of these overlaps in time with the low tone?"),
            ("high tone", "dog"),
            "high tone",
        ),
    )
    task, variant, anchor, polarity, question, options, answer = asked[place]
    # Right answers stand at both places.
    options = options[::-1] if number // 2 % 2 else options
    return {
        **{"id": f"{split}-{number}", "split": split, "question": question, "options": list(options), "answer": answer},
        **{"task": task, "variant": variant, "anchor": anchor, "polarity": polarity, "template": "", "unit": ""},
        **{"group": f"{split}-{number}", "recording": f"{split}-{number}", "source": "check", "start": 0.0},
        **{"duration": seconds, "resolution": 0.0, "polyphony": 1 + together, "overlap": 0.7 * together},
        **{"gap": None, "level_difference": None},
        "events": [{**low, "label": "low tone"}, {**high, "label": "high tone"}],
    }


def row_sound(row: dict[str, Any], rate: int) -> NDArray[np.float32]:
    """The sound of a row at a rate in Hz, float32 [samples]."""
    sound = np.zeros(round(row["duration"] * rate), np.float32)
    for event, tone in zip(row["events"], (0, 3), strict=True):
        start, stop = round(event["onset"] * rate), round(event["offset"] * rate)
        sound[start:stop] += make_tones(rate, (stop - start) / rate)[tone][: stop - start]
    return sound


def check_answers(session: AnswerSession) -> Finding:
    """There is a text for each prompt, about clips of different lengths."""
    taught = f", after {TRAINED} to learn from" if session.is_taught else ""
    answers = session.ask(range(len(session.rows)))
    return "pass", f"{len(answers)} questions about clips of 3 to 5 s{taught}"


def check_letters(session: AnswerSession) -> Finding:
    """Say how answers look."""
    answers = session.ask(range(len(session.rows)))
    letters = sum(_LETTER.fullmatch(answer.strip()) is not None for answer in answers)
    return "pass" if letters == len(answers) else "warn", f"{letters} of {len(answers)} are one letter: {answers}"


def check_answers_deterministic(session: AnswerSession) -> Finding:
    """The same questions give the same answers again."""
    first, again = (session.ask(range(len(session.rows))) for _ in range(2))
    return "pass" if first == again else "fail", _differing(first, again)


def check_answers_batch(session: AnswerSession) -> Finding:
    """An answer does not depend on the questions beside it, and answer i is to prompt i."""
    places = range(len(session.rows))
    together, alone = session.ask(places), [session.ask([place])[0] for place in places]
    backwards = session.ask(places[::-1])[::-1]
    if together != alone:
        return "fail", f"in a batch and alone: {_differing(together, alone)}"
    return (
        "pass" if backwards == alone else "fail",
        f"in a batch, turned round, and alone: {_differing(backwards, alone)}",
    )


def check_answers_hear(session: AnswerSession) -> Finding:
    """Say whether answers change when there is nothing to hear."""
    if isinstance(session.model, LabelReader):
        return "info", "it is told labels and hears nothing"
    places = range(len(session.rows))
    silence = [GivenClip(np.zeros_like(clip.waveform), clip.sample_rate) for clip in session.clips]
    differing = sum(a != b for a, b in zip(session.ask(places), session.ask(places, silence), strict=True))
    return "info", f"{differing} of {len(places)} answers are other about silence"


def check_answers_speed(session: AnswerSession) -> Finding:
    """Measure answers a second."""
    start = time.perf_counter()
    session.ask(range(len(session.rows)))
    speed = len(session.rows) / max(time.perf_counter() - start, 1e-9)
    return "info", f"{speed:.3g} answers/s in batches of {len(session.rows)} (on {session.model.device})"


def check_answers_memory(session: AnswerSession) -> Finding:
    """Say how far memory has grown."""
    return "info", session.memory()


def _differing(one: Sequence[str], other: Sequence[str]) -> str:
    count = sum(a != b for a, b in zip(one, other, strict=True))
    return f"{count} of {len(one)} answers differ"
