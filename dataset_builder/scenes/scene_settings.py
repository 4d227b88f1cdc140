"""Settings of scenes as a dataclass, for what is not yet a spec: goes with its last user."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar, cast, get_args

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..sounds.dx7.voice import Voice
from ..sounds.entries import Sounds
from ..sounds.tones import ATTRIBUTES, default_voices
from .sources import LONGEST_DURATION, Onset

_RANGES = ("pitch_range", "rate_range", "amplitude_range")


@dataclass(frozen=True, kw_only=True)
class SceneSettings:
    """Everything that decides how scenes sound. Defaults are the paper's (arXiv 2603.13685) where it gives a value.

    Attributes:
        seed: seed of every random choice, from 0 to 2^63 - 1.
        num_classes: K, classes of each attribute (paper, section 4.1: 8).
        max_sources: N, most sources of a scene (paper, section 4.1: 4).
        pitch_range: MIDI notes, cut into K linear bins; a class is the centre of its bin, to the nearest semitone.
        rate_range: repetitions a second, cut into K logarithmic bins; a class is the centre of its bin.
        amplitude_range: dB, cut into K linear bins; a class is the centre of its bin.
        sample_rate: Hz.
        duration: seconds of a clip.
        velocity: MIDI velocity of every tone, 1..127.
        onset: ``random``, each source starts at a random time within its period; ``locked``, all start at 0, the
            paper's literal text, which makes the waveform a function of the metadata.
        voices: K voices, the classes of timbre.

    Raises:
        InputError: a value out of its range, or K classes that are not distinct.
    """

    seed: int = 0
    num_classes: int = 8
    max_sources: int = 4
    pitch_range: tuple[float, float] = (36, 84)
    rate_range: tuple[float, float] = (0.2, 3.0)
    amplitude_range: tuple[float, float] = (-26, 0)
    sample_rate: int = 32_000
    duration: float = 10.0
    velocity: int = 100
    onset: Onset = "random"
    voices: tuple[Voice, ...] = field(default_factory=default_voices, repr=False)

    def __post_init__(self) -> None:
        for field_ in fields(self):
            if field_.type == "int":
                object.__setattr__(self, field_.name, operator.index(getattr(self, field_.name)))
        object.__setattr__(self, "duration", float(self.duration))
        self._check("num_classes (K)", self.num_classes, 2, 49)
        self._check("max_sources (N)", self.max_sources, 2, 16)
        self._check("seed", self.seed, 0, 2**63 - 1)
        self._check("sample_rate", self.sample_rate, 8_000, 192_000)
        self._check("velocity", self.velocity, 1, 127)
        self._check_choice("onset", Onset)
        self._check_ranges()
        self._check_duration()
        self._check_voices()
        for attribute, labels in self.labels.items():
            if len(set(labels)) != len(labels):
                raise InputError(
                    f"{self.num_classes} classes of {attribute} are not distinct: {', '.join(labels)}; "
                    "use fewer classes or a wider range"
                )

    @staticmethod
    def _check(name: str, value: float, low: float, high: float) -> None:
        if not low <= value <= high:
            raise InputError(f"{name} is {value}; it must be from {low} to {high:,}")

    def _check_choice(self, name: str, choices: Any) -> None:
        if getattr(self, name) not in get_args(choices):
            raise InputError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(get_args(choices))}")

    def _check_ranges(self) -> None:
        for name in _RANGES:
            low, high = getattr(self, name)
            if not low < high:
                raise InputError(f"{name} is ({low}, {high}); the first must be less than the second")
        if self.pitch_range[0] < 0 or self.pitch_range[1] > 127:
            raise InputError(f"pitch_range is {self.pitch_range}; MIDI notes run from 0 to 127")
        if self.rate_range[0] <= 0:
            raise InputError(f"rate_range is {self.rate_range}; a rate is positive")

    def _check_duration(self) -> None:
        if not self.duration <= LONGEST_DURATION:
            raise InputError(f"duration is {self.duration} s; a clip lasts {LONGEST_DURATION} s at most")
        if self.duration < 2 / min(self.rates):
            raise InputError(
                f"duration is {self.duration} s; the slowest class repeats every {1 / min(self.rates):.2f} s and needs "
                "a clip of twice that, so that a tone is heard whole from any onset"
            )

    def _check_voices(self) -> None:
        if len(self.voices) != self.num_classes:
            raise InputError(f"{len(self.voices)} voices for K = {self.num_classes} classes; give one voice a class")
        sounds = [dataclasses.replace(voice, name="") for voice in self.voices]
        for number, sound in enumerate(sounds):
            if sound in sounds[:number]:
                first = sounds.index(sound)
                raise InputError(
                    f"voices {first + 1} ({self.voices[first].name!r}) and {number + 1} "
                    f"({self.voices[number].name!r}) are the same sound; each class of timbre needs its own"
                )

    @property
    def num_samples(self) -> int:
        """Samples of a clip."""
        return round(self.duration * self.sample_rate)

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """MIDI note of each class of pitch."""
        return tuple(int(np.floor(centre + 0.5)) for centre in self._bin_centres(*self.pitch_range))

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Repetitions a second of each class of rate."""
        low, high = np.log(self.rate_range)
        return tuple(float(np.exp(centre)) for centre in self._bin_centres(low, high))

    @cached_property
    def periods(self) -> tuple[int, ...]:
        """Samples between two onsets of a source, for each class of rate."""
        return tuple(round(self.sample_rate / rate) for rate in self.rates)

    @cached_property
    def decibels(self) -> tuple[float, ...]:
        """Gain in dB of each class of amplitude."""
        return tuple(float(centre) for centre in self._bin_centres(*self.amplitude_range))

    @cached_property
    def gains(self) -> tuple[float, ...]:
        """Linear gain of each class of amplitude."""
        return tuple(float(10 ** (decibel / 20)) for decibel in self.decibels)

    @cached_property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """Label of each class of each attribute, as it stands in the metadata.

        A timbre is labelled by its voice's name; a name that is empty or occurs twice gets the class's number.
        """
        names = [voice.name for voice in self.voices]
        labels = (
            [
                name if name and names.count(name) == 1 else f"{name} #{number}".strip()
                for number, name in enumerate(names, 1)
            ],
            [f"MIDI {pitch}" for pitch in self.pitches],
            [f"{rate:.3f} Hz" for rate in self.rates],
            [f"{decibel:.3f} dB" for decibel in self.decibels],
        )
        return MappingProxyType(dict(zip(ATTRIBUTES, map(tuple, labels), strict=True)))

    def _bin_centres(self, low: float, high: float) -> list[float]:
        width = (high - low) / self.num_classes
        return [low + (i + 0.5) * width for i in range(self.num_classes)]

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; voices as the hexadecimal of their 155 bytes."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in _RANGES:
            values[name] = [float(value) for value in values[name]]
        values["voices"] = [voice.to_vced().hex() for voice in self.voices]
        return values


