"""`submit`: submit results to a leaderboard."""

from __future__ import annotations

import argparse
from pathlib import Path

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import plain

from . import arguments
from .arguments import GO_ON, Command

_DESCRIPTION = """\
Submit results to the leaderboard of an organisation: a pull request on ORG/audio-compositionality-results with each
result, the scores of its samples and its embeddings, or the raw answers to questions, so that anybody can compute the
scores again. Both are read from the store; no model is run.

Embeddings are rounded to 16 bits and scored once more before they are sent: a submitted result is that of the submitted
embeddings, and both scores are printed. Answers are sent word for word. The leaderboard checks the pull request by the
code of `audio-compositionality verify`, adds what agrees and closes the pull request.
"""

_EXAMPLES = """\
  audio-compositionality evaluate whisper-base --preset full --out results-full
  audio-compositionality submit results-full --check
      whether each result can be submitted, without a network
  audio-compositionality submit results-full --org my-lab --dry-run
      what would be sent
  audio-compositionality submit results-full --org my-lab --model-card
      also a pull request on openai/whisper-base, which shows the scores on the model's page
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT", help="JSON files of results, or folders that hold them"
    )
    parser.add_argument(
        "--org", metavar="ORG", help="organisation or user on the Hub that the leaderboard belongs to; not for --check"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only say of each result whether it can be submitted, and what is missing; needs no network",
    )
    arguments.add_data_of_results(parser)
    arguments.add_cache(parser)
    parser.add_argument(
        "--scores-only",
        action="store_true",
        help="send neither embeddings nor answers; the scores cannot be verified and stay self-reported",
    )
    parser.add_argument(
        "--paradigm",
        metavar="TEXT",
        help='how the model was trained, such as "self-supervised"; known for named models',
    )
    parser.add_argument("--licence", metavar="TEXT", help="licence of its weights; known for named models")
    parser.add_argument(
        "--model-card",
        action="store_true",
        help="also open a pull request on the model's own repository, which shows the scores on its page",
    )
    arguments.add_device(parser)
    arguments.add_dry_run(parser)


def run(options: argparse.Namespace) -> int | None:
    """Submit, and print what was sent; the exit status of a check is 1 where a result cannot be submitted."""
    arguments.check_results(options.results)
    arguments.check_output(options.cache, "--cache")
    making = {
        "cache": options.cache,
        "with_outputs": not options.scores_only,
        "paradigm": options.paradigm,
        "licence": options.licence,
        "device": options.device,
        "progress": True,
    }
    if options.check:
        from audio_compositionality.push_scripts.submit import submittable

        checked = submittable(options.results, data=options.data, **making)
        for one in checked:
            print(f"{plain(one.label)}: {one.problem or 'can be submitted'}{one.note and f'; {one.note}'}")
        problems = sum(bool(one.problem) for one in checked)
        print(f"{len(checked) - problems} of {len(checked)} can be submitted.")
        return 1 if problems else 0
    if options.org is None:
        raise InputError("submit needs --org ORG, whose leaderboard it is; --check works without")
    from audio_compositionality.push_scripts.reports import submission_lines
    from audio_compositionality.push_scripts.submit import submit_results

    submitted = submit_results(
        options.results,
        options.org,
        data=options.data,
        model_card=options.model_card,
        dry_run=options.dry_run,
        **making,
    )
    print("\n".join(submission_lines(submitted)))
    return None


COMMAND = Command(
    summary="submit results to a leaderboard",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume=GO_ON,
    place=100,
)
