"""The transforms of a clip, each with one parameter; the recipe decides on clips and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

if TYPE_CHECKING:
    from python_stretch.Signalsmith import Stretch


Signal = NDArray[np.float64]
Floats = NDArray[np.float32] | Signal
Scale = Literal["linear", "log"]


def root_mean_square(waveform: Floats) -> float:
    """Return the root mean square of a clip."""
    return float(np.sqrt(np.mean(np.square(waveform), dtype=np.float64)))


@dataclass(frozen=True)
class ParameterRange:
    """The range of a parameter, which is drawn uniformly on its scale.

    Attributes:
        low, high: ends, in the unit of the parameter.
        scale: ``linear``, or ``log``, on which equal ratios are equal steps.
    """

    low: float
    high: float
    scale: Scale = "linear"

    def value(self, scaled: float) -> float:
        """Return the parameter at a share of the range, from 0 (`low`) to 1 (`high`)."""
        if self.scale == "log":
            return float(self.low * math.exp(scaled * math.log(self.high / self.low)))
        return float(self.low + scaled * (self.high - self.low))


Change = Callable[[Signal, int, float, np.random.Generator], Signal]


@dataclass(frozen=True, kw_only=True)
class Transform:
    """A transform: one in the table below, or an entry point of an installed package.

    Attributes:
        name: letters and digits.
        unit: unit of the parameter; empty for a ratio.
        meaning: its effect, for the card; begins with a lower-case letter.
        low, high, scale: see `ParameterRange`.
        apply: returns the transformed clip, given a clip, its rate in Hz, the parameter and a random generator. The
            clip is float64 [samples], not silent, and not changed; the result is float64 [samples /
            ``reading(parameter)``], rounded up or down.
        limits: restricts a range of parameters to the possible ones at a rate in Hz.
        reading: returns the seconds of sound per second of the result, given the parameter.
        check_available: raises InputError that says how to install a missing package.
        natural_only: whether it is for whole sounds only, since it analyses and resynthesises sound.
        keeps_level: whether the result gets the level of the clip, so that its level does not reveal the parameter.
        alters: attributes of a source whose labels are wrong afterwards.
        version: version of the code; raised with any change that alters a sample.
    """

    name: str
    unit: str
    meaning: str
    low: float
    high: float
    apply: Change
    scale: Scale = "linear"
    limits: Callable[[int, ParameterRange], ParameterRange] = lambda sample_rate, span: span
    reading: Callable[[float], float] = lambda parameter: 1.0
    check_available: Callable[[], object] = lambda: None
    natural_only: bool = False
    keeps_level: bool = True
    alters: tuple[str, ...] = ()
    version: int = 1


def _gain(waveform: Signal, sample_rate: int, decibels: float, rng: np.random.Generator) -> Signal:
    """Multiply every sample by one number."""
    return waveform * 10 ** (decibels / 20)


_ORDER = 4

_HIGHEST_CUTOFF = 0.45
"""Largest cutoff as a share of the sample rate: below half of it, where the filter would have no effect; 7,200 Hz at
16 kHz."""


def _low_pass(waveform: Signal, sample_rate: int, cutoff: float, rng: np.random.Generator) -> Signal:
    """Apply a Butterworth filter, 3 dB down at the cutoff in Hz, as second-order sections, starting from silence."""
    from scipy.signal import butter, sosfilt

    return np.asarray(sosfilt(butter(_ORDER, cutoff, output="sos", fs=sample_rate), waveform))


def _noise(waveform: Signal, sample_rate: int, ratio: float, rng: np.random.Generator) -> Signal:
    """Add white Gaussian noise with a power exactly `ratio` dB below the power of the whole clip.

    It is drawn for every sample: a short, repeated piece would be a tone.
    """
    noise = rng.standard_normal(len(waveform))
    return waveform + noise * (root_mean_square(waveform) / root_mean_square(noise) * 10 ** (-ratio / 20))


def _reverb(waveform: Signal, sample_rate: int, seconds: float, rng: np.random.Generator) -> Signal:
    """Add to the clip, equally loud, its convolution with a tail of noise; sound after the clip's end is cut off.

    The impulse response is a direct path of 1 and a tail of Gaussian noise with the same energy, which decays by 60 dB
    in `seconds`.
    """
    from scipy.signal import fftconvolve

    times = np.arange(1, max(round(seconds * sample_rate), 1) + 1) / sample_rate
    tail = rng.standard_normal(len(times)) * 10 ** (-3 * times / seconds)
    response = np.concatenate([[1.0], tail / np.sqrt(np.sum(np.square(tail)))])
    return np.asarray(fftconvolve(waveform, response)[: len(waveform)])


def _pitch(waveform: Signal, sample_rate: int, semitones: float, rng: np.random.Generator) -> Signal:
    """Multiply all frequencies by 2^(semitones / 12), including formants."""
    return _resynthesised(waveform, sample_rate, rng, semitones=semitones)


def _stretch(waveform: Signal, sample_rate: int, speed: float, rng: np.random.Generator) -> Signal:
    """Play the same sound in 1 / speed of its time: 2 is twice as fast."""
    return _resynthesised(waveform, sample_rate, rng, speed=speed)


def _resynthesised(
    waveform: Signal, sample_rate: int, rng: np.random.Generator, *, semitones: float = 0.0, speed: float = 1.0
) -> Signal:
    """Return sound with another pitch or speed, float64 [samples / speed]; the package computes in float32."""
    # The seed determines phases; without a seed it is drawn from the clock.
    stretch = _vocoder()(int(rng.integers(2**31)))
    stretch.preset(1, float(sample_rate))
    stretch.setTransposeSemitones(semitones)
    stretch.setTimeFactor(speed)
    return np.asarray(stretch.process(waveform.astype(np.float32)[None]), np.float64).reshape(-1)


def _vocoder() -> type[Stretch]:
    """Return Signalsmith Stretch, from the package python-stretch."""
    try:
        from python_stretch.Signalsmith import Stretch
    except ImportError as error:
        raise InputError(
            "the transforms pitch and stretch need python-stretch: pip install 'audio-compositionality[transforms]'"
        ) from error
    return Stretch


_TABLE = (
    Transform(
        name="gain",
        unit="dB",
        meaning="multiplies every sample by one number",
        low=-24,
        high=0,
        apply=_gain,
        keeps_level=False,
        alters=("amplitude",),
    ),
    Transform(
        name="lowpass",
        unit="Hz",
        meaning="a Butterworth low-pass of order 4; the parameter is its cutoff (−3 dB)",
        low=500,
        high=8_000,
        scale="log",
        apply=_low_pass,
        limits=lambda sample_rate, span: replace(span, high=min(span.high, _HIGHEST_CUTOFF * sample_rate)),
    ),
    Transform(
        name="noise",
        unit="dB",
        meaning="adds white Gaussian noise; the parameter is the signal-to-noise ratio over the whole clip",
        low=-10,
        high=40,
        apply=_noise,
        keeps_level=False,
    ),
    Transform(
        name="pitch",
        unit="semitones",
        meaning="multiplies all frequencies by one number, at the same speed, by a vocoder (Signalsmith Stretch)",
        low=-12,
        high=12,
        apply=_pitch,
        check_available=_vocoder,
        natural_only=True,
        alters=("pitch",),
    ),
    Transform(
        name="reverb",
        unit="s",
        meaning=(
            "the direct path, and a tail of Gaussian noise with the same energy; the parameter is the time in "
            "which the tail "
            "decays by 60 dB (RT60); sound after the clip's end is cut off"
        ),
        low=0.1,
        high=3,
        apply=_reverb,
    ),
    Transform(
        name="stretch",
        unit="",
        meaning=(
            "faster (above 1) or slower at the same pitch, by a vocoder (Signalsmith Stretch); the clip keeps "
            "its length, "
            "because as much of the recording is read as needed"
        ),
        low=0.5,
        high=2,
        scale="log",
        apply=_stretch,
        # A clip at twice the speed uses twice as much sound, so that nothing is padded, repeated or cut.
        reading=float,
        check_available=_vocoder,
        natural_only=True,
        alters=("rate",),
    ),
)

_registry: Registry[Transform] = Registry(
    None, "", "audio_compositionality.transforms", lambda transform: transform.name, listed=_TABLE
)


def list_transforms() -> tuple[str, ...]:
    """Return the names of all transforms: in the table, in installed packages, and registered ones."""
    return tuple(_registry.all())


def load_transform(name: str) -> Transform:
    """Return a transform by name.

    Raises:
        InputError: there is no transform of this name.
    """
    transform = _registry.find(name)
    if transform is None:
        raise InputError(f"unknown transform {name!r}; {nearest(name, list_transforms())}")
    return transform


def register_transform(transform: Transform) -> None:
    """Make a transform known in this process; it replaces any transform of the same name."""
    _registry.add(transform)
