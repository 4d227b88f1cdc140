"""A file a recording with ``onset offset label`` and no header, as of TUT's sets and of Audacity."""

from __future__ import annotations

from pathlib import Path

from .base import (
    Annotation,
    AnnotationError,
    Draft,
    Problems,
    ReadOptions,
    add_row,
    annotations_from,
    durations_of,
    files_in,
    is_durations_table,
    read_text,
    recording_name,
)

_FIELDS = ("onset", "offset", "label")


class _Reader:
    """See `AnnotationReader`."""

    name = "text"
    meaning = "a file a recording, named like its sound: onset, offset, label with tabs or blanks, no header"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a file or a folder; an empty file is a recording in which nothing is heard."""
        problems, drafts, durations = Problems(options.left_out), dict[str, Draft](), durations_of(options)
        for file in files_in(path, (".txt", ".ann", ".lab", ".tsv")):
            if is_durations_table(file, options):
                continue
            name = recording_name(file.stem)
            if name in drafts:
                problems.add(file.name, f"there are two files of {name!r}", name)
                continue
            draft = drafts[name] = Draft(name, duration=durations.get(name), where=file.name)
            try:
                lines = read_text(file).splitlines()
            except AnnotationError as error:
                problems.add(file.name, str(error))
                continue
            for number, line in enumerate(lines, 1):
                # Audacity writes the frequencies of a label into a line of their own.
                if line.strip() and not line.startswith("\\"):
                    _add_line(draft, line, f"{file.name}:{number}", problems)
        return annotations_from(drafts, problems, path, resolution=options.resolution or 0.0, name=self.name)


def _add_line(draft: Draft, line: str, where: str, problems: Problems) -> None:
    fields = line.split("\t") if "\t" in line else line.split(maxsplit=2)
    if len(fields) != len(_FIELDS):
        problems.add(where, f"is {line.strip()!r}; expected are {', '.join(_FIELDS)}", draft.recording)
    else:
        add_row(draft, dict(zip(_FIELDS, map(str.strip, fields), strict=True)), where, problems)


READER = _Reader()
