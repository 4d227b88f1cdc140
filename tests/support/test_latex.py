"""Tables as LaTeX: no wider than a page of two columns, by a count of characters and by LaTeX itself."""

from __future__ import annotations

import math
import re
import shutil
import subprocess

import pytest

from audio_compositionality.support.latex import LATEX_COLUMN, LATEX_WIDTH, to_latex
from audio_compositionality.support.table import Cell, Column, Row, Table

SENTENCE = "above its untrained twin and log-mel-statistics by A-COAT; not shown to be above energy alone by A-TRE"
NAMES = (
    "facebook/wav2vec2-large-robust-ft-libri-960h",
    "my_model.py:Encoder@layer=4+pooling=mean",
    "org/" + "x" * 90,
    "text→audio, 5 % of {a_b} ▲ ▼ ○ − ∪ ′ ≥ ½ “said”",
)
DOCUMENT = r"""\documentclass[10pt,twocolumn]{article}
\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{booktabs}
\setlength{\textwidth}{505pt}\setlength{\columnsep}{18pt}
\begin{document}
%s
\end{document}
"""


@pytest.fixture
def wide():
    """Of many tasks and long names, with sentences, notes and signs."""
    headings = [f"A-COAT across instances {k}, centred and adjusted" for k in range(14)]
    columns = (Column("model", numeric=False), *map(Column, headings), Column("in words", numeric=False))
    rows = tuple(
        Row(
            (
                Cell(name, note="untrained network"),
                *(Cell(-0.5 - k, f"▲ −{k}.500", f"[−{k}.000, {k}.999]\nmatched null 0.123") for k in range(14)),
                Cell("above", note=f"`untrained:{name}`: {SENTENCE}."),
            )
        )
        for name in NAMES
    )
    return Table("Everything & more", columns, rows, ("Chance: 0.25.",))


@pytest.fixture
def narrow():
    columns = (Column("name", numeric=False), Column("score"), Column("n", digits=None))
    rows = (
        Row((Cell("one & only"), Cell(-0.12345, note="[−0.2, −0.1]"), Cell(1_234.0))),
        Row((Cell("[x]"), Cell(math.inf), Cell(0.0, "none"))),
    )
    return Table("What | is shown", columns, rows, ("It is 5 % of a_b.",))


def bodies(text):
    """The columns and the lines of cells of each tabular."""
    for form, body in re.findall(r"\\begin\{tabular\}\{([^\n]*)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL):
        lines = [line for line in body.splitlines() if line.endswith(r" \\")]
        yield re.findall(r"[lr]|p\{\d+pt\}", form), [re.split(r"(?<!\\)&", line[:-3]) for line in lines]


def points(cell):
    """A rough width in points: of a heading on several lines that of the widest."""
    stacked = re.search(r"\\shortstack\[[lr]\]\{(.*)\}", cell)
    lines = (stacked[1] if stacked else cell).split(r"\\")
    seen = [re.sub(r"\\[a-zA-Z]+(\{\})?|[{}$\\]", "", line).strip() for line in lines]
    return max(len(line) for line in seen) * (3.5 if "scriptsize" in cell else 4.0)


def test_each_part_fits_the_page_and_none_is_missing(wide):
    text = to_latex(wide)
    parts = list(bodies(text))
    assert len(parts) == text.count(r"\begin{table*}") == text.count(r"\toprule") > 1
    assert "Everything \\& more. (Part 1 of" in text
    assert text.count("Chance: 0.25.") == 1
    for columns, lines in parts:
        assert {len(line) for line in lines} == {len(columns)}
        widths = [
            int(column[2:-3]) if column.startswith("p") else max(points(line[place]) for line in lines)
            for place, column in enumerate(columns)
        ]
        assert sum(widths) + 8 * len(columns) <= LATEX_WIDTH
    for k in range(14):
        assert text.count(rf"$\bigtriangleup$ $-${k}.500") == len(NAMES)
    assert re.sub(r"\\allowbreak\{\}", "", text).count(SENTENCE) == len(NAMES)
    assert r"\ldots{}" in text


def test_a_narrow_table_takes_one_column_of_the_page(narrow):
    text = to_latex(narrow)
    assert r"\begin{table}" in text
    assert "Part" not in text
    ((columns, lines),) = bodies(text)
    assert columns == ["l", "r", "r"]
    assert r"one \& only " in lines[1][0]
    # The interval stands below its number, in smaller type.
    assert [cell.strip() for cell in lines[2]] == ["{}", r"{\scriptsize [$-$0.2, $-$0.1]}", ""]
    assert r"$\infty$" in text
    assert r"5 \% of a\_b" in text
    # A row that begins with a bracket is no argument of the line break before it.
    assert "{}[x]" in text
    assert to_latex(Table("Nothing", narrow.columns, (), ("None.",))) == "% Nothing\n% None.\n"


@pytest.fixture
def one_column():
    """Of long names, with an interval below the last number."""
    columns = (Column("model", numeric=False), *map(Column, ("with sound", "best without", "any quarter", "gain")))
    rows = tuple(
        Row((Cell(name), Cell(0.5), Cell(0.4, note="another clip"), Cell(0.5), Cell(-0.1, note="[−0.123, −0.045]")))
        for name in NAMES
    )
    return Table("Gains", columns, rows, in_one_column=True)


def test_a_table_for_one_column_breaks_names_and_keeps_notes_in_their_cells(one_column):
    text = to_latex(one_column)
    assert r"\begin{table}" in text
    (width,) = re.findall(r"\\begin\{tabular\}\{p\{(\d+)pt\}rrrr\}", text)
    others = sum(map(points, ("0.500", "another clip", "quarter", "[-0.123, -0.045]")))
    assert 50 < int(width) <= LATEX_COLUMN - others - 5 * 5
    names = [line.partition(" & ")[0] for line in text.splitlines() if "raggedright" in line]
    assert len(names) == len(NAMES)
    pieces = re.split(r"\\allowbreak\{\}", names[2])
    assert max(map(len, pieces[1:])) * 4 <= int(width)
    assert text.count(r"0.400 \\ \scriptsize {}another clip\end{tabular}") == len(NAMES)


@pytest.mark.slow
def test_latex_itself_finds_nothing_too_wide(wide, narrow, one_column, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex on the path (Debian: apt-get install texlive-latex-recommended)")
    (tmp_path / "paper.tex").write_text(DOCUMENT % "\n".join(map(to_latex, (wide, narrow, one_column))), "utf-8")
    command = ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120)
    assert told.returncode == 0, told.stdout[-2_000:]
    assert "Overfull \\hbox" not in told.stdout
