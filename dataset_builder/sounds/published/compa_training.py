"""The published tables of training texts of CompA-CLAP (arXiv 2310.08753): what is true of a clip, what is false."""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...data import DatasetError
from ..sound_files import printable
from .base import text_of

_COLUMNS = ("path", "caption", "dataset", "split_name")

_COUNTS = ("num_of_pos", "num_of_neg")

_SEPARATOR = ";"


@dataclass(frozen=True)
class TrainingTexts:
    """What a row says of a clip.

    Attributes:
        path: of the sound, as the table has it.
        captions: of the whole clip; one, or several where the table lists some.
        parts: captions of parts.
        negatives: texts that are false.
        dataset: that the clip is of.
        split: of that data set.
    """

    path: str
    captions: tuple[str, ...]
    parts: tuple[str, ...]
    negatives: tuple[str, ...]
    dataset: str
    split: str


def read_training_texts(table: str | Path) -> Iterator[TrainingTexts]:
    """The rows of a table: the caption first, then its positives, then its negatives, with semicolons between them.

    Where no columns count positives and negatives, all but the first are negatives. A caption that is a list in
    brackets is read as one; nothing in a table is ever run.

    Raises:
        DatasetError: it is no such table, or a row has not as many texts as it counts: says which row.
    """
    table = Path(table)
    if not table.is_file():
        raise DatasetError(f"{printable(str(table))} is no file")
    lines = csv.DictReader(io.StringIO(text_of(table.read_bytes()), newline=""))
    columns = lines.fieldnames or ()
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise DatasetError(
            f"{printable(str(table))} has no column {missing[0]!r}; it has {', '.join(columns) or 'none'}"
        )
    counted = all(name in columns for name in _COUNTS)
    for number, row in enumerate(lines, 2):
        where = f"{printable(table.name)}, row {number}"
        first, *texts = (one.strip() for one in (row["caption"] or "").split(_SEPARATOR))
        positives = 0
        if counted:
            positives, negatives = (_count(where, name, row[name]) for name in _COUNTS)
            if positives + negatives != len(texts):
                raise DatasetError(
                    f"{where}: {len(texts)} texts behind the caption, and {positives} positives and {negatives} "
                    "negatives are counted; does one hold a semicolon?"
                )
        captions = _captions(where, first)
        yield TrainingTexts(
            row["path"] or "",
            captions,
            tuple(texts[:positives]),
            tuple(texts[positives:]),
            row["dataset"] or "",
            row["split_name"] or "",
        )


def _count(where: str, name: str, value: str | None) -> int:
    try:
        count = float(value or "")
        if count >= 0 and count.is_integer():
            return int(count)
    except ValueError:
        pass
    raise DatasetError(f"{where}: {name} is {value!r}; it is a whole number")


def _captions(where: str, text: str) -> tuple[str, ...]:
    """The caption, or those of a list that is written as in Python."""
    if not text:
        raise DatasetError(f"{where}: the caption is empty")
    if not text.startswith("["):
        return (text,)
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        # A sentence that begins with a bracket.
        return (text,)
    if not isinstance(values, list) or not values or not all(isinstance(one, str) and one.strip() for one in values):
        raise DatasetError(f"{where}: the caption is {text!r}; a list has texts")
    return tuple(one.strip() for one in values)
