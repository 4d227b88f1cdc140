"""The text cascade: a language model that is told what a detector has heard, in place of the sound.

    detector hears -> events as text -> language model answers

Anything that detects events (`EventDetector`) goes with anything that answers texts (`TextModel`), such as a model
behind a server, and with any model that hears and answers: that one is given silence beside the text. What the cascade
cannot answer is lost in between, or not understood by the one that reads.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import plain

from ..base import GivenClip, ModelError
from ..protocols import (
    AudioLanguageModel,
    Learner,
    LengthLimited,
    LimitedScorer,
    ModelCard,
    OnAnswer,
    OptionScorer,
    QuestionCounter,
    Teller,
    Window,
    Windowed,
    Writer,
)

Event = Mapping[str, Any]
"""``onset`` and ``offset``, seconds from the start of the clip, and ``label``, a text; as in the column ``events``."""

TEXT_VERSION = 1
"""Counted up when the text of the same events becomes another."""

PREFIX = "heard-as-text"
"""What the names of cascades begin with, up to the colon: ``heard-as-text:DETECTOR:MODEL``."""

_HEAD = "These sounds were detected in a recording, with the seconds in which they are heard:"
_NONE = "No sounds were detected in a recording."


@runtime_checkable
class EventDetector(Protocol):
    """Anything that says what is heard in clips, and when."""

    def detect_events(self, clips: Sequence[Any]) -> list[list[Event]]:
        """The events of each clip, in any order.

        Args:
            clips: as those of `AudioLanguageModel.answer`.
        """
        ...


@runtime_checkable
class TextModel(Protocol):
    """A language model: it answers prompts without sound.

    Attributes:
        card: what it is.
        device: where it runs.
    """

    @property
    def card(self) -> ModelCard: ...  # noqa: D102

    @property
    def device(self) -> str: ...  # noqa: D102

    def answer_texts(self, prompts: Sequence[str]) -> list[str]:
        """Answer prompts: a text each, in order."""
        ...


@runtime_checkable
class TextScorer(TextModel, Protocol):
    """A language model that also tells how likely it is to answer with each of some options."""

    def score_texts(
        self, prompts: Sequence[str], options: Sequence[Sequence[str]], by: Literal["letters", "options"]
    ) -> list[list[float]]:
        """As `OptionScorer.score_options`, without clips."""
        ...


class EventTextModel:
    """A language model that answers questions about clips from a detector's events; an `AudioLanguageModel`.

    Attributes:
        card: its id is ``heard-as-text:DETECTOR:MODEL``, its revision that of both and of the text.
        device: that of the language model.
    """

    card: ModelCard
    device: str

    def __init__(
        self, detector: EventDetector, model: TextModel | AudioLanguageModel, *, detector_card: ModelCard
    ) -> None:
        """Put the two together.

        Args:
            detector: of events.
            model: a language model; one that answers texts is given no sound, any other silence as long as the clip.
            detector_card: says what the detector is; answers are stored under it.
        """
        self._detector = detector
        self._model = model
        self.device = model.device
        self.card = _card(detector_card, model.card)
        self._detector_card = detector_card

    @property
    def scorings(self) -> tuple[str, ...]:
        """See `LimitedScorer`: those of the language model."""
        if isinstance(self._model, LimitedScorer):
            return self._model.scorings
        return ("letters", "options") if isinstance(self._model, (TextScorer, OptionScorer)) else ()

    @property
    def limit_seconds(self) -> float | None:
        """See `LengthLimited`: of a language model that is given silence."""
        is_limited = isinstance(self._model, LengthLimited) and not isinstance(self._model, TextModel)
        return cast(LengthLimited, self._model).limit_seconds if is_limited else None

    @property
    def new_tokens(self) -> int:
        """See `Writer`: those of the language model; of one that knows of no such number more than any task needs."""
        return self._model.new_tokens if isinstance(self._model, Writer) else sys.maxsize

    def with_new_tokens(self, count: int) -> EventTextModel:
        """See `Writer`.

        Raises:
            ModelError: the language model knows of no such number.
        """
        if not isinstance(self._model, Writer):
            raise ModelError(f"'{self._model.card.id}' knows of no number of tokens")
        model = copy.copy(self)
        model._model = self._model.with_new_tokens(count)
        model.card = _card(self._detector_card, model._model.card)
        return model

    def check_questions(self, count: int) -> None:
        """See `QuestionCounter`: the language model refuses."""
        if isinstance(self._model, QuestionCounter):
            self._model.check_questions(count)

    @property
    def on_answers(self) -> OnAnswer | None:
        """See `Teller`: the language model tells; None of one that does not."""
        return self._model.on_answers if isinstance(self._model, Teller) else None

    @on_answers.setter
    def on_answers(self, listener: OnAnswer | None) -> None:
        if isinstance(self._model, Teller):
            self._model.on_answers = listener

    def window(self, most: int) -> AbstractContextManager[Window | None]:
        """See `Windowed`: that of the language model; none of one that has none."""
        return self._model.window(most) if isinstance(self._model, Windowed) else nullcontext()

    def answer(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        """Answer one prompt about each clip; see `AudioLanguageModel.answer`.

        Raises:
            InputError: there are not as many prompts as clips.
            ModelError: the detector gives no events that can be told, or what the language model raises.
        """
        told = self._told(clips, prompts)
        if isinstance(self._model, TextModel):
            return self._model.answer_texts(told)
        return self._model.answer(_silence(clips), told)

    def score_options(
        self,
        clips: Sequence[Any],
        prompts: Sequence[str],
        options: Sequence[Sequence[str]],
        by: Literal["letters", "options"],
    ) -> list[list[float]]:
        """The log-likelihood of each option; see `OptionScorer`.

        Raises:
            ModelError: the language model cannot tell.
        """
        if isinstance(self._model, TextScorer):
            return self._model.score_texts(self._told(clips, prompts), options, by)
        if isinstance(self._model, OptionScorer):
            return self._model.score_options(_silence(clips), self._told(clips, prompts), options, by)
        raise ModelError(f"'{self._model.card.id}' tells no likelihoods of options; it can only answer")

    def _told(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        if len(clips) != len(prompts):
            raise InputError(f"there are {len(prompts)} prompts about {len(clips)} clips; there must be as many")
        # Several questions are asked about one clip; it is listened to once.
        different = list({id(clip): clip for clip in clips}.values())
        events = self._detector.detect_events(different)
        if len(events) != len(different):
            raise ModelError(
                f"the detector of '{self.card.id}' gave events of {len(events)} clips for {len(different)}; it must "
                "give a list for each"
            )
        events_of = {id(clip): listed for clip, listed in zip(different, events, strict=True)}
        return [prompt_with_events(events_of[id(clip)], prompt) for clip, prompt in zip(clips, prompts, strict=True)]


class LearningEventTextModel(EventTextModel):
    """One whose detector learns from the split ``train`` before; a `Learner`."""

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """As the detector's; see `Learner.learn`."""
        cast(Learner, self._detector).learn(rows, clips)


