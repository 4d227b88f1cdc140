"""Recordings put together: trimmed slices, one after the other with a crossfade, or over each other equally loud.

After arXiv 2310.08753, section 3.3, whose release fades both ends without overlap, and cuts and tiles overlays.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from itertools import accumulate, combinations, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data import DatasetError, Pcm16
from ..sounds.entries import Sound, Sounds
from ..texts.captions import language_digest
from ..texts.expressions import Expression, Leaf, Then, time_line
from ..texts.prompts import category_of, spoken, tables_digest
from .mixing import PEAK, resampled
from .pool import UnlabelledError, has_class, why_no_classes
from .recorded import check_setting
from .rendering import SharedRendering
from .transforms.base import Samples, level

SILENCE = -60.0
"""Decibels below the loudest frame: what is softer at both ends of a recording is cut off."""

CROSSFADE = 0.1
"""Of the shorter of two neighbours."""

LOUDNESS_RATE = 16_000
"""Hz that loudness is measured at."""

_FRAME, _HOP = 2_048, 1_024
_FLOOR = -80.0
"""Decibels: of what is softer, loudness is this."""


def trimmed(samples: Samples) -> tuple[int, int]:
    """First sample and the one after the last of what is not silent at the ends of a recording."""
    power = _frames(samples**2).mean(axis=1)
    loud = np.flatnonzero(power > power.max(initial=0) * 10 ** (SILENCE / 10))
    if not len(loud):
        return 0, 0
    return int(loud[0]) * _HOP, min(len(samples), int(loud[-1]) * _HOP + _FRAME)


def _frames(values: Samples) -> NDArray[np.float64]:
    """Half overlapping frames [frames, 2,048] of values that are padded with zeros to whole hops."""
    count = max(1, -(-max(len(values) - _FRAME, 0) // _HOP) + 1)
    padded = np.zeros((count - 1) * _HOP + _FRAME)
    padded[: len(values)] = values
    return np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_HOP]


def fades_of(lengths: Sequence[int]) -> list[int]:
    """Samples in which each two neighbours overlap: a tenth of the shorter."""
    return [round(CROSSFADE * min(pair)) for pair in pairwise(lengths)]


def concatenated(parts: Sequence[Samples], fades: Sequence[int]) -> Samples:
    """Parts one after the other, each crossfaded with the next by half cosines: powers of both add up to 1.

    Args:
        parts: float64 [samples] each.
        fades: samples in which each two neighbours overlap.
    """
    starts = np.cumsum([0, *(len(part) - fade for part, fade in zip(parts, fades, strict=False))])
    total = np.zeros(int(starts[-1]) + len(parts[-1]))
    for place, (part, start) in enumerate(zip(parts, starts, strict=True)):
        faded = part.copy()
        if place:
            rise = _rise(fades[place - 1])
            faded[: len(rise)] *= rise
        if place < len(fades):
            rise = _rise(fades[place])
            faded[len(faded) - len(rise) :] *= rise[::-1]
        total[start : start + len(faded)] += faded
    return total


def _rise(length: int) -> Samples:
    """Gains [length] from 0 to 1 whose square and that of their reverse add up to 1."""
    rise: Samples = np.sin(np.pi / 2 * (np.arange(length) + 0.5) / max(length, 1))
    return rise


def looped(samples: Samples, length: int) -> Samples:
    """Samples repeated, each time with a crossfade into the next, to exactly so many; not less than there are."""
    period = len(samples)
    fade = round(CROSSFADE * period)
    count = 1 + max(0, -(-(length - period) // max(period - fade, 1)))
    return concatenated([samples] * count, [fade] * (count - 1))[:length]


def overlaid(parts: Sequence[Samples], rate: int) -> Samples:
    """Parts of one length over each other, two at a time as loud as each other (Tokozume et al., 2018, with r = 1/2).

    Of x and y, whose loudness is G_x and G_y dB: t = 1 / (1 + 10^((G_x - G_y) / 20)), and the sum of t x and (1 - t) y,
    divided by √(t² + (1 - t)²). A third is laid over both, with a third of the power of all.
    """
    total = parts[0]
    for count, part in enumerate(parts[1:], 1):
        ratio = 10 ** ((loudness(total, rate) - loudness(part, rate)) / 20)
        # With r the share of what was there before: of n equal sources the new one is 1 / (n + 1).
        share = count / (count + 1)
        weight = 1 / (1 + ratio * np.sqrt((1 - share) / share))
        total = (weight * total + (1 - weight) * part) / np.hypot(weight, 1 - weight)
    return total


def loudness(samples: Samples, rate: int) -> float:
    """The largest A-weighted power of a frame of 2,048 samples at 16 kHz, in decibels, not less than -80."""
    frames = _frames(resampled(samples, rate, LOUDNESS_RATE)) * np.hanning(_FRAME)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2 / _FRAME**2
    return float(10 * np.log10(max(float((power @ _a_weights()).max()), 10 ** (_FLOOR / 10))))


@cache
def _a_weights() -> NDArray[np.float64]:
    """A-weighting of power (IEC 61672) at the frequencies of a frame, 1 at 1 kHz."""
    squared = np.fft.rfftfreq(_FRAME, 1 / LOUDNESS_RATE) ** 2
    low, first, second, high = (frequency**2 for frequency in (20.598997, 107.65265, 737.86223, 12194.217))
    amplitude = (
        high * squared**2 / ((squared + low) * np.sqrt((squared + first) * (squared + second)) * (squared + high))
    )
    weights: NDArray[np.float64] = (amplitude * 10 ** (2.0 / 20)) ** 2
    return weights


SPLITS = ("train", "validation", "test")

_TEST_SHARE, _VALIDATION_SHARE = 0.4, 0.1
"""Of the files of a label."""

_NOVEL_SHARE = 0.2
"""Of the pairs of labels."""

LONGEST_SLICE = 9.5
"""Seconds."""

SHORTEST_SLICE = 1.2
"""Seconds that a slice lasts in a clip; less is repeated. Without half a crossfade at each end, a second is left."""

SHORTEST_SOUND = 0.25
"""Seconds between the silence at both ends."""

_DRAWS, _QUIET = 5, 10.0
"""Windows of a long recording that are drawn, until one is not so many decibels below the whole."""

_STEP = 1_024
"""Samples over which the power of a recording is kept."""


@dataclass(frozen=True)
class Slice:
    """A part of a recording.

    Attributes:
        number: of the recording.
        start, stop: at its own rate, in samples.
        length: at the rate of clips, in samples.
    """

    number: int
    start: int
    stop: int
    length: int


@dataclass(frozen=True)
class _Sound:
    """What is known of a recording that was read once: rate, ends of what is not silent, power of steps."""

    rate: int
    start: int
    stop: int
    powers: NDArray[np.float32]


def splits_of_files(entries: Sequence[Sound]) -> list[str]:
    """The split of each recording: whole groups, by label where no group has several, else all together."""
    units = [entry.group or entry.sha256 for entry in entries]
    labels_of: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        labels_of[unit].add(entry.label)
    # A speaker who says all words is on one side with all of them.
    are_shared = any(len(labels) > 1 for labels in labels_of.values())
    of_label: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        of_label["" if are_shared else entry.label].add(unit)
    splits: dict[str, str] = {}
    for members in of_label.values():
        ordered = sorted(members, key=_digest)
        test = max(1, round(_TEST_SHARE * len(ordered)))
        validation = max(len(ordered) > 2, round(_VALIDATION_SHARE * len(ordered)))
        for place, unit in enumerate(ordered):
            splits[unit] = "test" if place < test else "validation" if place < test + validation else "train"
    return [splits[unit] for unit in units]


def is_novel(one: str, other: str) -> bool:
    """Whether two labels never meet in training: a fifth of all pairs, whatever labels there are."""
    return int(_digest(" | ".join(sorted((one, other))))[:8], 16) < _NOVEL_SHARE * 2**32


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class SlicePool:
    """The recordings that have one label, as slices.

    Attributes:
        source: what they were opened from.
        sample_rate: of clips, in Hz.
    """

    def __init__(self, recordings: Sounds, sample_rate: int) -> None:
        """Nothing is read."""
        self.source = recordings.source
        self.sample_rate = sample_rate
        self._recordings = recordings
        self._sounds: dict[int, _Sound] = {}

    @cached_property
    def by_split(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Numbers of recordings by what their label is called, in each split; without labels of a single file.

        Raises:
            UnlabelledError: no recording has a class.
            DatasetError: fewer than two labels have two files.
        """
        entries = self._recordings.entries
        usable = [number for number, entry in enumerate(entries) if has_class(entry)]
        if not usable:
            raise UnlabelledError(why_no_classes(self.source, entries))
        counts: dict[str, set[str]] = defaultdict(set)
        for number in usable:
            counts[spoken(entries[number].label)].add(entries[number].group or entries[number].sha256)
        usable = [number for number in usable if len(counts[spoken(entries[number].label)]) > 1]
        labels = {spoken(entries[number].label) for number in usable}
        if len(labels) < 2:
            raise DatasetError(
                f"{self.source} has {len(labels)} labels of two recordings or more (of different groups); scenes need "
                "2: LABEL/file.wav"
            )
        by_split: dict[str, dict[str, list[int]]] = {split: defaultdict(list) for split in SPLITS}
        for number, split in zip(usable, splits_of_files([entries[number] for number in usable]), strict=True):
            by_split[split][spoken(entries[number].label)].append(number)
        return {
            split: {label: tuple(of_label[label]) for label in sorted(of_label)} for split, of_label in by_split.items()
        }

    def pairs(self, split: str, *, novel: bool) -> list[tuple[str, str]]:
        """Pairs of labels of different kinds that have files in a split, those that meet in training or the others."""
        every = combinations(self.by_split[split], 2)
        return [pair for pair in every if self.can_meet(pair) and is_novel(*pair) == novel]

    @staticmethod
    def can_meet(labels: Iterable[str]) -> bool:
        """Whether labels are all of different kinds of sounds."""
        kinds = [category_of(label) for label in labels]
        return len(set(kinds)) == len(kinds)

    def name(self, number: int) -> str:
        """The id of a recording."""
        return self._recordings.entries[number].id

    def draw(self, split: str, label: str, most: int, rng: np.random.Generator) -> Slice:
        """A slice of a recording of a label, at most so many samples at the rate of clips.

        Raises:
            DatasetError: no recording of it has anything to hear.
        """
        numbers = self.by_split[split][label]
        for place in rng.permutation(len(numbers)):
            part = self._slice(numbers[place], min(most, round(LONGEST_SLICE * self.sample_rate)), rng)
            if part is not None:
                return part
        raise DatasetError(
            f"{self.source}: no recording of {label!r} for {split} has {SHORTEST_SOUND:g} s between silences"
        )

    def _slice(self, number: int, most: int, rng: np.random.Generator) -> Slice | None:
        sound = self._sound(number)
        whole, longest = sound.stop - sound.start, int(most * sound.rate / self.sample_rate)
        if whole < SHORTEST_SOUND * sound.rate:
            return None
        starts = [sound.start]
        if whole > longest:
            starts = [sound.start + int(rng.integers(whole - longest + 1)) for _ in range(_DRAWS)]
        length = min(whole, longest)
        powers = [_power(sound.powers, start, start + length) for start in starts]
        enough = _power(sound.powers, sound.start, sound.stop) * 10 ** (-_QUIET / 10)
        loud = next((place for place, power in enumerate(powers) if power >= enough), int(np.argmax(powers)))
        start = starts[loud]
        return Slice(number, start, start + length, round(length * self.sample_rate / sound.rate))

    def _sound(self, number: int) -> _Sound:
        if number not in self._sounds:
            waveform, rate = self._recordings.waveform(number)
            start, stop = trimmed(waveform)
            steps = np.add.reduceat(waveform**2, np.arange(0, len(waveform), _STEP))
            self._sounds[number] = _Sound(rate, start, stop, steps.astype(np.float32))
        return self._sounds[number]

    def samples(self, part: Slice) -> Samples:
        """A slice at the rate of clips, float64 [length], at a root mean square of 1; repeated to `SHORTEST_SLICE`."""
        waveform, rate = self._recordings.waveform(part.number)
        samples = resampled(waveform[part.start : part.stop], rate, self.sample_rate)
        samples = np.pad(samples, (0, max(0, part.length - len(samples))))[: part.length]
        loud = level(samples)
        if not loud > 0:
            raise DatasetError(f"{self.source}: recording {self.name(part.number)!r} is silent where it is heard")
        return np.asarray(samples / loud, np.float64)


