"""The report: one self-contained HTML file about results.

The page has no external references, runs no script but its own, and shows foreign content (names of
models and data, labels, reasons) as text. Its parts are in the folder ``templates``.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import HeldData
from audio_compositionality.dataset_builder.rendered import is_preset
from audio_compositionality.evaluator.compare.comparison import Comparison, compare_results
from audio_compositionality.evaluator.compare.diversity import MIN_CLUSTERS
from audio_compositionality.evaluator.compare.loading import GivenResults, ModelKind, model_kind
from audio_compositionality.evaluator.compare.model_verdicts import Verdicts, verdicts_of
from audio_compositionality.evaluator.compare.statistics import BOOTSTRAP_RESAMPLES, MIN_SAMPLES
from audio_compositionality.evaluator.compare.summary import (
    SIGNS,
    layer_table,
    size_table,
    summary_table,
    verdict_tables,
)
from audio_compositionality.evaluator.compare.tables import NOT_INCLUDED
from audio_compositionality.evaluator.compare.task_verdicts import LEAST_DIFFERENCE, baseline_standing
from audio_compositionality.evaluator.figures.layout import short_label
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.latex import to_latex
from audio_compositionality.support.table import Cell, Column, cell_text, to_markdown
from audio_compositionality.support.text import counted, listed, number_text, plain, shortened
from audio_compositionality.tasks.base import UNTRAINED_TWIN
from audio_compositionality.tasks.benchmarks import benchmark_info

from .facts import LONGEST_TEXT, fact_tables
from .listening import PLAYBACK_GAIN, HeardSample, hear_samples
from .matrix import matrix_of
from .overview import named_baselines
from .sections import (
    SECTION_STEPS,
    Section,
    is_long,
    page_sections,
    section_title,
)
from .telling import ONE_ORDER, UNPARSED, WRONG_WITH

MOST_PAGE_BYTES = 4_900_000
"""Most bytes of a page, which has to stay below 5 MB."""

MOST_NO_EARS = 100
"""Most questions that need no ears in the list of a task; `audio-compositionality compare --table` prints all."""

MOST_PICTURED = 6
"""Most tasks whose lines are not folded."""

MOST_COPIED = 100
"""Most rows of a table with copies in LaTeX and Markdown: no paper prints a longer one."""

LONGEST_CAPTION = 300
"""Most characters of a table's caption, which takes as many lines as it needs; it holds a stranger's text."""

LONGEST_CELL = 300
"""Most characters of a cell: enough for our own conclusions, a limit for a stranger's text."""

LONGEST_LABEL = 90
"""Most characters of a row's name, which is shortened in its middle; it may name a pair."""


def write_report(
    results: GivenResults,
    out: str | Path = "report.html",
    *,
    data: str | Path | HeldData[Any] | None = None,
    model: str | None = None,
    figures: str | Path | None = None,
    command: str | None = None,
    progress: bool = True,
) -> Path:
    """Write the report of results as one HTML file, which appears only when complete.

    Args:
        results: one or several: folders of results, their JSON files, or results that `evaluate` has returned.
        out: the file.
        data: the source of the data (a preset, a folder or a Hub id); by default as the results state. Where it cannot
            be opened, the report has no clips and no diversity, and says so.
        model: id of the model whose highest- and lowest-scoring samples are played; by default the mean
            score of all that are neither baselines nor untrained decides.
        figures: folder for all figures, as SVG and PNG.
        command: the command behind the report, printed in it.
        progress: show a progress bar.

    Returns:
        path of the file.

    Raises:
        ResultError: there are no results, or a damaged one.
        DatasetError: `data` is given and cannot be opened, or is the data of none of the results.
        InputError: there is no result of `model`, or `out` is a folder.
        OSError: the file cannot be written.
    """
    check_report_file(Path(out))
    verdicts = verdicts_of(compare_results(results, data=data))
    return write_verdicts(verdicts, out, model=model, figures=figures, command=command, progress=progress)


@dataclass(frozen=True)
class Report(os.PathLike[str]):
    """A report that was written: a path for programs, the page itself in a notebook.

    Attributes:
        path: of the file; absolute, so that a notebook may change its folder.
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", self.path.absolute())

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose script reaches nothing of the notebook."""
        page = escape(self.path.read_text("utf-8"))
        return f'<iframe title="Report" sandbox="allow-scripts" width="100%" height="900" srcdoc="{page}"></iframe>'


def report(
    results: GivenResults,
    out: str | Path = "report.html",
    *,
    data: str | Path | HeldData[Any] | None = None,
    model: str | None = None,
    figures: str | Path | None = None,
    progress: bool = False,
) -> Report:
    """Write the report of results as one HTML file; a notebook shows it. Arguments and errors as in `write_report`."""
    return Report(write_report(results, out, data=data, model=model, figures=figures, progress=progress))


def check_report_file(out: Path) -> None:
    """Refuse a folder as the file of a report with InputError."""
    if out.is_dir():
        raise InputError(f"{out} is a folder; give the report the name of a file, such as {out / 'report.html'}")