def event_text_model(
    detector: EventDetector, model: TextModel | AudioLanguageModel, detector_card: ModelCard
) -> EventTextModel:
    """A cascade, which learns where its detector does; arguments as `EventTextModel` has them."""
    kind = LearningEventTextModel if isinstance(detector, Learner) else EventTextModel
    return kind(detector, model, detector_card=detector_card)


def _card(detector: ModelCard, model: ModelCard) -> ModelCard:
    """The card of a cascade, of those of its parts."""
    return ModelCard(
        id=f"{PREFIX}:{detector.id}:{model.id}",
        revision=f"{detector.revision}+{model.revision}+text-{TEXT_VERSION}",
        sample_rate=detector.sample_rate,
        output_dim=None,
        paradigm="text cascade (a detector's events, read by a language model)",
        trained_on=detector.trained_on,
        front_end_version=detector.front_end_version,
    )


def _silence(clips: Sequence[Any]) -> list[GivenClip]:
    """Silence as long as each clip; that of one length is one array."""
    silence = {length: np.zeros(length, np.float32) for length in {len(clip.waveform) for clip in clips}}
    return [GivenClip(silence[len(clip.waveform)], clip.sample_rate) for clip in clips]


def prompt_with_events(events: Sequence[Event], prompt: str) -> str:
    """A prompt that is preceded by events, a line each, in the order of their onsets: ``0.00-2.35 s: bell``.

    Args:
        events: what a detector has heard, or what is known to be there; see `Event`.
        prompt: the question.

    Raises:
        ModelError: an event has no label, or no onset and offset in order.
    """
    lines = [_line(event) for event in sorted(events, key=_place)]
    return "\n".join([_HEAD, *lines] if lines else [_NONE]) + f"\n\n{prompt}"


def _place(event: Event) -> tuple[float, float, str]:
    try:
        onset, offset, label = float(event["onset"]), float(event["offset"]), event["label"]
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{event!r} is no event: it must have onset, offset (seconds) and label") from None
    if not (isinstance(label, str) and label.strip() and math.isfinite(offset) and 0 <= onset <= offset):
        raise ModelError(f"{event!r} is no event: 0 <= onset <= offset must hold, and label must be a text")
    return onset, offset, label


def _line(event: Event) -> str:
    onset, offset, label = _place(event)
    return f"{onset:.2f}-{offset:.2f} s: {plain(label.strip())}"
