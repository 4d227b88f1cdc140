"""The card of a model that was made of a checkpoint or of a file of weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ..options import EncoderOptions
from ..protocols import ModelCard

if TYPE_CHECKING:
    import torch

UNTRAINED = "untrained:"
"""Stands in front of the name of a model with fresh weights."""


class ModelSource(Protocol):
    """What a model was made of: a `Checkpoint`, or `Weights`.

    Attributes:
        name: of the model, without options.
        seed: None for the stored weights, else the seed of fresh ones.
        paradigm: see `ModelCard`; None where it is not known.
        licence: likewise.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def seed(self) -> int | None: ...  # noqa: D102

    @property
    def paradigm(self) -> str | None: ...  # noqa: D102

    @property
    def licence(self) -> str | None: ...  # noqa: D102

    @property
    def revision(self) -> str: ...  # noqa: D102

    @property
    def weights_sha256(self) -> str | None: ...  # noqa: D102


def model_id(name: str, seed: int | None) -> str:
    """The id of a model; that of an untrained one says so."""
    return name if seed is None else UNTRAINED + name


def make_card(
    source: ModelSource,
    *,
    sample_rate: int,
    output_dim: int | None,
    options: EncoderOptions,
    modules: Iterable[torch.nn.Module],
    front_end_version: int = 1,
) -> ModelCard:
    """The card of a model.

    Args:
        source: what it was made of.
        sample_rate: see `ModelCard`.
        output_dim: likewise.
        options: likewise.
        modules: those that are run, whose weights are counted.
        front_end_version: see `ModelCard`.
    """
    is_fresh = source.seed is not None
    return ModelCard(
        id=model_id(source.name, source.seed) + options.suffix,
        revision=source.revision,
        sample_rate=sample_rate,
        output_dim=output_dim,
        weights_sha256=source.weights_sha256,
        parameters=sum(parameter.numel() for module in modules for parameter in module.parameters()),
        # Fresh weights are nobody's, and were trained in no way.
        paradigm="untrained" if is_fresh else source.paradigm,
        licence=None if is_fresh else source.licence,
        front_end_version=front_end_version,
        options=options,
    )
