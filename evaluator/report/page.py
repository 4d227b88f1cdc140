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
from audio_compositionality.evaluator.compare import summary
from audio_compositionality.evaluator.compare.comparison import Comparison, compare_results
from audio_compositionality.evaluator.compare.diversity import MIN_CLUSTERS
from audio_compositionality.evaluator.compare.loading import GivenResults, ModelKind
from audio_compositionality.evaluator.compare.model_verdicts import Verdicts, verdicts_of
from audio_compositionality.evaluator.compare.statistics import BOOTSTRAP_RESAMPLES, MIN_SAMPLES
from audio_compositionality.evaluator.compare.tables import NOT_INCLUDED
from audio_compositionality.evaluator.compare.task_verdicts import LEAST_DIFFERENCE, baseline_standing
from audio_compositionality.evaluator.figures.layout import short_label
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import read_file, write_whole
from audio_compositionality.support.latex import to_latex
from audio_compositionality.support.table import Cell, cell_text, to_markdown
from audio_compositionality.support.text import counted, listed, number_text, plain, shortened
from audio_compositionality.tasks.base import UNTRAINED_TWIN
from audio_compositionality.tasks.registry import benchmark_info

from .facts import LONGEST_TEXT, fact_tables
from .listening import PLAYBACK_GAIN, hear_samples
from .matrix import matrix_of
from .overview import named_baselines
from .sections import SECTION_STEPS, Section, is_long, page_sections, section_title
from .telling import ONE_ORDER, UNPARSED, WRONG_WITH

MOST_PAGE_BYTES = 4_900_000
"""Most bytes of a page, which has to stay below 5 MB."""

MOST_ANSWERABLE = 100
"""Most rows in a task's list of questions answerable without audio; `audio-compositionality compare --table` prints
all."""

MOST_PICTURED = 6
"""Most tasks whose pictures are not folded."""

MOST_COPIED = 100
"""Most rows of a table that can be copied as LaTeX and Markdown: no paper prints a longer one."""

LONGEST_CAPTION = 300
"""Most characters of a table's caption, which may contain a third party's text."""

LONGEST_CELL = 600
"""Most characters of a cell: enough for our own conclusions, a limit for a third party's text."""

LONGEST_LABEL = 90
"""Most characters of a row's name, which may name two models; a longer one is shortened in its middle."""


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
    """Write the report of results as one HTML file, and return its path; the file appears only when complete.

    Args:
        results: one or several folders of results, their JSON files, or results that `evaluate` has returned.
        out: the file.
        data: the source of the data (a preset, a folder or a Hub id); by default as the results state. If it cannot be
            opened, the report has no clips and no diversity, with a note.
        model: id of the model whose highest- and lowest-scoring samples are played; by default, the mean score of all
            models that are neither baselines nor untrained decides.
        figures: folder for all figures, as SVG and PNG; None writes none.
        command: the command that makes the report, printed in it.
        progress: show a progress bar.

    Raises:
        ResultError: there are no results, or a damaged one.
        DatasetError: `data` is given but cannot be opened, or belongs to none of the results.
        InputError: there is no result of `model`, or `out` is a folder.
        OSError: the file cannot be written.
    """
    check_report_file(Path(out))
    verdicts = verdicts_of(compare_results(results, data=data))
    return write_verdicts(verdicts, out, model=model, figures=figures, command=command, progress=progress)


