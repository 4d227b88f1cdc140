"""Recordings in a data set of `datasets`: any on the Hub, or in a folder, that has a column of audio."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from audio_compositionality.support.text import first_line, nearest

from ..data import DatasetError
from ..opening import HUB_ID
from ..places import Folder, Place, check_card, place_of
from .named_sets import list_named_sets
from .reading import MOST_RECORDINGS, Candidate, ReadRecordings
from .rows import Labels, caption_columns, captions_in, holds_texts, labels_in, texts_in
from .sound_files import RecordingError, SoundFile, printable

if TYPE_CHECKING:
    import datasets

READERS = ("parquet", "arrow", "audiofolder")
"""The readers of `datasets` that are used: none of them runs code of a data set, or unpickles."""

LARGEST_DOWNLOAD = 100
"""GB that are downloaded at most."""

LARGEST_FILE = 256 * 2**20
"""Bytes of an encoded recording."""

Answer = TypeVar("Answer")


def hub_recordings(
    dataset: str | Path,
    *,
    label: str | None = None,
    group: str | None = None,
    condition: str | None = None,
    captions: str | Sequence[str] | None = None,
    split: str | None = None,
    config: str | None = None,
    audio: str | None = None,
    revision: str | None = None,
    files: str | None = None,
    separator: str | None = None,
    caption_separator: str | None = None,
    without: Sequence[str] = (),
    source: str | None = None,
    suggested: Mapping[str, Any] | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """The recordings in a data set that `datasets` reads, of Parquet or Arrow files or a folder of sound files.

    Sound is decoded by soundfile: neither torchcodec nor FFmpeg is needed.

    Args:
        dataset: its Hub id, or a folder.
        label: column with labels: names of classes, whole numbers, which are classes too, or numbers with decimals. In
            lists there are several a row; see `separator`.
        group: column whose values say which recordings belong together, such as a speaker.
        condition: column with what recordings of several labels share, such as the pitch of instruments.
        captions: column with captions, or several, also as one text with commas between them: texts, or lists of some;
            by default those that are called so, see `caption_columns`.
        split: such as ``test`` or ``train[:1000]``; not needed where there is one alone. Of Parquet files those of the
            split alone are downloaded.
        config: name of the configuration; not needed where there is one alone.
        audio: column with sound; not needed where there is one alone.
        revision: branch, tag or commit of a Hub id.
        files: pattern of the Parquet files of a split, where the data set does not say which they are, with
            ``{config}`` and ``{split}`` in it.
        separator: between several labels of a row, of which `specific_labels` takes one; see `ReadRecordings.complete`
            for the others.
        caption_separator: between several captions in one text.
        without: labels that are left out.
        source: what it is called; by default its id or path.
        suggested: as `Recordings.suggested`.
        skip_invalid: leave out recordings that cannot be used.
        progress: show progress bars.

    Raises:
        DatasetError: there is no such data set, split or column, or it cannot be read.
        RecordingError: a recording cannot be used.
    """
    where = str(dataset)
    if not Path(where).is_dir() and not HUB_ID.fullmatch(where):
        raise RecordingError(
            f"no data set {printable(where)!r}: neither a folder nor a Hub id (ORG/NAME), nor the name of one; "
            f"{nearest(where, list_named_sets())}"
        )
    place, source = place_of(where, revision), source or where
    with _progress_bars(progress):
        rows = _rows(place, config, split, files)
    sound = _audio_column(place, rows.features, audio)
    for column in (label, group, condition):
        if column is not None and column not in rows.features:
            raise RecordingError(f"{source} has no column {column!r}; {nearest(column, rows.features)}")
    count = _count(source, rows)
    labels = Labels([""] * count) if label is None else labels_in(source, rows, label, separator, without)
    groups, conditions = (
        [""] * count if column is None else texts_in(source, rows, column) for column in (group, condition)
    )
    readable = [name for name, feature in rows.features.items() if captions is not None or holds_texts(feature)]
    said = captions_in(source, rows, caption_columns(source, readable, captions), caption_separator)
    sounds = _Files(place, rows, sound)
    candidates = [
        Candidate(
            f"{rows.split}/{index}",
            text,
            None if labels.numbers is None else labels.numbers[index],
            groups[index],
            conditions[index],
            partial(sounds.file, index),
            said[index],
            labels.several[index] if labels.several else (),
        )
        for index, text in enumerate(labels.single)
        if text is not None
    ]
    return ReadRecordings(
        printable(source), candidates, suggested=suggested, skip_invalid=skip_invalid, progress=progress
    )


def _count(source: str, rows: datasets.Dataset) -> int:
    """How many rows there are; refuses more than are read."""
    count = len(rows)
    if count > MOST_RECORDINGS:
        raise RecordingError(
            f"{source} has {count:,} rows; {MOST_RECORDINGS:,} recordings are the most that are read: give a part of "
            "them, such as --split train[:10000]"
        )
    return count


def _rows(place: Place, config: str | None, split: str | None, files: str | None) -> datasets.Dataset:
    """The rows of a split, downloaded and prepared in the cache of `datasets`."""
    import datasets

    check_card(place)
    if files is None:
        builder = _asked(place, lambda: datasets.load_dataset_builder(place.source, config, revision=place.revision))
        _check_builder(place, builder, split)
        builder = _of_one_split(place, builder, split)
    else:
        builder = _builder_of_files(place, config or "", _base_of(split), files)
        _check_builder(place, builder, split)
    with _encoding_paths():
        _asked(place, builder.download_and_prepare)
    splits = list(builder.info.splits or ())
    if split is None:
        if len(splits) > 1:
            raise RecordingError(f"{place.source} has the splits {', '.join(splits)}; name one with --split")
        split = splits[0]
    if re.match(r"\w*", split).group() not in splits:  # type: ignore[union-attr]
        raise RecordingError(f"{place.source} has no split {printable(split)!r}; {nearest(split, splits)}")
    rows: datasets.Dataset = _asked(place, lambda: builder.as_dataset(split=split))
    return rows


def _of_one_split(place: Place, builder: datasets.DatasetBuilder, split: str | None) -> datasets.DatasetBuilder:
    """Of Parquet files those of one split, where one is named: the others are not downloaded."""
    import datasets

    name, files = _base_of(split), builder.config.data_files or {}
    if isinstance(place, Folder) or _reader_of(builder) != "parquet" or name not in files:
        return builder
    features = builder.info.features
    return _asked(
        place,
        lambda: datasets.load_dataset_builder(
            "parquet", data_files={name: [str(file) for file in files[name]]}, features=features
        ),
    )


def _builder_of_files(place: Place, config: str, split: str, files: str) -> datasets.DatasetBuilder:
    """What reads the Parquet files of a pattern, whatever else the data set says of itself."""
    import datasets

    root = place.source if isinstance(place, Folder) else f"hf://datasets/{place.source}@{place.revision}"
    pattern = f"{root}/{files.format(config=config, split=split)}"
    return _asked(place, lambda: datasets.load_dataset_builder("parquet", data_files={split: pattern}))


def _base_of(split: str | None) -> str:
    """The split that one, or a part of one, is named of; nothing where it is of several."""
    match = re.fullmatch(r"(\w+)(\[[^\]]*\])?", split or "")
    return match[1] if match else ""


def _reader_of(builder: datasets.DatasetBuilder) -> str:
    """What of `datasets` reads the files; nothing where it is not one of its own."""
    package, _, reader = type(builder).__module__.rpartition(".")
    return reader if package.startswith("datasets.packaged_modules.") else ""


def _check_builder(place: Place, builder: datasets.DatasetBuilder, split: str | None) -> None:
    """Refuse data that are read by what could run code, that lie elsewhere, or that are too large."""
    reader = _reader_of(builder)
    if reader not in READERS:
        raise RecordingError(
            f"{place.source} is read by the reader {reader!r} of datasets; only {', '.join(READERS)} are used: give "
            "its files as a folder, or save it as Parquet"
        )
    for files in (builder.config.data_files or {}).values():
        place.names_of([str(file) for file in files])
    declared = (builder.info.splits or {}).get(_base_of(split))
    size = declared.num_bytes if declared and reader == "parquet" else builder.info.download_size
    if not isinstance(place, Folder) and size is not None and size > LARGEST_DOWNLOAD * 10**9:
        raise RecordingError(
            f"{place.source} has {size / 10**9:,.0f} GB to download, more than {LARGEST_DOWNLOAD}; give another "
            "--config, or a part of it in a folder"
        )


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


def _audio_column(place: Place, features: datasets.Features, audio: str | None) -> str:
    import datasets

    # A file that was not written by `datasets` does not say that bytes and a path are sound.
    columns = [
        name
        for name, feature in features.items()
        if isinstance(feature, datasets.Audio)
        or (name == audio and isinstance(feature, dict) and set(feature) == {"bytes", "path"})
    ]
    if not columns:
        raise RecordingError(f"{place.source} has no column of audio; its columns are {', '.join(features)}")
    if audio is None and len(columns) > 1:
        raise RecordingError(f"{place.source} has audio in the columns {', '.join(columns)}; name one: audio=...")
    if audio is not None and audio not in columns:
        raise RecordingError(f"{place.source} has no audio in a column {audio!r}; {nearest(audio, columns)}")
    return audio or columns[0]


class _Files:
    """The encoded sound of rows; a row that names a file names one of the data set, and nothing else is opened."""

    def __init__(self, place: Place, rows: datasets.Dataset, column: str) -> None:
        import datasets
        from huggingface_hub import constants

        self._rows = rows.select_columns([column]).cast_column(column, datasets.Audio(decode=False))
        self._column = column
        caches: Sequence[Any] = (datasets.config.HF_DATASETS_CACHE, constants.HF_HUB_CACHE)
        folders = [Path(place.source)] if isinstance(place, Folder) else []
        self._roots = [Path(root).resolve() for root in (*folders, *caches)]

    def file(self, index: int) -> SoundFile:
        """The file of a row, or its content.

        Raises:
            RecordingError: there is none, it lies elsewhere, or it is too large.
        """
        value = self._rows[index][self._column] or {}
        content, path = value.get("bytes"), value.get("path")
        if content:
            if len(content) > LARGEST_FILE:
                raise RecordingError(f"has {len(content):,} bytes; {LARGEST_FILE:,} are the most")
            return io.BytesIO(content)
        if not path:
            raise RecordingError("holds no audio")
        try:
            file = Path(path).resolve()
            if file.is_file() and any(file.is_relative_to(root) for root in self._roots):
                return file
        except (OSError, ValueError, RuntimeError) as error:
            raise RecordingError(f"cannot be read: {first_line(error)}") from error
        raise RecordingError(f"names the file {printable(path)}, which is not in the data set")
