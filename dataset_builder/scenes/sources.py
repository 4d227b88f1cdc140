"""Sources of scenes (arXiv 2603.13685, section 3.1), their tones, stars of scenes, and their columns in rows.

A source has one class of each attribute. For computing with many candidates it has a *code*, the mixed-radix number
``((timbre * K + pitch) * K + rate) * K + amplitude``; a set of sources is a row of codes in increasing order, padded
with ``EMPTY`` at its end. The clips of a star differ from its base in one factor of one source.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal, Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import NUMBER, TEXT, WHOLE, DataColumn, Pcm16, Waveform
from ..sounds.tones import ATTRIBUTES, ToneSpec

VALUED = ("pitch", "rate", "amplitude")
"""Attributes with numbers as classes."""

EMPTY = -1

Codes = NDArray[np.int32]


@dataclass(frozen=True, order=True)
class Source:
    """One sound source: its class of each attribute, integers in 0..K-1."""

    timbre: int
    pitch: int
    rate: int
    amplitude: int

    def __post_init__(self) -> None:
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            if value < 0:
                raise InputError(f"{attribute.name} is {value}; it must be an integer from 0 to K-1")

    @classmethod
    def from_code(cls, code: int, num_classes: int) -> Source:
        """Return the source whose code is ``code`` if each attribute has ``num_classes`` classes."""
        if not 0 <= code < num_classes ** len(ATTRIBUTES):
            raise InputError(f"code is {code}; with K = {num_classes} codes run from 0 to K^4-1")
        digits = []
        for _ in ATTRIBUTES:
            code, digit = divmod(code, num_classes)
            digits.append(digit)
        return cls(*digits[::-1])

    def code(self, num_classes: int) -> int:
        """Return the source's code if each attribute has ``num_classes`` classes."""
        code = 0
        # `astuple` would take longer than the rest; drawing items computes the codes of many sources.
        for digit in (self.timbre, self.pitch, self.rate, self.amplitude):
            if digit >= num_classes:
                raise InputError(f"{self} has a class of {num_classes} or more; classes run from 0 to K-1")
            code = code * num_classes + digit
        return code


LONGEST_DURATION = 60
"""Seconds."""

Onset = Literal["random", "locked"]


class SceneSpec(ToneSpec):
    """Everything that determines how scenes sound. Defaults are the paper's (arXiv 2603.13685) if it gives a value.

    Raises:
        InputError: a value is out of range, or K classes are not distinct.
    """

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of every random choice.")
    max_sources: int = Field(4, ge=2, le=16, description="N, most sources of a scene.")
    duration: float = Field(10.0, gt=0, le=LONGEST_DURATION, description="Seconds of a clip.")
    onset: Onset = Field(
        "random",
        description=(
            "`random`: each source starts at a random time within its period; `locked`: all start at 0, as the paper "
            "literally says, which makes the waveform a function of the metadata."
        ),
    )

    @model_validator(mode="after")
    def _check_duration(self) -> Self:
        if self.is_of_tones and self.duration < 2 / min(self.rates):
            raise InputError(
                f"duration is {self.duration} s; the slowest class repeats every {1 / min(self.rates):.2f} s and needs "
                "a clip of twice that, so that a tone is heard whole from any onset"
            )
        return self

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return round(self.duration * self.sample_rate)

    @cached_property
    def gains(self) -> tuple[float, ...]:
        """Return the linear gain of each amplitude class."""
        return tuple(float(10 ** (decibel / 20)) for decibel in self.decibels)


LABELS = tuple(f"{attribute}_label" for attribute in ATTRIBUTES)

SOURCES = [dict.fromkeys(LABELS, TEXT)]
"""Kind of a column with the labels of a set of sources."""

SOURCE_LABELS = ", ".join(f"`{label}`" for label in LABELS)
"""The labels of each source in a `SOURCES` column, for cards."""

METADATA = DataColumn("metadata", SOURCES, f"the sources, each with {SOURCE_LABELS}", least=1)
"""The column of a scene."""

ENTROPY = dict.fromkeys(ATTRIBUTES, NUMBER)
"""Kind of a column with one number per attribute."""

LEVELS, VALUES = dict.fromkeys(ATTRIBUTES, WHOLE), dict.fromkeys(VALUED, NUMBER)
"""Kinds of the columns ``levels`` and ``values`` of a source."""


