"""Listings: facts about a model before it is loaded, and the search for families, architectures and adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from audio_compositionality.support.discovery import Registry

from ..base import Model
from ..options import EncoderOptions
from .downloads import WeightsFile

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

    from .checkpoints import Checkpoint

    ArchitectureClass = Callable[[Checkpoint, torch.device, EncoderOptions], Model]


@dataclass(frozen=True)
class ModelListing:
    """A model with a listed name. A family's module lists its models as `MODELS`, a tuple.

    Attributes:
        name: as for `load_model`.
        output_dim: length of an embedding; None if unknown before loading.
        sample_rate: rate in Hz at which it works; None if unknown before loading.
        paradigm: how it was trained.
        licence: licence of the weights, as their publisher states it.
        description: one line.
        source: a Hub repository in transformers' format, a folder in that format inside the package, or a file of
            weights; None for a model without weights.
        make: makes the model; None for a Hub repository or a folder, whose architecture decides. For a file of weights
            it is called with `Weights`, the torch device and `EncoderOptions`; for a model without weights, without
            arguments.
        is_baseline: whether `run` always scores it with the requested models.
        is_reference: whether it is an acoustic or text baseline that a trained model should exceed.
        is_linear: whether embeddings are linear in the waveform, which fixes some scores by construction.
        is_level: whether it represents only the level of a clip over time.
        embeds_text: whether it also embeds texts, into the same space.
        embeds_sound: whether it embeds sound.
        embeds_frames: whether it embeds frames; a model with weights shows this only once it is loaded.
        answers: whether it answers questions about sound.
        trained_on: its training data, as its authors state them; None if unknown.
    """

    name: str
    output_dim: int | None
    sample_rate: int | None
    paradigm: str
    licence: str
    description: str
    source: str | Path | WeightsFile | None = None
    make: Callable[..., Model] | None = None
    is_baseline: bool = False
    is_reference: bool = False
    is_linear: bool = False
    is_level: bool = False
    embeds_text: bool = False
    answers: bool = False
    trained_on: str | None = None
    embeds_sound: bool = True
    embeds_frames: bool = False

    @property
    def gives(self) -> str:
        """Its outputs, for lists: embeddings of sound or text, answers."""
        abilities = {"sound": self.embeds_sound, "text": self.embeds_text, "answers": self.answers}
        return ", ".join(name for name, is_able in abilities.items() if is_able)

    def can_do(self, needs: frozenset[str]) -> bool:
        """Whether it has all the abilities in `needs`, according to its listing."""
        stated = {
            "audio": self.embeds_sound,
            "text": self.embeds_text,
            "answer": self.answers,
            "frames": self.embeds_frames or self.source is not None,
        }
        return all(is_able for word, is_able in stated.items() if word in needs)

    @property
    def weights(self) -> str:
        """Source of the weights: a Hub repository, the package, or a file and its site; empty for a model without
        weights."""
        return "this package" if isinstance(self.source, Path) else str(self.source or "")


@dataclass(frozen=True)
class Adapter:
    """The loader of models of another suite. A module of `adapters` declares its loader as `ADAPTER`.

    Attributes:
        prefix: prefix of their names, up to the colon.
        load: makes the model from the rest of the name, the device (None if the user named none) and the options.
        answers: whether its models answer questions; if so, `load` gets `LanguageOptions` unchanged.
        check: refuses a malformed rest of a name, before anything is loaded or shown.
    """

    prefix: str
    load: Callable[[str, torch.device | None, EncoderOptions], Model]
    answers: bool = False
    check: Callable[[str], None] = lambda spec: None


ANY_OTHER = "*"
"""Key of the architecture for every `model_type` that no family names."""

_FAMILIES = f"{__package__.rpartition('.')[0]}.families"
_ADAPTERS = f"{__package__.rpartition('.')[0]}.adapters"

_models: Registry[tuple[ModelListing, ...]] = Registry(
    _FAMILIES,
    "MODELS",
    "audio_compositionality.models",
    lambda models: models[0].name,
    further=lambda models: (model.name for model in models),
    first="baselines",
)
_architectures: Registry[Mapping[str, ArchitectureClass]] = Registry(
    _FAMILIES,
    "ARCHITECTURES",
    "audio_compositionality.architectures",
    lambda classes: next(iter(classes)),
    further=iter,
)
_configurations: Registry[Mapping[str, Callable[[], type[PretrainedConfig]]]] = Registry(
    _FAMILIES,
    "CONFIGURATIONS",
    "audio_compositionality.configurations",
    lambda classes: next(iter(classes)),
    further=iter,
)
_adapters: Registry[Adapter] = Registry(
    _ADAPTERS,
    "ADAPTER",
    "audio_compositionality.adapters",
    lambda adapter: adapter.prefix,
    helpers=("custom", "custom_loading"),
)


def named_models() -> dict[str, ModelListing]:
    """Return all listings by name: models without weights first, then in the order of the files."""
    listings = [listing for models in _models.all().values() for listing in models]
    return {listing.name: listing for listing in sorted(listings, key=lambda listing: listing.source is not None)}


def find_model(name: str) -> ModelListing | None:
    """Return the listing of a name, None if no model has it; families are imported until it is found."""
    return next((listing for listing in _models.find(name) or () if listing.name == name), None)


def model_of(source: str) -> ModelListing | None:
    """Return the listing of a Hub repository, None if there is none."""
    return next((listing for listing in named_models().values() if listing.source == source), None)


def architectures() -> dict[str, ArchitectureClass]:
    """Return the encoder class of each model type of transformers; `ANY_OTHER` for the others."""
    return {name: make for classes in _architectures.all().values() for name, make in classes.items()}


def architecture_of(model_type: str) -> ArchitectureClass | None:
    """Return the encoder class of a model type of transformers, None if no family names it."""
    return (_architectures.find(model_type) or {}).get(model_type)


def register_configuration(model_type: str) -> None:
    """Register a family's own model type in transformers. A family declares its types by name as
    `CONFIGURATIONS`, functions that return the class of the configuration."""
    from transformers import AutoConfig

    for name, load in (_configurations.find(model_type) or {}).items():
        AutoConfig.register(name, load(), exist_ok=True)


def adapters() -> dict[str, Adapter]:
    """Return the adapters by prefix."""
    return _adapters.all()


def find_adapter(prefix: str) -> Adapter | None:
    """Return the adapter of a prefix, None if no adapter has it."""
    return _adapters.find(prefix)
