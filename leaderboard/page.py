"""The page of the leaderboard, in Gradio: what the visitor sees and does. Nothing is computed here.

What strangers wrote reaches the page as plain text alone: cells, options and text boxes, never Markdown or HTML.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from audio_compositionality.evaluator.compare.comparison import MEASURES
from audio_compositionality.evaluator.results.result import TASKS
from audio_compositionality.evaluator.compare.table import TITLES
from audio_compositionality.hub import Repository

from . import encoder_page
from . import texts
from .entries import VERIFIED, Board, Shown
from .plots import MOST, Plots
from .source import MAX_AGE, Reading, Source
from .table import SORTED_BY, Column, Filters, choices, columns, ordered, shortened, write_csv
from .tabs import EncoderTab, TableTab, looks

PICKED_AT_FIRST = 5
"""Rows that are plotted before the visitor has picked any."""

SOON = 2.0
"""Seconds after which an open page looks again while the board is being read."""

AT_ONCE, DRAWN_AT_ONCE, WAITING = 16, 4, 500
"""Events that are answered at the same time, drawings among them, and events that wait: more are turned away."""

_FILES_KEPT = 50

Table = dict[str, Any]


@dataclass(frozen=True)
class Chosen:
    """What a visitor has chosen: the values of `TableTab.filters`, in their order."""

    task: str
    data: str
    search: str
    statuses: list[str]
    paradigms: list[str]
    licences: list[str]
    sort: str
    ascending: bool
    picked: list[str]

    @classmethod
    def of(cls, *values: Any) -> Chosen:
        """From what the browser sends, which may be anything."""
        task, data, search, statuses, paradigms, licences, sort, ascending, picked = values
        return cls(
            task if task in TASKS else TASKS[0],
            _text(data),
            _text(search)[:200],
            _texts(statuses),
            _texts(paradigms),
            _texts(licences),
            _text(sort),
            ascending is True,
            _texts(picked),
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


class Page:
    """The page and what it needs to answer: the board, and what draws it."""

    def __init__(self, source: Source, plots: Plots, results: Repository, org: str, checks: Callable[[], str]) -> None:
        """Nothing is read yet.

        Args:
            source: of the board.
            plots: draws entries.
            results: the repository that is shown.
            org: whose leaderboard it is.
            checks: says how the checks of pull requests are going.
        """
        self._source = source
        self._plots = plots
        self._results = results
        self._org = org
        self._checks = checks
        self._files = _Files()

    def blocks(self) -> gr.Blocks:
        """The page as Gradio's blocks."""
        # Names and links of the page's own; what is filled in comes with the event `load`.
        with gr.Blocks(title=texts.TITLE, analytics_enabled=False, delete_cache=(3600, 6 * 3600)) as blocks:
            gr.Markdown(texts.introduction(self._results))
            with gr.Row():
                state = gr.Textbox(show_label=False, container=False, interactive=False, elem_id="state", scale=5)
                again = gr.Button("Read again", size="sm", scale=1, min_width=110)
            with gr.Tabs(selected="table") as tabs:
                with gr.Tab("Table", id="table"):
                    shown = TableTab()
                with gr.Tab("Encoder", id="encoder"):
                    encoder = EncoderTab()
                with gr.Tab("How to submit", id="submit"):
                    gr.Markdown(texts.how_to_submit(self._org, self._results))
                with gr.Tab("Not shown", id="rejected"):
                    gr.Markdown(
                        "Files of the results repository that are not shown, each with the reason, and how the checks "
                        "of pull requests are going."
                    )
                    rejected = gr.Dataframe(
                        headers=["path", "reason"],
                        datatype="str",
                        type="array",
                        interactive=False,
                        wrap=True,
                        column_widths=["40%", "60%"],
                        label="Not shown",
                        elem_id="rejected",
                    )
                    checks = gr.Textbox(label="Checks of pull requests", interactive=False, elem_id="checks")
            timer = gr.Timer(MAX_AGE)
            filled = [state, rejected, checks, timer, encoder.chosen, *shown.filled]
            filters = shown.filters

            def refresh(*values: Any) -> list[Any]:
                return self._refresh(Chosen.of(*values))

            def refresh_now(*values: Any) -> list[Any]:
                self._source.expire()
                return self._refresh(Chosen.of(*values))

            def change_task(*values: Any) -> list[Any]:
                return self._refresh(replace(Chosen.of(*values), sort=""))

            def open_page(request: gr.Request, *values: Any) -> list[Any]:
                wanted = request.query_params.get("encoder", "")
                found = self._refresh(Chosen.of(*values))
                if wanted in self._board.encoders:
                    found[filled.index(encoder.chosen)] = gr.update(choices=self._encoders(), value=wanted)
                    return [*found, gr.Tabs(selected="encoder")]
                return [*found, gr.Tabs()]

            def narrow(*values: Any) -> tuple[Any, Any]:
                return self._filtered(Chosen.of(*values))

            # Choices follow the board, and may change while a visitor's is under way: Gradio would answer that with an
            # error. So what is sent arrives as it is, and who gets it looks whether it is still there.
            options: dict[str, Any] = {"preprocess": False, "show_progress": "hidden", "trigger_mode": "always_last"}
            blocks.load(open_page, filters, [*filled, tabs], **options)
            again.click(refresh_now, filters, filled, preprocess=False)
            timer.tick(refresh, filters, filled, **options)
            shown.task.input(change_task, filters, filled, **options)
            shown.data.input(refresh, filters, filled, **options)
            gr.on(shown.narrowed, narrow, filters, [shown.table, shown.csv], **options)
            shown.table.select(self._toggled, [shown.picked], [shown.picked, encoder.chosen], **options)
            gr.on(
                [shown.picked.change, shown.measure.change],
                self._drawn,
                [shown.picked, shown.measure],
                [shown.boxes, shown.diversity, shown.notes],
                preprocess=False,
                trigger_mode="always_last",
                concurrency_limit=DRAWN_AT_ONCE,
            )
            encoder.chosen.change(
                self._of_encoder, encoder.chosen, [encoder.entries, encoder.link, encoder.entry], **options
            )
            encoder.entry.change(
                self._of_entry,
                encoder.entry,
                [encoder.numbers, encoder.origin, encoder.files, encoder.model],
                **options,
            )
        page: gr.Blocks = blocks.queue(max_size=WAITING, default_concurrency_limit=AT_ONCE)
        return page

    @property
    def _board(self) -> Board:
        return self._source.last.board

    def _encoders(self) -> list[tuple[str, str]]:
        return [(shortened(id), id) for id in self._board.encoders]

    def _refresh(self, chosen: Chosen) -> list[Any]:
        """All that depends on the board, of the task and data that are chosen, or others where they are gone."""
        # In this order: what is no longer pending has been read.
        pending = self._source.pending
        reading = self._source.last
        board, task = reading.board, chosen.task
        known = board.data[task]
        data = chosen.data if chosen.data in known else next(iter(known), "")
        rows = board.rows(task, data)
        headings = [column.heading for column in columns(task)]
        paradigms, licences = choices(rows, "paradigm"), choices(rows, "licence")
        best = ordered(rows, _column(task, SORTED_BY[task]))
        ids = [row.entry.id for row in best]
        kept = replace(
            chosen,
            data=data,
            paradigms=[value for value in chosen.paradigms if value in paradigms],
            licences=[value for value in chosen.licences if value in licences],
            sort=chosen.sort if chosen.sort in headings else SORTED_BY[task],
            picked=[id for id in chosen.picked if id in ids] or ids[:PICKED_AT_FIRST],
        )
        table, csv = self._filtered(kept)
        return [
            _state(reading, pending),
            [[shortened(item.path, 300), shortened(item.reason, 300)] for item in board.rejected],
            self._checks(),
            gr.Timer(SOON if pending else MAX_AGE),
            gr.update(choices=self._encoders()),
            gr.update(choices=[(encoder_page.data_name(one), one) for one in known], value=data or None),
            gr.update(choices=paradigms, value=kept.paradigms),
            gr.update(choices=licences, value=kept.licences),
            gr.update(choices=headings, value=kept.sort),
            table,
            csv,
            texts.caption(task),
            gr.update(choices=[(_label(row), row.entry.id) for row in best], value=kept.picked),
        ]

    def _filtered(self, chosen: Chosen) -> tuple[Any, Any]:
        """The table and its CSV file."""
        board, task = self._board, chosen.task
        filters = Filters(
            chosen.search, frozenset(chosen.statuses), frozenset(chosen.paradigms), frozenset(chosen.licences)
        )
        left = filter(filters.keep, board.rows(task, chosen.data))
        rows = ordered(left, _column(task, chosen.sort), ascending=chosen.ascending)
        name = encoder_page.data_name(chosen.data).replace(" ", "-") if chosen.data in board.data[task] else "none"
        path = self._files.write(f"{task}-{name}.csv", write_csv(task, rows, board.commit))
        return gr.Dataframe(_table(task, rows), **looks(task)), gr.DownloadButton(value=str(path))

    def _toggled(self, sent: Any, event: gr.SelectData) -> tuple[Any, Any]:
        """The picked entries with that of the row that was clicked, or without it; and its encoder."""
        picked, row = _texts(sent), _texts(event.row_value)
        # Numbers are no texts: the last cell, which names the entry, stays the last.
        entry = self._board.by_id.get(row[-1]) if row else None
        if entry is None:
            return gr.skip(), gr.skip()
        if entry.id in picked:
            return [id for id in picked if id != entry.id], gr.skip()
        if len(picked) >= MOST:
            gr.Info(f"{MOST} entries are the most in a plot: take one out first.")
            return gr.skip(), entry.result.encoder_id
        return [*picked, entry.id], entry.result.encoder_id

    def _drawn(self, sent: Any, measure: Any) -> tuple[Any, Any, str]:
        board = self._board
        entries = [board.by_id[id] for id in _texts(sent) if id in board.by_id]
        # Of a task and data that were left a moment ago, some may still be picked.
        entries = [entry for entry in entries if entry.same[:2] == entries[-1].same[:2]]
        drawing = self._plots.draw(board.commit, entries, measure if measure in MEASURES else MEASURES[0])
        notes = "\n".join(drawing.notes) if entries else "Click on rows of the table, or choose entries above."
        return drawing.boxes, drawing.diversity, notes

    def _of_encoder(self, sent: Any) -> tuple[Any, str, Any]:
        board, encoder_id = self._board, _text(sent)
        entries = board.of_encoder(encoder_id)
        labels = [
            f"{TITLES[entry.result.task]}, {encoder_page.data_name(entry.result.fingerprint)}, {entry.status}, "
            f"{entry.result.date[:10]}, {entry.id}"
            for entry in entries
        ]
        options = list(zip(labels, (entry.id for entry in entries), strict=True))
        first = options[0][1] if options else None
        rows = encoder_page.entry_rows(board, encoder_id)
        link = encoder_page.query_of(encoder_id) if entries else ""
        return rows, link, gr.update(choices=options, value=first)

    def _of_entry(self, sent: Any) -> tuple[Any, Any, Any, Any]:
        board = self._board
        entry = board.by_id.get(_text(sent))
        if entry is None:
            return [], [], gr.Button(visible=False), gr.Button(visible=False)
        model = encoder_page.model_url(entry)
        return (
            encoder_page.number_rows(entry),
            encoder_page.origin_rows(entry),
            gr.Button(link=encoder_page.folder_url(self._results, board.commit, entry), visible=True),
            gr.Button(link=model, visible=model is not None),
        )


