"""The result of `validate` as a page of the documentation and as tables in the terminal: the same content."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from . import Validity
from .data import BASE_SHARE, EXACT, SCORES, Score
from .dials import TENTH, Dial, Verdict
from .findings import Bullet, find
from .simulation import COMMON, DIM, ENCODERS

PIPED_WIDTH = 100
"""Columns of the output where it does not go to a terminal."""

WIDEST = 9
"""Columns of a table in the terminal; a dial with more is printed as a table for each task."""

_VERSIONS = ("audio-compositionality", "numpy", "scipy", "torch")

_NAMES: dict[Score, str] = {
    ("a_coat", "a_coat"): "A-COAT",
    ("a_coat", "adjusted"): "A-COAT adjusted",
    ("a_coat", "centred"): "A-COAT centred",
    ("a_coat", "top1"): "A-COAT top-1",
    ("a_tre", "a_tre"): "A-TRE",
    ("a_tre", "constant"): "constant",
    ("a_tre", "gain"): "gain",
    ("a_tre", "a_tre_centred"): "A-TRE centred",
    ("a_tre", "ridge_centred"): "ridge cosine",
    ("a_tre", "ridge_r2"): "ridge R²",
    ("a_tre", "top1"): "A-TRE top-1",
    ("a_tre", "collapsed"): "collapsed",
}


@dataclass(frozen=True)
class Section:
    """A part of the page: paragraphs, bullets, a table of headings and rows, a note; `level` is its heading's."""

    title: str
    text: tuple[str, ...] = ()
    bullets: tuple[Bullet, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    level: int = 2


@cache
def _texts() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("page.yaml").read_text("utf-8"))
    return content


def sections(validity: Validity) -> tuple[Section, ...]:
    """The page, part by part."""
    texts, plan = _texts(), validity.plan
    found = find(validity, texts)
    of_dials = texts["dials"]
    dials_text = of_dials["text"].format(
        quadruples=validity.quadruples, train=plan.train, test=plan.test, max_steps=plan.max_steps
    )
    dials_note = of_dials["note"].format(exact=_small(EXACT), tenth=_percent(TENTH, 0))
    return (
        Section(texts["title"], tuple(texts["introduction"]), level=1),
        _summary(validity, len(found)),
        Section(texts["findings"]["title"], (texts["findings"]["text" if found else "none"],), found),
        Section(of_dials["title"], (dials_text, dials_note)),
        *(_dial(dial, plan.replicates) for dial in validity.dials),
        _invariances(validity),
        _agreements(validity),
        _coverages(validity),
        _false_positives(validity),
    )


def _section(key: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], **figures: Any) -> Section:
    texts = _texts()[key]
    note = texts.get("note", "").format(**figures)
    return Section(texts["title"], (texts["text"].format(**figures),), (), headings, tuple(rows), note)


def _summary(validity: Validity, findings: int) -> Section:
    verdicts = [verdict for dial in validity.dials for verdict in dial.verdicts.values()]
    parts = {
        "scores along the dials": [verdict.holds for verdict in verdicts if verdict.claimed],
        "scale and rotation": [item.holds for item in validity.invariances],
        "agreement with theory": [item.holds for item in validity.agreements],
        "coverage of intervals": [item.holds for item in validity.coverages if item.claimed],
        "false positives of tests": [item.holds for item in validity.false_positives if item.claimed],
    }
    rows = tuple((name, str(sum(held)), str(len(held))) for name, held in parts.items())
    texts = _texts()["summary"]
    text = texts["holds" if validity.holds else "fails"].format(findings=findings)
    return Section(texts["title"], (text,), headings=("what must hold", "holds", "of"), rows=rows)


def _dial(dial: Dial, replicates: int) -> Section:
    texts = _texts()["dial"][dial.name]
    shown = [score for score in SCORES if score in dial.scores]
    verdicts = [dial.verdicts.get(score) for score in shown]
    rows = (
        *(
            (f"{level:g}", *(_value(score, dial.scores[score][k]) for score in shown))
            for k, level in enumerate(dial.levels)
        ),
        ("should", *("·" if v is None else v.behaviour.removesuffix("s") for v in verdicts)),
        ("found", *("·" if v is None else _found(v) for v in verdicts)),
        ("holds", *("·" if v is None else _holds(v.holds, v.claimed) for v in verdicts)),
    )
    text = texts["text"].format(replicates=replicates, base=BASE_SHARE)
    headings = (texts["level"], *(_NAMES[score] for score in shown))
    return Section(texts["title"], (text,), headings=headings, rows=rows, level=3)


