"""The table of the leaderboard: its columns, what is left after filtering, and the same as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audio_compositionality.evaluator.compare.table import TITLES, plain

from .entries import Entry, Shown

Value = str | float | int | None

LONGEST = 80
"""Characters of a stranger's text in a cell, an option or a line of a list."""

NOT_STATED = "not stated"
"""In place of a paradigm or licence that a result does not state."""

NOT_KNOWN = "not known"
"""In place of a submitter that is not known; no user of the Hub has a name with a blank."""

CONTROLS: Mapping[str, Mapping[str, str]] = {
    "a_coat": {
        "null": "null",
        "matched": "matched_null",
        "adjusted": "adjusted",
        "centred": "centred",
        "top-1": "top1",
    },
    "a_tre": {
        "seed sd": "seed_std",
        "constant": "constant",
        "gain": "gain",
        "centred": "a_tre_centred",
        "ridge R²": "ridge_r2",
        "ridge R² null": "ridge_r2_null",
        "top-1": "top1",
    },
}
"""Of each task, the controls in the table: heading -> the metric's name. They are those of `audio-compositionality
evaluate`, a number a column."""

SORTED_BY: Mapping[str, str] = {"a_coat": TITLES["a_coat"], "a_tre": "centred"}
"""Heading of the column that sorts a task's table at first. A raw A-TRE can be had by adding a constant to all
embeddings; the centred one cannot."""


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        heading: unique.
        value: of a row.
        digits: decimals that are shown; None for text.
        width: in pixels.
    """

    heading: str
    value: Callable[[Shown], Value]
    digits: int | None = None
    width: int = 92

    def shown(self, value: Any) -> str:
        """A value as text, an en dash for one that is missing."""
        if value is None or value != value:
            return "–"
        if self.digits is None:
            return shortened(value)
        return f"{value:z,.{self.digits}f}" if abs(value) < 1e12 else f"{value:.3g}"


def columns(task: str) -> tuple[Column, ...]:
    """The columns of a task's table. The last names the entry, by which a row is recognised when it is clicked."""
    controls = (
        Column(heading, _control(name), 4 if heading == "seed sd" else 3, 130 if "null" in heading[1:] else 92)
        for heading, name in CONTROLS[task].items()
    )
    return (
        Column("encoder", lambda row: row.entry.result.encoder_id, width=200),
        Column("status", lambda row: row.entry.status, width=88),
        Column("submitted by", lambda row: row.entry.submitter or NOT_KNOWN, width=130),
        Column(TITLES[task], lambda row: row.entry.result.score, 3),
        Column("95 % low", lambda row: row.entry.interval and row.entry.interval[0], 3),
        Column("95 % high", lambda row: row.entry.interval and row.entry.interval[1], 3, 100),
        Column("interval", lambda row: row.entry.interval_kind, width=116),
        *controls,
        Column("dim", lambda row: row.entry.result.output_dim, 0, 76),
        Column("parameters", lambda row: row.entry.result.parameters, 0, 124),
        Column("paradigm", lambda row: row.entry.result.paradigm or NOT_STATED, width=140),
        Column("licence", lambda row: row.entry.result.licence or NOT_STATED, width=130),
        Column("date", lambda row: row.entry.result.date[:10], width=104),
        Column("notes", lambda row: ", ".join(notes(row.entry)), width=220),
        Column("entries", lambda row: row.count, 0, 76),
        Column("entry", lambda row: row.entry.id, width=210),
    )


def _control(name: str) -> Callable[[Shown], Value]:
    def value(row: Shown) -> Value:
        found = row.entry.result.controls.get(name)
        # A reported result can have anything of JSON's numbers here.
        return None if found is None else float(found)

    return value


def notes(entry: Entry) -> list[str]:
    """What has to be said of an entry beside its numbers."""
    result = entry.result
    options = result.options
    found = []
    if result.controls.get("collapsed"):
        found.append("predictions hardly vary")
    if options["layer"] is not None:
        found.append(f"layer {options['layer']}")
    if options["pooling"] is not None:
        found.append(f"pooling {shortened(options['pooling'], 20)}")
    if options["precision"] != "float32":
        found.append(shortened(options["precision"], 20))
    if result.skipped:
        found.append(f"{len(result.skipped):,} clips left out")
    return found


