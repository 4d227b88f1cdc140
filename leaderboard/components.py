"""The page's components in Gradio, their look, and its texts: no third party's text is put into Markdown."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import gradio as gr

from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.compare.task_verdicts import LEAST_DIFFERENCE, Standing
from audio_compositionality.hub.names import results_of
from audio_compositionality.tasks.base import TaskInfo
from audio_compositionality.tasks.registry import benchmark_info, list_tasks

from .board import REPORTED, VERIFIED
from .plots import MOST_PLOTTED
from .tables import ENTRY_HEADINGS, NUMBER_HEADINGS, columns

BOARD_CSS = files(__package__).joinpath("board.css").read_text("utf-8")

QUIET = "color: var(--quiet)"
"""The style of what models are judged beside."""


def standing_style(standing: Standing | None) -> str:
    """The style of a cell with a standing; of what is not judged, quiet."""
    if standing is None:
        return QUIET
    name = standing.value.replace(" ", "-")
    return f"background: var(--{name}); color: var(--on-{name}); font-weight: 600"


_WIDTHS = {
    "model": 140,
    "verdict": 128,
    "95 % interval": 146,
    "above its twin by": 186,
    "kind": 132,
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


class OverviewTab:
    """The components of the overview.

    Attributes:
        filters: its inputs.
        filled: the components that a refresh fills anew.
    """

    def __init__(self) -> None:
        self.empty = gr.Markdown(visible=False, elem_id="empty")
        hidden: dict[str, Any] = {"interactive": True, "visible": False, "container": False}
        with gr.Row(elem_id="chips"):
            self.benchmark = gr.Radio([], show_label=False, elem_id="benchmark", scale=4, min_width=300, **hidden)
            self.data = gr.Dropdown([], label="Data", elem_id="overview-data", min_width=160, scale=1, **hidden)
            self.controls = gr.Checkbox(
                True, label=CONTROLS_LABEL, elem_id="overview-controls", min_width=240, **hidden
            )
        self.table = gr.HTML(elem_id="overview", js_on_load=None, visible=False)
        with gr.Accordion("How to read this board", open=False, elem_id="how"):
            self.caption = gr.Markdown(overview_caption())
        self.filters = [self.data, self.benchmark, self.controls]
        self.filled = [self.empty, *self.filters, self.table]


class TableTab:
    """The components of the table and the plots.

    Attributes:
        filters: the inputs of the table.
        narrowed: the events of the filters that affect only the rows and their order.
        filled: the components that a refresh fills anew.
    """

    def __init__(self, tasks: Sequence[TaskInfo]) -> None:
        options: dict[str, Any] = {"interactive": True}
        with gr.Row():
            # The smallest width, so that two stand side by side on a phone.
            self.task = gr.Dropdown(
                task_choices(tasks), value=tasks[0].name, label="Task", elem_id="task", min_width=130, **options
            )
            self.data = gr.Dropdown([], label="Data", elem_id="data", min_width=130, scale=2, **options)
            self.controls = gr.Checkbox(True, label=CONTROLS_LABEL, elem_id="controls", min_width=240, **options)
        with gr.Accordion("Sort and filter", open=False, elem_id="narrow"):
            with gr.Row():
                self.sort = gr.Dropdown([], label="Sort by", elem_id="sort", **options)
                self.ascending = gr.Checkbox(label="smallest first", elem_id="ascending")
                self.search = gr.Textbox(label="Search", placeholder="model, licence, submitter…", elem_id="search")
            self.older = gr.Checkbox(label="Data of older versions of the task", elem_id="older", **options)
            with gr.Row():
                self.statuses = gr.CheckboxGroup([VERIFIED, REPORTED], value=[], label="Status", elem_id="status")
                self.paradigms = gr.Dropdown([], multiselect=True, label="Paradigm", elem_id="paradigm", **options)
                self.licences = gr.Dropdown([], multiselect=True, label="Licence", elem_id="licence", **options)
        self.table = gr.Dataframe(
            **dataframe_options(tasks[0]),
            interactive=False,
            type="array",
            pinned_columns=1,
            max_height=620,
            wrap=True,
            elem_id="table",
        )
        self.csv = gr.DownloadButton("Download these rows as CSV", size="sm", elem_id="csv")
        self.caption = gr.Markdown()
        with gr.Accordion("Verdict, status and rows", open=False):
            gr.Markdown(with_verdicts("statuses.md"))
        self.picked = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=MOST_PLOTTED,
            label="Plotted (click on a row of the table to add or remove it)",
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
        chosen = [self.task, self.data]
        narrowing: list[Any] = [self.statuses, self.paradigms, self.licences, self.sort]
        self.filters = [*chosen, self.search, *narrowing, self.ascending, self.picked, self.measure]
        self.filters += [self.controls, self.older]
        self.narrowed = [self.search.change, *(one.input for one in (*narrowing, self.ascending, self.controls))]
        self.filled = [*chosen, *narrowing[1:], self.table, self.csv, self.caption, self.picked, self.measure]


ENTRY_WIDTHS: list[str | int] = [150, 76, 146, 270, 100, 88, 130, 104, 150, 200, 190, 210]
"""Pixels of the columns `ENTRY_HEADINGS`."""


class ModelTab:
    """The components of the page of a model."""

    def __init__(self) -> None:
        self.name = gr.Dropdown([], label="Model", interactive=True, elem_id="model")
        self.conclusion = gr.Textbox(
            label="What may be concluded", interactive=False, lines=1, max_lines=20, elem_id="conclusion"
        )
        with gr.Row():
            self.link = gr.Textbox(
                label="Address of this model's page",
                interactive=False,
                buttons=["copy"],
                elem_id="link",
                scale=4,
                min_width=320,
            )
            self.open = gr.Button("Open it alone", size="sm", visible=False, link_target="_blank", elem_id="open")
        options: dict[str, Any] = {"datatype": "str", "type": "array", "interactive": False}
        self.entries = gr.Dataframe(
            headers=list(ENTRY_HEADINGS),
            label="All entries of this model; none is ever replaced",
            elem_id="entries",
            column_widths=ENTRY_WIDTHS,
            **options,
        )
        with gr.Accordion(
            "Entries of older versions of tasks", open=False, visible=False, elem_id="older-ones"
        ) as fold:
            self.older = gr.Dataframe(
                headers=list(ENTRY_HEADINGS), elem_id="older-entries", column_widths=ENTRY_WIDTHS, **options
            )
        self.fold = fold
        self.entry = gr.Dropdown([], label="Details of the entry", interactive=True, elem_id="entry")
        with gr.Row():
            self.files = gr.Button(
                "Its files on the Hub", size="sm", visible=False, link_target="_blank", elem_id="files"
            )
            self.hub = gr.Button(
                "The model of this name on the Hub", size="sm", visible=False, link_target="_blank", elem_id="hub"
            )
        self.numbers = gr.Dataframe(
            headers=list(NUMBER_HEADINGS),
            label="Every number, as shown (recomputed for a verified entry) and as reported",
            elem_id="numbers",
            max_height=900,
            column_widths=[150, 100, 110, 180, 420],
            wrap=True,
            **options,
        )
        self.origin = gr.Dataframe(
            headers=["fact", "value"],
            label="Facts about the run, as stated; versions and seconds of a verified entry are the checker's",
            elem_id="origin",
            wrap=True,
            max_height=900,
            column_widths=["45%", "55%"],
            **options,
        )


def task_choices(tasks: Sequence[TaskInfo]) -> list[tuple[str, str]]:
    """Options of the list of tasks."""
    return [(task.title, task.name) for task in tasks]


def dataframe_options(task: TaskInfo) -> dict[str, Any]:
    """Headings, kinds and widths of the columns of a task's table, for `gr.Dataframe`."""
    shown = columns(task)
    return {
        "headers": [column.heading for column in shown],
        "datatype": ["number" if column.numeric else "str" for column in shown],
        "column_widths": [_WIDTHS.get(column.heading, max(84, 22 + 8 * len(column.heading))) for column in shown],
    }


