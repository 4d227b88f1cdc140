"""Sounds opened by name, and their data by recipe."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError, create_model
from pydantic.fields import FieldInfo

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.spec import check_values
from audio_compositionality.support.text import first_line, nearest

from .data import DatasetError
from .recipes import list_recipes, load_recipe
from .recipes.base import AnnotatedRecipe, Recipe
from .rendered import RenderedConfiguration, RenderedData
from .sounds.entries import LONGEST_RECORDING, Sound, Sounds, fingerprint_of_entries, spoken
from .sounds.hub import NamedSet, list_named_sets, load_named_set, read_named_set
from .sounds.recordings import (
    MOST_RECORDINGS,
    RATES,
    Candidate,
    Decoded,
    Read,
    ReadRecordings,
    SoundError,
    duplicates,
    examined,
    first_of,
    printable,
)
from .sounds.splits import UnlabelledError, copies_of
from .sounds.tones import HeardSpec, default_timbres

if TYPE_CHECKING:
    from .sounds.formats.parsing import ReadOptions
    from .sounds.strong_labels import AnnotatedRecordings

RECORDINGS = "a recipe for recordings"

RECORDINGS_OF = "recordings of "
"""Prefix of the source of data from recordings, which is not the name of a preset or folder."""


def open_recordings(
    folder: str | Path | None = None,
    *,
    dataset: str | Path | None = None,
    table: str | Path | None = None,
    label: str | None = None,
    group: str | None = None,
    condition: str | None = None,
    captions: str | Sequence[str] | None = None,
    separator: str | None = None,
    words: str | Sequence[str] | None = None,
    strong_labels: str | Path | Sequence[str | Path] | None = None,
    format: str | None = None,
    label_options: ReadOptions | None = None,
    split: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings | PackageSounds:
    """Open a user's recordings: of a folder, or of a data set that `datasets` reads.

    All are read once: their fingerprint is that of samples, labels, groups and conditions, independent of their places.

    Args:
        folder: with ``LABEL[/CONDITION]/file.wav``, or with ``metadata.csv``; see `folder_recordings`. Or the name of
            sounds of an installed package, one of `list_sounds`. A folder of such a name is ``./NAME``, or a `Path`.
        dataset: Hub id or folder of a data set with a column of audio, instead; see `hub_recordings`. Or the name of
            one, one of `list_named_sets`, or a YAML file that describes one in the form of `NamedSet`: it states the
            arguments below that are not given, and unusable recordings are left out. ``NAME=FOLDER`` reads a copy of
            it, with the files that it has on the Hub.
        table: that describes each file of the folder, where it is not its ``metadata.csv``.
        label: column with labels.
        group: column of groups: recordings of one group are never on both sides of a fold.
        condition: column with a property that recordings of several labels share and that does not reveal these, such
            as the voice that speaks words.
        captions: column with captions, or several, also as one text with commas between them; by default the columns
            ``captions``, ``caption``, ``caption_1`` …
        separator: between several labels of a recording, where it can have several.
        words: columns with a word each, such as the way of playing: ``COLUMN``, or ``COLUMN=ATTRIBUTE``; by default
            those named ``word:ATTRIBUTE``. With words of loudness (`LOUDNESS`), sounds keep their levels relative to
            others of their label.
        strong_labels: files with the labelled events of a folder's recordings, in place of labels of whole files: each
            stretch in which one label is present alone is a recording, see `strong_recordings`.
        format: of the strong labels; by default recognised from the files.
        label_options: facts that the files of strong labels leave open.
        split: of the data set, such as ``test`` or ``train[:1000]``.
        config: configuration of the data set.
        revision: of the data set: branch, tag or commit.
        skip_invalid: leave out unusable recordings; `ReadRecordings.skipped` lists them.
        progress: show progress bars.

    Raises:
        InputError: not exactly one of `folder` and `dataset` is given, or an argument that is for a data set alone.
        DatasetError: they cannot be read, or one of them is unusable.
    """
    if (folder is None) == (dataset is None):
        raise InputError("give recordings as a folder or as a data set: one of the two")
    columns = {
        "label": label,
        "group": group,
        "condition": condition,
        "captions": captions,
        "separator": separator,
        "words": words,
    }
    of_data_set = {"split": split, "config": config, "revision": revision}
    if dataset is not None:
        if strong_labels is not None:
            raise InputError("strong labels (strong_labels=...) apply to the files of a folder, not to a data set")
        return _of_data_set(dataset, {**columns, **of_data_set}, skip_invalid=skip_invalid, progress=progress)
    for name, value in of_data_set.items():
        if value is not None:
            raise InputError(f"{name} applies to a data set (dataset=...), not to a folder")
    if strong_labels is not None:
        _check_given(folder or "")
        for name, column in columns.items():
            if column is not None:
                raise InputError(f"{name} does not apply: strong labels describe each event by themselves")
        from .sounds.strong_labels import strong_recordings

        return strong_recordings(
            folder or "", strong_labels, format, options=label_options, skip_invalid=skip_invalid, progress=progress
        )
    if format is not None or label_options is not None:
        raise InputError("format applies to strong labels (strong_labels=...), which are not given")
    return _of_folder(folder or "", {"table": table, **columns}, skip_invalid=skip_invalid, progress=progress)


def _of_folder(
    folder: str | Path, columns: Mapping[str, Any], *, skip_invalid: bool, progress: bool
) -> ReadRecordings | PackageSounds:
    """The sounds of a folder, or of an installed package."""
    from .sounds.folder import SETTINGS, folder_recordings

    opener = opener_of(folder)
    if opener is None:
        recordings = folder_recordings(folder, **columns, skip_invalid=skip_invalid, progress=progress)
        _check_settings(str(Path(folder) / SETTINGS), recordings.suggested)
        return recordings
    _warn_of_folder(opener.name, "sounds of an installed package")
    for name, column in columns.items():
        if column is not None:
            raise InputError(
                f"{name} names a column of a table; the sounds {opener.name!r} of an installed package have none"
            )
    sounds = open_package_sounds(opener, skip_invalid=skip_invalid, progress=progress)
    _check_settings(title_of(opener.name), sounds.suggested)
    return sounds


def _of_data_set(
    dataset: str | Path, asked: Mapping[str, Any], *, skip_invalid: bool, progress: bool
) -> ReadRecordings:
    """The sounds of a data set.

    Args:
        dataset: its name, Hub id or folder.
        asked: columns and so on; a named data set states those that are None.
        skip_invalid: leave out unusable recordings, as is always done in a named data set, which nobody here can mend.
        progress: show progress bars.
    """
    from .sounds.hub import check_copy, hub_recordings

    named = named_set_of(dataset)
    if named is None:
        return hub_recordings(dataset, **asked, skip_invalid=skip_invalid, progress=progress)
    stated = {name: getattr(named, name) if value is None else value for name, value in asked.items()}
    if str(dataset) == named.name:
        _warn_of_folder(named.name, "a data set")
    if Path(named.dataset).is_dir():
        check_copy(named, stated["config"], stated["split"])
    # Excluded labels and separators belong to the column that the data set states; the same for captions.
    its_own = stated["label"] == named.label
    if asked["separator"] is None and not its_own:
        stated["separator"] = None
    return hub_recordings(
        named.dataset,
        **stated,
        caption_separator=named.caption_separator if asked["captions"] is None else None,
        without=named.without if its_own else (),
        files=named.files,
        audio=named.audio,
        source=named.name,
        suggested=named.suggested,
        skip_invalid=True,
        progress=progress,
    )


def opener_of(name: str | Path) -> SoundsOpener | None:
    """The sounds of an installed package by name; None where a folder is meant: a `Path`, or another text.

    Raises:
        SoundError: there is neither.
    """
    openers = list_sounds()
    if isinstance(name, str) and name in openers:
        return openers[name]
    _check_given(name)
    if not Path(name).is_dir():
        valid = f"; {nearest(str(name), openers)}" if openers else ""
        raise SoundError(
            f"{str(name)!r} is not a folder, nor the name of sounds of an installed package{valid}. To make "
            "sounds with installed synthesisers, in a clone: python -m studies.sounds NAME --out FOLDER, then --data "
            "FOLDER"
        )
    return None


def _check_given(name: str | Path) -> None:
    """Refuse an empty text, which `Path` would take for the current folder."""
    if not str(name).strip():
        raise SoundError(f"recordings are {str(name)!r}; give a folder (. is the current one)")


def named_set_of(text: str | Path) -> NamedSet | None:
    """The data set of a name, or of a YAML file that describes it, with its place; None for others.

    Args:
        text: ``NAME``, ``FILE.yaml``, or either with ``=FOLDER``, which holds a copy. A `Path` is no name.

    Raises:
        SoundError: the file does not describe one, or there is no such folder.
    """
    name, equals, folder = str(text).partition("=")
    if name.endswith((".yaml", ".yml")) and not Path(name).is_dir():
        named = read_named_set(Path(name))
        _check_settings(name, named.settings)
    elif isinstance(text, str) and name in list_named_sets():
        named = load_named_set(name)
    else:
        return None
    if equals and not (folder and Path(folder).is_dir()):
        what = f"{folder!r} is not a folder" if folder else "there is no folder after the ="
        raise SoundError(f"the data set is {str(text)!r}, and {what}: {name}=FOLDER reads a copy of {named.title}")
    return named.changed(dataset=folder) if equals else named


def _check_settings(file: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings of a file that are unknown to all recipes."""
    if not settings:
        return
    try:
        check_values(settings, changeable(), RECORDINGS)
    except InputError as error:
        raise SoundError(f"{file}: settings: {error}") from error


