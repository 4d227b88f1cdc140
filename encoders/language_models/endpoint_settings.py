"""How a server is asked, and the key for it; nothing is sent from here."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import quote

from pydantic import Field

from audio_compositionality.support.spec import Spec

from ..base import ModelError
from ..loading.names import KEY_VARIABLE

MOST_THREADS = 64
"""Questions at a time, each on a connection of its own."""


class EndpointSettings(Spec):
    """How a server is asked."""

    concurrency: int = Field(8, ge=1, le=MOST_THREADS, description="Questions sent at a time.")
    timeout: float = Field(
        300.0,
        gt=0,
        description="Seconds of silence from the server after which a try ends, within the deadline.",
    )
    deadline: float = Field(
        120.0,
        gt=0,
        description="Seconds for a question with all its tries, from the opening of a connection to the last byte of "
        "an answer. Waits between tries, which a server may request, do not count.",
    )
    sample_rate: int = Field(
        32_000, ge=1, description="Sample rate in Hz of the clips sent; clips at other rates are resampled."
    )
    limit_seconds: float | None = Field(
        None,
        gt=0,
        description="The longest clip that the model takes; longer ones are refused, since a server may cut them "
        "without notice. None if unknown.",
    )


DEFAULT_SETTINGS = EndpointSettings()


SERVER = "server"
"""The device of a model that runs elsewhere."""

_SHORTEST_SECRET = 8
"""Length of the shortest key that is masked in a model's answers: shorter ones may be words, as vLLM's EMPTY."""


class ServerKey(str):
    """A key that is hidden when an object that holds it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def read_key() -> ServerKey | None:
    """The key of the environment; None where none is set.

    Raises:
        ModelError: it holds characters that no header can; the message does not show it.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise ModelError(
            f"the environment variable {KEY_VARIABLE} holds a space, a line break or a sign that is not ASCII, which "
            "no key has; set it anew"
        )
    return ServerKey(key) if key else None


def without_key(text: str, key: str | None) -> str:
    """A server's text without the key, even where it is quoted as in URLs or in JSON."""
    if key is None:
        return text
    for form in sorted({key, quote(key), quote(key, safe=""), json.dumps(key)[1:-1]}, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def answer_without_key(text: str, key: str | None) -> str:
    """As `without_key`, for a model's answer, which stays unchanged where the key is short enough to be a word."""
    return text if key is None or len(key) < _SHORTEST_SECRET else without_key(text, key)