@dataclass(frozen=True)
class Filters:
    """What rows are to be left.

    Attributes:
        search: words that a row must all have in its encoder's id, revision, paradigm or licence or in its submitter's
            name, whatever their case.
        statuses: the statuses to keep; empty for all.
        paradigms: likewise.
        licences: likewise.
    """

    search: str = ""
    statuses: frozenset[str] = frozenset()
    paradigms: frozenset[str] = frozenset()
    licences: frozenset[str] = frozenset()

    def keep(self, row: Shown) -> bool:
        """Whether a row is left."""
        result = row.entry.result
        paradigm, licence = result.paradigm or NOT_STATED, result.licence or NOT_STATED
        submitter = row.entry.submitter or NOT_KNOWN
        text = "\n".join((result.encoder_id, result.encoder_revision, paradigm, licence, submitter)).casefold()
        return (
            all(word in text for word in self.search.casefold().split())
            and (not self.statuses or row.entry.status in self.statuses)
            and (not self.paradigms or shortened(paradigm) in self.paradigms)
            and (not self.licences or shortened(licence) in self.licences)
        )


def ordered(rows: Iterable[Shown], column: Column, *, ascending: bool = False) -> list[Shown]:
    """Rows by a column, those without a value last; equal ones by encoder and entry."""
    fixed = sorted(rows, key=lambda row: (row.entry.result.encoder_id.casefold(), row.entry.id))
    known = [row for row in fixed if column.value(row) is not None]
    missing = [row for row in fixed if column.value(row) is None]

    def key(row: Shown) -> Any:
        value = column.value(row)
        return value.casefold() if isinstance(value, str) else value

    return sorted(known, key=key, reverse=not ascending) + missing


def choices(rows: Iterable[Shown], name: str) -> list[str]:
    """The values of ``paradigm`` or ``licence`` among rows, as they are shown."""
    return sorted({shortened(getattr(row.entry.result, name) or NOT_STATED) for row in rows}, key=str.casefold)


def shortened(text: str, limit: int = LONGEST) -> str:
    """A stranger's text on one line, without characters that are not seen, cut to a length."""
    seen = plain(text[: 4 * limit])
    return seen if len(text) == len(seen) <= limit else f"{seen[: limit - 1]}…"


def write_csv(task: str, rows: Sequence[Shown], commit: str) -> str:
    """Rows as CSV (RFC 4180, UTF-8), numbers in full precision, with what tells one entry from another.

    Text that a spreadsheet would run as a formula has an apostrophe before it, see `defused`.

    Args:
        task: of the rows.
        rows: in this order.
        commit: of the results repository that they were read from.
    """
    stream = io.StringIO()
    writer = csv.writer(stream)
    shown = columns(task)
    more: dict[str, Callable[[Shown], Value]] = {
        "n": lambda row: row.entry.result.n,
        "revision": lambda row: row.entry.result.encoder_revision,
        "layer": lambda row: row.entry.result.options["layer"],
        "pooling": lambda row: row.entry.result.options["pooling"],
        "precision": lambda row: row.entry.result.options["precision"],
        "fingerprint": lambda row: row.entry.result.fingerprint,
        "folder": lambda row: row.entry.folder,
        "commit": lambda row: commit,
    }
    writer.writerow([column.heading for column in shown] + list(more))
    for row in rows:
        values = [column.value(row) for column in shown] + [value(row) for value in more.values()]
        writer.writerow([defused(plain(value)) if isinstance(value, str) else value for value in values])
    return stream.getvalue()


_FORMULA = tuple("=+-@＝＋－＠")


def defused(text: str) -> str:
    """Text that no spreadsheet takes for a formula: with an apostrophe where it begins like one, also after blanks
    (OWASP, "CSV injection")."""
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA) else text
