"""Sounds as sources of clips: an excerpt of each at one level, through a channel of its own, in exact 16 bits.

A source lasts the whole clip. It is a window, drawn at random, of its recording repeated again and again with a pause
in between: of all windows where a clip holds a repetition, else of those that have the loudest part of the recording in
them. So two sources of one recording are never the same samples, and what is loudest in it is always heard.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from ..columns import NUMBER, TEXT, Column
from ..data import DatasetError
from .mixing import resampled
from .pool import SoundPool, SoundsSpec
from .sources import random_generator
from .transforms import Samples, root_mean_square

PAUSES = (0.15, 0.45)
"""Shortest and longest pause between two repetitions, in seconds."""

KNOTS = 8
LOWEST, HIGHEST = 60.0, 8_000.0
"""Knots of the random filter, evenly on the logarithm of frequency, in Hz."""

PLACED_COLUMNS = (
    Column("eq_db", NUMBER, "standard deviation of the filters at their knots"),
    Column("domain", TEXT, "what the recordings are"),
)
"""The last columns of rows of placed sounds."""

SILENT = 1e-4
"""Root mean square of an excerpt, -80 dB: what is softer is the rounding of its file."""

_NEAR = 0.99
"""Share of the energy of the loudest part from which another counts as loud: the first one is taken, so that of the
periods of a tone, which are equal but for rounding, it is the same on every machine."""

_TAIL = 0.1
"""Seconds of silence behind a clip while it is filtered, so that its end does not sound at its beginning."""


class PlacedSpec(SoundsSpec):
    """What specs of clips have in common in which every source is a sound over the whole clip."""

    eq_db: float = Field(
        4.0,
        ge=0,
        le=20,
        description="Standard deviation, in dB, of the random smooth filter that each source passes, at its knots.",
    )

    @property
    def placing(self) -> Mapping[str, Any]:
        """What cards say of it, for the template ``placing.md``."""
        return {"pauses": PAUSES, "knots": KNOTS, "lowest": LOWEST, "highest": HIGHEST}

    @property
    def of_row(self) -> Mapping[str, Any]:
        """What a row has in `PLACED_COLUMNS`."""
        return {"eq_db": self.eq_db, "domain": self.domain_name}


class PlacedSounds:
    """Sounds as sources of the clips of a spec.

    Attributes:
        spec: of the clips.
        pool: the sounds by label and condition.
    """

    def __init__(self, spec: PlacedSpec, pool: SoundPool) -> None:
        """Nothing is read."""
        self.spec, self.pool = spec, pool

    def source(self, number: int, stream: int, *place: int) -> Samples:
        """A sound as a source over a clip, float64 [samples], at a level of 1.

        Args:
            number: of the sound.
            stream: of random numbers; see `random_generator`.
            place: of the source, which has random numbers of its own.

        Raises:
            DatasetError: it is silent.
        """
        spec = self.spec
        waveform, rate = self.pool.sounds.waveform(number)
        rng = random_generator(spec.seed, stream, *place)
        try:
            return place_recording(waveform, rate, spec.num_samples, spec.sample_rate, spec.eq_db, rng)
        except DatasetError as error:
            raise DatasetError(f"{self.pool.source}: recording {self.pool.entries[number].id!r} {error}") from error

    def together(self, numbers: Sequence[int], stream: int, *place: int) -> Samples:
        """Sounds together, at a level of 1: the n-th has the random numbers of `place` and n."""
        sources = [self.source(number, stream, *place, n) for n, number in enumerate(numbers)]
        try:
            return mix_together(sources)
        except DatasetError as error:
            raise DatasetError(f"{self.pool.source}: {', '.join(self.pool.ids(numbers))} {error}") from error


def place_recording(
    waveform: Samples, rate: int, length: int, sample_rate: int, eq_db: float, rng: np.random.Generator
) -> Samples:
    """A recording as a source of a clip: a window, a random smooth filter, one gain to a level of 1, a random polarity.

    Nobody hears polarity, and a linear encoder, which tells two instances of a class apart by nothing else than their
    samples, is at chance by it: what two waveforms have in common by their shape, an offset of FM tones for one, is of
    either sign as often.

    Args:
        waveform: float64 [samples].
        rate: of the recording, in Hz.
        length: samples of the clip.
        sample_rate: of the clip, in Hz.
        eq_db: standard deviation of the filter's gain at a knot, in decibels.
        rng: draws pause, phase, filter and polarity, the same count of numbers whatever the recording.

    Returns:
        float64 [length], whose root mean square is 1.

    Raises:
        DatasetError: it is silent where it is loudest; the end of a sentence that begins with its name.
    """
    pause, phase = float(rng.uniform(*PAUSES)), float(rng.random())
    gains = eq_db * rng.standard_normal(KNOTS)
    polarity = float(rng.choice((-1, 1)))
    clip = lay_out(resampled(waveform, rate, sample_rate), length, round(pause * sample_rate), phase)
    loudness = root_mean_square(clip)
    if not loudness > SILENT:
        heard = f"{-20 * math.log10(loudness):.0f} dB below full scale" if loudness > 0 else "no sound at all"
        raise DatasetError(f"is silent where it is loudest ({heard}): leave it out")
    clip = equalise(clip, sample_rate, gains)
    return clip * (polarity / root_mean_square(clip))


def lay_out(waveform: Samples, length: int, pause: int, phase: float) -> Samples:
    """A window of a recording that is repeated for ever.

    Args:
        waveform: float64 [samples], at the rate of the clip.
        length: samples of the window.
        pause: samples of silence between two repetitions.
        phase: which window it is of those that serve, from 0 to 1: all of a period where that is not longer than a
            window, else those in which the loudest part is whole, which is half a window long at most.

    Returns:
        float64 [length].
    """
    period = len(waveform) + pause
    if period <= length:
        start = int(phase * period)
    else:
        part = min(len(waveform), length // 2)
        start = loudest_part(waveform, part) + part - length + int(phase * (length - part + 1))
    repeated = np.concatenate([waveform, np.zeros(pause)])
    return repeated[(start + np.arange(length)) % period]


def loudest_part(waveform: Samples, length: int) -> int:
    """Where the first part begins that is among the loudest of so many samples."""
    energy = np.concatenate([[0.0], np.cumsum(np.square(waveform))])
    parts = energy[length:] - energy[: len(energy) - length]
    return int(np.argmax(parts >= _NEAR * parts.max()))


def equalise(clip: Samples, sample_rate: int, gains: Samples) -> Samples:
    """A clip after a filter without phase, whose gain in decibels runs smoothly through knots.

    Args:
        clip: float64 [samples].
        sample_rate: Hz.
        gains: decibels at frequencies that are evenly spaced from `LOWEST` to `HIGHEST` on a logarithmic scale;
            between them half a cosine, beyond them the last.
    """
    if not gains.any():
        return clip
    padded = len(clip) + round(_TAIL * sample_rate)
    frequencies = np.maximum(np.fft.rfftfreq(padded, 1 / sample_rate), LOWEST)
    place = (len(gains) - 1) * np.log(frequencies / LOWEST) / math.log(HIGHEST / LOWEST)
    place = np.minimum(place, len(gains) - 1)
    below = np.minimum(place.astype(np.int64), len(gains) - 2)
    share = 0.5 - 0.5 * np.cos(np.pi * (place - below))
    decibels = gains[below] + share * (gains[below + 1] - gains[below])
    spectrum = np.fft.rfft(clip, padded) * 10 ** (decibels / 20)
    return np.asarray(np.fft.irfft(spectrum, padded)[: len(clip)], np.float64)


def mix_together(sources: Sequence[Samples]) -> Samples:
    """The sum of sources, brought to a level of 1 as a whole.

    Raises:
        DatasetError: nothing is left of them; the end of a sentence that begins with their names.
    """
    clip = np.asarray(np.sum(sources, axis=0), np.float64)
    if not root_mean_square(clip) > SILENT:
        raise DatasetError("cancel each other: leave one out")
    return clip / root_mean_square(clip)