Settings = TypeVar("Settings")


def check_setting(name: str, value: float, low: float, high: float) -> None:
    """Refuse a setting of what is made of recordings that is out of its range.

    Raises:
        InputError: says the value and the range.
    """
    if not low <= value <= high:
        raise InputError(f"{name} is {value:,}; it must be from {low:,} to {high:,}")


def settings_of_recordings(
    settings: type[Settings], preset: Any, recordings: Sounds, requested: Mapping[str, Any], *, what: str
) -> Settings:
    """Settings of what is made of recordings, as large as a preset of what is made of tones.

    Args:
        settings: what they are, a dataclass with ``recordings`` and ``domain``.
        preset: settings of tones; what both have is taken from it, but for the sound.
        recordings: what clips are made of.
        requested: as `RecordedRecipe.of_recordings` has it.
        what: is made of them, in words and the plural.

    Raises:
        InputError: there is no such setting, or a value out of its range.
    """
    names = [field_.name for field_ in fields(cast(Any, settings)) if field_.name != "recordings"]
    for name in requested:
        if name not in names:
            raise InputError(f"{what} have no setting {name!r}; {nearest(name, names)}")
    sizes = {name: getattr(preset, name) for name in names if hasattr(preset, name)}
    domain = str(recordings.suggested.get("domain", ""))
    return settings(**{"domain": domain, **sizes, **requested, "recordings": recordings})


def describe_classes(settings: SceneSettings) -> str:
    """The classes of each attribute as a table."""
    labels = zip(*settings.labels.values(), strict=True)
    classes = "\n".join(f"| {number} | {' | '.join(row)} |" for number, row in enumerate(labels))
    return f"""\
A source is one of {settings.num_classes} classes of each attribute; a scene has 1 to {settings.max_sources} different
sources.

| class | {" | ".join(settings.labels)} |
|---|---|---|---|---|
{classes}"""
