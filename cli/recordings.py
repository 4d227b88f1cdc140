"""Arguments that name recordings, and the data and tasks that they become."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, nearest, plain, shown

from . import annotated, arguments

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.opening import RenderedData
    from audio_compositionality.dataset_builder.sounds.entries import Sounds
    from audio_compositionality.dataset_builder.sounds.opening import Offer
    from audio_compositionality.tasks.base import Task

_DESCRIPTION = """\
Tasks score what can be made of recordings: scenes that several of them are mixed into, and what transforms do
to one. A label is the folder that a file lies in, or stands in a column: a number where there are decimals
(3.0), else the name of a class. A condition is what the recordings of several labels share and what says
nothing of these, such as the voice that says words; where there are some, classes are told apart under one
and found again under another. Recordings of one group, such as a speaker, are never both learnt from and
tested; without groups each recording is its own. A task that these recordings cannot serve is left out, and
a note says why.
"""

_SIZES = ("mini", "full")

_DETAILS = (
    *("label", "group", "condition", "captions", "separator", "words", "strong_labels", "split", "config"),
    *("prompts", "transforms", "size", "set"),
)


def add_recordings(parser: argparse.ArgumentParser, data: argparse._ActionsContainer) -> None:
    """Add recordings: `opened_data` reads them.

    Args:
        parser: to add to.
        data: group of other arguments that name data, of all of which one can be given.
    """
    data.add_argument(
        "--recordings",
        metavar="DIR|NAME",
        help="recordings of your own: a folder with LABEL[/CONDITION]/file.wav, or with metadata.csv "
        "(file_name,label,group,condition,caption). Or the name of sounds of an installed package; a folder of such a "
        "name is ./NAME",
    )
    data.add_argument(
        "--dataset",
        metavar="DIR|HUB_ID|NAME|FILE.yaml",
        help="recordings of a data set with a column of audio, as `datasets` reads it: Parquet, or a folder of sound "
        "files. Or the name of one whose columns are known here, such as speech-commands, downloaded from the Hub, or "
        "read from a copy of its files by NAME=DIR; a wrong name lists all. Or your own description of one, in YAML",
    )
    annotated.add_annotated(parser, data)
    details = parser.add_argument_group("recordings (--recordings, --dataset)", _DESCRIPTION)
    _add_columns(details)
    _add_settings(details)


def _add_columns(details: argparse._ActionsContainer) -> None:
    """Add where in a table or a data set stands what."""
    details.add_argument(
        "--label",
        metavar="COLUMN",
        help="column of --dataset or metadata.csv with labels; words_per_second counts them in the column text, and "
        "words_per_second=COLUMN in another, of transcripts or of words with their times",
    )
    details.add_argument(
        "--group", metavar="COLUMN", help="column of what is never both learnt from and tested, such as speakers"
    )
    details.add_argument("--condition", metavar="COLUMN", help="column of what several labels share, such as voices")
    details.add_argument(
        "--captions",
        metavar="COLUMN,COLUMN",
        help="columns with captions; default those that are called captions, caption or caption_1, caption_2, ...",
    )
    details.add_argument(
        "--separator", metavar="TEXT", help="what stands between several labels of a recording; lists need none"
    )
    details.add_argument(
        "--words",
        metavar="COLUMN,COLUMN=ATTRIBUTE",
        help="columns with a word each, such as dynamics; default those that are called word:ATTRIBUTE",
    )
    details.add_argument(
        "--strong-labels",
        metavar="PATH",
        help="what is heard in the files of --recordings, from when to when: each part in which one label is heard "
        "alone is a recording. A table file,label,start,stop, or any format of --labels (--format, --columns ...)",
    )
    details.add_argument(
        "--split", metavar="NAME", help="split of --dataset, a part of it, or several: train[:1000]+test"
    )
    details.add_argument("--config", metavar="NAME", help="configuration of --dataset, where it has several")


def _add_settings(details: argparse._ActionsContainer) -> None:
    """Add what is made of the recordings."""
    details.add_argument(
        "--prompts",
        metavar="NAME|FILE",
        help="what labels are called in texts that clips are compared with: a set (default, plain, several), or a YAML "
        "file that lists templates such as 'This is a sound of {label}'",
    )
    details.add_argument(
        "--transforms",
        metavar="NAME,NAME",
        help="default gain,noise,lowpass,reverb; also pitch and stretch, which need the extra `transforms`",
    )
    details.add_argument(
        "--size",
        metavar="NAME",
        help="mini (default) or full: how many scenes are mixed, and how many recordings are transformed",
    )
    details.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="a setting of what is made of recordings, such as classes=6, context_sources=1, blocks=48 or "
        "unrelated=false, or of a preset: seed=7 draws it anew, as data of their own. Can be given several times; "
        "docs/data.md says what each is, and a wrong name lists all",
    )


def add_skip_invalid(parser: argparse.ArgumentParser) -> None:
    """Add `options.skip_invalid` to a command that does not embed."""
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out recordings that cannot be used or whose labels are wrong, and say which",
    )


def are_given(options: argparse.Namespace) -> bool:
    """Whether the data are recordings.

    Raises:
        InputError: something is said of them, and they are not named.
    """
    if annotated.are_given(options) or options.recordings is not None or options.dataset is not None:
        return True
    # Presets have settings too.
    stated = next((name for name in _DETAILS if name != "set" and getattr(options, name) is not None), None)
    if stated is not None:
        raise InputError(
            f"--{stated.replace('_', '-')} is about recordings: name them with --recordings DIR or --dataset ID"
        )
    return False


def as_typed(options: argparse.Namespace, *, changes: bool = True) -> list[str]:
    """What names the recordings and says what is made of them, as it can be typed again; `changes`: with ``--set``."""
    typed = []
    for name in ("recordings", "dataset", *_DETAILS, "labels", *annotated.DETAILS, "skip_invalid"):
        option, value = f"--{name.replace('_', '-')}", getattr(options, name, None)
        if value is True:
            typed.append(option)
        elif name == "set":
            typed += [word for one in (value or () if changes else ()) for word in (option, one)]
        elif isinstance(value, list):
            typed += [option, *map(str, value)]
        elif value not in (None, False):
            typed += [option, str(value)]
    return typed


def opened_data(options: argparse.Namespace, tasks: list[Task] | None) -> tuple[Data, list[Task] | None]:
    """The data that are asked for, and the tasks on them: of recordings, where none are named, all that they allow; of
    a benchmark, those that the data have rows for.

    Raises:
        InputError: recordings cannot be scored by a task that is named, the data by none of a benchmark, or see
            `arguments.opened_data`.
        DatasetError: there are no such data, a recording cannot be used, or they cannot serve a task that is named.
    """
    if not are_given(options):
        opened = arguments.opened_data(options, tasks)
        return opened, tasks if options.benchmark is None else scorable(opened, tasks or ())
    if annotated.are_given(options):
        possible = _possible_tasks(options, tasks, annotated.recipes(), "recordings with labels that have times")
        data = _annotated(options, list(dict.fromkeys(task.info.recipe for task in possible)))
        return data, tasks if options.tasks is not None else scorable(data, possible)
    # A wrong name is told before recordings are read, which can take minutes.
    possible = _possible_tasks(options, tasks, _recorded_recipes(), "recordings")
    recipes = dict.fromkeys(task.info.recipe for task in possible)
    offer = _offer(options, recipes, required=tuple(recipes) if options.tasks is not None else ())
    _note_left_out({task.info.name: offer.left_out.get(task.info.recipe) for task in possible})
    served = [task for task in possible if task.info.recipe in offer.data.recipes]
    return offer.data, tasks if options.tasks is not None else scorable(offer.data, served)


def recordings_data(options: argparse.Namespace, recipes: Sequence[str] | None) -> RenderedData:
    """What recipes make of the recordings that are named.

    Args:
        options: with the arguments of `add_recordings`.
        recipes: names; None for all that a task scores and these recordings can serve, where a note says why of the
            others.
    """
    from audio_compositionality.dataset_builder.sounds.opening import recorded_recipes
    from audio_compositionality.tasks.registry import scored_recipes

    if annotated.are_given(options):
        return _annotated(options, recipes)
    wanted = [recipe for recipe in recorded_recipes() if recipe in scored_recipes()] if recipes is None else recipes
    offer = _offer(options, wanted, required=recipes or ())
    _note_left_out(offer.left_out)
    return offer.data


def _annotated(options: argparse.Namespace, recipes: Sequence[str] | None) -> RenderedData:
    """What recipes make of the recordings with strong labels that are named; notes say what of them is left out, and
    what cannot be made of them."""
    data, opened = annotated.annotated_data_of(options, recipes)
    _note_skipped(opened.source, list(opened.left_out.items()))
    for note in annotated.notes_of(data):
        _note(note)
    return data


def _offer(options: argparse.Namespace, recipes: Iterable[str] | None, required: Collection[str]) -> Offer:
    """What can be made of the recordings that are named; see `offered`."""
    from audio_compositionality.dataset_builder.sounds.opening import offered

    # What is wrong with the other arguments is told before recordings are read.
    preset = _preset(options)
    recipes = None if recipes is None else tuple(recipes)
    changes = _changes(options, preset, recipes)
    return offered(_opened(options), preset=preset, recipes=recipes, required=required, **changes)


def _preset(options: argparse.Namespace) -> str:
    size = options.size or _SIZES[0]
    if size not in _SIZES:
        raise InputError(f"unknown size {size!r}; {nearest(size, _SIZES)}")
    return arguments.preset_of(size, options)


def _changes(options: argparse.Namespace, preset: str, recipes: Sequence[str] | None) -> dict[str, Any]:
    """What is asked for of settings of recipes."""
    from audio_compositionality.dataset_builder.scenes.transforms import load_transform
    from audio_compositionality.dataset_builder.sounds.opening import changes_from

    changes = changes_from(options.set or (), preset=preset, recipes=recipes)
    if options.prompts is not None:
        from audio_compositionality.dataset_builder.texts.prompts import load_templates

        changes["templates"] = load_templates(options.prompts)
    # Only `build` has another seed.
    seed = getattr(options, "seed", 0) or None
    of_options: dict[str, Any] = {"transforms": arguments.names_of(options, "transforms"), "seed": seed}
    for name, value in of_options.items():
        if value is not None and name in changes:
            raise InputError(f"--{name} and --set {name}=... are both given; give one")
        if value is not None:
            changes[name] = value
    for name in changes.get("transforms", ()):
        load_transform(name).check_available()
    return changes


def _opened(options: argparse.Namespace) -> Sounds:
    """The recordings that are named; notes say under which terms, and what of them is left out."""
    from audio_compositionality.dataset_builder.sounds.opening import named_set_of, open_recordings

    for name in ("split", "config"):
        if options.dataset is None and getattr(options, name) is not None:
            raise InputError(f"--{name} is of a data set (--dataset), and a folder of sound files has none")
    if options.dataset is not None:
        named = named_set_of(options.dataset)
        if named is not None:
            _note(named.terms)
    labels: dict[str, Any] = {}
    if options.strong_labels is not None:
        labels = dict(zip(("format", "label_options"), annotated.labels_format(options), strict=True))
    recordings = open_recordings(
        options.recordings,
        dataset=options.dataset,
        label=options.label,
        group=options.group,
        condition=options.condition,
        captions=arguments.names_of(options, "captions"),
        separator=options.separator,
        words=arguments.names_of(options, "words"),
        strong_labels=options.strong_labels,
        **labels,
        split=options.split,
        config=options.config,
        skip_invalid=options.skip_invalid,
        progress=sys.stderr.isatty(),
    )
    _note_skipped(recordings.source, recordings.skipped)
    return recordings


def _note_skipped(source: str, skipped: Sequence[tuple[str, str]]) -> None:
    """Say how many recordings are left out, which first and why."""
    if skipped:
        names = shown([f"{id} ({reason})" for id, reason in skipped])
        count = "1 recording" if len(skipped) == 1 else f"{len(skipped):,} recordings"
        _note(f"{count} of {source} {'is' if len(skipped) == 1 else 'are'} left out: {names}")


def _recorded_recipes() -> Collection[str]:
    from audio_compositionality.dataset_builder.sounds.opening import recorded_recipes

    return recorded_recipes()


def _possible_tasks(
    options: argparse.Namespace, tasks: list[Task] | None, recipes: Collection[str], what_on: str
) -> list[Task]:
    """The tasks that are named and can be scored on recordings; all that can, where none are named.

    Args:
        options: of the command.
        tasks: that are named.
        recipes: names of those that can be made of the recordings.
        what_on: what the recordings are, for messages.
    """
    from audio_compositionality.tasks.registry import list_tasks

    possible = [task for task in list_tasks() if task.info.recipe in recipes]
    if tasks is None:
        return possible
    named = [task for task in tasks if task.info.recipe in recipes]
    impossible = [task.info.name for task in tasks if task not in named]
    if impossible and (options.tasks is not None or not named):
        names = ", ".join(task.info.name for task in possible)
        what = (
            f"the task {impossible[0]!r} cannot be scored on {what_on}"
            if options.tasks is not None
            else f"no task of the benchmark {options.benchmark!r} can be scored on {what_on}"
        )
        raise InputError(f"{what}; those that can: {names}")
    return named


def scorable(data: Data, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that can score the data; of the others a note says why they cannot.

    Raises:
        InputError: there is none.
    """
    from audio_compositionality.tasks.base import TaskError

    served, reasons = [], []
    for task in tasks:
        if task.info.recipe not in data.recipes:
            reasons.append(f"{task.info.name} is left out: the data have no {task.info.recipe}")
            continue
        try:
            task.settings(data.configuration(task.info.recipe).rows, {})
            served.append(task)
        except TaskError as error:
            reasons.append(f"{task.info.name} is left out: {error}")
    if not served:
        raise InputError(f"{data.source} can be scored by no task: {listed(reasons)}")
    for reason in reasons:
        _note(reason)
    return served


def _note_left_out(reasons: Mapping[str, str | None]) -> None:
    """Say what is left out and why, those of one reason together.

    Args:
        reasons: by name; None for what is not left out.
    """
    for reason in dict.fromkeys(filter(None, reasons.values())):
        names = [name for name, of_name in reasons.items() if of_name == reason]
        _note(f"{listed(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}")


def _note(text: str) -> None:
    """Say something on standard error, of several processes once."""
    if os.environ.get("RANK", "0") == "0":
        print(f"note: {plain(text)}", file=sys.stderr)
