"""`board`: the leaderboard of results on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from audio_compositionality.support.errors import InputError

from . import arguments
from .arguments import Command

_DESCRIPTION = """\
Open the leaderboard of results on this machine in a browser: the page that the Space of an organisation shows, before
anything is submitted. All results count as reported. Needs gradio and no network.
"""

_EXAMPLES = """\
  audio-compositionality run whisper-base
  audio-compositionality board results
      the board of these results, at http://127.0.0.1:7860
  audio-compositionality board results others/whisper-large-v3 --port 8000
      with results from elsewhere
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULT", help="folders of results, such as results, or JSON files"
    )
    parser.add_argument("--port", type=int, default=7860, metavar="N", help="port of this machine (default 7860)")


def run(options: argparse.Namespace) -> None:
    """Serve the board until the command is interrupted."""
    arguments.check_results(options.results)
    if not 0 < options.port < 65_536:
        raise InputError(f"--port is {options.port}; it must be from 1 to 65535")
    try:
        from audio_compositionality.leaderboard.local import launch_local
    except ModuleNotFoundError as error:
        if error.name != "gradio":
            raise
        raise InputError(
            "the board needs gradio, which is not installed: pip install 'audio-compositionality[leaderboard]'"
        ) from error
    launch_local(options.results, server_name="127.0.0.1", server_port=options.port)


COMMAND = Command(
    summary="the leaderboard of results on this machine, in a browser",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    place=42,
)
