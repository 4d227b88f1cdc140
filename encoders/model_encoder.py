"""The common part of encoders with a torch model: layers from one pass, pooling, precision and compilation."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .base import Features, FloatArray, ModelCard, ModelError, StagedEncoder, check_embeddings
from .inference import inference
from .options import EncoderOptions

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Hidden:
    """The output of a model for some clips, before pooling to one vector per clip.

    Attributes:
        frames: [n, frames, dim], one vector per moment, padding removed; the mean if a moment has several (the patches
            of a spectrogram).
        frame_seconds: distance between frames in seconds.
        cls: [n, dim], the class token, or the mean of several; None if the model has none.
        embedding: [n, output_dim], the model's own embedding of a clip; None if it defines none.
    """

    frames: torch.Tensor
    frame_seconds: float
    cls: torch.Tensor | None = None
    embedding: torch.Tensor | None = None


class ModelEncoder(StagedEncoder[Features]):
    """An encoder around a torch model.

    A subclass computes features in `_extract_features` (float32; on the device if its front end can), runs its
    model in `_encode`, and states its outputs in the class attributes.

    Attributes:
        has_embedding: whether the model's output has `Hidden.embedding`.
        has_cls: whether it has `Hidden.cls`.
        num_layers: number of blocks; layers are 0 to `num_layers`.
    """

    has_embedding = False
    has_cls = False
    num_layers: int

    def __init__(self, card: ModelCard, *, num_layers: int, device: torch.device) -> None:
        """Set the card, which the subclass has built.

        Raises:
            ModelError: see `check_options`.
        """
        import torch

        self.check_options(card.id, card.options, num_layers)
        self.card = card
        self.num_layers = num_layers
        self.device = str(device)
        self._run_encode = torch.compile(self._encode) if card.options.compile else self._encode

    @classmethod
    def check_options(cls, name: str, options: EncoderOptions, num_layers: int) -> None:
        """Check the options against the family's layers and poolings; a subclass does so before it reads weights.

        Raises:
            ModelError: a layer that the model does not have, or pooling `cls` without a class token.
        """
        if options.layer is not None and not 0 <= options.layer <= num_layers:
            raise ModelError(f"'{name}' has the layers 0 to {num_layers}, but layer {options.layer} was requested")
        if options.pooling == "cls" and not cls.has_cls:
            raise ModelError(f"'{name}' has no class token, so pooling can be mean or max, not cls")

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Features:
        """See `StagedEncoder.prepare`; the front end computes in its own precision, even under a caller's autocast."""
        import torch

        with torch.autocast(torch.device(self.device).type, enabled=False):
            return super().prepare(waveforms, sample_rate)

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[FloatArray, float]:
        """Embed every frame of clips; see `Model.embed_frames`."""
        features = self.prepare(waveforms, sample_rate)
        with inference(self.device, self.card.options.precision):
            hidden = self._run_encode(features)
            frames: FloatArray = hidden.frames.float().cpu().numpy()
        return frames, hidden.frame_seconds

    def precision_deviation(self, waveforms: ArrayLike, sample_rate: int) -> dict[str, float]:
        """Measure the deviation of embeddings of clips from those computed in float32.

        Returns:
            ``relative_mean`` and ``relative_max`` over the clips of |z - z32| / |z32|, and ``spread_ratio``, the root
            mean square of |z - z32| over the root mean square of |z32 - mean z32|, for scores of differences.
        """
        features = self.prepare(waveforms, sample_rate)
        exact = self._embed_features(features, "float32").astype(np.float64)
        error = np.linalg.norm(self._embed_features(features, self.card.options.precision) - exact, axis=1)
        relative = error / np.maximum(np.linalg.norm(exact, axis=1), np.finfo(np.float64).tiny)
        spread = np.linalg.norm(exact - exact.mean(axis=0), axis=1)
        ratio = float(np.sqrt((error**2).mean() / max((spread**2).mean(), np.finfo(np.float64).tiny)))
        return {
            "relative_mean": float(relative.mean()),
            "relative_max": float(relative.max()),
            "spread_ratio": ratio,
        }

    def _on_device(self, clips: FloatArray) -> torch.Tensor:
        """Return clips as a tensor on the model's device."""
        import torch

        return torch.from_numpy(clips).to(self.device)

    def _refuse_short(self, samples: int, fewest: int | None = None, unit: str = "frame") -> None:
        """Raise an error if clips have fewer than `fewest` samples; with None, the caller knows that they do."""
        if fewest is None or samples < fewest:
            need = "" if fewest is None else f" ({fewest} samples)"
            raise ModelError(
                f"clips of {samples} samples at {self.card.sample_rate} Hz are shorter than one {unit} of "
                f"'{self.card.id}'{need}"
            )

    def _refuse_long(self, samples: int, most: int) -> None:
        """Raise an error if clips have more than `most` samples, instead of cropping them."""
        rate = self.card.sample_rate
        if samples > most:
            raise ModelError(
                f"clips last {samples / rate:g} s, but '{self.card.id}' takes at most {most / rate:g} s; cut them "
                "before"
            )

    @abstractmethod
    def _encode(self, features: Features) -> Hidden:
        """Run the model up to `options.layer` on features, which may have to be moved to the device first."""

    def _run_model(self, features: Features) -> FloatArray:
        return self._embed_features(features, self.card.options.precision)

    def _embed_features(self, features: Features, precision: str) -> FloatArray:
        with inference(self.device, precision):
            embeddings: FloatArray = self._pool(self._run_encode(features)).cpu().numpy()
        return check_embeddings(embeddings, self)

    def _pool(self, hidden: Hidden) -> torch.Tensor:
        pooling = self.card.options.pooling
        if pooling is None and self.has_embedding and self.card.options.layer is None:
            assert hidden.embedding is not None
            return hidden.embedding.float()
        if pooling == "cls":
            assert hidden.cls is not None
            return hidden.cls.float()
        frames = hidden.frames.float()
        return frames.amax(dim=1) if pooling == "max" else frames.mean(dim=1)


