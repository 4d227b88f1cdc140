"""Models whose scores say nothing of learning, posing as models like any other, and one that does hear the parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.encoders.base import Model, ModelCard

WIDTH = 64


class RandomNetwork(Model):
    """Two layers of convolutions over 64 bands of a log spectrogram, with fresh weights."""

    device = "cpu"

    def __init__(self, id: str, seed: int, paradigm: str | None = None) -> None:
        self.card = ModelCard(id, str(seed), 32_000, WIDTH, paradigm=paradigm)
        rng = np.random.default_rng(seed)
        self.layers = [rng.normal(0, (3 * WIDTH) ** -0.5, (3 * WIDTH, WIDTH)) for _ in range(2)]

    def embed(self, waveforms, sample_rate):
        frames = np.lib.stride_tricks.sliding_window_view(np.asarray(waveforms, np.float32), 1024, axis=1)[:, ::1024]
        power = np.abs(np.fft.rfft(frames * np.hanning(1024).astype(np.float32)))[..., 1:] ** 2
        hidden = np.log10(power.reshape(*power.shape[:2], WIDTH, -1).mean(axis=3) + 1e-6) + 6
        for weights in self.layers:
            wide = np.concatenate([hidden[:, :-2], hidden[:, 1:-1], hidden[:, 2:]], axis=2)
            hidden = np.maximum(wide @ weights, 0)
        return hidden.mean(axis=1).astype(np.float32)


class Told(Model):
    """What a function makes of the sources of a clip, which it looks up by the samples: it hears exactly that much."""

    device = "cpu"

    def __init__(self, id: str, data: Data, function: Callable[[list[dict[str, str]]], np.ndarray]) -> None:
        self.by_samples = {}
        for recipe in ("a_coat", "a_tre"):
            configuration = data.configuration(recipe)
            rows = {row["id"]: row["metadata"] for row in configuration.rows}
            for clip in configuration.clips():
                row, _, name = clip.id.rpartition("/")
                scene = rows[row]
                parts = [scene] if name == "audio" else [scene[part] for part in {"B": "AT", "D": "CT"}.get(name, name)]
                self.by_samples[clip.waveform.tobytes()] = function([source for part in parts for source in part])
        (width,) = {value.shape for value in self.by_samples.values()}
        self.card = ModelCard(id, "1", 32_000, *width)

    def embed(self, waveforms, sample_rate):
        return np.stack([self.by_samples[np.asarray(clip, np.float32).tobytes()] for clip in waveforms])


class Heard(Model):
    """What a function makes of the samples of a clip."""

    device = "cpu"

    def __init__(self, id: str, function: Callable[[np.ndarray], list[float]], **card) -> None:
        self.function = function
        self.card = replace(ModelCard(id, "1", 32_000, len(function(np.ones(8, np.float32)))), **card)

    def embed(self, waveforms, sample_rate):
        return np.array([self.function(np.asarray(clip, np.float64)) for clip in waveforms], np.float32)


def loudness(clip: np.ndarray) -> list[float]:
    """The level in dB, and how near it is to each of eight levels."""
    level = 10 * np.log10(np.mean(clip**2) + 1e-12)
    return [level, *np.exp(-(((level - np.linspace(-50, 0, 8)) / 6) ** 2))]


def parts(sources: list[dict[str, str]]) -> np.ndarray:
    """The sum of a fixed vector for each label of each source: what an encoder of parts would give."""
    return np.sum([_vector(name, label) for source in sources for name, label in source.items()], axis=0)


def _vector(name: str, label: str) -> np.ndarray:
    seed = int.from_bytes(f"{name}{label}".encode()[-7:], "little")
    return np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)