class _Files:
    """Files for download, the newest `_FILES_KEPT` of them; Gradio has copied a file before others take its place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="audio-compositionality-")
        self._written: list[Path] = []

    def write(self, name: str, text: str) -> Path:
        """A file with this name and content."""
        content = text.encode()
        path = Path(self._folder.name) / hashlib.sha256(content).hexdigest()[:16] / name
        with self._lock:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            self._written = [*(one for one in self._written if one != path), path]
            for old in self._written[:-_FILES_KEPT]:
                old.unlink(missing_ok=True)
            self._written = self._written[-_FILES_KEPT:]
        return path


def _column(task: str, heading: str) -> Column:
    found = {column.heading: column for column in columns(task)}
    return found.get(heading, found[SORTED_BY[task]])


def _table(task: str, rows: Sequence[Shown]) -> Table:
    """What a table shows: numbers by their value, so that they are sorted as numbers, and how they are written."""
    shown = columns(task)
    values = [[column.value(row) for column in shown] for row in rows]
    written = [[column.shown(value) for column, value in zip(shown, line, strict=True)] for line in values]
    data = [
        [text if column.digits is None else value for column, value, text in zip(shown, line, texts, strict=True)]
        for line, texts in zip(values, written, strict=True)
    ]
    return {"headers": [column.heading for column in shown], "data": data, "metadata": {"display_value": written}}


def _label(row: Shown) -> str:
    return f"{shortened(row.entry.result.encoder_id)} ({row.entry.status}, {row.entry.id[-16:][:8]})"


def _state(reading: Reading, pending: bool) -> str:
    """Commit, age and size of the board, and trouble with the Hub."""
    board = reading.board
    if reading.at is None:
        return f"The results could not be read yet: {reading.trouble}" if reading.trouble else "Reading the results…"
    verified = sum(entry.status == VERIFIED for entry in board.entries)
    noun = "entry" if len(board.entries) == 1 else "entries"
    text = (
        f"{len(board.entries)} {noun} ({verified} verified, {len(board.entries) - verified} reported), "
        f"{len(board.rejected)} not shown; commit {board.commit[:8]}, read {reading.at:%Y-%m-%d %H:%M} UTC."
    )
    if reading.trouble and reading.since:
        text += (
            f" Since {reading.since:%Y-%m-%d %H:%M} UTC the Hub cannot be read, so this may be old: {reading.trouble}"
        )
    return f"{text} It is being read again…" if pending else text
