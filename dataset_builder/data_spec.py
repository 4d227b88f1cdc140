"""The specification of data: a text that names a preset, folder, table or data set, and further fields.

`recognised` finds out what kind of data a text names; a `DataSpec` is the text with columns, split, labels and other
fields, as given by ``--data`` and ``--set`` or in a ``data.yaml``.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import open_file
from audio_compositionality.support.spec import Spec, read_yaml
from audio_compositionality.support.text import first_line, listed, nearest, plain, shown

from .data import DatasetError
from .manifest import CARD_NAME, MANIFEST_NAME
from .rendered import HUB_ID, is_preset, preset_names, setting_names
from .sounds.labels import COLUMNS
from .sounds.recordings import AUDIO_SUFFIXES, FILE_COLUMNS, FOREIGN_SUFFIXES
from .tables import first_heading, folded_heading, head_of, heading_of

KINDS: Mapping[str, str] = {
    "preset": "a preset, rendered on the fly",
    "built": "a data set that was built, or published by the authors",
    "recordings": "recordings: a folder LABEL/file.wav or a folder with metadata.csv",
    "table": "a table of recordings (CSV or TSV with the column file_name); sound files in the folder audio",
    "labels": "strong labels: events with onset and offset; sound files of the recordings in the folder audio",
    "dataset": "a data set with an audio column, read by `datasets`, or a named data set",
    "benchmark": "a published benchmark",
    "texts": "tables of captions for training; sound files in the folder audio",
    "questions": "a table of questions",
    "hub": "data on the Hub",
}
"""Kinds of data; ``KIND:`` before an ambiguous text selects one."""

_LABEL_FILES = (".jams", ".txt", ".tsv", ".csv", ".json", ".ann", ".lab")

_YAML = (".yaml", ".yml")

HUB_TABLE = "metadata.jsonl"
"""Name of the table in a folder of sound files that `datasets` reads."""

PATHS = ("data", "audio", "labels", "durations", "names", "hierarchy", "negatives_labels", "negatives_audio", "prompts")
"""Fields that can contain paths."""

_HEAD = 2**16
"""Bytes read from the beginning of a file."""

_TEXTS = ("path", "caption", "dataset", "split_name")
"""Columns of CompA-CLAP's published tables."""

_SAID = re.compile(r"labels?|captions?(_\d+)?|class|category|tags?|text|description")
"""Headings that describe whole recordings."""

_STARTS = re.compile(r"(?<![^\W_])(onset|start|begin)(?![^\W_])", re.ASCII)
_STOPS = re.compile(r"(?<![^\W_])(offset|stop|end|duration)(?![^\W_])", re.ASCII)
"""Words in headings for the begin and the end of an event."""

_MOST_FILES = 50_000
"""Number of a folder's files that are examined; further files do not change its kind."""

_SETTLED = 2.0
"""Seconds after which another change of a folder gives it another time stamp."""


