"""The record of a verification: the checker's file beside a submission, and the rules of its validity.

A record holds no numbers of its own that could contradict its results: the claim and the recomputation
stand in two result files, and every reader compares them anew. It is signed with a secret of the checker, so
that a board shows the records of its own checker and no others.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StrictStr, StringConstraints, model_validator

from audio_compositionality.evaluator.results import strict
from audio_compositionality.evaluator.results.result import Result, SampleTable
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.base import TaskError, TaskInfo
from audio_compositionality.tasks.registry import load_task

from . import layout
from .differences import Difference, differences_of, sample_differences, sample_problem
from .submission import Claim, Submission, is_date, read_result, read_sample_table

RECORD_SCHEMA_VERSION = 3
"""Version of the record's schema. It rises with any change to the fields."""

SECRET_VARIABLE = "AUDIO_COMPOSITIONALITY_SECRET"

LEAST_SECRET = 32
"""Fewest characters of a secret: 32 hexadecimal digits are 128 bits."""

STATED = (
    "task",
    "task_version",
    "n",
    "settings",
    "model",
    "precision_deviation",
    "recipe",
    "fingerprint",
    "rows_digest",
    "dataset",
)
"""Fields of a recomputed result that are taken from the claim."""

Submitter = Annotated[strict.Text, StringConstraints(max_length=100)]


