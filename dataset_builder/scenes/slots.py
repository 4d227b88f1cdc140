"""Sounds in slots: equally long and equally loud events, one after the other, from tones or a user's sounds.

Clips with the same number of events therefore differ only in which sounds they have and in which order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from types import MappingProxyType
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import counted, listed

from ..data import DataColumn, DatasetError, Row
from ..sounds.entries import Sounds, SoundsField, spoken
from ..sounds.tones import ToneSounds, ToneSpec, check_nouns, check_words
from .captioned import EVENT, EVENTS_MEANING
from .mixing import Clip, Event, check_whole_steps
from .pool import SoundPool, Use, evenly

EVENTS_COLUMN = DataColumn("events", [[EVENT]], f"for each clip: {EVENTS_MEANING}")
"""The column with the events of all clips of a row, see `SlotPool.heard`."""

SUITING = MappingProxyType({"event": 0.6})
"""Defaults of recipes for a user's sounds: a word of two or three syllables lasts longer than a stroke."""

MOST_LABELS = 8
"""Most labels of `SlotPool.some`: as many as there are tones."""


class SlotSpec(ToneSpec):
    """Settings that all clips of sounds in slots have in common.

    Tones are all timbres at all pitches, at the fastest rate; an event has one stroke.

    Raises:
        InputError: see `ToneSpec`; or an event is longer than the period of a tone.
    """

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of every random choice.")
    domain: str = Field("", description="Domain of the sounds in one word, for the rows.")
    sample_rate: int = Field(16_000, ge=8_000, le=192_000, description="Sample rate of every clip in Hz.")
    event: float = Field(0.36, ge=0.1, le=10, description="Seconds of a sound; a longer one is cut.")
    gap: float = Field(0.12, ge=0, le=10, description="Seconds of silence between two sounds.")
    sounds: SoundsField = Field(None, repr=False, description="Sounds to use instead of tones.")

    @model_validator(mode="after")
    def _check_slots(self) -> Self:
        check_whole_steps(self.sample_rate)
        if not self.is_of_tones:
            return self
        check_nouns(self)
        check_words(self)
        period = self.periods[-1] / self.sample_rate
        if self.event > period:
            raise InputError(
                f"event is {self.event:g}, but a tone at the fastest rate repeats after {period:.3f} s. Make "
                f"event at most {period:.2f}, or rate_range slower"
            )
        return self

    @property
    def tones(self) -> Sounds:
        """Return every timbre at every pitch, at the fastest rate and the highest level."""
        last = (self.num_classes - 1,)
        return ToneSounds(self, rates=last, amplitudes=last)

    @property
    def event_samples(self) -> int:
        """Return the number of samples of an event."""
        return round(self.event * self.sample_rate)

    @property
    def slot_samples(self) -> int:
        """Return the number of samples from one event to the next."""
        return self.event_samples + round(self.gap * self.sample_rate)

    def samples_of(self, slots: int) -> int:
        """Return the number of samples of a clip with `slots` slots, from the first event to the end of the last."""
        return (slots - 1) * self.slot_samples + self.event_samples


class SlotPool(SoundPool):
    """Sounds whose labels differ in words; see `SoundPool`."""

    def draw_names(
        self, count: int, use: Use, rng: np.random.Generator, without: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Draw `count` labels, least-drawn first; `use` counts them.

        No label has all words of another one or of an excluded one: ``dog barking`` has all words of ``dog``.

        Raises:
            DatasetError: there are too few.
        """
        taken, drawn = list(without), list[str]()
        for label in evenly(self.labels, use.labels, rng):
            if len(drawn) < count and not any(_is_within(label, other) for other in taken):
                taken.append(label)
                drawn.append(label)
        if len(drawn) < count:
            beside = f" in addition to {listed(list(without))}" if without else ""
            raise DatasetError(
                f"{self.source} has {counted(len(self.labels), 'label')}; {count}{beside} are needed; none may have "
                "all words of another"
            )
        use.labels.update(drawn)
        return tuple(drawn)

    def some(self, least: int, use: Use, rng: np.random.Generator) -> Self:
        """Return the sounds of at most `MOST_LABELS` labels, least-drawn first, if each label must be seen often.

        Raises:
            DatasetError: there are fewer than `least` labels.
        """
        for count in range(MOST_LABELS, least, -1):
            try:
                names = self.draw_names(count, use, rng)
                break
            except DatasetError:
                continue
        else:
            names = self.draw_names(least, use, rng)
        return self.of_labels(names)

    def of_labels(self, labels: Collection[str]) -> Self:
        """Return the sounds of some of its labels."""
        some = copy(self)
        some.by_label = {label: numbers for label, numbers in self.by_label.items() if label in labels}
        return some

    def said(self, number: int) -> str:
        """Return the label of a sound as it is spoken."""
        return spoken(self.entries[number].label)

    def heard(self, clip: Clip, sample_rate: int) -> list[Row]:
        """Return the events of a clip in the order of their onsets, as rows of `EVENT`."""
        return [
            {
                "label": self.said(event.entry),
                "attributes": list(self.entries[event.entry].words.values()),
                "dimensions": list(self.entries[event.entry].words),
                "start": event.start / sample_rate,
                "stop": event.stop / sample_rate,
                "entry": self.entries[event.entry].id,
            }
            for event in sorted(clip, key=lambda event: event.start)
        ]


def _is_within(label: str, other: str) -> bool:
    """Return whether one of two labels has all words of the other."""
    words, more = set(spoken(label).split()), set(spoken(other).split())
    return words <= more or more <= words


def in_slots(entries: Sequence[int], spec: SlotSpec, first: int = 0) -> tuple[Event, ...]:
    """Return one event after another, beginning with slot number `first`."""
    length, step = spec.event_samples, spec.slot_samples
    return tuple(Event(entry, step * slot, step * slot + length) for slot, entry in enumerate(entries, first))
