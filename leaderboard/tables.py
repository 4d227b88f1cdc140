"""The tables of the leaderboard: the entries of a task, and all facts about one model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants

from audio_compositionality.encoders.loading.names import hub_id_of
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.model_verdicts import OF_OUR_DATA, knows_generator
from audio_compositionality.evaluator.compare.rows import ScoreRow, stated_scores
from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.compare.task_verdicts import Standing, VerdictRow, deciding_row
from audio_compositionality.hub.errors import Repository
from audio_compositionality.support.table import Cell, Column, Row, Table, to_csv
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.base import Measure, TaskInfo
from audio_compositionality.tasks.registry import load_task

from .board import Board, DataKey, Entry, Shown, is_older

BoardValue = str | float | int | None

LONGEST_SHOWN = 80
"""Most characters of a third party's text in a cell, an option or a line of a list."""

NOT_STATED = "not stated"
"""Stands for a paradigm or licence that a result does not state."""

NOT_KNOWN = "not known"
"""Stands for an unknown submitter; no user of the Hub has a name with a blank."""

NOT_LEARNT = "no evidence of learning yet"
"""Said of a model that is not above its twin, or has none: no score places it above one that is."""

NOT_JUDGED = "not judged"
"""Said of what models are judged beside, and of older versions of a task."""

INTERVAL = "95 % interval"

_TWIN_NUMBERS = {"difference to its twin": "difference", "difference 95 % low": "low", "difference 95 % high": "high"}
"""Columns of CSV, and the numbers of the comparison with the twin in them."""


def columns(task: TaskInfo) -> list[Column]:
    """The columns of a task's table: the scores first, those that rank before the others, since a phone shows two or
    three columns. The last one, the entry's name, identifies a clicked row."""
    ranking, of_measures = task.measure(task.ranks_by), []
    for measure in (ranking, *(measure for measure in task.shown if measure != ranking)):
        columns = [Column(measure.heading, measure.meaning, digits=measure.digits)]
        if measure == _sampled(task):
            columns.append(_text(INTERVAL, f"of {measure.heading}: BCa bootstrap over {task.samples}"))
        if measure == ranking and measure.trivial is not None:
            # A row's own trivial baseline may exceed chance.
            nulls = " and ".join(
                task.measure(one).heading for one in (measure.null, measure.trivial) if one is not None
            )
            meaning = f"the value that {measure.heading} has to be above: the larger of {nulls}"
            columns.append(Column("to be above", meaning, digits=measure.digits))
        of_measures.append(columns)
    return [
        _text("model", "its id, as given by the submitter"),
        _text("verdict", "the model compared with its untrained twin and the baselines"),
        *of_measures[0],
        _text(
            "above its twin by",
            "the difference to the untrained twin in the measure of the verdict, with its 95 % interval; if there are "
            "several twins, to the one that decides",
        ),
        _text("kind", "a model, an untrained network, a baseline or a control"),
        *(column for columns in of_measures[1:] for column in columns),
        _text("status", "verified: recomputed here; reported: the submitter's numbers"),
        _text("submitted by", "who opened the pull request"),
        Column("dim", "numbers of an embedding", digits=0),
        Column("parameters", "of the part of the model that runs", digits=0),
        _text("paradigm", "how the model was trained"),
        _text("licence", "of its weights"),
        _text("date", "of the evaluation"),
        _text("notes", "differences from other entries"),
        Column("entries", "results that differ in nothing but their date", digits=0),
        _text("entry", "its name in the repository of results"),
    ]


def _text(heading: str, meaning: str = "") -> Column:
    return Column(heading, meaning, numeric=False)


def _sampled(task: TaskInfo) -> Measure | None:
    """The measure whose interval is shown: the one that ranks, or where this has none, the first with an interval."""
    ranking = task.measure(task.ranks_by)
    return ranking if ranking.column is not None else next(iter(task.sampled), None)


