"""aiSFX, an embedding of sound effects (Ma and Lerch, 2022, ISMIR), trained on commercial libraries of them.

    pip install --no-deps aisfx==0.1.2

Code: MIT; weights: CC BY 4.0. The package requires versions of 2022, hence --no-deps. Of its two spectrograms this is
the one by librosa, which its authors say may perform worse than theirs by Essentia (AGPL); clips are divided by their
peak. An embedding is the mean over blocks of 100 frames (2.3 s), one every 1.2 s; shorter clips are padded with zeros.
"""

from importlib.metadata import distribution

import librosa
import numpy as np
import torch

BLOCK, HOP = 100, 50
HIGHEST = 9.457798957824707
"""Value of the spectrograms in training (the package's preprocessing.py)."""


class UntrainedAiSfx:
    """The network with the package's fresh weights: the twin with which `AiSfx` is compared."""

    id, paradigm, licence, sample_rate = "untrained:aisfx", "untrained", None, 44_100

    def __init__(self) -> None:
        from aisfx.models.cnn2d import EmbeddingNet

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = EmbeddingNet("max", 3, 1, 64).eval()

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> torch.Tensor:
        """Embed clips [n, samples] as [n, 512]."""
        return torch.stack([self._embed(clip / (np.abs(clip).max() or 1)) for clip in waveforms])

    def _embed(self, clip: np.ndarray) -> torch.Tensor:
        mel = librosa.feature.melspectrogram(y=clip, sr=44_100, hop_length=1024, n_mels=96, norm=1.0, htk=True).T
        mel = np.log10(mel * 10_000 + 1) / HIGHEST
        mel = np.pad(mel, ((0, max(0, BLOCK - len(mel))), (0, 0)))
        return self.network(torch.tensor(mel, dtype=torch.float32).unfold(0, BLOCK, HOP).mT).mean(dim=0)


class AiSfx(UntrainedAiSfx):
    """The authors' best model (X-Sequential-CE)."""

    id, paradigm, licence = "aisfx", "classification of sound effects", "CC BY 4.0"

    def __init__(self) -> None:
        super().__init__()
        path = distribution("aisfx").locate_file("aisfx/models/checkpoint.pth")
        # The file also holds names and sizes of the training sets, with NumPy's numbers.
        numbers = [(np._core.multiarray.scalar, "numpy.core.multiarray.scalar"), np.dtype, np.dtypes.Int64DType]
        with torch.serialization.safe_globals(numbers):
            state, _ = torch.load(path, map_location="cpu", weights_only=True)
        prefix = "embedding_net."
        self.network.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})

    def untrained(self) -> UntrainedAiSfx:
        """Its twin."""
        return UntrainedAiSfx()
