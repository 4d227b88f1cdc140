"""Pull requests of a loopback Hub, and their endpoints."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from .storage import Repository, now
from .wire import API, Call, HubError, Response, endpoint, reply

_PAGE = 10  # pull requests on a page of the list


@dataclass
class Discussion:
    """A pull request."""

    number: int
    title: str
    author: str
    status: str = "open"
    fork: str = ""
    created: str = field(default_factory=now)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ref(self) -> str:
        """Where its commits are."""
        return f"refs/pr/{self.number}"


def open_pull_request(repository: Repository, title: str, description: str, author: str) -> Discussion:
    """Open a pull request without commits."""
    with repository.lock:
        discussion = Discussion(len(repository.discussions) + 1, title, author)
        _comment(discussion, description, author)
        repository.discussions.append(discussion)
        discussion.fork = repository.refs[discussion.ref] = repository.at("main").oid
        return discussion


def withdraw(repository: Repository, discussion: Discussion) -> None:
    """Undo the opening of the newest pull request."""
    repository.discussions.remove(discussion)
    del repository.refs[discussion.ref]


@endpoint("GET", f"{API}/discussions")
def discussions(call: Call, kind: str, name: str) -> Response:
    repository = call.repository(kind, name)
    statuses = {"open": ("open", "draft"), "closed": ("closed", "merged")}.get(call.query.get("status", ""))
    found = [
        discussion
        for discussion in reversed(repository.discussions)
        if (statuses is None or discussion.status in statuses) and call.query.get("author") in (None, discussion.author)
    ]
    start = int(call.query.get("p", 0)) * _PAGE
    page = [_summary(repository, discussion) for discussion in found[start : start + _PAGE]]
    return reply({"discussions": page, "count": len(found), "start": start})


@endpoint("GET", rf"{API}/discussions/(?P<number>\d+)")
def details(call: Call, kind: str, name: str, number: str) -> Response:
    repository = call.repository(kind, name)
    discussion = _discussion(repository, number)
    events = list(discussion.events)
    for commit in repository.history(discussion.ref):
        if commit.oid == discussion.fork:
            break
        data = {"subject": commit.title, "oid": commit.oid}
        events.append({**_event("commit", commit.author, data, commit.date), "id": commit.oid[:24]})
    return reply(
        {
            **_summary(repository, discussion),
            "events": sorted(events, key=lambda event: str(event["createdAt"])),
            "filesWithConflicts": [],
            "changes": {"base": "refs/heads/main", "mergeCommitId": None},
        }
    )


@endpoint("POST", rf"{API}/discussions/(?P<number>\d+)/comment")
def comment(call: Call, kind: str, name: str, number: str) -> Response:
    repository = call.repository(kind, name, "discuss")
    return reply({"newMessage": _comment(_discussion(repository, number), call.json()["comment"], call.user())})


@endpoint("POST", rf"{API}/discussions/(?P<number>\d+)/status")
def change_status(call: Call, kind: str, name: str, number: str) -> Response:
    discussion = _discussion(call.repository(kind, name), number)
    repository = call.repository(kind, name, "write", author=discussion.author)
    status = call.json()["status"]
    with repository.lock:
        if discussion.status == "merged" or status not in ("open", "closed"):
            raise HubError(400, f"#{number} is {discussion.status}; it cannot become {status}")
        discussion.status = status
        discussion.events.append(_event("status-change", call.user(), {"status": status}))
        return reply({"newStatus": discussion.events[-1]})


def _discussion(repository: Repository, number: str) -> Discussion:
    found = next((found for found in repository.discussions if found.number == int(number)), None)
    if found is None:
        raise HubError(404, f"There is no discussion {number}")
    return found


def _summary(repository: Repository, discussion: Discussion) -> dict[str, Any]:
    return {
        "num": discussion.number,
        "title": discussion.title,
        "author": {"name": discussion.author},
        "createdAt": discussion.created,
        "status": discussion.status,
        "isPullRequest": True,
        "repo": {"name": repository.name, "type": repository.kind},
    }


def _event(kind: str, author: str, data: dict[str, Any], date: str = "") -> dict[str, Any]:
    return {
        "id": secrets.token_hex(12),
        "type": kind,
        "createdAt": date or now(),
        "author": {"name": author},
        "data": data,
    }


def _comment(discussion: Discussion, text: str, author: str) -> dict[str, Any]:
    latest = {"raw": text, "html": "", "updatedAt": now(), "author": {"name": author}}
    data = {"edited": False, "hidden": False, "history": [latest], "latest": latest, "numEdits": 0}
    discussion.events.append(_event("comment", author, data))
    return discussion.events[-1]
