"""The tables of the leaderboard: the entries of a task, and all facts about one model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants

from audio_compositionality.encoders.loading.names import hub_id_of
from audio_compositionality.evaluator.compare.frame import FrameRow, stated_scores
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.model_verdicts import OF_OUR_DATA, knows_generator
from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.compare.task_verdicts import Standing, VerdictRow, deciding_row
from audio_compositionality.evaluator.results.result import Skipped
from audio_compositionality.hub.errors import Repository
from audio_compositionality.support.table import Cell, Column, Row, Table, to_csv
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.base import Measure, TaskInfo
from audio_compositionality.tasks.registry import load_task

from .board import Board, DataKey, Entry, Shown, is_older

BoardValue = str | float | int | None

LONGEST_SHOWN = 80
"""Most characters of a stranger's text in a cell, an option or a line of a list."""

NOT_STATED = "not stated"
"""Stands for a paradigm or licence that a result does not state."""

NOT_KNOWN = "not known"
"""Stands for an unknown submitter; no user of the Hub has a name with a blank."""

NOT_LEARNT = "not shown to be learnt"
"""Said of a model that is not above its twin, or has none: no score places it above one that is."""

NOT_JUDGED = "not judged"
"""Said of what models are judged beside, and of older versions of a task."""

Values = Mapping[str, tuple[Column, Callable[[Shown], BoardValue]]]
"""Columns by their headings, each with a function that gives a row's value."""


def columns(task: TaskInfo) -> list[Column]:
    """The columns of a task's table. The last one, the entry's name, identifies a clicked row."""
    return [column for column, _ in _shown(task).values()]


def board_table(task: TaskInfo, rows: Sequence[Shown]) -> Table:
    """The rows as a table, in their order."""
    return _table(task, rows, _shown(task))


def board_csv(task: TaskInfo, rows: Sequence[Shown], commit: str) -> str:
    """Rows as CSV, with every measure of the task and everything that distinguishes entries.

    Args:
        task: of the rows.
        rows: in this order.
        commit: of the results repository at which they were read.
    """
    return to_csv(_table(task, rows, {**_shown(task), **_in_files(task, commit)}))


def ranking_heading(task: TaskInfo) -> str:
    """Heading of the column that sorts a task's table at first."""
    return task.measure(task.ranks_by).heading


