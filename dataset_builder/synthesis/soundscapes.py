"""Isolated sounds as tracks of clips: trimmed, repeated, all equally loud; and when each of them is heard, measured.

Time counts in frames of 10 ms. In which of them a sound is heard is measured once, of the recording; a track that
repeats it is heard in the same frames, so that the events of a clip are known before it is mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..annotations.intervals import STEPS, Activity, union
from ..data import Pcm16
from .instances import resampled
from .natural import concatenated
from .transforms.base import Samples, level

SHORTEST_SOUND = 0.1
"""Seconds between the silence at both ends of a recording; of less, nobody tells what it is."""

SHORTEST_PERIOD = 0.3
"""Seconds after which a sound is repeated, at least: a shorter one is followed by silence, too little to part it."""

MERGE_GAP = 20
"""Frames of silence that part nothing; see `Rules.merge_gap`."""

CLIP_LEVEL = 0.02
"""Root mean square of every clip: -34 dB, so that what is heard for a moment need not be cut at full scale."""

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
class Track:
    """A recording in a clip.

    Attributes:
        number: of the recording.
        start: first frame in the clip.
        stop: frame after the last.
        level: decibels, beside other tracks of the clip.
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
                f"a track is from frame {self.start} to {self.stop}; start is less than stop, and not negative"
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


def track_powers(heard: Heard, track: Track) -> NDArray[np.float64]:
    """The power of each frame of a track, float64 [length], before any gain."""
    once = np.zeros(heard.period)
    once[: len(heard.powers)] = heard.powers[: heard.period]
    places = track.skipped + np.arange(track.length)
    powers = once[places % heard.period]
    if len(heard.powers) > heard.period:
        # Where two repetitions are faded into each other, both are half there.
        seams = (places % heard.period == 0) & (places > 0)
        powers[seams] = (heard.powers[0] + heard.powers[-1]) / 2
    return powers


def track_mask(heard: Heard, track: Track, silence: float, snr: float | None = None) -> Mask:
    """The frames [length] of a track in which it is heard.

    Args:
        heard: what is measured of its recording.
        track: of it.
        silence: decibels below its loudest frame; what is softer is silent.
        snr: of what is behind it, `background_of`; what is softer than that is not heard.
    """
    powers = track_powers(heard, track)
    least = powers.max() * 10 ** (silence / 10)
    if snr is not None:
        least = max(least, powers.mean() * 10 ** (-(snr + track.level) / 10))
    return np.asarray(powers >= least, np.bool_)


def track_level(heard: Heard, track: Track) -> float:
    """The root mean square of a track before any gain, but for fades."""
    return float(np.sqrt(track_powers(heard, track).mean()))


def activity_of(tracks: Iterable[tuple[int, Mask]]) -> Activity:
    """When a label is heard: intervals in frames; silences of at most `MERGE_GAP` are none.

    Args:
        tracks: of the label, first frame and `track_mask` of each.
    """
    intervals = []
    for first, mask in tracks:
        edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
        starts, stops = edges[::2].tolist(), edges[1::2].tolist()
        intervals += [(first + start, first + stop) for start, stop in zip(starts, stops, strict=True)]
    return union(intervals, MERGE_GAP)


def track_samples(samples: Samples, heard: Heard, track: Track, sample_rate: int) -> Samples:
    """A track by itself, float64 [length]: its root mean square is 1 at a level of 0 dB.

    The sound is repeated, faded from one time to the next over a frame, as both ends of the track are.

    Args:
        samples: of the recording, as `at_rate` gives them.
        heard: what is measured of it.
        track: of it.
        sample_rate: Hz.
    """
    hop = sample_rate // STEPS
    sound = np.zeros((heard.period + 1) * hop)
    part = samples[heard.start * hop : (heard.start + len(heard.powers)) * hop]
    sound[: len(part)] = part
    last = track.skipped + track.length
    count = -(-last // heard.period)
    repeated = concatenated([sound] * count, [hop] * (count - 1))[track.skipped * hop : last * hop]
    rise = np.sin(np.pi / 2 * (np.arange(hop) + 0.5) / hop) ** 2
    repeated[:hop] *= rise
    repeated[-hop:] *= rise[::-1]
    return np.asarray(repeated * (10 ** (track.level / 20) / level(repeated)), np.float64)


def mixed(layers: Iterable[tuple[int, Samples]], length: int) -> Samples:
    """Layers at the sample that each begins with, float64 [length], at a root mean square of `CLIP_LEVEL`."""
    clip = np.zeros(length)
    for start, samples in layers:
        clip[start : start + len(samples)] += samples
    return clip * (CLIP_LEVEL / level(clip))


def background_of(samples: Samples, length: int, snr: float, rate: int) -> Samples:
    """A sound behind all tracks, float64 [length], so many decibels below a track of 0 dB; repeated with fades."""
    hop = rate // STEPS
    period = max(len(samples) - hop, 1)
    count = max(1, -(-length // period))
    repeated = concatenated([samples] * count, [hop] * (count - 1))[:length]
    return np.asarray(repeated * (10 ** (-snr / 20) / level(repeated)), np.float64)


def to_pcm(clip: Samples) -> Pcm16:
    """A clip as int16 [samples]."""
    return np.rint(clip * 2**15).clip(-(2**15), 2**15 - 1).astype(np.int16)


def largest_sample(tracks: Sequence[tuple[Heard, Track]], frames: int) -> float:
    """What no sample of a clip is larger than, to within how much its sounds have in common.

    Args:
        tracks: of the clip.
        frames: of the clip.
    """
    peaks, power = np.zeros(frames), 0.0
    for heard, track in tracks:
        gain = 10 ** (track.level / 20)
        peaks[track.start : track.stop] += gain * heard.peak / track_level(heard, track)
        power += gain**2 * track.length
    return float(peaks.max() * CLIP_LEVEL / np.sqrt(power / frames))
