"""Files with their digests, and the changes, commits and pull requests made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from audio_compositionality.support.files import open_file

from .errors import Repository

Content = bytes | Path
"""Content of a file: its bytes or its path."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository at one commit.

    Attributes:
        path: path in the repository.
        size: in bytes.
        digest: ``sha256:…`` for a large file, ``git:…`` (SHA-1 as Git computes it) for any other; see `matches`.
    """

    path: str
    size: int
    digest: str

    def matches(self, content: Content) -> bool:
        """Return whether the file has this content."""
        return size_of(content) == self.size and digest_of(content, self.digest.split(":")[0]) == self.digest


@dataclass(frozen=True)
class Changes:
    """The changes of a commit.

    Attributes:
        send: size in bytes of each new or changed file, by path.
        same: paths of unchanged files.
        delete: paths of files to delete.
    """

    send: Mapping[str, int]
    same: tuple[str, ...]
    delete: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.send or self.delete)


@dataclass(frozen=True)
class Commit:
    """The result of a commit.

    Attributes:
        oid: the commit that now has the content.
        url: address of the repository at that commit, or of the pull request.
        changes: the changes sent.
        pull_request: its number; None for a commit to a branch, or if a branch already has the content.
    """

    oid: str
    url: str
    changes: Changes
    pull_request: int | None


@dataclass(frozen=True)
class Push:
    """The result of a push to a repository, or of a dry run.

    Attributes:
        repository: the repository.
        changes: the files to send, and those that are already there.
        commit: the new commit; None for a dry run.
    """

    repository: Repository
    changes: Changes
    commit: Commit | None


@dataclass(frozen=True)
class PullRequest:
    """A pull request.

    Attributes:
        number: its number in its repository.
        title: as its author wrote it.
        author: name of the author.
    """

    number: int
    title: str
    author: str

    @property
    def revision(self) -> str:
        """Return the name of the revision with its commits."""
        return f"refs/pr/{self.number}"


@dataclass(frozen=True)
class Comment:
    """A comment on a pull request, with the name of the user who wrote it."""

    author: str
    text: str


def size_of(content: Content) -> int:
    """Return the size of a file in bytes."""
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def digest_of(content: Content, kind: str) -> str:
    """Return the digest of a file, ``sha256`` or ``git``, in the form of `RemoteFile.digest`."""
    if kind == "sha256":
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(b"blob %d\0" % size_of(content), usedforsecurity=False)
    if isinstance(content, bytes):
        digest.update(content)
    else:
        with open_file(content) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return f"{kind}:{digest.hexdigest()}"