@dataclass(frozen=True)
class Report(os.PathLike[str]):
    """A written report: it can be used as a path, and a notebook shows it.

    Attributes:
        path: of the file; absolute, so that it stays valid if a notebook changes its folder.
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", self.path.absolute())

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        """Return the page in an HTML frame whose script has no access to the notebook."""
        page = escape(read_file(self.path).decode())
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
    """Raise InputError if the file of a report is a folder."""
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
        warnings.warn(f"the report has {size / 1e6:.1f} MB; for a smaller one, give fewer results", stacklevel=2)
    write_whole(out, page)
    return out


def _page(sections: Sequence[Section], verdicts: Verdicts, command: str | None) -> str:
    """Return the page; its clips are cut if it would be larger than `MOST_PAGE_BYTES`."""
    template = _environment().get_template("report.html")
    comparisons = verdicts.comparisons
    tasks = {comparison.info.name: comparison.info for comparison in comparisons}
    baselines = named_baselines(comparisons)
    # The kinds of twins in the pictures; without a judged model, untrained twins alone.
    twins = dict.fromkeys(
        section.comparison.info.twin[1]
        for section in sections
        if any(mark.kind == "twin" for view in section.overviews for line in view.lines for mark in line.marks)
    )
    facts = {
        "sections": sections,
        "verdicts": verdicts,
        "matrix": matrix_of(verdicts),
        "verdict_tables": [table for table in summary.verdict_tables(verdicts) if table.rows],
        "summary_table": summary.summary_table(verdicts),
        "series": [
            table for table in (summary.layer_table(comparisons), summary.size_table(comparisons)) if table is not None
        ],
        "summary": _summary(comparisons),
        "lettered": [one for one in comparisons if set(one.info.captions) >= _LETTERS],
        "twin_words": [words for words in twins if verdicts.models or words == UNTRAINED_TWIN[1]],
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
    chosen = [sample for section in sections for sample in section.samples]
    most = math.inf
    while True:
        heard = hear_samples(chosen, most)
        by_section = {section.name: tuple(islice(heard, len(section.samples))) for section in sections}
        page = template.render(heard=by_section, **facts)
        excess = len(page.encode()) - MOST_PAGE_BYTES
        if excess <= 0 or most < math.inf:
            return page
        clips = (clip for samples in by_section.values() for sample in samples for clip in sample.clips)
        audio = sum(len(clip.audio) for clip in clips)
        # Three bytes are four in base64, and the page then has a note about cut clips. A tenth stays in any case.
        most = max(audio - 0.75 * (excess + 1_000), audio / 10)


_LETTERS = {"A", "B", "C", "D"}
"""Names of the clips that the first screen explains in a drawing."""


def _summary(comparisons: Sequence[Comparison]) -> str:
    """Return the number of models of each kind, and the data, in words."""
    models = {
        (result.result.model.id, result.result.model.revision): result.kind
        for comparison in comparisons
        for result in comparison.results
    }
    kinds = Counter(models.values())
    words = {kind: kind.value for kind in ModelKind} | {ModelKind.TRAINED: "model"}
    counts = [counted(kinds[kind], words[kind]) for kind in ModelKind if kinds[kind]]
    data = dict.fromkeys(shortened(comparison.dataset, LONGEST_TEXT) for comparison in comparisons)
    kind = "preset" if all(map(is_preset, data)) else "data"
    return f"{listed(counts)} on the {kind} “{listed(list(data))}”"


def _data_summary(comparisons: Sequence[Comparison]) -> str:
    """Return the size of each task's data in words, together for a full benchmark with many tasks.

    If the data can be opened, this includes the numbers of rows and clips.
    """
    parts = []
    for comparison in comparisons:
        place = (comparison.info.benchmark, comparison.dataset)
        together = [other for other in comparisons if (other.info.benchmark, other.dataset) == place]
        if is_long(together):
            title = f"{benchmark_info(place[0]).title} on {shortened(comparison.dataset, LONGEST_TEXT)}"
            scored, joined = f"{len(together)} tasks", "on"
        else:
            together, title, joined = [comparison], section_title(comparison), "of"
            scored = f"{len(comparison.ids):,} {comparison.info.samples}"
        opened = {one.info.recipe: one.configuration for one in together}
        configurations = [configuration for configuration in opened.values() if configuration is not None]
        if len(configurations) == len(opened):
            rows = sum(len(configuration.rows) for configuration in configurations)
            clips = sum(len(configuration.clip_ids) for configuration in configurations)
            scored += f" {joined} {rows:,} rows with {clips:,} clips"
        parts.append(f"{title}: {scored}")
    return "; ".join(dict.fromkeys(parts))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        # Texts that are not a part of the page itself are shown as they are.
        finalize=lambda value: plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (Markup(_template(name)) for name in ("report.css", "report.js"))
    # The page's own style and script by their hash, embedded pictures and sound, nothing else.
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    policy = (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; img-src data:; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    environment.globals.update(
        style=style,
        script=script,
        policy=policy,
        min_samples=MIN_SAMPLES,
        min_clusters=MIN_CLUSTERS,
        playback_gain=PLAYBACK_GAIN,
        resamples=BOOTSTRAP_RESAMPLES,
        matters=LEAST_DIFFERENCE,
        baseline_standing=baseline_standing,
        signs=summary.SIGNS,
        most_pictured=MOST_PICTURED,
        most_answerable=MOST_ANSWERABLE,
        not_included=NOT_INCLUDED,
        most_copied=MOST_COPIED,
        longest_caption=LONGEST_CAPTION,
        findings=(WRONG_WITH, ONE_ORDER, UNPARSED),
    )
    environment.filters.update(
        base64=lambda data: base64.b64encode(data).decode("ascii"),
        decibels=lambda gain: 20 * math.log10(gain),
        number=lambda value, digits=3: number_text(value, digits, minus="−"),
        shortened=lambda text, limit=LONGEST_TEXT: short_label(text, limit),
        shown_in=lambda cell, column: short_label(cell_text(cell, column, minus="−"), LONGEST_CELL),
        breakable=_breakable,
        unbroken=_unbroken,
        # Without line breaks in sums and differences of single letters; in intervals and p values.
        formula=lambda text: _unbroken_in(text, r"\b(\w [−+=] \w)\b"),
        intervals=lambda text: _unbroken_in(
            text, r"(\[[^\]]*\]|\b95% CI \S+ to [^\s;)]+|\badjusted p [=<] [^\s;).]+(?:\.\d+)?|\bp [=<] \S+)"
        ),
        # A label of the data, a hyphen before a number as a minus sign.
        with_minus=lambda text: re.sub(r"(?<![\w.\-])-(?=\d)", "−", text),
        latex=lambda table: _lines(to_latex(table)),
        markdown=lambda table: _lines(to_markdown(table)),
        key=_key,
        first_rows=lambda table, most: replace(table, rows=table.rows[:most]),
        lines=_lines,
    )
    return environment


def _template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text("utf-8")


def _lines(text: str) -> Markup:
    """Return a text with its line ends."""
    return Markup("\n").join(map(plain, text.split("\n")))


def _breakable(text: str) -> Markup:
    """Return a name that breaks only after a separator."""
    parts = re.split(r"(?<=[/:_.\-])(?=\w)", short_label(text, LONGEST_LABEL))
    return Markup("<wbr>").join(map(plain, parts))


def _unbroken(text: str) -> Markup:
    """Return a text whose words do not break, not even after a hyphen."""
    span = Markup('<span class="short">{}</span>')
    return Markup(" ").join(span.format(plain(word)) for word in text.split())


def _unbroken_in(text: str, pattern: str) -> Markup:
    """Return a text with non-breaking spaces in the matches of a pattern with one group."""
    pieces = re.split(pattern, plain(text))
    space = Markup("&nbsp;")
    return Markup("").join(space.join(piece.split(" ")) if k % 2 else piece for k, piece in enumerate(pieces))


def _key(cell: Cell) -> str:
    """Return the value of a number's cell as JavaScript reads it; empty if it is missing."""
    if cell.value is None or isinstance(cell.value, str):
        return ""
    return f"{float(cell.value):.6g}".replace("inf", "Infinity")
