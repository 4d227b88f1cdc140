"""One entry of the results repository: fetched, read as `audio-compositionality verify` reads it, and recomputed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from audio_compositionality.dataset_builder import DatasetError
from audio_compositionality.evaluator.submissions.parquet_reader import ParquetReader, clean
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.submission import SEEDS, Submission, open_data, parse_submission, policy_problem, read_result
from audio_compositionality.evaluator.submissions.submission_files import EMBEDDINGS, LIMITS, RESULT, VERIFICATION
from audio_compositionality.tasks.scoring import open_task
from audio_compositionality.evaluator.submissions.verification import Verification, verify
from audio_compositionality.hub import Hub, HubError, Repository
from audio_compositionality.hub.names import dataset_of

from .encoder_page import presets
from .reading import Contents, Folder, read_entry, read_verified

MAX_FIT_DIM = 2_048
"""Longest embedding that A-TRE is fitted to here: its 12 dim² weights are 50 million then, a step of a fit 0.4 s."""


class LeftError(Exception):
    """Why only maintainers can decide about an entry."""


class Examiner:
    """Examines the entries of a results repository."""

    def __init__(self, hub: Hub, repository: Repository, reader: ParquetReader, device: str | None) -> None:
        """Nothing is fetched yet.

        Args:
            hub: as a user who may read the repository.
            repository: of results.
            reader: of Parquet files.
            device: torch device of A-TRE's fits.
        """
        self._hub = hub
        self._repository = repository
        self._reader = reader
        self._device = device

    def examine(
        self, commit: str, entry: Folder, others: Iterable[tuple[str, Folder]] | None = None
    ) -> tuple[Submission, Verification]:
        """Read an entry, and recompute it. Its data are a preset's or those that the organisation has published.

        Args:
            commit: that it is fetched from.
            entry: names and sizes of its files are right.
            others: commits and entries whose embeddings should not be the same; None of an entry of main, which
                maintainers have decided about.

        Raises:
            LeftError: only maintainers can decide.
            ValueError: it is no valid submission, or its data are not known.
            HubError: files or data cannot be fetched.
        """
        # The page shows what main has, and reads these files at the same time.
        fetch = partial(self._fetch, commit, entry, keep=others is None)
        contents = {RESULT: fetch(RESULT)}
        result = read_result(contents[RESULT])
        if result.task == "a_tre" and result.output_dim > MAX_FIT_DIM and EMBEDDINGS in entry.files:
            raise LeftError(
                f"embeddings of {result.output_dim:,} numbers take too long to fit here, at most {MAX_FIT_DIM:,} can "
                "be; nothing was checked"
            )
        contents |= {name: fetch(name) for name in entry.files if name != RESULT}
        submission = parse_submission(contents, entry.path, self._reader)
        data = None
        if result.fingerprint not in presets():
            own = dataset_of(self._repository.namespace)
            data = own.id if self._hub.exists(own) else None
        try:
            if submission.embeddings is None:
                _check_claim(submission, data)
                raise LeftError("it has no embeddings, so that it can only be shown as *reported*")
            twin = self._twin(entry, result, others or ())
            if twin is not None:
                raise LeftError(f"its embeddings are those of {quoted(twin)}, another encoder, byte for byte")
            return submission, verify(submission, data=data, device=self._device)
        except DatasetError as error:
            # No fault of the submission's: it is checked again in the next round.
            raise HubError(f"the data {data} cannot be opened: {error}") from error

    def is_verified(self, commit: str, entry: Folder, verified: Folder) -> bool:
        """Whether the board takes an entry of main for verified."""
        try:
            contents: Contents = {}
            for folder, name in ((entry, RESULT), (verified, RESULT), (verified, VERIFICATION)):
                folder.digests()
                file = folder.files[name]
                contents[file.path, file.digest] = self._fetch(commit, folder, name, keep=True)
            read_verified(verified, contents, read_entry(entry, contents)[0])
        except ResultError:
            return False
        return True

    def _twin(self, entry: Folder, result: Result, others: Iterable[tuple[str, Folder]]) -> str | None:
        """Another encoder whose embeddings are the same."""
        for commit, other in others:
            own, theirs = entry.files[EMBEDDINGS], other.files.get(EMBEDDINGS)
            if theirs is None or theirs.digest != own.digest or other.path == entry.path:
                continue
            try:
                # Folders do not tell: those of two encoders can have the same name.
                encoder = read_result(self._fetch(commit, other, RESULT, keep=True)).encoder_id
            except ResultError:
                continue
            if encoder != result.encoder_id:
                return encoder
        return None

    def _fetch(self, commit: str, entry: Folder, name: str, *, keep: bool) -> bytes:
        path = self._hub.download(self._repository, entry.files[name].path, commit, limit=LIMITS[name])
        try:
            return path.read_bytes()
        finally:
            if name == EMBEDDINGS or not keep:
                # Nobody needs them again, and the disk of a Space is small: the file, and the link to it.
                path.resolve().unlink(missing_ok=True)
                path.unlink(missing_ok=True)


def quoted(text: object) -> str:
    """Strangers' text as code in a comment: it is neither formatted nor does it call anybody."""
    return f"`{clean(text).replace('`', chr(0x2018))}`"


def _check_claim(submission: Submission, data: str | None) -> None:
    """Refuse, with ResultError, a submission without embeddings that does not fit its data."""
    result = submission.result
    task = open_task(result.task, open_data(result.fingerprint, data), SEEDS)
    problem = policy_problem(result, task)
    if problem is None and submission.samples["id"].to_pylist() != task.sample_ids:
        problem = "its samples are not those of the data, in their order"
    if problem is not None:
        raise ResultError(problem)
