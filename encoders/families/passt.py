"""PaSST of "Efficient Training of Audio Transformers with Patchout" (Koutini et al., 2022, arXiv 2110.05069).

PaSST-S as the package hear21passt 0.0.26 has it by default: structured patchout, stochastic weight averaging, patches
of 16 × 16 with a stride of 10. Patchout and the jitter of the mel filters are for training only. The embedding of a
clip is that of the package's mode "embed_only": the mean of class and distillation token.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import torch
from torch import nn
from transformers.audio_utils import mel_filter_bank

from audio_compositionality.encoders.base import FloatArray
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.loading.weights import State, Weights

SAMPLE_RATE = 32_000
N_FFT = 1024
WINDOW = 800
"""Samples of the Hann window: 25 ms, in the middle of the Fourier transform's 1,024."""
HOP = 320
MELS = 128
HIGHEST_FREQUENCY = 15_000
"""Hz at which the highest mel band ends without jitter: 1 kHz below half the sample rate, in training ± 1 kHz."""
PREEMPHASIS = 0.97

PATCH = 16
STRIDE = 10
BANDS = (MELS - PATCH) // STRIDE + 1
"""Patches over frequency: 12."""
MOMENTS = 99
"""Positions in time that the model knows: the patches of 998 frames."""
LONGEST = 10 * SAMPLE_RATE
SHORTEST = (PATCH - 1) * HOP + 1
"""Samples of a clip of 16 frames; pre-emphasis takes one of them away."""

DIM = 768
DEPTH = 12
HEADS = 12

LayerNorm = partial(nn.LayerNorm, eps=1e-6)