def _warn_of_folder(name: str, what: str) -> None:
    """Warn of a folder with the same name, and state how to name it."""
    if Path(name).is_dir():
        warnings.warn(f"{name!r} is taken as the name of {what}; ./{name} is the folder of that name", stacklevel=4)


def recorded_recipes() -> dict[str, Recipe[Any]]:
    """The recipes that take a user's sounds, by name."""
    every = {name: load_recipe(name) for name in list_recipes()}
    return {name: recipe for name, recipe in every.items() if recipe.takes_sounds}


def changeable(preset: str = "mini", recipes: Iterable[str] | None = None) -> dict[str, FieldInfo]:
    """The settings that `recorded` takes as changes, by name.

    Args:
        preset: see `recorded`.
        recipes: names; by default all.

    Raises:
        InputError: an unknown preset, or a recipe that takes no recordings.
    """
    fields: dict[str, FieldInfo] = {}
    for spec in _of_any_sounds(_presets(preset, recipes)[0]).values():
        deciding = spec.values().keys() - spec.of_tones
        fields |= {name: field for name, field in spec.settable().items() if name in deciding}
    return fields


def takers(change: str, preset: str = "mini", recipes: Iterable[str] | None = None) -> list[str]:
    """Names of the recipes of a preset that have a setting, even one that only code can change; see `changeable`."""
    specs = _of_any_sounds(_presets(preset, recipes)[0])
    return [name for name, spec in specs.items() if change in set(type(spec).model_fields) - spec.of_tones]


