"""Open data from a user's text, such as ``mini`` or ``animals/``: the one way from the text to rows."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import check_values
from audio_compositionality.support.text import listed, nearest, shown

from .account import Account
from .data import Data, DatasetError, HeldData
from .data_spec import FIELDS, KINDS, DataSpec, Reading, check_fields, described, with_sound
from .recipes import list_recipes
from .rendered import RenderedData, opened_preset, preset_fields, setting_names
from .sounds.labels import COLUMNS
from .sounds.recordings import SoundError

if TYPE_CHECKING:
    from .sounds.entries import Sounds
    from .sounds.formats.parsing import ReadOptions
    from .sounds.recordings import ReadRecordings


@dataclass(frozen=True)
class Opened:
    """Data that were opened.

    Attributes:
        data: the data.
        reading: their kind, source and description.
        left_out: requested recipes that the data cannot serve: the reason by name.
        notes: sentences for the user, without a full stop: terms of use, and what the account does not tell.
        account: what became of every file and row of a user's recordings; None for other data.
        skipped: sentences on the data that were left out, which the account tells at length.
    """

    data: Data
    reading: Reading
    left_out: Mapping[str, str]
    notes: tuple[str, ...] = ()
    account: Account | None = None
    skipped: tuple[str, ...] = ()


def open_data(
    data: str | Path | HeldData[Any] | DataSpec | Sounds,
    *,
    skip_invalid: bool = False,
    progress: bool = False,
    **settings: Any,
) -> Data:
    """Open data of any form.

    Args:
        data: a preset (``mini``, ``full``; to the letter of the paper ``paper-mini``, ``paper-full``), rendered on the
            fly with nothing on disk, or a preset with changes, ``mini with seed=7``; a recipe, one of `list_recipes`,
            which is ``mini`` of that recipe alone, unless a folder or file here has its name; a folder written by
            `build_dataset`, its Hub id, or that of the authors' published data; a folder, a table or a data set of
            recordings, of which scenes, captions and questions are made; strong labels, of which questions are made;
            ``NAME:PATH``, a published benchmark of others; a ``data.yaml``; recordings that `open_recordings` has
            opened; or rendered data, or questions that were read. See `recognised`.
        skip_invalid: leave out recordings that are unusable or have wrong labels; a warning names them.
        progress: show a bar while recordings are read.
        settings: fields of `DataSpec`, such as ``label="instrument"``, and settings of the recipes, such as ``seed=7``
            or ``classes=6``; ``recipes`` names recipes.

    Raises:
        DatasetError: there are no such data, the text is ambiguous, or the data can serve no recipe.
        InputError: there is no such setting, or not such a value.
    """
    if isinstance(data, HeldData):
        return data
    if not isinstance(data, str | Path | DataSpec):
        from .recorded import recorded

        if not hasattr(data, "entries"):
            raise InputError(f"data are a text, a path or opened recordings; this is of the type {type(data).__name__}")
        return recorded(data, **settings)
    recipes = settings.pop("recipes", None)
    if isinstance(data, str) and recipes is None and data in list_recipes() and not Path(data).exists():
        recipes, data = [data], str(settings.pop("preset", "mini"))
    of_spec = {name: settings.pop(name) for name in list(settings) if name in DataSpec.model_fields}
    spec = data.changed(**of_spec) if isinstance(data, DataSpec) else described(data, **of_spec)
    if not isinstance(data, DataSpec):
        check_described(spec, data)
    opened = opened_data(
        spec, recipes=recipes, required=recipes or (), changes=settings, skip_invalid=skip_invalid, progress=progress
    )
    for name, reason in opened.left_out.items():
        warnings.warn(f"{name} is left out: {reason}", stacklevel=2)
    for note in (*opened.notes, *opened.skipped):
        warnings.warn(note, stacklevel=2)
    return opened.data


def reopened_data(data: str | Path | HeldData[Any]) -> Data:
    """The data of results, opened again: questions with a fault are left out, as they were for the results.

    Whether what is left are the same data is told by their fingerprint, which a caller has to compare.

    Args:
        data: see `open_data`.

    Raises:
        DatasetError: see `open_data`.
        InputError: see `open_data`.
    """
    if not isinstance(data, str | Path) or str(data) in list_recipes():
        return open_data(data)
    return open_data(data, skip_invalid=reading_of(described(data)).kind in ("questions", "benchmark"))


def check_described(spec: DataSpec, file: str | Path) -> None:
    """Refuse settings of a ``data.yaml`` that do not apply to such data.

    Args:
        spec: as `described` gives it.
        file: the file of the spec.

    Raises:
        DatasetError: see `recognised`.
        InputError: names the file, the setting and its rule, or the nearest name.
    """
    if not spec.settings:
        return
    fields = settable(spec)
    # Settings that only code can change are checked when the data are opened.
    further = setting_names() - fields.keys()
    try:
        if not fields:
            _refuse_changes(spec.settings, reading_of(spec))
        check_values({name: value for name, value in spec.settings.items() if name not in further}, fields, "the data")
    except InputError as error:
        raise InputError(f"{file}: settings: {error}") from error


def settable(spec: DataSpec, recipes: Iterable[str] | None = None) -> dict[str, FieldInfo]:
    """The settings of the recipes that can be made of data, by name.

    Args:
        spec: of the data.
        recipes: names; by default all recipes that such data can serve.

    Raises:
        DatasetError: see `recognised`.
        InputError: a recipe cannot be made of such data.
    """
    reading = reading_of(spec)
    if reading.kind == "preset":
        return preset_fields(reading.source, recipes)
    if reading.kind == "labels":
        from .texts.label_questions import AskedSpec

        return AskedSpec.settable()
    if reading.kind in (*SOUNDS, "hub"):
        from .recorded import changeable, recorded_recipes

        if reading.kind == "hub" and recipes is not None:
            # Its kind shows when it is opened; settings of rows that are stored already are refused then.
            recipes = [name for name in recipes if name in recorded_recipes()] or None
        return changeable(spec.preset, recipes)
    return {}


def reading_of(spec: DataSpec) -> Reading:
    """The reading of data; an id of the Hub with fields of recordings is a data set of recordings.

    Raises:
        DatasetError: see `recognised`.
    """
    reading = spec.reading
    if reading.kind == "hub" and set(spec.given()) - {"revision", "settings"}:
        return _set_of_hub(reading)
    return reading


def _set_of_hub(reading: Reading) -> Reading:
    return Reading("dataset", reading.source, "a data set of the Hub with a column of audio")


def recipes_for(spec: DataSpec) -> tuple[str, ...] | None:
    """Names of the recipes that such data can serve; None where the data hold rows already.

    Raises:
        DatasetError: see `recognised`.
    """
    kind = reading_of(spec).kind
    if kind == "labels":
        from .recorded import annotated_recipes

        return tuple(annotated_recipes())
    if kind in SOUNDS:
        from .recorded import recorded_recipes

        return tuple(recorded_recipes())
    return None


SOUNDS = ("recordings", "table", "dataset")
"""Kinds of data that recipes are made of."""


def opened_data(
    spec: DataSpec,
    *,
    recipes: Iterable[str] | None = None,
    required: Collection[str] = (),
    changes: Mapping[str, Any] | None = None,
    skip_invalid: bool = False,
    sounds: bool = True,
    progress: bool = False,
) -> Opened:
    """Open data.

    Args:
        spec: the data.
        recipes: names of requested recipes; by default all. Of stored data all are opened.
        required: names of recipes that have to be served.
        changes: to settings of the recipes.
        skip_invalid: leave out recordings that are unusable or have wrong labels.
        sounds: whether the sound files of questions are looked at; without them only the rows can be used.
        progress: show progress bars.

    Raises:
        DatasetError: see `open_data`.
        InputError: see `open_data`.
    """
    reading = reading_of(spec)
    spec = with_sound(spec, reading)
    check_fields(spec, reading)
    wanted = None if recipes is None else tuple(recipes)
    changes = {**spec.settings, **(changes or {})}
    if reading.kind == "hub":
        # Data of ours or the authors', or a data set of recordings.
        from .stored import StoredData, StrangeDataError

        try:
            stored = StoredData(reading.source, revision=spec.revision)
        except StrangeDataError:
            reading = _set_of_hub(reading)
        else:
            reading = Reading("built", reading.source, KINDS["built"])
            _refuse_changes(changes, reading)
            return Opened(stored, reading, {})
    if reading.kind == "preset":
        return Opened(opened_preset(reading.source, changes, wanted), reading, {})
    if reading.kind == "labels":
        return _of_labels(spec, reading, wanted, changes, skip_invalid=skip_invalid, progress=progress)
    if reading.kind in SOUNDS:
        return _of_sounds(spec, reading, wanted, required, changes, skip_invalid=skip_invalid, progress=progress)
    _refuse_changes(changes, reading)
    data = _stored(spec, reading, {"skip_invalid": skip_invalid, "sounds": sounds, "progress": progress})
    told = {name: getattr(data, name) for name in ("notes", "account", "skipped") if hasattr(data, name)}
    return Opened(data, reading, {}, **told)


def _refuse_changes(changes: Mapping[str, Any], reading: Reading) -> None:
    for name in changes:
        raise InputError(
            f"there is no setting {name!r}: {reading.source} is {reading.what}, whose rows are fixed; settings "
            "apply to presets and to data made from recordings"
        )


def _stored(spec: DataSpec, reading: Reading, how: Mapping[str, Any]) -> Data:
    """Data that are rendered or written already; of questions, read as `how` says."""
    if reading.kind == "questions":
        from .sounds.published.question_tables import open_questions

        given = {name: getattr(spec, name) for name in FIELDS["questions"]}
        columns = given.pop("columns") or ()
        return open_questions(reading.source, columns=columns, **given, **how)
    if reading.kind == "built":
        from .stored import StoredData

        return StoredData(reading.source, revision=spec.revision)
    if reading.kind == "benchmark":
        from .sounds.published import list_readers, reader_of
        from .sounds.published.question_sets import QuestionSet

        published = reader_of(reading.source)
        if published is None:
            readers = [f"{name}:PATH" for name in list_readers()]
            raise DatasetError(f"{reading.source!r} names no published benchmark; {nearest(reading.source, readers)}")
        reader, path = published
        if not path:
            raise DatasetError(f"{reading.source!r} names no path; {reader.name}:PATH is {reader.meaning}")
        given = {name: getattr(spec, name) for name in FIELDS["benchmark"]}
        # A shell does not expand ``~`` behind a colon.
        path = os.path.expanduser(path)
        if isinstance(reader, QuestionSet):
            return reader.open(path, **given, **how)
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} does not apply to {reader.meaning}; leave it out")
        return reader.open(path)
    raise DatasetError(f"{reading.source} is {reading.what}: it is for `train`, and no task scores it")


def _of_sounds(
    spec: DataSpec,
    reading: Reading,
    recipes: tuple[str, ...] | None,
    required: Collection[str],
    changes: Mapping[str, Any],
    *,
    skip_invalid: bool,
    progress: bool,
) -> Opened:
    from .recorded import RECORDINGS, changeable, offered, takers
    from .scenes.effects import load_transform
    from .sounds.hub import named_set_of
    from .texts.captions import load_templates

    # Wrong settings are refused before recordings are read, which can take minutes.
    if spec.prompts is not None:
        changes = {**changes, "templates": load_templates(spec.prompts)}
    fields = changeable(spec.preset, recipes)
    if spec.prompts is not None and not takers("templates", spec.preset, recipes):
        raise InputError(
            f"prompts is {spec.prompts!r}, and none of the recipes uses prompts; leave it out, or "
            f"name a task of one of the recipes {listed(takers('templates'))}"
        )
    read = check_values({name: value for name, value in changes.items() if name != "templates"}, fields, RECORDINGS)
    for name in read.get("transforms", ()):
        load_transform(name).check_available()
    named = named_set_of(reading.source) if reading.kind == "dataset" else None
    notes: tuple[str, ...] = () if named is None else (named.terms,)
    data = spec.changed(data=f"{reading.kind}:{reading.source}")
    sounds = open_recordings(data, skip_invalid=skip_invalid, progress=progress)
    told = set(sounds.account.left_out.values())
    notes += _skipped(sounds.source, [pair for pair in sounds.skipped if pair[1] not in told])
    skipped = _skipped(sounds.source, [pair for pair in sounds.skipped if pair[1] in told])
    try:
        offer = offered(sounds, preset=spec.preset, recipes=recipes, required=required, **changes)
    except DatasetError as error:
        error.account = sounds.account
        raise
    return Opened(offer.data, reading, offer.left_out, notes, sounds.account, skipped)


def open_recordings(
    data: str | Path | DataSpec, *, skip_invalid: bool = False, progress: bool = True, **fields: Any
) -> ReadRecordings:
    """Open a user's recordings: of a folder, a table or a data set that `datasets` reads.

    All are read once: their fingerprint is that of samples, labels, groups and conditions, independent of their places.

    Args:
        data: a folder ``LABEL[/CONDITION]/file.wav``, or with ``metadata.csv``; a table, whose sound files are in the
            folder ``audio``; a Hub id or folder of a data set with a column of audio; the name of one, one of
            `list_named_sets`, or ``dataset:FILE.yaml``, a file that describes one in the form of `NamedSet`: it states
            the fields that are not given, and unusable recordings are left out. ``NAME=FOLDER`` reads a copy of it. See
            `recognised`.
        skip_invalid: leave out unusable recordings; `ReadRecordings.skipped` lists them.
        progress: show progress bars.
        fields: further fields of `DataSpec`: columns such as ``label="instrument"``, ``split`` of a data set, or
            ``labels``, files with strong labels, of which each stretch in which one label is present alone is a
            recording.

    Raises:
        InputError: a field does not apply to such data.
        DatasetError: they are no recordings, cannot be read, or one of them is unusable.
    """
    spec = data.changed(**fields) if isinstance(data, DataSpec) else described(data, **fields)
    reading = reading_of(spec)
    if reading.kind == "hub":
        reading = _set_of_hub(reading)
    spec = with_sound(spec, reading)
    check_fields(spec, reading)
    how: dict[str, Any] = {"skip_invalid": skip_invalid, "progress": progress}
    if reading.kind == "dataset":
        from .sounds.hub import hub_recordings, named_set_of

        named = named_set_of(reading.source)
        if named is None:
            return hub_recordings(reading.source, spec, **how)
        if reading.source == named.name and Path(named.name).is_dir():
            name = named.name
            warnings.warn(
                f"{name!r} is taken as the name of a data set; ./{name} is the folder of that name", stacklevel=3
            )
        _check_suiting(reading.source, named.settings)
        # Nobody here can mend a published data set.
        return hub_recordings(named.dataset, spec, named, skip_invalid=True, progress=progress)
    if reading.kind not in SOUNDS:
        raise DatasetError(f"{reading.source} is {reading.what}, and no recordings")
    if spec.labels is not None:
        from .sounds.strong_labels import strong_recordings

        for name in COLUMNS:
            if getattr(spec, name) is not None:
                raise InputError(f"{name} does not apply: strong labels describe each event by themselves")
        format, options = _format(spec)
        return strong_recordings(
            reading.source, spec.labels, format, options=options, follow_links=spec.follow_links, **how
        )
    from .sounds.folder import SETTINGS, folder_recordings

    folder, table = (reading.source, None) if reading.kind == "recordings" else (spec.audio or "", reading.source)
    recordings = folder_recordings(folder, spec, table=table, **how)
    _check_suiting(str(Path(folder) / SETTINGS), recordings.suggested)
    return recordings


def _check_suiting(file: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings in a file beside sounds that no recipe has."""
    from .recorded import RECORDINGS, changeable

    try:
        check_values(settings, changeable() if settings else {}, RECORDINGS)
    except InputError as error:
        raise SoundError(f"{file}: settings: {error}") from error


