"""The table of the leaderboard: its columns, which the task describes, and what is left after filtering."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audio_compositionality.support.table import Cell, Column, Row, Table, to_csv
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.base import Measure, TaskInfo, least_of

from .entries import Entry, Shown

Value = str | float | int | None

LONGEST = 80
"""Characters of a stranger's text in a cell, an option or a line of a list."""

NOT_STATED = "not stated"
"""In place of a paradigm or licence that a result does not state."""

NOT_KNOWN = "not known"
"""In place of a submitter that is not known; no user of the Hub has a name with a blank."""

Values = Mapping[str, tuple[Column, Callable[[Shown], Value]]]
"""Columns by their headings, each with its value of a row."""


def columns(task: TaskInfo) -> list[Column]:
    """The columns of a task's table. The last names the entry, by which a row is recognised when it is clicked."""
    return [column for column, _ in _shown(task).values()]


def board_table(task: TaskInfo, rows: Sequence[Shown]) -> Table:
    """The rows as a table, in their order."""
    return _table(task, rows, _shown(task))


def board_csv(task: TaskInfo, rows: Sequence[Shown], commit: str) -> str:
    """Rows as CSV, with every measure of the task and with what tells one entry from another.

    Args:
        task: of the rows.
        rows: in this order.
        commit: of the results repository that they were read from.
    """
    return to_csv(_table(task, rows, {**_shown(task), **_in_files(task, commit)}))


def ranking_heading(task: TaskInfo) -> str:
    """Heading of the column that sorts a task's table at first."""
    return task.measure(task.ranks_by).heading


def ordered(task: TaskInfo, rows: Iterable[Shown], heading: str, *, ascending: bool = False) -> list[Shown]:
    """Rows by the values of a column, whatever order they come in; those without a value last.

    Args:
        task: of the rows.
        rows: to be ordered.
        heading: of the column; one that there is not stands for the one that ranks.
        ascending: the smallest value first.
    """
    shown = _shown(task)
    _, value = shown.get(heading) or shown[ranking_heading(task)]
    fixed = sorted(rows, key=lambda row: (row.entry.model.casefold(), row.entry.id))
    filled = [row for row in fixed if value(row) is not None]
    missing = [row for row in fixed if value(row) is None]

    def key(row: Shown) -> Any:
        cell = value(row)
        return cell.casefold() if isinstance(cell, str) else cell

    return sorted(filled, key=key, reverse=not ascending) + missing


def choices(rows: Iterable[Shown], name: str) -> list[str]:
    """The values of ``paradigm`` or ``licence`` among rows, as they are shown."""
    return sorted({_stated(row.entry, name) for row in rows}, key=str.casefold)


def notes(entry: Entry, task: TaskInfo) -> list[str]:
    """What has to be said of an entry beside its numbers."""
    result, options = entry.result, entry.result.model.options
    lines = []
    if entry.reproduces is not None:
        lines.append("a reproduction of an earlier entry")
    if result.task_version != task.version:
        lines.append(f"version {result.task_version} of the task, which is at version {task.version} now")
    for measure in task.measures:
        # What a task warns of, such as a fit that has collapsed.
        if result.measures.get(measure.name) is True:
            lines.append(measure.heading)
    if options.layer is not None:
        lines.append(f"layer {options.layer}")
    if options.pooling is not None:
        lines.append(f"pooling {shortened(options.pooling, 20)}")
    if options.precision != "float32":
        lines.append(shortened(options.precision, 20))
    for name, default in task.choices.items():
        value = result.settings.get(name, default)
        if value != default:
            lines.append(f"{name} {shortened(str(value), 20)}")
    if result.skipped:
        lines.append(f"{len(result.skipped):,} clips left out")
    return lines


@dataclass(frozen=True)
class Filters:
    """What rows are to be left.

    Attributes:
        search: words that a row must all have in its model's id, revision, paradigm or licence or in its submitter's
            name, whatever their case.
        statuses: the statuses to keep; empty for all.
        paradigms: likewise.
        licences: likewise.
    """

    search: str = ""
    statuses: frozenset[str] = frozenset()
    paradigms: frozenset[str] = frozenset()
    licences: frozenset[str] = frozenset()

    def keep(self, row: Shown) -> bool:
        """Whether a row is left."""
        entry = row.entry
        model = entry.result.model
        text = " ".join(
            (model.id, model.revision, model.paradigm or NOT_STATED, model.licence or NOT_STATED, entry.submitter or "")
        ).casefold()
        return (
            all(word in text for word in self.search.casefold().split())
            and (not self.statuses or entry.status in self.statuses)
            and (not self.paradigms or _stated(entry, "paradigm") in self.paradigms)
            and (not self.licences or _stated(entry, "licence") in self.licences)
        )


