"""The Space: the page in Gradio, the answer behind each of its components, and its start."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import gradio as gr

from audio_compositionality.evaluator.submissions.layout import FILE_LIMITS, SAMPLES
from audio_compositionality.evaluator.submissions.record import secret_from_environment
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.hub.names import results_of
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import read_file

from .board import Entry
from .callbacks import PageCallbacks, Selection
from .components import BOARD_CSS, TITLE, ModelTab, OverviewTab, TableTab, how_to_submit, introduction
from .plots import Plots
from .pull_requests import Checker, Checks
from .reading import MAX_AGE, BoardReader, BoardSource

AT_ONCE, DRAWN_AT_ONCE, WAITING = 16, 4, 500
"""Events answered at the same time, drawings among them, and events in the queue: more are turned away."""


def page_blocks(callbacks: PageCallbacks, results: Repository | None, org: str) -> gr.Blocks:
    """The page as Gradio's blocks.

    Args:
        callbacks: fill the page.
        results: the displayed repository; None for results on this machine.
        org: the leaderboard's organisation.
    """
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(3600, 6 * 3600)) as blocks:
        # The page's own names and links; the content comes with the event `load`.
        gr.Markdown(introduction())
        with gr.Tabs(selected="overview") as tabs:
            with gr.Tab("Overview", id="overview"):
                overview = OverviewTab()
            with gr.Tab("By task", id="table"):
                shown = TableTab(callbacks.tasks)
            with gr.Tab("Model", id="model"):
                model = ModelTab()
            with gr.Tab("How to submit", id="submit"):
                gr.Markdown(how_to_submit(org))
            with gr.Tab("Rejected", id="rejected"):
                where = "" if results is None else f", [{results.id}]({results.url}),"
                gr.Markdown(
                    f"Files of the repository of results{where} that the board does not show, each with the reason, "
                    "and the state of the checks of pull requests."
                )
                rejected = gr.Dataframe(
                    headers=["path", "reason"],
                    datatype="str",
                    type="array",
                    interactive=False,
                    wrap=True,
                    column_widths=["40%", "60%"],
                    label="Rejected files",
                    elem_id="rejected",
                )
                checks = gr.Textbox(label="Checks of pull requests", interactive=False, elem_id="checks")
        # Below the table: a phone shows scores first.
        with gr.Row():
            state = gr.Textbox(show_label=False, container=False, interactive=False, elem_id="state", scale=5)
            again = gr.Button("Read again", size="sm", scale=1, min_width=110)
        timer = gr.Timer(MAX_AGE)
        # What `refreshed` fills, and then `overview`; and the visitor's choices, of the overview, then of the table.
        filled_table = [state, rejected, checks, timer, model.name, *shown.filled]
        filled, filters = [*filled_table, *overview.filled], [*overview.filters, *shown.filters]
        start = len(overview.filters)

        def refresh(*values: Any) -> list[Any]:
            # The state of the reading first: a board that is no longer pending has been read.
            updates = callbacks.refreshed(Selection.of(*values[start:]))
            return [*updates, *callbacks.overview(*values[:start])]

        def refresh_now(*values: Any) -> list[Any]:
            callbacks.read_again()
            return refresh(*values)

        def open_page(request: gr.Request, *values: Any) -> list[Any]:
            wanted = request.query_params.get("model", "")
            updates = refresh(*values)
            if wanted in callbacks.board.models:
                updates[filled.index(model.name)] = gr.update(choices=callbacks.models(), value=wanted)
                return [*updates, gr.Tabs(selected="model")]
            return [*updates, gr.Tabs()]

        def change_task(*values: Any) -> list[Any]:
            return callbacks.refreshed(replace(Selection.of(*values), sort="", measure=""))

        def change_data(*values: Any) -> list[Any]:
            return callbacks.refreshed(Selection.of(*values))

        def narrow(*values: Any) -> tuple[Any, Any]:
            return callbacks.filtered(Selection.of(*values))

        # Choices follow the board, and may change while a visitor's request is in progress: Gradio would answer with an
        # error. So values arrive unchecked, and the handler checks whether they still exist.
        options: dict[str, Any] = {"preprocess": False, "show_progress": "hidden", "trigger_mode": "always_last"}
        blocks.load(open_page, filters, [*filled, tabs], **options)
        again.click(refresh_now, filters, filled, preprocess=False)
        timer.tick(refresh, filters, filled, **options)
        shown.task.input(change_task, shown.filters, filled_table, **options)
        gr.on([shown.data.input, shown.older.input], change_data, shown.filters, filled_table, **options)
        gr.on(shown.narrowed, narrow, shown.filters, [shown.table, shown.csv], **options)
        changed = [overview.data.input, overview.benchmark.input, overview.controls.input]
        gr.on(changed, callbacks.overview, overview.filters, overview.filled, **options)
        shown.table.select(callbacks.toggled, [shown.picked], [shown.picked, model.name], **options)
        gr.on(
            [shown.picked.change, shown.measure.change],
            callbacks.drawn,
            [shown.picked, shown.measure],
            [shown.boxes, shown.diversity, shown.notes],
            preprocess=False,
            trigger_mode="always_last",
            concurrency_limit=DRAWN_AT_ONCE,
        )
        listed = [model.entries, model.link, model.open, model.entry, model.conclusion, model.older, model.fold]
        model.name.change(callbacks.of_model, model.name, listed, **options)
        detailed = [model.numbers, model.origin, model.files, model.hub]
        model.entry.change(callbacks.of_entry, model.entry, detailed, **options)
    page: gr.Blocks = blocks.queue(max_size=WAITING, default_concurrency_limit=AT_ONCE)
    return page


_log = logging.getLogger(__name__)


def launch(space_id: str, *, checks: bool = False, **options: Any) -> None:
    """Show the results of an organisation until the process ends.

    Args:
        space_id: ORG/NAME of the Space; it shows the results of ORG.
        checks: also check pull requests, with the rights of the token in use, if a secret to sign records is set.
        options: of `gradio.Blocks.launch`; host and port are also read from GRADIO_SERVER_NAME and GRADIO_SERVER_PORT.

    Raises:
        HubError: the id names no organisation or user.
    """
    org = space_id.split("/")[0]
    if not org:
        raise HubError("set SPACE_ID to ORG/NAME, as Spaces do: the results of ORG are shown")
    results, hub = results_of(org), Hub()
    secret, problem = signing_secret(checks)
    source = BoardSource(BoardReader(hub, results, secret))
    source.start()
    checker = Checker(Checks(hub, org, secret), source.expire) if checks and secret else None
    if checker is not None:
        checker.start()
    state = checker.state if checker else (lambda: problem)

    def fetch(commit: str, entry: Entry) -> bytes:
        return read_file(hub.download(results, entry.samples, commit, limit=FILE_LIMITS[SAMPLES]))

    callbacks = PageCallbacks(source, Plots(fetch), results, org, state)
    show(page_blocks(callbacks, results, org), **options)


def show(blocks: gr.Blocks, **options: Any) -> None:
    """Serve the page in its look until the process ends. `options`: of `gradio.Blocks.launch`."""
    blocks.launch(
        # Strings are fonts of the visitor's system: no request to another host.
        theme=gr.themes.Default(
            primary_hue="blue", font=("system-ui", "sans-serif"), font_mono=("ui-monospace", "monospace")
        ),
        css=BOARD_CSS,
        footer_links=[],
        ssr_mode=False,
        # Gradio accepts uploads even for a page without any.
        max_file_size=1,
        **options,
    )


def signing_secret(checks: bool) -> tuple[str | None, str]:
    """The secret to sign records with, and the reason why nothing is checked, which is also logged; empty where checks
    can run.

    Args:
        checks: whether there is a token to check pull requests with.
    """
    secret, problems = None, [] if checks else [_NO_TOKEN]
    try:
        secret = secret_from_environment()
        if secret is None:
            problems.append(_NO_SECRET)
    except InputError as error:
        problems.append(f"{_NO_SECRET} {error}.")
    for problem in problems:
        _log.warning(problem)
    return secret, " ".join(problems)


_NO_TOKEN = "This Space has no token with write access: maintainers check pull requests and add correct entries."
_NO_SECRET = (
    "This Space has no secret AUDIO_COMPOSITIONALITY_SECRET of 32 characters or more to sign its "
    "records: it checks nothing, and shows no entry as verified."
)
