"""Commands that run models on data: their arguments, the loading of models, their output while they work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.table import print_table, print_wrapped
from audio_compositionality.support.text import listed, nearest, plain

from . import arguments, data_options
from .arguments import Group, data_groups, divided, model_fields, run_fields, task_fields

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data, HeldData
    from audio_compositionality.dataset_builder.data_spec import DataSpec
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.encoders.options import EncoderOptions, LanguageOptions
    from audio_compositionality.evaluator.compare.model_verdicts import Verdicts
    from audio_compositionality.evaluator.results.result import Result
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.evaluator.run.processes import Processes
    from audio_compositionality.tasks.base import Task


_OF_ANSWERS = frozenset({"max_new_tokens", "spread", "max_questions"})
"""Settings of models and of runs that only affect audio language models."""

_OF_SERVERS = frozenset({"deadline", "token_limit_name", "temperature", "audio_form"})
"""Settings of models that only affect those behind a server."""


def add_scoring(parser: argparse.ArgumentParser, *, cache: bool = True) -> None:
    """Add tasks, data, settings, and options of embedding: `read_request` reads them.

    Args:
        parser: to add to.
        cache: whether to add --cache.
    """
    arguments.add_tasks(parser)
    data_options.add_data(parser)
    add_layer(parser)
    arguments.add_device(parser)
    arguments.add_batch_size(parser)
    if cache:
        arguments.add_cache(parser)
    data_options.add_skip_invalid(parser)
    arguments.add_force(parser)


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the option for tables with all measures and their definitions."""
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print all measures, with the definition of each",
    )


@dataclass(frozen=True)
class Request:
    """A request to run models on data, before any data are opened.

    Attributes:
        data: the data.
        changes: to settings of the recipes.
        tasks: the named tasks; None for all that the data allow, less those on request.
        model: settings of models.
        how: settings of the run and of tasks.
        protocol: the published protocol whose presets and fits apply; None for the project's own.
        of_models: names of the typed settings of models and of the run.
    """

    data: DataSpec
    changes: Mapping[str, Any]
    tasks: list[Task] | None
    model: ModelSettings
    how: RunOptions
    protocol: str | None
    of_models: frozenset[str] = frozenset()

    def open_data(self, options: argparse.Namespace) -> tuple[Data, list[Task]]:
        """Return the data and the tasks to score; see `data_options.opened_request_data`."""
        return data_options.opened_request_data(options, self.data, self.changes, self.tasks)

    def with_protocol(self, tasks: Sequence[Task]) -> RunOptions:
        """Return the settings of the run: the typed ones, and for the others the values of the requested protocol.

        Raises:
            InputError: no task has a protocol of that name.
        """
        if self.protocol is None:
            return self.how
        protocols = [task.info.protocols for task in tasks]
        names = sorted({name for of_task in protocols for name in of_task})
        if self.protocol not in names:
            has = f"the protocol {self.protocol!r}; {nearest(self.protocol, names)}" if names else "a protocol"
            raise InputError(f"none of the tasks has {has}")
        settings = {name: value for of_task in protocols for name, value in of_task.get(self.protocol, {}).items()}
        return self.how.changed(settings={**settings, **self.how.settings})

    def check_used(self, models: Sequence[Model], tasks: Sequence[Task]) -> None:
        """Refuse a setting that affects none of the models and none of their tasks.

        Raises:
            InputError: a setting has no effect.
        """
        from audio_compositionality.encoders.base import SERVER
        from audio_compositionality.encoders.loading.names import is_twin
        from audio_compositionality.evaluator.run.outputs import can_do

        done = [task for task in tasks if any(can_do(task, model) for model in models)]
        for name in self.how.settings:
            having = [task.info.name for task in tasks if name in task.spec.model_fields]
            if having and not any(task.info.name in having for task in done):
                raise InputError(f"{name} is a setting of {listed(having)}, and no named model does these tasks")
        if not any("answer" in model.abilities for model in models):
            for name in sorted(self.of_models & _OF_ANSWERS):
                raise InputError(f"{name} only affects audio language models; no named model is one")
        if not any(model.device == SERVER for model in models):
            for name in sorted(self.of_models & _OF_SERVERS):
                raise InputError(
                    f"{name} only affects models behind a server, endpoint:MODEL@URL; no named model is one"
                )
        if "twin_seeds" in self.of_models and not any(is_twin(model.card.id) for model in models):
            raise InputError("twin_seeds only affects untrained twins, such as untrained:MODEL; no named model is one")


