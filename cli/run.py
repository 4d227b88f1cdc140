"""`run`: the main job, from nothing to a report."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import AudioCompositionalityError

from . import arguments, asking, model_options, recordings
from .announce import kept_outputs, print_end, print_result
from .command import GO_ON, Command
from .imports import import_evaluate

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.opening import RenderedData
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.tasks.base import Task

PRESET = "mini"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser, nargs="*")
    arguments.add_tasks(parser)
    data = parser.add_mutually_exclusive_group()
    arguments.add_data_path(data)
    recordings.add_recordings(parser, data)
    parser.set_defaults(preset=PRESET)
    arguments.add_protocol(parser)
    arguments.add_out(parser)
    model_options.add_model_options(parser)
    model_options.add_twin_seeds(parser)
    arguments.add_embedding_options(parser)
    arguments.add_fit_options(parser, default="1")
    asking.add_asking_options(parser)


def run(options: argparse.Namespace) -> None:
    """Score the baselines, and the models beside their untrained twins, and write the report."""
    arguments.check_models(options.models)
    how = arguments.run_options(options, options.out)
    model_options.check_model_options(options)
    tasks = arguments.chosen_tasks(options)
    # Imported only where the arguments are right: it takes seconds.
    from audio_compositionality.dataset_builder.opening import RenderedData
    from audio_compositionality.evaluator.run.evaluate import evaluate_models

    data, tasks = recordings.opened_data(options, tasks)
    brought = options.data is not None or recordings.are_given(options)
    scored = arguments.scored_tasks(data, tasks)
    if brought and tasks is None:
        # Whose data serve a task wants what stands beside that task.
        tasks = recordings.scorable(data, scored)
        scored = tasks
    baselines, beside = _names(options.models, tasks, scored)
    processes = arguments.processes_of_run()
    if processes.is_main:
        where = data.source if brought else f"the preset {data.source}"
        networks = [one for name, twins in beside.items() for one in (name, *twins)]
        print(_opening(where, baselines, networks, options.out, how.store, kept_outputs(scored)), flush=True)
    # All models are loaded before the first is evaluated: a wrong name should not cost a minute.
    as_they_are = argparse.Namespace(device=options.device, layer=None, pooling=None, precision=None, compile=False)
    models = model_options.loaded_models(baselines, as_they_are, processes)
    for name, twins in beside.items():
        given = model_options.loaded_models([name], options, processes)
        model_options.check_kinds(given, scored, options, data.source)
        there = {name: given[0]} if len(given) == 1 else {}
        models += [*given, *model_options.loaded_models(_sensible(twins, given), options, processes, there)]
    protocol = arguments.protocol_settings(options, data, tasks)
    how = replace(how, settings={**_quick_settings(data, tasks), **protocol, **how.settings})
    if processes.is_main:
        import_evaluate()
    results = evaluate_models(models, data, scored or None, how, on_result=print_result, leave_out=True)
    if processes.is_main:
        print_end(results, options.out, how.store)
        rendered = data if brought and isinstance(data, RenderedData) else None
        _write_report(options.out, options.typed, options.data if rendered is None else rendered)


def _quick_settings(data: Data, tasks: Sequence[Task] | None) -> dict[str, Any]:
    """One fit where a task fits any: the spread of several is for `evaluate`."""
    for task in arguments.scored_tasks(data, tasks):
        if "seeds" in task.settings(data.configuration(task.info.recipe).rows, {}):
            return {"seeds": [0]}
    return {}


def _names(
    given: Sequence[str], tasks: Sequence[Task] | None, scored: Sequence[Task]
) -> tuple[list[str], dict[str, list[str]]]:
    """Names of the baselines; and for each of the models what stands beside it: its untrained twin, where tasks judge
    by it, and what tasks that are named want.

    Args:
        given: the models.
        tasks: that are named; None where none are.
        scored: all tasks.
    """
    from audio_compositionality.encoders.loading.controls import CONTROLS
    from audio_compositionality.encoders.loading.names import list_models
    from audio_compositionality.encoders.loading.registry import has_twins
    from audio_compositionality.encoders.loading.twins import UNTRAINED

    kinds = {task.info.needs for task in scored}
    baselines = [one.name for one in list_models() if one.is_baseline and (any(map(one.can_do, kinds)) or not kinds)]
    wanted = [control for task in tasks or () for control in task.info.controls]
    baselines += [
        control for control in dict.fromkeys(wanted) if not control.endswith(":") and control not in baselines
    ]
    # Tasks say beside which twin a model is judged: one that has to read the question says nothing untrained.
    judged = {task.info.twin[0] for task in tasks or ()} or {UNTRAINED}
    usual = [UNTRAINED] if UNTRAINED in judged else []
    prefixes = dict.fromkeys([*usual, *(control for control in wanted if control.endswith(":"))])
    of_input = tuple(kind.prefix for kind in CONTROLS.values())
    beside: dict[str, list[str]] = {}
    for name in dict.fromkeys(given):
        if name not in baselines:
            twins = [prefix for prefix in prefixes if prefix not in of_input and has_twins(name, prefix)]
            controls = [prefix for prefix in prefixes if prefix in of_input and not name.startswith(of_input)]
            beside[name] = [f"{prefix}{name}" for prefix in (*twins, *controls) if f"{prefix}{name}" not in given]
    return baselines, beside


def _sensible(twins: Sequence[str], given: Sequence[Model]) -> list[str]:
    """The twins and controls of a model without the controls of what it does not do: who has learnt to answer by sound,
    or reads labels, is not told what is heard; and, with a warning, without twins whose weights nothing says how to
    draw."""
    from audio_compositionality.encoders.adapters.custom_twins import twin_problem
    from audio_compositionality.encoders.loading.controls import can_control
    from audio_compositionality.encoders.loading.names import split_control

    kinds = {twin: split_control(twin)[0] for twin in twins}
    sensible = []
    for twin, kind in kinds.items():
        problems = [] if kind is not None else [twin_problem(model, f"{twin.partition(':')[0]}:") for model in given]
        if problem := next(filter(None, problems), None):
            warnings.warn(f"{twin} is left out: {problem}", stacklevel=2)
        elif kind is None or all(can_control(model, kind) for model in given):
            sensible.append(twin)
    return sensible


def _opening(
    where: str, baselines: Sequence[str], networks: Sequence[str], out: Path, store: Path | None, kept: str
) -> str:
    more = f" and {', '.join(networks)}" if networks else ""
    minutes = "one to four minutes" if not networks else "a few minutes, and on a CPU one to ten more a model"
    return (
        f"Scoring {', '.join(baselines)}{more} on {where}, which takes {minutes}. Results go to {out}, the "
        f"report to {out / 'report.html'}, {kept} to {store}; what is there already is used."
    )


def _write_report(out: Path, command: str, data: str | RenderedData | None) -> None:
    """Write the report of all results in the folder, earlier ones too; where that fails, say why and go on.

    Args:
        out: the folder.
        command: as it was typed.
        data: theirs, where the results do not lead to them.
    """
    from audio_compositionality.evaluator.report.page import write_report

    try:
        path = write_report([out], out / "report.html", data=data, command=command, progress=sys.stderr.isatty())
    except (OSError, AudioCompositionalityError) as error:
        print(f"note: there is no report: {error}", file=sys.stderr)
    else:
        print(f"The report is {path}: open it in a browser.")


COMMAND = Command(
    summary="the main job: baselines, and models beside their untrained twins, on the preset mini, with a report",
    description="Score the baselines, and each MODEL beside its untrained twin, on the preset mini, and write a "
    "report; a model that answers questions also beside itself without sound, and told what is heard as text. --layer, "
    "--pooling, --precision and --compile are for MODEL; the baselines have no model.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality run
      the baselines alone: nothing is downloaded
  audio-compositionality run whisper-base my_encoder.py:MyEncoder
      a pretrained model with its untrained twin, and a class of your own
  audio-compositionality run whisper-base --recordings animals --out results-animals
      the same on recordings of your own, in animals/dog, animals/cat and so on
  audio-compositionality run laion/clap-htsat-fused --data compa:CompA --out results-compa
      a model of sound and text on your copy of a benchmark that others published, or on a data set that `build` wrote
""",
    resume=GO_ON,
    place=10,
)
