"""The transforms of a clip, by one number each; the recipe decides on clips and numbers."""

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
    """The level of a clip."""
    return float(np.sqrt(np.mean(np.square(waveform), dtype=np.float64)))


@dataclass(frozen=True)
class ParameterRange:
    """The range of a parameter, which is drawn uniformly on its scale.

    Attributes:
        low, high: ends, in the unit of the parameter.
        scale: ``linear``, or ``log`` where equal ratios are equal steps.
    """

    low: float
    high: float
    scale: Scale = "linear"

    def value(self, scaled: float) -> float:
        """The parameter at a share of the range, from 0 (`low`) to 1 (`high`)."""
        if self.scale == "log":
            return float(self.low * math.exp(scaled * math.log(self.high / self.low)))
        return float(self.low + scaled * (self.high - self.low))


Change = Callable[[Signal, int, float, np.random.Generator], Signal]


@dataclass(frozen=True, kw_only=True)
class Transform:
    """A transform: one of the table below, or an entry point of an installed package.

    Attributes:
        name: letters and digits.
        unit: of the parameter; empty for a ratio.
        meaning: its effect, for the card; begins with a small letter.
        low, high, scale: see `ParameterRange`.
        apply: the transformed clip, from a clip, its rate in Hz, the parameter and a source of random numbers. Takes
            float64 [samples], not silent, and leaves it unchanged; returns float64 [samples / ``reading(parameter)``],
            to the next whole number below or above.
        limits: cuts a range of parameters to the possible ones at a rate in Hz.
        reading: seconds of sound in a second of the result, by parameter.
        check_available: raises InputError with the way to install it where a package is missing.
        natural_only: whether it is for whole sounds alone, since it analyses and resynthesises sound.
        keeps_level: whether the result is brought to the level of the clip, so that its level does not reveal the
            parameter.
        alters: factors of a source whose labels are wrong afterwards.
        version: of the code; it rises with any change that alters a sample.
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
    """Every sample times one number."""
    return waveform * 10 ** (decibels / 20)


_ORDER = 4

_HIGHEST_CUTOFF = 0.45
"""Largest cutoff, as a share of the sample rate: below half of it, where the filter would do nothing; 7,200 Hz at
16 kHz."""


def _low_pass(waveform: Signal, sample_rate: int, cutoff: float, rng: np.random.Generator) -> Signal:
    """A Butterworth filter, 3 dB down at the cutoff in Hz, as second-order sections, from silence on."""
    from scipy.signal import butter, sosfilt

    return np.asarray(sosfilt(butter(_ORDER, cutoff, output="sos", fs=sample_rate), waveform))


def _noise(waveform: Signal, sample_rate: int, ratio: float, rng: np.random.Generator) -> Signal:
    """White Gaussian noise is added, whose power is exactly so many dB below that of the whole clip.

    It is drawn for every sample: a short, repeated piece would be a tone.
    """
    noise = rng.standard_normal(len(waveform))
    return waveform + noise * (root_mean_square(waveform) / root_mean_square(noise) * 10 ** (-ratio / 20))


def _reverb(waveform: Signal, sample_rate: int, seconds: float, rng: np.random.Generator) -> Signal:
    """The clip plus, equally loud, its convolution with a tail of noise; sound after the clip's end is cut off.

    The impulse response is a direct path of 1 and a tail of Gaussian noise that decays by 60 dB in so many seconds,
    with the same energy.
    """
    from scipy.signal import fftconvolve

    times = np.arange(1, max(round(seconds * sample_rate), 1) + 1) / sample_rate
    tail = rng.standard_normal(len(times)) * 10 ** (-3 * times / seconds)
    response = np.concatenate([[1.0], tail / np.sqrt(np.sum(np.square(tail)))])
    return np.asarray(fftconvolve(waveform, response)[: len(waveform)])


def _pitch(waveform: Signal, sample_rate: int, semitones: float, rng: np.random.Generator) -> Signal:
    """All frequencies times 2^(semitones / 12), formants among them."""
    return _resynthesised(waveform, sample_rate, rng, semitones=semitones)


def _stretch(waveform: Signal, sample_rate: int, speed: float, rng: np.random.Generator) -> Signal:
    """The same sound in 1 / speed of its time: 2 is twice as fast."""
    return _resynthesised(waveform, sample_rate, rng, speed=speed)


def _resynthesised(
    waveform: Signal, sample_rate: int, rng: np.random.Generator, *, semitones: float = 0.0, speed: float = 1.0
) -> Signal:
    """Sound with another pitch or speed, float64 [samples / speed]; the package computes in float32."""
    # The seed decides phases; without one it is drawn from the clock.
    stretch = _vocoder()(int(rng.integers(2**31)))
    stretch.preset(1, float(sample_rate))
    stretch.setTransposeSemitones(semitones)
    stretch.setTimeFactor(speed)
    return np.asarray(stretch.process(waveform.astype(np.float32)[None]), np.float64).reshape(-1)


def _vocoder() -> type[Stretch]:
    """Signalsmith Stretch, by the package python-stretch."""
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
        meaning="every sample times one number",
        low=-24,
        high=0,
        apply=_gain,
        keeps_level=False,
        alters=("amplitude",),
    ),
    Transform(
        name="lowpass",
        unit="Hz",
        meaning="a Butterworth low-pass of order 4; the number is its cutoff (−3 dB)",
        low=500,
        high=8_000,
        scale="log",
        apply=_low_pass,
        limits=lambda sample_rate, span: replace(span, high=min(span.high, _HIGHEST_CUTOFF * sample_rate)),
    ),
    Transform(
        name="noise",
        unit="dB",
        meaning="white Gaussian noise is added; the number is the signal-to-noise ratio over the whole clip",
        low=-10,
        high=40,
        apply=_noise,
        keeps_level=False,
    ),
    Transform(
        name="pitch",
        unit="semitones",
        meaning="all frequencies times one number, at the same speed, by a vocoder (Signalsmith Stretch)",
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
            "the direct path and as much energy in a tail of Gaussian noise; the number is the time in which the tail "
            "decays by 60 dB (RT60), and it is cut at the clip's end"
        ),
        low=0.1,
        high=3,
        apply=_reverb,
    ),
    Transform(
        name="stretch",
        unit="",
        meaning=(
            "faster (above 1) or slower at the same pitch, by a vocoder (Signalsmith Stretch); so much of the "
            "recording is read that the clip keeps its length"
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
    """Names of all transforms: of the table, of installed packages, and registered ones."""
    return tuple(_registry.all())


def load_transform(name: str) -> Transform:
    """The transform of a name.

    Raises:
        InputError: there is none.
    """
    transform = _registry.find(name)
    if transform is None:
        raise InputError(f"unknown transform {name!r}; {nearest(name, list_transforms())}")
    return transform


def register_transform(transform: Transform) -> None:
    """Make a transform known in this process; it takes the place of another of its name."""
    _registry.add(transform)
