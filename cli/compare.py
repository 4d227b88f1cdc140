"""`compare`: tables of several results with their differences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import PIPED_WIDTH

from . import arguments
from .arguments import Command

if TYPE_CHECKING:
    from audio_compositionality.evaluator.compare.comparison import Comparison

_DESCRIPTION = """\
Compare results on the same data, sample by sample. For each task, and for every measure that is a mean over samples:

  intervals   95 %, BCa bootstrap over clusters of samples that are not independent
  groups      models that share a letter do not differ significantly
  tests       paired t-tests of every two models, p adjusted by Benjamini and Hochberg, with effect sizes d_z
  slopes      of the score against the diversity of the samples, overall and for a fixed number of sources
"""

_EXAMPLES = """\
  audio-compositionality compare results
      all results of a folder
  audio-compositionality compare results others/whisper-large-v3 --format latex --out table.tex
      with results from elsewhere, as LaTeX tables (booktabs)
  audio-compositionality compare results --format latex --table summary
      a table for a paper: the main score of each task, with its interval
  audio-compositionality compare results --figure results.pdf
      also write a figure for a paper's column
  audio-compositionality compare results --table layers
      scores by layer, of models that were evaluated with --layer 0,2,4 or --layer all
  audio-compositionality compare results --format csv
      one tidy table with every mean, control, difference, slope and group mean, for pandas or R
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    arguments.add_results(parser)
    parser.add_argument(
        "--format", default="text", metavar="NAME", help="text (default), or for papers markdown, latex, csv or json"
    )
    parser.add_argument(
        "--table",
        metavar="NAME",
        help="print only this table: summary (the main score of each task), verdicts, layers (models scored at several "
        "layers), sizes (models by number of parameters), or a table of one task such as TASK-short or TASK-scores; a "
        "wrong name lists all",
    )
    parser.add_argument(
        "--training-captions",
        type=Path,
        metavar="FILE",
        help="captions that models were trained on (a CSV or TSV file with a column caption, or one caption per line): "
        "also print scores by how often these captions name the sounds of a sample; its rarest sound counts",
    )
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="also write a figure of models by tasks with verdicts and intervals, as wide as a paper's column: .pdf, "
        ".svg or .png",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to this file instead of the terminal")


def run(options: argparse.Namespace) -> None:
    """Compare the results, and print or write the tables."""
    arguments.check_results(options.results)
    from audio_compositionality.evaluator.compare.comparison import compare_results
    from audio_compositionality.evaluator.compare.formats import check_table_format

    check_table_format(options.format)
    arguments.check_file(options.out)
    arguments.check_file(options.figure)
    if options.figure is not None:
        from audio_compositionality.evaluator.figures.summary import form_of

        form_of(options.figure)
    captions = None
    if options.training_captions is not None:
        from audio_compositionality.dataset_builder.sounds.published.compa import read_captions

        captions = read_captions(options.training_captions)
    comparisons = compare_results(options.results, data=options.data)
    if captions is not None:
        from audio_compositionality.evaluator.compare.diversity import with_training_captions

        comparisons = [with_training_captions(comparison, captions) for comparison in comparisons]
    tell(comparisons, options.format, options.out, options.table)
    if options.figure is not None:
        from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
        from audio_compositionality.evaluator.figures.summary import write_summary

        write_summary(verdicts_of(comparisons), options.figure)
        print(f"{options.figure} is written.", file=sys.stderr)


def tell(comparisons: Sequence[Comparison], form: str, out: Path | None, table: str | None = None) -> None:
    """Print comparisons, or one table of them, or write them to a file."""
    from audio_compositionality.evaluator.compare.formats import write_comparisons, write_table

    width = get_terminal_size().columns if out is None and sys.stdout.isatty() else PIPED_WIDTH
    if table is None:
        text = write_comparisons(comparisons, form, width)
    else:
        text = write_table(comparisons, form, table, width)
    if out is None:
        print(text, end="")
    else:
        write_whole(out, text)
        print(f"{out} is written.")


COMMAND = Command(
    summary="compare results: intervals, paired tests, slopes against diversity",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    place=30,
)
