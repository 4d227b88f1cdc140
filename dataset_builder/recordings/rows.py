"""Labels and captions of the rows of a data set or of a table, whatever their columns hold."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.text import listed, nearest

from .reading import numbers_of
from .several_labels import specific_labels, split_labels
from .sound_files import RecordingError, printable

if TYPE_CHECKING:
    import datasets

_CAPTIONS = re.compile(r"captions?(?:_?(\d+))?", re.ASCII)
"""What columns of captions are usually called."""


@dataclass(frozen=True)
class Labels:
    """The labels of rows.

    Attributes:
        single: of each row the one label; None for a row that is left out, empty where none of several is taken.
        numbers: the same as numbers, where they are numbers.
        several: all labels of each row; empty where rows have one each.
        left_out: why, by the number of a row that is left out.
    """

    single: Sequence[str | None]
    numbers: Sequence[float] | None = None
    several: Sequence[tuple[str, ...]] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)


def single_labels(texts: Sequence[str], without: Sequence[str] = ()) -> Labels:
    """The labels of rows that have one each, but for those that are left out."""
    left_out = {row: _no_class((text,)) for row, text in enumerate(texts) if text in without}
    return Labels(
        [None if row in left_out else text for row, text in enumerate(texts)], numbers_of(texts), (), left_out
    )


def several_labels(labels: Sequence[Sequence[str]], without: Sequence[str] = ()) -> Labels:
    """The labels of rows that have several each; rows without any are left out."""
    kept = [tuple(dict.fromkeys(label for label in of_row if label and label not in without)) for of_row in labels]
    single = [one or "" if of_row else None for one, of_row in zip(specific_labels(kept), kept, strict=True)]
    left_out = {row: _no_class(labels[row]) for row, of_row in enumerate(kept) if not of_row}
    return Labels(single, None, kept, left_out)


def _no_class(labels: Sequence[str]) -> str:
    """Why a row is left out that has these labels and no other."""
    names = [repr(label) for label in labels if label]
    return f"is called {listed(names)}, which is no class" if names else "has no label"


def labels_in(
    source: str, rows: datasets.Dataset, column: str, separator: str | None, without: Sequence[str]
) -> Labels:
    """The labels in a column of a data set: one a row, or several, with a separator between them or in lists."""
    if is_list(rows.features[column]):
        return several_labels(lists_in(source, rows, column), without)
    texts = texts_in(source, rows, column)
    if separator is not None:
        return several_labels([split_labels(text, separator) for text in texts], without)
    empty = next((index for index, text in enumerate(texts) if not text), None)
    if empty is not None:
        raise RecordingError(f"{source}: row {empty} has no {column}; leave out what has none")
    dtype = getattr(rows.features[column], "dtype", "")
    if not dtype.startswith(("float", "double")):
        return single_labels(texts, without)
    numbers = [float(text) for text in texts]
    wrong = next((index for index, number in enumerate(numbers) if not math.isfinite(number)), None)
    if wrong is not None:
        raise RecordingError(f"{source}: {column} of row {wrong} is {numbers[wrong]}; leave out what has none")
    return Labels(texts, numbers)


def captions_in(
    source: str, rows: datasets.Dataset, columns: Sequence[str], separator: str | None
) -> list[tuple[str, ...]]:
    """The captions in some columns of a data set: a text each, several with a separator between them, or lists."""
    captions: list[list[str]] = [[] for _ in range(len(rows))]
    for column in columns:
        if is_list(rows.features[column]):
            values = lists_in(source, rows, column)
        else:
            values = [split_captions(text, separator) for text in texts_in(source, rows, column)]
        for of_row, more in zip(captions, values, strict=True):
            of_row += more
    return [tuple(dict.fromkeys(filter(None, of_row))) for of_row in captions]


def split_captions(text: str, separator: str | None) -> tuple[str, ...]:
    """The captions in a text: itself without a separator."""
    parts = (text,) if separator is None else text.split(separator)
    return tuple(part.strip() for part in parts if part.strip())


def caption_columns(source: str, columns: Sequence[str], requested: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns with captions: those that are asked for, or those that are called so: ``captions``, ``caption``,
    ``caption_1`` …

    Raises:
        RecordingError: there is no such column.
    """
    if requested is not None:
        names = tuple(name.strip() for name in requested.split(",")) if isinstance(requested, str) else tuple(requested)
        for name in names:
            if name not in columns:
                raise RecordingError(f"{source} has no column {name!r}; {nearest(name, columns)}")
        return names
    matches = {name: match for name in columns if (match := _CAPTIONS.fullmatch(name))}
    for name in ("captions", "caption"):
        if name in matches:
            return (name,)
    return tuple(sorted(matches, key=lambda name: int(matches[name][1])))


def is_list(feature: object) -> bool:
    """Whether a column holds lists."""
    import datasets

    return isinstance(feature, (datasets.List, datasets.LargeList))


def holds_texts(feature: object) -> bool:
    """Whether a column holds texts, or lists of some."""
    import datasets

    inner = getattr(feature, "feature", feature) if is_list(feature) else feature
    return isinstance(inner, datasets.Value) and "string" in inner.dtype


def holds_labels(feature: object) -> bool:
    """Whether a column can be one of labels: names of classes, texts or numbers, or lists of names or texts."""
    import datasets

    # Lists of numbers are measurements of one thing, and neither labels nor captions.
    inner = getattr(feature, "feature", feature) if is_list(feature) else feature
    return isinstance(inner, datasets.ClassLabel) or isinstance(feature, datasets.Value) or holds_texts(feature)


def texts_in(source: str, rows: datasets.Dataset, column: str) -> list[str]:
    """A column in words; nothing for null.

    Raises:
        RecordingError: it holds lists, or anything else but classes, texts and numbers.
    """
    feature = rows.features[column]
    if is_list(feature):
        raise RecordingError(f"{source}: {column} is no column of classes, texts or numbers")
    return [_text(value) for value in _values(source, rows, column, feature)]


def lists_in(source: str, rows: datasets.Dataset, column: str) -> list[tuple[str, ...]]:
    """A column of lists of texts or classes in words; an empty list for null.

    Raises:
        RecordingError: the lists hold anything else.
    """
    values = _values(source, rows, column, rows.features[column].feature)
    return [tuple(_text(value) for value in of_row or ()) for of_row in values]


def _text(value: object) -> str:
    return "" if value is None else printable(str(value).strip())


def _values(source: str, rows: datasets.Dataset, column: str, feature: Any) -> Sequence[Any]:
    """The values of a column, names of classes in place of their numbers; of lists likewise, by their feature."""
    import datasets

    if not holds_labels(rows.features[column]):
        raise RecordingError(f"{source}: {column} is no column of classes, texts or numbers")
    values: Sequence[Any] = rows.select_columns([column])[:][column]
    if isinstance(feature, datasets.Value):
        return values
    names: Sequence[str] = feature.names

    def named(value: object) -> object:
        if isinstance(value, list):
            return [named(one) for one in value]
        return names[value] if isinstance(value, int) and value >= 0 else None

    return [named(value) for value in values]


def labels_of_table(texts: Sequence[str], separator: str | None) -> Labels:
    """The labels of the rows of a table."""
    if separator is None:
        return single_labels(texts)
    return several_labels([split_labels(text, separator) for text in texts])


def captions_of_table(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The captions of the rows of a table, one a column; an empty field is none."""
    return [
        tuple(dict.fromkeys(text for column in columns if (text := printable(row[column].strip())))) for row in rows
    ]
