"""Endpoints of a loopback Hub that write: repositories, uploads and commits."""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
from functools import partial
from hashlib import sha256
from typing import Any

from .discussions import open_pull_request, withdraw
from .storage import File, Repository, goes_to_lfs
from .wire import API, ROOT, Call, HubError, Response, endpoint, reply

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_PREUPLOAD_LIMIT = 256


@endpoint("POST", "/api/repos/create")
def create(call: Call) -> Response:
    values = call.json()
    user = call.user()
    kind = values.get("type") or "model"
    namespace = values.get("organization") or user
    name = f"{namespace}/{values['name']}"
    if kind not in ("model", "dataset", "space") or not _NAME.fullmatch(values["name"]) or "--" in name:
        raise HubError(400, f"Invalid repo name or type: {kind} {name}")
    if kind == "space" and values.get("sdk") is None:
        raise HubError(400, "A Space needs an sdk")
    assert call.token is not None
    if not call.hub.accounts.owns(call.token, namespace) or not call.token.grants("write"):
        raise HubError(403, f'You don\'t have the rights to create a {kind} under the namespace "{namespace}"')
    url = f"{call.hub.url}/{'' if kind == 'model' else f'{kind}s/'}{name}"
    private = values.get("visibility") == "private"
    try:
        repository = call.hub.repositories.create(kind, name, private=private, sdk=values.get("sdk"), owner=user)
    except HubError as error:
        return reply({"error": error.message, "url": url}, error.status, error.headers)
    return reply({"url": url, "name": repository.name, "id": repository.name})


@endpoint("POST", "/api/validate-yaml")
def validate_yaml(call: Call) -> Response:
    content = str(call.json().get("content", ""))
    if not content.startswith("---"):
        return reply({"errors": [], "warnings": [{"message": "empty or missing yaml metadata in repo card"}]})
    if not re.match(r"---\r?\n(?:.*\r?\n)*?---\s*(?:\r?\n|$)", content):
        return reply({"errors": [{"message": "the yaml metadata has no end"}], "warnings": []}, 400)
    return reply({"errors": [], "warnings": []})


@endpoint("POST", f"{API}/preupload/(?P<revision>[^/]+)")
def preupload(call: Call, kind: str, name: str, revision: str) -> Response:
    repository = _writable(call, kind, name, revision)
    files = call.json()["files"]
    if len(files) > _PREUPLOAD_LIMIT:
        raise HubError(400, f"{len(files)} files; at most {_PREUPLOAD_LIMIT}")
    known = repository.at(revision).files
    answers = []
    for file in files:
        lfs = goes_to_lfs(file["path"], base64.b64decode(file["sample"]), file["size"])
        present = known.get(file["path"])
        answers.append(
            {
                "path": file["path"],
                "uploadMode": "lfs" if lfs else "regular",
                "shouldIgnore": False,
                "oid": present.etag if present else None,
            }
        )
    return reply({"files": answers})


@endpoint("POST", rf"{ROOT}\.git/info/lfs/objects/batch")
def lfs_batch(call: Call, kind: str, name: str) -> Response:
    values = call.json()
    ref = values.get("ref", {}).get("name")
    # Without a reference it is an upload for a pull request that does not exist yet.
    repository = _writable(call, kind, name, ref) if ref else call.repository(kind, name, "discuss")
    objects = []
    for wanted in values["objects"]:
        answer: dict[str, Any] = {"oid": wanted["oid"], "size": wanted["size"]}
        if wanted["oid"] not in repository.large:
            secret = secrets.token_hex(8)
            call.hub.uploads[secret] = (repository, wanted["oid"], wanted["size"])
            base = f"{call.hub.url}/{'' if kind == 'model' else f'{kind}s/'}{name}.git/info/lfs/objects/verify"
            answer["actions"] = {
                "upload": {"href": f"{call.hub.url}/lfs-storage/{wanted['oid']}?signature={secret}"},
                "verify": {"href": base},
            }
        objects.append(answer)
    return reply({"transfer": "basic", "objects": objects})


