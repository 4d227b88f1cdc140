"""The check of pull requests on the results repository: recompute, merge what holds, say what is wrong with the rest.

A pull request is a stranger's. It may only add whole entries, under the names that their content gives them; sizes are
known before anything is fetched, and what is fetched is read by the code of `audio-compositionality verify`. The
checker says what it found in a comment, whose last line names the commit, so that no commit is checked twice. A folder
below ``verified/`` is only ever written here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from audio_compositionality.dataset_builder import DatasetError
from audio_compositionality.evaluator.parquet_reader import ParquetReader, clean
from audio_compositionality.evaluator.record import verification_files, verification_folder
from audio_compositionality.evaluator.submission import parse_submission
from audio_compositionality.evaluator.submission_files import EMBEDDINGS, LIMITS, parse_path
from audio_compositionality.evaluator.table import TITLES
from audio_compositionality.evaluator.verification import Verification, verify
from audio_compositionality.hub import Content, Hub, HubError, PullRequest, Repository
from audio_compositionality.hub.names import dataset_of, results_of

from .encoder_page import presets
from .reading import Files, Folder, folders_of

MAX_ENTRIES = 20
"""Entries of a pull request: more can be in a second one."""

MAX_REASONS = 20
"""Reasons that a comment lists."""

_MARKER = "<!-- audio-compositionality: checked {head} -->"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What became of a pull request, or of a merged entry.

    Attributes:
        subject: ``#3``, or the folder of an entry.
        action: ``merged``, ``verified``, ``refused``, ``left`` to the maintainers, ``checked`` before, ``waiting``
            since it is a draft or has moved on meanwhile, or ``failed`` for reasons that are not its own.
        reasons: in words; empty where it says all.
    """

    subject: str
    action: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject}: {self.action}" + "".join(f"; {reason}" for reason in self.reasons)


def check_pull_requests(hub: Hub, org: str, reader: ParquetReader, device: str | None = None) -> list[Outcome]:
    """Check every open pull request on the results of an organisation whose head was not checked yet.

    Args:
        hub: as a user who may write to the repository of results.
        org: whose results.
        reader: of Parquet files.
        device: torch device of A-TRE's fits.

    Returns:
        one an open pull request, the oldest first. Trouble with one ends in its outcome, and the next is checked.

    Raises:
        HubError: the pull requests cannot be listed.
    """
    repository = results_of(org)
    outcomes = []
    user = hub.user()
    for request in hub.pull_requests(repository):
        try:
            outcome = _check(hub, repository, request, user, reader, device)
        except HubError as error:
            outcome = Outcome(f"#{request.number}", "failed", (str(error),))
        except Exception:
            # Nothing of a stranger's may keep the others from being checked.
            _log.exception("the check of #%d failed", request.number)
            outcome = Outcome(f"#{request.number}", "failed", ("an unexpected error, which the log has",))
        outcomes.append(outcome)
    return outcomes


def verify_merged(
    hub: Hub, org: str, reader: ParquetReader, device: str | None = None, known: Iterable[str] = ()
) -> list[Outcome]:
    """Verify the entries of the branch main that have embeddings and no verification.

    They are there when a checker was killed after it had merged, and when maintainers merge by hand.

    Args:
        hub, org, reader, device: see `check_pull_requests`.
        known: folders of entries that were refused before; they are left out.

    Raises:
        HubError: the Hub cannot be read or written.
    """
    repository = results_of(org)
    head = hub.head(repository)
    main = hub.files(repository, head)
    results, verified, _ = folders_of(main)
    outcomes = []
    for key, folder in sorted(results.items()):
        if key in verified or EMBEDDINGS not in folder.files or folder.path in set(known):
            continue
        try:
            folder.digests()
            reasons = _twins([folder], main)
            found = None if reasons else _verify(hub, repository, head, folder, reader, device)
            reasons += [] if found is None else list(found.problems)
        except ValueError as error:
            found, reasons = None, [clean(error)]
        if found is not None and not reasons:
            _write(hub, repository, [found])
        outcomes.append(Outcome(folder.path, "refused" if reasons else "verified", tuple(reasons)))
    return outcomes