def _of_labels(
    spec: DataSpec,
    reading: Reading,
    recipes: tuple[str, ...] | None,
    changes: Mapping[str, Any],
    *,
    skip_invalid: bool,
    progress: bool,
) -> Opened:
    from .recorded import annotated_data, check_recipes
    from .sounds.strong_labels import SECONDS, WARNING, open_annotated
    from .texts.label_questions import AskedSpec

    names = check_recipes(recipes)
    AskedSpec(**changes)
    format, options = _format(spec)
    recordings = open_annotated(
        (reading.source, *(spec.labels or ())),
        spec.audio or "",
        format,
        options=options,
        window=SECONDS if spec.window is None else spec.window,
        skip_invalid=skip_invalid,
        negatives=spec.negatives_labels or (),
        negatives_audio=spec.negatives_audio,
        follow_links=spec.follow_links,
        progress=progress,
    )
    data = annotated_data(recordings, recipes=names, changes=changes)
    notes: tuple[str, ...] = (WARNING,) if spec.negatives_labels else ()
    try:
        notes += notes_of(data)
    except DatasetError as error:
        error.account = recordings.account
        raise
    skipped = _skipped(recordings.source, [*recordings.left_out.items()])
    return Opened(data, reading, {}, notes, recordings.account, skipped)


