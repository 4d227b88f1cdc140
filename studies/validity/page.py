"""The result of `validate` as a page of the documentation and as tables in the terminal: the same content."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import PIPED_WIDTH, Cell, Column, Row, Table, print_table, to_markdown
from audio_compositionality.support.text import number_text
from audio_compositionality.tasks.registry import load_task

from .constructed import BASE_SHARE, EXACT, SCORES, Score
from .dials import TENTH, Dial, Verdict
from .families import Check, DialTable, Part
from .simulation import COMMON, DIM, ENCODERS
from .validate import Bullet, Validity, find

WIDEST = 9
"""Columns of a table in the terminal; a dial with more is printed as a table for each task."""

_VERSIONS = ("audio-compositionality", "numpy", "scipy", "torch")

NOTHING = "·"
"""The text of a cell without an expectation."""


@dataclass(frozen=True)
class Section:
    """A part of the page: paragraphs, bullets, a table, a note; `level` is its heading's."""

    title: str
    text: tuple[str, ...] = ()
    bullets: tuple[Bullet, ...] = ()
    table: Table | None = None
    note: str = ""
    level: int = 2


@cache
def _texts() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("page.yaml").read_text("utf-8"))
    return content


def name_of(score: Score) -> str:
    """The readable name of a score, from its task's measures."""
    info = load_task(score[0]).info
    measure = info.measure(score[1])
    return info.title if measure == info.score else f"{info.title} {measure.heading}"


def sections(validity: Validity) -> tuple[Section, ...]:
    """The page, part by part."""
    texts, plan = _texts(), validity.plan
    findings = find(validity, texts)
    of_dials = texts["dials"]
    dials_text = of_dials["text"].format(
        quadruples=validity.quadruples, train=plan.train, test=plan.test, max_steps=plan.max_steps
    )
    dials_note = of_dials["note"].format(exact=_small(EXACT), tenth=_percent(TENTH, 0))
    return (
        Section(texts["title"], tuple(texts["introduction"]), level=1),
        _summary(validity, len(findings)),
        Section(texts["findings"]["title"], (texts["findings"]["text" if findings else "none"],), findings),
        Section(of_dials["title"], (dials_text, dials_note)),
        *(_dial(dial, plan.replicates) for dial in validity.dials),
        _invariances(validity),
        _agreements(validity),
        _coverages(validity),
        _false_positives(validity),
        *(section for part in validity.parts for section in _of_part(part)),
    )


