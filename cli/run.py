"""`run`: the main job, from nothing to a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.table import print_table
from audio_compositionality.support.text import listed

from . import arguments, data_options, scoring
from .arguments import GO_ON, Command
from .scoring import kept_outputs, print_end, print_result

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.evaluator.compare.model_verdicts import Verdicts
    from audio_compositionality.evaluator.run.planning import Named, Plan
    from audio_compositionality.evaluator.run.processes import Processes
    from audio_compositionality.tasks.base import Task


BOXED = "compa-clap-tiny"
"""The model of the package, judged where neither models nor tasks are named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser, nargs="*")
    scoring.add_scoring(parser)
    arguments.add_seeds(parser, default="1")
    arguments.add_out(parser)
    scoring.add_explain(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be scored, downloaded, asked and written, and the time; score nothing",
    )


def run(options: argparse.Namespace) -> None:
    """Score the baselines, and the models beside their untrained twins, and write the report."""
    arguments.check_models(options.models)
    request = scoring.read_request(options, options.out)
    # Imported after the arguments are checked: it takes seconds.
    from audio_compositionality.dataset_builder.data import HeldData
    from audio_compositionality.dataset_builder.data_spec import recognised
    from audio_compositionality.dataset_builder.open_data import recipes_for
    from audio_compositionality.evaluator.run.evaluate import evaluate_models
    from audio_compositionality.evaluator.run.planning import Named, planned
    from audio_compositionality.tasks.registry import first_look, list_tasks

    processes = arguments.processes_of_run()
    is_preset = recognised(request.data.data).kind == "preset"
    is_first_look = not options.models and is_preset and request.tasks is None
    given = [Named(name) for name in ([BOXED] if is_first_look else dict.fromkeys(options.models))]
    if given and request.tasks is None and recipes_for(request.data) is not None:
        # Of a user's own data, rows are drawn only for tasks that some model can do, as far as this is known
        # of models that have to be fetched.
        given = [_loaded(one, options, request, processes, fetch=False) for one in given]
        done = [task for task in list_tasks() if any(one.does(task) for one in given)]
        data, tasks = data_options.opened_request_data(options, request.data, request.changes, done)
    else:
        looked = replace(request, tasks=first_look()) if is_first_look else request
        data, tasks = looked.open_data(options)
    # All models are loaded before the first is evaluated: a wrong name should not cost a minute. A dry run fetches
    # nothing and calls no server.
    given = [_loaded(one, options, request, processes, fetch=not options.dry_run) for one in given]
    for one in given:
        scoring.check_kinds(one.loaded, tasks, options, data.source)
    is_judged = not is_preset or request.tasks is not None
    plan = planned(given, tasks, is_named=options.tasks is not None, is_judged=is_judged, is_first_look=is_first_look)
    how = request.with_protocol(plan.tasks)
    if options.dry_run:
        _tell_costs(options, request, plan, data, given, processes)
        return
    store = request.how.store
    if processes.is_main:
        where = f"the preset {data.source}" if is_preset else data.source
        networks = plan.names[len(plan.baselines) :]
        print(_opening(where, plan.baselines, networks, options.out, store, kept_outputs(plan.tasks)), flush=True)
    models = scoring.loaded_models(plan.baselines, _as_they_are(request), options.device, processes)
    for one in (one for one in given if one.name in plan.beside):
        models += [*one.loaded, *_beside(one, plan, options, request, processes)]
    request.check_used(models, plan.tasks)
    how = how.changed(settings={**_quick_settings(data, plan.tasks), **how.settings})
    results = evaluate_models(
        models, data, list(plan.tasks), how, on_result=print_result, leave_out=True, apart=plan.apart
    )
    if processes.is_main:
        brought = data if isinstance(data, HeldData) else data.source
        verdicts = print_end(results, options, store, None if is_preset else brought)
        _write_report(options.out, options.typed, verdicts)


def _loaded(
    one: Named, options: argparse.Namespace, request: scoring.Request, processes: Processes, *, fetch: bool
) -> Named:
    """A named model, loaded where it is not yet; without `fetch` only where this needs no download and no
    server."""
    from audio_compositionality.evaluator.run.planning import is_here

    if one.loaded or not (fetch or is_here(one.name)):
        return one
    return replace(one, loaded=tuple(scoring.loaded_models([one.name], request.model, options.device, processes)))


def _as_they_are(request: scoring.Request) -> scoring.ModelSettings:
    """The settings of baselines, which have no weights."""
    return scoring.ModelSettings(None, request.model.options.changed(**_PLAIN))


