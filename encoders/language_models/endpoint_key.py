"""The key for models behind servers; nothing is sent from here."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import quote

from ..base import ModelError
from ..loading.names import KEY_VARIABLE

SERVER = "server"
"""The device of a model that runs elsewhere."""

_SHORTEST_SECRET = 8
"""Letters of the shortest key that is masked in what a model answers: shorter ones are words, as vLLM's EMPTY is."""


class Key(str):
    """A key, which shows itself to nobody who prints what it is in."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def read_key() -> Key | None:
    """The key of the environment; None where none is set.

    Raises:
        ModelError: it holds what no header can; the message does not show it.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise ModelError(
            f"the environment variable {KEY_VARIABLE} holds a space, a line break or a sign that is not ASCII, which "
            "no key has; set it anew"
        )
    return Key(key) if key else None


def masked(text: str, key: str | None) -> str:
    """A text of a server's without the key, also where it stands quoted as in URLs or in JSON."""
    if key is None:
        return text
    for form in sorted({key, quote(key), quote(key, safe=""), json.dumps(key)[1:-1]}, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def masked_answer(text: str, key: str | None) -> str:
    """As `masked`, of what a model says, which stays as it is where the key is short enough for a word."""
    return text if key is None or len(key) < _SHORTEST_SECRET else masked(text, key)