class LogMel(nn.Module):
    """PaSST's front end: pre-emphasis, power, 128 mel bands of Kaldi's kind from 0 to 15 kHz, logarithm, scaling.

    Windows are symmetric and centred, and the clip is reflected at both ends. The logarithm is of power + 1e-5; 4.5
    is added and the sum divided by 5, which brings the training data near to mean 0 and unit variance.
    """

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        filters = mel_filter_bank(
            num_frequency_bins=N_FFT // 2 + 1,
            num_mel_filters=MELS,
            min_frequency=0.0,
            max_frequency=HIGHEST_FREQUENCY,
            sampling_rate=SAMPLE_RATE,
            norm=None,
            mel_scale="kaldi",
            triangularize_in_mel_space=True,
        )
        self.register_buffer("_filters", torch.from_numpy(filters.T).float().contiguous())
        self.register_buffer("_taper", torch.hann_window(WINDOW, periodic=False))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Spectrograms [n, 128, 1 + (samples - 1) // 320] of clips [n, samples]."""
        # On the CPU the spectrum of one clip fits into the cache, that of a batch does not: half the time.
        parts = [clip[None] for clip in clips] if clips.device.type == "cpu" else [clips]
        return torch.cat([self._log_mel(part) for part in parts])

    def _log_mel(self, clips: torch.Tensor) -> torch.Tensor:
        emphasised = clips[:, 1:] - PREEMPHASIS * clips[:, :-1]
        spectrum = torch.stft(emphasised, N_FFT, HOP, WINDOW, window=self._taper, return_complex=True)
        power = torch.view_as_real(spectrum).square().sum(dim=-1)
        log_mel: torch.Tensor = ((self._filters @ power + 1e-5).log() + 4.5) / 5
        return log_mel


class Attention(nn.Module):
    """Self-attention with one projection to queries, keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [n, tokens, 768] of tokens of the same shape."""
        queries, keys, values = self.qkv(tokens).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(queries, keys, values)
        projected: torch.Tensor = self.proj(attended.transpose(1, 2).flatten(2))
        return projected


class Block(nn.Module):
    """A block of a vision transformer, normalised before attention and before the feed-forward half."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = LayerNorm(DIM)
        self.attn = Attention()
        self.norm2 = LayerNorm(DIM)
        self.mlp = nn.Sequential(OrderedDict(fc1=nn.Linear(DIM, 4 * DIM), act=nn.GELU(), fc2=nn.Linear(4 * DIM, DIM)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [n, tokens, 768] of tokens of the same shape."""
        attended = tokens + self.attn(self.norm1(tokens))
        output: torch.Tensor = attended + self.mlp(self.norm2(attended))
        return output


class Passt(nn.Module):
    """PaSST-S without its classifiers; fresh weights are drawn as those of vision transformers are.

    Positions are those of frequency plus those of time (arXiv 2110.05069, section 2).
    """

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(1, DIM, PATCH, STRIDE)
        self.cls_token = nn.Parameter(torch.empty(1, 1, DIM))
        self.dist_token = nn.Parameter(torch.empty(1, 1, DIM))
        self.new_pos_embed = nn.Parameter(torch.empty(1, 2, DIM))
        self.freq_new_pos_embed = nn.Parameter(torch.empty(1, DIM, BANDS, 1))
        self.time_new_pos_embed = nn.Parameter(torch.empty(1, DIM, 1, MOMENTS))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = LayerNorm(DIM)
        for name, parameter in self.named_parameters():
            if name.endswith(("_token", "_pos_embed")):
                nn.init.trunc_normal_(parameter, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, log_mel: torch.Tensor, layer: int | None) -> torch.Tensor:
        """Tokens [n, 2 + 12 · moments, 768] of spectrograms [n, 128, frames].

        The class token and the distillation token come first, then all patches of the lowest band, and so on.

        Args:
            log_mel: spectrograms of 16 frames at least, and of as many as there are positions at most.
            layer: 0 for the input of the first block, k for the output of block k, None for that of the last,
                normalised.
        """
        patches = self.patch_embed(log_mel[:, None])
        patches = patches + self.time_new_pos_embed[..., : patches.shape[3]] + self.freq_new_pos_embed
        ends = torch.cat([self.cls_token, self.dist_token], dim=1) + self.new_pos_embed
        tokens = torch.cat([ends.expand(len(patches), -1, -1), patches.flatten(2).transpose(1, 2)], dim=1)
        for block in self.blocks[:layer]:
            tokens = block(tokens)
        return self.norm(tokens) if layer is None else tokens


def convert_passt(state: State) -> State:
    """The tensors of the official checkpoint by the names of `Passt`."""
    return {name.replace("patch_embed.proj.", "patch_embed."): tensor for name, tensor in state.items()}


class PasstEncoder(ModelEncoder[torch.Tensor]):
    """PaSST-S; its embedding is the mean of its class and its distillation token.

    A frame is the mean of the twelve patches of a moment; moments are 100 ms apart. A clip may last 150 ms to 10 s:
    of a shorter one than 10 s the model is given the first positions, and longer ones are refused.
    """

    has_embedding = True
    has_cls = True

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        super().__init__(weights.encoder_id, sample_rate=SAMPLE_RATE, num_layers=DEPTH, options=options, device=device)
        self.output_dim = DIM
        self._log_mel = LogMel().to(device)
        self._model = weights.build(Passt, convert_passt, unused=("head.", "head_dist.")).to(device)
        self.revision, self.weights_sha256 = weights.revision, weights.sha256

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        samples = clips.shape[1]
        if not SHORTEST <= samples <= LONGEST:
            limit, advice = ("at least", "") if samples < SHORTEST else ("at most", "; cut them before")
            raise ValueError(
                f"clips last {samples / SAMPLE_RATE:g} s, but '{self.id}' takes "
                f"{(SHORTEST if samples < SHORTEST else LONGEST) / SAMPLE_RATE:g} s {limit}{advice}"
            )
        features: torch.Tensor = self._log_mel(torch.from_numpy(clips).to(self.device))
        return features

    def _encode(self, features: torch.Tensor) -> Hidden:
        tokens = self._model(features, self.options.layer)
        token = tokens[:, :2].mean(dim=1)
        frames = tokens[:, 2:].unflatten(1, (BANDS, -1)).mean(dim=1)
        return Hidden(frames, STRIDE * HOP / SAMPLE_RATE, cls=token, embedding=token)
