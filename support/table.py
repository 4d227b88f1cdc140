"""A table that can be printed as text, Markdown, CSV and JSON; LaTeX is in `latex`."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from .text import number_text, plain

if TYPE_CHECKING:
    import pandas

MISSING = "–"

PIPED_WIDTH = 100
"""Columns of text output that does not go to a terminal; in a terminal, 80 suffice."""

LEAST_TEXT = 18
"""Least width of a text column in a printed table, if its text is at least as long."""

_FORMULA = tuple("=+-@＝＋－＠")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: its heading; unique in its table.
        meaning: one sentence, for legends and tooltips; empty if the heading suffices.
        numeric: whether it contains numbers, which are aligned to the right.
        digits: decimals; None for whole numbers.
        order: whether the rows are sorted by it, highest first.
    """

    heading: str
    meaning: str = ""
    numeric: bool = True
    digits: int | None = 3
    order: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        value: for sorting, CSV and JSON; None if missing.
        text: the displayed text; by default the value with the column's digits.
        note: smaller text below it, e.g. an interval or a null; may have several lines.
    """

    value: float | bool | str | None
    text: str | None = None
    note: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the lines of the note."""
        return tuple(plain(line) for line in self.note.split("\n") if line)


@dataclass(frozen=True)
class Row:
    """A row of a table: one cell for each column."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: one line that says what the table contains.
        columns: the first one names the rows.
        rows: each with as many cells.
        legend: sentences printed below it.
        name: one word that identifies it among similar tables; empty if there are none.
        in_one_column: whether LaTeX sets it in one column of a two-column paper, where long names are broken.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    legend: tuple[str, ...] = ()
    name: str = ""
    in_one_column: bool = False


def rows_of(values: Iterable[Iterable[float | bool | str | None]]) -> tuple[Row, ...]:
    """Return rows of plain values, one cell each."""
    return tuple(Row(tuple(map(Cell, row))) for row in values)


def cell_text(cell: Cell, column: Column, *, minus: str = "-") -> str:
    """Return the displayed text of a cell, without its note."""
    if cell.text is not None:
        return plain(cell.text)
    if isinstance(cell.value, str):
        return plain(cell.value)
    if isinstance(cell.value, bool):
        return "yes" if cell.value else "no"
    if cell.value is not None and math.isinf(cell.value):
        return "∞" if cell.value > 0 else f"{minus}∞"
    return number_text(cell.value, column.digits or 0, missing=MISSING, minus=minus)


def frame(table: Table) -> pandas.DataFrame:
    """Return the values of a table in full precision, without notes.

    Columns of whole numbers stay whole numbers even if a value is missing; pandas would turn 5 into 5.0.
    """
    import pandas

    columns = [[row.cells[place].value for row in table.rows] for place in range(len(table.columns))]
    kinds = [object if set(map(type, values)) == {int, type(None)} else None for values in columns]
    return pandas.DataFrame(
        {
            column.heading: pandas.Series(values, dtype=kind)
            for column, values, kind in zip(table.columns, columns, kinds, strict=True)
        }
    )


def to_csv(table: Table) -> str:
    """Return a table as CSV; see `frame_to_csv`."""
    return frame_to_csv(frame(table))


def frame_to_csv(values: pandas.DataFrame) -> str:
    """Return a frame as CSV, numbers in full precision, missing values empty; see `csv_text`."""
    columns = [values[name].astype(object).where(values[name].notna(), None).tolist() for name in values.columns]
    return csv_text([list(values.columns), *zip(*columns, strict=True)])


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows of values as CSV (RFC 4180).

    Text is made `plain`; an apostrophe is added if a spreadsheet would run it as a formula, see `defuse`.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([defuse(plain(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return stream.getvalue()


def defuse(text: str) -> str:
    """Return text that no spreadsheet reads as a formula, with an apostrophe added if it begins like one.

    Leading blanks do not protect (OWASP, "CSV injection").
    """
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA) else text


def records(values: pandas.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as JSON values in full precision; None for missing and non-finite values."""

    def finite(value: Any) -> Any:
        return None if value is None or (isinstance(value, float) and not math.isfinite(value)) else value

    columns = {str(name): values[name].astype(object).tolist() for name in values.columns}
    return [dict(zip(columns, map(finite, row), strict=True)) for row in zip(*columns.values(), strict=True)]


def to_json(tables: Sequence[Table]) -> str:
    """Return JSON: the name, caption, column meanings, and rows by heading of each table."""
    values = [
        {
            "name": table.name,
            "caption": table.caption,
            "columns": {column.heading: column.meaning for column in table.columns},
            "rows": records(frame(table)),
        }
        for table in tables
    ]
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_markdown(table: Table) -> str:
    """Return a Markdown table below its caption; notes follow their cells."""
    lines = [f"**{_markdown(table.caption)}**", ""]
    if table.rows:
        head = " | ".join(_markdown(column.heading) for column in table.columns)
        rule = "|".join("--:" if column.numeric else ":--" for column in table.columns)
        lines += [f"| {head} |", f"|{rule}|"]
        for row in table.rows:
            pairs = zip(row.cells, table.columns, strict=True)
            texts = [" ".join((cell_text(cell, column, minus="−"), *cell.notes)) for cell, column in pairs]
            lines.append(f"| {' | '.join(map(_markdown, texts))} |")
        lines.append("")
    return "\n".join([*lines, *(f"{_markdown(sentence)}\n" for sentence in table.legend)])


