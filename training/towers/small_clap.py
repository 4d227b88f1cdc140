"""The towers that a training begins with by default: small ones, which learn order within minutes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import TrainingError
from ..features import ClapFrontEnd, FrontEnd
from ..model import MAX_SCALE, TowersFamily, TwoTowers
from ..settings import TINY
from ..texts import Tokeniser
from ..tokens import Tokens

if TYPE_CHECKING:
    from transformers import ClapFeatureExtractor

    from audio_compositionality.encoders.loading.checkpoints import Checkpoint
    from audio_compositionality.encoders.networks.small_clap import SmallClapModel
    from audio_compositionality.encoders.protocols import AudioTextEncoder


class SmallTowers(TwoTowers):
    """The small towers of `encoders.networks.small_clap`; all of their weights are trained."""

    extractor: ClapFeatureExtractor

    def __init__(self, model: SmallClapModel, extractor: ClapFeatureExtractor, tokenizer: Any, *, fresh: bool) -> None:
        """Take a model.

        Args:
            model: with its weights.
            extractor: its front end.
            tokenizer: its tokenizer.
            fresh: whether nothing has been learnt yet.
        """
        super().__init__()
        self.model, self.extractor, self.tokenizer = model, extractor, tokenizer
        self.tokeniser = Tokeniser(tokenizer, model.config.max_tokens)
        self._fresh = fresh
        self.model.requires_grad_(requires_grad=True)
        self.train(mode=False)

    @property
    def needs_norm(self) -> bool:
        """Whether the weights are fresh: the mean and the deviation of its bands are then 0 and 1."""
        return self._fresh

    def embed_audio(self, features: Tensor) -> Tensor:
        """Embed clips: [B, D], of their log-mel spectrograms [B, 1, frames, bands] in decibels."""
        return self.model.embed_audio(features[:, 0])

    def embed_text(self, tokens: Tokens) -> Tensor:
        """Embed texts: [M, D]."""
        return self.model.embed_text(tokens.ids, tokens.mask)

    def scale(self) -> Tensor:
        """What cosines are multiplied by; the exponential of one weight."""
        return self.model.logit_scale.exp()

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Bring the scale back to `MAX_SCALE`."""
        self.model.logit_scale.clamp_(max=float(torch.tensor(MAX_SCALE).log()))

    def measure_norm(self, features: Iterable[Tensor]) -> None:
        """Set the mean and the deviation of the bands to those of some clips, over clips and frames.

        Raises:
            TrainingError: there are no clips.
        """
        batches = list(features)
        if not batches:
            raise TrainingError("there are no clips to measure the bands of fresh weights on")
        self.model.audio_model.measure(torch.cat(batches).flatten(0, 1).cpu())

    def open_front_end(self) -> FrontEnd:
        """The log-mel spectrogram, as evaluation computes it."""
        return ClapFrontEnd(self.extractor, "training")

    def save(self, folder: Path) -> None:
        """Write a folder that `load_model` opens, with front end and tokenizer."""
        from audio_compositionality.encoders.loading.checkpoints import quiet

        folder.mkdir(parents=True, exist_ok=True)
        with quiet(folder):
            for part in (self.model, self.extractor, self.tokenizer):
                part.save_pretrained(folder)

    def open_encoder(self) -> AudioTextEncoder:
        """The model as it is now, with copies of the weights."""
        from audio_compositionality.encoders.families.small_clap import SmallClapEncoder
        from audio_compositionality.encoders.loading.built import BuiltCheckpoint
        from audio_compositionality.encoders.options import DEFAULT_OPTIONS

        checkpoint = BuiltCheckpoint.of_model(
            self.model,
            self.extractor,
            self.tokenizer,
            name="training",
            revision="now",
            paradigm="audio–text contrastive",
            licence=None,
        )
        return SmallClapEncoder(checkpoint, self.device, DEFAULT_OPTIONS)


def fresh_small_towers(seed: int = 0) -> SmallTowers:
    """Towers with fresh weights, on the CPU.

    Args:
        seed: of the weights.
    """
    from audio_compositionality.encoders.networks.small_clap import fresh_small_clap, small_extractor
    from audio_compositionality.encoders.networks.tiny_clap import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    return SmallTowers(fresh_small_clap(len(tokenizer), seed), small_extractor(), tokenizer, fresh=True)


def open_gru_towers(checkpoint: Checkpoint, fresh: bool) -> SmallTowers:
    """Towers of a checkpoint, on the CPU.

    Args:
        checkpoint: of such a model.
        fresh: whether its weights are fresh.

    Raises:
        ModelError: its files cannot be had or are incomplete.
    """
    from transformers import ClapFeatureExtractor

    from audio_compositionality.encoders.loading.partial import PartialCheckpoint
    from audio_compositionality.encoders.networks.small_clap import SmallClapModel

    model = PartialCheckpoint.of(checkpoint, str).load_part(SmallClapModel, checkpoint.config)
    extractor = checkpoint.load_feature_extractor(ClapFeatureExtractor)
    tokenizer = checkpoint.load_tokenizer(int(checkpoint.config.vocab_size))
    return SmallTowers(model, extractor, tokenizer, fresh=fresh)


TOWERS = TowersFamily("small_clap", TINY, fresh_small_towers, open_gru_towers)
