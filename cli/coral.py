"""`coral`: the paper's check against natural recordings."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import arguments, scoring
from .arguments import GO_ON, Command

_DESCRIPTION = """\
Are the scores an artifact of synthetic sound? The embeddings are adapted to embeddings of natural recordings by
correlation alignment (CORAL), and the tasks are scored before and after. A score that changes little is no artifact of
the mean and covariance of synthetic clips; the check covers nothing else. Invertible linear maps leave perfect
additivity at 1, so an unchanged score of additivity near 1 is weak evidence. See docs/understand/statistics.md.
"""

_EXAMPLES = """\
  audio-compositionality coral whisper-base --recordings ESC-50/audio
      on the preset mini
  audio-compositionality coral whisper-base --recordings FSD50K.eval_audio --preset full --max-clips 5000
      at the paper's size, adapted to more clips than are taken by default
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_models(parser)
    parser.add_argument(
        "--recordings",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder with natural recordings, at any depth: wav, flac, ogg, mp3 and others",
    )
    parser.add_argument(
        "--max-clips",
        type=arguments.whole("--max-clips"),
        metavar="N",
        help="number of clips taken from the recordings: of more, a fixed random sample; default 2000",
    )
    scoring.add_scoring(parser)
    arguments.add_seeds(parser)


def run(options: argparse.Namespace) -> None:
    """Check the models, and print the changes."""
    arguments.check_models(options.models)
    request = scoring.read_request(options)
    from audio_compositionality.evaluator.coral import MAX_CLIPS, coral_check, coral_table
    from audio_compositionality.support.table import print_table

    data, tasks = request.open_data(options)
    max_clips = MAX_CLIPS if options.max_clips is None else options.max_clips
    how = request.with_protocol(tasks)
    models = scoring.loaded_encoders(options.models, request.model, options.device, arguments.processes_of_run())
    request.check_used(models, tasks)
    for model in models:
        check = coral_check(
            model, options.recordings, data, tasks=request.tasks and tasks, max_clips=max_clips, options=how
        )
        print_table(coral_table(check))


COMMAND = Command(
    summary="check whether scores are an artifact of synthetic sound, as the paper does with natural recordings",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume=GO_ON,
    place=80,
)
