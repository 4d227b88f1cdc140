"""The towers that a training begins with by default: small ones, which learn order within minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from ..model import TowersFamily, TwoTowers
from ..settings import TINY

if TYPE_CHECKING:
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.encoders.loading.checkpoints import Checkpoint


class SmallTowers(TwoTowers):
    """The small towers of `encoders.networks.small_clap`; all of their weights are trained."""

    def embed_audio(self, features: Tensor) -> Tensor:
        """Embed clips: [B, D], of their log-mel spectrograms [B, 1, frames, bands] in decibels."""
        return super().embed_audio(features[:, 0])

    def _measure(self, features: Tensor) -> None:
        """Set the mean and the deviation of the bands, over clips and frames."""
        self.model.audio_model.measure(features)

    def open_encoder(self) -> Model:
        """See `TwoTowers`."""
        from audio_compositionality.encoders.families.small_clap import SmallClapEncoder
        from audio_compositionality.encoders.options import DEFAULT_OPTIONS

        return SmallClapEncoder(self.checkpoint(), self.device, DEFAULT_OPTIONS)


def fresh_small_towers(seed: int = 0) -> SmallTowers:
    """Towers with fresh weights, on the CPU.

    Args:
        seed: of the weights.
    """
    from audio_compositionality.encoders.networks.small_clap import fresh_small_clap, small_extractor
    from audio_compositionality.encoders.networks.tiny_clap import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    model = fresh_small_clap(len(tokenizer), seed)
    return SmallTowers(model, tokenizer, model.config.max_tokens, extractor=small_extractor(), fresh=True)


def open_small_towers(checkpoint: Checkpoint, fresh: bool) -> SmallTowers:
    """Towers of a checkpoint, on the CPU.

    Args:
        checkpoint: of such a model.
        fresh: whether its weights are fresh.

    Raises:
        ModelError: its files cannot be had or are incomplete.
    """
    from audio_compositionality.encoders.families.small_clap import small_clap_parts
    from audio_compositionality.encoders.loading.partial import PartialCheckpoint

    extractor, model, tokenizer = small_clap_parts(PartialCheckpoint.of(checkpoint, str, str))
    return SmallTowers(model, tokenizer, model.config.max_tokens, extractor=extractor, fresh=fresh)


TOWERS = TowersFamily("small_clap", TINY, fresh_small_towers, open_small_towers)
