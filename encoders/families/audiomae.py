"""AudioMAE: the encoder of a masked autoencoder of spectrograms."""

from __future__ import annotations

from typing import Any

import torch
from transformers import ViTConfig, ViTModel

from audio_compositionality.encoders.base import FloatArray
from audio_compositionality.encoders.front_ends.kaldi import HOP, SAMPLE_RATE, LogMelWindow, WindowedFilterBank, check_length
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.loading.weights import State, Weights

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


class AudioMaeEncoder(ModelEncoder[LogMelWindow]):
    """AudioMAE ViT-B/16, pretrained on AudioSet (Huang et al., 2022, arXiv 2207.06405).

    The mean over the patches that begin within the clip, after the final normalisation and without the class token,
    which reconstruction leaves without a task. Its window is 1,024 frames of 10 ms; shorter clips are padded and
    longer ones are refused.
    """

    has_cls = True

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        super().__init__(weights.encoder_id, sample_rate=SAMPLE_RATE, num_layers=LAYERS, options=options, device=device)
        self._front_end = WindowedFilterBank(mels=MELS, frames=FRAMES, mean=MEAN, std=STD).to(device)
        model = weights.build(make_model, convert)
        if options.layer is not None:
            # The first block is kept for its input.
            del model.layers[max(options.layer, 1) :]
        self._model = model.to(device)
        self.output_dim = int(model.config.hidden_size)
        self.revision, self.weights_sha256 = weights.revision, weights.sha256

    def _extract_features(self, clips: FloatArray) -> LogMelWindow:
        check_length(clips.shape[1], self.id, most=FRAMES)
        window: LogMelWindow = self._front_end(torch.from_numpy(clips).to(self.device))
        return window

    def _encode(self, features: LogMelWindow) -> Hidden:
        layer = self.options.layer
        output = self._model(features.log_mel[:, None], output_hidden_states=layer is not None)
        hidden = output.last_hidden_state if layer is None else output.hidden_states[layer]
        # The class token comes first, then the eight patches of the first moment, and so on.
        patches = hidden[:, 1:].unflatten(1, (FRAMES // PATCH, -1)).mean(dim=2)
        sounding = -(-features.frames // PATCH)
        return Hidden(patches[:, :sounding], PATCH * HOP / SAMPLE_RATE, hidden[:, 0])


def make_model() -> Any:
    """A ViT-B/16 (Dosovitskiy et al., 2021, arXiv 2010.11929) for spectrograms, with fresh weights."""
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


def convert(state: State) -> State:
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
