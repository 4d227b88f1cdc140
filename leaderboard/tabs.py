"""The components of the page's tabs, in Gradio, and how they look. What they do is in `page`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from audio_compositionality.support.table import Column
from audio_compositionality.tasks.base import TaskInfo

from . import model_page
from .entries import REPORTED, VERIFIED
from .plots import MOST
from .table import columns

CSS = """
.gradio-container { max-width: 1500px !important; }
.virtual-row, .header-table th { font-family: var(--font) !important; font-variant-numeric: tabular-nums; }
.plot { background: white; }
/* Below Gradio's buttons, which would cover it. */
.plot img { padding-top: 40px; object-fit: contain; max-height: 900px; }
@media (max-width: 700px) {
  .gradio-container .prose h1 { font-size: 1.25rem !important; }
  #state textarea { min-height: 6em; }
  .plot .image-frame { display: block; overflow-x: auto; }
  .plot img { min-width: 640px; max-width: none; }
}
"""

_WIDTHS = {
    "model": 170,
    "95 % interval": 146,
    "status": 88,
    "submitted by": 130,
    "parameters": 124,
    "paradigm": 140,
    "licence": 130,
    "date": 104,
    "notes": 220,
    "entry": 210,
}
"""Pixels of columns; the others are as wide as their headings."""


class TableTab:
    """The components of the table and the plots.

    Attributes:
        filters: what the table depends on.
        narrowed: the events of those that change no more than its rows and their order.
        filled: what a refresh gives anew.
    """

    def __init__(self, tasks: Sequence[TaskInfo]) -> None:
        options: dict[str, Any] = {"interactive": True}
        with gr.Row():
            # As narrow as they may get, so that both stand side by side on a phone.
            self.task = gr.Dropdown(
                task_choices(tasks), value=tasks[0].name, label="Task", elem_id="task", min_width=130, **options
            )
            self.data = gr.Dropdown([], label="Data", elem_id="data", min_width=130, **options)
        with gr.Accordion("Sort and filter", open=False, elem_id="narrow"):
            with gr.Row():
                self.sort = gr.Dropdown([], label="Sort by", elem_id="sort", **options)
                self.ascending = gr.Checkbox(label="smallest first", elem_id="ascending")
                self.search = gr.Textbox(label="Search", placeholder="model, licence, submitter…", elem_id="search")
            with gr.Row():
                self.statuses = gr.CheckboxGroup([VERIFIED, REPORTED], value=[], label="Status", elem_id="status")
                self.paradigms = gr.Dropdown([], multiselect=True, label="Paradigm", elem_id="paradigm", **options)
                self.licences = gr.Dropdown([], multiselect=True, label="Licence", elem_id="licence", **options)
        self.table = gr.Dataframe(
            **looks(tasks[0]), interactive=False, type="array", pinned_columns=1, max_height=620, elem_id="table"
        )
        self.csv = gr.DownloadButton("Download these rows as CSV", size="sm", elem_id="csv")
        self.caption = gr.Markdown()
        self._lay_out_plots(options)
        self.filters = [
            self.task,
            self.data,
            self.search,
            self.statuses,
            self.paradigms,
            self.licences,
            self.sort,
            self.ascending,
            self.picked,
            self.measure,
        ]
        self.narrowed = [
            self.search.change,
            self.statuses.input,
            self.paradigms.input,
            self.licences.input,
            self.sort.input,
            self.ascending.input,
        ]
        self.filled = [
            self.task,
            self.data,
            self.paradigms,
            self.licences,
            self.sort,
            self.table,
            self.csv,
            self.caption,
            self.picked,
            self.measure,
        ]

    def _lay_out_plots(self, options: dict[str, Any]) -> None:
        self.picked = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=MOST,
            label="Plotted (click on a row of the table to add it or take it out)",
            elem_id="picked",
            **options,
        )
        self.measure = gr.Radio([], label="Measure", elem_id="measure", **options)
        plot: dict[str, Any] = {
            "show_label": False,
            "interactive": False,
            "format": "png",
            "buttons": ["download", "fullscreen"],
            "elem_classes": "plot",
        }
        gr.Markdown("### Scores of all samples, with mean and 95 % interval")
        self.boxes = gr.Image(label="Box plot of the scores", elem_id="boxes", **plot)
        gr.Markdown("### Scores against diversity")
        self.diversity = gr.Image(label="Scores against diversity", elem_id="diversity", **plot)
        self.notes = gr.Textbox(label="Notes on the plots", interactive=False, elem_id="notes", lines=1, max_lines=12)


class ModelTab:
    """The components of the page of a model."""

    def __init__(self) -> None:
        self.name = gr.Dropdown([], label="Model", interactive=True, elem_id="model")
        with gr.Row():
            self.link = gr.Textbox(
                label="Address of this model's page",
                interactive=False,
                buttons=["copy"],
                elem_id="link",
                scale=4,
            )
            self.open = gr.Button("Open it by itself", size="sm", visible=False, link_target="_blank", elem_id="open")
        options: dict[str, Any] = {"datatype": "str", "type": "array", "interactive": False}
        self.entries = gr.Dataframe(
            headers=list(model_page.ENTRY_HEADINGS),
            label="All entries of this model; none is ever replaced",
            elem_id="entries",
            column_widths=[100, 76, 146, 100, 88, 130, 104, 150, 200, 190, 210],
            **options,
        )
        self.entry = gr.Dropdown([], label="Details of the entry", interactive=True, elem_id="entry")
        with gr.Row():
            self.files = gr.Button(
                "Its files on the Hub", size="sm", visible=False, link_target="_blank", elem_id="files"
            )
            self.hub = gr.Button(
                "The model of that name on the Hub", size="sm", visible=False, link_target="_blank", elem_id="hub"
            )
        self.numbers = gr.Dataframe(
            headers=list(model_page.NUMBER_HEADINGS),
            label="Every number: shown (of a verified entry recomputed) and as reported",
            elem_id="numbers",
            max_height=900,
            column_widths=[150, 100, 110, 180, 420],
            wrap=True,
            **options,
        )
        self.origin = gr.Dataframe(
            headers=["what it was run with", "value"],
            label="What it was run with, as stated; versions and seconds of a verified entry are the checker's",
            elem_id="origin",
            wrap=True,
            max_height=900,
            column_widths=["45%", "55%"],
            **options,
        )


def task_choices(tasks: Sequence[TaskInfo]) -> list[tuple[str, str]]:
    """Options of the list of tasks."""
    return [(task.title, task.name) for task in tasks]


def looks(task: TaskInfo) -> dict[str, Any]:
    """Headings, kinds and widths of the columns of a task's table, for `gr.Dataframe`."""
    shown = columns(task)
    return {
        "headers": [column.heading for column in shown],
        "datatype": ["number" if column.numeric else "str" for column in shown],
        "column_widths": [_width(column) for column in shown],
    }


def _width(column: Column) -> int:
    return _WIDTHS.get(column.heading, max(80, 30 + 9 * len(column.heading)))
