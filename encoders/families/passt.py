"""PaSST of "Efficient Training of Audio Transformers with Patchout" (Koutini et al., 2022, arXiv 2110.05069).

PaSST-S with the defaults of the package hear21passt 0.0.26: structured patchout, stochastic weight averaging. The
embedding of a clip follows the package's mode "embed_only": the mean of class and distillation token.
"""

from __future__ import annotations

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

LONGEST_SECONDS = 10


class PasstEncoder(LayeredEncoder["torch.Tensor"]):
    """PaSST-S; its embedding is the mean of its class and its distillation token.

    A frame is the mean of the twelve patches of a moment; moments are 100 ms apart. A clip may last 150 ms to 10 s:
    for one shorter than 10 s, the model gets the first positions; longer ones are refused.
    """

    has_embedding = True
    has_cls = True

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        from ..front_ends.passt import SAMPLE_RATE, PasstLogMel
        from ..networks.passt_network import DEPTH, DIM, Passt

        self.check_options(weights.id, options, DEPTH)
        self._log_mel = PasstLogMel().to(device)
        self._model = weights.build(Passt, convert_passt, unused=("head.", "head_dist.")).to(device)
        card = weights.card(sample_rate=SAMPLE_RATE, output_dim=DIM, options=options, modules=[self._model])
        super().__init__(card, num_layers=DEPTH, device=device)

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        from ..front_ends.passt import HOP
        from ..networks.passt_network import PATCH

        # A clip of at least 16 frames; pre-emphasis takes one sample away.
        self._refuse_short(clips.shape[1], (PATCH - 1) * HOP + 1)
        self._refuse_long(clips.shape[1], LONGEST_SECONDS * self.card.sample_rate)
        features: torch.Tensor = self._log_mel(self._on_device(clips))
        return features

    def _encode_at(self, features: torch.Tensor, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.passt import HOP
        from ..networks.passt_network import BANDS, STRIDE

        states = []
        for tokens in self._model(features, layers):
            token = tokens[:, :2].mean(dim=1)
            frames = tokens[:, 2:].unflatten(1, (BANDS, -1)).mean(dim=1)
            states.append(Hidden(frames, STRIDE * HOP / self.card.sample_rate, cls=token, embedding=token))
        return states


def convert_passt(state: State) -> State:
    """Rename the tensors of the official checkpoint to `Passt`."""
    return {name.replace("patch_embed.proj.", "patch_embed."): tensor for name, tensor in state.items()}


MODELS = (
    ModelListing(
        "passt-s",
        768,
        32_000,
        "supervised",
        "Apache-2.0",
        "PaSST-S with structured patchout, mean of class and distillation token (10-s window)",
        WeightsFile(
            "passt-s-f128-p16-s10-ap.476-swa.pt",
            "https://github.com/kkoutini/PaSST/releases/download/v0.0.1-audioset/passt-s-f128-p16-s10-ap.476-swa.pt",
            344_665_734,
            # The release has no hash; others who downloaded the file recorded this one.
            "sha256:302903fa8c4aee817b11dc982da0b29aaf8d11a3e722420476d0a12c9db70c2c",
        ),
        PasstEncoder,
    ),
)
