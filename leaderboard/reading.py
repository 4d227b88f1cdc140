"""The reading of the results repository: its entries by the rules for untrusted files, and the thread that reads.

Everything in the repository is a third party's, and nothing in it may take the board down.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.evaluator.submissions.layout import SAMPLES, EntryFolder, folders_of
from audio_compositionality.evaluator.submissions.record import read_signed_claim
from audio_compositionality.evaluator.submissions.submission import (
    read_listed_claim,
    read_sample_table,
    read_scored_samples,
)
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import RemoteFile
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.support.files import read_file
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.registry import load_task

from .board import Board, Entry, Rejected, is_older, trimmed_samples

EMPTY_BOARD = Board("", (), ())
"""The board before the first reading."""

MOST_LISTED = 500
"""Most rejected files in the list; of more, only their number."""

_MOST_READ = 4_000_000
"""Most bytes of the samples of an entry whose verdict is tested sample by sample: ten columns of `MOST_TESTED` have two
million."""

_AT_ONCE = 8  # downloads; all but the first few seconds of a large repository are waiting

Files = Mapping[str, RemoteFile]
ListedEntry = tuple[EntryFolder, EntryFolder | None]
"""An entry and its verification, if it has one."""


@dataclass(frozen=True)
class _Read:
    """The outcome of reading an entry.

    Attributes:
        place: the entry's files; None if the Hub did not give all of them, so that they are read again.
        entry: the displayed entry; None without one.
        rejected: the parts that are not shown.
    """

    place: ListedEntry | None
    entry: Entry | None
    rejected: tuple[Rejected, ...]


class BoardReader:
    """Reads the board repeatedly, fetching only new files."""

    def __init__(self, hub: Hub, repository: Repository, secret: str | None) -> None:
        """Nothing is read yet.

        Args:
            hub: with a token that may read the repository.
            repository: of results.
            secret: the checker's, for its signatures; without it no record counts.
        """
        self._hub = hub
        self._repository = repository
        self._secret = secret
        self._last = EMPTY_BOARD
        self._read: dict[str, _Read] = {}
        self._ids: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __call__(self) -> Board:
        """The board at the newest commit.

        Raises:
            HubError: the Hub cannot be read. Files fetched before the error are not fetched again the next time.
        """
        commit = self._hub.head(self._repository)
        if commit == self._last.commit:
            return self._last
        files = self._hub.files(self._repository, commit)
        results, verified, foreign = folders_of(files)
        rejected = [Rejected(_line(path), "it is not a file of a result, or in the wrong place") for path in foreign]
        for key in verified.keys() - results.keys():
            rejected.append(Rejected(verified[key].path, "it verifies an entry that does not exist"))
        places = {key: (folder, verified.get(key)) for key, folder in results.items()}
        self._read = {key: read for key, read in self._read.items() if places.get(key) == read.place}
        troubles: list[HubError] = []

        def read(key: str) -> None:
            if not troubles:
                try:
                    self._read[key] = self._read_place(commit, places[key])
                except HubError as error:
                    troubles.append(error)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(read, [key for key in places if key not in self._read]))
        if troubles:
            raise troubles[0]
        reads = [self._read[key] for key in places]
        rejected += [item for read in reads for item in read.rejected]
        rejected.sort(key=lambda item: item.path)
        if len(rejected) > MOST_LISTED:
            rejected[MOST_LISTED:] = [Rejected("…", f"and {len(rejected) - MOST_LISTED:,} more")]
        entries = tuple(read.entry for read in reads if read.entry is not None)
        board = Board(commit, entries, tuple(rejected))
        self._last = board
        return board

    def _read_place(self, commit: str, place: ListedEntry) -> _Read:
        """An entry with its samples, as far as verdicts depend on them; without the verification or the samples where
        they cannot be read, with the reason."""
        folder, verification = place
        fetch = partial(self._fetch, commit)
        try:
            claim = read_listed_claim(folder, fetch)
        except ResultError as error:
            is_given = not isinstance(error, _NotGivenError)
            return _Read(place if is_given else None, None, (Rejected(folder.path, _line(error)),))
        entry = Entry(
            folder=folder.path,
            result=claim.result,
            reported=claim.result,
            verified_on=None,
            samples=folder.files[SAMPLES].path,
            is_verifiable=folder.is_verifiable,
            submitter=None,
        )
        rejected, source, is_given = list[Rejected](), folder, True
        if verification is not None:
            try:
                verified = read_signed_claim(verification, fetch, claim, self._secret)
                record, source = verified.record, verification
                entry = replace(
                    entry,
                    result=verified.result,
                    verified_on=record.date,
                    samples=f"verified/{folder.path.removeprefix('results/')}/{SAMPLES}",
                    is_verifiable=True,
                    submitter=record.submitter,
                    reproduces=record.reproduces,
                )
            except ResultError as error:
                is_given = not isinstance(error, _NotGivenError)
                rejected.append(Rejected(verification.path, f"the entry counts as reported: {_line(error)}"))
        if is_older(entry.result.task, entry.data):
            return _Read(place if is_given else None, entry, tuple(rejected))
        try:
            size = source.files[SAMPLES].size
            if size > _MOST_READ:
                raise ResultError(f"{SAMPLES} has {size:,} bytes; at most {_MOST_READ:,} are read")
            # The checker's own samples belong to its result.
            read = read_scored_samples if entry.verified_on is None else read_sample_table
            samples = read(fetch(entry.samples, _MOST_READ), entry.result)
            table = trimmed_samples(load_task(entry.result.task).info, samples)
            # All entries of the same data share one list of ids.
            table = replace(table, ids=self._ids.setdefault(table.ids, table.ids))
            entry = replace(entry, result=entry.result.with_samples(table))
        except ResultError as error:
            is_given = is_given and not isinstance(error, _NotGivenError)
            rejected.append(Rejected(entry.samples, f"there is no verdict with the entry: {_line(error)}"))
        return _Read(place if is_given else None, entry, tuple(rejected))

    def _fetch(self, commit: str, path: str, limit: int) -> bytes:
        try:
            return read_file(self._hub.download(self._repository, path, commit, limit=limit))
        except HubError as error:
            # About one file, which the Hub does not have or give; else the Hub itself is in trouble.
            if error.status in (400, 403, 404, 410, 416):
                raise _NotGivenError(f"{path.rpartition('/')[2]} cannot be fetched: {error}") from error
            raise
        except OSError as error:
            # The checker has already removed the file that it had fetched.
            raise HubError(f"could not read {path!r} from the cache: {error.strerror}") from error


class _NotGivenError(ResultError):
    """A file that the Hub does not give: the entry is read again."""


def _line(text: object) -> str:
    """Return a submitter's text for the list of rejected files."""
    return shortened(str(text), 300)