@endpoint("PUT", "/lfs-storage/(?P<oid>[0-9a-f]{64})")
def lfs_upload(call: Call, oid: str) -> Response:
    # As with storage elsewhere: the address alone gives the right, and a token must not be sent there.
    repository, expected, size = call.hub.uploads.get(call.query.get("signature", ""), (None, "", 0))
    if repository is None or expected != oid:
        raise HubError(403, "The signature does not match")
    if "authorization" in call.headers:
        raise HubError(400, "Only one way to authenticate is allowed")
    if len(call.body) != size or sha256(call.body).hexdigest() != oid:
        raise HubError(400, f"{len(call.body)} bytes that are not {oid} of {size} bytes")
    repository.receive(call.body)
    call.hub.uploaded.add((repository.kind, repository.name, oid))
    return Response(200, b"", {"ETag": f'"{oid}"'})


@endpoint("POST", rf"{ROOT}\.git/info/lfs/objects/verify")
def lfs_verify(call: Call, kind: str, name: str) -> Response:
    repository = call.repository(kind, name)
    call.user()
    oid = call.json()["oid"]
    if (kind, name, oid) not in call.hub.uploaded:
        raise HubError(404, f"{oid} was not uploaded")
    repository.large.add(oid)
    return reply({"oid": oid})


@endpoint("POST", f"{API}/commit/(?P<revision>[^/]+)")
def commit(call: Call, kind: str, name: str, revision: str) -> Response:
    repository = _writable(call, kind, name, revision)
    user = call.user()
    header: dict[str, Any] = {}
    with repository.lock:
        changes: dict[str, bytes | File | None] = {}
        for line in call.body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "header":
                header = entry["value"]
            else:
                changes |= _changes(repository, revision, entry["key"], entry["value"])
        title, description, parent = header.get("summary"), header.get("description", ""), header.get("parentCommit")
        if not title:
            raise HubError(400, "A commit needs a summary")
        commit_to = partial(repository.commit, changes, title, description=description, author=user)
        number = None
        if call.flag("create_pr"):
            repository.expect(revision, parent)
            pull_request = open_pull_request(repository, title, description, user)
            number = pull_request.number
            try:
                made = commit_to(revision=pull_request.ref)
            except HubError:
                withdraw(repository, pull_request)
                raise
        else:
            made = commit_to(revision=revision, parent=parent)
    base = f"{call.hub.url}/{'' if kind == 'model' else f'{kind}s/'}{name}"
    answer = {"success": True, "commitOid": made.oid, "commitUrl": f"{base}/commit/{made.oid}", "hookOutput": ""}
    if number is not None:
        answer["pullRequestUrl"] = f"{base}/discussions/{number}"
    return reply(answer)


def _writable(call: Call, kind: str, name: str, revision: str) -> Repository:
    """The repository, if the token may change this revision, or open a pull request when it asks for that."""
    if call.flag("create_pr"):
        return call.repository(kind, name, "discuss")
    repository = call.repository(kind, name)
    author = None
    if revision.startswith("refs/pr/"):
        number = int(revision.removeprefix("refs/pr/"))
        author = next((found.author for found in repository.discussions if found.number == number), None)
    return call.repository(kind, name, "write", author=author)


def _changes(repository: Repository, revision: str, key: str, value: dict[str, Any]) -> dict[str, bytes | File | None]:
    """What one line of a commit's body asks for."""
    path = value["path"]
    if any(part in ("", ".", "..", ".git") for part in path.rstrip("/").split("/")):
        raise HubError(400, f"Invalid path: {path}")
    if key == "file":
        try:
            return {path: base64.b64decode(value["content"], validate=True)}
        except binascii.Error:
            raise HubError(400, f"The content of {path} is not base64") from None
    if key == "lfsFile":
        if value["oid"] not in repository.large:
            raise HubError(400, f"LFS pointer pointed to a file that does not exist: {path}")
        return {path: File.large(value["oid"], len(repository.received(value["oid"])))}
    if key == "deletedFile":
        return {path: None}
    raise HubError(400, f"Unknown operation {key}")