def _markdown(text: str) -> str:
    return "".join(f"\\{char}" if char in r"\`*_{}[]<>|#~$&!" else char for char in plain(text))


def to_text(table: Table, width: int = PIPED_WIDTH) -> str:
    """Return a table as plain text of at most `width` columns, as `print_table` prints it."""
    stream = io.StringIO()
    print_table(table, width, file=stream)
    return stream.getvalue()


def print_wrapped(text: str) -> None:
    """Print text wrapped to the width of tables; continued lines are indented by two more columns."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_WIDTH
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        print(textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def print_table(table: Table, width: int | None = None, *, file: IO[str] | None = None) -> None:
    """Print a table with notes below the cells, the legend below the table, and an empty line.

    A table that is too wide is printed in parts, each with the row names: no column is omitted and no number broken.

    Args:
        table: the table.
        width: columns of text; by default the terminal's width, or `PIPED_WIDTH` without a terminal.
        file: where to print; by default the standard output.
    """
    from rich.console import Console
    from rich.text import Text

    in_terminal = file is None and sys.stdout.isatty()
    console = Console(width=width if width or in_terminal else PIPED_WIDTH, highlight=False, file=file)
    console.print(Text(plain(table.caption), style="bold"))
    cells = [
        ["\n".join((cell_text(c, k, minus="−"), *c.notes)) for c, k in zip(row.cells, table.columns, strict=True)]
        for row in table.rows
    ]
    for places in _parts(table.columns, cells, console.width) if cells else ():
        columns, texts = [table.columns[k] for k in places], [[row[k] for k in places] for row in cells]
        widths = _widths(columns, texts, console.width)
        # A number that does not fit on its line is printed nevertheless.
        asked, console.width = console.width, max(console.width, sum(widths) + len(widths) - 1 + _EDGES)
        console.print(_grid(columns, widths, texts))
        console.width = asked
    for sentence in table.legend:
        console.print(Text(plain(sentence), style="dim"))
    console.print()


def _least_width(column: Column, cells: Sequence[str]) -> int:
    """Return the least readable width of a column: numbers and words of the heading are not broken, but text is."""
    widest = _widest(cells)
    words = [*map(_width, plain(column.heading).split())]
    return max([widest if column.numeric else min(widest, LEAST_TEXT), *words])


def _widest(cells: Sequence[str]) -> int:
    return max((_width(line) for cell in cells for line in cell.split("\n")), default=1)


def _width(text: str) -> int:
    """Return the width of a text in columns: some characters take two, some none."""
    from rich.cells import cell_len

    return cell_len(text)


_EDGES = 2
"""Columns of text at the left and right of a table; there is one between two columns."""


def _parts(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """Return the indices of the columns in each part of a table; the first column is in every part."""
    least = [_least_width(column, [row[place] for row in cells]) for place, column in enumerate(columns)]
    parts, used = [[0]], _EDGES + least[0]
    for place, needed in enumerate(least[1:], 1):
        if used + 1 + needed > width and len(parts[-1]) > 1:
            parts.append([0])
            used = _EDGES + least[0]
        parts[-1].append(place)
        used += 1 + needed
    return parts


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the width of each column: at least its least width; the rest goes to their longest words, then to all
    their text. If even two columns do not fit, the first is narrowed if it is text."""
    by_column = [[row[place] for row in cells] for place in range(len(columns))]
    widths = [_least_width(column, texts) for column, texts in zip(columns, by_column, strict=True)]
    left = width - _EDGES - (len(columns) - 1) - sum(widths)
    if left < 0 and not columns[0].numeric:
        widths[0] = max(widths[0] + left, min(widths[0], LEAST_TEXT // 2))
    words = [max((_width(word) for text in texts for word in text.split()), default=0) for texts in by_column]
    lines = [max(_widest(texts), _width(plain(k.heading))) for k, texts in zip(columns, by_column, strict=True)]
    for useful in (words, lines):
        for _ in range(left):
            place = max(range(len(widths)), key=lambda k: useful[k] - widths[k])
            if useful[place] <= widths[place]:
                break
            widths[place] += 1
            left -= 1
    return widths


def _grid(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Sequence[str]]) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        justify: Any = "right" if column.numeric else "left"
        heading = Text(plain(column.heading))
        # Where space is short, some of rich's own widths, which follow the text, are below the least width.
        grid.add_column(heading, justify=justify, overflow="fold", vertical="top", width=width)
    for row in cells:
        grid.add_row(*map(Text, row))
    return grid
