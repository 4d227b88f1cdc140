"""Twins of a model: its architecture with untrained weights, as controls.

A kind of twin is a line of `TWINS`. Its name, with a colon, is a prefix to the model's.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..base import ModelCard
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch


Change = Callable[["torch.nn.Module", int, tuple[str, ...]], None]
"""Change the stored weights of a module in place, by a seed; only parameters whose names have one of the prefixes."""

POSITIONS = {"pos", "position", "positions", "positional", "rel", "relative", "distance"}
"""Words in the names of tables of positions, and of distances between them."""


@dataclass(frozen=True)
class TwinKind:
    """A way to make a twin.

    Attributes:
        name: prefix to the model's name, up to the colon.
        paradigm: training in words, for cards. Its first word, "untrained", distinguishes a twin from a model.
        meaning: description, for lists.
        deed: what is done to the weights, as in "give it fresh weights", for messages.
        change: function that changes stored weights; None if fresh ones are drawn and stored ones are not read.
    """

    name: str
    paradigm: str
    meaning: str
    deed: str
    change: Change | None

    @property
    def is_fresh(self) -> bool:
        """Whether it has fresh weights, so that stored ones are not read."""
        return self.change is None

    @property
    def prefix(self) -> str:
        """The prefix to the model's name."""
        return f"{self.name}:"


@dataclass(frozen=True)
class Twin:
    """A twin of a model.

    Attributes:
        kind: kind of twin.
        seed: seed of its random numbers.
    """

    kind: TwinKind
    seed: int


def shuffle_matrices(module: torch.nn.Module, seed: int, prefixes: tuple[str, ...] = ("",)) -> None:
    """Permute the entries of every weight matrix within the matrix.

    A matrix is a parameter with two dimensions or more that are longer than 1: of a linear or recurrent layer, a
    convolution, an embedding. Biases, norms (with the magnitudes of weight normalisation), class tokens and tables of
    positions or distances stay, as do buffers. So every matrix keeps its values but loses their structure. The
    permutation of a matrix depends on the seed and on its name only.

    Args:
        module: module whose parameters are changed in place; they are on the CPU.
        seed: seed of the permutations.
        prefixes: only parameters whose names begin with one of them are changed.
    """
    import torch
    from torch import nn
    from torch.nn.utils.parametrize import ParametrizationList

    # Some layers of these names take positions as input; their weights are permuted as well.
    layers = (nn.Linear, nn.modules.conv._ConvNd, ParametrizationList)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not name.startswith(prefixes) or sum(length > 1 for length in parameter.shape) < 2:
                continue
            owner_name, _, last = name.rpartition(".")
            owner = module.get_submodule(owner_name)
            is_norm = isinstance(owner, (nn.LayerNorm, nn.RMSNorm)) or "bias" in last.split("_")
            if not isinstance(owner, layers) and (is_norm or POSITIONS & set(re.split(r"[._]", name))):
                continue
            digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
            order = torch.randperm(parameter.numel(), generator=generator)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))


TWINS = {
    kind.name: kind
    for kind in (
        TwinKind(
            "untrained",
            "untrained",
            "the same architecture with fresh weights",
            "give it fresh weights",
            None,
        ),
        TwinKind(
            "shuffled",
            "untrained (weights shuffled)",
            "the entries of each of its weight matrices permuted: the same values without their structure",
            "shuffle its weights",
            shuffle_matrices,
        ),
    )
}
"""All kinds of twins by name."""

UNTRAINED = TWINS["untrained"].prefix
"""Prefix of the twin with which a model is compared first."""


class ModelSource(ABC):
    """The source of a model: a `Checkpoint` or `Weights`.

    Attributes:
        name: name of the model, without options.
        twin: the twin; None for the model itself.
        paradigm: how the weights were trained; None if unknown.
        licence: licence of the weights; None if unknown.
        trained_on: training data of the weights; None if not stated.
    """

    name: str
    twin: Twin | None
    paradigm: str | None
    licence: str | None
    trained_on: str | None

    @property
    def id(self) -> str:
        """Id of a model made from it, without its options; the id of a twin has the twin's prefix."""
        return self.name if self.twin is None else self.twin.kind.prefix + self.name

    @property
    def fresh_seed(self) -> int | None:
        """Seed of fresh weights; None if stored ones are read."""
        return self.twin.seed if self.twin is not None and self.twin.kind.is_fresh else None

    @property
    @abstractmethod
    def revision(self) -> str:
        """The exact revision: see `ModelCard`."""

    @property
    @abstractmethod
    def weights_sha256(self) -> str | None:
        """SHA-256 of the stored weights; None for a twin, whose weights differ."""

    def change(self, module: torch.nn.Module, prefixes: tuple[str, ...] = ("",)) -> None:
        """Turn stored weights into the twin's, in place; the model itself is not changed.

        Args:
            module: module with the stored weights, on the CPU.
            prefixes: prefixes of the names of parameters that are used.
        """
        if self.twin is not None and self.twin.kind.change is not None:
            self.twin.kind.change(module, self.twin.seed, prefixes)

    def card(
        self, *, sample_rate: int, output_dim: int | None, options: EncoderOptions, modules: Iterable[torch.nn.Module]
    ) -> ModelCard:
        """Make the card of a model from this source.

        Args:
            sample_rate, output_dim, options: see `ModelCard`.
            modules: the modules that are run; their weights are counted.
        """
        card = ModelCard(
            id=self.id + options.suffix,
            revision=self.revision,
            sample_rate=sample_rate,
            output_dim=output_dim,
            weights_sha256=self.weights_sha256,
            parameters=sum(parameter.numel() for module in modules for parameter in module.parameters()),
            paradigm=self.paradigm,
            licence=self.licence,
            trained_on=self.trained_on,
            options=options,
        )
        return card if self.twin is None else untrained_card(card, self.twin)


def untrained_card(card: ModelCard, twin: Twin) -> ModelCard:
    """Return a card without the facts of trained weights, and with the origin of the twin."""
    # Fresh weights have no licence; permuted ones keep their licence.
    licence = None if twin.kind.is_fresh else card.licence
    return replace(card, paradigm=twin.kind.paradigm, licence=licence, trained_on=None)
