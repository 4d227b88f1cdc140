"""`run`: the main job, from nothing to a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import AudioCompositionalityError

from . import arguments, model_options, scoring
from .announce import kept_outputs, print_end, print_result
from .command import GO_ON, Command
from .imports import import_evaluate

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.opening import RenderedData
    from audio_compositionality.tasks.base import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser, nargs="*")
    scoring.add_scoring(parser)
    arguments.add_seeds(parser, default="1")
    arguments.add_out(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be scored, downloaded, asked and written, and how long it takes; score nothing",
    )


def run(options: argparse.Namespace) -> None:
    """Score the baselines, and the models beside their untrained twins, and write the report."""
    arguments.check_models(options.models)
    request = scoring.read_request(options, options.out)
    # Imported only where the arguments are right: it takes seconds.
    from audio_compositionality.dataset_builder.data_spec import recognised
    from audio_compositionality.dataset_builder.opening import RenderedData
    from audio_compositionality.evaluator.run.evaluate import evaluate_models
    from audio_compositionality.evaluator.run.planning import Named, planned

    data, tasks = request.open_data(options)
    is_preset = recognised(request.data.data).kind == "preset"
    is_judged = not is_preset or request.tasks is not None
    if options.dry_run:
        _tell_costs(options, request, data, tasks, is_judged)
        return
    processes = arguments.processes_of_run()
    # All models are loaded before the first is evaluated: a wrong name should not cost a minute.
    loaded = {}
    for name in dict.fromkeys(options.models):
        loaded[name] = model_options.loaded_models([name], request.model, options.device, processes)
        model_options.check_kinds(loaded[name], tasks, options, data.source)
    given = [Named(name, tuple(models)) for name, models in loaded.items()]
    plan = planned(given, tasks, is_named=options.tasks is not None, is_judged=is_judged)
    store = request.how.store
    if processes.is_main:
        where = f"the preset {data.source}" if is_preset else data.source
        networks = plan.names[len(plan.baselines) :]
        print(_opening(where, plan.baselines, networks, options.out, store, kept_outputs(plan.tasks)), flush=True)
    as_they_are = model_options.ModelSettings(None, request.model.options.changed(**_PLAIN))
    models = model_options.loaded_models(plan.baselines, as_they_are, options.device, processes)
    for name, controls in plan.beside.items():
        there = {name: loaded[name][0]} if len(loaded[name]) == 1 else {}
        beside = model_options.loaded_models(controls, request.model, options.device, processes, there)
        models += [*loaded[name], *beside]
    how = request.with_protocol(plan.tasks)
    how = how.changed(settings={**_quick_settings(data, plan.tasks), **how.settings})
    if processes.is_main:
        import_evaluate()
    results = evaluate_models(models, data, list(plan.tasks), how, on_result=print_result, leave_out=True)
    if processes.is_main:
        print_end(results, options.out, store)
        brought = data if isinstance(data, RenderedData) else data.source
        _write_report(options.out, options.typed, None if is_preset else brought)


def _tell_costs(
    options: argparse.Namespace, request: scoring.Request, data: Data, tasks: Sequence[Task], is_judged: bool
) -> None:
    """Say what a run would score, download, ask and write."""
    from audio_compositionality.evaluator.run.costs import costs_of_plan, plan_table
    from audio_compositionality.evaluator.run.planning import Named, planned
    from audio_compositionality.support.table import print_table

    given = [Named(name) for name in dict.fromkeys(options.models)]
    plan = planned(given, tasks, is_named=options.tasks is not None, is_judged=is_judged)
    costs = costs_of_plan(plan, data)
    print_table(plan_table(costs))
    print()
    minutes = sum(one.seconds or 0 for one in costs) / 60
    unknown = [one.name for one in costs if one.download]
    without = f", without {', '.join(unknown)}, which nobody can tell before they are here" if unknown else ""
    print(f"Scored would be {', '.join(task.info.name for task in plan.tasks)}.")
    print(f"Embedding takes about {minutes:,.1f} min on this machine as busy as it is now{without}.")
    print(f"Results would go to {options.out}, {kept_outputs(plan.tasks)} to {request.how.store}.")


_PLAIN = {"layer": None, "pooling": None, "compile": False}
"""Options of baselines, which have no model."""


def _quick_settings(data: Data, tasks: Sequence[Task]) -> dict[str, Any]:
    """One fit where a task fits any: the spread of several is for `evaluate`."""
    for task in tasks:
        if "seeds" in task.settings(data.configuration(task.info.recipe).rows, {}):
            return {"seeds": [0]}
    return {}


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
    description="Score the baselines, and each MODEL beside its untrained twin, on the preset mini or on data of "
    "yours, and write a report.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality run whisper-base my_encoder.py:MyEncoder
      a pretrained model with its untrained twin, and a class of your own; without a model, the baselines alone
  audio-compositionality run whisper-base --data animals --out results-animals
      the same on recordings of your own, in animals/dog, animals/cat and so on
""",
    resume=GO_ON,
    place=10,
)
