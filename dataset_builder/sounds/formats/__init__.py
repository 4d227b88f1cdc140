"""Strong labels of recordings: what is heard from when to when, as one table whatever format it came in.

A file a format, each with its reader by the name ``READER``, and what is computed of times. No sound is read here but
the headers of files, and no question is asked.
"""

from __future__ import annotations

from pathlib import Path

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from .base import Annotation, AnnotationReader, ReadOptions

_registry: Registry[AnnotationReader] = Registry(
    __name__, "READER", "audio_compositionality.annotations", lambda reader: reader.name
)


def list_formats() -> tuple[str, ...]:
    """Names of all formats: those of this folder, of installed packages, and those that were registered."""
    return tuple(_registry.all())


def load_reader(name: str) -> AnnotationReader:
    """The reader of a format.

    Raises:
        InputError: there is none of this name.
    """
    readers = _registry.all()
    if name not in readers:
        raise InputError(f"there is no format of labels {name!r}; {nearest(name, readers)}")
    return readers[name]


def register_reader(reader: AnnotationReader) -> None:
    """Make a reader known in this process; it takes the place of another of its name."""
    _registry.add(reader)


def read_annotations(path: str | Path, format: str, options: ReadOptions | None = None) -> tuple[Annotation, ...]:
    """The labels of recordings, in the order of their names.

    Args:
        path: of a file or a folder, as the format has it.
        format: one of `list_formats`.
        options: what the files themselves do not say.

    Raises:
        InputError: there is no such format.
        AnnotationError: files are missing, empty, or contradict themselves or each other; all places are listed.
    """
    return load_reader(format).read(Path(path), options or ReadOptions())
