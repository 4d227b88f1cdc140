"""Readers of benchmarks that others published, one file each: ``NAME:PATH`` is what a user has of one.

A module in this folder, or of an installed package, has its reader by the name ``READER``. Nothing of a benchmark is
shipped or downloaded here.
"""

from __future__ import annotations

from audio_compositionality.support.discovery import Registry

from .base import Reader

_registry: Registry[Reader] = Registry(__name__, "READER", "audio_compositionality.readers", lambda reader: reader.name)


def list_readers() -> tuple[str, ...]:
    """Names of all readers: those of this folder, of installed packages, and those that were registered."""
    return tuple(_registry.all())


def register_reader(reader: Reader) -> None:
    """Make a reader known in this process; it takes the place of another of its name."""
    _registry.add(reader)


def reader_of(source: str) -> tuple[Reader, str] | None:
    """The reader that ``NAME:PATH`` names, and the path; None where it names none."""
    name, colon, path = source.partition(":")
    reader = _registry.all().get(name) if colon else None
    return None if reader is None else (reader, path)