def random_generator(seed: int, stream: int, *place: int) -> np.random.Generator:
    """Return the random generator of one use of a seed, independent of all other uses.

    Args:
        seed: seed of the spec.
        stream: number of the use; no two recipes share one.
        place: identifies an item that has its own random numbers within the use; whole numbers from 0.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, stream], spawn_key=place)))


def dealt(options: Sequence[Any], number: int, seed: int, stream: int, *place: int) -> Any:
    """Return the option of an item, in turn: all options are used once before one is repeated, each time in a new
    order.

    Args:
        options: to choose from.
        number: number of the item, from 0.
        seed, stream, place: as for `random_generator`.
    """
    turn, position = divmod(number, len(options))
    return options[int(random_generator(seed, stream, *place, turn).permutation(len(options))[position])]


def sources_of(codes: Codes, spec: SceneSpec) -> tuple[Source, ...]:
    """Return the sources of a padded row of codes, int32 [width]."""
    return tuple(Source.from_code(int(code), spec.num_classes) for code in codes if code != EMPTY)


def draw_onsets(sources: Sequence[Source], spec: SceneSpec, rng: np.random.Generator) -> tuple[int, ...]:
    """Draw the samples before each source's first tone, uniform within its period; 0 if onsets are locked."""
    draws = rng.random(len(sources))
    if spec.onset == "locked":
        return (0,) * len(sources)
    return tuple(int(u * spec.periods[source.rate]) for u, source in zip(draws, sources, strict=True))


def labels_of(sources: Sequence[Source], spec: SceneSpec) -> list[dict[str, str]]:
    """Return the column ``metadata`` of a set of sources: the label of each attribute of each source."""
    return [
        {f"{attribute}_label": spec.labels[attribute][getattr(source, attribute)] for attribute in ATTRIBUTES}
        for source in sources
    ]


def gains_of(sources: Sequence[Source], spec: SceneSpec) -> list[float]:
    """Return the column ``gains`` of a set of sources: the linear gain of each, before the gain of the whole clip."""
    return [spec.gains[source.amplitude] for source in sources]


def levels_of(source: Source) -> dict[str, int]:
    """Return the column ``levels`` of a source: its class of each attribute."""
    return {attribute: getattr(source, attribute) for attribute in ATTRIBUTES}


def values_of(source: Source, spec: SceneSpec) -> dict[str, float]:
    """Return the column ``values`` of a source: the numbers of its classes of the attributes in `VALUED`."""
    return {
        "pitch": float(spec.pitches[source.pitch]),
        "rate": spec.rates[source.rate],
        "amplitude": spec.decibels[source.amplitude],
    }


FULL_SCALE = 32_766
"""The 16-bit value of a sample of 1.0: one below the largest, since A and T are rounded before they are added."""


Layer = tuple[Sequence[Source], Sequence[int]]
"""Sources and the onset of each."""


class Tones(dict[tuple[int, int, int], Waveform]):
    """Tones by their classes of timbre, pitch and rate, each float32 [period] with a peak of 1."""


_rendered: WeakValueDictionary[tuple[Any, ...], Tones] = WeakValueDictionary()
_rendering = threading.Lock()


@dataclass(frozen=True)
class ToneBank:
    """All K^3 tones of a spec, and how clips are mixed from them.

    Attributes:
        spec: settings of the scenes.
    """

    spec: SceneSpec

    @cached_property
    def tones(self) -> Tones:
        """Return the tones, rendered on first use on all cores; banks with equal sound share them while in use.

        Raises:
            DatasetError: a voice makes no sound at one of the notes.
        """
        spec = self.spec
        sound = (spec.voices, spec.pitches, spec.periods, spec.velocity, spec.sample_rate)
        with _rendering:
            tones = _rendered.get(sound)
            if tones is None:
                levels = range(spec.num_classes)
                classes = list(product(levels, levels, levels))
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    every = list(pool.map(lambda key: spec.tone(*key), classes))
                tones = _rendered[sound] = Tones(zip(classes, every, strict=True))
        return tones

    def mix(self, sources: Sequence[Source], onsets: Sequence[int]) -> Waveform:
        """Return the sum of sources, float32 [num_samples], before any common gain."""
        clip = np.zeros(self.spec.num_samples, np.float32)
        for source, onset in zip(sources, onsets, strict=True):
            tone = self.tones[source.timbre, source.pitch, source.rate]
            tone = tone * np.float32(self.spec.gains[source.amplitude])
            for start in range(onset, len(clip), len(tone)):
                part = clip[start : start + len(tone)]
                part += tone[: len(part)]
        return clip

    def clips(
        self,
        layers: Sequence[Layer],
        scenes: Sequence[Sequence[int]],
        gain: float | None = None,
        *,
        shared_gain: bool = True,
    ) -> list[Pcm16]:
        """Return clips that are sums of layers, int16 [num_samples] each.

        All have one gain, and each layer is rounded to 16 bits before it is added, so that two clips with a common
        layer differ by the samples of the other layers only. (Rounding sums instead costs an encoder that keeps little
        of the common layer's energy up to 0.003 in the mean similarity of steps.)

        Args:
            layers: sources and their onsets, for each layer.
            scenes: indices of the layers of each clip.
            gain: gain of all clips; by default 1 / max(1, largest peak of a clip).
            shared_gain: otherwise each clip has its own default gain, and its sum is rounded.
        """
        mixed = [self.mix(*layer) for layer in layers]
        if gain is None:
            sums = [np.asarray(sum(mixed[place] for place in scene)) for scene in scenes]
            gains = [1 / max(1.0, peak(clip)) for clip in sums]
            if not shared_gain:
                return [_quantise(clip, own) for clip, own in zip(sums, gains, strict=True)]
            gain = min(gains)
        rounded = [_quantise(layer, gain) for layer in mixed]
        return [np.asarray(sum(rounded[place] for place in scene), np.int16) for scene in scenes]


