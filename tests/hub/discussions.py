"""Discussions and pull requests of a loopback Hub, and their endpoints."""

from __future__ import annotations

import difflib
import secrets
from dataclasses import dataclass, field
from typing import Any

from .storage import Commit, File, Repository, now, pointer
from .wire import API, Call, HubError, Response, endpoint, reply

_PAGE = 10  # discussions on a page of the list


@dataclass
class Discussion:
    """A discussion or a pull request.

    Attributes:
        number: within the repository, from 1.
        title: one line.
        author: name of the user.
        status: ``open``, ``closed``, ``merged`` or ``draft``.
        base: branch that a pull request is to be merged into; None for a discussion.
        fork: commit of the base that a pull request began at.
        merge_commit: the commit of the base that brought it in.
        events: as they are sent.
    """

    number: int
    title: str
    author: str
    status: str = "open"
    base: str | None = None
    fork: str = ""
    merge_commit: str | None = None
    created: str = field(default_factory=now)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ref(self) -> str:
        """Where the commits of a pull request are."""
        return f"refs/pr/{self.number}"


def open_pull_request(
    repository: Repository, title: str, description: str, author: str, *, base: str = "main", status: str = "open"
) -> Discussion:
    """Open a pull request without commits."""
    with repository.lock:
        discussion = _open(repository, title, description, author, status)
        discussion.base = repository.branch(base)
        discussion.fork = repository.refs[discussion.ref] = repository.at(discussion.base).oid
        return discussion


def withdraw(repository: Repository, discussion: Discussion) -> None:
    """Undo the opening of the newest pull request."""
    repository.discussions.remove(discussion)
    del repository.refs[discussion.ref]


def conflicts(repository: Repository, discussion: Discussion) -> list[str]:
    """The files that a pull request and its base have changed in different ways."""
    assert discussion.base is not None
    fork, ours, theirs = _sides(repository, discussion)
    return sorted(
        path
        for path in _changed(fork, theirs)
        if ours.files.get(path) not in (fork.files.get(path), theirs.files.get(path))
    )


def merge(repository: Repository, discussion: Discussion, user: str) -> Commit:
    """Bring a pull request into its base.

    Raises:
        HubError: 409, it is no open pull request, or conflicts with what its base has become.
    """
    with repository.lock:
        if discussion.base is None or discussion.status != "open":
            raise HubError(409, f"#{discussion.number} is no open pull request")
        if found := conflicts(repository, discussion):
            raise HubError(409, f"This pull request has conflicts: {', '.join(found)}")
        fork, ours, theirs = _sides(repository, discussion)
        changes: dict[str, bytes | File | None] = {
            path: theirs.files.get(path)
            for path in _changed(fork, theirs)
            if ours.files.get(path) != theirs.files.get(path)
        }
        title = f"{discussion.title} (#{discussion.number})"
        made = repository.commit(changes, title, revision=discussion.base, author=user)
        discussion.merge_commit = made.oid
        _set_status(discussion, "merged", user)
        return made


@endpoint("GET", f"{API}/discussions")
def discussions(call: Call, kind: str, name: str) -> Response:
    repository = call.repository(kind, name)
    wanted = {"pull_request": True, "discussion": False}.get(call.query.get("type", ""))
    status = {"open": ("open", "draft"), "closed": ("closed", "merged")}.get(call.query.get("status", ""))
    found = [
        discussion
        for discussion in reversed(repository.discussions)
        if wanted in (None, discussion.base is not None)
        and (status is None or discussion.status in status)
        and call.query.get("author") in (None, discussion.author)
    ]
    start = int(call.query.get("p", 0)) * _PAGE
    page = [_summary(repository, discussion) for discussion in found[start : start + _PAGE]]
    return reply({"discussions": page, "count": len(found), "start": start})


@endpoint("POST", f"{API}/discussions")
def create_discussion(call: Call, kind: str, name: str) -> Response:
    repository = call.repository(kind, name, "discuss")
    values = call.json()
    title, description = values["title"], values.get("description", "")
    if values.get("pullRequest"):
        discussion = open_pull_request(repository, title, description, call.user(), status="draft")
    else:
        with repository.lock:
            discussion = _open(repository, title, description, call.user(), "open")
    return reply({"num": discussion.number, "pullRequest": discussion.base is not None})


