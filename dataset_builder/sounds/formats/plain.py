"""A table ``file label start stop`` with a row for each event, such as people write by hand."""

from __future__ import annotations

from pathlib import Path

from .base import Annotation, ReadOptions
from .table import read_tables
from .tables import PLAIN_COLUMNS, durations_of


class _Reader:
    """See `AnnotationReader`."""

    name = "plain"
    meaning = "a CSV or TSV with the columns file, label, start and stop (seconds)"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a table, or all of a folder."""
        return read_tables(path, options, PLAIN_COLUMNS, durations_of(options), name=self.name)


READER = _Reader()