def _of_any_sounds(presets: Mapping[str, Any]) -> dict[str, HeardSpec]:
    """Specs of presets with sounds in place of scenes of tones; their fields may differ."""
    every = recorded_recipes()
    return {name: every[name].of_sounds(spec, default_timbres(), {}) for name, spec in presets.items()}


@dataclass(frozen=True)
class Offer:
    """The data that can be made of recordings.

    Attributes:
        data: of the recipes that they can serve.
        left_out: the reason against each other recipe, by name.
    """

    data: RenderedData
    left_out: Mapping[str, str]


def recorded(
    recordings: Sounds, *, preset: str = "mini", recipes: Sequence[str] | None = None, **changes: Any
) -> RenderedData:
    """The data that recipes make of recordings, rendered on the fly.

    Args:
        recordings: as `open_recordings` gives them.
        preset: ``mini`` or ``full``, or another one of a recipe; as far as there are enough recordings.
        recipes: names; by default all that these recordings can serve. A warning gives the reason against each other
            one.
        changes: to settings, each made in every recipe with a setting of that name, such as ``seed``, ``transforms``,
            ``classes``. ``pitch`` and ``stretch`` of the transforms need the extra ``transforms``.

    Raises:
        InputError: an unknown preset or setting, a recipe that takes no recordings, or a value out of its range.
        DatasetError: the recordings cannot serve a named recipe, or any recipe.
    """
    offer = offered(recordings, preset=preset, recipes=recipes, required=recipes or (), **changes)
    for name, reason in offer.left_out.items():
        warnings.warn(f"{name} is left out: {reason}", stacklevel=2)
    return offer.data