@endpoint("GET", rf"{API}/discussions/(?P<number>\d+)")
def details(call: Call, kind: str, name: str, number: str) -> Response:
    repository = call.repository(kind, name)
    discussion = _discussion(repository, number)
    answer = {**_summary(repository, discussion), "events": _events(repository, discussion)}
    if discussion.base is not None:
        settled = discussion.merge_commit is not None
        answer |= {
            "filesWithConflicts": [] if settled else conflicts(repository, discussion),
            "changes": {"base": discussion.base, "mergeCommitId": discussion.merge_commit},
        }
        if call.flag("diff"):
            answer["diff"] = _diff(repository, discussion)
    return reply(answer)


@endpoint("POST", rf"{API}/discussions/(?P<number>\d+)/comment")
def comment(call: Call, kind: str, name: str, number: str) -> Response:
    repository = call.repository(kind, name, "discuss")
    return reply({"newMessage": _comment(_discussion(repository, number), call.json()["comment"], call.user())})


@endpoint("POST", rf"{API}/discussions/(?P<number>\d+)/status")
def change_status(call: Call, kind: str, name: str, number: str) -> Response:
    discussion = _discussion(call.repository(kind, name), number)
    repository = call.repository(kind, name, "write", author=discussion.author)
    values = call.json()
    with repository.lock:
        if discussion.status == "merged" or values["status"] not in ("open", "closed"):
            raise HubError(400, f"#{number} is {discussion.status}; it cannot become {values['status']}")
        if values.get("comment"):
            _comment(discussion, values["comment"], call.user())
        return reply({"newStatus": _set_status(discussion, values["status"], call.user())})


@endpoint("POST", rf"{API}/discussions/(?P<number>\d+)/merge")
def merge_pull_request(call: Call, kind: str, name: str, number: str) -> Response:
    repository = call.repository(kind, name, "write")
    discussion = _discussion(repository, number)
    # The clients send null where there is no comment.
    if call.body.strip() not in (b"", b"null") and call.json().get("comment"):
        _comment(discussion, call.json()["comment"], call.user())
    return reply({"mergeCommitId": merge(repository, discussion, call.user()).oid})


def _open(repository: Repository, title: str, description: str, author: str, status: str) -> Discussion:
    discussion = Discussion(len(repository.discussions) + 1, title, author, status)
    _comment(discussion, description, author)
    repository.discussions.append(discussion)
    return discussion


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
        "isPullRequest": discussion.base is not None,
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


def _set_status(discussion: Discussion, status: str, author: str) -> dict[str, Any]:
    discussion.status = status
    discussion.events.append(_event("status-change", author, {"status": status}))
    return discussion.events[-1]


def _events(repository: Repository, discussion: Discussion) -> list[dict[str, Any]]:
    """What was said and done, in order; commits can come from anywhere and are looked up."""
    events = list(discussion.events)
    if discussion.base is not None:
        for commit in repository.history(discussion.ref):
            if commit.oid == discussion.fork:
                break
            data = {"subject": commit.title, "oid": commit.oid}
            events.append({**_event("commit", commit.author, data, commit.date), "id": commit.oid[:24]})
    return sorted(events, key=lambda event: str(event["createdAt"]))


def _sides(repository: Repository, discussion: Discussion) -> tuple[Commit, Commit, Commit]:
    assert discussion.base is not None
    return repository.at(discussion.fork), repository.at(discussion.base), repository.at(discussion.ref)


def _changed(before: Commit, after: Commit) -> list[str]:
    return sorted(path for path in {*before.files, *after.files} if before.files.get(path) != after.files.get(path))


def _diff(repository: Repository, discussion: Discussion) -> str:
    """The changes of a pull request as Git shows them; of a large file, those of its pointer."""

    def lines(file: File | None) -> list[str]:
        if file is None:
            return []
        content = pointer(file.sha256, file.size) if file.lfs else repository.content(file)
        return content.decode("utf-8", "replace").splitlines(keepends=True)

    fork, _, theirs = _sides(repository, discussion)
    parts = []
    for path in _changed(fork, theirs):
        old, new = fork.files.get(path), theirs.files.get(path)
        names = (f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null")
        parts += [f"diff --git a/{path} b/{path}\n", *difflib.unified_diff(lines(old), lines(new), *names)]
    return "".join(parts)
