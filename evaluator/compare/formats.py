"""Comparisons as text: all tables or one by its name, for the terminal, for papers and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.latex import to_latex
from audio_compositionality.support.table import (
    PIPED_WIDTH,
    Table,
    frame_to_csv,
    records,
    to_csv,
    to_json,
    to_markdown,
    to_text,
)
from audio_compositionality.support.text import MOST_NAMED, nearest

from .comparison import Comparison
from .gain import answerable_table, gain_table, paper_table
from .model_verdicts import Verdicts, verdicts_of
from .perception import perception_tables
from .rows import tidy_frame
from .summary import layer_table, short_table, size_table, summary_table, verdict_tables
from .tables import diversity_tables, pair_table, score_table


def named_tables(comparisons: Sequence[Comparison], name: str) -> list[Table]:
    """The tables of a name: one a comparison, or one of all.

    Raises:
        InputError: there is no such table; the error says which there are.
    """
    layers, sizes = layer_table(comparisons), size_table(comparisons)
    # Tables of series of results, and why there may be none.
    for series, table, why in (
        ("layers", layers, "no model has results of several layers; --layer 0,2,4 or --layer all makes them"),
        ("sizes", sizes, "no two trained models differ in number of parameters"),
    ):
        if name == series and table is None:
            raise InputError(f"there is no table {name!r} of these results: {why}")
    tables = [*paper_tables(verdicts_of(comparisons)), layers, sizes]
    for comparison in comparisons:
        tables += [short_table(comparison), *comparison_tables(comparison)]
        tables += [paper_table(comparison), answerable_table(comparison)]
    found = [table for table in tables if table is not None]
    named = [table for table in found if table.name == name]
    if not named:
        names = list(dict.fromkeys(table.name for table in found))
        unread = any(comparison.samples is None for comparison in comparisons)
        rest = "; those that need the data are made with --data alone" if unread else ""
        every = "; --format json states the names of all" if len(names) > MOST_NAMED else ""
        raise InputError(f"there is no table {name!r}; {nearest(name, names)}{every}{rest}")
    return named


FORMATS = ("text", "markdown", "latex", "csv", "json")

REST = "{} are in the other formats (--format markdown, latex, csv, json) and in `audio-compositionality report`."
"""Pointer to the tables that the terminal leaves out, if there are any."""


def paper_tables(verdicts: Verdicts) -> list[Table]:
    """The tables of all tasks: the scores to trust, then the verdicts."""
    return [summary_table(verdicts), *verdict_tables(verdicts)]


def comparison_tables(comparison: Comparison, *, brief: bool = False) -> list[Table]:
    """The tables of a comparison; `brief` leaves out slopes by single attributes and means of groups."""
    pairs = (pair_table(comparison, view) for view in comparison.recommended)
    changes = diversity_tables(comparison, brief=brief)
    gained = filter(None, (gain_table(comparison),))
    return [score_table(comparison), *gained, *pairs, *changes, *perception_tables(comparison)]


def check_table_format(format: str) -> None:
    """Refuse an unknown format with InputError."""
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; {nearest(format, FORMATS)}")


def write_table(comparisons: Sequence[Comparison], format: str, name: str, width: int = PIPED_WIDTH) -> str:
    """One table of comparisons, by its name, as text in one of `FORMATS`.

    Raises:
        InputError: unknown format, or no table of that name.
    """
    check_table_format(format)
    tables = named_tables(comparisons, name)
    if format == "json":
        return to_json(tables)
    if format == "text":
        return "".join(to_text(table, width) for table in tables)
    return "\n".join(map({"csv": to_csv, "markdown": to_markdown, "latex": to_latex}[format], tables))


def write_comparisons(comparisons: Sequence[Comparison], format: str, width: int = PIPED_WIDTH) -> str:
    """Comparisons as text in one of `FORMATS`.

    ``text`` is the terminal's format, `width` columns wide, and ends with the verdicts; ``markdown`` and ``latex``
    begin with the tables of all tasks (`paper_tables`). ``csv`` is `tidy_frame` of all comparisons; ``json`` holds the
    same rows by comparison, with its data, notes and verdicts. These two have full precision; an infinite t or effect
    size, with p = 0, is ``inf`` in CSV and null in JSON.

    Raises:
        InputError: unknown format.
    """
    check_table_format(format)
    if format == "csv":
        return frame_to_csv(tidy_frame(comparisons))
    verdicts = verdicts_of(comparisons)
    if format == "json":
        values, shared, of_verdicts = [], ("task", "task_version", "fingerprint", "rows_digest"), verdicts.records()
        for comparison in comparisons:
            data = (comparison.fingerprint, comparison.rows_digest)
            identity = (comparison.info.name, comparison.version, *data)
            rows = records(tidy_frame([comparison]).drop(columns=list(shared)))
            value = {
                **dict(zip(shared, identity, strict=True)),
                "dataset": comparison.dataset,
                "n": len(comparison.ids),
                "notes": [*([comparison.missing] if comparison.missing else []), *comparison.notes],
                "models": {
                    one.label: {"id": one.result.model.id, "revision": one.result.model.revision, "n": one.result.n}
                    for one in comparison.results
                },
                "verdicts": [
                    one
                    for one in of_verdicts
                    if (one["task"], one["data"], one["rows_digest"]) == (comparison.info.name, *data)
                ],
                "rows": [{name: value for name, value in row.items() if value is not None} for row in rows],
            }
            values.append(value)
        return json.dumps(values, indent=1, allow_nan=False) + "\n"
    brief = format == "text"
    tables = [table for comparison in comparisons for table in comparison_tables(comparison, brief=brief)]
    if not brief:
        tables = [*paper_tables(verdicts), *tables]
        return "\n".join(map(to_markdown if format == "markdown" else to_latex, tables))
    warnings = dict.fromkeys(comparison.info.warning for comparison in comparisons)
    # The tables that a brief `comparison_tables` leaves out.
    described = [one.samples for one in comparisons if one.recommended and one.samples is not None]
    names = ["slopes by attribute"] if any(len(samples.diversity) > 1 for samples in described) else []
    names += ["means by group"] if any(samples.groups for samples in described) else []
    rest = [REST.format(" and ".join(names).capitalize())] if names else []
    parts = ["".join(to_text(table, width) for table in tables), *warnings, *rest, "", verdicts.details, ""]
    return "\n".join(parts)