class VerificationRecord(strict.Strict):
    """The content of ``verification.json``, the statement that a submission was recomputed.

    Attributes:
        schema_version: of this file.
        id: of the submission.
        submission: SHA-256 of the submission's files, by their names; the id is derived from them.
        files: SHA-256 of the files beside the record: the checker's result and samples.
        versions: of the libraries of the recomputation, as in a `Result`.
        date: of the check, UTC, ISO 8601.
        submitter: the submitter's name on the Hub; None where unknown.
        reproduces: folder of the first verified entry with the same outputs or the same weights; None where it is no
            reproduction.
        signature: HMAC-SHA256 of everything else, see `sign`; None for an unsigned record.
    """

    schema_version: Literal[3]
    id: Annotated[str, StringConstraints(strict=True, pattern="^[0-9a-f]{16}$")]
    submission: dict[StrictStr, strict.Sha256]
    files: dict[StrictStr, strict.Sha256]
    versions: Annotated[dict[strict.Text, strict.Text], Field(max_length=100)]
    date: strict.Date
    submitter: Submitter | None
    reproduces: strict.Text | None
    signature: strict.Sha256 | None

    @model_validator(mode="after")
    def _check(self) -> VerificationRecord:
        # Without the model's outputs nothing is recomputed.
        whole = [{given, layout.RESULT, layout.SAMPLES} for given in layout.OUTPUTS]
        if set(self.submission) not in whole or set(self.files) != {layout.RESULT, layout.SAMPLES}:
            raise strict.ResultError("it does not name all files")
        if self.id != layout.id_of(self.submission):
            raise strict.ResultError("its id does not belong to the files it names")
        if not is_date(self.date):
            raise strict.ResultError("its date is invalid")
        return self

    def dumps(self) -> str:
        """The record as JSON text."""
        return json.dumps(self.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"

    @classmethod
    def loads(cls, content: bytes) -> VerificationRecord:
        """The record in a file; `check` says whether it is the checker's.

        Raises:
            ResultError: it is no record, contradicts itself, or is not byte for byte what a checker writes.
        """
        layout.check_size(layout.VERIFICATION, len(content))
        try:
            values = strict.read_strict_json(content)
            version = values.get("schema_version") if isinstance(values, dict) else None
            if version != RECORD_SCHEMA_VERSION:
                raise strict.ResultError(
                    f"its schema version is {strict.stated_text(version)}, not {RECORD_SCHEMA_VERSION}"
                )
            record = strict.validated(cls, values)
            if record.dumps().encode() != content:
                raise strict.ResultError(
                    "it is not as a checker writes it: it was changed or damaged after it was written"
                )
        except strict.ResultError as error:
            raise strict.ResultError(f"{layout.VERIFICATION}: {error}") from None
        return record


def secret_from_environment() -> str | None:
    """The secret for signing records, from the variable AUDIO_COMPOSITIONALITY_SECRET; None where it is not set.

    Raises:
        InputError: it is too short for a secret.
    """
    secret = os.environ.get(SECRET_VARIABLE) or None
    if secret is not None:
        _key(secret)
    return secret


def _key(secret: str) -> bytes:
    if len(secret) < LEAST_SECRET:
        raise InputError(
            f"{SECRET_VARIABLE} has {len(secret)} characters; it must have {LEAST_SECRET} or more, such as those that "
            "`python -c 'import secrets; print(secrets.token_hex())'` prints"
        )
    return secret.encode()


def _signature(record: VerificationRecord, secret: str) -> str:
    """HMAC-SHA256 (RFC 2104) of the record as JSON without its signature, names sorted."""
    values: dict[str, Any] = record.model_dump(mode="json", exclude={"signature"})
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hmac.new(_key(secret), b"audio-compositionality verification\n" + text.encode(), hashlib.sha256).hexdigest()


def sign(record: VerificationRecord, secret: str) -> VerificationRecord:
    """The record with the signature of a secret.

    Raises:
        InputError: the secret is too short.
    """
    return record.model_copy(update={"signature": _signature(record, secret)})


def check(record: VerificationRecord, secret: str | None) -> bool:
    """Whether a record is signed with a secret.

    Returns:
        True; False if there is no secret to check it with.

    Raises:
        ResultError: it is not signed, or with another secret.
        InputError: the secret is too short.
    """
    if secret is None:
        return False
    if record.signature is None:
        raise strict.ResultError(f"{layout.VERIFICATION}: it has no signature")
    if not hmac.compare_digest(record.signature, _signature(record, secret)):
        raise strict.ResultError(f"{layout.VERIFICATION}: its signature is not the checker's")
    return True


def check_record(record: VerificationRecord, claim: Claim, recomputed: bytes, *, is_signed: bool = False) -> Result:
    """The checker's result for a submission. No samples are needed, so that a board can list it.

    Args:
        record: read from its file.
        claim: the submission, as it is listed.
        recomputed: content of the ``result.json`` beside the record.
        is_signed: whether `check` verified the signature: it then vouches for numbers of another version of the task,
            whose tolerances are unknown here.

    Raises:
        ResultError: the record is of other files, the two results are not of the same model, data and task, or the
            claim differs from the recomputation; the signature is not verified, see `check`.
    """
    if record.submission != dict(claim.digests):
        raise strict.ResultError(f"{layout.VERIFICATION}: it is the record of other files")
    if layout.sha256_by_name({layout.RESULT: recomputed})[layout.RESULT] != record.files[layout.RESULT]:
        raise strict.ResultError(f"{layout.RESULT} is not the file named in {layout.VERIFICATION}")
    claimed, result = claim.result, read_result(recomputed)
    if record.files[layout.SAMPLES] != result.samples_sha256:
        raise strict.ResultError(f"{layout.RESULT} has other samples than {layout.VERIFICATION} names")
    if is_signed and claimed.task_version != load_task(claimed.task).info.version:
        if result.key != claimed.key:
            raise strict.ResultError("it is the verification of other files")
        return result
    other = [name for name in (*STATED, "date") if getattr(claimed, name) != getattr(result, name)]
    other += [name for name in ("measures", "intervals") if set(getattr(claimed, name)) != set(getattr(result, name))]
    if other:
        raise strict.ResultError(
            f"{layout.RESULT} beside {layout.VERIFICATION} is not of the submission; different: {', '.join(other)}"
        )
    _check_differences(differences_of(_info(result), claimed, result))
    return result


def _info(result: Result) -> TaskInfo:
    """The task of a result, in the version of the result."""
    try:
        info = load_task(result.task).info
    except TaskError as error:
        raise strict.ResultError(f"{layout.VERIFICATION}: {error}") from None
    if info.version != result.task_version:
        raise strict.ResultError(
            f"{layout.VERIFICATION}: it is of version {result.task_version} of {info.name}, this is version "
            f"{info.version}"
        )
    return info


def _check_differences(differences: tuple[Difference, ...]) -> None:
    for difference in differences:
        if not difference.holds:
            raise strict.ResultError(f"{layout.VERIFICATION}: it verifies nothing, since {difference}")


@dataclass(frozen=True)
class VerifiedClaim:
    """The checker's files for a submission: the record, the recomputed result and its samples, where they were read."""

    record: VerificationRecord
    result: Result
    samples: SampleTable | None = None


def read_signed_claim(
    folder: layout.EntryFolder, fetch: layout.Fetch, claim: Claim, secret: str | None
) -> VerifiedClaim:
    """The checker's files for a submission, without samples, from a folder in a listing of the repository.

    Raises:
        ResultError: it is no checker's record, of other files, contradicts itself or the report, or is not
            signed with the secret.
    """
    folder.check()
    record = VerificationRecord.loads(folder.read(layout.VERIFICATION, fetch))
    if not check(record, secret):
        raise strict.ResultError("no secret is set here, so its signature cannot be checked")
    result = check_record(record, claim, folder.read(layout.RESULT, fetch), is_signed=True)
    layout.check_place(layout.folder_of(result, record.id, "verified"), folder.path)
    return VerifiedClaim(record, result)


def parse_verification(files: Mapping[str, bytes], name: str | None, submission: Submission) -> VerifiedClaim:
    """The checker's files for a submission, from their content, with all possible comparisons; the signature is not
    verified.

    Args:
        files: content by name.
        name: path of the folder in the repository, which has to match its content; None where it has none.
        submission: the submission of the record.

    Raises:
        ResultError: it is no checker's record, its files differ from the recorded ones, or it contradicts the
            submission.
    """
    layout.check_names(files, layout.FILES["verified"], optional=())
    record = VerificationRecord.loads(files[layout.VERIFICATION])
    result = check_record(record, submission.claim, files[layout.RESULT])
    layout.check_place(layout.folder_of(result, record.id, "verified"), name)
    samples = read_sample_table(files[layout.SAMPLES], result)
    problem = sample_problem(submission.samples, samples)
    if problem is not None:
        raise strict.ResultError(f"{layout.SAMPLES} beside {layout.VERIFICATION}: {problem}")
    _check_differences(sample_differences(_info(result), submission.samples, samples))
    return VerifiedClaim(record, result, samples)
