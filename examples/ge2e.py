"""GE2E, an embedding of voices (Wan et al., 2018, arXiv 1710.10467), with the weights that Resemblyzer ships.

    pip install --no-deps resemblyzer==0.1.4

Package and weights: Apache-2.0. Nothing of the package is imported, so that it needs no webrtcvad; its weights are read
as tensors only. Windows, loudness and spectrogram follow its `embed_utterance`; silence is not cut out.
"""

from importlib.metadata import distribution

import librosa
import numpy as np
import torch
from torch import nn

HOP, WINDOW, STEP = 160, 160, 77
"""Samples between frames; frames of a window (1.6 s), and from one to the next."""


class UntrainedGE2E:
    """The network with fresh weights: the twin with which `GE2E` is compared."""

    id, paradigm, licence, sample_rate = "untrained:ge2e", "untrained", None, 16_000

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = nn.ModuleDict({"lstm": nn.LSTM(40, 256, 3, batch_first=True), "linear": nn.Linear(256, 256)})

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> torch.Tensor:
        """Embed clips [n, samples] as unit vectors [n, 256]."""
        return torch.stack([self._embed(clip) for clip in waveforms])

    def _embed(self, clip: np.ndarray) -> torch.Tensor:
        # Quiet clips are raised to -30 dB, loud ones are not changed.
        clip = clip * max(1.0, 10 ** (-30 / 20) / max(np.sqrt(np.mean(clip**2)), 1e-7))
        starts = list(range(0, max(1, -(-(len(clip) + 1) // HOP) - WINDOW + STEP + 1), STEP))
        if len(starts) > 1 and len(clip) - starts[-1] * HOP < 0.75 * WINDOW * HOP:
            starts.pop()
        clip = np.pad(clip, (0, max(0, (starts[-1] + WINDOW) * HOP - len(clip))))
        mel = librosa.feature.melspectrogram(y=clip, sr=16_000, n_fft=400, hop_length=HOP, n_mels=40).T
        windows = torch.tensor(np.stack([mel[start : start + WINDOW] for start in starts]), dtype=torch.float32)
        _, (hidden, _) = self.network["lstm"](windows)
        vectors = nn.functional.normalize(torch.relu(self.network["linear"](hidden[-1])))
        return nn.functional.normalize(vectors.mean(dim=0), dim=0)


class GE2E(UntrainedGE2E):
    """Resemblyzer's encoder, trained to distinguish speakers."""

    id, paradigm, licence = "ge2e", "speaker verification", "Apache-2.0"

    def __init__(self) -> None:
        super().__init__()
        path = distribution("resemblyzer").locate_file("resemblyzer/pretrained.pt")
        state = torch.load(path, map_location="cpu", weights_only=True)["model_state"]
        self.network.load_state_dict({name: state[name] for name in self.network.state_dict()})

    def untrained(self) -> UntrainedGE2E:
        """Its twin."""
        return UntrainedGE2E()
