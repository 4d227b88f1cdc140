"""The rows of splits of a data set, and what is downloaded for them: never a script, no more than some gigabytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from audio_compositionality.support.text import first_line, nearest

from ..data import DatasetError
from ..places import Folder, Place, check_card
from .sound_files import RecordingError, printable

if TYPE_CHECKING:
    import datasets

READERS = ("parquet", "arrow", "audiofolder")
"""The readers of `datasets` that are used: none of them runs code of a data set, or unpickles."""

LARGEST_DOWNLOAD = 100 * 10**9
"""Bytes that are downloaded at most."""

_NAME = r"\w+(?:\.\w+)*"
"""A name of a split, as `datasets` allows it: LibriSpeech has a ``train.100``."""

_SPLIT = re.compile(rf"\s*({_NAME})\s*(\[[^\]]*\])?\s*")

Answer = TypeVar("Answer")


def rows_of(
    place: Place, config: str | None, split: str | None, files: str | None = None, *, progress: bool = True
) -> datasets.Dataset:
    """The rows of a split, downloaded and prepared in the cache of `datasets`.

    Args:
        place: of the data set.
        config: name of the configuration; not needed where there is one alone.
        split: such as ``test``, ``train[:1000]`` or ``train+test``; not needed where there is one alone.
        files: pattern of the Parquet files of a split, with ``{config}`` and ``{split}`` in it; whatever else the data
            set says of itself is not read.
        progress: show progress bars.

    Raises:
        DatasetError: there is no such configuration or split, or it cannot be read.
        RecordingError: it is too large, or read by what could run code.
    """
    with _progress_bars(progress):
        builder = _builder(place, config, split, files)
        _check_size(place, builder)
        with _encoding_paths():
            _asked(place, builder.download_and_prepare)
    splits = list(builder.info.splits or ())
    if split is None:
        if len(splits) > 1:
            raise RecordingError(f"{place.source} has the splits {', '.join(splits)}; name one with --split")
        split = splits[0]
    for name in splits_in(split) or (split,):
        if re.match(rf"(?:{_NAME})?", name).group() not in splits:  # type: ignore[union-attr]
            raise RecordingError(f"{place.source} has no split {printable(name)!r}; {nearest(name, splits)}")
    rows: datasets.Dataset = _asked(place, lambda: builder.as_dataset(split=split))
    return rows


def splits_in(split: str | None) -> tuple[str, ...]:
    """The splits that are named, or parts of them: two in ``train[:10]+test``; none where it is no such text."""
    matches = [_SPLIT.fullmatch(part) for part in (split or "").split("+")]
    return tuple(dict.fromkeys(match[1] for match in matches if match)) if all(matches) else ()


def files_of_split(files: str, config: str | None, split: str) -> str:
    """The pattern of the files of one split."""
    return files.format(config=config or "", split=split)


def _builder(place: Place, config: str | None, split: str | None, files: str | None) -> datasets.DatasetBuilder:
    """What reads the files; of Parquet those of the splits that are named alone, the others are not downloaded."""
    import datasets

    check_card(place)
    names, features = splits_in(split), None
    if files is None:
        builder = _asked(place, lambda: datasets.load_dataset_builder(place.source, config, revision=place.revision))
        _check_reader(place, builder)
        every = builder.config.data_files or {}
        if isinstance(place, Folder) or _reader_of(builder) != "parquet" or not names or not set(names) <= set(every):
            return builder
        data_files = {name: [str(file) for file in every[name]] for name in names}
        features = builder.info.features
    else:
        if not names:
            raise RecordingError(f"{place.source}: the split is {printable(str(split))!r}; it is such as test[:1000]")
        root = place.source if isinstance(place, Folder) else f"hf://datasets/{place.source}@{place.revision}"
        data_files = {name: [f"{root}/{files_of_split(files, config, name)}"] for name in names}
    builder = _asked(place, lambda: datasets.load_dataset_builder("parquet", data_files=data_files, features=features))
    _check_reader(place, builder)
    return builder


def _reader_of(builder: datasets.DatasetBuilder) -> str:
    """What of `datasets` reads the files; nothing where it is not one of its own."""
    package, _, reader = type(builder).__module__.rpartition(".")
    return reader if package.startswith("datasets.packaged_modules.") else ""


def _check_reader(place: Place, builder: datasets.DatasetBuilder) -> None:
    """Refuse data that are read by what could run code, or that lie elsewhere."""
    reader = _reader_of(builder)
    if reader not in READERS:
        raise RecordingError(
            f"{place.source} is read by the reader {reader!r} of datasets; only {', '.join(READERS)} are used: give "
            "its files as a folder, or save it as Parquet"
        )
    _files_of(place, builder)


def _check_size(place: Place, builder: datasets.DatasetBuilder) -> None:
    """Refuse what is too large to be downloaded, by the sizes of the files, whatever the data set says of itself."""
    if isinstance(place, Folder):
        return
    size = place.size_of(_files_of(place, builder))
    if size > LARGEST_DOWNLOAD:
        raise RecordingError(
            f"{place.source} has {size / 10**9:,.0f} GB to download, more than {LARGEST_DOWNLOAD / 10**9:,.0f}; give "
            "another --split or --config, or a part of it in a folder"
        )


def _files_of(place: Place, builder: datasets.DatasetBuilder) -> list[str]:
    """Names of the files that are read, all of which lie in the data set."""
    every = (builder.config.data_files or {}).values()
    return [name for files in every for name in place.names_of([str(file) for file in files])]


def _asked(place: Place, question: Callable[[], Answer]) -> Answer:
    """What `datasets` answers; with files that somebody else made, it can fail in any way."""
    try:
        return place.ask(question)
    except DatasetError:
        raise
    except Exception as error:
        reason = first_line(error.__cause__ or error)
        raise DatasetError(f"{place.source} cannot be read: {printable(reason)}") from error


@contextmanager
def _encoding_paths() -> Iterator[None]:
    """`datasets` prepares a folder of sound files without torchcodec, which it asks for and does not use then."""
    import datasets

    def encode(self: datasets.Audio, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return {"bytes": value.get("bytes"), "path": value.get("path")}
        return {"bytes": None, "path": str(value)}

    before = datasets.Audio.encode_example
    datasets.Audio.encode_example = encode
    try:
        yield
    finally:
        datasets.Audio.encode_example = before


@contextmanager
def _progress_bars(shown: bool) -> Iterator[None]:
    """`datasets` shows its own, unless it is told otherwise for the whole process."""
    import datasets

    if shown or datasets.are_progress_bars_disabled():
        yield
        return
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.enable_progress_bars()
