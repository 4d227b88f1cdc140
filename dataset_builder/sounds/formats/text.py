"""A file a recording with ``onset offset label`` and no header, as of TUT's sets and of Audacity."""

from __future__ import annotations

from pathlib import Path

from ..annotations import Annotation, AnnotationError
from .parsing import DraftRecording, LabelReading, ReadOptions, files_in, is_durations_table, read_text

_FIELDS = ("onset", "offset", "label")


class _Reader:
    """See `AnnotationReader`."""

    name = "text"
    meaning = "a file a recording, named like its sound: onset, offset, label with tabs or blanks, no header"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a file or a folder; an empty file is a recording without events."""
        reading = LabelReading(options)
        for file in files_in(path, (".txt", ".ann", ".lab", ".tsv")):
            draft = None if is_durations_table(file, options) else reading.of_file(file)
            if draft is not None:
                _read_file(reading, draft, file)
        return reading.annotations(path, self.name)


def _read_file(reading: LabelReading, draft: DraftRecording, file: Path) -> None:
    try:
        lines = read_text(file).splitlines()
    except AnnotationError as error:
        reading.problems.add(file.name, str(error))
        return
    for number, line in enumerate(lines, 1):
        # Audacity writes the frequencies of a label on a line of their own.
        if not line.strip() or line.startswith("\\"):
            continue
        fields, where = line.split("\t") if "\t" in line else line.split(maxsplit=2), f"{file.name}:{number}"
        if len(fields) != len(_FIELDS):
            what = f"is {line.strip()!r}; expected are {', '.join(_FIELDS)}"
            reading.problems.add(where, what, draft.recording)
        else:
            reading.row(draft, dict(zip(_FIELDS, map(str.strip, fields), strict=True)), where)


READER = _Reader()