def _power(powers: NDArray[np.float32], start: int, stop: int) -> float:
    """Mean power of a part, to whole steps."""
    return float(powers[start // _STEP : max(-(-stop // _STEP), start // _STEP + 1)].mean())


@dataclass(frozen=True, kw_only=True)
class NaturalSettings:
    """What decides captioned scenes of recordings.

    Attributes:
        recordings: with labels, two files of each or more.
        seed: seed of every random choice, from 0 to 2^63 - 1.
        duration: seconds of a clip; what is not filled is silent.
        sample_rate: Hz of every clip.
        domain: what the recordings are, in a word.

    Raises:
        InputError: a value out of its range.
    """

    recordings: Sounds = field(repr=False)
    seed: int = 0
    duration: float = 10.0
    sample_rate: int = 32_000
    domain: str = ""

    def __post_init__(self) -> None:
        self._check("seed", self.seed, 0, 2**63 - 1)
        self._check("duration", self.duration, 4 * SHORTEST_SLICE, 60)
        self._check("sample_rate", self.sample_rate, 8_000, 192_000)

    _check = staticmethod(check_setting)

    @property
    def num_samples(self) -> int:
        """Samples of a clip."""
        return round(self.duration * self.sample_rate)

    @property
    def domain_name(self) -> str:
        """The domain; ``recordings`` where none is given."""
        return self.domain or "recordings"

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; of the recordings the fingerprint."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recordings"}
        tables = {"language": language_digest(), "tables": tables_digest()}
        return {**values, **tables, "recordings": self.recordings.fingerprint}


@dataclass(frozen=True)
class Placed:
    """A part of a scene in time.

    Attributes:
        expression: what is heard.
        start: first sample.
        length: samples.
        parts: of a sequence or an overlay.
        fades: samples in which each two neighbours of a sequence overlap.
    """

    expression: Expression
    start: int
    length: int
    parts: tuple[Placed, ...] = ()
    fades: tuple[int, ...] = ()


def place(expression: Expression, lengths: Sequence[int], length: int | None = None) -> Placed:
    """Lay out an expression.

    What sounds together lasts as long as the longest of it: shorter slices are repeated, nothing is cut.

    Args:
        expression: any.
        lengths: of the slice of each leaf, in samples.
        length: of all, not less than what it lasts by itself; by default that.
    """
    sized = _sized(expression, iter(lengths))
    return _fitted(sized, 0, sized.length if length is None else length)


def _sized(expression: Expression, lengths: Iterator[int]) -> Placed:
    """How long each part lasts by itself."""
    if isinstance(expression, Leaf):
        return Placed(expression, 0, next(lengths))
    parts = tuple(_sized(part, lengths) for part in expression.operands)
    natural = [part.length for part in parts]
    length = sum(natural) - sum(fades_of(natural)) if isinstance(expression, Then) else max(natural)
    return Placed(expression, 0, length, parts)


def _fitted(sized: Placed, start: int, length: int) -> Placed:
    if not isinstance(sized.expression, Then):
        parts = tuple(_fitted(part, start, length) for part in sized.parts)
        return Placed(sized.expression, start, length, parts)
    lengths = [round(part.length * length / sized.length) for part in sized.parts]
    fades = fades_of(lengths)
    # The longest takes what rounding left.
    lengths[lengths.index(max(lengths))] += length - sum(lengths) + sum(fades)
    steps = [of_part - fade for of_part, fade in zip(lengths, [*fades, 0], strict=True)]
    starts = accumulate(steps[:-1], initial=start)
    fitted = (_fitted(*one) for one in zip(sized.parts, starts, lengths, strict=True))
    return Placed(sized.expression, start, length, tuple(fitted), tuple(fades))


def heard(placed: Placed) -> list[tuple[int, int]]:
    """When each leaf is heard, in samples: of a crossfade each of the two has half."""
    return list(_heard(placed, placed.start, placed.start + placed.length))


def _heard(placed: Placed, first: int, last: int) -> Iterator[tuple[int, int]]:
    if isinstance(placed.expression, Leaf):
        yield max(placed.start, first), min(placed.start + placed.length, last)
        return
    if not isinstance(placed.expression, Then):
        for part in placed.parts:
            yield from _heard(part, first, last)
        return
    cuts = [part.start + fade // 2 for part, fade in zip(placed.parts[1:], placed.fades, strict=True)]
    for part, begin, end in zip(placed.parts, [first, *cuts], [*cuts, last], strict=True):
        yield from _heard(part, max(begin, first), min(end, last))


Settings = TypeVar("Settings", bound=NaturalSettings)


class NaturalRendering(SharedRendering[Settings]):
    """A rendering of scenes of recordings; a subclass adds rows and clips, see `Rendering`."""

    @cached_property
    def pool(self) -> SlicePool:
        """The recordings as slices."""
        return SlicePool(self.settings.recordings, self.settings.sample_rate)

    def budgets(self, expression: Expression) -> list[int]:
        """Most samples of the slice of each leaf: sequences divide the time of a clip evenly."""
        spans = time_line(expression, (0, self.settings.num_samples), 0, lambda count: [1.0] * count)
        return [min(stop - start, round(LONGEST_SLICE * self.sample_rate)) for start, stop in spans]

    def lengths(self, slices: Sequence[Slice]) -> list[int]:
        """Samples that each slice lasts in a clip, those that are repeated to be heard long enough among them."""
        return [max(part.length, round(SHORTEST_SLICE * self.sample_rate)) for part in slices]

    def event(self, label: str, attributes: Sequence[str], times: tuple[int, int], part: Slice) -> dict[str, Any]:
        """An event as a row has it."""
        start, stop = (sample / self.sample_rate for sample in times)
        return {
            "label": label,
            "attributes": list(attributes),
            "start": start,
            "stop": stop,
            "file": self.pool.name(part.number),
        }

    def mixed(self, scenes: Sequence[tuple[Placed, Sequence[Slice]]]) -> list[Pcm16]:
        """Clips of one item, each int16 [samples], under one gain that brings the largest of all samples to `PEAK`."""
        sounds = {part: self.pool.samples(part) for _, slices in scenes for part in slices}
        clips = [_sound(placed, iter([sounds[part] for part in slices]), self.sample_rate) for placed, slices in scenes]
        gain = PEAK * 2**15 / max(float(np.abs(clip).max()) for clip in clips)
        total = self.settings.num_samples
        return [np.pad(np.rint(clip * gain), (0, total - len(clip))).astype(np.int16) for clip in clips]


def _sound(placed: Placed, slices: Iterator[Samples], rate: int) -> Samples:
    if isinstance(placed.expression, Leaf):
        return looped(next(slices), placed.length)
    parts = [_sound(part, slices, rate) for part in placed.parts]
    return concatenated(parts, placed.fades) if isinstance(placed.expression, Then) else overlaid(parts, rate)
