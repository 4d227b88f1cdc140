"""The class of a command, arguments shared by several, and `--set NAME=VALUE`: every field of a command's specs."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import print_table
from audio_compositionality.support.text import nearest

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.evaluator.run.processes import Processes
    from audio_compositionality.tasks.base import Task


GO_ON = "What is finished is kept: the same command goes on from there (without --force)."
"""Advice after an interruption of a command that keeps its work."""


@dataclass(frozen=True)
class Command:
    """A command: its module in this folder holds it as ``COMMAND``, and names it, with ``-`` for ``_``.

    Attributes:
        summary: one line, for the list of commands.
        description: what the command does.
        add_arguments: adds the command's arguments to its parser.
        run: runs it; returns the exit status, or None for 0. Slow imports belong here.
        examples: lines with commands and comments; empty for none.
        resume: advice after an interruption.
        place: in the list of commands.
    """

    summary: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    examples: str = ""
    resume: str = ""
    place: int = 100


MODEL_HELP = (
    "a name that `models` lists, a Hub id, a folder, FILE.py:CLASS, NAME=PATH, endpoint:NAME@URL and others; a twin "
    "or control has a prefix: untrained:MODEL, without-audio:MODEL. See docs/how-to/models.md"
)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add one model: `options.model`."""
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)


def add_models(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """Add any number of models: `options.models`."""
    parser.add_argument("models", nargs=nargs, metavar="MODEL", help=MODEL_HELP)


def add_tasks(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the tasks: `chosen_tasks` reads them."""
    tasks = parser.add_mutually_exclusive_group()
    tasks.add_argument(
        "--tasks",
        metavar="TASK,TASK",
        help="task names, as `tasks` lists them; default: all that the data and the models allow, except those on "
        "request",
    )
    tasks.add_argument("--benchmark", metavar="NAME", help="all tasks of a benchmark that `tasks` lists")


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add results: `options.results`, and `options.data` where their data are no preset's."""
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT", help="folders of results, such as results, or JSON files"
    )
    add_data_of_results(parser)


def add_data_of_results(parser: argparse.ArgumentParser) -> None:
    """Add `options.data`: the source of the results' data."""
    parser.add_argument(
        "--data",
        metavar="SPEC",
        help="the data of the results; not needed for a preset, or for a folder that is still at its path",
    )


def add_device(parser: argparse._ActionsContainer) -> None:
    """Add `options.device`."""
    parser.add_argument(
        "--device",
        type=_device,
        metavar="DEVICE",
        help="cpu, cuda or cuda:1; default: CUDA if there is one; each process takes its own GPU",
    )


_DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "xla", "npu", "meta")
"""Kinds of torch devices that models run on."""


def _device(text: str) -> str:
    """The name of a torch device, checked without an import of torch."""
    kind, colon, number = text.partition(":")
    if kind not in _DEVICES or (colon and not number.isdecimal()):
        raise argparse.ArgumentTypeError(
            f"--device is {text!r}; it is cpu, cuda, or one GPU of several, such as cuda:1"
        )
    return text


def add_batch_size(parser: argparse.ArgumentParser) -> None:
    """Add `options.batch_size`."""
    parser.add_argument(
        "--batch-size",
        type=whole("--batch-size"),
        metavar="N",
        help="clips or questions at a time, at most 64; default 4, on a GPU 32 clips or 16 questions",
    )


def add_cache(parser: argparse._ActionsContainer) -> None:
    """Add `options.cache`."""
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="folder of cached embeddings and answers; default: below the user's cache folder",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add `options.force`."""
    parser.add_argument("--force", action="store_true", help="compute again and replace existing output")


def add_seeds(parser: argparse.ArgumentParser, default: str = "the task's own") -> None:
    """Add `options.seeds`: the number of fits of tasks that fit something.

    Args:
        parser: to add to.
        default: the number without this option, in words.
    """
    parser.add_argument(
        "--seeds",
        type=whole("--seeds"),
        metavar="N",
        help="number of fits, for tasks that fit a model; the spread of the fits is reported with the interval; "
        f"default: {default}",
    )


def whole(option: str) -> Callable[[str], int]:
    """A reader of whole numbers of at least 1 for an option."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            # The only kind of error whose message argparse keeps.
            raise argparse.ArgumentTypeError(f"{option} is {text!r}; it is a whole number from 1 on")
        return int(text)

    return read


