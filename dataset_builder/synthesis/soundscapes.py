"""Isolated sounds as layers of clips: trimmed, repeated, all equally loud; and when each of them is heard, measured.

Time counts in frames of 10 ms. In which of them a sound is heard is measured once, of the recording; a layer that
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
