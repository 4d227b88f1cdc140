"""Arguments that name recordings of the user's own, and the data and tasks that they become."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, nearest, plain, shown

from . import arguments

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.rendered import RenderedData
    from audio_compositionality.tasks.base import Task

_DESCRIPTION = """\
Some recordings are transformed, from the others labels are learnt. Scored is what transforms do to their
embeddings; by default by all tasks on such clips. A label is the folder that a file lies in, or stands in
a column: a number where there are decimals (3.0), else the name of a class. Recordings of one group, such as
a speaker, are never both learnt from and tested; without groups each recording is its own.
"""

_SIZES = ("mini", "full")

_DETAILS = ("label", "group", "split", "config", "transforms", "size")


def add_recordings(parser: argparse.ArgumentParser, data: argparse._ActionsContainer) -> None:
    """Add recordings: `opened_data` reads them.

    Args:
        parser: to add to.
        data: group of other arguments that name data, of all of which one can be given.
    """
    data.add_argument(
        "--recordings",
        type=Path,
        metavar="DIR",
        help="recordings of your own: a folder with LABEL/file.wav, or with metadata.csv (file_name,label,group)",
    )
    data.add_argument(
        "--dataset",
        metavar="DIR|HUB_ID",
        help="recordings of a data set with a column of audio, as `datasets` reads it: Parquet, or a folder of sound "
        "files",
    )
    details = parser.add_argument_group("recordings of your own (--recordings, --dataset)", _DESCRIPTION)
    details.add_argument("--label", metavar="COLUMN", help="column of --dataset, or of metadata.csv, with labels")
    details.add_argument("--group", metavar="COLUMN", help="column that says which recordings belong together")
    details.add_argument("--split", metavar="NAME", help="split of --dataset, also a part of it: train[:1000]")
    details.add_argument("--config", metavar="NAME", help="configuration of --dataset, where it has several")
    details.add_argument(
        "--transforms",
        metavar="NAME,NAME",
        help="default gain,noise,lowpass,reverb; also pitch and stretch, which need the extra `transforms`",
    )
    details.add_argument(
        "--size",
        metavar="NAME",
        help="mini (default): 48 recordings with copies and 208 without; full: 400 and 1600; as far as there are so "
        "many",
    )


def add_skip_invalid(parser: argparse.ArgumentParser) -> None:
    """Add `options.skip_invalid` to a command that does not embed."""
    parser.add_argument(
        "--skip-invalid", action="store_true", help="leave out recordings that cannot be used, and say which"
    )


def are_given(options: argparse.Namespace) -> bool:
    """Whether the data are recordings.

    Raises:
        InputError: something is said of them, and they are not named.
    """
    if options.recordings is not None or options.dataset is not None:
        return True
    stated = next((name for name in _DETAILS if getattr(options, name) is not None), None)
    if stated is not None:
        raise InputError(f"--{stated} is about recordings of your own: name them with --recordings DIR or --dataset ID")
    return False


def opened_data(options: argparse.Namespace, tasks: list[Task] | None) -> tuple[Data, list[Task] | None]:
    """The data that are asked for, and the tasks on them: of recordings, where none are named, all that they allow.

    Raises:
        InputError: recordings cannot be scored by a task that is named, or see `arguments.opened_data`.
        DatasetError: there are no such data, or a recording cannot be used.
    """
    if not are_given(options):
        return arguments.opened_data(options, tasks), tasks
    # A wrong name is told before recordings are read, which can take minutes.
    named = _named_tasks(options, tasks)
    data = recordings_data(options)
    return data, tasks if options.tasks is not None else _scorable(data, named)


def recordings_data(options: argparse.Namespace) -> RenderedData:
    """What transforms make of the recordings that are named."""
    from audio_compositionality.dataset_builder.recordings.opening import open_recordings, transformed
    from audio_compositionality.dataset_builder.synthesis.transforms import load_transform

    size = options.size or _SIZES[0]
    if size not in _SIZES:
        raise InputError(f"unknown size {size!r}; {nearest(size, _SIZES)}")
    for name in ("split", "config"):
        if options.dataset is None and getattr(options, name) is not None:
            raise InputError(f"--{name} is of a data set (--dataset), and a folder of sound files has none")
    transforms = arguments.names_of(options, "transforms")
    for name in transforms or ():
        load_transform(name).check_available()
    recordings = open_recordings(
        options.recordings,
        dataset=options.dataset,
        label=options.label,
        group=options.group,
        split=options.split,
        config=options.config,
        skip_invalid=options.skip_invalid,
        progress=sys.stderr.isatty(),
    )
    if recordings.skipped:
        names = shown([f"{id} ({reason})" for id, reason in recordings.skipped])
        _note(f"{len(recordings.skipped)} recordings of {recordings.source} are left out: {names}")
    # Only `build` has another seed.
    seed = getattr(options, "seed", 0)
    return transformed(recordings, preset=arguments.preset_of(size, options), transforms=transforms, seed=seed)


def _recipes() -> tuple[str, ...]:
    from audio_compositionality.dataset_builder.recipes.transforms import RECIPE

    return (RECIPE.name,)


def _named_tasks(options: argparse.Namespace, tasks: list[Task] | None) -> list[Task]:
    """The tasks that are named and can be scored on recordings; all that can, where none are named."""
    from audio_compositionality.tasks.registry import list_tasks

    possible = [task for task in list_tasks() if task.info.recipe in _recipes()]
    if tasks is None:
        return possible
    named = [task for task in tasks if task.info.recipe in _recipes()]
    impossible = [task.info.name for task in tasks if task not in named]
    if impossible and (options.tasks is not None or not named):
        what = f"benchmark {options.benchmark!r} has no task" if options.tasks is None else f"{impossible[0]!r} is none"
        names = ", ".join(task.info.name for task in possible)
        raise InputError(f"{what} that can be scored on recordings; those that can: {names}")
    return named


def _scorable(data: Data, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that can score the data; of the others a note says why they cannot.

    Raises:
        InputError: there is none.
    """
    from audio_compositionality.tasks.base import TaskError

    scorable, reasons = [], []
    for task in tasks:
        try:
            task.settings(data.configuration(task.info.recipe).rows, {})
            scorable.append(task)
        except TaskError as error:
            reasons.append(f"{task.info.name} is left out: {error}")
    if not scorable:
        raise InputError(f"{data.source} can be scored by no task: {listed(reasons)}")
    for reason in reasons:
        _note(reason)
    return scorable


def _note(text: str) -> None:
    """Say something on standard error, of several processes once."""
    if os.environ.get("RANK", "0") == "0":
        print(f"note: {plain(text)}", file=sys.stderr)
