"""The card of a model that was made of a checkpoint or of a file of weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..options import EncoderOptions
from ..protocols import ModelCard

if TYPE_CHECKING:
    import torch

UNTRAINED = "untrained:"
"""Stands in front of the name of a model with fresh weights."""


class ModelSource(ABC):
    """What a model is made of: a `Checkpoint`, or `Weights`.

    Attributes:
        name: of the model, without options.
        seed: None for the stored weights, else the seed of fresh ones.
        paradigm: how the weights were trained; None where it is not known.
        licence: of the weights; None where it is not known.
    """

    name: str
    seed: int | None
    paradigm: str | None
    licence: str | None

    @property
    def id(self) -> str:
        """The id of a model made of it, without its options; that of an untrained one says so."""
        return self.name if self.seed is None else UNTRAINED + self.name

    @property
    @abstractmethod
    def revision(self) -> str:
        """What exactly is run: see `ModelCard`."""

    @property
    @abstractmethod
    def weights_sha256(self) -> str | None:
        """SHA-256 of the weights; None of fresh ones."""

    def card(
        self, *, sample_rate: int, output_dim: int | None, options: EncoderOptions, modules: Iterable[torch.nn.Module]
    ) -> ModelCard:
        """The card of a model made of it.

        Args:
            sample_rate, output_dim, options: see `ModelCard`.
            modules: those that are run, whose weights are counted.
        """
        is_fresh = self.seed is not None
        return ModelCard(
            id=self.id + options.suffix,
            revision=self.revision,
            sample_rate=sample_rate,
            output_dim=output_dim,
            weights_sha256=self.weights_sha256,
            parameters=sum(parameter.numel() for module in modules for parameter in module.parameters()),
            # Fresh weights are nobody's, and were trained in no way.
            paradigm="untrained" if is_fresh else self.paradigm,
            licence=None if is_fresh else self.licence,
            options=options,
        )
