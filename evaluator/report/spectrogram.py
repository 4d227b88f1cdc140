"""A small picture of a clip's spectrogram, for pages that show many."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from scipy.signal import get_window

from audio_compositionality.support.errors import InputError

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 320, 120
"""Pixels: columns of time over the whole clip, rows of frequency."""

LOWEST, HIGHEST = 50.0, 16_000.0
"""Hz, the bottom and the top edge. The lowest tone of the data is at 65 Hz, and its clips are sampled at 32 kHz."""

FLOOR = -80.0
"""dB, drawn darkest; 0 dB, a full-scale sine, is drawn brightest."""

COLOURS = "viridis"
"""Of Matplotlib: its lightness rises evenly, also to eyes that do not tell red from green."""

WINDOW = 0.1
"""Seconds of the Hann window, which resolves 20 Hz; the shortest tone of the data, at 3 Hz, lasts 0.17 s."""

_LEVELS = 28  # of colour, 3 dB each: more make the file larger than the eye notices


def spectrogram(waveform: ArrayLike, sample_rate: int) -> Floats:
    """The spectrogram of a clip on a logarithmic axis of frequency, in dB of a full-scale sine.

    A pixel shows the largest of the levels of the Fourier bins inside its row and of the level at the row's centre,
    interpolated: at the bottom a row is narrower than a bin. Above half the sample rate there is FLOOR.

    Args:
        waveform: samples in -1…1, [samples].
        sample_rate: Hz.

    Returns:
        [HEIGHT, WIDTH], in FLOOR…0 dB. Row 0 ends at HIGHEST, the last begins at LOWEST, each is the same part of an
        octave; the columns are equal parts of the clip.

    Raises:
        InputError: if the waveform is not [samples] with one sample or more, not finite or not in -1…1, or the sample
            rate is below 2 · LOWEST.
    """
    samples = np.asarray(waveform, np.float64)
    if samples.ndim != 1 or not len(samples):
        raise InputError(f"a waveform of shape {samples.shape} has no spectrogram: it must be [samples], one or more")
    if not np.isfinite(samples).all():
        place = int(np.flatnonzero(~np.isfinite(samples))[0])
        raise InputError(f"samples must be finite; sample {place} is {samples[place]}")
    if (peak := np.abs(samples).max()) > 1:
        raise InputError(f"samples must be in -1…1, but reach {peak:g}; divide those of 16 bits by 32,768")
    if sample_rate < 2 * LOWEST:
        raise InputError(f"the sample rate is {sample_rate} Hz, but must be at least {2 * LOWEST:.0f}")
    frequencies, level = _levels(samples, sample_rate)
    edges = np.geomspace(LOWEST, HIGHEST, HEIGHT + 1)
    rows = _interpolated(level, np.sqrt(edges[:-1] * edges[1:]), frequencies)
    first = np.searchsorted(frequencies, edges)
    filled = np.diff(first) > 0
    inside = np.maximum.reduceat(level[: first[-1]], first[:-1][filled], axis=0)
    rows[filled] = np.maximum(rows[filled], inside)
    return rows[::-1]


def spectrogram_png(waveform: ArrayLike, sample_rate: int) -> bytes:
    """`spectrogram` as a PNG of WIDTH × HEIGHT pixels, without axes.

    Levels are absolute, so that clips can be compared by eye.

    Raises:
        InputError: as `spectrogram`.
    """
    levels = np.rint((1 - spectrogram(waveform, sample_rate) / FLOOR) * (_LEVELS - 1)).astype(np.uint8)
    image = Image.frombytes("P", (WIDTH, HEIGHT), levels.tobytes())
    colours = matplotlib.colormaps[COLOURS](np.linspace(0, 1, _LEVELS), bytes=True)
    image.putpalette(colours[:, :3].tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _levels(samples: Floats, sample_rate: int) -> tuple[Floats, Floats]:
    """Frequencies [bins] in Hz, and the level of each at the middle of each column, [bins, WIDTH]."""
    size = round(WINDOW * sample_rate)
    padded = np.pad(samples, (0, max(0, size - len(samples))))
    hop = max(1, len(padded) // WIDTH)
    window = get_window("hann", size)
    bins = 1 << (size - 1).bit_length()
    middle = (np.arange(WIDTH) + 0.5) * len(samples) / WIDTH
    starts = np.rint(middle / hop).astype(np.int64) * hop - size // 2
    frames = np.pad(padded, size)[starts[:, None] + size + np.arange(size)]
    magnitude = np.abs(np.fft.rfft(frames * (window / window.sum()), bins)).T
    magnitude[1:-1] *= 2  # the other half of the spectrum: a sine has its amplitude
    frequencies: Floats = np.fft.rfftfreq(bins, 1 / sample_rate).astype(np.float64)
    return frequencies, 20 * np.log10(np.clip(magnitude, 10 ** (FLOOR / 20), 1))


def _interpolated(level: Floats, at: Floats, frequencies: Floats) -> Floats:
    """Levels [bins, columns] at other frequencies [k], linearly; FLOOR beyond the last bin."""
    place = at / frequencies[1]
    below = np.minimum(place.astype(np.int64), len(level) - 2)
    share = np.minimum(place - below, 1)[:, None]
    values: Floats = (1 - share) * level[below] + share * level[below + 1]
    values[at > frequencies[-1]] = FLOOR
    return values
