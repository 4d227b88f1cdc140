"""Data sets of others by a short name: where they lie, and which of their columns say what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

from audio_compositionality.support.text import first_line, nearest

from .sound_files import SoundError

_FOLDER = "named"

_SUFFIX = ".yaml"

_SAID = ("label", "captions")
"""Keys of which a file has one or both."""

_LARGEST = 2**16
"""Bytes of a file."""


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A data set: a YAML file of the folder ``named``, or of a user, has these attributes as keys, all but the name.

    Attributes:
        name: of the file, without its suffix.
        title: the name that its authors gave it.
        dataset: Hub id; in a file of a user also a folder.
        split: that is read.
        label: column with labels; None where there are captions alone.
        domain: what the recordings are, in a word or two.
        licence: of the recordings.
        url: where its authors describe it.
        citation: what to cite, in a sentence.
        revision: branch, tag or commit.
        files: pattern of the Parquet files to read where the repository does not say them (its own script is not run),
            with ``{config}`` and ``{split}`` in it.
        config: configuration.
        audio: column with sound, where there are several or the files do not say so.
        separator: between the labels of a recording, where it can have several; see `specific_labels`.
        captions: columns with captions.
        caption_separator: between the captions of a recording, where a column has several of them in one text.
        condition: column of what the candidates of a side share: a speaker, a pitch.
        group: column of what is never on both sides: a speaker, a source file.
        without: labels that are left out.
        settings: of recipes, where nobody asks for others.
    """

    name: str
    title: str
    dataset: str
    split: str
    domain: str
    licence: str
    url: str
    citation: str
    label: str | None = None
    revision: str | None = None
    files: str | None = None
    config: str | None = None
    audio: str | None = None
    separator: str | None = None
    captions: tuple[str, ...] | None = None
    caption_separator: str | None = None
    condition: str | None = None
    group: str | None = None
    without: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def suggested(self) -> dict[str, Any]:
        """Settings of recipes that suit these recordings."""
        return {"domain": self.domain, **self.settings}

    @property
    def terms(self) -> str:
        """What whoever uses it has to know, in a sentence."""
        return f"{self.title} ({self.url}) is licensed {self.licence}; its authors ask to cite {self.citation}"


def list_named_sets() -> tuple[str, ...]:
    """Names of all data sets that have one."""
    folder = files(__package__).joinpath(_FOLDER)
    return tuple(sorted(file.name.removesuffix(_SUFFIX) for file in folder.iterdir() if file.name.endswith(_SUFFIX)))


def load_named_set(name: str) -> NamedSet:
    """The data set of a name.

    Raises:
        RecordingError: there is none, or its file is no description of one.
    """
    names = list_named_sets()
    if name not in names:
        raise SoundError(f"unknown data set {name!r}; {nearest(name, names)}")
    text = files(__package__).joinpath(_FOLDER, f"{name}{_SUFFIX}").read_text("utf-8")
    return named_set_from(name, text)


def read_named_set(path: Path) -> NamedSet:
    """The data set that a user's own file describes, as those of the folder ``named`` do; its name is that of the file.

    A `NamedSet.dataset` that is a folder beside the file is that folder.

    Raises:
        RecordingError: there is no such file, or it is no description of a data set: says which key is wrong.
    """
    try:
        size = path.stat().st_size
        text = path.read_text("utf-8") if size <= _LARGEST else ""
    except (OSError, ValueError) as error:
        raise SoundError(f"{str(path)!r} cannot be read: {first_line(error)}") from error
    if size > _LARGEST:
        raise SoundError(f"{str(path)!r} has {size:,} bytes; the description of a data set has at most {_LARGEST:,}")
    named = named_set_from(path.stem, text)
    beside = path.parent / named.dataset
    return replace(named, dataset=str(beside)) if beside.is_dir() else named


def named_set_from(name: str, text: str) -> NamedSet:
    """A data set as a file describes it.

    Raises:
        RecordingError: the text is no YAML, or lacks a key, or has one that there is not, or of another type.
    """
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise SoundError(f"{name}{_SUFFIX} is no YAML: {first_line(error)}") from error
    if not isinstance(values, dict):
        raise SoundError(f"{name}{_SUFFIX} does not describe a data set: it has lines such as title: NAME")
    keys = {each.name: each.default is MISSING and each.default_factory is MISSING for each in fields(NamedSet)}
    del keys["name"]
    for key, value in values.items():
        if key not in keys:
            raise SoundError(f"{name}{_SUFFIX} has the key {str(key)!r}; {nearest(str(key), keys)}")
        needed = _NEEDED.get(key, _TEXT)
        if not needed.holds(value):
            raise SoundError(f"{name}{_SUFFIX}: {key} is {value!r}; it is {needed.words}")
    missing = [key for key, required in keys.items() if required and key not in values]
    if not any(key in values for key in _SAID):
        missing.append(" or ".join(_SAID))
    if missing:
        raise SoundError(f"{name}{_SUFFIX} lacks the keys {', '.join(missing)}")
    lists = {key: _listed(values[key]) for key in ("without", "captions") if key in values}
    return NamedSet(**{**values, **lists, "name": name})


def _listed(value: str | list[str]) -> tuple[str, ...]:
    """Texts of a list, or of one text with commas between them."""
    texts = value.split(",") if isinstance(value, str) else value
    return tuple(text.strip() for text in texts)


@dataclass(frozen=True)
class _Needed:
    """What a key of the file holds, in words, and whether a value is one."""

    words: str
    holds: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_columns(value: Any) -> bool:
    return _are_texts(value.split(",") if isinstance(value, str) else value)


def _is_separator(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_pattern(value: Any) -> bool:
    try:
        return (
            _is_text(value)
            and value[0] != "/"
            and {name for _, name, _, _ in Formatter().parse(value)} <= {None, "config", "split"}
        )
    except ValueError:
        return False


def _are_settings(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(of, bool | int | float | str) for name, of in value.items()
    )


_TEXT = _Needed("a text; put a number, yes or no into quotes", _is_text)

_NEEDED = {
    "without": _Needed("a list of texts, such as [noise, 'no']", _are_texts),
    "captions": _Needed("a column or a list of columns, such as [caption_1, caption_2]", _are_columns),
    "separator": _Needed("a text, such as ','", _is_separator),
    "caption_separator": _Needed("a text, such as '. '", _is_separator),
    "files": _Needed("a pattern of files with {config} and {split}, such as 'data/{split}/*.parquet'", _is_pattern),
    "settings": _Needed("settings of recipes by their names, such as classes: 6", _are_settings),
}
"""Of the keys that hold anything but a text."""
