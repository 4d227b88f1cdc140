"""Sources, scenes and quadruples, and the sampling of candidates.

Paper (arXiv 2603.13685): section 3.1 defines sources and scenes, 3.2 quadruples, section 4.1 the candidate pools.

A source is one class of each attribute. For arithmetic on many candidates it has a *code*, the mixed-radix
number ``((timbre * K + pitch) * K + rate) * K + amplitude``; a set of sources is a row of codes in increasing
order, padded with ``EMPTY`` at its end.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..data import DatasetError, Row
from ..sounds.dx7.voice import Voice
from ..sounds.tones import default_voices

if TYPE_CHECKING:
    from numpy.typing import NDArray


ATTRIBUTES = ("timbre", "pitch", "rate", "amplitude")
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
                raise InputError(f"{attribute.name} is {value}; a class is an integer from 0 to K-1")

    @classmethod
    def from_code(cls, code: int, num_classes: int) -> Source:
        """The source whose code is ``code`` when each attribute has ``num_classes`` classes."""
        if not 0 <= code < num_classes ** len(ATTRIBUTES):
            raise InputError(f"code is {code}; with K = {num_classes} codes run from 0 to K^4-1")
        digits = []
        for _ in ATTRIBUTES:
            code, digit = divmod(code, num_classes)
            digits.append(digit)
        return cls(*digits[::-1])

    def code(self, num_classes: int) -> int:
        """The source's code when each attribute has ``num_classes`` classes."""
        code = 0
        # No `astuple`, which takes longer than all the rest: drawing items asks for the codes of many sources.
        for digit in (self.timbre, self.pitch, self.rate, self.amplitude):
            if digit >= num_classes:
                raise InputError(f"{self} has a class of {num_classes} or more; classes run from 0 to K-1")
            code = code * num_classes + digit
        return code


def _check_onsets(name: str, sources: tuple[Source, ...], onsets: tuple[int, ...]) -> None:
    if not sources:
        raise InputError(f"{name} has no source; a set of sources has at least one")
    if len(set(sources)) != len(sources):
        raise InputError(f"{name} holds a source twice: {sources}; no two sources of a scene are the same")
    if len(onsets) != len(sources):
        raise InputError(f"{name} has {len(sources)} sources but {len(onsets)} onsets")


@dataclass(frozen=True)
class Scene:
    """Sources that sound together (paper, section 3.1) and the sample at which each one starts.

    The identity of a scene is its set of sources: ``key`` leaves the onsets out.
    """

    id: str
    split: str
    sources: tuple[Source, ...]
    onsets: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_onsets(self.id, self.sources, self.onsets)

    @property
    def key(self) -> frozenset[Source]:
        """The set of sources: equal for scenes that differ in nothing but onsets or order."""
        return frozenset(self.sources)


@dataclass(frozen=True)
class Quadruple:
    """Base scenes A and C and the added sources T: the scenes A, B = A ∪ T, C, D = C ∪ T (paper, section 3.2).

    A source of A sounds from the same onset in A and in B, a source of T from the same onset in B and in D.
    """

    id: str
    a: tuple[Source, ...]
    c: tuple[Source, ...]
    t: tuple[Source, ...]
    a_onsets: tuple[int, ...]
    c_onsets: tuple[int, ...]
    t_onsets: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_onsets(f"{self.id} A", self.a, self.a_onsets)
        _check_onsets(f"{self.id} C", self.c, self.c_onsets)
        _check_onsets(f"{self.id} T", self.t, self.t_onsets)
        for name, base in (("A", self.a), ("C", self.c)):
            if set(base) & set(self.t):
                raise InputError(f"{self.id}: {name} and T share a source; T adds sources that {name} lacks")
        if set(self.a) == set(self.c):
            raise InputError(f"{self.id}: A and C are the same scene; the step would be compared with itself")


def count_scenes(num_classes: int, max_sources: int) -> int:
    """Number of different scenes of 1 to ``max_sources`` of the K^4 sources: Σ C(K^4, n)."""
    return sum(math.comb(num_classes ** len(ATTRIBUTES), n) for n in range(1, max_sources + 1))


