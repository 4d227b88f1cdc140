"""Cnn14 of "PANNs: Large-Scale Pretrained Audio Neural Networks" (Kong et al., 2020, arXiv 1912.10211).

The embedding is the one that the paper transfers to other tasks: the last feature maps are averaged over frequency;
the sum of their maximum and their mean over time passes the first fully connected layer and a ReLU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base import FloatArray
from ..loading.downloads import WeightsFile
from ..loading.listing import ModelListing
from ..model_encoder import Hidden, LayeredEncoder
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch

    from ..loading.weights import State, Weights


class PannsEncoder(LayeredEncoder["torch.Tensor"]):
    """Cnn14; its embedding is the model's own, its layers are the six convolutional blocks.

    A frame of block k lasts 2^k · 10 ms; in the last two blocks, 320 ms. Layer 0 is the normalised log-mel spectrogram.
    A clip may have any length from 310 ms on, for which the poolings leave one frame.
    """

    has_embedding = True

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        from ..networks.cnn14 import CHANNELS, SAMPLE_RATE, Cnn14, dim_at

        self.check_options(weights.id, options, len(CHANNELS))
        self._model = weights.build(Cnn14, convert_cnn14, unused=("fc_audioset.",)).to(device)
        dim = dim_at(len(CHANNELS) if options.layer is None else options.layer)
        card = weights.card(sample_rate=SAMPLE_RATE, output_dim=dim, options=options, modules=[self._model])
        super().__init__(card, num_layers=len(CHANNELS), device=device)

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        from ..front_ends.torchlibrosa import HOP
        from ..networks.cnn14 import HALVINGS

        # The number of frames from which the poolings leave one.
        self._refuse_short(clips.shape[1], (2**HALVINGS - 1) * HOP)
        features: torch.Tensor = self._model.log_mel(self._on_device(clips))
        return features

    def _dim_at(self, layer: int) -> int:
        from ..networks.cnn14 import dim_at

        return dim_at(layer)

    def _encode_at(self, features: torch.Tensor, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.torchlibrosa import HOP
        from ..networks.cnn14 import HALVINGS

        depths = [self.num_layers if layer is None else layer for layer in layers]
        return [
            Hidden(
                frames,
                2 ** min(depth, HALVINGS) * HOP / self.card.sample_rate,
                embedding=self._model.embed(frames) if layer is None else None,
            )
            for layer, depth, frames in zip(layers, depths, self._model(features, depths), strict=True)
        ]


def convert_cnn14(state: State) -> State:
    """Rename the tensors of the official checkpoint to `Cnn14`.

    Raises:
        ModelError: its front end differs.
    """
    from ..front_ends.torchlibrosa import convert_front_end

    return {rename_block(name): tensor for name, tensor in convert_front_end(state).items()}


def rename_block(name: str) -> str:
    """Map a tensor's official name to `Cnn14`: ``conv_block1.`` becomes ``blocks.0.``."""
    return re.sub(r"^conv_block(\d)\.", lambda match: f"blocks.{int(match[1]) - 1}.", name)


MODELS = (
    ModelListing(
        "panns-cnn14",
        2048,
        32_000,
        "supervised",
        "CC-BY-4.0",
        "PANNs Cnn14, the embedding before its classifier",
        WeightsFile(
            "Cnn14_mAP=0.431.pth",
            "https://zenodo.org/records/3987831/files/Cnn14_mAP%3D0.431.pth?download=1",
            327_428_481,
            "md5:541141fa2ee191a88f24a3219fff024e",
        ),
        PannsEncoder,
    ),
)
