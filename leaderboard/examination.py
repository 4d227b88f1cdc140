"""One entry of the results repository: fetched, read as `audio-compositionality verify` reads it, and recomputed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.evaluator.submissions.copies import Duplicate, Earlier, duplicates_of, may_be_copied
from audio_compositionality.evaluator.submissions.layout import (
    EMBEDDINGS,
    FILE_LIMITS,
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
from audio_compositionality.support.text import shortened

# ----- A function in a process of its own, which is ended when its time is up


Returned = TypeVar("Returned")

NICE = 10
"""How much a process yields to others, where the system knows that: visitors of the board do not wait for checks."""


class OverdueError(Exception):
    """The function had not returned when its time was up."""


class DiedError(Exception):
    """The process ended without an answer: the system had no memory left for it, or a library crashed."""


def in_own_process(function: Callable[..., Returned], *arguments: Any, seconds: float, **options: Any) -> Returned:
    """What a function returns, or the error that it raises.

    Args:
        function: of a module; it, its arguments and what it returns are pickled.
        arguments: its positional arguments.
        seconds: wall-clock time that it may take, with the imports of a fresh Python.
        options: its keyword arguments.

    Raises:
        OverdueError: it took longer; the process is gone.
        DiedError: the process ended without an answer.
    """
    # A fork would copy the locks that threads of this process hold.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments, options), daemon=True)
    started = time.monotonic()
    process.start()
    sender.close()
    # Of an answer that has begun to come as well: one that never ends would be waited for.
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
    """An error that arrives as it is; of one that cannot be sent, its traceback."""
    try:
        if isinstance(pickle.loads(pickle.dumps(error)), type(error)):
            return error
    except Exception:  # whatever its constructor does with what pickle gives it
        pass
    return RuntimeError("".join(traceback.format_exception(error)))


# ----- Entries


ENTRY_SECONDS = 1_800.0
"""Time for one entry; the largest that was measured, 2,048 numbers a clip of the preset full, takes 10 minutes."""

CLAIM_SECONDS = 600.0
"""Time for an entry of which nothing is computed again: its data are made, and its intervals."""

Recompute = Callable[..., Verification]
"""Called like `verify_folder`."""

recompute_in_own_process: Recompute = partial(in_own_process, verify_folder, seconds=ENTRY_SECONDS)

CheckClaim = Callable[[Mapping[str, bytes], str, str | None], str]
"""Called like `check_claim`."""


class LeftError(Exception):
    """Why only maintainers can decide about an entry."""


@dataclass(frozen=True)
class Examined:
    """An entry that was recomputed.

    Attributes:
        folder: its path in the repository.
        verification: what recomputing it found.
        date: of the check, UTC, as in the record: what a submission says of its own date is its submitter's word.
        reproduces: the earlier entry that it is a reproduction of; None of others.
    """

    folder: str
    verification: Verification
    date: datetime
    reproduces: Duplicate | None = None

    @property
    def earlier(self) -> Earlier | None:
        """What later entries are compared with."""
        sketch, result = self.verification.sketch, self.verification.result
        return (
            None
            if sketch is None
            else Earlier(self.folder, result.task, result.model, self.date.isoformat(timespec="seconds"), sketch)
        )


class Examiner:
    """Examines the entries of a results repository."""

    def __init__(
        self,
        hub: Hub,
        repository: Repository,
        secret: str,
        device: str | None,
        recompute: Recompute,
        check_claim: CheckClaim,
    ) -> None:
        """Nothing is fetched yet.

        Args:
            hub: as a user who may read the repository.
            repository: of results.
            secret: that the checker signs its records with.
            device: torch device of fits.
            recompute: recomputes an entry.
            check_claim: checks one that cannot be recomputed.
        """
        self._hub = hub
        self._repository = repository
        self._secret = secret
        self._device = device
        self._recompute = recompute
        self._check_claim = check_claim

    def examine(self, commit: str, entry: EntryFolder, *, keep: bool = False) -> Examined:
        """Read an entry, and recompute it. Its data are a preset's or those that the organisation has published.

        Args:
            commit: that it is fetched from.
            entry: names and sizes of its files are right.
            keep: leave what is fetched in the cache: the page shows what main has, and reads these files too.

        Raises:
            LeftError: only maintainers can decide.
            ResultError: it is no valid submission, or its data are not known.
            HubError: files or data cannot be fetched.
        """
        files = {
            name: self._fetch(commit, f"{entry.path}/{name}", FILE_LIMITS[name], keep=keep) for name in entry.files
        }
        result = read_result(files[RESULT])
        data = None
        if preset_with(result.recipe, result.fingerprint) is None:
            published = dataset_of(self._repository.namespace)
            data = published.id if self._hub.exists(published) else None
        try:
            if outputs_in(files) is None:
                lacking = self._claim_checked(files, entry.path, data)
                raise LeftError(f"it has no {lacking}, so that it can only be shown as *reported*")
            verification = self._recomputed(files, entry.path, data)
            return Examined(entry.path, verification, datetime.now(UTC))
        except DatasetError as error:
            # No fault of the submission's: it is checked again in the next round.
            raise HubError(f"the data {data or result.dataset} cannot be opened: {error}") from error

    def files(self, commit: str, examined: Examined) -> dict[str, bytes]:
        """The content of an entry that was examined at a commit, fetched again: ten entries of each of many authors
        are not held in memory until the last of a pull request is checked.

        Raises:
            HubError: files cannot be fetched, or are not those that were examined.
        """
        digests = examined.verification.digests
        files = {name: self._fetch(commit, f"{examined.folder}/{name}", FILE_LIMITS[name]) for name in digests}
        if sha256_by_name(files) != dict(digests):
            raise HubError(f"could not commit {examined.folder}: its files are not those that were checked")
        return files

    def compared(self, examined: Examined, earlier: Iterable[Earlier]) -> Examined:
        """An entry with what it reproduces: an earlier one for the same task whose model states the same weights.

        Raises:
            LeftError: its embeddings or answers may be another model's; the maintainers decide.
        """
        sketch, result = examined.verification.sketch, examined.verification.result
        duplicates = [] if sketch is None else duplicates_of(sketch, result.model, earlier)
        if may_be_copied(duplicates):
            raise LeftError(_counted([duplicate for duplicate in duplicates if duplicate.relation == "other"]))
        of_task = [duplicate for duplicate in duplicates if duplicate.earlier.task == result.task]
        reproduced = [duplicate for duplicate in of_task if duplicate.relation == "weights"]
        return replace(examined, reproduces=next(iter(reproduced), None))

    def verified(self, commit: str, entry: EntryFolder, verified: EntryFolder) -> VerifiedClaim | None:
        """What the checker has found of an entry of main, where the board takes it for verified."""

        def fetch(path: str, limit: int) -> bytes:
            return self._fetch(commit, path, limit, keep=True)

        try:
            return read_signed_claim(verified, fetch, read_listed_claim(entry, fetch), self._secret)
        except ResultError:
            return None

    def _recomputed(self, files: Mapping[str, bytes], name: str, data: str | None) -> Verification:
        with tempfile.TemporaryDirectory(prefix="audio-compositionality-") as folder:
            for file, content in files.items():
                Path(folder, file).write_bytes(content)
            try:
                return self._recompute(Path(folder), name=name, data=data, device=self._device)
            except (OverdueError, DiedError) as error:
                raise LeftError(f"it could not be recomputed here: {error}") from error

    def _claim_checked(self, files: Mapping[str, bytes], name: str, data: str | None) -> str:
        try:
            return self._check_claim(files, name, data)
        except (OverdueError, DiedError) as error:
            raise LeftError(f"it could not be checked here: {error}") from error

    def _fetch(self, commit: str, path: str, limit: int, *, keep: bool = False) -> bytes:
        file = self._hub.download(self._repository, path, commit, limit=limit)
        try:
            return file.read_bytes()
        finally:
            if path.endswith(f"/{EMBEDDINGS}") or not keep:
                # Nobody needs them again, and the disk of a Space is small: the file, and the link to it.
                file.resolve().unlink(missing_ok=True)
                file.unlink(missing_ok=True)


def as_code(text: object) -> str:
    """Strangers' text as code in a comment: it is neither formatted nor does it call anybody."""
    return f"`{shortened(str(text), 300).replace('`', chr(0x2018))}`"


def _counted(duplicates: Sequence[Duplicate]) -> str:
    more = f", and {len(duplicates) - 1} more" if len(duplicates) > 1 else ""
    return f"{as_code(duplicates[0])}{more}"


def check_claim(files: Mapping[str, bytes], name: str, data: str | None) -> str:
    """Check a submission without what the model gave.

    Args:
        files: content by name.
        name: path of its folder in the repository.
        data: the data, a folder or Hub id, where they are no preset's.

    Returns:
        what the model gives for its task: ``answers`` or ``embeddings``.

    Raises:
        ResultError: it does not fit its data.
        DatasetError: these cannot be opened.
    """
    submission = parse_submission(files, name)
    opened = open_result_task(submission.result, data)
    problem = submission_problem(submission, opened)
    if problem is not None:
        raise ResultError(problem)
    return "answers" if opened.prompts else "embeddings"


check_claim_in_own_process: CheckClaim = partial(in_own_process, check_claim, seconds=CLAIM_SECONDS)
