"""One entry of the results repository: fetched, read as `audio-compositionality verify` reads it, and recomputed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.layout import (
    EMBEDDINGS,
    FILE_LIMITS,
    OUTPUTS,
    RESULT,
    EntryFolder,
    outputs_in,
    sha256_by_name,
)
from audio_compositionality.evaluator.submissions.record import VerifiedClaim, read_signed_claim
from audio_compositionality.evaluator.submissions.submission import (
    open_result_task,
    parse_submission,
    preset_with,
    read_listed_claim,
    read_result,
    submission_problem,
)
from audio_compositionality.evaluator.submissions.verification import Verification, verify_folder
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.hub.names import dataset_of
from audio_compositionality.support.files import read_file
from audio_compositionality.support.text import shortened

# ----- A function in a process of its own, with a time limit


Returned = TypeVar("Returned")

NICE = 10
"""Niceness of a check's process, where the system supports it: visitors of the board do not wait for checks."""


class OverdueError(Exception):
    """The function had not returned when its time was up."""


class DiedError(Exception):
    """The process ended without an answer: the system had no memory left for it, or a library crashed."""


def in_own_process(function: Callable[..., Returned], *arguments: Any, seconds: float, **options: Any) -> Returned:
    """A function's result, or the error that it raises.

    Args:
        function: of a module; it, its arguments and its result are pickled.
        arguments: its positional arguments.
        seconds: limit of wall-clock time, with the imports of a fresh Python.
        options: its keyword arguments.

    Raises:
        OverdueError: it took longer; the process was killed.
        DiedError: the process ended without an answer.
    """
    # A fork would copy the locks that threads of this process hold.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments, options), daemon=True)
    started = time.monotonic()
    process.start()
    sender.close()
    # The limit also covers an answer that has begun to arrive: an endless one would block.
    overdue = threading.Event()

    def end() -> None:
        overdue.set()
        process.kill()

    alarm = threading.Timer(seconds, end)
    alarm.start()
    try:
        returned, answer = receiver.recv()
    except (EOFError, OSError):
        process.join()
        if overdue.is_set():
            raise OverdueError(f"it was ended after {time.monotonic() - started:.0f} s") from None
        raise DiedError(f"its process ended with the exit code {process.exitcode} and no answer") from None
    finally:
        alarm.cancel()
        process.kill()
        process.join()
        receiver.close()
    if not returned:
        raise answer
    result: Returned = answer
    return result


def _answer(sender: Connection, function: Callable[..., Any], arguments: Any, options: Any) -> None:
    if hasattr(os, "nice"):
        os.nice(NICE)
    try:
        answer = (True, function(*arguments, **options))
    except Exception as error:
        answer = (False, _portable(error))
    sender.send(answer)


def _portable(error: Exception) -> Exception:
    """An error that survives pickling; for one that does not, its traceback."""
    try:
        if isinstance(pickle.loads(pickle.dumps(error)), type(error)):
            return error
    except Exception:  # any error of its constructor when unpickled
        pass
    return RuntimeError("".join(traceback.format_exception(error)))


# ----- Entries


ENTRY_SECONDS = 1_800.0
"""Time limit of one entry; the largest measured one, 2,048 numbers a clip of the preset full, takes 10 minutes."""

CLAIM_SECONDS = 600.0
"""Time limit of an entry that cannot be recomputed: its data are made, and its intervals."""

Recompute = Callable[..., Verification]
"""Called like `verify_folder`."""

recompute_in_own_process: Recompute = partial(in_own_process, verify_folder, seconds=ENTRY_SECONDS)

CheckClaim = Callable[[Mapping[str, bytes], str, str | None], str]
"""Called like `check_claim`."""


class LeftError(Exception):
    """An entry that only maintainers can decide on; the text says why."""


@dataclass(frozen=True)
class KnownEntry:
    """A verified entry, as later ones are compared with it.

    Attributes:
        folder: its path in the repository.
        result: the recomputed one.
        outputs: SHA-256 of its file of embeddings or answers.
        date: of the check, UTC, ISO 8601: a submission's own date is only its submitter's word.
    """

    folder: str
    result: Result
    outputs: str
    date: str


def original_of(entry: KnownEntry, earlier: Iterable[KnownEntry]) -> tuple[KnownEntry, str] | None:
    """The first entry that one reproduces, and what the two have in common, in words; None where it reproduces none.

    Both are of the same task and data, and have either the same outputs, byte for byte, or models under the same
    control and with the same options that state the same digest of their weights.
    """
    model = entry.result.model
    for other in sorted(earlier, key=lambda one: one.date):
        if other.result.key != entry.result.key:
            continue
        if other.outputs == entry.outputs:
            return other, "the same outputs, byte for byte"
        theirs = other.result.model
        is_same_form = [model.options, model.id.rpartition(":")[0]] == [theirs.options, theirs.id.rpartition(":")[0]]
        if model.weights_sha256 is not None and model.weights_sha256 == theirs.weights_sha256 and is_same_form:
            return other, "the same digest of the weights"
    return None