def ordered(task: TaskInfo, rows: Iterable[Shown], heading: str, *, ascending: bool = False) -> list[Shown]:
    """Rows sorted by a column, independently of their order; those without a value last.

    Whatever the column and the direction, a model that is above all bars stands above one that is above its twin alone,
    and this above all rows that are not shown to be learnt, see `Shown.tier`.

    Args:
        task: of the rows.
        rows: the rows.
        heading: of the column; an unknown one stands for the column that ranks.
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

    # A stable sort: within a tier, the order stays.
    return sorted(sorted(filled, key=key, reverse=not ascending) + missing, key=attrgetter("tier"))


def choices(rows: Iterable[Shown], name: str) -> list[str]:
    """The displayed values of ``paradigm`` or ``licence`` among rows."""
    return sorted({_stated(row.entry, name) for row in rows}, key=str.casefold)


def notes(entry: Entry, task: TaskInfo) -> list[str]:
    """Remarks on an entry beside its numbers."""
    result, options = entry.result, entry.result.model.options
    lines = []
    if entry.reproduces is not None:
        lines.append("a reproduction of an earlier entry")
    if knows_generator(result.model.trained_on):
        lines.append(OF_OUR_DATA)
    if result.task_version != task.version:
        lines.append(f"version {result.task_version} of the task, which is at version {task.version} now")
    for measure in task.measures:
        # A warning of the task, such as a collapsed fit.
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
    """Conditions for the rows to keep.

    Attributes:
        search: words that must all occur in a row's model id, revision, paradigm, licence or submitter's name, in any
            case.
        statuses: the statuses to keep; empty for all.
        paradigms: likewise.
        licences: likewise.
        beside: also untrained networks, controls and baselines.
    """

    search: str = ""
    statuses: frozenset[str] = frozenset()
    paradigms: frozenset[str] = frozenset()
    licences: frozenset[str] = frozenset()
    beside: bool = True

    def keep(self, row: Shown) -> bool:
        """Whether a row is kept."""
        entry = row.entry
        model = entry.result.model
        text = " ".join(
            (model.id, model.revision, model.paradigm or NOT_STATED, model.licence or NOT_STATED, entry.submitter or "")
        ).casefold()
        return (
            (self.beside or entry.kind is ModelKind.TRAINED)
            and all(word in text for word in self.search.casefold().split())
            and (not self.statuses or entry.status in self.statuses)
            and (not self.paradigms or _stated(entry, "paradigm") in self.paradigms)
            and (not self.licences or _stated(entry, "licence") in self.licences)
        )


INTERVAL = "95 % interval"

_TWIN_MEANING = (
    "the difference to the twin by the measure that the task is judged by, with its 95 % interval; of several twins, "
    "to the one that decides"
)


def standing_words(standing: Standing) -> str:
    """Sign and word of a standing: for readers who see no colour, and for print."""
    return f"{SIGNS[standing]} {standing.value}"


def verdict_words(row: Shown) -> str:
    """The verdict on a row: its standing, and that it is not shown to be learnt."""
    if row.verdict is None:
        return NOT_JUDGED
    standing = row.verdict.standing
    if row.is_learnt:
        return standing_words(standing)
    if standing is Standing.NOT_SHOWN:
        return f"{SIGNS[standing]} {NOT_LEARNT}"
    return f"{standing_words(standing)}: {NOT_LEARNT}"


def _twin_row(row: Shown) -> VerdictRow | None:
    """The comparison with the twin that decides; None where there is no twin."""
    deciding = deciding_row(row.twin) if row.twin else None
    return None if deciding is None or deciding.is_missing else deciding


def _twin_words(row: Shown) -> str:
    deciding = _twin_row(row)
    if deciding is None:
        return "no twin" if row.twin else "–"
    return " ".join(filter(None, (deciding.difference_text, deciding.interval_text))) or "cannot tell"


def _shown(task: TaskInfo) -> Values:
    """The scores first, those that rank before the others: a phone shows two or three columns."""
    ranking = task.measure(task.ranks_by)
    first = _measure_columns(task, ranking)
    further = [_measure_columns(task, measure) for measure in task.shown if measure != ranking]
    return _by_heading(
        (_text("model", "its id, as given by the submitter"), lambda row: row.entry.model),
        (_text("verdict", "where the model stands against its twin and the other bars"), verdict_words),
        *first,
        (_text("above its twin by", _TWIN_MEANING), _twin_words),
        (_text("kind", "a model, or what models are judged beside"), lambda row: row.entry.kind.value),
        *(column for columns in further for column in columns),
        (_text("status", "verified: recomputed here; reported: the submitter's word"), lambda row: row.entry.status),
        (_text("submitted by", "who opened the pull request"), lambda row: row.entry.submitter or NOT_KNOWN),
        (_count("dim", "numbers of an embedding"), lambda row: row.entry.result.model.output_dim),
        (_count("parameters", "of the part of the model that runs"), lambda row: row.entry.result.model.parameters),
        (_text("paradigm", "how the model was trained"), lambda row: row.entry.result.model.paradigm or NOT_STATED),
        (_text("licence", "of its weights"), lambda row: row.entry.result.model.licence or NOT_STATED),
        (_text("date", "of the evaluation"), lambda row: row.entry.result.date[:10]),
        (
            _text("notes", "differences from other entries"),
            lambda row: ", ".join(notes(row.entry, task)),
        ),
        (_count("entries", "results that differ in nothing but their date"), lambda row: row.count),
        (_text("entry", "its name in the repository of results"), lambda row: row.entry.id),
    )


def _measure_columns(task: TaskInfo, measure: Measure) -> list[tuple[Column, Callable[[Shown], BoardValue]]]:
    """A measure, its interval where it is the one whose interval is shown, and the bar of the one that ranks."""
    scores = [_number(measure, measure.heading)]
    if measure == _sampled(task):
        meaning = f"of {measure.heading}: BCa bootstrap over {task.samples}"
        scores.append((_text(INTERVAL, meaning), _score(measure, _interval(measure.digits))))
    if measure.name == task.ranks_by and measure.floor is not None:
        # A row's own floor may exceed chance.
        nulls = " and ".join(task.measure(one).heading for one in (measure.null, measure.floor) if one is not None)
        meaning = f"the value that {measure.heading} has to be above: the larger of {nulls}"
        column = Column("to be above", meaning, digits=measure.digits)
        scores.append((column, _score(measure, partial(FrameRow.least, measure=measure, info=task))))
    return scores


def _in_files(task: TaskInfo, commit: str) -> Values:
    """The columns of CSV beside the displayed ones."""
    hidden = [measure for measure in task.measures if not measure.shown and measure.name != task.ranks_by]
    sampled, ends = _sampled(task), (("95 % low", attrgetter("low")), ("95 % high", attrgetter("high")))
    twin = {"difference to its twin": "difference", "difference 95 % low": "low", "difference 95 % high": "high"}
    return _by_heading(
        *((Column(heading), partial(_twin_number, name=name)) for heading, name in twin.items()),
        *((Column(heading), _score(sampled, end)) for heading, end in ends if sampled is not None),
        *(_number(measure, measure.name) for measure in hidden),
        (_count("n"), lambda row: row.entry.result.n),
        (_count("task version"), lambda row: row.entry.result.task_version),
        (_text("revision"), lambda row: row.entry.result.model.revision),
        *((_text(name), partial(_option, name=name)) for name in ("layer", "pooling", "precision")),
        (_text("fingerprint"), lambda row: row.entry.result.fingerprint),
        (_text("folder"), lambda row: row.entry.folder),
        (_text("commit"), lambda row: commit),
    )


def _twin_number(row: Shown, name: str) -> float | None:
    """The difference to the twin, or an end of its interval."""
    deciding = _twin_row(row)
    return None if deciding is None else getattr(deciding, name)


def _by_heading(*pairs: tuple[Column, Callable[[Shown], BoardValue]]) -> Values:
    return {column.heading: (column, value) for column, value in pairs}


def _table(task: TaskInfo, rows: Sequence[Shown], values: Values) -> Table:
    lines = tuple(Row(tuple(_cell(value(row), column) for column, value in values.values())) for row in rows)
    return Table(f"{task.title}: {task.question}", tuple(column for column, _ in values.values()), lines)


def _cell(value: BoardValue, column: Column) -> Cell:
    if isinstance(value, str):
        return Cell(value, shortened(value, LONGEST_SHOWN))
    if isinstance(value, float) and abs(value) >= 1e12:
        # A reported result can hold any number of JSON.
        return Cell(value, f"{value:.3g}")
    return Cell(value)


def _text(heading: str, meaning: str = "") -> Column:
    return Column(heading, meaning, numeric=False)


def _count(heading: str, meaning: str = "") -> Column:
    return Column(heading, meaning, digits=0)


def _score(measure: Measure, read: Callable[[FrameRow], BoardValue]) -> Callable[[Shown], BoardValue]:
    """A value from the frame's row of a measure; None for an entry without the measure."""

    def value(row: Shown) -> BoardValue:
        score = row.entry.scores.get(measure.name)
        return None if score is None else read(score)

    return value


