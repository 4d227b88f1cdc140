"""`captions`: the vocabulary of captions, their nouns and parts of speech."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import Column, Table, print_table, rows_of

from . import arguments, data_options
from .arguments import Command, data_groups, divided

NOUNS = 15
"""Default number of nouns in their table."""

_EXAMPLES = """\
  audio-compositionality captions --data full
      the captions of our own items and training rows
  audio-compositionality captions --data compa:archives
      captions of your copy of the published benchmark
  audio-compositionality captions clotho_captions_development.csv
      captions of a table with the columns caption, captions or caption_1, caption_2 ..., or of a text file, one a line
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="captions: a CSV or TSV, or a text file with one caption per line",
    )
    data_options.add_data(parser)
    data_options.add_skip_invalid(parser)
    parser.add_argument(
        "--nouns",
        type=arguments.whole("--nouns"),
        default=NOUNS,
        metavar="N",
        help=f"number of nouns to list; default {NOUNS}",
    )


def run(options: argparse.Namespace) -> None:
    """Print three tables: counts, parts of speech, and the most frequent nouns."""
    from audio_compositionality.dataset_builder.texts.caption_reading import open_tagger, word_statistics

    given = next((name for name in ("data", "preset", "set") if getattr(options, name)), None)
    if options.files and given is not None:
        raise InputError(f"captions are read from {options.files[0]} or from data (--{given}); give one of both")
    tag = open_tagger()
    counted = {source: word_statistics(captions, tag) for source, captions in _captions(options)}
    if not counted:
        raise InputError("the data have no captions")
    source = Column("source", numeric=False)
    columns = (
        source,
        Column("captions", digits=None),
        Column("distinct", "distinct captions", digits=None),
        Column("words", "without punctuation", digits=None),
        Column("vocabulary", "distinct words, ignoring case", digits=None),
        Column("words each", "mean per caption", digits=2),
        Column("nouns each", "mean per caption", digits=2),
    )
    rows = rows_of(
        (name, one.captions, one.different, one.words, one.vocabulary, one.words_per_caption, one.nouns_per_caption)
        for name, one in counted.items()
    )
    print_table(Table("Words of captions", columns, rows, (), "captions"))
    kinds = rows_of(
        (name, kind, words, words / one.words) for name, one in counted.items() for kind, words in one.classes.items()
    )
    words = (Column("words", digits=None), Column("share", "of all words"))
    legend = "By TextBlob's English tagger, whose lexicon errs now and then."
    of_kinds = (source, Column("part of speech", numeric=False), *words)
    print_table(Table("Parts of speech", of_kinds, kinds, (legend,), "parts-of-speech"))
    nouns = rows_of(
        (name, noun, times, times / one.captions)
        for name, one in counted.items()
        for noun, times in list(one.nouns.items())[: options.nouns]
    )
    counts = (Column("count", "occurrences", digits=None), Column("per caption", "occurrences per caption"))
    of_nouns = (source, Column("noun", numeric=False), *counts)
    print_table(Table("The most frequent nouns", of_nouns, nouns, (), "nouns"))


def _captions(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """The captions of each file, or of each configuration of the data that has some."""
    if options.files:
        from audio_compositionality.dataset_builder.sounds.published.compa import read_captions

        for path in options.files:
            yield str(path), read_captions(path)
        return
    from audio_compositionality.dataset_builder.recipes import load_recipe
    from audio_compositionality.dataset_builder.rendered import opened_preset

    spec = data_options.data_spec(options)
    reading = spec.reading
    recipes = None
    if reading.kind == "preset":
        # Those with captions, including recipes for training alone.
        settings = opened_preset(reading.source).settings
        recipes = [name for name, of in settings.items() if "captions" in load_recipe(name).features(of)]
    _, changes = divided(options.set, data_groups(spec, recipes))
    opened = data_options.open_with_notes(options, spec, changes, recipes)
    data_options.note_left_out(opened.left_out)
    for recipe in opened.data.recipes:
        rows = opened.data.configuration(recipe).rows
        captions = [caption for row in rows for caption in row.get("captions") or ()]
        if captions:
            yield recipe, captions


COMMAND = Command(
    summary="count the nouns and other parts of speech in captions",
    description="Count the words of captions by their parts of speech, and list the most frequent nouns: of our own "
    "data,\nof recordings that have captions, of a published benchmark, or of tables.",
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    place=85,
)
