"""`--set NAME=VALUE`: every field of a command's specs, by its name, and the specs that commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import print_table
from audio_compositionality.support.text import nearest

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.tasks.base import Task

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
    from audio_compositionality.dataset_builder.data_spec import FIELDS, recognised
    from audio_compositionality.dataset_builder.open_data import settable

    names = None if recipes is None else tuple(recipes)
    return [
        Group("the data", data_fields, FIELDS[recognised(spec.data).kind]),
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