def _number(measure: Measure, heading: str) -> tuple[Column, Callable[[Shown], BoardValue]]:
    def number(row: FrameRow) -> BoardValue:
        return None if row.value is None else float(row.value)

    return Column(heading, measure.meaning, digits=measure.digits), _score(measure, number)


def _interval(digits: int) -> Callable[[FrameRow], BoardValue]:
    return lambda row: None if row.interval is None else interval_words(row.interval, digits)


def _sampled(task: TaskInfo) -> Measure | None:
    """The measure whose interval is shown: the one that ranks, or where this has none, the first with an interval."""
    ranking = task.measure(task.ranks_by)
    return ranking if ranking.column is not None else next(iter(task.sampled), None)


def interval_words(ends: tuple[float, float], digits: int = 3) -> str:
    """An interval in words: a dash could be taken for a minus."""
    low, high = (f"{end:.3g}" if abs(end) >= 1e12 else number_text(end, digits, minus="−") for end in ends)
    return f"{low} to {high}"


def _option(row: Shown, name: str) -> str | None:
    value = getattr(row.entry.result.model.options, name)
    return None if value is None else str(value)


def _stated(entry: Entry, name: str) -> str:
    return shortened(getattr(entry.result.model, name) or NOT_STATED, LONGEST_SHOWN)


# ----- The page of a model


ENTRY_HEADINGS = (
    "task",
    "score",
    "95 % interval",
    "verdict",
    "data",
    "status",
    "submitted by",
    "date",
    "revision",
    "notes",
    "in the table",
    "entry",
)

NUMBER_HEADINGS = ("number", "shown", "as reported", "95 % interval", "meaning")

_MOST_WORDS = 400
"""Most characters of a result's settings."""


def data_name(board: Board, task: str, data: DataKey) -> str:
    """The name of a table's data, see `Board.data_names`; with an older version of the task."""
    name = board.data_names[task, data]
    return f"{name}, older: version {data.version} of the task" if is_older(task, data) else name


