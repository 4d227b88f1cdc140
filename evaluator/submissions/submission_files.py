"""Where a submission lies in the results repository, what its files are called, how large they may be; reading them.

``results/<encoder>/<revision>/<task>-<id>/`` is what somebody submitted, ``verified/<encoder>/<revision>/<task>-<id>/``
what the checker wrote of it. The id is made of the hashes of the submitted files: the same submission is always the
same folder, and no other one can take its place.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.support.files import safe_file_name, sha256_of
from audio_compositionality.support.text import shortened

RESULT, SAMPLES, EMBEDDINGS, ANSWERS = "result.json", "samples.csv", "embeddings.safetensors", "answers.jsonl"
VERIFICATION = "verification.json"

RESULT_LIMIT, SAMPLES_LIMIT, EMBEDDINGS_LIMIT, VERIFICATION_LIMIT = 100_000, 16_000_000, 64_000_000, 100_000
"""Bytes of a file, at most. A result has a few kB; what makes one large, clips that are left out, no submission has."""

ANSWERS_LIMIT = 16_000_000
"""The same of answers: 4,000 with a thought of 4,000 characters each."""

LIMITS: Mapping[str, int] = MappingProxyType(
    {
        RESULT: RESULT_LIMIT,
        SAMPLES: SAMPLES_LIMIT,
        EMBEDDINGS: EMBEDDINGS_LIMIT,
        ANSWERS: ANSWERS_LIMIT,
        VERIFICATION: VERIFICATION_LIMIT,
    }
)
"""The same by the files' names."""

FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"results": (RESULT, SAMPLES, EMBEDDINGS, ANSWERS), "verified": (VERIFICATION, RESULT, SAMPLES)}
)
"""Files of the folders of either kind; a submission has one of `OUTPUTS` at most."""

OUTPUTS = (EMBEDDINGS, ANSWERS)
"""Files of what a model gave, of which scores are computed again; without one a result stays self-reported."""

MAX_ENTRIES = 10
"""Submissions in one pull request: more can be in a second one."""

MAX_NAME = 150
"""Characters of an encoder's id or revision."""

MAX_PART = 200
"""UTF-8 bytes of a part of a path: file systems take 255, and put something behind it where they write."""

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
    return f"it has {length:,} bytes; at most {MAX_PART} can be" if length > MAX_PART else None


def folder_of(result: Result, id: str, kind: str = "results") -> str:
    """Path of the folder of a result in the repository.

    Raises:
        ResultError: the id or the revision of its encoder is no name that a submission can have, or too long.
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


def digests_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of each file, in hexadecimal."""
    return {name: sha256_of(content) for name, content in files.items()}


def id_of(digests: Mapping[str, str]) -> str:
    """The id of a submission whose files have these SHA-256 digests.

    The first 16 hexadecimal digits of the SHA-256 of what ``sha256sum *`` prints in its folder.
    """
    text = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return sha256_of(text.encode())[:16]


def submission_id(files: Mapping[str, bytes]) -> str:
    """The id of a submission with these files, by their names."""
    return id_of(digests_of(files))


def outputs_in(names: Collection[str]) -> str | None:
    """The name among some that is of a file of what a model gave; None where there is none.

    Raises:
        ResultError: there is more than one.
    """
    present = [name for name in OUTPUTS if name in names]
    if len(present) > 1:
        raise ResultError(f"it holds {' and '.join(present)}; a submission has one of them")
    return present[0] if present else None


def read_files(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The content of the files of a folder by their names: regular ones, of these names, none over its limit.

    Raises:
        ResultError: the folder cannot be read, is a link, or holds anything else.
    """
    try:
        if folder.is_symlink() or not folder.is_dir():
            raise ResultError(f"{shortened(str(folder), 300)} is no folder")
        present = []
        with os.scandir(folder) as entries:
            for entry in entries:
                # Ends at the first: there may be millions.
                check_names([entry.name], names, optional=names)
                present.append(entry.name)
        return {name: _read_file(folder / name, LIMITS[name]) for name in sorted(present)}
    except OSError as error:
        raise ResultError(f"{shortened(str(folder), 300)} cannot be read: {error.strerror}") from None


def check_names(present: Sequence[str] | Mapping[str, Any], names: Sequence[str], optional: Sequence[str]) -> None:
    """Refuse a file of another name, and the absence of one that is not optional, with ResultError."""
    unknown = [name for name in present if name not in names]
    if unknown:
        raise ResultError(
            f"it holds {shortened(ascii(unknown[0]), 200)}; there can be {', '.join(names)} and nothing else"
        )
    absent = [name for name in names if name not in present and name not in optional]
    if absent:
        raise ResultError(f"it has no {absent[0]}")


def _read_file(path: Path, limit: int) -> bytes:
    # A link may lead anywhere, and a pipe keep who opens it waiting for ever.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_symlink():
        raise ResultError(f"{path.name} is a link; a submission holds regular files")
    with open(os.open(path, flags), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ResultError(f"{path.name} is no regular file")
        content = b"" if status.st_size > limit else stream.read(limit + 1)
    if max(status.st_size, len(content)) > limit:
        raise ResultError(f"{path.name} has {status.st_size:,} bytes; at most {limit:,} can be")
    return content
