"""The card of a model that was made of a checkpoint or of a file of weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..base import ModelCard
from ..options import EncoderOptions
from .twins import Twin

if TYPE_CHECKING:
    import torch


class ModelSource(ABC):
    """What a model is made of: a `Checkpoint`, or `Weights`.

    Attributes:
        name: of the model, without options.
        twin: None for the model itself, else which twin of it.
        paradigm: how the weights were trained; None where it is not known.
        licence: of the weights; None where it is not known.
        trained_on: data that the weights were trained on; None where it is not stated.
    """

    name: str
    twin: Twin | None
    paradigm: str | None
    licence: str | None
    trained_on: str | None

    @property
    def id(self) -> str:
        """The id of a model made of it, without its options; that of a twin says so."""
        return self.name if self.twin is None else self.twin.kind.prefix + self.name

    @property
    def fresh_seed(self) -> int | None:
        """Seed of fresh weights; None where stored ones are read."""
        return self.twin.seed if self.twin is not None and self.twin.kind.is_fresh else None

    @property
    @abstractmethod
    def revision(self) -> str:
        """What exactly is run: see `ModelCard`."""

    @property
    @abstractmethod
    def weights_sha256(self) -> str | None:
        """SHA-256 of the stored weights; None of a twin, which has others."""

    def change(self, module: torch.nn.Module, prefixes: tuple[str, ...] = ("",)) -> None:
        """Do to stored weights, in place, what makes a twin of them; nothing where none is asked for.

        Args:
            module: with the stored weights, on the CPU.
            prefixes: of the names of parameters that are used.
        """
        if self.twin is not None and self.twin.kind.change is not None:
            self.twin.kind.change(module, self.twin.seed, prefixes)

    def card(
        self, *, sample_rate: int, output_dim: int | None, options: EncoderOptions, modules: Iterable[torch.nn.Module]
    ) -> ModelCard:
        """The card of a model made of it.

        Args:
            sample_rate, output_dim, options: see `ModelCard`.
            modules: those that are run, whose weights are counted.
        """
        return ModelCard(
            id=self.id + options.suffix,
            revision=self.revision,
            sample_rate=sample_rate,
            output_dim=output_dim,
            weights_sha256=self.weights_sha256,
            parameters=sum(parameter.numel() for module in modules for parameter in module.parameters()),
            paradigm=self.paradigm if self.twin is None else self.twin.kind.paradigm,
            # Fresh weights are nobody's; permuted ones are still somebody's work.
            licence=None if self.fresh_seed is not None else self.licence,
            trained_on=self.trained_on if self.twin is None else None,
            options=options,
        )