def sample_scenes(rng: np.random.Generator, count: int, num_classes: int, max_sources: int) -> Codes:
    """Draw ``count`` different candidate scenes (paper, section 4.1).

    The number of sources is uniform on 1..max_sources, a source uniform on the K^4; a scene with a repeated
    source and a scene that was drawn before are drawn again. There are only K^4 scenes of one source (4,096
    for K = 8), so a pool of 150,000 exhausts them: practically all are in it (2.7 % of the pool), and what they
    leave of their quarter goes to the other sizes in equal parts (32.4 % each).

    Returns int32 codes [count, max_sources], rows in increasing order padded with EMPTY.
    Raises InputError where fewer than twice ``count`` scenes exist.
    """
    available = count_scenes(num_classes, max_sources)
    if 2 * count > available:
        raise InputError(
            f"{count:,} candidate scenes were asked for, but K = {num_classes} classes and up to {max_sources} "
            f"sources make {available:,} scenes; a pool may hold at most half of them"
        )

    def draw(n: int) -> Codes:
        sizes = rng.integers(1, max_sources + 1, n)
        codes = rng.integers(0, num_classes ** len(ATTRIBUTES), (n, max_sources), dtype=np.int32)
        return _as_sets(codes, sizes)

    return _distinct(draw, count)


def sample_quadruples(rng: np.random.Generator, count: int, num_classes: int, max_sources: int) -> Codes:
    """Draw ``count`` different candidate quadruples (paper, sections 3.2 and 4.1).

    |T| is uniform on 1..N-1, then |A| and |C| independently uniform on 1..N-|T|. A quadruple in which A and T
    or C and T share a source, or in which A = C, is drawn again, as is one drawn before; (A, C, T) and
    (C, A, T) compare the same two steps and count as the same.

    Returns int32 codes [count, 3, max_sources - 1], the sets A, C, T in this order.
    Raises InputError where the pool could not plausibly be filled.
    """
    available = count_scenes(num_classes, max_sources) ** 2
    if 100 * count > available:
        raise InputError(
            f"{count:,} candidate quadruples were asked for, but K = {num_classes} classes and up to "
            f"{max_sources} sources make about {available:,}; a pool may hold at most a hundredth of them"
        )
    width = max_sources - 1

    def draw(n: int) -> Codes:
        t_size = rng.integers(1, max_sources, n)
        sizes = np.stack(
            [1 + rng.integers(0, max_sources - t_size), 1 + rng.integers(0, max_sources - t_size), t_size], 1
        )
        codes = rng.integers(0, num_classes ** len(ATTRIBUTES), (n, 3, width), dtype=np.int32)
        sets = _as_sets(codes.reshape(-1, width), sizes.reshape(-1)).reshape(n, 3, width)
        a, c, t = sets[:, 0], sets[:, 1], sets[:, 2]
        valid = (sets[:, :, 0] != EMPTY).all(axis=1) & ~_share(a, t) & ~_share(c, t) & (a != c).any(axis=1)
        swap = _lexicographically_after(a, c)
        sets[swap] = sets[swap][:, [1, 0, 2]]
        sets[~valid] = EMPTY
        return sets.reshape(n, 3 * width)

    candidates = _distinct(draw, count).reshape(count, 3, width)
    # The order of A and C was fixed only to recognise repeats: give it back its chance.
    swap = rng.random(count) < 0.5
    candidates[swap] = candidates[swap][:, [1, 0, 2]]
    return candidates


def _as_sets(codes: Codes, sizes: NDArray[np.int64]) -> Codes:
    """Keep the first ``sizes`` codes of each row, in increasing order; a row with a repeat becomes all EMPTY."""
    largest = np.iinfo(np.int32).max
    kept = np.where(np.arange(codes.shape[1]) < sizes[:, None], codes, largest)
    kept.sort(axis=1)
    repeated = ((kept[:, 1:] == kept[:, :-1]) & (kept[:, 1:] != largest)).any(axis=1)
    kept[kept == largest] = EMPTY
    kept[repeated] = EMPTY
    return kept.astype(np.int32)


def _share(x: Codes, y: Codes) -> NDArray[np.bool_]:
    equal = (x[:, :, None] == y[:, None, :]) & (x[:, :, None] != EMPTY)
    return np.asarray(equal.any(axis=(1, 2)))


def _lexicographically_after(x: Codes, y: Codes) -> NDArray[np.bool_]:
    """Whether row x comes after row y in lexicographic order."""
    first = (x != y).argmax(axis=1)
    rows = np.arange(len(x))
    return np.asarray(x[rows, first] > y[rows, first])