def notes_of(data: RenderedData) -> tuple[str, ...]:
    """Notes on rows that could not be made of recordings with strong labels, such as a kind of questions, and why.

    Raises:
        DatasetError: nothing could be made.
    """
    return tuple(dict.fromkeys(note for rendering in data.renderings for note in rendering.notes()))


def _skipped(source: str, skipped: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """A note on the recordings that are left out: their number, the first for each reason, and why."""
    if not skipped:
        return ()
    ids: dict[str, list[str]] = defaultdict(list)
    for id, reason in skipped:
        ids[reason].append(id)
    names = shown([f"{shown(of_reason)} ({reason})" for reason, of_reason in ids.items()])
    count = "1 recording" if len(skipped) == 1 else f"{len(skipped):,} recordings"
    return (f"{count} of {source} {'is' if len(skipped) == 1 else 'are'} left out: {names}",)


def _format(spec: DataSpec) -> tuple[str | None, ReadOptions]:
    """The format of strong labels, and the options that their files leave open.

    Raises:
        InputError: a file is not there, or columns are no ``FIELD=HEADING``.
    """
    from .sounds.formats.parsing import ReadOptions

    for name in ("durations", "names"):
        path = getattr(spec, name)
        if path is not None and not Path(path).is_file():
            raise InputError(f"{name} is {path!r}, and there is no such file")
    columns: dict[str, str] = {}
    for pair in spec.columns or ():
        field, equals, heading = (part.strip() for part in pair.partition("="))
        if not (field and equals and heading):
            raise InputError(f"columns has {pair!r}; it takes FIELD=HEADING, such as onset=start")
        if field in columns:
            raise InputError(f"columns has {field!r} twice; a field stands in one column")
        columns[field] = heading
    if columns and spec.format not in (None, "table", "raven"):
        raise InputError(f"columns applies to the formats table and raven; the columns of {spec.format} are fixed")
    options = ReadOptions(
        durations=spec.durations, resolution=spec.resolution, columns=columns, names=spec.names, encoding=spec.encoding
    )
    # Raven's tables have their own columns of times.
    return spec.format or ("table" if "onset" in columns else None), options


def left_out_notes(reasons: Mapping[str, str | None]) -> list[str]:
    """Notes on what is left out, one a reason; `reasons` by name, None for a name that is not left out."""
    notes = []
    for reason in dict.fromkeys(filter(None, reasons.values())):
        names = [name for name, of_name in reasons.items() if of_name == reason]
        notes.append(f"{listed(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}")
    return notes
