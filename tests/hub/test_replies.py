"""Replies that are none: every call, with other JSON than the Hub sends, is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from huggingface_hub import constants

from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError, Repository

from .discussions import open_pull_request
from .faults import Reply, Status

RESULTS = Repository("dataset", "lab/results")
API = "/api/datasets/lab/results"
NEW, FILE = Repository("dataset", "lab/new"), {"README.md": b"other", "new.parquet": bytes(5000)}

WRONG: dict[str, Any] = {
    "object": {},
    "other object": {"error": "sorry", "id": None, "name": 5, "sha": "main", "files": 3, "discussions": "no"},
    "text": "hello",
    "null": None,
    "list of numbers": [1, 2],
    "list of objects": [{}],
    "list of lists": [[]],
}

CALLS: dict[str, tuple[str, str, Callable[[Hub], object]]] = {
    "user": ("GET", "/api/whoami-v2", lambda hub: hub.user()),
    "account": ("GET", "/api/whoami-v2", lambda hub: hub.account()),
    "organisation": ("GET", "/api/organizations/", lambda hub: hub.has_organization("lab")),
    "privacy": ("GET", f"{API}/revision/", lambda hub: hub.is_private(RESULTS)),
    "create": ("POST", "/api/repos/create", lambda hub: hub.create(NEW)),
    "exists": ("GET", f"{API}/revision/", lambda hub: hub.exists(RESULTS)),
    "head": ("GET", f"{API}/revision/", lambda hub: hub.head(RESULTS)),
    "files": ("GET", f"{API}/tree/", lambda hub: hub.files(RESULTS)),
    "commits": ("GET", f"{API}/commits/", lambda hub: hub.commits(RESULTS)),
    "look-up": ("HEAD", "/resolve/", lambda hub: hub.download(RESULTS, "README.md", limit=100)),
    "download": ("GET", "/resolve/", lambda hub: hub.download(RESULTS, "README.md", limit=100)),
    "preupload": ("POST", f"{API}/preupload/", lambda hub: hub.commit(RESULTS, FILE, "x")),
    "batch": ("POST", "/objects/batch", lambda hub: hub.commit(RESULTS, FILE, "x")),
    "commit": ("POST", f"{API}/commit/", lambda hub: hub.commit(RESULTS, FILE, "x")),
    "open": ("POST", f"{API}/commit/", lambda hub: hub.commit(RESULTS, FILE, "x", pull_request=True)),
    "pull requests": ("GET", f"{API}/discussions", lambda hub: hub.pull_requests(RESULTS)),
    "comments": ("GET", f"{API}/discussions/1", lambda hub: hub.comments(RESULTS, 1)),
    "status": ("GET", f"{API}/discussions/1", lambda hub: hub.status(RESULTS, 1)),
    "comment": ("POST", f"{API}/discussions/1/comment", lambda hub: hub.comment(RESULTS, 1, "hello")),
    "close": ("POST", f"{API}/discussions/1/status", lambda hub: hub.close(RESULTS, 1)),
}


@pytest.fixture
def hub_with_files(hub):
    repository = hub.repositories.create("dataset", RESULTS.id)
    repository.commit({"README.md": b"a file of a length that no wrong reply has, by all that can be seen"}, "first")
    open_pull_request(repository, "A result", "", "eve")
    return hub


def refused(call: Callable[[Hub], object]) -> str:
    """The line by which a call is refused."""
    with pytest.raises(HubError) as caught:
        call(Hub())
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    return text


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("name", CALLS)
def test_other_json_and_the_page_of_a_gateway(hub_with_files, name):
    method, path, call = CALLS[name]
    for value in WRONG.values():
        order = hub_with_files.faults.order(method, path, Reply(json.dumps(value).encode()), times=None)
        assert constants.ENDPOINT in refused(call)
        # Another try would bring the same.
        assert order.fired == 1
        hub_with_files.faults.orders.clear()
    page = Reply(b"<html><body>Log in to the network</body></html>", "text/html")
    hub_with_files.faults.order(method, path, page, times=None)
    refused(call)


def test_a_mistake_of_ours_is_none_of_the_hubs(hub_with_files, monkeypatch):
    def mistaken(_: Any) -> str:
        raise KeyError("ours")

    monkeypatch.setattr("audio_compositionality.hub.client._oid", mistaken)
    with pytest.raises(KeyError, match="ours"):
        Hub().head(RESULTS)


@pytest.mark.parametrize("wrong", WRONG)
def test_who_one_is_where_a_refusal_is_to_be_explained(hub_with_files, wrong):
    hub_with_files.faults.order("POST", f"{API}/commit/", Status(403))
    hub_with_files.faults.order("GET", "/api/whoami-v2", Reply(json.dumps(WRONG[wrong]).encode()))
    assert "the token must have the right to write to lab" in refused(lambda hub: hub.commit(RESULTS, FILE, "x"))
