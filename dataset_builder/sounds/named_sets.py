"""Sounds by a short name: data sets of others, described by a YAML file each."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

import yaml
from pydantic import Field, ValidationInfo, field_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec
from audio_compositionality.support.text import first_line, nearest

from .sound_files import SoundError

_FOLDER = "named"

_SUFFIX = ".yaml"

_SAID = ("label", "captions")
"""Keys of which a file has one or both."""

_LARGEST = 2**16
"""Bytes of a file."""


class NamedSet(Spec):
    """A data set: a YAML file of the folder ``named``, or of a user, has these fields as keys, all but the name."""

    name: str = Field(description="Of the file, without its suffix.")
    title: str = Field(description="The name that its authors gave it.")
    dataset: str = Field(description="Hub id; in a file of a user also a folder.")
    split: str = Field(description="The split that is read.")
    domain: str = Field(description="What the recordings are, in a word or two.")
    licence: str = Field(description="Of the recordings.")
    url: str = Field(description="Where its authors describe it.")
    citation: str = Field(description="What to cite, in a sentence.")
    label: str | None = Field(None, description="Column with labels, where there are some.")
    revision: str | None = Field(None, description="Branch, tag or commit.")
    # Where the repository does not say which they are: its own script is not run.
    files: str | None = Field(None, description="Pattern of the Parquet files, with {config} and {split} in it.")
    config: str | None = Field(None, description="Configuration.")
    audio: str | None = Field(None, description="Column with sound, where there are several or files do not say so.")
    separator: str | None = Field(None, description="Between the labels of a recording, where it can have several.")
    captions: tuple[str, ...] | None = Field(None, description="Columns with captions.")
    caption_separator: str | None = Field(None, description="Between several captions in one text of a column.")
    words: tuple[str, ...] | None = Field(None, description="Columns with words: ATTRIBUTE, or COLUMN=ATTRIBUTE.")
    condition: str | None = Field(None, description="Column of what candidates of a side share: a speaker, a pitch.")
    group: str | None = Field(None, description="Column of what is never on both sides: a speaker, a source file.")
    without: tuple[str, ...] = Field((), description="Labels that are left out.")
    settings: dict[str, bool | int | float | str] = Field({}, description="Settings of recipes that suit it.")

    @field_validator("*")
    @classmethod
    def _not_empty(cls, value: Any, info: ValidationInfo) -> Any:
        if value == "":
            raise InputError(f"{info.field_name} is ''; it must be a text")
        return value

    @field_validator("captions", "words", mode="before")
    @classmethod
    def _columns(cls, value: Any) -> Any:
        texts = [text.strip() for text in value.split(",")] if isinstance(value, str) else value
        if texts is not None and not _are_texts(texts):
            raise InputError(f"columns are {value!r}; give a column or a list of columns, such as [said_1, said_2]")
        return texts

    @field_validator("without", mode="before")
    @classmethod
    def _labels(cls, value: Any) -> Any:
        if not _are_texts(value):
            raise InputError(f"without is {value!r}; it is a list of texts, such as [noise, 'no']")
        return value

    @field_validator("settings", mode="before")
    @classmethod
    def _settings(cls, value: Any) -> Any:
        if not are_settings(value):
            raise InputError(f"settings is {value!r}; it is settings of recipes by their names, such as classes: 6")
        return value

    @field_validator("files")
    @classmethod
    def _pattern(cls, value: str | None) -> str | None:
        if value is not None and not _is_pattern(value):
            raise InputError(
                f"files is {value!r}; it is a pattern of files with {{config}} and {{split}}, such as "
                "'data/{split}/*.parquet'"
            )
        return value

    @property
    def suggested(self) -> dict[str, Any]:
        """Settings of recipes that suit these recordings."""
        return {"domain": self.domain, **self.settings}

    @property
    def terms(self) -> str:
        """What whoever uses it has to know, in a sentence."""
        return f"{self.title} ({self.url}) is licensed {self.licence}; its authors ask to cite {self.citation}"


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) and text.strip() for text in value)


def are_settings(value: Any) -> bool:
    """Whether a value is settings of recipes by their names."""
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(of, bool | int | float | str) for name, of in value.items()
    )


def _is_pattern(value: str) -> bool:
    try:
        names = {name for _, name, _, _ in Formatter().parse(value)}
    except ValueError:
        return False
    return bool(value.strip()) and value[0] != "/" and names <= {None, "config", "split"}


def list_named_sets() -> tuple[str, ...]:
    """Names of all data sets that have one."""
    folder = files(__package__).joinpath(_FOLDER)
    return tuple(sorted(file.name.removesuffix(_SUFFIX) for file in folder.iterdir() if file.name.endswith(_SUFFIX)))


def load_named_set(name: str) -> NamedSet:
    """The data set of a name.

    Raises:
        SoundError: there is none, or its file is no description of one.
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
        SoundError: there is no such file, or it is no description of a data set: says which key is wrong.
    """
    named = named_set_from(path.stem, read_description(path))
    beside = path.parent / named.dataset
    return named.changed(dataset=str(beside)) if beside.is_dir() else named


def read_description(path: Path) -> str:
    """The text of a YAML file that describes sounds.

    Raises:
        SoundError: it cannot be read, or is too large.
    """
    try:
        size = path.stat().st_size
        text = path.read_text("utf-8") if size <= _LARGEST else ""
    except (OSError, ValueError) as error:
        raise SoundError(f"{str(path)!r} cannot be read: {first_line(error)}") from error
    if size > _LARGEST:
        raise SoundError(f"{str(path)!r} has {size:,} bytes; the description of a data set has at most {_LARGEST:,}")
    return text


def parsed_description(name: str, text: str) -> Any:
    """What a text in YAML says.

    Raises:
        SoundError: it is none.
    """
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise SoundError(f"{name} is no YAML: {first_line(error)}") from error


def named_set_from(name: str, text: str) -> NamedSet:
    """A data set as a file describes it.

    Raises:
        SoundError: the text is no YAML, or lacks a key, or has one that there is not, or of another type.
    """
    file = f"{name}{_SUFFIX}"
    values = parsed_description(file, text)
    if not isinstance(values, dict):
        raise SoundError(f"{file} does not describe a data set: it has lines such as title: NAME")
    keys = {key: field.is_required() for key, field in NamedSet.model_fields.items() if key != "name"}
    unknown = next((str(key) for key in values if key not in keys), None)
    if unknown is not None:
        raise SoundError(f"{file} has the key {unknown!r}; {nearest(unknown, keys)}")
    missing = [key for key, required in keys.items() if required and key not in values]
    if not any(key in values for key in _SAID):
        missing.append(" or ".join(_SAID))
    if missing:
        raise SoundError(f"{file} lacks the keys {', '.join(missing)}")
    try:
        return NamedSet(name=name, **values)
    except InputError as error:
        raise SoundError(f"{file}: {error}; put a number, yes or no that is meant as a text into quotes") from error
