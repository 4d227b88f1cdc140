"""MAESTRO Real with hard labels: DESED's columns with tabs in a ``.csv``, a row for each class and second."""

from __future__ import annotations

from pathlib import Path

from ..annotations import Annotation
from .parsing import STRONG_COLUMNS, ReadOptions, check_is_file, durations_beside
from .table import read_tables

RESOLUTION = 1.0
"""Seconds: annotators judged windows that began a second apart."""


class _Reader:
    """See `AnnotationReader`."""

    name = "maestro"
    meaning = "MAESTRO Real, hard labels: DESED's columns in a .csv with tabs, a row for each class and second"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a table; consecutive seconds of a class are one event."""
        check_is_file(path, "the table of labels")
        durations = durations_beside(path, options)
        return read_tables(path, options, STRONG_COLUMNS, durations, name=self.name, resolution=RESOLUTION, joined=True)


READER = _Reader()
