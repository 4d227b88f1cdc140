"""What a transform is: a change of a clip by one number."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]
Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class ParameterRange:
    """The values that a parameter is drawn from, uniformly on their scale.

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


@dataclass(frozen=True, kw_only=True)
class Transform(ABC):
    """A transform: a module in this folder, or of an installed package, has one by the name ``TRANSFORM``.

    Attributes:
        name: letters and digits.
        unit: of the parameter; empty for a ratio.
        meaning: what it does, for the card; begins with a small letter.
        low, high, scale: see `ParameterRange`.
        natural_only: whether it is for recordings alone, since it takes sound apart and puts it together again.
        keeps_level: whether the result is brought to the level of the clip, so that level tells nothing about the
            parameter.
        alters: factors of a source whose labels are wrong after it.
        version: of the code; it rises with any change that alters a sample.
    """

    name: str
    unit: str
    meaning: str
    low: float
    high: float
    scale: Scale = "linear"
    natural_only: bool = False
    keeps_level: bool = True
    alters: tuple[str, ...] = ()
    version: int = 1

    @abstractmethod
    def apply(self, waveform: Samples, sample_rate: int, parameter: float, rng: np.random.Generator) -> Samples:
        """The transformed clip.

        Args:
            waveform: float64 [samples], not silent; it is not changed.
            sample_rate: Hz.
            parameter: in `unit`.
            rng: whatever is random is drawn from it.

        Returns:
            float64 [samples / `reading(parameter)`], to the next whole number below or above.
        """

    def limits(self, sample_rate: int, span: ParameterRange) -> ParameterRange:
        """A range of parameters, cut to what clips of a rate allow."""
        return span

    def reading(self, parameter: float) -> float:
        """Seconds of sound that a second of the result is made from."""
        return 1.0

    def check_available(self) -> None:  # noqa: B027
        """Refuse to be used where a package is missing.

        Raises:
            InputError: says how it is installed.
        """


def level(waveform: Samples) -> float:
    """Root mean square of a clip."""
    return float(np.sqrt(np.mean(np.square(waveform))))