def peak(clip: Waveform) -> float:
    """Return the largest magnitude of a clip."""
    return max(float(clip.max()), -float(clip.min()))


def _quantise(clip: Waveform, gain: float) -> Pcm16:
    scaled = clip * np.float32(gain * FULL_SCALE)
    return np.asarray(np.rint(scaled, out=scaled), np.int16)


STAR, CROSSED = KINDS = ("star", "crossed")

ONSET = "onset"
"""The factor of the clip with redrawn onsets."""

_TARGETS, _STARS, _CROSSED = 7, 8, 9
"""Random streams."""


@dataclass(frozen=True)
class FactorClip:
    """A drawn clip.

    Attributes:
        id: id of its row, after the name of the recipe.
        block: name of its star; empty for a crossed clip.
        factor: the factor that differs from the star's base: an attribute of the target, or `ONSET`; empty for the
            base.
        sources: the target and its background.
        shares: onset of each source as a share of its period, in [0, 1).
    """

    id: str
    block: str
    factor: str
    sources: tuple[Source, ...]
    shares: tuple[float, ...]

    def onsets(self, spec: SceneSpec) -> tuple[int, ...]:
        """Return the first sample of each source."""
        return tuple(
            int(share * spec.periods[source.rate]) for share, source in zip(self.shares, self.sources, strict=True)
        )


def draw_stars(spec: SceneSpec, stars: int) -> Iterator[FactorClip]:
    """Yield the clips of all stars: the base, every other class of each factor of the target, and redrawn onsets.

    Targets differ between stars. A star does not depend on the number of stars.
    """
    classes = spec.num_classes
    codes = random_generator(spec.seed, _TARGETS).permutation(classes ** len(ATTRIBUTES))
    for number, code in enumerate(codes[:stars]):
        rng = random_generator(spec.seed, _STARS, number)
        target = Source.from_code(int(code), classes)
        versions = [
            (attribute, level, replace(target, **{attribute: level}))
            for attribute in ATTRIBUTES
            for level in range(classes)
            if level != getattr(target, attribute)
        ]
        background: list[Source] = []
        taken = {target, *(version for *_, version in versions)}
        count = int(rng.integers(spec.max_sources))
        while len(background) < count:
            source = Source.from_code(int(rng.integers(classes ** len(ATTRIBUTES))), classes)
            if source not in taken:
                taken.add(source)
                background.append(source)
        shares, redrawn = (tuple(map(float, rng.random(1 + count))) for _ in range(2))
        if spec.onset == "locked":
            shares = (0.0,) * len(shares)
        block = f"{STAR}-{number:05d}"
        yield FactorClip(f"{block}-base", block, "", (target, *background), shares)
        for attribute, level, version in versions:
            yield FactorClip(f"{block}-{attribute}-{level}", block, attribute, (version, *background), shares)
        yield FactorClip(f"{block}-{ONSET}", block, ONSET, (target, *background), redrawn)


def spread(classes: int, count: int) -> tuple[int, ...]:
    """Return `count` of the classes 0..classes-1, with both ends, evenly spaced; halves are rounded up."""
    gaps = count - 1
    return tuple((2 * number * (classes - 1) + gaps) // (2 * gaps) for number in range(count))


def draw_crossed(spec: SceneSpec, kept: Mapping[str, Sequence[int]]) -> Iterator[FactorClip]:
    """Yield single sources with all combinations of the kept classes of each attribute.

    The onset of a source does not depend on the other sources.
    """
    classes = spec.num_classes
    shares = random_generator(spec.seed, _CROSSED).random(classes ** len(ATTRIBUTES))
    for number, levels in enumerate(product(*(kept[attribute] for attribute in ATTRIBUTES))):
        source = Source(*levels)
        share = 0.0 if spec.onset == "locked" else float(shares[source.code(classes)])
        yield FactorClip(f"{CROSSED}-{number:05d}", "", "", (source,), (share,))