def add_org(parser: argparse.ArgumentParser) -> None:
    """Add `options.org`: the organisation or user that owns the repositories."""
    parser.add_argument("--org", required=True, metavar="ORG", help="organisation or user on the Hub")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add `options.dry_run`."""
    parser.add_argument("--dry-run", action="store_true", help="print what would be sent and its size; send nothing")


def next_line(options: argparse.Namespace, command: str, *words: str, kept: Collection[str] | None = None) -> str:
    """The line at the end of a command that names the next one, quoted, with the typed options that it takes too.

    Args:
        options: of the typed command.
        command: the next one.
        words: its first words after the name; an option among them replaces the typed one.
        kept: the typed options that mean the same there, by their names in `options`; None for all.
    """
    parser = argparse.ArgumentParser(add_help=False)
    import_module(f"{__package__}.{command}").COMMAND.add_arguments(parser)
    line = ["audio-compositionality", command, *words]
    for action in parser._actions:
        value = getattr(options, action.dest, None)
        if not value or not action.option_strings or (kept is not None and action.dest not in kept):
            continue
        option = action.option_strings[0]
        if option not in words:
            given = value if isinstance(value, list) else [value]
            line += [option] if value is True else [word for one in given for word in (option, str(one))]
    return f"Next: {shlex.join(line)}"


def add_traceback(parser: argparse.ArgumentParser) -> None:
    """Add ``--traceback``. The command line looks for it in the typed words, so that it works where parsing fails."""
    parser.add_argument(
        "--traceback",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the traceback of an error",
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


def check_output(path: Path | None, option: str) -> None:
    """Refuse an unusable folder for output before anything is computed.

    Args:
        path: the folder; None for none.
        option: its name on the command line.

    Raises:
        InputError: it is a file, lies below one, or nothing can be written there.
    """
    if path is None:
        return
    there = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise InputError(f"{option} is {str(path)!r}, and {there} is a file; give a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{option} is {str(path)!r}, and nothing can be written in {there}; give another folder")


def check_results(paths: Sequence[Path]) -> None:
    """Refuse missing paths before the import of the code that reads results, which takes a second.

    Raises:
        InputError: there is no such file or folder.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"no results at {path}: there is no such file or folder")


def processes_of_run() -> Processes:
    """The processes of this evaluation; all but the main one are silenced."""
    import warnings

    from audio_compositionality.evaluator.run.processes import join_processes

    processes = join_processes()
    if not processes.is_main:
        warnings.simplefilter("ignore")
    return processes


def names_of(options: argparse.Namespace, option: str) -> list[str] | None:
    """The comma-separated values of an option; None where it is not given.

    Raises:
        InputError: there are no values.
    """
    text: str | None = getattr(options, option)
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"--{option} is {text!r}; it takes one name, or several with commas between them")
    return names


def chosen_tasks(options: argparse.Namespace) -> list[Task] | None:
    """The requested tasks; None for all but those on request.

    Raises:
        InputError: none are named.
        TaskError: there is no such task or benchmark.
    """
    from audio_compositionality.tasks.registry import load_benchmark, load_tasks

    if options.benchmark is not None:
        return load_benchmark(options.benchmark)
    names = names_of(options, "tasks")
    return None if names is None else load_tasks(names)


def check_models(names: Sequence[str]) -> None:
    """Refuse unknown names of models before the import of the code that runs models, which takes seconds.

    Raises:
        ModelError: there is no such model, file or folder.
    """
    from audio_compositionality.encoders.loading.names import check_name

    for name in names:
        check_name(name)


HELP = "help"
"""Stands for ``NAME=VALUE`` to list all settings."""


@dataclass(frozen=True)
class Group:
    """Settings of one subject.

    Attributes:
        title: the subject.
        fields: by name; their module is imported on request.
        shown: names of the listed fields; None for all.
    """

    title: str
    fields: Callable[[], Mapping[str, FieldInfo]]
    shown: Collection[str] | None = None