# ----- Words


CONTROLS_LABEL = "Show twins, controls and baselines"

TITLE = "audio-compositionality leaderboard"

_PACKAGE = "audio-compositionality"


def _text(file: str, **values: object) -> str:
    """A text of this folder, with values in the places of their names."""
    return Template(files(__package__).joinpath(file).read_text("utf-8")).substitute(values)


def with_verdicts(file: str) -> str:
    """A text of this folder, with the meaning of a verdict on the board."""
    signs = ", ".join(f"{sign} {standing.value}" for standing, sign in SIGNS.items())
    verdicts = _text("verdicts.md", signs=signs, least=f"{LEAST_DIFFERENCE:g}")
    return _text(file, verdicts=verdicts)


def introduction() -> str:
    """The head of the page."""
    return "# Do audio models represent the parts of a sound, and how they are combined?\n"


def task_caption(task: TaskInfo) -> str:
    """The caption of a task's table."""
    ranking = task.measure(task.ranks_by)
    measures = "\n".join(f"- *{measure.heading}*: {measure.meaning}" for measure in task.shown)
    return (
        f"**{task.title}**: {task.question} {task.warning} The table begins sorted by *{ranking.heading}*. The numbers:"
        f"\n\n{measures}"
    )


def overview_caption() -> str:
    """How to read the overview, in at most 80 words."""
    # One of the project's addresses, from the package's metadata.
    named = importlib.metadata.metadata(_PACKAGE).get_all("Project-URL") or []
    addresses = {title: url for title, _, url in (str(line).partition(", ") for line in named)}
    return _text("overview.md", docs=addresses["Documentation"])


def nothing_yet(org: str) -> str:
    """What an empty board says: what will be here, and how to be the first. `org` as in `how_to_submit`."""
    infos = [benchmark_info(name) for name in dict.fromkeys(task.info.benchmark for task in list_tasks())]
    lines = "\n".join(f"- **{info.title}**: {info.question}" for info in infos if info.question)
    return _text("empty.md", org=org, install=install_command(), benchmarks=lines)


def how_to_submit(org: str) -> str:
    """The tab about submissions. `org` is the name of an organisation, checked by `check_org`."""
    # The project's address, from the package's metadata.
    metadata = importlib.metadata.metadata(_PACKAGE)
    named = [line.partition(", ") for line in metadata.get_all("Project-URL") or []]
    links = ", ".join(f"[{name}]({url})" for name, _, url in named)
    project = f"The project: {links}." if links else f"The project: {metadata['Summary']}"
    install = install_command()
    results = results_of(org)
    return _text("submit.md", org=org, results=results.id, url=results.url, install=install, project=project)


def install_command() -> str:
    """The command that installs the running version of the package."""
    distribution = importlib.metadata.distribution(_PACKAGE)
    # The source that pip had it from, if no index (PEP 610).
    address = json.loads(distribution.read_text("direct_url.json") or "{}").get("url", "")
    if str(address).startswith(("http://", "https://")):
        return f'pip install "{_PACKAGE} @ {address}"'
    return f"pip install {_PACKAGE}"
