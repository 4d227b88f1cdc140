"""The layout of a submission: its place in the results repository, the names and size limits of its files; listing and
reading them, in a folder or on the Hub.

``results/<encoder>/<revision>/<task>-<id>/`` is the submission, ``verified/<encoder>/<revision>/<task>-<id>/``
the checker's record of it. The id is a hash of the submitted files: the same submission always has the
same folder, and no other one can take its place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.support.files import open_file, safe_file_name, sha256_of
from audio_compositionality.support.text import shortened

RESULT, SAMPLES, EMBEDDINGS, ANSWERS = "result.json", "samples.csv", "embeddings.safetensors", "answers.jsonl"
VERIFICATION = "verification.json"

FILE_LIMITS: Mapping[str, int] = MappingProxyType(
    {RESULT: 100_000, SAMPLES: 16_000_000, EMBEDDINGS: 64_000_000, ANSWERS: 16_000_000, VERIFICATION: 100_000}
)
"""Most bytes of a file. A result has a few kB; only left-out clips would make one larger, and no submission has any.
Answers: 4,000 with a thought of 4,000 characters each."""

FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"results": (RESULT, SAMPLES, EMBEDDINGS, ANSWERS), "verified": (VERIFICATION, RESULT, SAMPLES)}
)
"""Files of the folders of either kind; a submission has at most one of `OUTPUTS`."""

OUTPUTS = (EMBEDDINGS, ANSWERS)
"""Files of model outputs, from which scores are recomputed; without one a result stays self-reported."""

OTHER_FILES = ("README.md", ".gitattributes")
"""Files of the repository beside results and verifications."""

MAX_ENTRIES = 20
"""Most submissions in one pull request, a model with all its controls: further ones go into a second."""

MAX_NAME = 150
"""Characters of an encoder's id or revision."""

MAX_PART = 200
"""UTF-8 bytes of a part of a path: file systems take 255, and temporary names have a suffix."""

_ID = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_ .,:/+=@#()\[\]~-]{{0,{MAX_NAME - 1}}}")
_TASK = "[a-z][a-z0-9_]{0,63}"
_PART = rf"[A-Za-z0-9_][A-Za-z0-9_.+=@-]{{0,{MAX_PART - 1}}}"
_PATH = re.compile(
    rf"(results|verified)/({_PART})/({_PART})/({_TASK})-([0-9a-f]{{16}})(?:/([a-z]{{1,20}}\.[a-z]{{1,20}}))?"
)


@dataclass(frozen=True)
class PathParts:
    """A path in the results repository.

    Attributes:
        kind: ``results`` or ``verified``.
        encoder, revision: the encoder's id and revision, as `safe_file_name` writes them.
        task: name of the task.
        id: of the submission.
        file: name of a file; None for the folder.
    """

    kind: str
    encoder: str
    revision: str
    task: str
    id: str
    file: str | None = None

    @property
    def folder(self) -> str:
        """Path of the folder."""
        return f"{self.kind}/{self.encoder}/{self.revision}/{self.task}-{self.id}"


def parse_path(path: str) -> PathParts | None:
    """The parts of the path of an entry's folder or of one of its files; None of every other path."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    parts = PathParts(*match.groups())
    return parts if parts.file is None or parts.file in FILES[parts.kind] else None


def part_problem(path: str) -> str | None:
    """Why a part of a path is too long; None where none is."""
    length = max(len(part.encode("utf-8", "surrogatepass")) for part in path.split("/"))
    return f"it has {length:,} bytes; at most {MAX_PART} are allowed" if length > MAX_PART else None


def folder_of(result: Result, id: str, kind: str = "results") -> str:
    """Path of the folder of a result in the repository.

    Raises:
        ResultError: the id or the revision of its encoder is not allowed in a path of a submission, or too long.
    """
    model = result.model
    for name, text in (("model.id", model.id), ("model.revision", model.revision)):
        if _ID.fullmatch(text) and (problem := part_problem(safe_file_name(text))):
            raise ResultError(f"{name} is {shortened(repr(text), 200)}; as a part of a path {problem}")
        if not (_ID.fullmatch(text) and re.fullmatch(_PART, safe_file_name(text))):
            raise ResultError(
                f"{name} is {shortened(repr(text), 200)}; in a submission it has 1 to {MAX_NAME} letters a-z and A-Z, "
                "digits and . , : / + = @ # ( ) [ ] ~ - _, the first a letter, digit or _"
            )
    return PathParts(kind, safe_file_name(model.id), safe_file_name(model.revision), result.task, id).folder


def sha256_by_name(files: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of each file, in hexadecimal."""
    return {name: sha256_of(content) for name, content in files.items()}


def id_of(digests: Mapping[str, str]) -> str:
    """The id of a submission, from the SHA-256 digests of its files.

    The first 16 hexadecimal digits of the SHA-256 of the output of ``sha256sum *`` in its folder.
    """
    text = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return sha256_of(text.encode())[:16]


def outputs_in(names: Collection[str]) -> str | None:
    """The name of the file of model outputs among some names; None if there is none.

    Raises:
        ResultError: there is more than one.
    """
    present = [name for name in OUTPUTS if name in names]
    if len(present) > 1:
        raise ResultError(f"it holds {' and '.join(present)}; a submission has one of them")
    return present[0] if present else None


