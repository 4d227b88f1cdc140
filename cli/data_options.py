"""Arguments that name data, and the data and tasks behind them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, plain

from .arguments import add_settings, data_fields, typed_pairs

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.account import Account
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.dataset_builder.open_data import Opened
    from audio_compositionality.tasks.base import Task

DEFAULT = "mini"
"""The data where none are named."""


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the data and settings: `data_spec` reads them."""
    parser.add_argument(
        "--data",
        metavar="SPEC",
        help="preset (mini, full, paper-mini), built folder, Hub id, folder or table of recordings, strong labels, "
        "name of a known data set, NAME:PATH of a published benchmark, or data.yaml; default mini. `data SPEC` shows "
        "how it is read",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help="size of the data, also of scenes made from your sounds: mini (default) or full",
    )
    add_settings(parser)


def add_skip_invalid(parser: argparse.ArgumentParser) -> None:
    """Add `options.skip_invalid`."""
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out unusable clips and recordings and list them; default: stop with an error",
    )


def data_spec(options: argparse.Namespace) -> DataSpec:
    """The named data, with the values of ``--set`` for them.

    Raises:
        InputError: a value is invalid for its field, or a preset is named twice.
        DatasetError: there are no such data, or a ``data.yaml`` is wrong.
    """
    from audio_compositionality.dataset_builder.data_spec import DataSpec, described
    from audio_compositionality.dataset_builder.open_data import check_described
    from audio_compositionality.support.spec import read_values

    fields = data_fields()
    texts = [text for name, text in typed_pairs(options).items() if name in fields]
    values = read_values(texts, fields, "the data")
    if options.preset is not None and "preset" in values:
        raise InputError("--preset and --set preset=... are both given; give one")
    data = options.data
    if data is None:
        data = options.preset or values.get("preset") or DEFAULT
    if options.data is None:
        values.pop("preset", None)
    elif options.preset is not None:
        values["preset"] = options.preset
    spec = described(data, **values)
    check_described(spec, data)
    # A preset's name is checked below, with the nearest name as a hint.
    if options.data is None and not values:
        return DataSpec(data=f"preset:{data}")
    if "preset" in values and spec.reading.kind == "preset":
        raise InputError(f"--data {options.data} and --preset {values['preset']} are different presets; give one")
    return spec


def possible_recipes(spec: DataSpec) -> tuple[str, ...] | None:
    """The recipes of a preset, or those possible with a user's own data; None for data that hold their own.

    Raises:
        DatasetError: there are no such data.
    """
    from audio_compositionality.dataset_builder.open_data import recipes_for
    from audio_compositionality.dataset_builder.rendered import opened_preset

    reading = spec.reading
    return opened_preset(reading.source).recipes if reading.kind == "preset" else recipes_for(spec)


def wanted_recipes(spec: DataSpec, tasks: Sequence[Task] | None) -> list[str] | None:
    """Return the recipes that tasks need; without named tasks, for a preset the recipes of all tasks except tasks on
    request, and for other data None, which means all.

    Raises:
        DatasetError: there are no such data.
    """
    from audio_compositionality.dataset_builder.open_data import recipes_for
    from audio_compositionality.tasks.registry import default_tasks

    makes = recipes_for(spec)
    if tasks is None and spec.reading.kind == "preset":
        tasks = default_tasks(possible_recipes(spec) or ())
    if tasks is None:
        return None
    return list(dict.fromkeys(task.info.recipe for task in tasks if makes is None or task.info.recipe in makes))


def opened_request_data(
    options: argparse.Namespace, spec: DataSpec, changes: Mapping[str, Any], tasks: list[Task] | None
) -> tuple[Data, list[Task]]:
    """Return the requested data and the tasks to score on them.

    Args:
        options: with the arguments of `add_data` and `arguments.add_tasks`.
        spec: of the data.
        changes: to settings of the recipes.
        tasks: the requested tasks; None for all that the data allow, less those on request.

    Raises:
        InputError: a named task cannot score such data, or no task can.
        DatasetError: there are no such data, or they are unusable.
    """
    from audio_compositionality.dataset_builder.open_data import SOUNDS, recipes_for
    from audio_compositionality.tasks.registry import default_tasks, list_tasks

    is_named = options.tasks is not None
    makes = recipes_for(spec)
    if makes is None:
        recipes = wanted_recipes(spec, tasks)
        opened = open_with_notes(options, spec, changes, recipes, required=recipes or () if is_named else ())
        # The content of a Hub id is known now; recordings have their own tasks.
        if opened.reading.kind not in SOUNDS:
            wanted = default_tasks(opened.data.recipes) if tasks is None else tasks
            is_sure = is_named or (tasks is None and spec.reading.kind == "preset")
            return opened.data, wanted if is_sure else scorable(opened.data, wanted)
        makes = recipes_for(spec.changed(data=f"{opened.reading.kind}:{spec.data}")) or ()
        possible = _possible(options, list_tasks() if tasks is None else tasks, makes, opened.reading.what)
    else:
        possible = _possible(options, list_tasks() if tasks is None else tasks, makes, spec.reading.what)
        recipes = list(dict.fromkeys(task.info.recipe for task in possible))
        opened = open_with_notes(options, spec, changes, recipes, required=recipes if is_named else ())
    reasons = {task.info.name: opened.left_out.get(task.info.recipe) for task in possible}
    note_left_out(reasons)
    served = [task for task in possible if not reasons[task.info.name]]
    return opened.data, served if is_named else scorable(opened.data, served)