def write_verdicts(
    verdicts: Verdicts,
    out: str | Path,
    *,
    model: str | None = None,
    figures: str | Path | None = None,
    command: str | None = None,
    progress: bool = True,
) -> Path:
    """Write the report of verdicts with their comparisons; arguments and errors as in `write_report`."""
    out, comparisons = Path(out), verdicts.comparisons
    check_report_file(out)
    with tqdm(total=len(comparisons) * SECTION_STEPS + 1, desc="report", unit="step", disable=not progress) as bar:
        folder = None if figures is None else Path(figures)
        sections = page_sections(verdicts, model, folder, bar)
        page = _page(sections, verdicts, command)
        bar.update()
    size = len(page.encode())
    if size > MOST_PAGE_BYTES:
        warnings.warn(f"the report is {size / 1e6:.1f} MB: give it fewer results", stacklevel=2)
    write_whole(out, page)
    return out


def _page(
    sections: Sequence[Section],
    verdicts: Verdicts,
    command: str | None,
) -> str:
    """The page; its clips are cut where it would be larger than MOST_BYTES."""
    template = _environment().get_template("report.html")
    comparisons = verdicts.comparisons
    tasks = {comparison.info.name: comparison.info for comparison in comparisons}
    baselines = named_baselines(comparisons)
    facts = {
        "sections": sections,
        "verdicts": verdicts,
        "matrix": matrix_of(verdicts),
        "verdict_tables": [table for table in verdict_tables(verdicts) if table.rows],
        "summary_table": summary_table(verdicts),
        "series": [table for table in (layer_table(comparisons), size_table(comparisons)) if table is not None],
        "summary": _summary(comparisons),
        "lettered": [one for one in comparisons if set(one.info.captions) >= _LETTERS],
        "twin_words": _twin_words(sections, bool(verdicts.models)),
        "data_summary": _data_summary(comparisons),
        "baselines": baselines,
        "shapes": {entry.name: entry.shape for entry in baselines},
        "tasks": list(tasks.values()),
        "warnings": list(dict.fromkeys(info.warning for info in tasks.values())),
        "citations": list(dict.fromkeys(info.citation.strip() for info in tasks.values())),
        "tables": fact_tables(comparisons),
        "command": command,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": importlib.metadata.version("audio-compositionality"),
    }
    heard = _heard(sections, math.inf)
    page = template.render(heard=heard, **facts)
    excess = len(page.encode()) - MOST_PAGE_BYTES
    if excess > 0:
        audio = sum(len(clip.audio) for samples in heard.values() for sample in samples for clip in sample.clips)
        # Three bytes are four in base64, and the page then has a note about cut clips. A tenth stays in any case.
        most = max(audio - 0.75 * (excess + 1_000), audio / 10)
        page = template.render(heard=_heard(sections, most), **facts)
    return page


_LETTERS = {"A", "B", "C", "D"}
"""Names of the clips of a row that the first screen explains in a drawing."""


def _heard(sections: Sequence[Section], most_bytes: float) -> dict[str, tuple[HeardSample, ...]]:
    """The samples of each section, by its name."""
    heard = hear_samples([sample for section in sections for sample in section.samples], most_bytes)
    return {section.name: tuple(islice(heard, len(section.samples))) for section in sections}


def _twin_words(sections: Sequence[Section], is_judged: bool) -> list[str]:
    """The twins in the pictures, in words; without a model, untrained networks alone."""
    words = [
        section.comparison.info.twin[1]
        for section in sections
        if any(mark.kind == "twin" for view in section.overviews for line in view.lines for mark in line.marks)
    ]
    return [one for one in dict.fromkeys(words) if is_judged or one == _UNTRAINED_TWIN]


_UNTRAINED_TWIN = UNTRAINED_TWIN[1]


def _kinds(comparisons: Sequence[Comparison]) -> Counter[ModelKind]:
    """Number of models of each kind."""
    models = {
        (result.result.model.id, result.result.model.revision): model_kind(result.result.model)
        for comparison in comparisons
        for result in comparison.results
    }
    return Counter(models.values())


def _summary(comparisons: Sequence[Comparison]) -> str:
    """Number of models of each kind, and the data, in words."""
    kinds = _kinds(comparisons)
    words = {kind: kind.value for kind in ModelKind} | {ModelKind.TRAINED: "model"}
    counts = [counted(kinds[kind], words[kind]) for kind in ModelKind if kinds[kind]]
    data = dict.fromkeys(shortened(comparison.dataset, LONGEST_TEXT) for comparison in comparisons)
    kind = "preset" if all(map(is_preset, data)) else "data"
    return f"{listed(counts)} on the {kind} “{listed(list(data))}”"


def _data_summary(comparisons: Sequence[Comparison]) -> str:
    """Size of the data of each task, in words, or of a full benchmark with many tasks."""
    parts = []
    for comparison in comparisons:
        place = (comparison.info.benchmark, comparison.dataset)
        together = [other for other in comparisons if (other.info.benchmark, other.dataset) == place]
        if is_long(together):
            title = f"{benchmark_info(place[0]).title} on {shortened(comparison.dataset, LONGEST_TEXT)}"
            parts.append(f"{title}: {_benchmark_size(together)}")
        else:
            parts.append(f"{section_title(comparison)}: {_size(comparison)}")
    return "; ".join(dict.fromkeys(parts))


