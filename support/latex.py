"""A table as LaTeX for a paper of two columns: booktabs, notes in smaller type, never wider than the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .table import Table, cell_text
from .text import plain

LATEX_WIDTH = 496.0
"""Points of a table: 7 inches, a page of two columns, less what other fonts need."""

LATEX_COLUMN = 240.0
"""Width of one of its columns: 3.3 inches."""

MOST_NAME = 44
"""Most characters of a name in the first column of a LaTeX table; longer ones are shortened in their middle."""

_LATEX_GAP = 4.0
"""Points on either side of a column (``tabcolsep``)."""

_NARROW_GAP = 2.5
"""The same in a table for one column."""

_LATEX_SIZE, _LATEX_NOTE = 8.0, 7.7
"""Points of a table's text (``footnotesize`` of a 10-point paper) and of its notes (``scriptsize``: 7 points, whose
letters are wider by a tenth)."""

_PARAGRAPH = 76.0
"""Points from which the text of a cell takes several lines."""


def to_latex(table: Table) -> str:
    """A table for a paper of two columns (packages booktabs, and fontspec or inputenc for Unicode).

    Notes stand below their cells in smaller type. A table that is wider than `LATEX_WIDTH` becomes several, each with
    the names of the rows: no column is left out. Of a table for one column the names take several lines.
    """
    if not table.rows:
        return "".join(f"% {plain(line)}\n" for line in (table.caption, *table.legend))
    columns = [_latex_column(table, place) for place in range(len(table.columns))]
    caption = f"{table.caption.rstrip('.')}."
    if table.in_one_column:
        return _PACKAGES + _latex_float(_in_one_column(columns), " ".join((caption, *table.legend)), _NARROW_GAP)
    parts = _latex_parts([column.width for column in columns])
    floats = []
    for number, places in enumerate(parts, 1):
        which = f" (Part {number} of {len(parts)}.)" if len(parts) > 1 else ""
        said = " ".join((f"{caption}{which}", *(table.legend if number == 1 else ())))
        floats.append(_latex_float(_widened([columns[place] for place in places]), said))
    return _PACKAGES + "\n".join(floats)


_PACKAGES = "% needs \\usepackage{booktabs}\n"


@dataclass(frozen=True)
class _LatexColumn:
    """A column of a LaTeX table: points of width, points that its text would like, heading by lines, cells."""

    width: float
    natural: float
    is_numeric: bool
    is_paragraph: bool
    heading: tuple[str, ...]
    cells: tuple[tuple[str, tuple[str, ...]], ...]


def _latex_column(table: Table, place: int) -> _LatexColumn:
    column = table.columns[place]
    cells = tuple((cell_text(row.cells[place], column, minus="−"), row.cells[place].notes) for row in table.rows)
    if place == 0:
        cells = tuple((_in_the_middle(text, MOST_NAME), notes) for text, notes in cells)
    natural = max(
        max(_latex_width(text, _LATEX_SIZE), *(_latex_width(note, _LATEX_NOTE) for note in ("", *notes)))
        for text, notes in cells
    )
    is_paragraph = not column.numeric and place > 0 and natural > _PARAGRAPH
    width = _PARAGRAPH if is_paragraph else natural
    words = plain(column.heading).split()
    width = max(width, *(_latex_width(word, _LATEX_SIZE) for word in words or [""]))
    return _LatexColumn(width, natural, column.numeric, is_paragraph, tuple(_wrapped(words, width)), cells)


def _in_the_middle(text: str, limit: int) -> str:
    kept = limit - 1
    return text if len(text) <= limit else f"{text[: kept // 2]}…{text[len(text) - (kept + 1) // 2 :]}"


def _wrapped(words: Sequence[str], width: float) -> Iterable[str]:
    """Words on lines of a width in points, as many on each as fit."""
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and _latex_width(longer, _LATEX_SIZE) > width:
            yield line
            longer = word
        line = longer
    yield line


def _latex_width(text: str, size: float) -> float:
    """Points of a text in Computer Modern at a size, by classes of characters, rather too many than too few."""
    em = sum(
        0.34 if char in " .,:;'|!()[]ijlt" else 0.9 if char.isupper() or char in "mwMW%&" or char > "ʯ" else 0.56
        for char in text
    )
    return em * size


def _latex_parts(widths: Sequence[float]) -> list[list[int]]:
    """Places of the columns of each part of a table; the first column is in all of them."""
    parts, used = [[0]], widths[0] + 2 * _LATEX_GAP
    for place, width in enumerate(widths[1:], 1):
        if used + width + 2 * _LATEX_GAP > LATEX_WIDTH and len(parts[-1]) > 1:
            parts.append([0])
            used = widths[0] + 2 * _LATEX_GAP
        parts[-1].append(place)
        used += width + 2 * _LATEX_GAP
    return parts


def _widened(columns: Sequence[_LatexColumn]) -> list[_LatexColumn]:
    """Columns whose paragraphs have what is left of the page, the longest text first."""
    left = LATEX_WIDTH - sum(column.width + 2 * _LATEX_GAP for column in columns)
    widened = list(columns)
    for place in sorted(range(len(columns)), key=lambda place: -columns[place].natural):
        column = columns[place]
        if column.is_paragraph and left > 0:
            more = min(left, column.natural - column.width)
            widened[place], left = replace(column, width=column.width + more), left - more
    return widened


def _in_one_column(columns: Sequence[_LatexColumn]) -> list[_LatexColumn]:
    """Columns of which the first has what the others leave of `LATEX_COLUMN`."""
    taken = sum(column.width for column in columns[1:]) + 2 * _NARROW_GAP * len(columns)
    first, left = columns[0], LATEX_COLUMN - taken
    return [first if first.width <= left else replace(first, width=left, is_paragraph=True), *columns[1:]]


def _latex_float(columns: Sequence[_LatexColumn], caption: str, gap: float = _LATEX_GAP) -> str:
    width = sum(column.width + 2 * gap for column in columns)
    name = "table" if width <= LATEX_COLUMN else "table*"
    form = "".join(
        f"p{{{column.width:.0f}pt}}" if column.is_paragraph else "r" if column.is_numeric else "l" for column in columns
    )
    lines = [
        rf"\begin{{{name}}}",
        r"  \centering",
        rf"  \caption{{{latex_text(caption)}}}",
        r"  \footnotesize",
        rf"  \setlength{{\tabcolsep}}{{{gap:g}pt}}",
        rf"  \begin{{tabular}}{{{form}}}",
        r"    \toprule",
        rf"    {' & '.join(map(_latex_heading, columns))} \\",
        r"    \midrule",
        *_latex_rows(columns),
        r"    \bottomrule",
        r"  \end{tabular}",
        rf"\end{{{name}}}",
    ]
    return "\n".join(lines) + "\n"


def _latex_heading(column: _LatexColumn) -> str:
    lines = [latex_text(line) for line in column.heading]
    if len(lines) == 1:
        return lines[0]
    stacked = r" \\ ".join(lines)
    return rf"\shortstack[{'r' if column.is_numeric else 'l'}]{{{stacked}}}"


def _latex_rows(columns: Sequence[_LatexColumn]) -> Iterable[str]:
    """The lines of the rows, each with those of its notes below it; inside its cells, where names take several
    lines."""
    is_stacked = columns[0].is_paragraph
    below = [
        max(len(column.cells[row][1]) * (not column.is_paragraph) for column in columns) * (not is_stacked)
        for row in range(len(columns[0].cells))
    ]
    for row, depth in enumerate(below):
        # A row that begins with [ would be taken for an argument of the preceding line break.
        yield rf"    {{}}{' & '.join(_latex_cell(column, row, is_stacked) for column in columns)} \\"
        for line in range(depth):
            yield rf"    {{}}{' & '.join(_latex_note(column, row, line) for column in columns)} \\"
        if (depth or is_stacked) and row + 1 < len(below):
            yield r"    \addlinespace[2pt]"


def _latex_cell(column: _LatexColumn, row: int, is_stacked: bool) -> str:
    text, notes = column.cells[row]
    if not column.is_paragraph and notes and is_stacked:
        lines = r" \\ ".join((latex_text(text), *(rf"\scriptsize {{}}{latex_text(note)}" for note in notes)))
        return rf"\begin{{tabular}}[t]{{@{{}}{'r' if column.is_numeric else 'l'}@{{}}}}{lines}\end{{tabular}}"
    if not column.is_paragraph:
        return latex_text(text)
    # A paragraph is not justified, and holds its notes.
    longest = min(int(column.width / (0.6 * _LATEX_SIZE)), 30)
    small = "".join(rf" \newline{{\scriptsize {_breakable(note, longest)}}}" for note in notes)
    return rf"\raggedright\let\\\tabularnewline {_breakable(text, longest)}{small}"


def _breakable(text: str, longest: int) -> str:
    """Text whose long names may break after a separator, and after so many characters without one, but no number."""
    parts = re.split(rf"(?<=[/:_.\-])(?=[A-Za-z])|(?<=[^\s/:_.\-]{{{longest}}})(?=\S)", text)
    return r"\allowbreak{}".join(map(latex_text, parts))


def _latex_note(column: _LatexColumn, row: int, line: int) -> str:
    notes = () if column.is_paragraph else column.cells[row][1]
    return rf"{{\scriptsize {latex_text(notes[line])}}}" if line < len(notes) else ""


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": "$-$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "∪": r"$\cup$",
    "²": r"\textsuperscript{2}",
    "†": r"\textdagger{}",
    "–": "--",
    "…": r"\ldots{}",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "′": r"$'$",
    "▲": r"$\bigtriangleup$",
    "▼": r"$\bigtriangledown$",
    "○": r"$\circ$",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def latex_text(text: str) -> str:
    """Text with LaTeX's own characters escaped."""
    return "".join(_LATEX.get(char, char) for char in plain(text))
