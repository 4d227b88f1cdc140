"""The authors' two published data sets, which have names, splits and columns of their own and no manifest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

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
