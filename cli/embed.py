"""`embed`: write the embeddings of every clip."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from . import arguments, recordings, several_processes
from .command import GO_ON, Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser)
    arguments.add_tasks(parser)
    recordings.add_recordings(parser, arguments.add_data(parser))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the embeddings")
    arguments.add_model_options(parser)
    arguments.add_embedding_options(parser, store=False)


def run(options: argparse.Namespace) -> None:
    """Embed the configurations that the tasks need with every model; of a folder all, where no tasks are named."""
    arguments.check_models(options.models)
    from audio_compositionality.evaluator.run.embed import embed_configuration

    how = replace(arguments.run_options(options), store=options.out)
    tasks = arguments.chosen_tasks(options)
    data, tasks = recordings.opened_data(options, tasks)
    recipes = data.recipes if tasks is None else tuple(dict.fromkeys(task.info.recipe for task in tasks))
    processes = arguments.processes_of_run()
    for model in arguments.loaded_encoders(options.models, options, processes):
        for recipe in recipes:
            store = embed_configuration(model, data.configuration(recipe), how)
            if not processes.is_main:
                continue
            print(store.folder, flush=True)
            skipped = len(store.load().errors)
            if skipped:
                print(
                    f"note: {skipped} of {len(store.ids)} clips of {recipe} could not be embedded; the store says "
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
