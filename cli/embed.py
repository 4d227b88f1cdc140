"""`embed`: write the embeddings of every clip."""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

from . import arguments, scoring
from .arguments import GO_ON, Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser)
    scoring.add_scoring(parser, cache=False)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the embeddings")


def run(options: argparse.Namespace) -> None:
    """Embed the configurations that the tasks need with every model."""
    arguments.check_models(options.models)
    request = scoring.read_request(options, options.out, scores=False)
    how = request.how.changed(cache=options.out)
    from audio_compositionality.evaluator.run.embeddings import embed_at_layers, models_by_pass
    from audio_compositionality.evaluator.run.outputs import can_do

    data, tasks = request.open_data(options)
    processes = arguments.processes_of_run()
    models = scoring.loaded_encoders(options.models, request.model, options.device, processes)
    request.check_used(models, tasks)
    # No encoder reads rows of questions, unless there are no others.
    done = [task for task in tasks if options.tasks is not None or any(can_do(task, model) for model in models)]
    recipes = tuple(dict.fromkeys(task.info.recipe for task in done or tasks))
    configurations = [data.configuration(recipe) for recipe in recipes]
    groups = models_by_pass(models)
    for layers, configuration in product(groups, configurations):
        for cache in embed_at_layers(layers, configuration, how):
            if not processes.is_main:
                continue
            print(cache.folder, flush=True)
            skipped = len(cache.load().errors)
            if skipped:
                print(
                    f"note: {skipped} of {len(cache.ids)} clips of {cache.key.recipe} could not be embedded; their ids "
                    "and the reasons are in that folder",
                    file=sys.stderr,
                )


COMMAND = Command(
    summary="write the embeddings of every clip",
    description="Embed every clip with models. Each configuration of the data gets a folder of safetensors files of 64 "
    "clips each; `evaluate --cache DIR` takes them from there.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality embed whisper-base --layer all --out embeddings
      every layer as a separate model, from one pass
  torchrun --nproc_per_node 4 -m audio_compositionality embed MODEL --data full --out embeddings
      four processes, each with a GPU of its own; also for `evaluate` and `run` (docs/how-to/scale.md)
""",
    resume=GO_ON,
    place=60,
)
