"""The small towers with which a training begins by default, which learn order within minutes, and alignment.

An audio encoder is aligned with text: its embeddings stay frozen, and a linear map and a small text tower are trained.
This measures how much order and binding an embedding holds in a form that is linear: the map cannot find anything else.
A control is built in: statistics of a log-mel spectrogram over time cannot hold order.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.families.aligned import AlignedEncoder, FrozenEncoder
from audio_compositionality.encoders.loading.names import absolute_name
from audio_compositionality.encoders.networks import small_networks
from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions
from audio_compositionality.evaluator.run.cache import cached_outputs_folder
from audio_compositionality.evaluator.run.embeddings import embed_configuration
from audio_compositionality.evaluator.run.options import RunOptions

from ..batches import ArrayFeatures
from ..data import TrainingData
from ..model import TowersFamily, TwoTowers
from ..settings import TINY, TrainingError

if TYPE_CHECKING:
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.encoders.loading.checkpoints import Checkpoint


class AlignedTowers(TwoTowers):
    """A linear map of frozen embeddings, and a text tower.

    Attributes:
        frozen: the encoder.
    """

    def __init__(self, frozen: FrozenEncoder, model: small_networks.AlignedModel, tokenizer: Any) -> None:
        """Set the parts; all weights of the model are trained. No embeddings have been measured yet."""
        super().__init__(model, tokenizer, model.config.max_tokens, fresh=True)
        self.frozen = frozen

    def _measure(self, features: Tensor) -> None:
        """Set mean and deviation of each dimension of the embeddings."""
        self.model.measure(features)

    def open_encoder(self) -> AlignedEncoder:
        """Return the current model, with copies of the weights."""
        network = deepcopy(self.model).requires_grad_(requires_grad=False)
        of_frozen = self.frozen.model.card
        dim = int(network.config.projection_dim)
        card = ModelCard("training", "now", of_frozen.sample_rate, dim, paradigm=self.frozen.described)
        return AlignedEncoder.of_parts(card, self.frozen, network, self.tokenizer, str(self.device))


def open_aligned(
    encoder: str,
    *,
    seed: int = 0,
    options: EncoderOptions = DEFAULT_OPTIONS,
    device: str | torch.device | None = None,
    train: str = "all",
) -> AlignedTowers:
    """Return the start of an alignment; the map and the text tower are on the CPU.

    Args:
        encoder: name of any encoder of sound, as `load_model` takes it; `untrained:NAME` is its untrained twin.
        seed: seed of the fresh weights and of a twin's.
        options: layer and pooling of the encoder.
        device: torch device of the encoder.
        train: weights that are trained; must be all.

    Raises:
        TrainingError: other weights than all are requested.
        ModelError: there is no such encoder, or it embeds no sound.
    """
    if train != "all":
        raise TrainingError(
            f"train is {train!r}; an aligned encoder has a map and a text tower, which are both trained"
        )
    # The folder that is written must open from anywhere.
    name = absolute_name(encoder)
    frozen = FrozenEncoder.load(name, seed=seed, options=options, device=device)
    tokenizer = small_networks.tiny_tokenizer()
    config = small_networks.AlignedConfig(
        vocab_size=len(tokenizer),
        encoder=name,
        encoder_revision=frozen.revision,
        encoder_seed=seed,
        layer=options.layer,
        pooling=options.pooling,
        input_dim=frozen.dim,
    )
    return AlignedTowers(frozen, small_networks.fresh_aligned(config, seed), tokenizer)


def frozen_features(towers: AlignedTowers, data: TrainingData, *, progress: bool = False) -> ArrayFeatures:
    """Return the embeddings of all clips, through the cache of embeddings of evaluation: each is computed once.

    Raises:
        AudioCompositionalityError: a clip cannot be read or embedded.
    """

    options = RunOptions(progress=progress, cache=cached_outputs_folder())
    cache = embed_configuration(towers.frozen.model, data.configuration, options)
    return ArrayFeatures(cache.load().embeddings)


class SmallTowers(TwoTowers):
    """The small towers of `encoders.networks.small_networks`; all of their weights are trained."""

    def embed_audio(self, features: Tensor) -> Tensor:
        """Embed clips: [B, D], from their log-mel spectrograms [B, 1, frames, bands] in decibels."""
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
    """Return towers with fresh weights, on the CPU.

    Args:
        seed: seed of the weights.
    """
    from audio_compositionality.encoders.networks.small_networks import (
        fresh_small_clap,
        small_extractor,
    )

    tokenizer = small_networks.tiny_tokenizer()
    model = fresh_small_clap(len(tokenizer), seed)
    return SmallTowers(model, tokenizer, model.config.max_tokens, extractor=small_extractor(), fresh=True)


def open_small_towers(checkpoint: Checkpoint, fresh: bool) -> SmallTowers:
    """Return the towers of a checkpoint, on the CPU.

    Args:
        checkpoint: checkpoint of a small CLAP.
        fresh: whether its weights are fresh.

    Raises:
        ModelError: its files cannot be downloaded or are incomplete.
    """
    from audio_compositionality.encoders.families.small_clap import small_clap_parts

    extractor, model, tokenizer = small_clap_parts(checkpoint.part(str, str))
    return SmallTowers(model, tokenizer, model.config.max_tokens, extractor=extractor, fresh=fresh)


TOWERS = TowersFamily("small_clap", TINY, fresh_small_towers, open_small_towers)
