"""Names of models behind servers, `endpoint:MODEL@URL`, and the key for them; nothing is sent from here."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from ..base import ModelError

PREFIX = "endpoint:"

SERVER = "server"
"""The device of a model that runs elsewhere."""

KEY_VARIABLE = "AUDIO_COMPOSITIONALITY_ENDPOINT_KEY"
"""The environment variable that holds the key, and the only place where one is looked for.

One name of ours: tokens and keys that a user has set for others, such as HF_TOKEN, go to no server that a name says.
"""

_FORM = f"{PREFIX}MODEL@URL, such as {PREFIX}Qwen/Qwen2-Audio-7B-Instruct@http://localhost:8000/v1"

_USUAL_PATHS = ("", "/v1")

_NAME = re.compile(r"(?P<model>[!-~]+?)@(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>[!-~]*)")

_SHORTEST_SECRET = 8
"""Letters of the shortest key that is masked in what a model answers: shorter ones are words, as vLLM's EMPTY is."""


class Key(str):
    """A key, which shows itself to nobody who prints what it is in."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True)
class Address:
    """A model behind a server.

    Attributes:
        model: what the server calls it.
        url: of the server, up to what `/chat/completions` is appended to; holds no credentials.
    """

    model: str
    url: str

    @property
    def host(self) -> str:
        """The server's name and port. The path is left out: at some gateways it holds a key."""
        return urlsplit(self.url).netloc

    @property
    def id(self) -> str:
        """What results call the model, and what its answers are kept under.

        Servers of one host are told apart by a digest of their paths, where these are not the usual ones.
        """
        path = urlsplit(self.url).path
        digest = "" if path in _USUAL_PATHS else f"~{hashlib.sha256(path.encode()).hexdigest()[:8]}"
        return f"{PREFIX}{self.model}@{self.host}{digest}"

    @property
    def is_open_to_listeners(self) -> bool:
        """Whether what is sent goes to another machine unencrypted."""
        parts = urlsplit(self.url)
        if parts.scheme == "https" or parts.hostname == "localhost":
            return False
        try:
            return not ip_address(parts.hostname or "").is_loopback
        except ValueError:
            return True


def is_endpoint(name: str) -> bool:
    """Whether a name stands for a model behind a server."""
    return name.startswith(PREFIX)


def parse_endpoint(name: str) -> Address:
    """The model and the server of `endpoint:MODEL@URL`.

    Raises:
        ModelError: it is none, or the URL is of another scheme than http and https, or has a place for credentials: a
            user, a query, a fragment. The message shows nothing of the URL but its scheme.
    """
    # Everything after the first @ may hold a password, where somebody has mistyped it.
    match = _NAME.fullmatch(name.removeprefix(PREFIX))
    if match is None:
        raise ModelError(f"the name of a model behind a server is {_FORM}")
    model, scheme, rest = match["model"], match["scheme"].lower(), match["rest"]
    what = f"'{PREFIX}{model}@{scheme}://…'"
    if scheme not in ("http", "https"):
        raise ModelError(f"{what}: the URL must begin with http:// or https://")
    if "@" in rest.partition("/")[0] or re.search(r"[?#\\]", rest):
        raise ModelError(
            f"{what}: the URL must be http(s)://HOST[:PORT][/PATH], without user, password, ? and #: names stand in "
            f"result files; the key belongs into the environment variable {KEY_VARIABLE}"
        )
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ModelError(f"{what}: the URL has no valid host or port; it must be http(s)://HOST[:PORT][/PATH]")
    # One server has one name, in whatever case it is typed.
    return Address(model, f"{scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}")


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
