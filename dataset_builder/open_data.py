"""Open data from a text, e.g. ``mini`` or ``animals/``."""

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
    """Opened data, and what to tell the user about them.

    Attributes:
        data: the data.
        reading: their kind, source and description.
        left_out: why requested recipes cannot be made of the data, by recipe.
        notes: sentences for the user, without a full stop: terms of use, and facts that are not in the account.
        account: what was done with every file and row of a user's recordings; None for other data.
        skipped: short sentences on what was left out; the account has the details.
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
    """Open any kind of data.

    Args:
        data: a preset (``mini``, ``full``; exactly as in the paper: ``paper-mini``, ``paper-full``), rendered on the
            fly with nothing on disk, or a preset with changes, ``mini with seed=7``; a recipe, one of `list_recipes`,
            which means ``mini`` of that recipe alone, unless a folder or file here has its name; a folder written by
            `build_dataset`, its Hub id, or the Hub id of the authors' published data; a folder, table or data set of
            recordings, from which scenes, captions and questions are made; strong labels, from which questions are
            made; ``NAME:PATH``, a published benchmark; a ``data.yaml``; recordings opened by `open_recordings`; or
            rendered data or questions that were read. See `recognised`.
        skip_invalid: leave out recordings that are unusable or have wrong labels; a warning names them.
        progress: show a progress bar while recordings are read.
        settings: fields of `DataSpec`, e.g. ``label="instrument"``, and settings of the recipes, e.g. ``seed=7`` or
            ``classes=6``; ``recipes`` selects recipes.

    Raises:
        DatasetError: the data do not exist, the text is ambiguous, or no recipe can be made of the data.
        InputError: a setting is unknown or has an invalid value.
    """
    if isinstance(data, HeldData):
        return data
    if not isinstance(data, str | Path | DataSpec):
        from .recorded import recorded

        if not hasattr(data, "entries"):
            raise InputError(f"data has type {type(data).__name__}; give a text, a path or opened recordings")
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
    """Open the data of results again; recordings and questions with a fault are left out, as they were for the
    results. There are no notes on recipes that cannot be made.

    The caller has to compare the fingerprint to find out whether these are the same data.

    Args:
        data: see `open_data`.

    Raises:
        DatasetError: see `open_data`.
        InputError: see `open_data`.
    """
    if not isinstance(data, str | Path) or str(data) in list_recipes():
        return open_data(data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\w+ is left out: ", UserWarning)
        return open_data(data, skip_invalid=reading_of(described(data)).kind in (*SOUNDS, "questions", "benchmark"))


def check_described(spec: DataSpec, file: str | Path) -> None:
    """Raise an error if settings in a ``data.yaml`` do not apply to its data.

    Args:
        spec: result of `described`.
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
    """Return the settings of the recipes that can be made of data, by name.

    Args:
        spec: the data.
        recipes: names; by default all recipes that can be made of the data.

    Raises:
        DatasetError: see `recognised`.
        InputError: a recipe cannot be made of these data.
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
            # The kind is known once the data are opened; settings of stored rows are refused then.
            recipes = [name for name in recipes if name in recorded_recipes()] or None
        return changeable(spec.preset, recipes)
    return {}


def reading_of(spec: DataSpec) -> Reading:
    """Return what kind of data this is; a Hub id with fields for recordings is a data set of recordings.

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
    """Return the names of the recipes that can be made of data; None if the data already consist of rows.

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
"""Kinds of data from which recipes are made."""


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
        recipes: names of requested recipes; by default all. If rows are stored, all are opened.
        required: names of recipes that must be available.
        changes: changed settings of the recipes.
        skip_invalid: leave out recordings that are unusable or have wrong labels.
        sounds: whether the sound files of questions are checked; without them only the rows can be used.
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
        # Our or the authors' data, or a data set of recordings.
        from .stored import StoredData, UnrecognizedDataError

        try:
            stored = StoredData(reading.source, revision=spec.revision)
        except UnrecognizedDataError:
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
            f"{name!r} cannot be set: {reading.source} is {reading.what}, whose rows are fixed. Settings "
            "apply to presets and to data made from recordings"
        )


def _stored(spec: DataSpec, reading: Reading, how: Mapping[str, Any]) -> Data:
    """Return data that are already rendered or written; `how` has the arguments for reading questions."""
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
            raise DatasetError(f"{reading.source!r} is not a published benchmark; {nearest(reading.source, readers)}")
        reader, path = published
        if not path:
            raise DatasetError(f"{reading.source!r} has no path; give {reader.name}:PATH, {reader.meaning}")
        given = {name: getattr(spec, name) for name in FIELDS["benchmark"]}
        # A shell does not expand ``~`` after a colon.
        path = os.path.expanduser(path)
        if isinstance(reader, QuestionSet):
            return reader.open(path, **given, **how)
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} does not apply to {reader.meaning}; omit it")
        return reader.open(path)
    raise DatasetError(f"{reading.source} is {reading.what}: it can only be used with `train`")


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

    # Refuse wrong settings before recordings are read, which can take minutes.
    if spec.prompts is not None:
        changes = {**changes, "templates": load_templates(spec.prompts)}
    fields = changeable(spec.preset, recipes)
    if spec.prompts is not None and not takers("templates", spec.preset, recipes):
        raise InputError(
            f"prompts is {spec.prompts!r}, but none of the recipes uses prompts. Omit it, or "
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
    """Open a user's recordings: a folder, a table or a data set that `datasets` reads.

    All recordings are read once: the fingerprint covers samples, labels, groups and conditions, but not their location.

    Args:
        data: a folder ``LABEL[/CONDITION]/file.wav`` or with ``metadata.csv``; a table, with its sound files in the
            folder ``audio``; a Hub id or folder of a data set with an audio column; the name of a data set, one of
            `list_named_sets`, or ``dataset:FILE.yaml``, a file in the form of `NamedSet`, which gives the fields that
            are not given here and leaves out unusable recordings. ``NAME=FOLDER`` reads a local copy. See
            `recognised`.
        skip_invalid: leave out unusable recordings; `ReadRecordings.skipped` lists them.
        progress: show progress bars.
        fields: further fields of `DataSpec`: columns, e.g. ``label="instrument"``, the ``split`` of a data set, or
            ``labels``, files with strong labels: each stretch with exactly one label becomes a recording.

    Raises:
        InputError: a field does not apply to such data.
        DatasetError: the data are not recordings or cannot be read, or a recording is unusable.
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
                f"{name!r} is read as the name of a data set; to read the folder of that name, give ./{name}",
                stacklevel=3,
            )
        _check_suiting(reading.source, named.settings)
        # A user cannot fix a published data set.
        return hub_recordings(named.dataset, spec, named, skip_invalid=True, progress=progress)
    if reading.kind not in SOUNDS:
        raise DatasetError(f"{reading.source} is {reading.what}, not recordings")
    if spec.labels is not None:
        from .sounds.strong_labels import strong_recordings

        for name in COLUMNS:
            if getattr(spec, name) is not None:
                raise InputError(f"{name} does not apply to strong labels, which describe each event")
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
    """Raise an error if a settings file next to sounds contains settings that no recipe has."""
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
    """Return notes on rows that could not be made from strong labels, e.g. a kind of questions, and why.

    Raises:
        DatasetError: nothing could be made.
    """
    return tuple(dict.fromkeys(note for rendering in data.renderings for note in rendering.notes()))


