"""The vocoder of `pitch` and `stretch`: Signalsmith Stretch, by the package python-stretch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_compositionality.support.errors import InputError

from .base import Samples

if TYPE_CHECKING:
    from python_stretch.Signalsmith import Stretch


def check_vocoder() -> None:
    """Refuse to go on without the package.

    Raises:
        InputError: says how it is installed.
    """
    _stretch_class()


def resynthesise(
    waveform: Samples, sample_rate: int, rng: np.random.Generator, *, semitones: float = 0.0, speed: float = 1.0
) -> Samples:
    """Sound with its pitch or its speed changed, float64 [samples / speed]; the package computes in float32."""
    # The seed decides phases; without one it is drawn from the clock.
    stretch = _stretch_class()(int(rng.integers(2**31)))
    stretch.preset(1, float(sample_rate))
    stretch.setTransposeSemitones(semitones)
    stretch.setTimeFactor(speed)
    return np.asarray(stretch.process(waveform.astype(np.float32)[None]), np.float64).reshape(-1)


def _stretch_class() -> type[Stretch]:
    try:
        from python_stretch.Signalsmith import Stretch
    except ImportError as error:
        raise InputError(
            "the transforms pitch and stretch need python-stretch: pip install 'audio-compositionality[transforms]'"
        ) from error
    return Stretch
