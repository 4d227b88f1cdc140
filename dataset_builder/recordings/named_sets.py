"""Data sets of others by a short name: where they lie, and which of their columns say what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from typing import Any

import yaml

from audio_compositionality.support.text import first_line, nearest

from .sound_files import RecordingError

_FOLDER = "named"

_SUFFIX = ".yaml"


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A data set: a YAML file of the folder ``named``, called by its name, has these attributes.

    Attributes:
        name: of the file, without its suffix.
        title: the name that its authors gave it.
        dataset: Hub id.
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
        raise RecordingError(f"unknown data set {name!r}; {nearest(name, names)}")
    text = files(__package__).joinpath(_FOLDER, f"{name}{_SUFFIX}").read_text("utf-8")
    return named_set_from(name, text)


def named_set_from(name: str, text: str) -> NamedSet:
    """A data set as a file describes it.

    Raises:
        RecordingError: the text is no YAML, or lacks an attribute, or has one that there is not.
    """
    try:
        values = yaml.safe_load(text)
        wrong = set(values).difference(each.name for each in fields(NamedSet))
        if wrong:
            raise RecordingError(f"{name}{_SUFFIX} has {min(wrong)!r}, which no data set has")
        lists = {attribute: tuple(values[attribute]) for attribute in ("without", "captions") if attribute in values}
        return NamedSet(**{**values, **lists, "name": name})
    except (yaml.YAMLError, TypeError) as error:
        raise RecordingError(f"{name}{_SUFFIX} does not describe a data set: {first_line(error)}") from error
