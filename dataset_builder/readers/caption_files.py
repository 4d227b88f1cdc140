"""Captions of a file: a table with columns of captions, or a text with one a line."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from audio_compositionality.support.text import first_line

from ..data import DatasetError
from .containers import text_of

_COLUMN = re.compile(r"captions?|caption_\d+")
"""Names of columns of captions, whatever their case."""

_SEPARATORS = {".csv": ",", ".tsv": "\t"}

LARGEST = 2**30
"""Bytes of a file; that of the largest published tables of captions is a tenth of it."""


def read_captions(path: str | Path) -> list[str]:
    """The captions in a file, in its order, without those that are empty.

    Args:
        path: of a CSV or TSV with columns ``caption``, ``captions`` or ``caption_1``, ``caption_2`` …, or of any other
            text with one caption a line.

    Raises:
        DatasetError: it cannot be read, has no such column, or no caption.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise DatasetError(f"{path} has {size:,} bytes; a file of captions may have {LARGEST:,}")
        text = text_of(path.read_bytes())
    except OSError as error:
        raise DatasetError(f"cannot read captions in {path}: {first_line(error)}") from error
    separator = _SEPARATORS.get(path.suffix.lower())
    texts = text.splitlines() if separator is None else _of_table(path, text, separator)
    captions = [caption for one in texts if (caption := one.strip())]
    if not captions:
        raise DatasetError(f"{path} has no caption")
    return captions


def _of_table(path: Path, text: str, separator: str) -> list[str]:
    try:
        lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        names = [name for name in lines.fieldnames or () if _COLUMN.fullmatch(name.strip().lower())]
        if not names:
            named = ", ".join(lines.fieldnames or ()) or "of no table"
            raise DatasetError(f"{path} has the columns {named}; captions are in caption, captions or caption_1, …")
        return [line[name] or "" for line in lines for name in names]
    except csv.Error as error:
        raise DatasetError(f"{path} is no table: {first_line(error)}") from error
