"""Requests, responses and errors of a loopback Hub, and the table of its endpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from .accounts import Right, Token
    from .server import LoopbackHub
    from .storage import Repository


class HubError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, *, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {}), **headers}


@dataclass(frozen=True)
class Response:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A request that is being answered."""

    hub: LoopbackHub
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    token: Token | None

    def json(self) -> dict[str, Any]:
        """The body as an object."""
        try:
            value = json.loads(self.body)
        except ValueError:
            raise HubError(400, "The body is not JSON") from None
        if not isinstance(value, dict):
            raise HubError(400, "The body is not an object")
        return value

    def flag(self, name: str) -> bool:
        """Whether a parameter is set."""
        return self.query.get(name, "").lower() in ("1", "true")

    def repository(self, kind: str, name: str, right: Right = "read", *, author: str | None = None) -> Repository:
        """The repository that is asked about, if the token may do with it what it asks for."""
        repository = self.hub.repositories.get((kind, unquote(name)))
        if repository is None:
            raise missing_repository(self.token)
        self.hub.accounts.demand(self.token, repository, right, author=author)
        return repository

    def user(self) -> str:
        """Name of who asks."""
        if self.token is None:
            raise HubError(401, "Invalid username or password.")
        return self.token.user


def missing_repository(token: Token | None) -> HubError:
    """What the Hub says of a repository that is not there or not for this user: to nobody, that he is nobody."""
    if token is None:
        return HubError(401, "Invalid username or password.", code="RepoNotFound")
    return HubError(404, "Repository not found", code="RepoNotFound")


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


def refusal(error: HubError) -> Response:
    """The answer that an error is."""
    # A header holds one line of Latin-1; the Hub's own messages keep to ASCII.
    headers = {name: quote(value, safe=" !\"#$%&'()*+,-./:;<=>?@[]^_`{|}~") for name, value in error.headers.items()}
    return reply({"error": error.message}, error.status, headers)


Endpoint = Callable[..., Response]

ENDPOINTS: list[tuple[str, re.Pattern[str], Endpoint]] = []
"""Method, pattern of the whole path, and what answers: called with the `Call` and the named groups, decoded."""

API = r"/api/(?P<kind>model|dataset|space)s/(?P<name>[^/]+/[^/]+)"
"""Where the API has a repository."""

ROOT = r"/(?:(?P<kind>dataset|space)s/)?(?P<name>[^/]+/[^/]+?)"
"""Where a repository's files are; models have no prefix."""


def endpoint(method: str, pattern: str) -> Callable[[Endpoint], Endpoint]:
    """Enter a function into the table of endpoints."""

    def enter(function: Endpoint) -> Endpoint:
        ENDPOINTS.append((method, re.compile(pattern), function))
        return function

    return enter


def find_endpoint(method: str, path: str) -> tuple[Endpoint, dict[str, str]] | None:
    """What answers a request, with its arguments."""
    for expected, pattern, function in ENDPOINTS:
        if expected == method and (match := pattern.fullmatch(path)):
            groups = {name: unquote(value) for name, value in match.groupdict().items() if value is not None}
            if "kind" in pattern.groupindex:
                groups.setdefault("kind", "model")
            return function, groups
    return None
