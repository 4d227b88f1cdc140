"""`models`: the named models."""

from __future__ import annotations

import argparse

from audio_compositionality.support.table import Column, Table, print_table, rows_of

from .arguments import Command

_LEGEND = (
    "Also: NAME=PATH, its weights from a local file or folder; the Hub id or folder of any transformers audio model; "
    "path/to/file.py:ClassName, a class of your own; hear:MODULE, xares:FILE.py:CLASS, mteb:NAME, encoders of other "
    "suites; twins of a model: {twins}; and controls, any model with another input: {controls}."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""


def run(options: argparse.Namespace) -> None:
    """Print the facts about the models, as a table."""
    from audio_compositionality.encoders.controls import CONTROLS
    from audio_compositionality.encoders.loading.names import list_models
    from audio_compositionality.encoders.loading.twins import TWINS

    headings = ("paradigm", "licence of the weights", "weights from", "what it is")
    columns = (
        Column("name", numeric=False),
        Column("dim", "length of an embedding", digits=None),
        Column("rate (Hz)", "sample rate of the model", digits=None),
        Column("gives", "embeddings of sound, and of text in the same space; answers to questions", numeric=False),
        *(Column(heading, numeric=False) for heading in headings),
    )
    rows = []
    for one in list_models():
        words = (word or None for word in (one.paradigm, one.licence, one.weights, one.description))
        rows.append((one.name, one.output_dim, one.sample_rate, one.gives, *words))
    twins = "; ".join(f"{kind.prefix}MODEL, {kind.meaning}" for kind in TWINS.values())
    controls = "; ".join(f"{kind.prefix}MODEL, {kind.meaning}" for kind in CONTROLS.values())
    legend = _LEGEND.format(twins=twins, controls=controls)
    print_table(Table("Named models", columns, rows_of(rows), (legend,)), width=170)


COMMAND = Command(
    summary="list the named models",
    description="List the named models, and the forms of other names.",
    add_arguments=add_arguments,
    run=run,
    place=16,
)