def _skipped(source: str, skipped: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return a note on the recordings that are left out: how many, the first ones for each reason, and why."""
    if not skipped:
        return ()
    ids: dict[str, list[str]] = defaultdict(list)
    for id, reason in skipped:
        ids[reason].append(id)
    names = shown([f"{shown(of_reason)} ({reason})" for reason, of_reason in ids.items()])
    count = "1 recording" if len(skipped) == 1 else f"{len(skipped):,} recordings"
    return (f"{count} of {source} {'is' if len(skipped) == 1 else 'are'} left out: {names}",)


def _format(spec: DataSpec) -> tuple[str | None, ReadOptions]:
    """Return the format of strong labels, and the options that their files do not determine.

    Raises:
        InputError: a file does not exist, or columns are not given as ``FIELD=HEADING``.
    """
    from .sounds.formats.parsing import ReadOptions

    for name in ("durations", "names"):
        path = getattr(spec, name)
        if path is not None and not Path(path).is_file():
            raise InputError(f"{name} is {path!r}, which does not exist")
    columns: dict[str, str] = {}
    for pair in spec.columns or ():
        field, equals, heading = (part.strip() for part in pair.partition("="))
        if not (field and equals and heading):
            raise InputError(f"columns has {pair!r}; give FIELD=HEADING, e.g. onset=start")
        if field in columns:
            raise InputError(f"columns has {field!r} twice; give each field once")
        columns[field] = heading
    if columns and spec.format not in (None, "table", "raven"):
        raise InputError(f"columns applies to the formats table and raven only; the columns of {spec.format} are fixed")
    options = ReadOptions(
        durations=spec.durations, resolution=spec.resolution, columns=columns, names=spec.names, encoding=spec.encoding
    )
    # Raven's tables have their own time columns.
    return spec.format or ("table" if "onset" in columns else None), options


def left_out_notes(reasons: Mapping[str, str | None]) -> list[str]:
    """Return a note for each reason; `reasons` has the reason of each name, None if the name is not left out."""
    notes = []
    for reason in dict.fromkeys(filter(None, reasons.values())):
        names = [name for name, of_name in reasons.items() if of_name == reason]
        notes.append(f"{listed(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}")
    return notes
