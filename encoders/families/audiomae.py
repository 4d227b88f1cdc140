"""AudioMAE: the encoder of a masked autoencoder of spectrograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base import FloatArray
from ..loading.downloads import WeightsFile
from ..loading.listing import ModelListing
from ..model_encoder import Hidden, LayeredEncoder, states_at, with_states
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch

    from ..front_ends.kaldi import LogMelWindow
    from ..loading.weights import State, Weights

FRAMES = 1_024
MELS = 128
PATCH = 16
MEAN, STD = -4.2677393, 4.5689974
"""Of log-mel values over AudioSet: https://github.com/facebookresearch/AudioMAE, dataset.py."""

LAYERS = 12

RENAMED = {
    "cls_token": "embeddings.cls_token",
    "pos_embed": "embeddings.position_embeddings",
    "patch_embed.proj.": "embeddings.patch_embeddings.projection.",
    "norm.": "layernorm.",
    "blocks.": "layers.",
}
"""How the names of timm's vision transformer begin, and those of transformers'."""

RENAMED_IN_BLOCK = {
    ".norm1.": ".layernorm_before.",
    ".norm2.": ".layernorm_after.",
    ".attn.proj.": ".attention.o_proj.",
}


class AudioMaeEncoder(LayeredEncoder["LogMelWindow"]):
    """AudioMAE ViT-B/16, pretrained on AudioSet (Huang et al., 2022, arXiv 2207.06405).

    The mean over the patches that begin within the clip, after the final normalisation and without the class token,
    which reconstruction leaves without a task. Its window is 1,024 frames of 10 ms; shorter clips are padded and
    longer ones are refused.
    """

    has_cls = True

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

    def _extract_features(self, clips: FloatArray) -> LogMelWindow:
        from ..front_ends.kaldi import shortest_clip

        self._refuse_short(clips.shape[1], shortest_clip())
        self._refuse_long(clips.shape[1], shortest_clip(FRAMES + 1) - 1)
        window: LogMelWindow = self._front_end(self._on_device(clips))
        return window

    def _encode_at(self, features: LogMelWindow, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.kaldi import HOP

        output = self._model(features.log_mel[:, None], output_hidden_states=with_states(layers))
        sounding, seconds = -(-features.frames // PATCH), PATCH * HOP / self.card.sample_rate
        states = []
        for hidden in states_at(output, layers):
            # The class token comes first, then the eight patches of the first moment, and so on.
            patches = hidden[:, 1:].unflatten(1, (FRAMES // PATCH, -1)).mean(dim=2)
            states.append(Hidden(patches[:, :sounding], seconds, hidden[:, 0]))
        return states


def make_model() -> Any:
    """A ViT-B/16 (Dosovitskiy et al., 2021, arXiv 2010.11929) for spectrograms, with fresh weights."""
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
    """Weights by the names of transformers' vision transformer, from timm's.

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
        # That of the authors' repository; the card of this port of their weights says CC BY 4.0.
        "CC-BY-NC-4.0",
        "AudioMAE ViT-B/16, mean over the patches of the clip (10.2-s window)",
        # A port by a third party, for which no hash is on record.
        WeightsFile("pytorch_model.bin", "gaunernst/vit_base_patch16_1024_128.audiomae_as2m", 343_000_000),
        AudioMaeEncoder,
    ),
)