def read_request(options: argparse.Namespace, out: Path | None = None, *, scores: bool = True) -> Request:
    """Return the request with checked arguments; neither data nor models are opened.

    Args:
        options: with the arguments of `add_scoring`.
        out: folder for results.
        scores: whether anything is scored, so that settings of runs and tasks exist.

    Raises:
        ListedError: a list of the settings was requested, and has been printed.
        InputError: an unknown setting or an invalid value.
        TaskError: there is no such task.
        DatasetError: there are no such data.
    """
    from audio_compositionality.evaluator.run.cache import cached_outputs_folder
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.support.spec import read_values
    from audio_compositionality.tasks.base import settings_among
    from audio_compositionality.tasks.registry import list_tasks

    tasks = arguments.chosen_tasks(options)
    spec = data_options.data_spec(options)
    groups = [
        *data_groups(spec, data_options.wanted_recipes(spec, tasks)),
        Group("models", model_fields),
        Group("the run", run_fields if scores else dict),
        Group("tasks", lambda: task_fields(tasks) if scores else {}),
    ]
    _, changes, of_model, of_run, of_tasks = divided(options.set, groups)
    if getattr(options, "seeds", None) is not None:
        if "seeds" in of_tasks:
            raise InputError("--seeds and --set seeds=... are both given; give one")
        of_tasks |= read_values([f"seeds={options.seeds}"], task_fields(), "tasks")
    if of_tasks:
        # Contradictory settings are refused in each task that has them, before anything is opened.
        problems = []
        for task in tasks or list_tasks():
            if set(of_tasks) & set(task.spec.model_fields):
                try:
                    settings_among(task.spec, of_tasks)
                    break
                except InputError as error:
                    problems.append(error)
        else:
            if problems:
                raise problems[0]
    arguments.check_output(out, "--out")
    arguments.check_output(getattr(options, "cache", None), "--cache")
    typed = frozenset({*of_model, *of_run})
    # The protocol of a preset: ``paper`` of ``paper-mini``.
    reading = spec.reading
    preset = reading.source.partition(" with ")[0] if reading.kind == "preset" else spec.preset
    of_preset, dash, _ = preset.partition("-")
    protocol = of_run.pop("protocol", None) or (of_preset if dash else None)
    how = RunOptions(
        batch_size=options.batch_size,
        device=options.device,
        out=out,
        cache=getattr(options, "cache", None) or cached_outputs_folder(),
        settings=of_tasks,
        skip_invalid=options.skip_invalid,
        force=options.force,
        progress=True,
        **of_run,
    )
    return Request(spec, changes, tasks, model_settings(options, of_model), how, protocol, typed)


def add_layer(parser: argparse.ArgumentParser) -> None:
    """Add `options.layer`."""
    parser.add_argument(
        "--layer",
        metavar="N|N,N|all",
        help="hidden layer: 0 is the input of the first block, N the output of block N; several or all are embedded "
        "in one pass, and each counts as a model; default: the model's output",
    )


@dataclass(frozen=True)
class ModelSettings:
    """Settings of models.

    Attributes:
        layers: the requested layers; None for the model's output.
        options: all others.
        twin_seeds: seeds of the weights of twins, one model each.
    """

    layers: tuple[int, ...] | Literal["all"] | None
    options: LanguageOptions
    twin_seeds: tuple[int, ...] = (0,)

    @property
    def at_one_layer(self) -> EncoderOptions:
        """The options, where one layer is enough.

        Raises:
            InputError: several layers are requested.
        """
        if self.layers == "all" or (self.layers is not None and len(self.layers) > 1):
            asked = self.layers if self.layers == "all" else ",".join(map(str, self.layers))
            raise InputError(f"--layer is {asked!r}; this command takes one layer")
        return self.options.changed(layer=None if self.layers is None else self.layers[0])


def model_settings(options: argparse.Namespace, values: Mapping[str, Any] = MappingProxyType({})) -> ModelSettings:
    """The settings of models.

    Args:
        options: with the arguments of `add_layer`.
        values: of `model_fields`, by name.

    Raises:
        InputError: an invalid value.
    """
    from audio_compositionality.encoders.options import LanguageOptions

    seeds = tuple(dict.fromkeys(values.get("twin_seeds", (0,))))
    if not seeds or min(seeds) < 0:
        raise InputError(
            f"twin_seeds is {', '.join(map(str, seeds)) or 'empty'}; it is whole numbers from 0 on with commas "
            "between them, such as 0,1,2"
        )
    layers: tuple[int, ...] | Literal["all"] | None = None
    if options.layer is not None:
        parts = [part.strip() for part in options.layer.split(",") if part.strip()]
        if parts != ["all"] and (not parts or not all(part.isdecimal() for part in parts)):
            raise InputError(
                f"--layer is {options.layer!r}; it is a number from 0 on, several with commas between them, such as "
                "0,2,4, or all"
            )
        layers = "all" if parts == ["all"] else tuple(dict.fromkeys(map(int, parts)))
    of_options = {name: value for name, value in values.items() if name != "twin_seeds"}
    # Commands without questions have none.
    batch_size = getattr(options, "batch_size", None)
    return ModelSettings(layers, LanguageOptions(batch_size=batch_size, **of_options), seeds)


