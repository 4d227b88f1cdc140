"""Arguments of commands that run models on data, and everything that they become."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, nearest

from . import arguments, data_options, model_options
from .settings import Group, divided

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.tasks.base import Task

_OF_ANSWERS = frozenset({"max_new_tokens", "deadline", "spread", "max_questions"})
"""Settings of models and of runs that only models that answer have a use for."""


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
        of_models: names of the settings of models and of the run that were typed.
    """

    data: DataSpec
    changes: Mapping[str, Any]
    tasks: list[Task] | None
    model: model_options.ModelSettings
    how: RunOptions
    protocol: str | None
    of_models: frozenset[str] = frozenset()

    def open_data(self, options: argparse.Namespace) -> tuple[Data, list[Task]]:
        """The data, and the tasks that are scored; see `data_options.opened_data`."""
        return data_options.opened_data(options, self.data, self.changes, self.tasks)

    def with_protocol(self, tasks: Sequence[Task]) -> RunOptions:
        """How models are scored, with the settings of the protocol that is asked for before those that are typed.

        Raises:
            InputError: no task has a protocol of that name.
        """
        return self.how.changed(settings={**protocol_settings(self.protocol, tasks), **self.how.settings})

    def check_used(self, models: Sequence[Model], tasks: Sequence[Task]) -> None:
        """Refuse a setting that none of the models, or of the tasks that they do, has a use for.

        Raises:
            InputError: names it, and what it is about.
        """
        from audio_compositionality.encoders.loading.names import is_twin
        from audio_compositionality.evaluator.run.outputs import can_do

        done = [task for task in tasks if any(can_do(task, model) for model in models)]
        for name in self.how.settings:
            having = [task.info.name for task in tasks if name in task.spec.model_fields]
            if having and not any(task.info.name in having for task in done):
                raise InputError(f"{name} is a setting of {listed(having)}, which no model that is named does")
        if not any("answer" in model.abilities for model in models):
            for name in sorted(self.of_models & _OF_ANSWERS):
                raise InputError(f"{name} is about models that answer questions, and none of those that are named does")
        if "twin_seeds" in self.of_models and not any(is_twin(model.card.id) for model in models):
            raise InputError("twin_seeds is about twins, such as untrained:MODEL, and none stands beside these models")


def read_request(options: argparse.Namespace, out: Path | None = None, *, scores: bool = True) -> Request:
    """What is asked for: everything that was typed is checked, and neither data nor models are opened.

    Args:
        options: with the arguments of `add_scoring`.
        out: folder for results.
        scores: whether anything is scored, so that runs and tasks have settings.

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
        Group("the run", _run_fields if scores else dict),
        Group("tasks", lambda: _task_fields(tasks) if scores else {}),
    ]
    _, changes, of_model, of_run, of_tasks = divided(options.set, groups)
    if getattr(options, "seeds", None) is not None:
        if "seeds" in of_tasks:
            raise InputError("--seeds and --set seeds=... are both given; give one")
        of_tasks["seeds"] = divided([f"seeds={options.seeds}"], [Group("tasks", lambda: _task_fields(None))])[0][
            "seeds"
        ]
    _check_together(of_tasks, tasks)
    _check_out(out)
    typed = frozenset({*of_model, *of_run})
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
    return Request(spec, changes, tasks, model_options.model_settings(options, of_model), how, protocol, typed)


def _check_out(out: Path | None) -> None:
    """Refuse a folder for results that cannot be one, before anything is computed.

    Raises:
        InputError: it is a file, lies below one, or nothing can be written there.
    """
    if out is None:
        return
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--out is {str(out)!r}, and {there} is a file; give a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"--out is {str(out)!r}, and nothing can be written in {there}; give another folder")


def setting_names() -> set[str]:
    """The names of all settings that a command can have, of any data."""
    from audio_compositionality.dataset_builder.data_spec import BuildSpec, DataSpec
    from audio_compositionality.dataset_builder.open_data import settable

    from .train import training_fields

    made = (settable(DataSpec(data=data)) for data in ("preset:mini", "recordings:.", "labels:."))
    fields = (data_options.data_fields(), model_options.model_fields(), _run_fields(), _task_fields(None), *made)
    return {name for group in (*fields, BuildSpec.settable(), training_fields()) for name in group}


def _run_fields() -> Mapping[str, FieldInfo]:
    from pydantic import Field
    from pydantic.fields import FieldInfo

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
    preset = reading.source.partition(" with ")[0] if reading.kind == "preset" else spec.preset
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