def offered(
    recordings: Sounds,
    *,
    preset: str = "mini",
    recipes: Iterable[str] | None = None,
    required: Collection[str] = (),
    **changes: Any,
) -> Offer:
    """As `recorded`, with the reasons instead of warnings; an error only where one of `required` cannot be served.

    All rows are drawn, so that impossible ones are reported before anything is rendered.
    """
    every = recorded_recipes()
    presets, left_out = _presets(preset, recipes, required)
    fields = changeable(preset, presets)
    has = {name: set(type(spec).model_fields) - spec.of_tones for name, spec in _of_any_sounds(presets).items()}
    # Settings that only code can change, such as ranges of parameters.
    further = set().union(*has.values()) - {"sounds", *fields}
    check_values({name: value for name, value in changes.items() if name not in further}, fields, RECORDINGS)
    wanted = {**recordings.suggested, **changes}
    source = f"{RECORDINGS_OF}{recordings.source}"
    served: dict[str, RenderedConfiguration] = {}
    for name, of_recipe in presets.items():
        requested = {change: value for change, value in wanted.items() if change in has[name]}
        try:
            configuration = RenderedConfiguration(source, name, every[name].of_sounds(of_recipe, recordings, requested))
            _ = configuration.rows
            served[name] = configuration
        except DatasetError as error:
            reason = _reason(error, recordings)
            if name in required:
                raise DatasetError(reason) from error
            left_out[name] = reason
    if not served:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise DatasetError(f"{recordings.source} can serve no recipe: {reasons}")
    return Offer(RenderedData(source, served), left_out)