class LayeredEncoder(ModelEncoder[Features]):
    """An encoder that can return several of its layers at once.

    A subclass runs its model in `_encode_at`, which takes the layers; nothing there depends on `card.options.layer`.
    If the dimension of an embedding differs between layers, it overrides `_dim_at`; if its state depends on the
    layer, `_at`.
    """

    _blocks: torch.nn.ModuleList | None = None
    """Number of blocks if `drop_later_blocks` has removed those after the layer; else None."""

    def __init__(self, card: ModelCard, *, num_layers: int, device: torch.device) -> None:
        """As `ModelEncoder`."""
        super().__init__(card, num_layers=num_layers, device=device)
        self._model_identity = object()
        self._bind()

    def _bind(self) -> None:
        """Set the methods that run this encoder, compiled if requested."""
        import torch

        self._run_at = torch.compile(self._encode_at) if self.card.options.compile else self._encode_at
        self._run_encode = self._encode

    def at_layers(self, layers: Iterable[int]) -> list[Self]:
        """Return the same model at other layers: an encoder for each, with shared weights.

        Args:
            layers: layers; none deeper than its own, unless it is at the output.

        Raises:
            ModelError: the model has no such layer.
        """
        wanted = sorted(set(layers))
        for layer in wanted:
            self.check_options(self.card.id, self.card.options.changed(layer=layer), self.num_layers)
        if not wanted:
            return []
        loaded, last = self.card.options.layer, wanted[-1]
        assert loaded is None or last <= loaded, "blocks after an encoder's layer may have been removed"
        at_last = self if loaded == last else self._at(last)
        return [*(at_last._at(layer) for layer in wanted[:-1]), at_last]

    def is_same_model(self, other: object) -> bool:
        """Whether another encoder is the same model, so that one pass returns the embeddings of both."""
        return isinstance(other, LayeredEncoder) and self._model_identity is other._model_identity

    def _at(self, layer: int) -> Self:
        """Return the same model at another layer; a subclass whose state depends on the layer extends it."""
        view = copy.copy(self)
        options = self.card.options.changed(layer=layer)
        parameters = self.card.parameters
        if self._blocks is not None and parameters is not None:
            later = self._blocks[self._needed_blocks(layer) :]
            parameters -= sum(weight.numel() for block in later for weight in block.parameters())
        view.card = replace(
            self.card,
            id=self.card.id.removesuffix(self.card.options.suffix) + options.suffix,
            output_dim=self._dim_at(layer),
            parameters=parameters,
            options=options,
        )
        view._bind()
        return view

    def _dim_at(self, layer: int) -> int | None:
        """Return the dimension of the frames of a layer; by default, all layers have the same."""
        return self.card.output_dim

    @classmethod
    def _needed_blocks(cls, layer: int) -> int:
        """Return how many blocks a layer needs; by default the first is kept for its input."""
        return max(layer, 1)

    def _drop_later_blocks(self, blocks: torch.nn.ModuleList, layer: int | None) -> None:
        """Remove the blocks that a layer does not need; a subclass calls this before its card is made."""
        if layer is not None:
            del blocks[self._needed_blocks(layer) :]
        self._blocks = blocks

    @abstractmethod
    def _encode_at(self, features: Features, layers: Sequence[int | None]) -> list[Hidden]:
        """Return the output of the model at some layers, in order; None is the final output, which is then the only
        one."""

    def _encode(self, features: Features) -> Hidden:
        return self._run_at(features, (self.card.options.layer,))[0]


def embed_layers(encoders: Sequence[LayeredEncoder[Any]], features: Any) -> list[FloatArray]:
    """Embed clips by several encoders that share one model, in one pass.

    Args:
        encoders: see `LayeredEncoder.at_layers`.
        features: output of `prepare` of the deepest of them.

    Returns:
        float32 [n, output_dim] per encoder.

    Raises:
        ClipError, ModelError: as `StagedEncoder.forward`.
    """
    first = encoders[0]
    with inference(first.device, first.card.options.precision):
        states = first._run_at(features, tuple(encoder.card.options.layer for encoder in encoders))
        pooled = [encoder._pool(hidden).cpu().numpy() for encoder, hidden in zip(encoders, states, strict=True)]
    return [check_embeddings(array, encoder) for array, encoder in zip(pooled, encoders, strict=True)]


def deepest(encoders: Sequence[LayeredEncoder[Any]]) -> LayeredEncoder[Any]:
    """Return the encoder with the last layer among several that share one model."""
    return max(encoders, key=lambda encoder: encoder.card.options.layer or 0)


def with_states(layers: Sequence[int | None]) -> bool:
    """Whether a model of transformers has to return its hidden states for some layers."""
    return any(layer is not None for layer in layers)


def states_at(output: Any, layers: Sequence[int | None]) -> list[Any]:
    """Return the states of some layers in the output of a model of transformers; None is its last hidden state."""
    return [output.last_hidden_state if layer is None else output.hidden_states[layer] for layer in layers]
