"""Arguments that several commands share, and what they become."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from . import asking

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.evaluator.run.processes import Processes
    from audio_compositionality.tasks.base import Task

MODEL_HELP = (
    "a name that `models` lists (NAME=PATH takes its weights from a local file or folder), the Hub id or folder of a "
    "transformers audio model, path/to/file.py:ClassName, the name of an installed entry point, hear:MODULE, "
    "xares:FILE.py:CLASS, mteb:NAME, endpoint:NAME@URL, a model that answers behind an OpenAI-compatible server, or "
    "tower:MODEL, the audio encoder of a model that answers, or a twin of a model as control: untrained:MODEL, its "
    "architecture with fresh weights, or shuffled:MODEL, with the entries of each weight matrix permuted; or any of "
    "these that is given something else: sorted-words:, reversed-audio:, shuffled-audio:, padded-audio:, "
    "without-audio:, noise-audio:, other-audio:, events-as-text: or without-text:MODEL; or "
    "heard-as-text:DETECTOR:MODEL, a language model that reads what a detector (cascade, or FILE.py:CLASS) has heard"
)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add one model: `options.model`."""
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)


def add_models(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """Add any number of models: `options.models`."""
    parser.add_argument("models", nargs=nargs, metavar="MODEL", help=MODEL_HELP)


def add_tasks(parser: argparse.ArgumentParser) -> None:
    """Add what is measured: `chosen_tasks` reads it."""
    tasks = parser.add_mutually_exclusive_group()
    tasks.add_argument(
        "--tasks",
        metavar="TASK,TASK",
        help="names that `tasks` lists; default, all that the data and the models allow, less those on request",
    )
    tasks.add_argument("--benchmark", metavar="NAME", help="all tasks of a benchmark that `tasks` lists")


def add_data(parser: argparse.ArgumentParser) -> argparse._ActionsContainer:
    """Add the data: `opened_data` reads it. Returns the group of arguments that name data, of which one is given."""
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--preset", default="mini", metavar="NAME", help="mini (default) or full, rendered on the fly")
    add_data_path(data)
    add_protocol(parser)
    return data


def add_data_path(data: argparse._ActionsContainer) -> None:
    """Add `options.data`: `opened_data` reads it."""
    data.add_argument(
        "--data",
        metavar="DIR|HUB_ID|NAME:PATH",
        help="a built folder, the Hub id of a data set, or your copy of a benchmark that others published; a wrong "
        "name lists these",
    )


def add_protocol(parser: argparse.ArgumentParser) -> None:
    """Add `options.protocol`: `preset_of` and `protocol_settings` read it."""
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="paper: presets and fits that follow the paper to the letter, whose scores stand apart from all others; "
        "default, this project's own",
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add results: `options.results`, and `options.data` where they are of no preset."""
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT", help="folders of results, such as results, or JSON files"
    )
    add_data_of_results(parser)


def add_data_of_results(parser: argparse.ArgumentParser) -> None:
    """Add `options.data`: where the data of results are."""
    parser.add_argument(
        "--data",
        metavar="DIR|HUB_ID|NAME:PATH",
        help="the data of the results, where they are neither a preset nor in the folder that the results state",
    )


def add_device(parser: argparse._ActionsContainer) -> None:
    """Add `options.device`."""
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help="cpu, cuda or cuda:1; default CUDA where there is one. Of several processes each takes its own GPU",
    )


def add_store(parser: argparse._ActionsContainer) -> None:
    """Add `options.store`."""
    parser.add_argument(
        "--store",
        type=Path,
        metavar="DIR",
        help="folder that keeps embeddings and answers; default one in $AUDIO_COMPOSITIONALITY_CACHE or the user's "
        "cache",
    )


def add_embedding_options(parser: argparse.ArgumentParser, *, store: bool = True) -> None:
    """Add how clips are embedded: `run_options` reads it."""
    group = parser.add_argument_group("how clips are embedded")
    add_device(group)
    group.add_argument(
        "--batch-size",
        type=int,
        metavar="N",
        help="clips embedded, or questions put, at a time, at most 64; default 4, on a GPU 32 clips or 16 questions, "
        "and 8 questions to a server. Halved where memory does not suffice",
    )
    if store:
        add_store(group)
    group.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out clips that cannot be embedded (damaged, NaN), and of your own recordings those that cannot be "
        "used or whose labels are wrong, say which, and go on; default: stop",
    )
    group.add_argument("--force", action="store_true", help="compute again and replace what is there")


def add_fit_options(parser: argparse.ArgumentParser, default: str = "the task's own") -> None:
    """Add how tasks that fit something fit it: `run_options` reads it.

    Args:
        parser: to add to.
        default: how many fits there are where the user does not say, in words.
    """
    fits = parser.add_argument_group("tasks that fit something")
    fits.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help=f"number of fits, whose spread is told apart from that of the samples; default {default}",
    )
    fits.add_argument("--max-steps", type=int, metavar="N", help="most steps of a fit; default the task's own")


def add_org(parser: argparse.ArgumentParser) -> None:
    """Add `options.org`: whose repositories are meant."""
    parser.add_argument("--org", required=True, metavar="ORG", help="organisation or user on the Hub")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add `options.dry_run`."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be sent, and how large it is; send nothing"
    )


def add_traceback(parser: argparse.ArgumentParser) -> None:
    """Add ``--traceback``. The command line looks for it among what was typed, so that it works where parsing fails."""
    parser.add_argument(
        "--traceback",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show where in the code an error comes from",
    )


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add `options.out`: the folder for results."""
    parser.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="result files of one data set; default results"
    )


