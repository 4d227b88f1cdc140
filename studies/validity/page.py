"""The page of the checks, in Markdown for the documentation and as tables in the terminal."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from audio_compositionality.support.table import PIPED_WIDTH, Cell, Column, Row, Table, print_table, to_markdown
from audio_compositionality.support.text import number_text

from .checks import Part, page_texts

WIDEST = 9
"""Most columns of a table in the terminal; a dial with more is printed as two tables."""

_VERSIONS = ("audio-compositionality", "numpy", "scipy", "torch")


@dataclass(frozen=True)
class Section:
    """A section of the page: a heading with its level, paragraphs of Markdown, and tables."""

    title: str
    text: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    level: int = 2


def all_hold(parts: Sequence[Part]) -> bool:
    """Whether every check that must hold does."""
    return all(check.holds for part in parts for check in part.checks if check.claimed)


def findings(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return a line of Markdown for each check that fails, need not hold and has a sentence of its own, and one line
    for all others of a part."""
    texts = page_texts("page.yaml")["findings"]
    lines = []
    for part in parts:
        failed = [check for check in part.checks if not check.holds and not check.claimed]
        lines += [check.finding.strip() for check in failed if check.finding]
        if others := [texts["check"].format(**vars(check)) for check in failed if not check.finding]:
            lines.append(texts["others"].format(part=part.name, checks="; ".join(others)))
    return tuple(lines)


def sections(parts: Sequence[Part]) -> Iterator[Section]:
    """Yield the page, section by section."""
    texts, found = page_texts("page.yaml"), findings(parts)
    yield Section(texts["title"], tuple(texts["introduction"]), level=1)
    rows = []
    for part in parts:
        held = [check.holds for check in part.checks if check.claimed]
        if held:
            rows.append((part.name, str(sum(held)), str(len(held))))
    missed = sum(not check.holds and not check.claimed for part in parts for check in part.checks)
    summary = texts["summary"]["holds" if all_hold(parts) else "fails"].format(missed=missed)
    table = _table("Checks that must hold", ("part", "holds", "of"), rows)
    yield Section(texts["summary"]["title"], (summary,), (table,))
    bullets = "\n".join(f"- {sentence}" for sentence in found)
    of_findings = texts["findings"]
    yield Section(of_findings["title"], (of_findings["text"], bullets) if found else (of_findings["none"],))
    for part in parts:
        tables = []
        if part.dial is not None:
            levels = [
                (f"{level:g}", *(number_text(values[k]) for values in part.dial.scores.values()))
                for k, level in enumerate(part.dial.levels)
            ]
            tables.append(_table("Scores along the dial", (part.dial.level, *part.dial.scores), levels))
        if part.checks:
            of_checks = [
                (
                    check.subject,
                    check.score,
                    check.expected,
                    number_text(check.measured, 4),
                    "yes" if check.holds else "NO" if check.claimed else "finding",
                )
                for check in part.checks
            ]
            columns = ("encoder or data", "score", "expected", "measured", "holds")
            tables.append(_table("Expected and measured", columns, of_checks))
        yield Section(part.title, (part.text,), tuple(tables), part.level)


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of texts; a column is right-aligned if at least half of its cells are numbers."""
    columns = []
    for place, heading in enumerate(headings):
        numeric = sum(row[place].lstrip("-+≤<ρ ")[:1].isdigit() for row in rows)
        columns.append(Column(heading, numeric=2 * numeric >= len(rows)))
    return Table(caption, tuple(columns), tuple(Row(tuple(map(Cell, row))) for row in rows))


def print_page(parts: Sequence[Part]) -> None:
    """Print the page to the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)
    for section in sections(parts):
        console.print(Text(section.title, style="bold"))
        for paragraph in section.text:
            console.print(Padding(Markdown(paragraph), (0, 0, 1, 0)))
        for table in section.tables:
            width = len(table.columns)
            middle = (width + 1) // 2
            halves = [range(width)] if width <= WIDEST else [range(middle), (0, *range(middle, width))]
            for half in halves:
                rows = tuple(Row(tuple(row.cells[place] for place in half)) for row in table.rows)
                print_table(replace(table, columns=tuple(table.columns[place] for place in half), rows=rows))


def markdown(parts: Sequence[Part], command: str, seed: int) -> str:
    """Return the page as Markdown, with the command that made it, versions, seed and date."""
    versions = {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _VERSIONS}}
    made = (
        f"Written by this command, seed {seed}, on {datetime.now(UTC).date().isoformat()}:",
        f"```sh\n{command}\n```",
        f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.",
    )
    blocks: list[str] = []
    for section in sections(parts):
        blocks += [f"{'#' * section.level} {section.title}", *section.text, *(made if section.level == 1 else ())]
        blocks += [to_markdown(table).rstrip() for table in section.tables]
    return "\n\n".join(blocks) + "\n"
