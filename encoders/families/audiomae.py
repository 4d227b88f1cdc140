"""AudioMAE: the encoder of a masked autoencoder of spectrograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..loading.downloads import WeightsFile
from ..loading.listing import ModelListing
from ..options import EncoderOptions
from .spectrogram_transformer import WindowEncoder

if TYPE_CHECKING:
    import torch

    from ..front_ends.kaldi import LogMelWindow
    from ..loading.weights import State, Weights

FRAMES = 1_024
MELS = 128
PATCH = 16
MEAN, STD = -4.2677393, 4.5689974
"""Mean and deviation of log-mel values over AudioSet: https://github.com/facebookresearch/AudioMAE, dataset.py."""

LAYERS = 12

RENAMED = {
    "cls_token": "embeddings.cls_token",
    "pos_embed": "embeddings.position_embeddings",
    "patch_embed.proj.": "embeddings.patch_embeddings.projection.",
    "norm.": "layernorm.",
    "blocks.": "layers.",
}
"""Beginnings of names in timm's vision transformer, and in transformers'."""

RENAMED_IN_BLOCK = {
    ".norm1.": ".layernorm_before.",
    ".norm2.": ".layernorm_after.",
    ".attn.proj.": ".attention.o_proj.",
}


class AudioMaeEncoder(WindowEncoder):
    """AudioMAE ViT-B/16, pretrained on AudioSet (Huang et al., 2022, arXiv 2207.06405).

    The mean over the patches that begin within the clip, after the final normalisation and without the class token,
    which reconstruction does not train. Its window is 1,024 frames of 10 ms; shorter clips are padded and
    longer ones are refused.
    """

    has_moments_first = True
    _stride = PATCH
    _bands = MELS // PATCH

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        from ..front_ends.kaldi import SAMPLE_RATE, WindowedFilterBank

        self.check_options(weights.id, options, LAYERS)
        self._front_end = WindowedFilterBank(mels=MELS, frames=FRAMES, mean=MEAN, std=STD).to(device)
        model = weights.build(make_model, convert_audiomae)
        self._drop_later_blocks(model.layers, options.layer)
        self._model = model.to(device)
        card = weights.card(
            sample_rate=SAMPLE_RATE, output_dim=int(model.config.hidden_size), options=options, modules=[self._model]
        )
        super().__init__(card, num_layers=LAYERS, device=device)

    def _spectrogram(self, features: LogMelWindow) -> torch.Tensor:
        return features.log_mel[:, None]


def make_model() -> Any:
    """Return a ViT-B/16 (Dosovitskiy et al., 2021, arXiv 2010.11929) for spectrograms, with fresh weights."""
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        image_size=(FRAMES, MELS),
        num_channels=1,
        patch_size=PATCH,
        hidden_size=768,
        num_hidden_layers=LAYERS,
        num_attention_heads=12,
        intermediate_size=3_072,
        layer_norm_eps=1e-6,
    )
    return ViTModel(config, add_pooling_layer=False)


def convert_audiomae(state: State) -> State:
    """Rename timm's weights to transformers' vision transformer.

    timm keeps queries, keys and values in one matrix. A name that timm's model does not have is left as it is.
    """
    converted: State = {}
    for name, tensor in state.items():
        renamed = name
        for old, new in RENAMED.items():
            if name.startswith(old):
                renamed = new + name.removeprefix(old)
        for old, new in RENAMED_IN_BLOCK.items():
            renamed = renamed.replace(old, new)
        if ".attn.qkv." in renamed:
            for part, values in zip("qkv", tensor.chunk(3), strict=True):
                converted[renamed.replace(".attn.qkv.", f".attention.{part}_proj.")] = values
        else:
            converted[renamed] = tensor
    return converted


MODELS = (
    ModelListing(
        "audiomae",
        768,
        16_000,
        "self-supervised",
        # The licence of the authors' repository; the card of this port of their weights says CC BY 4.0.
        "CC-BY-NC-4.0",
        "AudioMAE ViT-B/16, mean over the patches of the clip (10.2-s window)",
        # A port by a third party, without a published hash.
        WeightsFile("pytorch_model.bin", "gaunernst/vit_base_patch16_1024_128.audiomae_as2m", 343_000_000),
        AudioMaeEncoder,
    ),
)
