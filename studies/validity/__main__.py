"""``python -m studies.validity``, in a clone: check whether the scores measure what they claim."""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from audio_compositionality.cli import arguments
from audio_compositionality.cli.main import Parser, exit_status, named_output, parsed, show_warning
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import write_whole

PROGRAM = "python -m studies.validity"

PAGE = Path(__file__).parents[2] / "docs" / "understand" / "validity-appendix.md"

_DESCRIPTION = """\
Score encoders that are constructed from metadata, whose compositionality is therefore known, and write the page of
the documentation. Does each score rise with compositionality, ignore all else, and agree with theory? Do intervals
cover the truth, and do tests of equal encoders find no difference? The exit status is 1 if a check that must hold
does not.
"""

_EXAMPLES = f"""\
examples:
  {PROGRAM} --quick
      less of everything, in under a minute; prints the page and writes nothing
  {PROGRAM}
      the page docs/understand/validity-appendix.md, in a few minutes
"""


def main(typed: Sequence[str] | None = None) -> int:
    """Validate the scores, print the page, and write it.

    Returns:
        the exit status: 0; 1 if a check that must hold does not; 2 for a mistake in the input; 130 when
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
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the page; default validity-appendix.md, with --quick none"
    )
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
    out = options.out or (None if options.quick else PAGE)
    arguments.check_file(out)
    simulations = options.simulations or (100 if options.quick else 1_000)
    if options.simulations is not None and options.simulations < 20:
        raise InputError(f"simulations is {options.simulations}; below 20 a rate of 5 % cannot be seen")
    if options.seed < 0:
        raise InputError(f"seed is {options.seed}; it must be 0 or more")
    # SciPy and torch take seconds to import, too long for `--help`.
    from . import axes, comp_a, composed, count_instances, dials, instances, negation, when
    from .page import all_hold, markdown, print_page

    parts = [
        part
        for module in (dials, axes, instances, comp_a, composed, count_instances, when, negation)
        for part in module.chapter(
            quick=options.quick, simulations=simulations, seed=options.seed, progress=sys.stderr.isatty()
        )
    ]
    if out is not None:
        given = {"--out": options.out, "--simulations": options.simulations, "--seed": options.seed or None}
        typed = [str(text) for pair in given.items() if pair[1] is not None for text in pair]
        command = shlex.join([*PROGRAM.split(), *typed, *(["--quick"] if options.quick else [])])
        write_whole(out, markdown(parts, command, options.seed))
    print_page(parts)
    return 0 if all_hold(parts) else 1


if __name__ == "__main__":
    sys.exit(main())