def _distinct(draw: Any, count: int) -> Codes:
    """The first ``count`` different rows of repeated draws; rows that start with EMPTY are refused draws."""
    rows = draw(count)
    while True:
        rows = rows[rows[:, 0] != EMPTY]
        _, first = np.unique(rows, axis=0, return_index=True)
        rows = rows[np.sort(first)]
        if len(rows) >= count:
            return np.ascontiguousarray(rows[:count])
        rows = np.concatenate([rows, draw(count)])


LONGEST_DURATION = 60
"""Seconds."""

Onset = Literal["random", "locked"]

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


LABELS = tuple(f"{attribute}_label" for attribute in ATTRIBUTES)


def random_generator(seed: int, stream: int, *place: int) -> np.random.Generator:
    """The random numbers of one use of a seed: a change in one use leaves those of the others alone.

    Args:
        seed: of the settings.
        stream: number of the use; no two recipes have one in common.
        place: of an item within the use that has random numbers of its own; whole numbers from 0.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, stream], spawn_key=place)))


def sources_of(codes: Codes, settings: SceneSettings) -> tuple[Source, ...]:
    """The sources of a padded row of codes, int32 [width]."""
    return tuple(Source.from_code(int(code), settings.num_classes) for code in codes if code != EMPTY)


def codes_of(sets: Sequence[Sequence[Source]], settings: SceneSettings) -> Codes:
    """Padded codes of sets of sources, int32 [sets, max_sources]."""
    codes = np.full((len(sets), settings.max_sources), EMPTY, np.int32)
    for row, sources in zip(codes, sets, strict=True):
        row[: len(sources)] = [source.code(settings.num_classes) for source in sources]
    return codes


def draw_onsets(sources: Sequence[Source], settings: SceneSettings, rng: np.random.Generator) -> tuple[int, ...]:
    """Samples before each source's first tone, uniform within its period; 0 where onsets are locked."""
    draws = rng.random(len(sources))
    if settings.onset == "locked":
        return (0,) * len(sources)
    return tuple(int(u * settings.periods[source.rate]) for u, source in zip(draws, sources, strict=True))


def labels_of(sources: Sequence[Source], settings: SceneSettings) -> list[dict[str, str]]:
    """The column ``metadata`` of a set of sources: a label of each attribute of each source."""
    return [
        {f"{attribute}_label": settings.labels[attribute][getattr(source, attribute)] for attribute in ATTRIBUTES}
        for source in sources
    ]


def gains_of(sources: Sequence[Source], settings: SceneSettings) -> list[float]:
    """The column ``gains`` of a set of sources: the linear gain of each, before the gain of the whole clip."""
    return [settings.gains[source.amplitude] for source in sources]


def entropy_column(entropy: NDArray[np.float64]) -> dict[str, float]:
    """The column ``entropy``: [4] in the order of `ATTRIBUTES`."""
    return dict(zip(ATTRIBUTES, map(float, entropy), strict=True))


def source_features() -> dict[str, Any]:
    """What `datasets` calls the features of the columns of one set of sources, and of ``entropy``."""
    from datasets import List, Value

    return {
        "metadata": List({label: Value("string") for label in LABELS}),
        "onsets": List(Value("int32")),
        "gains": List(Value("float64")),
        "entropy": {attribute: Value("float64") for attribute in ATTRIBUTES},
    }


def check_sources(row_id: str, metadata: Any) -> None:
    """Refuse what is not the metadata of a set of sources.

    Raises:
        DatasetError: names the row and what is wrong.
    """
    if not isinstance(metadata, list) or not metadata:
        raise DatasetError(f"row {row_id}: metadata is {metadata!r}; it lists at least one source a scene")
    for source in metadata:
        if not isinstance(source, dict):
            raise DatasetError(f"row {row_id}: a source is {source!r}; a source has {', '.join(LABELS)}")
        missing = [label for label in LABELS if not isinstance(source.get(label), str)]
        if missing:
            raise DatasetError(f"row {row_id}: a source lacks {', '.join(missing)}; a source has {', '.join(LABELS)}")


class LazyRows(Sequence[Row]):
    """Rows that are made one by one, each when it is first asked for."""

    def __init__(self, count: int, row: Callable[[int], Row]) -> None:
        self._count, self._row = count, row
        self._made: dict[int, Row] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        numbers = range(self._count)[index]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        if numbers not in self._made:
            self._made[numbers] = self._row(numbers)
        return self._made[numbers]
