"""What a command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

GO_ON = "What is finished is kept: the same command goes on from there (without --force)."
"""What to say where a command that keeps its work was stopped."""


@dataclass(frozen=True)
class Command:
    """A command: a module of this folder has one by the name ``COMMAND``, and gives it its name, with ``-`` for ``_``.

    Attributes:
        summary: one line, for the list of commands.
        description: what the command does.
        add_arguments: adds the command's arguments to its parser.
        run: does it; returns the exit status, or None for 0. What is slow to import is imported here.
        examples: lines with commands and what they do; empty for none.
        resume: what to say where it was stopped.
        place: where it stands in the list of commands.
    """

    summary: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    examples: str = ""
    resume: str = ""
    place: int = 100
