"""The record of a verification: what the checker writes beside a submission, and what makes it valid."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .parquet_reader import ParquetReader, clean
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.compare.statistics import Interval
from .submission import MAX_TEXT, is_date, read_result, read_samples, samples_bytes
from .submission_files import (EMBEDDINGS, FILES, RESULT, SAMPLES, VERIFICATION, VERIFICATION_LIMIT, check_names, digests_of, folder_of, id_of, read_files)

if TYPE_CHECKING:
    from .verification import Verification

SCHEMA_VERSION = 1

_MOST_DIFFERENCES = 200

_LONGEST_NAME = 100


@dataclass(frozen=True)
class Difference:
    """A number of a result beside the one that was computed.

    Attributes:
        name: what it is.
        claimed, recomputed: the number; None where there is none.
        tolerance: how far they may be apart; None of what follows the randomness of the fits and is only told.
    """

    name: str
    claimed: float | None
    recomputed: float | None
    tolerance: float | None

    @property
    def holds(self) -> bool:
        """Whether the claim agrees with what was computed."""
        if self.tolerance is None:
            return True
        if self.claimed is None or self.recomputed is None:
            return self.claimed is self.recomputed
        return abs(self.claimed - self.recomputed) <= self.tolerance


@dataclass(frozen=True)
class Record:
    """The content of ``verification.json``: that a submission was recomputed, and what was found.

    Attributes:
        id: of the submission.
        fingerprint: of the data.
        submission: SHA-256 of the submission's files, by their names; the id is made of them.
        files: SHA-256 of the files beside the record: the result and the samples that the checker computed.
        interval: 95 % interval of the score, see `Verification`.
        differences: claimed and recomputed numbers, all within their tolerances.
        versions: of what computed, as in a `Result`.
        date: of the check, UTC, ISO 8601.
        submitter: name on the Hub of who submitted it; None where that is not known.
    """

    id: str
    fingerprint: str
    submission: Mapping[str, str]
    files: Mapping[str, str]
    interval: Interval | None
    differences: tuple[Difference, ...]
    versions: Mapping[str, str]
    date: str
    submitter: str | None

    def dumps(self) -> str:
        """The record as JSON text."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def loads(cls, content: bytes) -> Record:
        """The record in a file.

        Raises:
            ResultError: it is none, contradicts itself, or does not say that a result was verified.
        """
        if len(content) > VERIFICATION_LIMIT:
            raise ResultError(f"{VERIFICATION}: it has {len(content):,} bytes; at most {VERIFICATION_LIMIT:,} can be")
        try:
            values = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ResultError(f"{VERIFICATION}: it is no JSON: {clean(error)}") from None
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or values.pop("schema_version", None) != SCHEMA_VERSION or set(values) != names:
            raise ResultError(f"{VERIFICATION}: it is no record of schema version {SCHEMA_VERSION}")
        wrong = [name for name in sorted(names) if not _FIELDS[name](values[name])]
        if wrong:
            raise ResultError(
                f"{VERIFICATION}: {wrong[0]} is {clean(ascii(values[wrong[0]]))[:80]}, which it cannot be"
            )
        if values["id"] != id_of(values["submission"]):
            raise ResultError(f"{VERIFICATION}: its id {values['id']} is not made of the files that it speaks of")
        differences = tuple(Difference(**item) for item in values["differences"])
        failed = [difference.name for difference in differences if not difference.holds]
        if failed:
            raise ResultError(f"{VERIFICATION}: it verifies nothing, since {failed[0]} is out of its tolerance")
        interval = None if values["interval"] is None else tuple(values["interval"])
        return cls(**{**values, "differences": differences, "interval": interval})


def _is_number(value: Any) -> bool:
    # Compared, not converted: an integer may have more digits than a float can.
    return type(value) in (int, float) and -1e300 < value < 1e300


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()


def _are_digests(value: Any, *wanted: tuple[str, ...]) -> bool:
    return (
        isinstance(value, dict)
        and tuple(sorted(value)) in wanted
        and all(isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) for digest in value.values())
    )


def _is_difference(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {field.name for field in fields(Difference)}
        and _is_text(value["name"])
        and all(value[name] is None or _is_number(value[name]) for name in ("claimed", "recomputed", "tolerance"))
    )