def _beside(
    one: Named, plan: Plan, options: argparse.Namespace, request: scoring.Request, processes: Processes
) -> list[Model]:
    """The twins and controls of a model; one that cannot be made is left out with a note."""
    from audio_compositionality.encoders.base import ModelError

    there = {one.name: one.loaded[0]} if len(one.loaded) == 1 else {}
    beside: list[Model] = []
    for name in plan.beside.get(one.name, ()):
        try:
            beside += scoring.loaded_models([name], request.model, options.device, processes, there)
        except ModelError as error:
            data_options.note(f"{name} is left out: {error}")
    return beside


def _tell_costs(
    options: argparse.Namespace,
    request: scoring.Request,
    plan: Plan,
    data: Data,
    given: Sequence[Named],
    processes: Processes,
) -> None:
    """Print what a run would score, download, ask and write."""
    from audio_compositionality.evaluator.run.planning import costs_of_plan, plan_table

    there = {one.name: one.loaded for one in given if one.loaded}

    def load(name: str) -> Sequence[Model]:
        if name in there:
            return there[name]
        settings = _as_they_are(request) if name in plan.baselines else request.model
        return scoring.loaded_models([name], settings, options.device, processes)

    costs = costs_of_plan(plan, data, load)
    print_table(plan_table(costs))
    print()
    print(f"Would score {', '.join(task.info.name for task in plan.tasks)}.")
    timed = [one for one in costs if one.seconds is not None]
    untimed = [one.name for one in costs if one.seconds is None and one.clips]
    if timed:
        minutes = sum(one.seconds or 0 for one in timed) / 60
        without = f", without {listed(untimed)}, whose time is unknown before the download" if untimed else ""
        print(
            f"Embedding takes about {minutes:,.1f} min on this machine under its present load{without}; the fits "
            "come on top."
        )
    questions = sum(one.questions for one in costs)
    if questions:
        print(
            f"Would ask {questions:,} questions, less those with stored answers; the time of each depends on the model."
        )
    print(f"Results would go to {options.out}, {kept_outputs(plan.tasks)} to {request.how.store}.")


_PLAIN = {"layer": None, "pooling": None, "compile": False}
"""Options of baselines, which have no weights."""


def _quick_settings(data: Data, tasks: Sequence[Task]) -> dict[str, Any]:
    """One fit for tasks that fit: the spread of several is for `evaluate`."""
    for task in tasks:
        if "seeds" in task.settings(data.configuration(task.info.recipe).rows, {}):
            return {"seeds": [0]}
    return {}


def _opening(
    where: str, baselines: Sequence[str], networks: Sequence[str], out: Path, store: Path | None, kept: str
) -> str:
    more = f" and {', '.join(networks)}" if networks else ""
    return (
        f"Scoring {', '.join(baselines)}{more} on {where}{_takes(where, networks)}. Results go to {out}, the "
        f"report to {out / 'report.html'}, {kept} to {store}; existing ones are used."
    )


def _takes(where: str, networks: Sequence[str]) -> str:
    """The time that a run on the preset mini takes, as a clause; empty of other data."""
    if where != "the preset mini":
        return ""
    if networks[:1] == [BOXED]:
        return ", which takes a minute or two"
    return f", which takes {'a few minutes, and on a CPU one to ten a model' if networks else 'one to four minutes'}"


def _write_report(out: Path, command: str, verdicts: Verdicts) -> None:
    """Write the report of all results in the folder, earlier ones too; where that fails, print why and go on."""
    from audio_compositionality.evaluator.report.page import write_verdicts

    try:
        path = write_verdicts(verdicts, out / "report.html", command=command, progress=sys.stderr.isatty())
    except (OSError, AudioCompositionalityError) as error:
        print(f"note: there is no report: {error}", file=sys.stderr)
    else:
        print(f"The report is {path}: open it in a browser.")


COMMAND = Command(
    summary="the main job: baselines, and models beside their untrained twins, on the preset mini, with a report",
    description="Score the baselines, and each MODEL beside its untrained twin, on the preset mini or on your own "
    "data, and write a report.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality run whisper-base my_encoder.py:MyEncoder
      a pretrained model with its untrained twin, and a class of your own; without a model, the small one of the
      package, which was trained on our generator
  audio-compositionality run whisper-base --data animals --out results-animals
      the same on recordings of your own, in animals/dog, animals/cat and so on
""",
    resume=GO_ON,
    place=10,
)