def check_file(path: Path | None) -> None:
    """Refuse a folder where a file is to be written, before anything is computed.

    Raises:
        InputError: it is a folder.
    """
    if path is not None and path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")


def check_results(paths: Sequence[Path]) -> None:
    """Refuse paths that lead nowhere, before what reads results is imported, which takes a second.

    Raises:
        InputError: there is no such file or folder.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"no results at {path}: there is no such file or folder")


def processes_of_run() -> Processes:
    """The processes of this evaluation; all but the main one fall silent."""
    import warnings

    from audio_compositionality.evaluator.run.processes import join_processes

    processes = join_processes()
    if not processes.is_main:
        warnings.simplefilter("ignore")
    return processes


def run_options(options: argparse.Namespace, out: Path | None = None) -> RunOptions:
    """How models are evaluated.

    Args:
        options: with the arguments of `add_embedding_options`, and of `add_fit_options` and `add_asking_options` where
            something is scored.
        out: folder for results.

    Raises:
        InputError: a number is too low, a batch is too large, or questions cannot be put like that.
    """
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.evaluator.run.store import check_batch_size, store_root

    if options.batch_size is not None:
        check_batch_size(options.batch_size, "--batch-size")
    settings: dict[str, Any] = {}
    for name in ("seeds", "max_steps"):
        value = getattr(options, name, None)
        if value is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} is {value}; it must be 1 or more")
        if value is not None:
            settings[name] = list(range(value)) if name == "seeds" else value
    return RunOptions(
        batch_size=options.batch_size,
        device=options.device,
        out=out,
        store=getattr(options, "store", None) or store_root(),
        settings={**settings, **asking.asking_settings(options)},
        max_questions=asking.most_questions(options),
        skip_invalid=options.skip_invalid,
        force=options.force,
        progress=sys.stderr.isatty(),
    )


def names_of(options: argparse.Namespace, option: str) -> list[str] | None:
    """What an option lists with commas between; None where it is not given.

    Raises:
        InputError: it lists nothing.
    """
    text: str | None = getattr(options, option)
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"--{option} is {text!r}; it takes one name, or several with commas between them")
    return names


def chosen_tasks(options: argparse.Namespace) -> list[Task] | None:
    """The tasks that are asked for; None for all but those on request.

    Raises:
        InputError: none are named.
        TaskError: there is no such task or benchmark.
    """
    from audio_compositionality.tasks.registry import load_benchmark, load_tasks

    if options.benchmark is not None:
        return load_benchmark(options.benchmark)
    names = names_of(options, "tasks")
    return None if names is None else load_tasks(names)


def opened_data(options: argparse.Namespace, tasks: Sequence[Task] | None = None) -> Data:
    """The data that are asked for; of a preset those that the tasks need.

    Where no tasks are named, these are all recipes of the preset but those that only tasks on request need.

    Raises:
        InputError: an unknown preset, or one that a task's recipe lacks.
        DatasetError: there are no such data.
    """
    from audio_compositionality.dataset_builder.opening import changed_preset, open_data, rendered_preset
    from audio_compositionality.tasks.registry import recipes_on_request, scored_recipes

    changes = getattr(options, "set", None) or ()
    if options.data is not None:
        refuse_changes(options, "the data of --data")
        return open_data(options.data)
    preset = preset_of(options.preset, options)
    if tasks is None:
        every = [recipe for recipe in rendered_preset(preset).recipes if recipe in scored_recipes()]
        on_request = recipes_on_request()
        recipes = [recipe for recipe in every if recipe not in on_request] or every
    else:
        recipes = list(dict.fromkeys(task.info.recipe for task in tasks))
    return changed_preset(preset, changes, recipes=recipes)


def refuse_changes(options: argparse.Namespace, given: str) -> None:
    """Raise InputError where `options.set` changes what is given, in words, and as it is."""
    changes = getattr(options, "set", None)
    if changes:
        raise InputError(f"--set {changes[0]} changes a preset or recordings; {given} are as they are")


def preset_of(preset: str, options: argparse.Namespace) -> str:
    """A preset, by its name under the protocol that is asked for."""
    prefix = "" if options.protocol is None else f"{options.protocol}-"
    return preset if preset.startswith(prefix) else prefix + preset


def scored_tasks(data: Data, tasks: Sequence[Task] | None) -> list[Task]:
    """The tasks that are asked for; where none are, all that the data allow, less those on request."""
    from audio_compositionality.tasks.registry import default_tasks

    return default_tasks(data.recipes) if tasks is None else list(tasks)


def protocol_settings(options: argparse.Namespace, data: Data, tasks: Sequence[Task] | None) -> dict[str, Any]:
    """Settings of tasks under the protocol that is asked for.

    Raises:
        InputError: no task has a protocol of that name.
    """
    if options.protocol is None:
        return {}
    protocols = [task.info.protocols for task in scored_tasks(data, tasks)]
    names = sorted({name for of_task in protocols for name in of_task})
    if options.protocol not in names:
        hint = f"the protocol {options.protocol!r}; {nearest(options.protocol, names)}" if names else "a protocol"
        raise InputError(f"none of the tasks has {hint}")
    return {name: value for of_task in protocols for name, value in of_task.get(options.protocol, {}).items()}


def check_models(names: Sequence[str]) -> None:
    """Refuse names of models that there are not, before what runs models is imported, which takes seconds.

    Raises:
        ModelError: there is no such model, file or folder.
    """
    from audio_compositionality.encoders.loading.names import check_name

    for name in names:
        check_name(name)
