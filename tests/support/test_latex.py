"""Tables as LaTeX: no wider than a page of two columns, by LaTeX itself."""

from __future__ import annotations

import math
import re
import shutil
import subprocess

import pytest

from audio_compositionality.support.latex import to_latex
from audio_compositionality.support.table import Cell, Column, Row, Table

SENTENCE = "above its untrained twin and log-mel-statistics by A-COAT; not shown to be above energy alone by A-TRE"
NAMES = (
    "facebook/wav2vec2-large-robust-ft-libri-960h",
    "my_model.py:Encoder@layer=4+pooling=mean",
    "org/" + "x" * 90,
    "text→audio, 5 % of {a_b} ▲ ▼ ○ − ∪ ′ ≥ ½ “said”",
)
DOCUMENT = r"""\documentclass[10pt,twocolumn]{article}
\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{booktabs,adjustbox}
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
        yield list(form), [re.split(r"(?<!\\)&", line[:-3]) for line in lines]


def test_a_wide_table_is_scaled_and_nothing_is_missing(wide):
    text = to_latex(wide)
    ((columns, lines),) = bodies(text)
    assert columns == ["l", *"r" * 14, "l"]
    assert {len(line) for line in lines} == {16}
    assert r"\begin{adjustbox}{max width=\linewidth}" in text
    for k in range(14):
        assert text.count(rf"$\bigtriangleup$ $-${k}.500") == len(NAMES)
    assert text.count(SENTENCE) == len(NAMES)
    assert r"\ldots{}" in text
    assert text.count("Chance: 0.25.") == 1


def test_notes_stand_below_their_cells(narrow):
    text = to_latex(narrow)
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


def test_a_table_for_one_column_is_no_wider(one_column):
    text = to_latex(one_column)
    assert r"\begin{table}" in text
    assert text.count(r"{\scriptsize another clip}") == len(NAMES)


@pytest.mark.slow
def test_latex_itself_finds_nothing_too_wide(wide, narrow, one_column, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex on the path (Debian: apt-get install texlive-latex-recommended)")
    (tmp_path / "paper.tex").write_text(DOCUMENT % "\n".join(map(to_latex, (wide, narrow, one_column))), "utf-8")
    command = ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120)
    assert told.returncode == 0, told.stdout[-2_000:]
    assert "Overfull \\hbox" not in told.stdout


@pytest.mark.parametrize(("caption", "printed"), [("Is it above?", "{Is it above?}"), ("Scores", "{Scores.}")])
def test_a_caption_ends_with_one_sign(caption, printed):
    table = Table(caption, (Column("model", numeric=False),), (Row((Cell("a"),)),), (), "scores")
    assert rf"\caption{printed}" in to_latex(table)