class ListedError(Exception):
    """The settings were listed on request: nothing else is left to do."""


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add `options.set`."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other setting, repeatable; --set help lists all with their values",
    )


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """The texts by the names of the settings.

    Raises:
        InputError: one is no ``NAME=VALUE``, or names one twice.
    """
    named: dict[str, str] = {}
    for text in texts:
        name, equals, _ = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise InputError(f"--set is {text!r}; it takes NAME=VALUE, such as seed=1, and --set help lists all")
        if name in named:
            raise InputError(f"--set has {name} twice; a setting has one value")
        named[name] = text
    return named


def typed_pairs(options: argparse.Namespace) -> dict[str, str]:
    """The typed settings, see `pairs`; without a request to list all, and without texts that set nothing, which
    `divided` handles.

    Raises:
        InputError: one is named twice.
    """
    return pairs([text for text in options.set if "=" in text])


def divided(texts: Sequence[str], groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The values of settings by group.

    Args:
        texts: as they were typed.
        groups: in the order of lookup; groups after the last needed one are not imported.

    Raises:
        ListedError: a list of the settings was requested, and has been printed.
        InputError: a text is no ``NAME=VALUE``, names no setting, or has a value that is invalid for it.
    """
    from audio_compositionality.support.spec import read_values, settings_table

    if HELP in texts:
        for group in groups:
            every = group.fields()
            shown = {name: every[name] for name in every if group.shown is None or name in group.shown}
            if shown:
                print_table(settings_table(shown, f"Settings of {group.title} (--set NAME=VALUE)"))
                print()
        raise ListedError
    left = pairs(texts)
    values: list[dict[str, Any]] = []
    for group in groups:
        fields = group.fields() if left else {}
        of_group = [left.pop(name) for name in [*left] if name in fields]
        values.append(read_values(of_group, fields, group.title))
    for name in left:
        names = [name for group in groups for name in group.fields()]
        raise InputError(f"there is no setting {name!r}; {nearest(name, names, f'--set {HELP} lists all')}")
    return values


def data_fields() -> dict[str, FieldInfo]:
    """The fields of data that have a text form."""
    from audio_compositionality.dataset_builder.data_spec import DataSpec

    return {name: field for name, field in DataSpec.settable().items() if name != "data"}


def data_groups(spec: DataSpec, recipes: Iterable[str] | None = None) -> list[Group]:
    """The settings of data: of their source, and of the recipes made from it.

    Args:
        spec: of the data.
        recipes: names of the wanted recipes.
    """
    from audio_compositionality.dataset_builder.data_spec import FIELDS
    from audio_compositionality.dataset_builder.open_data import settable

    names = None if recipes is None else tuple(recipes)
    return [
        Group("the data", data_fields, FIELDS[spec.reading.kind]),
        Group("the recipes", lambda: settable(spec, names)),
    ]


_OPTIONS_OF_MODELS = ("layer", "batch_size")
"""Fields of models' options that have a command-line option of their own."""


def model_fields() -> dict[str, FieldInfo]:
    """The settings of models, by name."""
    from audio_compositionality.encoders.options import LanguageOptions

    seeds = _field(tuple[int, ...], (0,), "Seeds of twins such as untrained:MODEL: 0,1,2 gives three draws of each.")
    fields = {name: field for name, field in LanguageOptions.settable().items() if name not in _OPTIONS_OF_MODELS}
    return {**fields, "twin_seeds": seeds}


def run_fields() -> dict[str, FieldInfo]:
    """The settings of runs, by name."""
    from audio_compositionality.evaluator.run.options import RunOptions

    protocol = _field(str | None, None, "paper: fits exactly as in the paper, the default of the presets paper-... .")
    return {"max_questions": RunOptions.model_fields["max_questions"], "protocol": protocol}


def task_fields(tasks: Sequence[Task] | None = None) -> dict[str, FieldInfo]:
    """The settings of tasks, by name; of all where none are given."""
    from audio_compositionality.tasks.registry import list_tasks

    return {name: field for task in tasks or list_tasks() for name, field in task.spec.settable().items()}


def _field(annotation: Any, default: Any, description: str) -> FieldInfo:
    from pydantic import Field
    from pydantic.fields import FieldInfo

    return FieldInfo.from_annotated_attribute(annotation, Field(default, description=description))
