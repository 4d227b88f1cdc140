"""DESED: a table ``filename onset offset event_label`` with tabs, and durations in a second one."""

from __future__ import annotations

from pathlib import Path

from .base import Annotation, AnnotationError, Problems, ReadOptions, annotations_from
from .tables import durations_of, read_strong_table


class _Reader:
    """See `AnnotationReader`."""

    name = "desed"
    meaning = "DESED: filename, onset, offset, event_label with tabs; durations in TABLE_durations.tsv beside it"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a table; a row without a label is a clip in which nothing is heard."""
        return read_tables(path, options, self.name, resolution=0.0, joined=False)


def read_tables(
    path: Path, options: ReadOptions, name: str, *, resolution: float, joined: bool
) -> tuple[Annotation, ...]:
    """The recordings of a table as DESED has it, with the durations of the table beside it.

    Args:
        path: of the table.
        options: of the user.
        name: of the format.
        resolution: seconds, where the options do not say.
        joined: whether rows of a label that meet are one event.

    Raises:
        AnnotationError: see `read_annotations`.
    """
    if not path.is_file():
        raise AnnotationError(f"{str(path)!r} is no file; expected is the table of labels")
    beside = [
        path.with_name(f"{path.stem}{end}{suffix}")
        for end in ("_durations", "_duration")
        for suffix in (path.suffix, ".tsv", ".csv")
    ]
    problems = Problems(options.left_out)
    drafts = read_strong_table(path, durations_of(options, *beside), problems)
    resolution = resolution if options.resolution is None else options.resolution
    return annotations_from(drafts, problems, path, resolution=resolution, name=name, joined=joined)


READER = _Reader()
