"""Readers of benchmarks that others published, one file each: ``NAME:PATH`` is what a user has of one.

A module in this folder, or of an installed package, has its reader by the name ``READER``. Nothing of a benchmark is
shipped or downloaded here. The authors' two published data sets, which have names, splits and columns of their own and
no manifest, need no reader but what is said of them here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

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


CONFIGURATION = "default"
"""What their only configuration is called."""


@dataclass(frozen=True)
class PublishedData:
    """One of them.

    Attributes:
        recipe: what its rows are rows of.
        splits: what it calls each split of the recipe.
        columns: those that it has.
    """

    recipe: str
    splits: Mapping[str, str]
    columns: frozenset[str]


PUBLISHED = (
    # chuyangchenn/a-coat-2k on the Hub.
    PublishedData(
        "a_coat",
        MappingProxyType({"test": "test"}),
        frozenset({"A", "B", "C", "D", "metadata"}),
    ),
    # chuyangchenn/a-tre-10k.
    PublishedData(
        "a_tre",
        MappingProxyType({"train": "train", "validation": "val", "test": "test"}),
        frozenset({"audio", "metadata"}),
    ),
)


def published_with(columns: Collection[str]) -> PublishedData | None:
    """The one that has these columns, in a copy that may be called anything; None where they are of neither."""
    return next((data for data in PUBLISHED if data.columns <= set(columns)), None)


def published_columns() -> str:
    """The columns of both, for an error."""
    return " or ".join(f"{data.recipe}: {', '.join(sorted(data.columns))}" for data in PUBLISHED)
