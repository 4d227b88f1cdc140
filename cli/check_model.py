"""`check-model`: the first command to run on a new model."""

from __future__ import annotations

import argparse
from collections.abc import Collection

from audio_compositionality.support.table import print_table

from . import arguments, scoring
from .arguments import Command, Group, add_settings, divided, model_fields, typed_pairs

_DESCRIPTION = """\
Check a model on a few synthetic sounds: shape and type of its output, finite values, the same output twice and in any
batch, sensitivity to the input, the right sample rate; and measure its speed and memory. A failure names its usual
cause, and the exit status is 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_model(parser)
    scoring.add_layer(parser)
    add_settings(parser)
    arguments.add_device(parser)


def run(options: argparse.Namespace) -> int:
    """Check the model."""
    (values,) = divided(options.set, [Group("models", model_fields)])
    how = scoring.model_settings(options, values).at_one_layer
    arguments.check_models([options.model])
    # Imported after the arguments are checked: it takes seconds.
    from audio_compositionality.encoders.check import all_passed, check_model, check_table

    checks = check_model(options.model, device=options.device, options=how)
    print_table(check_table(checks, options.model))
    if not all_passed(checks):
        return 1
    print(_next_line(options, {check.name for check in checks}))
    return 0


def _next_line(options: argparse.Namespace, checked: Collection[str]) -> str:
    """Return the command that scores the model by the tasks that need most of its abilities, from the names of its
    checks; among several benchmarks, by one whose tasks it can all do."""
    from audio_compositionality.tasks.registry import list_tasks

    abilities = {ability for ability, name in _SHOWN_BY.items() if name in checked}
    if options.layer is not None or "pooling" in typed_pairs(options):
        # Texts are embedded in the space of the model's own output.
        abilities -= {"text"}
    every = [task.info for task in list_tasks()]
    mixed = {info.benchmark for info in every if not info.needs <= abilities}
    possible = [info for info in every if info.needs <= abilities]
    info = max(possible, key=lambda info: (len(info.needs), info.benchmark not in mixed))
    benchmark = ["--benchmark", info.benchmark] if info.on_request else []
    return arguments.next_line(options, "run", options.model, *benchmark)


_SHOWN_BY = {"audio": "embeds", "text": "texts", "answer": "answers"}
"""Abilities, and the check that a model with each has."""


COMMAND = Command(
    summary="check a new model on synthetic sounds: output, sample rate, speed and memory",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality check-model my_encoder.py:MyEncoder
      a class of your own with sample_rate and embed(waveforms, sample_rate)
  audio-compositionality check-model whisper-base --layer 4 --set pooling=max
      one layer of a model, under another pooling
""",
    place=15,
)
