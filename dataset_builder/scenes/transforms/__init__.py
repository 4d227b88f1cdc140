"""What is done to a clip, one file a transform, and the list of them; which clips and parameters is the recipe's."""

from __future__ import annotations

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from .base import Transform

_registry: Registry[Transform] = Registry(
    __name__, "TRANSFORM", "audio_compositionality.transforms", lambda transform: transform.name
)


def list_transforms() -> tuple[str, ...]:
    """Names of all transforms: those of this folder, of installed packages, and those that were registered."""
    return tuple(_registry.all())


def load_transform(name: str) -> Transform:
    """The transform of a name.

    Raises:
        InputError: there is none.
    """
    transforms = _registry.all()
    if name not in transforms:
        raise InputError(f"unknown transform {name!r}; {nearest(name, transforms)}")
    return transforms[name]


def register_transform(transform: Transform) -> None:
    """Make a transform known in this process; it takes the place of another of its name."""
    _registry.add(transform)
