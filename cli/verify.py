"""`verify`: recompute results from their embeddings or answers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from audio_compositionality.support.table import print_table

from . import arguments
from .arguments import Command

_DESCRIPTION = """\
Recompute results from their embeddings, or from the raw answers to questions, and compare: what a leaderboard does with
a submission before it calls a result verified. RESULT is the folder of a submission, its result.json, a folder of
submissions, or a local result file, whose embeddings or answers are read from the cache; the model is not run.

  verified       these embeddings or answers give these scores on these data. Scores without a fit agree to
                 1e-6, fitted scores within the spread of their fits. Nothing is left out; settings are the default
  not verified   a number differs, or embeddings or answers are missing or belong to other clips, questions or data

Verification does not prove that embeddings and answers come from the named model and were not made up from the labels:
only the submitter states that. The exit status is 0 if all are verified, 1 if one is not, 2 if one cannot be read.
"""

_EXAMPLES = """\
  audio-compositionality verify results
      all results of `evaluate` in a folder, from the embeddings and answers in the cache
  audio-compositionality verify results/openai__whisper-base/REVISION/TASK-0123456789abcdef
      a submission, as it lies in the results repository
  audio-compositionality verify submission --data ORG/audio-compositionality
      for data other than a preset
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULT",
        help="folder of a submission or of several; its result.json; or the JSON file of a local result",
    )
    arguments.add_data_of_results(parser)
    arguments.add_cache(parser)
    arguments.add_device(parser)
    parser.add_argument(
        "--explain", action="store_true", help="print every claimed and recomputed number with its tolerance"
    )


def run(options: argparse.Namespace) -> int:
    """Verify the results one after the other, and print the outcome."""
    arguments.check_results(options.results)
    arguments.check_output(options.cache, "--cache")
    from audio_compositionality.evaluator.submissions.verification import LEGEND, verify_paths

    status = 0
    outcomes = verify_paths(
        options.results,
        data=options.data,
        cache=options.cache,
        device=options.device,
        progress=True,
    )
    counts = [0, 0]
    for outcome in outcomes:
        if outcome.table is None:
            print(f"error: {outcome.error}", file=sys.stderr)
            status = 2
            continue
        counts[outcome.verified] += 1
        if options.explain:
            print_table(outcome.table)
        else:
            print(outcome.line, flush=True)
        status = status or int(not outcome.verified)
    # Below an error alone it would read like success.
    if any(counts):
        failed, verified = counts
        several = ""
        if failed + verified > 1:
            results = f"{verified} of {failed + verified} results {'is' if verified == 1 else 'are'}"
            several = f"{results} verified: recomputed from their embeddings or answers. "
        print(LEGEND if options.explain else f"{several}--explain prints every number with its tolerance.")
    return status


COMMAND = Command(
    summary="recompute results from their embeddings or answers, and compare the scores",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    place=95,
)
