"""`evaluate`: score models on a preset, a built folder, a Hub data set or recordings of the user's own."""

from __future__ import annotations

import argparse

from . import arguments, asking, model_options, recordings, several_processes
from .announce import print_end, print_result
from .command import GO_ON, Command
from .imports import import_evaluate

_EXAMPLES = """\
  audio-compositionality evaluate whisper-base --benchmark axes --set seed=7 --out results-seed-7
      a preset that is drawn anew: other clips of the same kind, with tables of their own
  audio-compositionality evaluate whisper-base --recordings animals --out results-animals
      all tasks on recordings in animals/dog, animals/cat, ...: scenes that they are mixed into, and what transforms do
  audio-compositionality evaluate whisper-base --dataset speech-commands --out results-words
      the same on words that people say, from the Hub; no speaker is both learnt from and tested
  audio-compositionality evaluate whisper-base --dataset ORG/NAME --split test --label accent --group speaker
      any data set of the Hub with audio, with labels in a column
  audio-compositionality evaluate MODEL --labels validation.tsv --audio desed/audio --out results-desed
      questions about recordings with labels that say what is heard from when to when, to a model that answers
  audio-compositionality evaluate MODEL --labels validation.tsv --audio desed/audio --orders cyclic --scoring letters
      each question once an order of its options, and the likeliest letter as the answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser)
    arguments.add_tasks(parser)
    recordings.add_recordings(parser, arguments.add_data(parser))
    arguments.add_out(parser)
    model_options.add_model_options(parser)
    model_options.add_twin_seeds(parser)
    arguments.add_embedding_options(parser)
    arguments.add_fit_options(parser)
    asking.add_asking_options(parser)


def run(options: argparse.Namespace) -> None:
    """Score the models, print each result as it is ready, and the tables at the end."""
    arguments.check_models(options.models)
    how = arguments.run_options(options, options.out)
    model_options.check_model_options(options)
    tasks = arguments.chosen_tasks(options)
    data, tasks = recordings.opened_data(options, tasks)
    # Imported only where the arguments are right: it takes seconds.
    from audio_compositionality.evaluator.run.evaluate import evaluate_models

    processes = arguments.processes_of_run()
    models = model_options.loaded_models(options.models, options, processes)
    scored = arguments.scored_tasks(data, tasks)
    if scored:
        model_options.check_kinds(models, scored, options, data.source)
    how = how.changed(settings={**arguments.protocol_settings(options, data, tasks), **how.settings})
    if processes.is_main:
        import_evaluate()
    results = evaluate_models(models, data, scored or None, how, on_result=print_result, leave_out=True)
    if processes.is_main:
        print_end(results, options.out, how.store)


COMMAND = Command(
    summary="score models on a preset, a built folder, a Hub data set or recordings of your own",
    description="Give models every clip, score their outputs, and write a result file a model and task.",
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES + several_processes.examples("evaluate"),
    resume=GO_ON,
    place=20,
)
