"""DESED: a table ``filename onset offset event_label`` with tabs, and durations in a second one."""

from __future__ import annotations

from pathlib import Path

from ..annotations import Annotation
from .parsing import STRONG_COLUMNS, ReadOptions, check_is_file, durations_beside
from .table import read_tables


class _Reader:
    """See `AnnotationReader`."""

    name = "desed"
    meaning = "DESED: filename, onset, offset, event_label with tabs; durations in TABLE_durations.tsv beside it"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a table; a row without a label is a clip without events."""
        check_is_file(path, "the table of labels")
        return read_tables(path, options, STRONG_COLUMNS, durations_beside(path, options), name=self.name)


READER = _Reader()
