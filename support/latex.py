"""Tables as LaTeX for a paper: booktabs, notes in smaller type, scaled down if wider than the page."""

from __future__ import annotations

from .table import Table, cell_text
from .text import plain

MOST_NAME = 44
"""Most characters of a name in the first column of a LaTeX table; longer names are shortened in the middle."""

MOST_CAPTION = 40
"""Most words of a caption."""

MOST_NARROW = 4
"""Most columns of a table that fits into one column of the page."""

_PACKAGES = "% needs \\usepackage{booktabs,adjustbox}\n"


def to_latex(table: Table) -> str:
    """Return a table for a two-column paper (needs adjustbox, booktabs, and fontspec or inputenc for Unicode).

    The caption includes the legend up to `MOST_CAPTION` words; the rest follows as comments. Notes are printed below
    their cells in smaller type. A table is at most as wide as the text or, see `Table.in_one_column`, as one column.
    """
    if not table.rows:
        return "".join(f"% {plain(line)}\n" for line in (table.caption, *table.legend))
    caption = table.caption if table.caption.endswith("?") else table.caption.rstrip(".") + "."
    rest = [*table.legend]
    while rest and len(f"{caption} {rest[0]}".split()) <= MOST_CAPTION:
        caption += f" {rest.pop(0)}"
    name = "table" if table.in_one_column or len(table.columns) <= MOST_NARROW else "table*"
    form = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        rf"\begin{{{name}}}",
        r"  \centering",
        rf"  \caption{{{latex_text(caption)}}}",
        r"  \footnotesize",
        r"  \begin{adjustbox}{max width=\linewidth}",
        rf"  \begin{{tabular}}{{{form}}}",
        r"    \toprule",
        rf"    {' & '.join(latex_text(column.heading) for column in table.columns)} \\",
        r"    \midrule",
    ]
    for row in table.rows:
        texts = [cell_text(cell, column, minus="−") for cell, column in zip(row.cells, table.columns, strict=True)]
        texts[0] = _in_the_middle(texts[0], MOST_NAME)
        depth = max(len(cell.notes) for cell in row.cells)
        # LaTeX would read a [ at the start of a row as an argument of the preceding line break.
        lines.append(rf"    {{}}{' & '.join(map(latex_text, texts))} \\")
        for place in range(depth):
            notes = [
                rf"{{\scriptsize {latex_text(cell.notes[place])}}}" if place < len(cell.notes) else ""
                for cell in row.cells
            ]
            lines.append(rf"    {{}}{' & '.join(notes)} \\")
    lines += [r"    \bottomrule", r"  \end{tabular}", r"  \end{adjustbox}", rf"\end{{{name}}}"]
    return _PACKAGES + "".join(f"% {plain(line)}\n" for line in rest) + "\n".join(lines) + "\n"


def _in_the_middle(text: str, limit: int) -> str:
    kept = limit - 1
    return text if len(text) <= limit else f"{text[: kept // 2]}…{text[len(text) - (kept + 1) // 2 :]}"


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
    """Return text with LaTeX's special characters escaped."""
    return "".join(_LATEX.get(char, char) for char in plain(text))
