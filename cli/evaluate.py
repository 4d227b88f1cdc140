"""`evaluate`: score models on any data."""

from __future__ import annotations

import argparse

from . import arguments, scoring
from .arguments import GO_ON, Command
from .scoring import kept_outputs, print_end, print_result

_EXAMPLES = """\
  audio-compositionality evaluate whisper-base --benchmark axes --data full --set seed=7 --out results-seed-7
      the paper's size with freshly drawn clips of the same kind, whose results get separate tables
  audio-compositionality evaluate whisper-base untrained:whisper-base --data animals --set twin_seeds=0,1,2
      a model and three draws of its twin on recordings in animals/dog, animals/cat ...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser)
    scoring.add_scoring(parser)
    arguments.add_seeds(parser)
    arguments.add_out(parser)
    scoring.add_explain(parser)


def run(options: argparse.Namespace) -> None:
    """Score the models, print each result as it is ready, and the tables at the end."""
    arguments.check_models(options.models)
    request = scoring.read_request(options, options.out)
    data, tasks = request.open_data(options)
    how = request.with_protocol(tasks)
    # Imported after the arguments are checked: it takes seconds.
    from audio_compositionality.dataset_builder.data import HeldData
    from audio_compositionality.evaluator.run.evaluate import evaluate_models

    processes = arguments.processes_of_run()
    models = scoring.loaded_models(options.models, request.model, options.device, processes)
    scoring.check_kinds(models, tasks, options, data.source)
    request.check_used(models, tasks)
    results = evaluate_models(models, data, tasks, how, on_result=print_result, leave_out=True)
    if processes.is_main:
        print_end(results, options, data if isinstance(data, HeldData) else None)
        print(f"Results are in {options.out}, {kept_outputs(tasks)} in {how.cache}.")
        print(arguments.next_line(options, "compare", str(options.out), kept=()))


COMMAND = Command(
    summary="score models on a preset or on your own data",
    description="Run models on every clip, score their outputs, and write a result file for each model and task.",
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume=GO_ON,
    place=20,
)