class DataSpec(Spec):
    """Data, and the fields that a user gives for them."""

    data: str = Field("mini", description="A preset, a folder, a table, a Hub id or NAME:PATH.")
    preset: str = Field(
        "mini", description="Preset for data made from your own sounds: mini, full, or another preset of a recipe."
    )
    audio: str | None = Field(None, description="Folder with the sound files named in a table.")
    encoding: str | None = Field(
        None, description="Encoding of tables that are not UTF-8, e.g. cp1252, cp949, gb18030 or shift_jis."
    )
    file: str | None = Field(
        None,
        description="Column with the file names of recordings; by default file_name, file, filename, path or audio.",
    )
    follow_links: bool = Field(False, description="Whether to follow symbolic links out of the folder of sound files.")
    label: str | None = Field(
        None,
        description="Column with labels; words_per_second or words_per_second=COLUMN uses a transcript's rate.",
    )
    group: str | None = Field(
        None, description="Column with groups, e.g. speakers; each group is in one split or fold only."
    )
    condition: str | None = Field(
        None, description="Column with a property that recordings of several labels share, e.g. the voice."
    )
    captions: tuple[str, ...] | None = Field(
        None, description="Columns with captions; by default captions, caption or caption_1, caption_2."
    )
    separator: str | None = Field(
        None, description="Separator between a recording's labels if it has several; not needed for lists."
    )
    hierarchy: str | None = Field(
        None,
        description="Which labels include others, if recordings have several: AudioSet's ontology.json, or 'labels': a "
        "label includes those that never occur without it. By default none includes another.",
    )
    words: tuple[str, ...] | None = Field(
        None, description="Columns with one word each, COLUMN or COLUMN=ATTRIBUTE; by default word:ATTRIBUTE."
    )
    split: str | None = Field(None, description="Split of a data set, part of a split, or several: train[:1000]+test.")
    config: str | None = Field(None, description="Configuration of a data set, if it has several.")
    revision: str | None = Field(None, description="Branch, tag or commit of a Hub id.")
    prompts: str | None = Field(
        None, description="Prompts for labels: a built-in set (default, plain, several) or a YAML file of templates."
    )
    labels: tuple[str, ...] | None = Field(
        None,
        description="Files with strong labels for a folder of recordings: each event without overlap becomes a "
        "separate sound. Also further files of strong labels.",
    )
    format: str | None = Field(
        None,
        description="Format of strong labels: audioset-strong, audiotime, desed, jams, maestro, maestro-soft "
        "(development.csv), raven, table or text; by default detected from the files.",
    )
    durations: str | None = Field(
        None, description="Table with the duration of each recording in seconds, for strong labels."
    )
    columns: tuple[str, ...] | None = Field(
        None,
        description="Columns of a table of strong labels, FIELD=HEADING, e.g. onset=start: recording, onset, offset "
        "or length, label; or of questions, e.g. question=prompt or options=choice_a+choice_b.",
    )
    answers: str | None = Field(
        None,
        description="How a table gives correct options: text, letters, from-0 or from-1; by default detected.",
    )
    resolution: float | None = Field(
        None, ge=0, lt=60, description="Resolution of strong labels in seconds; by default the format's resolution."
    )
    names: str | None = Field(None, description="AudioSet's table of ids and names, or its ontology (.json).")
    window: float | None = Field(
        None,
        gt=0,
        description="Length in seconds of the clips into which longer recordings with strong labels are cut; 25.",
    )
    negatives_labels: tuple[str, ...] | None = Field(
        None,
        description="AudioTime labels for clips without overlap, as in arXiv 2603.05128; do not rank models on them.",
    )
    negatives_audio: str | None = Field(None, description="Folder with the sound files of negatives_labels.")
    settings: dict[str, Any] = Field({}, description="Settings of the recipes, by name; in a data.yaml.")

    @field_validator("encoding")
    @classmethod
    def _of_text(cls, value: str | None) -> str | None:
        try:
            "".encode(value or "utf-8")
        except LookupError:
            raise InputError(
                f"encoding is {value!r}; give the name of an encoding, e.g. cp1252, cp949 or utf-16"
            ) from None
        return value

    @field_validator("audio", "labels", "durations", "names", "negatives_labels", "negatives_audio", "prompts")
    @classmethod
    def _at_home(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        """Expand ``~``, which a shell does not expand after an equals sign."""
        if isinstance(value, tuple):
            return tuple(map(os.path.expanduser, value))
        return value if value is None else os.path.expanduser(value)

    @cached_property
    def reading(self) -> Reading:
        """Return what kind of data this is, determined once; see `recognised`."""
        return recognised(self.data, self.given())

    def given(self) -> dict[str, Any]:
        """Return the fields that are set, other than the data, by name."""
        return {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if name != "data" and getattr(self, name) != field.default
        }


class BuildSpec(Spec):
    """The settings of a build other than its data."""

    bank: str | None = Field(None, description="32-voice DX7 bank (.syx) with the timbres of presets.")
    voices: tuple[int, ...] = Field(
        tuple(range(1, 9)), min_length=1, description="Voices of the bank, counted from 1, one per class."
    )
    writer_revision: str | None = Field(None, description="Branch, tag or commit of the Hub id given by --writer.")
    writer_device: str | None = Field(
        None, description="Device of --writer: cpu, cuda, cuda:1; by default CUDA if available."
    )
    writer_in_test: bool = Field(False, description="Whether --writer also rewrites captions of test items.")


_MADE = ("preset", "prompts")
_OF_LABELS = ("format", "durations", "columns", "resolution", "names")
_OF_TABLES = ("follow_links", "encoding", "file")

FIELDS: Mapping[str, tuple[str, ...]] = {
    "preset": (),
    "built": ("revision",),
    "recordings": (*_OF_TABLES, *COLUMNS, *_MADE, "labels", *_OF_LABELS),
    "table": ("audio", *_OF_TABLES, *COLUMNS, *_MADE),
    "labels": (
        *("audio", "follow_links", "encoding", "labels", *_OF_LABELS),
        *("window", "negatives_labels", "negatives_audio"),
    ),
    "dataset": (*COLUMNS, *_MADE, "split", "config", "revision"),
    "benchmark": ("audio", "split", "revision"),
    "texts": ("audio",),
    "questions": ("audio", "follow_links", "encoding", "columns", "answers", "split", "config", "revision"),
    "hub": (*COLUMNS, *_MADE, "split", "config", "revision"),
}
"""The fields of a `DataSpec` that apply to each kind of data."""


@dataclass(frozen=True)
class Reading:
    """What a text was recognised as.

    Attributes:
        kind: one of `KINDS`.
        source: the name or path, without a prefix ``KIND:``.
        what: a description in words.
    """

    kind: str
    source: str
    what: str


def recognised(data: str | Path, given: Mapping[str, Any] = {}) -> Reading:
    """Return what kind of data a text names, from known names and from the file or folder at a path.

    Args:
        data: ``NAME``, ``PATH``, ``ORG/NAME`` on the Hub, ``NAME:PATH`` for a published benchmark, or any of them after
            ``KIND:`` (`KINDS`), which is not examined further. A `Path`, and a text that begins with ``.``, ``/`` or
            ``~``, is not a name.
        given: further fields of a `DataSpec`; fields for columns determine what a table with unknown headings is.

    Raises:
        DatasetError: nothing or several things have this name; the message gives an unambiguous name for each.
    """
    text = str(data)
    if not text.strip():
        raise DatasetError(f"data is {text!r}; give a preset, a folder (. is the current one), a table or a Hub id")
    kind, colon, rest = text.partition(":")
    if colon and kind in KINDS:
        return Reading(kind, _at_home(rest), KINDS[kind])
    is_path = isinstance(data, Path) or text.startswith((".", "/", "~"))
    named = [] if is_path else list(_named(text))
    is_benchmark = any(reading.kind == "benchmark" for reading in named)
    path = Path(text).expanduser()
    there = [] if is_benchmark else _at(path, given)
    if is_path:
        there = [replace(reading, source=_no_name(path)) for reading in there]
    readings = [*named, *there]
    if not readings and not is_path and HUB_ID.fullmatch(text):
        readings = [Reading("hub", text, "a Hub id")]
    if len(readings) > 1:
        below = text if is_path else f".{os.sep}{text}"
        ways = " or ".join(
            f"{reading.kind}:{text if reading in named else below} ({reading.what})" for reading in readings
        )
        raise DatasetError(f"{text!r} is ambiguous. Give one of these instead: {ways}")
    if readings:
        return readings[0]
    if any(part in text for part in "/\\.~"):
        raise DatasetError(f"nothing found at {text!r}: no folder, no table, and it is not a Hub id (ORG/NAME)")
    from .sounds.hub import list_named_sets
    from .sounds.published import list_readers

    names, benchmarks = [*preset_names(), *list_named_sets()], ", ".join(f"{name}:PATH" for name in list_readers())
    raise DatasetError(
        f"no data {text!r}: not a folder or file here, not a Hub id (ORG/NAME), not one of {benchmarks}; "
        f"{nearest(text, names)}. To make sounds with installed synthesisers, run in a clone: "
        "python -m studies.sounds NAME --out FOLDER, then --data FOLDER"
    )


def _at_home(text: str) -> str:
    """Return a path, or ``NAME=PATH``, with ``~`` expanded, which a shell does not expand after a sign."""
    name, equals, path = text.partition("=")
    return f"{name}={os.path.expanduser(path)}" if equals else os.path.expanduser(text)


def prefix_of(data: str) -> tuple[str, str]:
    """Split into prefix (``KIND:``, ``NAME:`` of a benchmark, ``NAME=`` of a data set, or nothing) and path.

    A name alone, e.g. ``preset:mini``, has no path.
    """
    from .sounds.hub import list_named_sets
    from .sounds.published import reader_of

    kind, colon, rest = data.partition(":")
    if colon and kind in KINDS:
        inner, path = prefix_of(rest)
        is_name = kind in ("preset", "hub") or (not inner and any(one.kind == kind for one in _named(rest)))
        return (data, "") if is_name else (f"{kind}:{inner}", path)
    if reader_of(data) is not None:
        return f"{kind}:", rest
    name, equals, folder = data.partition("=")
    return (f"{name}=", folder) if equals and name in list_named_sets() else ("", data)


def _named(text: str) -> Iterator[Reading]:
    from .sounds.hub import list_named_sets
    from .sounds.published import reader_of

    name = text.partition("=")[0]
    if is_preset(text):
        yield Reading("preset", text, f"the preset {text}")
    if name in list_named_sets():
        yield Reading("dataset", _at_home(text), f"the data set {name}")
    reader = reader_of(text)
    if reader is not None:
        yield Reading("benchmark", text, reader[0].meaning)


def _at(path: Path, given: Mapping[str, Any]) -> list[Reading]:
    """Return the readings of a path; empty if nothing exists there."""
    try:
        if path.is_dir():
            changed, is_stated = path.stat().st_mtime_ns, not {"format", "columns"}.isdisjoint(given)
            if time.time() - changed / 1e9 < _SETTLED:
                return list(_in_folder(path, is_stated))
            return list(_unchanged_folder(str(path), is_stated, str(path.absolute()), changed))
        return [_in_file(path, given)] if path.is_file() else []
    except OSError as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {first_line(error)}") from error


@lru_cache(maxsize=32)
def _unchanged_folder(folder: str, is_stated: bool, _place: str, _changed: int) -> tuple[Reading, ...]:
    """Return the readings of a folder, cached: a command needs them often, and a folder can have many files."""
    return tuple(_in_folder(Path(folder), is_stated))


def _in_folder(folder: Path, is_stated: bool) -> Iterator[Reading]:
    """Yield the readings of a folder; `is_stated`: the user gives the format or the columns of strong labels."""
    from .sounds.files import read_suffixes, walked
    from .sounds.formats import format_of
    from .sounds.formats.parsing import labelled_recording

    if (folder / MANIFEST_NAME).is_file():
        yield Reading("built", str(folder), "a built data set")
        return
    firsts = _first_files(folder)
    sound = next((firsts[suffix] for suffix in read_suffixes() if suffix in firsts), None)
    if ".parquet" in firsts or ".arrow" in firsts:
        from .sounds.published import published_with

        columns = _parquet_columns(firsts[".parquet"]) if ".parquet" in firsts else ()
        if published_with(columns) is not None:
            yield Reading("built", str(folder), "the authors' published data")
        elif _names_recipes(folder / CARD_NAME):
            yield Reading("built", str(folder), "data of recipes")
        else:
            is_asked = _is_of_questions(columns)
            kind, what = (
                ("questions", KINDS["questions"]) if is_asked else ("dataset", "a data set with an audio column")
            )
            yield Reading(kind, str(folder), what)
            if sound is not None:
                yield Reading("recordings", str(folder), "a folder of recordings")
        return
    said = next((firsts[suffix] for suffix in _LABEL_FILES if suffix in firsts), None)
    try:
        said = None if said is None or not (is_stated or format_of(folder)) else said
    except DatasetError:
        said = None
    if sound is not None and (folder / HUB_TABLE).is_file() and not (folder / "metadata.csv").is_file():
        yield Reading("dataset", str(folder), f"a folder of sound files with {HUB_TABLE}, read by `datasets`")
        return
    if sound is not None:
        yield Reading("recordings", str(folder), "a folder of recordings")
    # Next to sound files, labels are in files of the same names.
    if said is not None and (
        sound is None
        or (
            said.suffix != ".csv"
            and any(said.with_name(labelled_recording(said) + suffix).is_file() for suffix in AUDIO_SUFFIXES)
        )
    ):
        yield Reading("labels", str(folder), "strong labels, one file per recording")
    if sound is None and said is None:
        counts = Counter(path.suffix.lower() for path in islice(walked(folder), _MOST_FILES))
        endings = [
            f"{count:,} {suffix or 'without suffix'}" + " (needs FFmpeg)" * (suffix in FOREIGN_SUFFIXES)
            for suffix, count in counts.most_common()
        ]
        raise DatasetError(
            f"{str(folder)!r} contains {plain(shown(endings)) or 'nothing'}: no sound files, no Parquet, no "
            f"{MANIFEST_NAME} of a built data set. For strong labels of an unrecognised format, give --data "
            f"labels:{folder} --set format=NAME"
        )


def _first_files(folder: Path) -> dict[str, Path]:
    """Return the first file of each suffix in a folder and below, among the files that are examined."""
    from .sounds.files import walked

    firsts: dict[str, Path] = {}
    for path in islice(walked(folder), _MOST_FILES):
        firsts.setdefault(path.suffix.lower(), path)
    return firsts


def _names_recipes(card: Path) -> bool:
    """Return whether a data card has the configuration of a recipe, as in data pushed without their manifest."""
    from .recipes import list_recipes

    try:
        with open_file(card) as stream:
            head = stream.read(_HEAD).decode(errors="replace")
    except (OSError, ValueError):
        return False
    return not set(re.findall(r"config_name: *[\"']?([\w-]+)", head)).isdisjoint(list_recipes())


def _parquet_columns(path: Path) -> tuple[str, ...]:
    from .manifest import open_parquet

    return tuple(open_parquet(path.name, path).schema_arrow.names)


def _in_file(path: Path, given: Mapping[str, Any]) -> Reading:
    suffix = path.suffix.lower()
    if suffix in AUDIO_SUFFIXES:
        raise DatasetError(f"{str(path)!r} is a sound file; give its folder, or a table of recordings")
    if suffix in _YAML:
        raise DatasetError(f"{str(path)!r} describes data and cannot have a prefix; give --data {path}")
    columns = _columns_of(path)
    if _is_of_questions(columns):
        return Reading("questions", str(path), KINDS["questions"])
    if set(_TEXTS) <= set(columns):
        return Reading("texts", str(path), "a table of captions for training")
    if suffix == ".parquet":
        raise DatasetError(f"{str(path)!r} is part of a data set; give its folder, --data {path.parent}")
    strong, table = (
        Reading("labels", str(path), "strong labels of recordings"),
        Reading("table", str(path), "a table of recordings"),
    )
    is_listed = bool(first_heading(FILE_COLUMNS[:1], columns))
    if suffix not in (".csv", ".tsv") and not (suffix == ".txt" and is_listed):
        if is_listed:
            raise DatasetError(
                f"{str(path)!r} describes files in JSON. Give a CSV instead; if it is the {HUB_TABLE} of a "
                "folder, give the "
                f"folder, --data dataset:{path.parent}"
            )
        if suffix in _LABEL_FILES:
            return strong
        raise DatasetError(
            f"{str(path)!r} is not data. Give a preset, a folder, a Hub id, a table (.csv, .tsv) or strong labels "
            f"({', '.join(_LABEL_FILES)}); to read it as strong labels, give labels:{path}"
        )
    from .sounds.formats import holds_events

    if {"format", "columns"} & given.keys() or holds_events(head_of(path)):
        return strong
    # A table can describe whole recordings without a column of file names; UrbanSound8K gives the times of its clips.
    names = [*map(folded_heading, columns)]
    is_file, has_times = first_heading(FILE_COLUMNS, columns), all(any(map(w.search, names)) for w in (_STARTS, _STOPS))
    if {"file", "label"} & given.keys() or is_file == "slice_file_name":
        return table
    if not has_times and (is_file or any(map(_SAID.fullmatch, names))):
        return table
    found = "it has no columns"
    if has_times:
        found = (
            f"its columns ({shown(columns, 12)}) contain times, as for events, but not all of the usual names; "
            f"table:{path} reads its rows as whole recordings"
        )
    elif columns:
        found = f"none of the columns in its first line ({shown(columns, 12)}) is recognised"
    one = (
        ""
        if len(columns) > 1
        else "; its first line is a single column (fields are separated by comma, tab, semicolon or |)"
    )
    raise DatasetError(
        f"cannot tell what {str(path)!r} contains: {found}{one}. Recordings need {FILE_COLUMNS[0]} (or --set "
        "file=COLUMN), questions need question and options, strong labels need file, label, start and stop (or "
        "--set columns=recording=COLUMN,onset=COLUMN,offset=COLUMN,label=COLUMN)"
    )


def _is_of_questions(columns: Collection[str]) -> bool:
    """Return whether at least two of question, options and answer are columns; the user can name the third."""
    names = {column.strip().lower() for column in columns}
    has_options = any(name in ("options", "choices") or _OPTION.fullmatch(name) for name in names)
    is_asked, is_answered = names & {"question", "instruction"}, names & {"answer", "answers", "correct_answer"}
    return bool((is_asked and (has_options or is_answered or "a" in names)) or (has_options and is_answered)) or (
        has_options and bool(names & {"prompt", "query"})
    )


_OPTION = re.compile(r"(option|choice)[ _-]?[a1]")
"""A heading of the first option."""


def _columns_of(path: Path) -> tuple[str, ...]:
    """Return a table's column names, or the keys of the first row of JSON; empty for any other file."""
    if path.suffix.lower() == ".parquet":
        return _parquet_columns(path)
    lines = head_of(path)
    if path.suffix.lower() not in (".json", ".jsonl"):
        return lines[0].fields if lines else ()
    with open_file(path) as stream:
        head = stream.read(_HEAD).decode("utf-8-sig", "replace")
    if path.suffix.lower() == ".json":
        return tuple(dict.fromkeys(re.findall(r'"(\w+)"\s*:', head)))
    try:
        row = json.loads(head.partition("\n")[0])
    except ValueError:
        return ()
    return tuple(row) if isinstance(row, dict) else ()


def described(data: str | Path, **given: Any) -> DataSpec:
    """Return the spec of data: the given fields, and the fields of a ``data.yaml`` for those that are not given.

    Args:
        data: as for `recognised`, or the path of a ``data.yaml``, whose relative paths start at its folder.
        given: further fields by name.

    Raises:
        InputError: a field is unknown, or a value is out of range or has another type.
        DatasetError: the file cannot be read.
    """
    path = Path(data).expanduser()
    if path.suffix not in _YAML or not path.is_file():
        return DataSpec(data=_no_name(data) if isinstance(data, Path) else data, **given)
    try:
        values = read_yaml(path)
    except InputError as error:
        raise DatasetError(str(error)) from error
    # A third party's description of a data set is data.
    if "dataset" in values:
        return DataSpec(data=f"dataset:{path}", **given)
    if "data" not in values:
        raise DatasetError(f"{path.name} lacks the key 'data', e.g. data: recordings")
    for name in values:
        if name not in DataSpec.model_fields and name in setting_names():
            raise DatasetError(
                f"{path}: {name} is a setting of recipes; put it under 'settings', as in settings: "
                f"{{{name}: {values[name]}}}"
            )
    try:
        return DataSpec(**{**{name: _beside(path, name, value) for name, value in values.items()}, **given})
    except InputError as error:
        raise DatasetError(f"{path}: {error}") from error


def _no_name(path: Path) -> str:
    """Return a path as a text that cannot be mistaken for a name."""
    text = str(path)
    return text if path.is_absolute() or text.startswith((".", "~")) else f".{os.sep}{text}"


def _beside(file: Path, name: str, value: Any) -> Any:
    """Return a description's path relative to the current folder; any other value unchanged."""
    if isinstance(value, list):
        return tuple(_beside(file, name, part) for part in value)
    if name not in PATHS or not isinstance(value, str):
        return value
    prefix, path = prefix_of(value) if name == "data" else ("", value)
    if not path or path.startswith("~") or Path(path).is_absolute():
        return value
    below, is_path = file.parent / path, path.startswith(".")
    if not is_path and not below.exists():
        return value
    return f"{prefix}{_no_name(below) if is_path else below}"


def check_fields(spec: DataSpec, reading: Reading) -> None:
    """Raise an error if a field does not apply to this kind of data.

    Raises:
        InputError: names the field, the kind of the data, and the kinds that the field applies to.
    """
    for name in spec.given():
        if name not in FIELDS[reading.kind] and name != "settings":
            about = [KINDS[kind].partition(":")[0] for kind, fields in FIELDS.items() if name in fields]
            raise InputError(
                f"{name} does not apply to {reading.source!r}, which is {reading.what}; it applies to {listed(about)}"
            )
    of_labels = [name for name in _OF_LABELS if name in spec.given()]
    if reading.kind == "recordings" and spec.labels is None and of_labels:
        raise InputError(
            f"{of_labels[0]} applies to strong labels, but {reading.source!r} has none. Give their file with "
            "--set labels=FILE, or omit it"
        )
    folder = Path(reading.source.partition("=")[2] or reading.source)
    if spec.revision is not None and reading.kind in ("built", "dataset") and folder.is_dir():
        raise InputError(f"revision applies to a Hub id, but {reading.source!r} is a local folder; omit it")
    if "audio" in FIELDS[reading.kind] and reading.kind not in ("questions", "benchmark") and spec.audio is None:
        raise InputError(
            f"{reading.source} is {reading.what}, but its sound files were not found. Give their folder with "
            "--set audio=FOLDER"
        )


def with_sound(spec: DataSpec, reading: Reading) -> DataSpec:
    """Return the spec; if a table or strong labels are next to their sound files, with their folder as audio folder."""
    if spec.audio is not None or reading.kind not in ("table", "labels"):
        return spec
    from .sounds.files import FoundFiles
    from .sounds.formats.parsing import labelled_recording, recording_name

    path = Path(reading.source).expanduser()
    folder = path if path.is_dir() else path.parent
    try:
        if reading.kind == "table":
            # Look for the first file that the table names.
            lines = head_of(path)
            columns = lines[0].fields if lines else ()
            column = heading_of(spec.file, columns) if spec.file else first_heading(FILE_COLUMNS, columns)
            names = [dict(zip(columns, line.fields, strict=False)).get(column or "", "") for line in lines[1:]]
            is_there = (
                bool(names)
                and bool(names[0])
                and FoundFiles(folder, follow_links=spec.follow_links).named(names[0]).is_file()
            )
        else:
            # Look for a sound file that the labels name, or one next to a label file of the same name.
            sounds = {file.stem for file in folder.iterdir() if file.suffix.lower() in AUDIO_SUFFIXES}
            files = (
                [path] if path.is_file() else [file for file in folder.iterdir() if file.suffix.lower() in _LABEL_FILES]
            )
            is_there = any(labelled_recording(file) in sounds for file in files)
            if not is_there and sounds and path.is_file():
                fields = [field for line in head_of(path) for field in line.fields]
                is_there = not sounds.isdisjoint(map(recording_name, fields))
    except (OSError, DatasetError):
        # Errors in the table are raised when it is read.
        return spec
    return spec.changed(audio=str(folder)) if is_there else spec
