"""`run`: score baselines and models, and write a report."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.table import print_table
from audio_compositionality.support.text import listed

from . import arguments, data_options, scoring
from .arguments import GO_ON, Command
from .scoring import kept_outputs, print_end, print_result

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.encoders.base import Model
    from audio_compositionality.evaluator.run.planning import Named, Plan
    from audio_compositionality.evaluator.run.processes import Processes


BUNDLED = "compa-clap-tiny"
"""The bundled model, scored if neither models nor tasks are named."""


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
    """Score the baselines, the models and their untrained twins, and write the report."""
    arguments.check_models(options.models)
    request = scoring.read_request(options, options.out)
    # Imported after the arguments are checked: it takes seconds.
    from audio_compositionality.dataset_builder.data import HeldData
    from audio_compositionality.dataset_builder.open_data import recipes_for
    from audio_compositionality.evaluator.run.evaluate import evaluate_models
    from audio_compositionality.evaluator.run.planning import Named, planned
    from audio_compositionality.tasks.registry import first_look, list_tasks

    processes = arguments.processes_of_run()
    is_preset = request.data.reading.kind == "preset"
    is_first_look = not options.models and is_preset and request.tasks is None
    given = [Named(name) for name in ([BUNDLED] if is_first_look else dict.fromkeys(options.models))]
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
    if processes.is_main:
        networks, takes = plan.names[len(plan.baselines) :], ""
        if is_preset and data.source == "mini":
            of_networks = (
                "a few minutes, or on a CPU one to ten minutes per model" if networks else "one to four minutes"
            )
            takes = f", which takes {'a minute or two' if networks[:1] == (BUNDLED,) else of_networks}"
        where = f"the preset {data.source}" if is_preset else data.source
        print(
            f"Scoring {listed(plan.names)} on {where}{takes}. Results go to {options.out}, "
            f"{kept_outputs(plan.tasks)} to {request.how.cache}; existing ones are used.",
            flush=True,
        )
    # The user's models first, since the user waits for their scores.
    models: list[Model] = []
    for one in (one for one in given if one.name in plan.controls):
        models += [*one.loaded, *_controls(one, plan, options, request, processes)]
    models += scoring.loaded_models(plan.baselines, _as_they_are(request), options.device, processes)
    request.check_used(models, plan.tasks)
    # One fit for tasks that fit: the spread of several is for `evaluate`.
    fits = any("seeds" in task.settings(data.configuration(task.info.recipe).rows, {}) for task in plan.tasks)
    how = how.changed(settings={**({"seeds": [0]} if fits else {}), **how.settings})
    results = evaluate_models(
        models, data, list(plan.tasks), how, on_result=print_result, leave_out=True, apart=plan.apart, shipped=True
    )
    if processes.is_main:
        brought = data if isinstance(data, HeldData) else data.source
        verdicts = print_end(results, options, None if is_preset else brought)
        from audio_compositionality.evaluator.report.page import write_verdicts

        # Of all results in the folder, earlier ones too.
        page, progress = options.out / "report.html", sys.stderr.isatty()
        compare = shlex.join(["audio-compositionality", "compare", str(options.out)])
        try:
            path = write_verdicts(verdicts, page, command=options.typed, progress=progress)
        except (OSError, AudioCompositionalityError) as error:
            print(f"note: there is no report: {error}", file=sys.stderr)
        else:
            print(f"The report is {path}: open it in a browser. {compare} prints the differences.")
        from .train import BENCHMARK

        with_text = [one.name for one in given if "text" in one.loaded[0].abilities]
        if with_text and is_preset and request.tasks is None and not is_first_look:
            command = ["audio-compositionality", "run", *with_text, "--benchmark", BENCHMARK, "--out", str(options.out)]
            print(f"{listed(with_text)} also embeds text, which was not scored: {shlex.join(command)}")
        if options.models:
            kept = {"data", "cache"}
            print(arguments.next_line(options, "submit", str(options.out), "--check", kept=kept))


def _loaded(
    one: Named, options: argparse.Namespace, request: scoring.Request, processes: Processes, *, fetch: bool
) -> Named:
    """Return a named model, loaded if it is not yet; without `fetch` only if this needs no download and no server."""
    from audio_compositionality.evaluator.run.planning import is_here

    if one.loaded or not (fetch or is_here(one.name)):
        return one
    return replace(one, loaded=tuple(scoring.loaded_models([one.name], request.model, options.device, processes)))


def _as_they_are(request: scoring.Request) -> scoring.ModelSettings:
    """The settings of baselines, which have no weights."""
    return scoring.ModelSettings(None, request.model.options.changed(**_PLAIN))


def _controls(
    one: Named, plan: Plan, options: argparse.Namespace, request: scoring.Request, processes: Processes
) -> list[Model]:
    """Return the twins and controls of a model; one that cannot be made is left out with a note."""
    there = {one.name: one.loaded[0]} if len(one.loaded) == 1 else {}
    names = plan.controls.get(one.name, ())
    return [model for name in names for model in _made(name, request.model, options, processes, there)]


def _made(
    name: str,
    settings: scoring.ModelSettings,
    options: argparse.Namespace,
    processes: Processes,
    there: Mapping[str, Model] = MappingProxyType({}),
) -> Sequence[Model]:
    """Return the models of a name; none, with a note, if it cannot be made."""
    from audio_compositionality.encoders.base import ModelError

    try:
        return scoring.loaded_models([name], settings, options.device, processes, there)
    except ModelError as error:
        data_options.note(f"{name} is left out: {error}")
        return ()


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
    left_out = []

    def load(name: str) -> Sequence[Model]:
        if name in there:
            return there[name]
        made = _made(name, _as_they_are(request) if name in plan.baselines else request.model, options, processes)
        if not made:
            left_out.append(name)
        return made

    costs = [one for one in costs_of_plan(plan, data, load) if one.name not in left_out]
    print_table(plan_table(costs))
    print()
    print(f"Would score {', '.join(task.info.name for task in plan.tasks)}.")
    timed = [one for one in costs if one.seconds is not None]
    untimed = [one.name for one in costs if one.seconds is None and one.clips]
    if timed:
        minutes = sum(one.seconds or 0 for one in timed) / 60
        without = f", without {listed(untimed)}, whose time is unknown before the download" if untimed else ""
        print(
            f"Embedding takes about {minutes:,.1f} min on this machine under its present load{without}. Fits take "
            "additional time."
        )
    questions = sum(one.questions for one in costs)
    if questions:
        own = sum(one.questions for one in costs if one.name not in plan.baselines)
        of_these = f", {own:,} of them of the named models and their controls" if 0 < own < questions else ""
        print(
            f"Would ask {questions:,} questions{of_these}, except those with cached answers; their time depends on the "
            "model."
        )
    print(f"Results would go to {options.out}, {kept_outputs(plan.tasks)} to {request.how.cache}.")


_PLAIN = {"layer": None, "pooling": None, "compile": False}
"""Options of baselines, which have no weights."""


COMMAND = Command(
    summary="score baselines, models and their untrained twins on the preset mini, and write a report",
    description="Score the baselines, and each MODEL with its untrained twin, on the preset mini or on your own "
    "data, and write a report.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality run whisper-base my_encoder.py:MyEncoder
      a pretrained model and a class of your own, each with its untrained twin; without a model name, the bundled
      model is scored, which was trained on data from our generator
  audio-compositionality run whisper-base --data animals --out results-animals
      on recordings of your own, in animals/dog, animals/cat and so on
""",
    resume=GO_ON,
    place=10,
)
