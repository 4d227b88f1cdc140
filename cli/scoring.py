"""Arguments of commands that run models on data, and everything that they become."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from . import arguments, data_options, model_options
from .settings import Group, divided

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.tasks.base import Task


def add_scoring(parser: argparse.ArgumentParser, *, store: bool = True) -> None:
    """Add tasks, data, settings, and how clips are embedded: `read_request` reads them.

    Args:
        parser: to add to.
        store: whether the user chooses the folder of the store.
    """
    arguments.add_tasks(parser)
    data_options.add_data(parser)
    model_options.add_layer(parser)
    arguments.add_device(parser)
    arguments.add_batch_size(parser)
    if store:
        arguments.add_store(parser)
    data_options.add_skip_invalid(parser)
    arguments.add_force(parser)


@dataclass(frozen=True)
class Request:
    """What is asked for of models on data, before any of it is opened.

    Attributes:
        data: what they are.
        changes: to settings of what is made of the data.
        tasks: that are named; None for all that the data allow, less those on request.
        model: how models are run.
        how: how they are scored, with the settings of tasks.
        protocol: whose presets and fits are followed to the letter; None for the project's own.
    """

    data: DataSpec
    changes: Mapping[str, Any]
    tasks: list[Task] | None
    model: model_options.ModelSettings
    how: RunOptions
    protocol: str | None

    def open_data(self, options: argparse.Namespace) -> tuple[Data, list[Task]]:
        """The data, and the tasks that are scored; see `data_options.opened_data`."""
        return data_options.opened_data(options, self.data, self.changes, self.tasks)

    def with_protocol(self, tasks: Sequence[Task]) -> RunOptions:
        """How models are scored, with the settings of the protocol that is asked for before those that are typed.

        Raises:
            InputError: no task has a protocol of that name.
        """
        return self.how.changed(settings={**protocol_settings(self.protocol, tasks), **self.how.settings})


def read_request(options: argparse.Namespace, out: Path | None = None) -> Request:
    """What is asked for: everything that was typed is checked, and neither data nor models are opened.

    Args:
        options: with the arguments of `add_scoring`.
        out: folder for results.

    Raises:
        ListedError: the settings were asked for, and have been printed.
        InputError: a setting or a value that there is not.
        TaskError: no such task.
        DatasetError: no such data.
    """
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.evaluator.run.store import store_root

    tasks = arguments.chosen_tasks(options)
    spec = data_options.data_spec(options)
    groups = [
        *data_options.data_groups(spec, data_options.wanted_recipes(spec, tasks)),
        Group("models", model_options.model_fields),
        Group("the run", _run_fields),
        Group("tasks", lambda: _task_fields(tasks)),
    ]
    _, changes, of_model, of_run, of_tasks = divided(options.set, groups)
    if getattr(options, "seeds", None) is not None:
        if "seeds" in of_tasks:
            raise InputError("--seeds and --set seeds=... are both given; give one")
        of_tasks["seeds"] = divided([f"seeds={options.seeds}"], [Group("tasks", lambda: _task_fields(None))])[0][
            "seeds"
        ]
    _check_together(of_tasks, tasks)
    protocol = of_run.pop("protocol", None) or _protocol_of(spec)
    how = RunOptions(
        batch_size=options.batch_size,
        device=options.device,
        out=out,
        store=getattr(options, "store", None) or store_root(),
        settings=of_tasks,
        skip_invalid=options.skip_invalid,
        force=options.force,
        progress=sys.stderr.isatty(),
        **of_run,
    )
    return Request(spec, changes, tasks, model_options.model_settings(options, of_model), how, protocol)


def setting_names() -> set[str]:
    """The names of all settings that a command can have, of any data."""
    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.dataset_builder.open_data import settable

    from .build import BuildSpec
    from .train import training_fields

    made = (settable(DataSpec(data=data)) for data in ("preset:mini", "recordings:.", "labels:."))
    fields = (data_options.data_fields(), model_options.model_fields(), _run_fields(), _task_fields(None), *made)
    return {name for group in (*fields, BuildSpec.settable(), training_fields()) for name in group}


def _run_fields() -> Mapping[str, FieldInfo]:
    from pydantic import Field

    from audio_compositionality.evaluator.run.options import RunOptions

    protocol = FieldInfo.from_annotated_attribute(
        str | None,  # type: ignore[arg-type]
        Field(None, description="paper: fits that follow the paper to the letter, as the presets paper-... ask for."),
    )
    return {"max_questions": RunOptions.model_fields["max_questions"], "protocol": protocol}


def _task_fields(tasks: Sequence[Task] | None) -> Mapping[str, FieldInfo]:
    from audio_compositionality.tasks.registry import list_tasks

    return {name: field for task in tasks or list_tasks() for name, field in task.spec.settable().items()}


def _check_together(settings: Mapping[str, Any], tasks: Sequence[Task] | None) -> None:
    """Refuse settings that contradict each other in each task that has them, before anything is opened."""
    from audio_compositionality.tasks.base import settings_among
    from audio_compositionality.tasks.registry import list_tasks

    if not settings:
        return
    errors = []
    for task in tasks or list_tasks():
        if set(settings) & set(task.spec.model_fields):
            try:
                settings_among(task.spec, settings)
                return
            except InputError as error:
                errors.append(error)
    if errors:
        raise errors[0]


def _protocol_of(spec: DataSpec) -> str | None:
    """The protocol that a preset is of: ``paper`` of ``paper-mini``."""
    from audio_compositionality.dataset_builder.data_spec import recognised

    reading = recognised(spec.data)
    preset = reading.source if reading.kind == "preset" else spec.preset
    protocol, dash, _ = preset.partition("-")
    return protocol if dash else None


def protocol_settings(protocol: str | None, tasks: Sequence[Task]) -> dict[str, Any]:
    """Settings of tasks under a protocol.

    Raises:
        InputError: no task has a protocol of that name.
    """
    if protocol is None:
        return {}
    protocols = [task.info.protocols for task in tasks]
    names = sorted({name for of_task in protocols for name in of_task})
    if protocol not in names:
        has = f"the protocol {protocol!r}; {nearest(protocol, names)}" if names else "a protocol"
        raise InputError(f"none of the tasks has {has}")
    return {name: value for of_task in protocols for name, value in of_task.get(protocol, {}).items()}