def _benchmark_size(comparisons: Sequence[Comparison]) -> str:
    """Number of tasks of a benchmark, and of rows and clips where the data can be opened."""
    opened = {comparison.info.recipe: comparison.configuration for comparison in comparisons}
    configurations = [configuration for configuration in opened.values() if configuration is not None]
    if len(configurations) < len(opened):
        return f"{len(comparisons)} tasks"
    rows = sum(len(configuration.rows) for configuration in configurations)
    clips = sum(len(configuration.clip_ids) for configuration in configurations)
    return f"{len(comparisons)} tasks on {rows:,} rows with {clips:,} clips"


def _size(comparison: Comparison) -> str:
    """Number of scored samples, and of rows and clips where the data can be opened."""
    scored, opened = f"{len(comparison.ids):,} {comparison.info.samples}", comparison.configuration
    return scored if opened is None else f"{scored} of {len(opened.rows):,} rows with {len(opened.clip_ids):,} clips"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (Markup(_template(name)) for name in ("report.css", "report.js"))
    environment.globals.update(
        style=style,
        script=script,
        policy=_policy(style, script),
        min_samples=MIN_SAMPLES,
        min_clusters=MIN_CLUSTERS,
        playback_gain=PLAYBACK_GAIN,
        resamples=BOOTSTRAP_RESAMPLES,
        matters=LEAST_DIFFERENCE,
        baseline_standing=baseline_standing,
        signs=SIGNS,
        most_pictured=MOST_PICTURED,
        most_no_ears=MOST_NO_EARS,
        not_included=NOT_INCLUDED,
        most_copied=MOST_COPIED,
        longest_caption=LONGEST_CAPTION,
        findings=(WRONG_WITH, ONE_ORDER, UNPARSED),
    )
    environment.filters.update(
        base64=_base64,
        decibels=_decibels,
        number=_number,
        shortened=_shortened,
        shown_in=_shown_in,
        breakable=_breakable,
        unbroken=_unbroken,
        formula=_formula,
        intervals=_intervals,
        with_minus=_with_minus,
        latex=lambda table: _lines(to_latex(table)),
        markdown=lambda table: _lines(to_markdown(table)),
        key=_key,
        first_rows=lambda table, most: replace(table, rows=table.rows[:most]),
        lines=_lines,
    )
    return environment


def _template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """The page's Content-Security-Policy: its own style and script by their hash, embedded pictures and sound."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {source(style)}; script-src {source(script)}; img-src data:; media-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _visible(value: object) -> object:
    """`plain` for texts that are not a part of the page itself."""
    return value if not isinstance(value, str) or isinstance(value, Markup) else plain(value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decibels(gain: float) -> float:
    return 20 * math.log10(gain)


def _number(value: float | None, digits: int = 3) -> str:
    return number_text(value, digits, minus="−")


def _shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    return short_label(text, limit)


def _lines(text: str) -> Markup:
    """Text with its line ends."""
    return Markup("\n").join(map(plain, text.split("\n")))


def _breakable(text: str) -> Markup:
    """A name with line breaks only after a separator."""
    parts = re.split(r"(?<=[/:_.\-])(?=\w)", short_label(text, LONGEST_LABEL))
    return Markup("<wbr>").join(map(plain, parts))


def _unbroken(text: str) -> Markup:
    """Words without line breaks inside, also not after a hyphen."""
    span = Markup('<span class="short">{}</span>')
    return Markup(" ").join(span.format(plain(word)) for word in text.split())


def _formula(text: str) -> Markup:
    """Text without line breaks in sums and differences of single letters."""
    return _unbroken_in(text, r"\b(\w [−+=] \w)\b")


def _intervals(text: str) -> Markup:
    """Text without line breaks in intervals and p values."""
    return _unbroken_in(text, r"(\[[^\]]*\]|\bp [=<] \S+)")


def _unbroken_in(text: str, pattern: str) -> Markup:
    """Text with non-breaking spaces in the matches of a pattern with one group."""
    pieces = re.split(pattern, plain(text))
    space = Markup("&nbsp;")
    return Markup("").join(space.join(piece.split(" ")) if k % 2 else piece for k, piece in enumerate(pieces))


def _with_minus(text: str) -> str:
    """A label of the data, a hyphen before a number as a minus sign."""
    return re.sub(r"(?<![\w.\-])-(?=\d)", "−", text)


def _shown_in(cell: Cell, column: Column) -> str:
    """The visible text of a cell."""
    return short_label(cell_text(cell, column, minus="−"), LONGEST_CELL)


def _key(cell: Cell) -> str:
    """The value of a number's cell as JavaScript reads it; empty where it is missing."""
    if cell.value is None or isinstance(cell.value, str):
        return ""
    return f"{float(cell.value):.6g}".replace("inf", "Infinity")
