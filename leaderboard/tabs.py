"""The components of the page's tabs, in Gradio, and how they look. What they do is in `page`."""

from __future__ import annotations

from typing import Any

import gradio as gr

from audio_compositionality.evaluator.compare.comparison import MEASURES
from audio_compositionality.evaluator.results.result import TASKS
from audio_compositionality.evaluator.compare.table import TITLES

from . import encoder_page
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
  #state textarea { min-height: 6em; }
  .plot .image-frame { display: block; overflow-x: auto; }
  .plot img { min-width: 640px; max-width: none; }
}
"""


class TableTab:
    """The components of the table and the plots.

    Attributes:
        filters: what the table depends on.
        narrowed: the events of those that change no more than its rows and their order.
        filled: what a refresh gives anew.
    """

    def __init__(self) -> None:
        with gr.Row():
            self.task = gr.Radio([(TITLES[task], task) for task in TASKS], value=TASKS[0], label="Task", elem_id="task")
            self.data = gr.Dropdown([], label="Data", interactive=True, elem_id="data")
            self.sort = gr.Dropdown([], label="Sort by", interactive=True, elem_id="sort")
            self.ascending = gr.Checkbox(label="smallest first", elem_id="ascending")
        with gr.Row():
            self.search = gr.Textbox(label="Search", placeholder="encoder, licence, submitter…", elem_id="search")
            self.statuses = gr.CheckboxGroup([VERIFIED, REPORTED], value=[], label="Status", elem_id="status")
            self.paradigms = gr.Dropdown([], multiselect=True, label="Paradigm", interactive=True, elem_id="paradigm")
            self.licences = gr.Dropdown([], multiselect=True, label="Licence", interactive=True, elem_id="licence")
        self.table = gr.Dataframe(
            **looks(TASKS[0]), interactive=False, type="array", pinned_columns=1, max_height=620, elem_id="table"
        )
        self.csv = gr.DownloadButton("Download these rows as CSV", size="sm", elem_id="csv")
        self.caption = gr.Markdown()
        self.picked = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=MOST,
            label="Plotted (click on a row of the table to add it or take it out)",
            interactive=True,
            elem_id="picked",
        )
        named = [("score", MEASURES[0]), ("centred score", MEASURES[1])]
        self.measure = gr.Radio(named, value=MEASURES[0], label="Measure", elem_id="measure")
        options: dict[str, Any] = {
            "show_label": False,
            "interactive": False,
            "format": "png",
            "buttons": ["download", "fullscreen"],
            "elem_classes": "plot",
        }
        gr.Markdown("### Scores of all samples, with mean and 95 % interval")
        self.boxes = gr.Image(label="Box plot of the scores", elem_id="boxes", **options)
        gr.Markdown("### Scores against diversity")
        self.diversity = gr.Image(label="Scores against diversity", elem_id="diversity", **options)
        self.notes = gr.Textbox(label="Notes on the plots", interactive=False, elem_id="notes", lines=1, max_lines=12)
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
            self.data,
            self.paradigms,
            self.licences,
            self.sort,
            self.table,
            self.csv,
            self.caption,
            self.picked,
        ]


class EncoderTab:
    """The components of the page of an encoder."""

    def __init__(self) -> None:
        self.chosen = gr.Dropdown([], label="Encoder", interactive=True, elem_id="encoder")
        self.link = gr.Textbox(
            label="Link to this encoder: put this behind the address of this page",
            interactive=False,
            buttons=["copy"],
            elem_id="link",
        )
        options: dict[str, Any] = {"datatype": "str", "type": "array", "interactive": False}
        self.entries = gr.Dataframe(
            headers=list(encoder_page.ENTRY_HEADINGS),
            label="All entries of this encoder; none is ever replaced",
            elem_id="entries",
            column_widths=[80, 80, 88, 130, 76, 190, 104, 150, 200, 190, 210],
            **options,
        )
        self.entry = gr.Dropdown([], label="Details of the entry", interactive=True, elem_id="entry")
        with gr.Row():
            self.files = gr.Button(
                "Its files on the Hub", size="sm", visible=False, link_target="_blank", elem_id="files"
            )
            self.model = gr.Button(
                "The model of that name on the Hub", size="sm", visible=False, link_target="_blank", elem_id="model"
            )
        with gr.Row():
            self.numbers = gr.Dataframe(
                headers=["number", "shown", "as reported"],
                label="Score and controls: shown (of a verified entry recomputed) and as reported",
                elem_id="numbers",
                max_height=900,
                column_widths=["50%", "25%", "25%"],
                min_width=320,
                **options,
            )
            self.origin = gr.Dataframe(
                headers=["what it was run with", "value"],
                label="What it was run with, as stated; versions and seconds of a verified entry are the checker's",
                elem_id="origin",
                wrap=True,
                max_height=900,
                column_widths=["35%", "65%"],
                min_width=320,
                **options,
            )


def looks(task: str) -> dict[str, Any]:
    """Headings, kinds and widths of the columns of a task's table, for `gr.Dataframe`."""
    shown = columns(task)
    return {
        "headers": [column.heading for column in shown],
        "datatype": ["str" if column.digits is None else "number" for column in shown],
        "column_widths": [column.width for column in shown],
    }