def new_entries(base: Files, head: Files, main: Files) -> tuple[list[Folder], list[str]]:
    """What a pull request adds, and why it cannot be merged, from the names, sizes and hashes of files alone.

    Args:
        base: files of the commit that it began at.
        head: files of its last commit.
        main: files of the branch main as it is now.

    Returns:
        the entries, and the reasons; without a reason the entries may be fetched.
    """
    reasons = [
        f"it {'changes' if path in head else 'deletes'} {quoted(path)}; nothing is ever replaced or deleted here"
        for path in base
        if path not in head or head[path].digest != base[path].digest
    ]
    added = {path: file for path, file in head.items() if path not in base}
    for path in added:
        parts = parse_path(path)
        if parts is None or parts.file is None:
            reasons.append(f"{quoted(path)} is no file of an entry, results/<encoder>/<revision>/<task>-<id>/…")
        elif parts.kind != "results":
            reasons.append(f"it adds {quoted(path)}; only the checker writes to verified/")
    entries = list(folders_of(added)[0].values())
    if len(entries) > MAX_ENTRIES:
        reasons.append(f"it adds {len(entries):,} entries; at most {MAX_ENTRIES} can be in one pull request")
        return [], reasons
    there = {parts.folder for parts in map(parse_path, [*base, *main]) if parts is not None}
    for entry in entries:
        if entry.path in there:
            reasons.append(f"{quoted(entry.path)} is there already")
        try:
            entry.digests()
        except ValueError as error:
            reasons.append(f"{quoted(entry.path)}: {clean(error)}")
    if not entries and not reasons:
        reasons.append("it adds nothing")
    return entries, reasons + _twins(entries, {**main, **added})


def quoted(text: str) -> str:
    """Strangers' text as code in a comment: it is neither formatted nor does it call anybody."""
    return f"`{clean(text).replace('`', chr(0x2018))}`"


def _check(
    hub: Hub, repository: Repository, request: PullRequest, user: str, reader: ParquetReader, device: str | None
) -> Outcome:
    subject, number = f"#{request.number}", request.number
    head = hub.head(repository, request.revision)
    marker = _MARKER.format(head=head)
    said = [comment.text for comment in hub.comments(repository, number) if comment.author == user]
    if any(text.rstrip().endswith(f"\n{marker}") for text in said):
        return Outcome(subject, "checked")
    if hub.status(repository, number) != "open":
        return Outcome(subject, "waiting", ("it is a draft",))

    def refuse(reasons: list[str]) -> Outcome:
        more = [f"and {len(reasons) - MAX_REASONS:,} more"] if len(reasons) > MAX_REASONS else []
        listed = "\n".join(f"- {reason}" for reason in [*reasons[:MAX_REASONS], *more])
        advice = "Push a commit that mends it: it is checked again by itself."
        hub.comment(repository, number, f"This cannot be merged as it is:\n\n{listed}\n\n{advice}\n\n{marker}")
        return Outcome(subject, "refused", tuple(reasons))

    before = hub.head(repository)
    history = set(hub.commits(repository))
    base = next((commit for commit in hub.commits(repository, request.revision) if commit in history), None)
    if base is None:
        return refuse(["its history has no commit in common with main"])
    trees = {commit: hub.files(repository, commit) for commit in {base, head, before}}
    entries, reasons = new_entries(trees[base], trees[head], trees[before])
    found: list[Verification] = []
    without: list[Folder] = []
    for entry in entries if not reasons else ():
        try:
            one = _verify(hub, repository, head, entry, reader, device)
        except ValueError as error:
            reasons.append(f"{quoted(entry.path)}: {clean(error)}")
            continue
        if one is None:
            without.append(entry)
        else:
            found.append(one)
            reasons += [f"{quoted(entry.path)}: {clean(problem)}" for problem in one.problems]
    if reasons:
        return refuse(reasons)
    if without:
        listed = "\n".join(f"- {quoted(entry.path)}" for entry in without)
        text = "Without embeddings this cannot be verified; maintainers decide whether to show it as *reported*:"
        hub.comment(repository, number, f"{text}\n\n{listed}\n\n{figures(found)}\n\n{marker}")
        return Outcome(subject, "left", tuple(f"{entry.path} has no embeddings" for entry in without))
    if hub.head(repository, request.revision) != head:
        return Outcome(subject, "waiting", ("it has moved on while it was checked",))
    hub.merge(repository, number)
    undone = _undo(hub, repository, request, trees[base], head, before)
    _write(hub, repository, found)
    rest = f"\n\nWhat was pushed after the check was undone: {', '.join(map(quoted, undone[:5]))}." if undone else ""
    hub.comment(repository, number, f"Verified and merged.\n\n{figures(found)}{rest}\n\n{marker}")
    return Outcome(subject, "merged", tuple(f"undone: {clean(path)}" for path in undone))


