"""Sounds that can be had without a network, one file a maker, and the list of them; how recordings are read is not."""

from __future__ import annotations

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from .base import Maker

_registry: Registry[Maker] = Registry(__name__, "MAKER", "audio_compositionality.makers", lambda maker: maker.name)


def list_makers() -> tuple[str, ...]:
    """Names of all makers: those of this folder, of installed packages, and those that were registered."""
    return tuple(_registry.all())


def load_maker(name: str) -> Maker:
    """The maker of a name.

    Raises:
        InputError: there is none.
    """
    makers = _registry.all()
    if name not in makers:
        raise InputError(f"unknown sounds {name!r}; {nearest(name, makers)}")
    return makers[name]


def register_maker(maker: Maker) -> None:
    """Make a maker known in this process; it takes the place of another of its name."""
    _registry.add(maker)
