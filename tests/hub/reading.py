"""Endpoints of a loopback Hub that read: who one is, what is in a repository, its files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha1
from typing import Any

from .storage import Commit, File, pointer
from .wire import API, ROOT, Call, HubError, Response, endpoint, reply

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@endpoint("GET", "/api/whoami-v2")
def whoami(call: Call) -> Response:
    return reply(call.hub.accounts.whoami(call.token))


@endpoint("GET", "/api/agent-harnesses")
def agent_harnesses(call: Call) -> Response:
    # The programs whose names `hf` would add to its requests: none.
    return reply({"standardEnvVars": [], "harnesses": {}})


@endpoint("GET", f"{API}(?:/revision/(?P<revision>[^/]+))?")
def info(call: Call, kind: str, name: str, revision: str = "main") -> Response:
    repository = call.repository(kind, name)
    commit = repository.at(revision)
    return reply(
        {
            "_id": sha1(f"{kind} {name}".encode()).hexdigest()[:24],
            "id": repository.name,
            "author": repository.name.split("/")[0],
            "sha": commit.oid,
            "createdAt": repository.created,
            "lastModified": commit.date,
            "private": repository.private,
            "gated": False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "siblings": [{"rfilename": path} for path in commit.files],
            **({"sdk": repository.sdk} if kind == "space" else {}),
        }
    )


@endpoint("GET", f"{API}/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?")
def tree(call: Call, kind: str, name: str, revision: str, path: str = "") -> Response:
    repository = call.repository(kind, name)
    commit = repository.at(revision)
    entries = _entries(commit)
    if path and path not in entries:
        raise HubError(404, f"{path} does not exist on {revision}", code="EntryNotFound")
    below = f"{path}/" if path else ""
    chosen = [entry for entry in entries if entry.startswith(below)]
    if not call.flag("recursive"):
        chosen = [entry for entry in chosen if "/" not in entry[len(below) :]]
    return reply([_described(entries, entry) for entry in chosen])


@endpoint("GET", f"{API}/commits/(?P<revision>[^/]+)")
def commits(call: Call, kind: str, name: str, revision: str) -> Response:
    repository = call.repository(kind, name)
    entries = [
        {
            "id": commit.oid,
            "title": commit.title,
            "message": commit.description,
            "authors": [{"user": commit.author}],
            "date": commit.date,
        }
        for commit in repository.history(revision)
    ]
    return reply(entries)


@endpoint("HEAD", f"{ROOT}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
@endpoint("GET", f"{ROOT}/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
def resolve(call: Call, kind: str, name: str, revision: str, path: str) -> Response:
    repository = call.repository(kind, name)
    commit = repository.at(revision)
    headers = {"X-Repo-Commit": commit.oid}
    file = commit.files.get(path)
    if file is None:
        raise HubError(404, "Entry not found", code="EntryNotFound", **headers)
    content = repository.content(file)
    headers |= {
        "ETag": f'"{file.etag}"',
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream" if file.lfs else "text/plain; charset=utf-8",
    }
    if file.lfs:
        headers |= {"X-Linked-Etag": f'"{file.etag}"', "X-Linked-Size": str(file.size)}
    wanted = _RANGE.fullmatch(call.headers.get("range", ""))
    if wanted is None or not any(wanted.groups()):
        return Response(200, content, headers)
    first, last = wanted.groups()
    start = int(first) if first else max(0, file.size - int(last))
    stop = min(int(last) + 1, file.size) if first and last else file.size
    if start >= stop:
        raise HubError(416, "Range not satisfiable", **headers, **{"Content-Range": f"bytes */{file.size}"})
    return Response(206, content[start:stop], {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{file.size}"})


def _entries(commit: Commit) -> dict[str, File | str]:
    """Every path of a commit in order: its file, or of a folder the name that its content gives it."""
    entries: dict[str, File | str] = dict(commit.files)
    for path in commit.files:
        parts = path.split("/")[:-1]
        for depth in range(len(parts)):
            folder = "/".join(parts[: depth + 1])
            if folder not in entries:
                below = [f"{name} {file.oid}" for name, file in commit.files.items() if name.startswith(f"{folder}/")]
                entries[folder] = sha1("\n".join(below).encode()).hexdigest()
    return dict(sorted(entries.items()))


def _described(entries: Mapping[str, File | str], path: str) -> dict[str, Any]:
    entry = entries[path]
    if isinstance(entry, str):
        return {"type": "directory", "oid": entry, "size": 0, "path": path}
    size = len(pointer(entry.sha256, entry.size))
    lfs = {"oid": entry.sha256, "size": entry.size, "pointerSize": size}
    described = {"type": "file", "oid": entry.oid, "size": entry.size, "path": path}
    return {**described, "lfs": lfs} if entry.lfs else described
