"""Isolated sounds as layers of clips: trimmed, repeated, all equally loud; and when each of them is heard, measured.

Time counts in frames of 10 ms. In which of them a sound is heard is measured once, of the recording; a layer that
repeats it is heard in the same frames, so that the events of a clip are known before it is mixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import listed, nearest, shown

from ..data import DatasetError, Pcm16
from ..sounds.entries import Sound, Sounds
from ..sounds.formats.base import label_text
from ..sounds.intervals import STEPS, Activity, union
from ..texts.questions.base import QuestionError
from ..texts.questions.templates import is_lettered, spoken
from .mixing import resampled
from .pool import UnlabelledError, has_class, why_no_classes
from .transforms.base import Samples, level

SHORTEST_SOUND = 0.1
"""Seconds between the silence at both ends of a recording; of less, nobody tells what it is."""

SHORTEST_PERIOD = 0.3
"""Seconds after which a sound is repeated, at least: a shorter one is followed by silence, too little to part it."""

MERGE_GAP = 20
"""Frames of silence that part nothing; see `Rules.merge_gap`."""

CLIP_LEVEL = 0.05
"""Root mean square of every clip, -26 dB, as that of our own scenes."""

FULL_SCALE = 0.98
"""Largest sample of a clip."""

Mask = NDArray[np.bool_]
"""For each frame whether something is heard in it."""


@dataclass(frozen=True)
class Heard:
    """What is measured of a recording, from where it is first heard to where it is last.

    Attributes:
        start: its first frame in the recording.
        powers: of each frame, float64.
        peak: largest sample.
    """

    start: int
    powers: NDArray[np.float64]
    peak: float

    @property
    def period(self) -> int:
        """Frames after which it is repeated: one less than it lasts, in which its end is faded into its beginning."""
        return max(len(self.powers), round(SHORTEST_PERIOD * STEPS)) - 1


@dataclass(frozen=True)
class Layer:
    """A recording in a clip.

    Attributes:
        number: of the recording.
        start: first frame in the clip.
        stop: frame after the last.
        level: decibels, beside other layers of the clip.
        skipped: frames of the repeated sound before the first that is heard.
    """

    number: int
    start: int
    stop: int
    level: float = 0.0
    skipped: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise InputError(
                f"a layer is from frame {self.start} to {self.stop}; start is less than stop, and not negative"
            )

    @property
    def length(self) -> int:
        """Frames."""
        return self.stop - self.start


def at_rate(waveform: Samples, rate: int, sample_rate: int) -> Samples:
    """A recording at the rate of clips, around zero: of a constant offset, nobody hears anything."""
    samples = resampled(waveform, rate, sample_rate)
    return np.asarray(samples - samples.mean(), np.float64)


def measured(samples: Samples, sample_rate: int, silence: float) -> Heard:
    """When a recording is heard.

    Args:
        samples: float64 [samples], not all zero.
        sample_rate: Hz, of which a frame is a hundredth.
        silence: decibels below the loudest frame; what is softer is silent.
    """
    powers = _powers(samples, sample_rate // STEPS)
    first, last = np.flatnonzero(powers >= powers.max() * 10 ** (silence / 10))[[0, -1]].tolist()
    hop = sample_rate // STEPS
    peak = float(np.abs(samples[first * hop : (last + 1) * hop]).max())
    return Heard(first, powers[first : last + 1], peak)


def _powers(samples: Samples, hop: int) -> NDArray[np.float64]:
    """Mean power of frames; the last is filled with zeros."""
    count = max(1, -(-len(samples) // hop))
    padded = np.zeros(count * hop)
    padded[: len(samples)] = samples
    powers: NDArray[np.float64] = np.square(padded.reshape(count, hop)).mean(axis=1)
    return powers


def layer_powers(heard: Heard, layer: Layer) -> NDArray[np.float64]:
    """The power of each frame of a layer, float64 [length], before any gain."""
    once = np.zeros(heard.period)
    once[: len(heard.powers)] = heard.powers[: heard.period]
    places = layer.skipped + np.arange(layer.length)
    powers = once[places % heard.period]
    if len(heard.powers) > heard.period:
        # Where two repetitions are faded into each other, both are half there.
        seams = (places % heard.period == 0) & (places > 0)
        powers[seams] = (heard.powers[0] + heard.powers[-1]) / 2
    return powers


def layer_mask(heard: Heard, layer: Layer, silence: float, snr: float | None = None) -> Mask:
    """The frames [length] of a layer in which it is heard.

    Args:
        heard: what is measured of its recording.
        layer: of it.
        silence: decibels below its loudest frame; what is softer is silent.
        snr: decibels by which what is behind it is softer than a layer of 0 dB; what is softer than that is not heard.
    """
    powers = layer_powers(heard, layer)
    least = powers.max() * 10 ** (silence / 10)
    if snr is not None:
        least = max(least, powers.mean() * 10 ** (-(snr + layer.level) / 10))
    return np.asarray(powers >= least, np.bool_)


def layer_level(heard: Heard, layer: Layer) -> float:
    """The root mean square of a layer before any gain, but for fades."""
    return float(np.sqrt(layer_powers(heard, layer).mean()))


def activity_of(layers: Iterable[tuple[int, Mask]]) -> Activity:
    """When a label is heard: intervals in frames; silences of at most `MERGE_GAP` are none.

    Args:
        layers: of the label, first frame and `layer_mask` of each.
    """
    intervals = []
    for first, mask in layers:
        edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
        starts, stops = edges[::2].tolist(), edges[1::2].tolist()
        intervals += [(first + start, first + stop) for start, stop in zip(starts, stops, strict=True)]
    return union(intervals, MERGE_GAP)


def layer_samples(samples: Samples, heard: Heard, layer: Layer, sample_rate: int) -> Samples:
    """A layer by itself, float64 [length]: its root mean square is 1 at a level of 0 dB.

    The sound is repeated, faded from one time to the next over a frame, as both ends of the layer are.

    Args:
        samples: of the recording, as `at_rate` gives them.
        heard: what is measured of it.
        layer: of it.
        sample_rate: Hz.
    """
    hop = sample_rate // STEPS
    sound = np.zeros((heard.period + 1) * hop)
    part = samples[heard.start * hop : (heard.start + len(heard.powers)) * hop]
    sound[: len(part)] = part
    last = layer.skipped + layer.length
    count = -(-last // heard.period)
    repeated = concatenated([sound] * count, [hop] * (count - 1))[layer.skipped * hop : last * hop]
    rise = np.sin(np.pi / 2 * (np.arange(hop) + 0.5) / hop) ** 2
    repeated[:hop] *= rise
    repeated[-hop:] *= rise[::-1]
    return np.asarray(repeated * (10 ** (layer.level / 20) / level(repeated)), np.float64)


def mixed(layers: Iterable[tuple[int, Samples]], length: int) -> Samples:
    """A clip, float64 [length], at a root mean square of `CLIP_LEVEL`.

    Args:
        layers: first sample in the clip, and samples of each.
        length: samples.
    """
    clip = np.zeros(length)
    for start, samples in layers:
        clip[start : start + len(samples)] += samples
    return clip * (CLIP_LEVEL / level(clip))


def to_pcm(clip: Samples) -> Pcm16:
    """A clip as int16 [samples]."""
    return np.rint(clip * 2**15).clip(-(2**15), 2**15 - 1).astype(np.int16)


def largest_sample(layers: Sequence[tuple[Heard, Layer]], frames: int) -> float:
    """What no sample of a clip is larger than, to within how much its sounds have in common.

    Args:
        layers: of the clip.
        frames: of the clip.
    """
    peaks, power = np.zeros(frames), 0.0
    for heard, layer in layers:
        gain = 10 ** (layer.level / 20)
        peaks[layer.start : layer.stop] += gain * heard.peak / layer_level(heard, layer)
        power += gain**2 * layer.length
    return float(peaks.max() * CLIP_LEVEL / np.sqrt(power / frames))


SPLITS = ("train", "test")

_TEST_SHARE = 0.4
"""Of the files of a label, or of the groups that have several labels."""

_KEPT = 64
"""Recordings whose samples are kept."""


def splits_of_sounds(entries: Sequence[Sound]) -> list[str]:
    """The split of each recording: whole groups; labels of a single file are dealt to the splits in turn.

    Where a group has several labels, as a speaker has who says all words, groups are divided and not files of labels.
    """
    units = [entry.group or entry.sha256 for entry in entries]
    labels: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        labels[unit].add(label_text(entry.label))
    are_shared = any(len(of_unit) > 1 for of_unit in labels.values())
    members: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        members["" if are_shared else label_text(entry.label)].add(unit)
    splits: dict[str, str] = {}
    turn = 0
    for label in sorted(members, key=_digest):
        ordered = sorted(members[label], key=_digest)
        test = max(1, round(_TEST_SHARE * len(ordered)))
        if len(ordered) == 1:
            test, turn = 1 - turn % 2, turn + 1
        splits |= {unit: "test" if place < test else "train" for place, unit in enumerate(ordered)}
    return [splits[unit] for unit in units]


def _digest(text: str) -> str:
    return sha256_of(text.encode())


class SoundPool:
    """The recordings that have one label.

    Attributes:
        source: what they were opened from.
        sample_rate: of clips, in Hz.
        silence: decibels below the loudest frame of a recording; what is softer is silent.
        splits: those that are wanted; where it is one, it has all recordings.
    """

    def __init__(
        self,
        recordings: Sounds,
        sample_rate: int,
        silence: float,
        *,
        splits: Sequence[str] = SPLITS,
        background: str = "",
    ) -> None:
        """Nothing is read.

        Args:
            recordings: with labels.
            sample_rate: see above.
            silence: see above.
            splits: see above.
            background: label that no question is about; or empty.
        """
        self.source = recordings.source
        self.sample_rate = sample_rate
        self.silence = silence
        self.splits = tuple(splits)
        self._label_behind = background
        self._recordings = recordings
        self._heard: dict[int, Heard] = {}

    @cached_property
    def by_split(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Numbers of recordings by label, in each split; a label is in words, without underscores.

        Raises:
            UnlabelledError: no recording has a class.
            DatasetError: two labels read alike in a question.
        """
        return {
            split: {label: numbers for label, numbers in of_split.items() if label != self._label_behind}
            for split, of_split in self._every.items()
        }

    @cached_property
    def _every(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """The same with the background."""
        entries = self._recordings.entries
        usable = [number for number, entry in enumerate(entries) if has_class(entry)]
        if not usable:
            raise UnlabelledError(why_no_classes(self.source, entries, "questions are asked"))
        self._check_labels([entries[number].label for number in usable])
        splits = splits_of_sounds([entries[number] for number in usable])
        if len(self.splits) == 1:
            splits = [self.splits[0]] * len(splits)
        by_split: dict[str, dict[str, list[int]]] = {split: defaultdict(list) for split in self.splits}
        for number, split in zip(usable, splits, strict=True):
            by_split[split][label_text(entries[number].label)].append(number)
        return {
            split: {label: tuple(of_label[label]) for label in sorted(of_label)} for split, of_label in by_split.items()
        }

    def _check_labels(self, labels: Sequence[str]) -> None:
        spellings: dict[str, str] = {}
        for label in labels:
            first = spellings.setdefault(spoken(label_text(label)), label)
            if is_lettered(spoken(label_text(label))):
                raise DatasetError(
                    f"{self.source}: the label {label!r} starts as if it were a lettered option; write it in words"
                )
            if first != label:
                raise DatasetError(
                    f"{self.source}: the labels {first!r} and {label!r} read alike in a question; write one way"
                )

    def check_enough(self, count: int) -> None:
        """Refuse recordings of too few labels, or without the background.

        Args:
            count: labels that are needed in each split.

        Raises:
            DatasetError: says what there is and what is needed.
        """
        if self._label_behind:
            self._check_background(self._label_behind)
        if all(len(of_split) >= count for of_split in self.by_split.values()):
            return
        labels = sorted({label for of_split in self.by_split.values() for label in of_split})
        if len(self.splits) == 1:
            raise DatasetError(f"{self.source} has {_number(labels)}; questions need {count}: LABEL/file.wav")
        there = listed([f"{len(of_split)} for {split}" for split, of_split in self.by_split.items()])
        alone = [label for label in labels if not all(label in of_split for of_split in self.by_split.values())]
        raise DatasetError(
            f"{self.source} has {_number(labels)}, {there}{f' ({shown(alone)} in one of them)' if alone else ''}; "
            f"questions need {count} for each, and no file or group is in both: {count} labels with two files each are "
            f"enough, or {2 * count} labels with one; --set train_sets=0 needs none for train"
        )

    def _check_background(self, label: str) -> None:
        every = sorted({label for of_split in self._every.values() for label in of_split})
        if label not in every:
            raise DatasetError(f"{self.source} has no label {label!r} for the background; {nearest(label, every)}")
        for split in self.splits:
            if not self.background(split):
                raise DatasetError(
                    f"{self.source} has no recording of the background {label!r} for {split}; two files of different "
                    "groups are one for each split, and --set train_sets=0 needs none for train"
                )

    def background(self, split: str) -> tuple[int, ...]:
        """Numbers of the recordings that are heard behind the clips of a split."""
        return self._every[split].get(self._label_behind, ())

    def name(self, number: int) -> str:
        """The id of a recording."""
        return self._recordings.entries[number].id

    def draw(self, split: str, label: str, count: int, rng: np.random.Generator) -> list[int]:
        """Numbers of at most so many recordings of a label of which enough is heard; the rest is not read.

        Raises:
            QuestionError: there is none.
        """
        least = round(SHORTEST_SOUND * STEPS)
        order: list[int] = rng.permutation(self.by_split[split][label]).tolist()
        numbers = list(islice((number for number in order if len(self.heard(number).powers) >= least), count))
        if not numbers:
            raise QuestionError(
                f"no recording of {label!r} for {split} has {SHORTEST_SOUND:g} s from where it is first heard to where "
                "it is last"
            )
        return numbers

    @staticmethod
    def related(labels: Collection[str]) -> set[str]:
        """Those of some labels that have all words of another, and these: as ``dog barking`` and ``dog``."""
        words = {label: frozenset(spoken(label).casefold().split()) for label in labels}
        pairs = ((one, other) for one in labels for other in labels if one != other and words[one] <= words[other])
        return {label for pair in pairs for label in pair}

    def parted(self, split: str) -> list[str]:
        """The labels all recordings of which a silence parts that is longer than `MERGE_GAP`."""
        return [label for label, numbers in self.by_split[split].items() if all(map(self._is_parted, numbers))]

    def _is_parted(self, number: int) -> bool:
        heard = self.heard(number)
        mask = layer_mask(heard, Layer(number, 0, len(heard.powers)), self.silence)
        return len(activity_of([(0, mask)])) > 1

    def heard(self, number: int) -> Heard:
        """What is measured of a recording."""
        if number not in self._heard:
            self._heard[number] = measured(self.samples(number), self.sample_rate, self.silence)
        return self._heard[number]

    def samples(self, number: int) -> Samples:
        """A recording at the rate of clips."""
        return self._kept(number)

    @cached_property
    def _kept(self) -> Callable[[int], Samples]:
        """What gives a recording's samples; clips are mixed on several threads, most of one group after the other."""
        return lru_cache(maxsize=_KEPT)(self._read)

    def _read(self, number: int) -> Samples:
        waveform, rate = self._recordings.waveform(number)
        samples = at_rate(waveform, rate, self.sample_rate)
        if not np.any(samples):
            raise DatasetError(f"{self.source}: recording {self.name(number)!r} is silent; leave it out")
        return samples


def _number(labels: Sequence[str]) -> str:
    return f"{len(labels)} label{'' if len(labels) == 1 else 's'}"


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
