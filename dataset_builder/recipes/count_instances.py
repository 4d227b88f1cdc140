"""Ladders: clips with one to five repetitions of the same sound; one property that grows with the count is held
constant.

Four properties alone reveal the count: the energy of a clip, its span (seconds from the first onset to the last), the
density of onsets (one over the interval between two), and the activity (total time for which the sound is heard). Each
ladder holds one of them. Its value is drawn for each clip, independently of the count, from a narrow range: values that
are equal up to rounding would leave a trace that a model could amplify.

| held | drawn for each clip | grows with the count |
|---|---|---|
| energy | energy, by the gain of events; interval | span, activity |
| span | span | energy, density, activity |
| density | interval | energy, span, activity |
| activity | activity, by the length of events; energy; span | density |
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, TEXT, WHOLE, DataColumn, DatasetError
from ..scenes.mixing import Clip, Event, EventSounds
from ..scenes.pool import Use
from ..scenes.slots import EVENTS_COLUMN, SUITING, SlotPool, SlotSpec
from ..scenes.sources import LONGEST_DURATION
from ..sounds.entries import Sounds
from .base import Drawn, Recipe

HELD = ("energy", "span", "density", "activity")
"""What is held constant, in the order in which ladders alternate."""

NUMBERS = ("one", "two", "three", "four", "five")
"""Counts in words."""

MOST = len(NUMBERS)

_NEVER = 10**9
"""Draws of a sound during which no other sound of its label is repeated."""

SHORTEST = 0.1
"""Least seconds of a sound: a third of it still has a beginning and an end of 10 ms."""


class CountSpec(SlotSpec):
    """Everything that determines the ladders and their samples.

    Raises:
        InputError: see `SlotSpec`; or five events do not fit into a clip.
    """

    ladders: int = Field(600, ge=1, le=100_000, description="Number of ladders.")
    duration: float = Field(4.0, gt=0, le=LONGEST_DURATION, description="Seconds of a clip.")
    held_ratio: float = Field(
        1.25,
        gt=1,
        lt=(MOST - 1) / (MOST - 2),
        description="Ratio of the longest span, interval or activity to the shortest.",
    )
    held_db: float = Field(1.5, ge=0.1, le=6, description="Largest deviation of a held energy from its centre, in dB.")

    @model_validator(mode="after")
    def _check_room(self) -> Self:
        least = self.event + (MOST - 1) * self.held_ratio * (self.event + self.gap)
        if self.duration < least:
            raise InputError(
                f"duration is {self.duration:g}; {MOST} events of {self.event:g} s with gaps of {self.gap:g} s, drawn "
                f"with a held_ratio of {self.held_ratio:g}, need at least {math.ceil(100 * least) / 100:g}"
            )
        return self

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return round(self.duration * self.sample_rate)


def _clip(
    events: EventSounds, entry: int, once: int, count: int, held: str, spec: CountSpec, rng: np.random.Generator
) -> Clip:
    """Draw the events of a clip; the same number of random values is drawn for every count and held property."""
    share, activity, level, start = rng.uniform(1 / spec.held_ratio, 1), *rng.uniform(0, 1, 3)
    widest = spec.num_samples - once
    span = widest * share if held in ("span", "activity") else (count - 1) * widest * share / (MOST - 1)
    length, gain = once, 1.0
    if held == "activity":
        shortest = 1 / spec.held_ratio
        length = round(2 * once * (shortest + (1 - shortest) * activity) / count)
    if held in ("energy", "activity"):
        energy = 10 ** (spec.held_db * (2 * level - 1) / 10) * _energy(events, entry, once)
        gain = math.sqrt(energy / (count * _energy(events, entry, length)))
    onsets = start * (spec.num_samples - span - length) + np.linspace(0, span, count)
    return tuple(Event(entry, onset, onset + length, gain) for onset in onsets.astype(int).tolist())


def _energy(events: EventSounds, entry: int, length: int) -> float:
    """Return the energy of an event with a gain of 1."""
    return float(np.square(events.samples(Event(entry, 0, length)), dtype=np.float64).sum())


class CountInstances(Recipe[CountSpec]):
    """Clips in which the same sound is heard one to five times."""

    name = "count_instances"
    suiting = MappingProxyType({**SUITING, "duration": 5.0})

    @cached_property
    def presets(self) -> Mapping[str, CountSpec]:
        """Return the settings of each preset, by name."""
        return {"mini": CountSpec(ladders=120), "full": CountSpec()}

    def columns(self, spec: CountSpec) -> Sequence[DataColumn]:
        """Return the columns: the clips of a ladder by their counts, and what is held constant."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("audio", [AUDIO], "the clips, in the order of `counts`", per="counts"),
            DataColumn("counts", [WHOLE], "number of times that the sound is heard in each clip, ascending", least=2),
            DataColumn("captions", [TEXT], "one caption per clip", per="counts", filled=True),
            DataColumn(
                "held", TEXT, "the property that is held constant, and so does not depend on the count", choices=HELD
            ),
            DataColumn("label", TEXT, "label of the sound"),
            DataColumn("pair", TEXT, "name of the sound; rows with the same sound are not independent"),
            DataColumn("domain", TEXT, "domain of the sounds"),
            EVENTS_COLUMN,
        )

    def draw(self, spec: CountSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the ladders with their clips; labels and sounds are used as evenly as possible for each of `HELD`.

        A single event has neither density nor span, so counts are 1 to 5 if energy is held, and 2 to 5 otherwise.

        Raises:
            DatasetError: a sound is silent, or all sounds of a label are shorter than `SHORTEST`; single short ones are
                skipped.
        """
        pool, events = SlotPool(sounds), EventSounds(sounds, spec.sample_rate)
        uses = {held: Use() for held in HELD}
        too_short: set[int] = set()
        for number in range(spec.ladders):
            rng, held = self.random(spec, number), HELD[number % len(HELD)]
            labels = pool.draw_names(1, uses[held], rng)
            while True:
                (entry,) = pool.draw_recordings(labels, uses[held], rng)
                # An event is no longer than the sound itself, or one period of a loop.
                once = min(spec.event_samples, events.period(entry), events.length(entry) or spec.event_samples)
                if once >= SHORTEST * spec.sample_rate:
                    break
                waveform, rate = sounds.waveform(entry)
                why = (
                    f"{pool.source}: the sound in {pool.entries[entry].id!r} is {once / spec.sample_rate:.2f} s long "
                    f"(recording: {len(waveform) / rate:.2f} s; trimmed at {events.silence:g} dB); a sound to be "
                    f"counted must last {SHORTEST:g} s or more"
                )
                if entry in too_short:
                    raise DatasetError(f"{why}; its label has no other sound; leave it out")
                warnings.warn(f"{why}; it is left out of {self.name}", stacklevel=2)
                too_short.add(entry)
                for use in uses.values():
                    use.recordings[entry] = _NEVER
            counts = range(1 if held == "energy" else 2, MOST + 1)
            clips = [_clip(events, entry, once, count, held, spec, rng) for count in counts]
            said = pool.said(entry)
            row = {
                "id": f"{self.name}-{number:05d}",
                "counts": list(counts),
                "captions": [f"{said} heard {NUMBERS[n - 1]} {'time' if n == 1 else 'times'}" for n in counts],
                "held": held,
                "label": said,
                "pair": pool.entries[entry].id,
                "domain": spec.domain_name,
                "events": [pool.heard(clip, spec.sample_rate) for clip in clips],
            }
            yield Drawn(row, clips)


RECIPE = CountInstances()
