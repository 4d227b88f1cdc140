"""The small CLAP from which `audio-compositionality train` starts by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import FloatArray, ModelError, StagedEncoder
from ..inference import double_precision_device, inference
from ..options import EncoderOptions
from ..text_towers import TextedTower, TextTower, longest_text
from .clap import mean_of_windows, windows_of

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

    from ..loading.checkpoints import Checkpoint

MODEL_TYPE = "small_clap"

SIZES = ("num_mel_bins", "hidden_size", "projection_dim", "vocab_size", "max_tokens")
"""Names of the configuration's sizes."""


@dataclass(frozen=True)
class SmallClapFeatures:
    """Input of the audio tower.

    Attributes:
        log_mel: float32 [n · windows, frames, bands], in decibels.
        windows: number of windows per clip.
    """

    log_mel: torch.Tensor
    windows: int


class SmallClapEncoder(TextedTower, StagedEncoder[SmallClapFeatures]):
    """A small CLAP with embeddings of sound and text of unit length.

    Clips shorter than the window of 10 s are followed by silence. A longer one is the mean over the smallest number of
    windows that cover it, evenly spaced, again of unit length.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        from ..front_ends.clap import ClapLogMel

        if options.layer is not None or options.pooling is not None:
            raise ModelError(f"'{checkpoint.name}' has only its own embedding, so it takes no layer and no pooling")
        part = checkpoint.part(str, str)
        extractor, network, self._tokenizer = small_clap_parts(part)
        self._network = network.to(device)
        self._front_end_device = double_precision_device(device)
        self._log_mel = ClapLogMel(extractor, checkpoint.name).to(self._front_end_device)
        self.device = str(device)
        self.card = part.card(
            sample_rate=int(extractor.sampling_rate),
            output_dim=network.config.projection_dim,
            options=options,
            modules=[self._network.audio_model],
        )

    def _extract_features(self, clips: FloatArray) -> SmallClapFeatures:
        import torch

        windows = windows_of(clips, self._log_mel.window_samples)
        log_mel = self._log_mel(torch.from_numpy(np.concatenate(windows)).to(self._front_end_device))
        return SmallClapFeatures(log_mel.to(self.device), windows.shape[1])

    def _run_model(self, features: SmallClapFeatures) -> FloatArray:
        with inference(self.device, self.card.options.precision):
            embeddings = mean_of_windows(self._network.embed_audio(features.log_mel), features.windows)
        values: FloatArray = embeddings.float().cpu().numpy()
        return values

    def _load_text_tower(self) -> TextTower:
        longest = longest_text(self._tokenizer, self._network.config.max_tokens)
        return TextTower(self._tokenizer, self._network.embed_text, longest)


def small_clap_parts(part: Checkpoint) -> tuple[Any, Any, Any]:
    """Load feature extractor, network and tokenizer of a checkpoint on the CPU.

    Raises:
        ModelError: its files cannot be read or do not match; its configuration describes no such network.
    """
    from transformers import ClapFeatureExtractor

    from ..loading.checkpoints import check_network
    from ..networks.small_networks import SmallClapModel

    check_network(part, SmallClapModel, SIZES)
    extractor = part.load_feature_extractor(ClapFeatureExtractor)
    if extractor.feature_size != part.config.num_mel_bins:
        raise ModelError(
            f"the feature extractor of '{part.name}' makes {extractor.feature_size} mel bands, but the model takes "
            f"{part.config.num_mel_bins}"
        )
    return extractor, part.load_part(SmallClapModel, part.config), part.load_tokenizer(part.config.vocab_size)


def _configuration() -> type[PretrainedConfig]:
    """Return the class of its configuration."""
    from ..networks.small_networks import SmallClapConfig

    return SmallClapConfig


ARCHITECTURES = {MODEL_TYPE: SmallClapEncoder}

CONFIGURATIONS = {MODEL_TYPE: _configuration}
