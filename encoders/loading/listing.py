"""Listings: the facts of a model before it is loaded, and the search for families, architectures and adapters."""

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
    """A model that has a name here. A family's module lists its own as `MODELS`, a tuple.

    Attributes:
        name: as for `load_model`.
        output_dim: length of an embedding; None where it is unknown before loading.
        sample_rate: rate in Hz that it works at; None likewise.
        paradigm: how it was trained.
        licence: of the weights, as their publisher states it.
        description: one line.
        source: a Hub repository in transformers' format, a folder in that format inside the package, or a file of
            weights; None for a model without weights.
        make: makes the model; None for a Hub repository or a folder, whose architecture decides. For a file of weights
            it is called with `Weights`, the torch device and `EncoderOptions`; for a model without weights, without
            arguments.
        is_baseline: whether `run` always scores it beside the requested models.
        is_reference: whether it describes a sound so plainly that a model which adds nothing has learnt nothing.
        is_linear: whether embeddings are linear in the waveform, which fixes some scores by construction.
        is_level: whether it represents only the level of a clip and its course.
        embeds_text: whether it also embeds texts, into the same space.
        embeds_sound: whether it embeds sound.
        embeds_frames: whether it embeds frames; where it has weights, that is known once it is loaded.
        answers: whether it answers questions about sound.
        trained_on: data that it was trained on, as its authors state them; None where they are not on record here.
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
        """Its outputs, for lists: embeddings of sound, of text, answers."""
        abilities = {"sound": self.embeds_sound, "text": self.embeds_text, "answers": self.answers}
        return ", ".join(name for name, is_able in abilities.items() if is_able)

    def can_do(self, needs: frozenset[str]) -> bool:
        """Whether it has all of some abilities, by its listing."""
        stated = {
            "audio": self.embeds_sound,
            "text": self.embeds_text,
            "answer": self.answers,
            "frames": self.embeds_frames or self.source is not None,
        }
        return all(is_able for word, is_able in stated.items() if word in needs)

    @property
    def weights(self) -> str:
        """The source of the weights: a Hub repository, the package, or a file and its place; empty where there are
        none."""
        return "this package" if isinstance(self.source, Path) else str(self.source or "")


@dataclass(frozen=True)
class Adapter:
    """The loader of another suite's models. A module of `adapters` has its own as `ADAPTER`.

    Attributes:
        prefix: of their names, up to the colon.
        load: from the rest of the name, the device (None where the user named none) and the options to the model.
        answers: whether its models answer, so that it is given `LanguageOptions` as they are.
        check: refuses the rest of a name by its form, before anything is loaded or shown.
    """

    prefix: str
    load: Callable[[str, torch.device | None, EncoderOptions], Model]
    answers: bool = False
    check: Callable[[str], None] = lambda spec: None


ANY_OTHER = "*"
"""The architecture that stands for every `model_type` that no family names."""

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
    """All listings by name: those without weights first, then in the order of the files."""
    listings = [listing for models in _models.all().values() for listing in models]
    return {listing.name: listing for listing in sorted(listings, key=lambda listing: listing.source is not None)}


def find_model(name: str) -> ModelListing | None:
    """The listing of a name, None where no model has it; families are imported until one has it."""
    return next((listing for listing in _models.find(name) or () if listing.name == name), None)


def model_of(source: str) -> ModelListing | None:
    """The listing of a Hub repository, None where none is of it."""
    return next((listing for listing in named_models().values() if listing.source == source), None)


def architectures() -> dict[str, ArchitectureClass]:
    """The encoder of each of transformers' model types, by name; `ANY_OTHER` for the others."""
    return {name: make for classes in _architectures.all().values() for name, make in classes.items()}


def architecture_of(model_type: str) -> ArchitectureClass | None:
    """The encoder of one of transformers' model types, None where no family names it."""
    return (_architectures.find(model_type) or {}).get(model_type)


def register_configuration(model_type: str) -> None:
    """Make a model type known to transformers where it is a family's own; a family has them by name as
    `CONFIGURATIONS`, functions that give the class of the configuration."""
    from transformers import AutoConfig

    for name, load in (_configurations.find(model_type) or {}).items():
        AutoConfig.register(name, load(), exist_ok=True)


def adapters() -> dict[str, Adapter]:
    """The adapters by prefix."""
    return _adapters.all()


def find_adapter(prefix: str) -> Adapter | None:
    """The adapter of a prefix, None where there is none."""
    return _adapters.find(prefix)
