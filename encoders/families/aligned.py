"""An audio encoder whose frozen embeddings were aligned with text: a linear map and a small text tower."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from audio_compositionality.support.errors import InputError

from ..base import FloatArray, Model, ModelError, StagedEncoder, output_dim_of
from ..inference import inference
from ..options import EncoderOptions
from ..text_towers import TextedTower, TextTower, longest_text

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

    from ..loading.checkpoints import Checkpoint
    from ..networks.small_networks import AlignedConfig, AlignedModel

MODEL_TYPE = "audio_text_aligned"

SIZES = ("input_dim", "projection_dim", "vocab_size", "max_tokens")
"""Names of the configuration's sizes."""

_TEXTS = ("encoder", "encoder_revision")

_is_inner: ContextVar[bool] = ContextVar("_is_inner", default=False)
"""Whether the encoder of an aligned model is being loaded; guards against a configuration that names itself."""


@dataclass(frozen=True)
class FrozenEncoder:
    """The encoder whose embeddings are aligned.

    Attributes:
        name: name, as `load_model` takes it.
        seed: seed of the weights of a twin.
        options: options with which it is run.
        model: the loaded model.
    """

    name: str
    seed: int
    options: EncoderOptions
    model: Model

    @classmethod
    def load(cls, name: str, *, seed: int, options: EncoderOptions, device: Any = None) -> FrozenEncoder:
        """Load the encoder.

        Raises:
            ModelError: see `load_model`; it embeds no sound, or is itself an aligned model.
        """
        from ..loading.registry import load_model

        outer = _is_inner.set(True)
        try:
            model = load_model(name, device=device, options=options, seed=seed)
        finally:
            _is_inner.reset(outer)
        if "audio" not in model.abilities:
            raise ModelError(f"'{name}' embeds no sound, so there is nothing to align with text")
        return cls(name, seed, options, model)

    @property
    def revision(self) -> str:
        """See `ModelCard`."""
        return self.model.card.revision

    @property
    def dim(self) -> int:
        """Length of its embeddings."""
        return output_dim_of(self.model)

    @property
    def described(self) -> str:
        """Origin of a model aligned with it, for cards."""
        card = self.model.card
        return f"linear map and text tower aligned with the frozen embeddings of {card.id} ({card.revision[:19]})"


class AlignedEncoder(TextedTower, StagedEncoder[FloatArray]):
    """Embeddings of a frozen encoder under a linear map, and of texts in the same space, of unit length.

    The frozen encoder is loaded by its name and must have the revision that was aligned. It runs in the first
    stage, `prepare`: its embeddings of clips are the features for the map.

    Its twin `untrained:` has fresh weights in the map and the text tower, over the untrained twin of the encoder. To
    train map and tower on a twin's embeddings, align the twin: ``train --align untrained:ENCODER``.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        from ..loading.checkpoints import check_network, check_whole
        from ..loading.names import is_public
        from ..loading.registry import has_twins
        from ..loading.twins import UNTRAINED
        from ..networks.small_networks import AlignedModel

        if options.layer is not None or options.pooling is not None:
            raise ModelError(
                f"'{checkpoint.name}' takes no layer or pooling: it was aligned with one of its encoder, "
                f"'{checkpoint.config.encoder}'; align another with train --align"
            )
        config = cast("AlignedConfig", checkpoint.config)
        if _is_inner.get():
            raise ModelError(
                f"'{checkpoint.name}' is already aligned with text, on the embeddings of {config.encoder!r}; only "
                "an encoder without texts can be aligned"
            )
        for name in _TEXTS:
            if not isinstance(getattr(config, name), str) or not getattr(config, name):
                raise ModelError(f"the configuration of '{checkpoint.name}' has no {name}, or its value is not a text")
        check_whole(checkpoint, "encoder_seed", 0, 2**63 - 1)
        try:
            inner = options.changed(layer=config.layer, pooling=config.pooling)
        except InputError as error:
            raise ModelError(f"the configuration of '{checkpoint.name}': {error}") from error
        if checkpoint.commit is not None and not is_public(config.encoder):
            raise ModelError(
                f"'{checkpoint.name}' comes from the Hub and names {config.encoder!r} as its encoder, which is neither "
                "a listed name nor a Hub id; a model from the Hub cannot load local files"
            )
        check_network(checkpoint, AlignedModel, SIZES)
        encoder = config.encoder
        seed = config.encoder_seed
        is_twin = False
        # The full model's twin contains the untrained twin of the encoder.
        if checkpoint.fresh_seed is not None and has_twins(config.encoder):
            encoder = UNTRAINED + config.encoder
            seed = checkpoint.fresh_seed
            is_twin = True
        frozen = FrozenEncoder.load(encoder, seed=seed, options=inner, device=device)
        if not is_twin and (frozen.revision, frozen.dim) != (config.encoder_revision, config.input_dim):
            raise ModelError(
                f"'{checkpoint.name}' was aligned with revision {config.encoder_revision} of '{config.encoder}', "
                f"but found {frozen.revision}, with embeddings of length {frozen.dim}; it must be the same encoder"
            )
        part = replace(checkpoint, paradigm=checkpoint.paradigm or frozen.described).part(str, str)
        network = part.load_part(AlignedModel, config).to(device)
        tokenizer = checkpoint.load_tokenizer(config.vocab_size)
        card = part.card(
            sample_rate=frozen.model.card.sample_rate,
            output_dim=config.projection_dim,
            options=options,
            modules=[network.audio_projection],
        )
        self.set_parts(card, frozen, network, tokenizer, str(device))

    @classmethod
    def of_parts(
        cls, card: Any, frozen: FrozenEncoder, network: AlignedModel, tokenizer: Any, device: str
    ) -> AlignedEncoder:
        """Build an encoder from parts in memory."""
        encoder = cls.__new__(cls)
        encoder.set_parts(card, frozen, network, tokenizer, device)
        return encoder

    def set_parts(self, card: Any, frozen: FrozenEncoder, network: AlignedModel, tokenizer: Any, device: str) -> None:
        """Set the parts; the weights of the frozen encoder count as well."""
        of_frozen, of_map = frozen.model.card.parameters, sum(p.numel() for p in network.audio_projection.parameters())
        parameters = None if of_frozen is None else of_frozen + of_map
        self.card = replace(card, parameters=parameters)
        self.device = device
        self.frozen, self._network, self._tokenizer = frozen, network, tokenizer

    def _extract_features(self, clips: FloatArray) -> FloatArray:
        return np.asarray(self.frozen.model.embed(clips, self.card.sample_rate), np.float32)

    def _run_model(self, features: FloatArray) -> FloatArray:
        import torch

        with inference(self.device, "float32"):
            embeddings: FloatArray = self._network.embed_audio(torch.from_numpy(features).to(self.device)).cpu().numpy()
        return embeddings

    def _load_text_tower(self) -> TextTower:
        longest = longest_text(self._tokenizer, self._network.config.max_tokens)
        return TextTower(self._tokenizer, self._network.embed_text, longest)


def _configuration() -> type[PretrainedConfig]:
    """Return the class of its configuration."""
    from ..networks.small_networks import AlignedConfig

    return AlignedConfig


ARCHITECTURES = {MODEL_TYPE: AlignedEncoder}

CONFIGURATIONS = {MODEL_TYPE: _configuration}
