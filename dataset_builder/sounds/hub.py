"""Sounds of a data set that `datasets` reads, by Hub id, folder or short name; no script is ever run."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec, parse_settings, read_yaml
from audio_compositionality.support.text import first_line, listed, nearest, shown

from ..data import DatasetError
from ..rendered import HUB_ID
from . import labels
from .recordings import MOST_RECORDINGS, ReadRecordings, SoundError, SoundFile, printable

if TYPE_CHECKING:
    import datasets

    from ..data_spec import DataSpec
    from ..stored import Place


_FOLDER = "named"

_SUFFIX = ".yaml"


class NamedSet(Spec):
    """A data set: a YAML file in the folder ``named``, or a user's, with these fields as keys, except the name."""

    name: str = Field(description="Name of the file, without its suffix.")
    title: str = Field(description="Name given by its authors.")
    dataset: str = Field(description="Hub id; in a user's file, also a folder.")
    split: str = Field(description="Split to read.")
    domain: str = Field(description="Kind of sounds, in a word or two.")
    licence: str = Field(description="Licence of the recordings.")
    url: str = Field(description="Page of its authors.")
    citation: str = Field(description="Citation, in one sentence.")
    label: str | None = Field(None, description="Column with labels, if any.")
    revision: str | None = Field(None, description="Branch, tag or commit.")
    # If the repository does not name them: its own script is not run.
    files: str | None = Field(None, description="Pattern of the Parquet files, with {config} and {split} in it.")
    config: str | None = Field(None, description="Configuration.")
    audio: str | None = Field(None, description="Column with sound, if there are several or the files declare none.")
    separator: str | None = Field(None, description="Separator between several labels of a recording.")
    captions: tuple[str, ...] | None = Field(None, description="Columns with captions.")
    hierarchy: str | None = Field(None, description="Hierarchy of several labels, as in `DataSpec`.")
    caption_separator: str | None = Field(None, description="Separator between several captions in one text.")
    words: tuple[str, ...] | None = Field(None, description="Columns with words: ATTRIBUTE, or COLUMN=ATTRIBUTE.")
    condition: str | None = Field(
        None,
        description="Column with a property that recordings of several labels share, e.g. the speaker or the pitch.",
    )
    group: str | None = Field(
        None,
        description="Column with groups, e.g. speakers or source files; each group is in one split or fold only.",
    )
    without: tuple[str, ...] = Field((), description="Labels to leave out.")
    settings: dict[str, bool | int | float | str] = Field({}, description="Suitable settings of recipes.")

    @field_validator("*")
    @classmethod
    def _not_empty(cls, value: Any, info: ValidationInfo) -> Any:
        texts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(text, str) and not text.strip() for text in texts):
            raise InputError(f"{info.field_name} is {value!r}; it must be a text")
        return value

    @model_validator(mode="after")
    def _says_something(self) -> NamedSet:
        if self.label is None and not self.captions:
            raise InputError("label or captions is missing: columns that describe the recordings")
        return self

    @field_validator("files")
    @classmethod
    def _pattern(cls, value: str | None) -> str | None:
        try:
            names = {name for _, name, _, _ in Formatter().parse(value or "")}
        except ValueError:
            names = {value}
        if not names <= {None, "config", "split"} or (value or "").startswith("/"):
            raise InputError(
                f"files is {value!r}; give a file pattern with {{config}} and {{split}}, e.g. "
                "'data/{split}/*.parquet'"
            )
        return value

    @property
    def suggested(self) -> dict[str, Any]:
        """Return settings of recipes that suit these recordings."""
        return {"domain": self.domain, **self.settings}

    @property
    def terms(self) -> str:
        """Return the terms of use for the user, in one sentence."""
        return f"{self.title} ({self.url}) is licensed {self.licence}; its authors ask to cite {self.citation}"


