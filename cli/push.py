"""`push`: publish the data set, the metrics or the leaderboard on the Hub."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import arguments
from .command import GO_ON, Command

_DESCRIPTION = """\
Bring repositories on the Hub to the content of this version. What is there already is not sent again: a push that was
killed is finished by the same command, and where nothing differs nothing is committed.

The token is that of HF_TOKEN, or the one that `hf auth login` has saved. It needs the role write, or as a fine-grained
token the permission to write to the repositories of ORG.
"""

_EXAMPLES = """\
  audio-compositionality push dataset audio-compositionality --org my-lab --dry-run
      what would be sent to my-lab/audio-compositionality, and how large it is
  audio-compositionality push metrics --org my-lab
      a Space a metric, for evaluate.load("my-lab/METRIC")
  audio-compositionality push leaderboard --org my-lab --results results
      the Space my-lab/audio-compositionality-leaderboard, my-lab/audio-compositionality-results, and first results
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be pushed, each with its arguments."""
    whats = parser.add_subparsers(title="what to push", required=True, metavar="WHAT", dest="what")
    dataset = whats.add_parser(
        "dataset",
        help="a built folder, to the data set ORG/audio-compositionality",
        description="Check that a built folder is what its fingerprint says, and bring the data set "
        "ORG/audio-compositionality to its content.",
    )
    dataset.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("audio-compositionality"),
        metavar="DIR",
        help="a folder that `build` has written; default audio-compositionality",
    )
    metrics = whats.add_parser(
        "metrics",
        help="the metrics, a Space each",
        description="Bring the Space of each metric to the content of its folder.",
    )
    leaderboard = whats.add_parser(
        "leaderboard",
        help="the leaderboard's Space and the repository of its results",
        description="Bring the Space ORG/audio-compositionality-leaderboard to this version, and make the repository "
        "of results ORG/audio-compositionality-results, of which only the card is ever changed.",
    )
    leaderboard.add_argument(
        "--results", nargs="+", type=Path, metavar="RESULT", help="also submit these results, such as the baselines'"
    )
    for subparser in (dataset, metrics, leaderboard):
        arguments.add_org(subparser)
        subparser.add_argument(
            "--create-pr", action="store_true", help="open a pull request instead of committing to main"
        )
        subparser.add_argument("--private", action="store_true", help="make a repository that is new a private one")
        arguments.add_dry_run(subparser)
        arguments.add_traceback(subparser)


def run(options: argparse.Namespace) -> None:
    """Push, and say what was sent."""
    from audio_compositionality.push_scripts import reports
    from audio_compositionality.push_scripts.dataset import push_dataset
    from audio_compositionality.push_scripts.spaces import push_leaderboard, push_metrics

    how = {"private": options.private, "pull_request": options.create_pr, "dry_run": options.dry_run}
    if options.what == "dataset":
        lines = reports.dataset_lines(push_dataset(options.folder, options.org, **how))
    elif options.what == "metrics":
        lines = reports.metric_lines(push_metrics(options.org, **how))
    else:
        lines = reports.leaderboard_lines(push_leaderboard(options.org, **how))
    print("\n".join(lines), flush=True)
    if options.what == "leaderboard" and options.results:
        from audio_compositionality.push_scripts.submit import submit_results

        submitted = submit_results(options.results, options.org, dry_run=options.dry_run)
        print("\n".join(reports.submission_lines(submitted)))


COMMAND = Command(
    summary="publish the data set, the metrics or the leaderboard on the Hub",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    resume=GO_ON,
    place=110,
)