# ----- One thread reads the board, visitors see the last reading


MAX_AGE = 300.0
"""Seconds after which the repository is read again."""

MIN_AGE = 20.0
"""Seconds between two readings at least, however often one is requested: this limits calls to the Hub."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BoardReading:
    """A board with the circumstances of its reading.

    Attributes:
        board: the last one that could be read.
        at: time of the last successful call to the Hub; None before that.
        trouble: why the last reading failed; None where it did not.
        since: when the trouble began.
    """

    board: Board = EMPTY_BOARD
    at: datetime | None = None
    trouble: str | None = None
    since: datetime | None = None


class BoardSource:
    """Reads the board repeatedly, in a thread of its own; no visitor waits."""

    def __init__(self, read: Callable[[], Board], max_age: float = MAX_AGE, min_age: float = MIN_AGE) -> None:
        """Nothing is read yet.

        Args:
            read: reads the board.
            max_age, min_age: see `MAX_AGE` and `MIN_AGE`.
        """
        self._read = read
        self._max_age = max_age
        self._min_age = min_age
        self._last = BoardReading()
        self._reads = False
        self._expired = threading.Event()
        self._expired.set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="board", daemon=True)

    def start(self) -> None:
        """Begin; the first reading is now."""
        self._thread.start()

    def stop(self) -> None:
        """End after the reading in progress."""
        self._stop.set()
        self._expired.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def last(self) -> BoardReading:
        """The last reading."""
        return self._last

    @property
    def pending(self) -> bool:
        """Whether the board is being read, or will be as soon as this is allowed."""
        return self._reads or self._expired.is_set()

    def expire(self) -> None:
        """Have the board read again: something was added, or somebody asked."""
        self._expired.set()

    def update(self) -> BoardReading:
        """Read the board now.

        Never raises: trouble with the Hub is stated in the reading, and the last board stays.
        """
        self._reads = True
        # Later additions are for the next reading.
        self._expired.clear()
        last = self._last
        trouble: str | None = None
        try:
            self._last = BoardReading(self._read(), datetime.now(UTC))
        except HubError as error:
            trouble = str(error)
            _log.warning("the results cannot be read: %s", trouble)
        except Exception:
            # Whatever third parties put there, the board stays up, and the log names the fault.
            _log.exception("the results cannot be read")
            trouble = "an unexpected error, which the log of this Space has"
        if trouble is not None:
            since = last.since if last.trouble else datetime.now(UTC)
            self._last = BoardReading(last.board, last.at, trouble, since)
        self._reads = False
        # The board is up by now; few visitors come before all its tables are judged, and judge theirs themselves.
        try:
            self._last.board.judge()
        except Exception:
            _log.exception("the tables cannot be judged")
        return self._last

    def _run(self) -> None:
        while not self._stop.is_set():
            self.update()
            self._stop.wait(self._min_age)
            self._expired.wait(self._max_age - self._min_age)