def list_named_sets() -> tuple[str, ...]:
    """Return the names of all described data sets."""
    names = (file.name for file in files(__package__).joinpath(_FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def load_named_set(name: str) -> NamedSet:
    """Return a data set by name.

    Raises:
        SoundError: there is none, or its file does not describe one.
    """
    names = list_named_sets()
    if name not in names:
        raise SoundError(f"unknown data set {name!r}; {nearest(name, names)}")
    return _described(name, files(__package__).joinpath(_FOLDER, f"{name}{_SUFFIX}").read_text("utf-8"))


def named_set_of(text: str) -> NamedSet | None:
    """Return the data set with a name, or described by a YAML file, with its location; None for other texts.

    A user's file has the form of those in the folder ``named``; its `NamedSet.dataset` may be a folder next to it.

    Args:
        text: ``NAME``, ``FILE.yaml``, or either with ``=FOLDER``, a folder with a copy.

    Raises:
        SoundError: the file does not describe a data set (names the wrong key), or the folder does not exist.
    """
    name, equals, folder = text.partition("=")
    path = Path(name)
    if path.suffix in (".yaml", ".yml") and not path.is_dir():
        named = _described(path.stem, path)
        beside = path.parent / named.dataset
        named = named.changed(dataset=str(beside)) if beside.is_dir() else named
    elif name in list_named_sets():
        named = load_named_set(name)
    else:
        return None
    if equals and not (folder and Path(folder).is_dir()):
        what = f"{folder!r} is not a folder" if folder else "there is no folder after the ="
        raise SoundError(f"the data set is {text!r}, but {what}; {name}=FOLDER reads a copy of {named.title}")
    return named.changed(dataset=folder) if equals else named


def values_in_yaml(content: Path | str, file: str) -> dict[str, Any]:
    """Return the values of a YAML file about sounds.

    Args:
        content: its path or its text.
        file: its name, for messages.

    Raises:
        SoundError: it cannot be read, or has no keys.
    """
    try:
        return read_yaml(content) if isinstance(content, Path) else parse_settings(content, file)
    except InputError as error:
        raise SoundError(str(error)) from error


def _described(name: str, content: Path | str) -> NamedSet:
    """Return the data set that a file describes, given its path or its text; the name is not in the file."""
    file = f"{name}{_SUFFIX}"
    values = values_in_yaml(content, file)
    if "name" in values:
        raise SoundError(f"{file} has the key 'name'; a data set is named after its file")
    try:
        return NamedSet(name=name, **values)
    except InputError as error:
        raise SoundError(f"{file}: {error}; put quotes around texts like 1.0, yes or no") from error


READERS = ("parquet", "arrow", "audiofolder")
"""The permitted readers of `datasets`: none of them runs code from a data set, or unpickles."""

LARGEST_DOWNLOAD = 100 * 10**9
"""Largest download, in bytes."""

_NAME = r"\w+(?:\.\w+)*"
"""A name of a split, as `datasets` permits it; LibriSpeech has ``train.100``."""

_SPLIT = re.compile(rf"\s*({_NAME})\s*(\[[^\]]*\])?\s*")

Answer = TypeVar("Answer")


def hub_rows(
    place: Place, config: str | None, split: str | None, files: str | None = None, *, progress: bool = True
) -> datasets.Dataset:
    """Return the rows of a split, downloaded and prepared in the cache of `datasets`.

    Args:
        place: folder or repository of the data set.
        config: name of the configuration; not needed if there is only one.
        split: e.g. ``test``, ``train[:1000]`` or ``train+test``; not needed if there is only one.
        files: pattern of the Parquet files of a split, with ``{config}`` and ``{split}`` in it; other information in
            the data set is ignored.
        progress: show progress bars.

    Raises:
        DatasetError: there is no such configuration or split, or it cannot be read.
        SoundError: it is too large, or its reader could run code.
    """
    import datasets

    from ..stored import LocalFolder, check_card

    is_local, names = isinstance(place, LocalFolder), splits_in(split)
    with _preparing(progress):
        check_card(place)
        data_files, features = None, None
        if files is None:
            builder = _asked(
                place, lambda: datasets.load_dataset_builder(place.source, config, revision=place.revision)
            )
            wanted = _checked_files(place, builder)
            every = builder.config.data_files or {}
            # Download only the Parquet files of the requested splits.
            is_parquet = type(builder).__module__.endswith(".parquet")
            if is_parquet and not is_local and names and set(names) <= set(every):
                data_files = {name: [str(file) for file in every[name]] for name in names}
                features = builder.info.features
        elif names:
            root = place.source if is_local else f"hf://datasets/{place.source}@{place.revision}"
            data_files = {name: [f"{root}/{files.format(config=config or '', split=name)}"] for name in names}
        else:
            raise SoundError(f"{place.source}: the split is {printable(str(split))!r}; give e.g. test[:1000]")
        if data_files is not None:
            builder = _asked(
                place, lambda: datasets.load_dataset_builder("parquet", data_files=data_files, features=features)
            )
            wanted = _checked_files(place, builder)
        # Add up the sizes of the files: the size that a data set declares is not trusted.
        size = 0 if isinstance(place, LocalFolder) else place.size_of(wanted)
        if size > LARGEST_DOWNLOAD:
            raise SoundError(
                f"{place.source} has {size / 10**9:,.0f} GB to download, more than {LARGEST_DOWNLOAD / 10**9:,.0f}; "
                "give another split or config, or part of it in a folder"
            )
        _asked(place, builder.download_and_prepare)
    splits = list(builder.info.splits or ())
    if split is None:
        if len(splits) > 1:
            raise SoundError(f"{place.source} has the splits {', '.join(splits)}; give one with --set split=NAME")
        split = splits[0]
    for name in splits_in(split) or (split,):
        if re.match(rf"(?:{_NAME})?", name).group() not in splits:  # type: ignore[union-attr]
            raise SoundError(f"{place.source} has no split {printable(name)!r}; {nearest(name, splits)}")
    rows: datasets.Dataset = _asked(place, lambda: builder.as_dataset(split=split))
    return rows


def splits_in(split: str | None) -> tuple[str, ...]:
    """Return the splits in a text, whole or in part: two in ``train[:10]+test``; empty if the text is not valid."""
    matches = [_SPLIT.fullmatch(part) for part in (split or "").split("+")]
    return tuple(dict.fromkeys(match[1] for match in matches if match)) if all(matches) else ()


def _checked_files(place: Place, builder: datasets.DatasetBuilder) -> list[str]:
    """Return the names of the files to read; refuse data whose reader could run code, or whose files are elsewhere."""
    package, _, reader = type(builder).__module__.rpartition(".")
    reader = reader if package.startswith("datasets.packaged_modules.") else ""
    if reader not in READERS:
        raise SoundError(
            f"{place.source} is read by the reader {reader!r} of datasets; only {', '.join(READERS)} are used: give "
            "its files as a folder, or save it as Parquet"
        )
    every = (builder.config.data_files or {}).values()
    return [name for files in every for name in place.names_of([str(file) for file in files])]


def _asked(place: Place, question: Callable[[], Answer]) -> Answer:
    """Return the result of a call of `datasets`; untrusted files can make it raise any error."""
    try:
        return place.ask(question)
    except DatasetError:
        raise
    except Exception as error:
        reason = first_line(error.__cause__ or error)
        raise DatasetError(f"{place.source} cannot be read: {printable(reason)}") from error


@contextmanager
def _preparing(progress: bool) -> Iterator[None]:
    """Set up `datasets` to prepare data with or without progress bars, and without torchcodec.

    For a folder of sound files, `datasets` requires torchcodec without using it.
    """
    import datasets

    def encode(self: datasets.Audio, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return {"bytes": value.get("bytes"), "path": value.get("path")}
        return {"bytes": None, "path": str(value)}

    before = datasets.Audio.encode_example
    is_silenced = not progress and not datasets.are_progress_bars_disabled()
    datasets.Audio.encode_example = encode
    if is_silenced:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.Audio.encode_example = before
        if is_silenced:
            datasets.enable_progress_bars()


LARGEST_FILE = 256 * 2**20
"""Most bytes of an encoded recording."""


def hub_recordings(
    dataset: str | Path,
    spec: DataSpec,
    named: NamedSet | None = None,
    *,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """Return the recordings in a data set that `datasets` reads, from Parquet or Arrow files or a folder of sound
    files.

    Sound is decoded by soundfile: neither torchcodec nor FFmpeg is needed.

    Args:
        dataset: its Hub id, or a folder.
        spec: split, configuration, revision and columns. Labels can be class names, whole numbers, which are also
            classes, or numbers with decimals; lists contain several labels per row, and `specific_labels` selects one
            (see `ReadRecordings.complete` for the others). Captions are texts, or lists of texts. Split and
            configuration are not needed if there is only one; of Parquet files, only the split's files are downloaded.
        named: the description of the data set; it gives the fields that `spec` leaves open.
        skip_invalid: leave out unusable recordings.
        progress: show progress bars.

    Raises:
        DatasetError: there is no such data set, split or column, or it cannot be read.
        SoundError: a recording is unusable.
    """
    from ..stored import place_of

    where = str(dataset)
    if not where.strip():
        raise SoundError(f"the data set is {where!r}; give a Hub id, a folder (. is the current one) or a name")
    if not Path(where).is_dir() and not HUB_ID.fullmatch(where):
        raise SoundError(
            f"no data set {printable(where)!r}: not a folder, not a Hub id (ORG/NAME), and not a known name; "
            f"{nearest(where, list_named_sets())}"
        )
    source, files, audio, caption_separator = printable(where), None, None, None
    suggested: Mapping[str, Any] = {}
    without: Sequence[str] = ()
    if named is not None:
        source, suggested, files, audio = named.name, named.suggested, named.files, named.audio
        caption_separator = named.caption_separator if spec.captions is None else None
        # Excluded labels and separators apply to the column that the data set describes.
        its_own = spec.label in (None, named.label)
        without = named.without if its_own else ()
        stated = [
            "split",
            "config",
            "revision",
            *(name for name in labels.COLUMNS if its_own or name not in ("separator", "hierarchy")),
        ]
        spec = spec.changed(**{name: getattr(named, name) for name in stated if getattr(spec, name) is None})
        if Path(where).is_dir():
            check_copy(named, spec)
    place = place_of(where, spec.revision)
    rows = hub_rows(place, spec.config, spec.split, files, progress=progress)
    columns, count = list(rows.features), len(rows)
    audio = _audio_column(place, rows.features, audio)
    sounds = RowFiles(place, rows, audio)
    counted = labels.counted_column(source, spec.label, columns)
    headings = {
        name: labels.heading_in(source, getattr(spec, name), columns)
        for name in ("label", "group", "condition")
        if getattr(spec, name) is not None and (name != "label" or counted is None)
    }
    spec = spec.changed(**headings)
    if count > MOST_RECORDINGS:
        raise SoundError(
            f"{source} has {count:,} rows; the limit is {MOST_RECORDINGS:,}; give a part of "
            "them, e.g. --set split=train[:10000]"
        )
    if spec.label is None:
        of_rows = labels.Labels([""] * count)
    elif counted is not None:
        of_rows = labels.counted_labels(source, counted, rows[counted], sounds.file)
    else:
        of_rows = labels.labels_in(source, rows, spec.label, spec.separator, without, spec.hierarchy)
    groups, conditions = (
        [""] * count if column is None else labels.texts_in(source, rows, column)
        for column in (spec.group, spec.condition)
    )
    readable = [
        name for name, feature in rows.features.items() if spec.captions is not None or labels.holds_texts(feature)
    ]
    said = labels.caption_columns(source, readable, spec.captions)
    attributes = labels.word_columns(source, columns, spec.words)
    words = [labels.texts_in(source, rows, column) for column in attributes]
    candidates, left_out = labels.candidates_of(
        [f"{rows.split}/{index}" for index in range(count)],
        of_rows,
        sounds.file,
        groups=groups,
        conditions=conditions,
        captions=labels.captions_in(source, rows, said, caption_separator),
        words=labels.words_by_row([[texts[row] for texts in words] for row in range(count)], attributes.values()),
    )
    described = [name for name, feature in rows.features.items() if labels.holds_labels(feature)]
    return ReadRecordings(
        source,
        candidates,
        suggested=suggested,
        labelling=f"give a column with --set label=COLUMN: {source} has {printable(', '.join(described))}",
        left_out=left_out,
        columns=labels.uses_of(columns, audio, headings, counted, said, attributes),
        skip_invalid=skip_invalid,
        progress=progress,
    )


def check_copy(named: NamedSet, spec: DataSpec) -> None:
    """Raise an error if a folder with a copy of a named data set has other files than the data set on the Hub.

    Raises:
        SoundError: names the expected files, the present ones, and the setting that reads a folder of sound files.
    """
    folder = Path(named.dataset)
    if named.files is None:
        present = (path for path in folder.rglob("*") if path.is_file())
        missing = not any(path.suffix in (".parquet", ".arrow") or path.stem == "metadata" for path in present)
        columns = [named.label] if named.label is not None else named.captions or ()
        wanted = f"Parquet files, or sound files with a metadata.csv that has the column {', '.join(columns)}"
    else:
        patterns = [named.files.format(config=spec.config or "", split=name) for name in splits_in(spec.split)]
        missing = not all(any(folder.glob(pattern)) for pattern in patterns)
        wanted = listed(patterns)
    if missing:
        names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
        raise SoundError(
            f"{named.name} is read from the files that it has on the Hub ({wanted}); {printable(str(folder))!r} "
            "contains "
            f"{printable(shown(names) or 'nothing')}. Give a folder of LABEL/file.wav without the name"
        )


def _audio_column(place: Place, features: datasets.Features, audio: str | None) -> str:
    import datasets

    # A file that `datasets` did not write does not declare bytes and a path as sound.
    columns = [
        name
        for name, feature in features.items()
        if isinstance(feature, datasets.Audio)
        or (name == audio and isinstance(feature, dict) and set(feature) == {"bytes", "path"})
    ]
    if not columns:
        raise SoundError(f"{place.source} has no audio column; its columns are {', '.join(features)}")
    if audio is None and len(columns) > 1:
        raise SoundError(f"{place.source} has audio in the columns {', '.join(columns)}; choose one with audio=...")
    if audio is not None and audio not in columns:
        raise SoundError(f"{place.source} has no audio column {audio!r}; {nearest(audio, columns)}")
    return audio or columns[0]


class RowFiles:
    """The encoded sound of rows; a row may only name a file of the data set: no other is opened."""

    def __init__(self, place: Place, rows: datasets.Dataset, column: str) -> None:
        import datasets
        from huggingface_hub import constants

        from ..stored import LocalFolder

        self._rows = rows.select_columns([column]).cast_column(column, datasets.Audio(decode=False))
        self._column = column
        caches: Sequence[Any] = (datasets.config.HF_DATASETS_CACHE, constants.HF_HUB_CACHE)
        folders = [Path(place.source)] if isinstance(place, LocalFolder) else []
        self._roots = [Path(root).resolve() for root in (*folders, *caches)]

    def file(self, index: int) -> SoundFile:
        """Return the file of a row, or its content.

        Raises:
            SoundError: there is none, it is elsewhere, or it is too large.
        """
        value = self._rows[index][self._column] or {}
        content, path = value.get("bytes"), value.get("path")
        if content:
            if len(content) > LARGEST_FILE:
                raise SoundError(f"has {len(content):,} bytes; the limit is {LARGEST_FILE:,}")
            return io.BytesIO(content)
        if not path:
            raise SoundError("contains no audio")
        try:
            file = Path(path).resolve()
            if file.is_file() and any(file.is_relative_to(root) for root in self._roots):
                return file
        except (OSError, ValueError, RuntimeError) as error:
            raise SoundError(f"cannot be read: {first_line(error)}") from error
        raise SoundError(f"names the file {printable(path)}, which is not in the data set")
