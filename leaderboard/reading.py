"""Reading the results repository: everything in it is a stranger's, and nothing in it may take the board down."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.record import Record, check, check_record
from audio_compositionality.evaluator.submissions.submission import read_result
from audio_compositionality.evaluator.submissions.submission_files import (
    ANSWERS,
    EMBEDDINGS,
    FILES,
    LIMITS,
    OUTPUTS,
    RESULT,
    SAMPLES,
    VERIFICATION,
    check_names,
    digests_of,
    folder_of,
    id_of,
    outputs_in,
    parse_path,
)
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import RemoteFile
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.base import TaskError
from audio_compositionality.tasks.registry import load_task

from .entries import Board, Entry, Rejected

OTHER_FILES = ("README.md", ".gitattributes")
"""What the repository holds beside results and verifications."""

MOST_LISTED = 500
"""Rejected files that are listed; of more, the number is."""

_AT_ONCE = 8  # downloads; all but the first few seconds of a large repository are waiting

Files = Mapping[str, RemoteFile]
FileKey = tuple[str, str]
"""Path and digest."""

Contents = dict[FileKey, bytes | str]
"""Of files that are read; of one that the Hub does not give, why."""


@dataclass(frozen=True)
class EntryFolder:
    """The files of an entry, or of its verification, at one commit.

    Attributes:
        kind: ``results`` or ``verified``.
        path: of the folder.
        id: that its name states.
        files: by their names.
    """

    kind: str
    path: str
    id: str
    files: Files

    def check(self) -> None:
        """Refuse, with ResultError, other files than there should be, and one that is too large."""
        check_names(list(self.files), FILES[self.kind], optional=OUTPUTS)
        for name, file in self.files.items():
            if file.size > LIMITS[name]:
                raise ResultError(f"{name} has {file.size:,} bytes; at most {LIMITS[name]:,} can be")
        if self.outputs == EMBEDDINGS:
            self._stored_digest(EMBEDDINGS)

    @property
    def outputs(self) -> str | None:
        """The name of the file of what the model gave, of which scores are computed again; None where it has none."""
        return outputs_in(self.files)

    def _stored_digest(self, name: str) -> str:
        """The SHA-256 of a file in large file storage; ResultError of another one."""
        digest = self.files[name].digest
        if not digest.startswith("sha256:"):
            raise ResultError(f"{name} is not in large file storage, so that its hash is not known")
        return digest.removeprefix("sha256:")

    @property
    def to_read(self) -> tuple[str, ...]:
        """The files that a board has to read: JSON, and answers that are too small for large file storage, of which the
        Hub knows the hash."""
        small = ANSWERS in self.files and not self.files[ANSWERS].digest.startswith("sha256:")
        names = (RESULT, VERIFICATION, *([ANSWERS] if small else []))
        return tuple(name for name in names if name in self.files)

    def digest(self, name: str, contents: Contents) -> str:
        """The SHA-256 of one of its files that is read, or in large file storage.

        Raises:
            ResultError: the Hub neither knows it nor gives the file.
        """
        return sha256_of(self.content(name, contents)) if name in self.to_read else self._stored_digest(name)

    def content(self, name: str, contents: Contents) -> bytes:
        """One of the files that are read.

        Raises:
            ResultError: the Hub does not give it.
        """
        content = contents[self.files[name].path, self.files[name].digest]
        if isinstance(content, str):
            raise ResultError(f"{name} cannot be fetched: {content}")
        return content


def folders_of(tree: Files) -> tuple[dict[str, EntryFolder], dict[str, EntryFolder], list[str]]:
    """The files of the repository put in order.

    Returns:
        the folders of entries and of verifications, each by ``<model>/<revision>/<task>-<id>``, and the paths of what
        belongs to neither.
    """
    grouped: dict[str, dict[str, dict[str, RemoteFile]]] = {"results": {}, "verified": {}}
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


ListedEntry = tuple[EntryFolder, EntryFolder | None]
"""An entry and its verification, if it has one."""


@dataclass(frozen=True)
class _Read:
    """What reading an entry gave.

    Attributes:
        place: that was read; None where the Hub did not give all of it, so that it is read again.
        entry: as it is shown; None of one that is not.
        rejected: what is not shown of it.
    """

    place: ListedEntry | None
    entry: Entry | None
    rejected: tuple[Rejected, ...]


class BoardReader:
    """Reads the board again and again, fetching only what is new."""

    def __init__(self, hub: Hub, repository: Repository, secret: str | None) -> None:
        """Nothing is read yet.

        Args:
            hub: as a user who may read the repository.
            repository: of results.
            secret: that the checker signs its records with; without it no record counts.
        """
        self._hub = hub
        self._repository = repository
        self._secret = secret
        self._last = Board("", (), ())
        self._read: dict[str, _Read] = {}

    def __call__(self) -> Board:
        """The board at the newest commit.

        Raises:
            HubError: the Hub cannot be read. What it gave until then is not fetched again the next time.
        """
        commit = self._hub.head(self._repository)
        if commit == self._last.commit:
            return self._last
        files = self._hub.files(self._repository, commit)
        results, verified, foreign = folders_of(files)
        rejected = [Rejected(_line(path), "it is no file of a result, in no place for one") for path in foreign]
        for key in verified.keys() - results.keys():
            rejected.append(Rejected(verified[key].path, "it verifies an entry that is not there"))
        places = {key: (folder, verified.get(key)) for key, folder in results.items()}
        self._read_new(commit, places)
        reads = [self._read[key] for key in places]
        rejected += [item for read in reads for item in read.rejected]
        rejected.sort(key=lambda item: item.path)
        if len(rejected) > MOST_LISTED:
            rejected[MOST_LISTED:] = [Rejected("…", f"and {len(rejected) - MOST_LISTED:,} more")]
        entries = tuple(read.entry for read in reads if read.entry is not None)
        self._last = Board(commit, entries, tuple(rejected))
        return self._last

    def _read_new(self, commit: str, places: Mapping[str, ListedEntry]) -> None:
        """Read the places that are not what they were when they were last read."""
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

    def _read_place(self, commit: str, place: ListedEntry) -> _Read:
        contents = {}
        for folder in filter(None, place):
            for name, file in folder.files.items():
                if name in folder.to_read and file.size <= LIMITS[name]:
                    contents[file.path, file.digest] = self._fetch(commit, file.path, LIMITS[name])
        folder, verification = place
        read = None if any(isinstance(content, str) for content in contents.values()) else place
        try:
            digests, reported = read_listed_entry(folder, contents)
        except ResultError as error:
            return _Read(read, None, (Rejected(folder.path, _line(error)),))
        if verification is not None:
            try:
                verified = read_verified(verification, contents, digests, reported, self._secret)
                return _Read(read, _entry(folder, reported, verified), ())
            except ResultError as error:
                why = Rejected(verification.path, f"the entry counts as reported: {_line(error)}")
                return _Read(read, _entry(folder, reported, None), (why,))
        return _Read(read, _entry(folder, reported, None), ())

    def _fetch(self, commit: str, path: str, limit: int) -> bytes | str:
        """The content of a file, or why the Hub does not give it."""
        try:
            return self._hub.download(self._repository, path, commit, limit=limit).read_bytes()
        except HubError as error:
            if is_of_file(error):
                return str(error)
            raise
        except OSError as error:
            # The checker, which clears up what it has fetched, was faster.
            raise HubError(f"could not read {path!r} from the cache: {error.strerror}") from error


def read_listed_entry(folder: EntryFolder, contents: Contents) -> tuple[dict[str, str], Result]:
    """What was reported, and the SHA-256 of all files of the entry. That of its samples is the one that it states.

    Raises:
        ResultError: it is not what a submission can be, or not that of its folder, or of a task that is not known.
    """
    folder.check()
    content = folder.content(RESULT, contents)
    result = read_result(content)
    try:
        load_task(result.task)
    except TaskError as error:
        raise ResultError(str(error)) from None
    digests = {**digests_of({RESULT: content}), SAMPLES: result.samples_sha256}
    if folder.outputs is not None:
        digests[folder.outputs] = folder.digest(folder.outputs, contents)
    place = folder_of(result, id_of(digests))
    if place != folder.path:
        raise ResultError(f"its content belongs to {place}")
    return digests, result


def read_verified(
    folder: EntryFolder, contents: Contents, digests: Mapping[str, str], reported: Result, secret: str | None
) -> tuple[Record, Result]:
    """What the checker found of an entry whose files have these SHA-256.

    Raises:
        ResultError: it is not what a checker writes, of other files, contradicts itself or what was reported, or is not
            signed with the secret.
    """
    folder.check()
    record = Record.loads(folder.content(VERIFICATION, contents))
    if not check(record, secret):
        raise ResultError("no secret is set here, so that its signature cannot be checked")
    content = folder.content(RESULT, contents)
    if reported.task_version == load_task(reported.task).info.version:
        result = check_record(record, digests, reported, content)
    else:
        # How far numbers of another version may be apart is not known here: the signature vouches for them.
        result = read_result(content)
        files = {**digests_of({RESULT: content}), SAMPLES: result.samples_sha256}
        if (record.submission, record.files) != (dict(digests), files) or result.key != reported.key:
            raise ResultError("it is the verification of other files")
    if folder_of(result, record.id, "verified") != folder.path:
        raise ResultError("its result belongs to another entry")
    return record, result


def _entry(folder: EntryFolder, reported: Result, verified: tuple[Record, Result] | None) -> Entry:
    if verified is None:
        return Entry(
            folder=folder.path,
            result=reported,
            reported=reported,
            verified_on=None,
            samples=folder.files[SAMPLES].path,
            is_verifiable=folder.outputs is not None,
            submitter=None,
        )
    record, result = verified
    return Entry(
        folder=folder.path,
        result=result,
        reported=reported,
        verified_on=record.date,
        samples=f"verified/{folder.path.removeprefix('results/')}/{SAMPLES}",
        is_verifiable=True,
        submitter=record.submitter,
        reproduces=record.reproduces,
    )


def _line(text: object) -> str:
    """Strangers' text for the list of what is not shown."""
    return shortened(str(text), 300)


def is_of_file(error: HubError) -> bool:
    """Whether an error is about one file, which the Hub does not have or give; else the Hub itself is in trouble."""
    return error.status in (400, 403, 404, 410, 416)
