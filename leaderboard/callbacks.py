"""The page's answers to visitors' actions: the values of its components. Nothing is computed here.

Submitters' texts reach the page as plain text alone: cells, options and text boxes, never Markdown; in the HTML of the
overview they are escaped.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from audio_compositionality.hub.errors import Repository
from audio_compositionality.hub.names import leaderboard_of
from audio_compositionality.support.table import cell_text
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.base import TaskInfo
from audio_compositionality.tasks.registry import benchmark_info, list_tasks

from .board import VERIFIED, Board, DataKey, is_older
from .components import (
    QUIET,
    dataframe_options,
    nothing_yet,
    standing_style,
    task_caption,
    task_choices,
)
from .plots import MOST_PLOTTED, Plots
from .reading import MAX_AGE, BoardReading, BoardSource
from .standings import (
    ALL_BENCHMARKS,
    benchmark_names,
    data_label,
    data_names,
    model_conclusion,
    standing_columns,
    standing_html,
    standing_rows,
)
from .tables import (
    LONGEST_SHOWN,
    Filters,
    board_csv,
    board_table,
    choices,
    columns,
    data_name,
    entry_rows,
    folder_url,
    hub_url,
    number_rows,
    ordered,
    origin_rows,
    query_of,
    ranking_heading,
)

PICKED_AT_FIRST = 5
"""Rows in the plot before the visitor has picked any."""

SOON = 2.0
"""Seconds after which an open page is refreshed while the board is being read."""

_FILES_KEPT = 50


@dataclass(frozen=True)
class Selection:
    """A visitor's choices: the values of `TableTab.filters`, in their order."""

    task: str
    data: str
    search: str
    statuses: list[str]
    paradigms: list[str]
    licences: list[str]
    sort: str
    ascending: bool
    picked: list[str]
    measure: str
    controls: bool
    older: bool

    @classmethod
    def of(cls, *values: Any) -> Selection:
        """From the browser's values, which may be anything."""
        task, data, search, statuses, paradigms, licences, sort, ascending, picked, measure, controls, older = values
        return cls(
            _text(task),
            _text(data),
            _text(search)[:200],
            _texts(statuses),
            _texts(paradigms),
            _texts(licences),
            _text(sort),
            ascending is True,
            _texts(picked),
            _text(measure),
            controls is not False,
            older is True,
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


class PageCallbacks:
    """The board, and the plots of its entries: the sources of all answers."""

    def __init__(
        self, source: BoardSource, plots: Plots, results: Repository | None, org: str, checks: Callable[[], str]
    ) -> None:
        """Nothing is read yet.

        Args:
            source: of the board.
            plots: draws entries.
            results: the displayed repository; None for results on this machine.
            org: the leaderboard's organisation.
            checks: gives the state of the checks of pull requests.
        """
        self._source = source
        self._plots = plots
        self._results = results
        self._org = org
        self._checks = checks
        self._files = _Files()
        self._tasks = {task.info.name: task.info for task in list_tasks()}

    @property
    def tasks(self) -> list[TaskInfo]:
        """All tasks that are installed, those on request last."""
        return list(self._tasks.values())

    def read_again(self) -> None:
        """Have the board read as soon as this is allowed."""
        self._source.expire()

    @property
    def board(self) -> Board:
        """The board of the last reading."""
        return self._source.last.board

    def models(self) -> list[tuple[str, str]]:
        """Options of the list of models."""
        return [(shortened(id, LONGEST_SHOWN), id) for id in self.board.models]

    def _task(self, name: str) -> TaskInfo:
        """The task of a name, where the board has entries of it; else the first task with entries."""
        filled = self._filled()
        return next((task for task in filled if task.name == name), filled[0])

    def _filled(self) -> list[TaskInfo]:
        """The tasks with entries; all tasks where the board is empty, those on request last."""
        return [task for name, task in self._tasks.items() if name in self.board.data] or list(self._tasks.values())

    @staticmethod
    def _keys(board: Board, task: str, older: bool) -> list[DataKey]:
        """Return the data of a task; of older versions only on request, or if there are no others."""
        keys = board.data.get(task, ())
        return [key for key in keys if older or not is_older(task, key)] or list(keys)

    def overview(self, sent_data: Any, sent_benchmark: Any, controls: Any) -> list[Any]:
        """The overview for the chosen data and columns, or for others where these are gone."""
        board = self.board
        names = data_names(board)
        data = sent_data if sent_data in names else next(iter(names), "")
        benchmarks = benchmark_names(board, data)
        benchmark = sent_benchmark if sent_benchmark in benchmarks else ALL_BENCHMARKS
        columns = standing_columns(board, data, benchmark)
        rows = standing_rows(columns, controls=controls is not False) if columns else []
        options = [(ALL_BENCHMARKS, ALL_BENCHMARKS), *((benchmark_info(name).title, name) for name in benchmarks)]
        is_empty = self._source.last.at is not None and not board.entries
        return [
            gr.Markdown(nothing_yet(self._org) if is_empty else "", visible=is_empty),
            gr.update(
                choices=[(data_label(board, name), name) for name in names],
                value=data or None,
                visible=bool(names),
            ),
            gr.update(choices=options, value=benchmark, visible=bool(rows)),
            gr.update(visible=bool(rows)),
            gr.HTML(standing_html(columns, rows) if rows else "", visible=bool(rows)),
        ]

    def refreshed(self, selection: Selection) -> list[Any]:
        """All values that depend on the board, for the selected task and data, or for others where these are gone."""
        # In this order: a board that is no longer pending has been read.
        pending = self._source.pending
        reading = self._source.last
        board, task = reading.board, self._task(selection.task)
        keys = self._keys(board, task.name, selection.older)
        data = _key(selection.data, keys)
        rows = [] if data is None else board.rows(task.name, data)
        headings = [column.heading for column in columns(task)]
        paradigms, licences = choices(rows, "paradigm"), choices(rows, "licence")
        best = ordered(task, rows, ranking_heading(task))
        ids = [row.entry.id for row in best]
        measures = [(measure.heading, measure.name) for measure in task.sampled]
        kept = replace(
            selection,
            task=task.name,
            data=str(data or ""),
            paradigms=[value for value in selection.paradigms if value in paradigms],
            licences=[value for value in selection.licences if value in licences],
            sort=selection.sort if selection.sort in headings else ranking_heading(task),
            picked=[id for id in selection.picked if id in ids] or ids[:PICKED_AT_FIRST],
            measure=_measure(task, selection.measure),
        )
        table, csv = self.filtered(kept)
        sizes = {key: f"{board.rows(task.name, key)[0].entry.result.n:,} {task.samples}" for key in keys}
        sized = [(f"{data_name(board, task.name, key)}, {size}", str(key)) for key, size in sizes.items()]
        labels = [
            f"{shortened(row.entry.model, LONGEST_SHOWN)} ({row.entry.status}, {row.entry.id[-16:][:8]})"
            for row in best
        ]
        return [
            _state(reading, pending),
            [[shortened(item.path, 300), shortened(item.reason, 300)] for item in board.rejected],
            self._checks(),
            gr.Timer(SOON if pending else MAX_AGE),
            gr.update(choices=self.models()),
            gr.update(choices=task_choices(self._filled()), value=task.name),
            gr.update(choices=sized, value=kept.data or None),
            gr.update(choices=paradigms, value=kept.paradigms),
            gr.update(choices=licences, value=kept.licences),
            gr.update(choices=headings, value=kept.sort),
            table,
            csv,
            task_caption(task),
            gr.update(choices=list(zip(labels, ids, strict=True)), value=kept.picked),
            gr.update(choices=measures, value=kept.measure or None),
        ]

    def filtered(self, selection: Selection) -> tuple[Any, Any]:
        """The table and its CSV file."""
        board, task = self.board, self._task(selection.task)
        filters = Filters(
            selection.search,
            frozenset(selection.statuses),
            frozenset(selection.paradigms),
            frozenset(selection.licences),
            selection.controls,
        )
        data = _key(selection.data, self._keys(board, task.name, selection.older))
        left = [] if data is None else list(filter(filters.keep, board.rows(task.name, data)))
        rows = ordered(task, left, selection.sort, ascending=selection.ascending)
        name = "none" if data is None else re.sub("[^a-z0-9]+", "-", data_name(board, task.name, data))
        path = self._files.write(f"{task.name}-{name}.csv", board_csv(task, rows, board.commit).encode())
        # Numbers by their value, which the page sorts by; the verdict in its colour, and quiet where nothing is shown
        # to be learnt.
        table = board_table(task, rows)
        headings, data_cells, texts, styles = [column.heading for column in table.columns], [], [], []
        for row, line in zip(rows, table.rows, strict=True):
            written = [cell_text(c, k, minus="−") for c, k in zip(line.cells, table.columns, strict=True)]
            cells = zip(line.cells, table.columns, written, strict=True)
            data_cells.append([cell.value if column.numeric else text for cell, column, text in cells])
            texts.append(written)
            verdict = standing_style(None if row.verdict is None else row.verdict.standing)
            quiet = "" if row.is_learnt else QUIET
            styles.append([verdict if heading == "verdict" else quiet for heading in headings])
        content = {
            "headers": headings,
            "data": data_cells,
            "metadata": {"display_value": texts, "styling": styles},
        }
        return gr.Dataframe(content, **dataframe_options(task)), gr.DownloadButton(value=str(path))

    def toggled(self, sent: Any, event: gr.SelectData) -> tuple[Any, Any]:
        """The picked entries with the clicked row's entry added or removed; and its model."""
        picked, row = _texts(sent), _texts(event.row_value)
        # Numbers are not texts: the last cell, the entry's name, stays the last.
        entry = self.board.by_id.get(row[-1]) if row else None
        if entry is None:
            return gr.skip(), gr.skip()
        if entry.id in picked:
            return [id for id in picked if id != entry.id], gr.skip()
        if len(picked) >= MOST_PLOTTED:
            gr.Info(f"A plot holds at most {MOST_PLOTTED} entries: remove one first.")
            return gr.skip(), entry.model
        return [*picked, entry.id], entry.model

    def drawn(self, sent: Any, measure: Any) -> tuple[Any, Any, str]:
        """The plots of the picked entries by a measure, and remarks on them."""
        board = self.board
        entries = [board.by_id[id] for id in _texts(sent) if id in board.by_id]
        if not entries:
            return None, None, "Click on rows of the table, or choose entries above."
        # Entries of a previous task and data may still be picked.
        entries = [entry for entry in entries if entry.result.key == entries[-1].result.key]
        task = self._tasks[entries[0].result.task]
        drawing = self._plots.draw(board.commit, entries, _measure(task, _text(measure)))
        boxes, diversity = (
            None if image is None else str(self._files.write(name, image))
            for name, image in (("boxes.png", drawing.boxes), ("diversity.png", drawing.diversity))
        )
        return boxes, diversity, "\n".join(drawing.notes)

    def of_model(self, sent: Any) -> tuple[Any, ...]:
        """A model's entries, the address of its page, the link to it, the options of the list of details; what may be
        concluded of it, its entries of older versions of tasks, and whether there are any."""
        board, model = self.board, _text(sent)
        entries = board.of_model(model)
        labels = [
            f"{self._tasks[entry.result.task].title}, {data_name(board, entry.result.task, entry.data)}, "
            f"{entry.status}, {entry.result.date[:10]}, {entry.id}"
            for entry in entries
        ]
        options = list(zip(labels, (entry.id for entry in entries), strict=True))
        first = options[0][1] if options else None
        rows, older = entry_rows(board, model)
        query = query_of(model)
        board_url = "" if self._results is None else leaderboard_of(self._org).url
        address = f"{board_url}{query}" if entries else ""
        return (
            rows,
            address,
            gr.Button(link=query, visible=bool(entries)),
            gr.update(choices=options, value=first),
            model_conclusion(board, model),
            older,
            gr.update(visible=bool(older)),
        )

    def of_entry(self, sent: Any) -> tuple[Any, Any, Any, Any]:
        """An entry's numbers, its settings, and links to its files and its model on the Hub."""
        board = self.board
        entry = board.by_id.get(_text(sent))
        if entry is None:
            return [], [], gr.Button(visible=False), gr.Button(visible=False)
        hub = hub_url(entry)
        files = None if self._results is None else folder_url(self._results, board.commit, entry)
        return (
            number_rows(entry),
            origin_rows(entry),
            gr.Button(link=files, visible=files is not None),
            gr.Button(link=hub, visible=hub is not None),
        )


class _Files:
    """Files for visitors, the newest `_FILES_KEPT` of them; Gradio copies a file before it is replaced.

    Images are among them, since Gradio would write an image object into the same file that another visitor of
    the same plot is receiving (6.31).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="audio-compositionality-")
        self._written: list[Path] = []

    def write(self, name: str, content: bytes) -> Path:
        """A file with this name and content; an existing one is not touched, since it may be being read."""
        path = Path(self._folder.name) / hashlib.sha256(content).hexdigest()[:16] / name
        with self._lock:
            if path not in self._written:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            self._written = [*(one for one in self._written if one != path), path]
            for old in self._written[:-_FILES_KEPT]:
                old.unlink(missing_ok=True)
            self._written = self._written[-_FILES_KEPT:]
        return path


def _key(text: str, keys: Sequence[DataKey]) -> DataKey | None:
    """The visitor's data; the first where they are gone."""
    return next((key for key in keys if str(key) == text), keys[0] if keys else None)


def _measure(task: TaskInfo, name: str) -> str:
    """The plotted measure; without it, the measure that the task ranks by, or else its first by sample."""
    names = [measure.name for measure in task.sampled]
    return name if name in names else task.ranks_by if task.ranks_by in names else next(iter(names), "")


def _state(reading: BoardReading, pending: bool) -> str:
    """Commit, age and size of the board, and trouble with the Hub."""
    board = reading.board
    if reading.at is None:
        return f"The results could not be read yet: {reading.trouble}" if reading.trouble else "Reading the results…"
    verified = sum(entry.status == VERIFIED for entry in board.entries)
    noun = "entry" if len(board.entries) == 1 else "entries"
    text = (
        f"{len(board.entries)} {noun} ({verified} verified, {len(board.entries) - verified} reported), "
        f"{len(board.rejected)} rejected; commit {board.commit[:8]}, read {reading.at:%Y-%m-%d %H:%M} UTC."
    )
    if reading.trouble and reading.since:
        since = f"{reading.since:%Y-%m-%d %H:%M} UTC"
        text += f" Since {since} the Hub cannot be read, so this may be out of date: {reading.trouble}"
    return f"{text} It is being read again…" if pending else text