def _values(task: TaskInfo, row: Shown) -> dict[str, BoardValue]:
    """The values of a row, by the headings of `columns`."""
    entry, result, model = row.entry, row.entry.result, row.entry.result.model
    numbers: dict[str, BoardValue] = {}
    for measure in (task.measure(task.ranks_by), *task.shown):
        score = entry.scores.get(measure.name)
        numbers[measure.heading] = None if score is None or score.value is None else float(score.value)
        if measure == _sampled(task):
            interval = None if score is None else score.interval
            numbers[INTERVAL] = None if interval is None else interval_words(interval, measure.digits)
        if measure.name == task.ranks_by:
            numbers["to be above"] = None if score is None else score.least(measure, task)
    twin, difference = _twin_row(row), "no twin" if row.twin else "–"
    if twin is not None:
        difference = twin.figure or "cannot tell"
    return {
        **numbers,
        "model": entry.model,
        "verdict": verdict_words(row),
        "above its twin by": difference,
        "kind": entry.kind.value,
        "status": entry.status,
        "submitted by": entry.submitter or NOT_KNOWN,
        "dim": model.output_dim,
        "parameters": model.parameters,
        "paradigm": model.paradigm or NOT_STATED,
        "licence": model.licence or NOT_STATED,
        "date": result.date[:10],
        "notes": ", ".join(notes(entry, task)),
        "entries": row.count,
        "entry": entry.id,
    }


def board_table(task: TaskInfo, rows: Sequence[Shown]) -> Table:
    """The rows as a table, in their order."""
    return _table(task, columns(task), [_values(task, row) for row in rows])


def board_csv(task: TaskInfo, rows: Sequence[Shown], commit: str) -> str:
    """Rows as CSV, with every measure of the task and everything that distinguishes entries.

    Args:
        task: of the rows.
        rows: in this order.
        commit: of the results repository at which they were read.
    """
    hidden = [measure for measure in task.measures if not measure.shown and measure.name != task.ranks_by]
    sampled, lines = _sampled(task), []
    more = [Column(heading) for heading in (*_TWIN_NUMBERS, *(("95 % low", "95 % high") if sampled else ()))]
    more += [Column(measure.name, measure.meaning, digits=measure.digits) for measure in hidden]
    more += [Column("n", digits=0), Column("task version", digits=0)]
    of_model = ("layer", "pooling", "precision")
    more += map(_text, ("revision", *of_model, "fingerprint", "rows digest", "folder", "commit"))
    for row in rows:
        entry, result, twin = row.entry, row.entry.result, _twin_row(row)
        values = _values(task, row)
        values |= {heading: None if twin is None else getattr(twin, name) for heading, name in _TWIN_NUMBERS.items()}
        score = None if sampled is None else entry.scores.get(sampled.name)
        values |= {"95 % low": None if score is None else score.low, "95 % high": None if score is None else score.high}
        for measure in hidden:
            number = entry.scores.get(measure.name)
            values[measure.name] = None if number is None or number.value is None else float(number.value)
        options = {name: getattr(result.model.options, name) for name in of_model}
        values |= {name: None if value is None else str(value) for name, value in options.items()}
        values |= {"n": result.n, "task version": result.task_version, "revision": result.model.revision}
        values |= {"fingerprint": result.fingerprint, "rows digest": result.rows_digest}
        values |= {"folder": entry.folder, "commit": commit}
        lines.append(values)
    # A hidden measure of the name of a column is in its place.
    by_heading = {column.heading: column for column in (*columns(task), *more)}
    return to_csv(_table(task, list(by_heading.values()), lines))


def _table(task: TaskInfo, shown: Sequence[Column], lines: Sequence[Mapping[str, BoardValue]]) -> Table:
    rows = []
    for values in lines:
        cells = []
        for value in (values[column.heading] for column in shown):
            if isinstance(value, str):
                cells.append(Cell(value, shortened(value, LONGEST_SHOWN)))
            # A reported result can hold any number of JSON.
            elif isinstance(value, float) and abs(value) >= 1e12:
                cells.append(Cell(value, f"{value:.3g}"))
            else:
                cells.append(Cell(value))
        rows.append(Row(tuple(cells)))
    return Table(f"{task.title}: {task.question}", tuple(shown), tuple(rows))


