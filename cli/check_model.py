"""`check-model`: the first command to run on a new model."""

from __future__ import annotations

import argparse

from audio_compositionality.support.table import print_table

from . import arguments, scoring
from .arguments import Command
from .settings import add_settings

_DESCRIPTION = """\
Check a model on a few synthetic sounds: shape, type, finite, deterministic, the same alone and in a batch, sensitive to
its input, right sample rate; and measure its speed and memory. A failure names its usual cause; the exit status is
then 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_model(parser)
    scoring.add_layer(parser)
    add_settings(parser)
    arguments.add_device(parser)


def run(options: argparse.Namespace) -> int:
    """Check the model."""
    how = scoring.read_model_settings(options).at_one_layer
    arguments.check_models([options.model])
    # Imported after the arguments are checked: it takes seconds.
    from audio_compositionality.encoders.check import all_passed, check_model, check_table

    checks = check_model(options.model, device=options.device, options=how)
    print_table(check_table(checks, options.model))
    return 0 if all_passed(checks) else 1


COMMAND = Command(
    summary="what to run first on a new model: does it do what it should, and how fast?",
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