def _value(score: Score, value: float) -> str:
    return ("yes" if value else "no") if score[1] == "collapsed" else _number(value)


def _found(verdict: Verdict) -> str:
    if verdict.tolerance is None:
        return f"ρ {_number(verdict.figure, 2)}"
    return f"{_small(verdict.figure)} ({_small(verdict.tolerance)})"


def _holds(holds: bool, claimed: bool = True) -> str:
    return "yes" if holds else "NO" if claimed else "finding"


def _invariances(validity: Validity) -> Section:
    rows = [
        (
            item.transformation,
            _NAMES[item.score],
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
            ("≤ " if item.at_most else "") + _number(item.expected, 4),
            _number(item.measured, 4),
            "exact" if item.interval is None else f"{item.interval[0]:+.4f} to {item.interval[1]:+.4f}",
            _holds(item.holds),
        )
        for item in validity.agreements
    ]
    known = [item.interval for item in validity.agreements if item.interval is not None and not item.at_most]
    headings = ("encoder", "score", "n", "expected", "measured", "measured - expected, 95 %", "holds")
    inside = sum(low <= 0 <= high for low, high in known)
    return _section("theory", headings, rows, inside=inside, known=len(known))


def _coverages(validity: Validity) -> Section:
    rows = [
        (
            item.interval,
            f"{item.n:,}",
            f"{item.clusters:,}",
            f"{item.share:g}",
            _number(item.truth, 4),
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


def _number(value: float, digits: int = 3) -> str:
    """A score with a fixed number of digits, and no minus before zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _small(value: float) -> str:
    return "1e-9" if value == EXACT else "< 1e-9" if value < EXACT else f"{value:.4f}"


# ----- terminal and Markdown


def print_page(validity: Validity, console: Console | None = None) -> None:
    """Print the page to the terminal."""
    console = console or Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    below = (0, 0, 1, 0)
    for section in sections(validity):
        console.print(Text(section.title, style="bold"))
        for paragraph in section.text:
            console.print(Padding(Text(paragraph), below))
        for bullet in section.bullets:
            console.print(Padding(Text.assemble("- ", (bullet.head, "bold"), " ", bullet.text), below))
        for places in _parts(section):
            console.print(_table(section, places))
        if section.note:
            console.print(Padding(Text(section.note, style="dim"), below))


def _parts(section: Section) -> list[list[int]]:
    """Columns of each table that a section is printed as: none, one, or for a wide one the first with either task's."""
    places = list(range(len(section.headings)))
    if len(places) <= WIDEST:
        return [places] if places else []
    start = section.headings.index(_NAMES["a_tre", "a_tre"])
    return [places[:start], [0, *places[start:]]]


def _table(section: Section, places: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for place in places:
        justify: JustifyMethod = "right" if _is_right(section, place) else "left"
        table.add_column(Text(section.headings[place]), justify=justify, vertical="bottom")
    for row in section.rows:
        table.add_row(*(Text(row[place]) for place in places), style="bold red" if "NO" in row else "")
    return table


def _is_right(section: Section, place: int) -> bool:
    """Whether a column has numbers in at least half of its cells."""
    cells = [row[place] for row in section.rows]
    return 2 * sum(cell.lstrip("-+≤< ")[:1].isdigit() for cell in cells) >= len(cells)


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
        if section.rows:
            marks = ["--:" if _is_right(section, place) else "---" for place in range(len(section.headings))]
            blocks.append(
                "\n".join(f"| {' | '.join(_cells(row))} |" for row in (section.headings, marks, *section.rows))
            )
        if section.note:
            blocks.append(section.note)
    return "\n\n".join(blocks) + "\n"


def _cells(row: Sequence[str]) -> list[str]:
    return [cell.replace("|", "\\|") for cell in row]


def write_page(validity: Validity, path: Path, command: str) -> None:
    """Write the page as Markdown, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(markdown(validity, command), "utf-8")
