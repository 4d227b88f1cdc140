"""BEATs: self-supervised pre-training with acoustic tokenizers (Chen et al., 2022, arXiv 2212.09058)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base import FloatArray, ModelError
from ..inference import double_precision_device
from ..loading.downloads import WeightsFile
from ..loading.listing import ModelListing
from ..model_encoder import Hidden, LayeredEncoder
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch

    from ..loading.weights import State, Weights

MELS = 128
WAVEFORM_SCALE = 2.0**15
MEAN, STD = 15.41663, 6.55582
"""Mean and deviation of log-mel values over AudioSet, for waveforms in 16-bit units."""

BIAS_TABLE = "self_attn.relative_attention_bias.weight"


class BeatsEncoder(LayeredEncoder["torch.Tensor"]):
    """BEATs: the mean over the patches of the clip.

    Clips may have any length from one patch (16 frames of 10 ms); frames at the end that fill no patch are left out.
    """

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        import torch

        from ..front_ends.kaldi import SAMPLE_RATE, FilterBank
        from ..networks.beats_network import DIM, LAYERS, Beats

        self.check_options(weights.id, options, LAYERS)
        # In float32, rounding alone changes the embedding of a pure tone by 1e-4.
        self._front_end_device = double_precision_device(device)
        self._filter_bank = FilterBank(MELS, "povey", torch.float64).to(self._front_end_device)
        model = weights.build(Beats, convert_beats)
        self._drop_later_blocks(model.encoder.layers, options.layer)
        self._model = model.to(device)
        card = weights.card(sample_rate=SAMPLE_RATE, output_dim=DIM, options=options, modules=[model])
        super().__init__(card, num_layers=LAYERS, device=device)

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        import torch

        from ..front_ends.kaldi import shortest_clip
        from ..networks.beats_network import PATCH

        self._refuse_short(clips.shape[1], shortest_clip(PATCH), "patch")
        waveforms = torch.from_numpy(clips).to(self._front_end_device) * WAVEFORM_SCALE
        log_mel: torch.Tensor = self._filter_bank(waveforms)
        return ((log_mel - MEAN) / (2 * STD)).to(self.device)

    @classmethod
    def _needed_blocks(cls, layer: int) -> int:
        return layer

    def _encode_at(self, features: torch.Tensor, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.kaldi import HOP, SAMPLE_RATE
        from ..networks.beats_network import PATCH

        seconds = PATCH * HOP / SAMPLE_RATE
        # The patches of one moment are consecutive.
        return [
            Hidden(patches.unflatten(1, (-1, MELS // PATCH)).mean(dim=2), seconds)
            for patches in self._model(features, layers)
        ]


def convert_beats(state: State) -> State:
    """Rename the weights of the published checkpoint to `Beats`.

    The bias table, which all blocks share, is stored with each of them; the kernel of the position embedding is
    stored as a direction and its length at each of its 128 positions (weight normalisation).

    Raises:
        ModelError: blocks have different tables.
    """
    import torch

    converted = dict(state)
    tables = {name: converted.pop(name) for name in state if name.endswith(BIAS_TABLE)}
    first = tables.get(f"encoder.layers.0.{BIAS_TABLE}")
    if first is not None:
        for name, table in tables.items():
            if not torch.equal(table, first):
                raise ModelError(f"{name} differs from the first block's table, but all blocks of BEATs share one")
        converted["encoder.relative_attention_bias.weight"] = first
    direction, length = (converted.pop(f"encoder.pos_conv.0.weight_{part}", None) for part in "vg")
    if direction is not None and length is not None:
        norm = torch.linalg.vector_norm(direction, dim=(0, 1), keepdim=True)
        converted["encoder.pos_conv.weight"] = direction * (length / norm)
    if "encoder.pos_conv.0.bias" in converted:
        converted["encoder.pos_conv.bias"] = converted.pop("encoder.pos_conv.0.bias")
    return converted


MODELS = (
    ModelListing(
        "beats-iter3-plus",
        768,
        16_000,
        "self-supervised",
        "MIT",
        "BEATs iter3+ (its tokenizer is distilled from a fine-tuned BEATs) pretrained on AudioSet, mean over patches",
        WeightsFile(
            "BEATs_iter3_plus_AS2M.pt",
            # A copy by a third party, since the authors' OneDrive link needs a browser. No hash is published, but
            # users who downloaded the file from there and from other copies recorded this one.
            "lpepino/beats_ckpts",
            361_499_833,
            "sha256:d43cbfad4d7b56381c061d7a24774f908d4d94c72961f6eb1d9090ff18cd8d34",
        ),
        BeatsEncoder,
    ),
    ModelListing(
        "beats-iter3",
        768,
        16_000,
        "self-supervised",
        "MIT",
        "BEATs iter3 pretrained on AudioSet, mean over patches; pass the authors' file as beats-iter3=BEATs_iter3.pt",
        WeightsFile("BEATs_iter3.pt", "", 361_000_000, page="https://github.com/microsoft/unilm/tree/master/beats"),
        BeatsEncoder,
    ),
)