def ranking_heading(task: TaskInfo) -> str:
    """Heading of the column that sorts a task's table at first."""
    return task.measure(task.ranks_by).heading


def ordered(task: TaskInfo, rows: Iterable[Shown], heading: str, *, ascending: bool = False) -> list[Shown]:
    """Rows sorted by a column, independently of their order; those without a value last.

    Whatever the column and the direction, a model that is above all baselines stands above one that is above its twin
    alone, and this above all rows that are not shown to be learnt, see `Shown.tier`.

    Args:
        task: of the rows.
        rows: the rows.
        heading: of the column; an unknown one stands for the column that ranks.
        ascending: the smallest value first.
    """
    if heading not in {column.heading for column in columns(task)}:
        heading = ranking_heading(task)
    fixed = sorted(rows, key=lambda row: (row.entry.model.casefold(), row.entry.id))
    valued = [(_values(task, row)[heading], row) for row in fixed]
    filled: list[tuple[Any, Shown]] = [pair for pair in valued if pair[0] is not None]
    filled.sort(key=lambda pair: pair[0].casefold() if isinstance(pair[0], str) else pair[0], reverse=not ascending)
    # A stable sort: within a tier, the order stays.
    return sorted(
        [row for _, row in filled] + [row for value, row in valued if value is None], key=lambda row: row.tier
    )


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
        paradigms: the paradigms to keep; empty for all.
        licences: the licences to keep; empty for all.
        controls: also untrained networks, controls and baselines.
    """

    search: str = ""
    statuses: frozenset[str] = frozenset()
    paradigms: frozenset[str] = frozenset()
    licences: frozenset[str] = frozenset()
    controls: bool = True

    def keep(self, row: Shown) -> bool:
        """Whether a row is kept."""
        entry = row.entry
        model = entry.result.model
        text = " ".join(
            (model.id, model.revision, model.paradigm or NOT_STATED, model.licence or NOT_STATED, entry.submitter or "")
        ).casefold()
        return (
            (self.controls or entry.kind is ModelKind.TRAINED)
            and all(word in text for word in self.search.casefold().split())
            and (not self.statuses or entry.status in self.statuses)
            and (not self.paradigms or _stated(entry, "paradigm") in self.paradigms)
            and (not self.licences or _stated(entry, "licence") in self.licences)
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
    """Return the comparison with the deciding twin; None without a twin."""
    deciding = deciding_row(row.twin) if row.twin else None
    return None if deciding is None or deciding.is_missing else deciding


def interval_words(ends: tuple[float, float], digits: int = 3) -> str:
    """An interval in words: a dash could be taken for a minus."""
    low, high = (f"{end:.3g}" if abs(end) >= 1e12 else number_text(end, digits, minus="−") for end in ends)
    return f"{low} to {high}"


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
    current: list[list[str]] = []
    older: list[list[str]] = []
    for entry in board.of_model(model):
        info = load_task(entry.result.task).info
        measure = info.measure(info.ranks_by)
        score = entry.scores.get(measure.name)
        row = next((row for row in board.rows(info.name, entry.data) if row.entry is entry), None)
        line = [
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
        (older if is_older(info.name, entry.data) else current).append(line)
    return current, older


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
    for name, value in {**model, **values}.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        rows.append([name, shortened("not stated" if value is None else text, _MOST_WORDS)])
    skipped = entry.result.skipped
    left_out = [
        f"{shortened(item.id, LONGEST_SHOWN)} ({shortened(item.reason, LONGEST_SHOWN)})" for item in skipped[:5]
    ]
    more = "; …" if len(skipped) > 5 else ""
    return [*rows, ["clips left out", f"{len(skipped):,}: {'; '.join(left_out)}{more}" if skipped else "none"]]


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


def _shown_value(row: ScoreRow | None, digits: int = 6) -> str:
    value = None if row is None else row.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is not None and abs(value) >= 1e12:
        return f"{value:.6g}"
    return number_text(value, 0 if isinstance(value, int) else digits, minus="−")


def _shown_ends(row: ScoreRow | None, digits: int = 6) -> str:
    return "–" if row is None or row.interval is None else interval_words(row.interval, digits)