class ListedFile(Protocol):
    """A file in a listing of the repository; see `hub.content.RemoteFile`."""

    @property
    def path(self) -> str:
        """Path below the root of the repository."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def digest(self) -> str:
        """``sha256:…`` of a file in large file storage, ``git:…`` of another."""


Fetch = Callable[[str, int], bytes]
"""Gives the content of a file, by its path in the repository and its most bytes."""


@dataclass(frozen=True)
class EntryFolder:
    """The files of an entry, or of its verification, in a listing of the repository.

    Attributes:
        kind: ``results`` or ``verified``.
        path: of the folder.
        id: stated by its name.
        files: by their names.
    """

    kind: str
    path: str
    id: str
    files: Mapping[str, ListedFile]

    @property
    def encoder(self) -> str:
        """The encoder's id as `safe_file_name` writes it."""
        return self.path.split("/")[1]

    @property
    def is_verifiable(self) -> bool:
        """Whether it has outputs to recompute scores from; other problems are not checked."""
        return any(name in self.files for name in OUTPUTS)

    @property
    def outputs(self) -> str | None:
        """The name of the file of model outputs; see `outputs_in`."""
        return outputs_in(self.files)

    def check(self) -> None:
        """Refuse, with ResultError, missing files, unexpected files and one that is too large."""
        check_names(list(self.files), FILES[self.kind], optional=OUTPUTS)
        for name, file in self.files.items():
            check_size(name, file.size)
        if self.outputs == EMBEDDINGS and self._stored_digest(EMBEDDINGS) is None:
            raise ResultError(f"{EMBEDDINGS} is not in large file storage, so its hash is unknown")

    def _stored_digest(self, name: str) -> str | None:
        """The SHA-256 of a file in large file storage; None for other files."""
        kind, _, digest = self.files[name].digest.partition(":")
        return digest if kind == "sha256" else None

    def read(self, name: str, fetch: Fetch) -> bytes:
        """The content of one of its files."""
        return fetch(self.files[name].path, FILE_LIMITS[name])

    def digest(self, name: str, fetch: Fetch) -> str:
        """The SHA-256 of one of its files; a file too small for large file storage is read."""
        return self._stored_digest(name) or sha256_of(self.read(name, fetch))


def folders_of(tree: Mapping[str, ListedFile]) -> tuple[dict[str, EntryFolder], dict[str, EntryFolder], list[str]]:
    """The files of the repository by folder.

    Returns:
        the folders of entries and of verifications, each by ``<model>/<revision>/<task>-<id>``, and the paths of files
        in neither.
    """
    grouped: dict[str, dict[str, dict[str, ListedFile]]] = {"results": {}, "verified": {}}
    ids, foreign = {}, []
    for path, file in tree.items():
        parts = parse_path(path)
        if parts is None or parts.file is None:
            if path not in OTHER_FILES:
                foreign.append(path)
            continue
        key = parts.folder.split("/", 1)[1]
        grouped[parts.kind].setdefault(key, {})[parts.file] = file
        ids[key] = parts.id
    results, verified = (
        {key: EntryFolder(kind, f"{kind}/{key}", ids[key], content) for key, content in grouped[kind].items()}
        for kind in grouped
    )
    return results, verified, foreign


def read_files(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The content of the files of a folder by their names: regular ones, of these names, none over its limit.

    Raises:
        ResultError: the folder cannot be read, is a link, or holds anything else.
    """
    try:
        if folder.is_symlink() or not folder.is_dir():
            raise ResultError(f"{shortened(str(folder), 300)} is not a folder")
        present = []
        with os.scandir(folder) as entries:
            for entry in entries:
                # Stops at the first: there may be millions.
                check_names([entry.name], names, optional=names)
                present.append(entry.name)
        return {name: _read_file(folder / name) for name in sorted(present)}
    except OSError as error:
        raise ResultError(f"{shortened(str(folder), 300)} cannot be read: {error.strerror}") from None


def check_size(name: str, size: int) -> None:
    """Refuse a file larger than the limit for its name, with ResultError."""
    if size > FILE_LIMITS[name]:
        raise ResultError(f"{name} has {size:,} bytes; at most {FILE_LIMITS[name]:,} are allowed")


def check_place(folder: str, name: str | None) -> None:
    """Refuse a path in the repository, if given, that differs from the folder of the content, with ResultError."""
    if name is not None and name != folder:
        raise ResultError(f"its place is {shortened(name, 400)}, but its content belongs to {folder}")


def check_names(present: Sequence[str] | Mapping[str, Any], names: Sequence[str], optional: Sequence[str]) -> None:
    """Refuse a file of another name, and the absence of a required one, with ResultError."""
    unknown = [name for name in present if name not in names]
    if unknown:
        raise ResultError(
            f"it holds {shortened(ascii(unknown[0]), 200)}; a folder holds {', '.join(names)} and nothing else"
        )
    absent = [name for name in names if name not in present and name not in optional]
    if absent:
        raise ResultError(f"it has no {absent[0]}")


def _read_file(path: Path) -> bytes:
    # A link may lead anywhere.
    if path.is_symlink():
        raise ResultError(f"{path.name} is a link; a submission holds regular files")
    try:
        stream = open_file(path)
    except OSError as error:
        raise ResultError(f"{path.name} cannot be read: {error.strerror}") from error
    with stream:
        check_size(path.name, os.fstat(stream.fileno()).st_size)
        content = stream.read(FILE_LIMITS[path.name] + 1)
    # It may have grown meanwhile.
    check_size(path.name, len(content))
    return content
