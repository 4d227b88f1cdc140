"""Any table with a header and a row for each event, whose columns the user names, such as DataSED's."""

from __future__ import annotations

from pathlib import Path

from audio_compositionality.support.text import nearest

from .base import Annotation, AnnotationError, Draft, Problems, ReadOptions, annotations_from, files_in
from .tables import durations_of, read_durations, read_strong_table

_FIELDS = ("recording", "onset", "offset", "length", "label", "duration", "source", "confidence")


class _Reader:
    """See `AnnotationReader`."""

    name = "table"
    meaning = "any CSV or TSV with a header, with the heading of each column"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a table, or all of a folder, whose columns `ReadOptions.columns` names."""
        columns = dict(options.columns)
        for field in columns:
            if field not in _FIELDS:
                raise AnnotationError(f"a table has no field {field!r}; {nearest(field, _FIELDS)}")
        missing = [field for field in ("recording", "onset", "label") if field not in columns]
        missing += [] if "offset" in columns or "length" in columns else ["offset (or length)"]
        if missing:
            raise AnnotationError(f"the columns of the table have to be named: there is none for {', '.join(missing)}")
        problems = Problems(options.left_out)
        # A column with durations would not agree with the sound to the last digit.
        durations = read_durations(options) if "duration" in columns else durations_of(options)
        table = Path(options.durations) if isinstance(options.durations, str | Path) else None
        drafts: dict[str, Draft] = {}
        for file in files_in(path, (".csv", ".tsv", ".txt")):
            if table is not None and file.resolve() == table.resolve():
                continue
            of_file = read_strong_table(file, durations, problems, columns)
            for name in sorted(drafts.keys() & of_file.keys()):
                problems.add(of_file[name].where, f"{name!r} stands in {drafts[name].where} as well")
            drafts |= of_file
        return annotations_from(drafts, problems, path, resolution=options.resolution or 0.0, name=self.name)


READER = _Reader()