def _section(key: str, headings: tuple[str, ...], rows: Sequence[tuple[str | Cell, ...]], **figures: Any) -> Section:
    texts = _texts()[key]
    note = texts.get("note", "").format(**figures)
    return Section(texts["title"], (texts["text"].format(**figures),), (), _table(texts["title"], headings, rows), note)


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str | Cell]]) -> Table:
    """A table of texts; a column with numbers in at least half of its cells is set to the right."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    columns = []
    for place, heading in enumerate(headings):
        numbers = sum(str(row[place].value).lstrip("-+≤<ρ ")[:1].isdigit() for row in cells)
        columns.append(Column(heading, numeric=2 * numbers >= len(cells)))
    return Table(caption, tuple(columns), tuple(Row(tuple(row)) for row in cells))


def _summary(validity: Validity, findings: int) -> Section:
    verdicts = [verdict for dial in validity.dials for verdict in dial.verdicts.values()]
    parts = {
        "scores along the dials": [verdict.holds for verdict in verdicts if verdict.claimed],
        "scale and rotation": [item.holds for item in validity.invariances],
        "agreement with theory": [item.holds for item in validity.agreements],
        "coverage of intervals": [item.holds for item in validity.coverages if item.claimed],
        "false positives of tests": [item.holds for item in validity.false_positives if item.claimed],
    }
    parts |= {part.name: [check.holds for check in part.checks if check.claimed] for part in validity.parts}
    rows = tuple((name, str(sum(held)), str(len(held))) for name, held in parts.items() if held)
    texts = _texts()["summary"]
    text = texts["holds" if validity.holds else "fails"].format(findings=findings)
    return Section(texts["title"], (text,), table=_table("What must hold", ("what must hold", "holds", "of"), rows))


def _dial(dial: Dial, replicates: int) -> Section:
    texts = _texts()["dial"][dial.name]
    shown = [score for score in SCORES if score in dial.scores]
    verdicts = [dial.verdicts.get(score) for score in shown]
    rows: list[tuple[str | Cell, ...]] = [
        *(
            (f"{level:g}", *(_value(score, dial.scores[score][k]) for score in shown))
            for k, level in enumerate(dial.levels)
        ),
        ("should", *(NOTHING if v is None else v.behaviour.removesuffix("s") for v in verdicts)),
        ("found", *(NOTHING if v is None else _figure(v) for v in verdicts)),
        ("holds", *(NOTHING if v is None else _holds(v.holds, v.claimed) for v in verdicts)),
    ]
    text = texts["text"].format(replicates=replicates, base=BASE_SHARE)
    headings = (texts["level"], *map(name_of, shown))
    return Section(texts["title"], (text,), table=_table(f"Dial: {texts['title']}", headings, rows), level=3)


def _value(score: Score, value: float) -> str:
    return ("yes" if value else "no") if score[1] == "collapsed" else number_text(value)


def _figure(verdict: Verdict) -> Cell:
    if verdict.tolerance is None:
        return Cell(f"ρ {number_text(verdict.figure, 2)}")
    return Cell(_small(verdict.figure), note=f"({_small(verdict.tolerance)})")


def _holds(holds: bool, claimed: bool = True) -> str:
    return "yes" if holds else "NO" if claimed else "finding"


def _invariances(validity: Validity) -> Section:
    rows = [
        (
            item.transformation,
            name_of(item.score),
            _small(item.change),
            _small(item.tolerance),
            item.reason,
            _holds(item.holds),
        )
        for item in validity.invariances
    ]
    headings = ("transformation", "score", "change", "allowed", "because of", "holds")
    plan = validity.plan
    return _section(
        "invariance", headings, rows, base=BASE_SHARE, exact=_small(EXACT), rotations=plan.rotations, seeds=plan.seeds
    )


def _agreements(validity: Validity) -> Section:
    rows = [
        (
            item.encoder,
            item.score,
            f"{item.n:,}",
            ("≤ " if item.at_most else "") + number_text(item.expected, 4),
            number_text(item.measured, 4),
            "exact" if item.interval is None else f"{item.interval[0]:+.4f} to {item.interval[1]:+.4f}",
            _holds(item.holds),
        )
        for item in validity.agreements
    ]
    intervals = [item.interval for item in validity.agreements if item.interval is not None and not item.at_most]
    headings = ("encoder", "score", "n", "expected", "measured", "measured - expected, 95 %", "holds")
    inside = sum(low <= 0 <= high for low, high in intervals)
    return _section("theory", headings, rows, inside=inside, known=len(intervals))


def _coverages(validity: Validity) -> Section:
    rows = [
        (
            item.interval,
            f"{item.n:,}",
            f"{item.clusters:,}",
            f"{item.share:g}",
            number_text(item.truth, 4),
            _percent(item.covered),
            _holds(item.holds, item.claimed),
        )
        for item in validity.coverages
    ]
    headings = ("interval", "n", "clusters", "share of signal", "truth", "covered", "holds")
    low, high = map(_percent, validity.coverages[0].band)
    simulations, common = validity.plan.simulations, _percent(COMMON, 0)
    return _section("coverage", headings, rows, simulations=simulations, dim=DIM, common=common, low=low, high=high)


def _false_positives(validity: Validity) -> Section:
    rows = [
        (item.test, f"{item.n:,}", f"{item.clusters:,}", _percent(item.rate), _holds(item.holds, item.claimed))
        for item in validity.false_positives
    ]
    return _section(
        "false positives",
        ("test", "n", "clusters", "rate", "holds"),
        rows,
        encoders=ENCODERS,
        simulations=validity.plan.simulations,
        highest=_percent(validity.false_positives[0].highest),
    )


def _of_part(part: Part) -> list[Section]:
    """A part of a family: the scores along its dial if it has one, then their expectations."""
    captions = [part.title, f"{part.title}: what is expected"]
    tables = [] if part.dial is None else [_dial_table(captions[0], part.dial)]
    if part.checks:
        tables.append(_check_table(captions[len(tables)], part.checks))
    first = Section(part.title, (part.text,), table=tables[0] if tables else None, level=part.level)
    return [first, *(Section(table.caption, table=table, level=part.level + 1) for table in tables[1:])]


def _dial_table(caption: str, dial: DialTable) -> Table:
    rows = [
        (f"{level:g}", *(number_text(values[k]) for values in dial.scores.values()))
        for k, level in enumerate(dial.levels)
    ]
    return _table(caption, (dial.level, *dial.scores), rows)


def _check_table(caption: str, checks: Sequence[Check]) -> Table:
    rows = [
        (item.subject, item.score, item.expected, number_text(item.measured, 4), _holds(item.holds, item.claimed))
        for item in checks
    ]
    return _table(caption, ("what", "score", "expected", "measured", "holds"), rows)


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _small(value: float) -> str:
    return "1e-9" if value == EXACT else "< 1e-9" if value < EXACT else f"{value:.4f}"


# ----- terminal and Markdown


def print_page(validity: Validity) -> None:
    """Print the page to the terminal."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)
    below = (0, 0, 1, 0)
    for section in sections(validity):
        console.print(Text(section.title, style="bold"))
        for paragraph in section.text:
            console.print(Padding(Text(paragraph), below))
        for bullet in section.bullets:
            console.print(Padding(Text.assemble("- ", (bullet.head, "bold"), " ", bullet.text), below))
        for table in _parts(section.table):
            print_table(table)
        if section.note:
            console.print(Padding(Text(section.note, style="dim"), below))