@dataclass(frozen=True)
class Examined:
    """A recomputed entry.

    Attributes:
        folder: its path in the repository.
        verification: the outcome of the recomputation.
        date: of the check, UTC, as in the record.
    """

    folder: str
    verification: Verification
    date: datetime

    @property
    def known(self) -> KnownEntry:
        """The entry in comparisons with later ones."""
        result = self.verification.recomputed or self.verification.result
        return known_entry(self.folder, result, self.verification.digests, self.date.isoformat(timespec="seconds"))


def known_entry(folder: str, result: Result, digests: Mapping[str, str], date: str) -> KnownEntry:
    """A `KnownEntry`, from the SHA-256 of the files of a submission."""
    return KnownEntry(folder, result, next(digests[name] for name in OUTPUTS if name in digests), date)


@dataclass(frozen=True)
class Examiner:
    """Examines the entries of a results repository.

    Attributes:
        hub: with a token that may read the repository.
        repository: of results.
        secret: for signing the checker's records.
        device: torch device of fits.
        recompute: recomputes an entry.
        check_claim: checks an entry that cannot be recomputed.
    """

    hub: Hub
    repository: Repository
    secret: str
    device: str | None
    recompute: Recompute
    check_claim: CheckClaim

    def examine(self, commit: str, entry: EntryFolder, *, keep: bool = False) -> Examined:
        """Read an entry, and recompute it. Its data are a preset's, or published by the organisation.

        Args:
            commit: to fetch it from.
            entry: with correct names and sizes of files.
            keep: leave the fetched files in the cache: the page shows the entries of main, and reads these files too.

        Raises:
            LeftError: only maintainers can decide.
            ResultError: it is no valid submission, or its data are unknown.
            HubError: files or data cannot be fetched.
        """
        files = {
            name: self._fetch(commit, f"{entry.path}/{name}", FILE_LIMITS[name], keep=keep) for name in entry.files
        }
        result = read_result(files[RESULT])
        data = None
        if preset_with(result.recipe, result.fingerprint) is None:
            published = dataset_of(self.repository.namespace)
            data = published.id if self.hub.exists(published) else None
        has_outputs = outputs_in(files) is not None
        try:
            if not has_outputs:
                lacking = self.check_claim(files, entry.path, data)
                raise LeftError(f"it has no {lacking}, so it can only be shown as *reported*")
            with tempfile.TemporaryDirectory(prefix="audio-compositionality-") as folder:
                for name, content in files.items():
                    Path(folder, name).write_bytes(content)
                verification = self.recompute(Path(folder), name=entry.path, data=data, device=self.device)
            return Examined(entry.path, verification, datetime.now(UTC))
        except (OverdueError, DiedError) as error:
            done = "recomputed" if has_outputs else "checked"
            raise LeftError(f"it could not be {done} here: {error}") from error
        except DatasetError as error:
            # Not the submission's fault: it is checked again in the next round.
            raise HubError(f"the data {data or result.dataset} cannot be opened: {error}") from error

    def files(self, commit: str, examined: Examined) -> dict[str, bytes]:
        """The content of an examined entry, fetched again from its commit: ten entries of each of many authors
        are not held in memory until the last of a pull request is checked.

        Raises:
            HubError: files cannot be fetched, or differ from the examined ones.
        """
        digests = examined.verification.digests
        files = {name: self._fetch(commit, f"{examined.folder}/{name}", FILE_LIMITS[name]) for name in digests}
        if sha256_by_name(files) != dict(digests):
            raise HubError(f"could not commit {examined.folder}: its files are not those that were checked")
        return files

    def verified(self, commit: str, entry: EntryFolder, verified: EntryFolder) -> VerifiedClaim | None:
        """The checker's result for an entry of main, where the board counts it as verified."""

        def fetch(path: str, limit: int) -> bytes:
            return self._fetch(commit, path, limit, keep=True)

        try:
            return read_signed_claim(verified, fetch, read_listed_claim(entry, fetch), self.secret)
        except ResultError:
            return None

    def _fetch(self, commit: str, path: str, limit: int, *, keep: bool = False) -> bytes:
        file = self.hub.download(self.repository, path, commit, limit=limit)
        try:
            return read_file(file)
        finally:
            if path.endswith(f"/{EMBEDDINGS}") or not keep:
                # Not needed again, and the disk of a Space is small: the file, and the link to it.
                file.resolve().unlink(missing_ok=True)
                file.unlink(missing_ok=True)


def as_code(text: object) -> str:
    """Return a submitter's text as code in a comment: neither formatted nor a mention of anybody."""
    return f"`{shortened(str(text), 300).replace('`', chr(0x2018))}`"


def check_claim(files: Mapping[str, bytes], name: str, data: str | None) -> str:
    """Check a submission without the model's outputs.

    Args:
        files: content by name.
        name: path of its folder in the repository.
        data: the data, a folder or Hub id, where they are no preset's.

    Returns:
        the kind of outputs of its task: ``answers`` or ``embeddings``.

    Raises:
        ResultError: it does not fit its data.
        DatasetError: the data cannot be opened.
    """
    submission = parse_submission(files, name)
    opened = open_result_task(submission.result, data)
    problem = submission_problem(submission, opened)
    if problem is not None:
        raise ResultError(problem)
    return "answers" if opened.prompts else "embeddings"


check_claim_in_own_process: CheckClaim = partial(in_own_process, check_claim, seconds=CLAIM_SECONDS)