def _presets(
    preset: str, recipes: Iterable[str] | None, required: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """Settings of a preset by recipe, and the reasons against the other named recipes.

    Raises:
        InputError: a recipe takes no recordings, no recipe has the preset, or one of `required` does not.
    """
    every = recorded_recipes()
    names = tuple(dict.fromkeys(every if recipes is None else recipes))
    for name in names:
        if name not in every:
            raise InputError(f"the recipe {name!r} takes no recordings; {nearest(name, every)}")
    left_out = {name: f"it has no preset {preset!r}" for name in names if preset not in every[name].presets}
    if len(left_out) == len(names) or any(name in left_out for name in required):
        valid = dict.fromkeys(one for name in names for one in every[name].presets)
        raise InputError(f"unknown preset {preset!r}; {nearest(preset, valid)}")
    return {name: every[name].presets[preset] for name in names if name not in left_out}, left_out


def _reason(error: DatasetError, recordings: Sounds) -> str:
    """The reason why recordings cannot serve a recipe; where they have no classes, also the way to get some."""
    if isinstance(error, UnlabelledError) and isinstance(recordings, ReadRecordings) and recordings.labelling:
        return f"{error}; {recordings.labelling}"
    return str(error)


def annotated_recipes() -> dict[str, AnnotatedRecipe[Any]]:
    """The recipes that can be made of recordings with strong labels, by name."""
    every = {name: load_recipe(name) for name in list_recipes()}
    return {name: recipe for name, recipe in every.items() if isinstance(recipe, AnnotatedRecipe)}


def annotated_data(
    recordings: AnnotatedRecordings, *, recipes: Iterable[str] | None = None, changes: Mapping[str, Any] | None = None
) -> RenderedData:
    """The data that recipes make of recordings with strong labels, rendered on the fly.

    Args:
        recordings: as `open_annotated` gives them.
        recipes: names; by default all that can be made of such recordings.
        changes: to settings, made in each recipe.

    Raises:
        InputError: a recipe that cannot be made of them, no such setting, or a value out of its range.
    """
    names = check_recipes(recipes)
    every = annotated_recipes()
    settings = {name: every[name].of_annotated(recordings, dict(changes or {})) for name in names}
    return RenderedData(f"{RECORDINGS_OF}{recordings.source}", settings)


def check_recipes(recipes: Iterable[str] | None) -> tuple[str, ...]:
    """Names of recipes that can be made of recordings with strong labels; by default all.

    Raises:
        InputError: one cannot.
    """
    every = annotated_recipes()
    names = tuple(dict.fromkeys(every if recipes is None else recipes))
    for name in names:
        if name not in every:
            raise InputError(f"the recipe {name!r} cannot be made of recordings with labels; {nearest(name, every)}")
    return names


Item = TypeVar("Item")

_LOUDEST = 2.0
"""Largest sample: float files pass full scale by a little, whole numbers in place of shares by far."""

_MOST_LEVEL = 100
"""Largest level, in dB."""

_STATED: Mapping[str, Any] = {
    "source": str,
    "sample_rate": int | None,
    "entries": Sequence,
    "fingerprint": str,
    "suggested": Mapping,
    "waveform": Callable,
}
"""Attributes of `Sounds` with their types."""

_KINDS: Mapping[str, Any] = get_type_hints(Sound)

_FIELDS: Mapping[str, Any] = {name: (kind, ...) for name, kind in _KINDS.items()}

_SAID = create_model("_SAID", **_FIELDS)
"""The fields of an entry, with the types of `Sound`."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class SoundsOpener(Protocol):
    """Sounds of an installed package: an object of the entry points ``audio_compositionality.sounds``.

    Attributes:
        name: for ``--data`` and `open_recordings`.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def open(self) -> Sounds:
        """The sounds, read or made.

        Raises:
            DatasetError: they are unavailable: names what is missing.
        """
        ...


_openers: Registry[SoundsOpener] = Registry(None, "SOUNDS", "audio_compositionality.sounds", lambda opener: opener.name)


class PackageSounds:
    """Sounds of an installed package, a stranger's: checked once, like those of a folder; see `Sounds`.

    Their entries are as stated; the fingerprint is that of the entries, and the rate that of the samples.

    Attributes:
        source: as `Sounds.source`.
        sample_rate: as `Sounds.sample_rate`.
        entries: of the usable sounds, in the stated order.
        fingerprint: as `Sounds.fingerprint`.
        suggested: as `Sounds.suggested`.
        skipped: the id of each sound that was left out, with the reason.
    """

    def __init__(self, title: str, sounds: Any, *, skip_invalid: bool = False, progress: bool = True) -> None:
        """Read all once, in several threads; samples are not kept.

        Args:
            title: their name in messages.
            sounds: as an installed package gives them.
            skip_invalid: leave out unusable sounds; a wrong entry is an error nevertheless.
            progress: show a progress bar.

        Raises:
            SoundError: they violate `Sounds`, or one is unusable: names them and it.
        """
        self._title, self._sounds = title, sounds
        stated = {name: _given(title, name, partial(getattr, sounds, name)) for name in _STATED}
        for name, value in stated.items():
            if not isinstance(value, _STATED[name]):
                raise SoundError(f"{title}: {name} is of the type {type(value).__name__}; see `Sounds`")
        self.source = printable(stated["source"])
        self.suggested: Mapping[str, Any] = dict(stated["suggested"])
        self._stated = _given(title, "entries", partial(_checked_entries, title, stated["entries"]))
        candidates = [
            Candidate(
                one.id, one.label, one.number, one.group, one.condition, partial(self._decoded, number),
                one.captions, one.labels, one.words, loop=one.loop,
            )
            for number, one in enumerate(self._stated)
        ]  # fmt: skip
        usable, problems = examined(candidates, progress=progress)
        read = {candidate.id: of_sound for candidate, of_sound in usable}
        problems |= duplicates(usable) | _same_names(self._stated, read)
        if problems and (not skip_invalid or len(problems) == len(candidates)):
            raise SoundError(f"{title}: {first_of(problems)}; --skip-invalid leaves them out, where others are left")
        self.skipped = tuple(problems.items())
        self._kept = [number for number, one in enumerate(self._stated) if one.id not in problems]
        self.entries = tuple(self._stated[number] for number in self._kept)
        self._digests = tuple(read[one.id].sound for one in self.entries)
        rates = {read[one.id].rate for one in self.entries}
        self.sample_rate = rates.pop() if len(rates) == 1 else None
        self.fingerprint = fingerprint_of_entries(self.entries)

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Samples and rate of a sound; see `Sounds.waveform`.

        Raises:
            SoundError: the sound has changed.
        """
        try:
            decoded = self._decoded(self._kept[index])
            if decoded.sound != self._digests[index]:
                raise SoundError("has changed since it was opened; start again")
        except SoundError as error:
            raise SoundError(f"{self._title}: {self.entries[index].id!r} {error}") from error
        return decoded.samples.astype(np.float64, copy=False), decoded.rate

    def _decoded(self, number: int) -> Decoded:
        """The samples of a sound, checked by `Sounds.waveform`; an error ends a sentence that begins with its name."""
        try:
            samples, rate = self._sounds.waveform(number)
        except Exception as error:
            raise SoundError(f"cannot be had: {first_line(error)}") from error
        if not (isinstance(rate, int | np.integer) and RATES[0] <= rate <= RATES[1]):
            raise SoundError(f"has a rate of {rate!r} Hz; it must be a whole number from {RATES[0]:,} to {RATES[1]:,}")
        if not (isinstance(samples, np.ndarray) and samples.ndim == 1 and samples.dtype.kind == "f" and len(samples)):
            raise SoundError("has no samples that are an array [samples] of float64, one or more")
        if not np.isfinite(samples).all():
            raise SoundError("has values that are not finite (NaN or infinity)")
        if len(samples) > LONGEST_RECORDING * rate:
            raise SoundError(f"lasts {len(samples) / rate:.1f} s; the limit is {LONGEST_RECORDING} s")
        if (largest := float(np.abs(samples).max())) > _LOUDEST:
            raise SoundError(f"has samples up to {largest:,.0f}; they lie from -1 to 1")
        loop = self._stated[number].loop
        if loop and round(loop * rate) != len(samples):
            raise SoundError(f"is a loop of {loop:g} s, and its samples last {len(samples) / rate:g} s")
        samples = samples.astype(np.float64)
        digest = sha256_of(b"%d " % rate + samples.astype("<f8").tobytes())
        return Decoded(samples, int(rate), self._stated[number].sha256, digest)


def _checked_entries(title: str, stated: Sequence[Any]) -> tuple[Sound, ...]:
    """Entries that satisfy `Sound`, copied, each with a unique id.

    Raises:
        SoundError: one does not: names it.
    """
    if not 0 < len(stated) <= MOST_RECORDINGS:
        raise SoundError(f"{title} are {len(stated):,}; there are from 1 to {MOST_RECORDINGS:,}")
    entries: dict[str, Sound] = {}
    for number, one in enumerate(stated):
        try:
            said = _SAID.model_validate({name: getattr(one, name) for name in _KINDS}, strict=True)
            entry = Sound(**dict(said))
        except AttributeError as error:
            raise SoundError(f"{title}: number {number} is no `Sound`: {first_line(error)}") from error
        except ValidationError as error:
            wrong = ".".join(map(str, error.errors()[0]["loc"]))
            raise SoundError(f"{title}: number {number} is no `Sound`: {wrong} is of another type") from error
        fault = _fault_of_entry(entry)
        if fault is not None or entry.id in entries:
            raise SoundError(f"{title}: number {number} ({entry.id!r}): {fault or 'its id is that of another'}")
        entries[entry.id] = entry
    return tuple(entries.values())


def _fault_of_entry(entry: Sound) -> str | None:
    """The problem of an entry; None where there is none."""
    texts = (entry.id, entry.label, entry.group, entry.condition, *entry.captions, *entry.labels, *entry.words.values())
    hidden = next((text for text in texts if printable(text) != text), None)
    if hidden is not None:
        return f"{hidden!r} has characters that cannot be printed"
    if not entry.id:
        return "its id is empty"
    if not _SHA256.fullmatch(entry.sha256):
        return f"its sha256 is {entry.sha256!r}; it has 64 hexadecimal digits"
    if not all(map(math.isfinite, (entry.number or 0.0, entry.loop, entry.level, *entry.values.values()))):
        return "one of its numbers is not finite"
    if entry.loop < 0 or abs(entry.level) > _MOST_LEVEL:
        return (
            f"loop is {entry.loop:g} s and level {entry.level:g} dB; not negative, and at most {_MOST_LEVEL} either way"
        )
    unsaid = next((word for word in entry.words.values() if spoken(word) != word or not word), None)
    return None if unsaid is None else f"the word {unsaid!r} is not in its spoken form, {spoken(unsaid)!r}"


def _same_names(entries: Sequence[Sound], read: Mapping[str, Read]) -> dict[str, str]:
    """Sounds with the sha256 of another and other samples: a split by digest would take them for one."""
    problems = {}
    for first, *copies in copies_of((one for one in entries if one.id in read), lambda one: one.sha256):
        for other in copies:
            if read[other.id].sound != read[first.id].sound:
                problems[other.id] = f"has the sha256 of {first.id!r}, and other samples"
    return problems


def _given(title: str, what: str, get: Callable[[], Item]) -> Item:
    """The result of a package's code; whatever it raises becomes an error that names its sounds.

    Raises:
        DatasetError: as the code raises it, or with the first line of what it raises.
    """
    try:
        return get()
    except DatasetError:
        raise
    except Exception as error:
        raise SoundError(f"{title}: {what} cannot be had: {first_line(error)}") from error


def list_sounds() -> Mapping[str, SoundsOpener]:
    """Sounds of installed packages, and registered ones, by name."""
    return _openers.all()


def register_sounds(opener: SoundsOpener) -> None:
    """Make sounds known in this process by their name; they replace others of that name."""
    _openers.add(opener)


def open_package_sounds(opener: SoundsOpener, *, skip_invalid: bool = False, progress: bool = True) -> PackageSounds:
    """The sounds of an installed package, checked; see `PackageSounds`.

    Raises:
        DatasetError: they are unavailable or unusable: names them.
    """
    title = title_of(opener.name)
    return PackageSounds(
        title, _given(title, "what it opens", opener.open), skip_invalid=skip_invalid, progress=progress
    )


def title_of(name: str) -> str:
    """The name of sounds of an installed package in messages."""
    return f"the sounds {name!r} of an installed package"
