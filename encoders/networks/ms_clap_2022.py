"""The audio encoder of MS-CLAP 2022 (Elizalde et al., 2022, arXiv 2206.04769): Cnn14 and a projection."""

from __future__ import annotations

import torch

from .htsat import Projection
from .panns import CHANNELS, Cnn14

SAMPLE_RATE = 44_100
EMBEDDING_DIM = 1024


class ProjectedCnn14(Cnn14):
    """Cnn14 at 44.1 kHz, its embedding projected to the space that sound and text share."""

    def __init__(self) -> None:
        super().__init__(SAMPLE_RATE)
        self.projection = Projection(CHANNELS[-1], EMBEDDING_DIM)

    def embed(self, frames: torch.Tensor) -> torch.Tensor:
        """Embeddings [n, 1024] of the frames of the last block."""
        projected: torch.Tensor = self.projection(super().embed(frames))
        return projected
