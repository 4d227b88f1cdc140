"""The picture of a clip: what is where in it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from audio_compositionality.evaluator.report.listening import HEIGHT, LOWEST_LEVEL, WIDTH, spectrogram, spectrogram_png

SAMPLE_RATE = 32_000
ROWS_PER_OCTAVE = HEIGHT / np.log2(16_000 / 50)


def tone(frequency, seconds=2.0, amplitude=1.0, sample_rate=SAMPLE_RATE):
    return amplitude * np.sin(2 * np.pi * frequency * np.arange(round(seconds * sample_rate)) / sample_rate)


def row_of(frequency):
    """Row whose band holds a frequency, counted from the top, by the definition of the axis."""
    return int(np.floor((np.log2(16_000) - np.log2(frequency)) * ROWS_PER_OCTAVE))


@pytest.mark.parametrize("frequency", [65.4, 997.0, 15_500.0])
@pytest.mark.parametrize("sample_rate", [32_000, 44_100])
def test_a_tone_is_brightest_in_the_row_of_its_frequency(frequency, sample_rate):
    rows = spectrogram(tone(frequency, sample_rate=sample_rate), sample_rate)
    assert rows.shape == (HEIGHT, WIDTH)
    middle = rows[:, WIDTH // 2]
    # Bins are at most 7.8 Hz apart, and a row is as high as that at 160 Hz: below, the nearest bin may be a row away.
    assert abs(int(np.argmax(middle)) - row_of(frequency)) <= (1 if frequency < 160 else 0)


@pytest.mark.parametrize("amplitude", [1.0, 0.1, 0.01])
def test_levels_are_decibels_of_a_full_scale_sine(amplitude):
    middle = spectrogram(tone(1_000, amplitude=amplitude), SAMPLE_RATE)[:, WIDTH // 2]
    # A tone between two bins of 7.8 Hz loses at most 0.4 dB with a window of 10 Hz between its zeros.
    assert middle.max() == pytest.approx(20 * np.log10(amplitude), abs=0.4)


def test_columns_are_the_time_of_the_clip():
    clip = np.concatenate([np.zeros(SAMPLE_RATE * 3), tone(1_000, seconds=1)])
    level = spectrogram(clip, SAMPLE_RATE)[row_of(1_000)]
    window = round(0.05 / 4 * WIDTH) + 1  # the half of the window, that sees the tone before it begins
    assert (level[: WIDTH * 3 // 4 - window] == LOWEST_LEVEL).all()
    assert (level[WIDTH * 3 // 4 + window : -window] > -1).all()


def test_above_half_the_sample_rate_is_silence():
    noise = np.random.default_rng(0).uniform(-1, 1, 16_000)
    rows = spectrogram(noise, 8_000)
    above = row_of(4_000)
    assert (rows[:above] == LOWEST_LEVEL).all()
    assert (rows[above + 1 :].max(axis=1) > -60).all()


@pytest.mark.parametrize(("samples", "sample_rate"), [(1, 32_000), (5, 100), (319, 32_000), (100_001, 22_050)])
def test_any_length_is_drawn_and_silence_is_the_trivial(samples, sample_rate):
    rows = spectrogram(np.full(samples, 0.5), sample_rate)
    assert rows.shape == (HEIGHT, WIDTH)
    assert np.isfinite(rows).all()
    assert (spectrogram(np.zeros(samples), sample_rate) == LOWEST_LEVEL).all()


def test_the_image_shows_the_levels():
    clip = tone(440, amplitude=0.5)
    image = Image.open(io.BytesIO(spectrogram_png(clip, SAMPLE_RATE)))
    assert spectrogram_png(clip, SAMPLE_RATE) == spectrogram_png(clip.astype(np.float32), SAMPLE_RATE)
    assert (image.format, image.size) == ("PNG", (WIDTH, HEIGHT))
    lightness = np.asarray(image.convert("L")).astype(int)
    assert abs(int(np.argmax(lightness[:, WIDTH // 2])) - row_of(440)) <= 1
    silence = np.asarray(Image.open(io.BytesIO(spectrogram_png(np.zeros(1_000), SAMPLE_RATE))).convert("RGB"))
    assert len(np.unique(silence.reshape(-1, 3), axis=0)) == 1
    assert tuple(silence[0, 0]) == (68, 1, 84)  # the darkest of viridis
