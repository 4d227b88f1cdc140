"""Microsoft's CLAP of 2023 (Elizalde et al., 2023, arXiv 2309.05767): HTSAT and a projection.

The published package (msclap) cuts 7 s out of a longer clip at random. Its model need not: in evaluation mode it
averages HTSAT over overlapping windows, and that is what is done here, so that a clip is embedded whole and always
the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import nn
from transformers import ClapAudioConfig, ClapAudioModel

from audio_compositionality.encoders.base import FloatArray
from .clap import layer_dims, segments_of_image, unfold_image
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.front_ends.torchlibrosa import HOP, LogMel, convert_front_end
from audio_compositionality.encoders.loading.weights import State, Weights

SAMPLE_RATE = 44_100
BAND_EDGES = (50, 8000)
"""Hz; of the mel filters of fresh weights (the package's config_2023.yml). A checkpoint holds its own."""

TRAINED_SAMPLES = 7 * SAMPLE_RATE
"""Length that clips had in training; a shorter one is repeated up to it (the package's load_audio_into_tensor)."""

LONGEST_WINDOW = 1024
"""Frames that HTSAT takes at once."""

WINDOW = 689
WINDOW_HOP = 344
"""Frames of the windows, and between them, that a longer spectrogram is averaged over (the package's htsat.py)."""

EMBEDDING_DIM = 1024

HTSAT = "audio_encoder.base.htsat."
PROJECTION = "audio_encoder.projection."
COMPUTED = ("relative_position_index", "attn_mask")
"""Buffers of the checkpoint that follow from the architecture."""

UNUSED = ("caption_encoder.", "logit_scale", "head.", "tscam_conv.")
"""The text encoder, the temperature of the contrastive loss and the classifier of AudioSet."""


class Projection(nn.Module):
    """From HTSAT's output to the space that sound and text share: a residual block and layer normalisation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(inputs, outputs, bias=False)
        self.linear2 = nn.Linear(outputs, outputs, bias=False)
        self.layer_norm = nn.LayerNorm(outputs)

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        """[n, outputs] of [n, inputs]."""
        first = self.linear1(latent)
        projected: torch.Tensor = self.layer_norm(first + self.linear2(nn.functional.gelu(first)))
        return projected


class MsClap(nn.Module):
    """The audio encoder and its front end."""

    def __init__(self) -> None:
        super().__init__()
        self.config = ClapAudioConfig()
        self.log_mel = LogMel(SAMPLE_RATE, BAND_EDGES)
        self.htsat = ClapAudioModel(self.config)
        self.projection = Projection(self.config.hidden_size, EMBEDDING_DIM)
        for module in self.htsat.modules():
            index = getattr(module, "relative_position_index", None)
            if isinstance(index, torch.Tensor):
                # Follows from the architecture, so that no checkpoint need hold it.
                module.register_buffer("relative_position_index", index, persistent=False)


@dataclass(frozen=True)
class MsClapFeatures:
    """Input of MS-CLAP.

    Attributes:
        windows: float32 [n, windows, frames, mels], log-mel spectrograms in decibels.
        samples: length of the clips, before they were repeated.
    """

    windows: torch.Tensor
    samples: int


class MsClapEncoder(ModelEncoder[MsClapFeatures]):
    """MS-CLAP 2023: the projected audio embedding, as the model's own `audio_encoder` gives it.

    A clip shorter than 7 s is repeated up to 7 s, as in training. One of more than 1,024 frames (7.4 s) is embedded in
    windows of 5 s that begin every 2.5 s, of which HTSAT's outputs are averaged before the projection. As in the model,
    what lies behind the last whole window is not heard: 4 ms of 10 s, of other lengths up to 2.5 s.

    Layers are HTSAT's stages, of which all but the last halve the number of frames and double their dimension. Frames
    that overlapping windows have of one moment are averaged; those of repetitions are left out.
    """

    has_embedding = True

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        config = ClapAudioConfig()
        super().__init__(
            weights.encoder_id,
            sample_rate=SAMPLE_RATE,
            num_layers=len(config.depths),
            options=options,
            device=device,
        )
        self._model = weights.build(MsClap, convert_ms_clap, unused=UNUSED).to(device)
        if options.layer is None and options.pooling is None:
            self.output_dim = EMBEDDING_DIM
        else:
            self.output_dim = layer_dims(config)[-1 if options.layer is None else options.layer]
        self.revision, self.weights_sha256 = weights.revision, weights.sha256

    def _extract_features(self, clips: FloatArray) -> MsClapFeatures:
        samples = clips.shape[1]
        repetitions = -(-TRAINED_SAMPLES // samples)
        waveforms = torch.from_numpy(clips).to(self.device)
        if repetitions > 1:
            waveforms = waveforms.repeat(1, repetitions)[:, :TRAINED_SAMPLES]
        log_mel = self._model.log_mel(waveforms)
        frames = log_mel.shape[1]
        if frames <= LONGEST_WINDOW:
            return MsClapFeatures(log_mel[:, None], samples)
        starts = range(0, frames - WINDOW - 1, WINDOW_HOP)
        return MsClapFeatures(torch.stack([log_mel[:, s : s + WINDOW] for s in starts], dim=1), samples)

    def _encode(self, features: MsClapFeatures) -> Hidden:
        layer = self.options.layer
        clips, windows, frames, _ = features.windows.shape
        output = self._model.htsat(features.windows.flatten(0, 1)[:, None], output_hidden_states=layer is not None)
        embedding = None
        if layer is None:
            hidden = output.last_hidden_state.mean(dim=2).mT
            embedding = self._model.projection(output.pooler_output.unflatten(0, (clips, windows)).mean(dim=1))
        else:
            hidden = unfold_image(output.hidden_states[layer], segments_of_image(self._model.config))
        count = hidden.shape[1]
        seconds = frames * HOP / SAMPLE_RATE / count
        whole = overlap_mean(hidden.unflatten(0, (clips, windows)))
        sounding = -(-features.samples // round(seconds * SAMPLE_RATE)) if features.samples < TRAINED_SAMPLES else None
        return Hidden(whole[:, :sounding], seconds, embedding=embedding)


def overlap_mean(windows: torch.Tensor) -> torch.Tensor:
    """Frames [n, (windows + 1) / 2 · frames, dim] of a clip, from those of windows that overlap by half.

    Args:
        windows: [n, windows, frames, dim]; what two windows have of one moment is averaged.
    """
    clips, count, frames, dim = windows.shape
    hop = frames // 2
    total = windows.new_zeros(clips, (count - 1) * hop + frames, dim)
    times = windows.new_zeros(total.shape[1], 1)
    for number in range(count):
        moment = slice(number * hop, number * hop + frames)
        total[:, moment] += windows[:, number]
        times[moment] += 1
    return total / times


def convert_ms_clap(state: State) -> State:
    """The tensors of the official checkpoint by the names of `MsClap`.

    Raises:
        ValueError: if the checkpoint's Fourier transform is not that of the front end.
    """
    converted: State = {}
    for name, tensor in convert_front_end(state, HTSAT).items():
        if name.startswith(PROJECTION):
            converted["projection." + name.removeprefix(PROJECTION)] = tensor
        elif not name.startswith(HTSAT):
            converted[name] = tensor
        elif not name.endswith(COMPUTED):
            converted |= _convert_htsat(name.removeprefix(HTSAT), tensor)
    return converted


_RENAMED = (
    (r"^bn0\.", "batch_norm."),
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
    (r"\.attn\.proj\.", ".attention.output.dense."),
    (r"\.attn\.", ".attention.self."),
)


def _convert_htsat(name: str, tensor: torch.Tensor) -> State:
    if name.startswith(UNUSED):
        return {name: tensor}
    for pattern, replacement in _RENAMED:
        name = re.sub(pattern, replacement, name)
    name = f"htsat.audio_encoder.{name}"
    if ".self.qkv." not in name:
        return {name: tensor}
    parts = zip(("query", "key", "value"), tensor.chunk(3), strict=True)
    return {name.replace("qkv", part): values for part, values in parts}
