"""Sound files of the tests: short noise, another for each seed."""

import io
from pathlib import Path

import numpy as np
import soundfile

RATE = 8_000


def noise(seconds=1.0, rate=RATE, seed=0):
    return 0.1 * np.random.default_rng(seed).normal(size=round(seconds * rate))


def flac(seed=0, seconds=0.3, path="x.flac"):
    """A sound as data sets have it: its content and the name of its file."""
    stream = io.BytesIO()
    soundfile.write(stream, noise(seconds, seed=seed), RATE, format="FLAC")
    return {"bytes": stream.getvalue(), "path": path}


def write(path, seconds=1.0, rate=RATE, seed=0, samples=None, **options):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, noise(seconds, rate, seed) if samples is None else samples, rate, **options)
    return path


def write_labelled(folder, count=6, inside="", **options):
    """So many files of each of two labels, those of one in a folder inside it."""
    for number in range(count):
        write(folder / "dog" / f"{number}.wav", seed=number, **options)
        write(folder / "cat" / inside / f"{number}.flac", seed=100 + number, **options)
    return folder