def entry_rows(board: Board, model: str) -> tuple[list[list[str]], list[list[str]]]:
    """All entries of a model, one row of `ENTRY_HEADINGS` each: of the installed versions of tasks, and of others."""
    entries = board.of_model(model)
    older = [is_older(entry.result.task, entry.data) for entry in entries]
    rows = [_entry_row(board, entry) for entry in entries]
    return (
        [row for row, is_old in zip(rows, older, strict=True) if not is_old],
        [row for row, is_old in zip(rows, older, strict=True) if is_old],
    )


def _entry_row(board: Board, entry: Entry) -> list[str]:
    info = load_task(entry.result.task).info
    measure = info.measure(info.ranks_by)
    score = entry.scores.get(measure.name)
    row = next((row for row in board.rows(info.name, entry.data) if row.entry is entry), None)
    return [
        info.title,
        _shown_value(score, measure.digits),
        _shown_ends(score, measure.digits),
        "–" if row is None else verdict_words(row),
        data_name(board, info.name, entry.data),
        entry.status,
        shortened(entry.submitter or NOT_KNOWN, LONGEST_SHOWN),
        entry.result.date[:10],
        shortened(entry.result.model.revision, LONGEST_SHOWN),
        ", ".join(notes(entry, info)),
        "yes" if entry.id in board.in_table else "no, a later or verified one is",
        entry.id,
    ]


def number_rows(entry: Entry) -> list[list[str]]:
    """Every measure of an entry, one row of `NUMBER_HEADINGS` each; measures unknown to its task by their names."""
    described = {measure.name: measure for measure in load_task(entry.result.task).info.measures}
    scores, reported = entry.scores, stated_scores(entry.reported)
    return [
        [
            described[name].heading if name in described else shortened(name, LONGEST_SHOWN),
            _shown_value(scores.get(name)),
            _shown_value(reported.get(name)),
            _shown_ends(scores.get(name)),
            described[name].meaning if name in described else "",
        ]
        for name in dict.fromkeys([*described, *scores, *reported])
    ]


def origin_rows(entry: Entry) -> list[list[str]]:
    """An entry's statements beside its numbers: name and value."""
    values = entry.result.model_dump(mode="json")
    for name in ("schema_version", "task", "measures", "intervals", "skipped"):
        del values[name]
    model = values.pop("model")
    rows = [
        ["status", entry.status],
        ["verified on", entry.verified_on or "not verified"],
        ["submitted by", shortened(entry.submitter or NOT_KNOWN, LONGEST_SHOWN)],
        ["reproduction of", shortened(entry.reproduces or "no other entry", LONGEST_SHOWN)],
        ["folder", entry.folder],
    ]
    rows += [[name, shortened(_stated_text(value), _MOST_WORDS)] for name, value in {**model, **values}.items()]
    return [*rows, ["clips left out", _skipped(entry.result.skipped)]]


def folder_url(repository: Repository, commit: str, entry: Entry) -> str:
    """The page of an entry's folder on the Hub."""
    return f"{repository.url}/tree/{quote(commit)}/{quote(entry.folder)}"


def hub_url(entry: Entry) -> str | None:
    """The page of the model on the Hub, where its id is a repository's."""
    name = hub_id_of(entry.model)
    return None if name is None else f"{constants.ENDPOINT}/{name}"


def query_of(model: str) -> str:
    """The query in the board's address that opens it at a model."""
    return f"?model={quote(model, safe='')}"


def _shown_value(row: FrameRow | None, digits: int = 6) -> str:
    value = None if row is None else row.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is not None and abs(value) >= 1e12:
        return f"{value:.6g}"
    return number_text(value, 0 if isinstance(value, int) else digits, minus="−")


def _shown_ends(row: FrameRow | None, digits: int = 6) -> str:
    return "–" if row is None or row.interval is None else interval_words(row.interval, digits)


def _stated_text(value: object) -> str:
    if value is None:
        return "not stated"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _skipped(skipped: Sequence[Skipped]) -> str:
    def listed(items: Iterable[Skipped]) -> str:
        return "; ".join(
            f"{shortened(item.id, LONGEST_SHOWN)} ({shortened(item.reason, LONGEST_SHOWN)})" for item in items
        )

    return "none" if not skipped else f"{len(skipped):,}: {listed(skipped[:5])}{'; …' if len(skipped) > 5 else ''}"
