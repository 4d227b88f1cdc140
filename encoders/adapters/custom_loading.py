"""From a user's class to a model: which of the wrappers of `custom` and `custom_answers` it is run through."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from ..base import ModelError, StagedEncoder
from ..loading.user_classes import describe_installed, split_file_spec
from ..options import DEFAULT_OPTIONS, EncoderOptions
from ..protocols import AudioLanguageModel, Model
from .custom import CustomEncoder, CustomTextEncoder, call_without_arguments, load_attribute, source_digest, user_code
from .custom_answers import custom_answerer, custom_encoder_that_answers

if TYPE_CHECKING:
    import torch


def load_from_file(spec: str, device: torch.device | None, options: EncoderOptions) -> Model:
    """The model that the class of ``path/to/file.py:ClassName`` makes; it is called without arguments.

    A `StagedEncoder` or an `AudioLanguageModel` is used as it is, an object that answers and does not embed through
    `CustomAnswerer`, any other through `CustomEncoder`, one that does both through both.

    Raises:
        ModelError: if there is no such file or class, the class needs arguments or is no model, or on options.
        ModelCodeError: if the file, or the class, raises an error.
    """
    path, attribute = split_file_spec(spec)
    _refuse_options(spec, options)
    made = call_without_arguments(load_attribute(path, attribute), spec)
    return _as_model(made, spec, source_digest(path), device)


def load_installed(point: EntryPoint, device: torch.device | None, options: EncoderOptions) -> Model:
    """The model that an entry point makes; see `load_from_file`.

    Raises:
        ModelError: if it cannot be imported, needs arguments or is no model, or on options.
    """
    _refuse_options(point.name, options)
    try:
        factory = point.load()
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"model '{point.name}' of {describe_installed(point)} is '{point.value}', which cannot be imported: {error}"
        ) from error
    version = point.dist.version if point.dist is not None else "unknown"
    return _as_model(call_without_arguments(factory, point.name), point.name, version, device)


def _as_model(made: Any, name: str, source: str, device: torch.device | None) -> Model:
    if device is not None and callable(getattr(made, "to", None)):
        with user_code(name):
            made.to(device)
    if isinstance(made, StagedEncoder):
        if not hasattr(made, "card"):
            raise ModelError(f"'{name}' has no card; a StagedEncoder sets its ModelCard itself")
        return made
    if isinstance(made, AudioLanguageModel):
        return made
    answers = callable(getattr(made, "answer", None))
    if answers and not hasattr(made, "embed"):
        return custom_answerer(made, name=name, source=source)
    kind = CustomTextEncoder if callable(getattr(made, "embed_text", None)) else CustomEncoder
    if answers:
        return custom_encoder_that_answers(made, kind, name=name, source=source)
    return kind(made, name=name, source=source)


def _refuse_options(name: str, options: EncoderOptions) -> None:
    if options != DEFAULT_OPTIONS:
        raise ModelError(
            f"'{name}' embeds by its own code: it takes no layer, pooling, precision or compilation; set them there"
        )