def _shown(task: TaskInfo) -> Values:
    """The scores first, those that rank before the others: a phone shows two or three columns."""
    ranking = task.measure(task.ranks_by)
    scores = []
    for measure in (ranking, *(measure for measure in task.shown if measure != ranking)):
        scores.append(_number(measure))
        if measure == _sampled(task):
            meaning = f"of {measure.heading}: BCa bootstrap over {task.samples}"
            scores.append((_text("95 % interval", meaning), _interval(measure)))
        if measure == ranking and measure.floor is not None:
            scores.append(_least(measure, task))
    return _by_heading(
        (_text("model", "by the id that its submitter gives"), lambda row: row.entry.model),
        *scores,
        (_text("status", "verified: recomputed here; reported: the submitter's word"), lambda row: row.entry.status),
        (_text("submitted by", "who opened the pull request"), lambda row: row.entry.submitter or NOT_KNOWN),
        (Column("dim", "numbers of an embedding", digits=0), lambda row: row.entry.result.model.output_dim),
        (Column("parameters", "of what is run", digits=0), lambda row: row.entry.result.model.parameters),
        (_text("paradigm", "how the model was trained"), lambda row: row.entry.result.model.paradigm or NOT_STATED),
        (_text("licence", "of its weights"), lambda row: row.entry.result.model.licence or NOT_STATED),
        (_text("date", "of the evaluation"), lambda row: row.entry.result.date[:10]),
        (_text("notes", "how it departs from others"), lambda row: ", ".join(notes(row.entry, task))),
        (Column("entries", "results that differ in nothing but their date", digits=0), lambda row: row.count),
        (_text("entry", "its name in the repository of results"), lambda row: row.entry.id),
    )


def _in_files(task: TaskInfo, commit: str) -> Values:
    """What CSV has beside the columns that are shown."""
    hidden = [measure for measure in task.measures if not measure.shown and measure.name != task.ranks_by]
    sampled = _sampled(task)
    ends = () if sampled is None else ((Column("95 % low"), _end(sampled, 0)), (Column("95 % high"), _end(sampled, 1)))
    return _by_heading(
        *ends,
        *((Column(measure.name, measure.meaning, digits=measure.digits), _measured(measure)) for measure in hidden),
        (Column("n", digits=0), lambda row: row.entry.result.n),
        (Column("task version", digits=0), lambda row: row.entry.result.task_version),
        (_text("revision"), lambda row: row.entry.result.model.revision),
        (_text("layer"), lambda row: _option(row, "layer")),
        (_text("pooling"), lambda row: _option(row, "pooling")),
        (_text("precision"), lambda row: _option(row, "precision")),
        (_text("fingerprint"), lambda row: row.entry.result.fingerprint),
        (_text("folder"), lambda row: row.entry.folder),
        (_text("commit"), lambda row: commit),
    )


def _by_heading(*pairs: tuple[Column, Callable[[Shown], Value]]) -> Values:
    return {column.heading: (column, value) for column, value in pairs}


def _table(task: TaskInfo, rows: Sequence[Shown], values: Values) -> Table:
    lines = tuple(Row(tuple(_cell(value(row), column) for column, value in values.values())) for row in rows)
    return Table(f"{task.title}: {task.question}", tuple(column for column, _ in values.values()), lines)


def _cell(value: Value, column: Column) -> Cell:
    if isinstance(value, str):
        return Cell(value, shortened(value, LONGEST))
    if isinstance(value, float) and abs(value) >= 1e12:
        # A reported result can have anything of JSON's numbers.
        return Cell(value, f"{value:.3g}")
    return Cell(value)


def _text(heading: str, meaning: str = "") -> Column:
    return Column(heading, meaning, numeric=False)


def _number(measure: Measure) -> tuple[Column, Callable[[Shown], Value]]:
    return Column(measure.heading, measure.meaning, digits=measure.digits), _measured(measure)


def _measured(measure: Measure) -> Callable[[Shown], Value]:
    def value(row: Shown) -> Value:
        number = row.entry.result.measures.get(measure.name)
        return None if number is None else float(number)

    return value


def _least(measure: Measure, task: TaskInfo) -> tuple[Column, Callable[[Shown], Value]]:
    """What a measure with a floor has to be above: a row's own numbers may raise it over chance."""

    def value(row: Shown) -> Value:
        least = least_of(measure, task, row.entry.result.measures)
        return None if least is None else least[1]

    names = " and ".join(task.measure(name).heading for name in (measure.null, measure.floor) if name is not None)
    meaning = f"what {measure.heading} has to be above: the larger of {names}"
    return Column("to be above", meaning, digits=measure.digits), value


def _sampled(task: TaskInfo) -> Measure | None:
    """The measure whose interval is shown: the one that ranks, or where that has none the first that has."""
    ranking = task.measure(task.ranks_by)
    return ranking if ranking.column is not None else next(iter(task.sampled), None)


def _interval(measure: Measure) -> Callable[[Shown], Value]:
    def value(row: Shown) -> Value:
        ends = row.entry.interval(measure.name)
        return None if ends is None else interval_text(ends, measure.digits)

    return value


def _end(measure: Measure, place: int) -> Callable[[Shown], Value]:
    def value(row: Shown) -> Value:
        ends = row.entry.interval(measure.name)
        return None if ends is None else ends[place]

    return value


def interval_text(ends: tuple[float, float], digits: int = 3) -> str:
    """An interval in words: a dash could be taken for a minus."""
    low, high = (f"{end:.3g}" if abs(end) >= 1e12 else number_text(end, digits, minus="−") for end in ends)
    return f"{low} to {high}"


def _option(row: Shown, name: str) -> str | None:
    value = getattr(row.entry.result.model.options, name)
    return None if value is None else str(value)


def _stated(entry: Entry, name: str) -> str:
    return shortened(getattr(entry.result.model, name) or NOT_STATED, LONGEST)
