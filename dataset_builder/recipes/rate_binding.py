"""Two simultaneous sources that exchange their rates at equal loudness: which source has which rate?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import combinations, permutations, product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec

from ..data import AUDIO, NUMBER, TEXT, WHOLE, DataColumn, Pcm16
from ..scenes.sources import FULL_SCALE, random_generator
from ..sounds.entries import Sounds
from ..sounds.tones import Voices, default_voices, steady_tone
from .base import Drawn, Recipe

_TONES, _PHASES = 78, 79
"""Random streams."""

LOW, HIGH = REGISTERS = ("low", "high")

_PEAK = 0.9


class RateBindingSpec(Spec):
    """Everything that determines the clips and their samples. Defaults are the settings of the preset ``mini``.

    Raises:
        InputError: a value is out of range.
    """

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of every random choice.")
    sample_rate: int = Field(32_000, ge=8_000, le=192_000, description="Hz.")
    duration: float = Field(5.0, ge=1, le=60, description="Seconds of a clip.")
    velocity: int = Field(100, ge=1, le=127, description="MIDI velocity of every note.")
    low_notes: tuple[int, ...] = Field((57, 63), description="MIDI notes of the lower source.")
    high_notes: tuple[int, ...] = Field((75, 81), description="MIDI notes of the higher source.")
    swells: tuple[int, ...] = Field((5, 10, 20, 40), description="Swells of a source per clip; whole numbers.")
    depth: float = Field(
        30.0, ge=1, le=60, description="Difference between the loudest and the softest moment of a swell, in dB."
    )
    voices: Voices = Field(
        default_factory=default_voices,
        repr=False,
        description="Voices, two per group; only voices of one group sound together.",
    )

    @model_validator(mode="after")
    def _check_numbers(self) -> Self:
        for name, least in (("low_notes", 1), ("high_notes", 1), ("swells", 2)):
            values = getattr(self, name)
            if len(values) < least or len(set(values)) < len(values) or min(values) < 1:
                raise InputError(f"{name} is {values}; give {least} or more different whole numbers, 1 or more each")
        if max(self.low_notes) >= min(self.high_notes):
            raise InputError(f"low_notes go up to {max(self.low_notes)}; all must be below {min(self.high_notes)}")
        if len(self.voices) < 2:
            raise InputError(f"{len(self.voices)} voices; two or more are needed")
        return self

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Return the indices of voices that sound together: in twos, with three in the last group if odd."""
        firsts = range(0, len(self.voices) - 1, 2)
        ends = [*firsts[1:], len(self.voices)]
        return tuple(tuple(range(first, end)) for first, end in zip(firsts, ends, strict=True))


def _clips(
    spec: RateBindingSpec,
    tones: Sequence[NDArray[np.float64]],
    swells: Sequence[int],
    phases: Sequence[float],
    place: int,
) -> Sequence[Pcm16]:
    """Return the first or the second clip of a pair, int16 [samples]; the two share one gain.

    Args:
        spec: settings of the clips.
        tones: one second of the lower source and of the higher one.
        swells: rates of the slower source and of the faster one.
        phases: phases of these swells, as shares of a swell in [0, 1).
        place: index of the clip.
    """
    samples = round(spec.duration * spec.sample_rate)
    shares = np.arange(samples) / samples
    slow, fast = (
        # A cosine in dB: the distribution of levels does not depend on the rate.
        10 ** (spec.depth / 40 * (np.cos(2 * np.pi * (count * shares + phase)) - 1))
        for count, phase in zip(swells, phases, strict=True)
    )
    low, high = (np.resize(tone, samples) for tone in tones)
    pair = (low * slow + high * fast, low * fast + high * slow)
    gain = _PEAK / max(float(np.abs(clip).max()) for clip in pair)
    return (np.rint(pair[place] * (gain * FULL_SCALE)).astype(np.int16),)


class RateBindings(Recipe[RateBindingSpec]):
    """Pairs of clips between which two sources exchange their rates."""

    name = "rate_binding"

    @cached_property
    def presets(self) -> Mapping[str, RateBindingSpec]:
        """Return the settings of each preset, by name; the paper has no such clips, so ``paper-`` presets are equal."""
        mini = RateBindingSpec()
        full = RateBindingSpec(low_notes=(55, 57, 60, 63), high_notes=(75, 78, 81, 84))
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def columns(self, spec: RateBindingSpec) -> Sequence[DataColumn]:
        """Return the columns; lists have the value of the lower source first, then the value of the higher one."""
        return (
            DataColumn("id", TEXT, "name of the row; names of a pair differ in the last word"),
            DataColumn("audio", AUDIO, "the clip"),
            DataColumn("faster", TEXT, "`low` or `high`", choices=REGISTERS),
            DataColumn("group", WHOLE, "number of the group of timbres"),
            DataColumn("timbres", [TEXT], "voices of the lower and the higher source", count=2),
            DataColumn("notes", [WHOLE], "their MIDI notes", per="timbres"),
            DataColumn("rates", [NUMBER], "their swells per second", per="timbres"),
            DataColumn("phases", [NUMBER], "phases of their swells at the onset, as shares", per="timbres"),
        )

    def draw(self, spec: RateBindingSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield pairs of clips: every two voices of a group in either register, at all notes, with every two rates.

        In the first clip of a pair, the higher source is faster.
        """
        tones = {
            (voice, note): steady_tone(
                spec.voices[voice],
                note,
                spec.velocity,
                spec.sample_rate,
                random_generator(spec.seed, _TONES, voice, note),
            )
            for voice, note in product(range(len(spec.voices)), (*spec.low_notes, *spec.high_notes))
        }
        pairs = (
            (group, voices, notes, swells)
            for group, members in enumerate(spec.groups)
            for voices in permutations(members, 2)
            for notes in product(spec.low_notes, spec.high_notes)
            for swells in combinations(sorted(spec.swells), 2)
        )
        for number, (group, voices, notes, swells) in enumerate(pairs):
            phases = random_generator(spec.seed, _PHASES, number).random(2).tolist()
            of_sources = [tones[key] for key in zip(voices, notes, strict=True)]
            for place, faster in enumerate((HIGH, LOW)):
                # From the slower source to the faster one: in the second clip, the higher source is slower.
                step = 1 if faster == HIGH else -1
                row = {
                    "id": f"{self.name}-{number:05d}-{faster}",
                    "faster": faster,
                    "group": group,
                    "timbres": [spec.voices[voice].name for voice in voices],
                    "notes": list(notes),
                    "rates": [count / spec.duration for count in swells[::step]],
                    "phases": phases[::step],
                }
                yield Drawn(row, partial(_clips, spec, of_sources, swells, phases, place))

    def card(self, spec: RateBindingSpec) -> Mapping[str, Any]:
        """Return the voices that sound together, and the rates."""
        groups = [" and ".join(spec.voices[voice].name for voice in group) for group in spec.groups]
        return {"groups": groups, "rates": [count / spec.duration for count in spec.swells]}


RECIPE = RateBindings()