def _is_interval(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


_FIELDS: Mapping[str, Any] = {
    "id": lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value),
    "fingerprint": lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value),
    # Without embeddings nothing is recomputed.
    "submission": lambda value: _are_digests(value, (EMBEDDINGS, RESULT, SAMPLES)),
    "files": lambda value: _are_digests(value, (RESULT, SAMPLES)),
    "interval": lambda value: value is None or _is_interval(value),
    "differences": lambda value: (
        isinstance(value, list) and 0 < len(value) <= _MOST_DIFFERENCES and all(map(_is_difference, value))
    ),
    "versions": lambda value: (
        isinstance(value, dict) and len(value) < 100 and all(map(_is_text, [*value, *value.values()]))
    ),
    "date": lambda value: isinstance(value, str) and is_date(value),
    "submitter": lambda value: value is None or (_is_text(value) and len(value) <= _LONGEST_NAME),
}


@dataclass(frozen=True)
class VerifiedEntry:
    """What the checker wrote for a submission: the record, the result that it computed, and its samples."""

    record: Record
    result: Result
    samples: pa.Table


def verification_files(
    verification: Verification, *, submitter: str | None = None, date: datetime | None = None
) -> dict[str, bytes]:
    """The files of a verified submission, for `verification_folder`, by their names.

    Args:
        verification: of a submission.
        submitter: name on the Hub of who submitted it, where that is known.
        date: of the check; default now.

    Raises:
        ValueError: nothing was verified, or no submission.
    """
    from audio_compositionality.evaluator.run.evaluation import library_versions

    if not verification.verified or verification.id is None or verification.recomputed is None:
        raise ValueError("only a submission that was verified has files that say so")
    files = {RESULT: verification.recomputed.dumps().encode(), SAMPLES: samples_bytes(verification.samples)}
    record = Record(
        id=verification.id,
        fingerprint=verification.result.fingerprint,
        submission=dict(verification.digests),
        files=digests_of(files),
        interval=verification.interval,
        differences=verification.differences,
        versions=library_versions(),
        date=(date or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
        submitter=submitter,
    )
    return {VERIFICATION: record.dumps().encode(), **files}


def verification_folder(verification: Verification) -> str:
    """Path in the repository of the folder of a verified submission."""
    if verification.id is None:
        raise ValueError("a local result has no place in the repository")
    return folder_of(verification.result, verification.id, "verified")


def parse_verification(files: Mapping[str, bytes], name: str | None, reader: ParquetReader) -> VerifiedEntry:
    """What the checker wrote, from the content of its files.

    Args:
        files: content by name.
        name: path of the folder in the repository, which has to be that of its content; None where it has none.
        reader: of Parquet files.

    Raises:
        ResultError: it is not what a checker writes, or its files are not those that the record speaks of.
    """
    check_names(files, FILES["verified"], optional=())
    record = Record.loads(files[VERIFICATION])
    result = check_recomputed(files[RESULT], record)
    folder = folder_of(result, record.id, "verified")
    if name is not None and name != folder:
        raise ResultError(f"its place is {clean(name)}, but its content belongs to {folder}")
    if digests_of({SAMPLES: files[SAMPLES]})[SAMPLES] != record.files[SAMPLES]:
        raise ResultError(f"{SAMPLES} is another file than {VERIFICATION} speaks of")
    return VerifiedEntry(record, result, read_samples(files[SAMPLES], result, reader))


def check_recomputed(content: bytes, record: Record) -> Result:
    """The ``result.json`` beside a record.

    Raises:
        ResultError: it is not the one that the record speaks of, or no result.
    """
    if digests_of({RESULT: content})[RESULT] != record.files[RESULT]:
        raise ResultError(f"{RESULT} is another file than {VERIFICATION} speaks of")
    result = read_result(content)
    if result.fingerprint != record.fingerprint:
        raise ResultError(f"{RESULT} is of other data than {VERIFICATION} says")
    return result


def read_verification(folder: Path, name: str | None = None, reader: ParquetReader | None = None) -> VerifiedEntry:
    """Read a folder that the checker wrote; see `parse_verification`."""
    files = read_files(folder, FILES["verified"])
    if reader is not None:
        return parse_verification(files, name, reader)
    with ParquetReader() as own:
        return parse_verification(files, name, own)
