"""`validate`: do the scores measure what they claim?"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from . import arguments
from .arguments import Command

_DESCRIPTION = """\
Score encoders that are constructed from metadata, so that the truth about them is known: does each score rise with
compositionality, stay put under what it should not see, and agree with theory; do intervals cover and tests stay
silent? Takes a few minutes. The exit status is 1 where something that must hold does not.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the page as Markdown")
    parser.add_argument(
        "--simulations",
        type=int,
        metavar="N",
        help="simulated data sets of each setting; default 1000, with --quick 100",
    )
    parser.add_argument("--quick", action="store_true", help="less of everything, with wider bands: under a minute")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice; default 0")


def run(options: argparse.Namespace) -> int:
    """Validate the scores, print the page, and write it."""
    arguments.check_file(options.out)
    from audio_compositionality.studies.validity.page import print_page, write_page
    from audio_compositionality.studies.validity.validate import validate

    validity = validate(
        simulations=options.simulations, quick=options.quick, seed=options.seed, progress=sys.stderr.isatty()
    )
    if options.out is not None:
        given = {"--out": options.out, "--simulations": options.simulations, "--seed": options.seed or None}
        parts = [str(part) for pair in given.items() if pair[1] is not None for part in pair]
        quick = ["--quick"] if options.quick else []
        write_page(validity, options.out, shlex.join(["audio-compositionality", "validate", *parts, *quick]))
    print_page(validity)
    return 0 if validity.holds else 1


COMMAND = Command(
    summary="do the scores measure what they claim? constructed encoders, whose truth is known",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality validate --quick
      less of everything, in under a minute
  audio-compositionality validate --out docs/validity.md
      the page of the documentation
""",
    place=90,
)
