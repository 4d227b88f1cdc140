"""Names that mean the same model on any machine, and names of what this one has in its folders."""

from __future__ import annotations

from pathlib import Path

from .controls import split_control
from .listing import named_models
from .registry import TOWER, hub_id_of, list_models
from .twins import split_twin


def is_public(name: str) -> bool:
    """Whether `load_model` takes a name anywhere: a listed one or a Hub id, with or without what may stand in front.

    Raises:
        ModelError: it asks for a twin of a twin.
    """
    _, model = _split(name)
    return hub_id_of(model) is not None or model in {listing.name for listing in list_models()}


def absolute_name(name: str) -> str:
    """A name by which a model is found from any folder: its own folder or file by the whole path.

    Raises:
        ModelError: it asks for a twin of a twin.
    """
    front, model = _split(name)
    listed_name, is_local, path = model.partition("=")
    if listed_name in named_models():
        return f"{front}{listed_name}={Path(path).expanduser().resolve()}" if is_local else name
    folder = Path(model).expanduser()
    return f"{front}{folder.resolve()}" if model and folder.is_dir() else name


def _split(name: str) -> tuple[str, str]:
    """The control, twin and tower that a name asks for, and the name of the model."""
    _, rest = split_control(name)
    _, rest = split_twin(rest)
    rest = rest.removeprefix(TOWER)
    return name[: len(name) - len(rest)], rest