def figures(found: Iterable[Verification]) -> str:
    """The recomputed scores beside those that were reported, as a list in Markdown."""
    lines = []
    for one in found:
        assert one.recomputed is not None
        interval = "" if one.interval is None else f", 95 % interval {one.interval[0]:.4f} to {one.interval[1]:.4f}"
        lines.append(
            f"- {TITLES[one.task]} of {quoted(one.result.encoder_id)}, revision {quoted(one.result.encoder_revision)}: "
            f"recomputed {one.recomputed.score:.6f}, reported {one.result.score:.6f}{interval}"
        )
    return "\n".join(lines)


def _twins(entries: Iterable[Folder], files: Files) -> list[str]:
    """Why entries cannot be: their embeddings are those of another encoder among the files, byte for byte."""
    owners: dict[str, set[str]] = {}
    for path, file in files.items():
        parts = parse_path(path)
        if parts is not None and parts.file == EMBEDDINGS:
            owners.setdefault(file.digest, set()).add(parts.encoder)
    reasons = []
    for entry in entries:
        parts, own = parse_path(entry.path), entry.files.get(EMBEDDINGS)
        others = set() if parts is None or own is None else owners.get(own.digest, set()) - {parts.encoder}
        if others:
            reasons.append(f"{quoted(entry.path)} has the same embeddings as {quoted(min(others))}, another encoder")
    return reasons


def _verify(
    hub: Hub, repository: Repository, commit: str, entry: Folder, reader: ParquetReader, device: str | None
) -> Verification | None:
    """What recomputing an entry finds; None of one without embeddings, of which all else is right.

    Its data are a preset's or those that the organisation has published.

    Raises:
        ValueError: it is no valid submission, or its data are not known.
        HubError: files or data cannot be fetched.
    """
    contents: dict[str, bytes] = {}
    for name, file in entry.files.items():
        path = hub.download(repository, file.path, commit, limit=LIMITS[name])
        contents[name] = path.read_bytes()
        if name == EMBEDDINGS:
            # Nobody needs them again, and the disk of a Space is small: the file, and the link to it.
            path.resolve().unlink(missing_ok=True)
            path.unlink(missing_ok=True)
    submission = parse_submission(contents, entry.path, reader)
    if submission.embeddings is None:
        return None
    data = None
    if submission.result.fingerprint not in presets():
        own = dataset_of(repository.namespace)
        data = own.id if hub.exists(own) else None
    try:
        return verify(submission, data=data, device=device)
    except DatasetError as error:
        # No fault of the submission's: it is checked again in the next round.
        raise HubError(f"the data {data} cannot be opened: {error}") from error


def _write(hub: Hub, repository: Repository, found: Iterable[Verification]) -> None:
    """Commit what was computed. What is there is left: a verification is never replaced."""
    files: dict[str, bytes] = {}
    there = hub.files(repository)
    for one in found:
        folder = verification_folder(one)
        if not any(path.startswith(f"{folder}/") for path in there):
            files |= {f"{folder}/{name}": content for name, content in verification_files(one).items()}
    if files:
        count = len({path.rsplit("/", 1)[0] for path in files})
        hub.commit(repository, files, f"Verify {count} {'entry' if count == 1 else 'entries'}")


def _undo(hub: Hub, repository: Repository, request: PullRequest, base: Files, head: str, before: str) -> list[str]:
    """Undo what a merge brought in beside what was checked: the Hub merges whatever the head is at that moment.

    Args:
        hub, repository, request: what was merged.
        base: files of the commit that the pull request began at.
        head: commit that was checked.
        before: commit of main before the merge.

    Returns:
        the paths that were undone.
    """
    if hub.head(repository, request.revision) == head:
        return []
    checked, merged, main = (hub.files(repository, commit) for commit in (head, request.revision, before))
    others = sorted(path for path in {*merged, *checked} if _digest(merged, path) != _digest(checked, path))
    content: dict[str, Content] = {}
    for path in others:
        if path in checked and path not in base:
            content[path] = hub.download(repository, path, head, limit=checked[path].size)
        elif path in main:
            content[path] = hub.download(repository, path, before, limit=main[path].size)
    gone = [path for path in others if path not in content]
    hub.commit(repository, content, f"Undo what was pushed to #{request.number} after its check", delete=gone)
    return others


def _digest(files: Files, path: str) -> str | None:
    return files[path].digest if path in files else None
