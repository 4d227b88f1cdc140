"""From a user's class to a model, or to its twin."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from ..base import Model, ModelCard, ModelError
from ..loading.names import describe_installed, split_file
from ..loading.twins import Twin, TwinKind
from ..options import DEFAULT_OPTIONS, EncoderOptions
from .custom import CustomModel, call_without_arguments, load_attribute, source_digest, stated_card, user_code
from .custom_twins import can_make_twin, twin_card, twin_of

if TYPE_CHECKING:
    import torch


def load_from_file(spec: str, device: torch.device | None, options: EncoderOptions, twin: Twin | None = None) -> Model:
    """The model that the class of ``path/to/file.py:ClassName`` makes; it is called without arguments.

    A `Model` is used as it is, any other object through `CustomModel`.

    Raises:
        ModelError: if there is no such file or class, the class needs arguments, is no model or has no such twin, or on
            options.
        ModelCodeError: if the file, or the class, raises an error.
    """
    path, attribute = split_file(spec)
    _refuse_options(spec, options)
    made = call_without_arguments(load_attribute(path, attribute), spec)
    return _as_model(made, spec, source_digest(path), device, twin)


def load_installed(
    point: EntryPoint, device: torch.device | None, options: EncoderOptions, twin: Twin | None = None
) -> Model:
    """The model that an entry point makes; see `load_from_file`.

    Raises:
        ModelError: if it cannot be imported, needs arguments, is no model or has no such twin, or on options.
    """
    _refuse_options(point.name, options)
    version = point.dist.version if point.dist is not None else "unknown"
    return _as_model(call_without_arguments(_imported(point), point.name), point.name, version, device, twin)


def class_has_twins(spec: str, point: EntryPoint | None, kind: TwinKind) -> bool:
    """Whether a class has twins of a kind, as far as the class itself says; see `can_make_twin`.

    Args:
        spec: ``path/to/file.py:ClassName``, whose file is run.
        point: of an installed package, which is imported in place of the file; else None.
        kind: of the twins.
    """
    try:
        return can_make_twin(load_attribute(*split_file(spec)) if point is None else _imported(point), kind)
    except ModelError:
        # Whoever loads it is told why.
        return False


def _imported(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"model '{point.name}' of {describe_installed(point)} is '{point.value}', which cannot be imported: {error}"
        ) from error


def _as_model(made: Any, name: str, source: str, device: torch.device | None, twin: Twin | None) -> Model:
    if isinstance(made, Model) and not hasattr(made, "card"):
        raise ModelError(f"'{name}' has no card; a Model sets its ModelCard itself")
    card: ModelCard | None = None
    if twin is not None:
        card = made.card if isinstance(made, Model) else stated_card(made, name, source)
        made = twin_of(made, name, twin)
    if device is not None and callable(getattr(made, "to", None)):
        with user_code(name):
            made.to(device)
    model = made if isinstance(made, Model) else CustomModel(made, name=name, source=source)
    if twin is not None and card is not None:
        model.card = twin_card(card, model.card, twin)
    return model


def _refuse_options(name: str, options: EncoderOptions) -> None:
    if options != DEFAULT_OPTIONS:
        raise ModelError(
            f"'{name}' embeds by its own code: it takes no layer, pooling, precision or compilation; set them there"
        )
