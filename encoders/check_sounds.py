"""Material for checks of models: sounds, questions, comparisons of embeddings, and the growth of memory.

The questions are multiple-choice, with the words and columns of the data. They are about clips of different lengths
that hold a low and a high tone, which overlap or not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TONE_FREQUENCIES = (50.0, 50 * 2**0.5, 100.0, 50 * 2**1.5)
"""Fundamentals of `make_tones` in Hz. Read at half the rate, a tone sounds like the one before the last."""


def make_tones(sample_rate: int, seconds: float) -> Array:
    """Four harmonic tones, half an octave apart: float32 [4, samples] within [-1, 1].

    Fundamentals of 50, 71, 100 and 141 Hz, low enough for an encoder that only keeps the waveform's low frequencies;
    eight harmonics, the k-th of amplitude 1/k; 50 ms of raised cosine at both ends. They are computed, not resampled,
    so that they are the same sounds at any rate from 4 kHz on.
    """
    time_points = np.arange(round(seconds * sample_rate)) / sample_rate
    edge = np.clip(np.minimum(time_points, seconds - time_points) / 0.05, 0, 1)
    envelope = 0.2 * (0.5 - 0.5 * np.cos(np.pi * edge))
    tones = [
        sum(np.sin(2 * np.pi * k * frequency * time_points) / k for k in range(1, 9)) * envelope
        for frequency in TONE_FREQUENCIES
    ]
    return np.stack(tones).astype(np.float32)


def make_bursts(sample_rate: int, seconds: int) -> Array:
    """A soft noise, and the same with a loud burst of noise in each of its seconds: float32 [1 + seconds, samples].

    The noise has a standard deviation of 0.003, the burst of 0.1. It is the same in every second and lasts 0.8 s, with
    50 ms of raised cosine at both ends.
    """
    generator = np.random.default_rng(0)
    clips = np.tile(generator.normal(0, 0.003, seconds * sample_rate), (1 + seconds, 1))
    length = round(0.8 * sample_rate)
    times = np.arange(length) / sample_rate
    edge = np.clip(np.minimum(times, 0.8 - times) / 0.05, 0, 1)
    burst = generator.normal(0, 0.1, length) * (0.5 - 0.5 * np.cos(np.pi * edge))
    for second in range(seconds):
        start = round((second + 0.1) * sample_rate)
        clips[1 + second, start : start + length] += burst
    return clips.astype(np.float32)


_LAST_LINE = "Answer with one letter only."


def prompt_of(row: dict[str, Any]) -> str:
    """Return the prompt of a row: the question, one line per option with its letter, and the request for a letter."""
    lettered = [f"{chr(ord('A') + place)}. {option}" for place, option in enumerate(row["options"])]
    return "\n".join([row["question"], *lettered, _LAST_LINE])


def question_row(number: int, split: str) -> dict[str, Any]:
    """Return a question about two tones with all columns of questions; consecutive numbers alternate its kind."""
    place = number % 4 if split == "test" else number // 4 % 4
    # The question about overlap needs clips with an overlap.
    together, longer = number % 2 == 0 or place == 3, number % 4 < 2
    seconds, end = 3.0 + number % 3, 1.9 if longer else 1.2
    start = end - 0.7 if together else end + 0.25
    low, high = {"onset": 0.2, "offset": end}, {"onset": start, "offset": start + (0.8 if longer else 1.5)}
    asked: tuple[tuple[str, str, str, str, str, tuple[str, ...], str], ...] = (
        ("counting", "kinds", "", "", "How many different kinds of sound can be heard?", ("1", "2"), "2"),
        (
            *("duration", "total", "", "", "Which of these is heard longest in total?"),
            ("low tone", "high tone"),
            "low tone" if longer else "high tone",
        ),
        (
            *("concurrency", "anchor", "low tone", "alone", "Is the low tone always heard alone?"),
            ("Yes", "No"),
            "No" if together else "Yes",
        ),
        (
            *("classification", "overlap", "low tone", "", "Which of these overlaps in time with the low tone?"),
            ("high tone", "dog"),
            "high tone",
        ),
    )
    task, variant, anchor, polarity, question, options, answer = asked[place]
    # Right answers occur at both positions.
    options = options[::-1] if number // 2 % 2 else options
    return {
        **{"id": f"{split}-{number}", "split": split, "question": question, "options": list(options), "answer": answer},
        **{"task": task, "variant": variant, "anchor": anchor, "polarity": polarity, "template": "", "unit": ""},
        **{"group": f"{split}-{number}", "recording": f"{split}-{number}", "source": "check", "start": 0.0},
        **{"duration": seconds, "resolution": 0.0, "polyphony": 1 + together, "overlap": 0.7 * together},
        **{"gap": None, "level_difference": None},
        "events": [{**low, "label": "low tone"}, {**high, "label": "high tone"}],
    }


def row_sound(row: dict[str, Any], rate: int) -> NDArray[np.float32]:
    """The sound of a row at a rate in Hz, float32 [samples]."""
    sound = np.zeros(round(row["duration"] * rate), np.float32)
    for event, tone in zip(row["events"], (0, 3), strict=True):
        start, stop = round(event["onset"] * rate), round(event["offset"] * rate)
        sound[start:stop] += make_tones(rate, (stop - start) / rate)[tone][: stop - start]
    return sound


def cosines(embeddings: Array) -> NDArray[np.float64]:
    """Return the cosines of all pairs of rows: [n, dim] -> [n, n]; 0 for a row of zeros."""
    rows = np.asarray(embeddings, np.float64)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    directions = np.divide(rows, norm, out=np.zeros_like(rows), where=norm > 0)
    matrix: NDArray[np.float64] = directions @ directions.T
    return matrix


def distances(a: Array, b: Array) -> NDArray[np.float64]:
    """Euclidean distances of rows: [n, dim], [m, dim] -> [n, m]."""
    matrix: NDArray[np.float64] = np.linalg.norm(np.asarray(a, np.float64)[:, None] - b[None], axis=2)
    return matrix


def memory_growth() -> Callable[[], str]:
    """Return a function that describes the growth of peak memory since this call."""
    import torch

    before = _peak_bytes()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()

    def grown() -> str:
        peak = _peak_bytes()
        value = "not measured on this system" if peak is None or before is None else f"{(peak - before) / 1e6:,.0f} MB"
        if torch.cuda.is_available():
            value += f", on the GPU {torch.cuda.max_memory_allocated() / 1e6:,.0f} MB"
        return value

    return grown


def _peak_bytes() -> int | None:
    """Return the largest resident memory of this process so far in bytes; None if the system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    # getrusage(2): kilobytes on Linux, bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