def loaded_models(
    names: Sequence[str],
    settings: ModelSettings,
    device: str | None,
    processes: Processes,
    there: Mapping[str, Model] = MappingProxyType({}),
) -> list[Model]:
    """Return models by their names, each once, or once per requested layer and twin seed.

    One process per machine downloads.

    Controls of an audio language model share its weights: several copies would hardly fit into memory.

    Args:
        names: of models.
        settings: of the models.
        device: torch device; None for CUDA where it is available.
        processes: of this evaluation.
        there: loaded models, by their names.

    Raises:
        AudioCompositionalityError: a model is not available.
    """
    from audio_compositionality.encoders.controls import Controlled
    from audio_compositionality.encoders.loading.names import is_twin, split_control
    from audio_compositionality.encoders.loading.registry import load_layers, load_model

    layers, encoder, seeds = settings.layers, settings.options, settings.twin_seeds
    place = processes.device(device)
    models: list[Model] = []

    def draws(name: str) -> list[tuple[str, int]]:
        return [(name, seed) for seed in (seeds if is_twin(name) else (0,))]

    loaded = {draws(name)[0]: model for name, model in there.items()}
    with processes.one_first():
        for name, seed in (draw for one in dict.fromkeys(names) for draw in draws(one)):
            if layers == "all":
                models += load_layers(name, device=place, options=encoder, seed=seed)
            elif layers is None or len(layers) == 1:
                at_layer = encoder.changed(layer=None if layers is None else layers[0])
                kind, inner = split_control(name)
                shared = None if kind is None else loaded.get((inner, seed))
                answers = shared is not None and "answer" in shared.abilities and "learn" not in shared.abilities
                if kind is not None and shared is not None and answers:
                    model: Model = Controlled(shared, kind)
                else:
                    model = load_model(name, device=place, options=at_layer, seed=seed)
                loaded[name, seed] = model
                models.append(model)
            else:
                models += load_layers(name, layers, device=place, options=encoder, seed=seed)
    return models


def check_kinds(models: Sequence[Model], tasks: Sequence[Task], options: argparse.Namespace, source: str) -> None:
    """Refuse models that cannot do named tasks; of a benchmark, and by default, a warning names the tasks left out.

    Args:
        models: the named models.
        tasks: all tasks to score.
        options: with the arguments of `arguments.add_tasks`.
        source: of the data.

    Raises:
        TaskError: a model cannot do a named task.
        InputError: a model can do none.
    """
    from audio_compositionality.evaluator.run.outputs import check_model_kind, warn_of_left_out

    if options.tasks is None:
        warn_of_left_out(models, tasks, source)
        return
    for model in models:
        for task in tasks:
            check_model_kind(task, model)


def loaded_encoders(
    names: Sequence[str], settings: ModelSettings, device: str | None, processes: Processes
) -> list[Model]:
    """Models by their names, see `loaded_models`, checked to be encoders.

    Raises:
        InputError: a model is no encoder.
        AudioCompositionalityError: a model is not available.
    """
    encoders = []
    for model in loaded_models(names, settings, device, processes):
        if "audio" not in model.abilities:
            raise InputError(f"{model.card.id!r} embeds no clips")
        encoders.append(model)
    return encoders


def kept_outputs(tasks: Sequence[Task]) -> str:
    """Return the kinds of cached outputs for some tasks: embeddings, answers, or both."""
    from audio_compositionality.encoders.base import LANGUAGE_MODEL

    answers = {task.info.needs == LANGUAGE_MODEL for task in tasks}
    return " and ".join(
        name for name, of_answers in (("embeddings", False), ("answers", True)) if of_answers in answers
    )


def print_result(result: Result) -> None:
    """Print a result in one line as soon as it is ready: model, task, its ranking measure with interval, its score, and
    the kinds of samples if some are missing."""
    from audio_compositionality.evaluator.compare.tables import kinds_there, score_words
    from audio_compositionality.tasks.registry import load_task

    info = load_task(result.task).info
    numbers = []
    for measure in map(info.measure, dict.fromkeys((info.ranks_by, info.score.name))):
        words = score_words(result.measures[measure.name], result.intervals.get(measure.name), measure.digits)
        numbers.append(f"{measure.heading} {words}")
    there = kinds_there(result, info)
    kinds = f" ({there})" if there else ""
    print(f"{plain(result.model.id)}, {info.title}: {', '.join(numbers)}{kinds}", flush=True)


def print_end(
    results: Sequence[Result],
    options: argparse.Namespace,
    data: HeldData[Any] | str | None = None,
) -> Verdicts:
    """Print the tables of all results and the verdict.

    Args:
        results: of this run.
        options: its folder of results, and whether definitions are wanted.
        data: the data of the results in the folder, if these do not state them.

    Returns:
        the verdicts on all models with results in the folder.
    """
    from audio_compositionality.evaluator.compare.comparison import compare_results
    from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
    from audio_compositionality.evaluator.compare.tables import headline_table, results_tables

    for table in results_tables(results) if options.explain else [headline_table(results)]:
        print()
        print_table(table)
    try:
        verdicts = verdicts_of(compare_results([options.out], data=data))
    except AudioCompositionalityError as error:
        # For example, the folder holds an earlier result twice.
        print(f"note: the verdict covers only the results of this run: {error}", file=sys.stderr)
        verdicts = verdicts_of(compare_results(results, data=data))
    print_wrapped(verdicts.text)
    return verdicts
