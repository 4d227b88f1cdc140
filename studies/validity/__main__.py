"""``python -m studies.validity``, in a clone: do the scores measure what they claim?"""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from audio_compositionality.cli import arguments
from audio_compositionality.cli.main import Parser, exit_status, named_output, parsed, show_warning

PROGRAM = "python -m studies.validity"

_DESCRIPTION = """\
Score encoders that are constructed from metadata, so that the truth about them is known: does each score rise with
compositionality, stay put under what it should not see, and agree with theory; do intervals cover and tests stay
silent? Takes a few minutes. The exit status is 1 where something that must hold does not.
"""

_EXAMPLES = f"""\
examples:
  {PROGRAM} --quick
      less of everything, in under a minute
  {PROGRAM} --out docs/validity.md
      the page of the documentation
"""


def main(typed: Sequence[str] | None = None) -> int:
    """Validate the scores, print the page, and write it.

    Returns:
        the exit status: 0; 1 where something that must hold does not; 2 for a mistake in the input; 130 when
        interrupted.
    """
    typed = list(sys.argv[1:] if typed is None else typed)
    warnings.showwarning = show_warning
    try:
        options = parsed(_parser(), typed, PROGRAM)
        with named_output():
            return _run(options)
    except (KeyboardInterrupt, Exception) as error:
        return exit_status(error, traceback="--traceback" in typed)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the page as Markdown")
    parser.add_argument(
        "--simulations",
        type=int,
        metavar="N",
        help="simulated data sets of each setting; default 1000, with --quick 100",
    )
    parser.add_argument("--quick", action="store_true", help="less of everything, with wider bands: under a minute")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every random choice; default 0")
    arguments.add_traceback(parser)
    return parser


def _run(options: argparse.Namespace) -> int:
    arguments.check_file(options.out)
    # SciPy and torch take seconds to import, too long for `--help`.
    from .page import print_page, write_page
    from .validate import validate

    validity = validate(
        simulations=options.simulations, quick=options.quick, seed=options.seed, progress=sys.stderr.isatty()
    )
    if options.out is not None:
        given = {"--out": options.out, "--simulations": options.simulations, "--seed": options.seed or None}
        parts = [str(part) for pair in given.items() if pair[1] is not None for part in pair]
        quick = ["--quick"] if options.quick else []
        write_page(validity, options.out, shlex.join([*PROGRAM.split(), *parts, *quick]))
    print_page(validity)
    return 0 if validity.holds else 1


if __name__ == "__main__":
    sys.exit(main())
