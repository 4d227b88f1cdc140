"""Encoders whose layers all come from one pass through the model."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from .base import Features, FloatArray, ModelCard, check_embeddings
from .inference import inference
from .model_encoder import Hidden, ModelEncoder

if TYPE_CHECKING:
    import torch


class LayeredEncoder(ModelEncoder[Features]):
    """An encoder that can give several of its layers at once.

    A subclass runs its model in `_encode_at`, which is told which layers; nothing there depends on
    `card.options.layer`. Where the dimension of an embedding differs between layers, it overrides `_dim_at`; where its
    state depends on the layer, `_at`.
    """

    _blocks: torch.nn.ModuleList | None = None
    """The blocks of which `drop_later_blocks` has left out those behind the layer; None where it has not."""

    def __init__(self, card: ModelCard, *, num_layers: int, device: torch.device) -> None:
        """As `ModelEncoder`."""
        super().__init__(card, num_layers=num_layers, device=device)
        self._model_identity = object()
        self._bind()

    def _bind(self) -> None:
        """Run the methods of this very encoder, compiled where that is asked for."""
        import torch

        self._run_at = torch.compile(self._encode_at) if self.card.options.compile else self._encode_at
        self._run_encode = self._encode

    def at_layers(self, layers: Iterable[int]) -> list[Self]:
        """The same model at other layers: an encoder each, which share its weights.

        Args:
            layers: none deeper than its own, unless its own is the output.

        Raises:
            ModelError: the model has no such layer.
        """
        wanted = sorted(set(layers))
        for layer in wanted:
            self.check_options(self.card.id, self.card.options.changed(layer=layer), self.num_layers)
        if not wanted:
            return []
        loaded, last = self.card.options.layer, wanted[-1]
        assert loaded is None or last <= loaded, "blocks behind an encoder's layer may not be there"
        at_last = self if loaded == last else self._at(last)
        return [*(at_last._at(layer) for layer in wanted[:-1]), at_last]

    def is_same_model(self, other: object) -> bool:
        """Whether another encoder is the same model, so that one pass gives the embeddings of both."""
        return isinstance(other, LayeredEncoder) and self._model_identity is other._model_identity

    def _at(self, layer: int) -> Self:
        """The same model at another layer; a subclass whose state depends on the layer extends it."""
        view = copy.copy(self)
        options = self.card.options.changed(layer=layer)
        view.card = replace(
            self.card,
            id=self.card.id.removesuffix(self.card.options.suffix) + options.suffix,
            output_dim=self._dim_at(layer),
            parameters=self._parameters_at(layer),
            options=options,
        )
        view._bind()
        return view

    def _dim_at(self, layer: int) -> int | None:
        """Dimension of the frames of a layer; by default that of all layers."""
        return self.card.output_dim

    def _parameters_at(self, layer: int) -> int | None:
        """Weights of the part of the model that a layer needs."""
        if self._blocks is None or self.card.parameters is None:
            return self.card.parameters
        later = self._blocks[self._needed_blocks(layer) :]
        return self.card.parameters - sum(weight.numel() for block in later for weight in block.parameters())

    @classmethod
    def _needed_blocks(cls, layer: int) -> int:
        """How many blocks a layer needs; by default the first is kept for its input."""
        return max(layer, 1)

    def _drop_later_blocks(self, blocks: torch.nn.ModuleList, layer: int | None) -> None:
        """Leave out the blocks that a layer does not need, for which a subclass calls this before its card is made."""
        if layer is not None:
            del blocks[self._needed_blocks(layer) :]
        self._blocks = blocks

    @abstractmethod
    def _encode_at(self, features: Features, layers: Sequence[int | None]) -> list[Hidden]:
        """What the model says at some layers, in their order; None is its output, and then the only one."""

    def _encode(self, features: Features) -> Hidden:
        return self._run_at(features, (self.card.options.layer,))[0]


def embed_layers(encoders: Sequence[LayeredEncoder[Any]], features: Any) -> list[FloatArray]:
    """The embeddings of clips by several encoders that are one model, in one pass.

    Args:
        encoders: see `LayeredEncoder.at_layers`.
        features: what the `prepare` of the deepest of them returned.

    Returns:
        float32 [n, output_dim] for each.

    Raises:
        ClipError, ModelError: as `StagedEncoder.forward`.
    """
    first = encoders[0]
    with inference(first.device, first.card.options.precision):
        states = first._run_at(features, tuple(encoder.card.options.layer for encoder in encoders))
        pooled = [encoder._pool(hidden).cpu().numpy() for encoder, hidden in zip(encoders, states, strict=True)]
    return [check_embeddings(array, encoder) for array, encoder in zip(pooled, encoders, strict=True)]


def deepest(encoders: Sequence[LayeredEncoder[Any]]) -> LayeredEncoder[Any]:
    """Of several encoders that are one model, the one whose layer is the last."""
    return max(encoders, key=lambda encoder: encoder.card.options.layer or 0)


def with_states(layers: Sequence[int | None]) -> bool:
    """Whether a model of transformers has to give its hidden states for some layers."""
    return any(layer is not None for layer in layers)


def states_at(output: Any, layers: Sequence[int | None]) -> list[Any]:
    """The states of some layers in the output of a model of transformers; None is its last hidden state."""
    return [output.last_hidden_state if layer is None else output.hidden_states[layer] for layer in layers]