def open_with_notes(
    options: argparse.Namespace,
    spec: DataSpec,
    changes: Mapping[str, Any],
    recipes: Iterable[str] | None,
    required: Collection[str] = (),
    *,
    sounds: bool = True,
) -> Opened:
    """Open data, and print what was read and left out, and their terms of use; see `dataset_builder.open_data`."""
    from audio_compositionality.dataset_builder.data import DatasetError
    from audio_compositionality.dataset_builder.open_data import opened_data as opened_with

    try:
        opened = opened_with(
            spec,
            recipes=recipes,
            required=required,
            changes=changes,
            skip_invalid=getattr(options, "skip_invalid", False),
            sounds=sounds,
            progress=sys.stderr.isatty(),
        )
    except DatasetError as error:
        _print_account(options, error.account)
        raise
    _print_account(options, opened.account)
    for text in opened.notes:
        note(text)
    return opened


def _print_account(options: argparse.Namespace, account: Account | None) -> None:
    """Print what was read and left out, once for several processes."""
    if account is not None and not getattr(options, "json", False) and os.environ.get("RANK", "0") == "0":
        print("\n".join(map(plain, account.lines())), flush=True)


def note_left_out(reasons: Mapping[str, str | None]) -> None:
    """Print the parts of data that are left out, with reasons; see `dataset_builder.open_data.left_out_notes`."""
    from audio_compositionality.dataset_builder.open_data import left_out_notes

    for text in left_out_notes(reasons):
        note(text)


def _possible(options: argparse.Namespace, tasks: Sequence[Task], recipes: Collection[str], what: str) -> list[Task]:
    """The tasks whose rows such data can give.

    Raises:
        InputError: a named task is not among them, or none of the requested ones is.
    """
    from audio_compositionality.tasks.registry import list_tasks

    possible = [task for task in tasks if task.info.recipe in recipes]
    impossible = [task.info.name for task in tasks if task not in possible]
    if (impossible and options.tasks is not None) or not possible:
        names = ", ".join(task.info.name for task in list_tasks() if task.info.recipe in recipes)
        asked = "none of the tasks that these models do can be scored on"
        if options.tasks is not None:
            asked = f"the task {impossible[0]!r} cannot be scored on"
        elif options.benchmark is not None:
            asked = f"no task of the benchmark {options.benchmark!r} can be scored on"
        raise InputError(f"{asked} {what}; those that can: {names}")
    return possible


def scorable(data: Data, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that can score the data; prints why others cannot, except those that pass over them.

    Raises:
        InputError: there is none.
    """
    meant = []
    for task in tasks:
        recipe = task.info.recipe
        if recipe not in data.recipes or not task.info.passes_over(data.configuration(recipe).rows):
            meant.append(task)
    problems = {task.info.name: why_not_scored(task, data) for task in meant}
    served = [task for task in meant if not problems[task.info.name]]
    reasons = [f"{name} is left out: {problem}" for name, problem in problems.items() if problem]
    if not served:
        raise InputError(f"{data.source} can be scored by no task: {listed(reasons) or 'none has such rows'}")
    for reason in reasons:
        note(reason)
    return served


def why_not_scored(task: Task, data: Data) -> str:
    """Return why a task cannot score data; empty if it can."""
    from audio_compositionality.tasks.base import TaskError

    if task.info.recipe not in data.recipes:
        return f"the data have no {task.info.recipe}"
    try:
        task.settings(data.configuration(task.info.recipe).rows, {})
    except TaskError as error:
        return str(error)
    return ""


def note(text: str) -> None:
    """Print a note on standard error, once for several processes."""
    if os.environ.get("RANK", "0") == "0":
        print(f"note: {plain(text)}", file=sys.stderr)
