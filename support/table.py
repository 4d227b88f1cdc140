"""One table, as text for a terminal, Markdown, LaTeX, CSV and JSON: what is shown once is described once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .text import number_text, plain

if TYPE_CHECKING:
    import pandas

MISSING = "–"

PIPED_WIDTH = 100
"""Columns of text output where it does not go to a terminal; in a terminal, 80 suffice."""

_FORMULA = tuple("=+-@＝＋－＠")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: what stands above it; unique in its table.
        meaning: one sentence, for legends and for explanations on hover; empty where the heading says it.
        numeric: whether it holds numbers, which are set to the right.
        digits: decimals that are shown; None for whole numbers.
    """

    heading: str
    meaning: str = ""
    numeric: bool = True
    digits: int | None = 3


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        value: what it is sorted by and what CSV and JSON have; None where it is missing.
        text: what people see; by default made of the value, with the column's digits.
        note: what is said smaller below it: an interval, a null.
    """

    value: float | str | None
    text: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table: a cell a column."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: what it shows, one line.
        columns: the first one names the rows.
        rows: each with as many cells.
        legend: sentences below it.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    legend: tuple[str, ...] = ()


def cell_text(cell: Cell, column: Column, *, minus: str = "-") -> str:
    """What people see of a cell, without its note."""
    if cell.text is not None:
        return plain(cell.text)
    if isinstance(cell.value, str):
        return plain(cell.value)
    return number_text(cell.value, column.digits or 0, missing=MISSING, minus=minus)


def frame(table: Table) -> pandas.DataFrame:
    """The values of a table in full precision, a column a column; notes are left out."""
    import pandas

    columns = [[row.cells[place].value for row in table.rows] for place in range(len(table.columns))]
    return pandas.DataFrame(dict(zip((column.heading for column in table.columns), columns, strict=True)))


def to_csv(table: Table) -> str:
    """CSV (RFC 4180), numbers in full precision; text that a spreadsheet would run as a formula has an apostrophe."""
    defused = frame(table).map(lambda value: defuse(plain(value)) if isinstance(value, str) else value)
    return str(defused.to_csv(index=False))


def defuse(text: str) -> str:
    """Text that no spreadsheet takes for a formula: with an apostrophe where it begins like one, also after blanks
    (OWASP, "CSV injection")."""
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA) else text


def to_json(tables: Sequence[Table]) -> str:
    """JSON: for each table its caption, the meanings of its columns, and its rows by heading."""
    values = [
        {
            "caption": table.caption,
            "columns": {column.heading: column.meaning for column in table.columns},
            "rows": json.loads(frame(table).to_json(orient="records", double_precision=15)),
        }
        for table in tables
    ]
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def to_markdown(table: Table) -> str:
    """A Markdown table under its caption; notes stand behind the cells."""
    head = " | ".join(_markdown(column.heading) for column in table.columns)
    rule = "|".join("--:" if column.numeric else ":--" for column in table.columns)
    lines = [f"**{_markdown(table.caption)}**", "", f"| {head} |", f"|{rule}|"]
    for row in table.rows:
        lines.append(f"| {' | '.join(_markdown(text) for text in _texts(row, table))} |")
    return "\n".join([*lines, "", *(f"{_markdown(sentence)}" for sentence in table.legend), ""])


def _markdown(text: str) -> str:
    return "".join(f"\\{char}" if char in r"\`*_[]<>|&" else char for char in text)


def to_latex(table: Table) -> str:
    """A LaTeX table (packages booktabs, and fontspec or inputenc for Unicode), notes behind the cells."""
    form = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        rf"\caption{{{latex_text(table.caption)}}}",
        rf"\begin{{tabular}}{{{form}}}",
        r"\toprule",
        " & ".join(latex_text(column.heading) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(latex_text(text) for text in _texts(row, table)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "±": r"$\pm$",
    "²": "$^2$",
    "–": "--",
    "…": r"\ldots{}",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def latex_text(text: str) -> str:
    """Text with LaTeX's own characters escaped."""
    return "".join(_LATEX.get(char, char) for char in text)


def _texts(row: Row, table: Table) -> list[str]:
    pairs = zip(row.cells, table.columns, strict=True)
    return [f"{cell_text(cell, column, minus='−')} {plain(cell.note)}".rstrip() for cell, column in pairs]


def print_table(table: Table, width: int | None = None) -> None:
    """Print a table to the terminal, its notes below the cells and its legend below the table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else (width or PIPED_WIDTH), highlight=False)
    title = Text(table.caption, style="bold")
    grid = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in table.columns:
        justify: Any = "right" if column.numeric else "left"
        grid.add_column(Text(column.heading), justify=justify, overflow="fold")
    for row in table.rows:
        pairs = zip(row.cells, table.columns, strict=True)
        grid.add_row(*(Text("\n".join(filter(None, (cell_text(c, k), plain(c.note))))) for c, k in pairs))
    console.print(grid)
    for sentence in table.legend:
        console.print(Text(sentence), style="dim")
