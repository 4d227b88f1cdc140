"""The text cascade: a language model that is told what a detector has heard, in place of the sound.

    detector hears -> events as text -> language model answers

Any model that detects events goes with any that answers: one that reads prompts without a clip, such as a model behind
a server, is given the text alone, any other silence beside the text. What the cascade
cannot answer is lost in between, or not understood by the one that reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import plain

from ..base import By, Event, GivenClip, Model, ModelCard, ModelError, Wrapper

TEXT_VERSION = 1
"""Counted up when the text of the same events becomes another."""

PREFIX = "heard-as-text"
"""What the names of cascades begin with, up to the colon: ``heard-as-text:DETECTOR:MODEL``."""

_HEAD = "These sounds were detected in a recording, with the seconds in which they are heard:"
_NONE = "No sounds were detected in a recording."


class EventTextModel(Wrapper):
    """A language model that answers questions about clips from a detector's events.

    Attributes:
        card: its id is ``heard-as-text:DETECTOR:MODEL``, its revision that of both and of the text.
        device: that of the language model.
        model: the language model.
        detector: of events.
    """

    def __init__(self, detector: Model, model: Model) -> None:
        """Put the two together.

        Args:
            detector: of events; where it learns, the whole does.
            model: a language model; one that reads prompts without a clip is given no sound, any other silence as long
                as the clip.
        """
        self.detector = detector
        super().__init__(model)

    def make_card(self) -> ModelCard:
        """The card of a cascade, of those of its parts."""
        detector, model = self.detector.card, self.model.card
        return ModelCard(
            id=f"{PREFIX}:{detector.id}:{model.id}",
            revision=f"{detector.revision}+{model.revision}+text-{TEXT_VERSION}",
            sample_rate=detector.sample_rate,
            output_dim=None,
            paradigm="text cascade (a detector's events, read by a language model)",
            trained_on=detector.trained_on,
            front_end_version=detector.front_end_version,
        )

    @property
    def abilities(self) -> frozenset[str]:
        """It answers, scores where the language model does, and learns where the detector does."""
        return self.model.abilities & {"answer", "score"} | self.detector.abilities & {"learn"}

    @property
    def limit_seconds(self) -> float | None:  # type: ignore[override]
        """That of a language model that is given silence."""
        return None if "read" in self.model.abilities else self.model.limit_seconds

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Answer one prompt about each clip; see `Model.answer`.

        Raises:
            InputError: there are not as many prompts as clips.
            ModelError: the detector gives no events that can be told, or what the language model raises.
        """
        return self.model.answer(*self._told(clips, prompts))

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """The log-likelihood of each option; see `Model.score_options`.

        Raises:
            ModelError: the language model cannot tell.
        """
        if "score" not in self.abilities:
            raise ModelError(f"'{self.model.card.id}' tells no likelihoods of options; it can only answer")
        return self.model.score_options(*self._told(clips, prompts), options, by)

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """As the detector's."""
        self.detector.learn(rows, clips)

    def _told(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> tuple[list[list[Any]], list[str]]:
        """What the language model is given: silence as long as each clip, or nothing, and the prompts with events."""
        if len(clips) != len(prompts):
            raise InputError(f"there are {len(prompts)} prompts about {len(clips)} clips; there must be as many")
        single = self.single_clips(clips)
        # Several questions are asked about one clip; it is listened to once.
        different = list({id(clip): clip for clip in single}.values())
        events = self.detector.detect_events(different)
        if len(events) != len(different):
            raise ModelError(
                f"the detector of '{self.card.id}' gave events of {len(events)} clips for {len(different)}; it must "
                "give a list for each"
            )
        events_of = {id(clip): listed for clip, listed in zip(different, events, strict=True)}
        told = [prompt_with_events(events_of[id(clip)], prompt) for clip, prompt in zip(single, prompts, strict=True)]
        if "read" in self.model.abilities:
            return [[] for _ in single], told
        return silence_of([(len(clip.waveform), clip.sample_rate) for clip in single]), told


def silence_of(clips: Sequence[tuple[int, int]]) -> list[list[Any]]:
    """Silence for each prompt, as a list of one clip, of so many samples at a rate in Hz; that of one length is one
    array."""
    silence = {length: np.zeros(length, np.float32) for length in {length for length, _ in clips}}
    return [[GivenClip(silence[length], rate)] for length, rate in clips]


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