def _parts(table: Table | None) -> list[Table]:
    """The printed parts of a table: none, one, or for a wide one the first column with either half of the others."""
    if table is None:
        return []
    headings = [column.heading for column in table.columns]
    if len(headings) <= WIDEST:
        return [table]
    task = name_of(("a_tre", "a_tre"))  # the border between tables of two tasks
    start = headings.index(task) if task in headings else (len(headings) + 1) // 2
    return [_columns_of(table, range(start)), _columns_of(table, (0, *range(start, len(headings))))]


def _columns_of(table: Table, places: Sequence[int]) -> Table:
    rows = tuple(Row(tuple(row.cells[place] for place in places)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in places), rows=rows)


def markdown(validity: Validity, command: str) -> str:
    """The page as Markdown, with the command that made it, versions, seed and date."""
    versions = {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _VERSIONS}}
    made = [
        f"Made by this command, seed {validity.seed}, on {datetime.now(UTC).date().isoformat()}, and not edited:",
        f"```sh\n{command}\n```",
        f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.",
    ]
    blocks: list[str] = []
    for section in sections(validity):
        blocks += [f"{'#' * section.level} {section.title}", *section.text, *(made if section.level == 1 else [])]
        if section.bullets:
            blocks.append("\n".join(f"- **{bullet.head}** {bullet.text}" for bullet in section.bullets))
        if section.table is not None:
            blocks.append(to_markdown(section.table).rstrip())
        if section.note:
            blocks.append(section.note)
    return "\n\n".join(blocks) + "\n"


def write_page(validity: Validity, path: Path, command: str) -> None:
    """Write the page as Markdown, with its folders; it appears only when it is complete."""
    write_whole(path, markdown(validity, command))
