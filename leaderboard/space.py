"""Starts the leaderboard."""

from __future__ import annotations

import logging
from typing import Any

import gradio as gr

from audio_compositionality.evaluator.submissions.record import secret_from_environment
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import results_of
from audio_compositionality.support.errors import InputError

from .answers import Answers
from .checker import Checker
from .page import blocks_of
from .plots import Plots
from .pull_requests import Checks
from .reading import BoardReader
from .source import BoardSource
from .tabs import CSS

_log = logging.getLogger(__name__)


def launch(space_id: str, *, checks: bool = False, **options: Any) -> None:
    """Show the results of an organisation until the process ends.

    Args:
        space_id: ORG/NAME of the Space; the results are those of ORG.
        checks: check pull requests as well, with the rights of the token in use, where a secret to sign records is set.
        options: of `gradio.Blocks.launch`; host and port are also taken from GRADIO_SERVER_NAME and GRADIO_SERVER_PORT.

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
    answers = Answers(source, Plots(hub, results), results, org, state)
    blocks_of(answers, results, org).launch(
        # Strings are fonts of the visitor's system: nothing is asked of another host.
        theme=gr.themes.Default(font=("system-ui", "sans-serif"), font_mono=("ui-monospace", "monospace")),
        css=CSS,
        footer_links=[],
        ssr_mode=False,
        # Gradio takes uploads whether a page asks for any or not.
        max_file_size=1,
        **options,
    )


def signing_secret(checks: bool) -> tuple[str | None, str]:
    """The secret to sign records with, and why nothing is checked, which the log says too; that is empty where all is
    there.

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


_NO_TOKEN = "This Space has no token with write access: maintainers check pull requests and add what is right."
_NO_SECRET = (
    "This Space has no secret AUDIO_COMPOSITIONALITY_SECRET of 32 characters or more to sign what it finds "
    "with: it checks nothing, and shows no entry as verified."
)
