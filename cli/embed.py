"""`embed`: write the embeddings of every clip."""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from . import arguments, model_options, recordings, several_processes
from .command import GO_ON, Command

if TYPE_CHECKING:
    from audio_compositionality.evaluator.run.store import EmbeddingStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser)
    arguments.add_tasks(parser)
    recordings.add_recordings(parser, arguments.add_data(parser))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the embeddings")
    model_options.add_model_options(parser)
    model_options.add_twin_seeds(parser)
    arguments.add_embedding_options(parser, store=False)


def run(options: argparse.Namespace) -> None:
    """Embed the configurations that the tasks need with every model; of a folder all, where no tasks are named."""
    arguments.check_models(options.models)
    how = arguments.run_options(options).changed(store=options.out)
    model_options.check_model_options(options)
    from audio_compositionality.evaluator.run.embed import embed_at_layers, models_by_pass

    tasks = arguments.chosen_tasks(options)
    data, tasks = recordings.opened_data(options, tasks)
    recipes = data.recipes if tasks is None else tuple(dict.fromkeys(task.info.recipe for task in tasks))
    processes = arguments.processes_of_run()
    models = model_options.loaded_encoders(options.models, options, processes)
    for layers, recipe in product(models_by_pass(models), recipes):
        for store in embed_at_layers(layers, data.configuration(recipe), how):
            if processes.is_main:
                _tell(store)


def _tell(store: EmbeddingStore) -> None:
    print(store.folder, flush=True)
    skipped = len(store.load().errors)
    if skipped:
        print(
            f"note: {skipped} of {len(store.ids)} clips of {store.key.recipe} could not be embedded; the store says "
            "which and why",
            file=sys.stderr,
        )


COMMAND = Command(
    summary="write the embeddings of every clip",
    description="Embed every clip with models. Each configuration of the data gets a folder of safetensors files of 64 "
    "clips each;\n`evaluate --store DIR` takes them from there.",
    add_arguments=add_arguments,
    run=run,
    examples=several_processes.examples("embed", out=" --out DIR"),
    resume=GO_ON,
    place=60,
)
