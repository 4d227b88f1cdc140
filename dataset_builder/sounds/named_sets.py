"""Sounds by a short name: data sets of others, described by a YAML file each."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec, parse_yaml, read_yaml
from audio_compositionality.support.text import nearest

from .sound_files import SoundError

_FOLDER = "named"

_SUFFIX = ".yaml"


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
        texts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(text, str) and not text.strip() for text in texts):
            raise InputError(f"{info.field_name} is {value!r}; it must be a text")
        return value

    @model_validator(mode="after")
    def _says_something(self) -> NamedSet:
        if self.label is None and not self.captions:
            raise InputError("label or captions is missing: columns of what is said of the recordings")
        return self

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
    named = named_set_from(path.stem, path)
    beside = path.parent / named.dataset
    return named.changed(dataset=str(beside)) if beside.is_dir() else named


def described(content: Path | str, file: str) -> dict[str, Any]:
    """What a file in YAML says of sounds.

    Args:
        content: its path, or its text.
        file: what it is called, for messages.

    Raises:
        SoundError: it cannot be read, or says nothing by names.
    """
    try:
        return read_yaml(content) if isinstance(content, Path) else parse_yaml(content, file)
    except InputError as error:
        raise SoundError(str(error)) from error


def named_set_from(name: str, content: Path | str) -> NamedSet:
    """A data set as a file describes it.

    Args:
        name: of the data set; in the file it does not stand.
        content: path of the file, or its text.

    Raises:
        SoundError: the text is no YAML, or lacks a key, or has one that there is not, or of another type.
    """
    file = f"{name}{_SUFFIX}"
    values = described(content, file)
    if "name" in values:
        raise SoundError(f"{file} has the key 'name'; the name of a data set is that of its file")
    try:
        return NamedSet(name=name, **values)
    except InputError as error:
        raise SoundError(f"{file}: {error}; put a number, yes or no that is meant as a text into quotes") from error
