"""One entry of the results repository: fetched, read as `audio-compositionality verify` reads it, and recomputed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.copies import Duplicate, Earlier, duplicates_of, may_be_copied
from audio_compositionality.evaluator.submissions.record import Record
from audio_compositionality.evaluator.submissions.submission import (
    claim_problem,
    open_result_task,
    parse_submission,
    policy_problem,
    preset_with,
    read_result,
)
from audio_compositionality.evaluator.submissions.submission_files import (
    EMBEDDINGS,
    LIMITS,
    RESULT,
    digests_of,
    outputs_in,
)
from audio_compositionality.evaluator.submissions.verification import Verification, verify_folder
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.hub.names import dataset_of
from audio_compositionality.support.text import shortened

from .own_process import DiedError, OverdueError, in_own_process
from .reading import Contents, EntryFolder, read_listed_entry, read_verified

SECONDS = 1_800.0
"""Time for one entry; the largest that was measured, 2,048 numbers a clip of the preset full, takes 10 minutes."""

CLAIM_SECONDS = 600.0
"""Time for an entry of which nothing is computed again: its data are made, and its intervals."""

Recompute = Callable[..., Verification]
"""Called like `verify_folder`."""

recompute_in_own_process: Recompute = partial(in_own_process, verify_folder, seconds=SECONDS)

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
        files = {name: self._fetch(commit, entry.path, name, keep=keep) for name in entry.files}
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
        files = {name: self._fetch(commit, examined.folder, name) for name in digests}
        if digests_of(files) != dict(digests):
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

    def verified(self, commit: str, entry: EntryFolder, verified: EntryFolder) -> tuple[Record, Result] | None:
        """What the checker has found of an entry of main, where the board takes it for verified."""
        try:
            contents: Contents = {}
            for folder in (entry, verified):
                folder.check()
                for name in folder.to_read:
                    file = folder.files[name]
                    contents[file.path, file.digest] = self._fetch(commit, folder.path, name, keep=True)
            digests, reported = read_listed_entry(entry, contents)
            return read_verified(verified, contents, digests, reported, self._secret)
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

    def _fetch(self, commit: str, folder: str, name: str, *, keep: bool = False) -> bytes:
        path = self._hub.download(self._repository, f"{folder}/{name}", commit, limit=LIMITS[name])
        try:
            return path.read_bytes()
        finally:
            if name == EMBEDDINGS or not keep:
                # Nobody needs them again, and the disk of a Space is small: the file, and the link to it.
                path.resolve().unlink(missing_ok=True)
                path.unlink(missing_ok=True)


def quoted(text: object) -> str:
    """Strangers' text as code in a comment: it is neither formatted nor does it call anybody."""
    return f"`{shortened(str(text), 300).replace('`', chr(0x2018))}`"


def _counted(duplicates: Sequence[Duplicate]) -> str:
    more = f", and {len(duplicates) - 1} more" if len(duplicates) > 1 else ""
    return f"{quoted(duplicates[0])}{more}"


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
    problem = policy_problem(submission.result, opened) or claim_problem(submission, opened)
    if problem is not None:
        raise ResultError(problem)
    return "answers" if opened.prompts else "embeddings"


check_claim_in_own_process: CheckClaim = partial(in_own_process, check_claim, seconds=CLAIM_SECONDS)
