"""A small CLAP that a training begins with: sound is read frame after frame by a GRU, text by `small_text`.

docs/training.md sets it beside the tiny `ClapModel` (`tiny_clap`), trained likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from .aligned import INITIAL_SCALE
from .small_text import WIDTH, SmallText
from .tiny_clap import DIM, MAX_TOKENS, SAMPLE_RATE, SECONDS

if TYPE_CHECKING:
    from transformers import ClapFeatureExtractor

MODEL_TYPE = "small_clap"

MELS = 64

LEAST_DEVIATION = 1e-3
"""Decibels; a band that hardly varies is not blown up."""


def small_extractor() -> ClapFeatureExtractor:
    """The front end: 251 frames of 10 s at 16 kHz, 64 bands up to 8 kHz; a shorter clip is followed by silence."""
    from transformers import ClapFeatureExtractor

    return ClapFeatureExtractor(
        feature_size=MELS,
        sampling_rate=SAMPLE_RATE,
        hop_length=640,
        max_length_s=SECONDS,
        fft_window_size=1024,
        frequency_min=50,
        frequency_max=SAMPLE_RATE // 2,
        truncation="rand_trunc",
        padding="pad",
    )


class SmallClapConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """How large the towers are."""

    model_type = MODEL_TYPE

    def __init__(
        self,
        num_mel_bins: int = MELS,
        hidden_size: int = WIDTH,
        projection_dim: int = DIM,
        vocab_size: int = 1,
        max_tokens: int = MAX_TOKENS,
        **rest: Any,
    ) -> None:
        """Take the values.

        Args:
            num_mel_bins: bands of the front end.
            hidden_size: of the convolutions, of the state behind them, and of the vectors of words.
            projection_dim: length of an embedding.
            vocab_size: tokens of the tokenizer.
            max_tokens: of a text, the first and the last, which stand for its ends, among them.
            rest: see `PretrainedConfig`.
        """
        self.num_mel_bins, self.hidden_size, self.projection_dim = num_mel_bins, hidden_size, projection_dim
        self.vocab_size, self.max_tokens = vocab_size, max_tokens
        # transformers makes a name for each label, of as many as a file says; there are none here.
        rest.pop("num_labels", None)
        super().__init__(**rest)


class SmallAudio(nn.Module):
    """Two convolutions that each halve the frames, a GRU over them, and its last state beside the mean of all."""

    def __init__(self, bands: int, width: int, output_dim: int) -> None:
        """Fresh weights; the mean and the deviation of bands are 0 and 1.

        Args:
            bands: of the spectrogram.
            width: of convolutions and state.
            output_dim: length of an embedding.
        """
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(bands, width, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.GELU(),
        )
        self.norm = nn.LayerNorm(width)
        self.reader = nn.GRU(width, width, batch_first=True)
        self.projection = nn.Sequential(
            nn.LayerNorm(2 * width),
            nn.Linear(2 * width, output_dim),
            nn.ReLU(),
            nn.Linear(output_dim, output_dim),
        )
        self.register_buffer("mean", torch.zeros(bands))
        self.register_buffer("deviation", torch.ones(bands))

    def forward(self, log_mel: torch.Tensor) -> torch.Tensor:
        """Embed clips: [n, output_dim], of spectrograms [n, frames, bands] in decibels."""
        standard = (log_mel.float() - self.get_buffer("mean")) / self.get_buffer("deviation")
        states, _ = self.reader(self.norm(self.convolutions(standard.mT).mT))
        embeddings: torch.Tensor = self.projection(torch.cat([states[:, -1], states.mean(dim=1)], dim=1))
        return embeddings

    @torch.no_grad()
    def measure(self, log_mel: torch.Tensor) -> None:
        """Set mean and deviation of bands to those of some spectrograms [n, frames, bands]."""
        values = log_mel.double().flatten(0, -2)
        self.get_buffer("mean").copy_(values.mean(dim=0))
        self.get_buffer("deviation").copy_(values.std(dim=0, unbiased=False).clamp(min=LEAST_DEVIATION))


class SmallClapModel(PreTrainedModel):  # type: ignore[no-untyped-call]
    """The two towers and the scale of their cosines."""

    config_class = SmallClapConfig
    config: SmallClapConfig
    base_model_prefix = "small_clap"

    def __init__(self, config: SmallClapConfig) -> None:
        """Fresh weights."""
        super().__init__(config)
        self.audio_model = SmallAudio(config.num_mel_bins, config.hidden_size, config.projection_dim)
        self.text_model = SmallText(config.vocab_size, config.max_tokens, config.projection_dim, config.hidden_size)
        self.logit_scale = nn.Parameter(torch.tensor(INITIAL_SCALE).log())
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Fresh weights stay as torch has drawn them."""

    def embed_audio(self, log_mel: torch.Tensor) -> torch.Tensor:
        """Spectrograms [n, frames, bands] in decibels in the common space: [n, projection_dim], of unit length."""
        return nn.functional.normalize(self.audio_model(log_mel).float(), dim=-1)

    def embed_text(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Texts as numbers of tokens [n, tokens] in the common space: [n, projection_dim], of unit length."""
        return nn.functional.normalize(self.text_model(ids, mask).float(), dim=-1)


def fresh_small_clap(vocabulary: int, seed: int = 0) -> SmallClapModel:
    """The model with fresh weights, in evaluation mode; torch's own generator stays as it is.

    Args:
        vocabulary: tokens of the tokenizer.
        seed: of the weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = SmallClapModel(SmallClapConfig(vocab_size=vocabulary))
    model.train(mode=False)
    return model
