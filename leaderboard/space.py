"""Starts the leaderboard."""

from __future__ import annotations

import logging
from typing import Any

import gradio as gr

from audio_compositionality.evaluator.submissions.parquet_reader import ParquetReader
from audio_compositionality.hub import Hub, HubError
from audio_compositionality.hub.names import results_of

from .checker import Checker
from .page import Page
from .plots import Plots
from .reading import BoardReader
from .source import Source
from .tabs import CSS

_log = logging.getLogger(__name__)


def launch(space_id: str, *, checks: bool = False, **options: Any) -> None:
    """Show the results of an organisation until the process ends.

    Args:
        space_id: ORG/NAME of the Space; the results are those of ORG.
        checks: check pull requests as well, with the rights of the token in use.
        options: of `gradio.Blocks.launch`; host and port are also taken from GRADIO_SERVER_NAME and GRADIO_SERVER_PORT.

    Raises:
        HubError: the id names no organisation or user.
    """
    org = space_id.split("/")[0]
    if not org:
        raise HubError("set SPACE_ID to ORG/NAME, as Spaces do: the results of ORG are shown")
    results, hub = results_of(org), Hub()
    source = Source(BoardReader(hub, results))
    source.start()
    checker = Checker(hub, org, source.expire) if checks else None
    if checker is not None:
        checker.start()
    with ParquetReader() as reader:
        page = Page(source, Plots(hub, results, reader), results, org, checker.state if checker else _no_checks)
        page.blocks().launch(
            # Strings are fonts of the visitor's system: nothing is asked of another host.
            theme=gr.themes.Default(font=("system-ui", "sans-serif"), font_mono=("ui-monospace", "monospace")),
            css=CSS,
            footer_links=[],
            ssr_mode=False,
            # Gradio takes uploads whether a page asks for any or not.
            max_file_size=1,
            **options,
        )


def _no_checks() -> str:
    return "This Space has no token with write access: maintainers check pull requests and add what is right."
