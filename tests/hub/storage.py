"""Repositories of a loopback Hub: content and commits, each named by what it holds."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from .wire import HubError

if TYPE_CHECKING:
    from .discussions import Discussion

LFS_SUFFIXES = ("bin", "flac", "gz", "jpg", "npy", "npz", "parquet", "png", "pt", "safetensors", "wav", "zip")
"""File name endings that `.gitattributes` of a new repository sends to large file storage."""

LARGEST_REGULAR = 10 * 2**20
"""Bytes; a larger file goes to large file storage whatever its name."""

GITATTRIBUTES = "".join(f"*.{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in LFS_SUFFIXES).encode()


def now() -> str:
    """The time as the Hub writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def git_oid(content: bytes) -> str:
    """Git's name of a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class File:
    """A file of a commit."""

    sha256: str
    size: int
    lfs: bool
    oid: str

    @classmethod
    def large(cls, sha256: str, size: int) -> File:
        """A file in large file storage."""
        return cls(sha256, size, True, git_oid(pointer(sha256, size)))

    @property
    def etag(self) -> str:
        """What changes when the content does, and what `preupload` calls the file."""
        return self.sha256 if self.lfs else self.oid


def pointer(sha256: str, size: int) -> bytes:
    """What is in the tree in the place of a large file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def goes_to_lfs(path: str, sample: bytes, size: int) -> bool:
    """Whether a file is uploaded to large file storage; `sample` is its beginning."""
    by_name = any(fnmatch(path.rsplit("/", 1)[-1], f"*.{suffix}") for suffix in LFS_SUFFIXES)
    return size > 0 and (by_name or b"\0" in sample or size > LARGEST_REGULAR)


@dataclass(frozen=True)
class Commit:
    """A state of a repository: all files by path, where it came from, who made it."""

    oid: str
    parent: str | None
    title: str
    description: str
    author: str
    date: str
    files: Mapping[str, File]


class Repository:
    """Files, commits, branches, tags and discussions of a repository. Everything is done under its lock."""

    def __init__(self, kind: str, name: str, *, private: bool, sdk: str | None, owner: str) -> None:
        self.kind = kind
        self.name = name
        self.private = private
        self.sdk = sdk
        self.created = now()
        self.lock = threading.RLock()
        self.refs: dict[str, str] = {}
        self.large: set[str] = set()
        self.discussions: list[Discussion] = []
        self.secrets: dict[str, str] = {}  # of a Space
        self._contents: dict[str, bytes] = {}
        self._commits: dict[str, Commit] = {}
        first = {".gitattributes": GITATTRIBUTES}
        if kind == "space":
            title = name.split("/")[1]
            first["README.md"] = f"---\ntitle: {title}\nemoji: 🌍\nsdk: {sdk}\n---\n".encode()
        self._point("refs/heads/main", None, self._store(first), "initial commit", "", owner)

    def commit(
        self,
        changes: Mapping[str, bytes | File | None],
        title: str = "a commit",
        *,
        revision: str = "main",
        description: str = "",
        author: str = "somebody",
        parent: str | None = None,
    ) -> Commit:
        """Put a commit on a branch or a pull request."""
        with self.lock:
            ref = self.branch(revision)
            head = self.expect(ref, parent)
            files = dict(head.files)
            for path, change in changes.items():
                if change is None and files.pop(path, None) is None:
                    raise HubError(404, f'A file with this name doesn\'t exist: "{path}"', code="EntryNotFound")
            files |= self._store({path: change for path, change in changes.items() if change is not None})
            return self._point(ref, head.oid, files, title, description, author)

    def expect(self, revision: str, parent: str | None) -> Commit:
        """The head of a revision, if it is `parent` or that does not matter."""
        head = self.at(revision)
        if parent not in (None, head.oid):
            raise HubError(412, "A commit has happened since. Please refresh and try again.")
        return head

    def at(self, revision: str = "main") -> Commit:
        """The commit that a branch, a tag, a full reference or a commit's own name stands for."""
        with self.lock:
            names = (revision, f"refs/heads/{revision}", f"refs/tags/{revision}")
            oid = next((self.refs[name] for name in names if name in self.refs), revision)
            if oid not in self._commits:
                raise HubError(404, f"Invalid rev id: {revision}", code="RevisionNotFound")
            return self._commits[oid]

    def branch(self, revision: str) -> str:
        """Full name of a branch or a pull request, the references that commits are put on."""
        ref = revision if revision.startswith("refs/pr/") else f"refs/heads/{revision.removeprefix('refs/heads/')}"
        if ref not in self.refs:
            raise HubError(404, f"Invalid rev id: {revision}", code="RevisionNotFound")
        return ref

    def history(self, revision: str = "main") -> Iterator[Commit]:
        """The commits of a revision, the newest first."""
        commit: Commit | None = self.at(revision)
        while commit is not None:
            yield commit
            commit = self.at(commit.parent) if commit.parent else None

    def read(self, path: str, revision: str = "main") -> bytes:
        """Content of a file."""
        return self.content(self.at(revision).files[path])

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """Content of every file."""
        return {path: self.content(file) for path, file in self.at(revision).files.items()}

    def content(self, file: File) -> bytes:
        """Content of a file of one of the commits."""
        return self._contents[file.sha256]

    def receive(self, content: bytes) -> str:
        """Keep a content; the name of its hash. What is uploaded counts when it is added to `large`."""
        name = hashlib.sha256(content).hexdigest()
        self._contents[name] = content
        return name

    def received(self, sha256: str) -> bytes:
        """The content of a hash."""
        return self._contents[sha256]

    def _store(self, changes: Mapping[str, bytes | File]) -> dict[str, File]:
        files = {}
        for path, change in changes.items():
            if isinstance(change, bytes):
                sha256 = self.receive(change)
                if goes_to_lfs(path, change[:512], len(change)):
                    self.large.add(sha256)
                    change = File.large(sha256, len(change))
                else:
                    change = File(sha256, len(change), False, git_oid(change))
            files[path] = change
        return files

    def _point(
        self, ref: str, parent: str | None, files: Mapping[str, File], title: str, description: str, author: str
    ) -> Commit:
        values = (parent, title, description, author, now(), {path: files[path] for path in sorted(files)})
        oid = hashlib.sha1(repr((*values, len(self._commits))).encode()).hexdigest()
        self._commits[oid] = Commit(oid, *values)
        self.refs[ref] = oid
        return self._commits[oid]


class Repositories(dict[tuple[str, str], Repository]):
    """All repositories, by kind and name: ``repositories["dataset", "ORG/NAME"]``."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def create(
        self, kind: str, name: str, *, private: bool = False, sdk: str | None = None, owner: str = "somebody"
    ) -> Repository:
        """Make a repository with its initial commit."""
        with self._lock:
            if (kind, name) in self:
                raise HubError(409, f"You already created this {kind} repo")
            if kind == "space" and sdk is None:
                sdk = "gradio"
            self[kind, name] = Repository(kind, name, private=private, sdk=sdk, owner=owner)
            return self[kind, name]
