"""The renderer: sounds as events of clips, the measured times at which each is audible, and clips in exact 16 bits.

An event is an entry of some `Sounds` from one sample of a clip to another. The clips of a row are mixed with one gain,
and each event is rounded to 16 bits before it is added, so that clips that share events differ by whole events, sample
by sample. The 10 ms frames in which a sound is audible are measured once; an event that repeats the sound is audible in
the same frames, so that the activity of a clip is known before it is mixed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..data import DatasetError, Pcm16, Rendering, Waveform
from ..sounds.annotations import STEPS, Activity, union
from ..sounds.entries import Sounds
from ..sounds.tones import HeardSpec, default_timbres
from .effects import Floats, Signal, root_mean_square

if TYPE_CHECKING:
    from ..data import Row
    from ..recipes.base import Drawn, Recipe


SHORTEST_PERIOD = 0.3
"""Least seconds after which a sound is repeated: a shorter one is padded with silence, too short to split it."""

MERGE_GAP = 20
"""Most frames of silence that do not split an event; see `Rules.merge_gap`."""

PEAK = 0.98
"""Largest sample of the clips that share a gain, as a share of full scale."""

_SILENT = 1e-6
"""Largest sample of silence: a constant offset is removed no better than this."""

_KEPT = 64
"""Number of sounds whose samples are cached."""


@dataclass(frozen=True)
class Event:
    """An entry of some sounds from one sample of a clip to another.

    Attributes:
        entry: its index among the sounds.
        start: its first sample.
        stop: the sample after the last.
        gain: its root mean square, relative to other events.
        offset: samples of the repeated sound before the first sample of the event.

    Raises:
        InputError: it does not end after it starts, or starts before the clip does.
    """

    entry: int
    start: int
    stop: int
    gain: float = 1.0
    offset: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise InputError(
                f"an event is from sample {self.start} to {self.stop}; start must be less than stop, and not negative"
            )

    @property
    def length(self) -> int:
        """Samples."""
        return self.stop - self.start

    def moved(self, start: int) -> Event:
        """Return the same event, of the same length, starting at another sample."""
        return replace(self, start=start, stop=start + self.length)


Clip = Sequence[Event]
"""The events of a clip; if empty, silence."""


@dataclass(frozen=True)
class _Cycle:
    """A sound as it is repeated.

    Attributes:
        samples: one period, float32; unless the sound is a loop, its end is crossfaded into its beginning.
        head: its first frame before the fade.
        length: samples between the silences at both ends; None for a loop.
        level: root mean square of the period.
    """

    samples: Waveform
    head: Waveform
    length: int | None
    level: float


@dataclass(frozen=True)
class _Measured:
    """The measurements of a cycle, which are kept for all cycles.

    Attributes:
        energy: cumulative energy of the period up to each step, from 0.
        step: samples per step, a divisor of a frame and of the period.
        head: energy of `_Cycle.head`.
        peak: largest sample if the period's root mean square is 1.
        length: see `_Cycle`.
    """

    energy: NDArray[np.float64]
    step: int
    head: float
    peak: float
    length: int | None

    @property
    def period(self) -> int:
        """Samples."""
        return self.step * (len(self.energy) - 1)


def check_whole_steps(sample_rate: int) -> None:
    """Check that a hundredth of a second is a whole number of samples.

    Args:
        sample_rate: sample rate of clips in Hz.

    Raises:
        InputError: it is not a whole number.
    """
    if sample_rate % STEPS:
        raise InputError(f"sample_rate is {sample_rate:,}; it must be a multiple of {STEPS}, e.g. 44,100")


class EventSounds:
    """Sounds as events: trimmed, repeated, equally loud, and measured.

    A loop is played unchanged from its start. Any other sound is trimmed of the silence at both ends, centred around
    zero, and repeated after `SHORTEST_PERIOD` or more; its end is crossfaded into its beginning over 10 ms.

    Attributes:
        sounds: the sounds.
        sample_rate: sample rate of clips in Hz; a multiple of 100.
        silence: decibels below the loudest frame of a sound; softer frames are silent.
    """

    def __init__(self, sounds: Sounds, sample_rate: int, silence: float = -35.0, *, levels: bool = False) -> None:
        """Read nothing yet.

        Args:
            sounds: see above.
            sample_rate: see above.
            silence: see above.
            levels: whether sounds keep the levels of their entries; otherwise all are equally loud.

        Raises:
            InputError: frames of 10 ms are not a whole number of samples.
        """
        check_whole_steps(sample_rate)
        self.sounds = sounds
        self.sample_rate = sample_rate
        self.silence = silence
        self._levels = levels
        self._hop = sample_rate // STEPS
        self._by_entry: dict[int, _Measured] = {}

    def length(self, entry: int) -> int | None:
        """Return the samples of a sound between the silences at both ends; None for a loop, which has no end.

        Raises:
            DatasetError: the sound is silent; also raised by the methods that follow.
        """
        return None if self.sounds.entries[entry].loop else self._measured(entry).length

    def period(self, entry: int) -> int:
        """Return the number of samples after which a sound is repeated."""
        return self._measured(entry).period

    def samples(self, event: Event) -> Waveform:
        """Return the samples of an event alone, float32 [length].

        Its root mean square is its `loudness`; for a loop, in each whole period. A sound rises and falls over 10 ms by
        half a cosine; a loop does so only where it is cut.

        Raises:
            DatasetError: the sound is silent in this part.
        """
        cycle, hop = self._cycle(event.entry), self._hop
        start = event.offset % len(cycle.samples)
        samples = np.resize(np.roll(cycle.samples, -start) if start else cycle.samples, event.length)
        if not event.offset:
            samples[:hop] = cycle.head[: event.length]
        is_loop = cycle.length is None
        rise = (np.sin(np.pi / 2 * (np.arange(min(hop, event.length)) + 0.5) / hop) ** 2).astype(np.float32)
        if not is_loop or event.offset:
            samples[: len(rise)] *= rise
        if not is_loop or (event.offset + event.length) % len(cycle.samples):
            samples[len(samples) - len(rise) :] *= rise[::-1]
        loud = cycle.level if is_loop else root_mean_square(samples)
        if not loud > 0:
            raise DatasetError(f"{self._name(event.entry)} is silent in the part that would be used; leave it out")
        samples *= np.float32(self.loudness(event) / loud)
        return np.asarray(samples)

    def loudness(self, event: Event) -> float:
        """Return the root mean square of an event: its gain, times its entry's level if levels are kept."""
        return event.gain * 10 ** (self.sounds.entries[event.entry].level / 20) if self._levels else event.gain

    def powers(self, event: Event) -> NDArray[np.float64]:
        """Return the mean power of each frame of an event, float64 [frames], of the sound without fades.

        Args:
            event: its offset must be a whole number of frames; a partial last frame counts as a whole one.
        """
        measured, hop = self._measured(event.entry), self._hop
        places = np.arange(-(-event.length // hop) + 1) * hop
        turns, within = np.divmod((event.offset + places) // measured.step, len(measured.energy) - 1)
        energy = turns * measured.energy[-1] + measured.energy[within]
        powers: NDArray[np.float64] = np.diff(energy) / hop
        if not event.offset:
            powers[0] = measured.head / hop
        return powers

    def heard(self, event: Event, behind: float = 0.0) -> NDArray[np.bool_]:
        """Return the frames in which an event is audible: not below `silence`, relative to its loudest frame.

        Args:
            event: see `powers`.
            behind: root mean square of the background, which masks softer frames.
        """
        powers = self.powers(event)
        least = powers.max() * 10 ** (self.silence / 10)
        if behind:
            least = max(least, powers.mean() * (behind / self.loudness(event)) ** 2)
        return np.asarray(powers >= least, np.bool_)

    def activity(self, events: Iterable[Event], behind: float = 0.0) -> Activity:
        """Return when one of several events is audible: intervals in frames; gaps up to `MERGE_GAP` are closed.

        Args:
            events: e.g. all events of one label; see `powers`.
            behind: see `heard`.
        """
        intervals = []
        for event in events:
            first = round(event.start / self._hop)
            spans = self._spans(event.entry, event.length, event.gain, event.offset, behind)
            intervals += [(first + start, first + stop) for start, stop in spans]
        return union(intervals, MERGE_GAP)

    @cached_property
    def _spans(self) -> Callable[[int, int, float, int, float], Activity]:
        """Return a function for an event's audible spans from its start, cached because clips share events."""

        def spans(entry: int, length: int, gain: float, offset: int, behind: float) -> Activity:
            mask = self.heard(Event(entry, 0, length, gain, offset), behind)
            edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
            return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

        return lru_cache(maxsize=_KEPT)(spans)

    def peak(self, event: Event) -> float:
        """Return an upper bound of the samples of an event, ignoring fades."""
        measured, loudness = self._measured(event.entry), self.loudness(event)
        if measured.length is None:
            return measured.peak * loudness
        mean = measured.energy[-1] / measured.period
        return float(measured.peak * loudness * math.sqrt(mean / max(float(self.powers(event).mean()), 1e-30)))

    def _name(self, entry: int) -> str:
        return f"{self.sounds.source}: recording {self.sounds.entries[entry].id!r}"

    def _measured(self, entry: int) -> _Measured:
        if entry not in self._by_entry:
            cycle = self._cycle(entry)
            step = math.gcd(len(cycle.samples), self._hop)
            steps = np.square(cycle.samples, dtype=np.float64).reshape(-1, step).sum(axis=1)
            head = float(np.square(cycle.head, dtype=np.float64).sum())
            peak = float(max(np.abs(cycle.samples).max(), np.abs(cycle.head).max())) / cycle.level
            self._by_entry[entry] = _Measured(np.concatenate(([0.0], np.cumsum(steps))), step, head, peak, cycle.length)
        return self._by_entry[entry]

    @cached_property
    def _cycle(self) -> Callable[[int], _Cycle]:
        """Return a function from an entry to its cycle, cached because several threads mix clips row by row."""
        return lru_cache(maxsize=_KEPT)(self._read)

    def _read(self, entry: int) -> _Cycle:
        waveform, rate = self.sounds.waveform(entry)
        samples = np.asarray(resampled(waveform, rate, self.sample_rate), np.float64)
        if self.sounds.entries[entry].loop:
            cycle, head, length = samples, samples[: self._hop], None
        else:
            # A constant offset is inaudible.
            cycle, head, length = self._repeatable(samples - samples.mean())
        if not np.abs(cycle).max(initial=0.0) > _SILENT:
            raise DatasetError(f"{self._name(entry)} is silent; leave it out")
        return _Cycle(cycle.astype(np.float32), head.astype(np.float32), length, root_mean_square(cycle))

    def _repeatable(self, samples: Signal) -> tuple[Signal, Signal, int]:
        """Return a period of a trimmed sound, its first frame, and its length, in whole frames."""
        hop = self._hop
        padded = np.zeros(max(1, -(-len(samples) // hop)) * hop)
        padded[: len(samples)] = samples
        powers = np.square(padded).reshape(-1, hop).mean(axis=1)
        loud = np.flatnonzero(powers >= powers.max() * 10 ** (self.silence / 10))
        part = padded[int(loud[0]) * hop : (int(loud[-1]) + 1) * hop]
        # One frame shorter than the sound: its last frame is crossfaded into the first, so that both powers add up to
        # one.
        period = max(len(part) // hop, round(SHORTEST_PERIOD * STEPS)) - 1
        once = np.zeros((period + 1) * hop)
        once[: len(part)] = part
        head, cycle = once[:hop].copy(), once[: period * hop]
        rise = np.sin(np.pi / 2 * (np.arange(hop) + 0.5) / hop)
        cycle[:hop] = head * rise + once[period * hop :] * rise[::-1]
        return cycle, head, len(part)


def resampled(waveform: Signal, rate: int, sample_rate: int) -> Signal:
    """Return samples at another rate."""
    if rate == sample_rate:
        return waveform
    import soxr

    return np.asarray(soxr.resample(waveform, rate, sample_rate), np.float64)


def middle_of(source: Signal, length: int) -> Signal:
    """Return the middle `length` samples of a sound."""
    start = (len(source) - length) // 2
    return source[start : start + length]


def mix(
    clips: Sequence[Clip],
    samples_of: Callable[[Event], Floats],
    length: int,
    *,
    level: float | None = None,
    most: float | None = None,
    peak: float = PEAK,
) -> list[Pcm16]:
    """Return the clips of a row with one gain that brings their largest sample to a peak.

    An event is rounded to 16 bits once, then added to every clip that has it.

    Args:
        clips: the events of each clip.
        samples_of: returns the samples of an event alone, [its length], independent of its position, with the loudness
            of its gain; nothing here changes the loudness of a single event. The samples are scaled in place.
        length: samples of each clip.
        level: root mean square of the loudest clip, used instead of the peak as far as the peak permits; the gain is
            then a whole number of thousandths of a decibel.
        most: largest gain, so that clips that would exceed the peak are lowered, and others unchanged.
        peak: largest sample, as a share of full scale.

    Returns:
        int16 [length] for each clip.

    Raises:
        InputError: an event ends after the clip.
    """
    for event in (event for events in clips for event in events):
        if event.stop > length:
            raise InputError(f"an event ends at sample {event.stop:,} of a clip that has {length:,}")
    placed = [[(event.start, _sound(event)) for event in events] for events in clips]
    sounds = {key: samples_of(key) for key in dict.fromkeys(key for events in placed for _, key in events)}
    clip: Floats = np.empty(length, np.result_type(np.float32, *sounds.values()))
    largest = loudest = 0.0
    for events in placed:
        _add(clip, events, sounds)
        largest = max(largest, float(clip.max()), -float(clip.min()))
        if level is not None:
            loudest = max(loudest, root_mean_square(clip))
    if not largest:
        return [np.zeros(length, np.int16) for _ in clips]
    gain = peak * 2**15 / largest
    if level is not None:
        # Round so that the last bits of a processor's sums do not affect any sample.
        gain = 10 ** (math.floor(20_000 * math.log10(min(gain, level * 2**15 / loudest))) / 20_000)
    if most is not None:
        gain = min(gain, most * 2**15)
    for samples in sounds.values():
        samples *= samples.dtype.type(gain)
        np.rint(samples, out=samples)
    return [_add(clip, events, sounds).astype(np.int16) for events in placed]


def _sound(event: Event) -> Event:
    """Return an event without its position: events that are equal then have the same samples."""
    return event.moved(0) if event.start else event


def _add(clip: Floats, events: Sequence[tuple[int, Event]], sounds: Mapping[Event, Floats]) -> Floats:
    """Set a clip to the sum of events placed at their first samples; exact for rounded events."""
    clip[:] = 0
    for start, key in events:
        clip[start : start + key.length] += sounds[key]
    return clip


def exact_clips(layers: Sequence[Signal], clips: Sequence[Sequence[int]]) -> list[Pcm16]:
    """Return clips that are sums of layers of the clip's length; see `mix`.

    Args:
        layers: float64 [samples] each.
        clips: indices of the layers of each clip.

    Returns:
        int16 [samples] for each clip.
    """
    length = len(layers[0])
    events = [[Event(place, 0, length) for place in clip] for clip in clips]
    return mix(events, lambda event: layers[event.entry].copy(), length)


class DrawnRendering(Rendering):
    """The rows that a recipe draws, and their sound, mixed on demand; see `Rendering`."""

    _renderings: ClassVar[WeakValueDictionary[Any, Any]] = WeakValueDictionary()

    _latest: ClassVar[deque[Any]] = deque(maxlen=4)
    """Keeps renderings in use: the next model, the comparison and the report ask for the same data."""

    @classmethod
    def of_recipe(cls, recipe: Recipe[Any], spec: Any, splits: tuple[str, ...] = ()) -> Self:
        """Return the rendering of a spec, drawn once: equal specs share it while it is in use or recent.

        Args:
            recipe: the recipe that draws the rows.
            spec: settings of the rows.
            splits: splits of the rows; by default the recipe's splits.
        """
        # In a notebook, a recipe may be redefined under the same name.
        key = (recipe.name, recipe.version, type(recipe), type(recipe).draw, spec, splits)
        rendering: Self = cls._renderings.setdefault(key, cls(recipe, spec, splits))
        if rendering not in cls._latest:
            cls._latest.append(rendering)
        return rendering

    def __init__(self, recipe: Recipe[Any], spec: Any, splits: tuple[str, ...] = ()) -> None:
        """Draw nothing until it is needed."""
        self._recipe, self.spec, self._splits = recipe, spec, splits or recipe.splits
        rate = recipe.sample_rate(spec)
        self.sample_rate = spec.sample_rate if rate is None else rate

    @cached_property
    def sounds(self) -> Sounds:
        """Return the sounds of the clips: tones, or a user's sounds."""
        return self.spec.heard if isinstance(self.spec, HeardSpec) else default_timbres()

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """Return the rows with their events; an impossible sample rate is refused before any clip is mixed."""
        drawn = tuple(self._recipe.draw(self.spec, self.sounds))
        if not all(callable(one.clips) for one in drawn):
            _ = self._events
        return drawn

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Return the rows without their audio."""
        split = self._splits[-1]
        return tuple({"id": one.row["id"], "split": split, **one.row} for one in self.drawn)

    @cached_property
    def _events(self) -> EventSounds:
        return EventSounds(self.sounds, self.sample_rate)

    def plan(self, index: int) -> Any:
        """Return the events of each clip of a row, or the function that makes its clips."""
        return self.drawn[index].clips

    def clips(self, index: int) -> Sequence[Pcm16]:
        """Return the clips of a row, each int16 [samples], with one gain."""
        clips, mixed = self.drawn[index].clips, self.drawn[index].mixed
        if callable(clips):
            return clips()
        if mixed is not None:
            return mixed(clips)
        # If a spec does not give the length, clips last as long as the events of a row.
        last = max((event.stop for events in clips for event in events), default=0)
        return mix(clips, self._events.samples, getattr(self.spec, "num_samples", last))
