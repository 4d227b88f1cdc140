"""A pretrained model from a package: Resemblyzer's speaker encoder (GE2E, arXiv 1710.10467; Apache-2.0).

Its weights lie in the package. It asks for the packages typing and webrtcvad, of which it needs the second one only,
and that is easier to have as webrtcvad-wheels:

    pip install --no-deps resemblyzer webrtcvad-wheels
"""

import numpy as np
from resemblyzer import VoiceEncoder


class SpeakerEmbedding:
    """The unit vector of 256 values that tells voices apart."""

    sample_rate = 16_000

    def __init__(self) -> None:
        self.model = VoiceEncoder("cpu", verbose=False)

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        """Embed clips [n, samples] as [n, 256]."""
        return np.stack([self.model.embed_utterance(clip) for clip in waveforms])
