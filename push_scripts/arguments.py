"""The arguments of the commands that write to the Hub, and what their ``--help`` teaches."""

from __future__ import annotations

import argparse
from pathlib import Path

_PUSH_DESCRIPTION = """\
Bring repositories on the Hub to the content of this version. What is there already is not sent again: a push that was
killed is finished by the same command, and where nothing differs nothing is committed.

The token is that of HF_TOKEN, or the one that `hf auth login` has saved. It needs the role write, or as a fine-grained
token the permission to write to the repositories of ORG.
"""

_PUSH_EXAMPLES = """\
examples:
  audio-compositionality push dataset audio-compositionality --org my-lab --dry-run
      what would be sent to my-lab/audio-compositionality, and how large it is
  audio-compositionality push metrics --org my-lab
      the Spaces my-lab/a_coat and my-lab/a_tre, for evaluate.load("my-lab/a_coat")
  audio-compositionality push leaderboard --org my-lab
      the Space my-lab/audio-compositionality-leaderboard, and my-lab/audio-compositionality-results
"""

_SUBMIT_DESCRIPTION = """\
Submit results to the leaderboard of an organisation: a pull request on ORG/audio-compositionality-results with each
result, the scores of its samples and its embeddings, so that anybody can compute the scores again.

Embeddings are rounded to 16 bits and scored once more before they are sent: a submitted result is that of the submitted
embeddings, and both scores are printed. The leaderboard checks the pull request by the code of
`audio-compositionality verify`, adds what agrees and closes the pull request.
"""

_SUBMIT_EXAMPLES = """\
examples:
  audio-compositionality evaluate --encoder whisper-base --preset full --out results-full
  audio-compositionality submit results-full --org my-lab --dry-run
      what would be sent
  audio-compositionality submit results-full --org my-lab --model-card
      also a pull request on openai/whisper-base, which shows the scores on the model's page
"""


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser], resume: str) -> None:
    """Add `push` and `submit` to the commands of the command line.

    Args:
        commands: to add to.
        resume: what to say where one is stopped.
    """
    push = commands.add_parser(
        "push",
        help="publish the data set, the metrics or the leaderboard on the Hub",
        description=_PUSH_DESCRIPTION,
        epilog=_PUSH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = push.add_subparsers(title="what to push", required=True, metavar="WHAT")
    dataset = kinds.add_parser(
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
    metrics = kinds.add_parser(
        "metrics",
        help="the metrics, to the Spaces ORG/a_coat and ORG/a_tre",
        description="Bring the Space of each metric to the content of its folder.",
    )
    leaderboard = kinds.add_parser(
        "leaderboard",
        help="the leaderboard's Space and the repository of its results",
        description="Bring the Space ORG/audio-compositionality-leaderboard to this version, and make the repository "
        "of results ORG/audio-compositionality-results, of which only the card is ever changed.",
    )
    for parser, name in ((dataset, "push_dataset"), (metrics, "push_metrics"), (leaderboard, "push_leaderboard")):
        _add_org(parser)
        parser.add_argument(
            "--create-pr", action="store_true", help="open a pull request instead of committing to main"
        )
        parser.add_argument("--private", action="store_true", help="make a repository that is new a private one")
        _add_dry_run(parser)
        parser.set_defaults(command=name, resume=resume)

    submit = commands.add_parser(
        "submit",
        help="submit results to a leaderboard",
        description=_SUBMIT_DESCRIPTION,
        epilog=_SUBMIT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    submit.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT", help="JSON files of results, or folders that hold them"
    )
    _add_org(submit)
    submit.add_argument(
        "--data", metavar="DIR|HUB_ID", help="the data of the results, where they are not a preset of this version"
    )
    submit.add_argument(
        "--embeddings", type=Path, metavar="DIR", help="folder of the embeddings, as given to `evaluate`"
    )
    submit.add_argument(
        "--without-embeddings",
        action="store_true",
        help="send the scores alone; they cannot be verified and stay self-reported",
    )
    submit.add_argument(
        "--paradigm", metavar="TEXT", help='how the encoder was trained, such as "self-supervised"; known of named ones'
    )
    submit.add_argument("--licence", metavar="TEXT", help="licence of its weights; known of named ones")
    submit.add_argument(
        "--model-card",
        action="store_true",
        help="also open a pull request on the model's own repository, which shows the scores on its page",
    )
    submit.add_argument(
        "--device", metavar="DEVICE", help="of A-TRE's fits: cpu, cuda; default CUDA where there is one"
    )
    _add_dry_run(submit)
    submit.set_defaults(command="submit", resume=resume)


def _add_org(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--org", required=True, metavar="ORG", help="organisation or user on the Hub")


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be sent, and how large it is; send nothing"
    )
