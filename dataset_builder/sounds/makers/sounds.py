"""Sounds on their way to files: edges without silence, one level, 16 bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.support.text import first_line

from ..sound_files import SoundError

Samples = NDArray[np.float64]

PEAK = 0.9
"""Of full scale, of every file: programs and packages differ by 40 dB, and the reader refuses the softest."""

FRAME = 0.02
"""Seconds of a frame, whose level decides whether it is heard."""

EDGE = -33.0
"""dB below the loudest frame: softer ones at both ends are cut off, since programs add pauses and people's recordings
have noise 35 dB below the voice and more."""

MARGIN = 0.06
"""Seconds that are kept of them: the beginnings of f and h are soft."""

FADE = 0.005
"""Seconds over which both ends rise and fall: a cut through noise is heard as a click."""

SHORTEST = 0.3
"""Seconds: a shorter sound ends in silence, since the reader refuses less than a quarter of a second."""

_THREADS = 2


@dataclass(frozen=True)
class MadeSound:
    """A sound that will be a file.

    Attributes:
        label, condition, name: ``LABEL/CONDITION/NAME.wav``; an empty condition is no folder.
        samples: float64 [samples], mono.
        rate: Hz.
    """

    label: str
    condition: str
    name: str
    samples: Samples
    rate: int

    @property
    def place(self) -> str:
        """Path below the folder."""
        return "/".join(part for part in (self.label, self.condition, f"{self.name}.wav") if part)


Job = Callable[[], Iterable[MadeSound]]
"""Makes some sounds; several are made at a time, in threads."""


def write_sounds(jobs: Sequence[Job], folder: Path, progress: bool) -> None:
    """Make all sounds and write them into a folder.

    Raises:
        RecordingError: one cannot be made, is silent, or two have one place.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        written = pool.map(partial(_write_all, folder), jobs)
        try:
            for _ in tqdm(written, "sounds", len(jobs), disable=None if progress else True):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _write_all(folder: Path, job: Job) -> None:
    for sound in job():
        write_sound(sound, folder)


def write_sound(sound: MadeSound, folder: Path) -> None:
    """Write one sound.

    Raises:
        RecordingError: it is silent, or stands there already.
    """
    path = folder / sound.place
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.round(levelled(trimmed(sound)) * 32_767).astype("<i2")
    try:
        with path.open("xb") as stream:
            soundfile.write(stream, values, sound.rate, "PCM_16", format="WAV")
    except FileExistsError as error:
        raise SoundError(f"{str(folder)!r} holds {sound.place!r} already; make sounds in an empty folder") from error


def trimmed(sound: MadeSound) -> Samples:
    """A sound without silence at its ends, `SHORTEST` at least.

    Raises:
        RecordingError: it is silent, or no number.
    """
    peak = float(np.abs(sound.samples).max(initial=0.0))
    if not 0 < peak < math.inf:
        raise SoundError(f"{sound.place!r} is {'silent' if peak == 0 else 'no sound'}")
    size, margin = max(1, round(FRAME * sound.rate)), round(MARGIN * sound.rate)
    frames = np.pad(sound.samples, (0, -len(sound.samples) % size)).reshape(-1, size)
    power = np.mean(np.square(frames), axis=1)
    heard = np.flatnonzero(power >= power.max() * 10 ** (EDGE / 10))
    part = sound.samples[max(0, int(heard[0]) * size - margin) : (int(heard[-1]) + 1) * size + margin].copy()
    length = min(round(FADE * sound.rate), len(part) // 2)
    ramp = np.sin(np.linspace(0, math.pi / 2, length, endpoint=False)) ** 2
    part[:length] *= ramp
    part[len(part) - length :] *= ramp[::-1]
    return np.pad(part, (0, max(0, math.ceil(SHORTEST * sound.rate) - len(part))))


def levelled(samples: Samples) -> Samples:
    """A sound with its peak at `PEAK`."""
    return samples * (PEAK / float(np.abs(samples).max()))


def read_sound(path: Path) -> tuple[Samples, int]:
    """Samples of a file, the mean of its channels, and their rate.

    Raises:
        RecordingError: it cannot be read.
    """
    try:
        samples, rate = soundfile.read(path, dtype="float64", always_2d=True)
    except (OSError, RuntimeError) as error:
        raise SoundError(f"{str(path)!r} cannot be read: {first_line(error)}") from error
    mean: Samples = samples.mean(axis=1)
    return mean, int(rate)
