"""`report`: one HTML page of results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from . import arguments
from .arguments import Command
from .compare import tell

_DESCRIPTION = """\
Write one HTML file of results: sortable tables, figures, slopes against diversity, the highest- and lowest-scoring
samples to listen to, and how they were computed. It needs no network, opens from disk and stays below 5 MB, if need be
with shorter clips.
"""

_EXAMPLES = """\
  audio-compositionality report results
      report.html, of all results of a folder
  audio-compositionality report results --model whisper-base --figures figures
      with the samples that this model scores highest and lowest on, and every figure as SVG and PNG
  audio-compositionality report results --format latex --out tables.tex
      the tables alone, as `compare` writes them
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_results(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the file; default report.html, of other formats the terminal"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="the model whose highest- and lowest-scoring samples are played; default: all but baselines and "
        "untrained twins",
    )
    parser.add_argument(
        "--format",
        default="html",
        metavar="NAME",
        help="html (default), or the tables alone: text, markdown, latex, csv, json",
    )
    parser.add_argument("--figures", type=Path, metavar="DIR", help="also write every figure there, as SVG and PNG")


def run(options: argparse.Namespace) -> None:
    """Write the page, or the tables alone."""
    arguments.check_results(options.results)
    from audio_compositionality.evaluator.compare.formats import FORMATS

    formats = ("html", *FORMATS)
    if options.format not in formats:
        raise InputError(f"unknown format {options.format!r}; {nearest(options.format, formats)}")
    if options.format != "html":
        if options.model is not None:
            raise InputError("--model chooses samples to listen to, which only the format html has")
        arguments.check_file(options.out)
        from audio_compositionality.evaluator.compare.comparison import compare_results
        from audio_compositionality.evaluator.figures.catalogue import write_figures

        comparisons = compare_results(options.results, data=options.data)
        if options.figures is not None:
            write_figures(comparisons, options.figures, progress=sys.stderr.isatty())
        tell(comparisons, options.format, options.out)
        return
    from audio_compositionality.evaluator.report.page import write_report

    path = write_report(
        options.results,
        options.out or "report.html",
        data=options.data,
        model=options.model,
        figures=options.figures,
        command=options.typed,
        progress=sys.stderr.isatty(),
    )
    print(f"{path} is written: open it in a browser.")


COMMAND = Command(
    summary="one HTML page of results: tables, figures, samples to listen to",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    place=40,
)
