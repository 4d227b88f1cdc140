"""Check pull requests on the results repository: recompute scores, add valid entries, report the faults of others.

A pull request comes from a third party. It may only add complete entries, under the names that follow from their
content. Sizes are known before anything is fetched, and the code of `audio-compositionality verify` reads the files. A
pull request is never merged, since it could change in that moment: the checked bytes are committed together with the
record, and the pull request is closed. The checker reports in a comment whose last line names the commit, so that no
commit is checked twice. Only this module writes below ``verified/``.

Each round checks one entry per author, so ten entries of one author delay the others by one entry only. A pull request
with more entries continues in the next round. Its outcomes are kept in memory until then, and nothing is added before
all of its entries are checked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.layout import (
    MAX_ENTRIES,
    EntryFolder,
    folders_of,
    parse_path,
    part_problem,
)
from audio_compositionality.evaluator.submissions.verification import (
    Verification,
    interval_phrase,
    verification_files,
    verification_folder,
)
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Commit, PullRequest
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import results_of
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.registry import load_task

from .examination import (
    CheckClaim,
    Examined,
    Examiner,
    KnownEntry,
    LeftError,
    Recompute,
    as_code,
    check_claim_in_own_process,
    known_entry,
    original_of,
    recompute_in_own_process,
)
from .reading import Files

MAX_CHECKS = 20
"""Most entries checked in a round, each in a pull request by another author."""

MAX_LOOKS = 200
"""Most pull requests looked at in a round, within the Hub's limit of calls."""

MAX_REASONS = 20
"""Most reasons in a comment."""

_MARKER = "<!-- audio-compositionality: checked {head} -->"
_ADDED = "Added to main"
_SPENT = "today's time for the checks of its author is used up"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome for a pull request, or for an entry of main.

    Attributes:
        subject: ``#3``, or the folder of an entry.
        action: ``added``, ``verified``, ``refused``, ``left`` to the maintainers, ``checked`` before, ``waiting``
            (it is a draft, changed during the check, or comes later), or ``failed`` for reasons outside of it.
        reasons: in words; empty if the action needs none.
    """

    subject: str
    action: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject}: {self.action}" + "".join(f"; {reason}" for reason in self.reasons)


@dataclass
class _Job:
    """The check of a pull request's entries, over one round or several.

    Attributes:
        head: the commit that is checked.
        entries: all entries that it adds.
        waiting: entries that main lacked and that are not checked yet.
        number: number of entries that main lacked.
        examined: recomputed entries, in their order.
        left: why the maintainers must decide on some entries.
        reasons: faults of other entries.
    """

    head: str
    entries: list[EntryFolder]
    waiting: list[EntryFolder]
    number: int
    examined: list[Examined] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def progress(self) -> str:
        """Return the progress in words."""
        return f"{self.number - len(self.waiting)} of {self.number} entries checked"


@dataclass
class _Seen:
    """The state of an open pull request between rounds.

    Attributes:
        author: of the pull request.
        checked: its last commit whose check has ended; empty before.
        job: the check in progress; None before it begins.
        goes_on: whether the check continues in the next round.
    """

    author: str
    checked: str = ""
    job: _Job | None = None
    goes_on: bool = False


class Checks:
    """The checks of an organisation's results; settled cases are remembered and not looked up again."""

    def __init__(
        self,
        hub: Hub,
        org: str,
        secret: str,
        *,
        device: str | None = None,
        recompute: Recompute = recompute_in_own_process,
        check_claim: CheckClaim = check_claim_in_own_process,
        budget: Budget | None = None,
    ) -> None:
        """Prepare the checks; nothing is checked yet.

        Args:
            hub: client with a token that may write to the repository of results.
            org: the organisation.
            secret: signs the records of verified entries.
            device: torch device of fits.
            recompute: recomputes an entry.
            check_claim: checks an entry that cannot be recomputed.
            budget: time for each author.
        """
        self._hub = hub
        self._repository = results_of(org)
        self._examiner = Examiner(hub, self._repository, secret, device, recompute, check_claim)
        self._budget = budget or Budget()
        # Open pull requests that were looked at, the least recent first.
        self._seen: dict[int, _Seen] = {}
        # Verified entries of main, by their folders, which are derived from their content.
        self._known: dict[str, KnownEntry] = {}
        # Entries of main that need no further check, and the number of failed checks of others.
        self._settled: set[str] = set()
        self._failures = Counter[str]()
        self._main_goes_on = False

    @property
    def goes_on(self) -> bool:
        """Whether the next round should start immediately."""
        return self._main_goes_on or any(
            seen.goes_on and not self._budget.is_spent(seen.author) for seen in self._seen.values()
        )

    def check_pull_requests(self, *, again: bool = True) -> list[CheckOutcome]:
        """Check one entry per author, at most `MAX_CHECKS`, of open pull requests with an unchecked head.

        Args:
            again: also look for new commits of checked pull requests.

        Returns:
            one outcome per open pull request, the oldest first. An error in one pull request becomes its outcome, and
            the next is checked.

        Raises:
            HubError: the pull requests, or the commits of main, cannot be listed.
        """
        requests = {request.number: request for request in self._hub.pull_requests(self._repository)}
        user = self._hub.user()
        history = set(self._hub.commits(self._repository)) if requests else set()
        self._seen = {number: seen for number, seen in self._seen.items() if number in requests}
        # An author's unfinished pull request comes before another of the same author.
        begun = {seen.author: number for number, seen in self._seen.items() if seen.goes_on}
        outcomes: dict[int, CheckOutcome] = {}
        looks, busy = 0, set[str]()
        for number in [*(number for number in requests if number not in self._seen), *self._seen]:
            request, subject, seen = requests[number], f"#{number}", self._seen.get(number)
            if seen is not None and seen.checked and not again:
                outcomes[number] = CheckOutcome(subject, "checked")
            # No call to the Hub for authors without time left: their pull requests must not delay others.
            elif self._budget.is_spent(request.author):
                far = [seen.job.progress] if seen is not None and seen.job is not None else []
                outcomes[number] = CheckOutcome(subject, "waiting", (*far, _SPENT))
            elif (
                looks < MAX_LOOKS
                and len(busy) < MAX_CHECKS
                and request.author not in busy
                and begun.get(request.author, number) == number
            ):
                looks += 1
                outcomes[number] = _guarded(subject, partial(self._look, request, user, history, busy))
        later = "it will be checked in a later round"
        return [outcomes.get(number, CheckOutcome(f"#{number}", "waiting", (later,))) for number in requests]

    def verify_merged(self, *, most: int | None = None) -> list[CheckOutcome]:
        """Verify entries of main that have no valid verification, such as the maintainers' own additions.

        Args:
            most: most entries to recompute now; by default all.

        Returns:
            one outcome per entry that was not settled before. An error in one entry becomes its outcome, and the next
            is verified.

        Raises:
            HubError: the files of main cannot be listed.
        """
        self._main_goes_on = False
        commit = self._hub.head(self._repository)
        results, verified, _ = folders_of(self._hub.files(self._repository, commit))
        outcomes: list[CheckOutcome] = []
        # An entry whose check fails again and again must not block the others.
        for key, entry in sorted(results.items(), key=lambda item: (self._failures[item[1].path], item[0])):
            if not entry.is_verifiable or entry.path in self._settled:
                continue
            if most is not None and len(outcomes) >= most:
                self._main_goes_on = any(outcome.action != "failed" for outcome in outcomes)
                break
            outcome = _guarded(entry.path, partial(self._merged, commit, entry, verified.get(key)))
            if outcome.action == "failed":
                self._failures[entry.path] += 1
            else:
                self._settled.add(entry.path)
            if outcome.action != "checked":
                outcomes.append(outcome)
        return outcomes

    def _look(self, request: PullRequest, user: str, history: Collection[str], busy: set[str]) -> CheckOutcome:
        """Return the outcome of a pull request, after checking its next entry if it has one to check.

        If an entry is checked, the author is added to `busy`.
        """
        subject, number, author = f"#{request.number}", request.number, request.author
        seen = self._seen[number] = self._seen.pop(number, _Seen(author))
        seen.goes_on = False
        head = self._hub.head(self._repository, request.revision)
        if seen.checked == head:
            return CheckOutcome(subject, "checked")
        marker = f"\n{_MARKER.format(head=head)}"
        said = [comment.text for comment in self._hub.comments(self._repository, number) if comment.author == user]
        said = [text for text in said if text.rstrip().endswith(marker)]
        if any(text.startswith(_ADDED) for text in said):
            # The checker was killed before it could close the pull request.
            self._hub.close(self._repository, number)
            return CheckOutcome(subject, "added")
        if said:
            outcome = CheckOutcome(subject, "checked")
        elif self._hub.status(self._repository, number) != "open":
            return CheckOutcome(subject, "waiting", ("it is a draft",))
        else:
            busy.add(author)
            with self._budget.spending(author):
                outcome = self._check(request, seen, head, history)
            if seen.goes_on and seen.job is not None:
                # A comment after the first entry, and when the author has no time left.
                spent = self._budget.is_spent(author)
                if spent or seen.job.number - len(seen.job.waiting) == 1:
                    when = f"continues when there is time again: {_SPENT}" if spent else "continues in the next round"
                    text = f"{seen.job.progress} of commit {head[:8]}; {when}."
                    self._hub.comment(self._repository, number, text)
        if outcome.action != "waiting":
            seen.checked, seen.job = head, None
        return outcome

    def _check(self, request: PullRequest, seen: _Seen, head: str, history: Collection[str]) -> CheckOutcome:
        """Check the next entry of a pull request; after the last one, add all entries, or comment why not."""
        hub, repository, subject = self._hub, self._repository, f"#{request.number}"
        job, reasons = seen.job, list[str]()
        if job is None or job.head != head:
            base = next((commit for commit in hub.commits(repository, request.revision) if commit in history), None)
            if base is None:
                entries, reasons = list[EntryFolder](), ["its history has no commit in common with main"]
            else:
                main = hub.files(repository, hub.head(repository))
                entries, reasons = new_entries(hub.files(repository, base), hub.files(repository, head), main)
                present = _paths(main)
            lacking = [] if reasons else [entry for entry in entries if entry.path not in present]
            job = _Job(head, entries, lacking, len(lacking))
        if not reasons:
            seen.job = job
            if job.waiting:
                self._check_next(job)
            if job.waiting:
                seen.goes_on = True
                return CheckOutcome(subject, "waiting", (f"{job.progress}, continues in the next round",))
            reasons = job.reasons
        if reasons:
            advice = "Push a commit that fixes it; it will be checked again automatically."
            self._comment(request, head, "This cannot be added as it is:", _listed(reasons), advice)
            return CheckOutcome(subject, "refused", tuple(reasons))
        # Main may contain some of these entries, or their originals, by now.
        commit = hub.head(repository)
        main = hub.files(repository, commit)
        present = _paths(main)
        examined = [one for one in job.examined if one.folder not in present]
        scores = scores_in_markdown(one.verification for one in examined)
        if job.left:
            text = "The maintainers decide on this. The checker verifies the entries that they merge, if it can."
            self._comment(request, head, text, _listed(job.left), scores)
            return CheckOutcome(subject, "left", tuple(job.left))
        # All verified entries of main.
        results, verified, _ = folders_of(main)
        for key, entry in results.items():
            if key in verified and entry.is_verifiable and entry.path not in self._known:
                checked = self._examiner.verified(commit, entry, verified[key])
                if checked is not None:
                    record = checked.record
                    self._known[entry.path] = known_entry(entry.path, checked.result, record.submission, record.date)
        known = list(self._known.values())
        if hub.head(repository, request.revision) != head or hub.status(repository, request.number) != "open":
            return CheckOutcome(subject, "waiting", ("it changed during the check",))
        links, reproductions = [], []
        for one in examined:
            original = original_of(one.known, known)
            if original is not None:
                first, common = original[0].folder, original[1]
                reproductions.append(f"{as_code(one.folder)} is a reproduction of {as_code(first)}: {common}")
            by = f"(#{request.number} by {shortened(request.author, 100)})"
            added = self._add(
                f"Add {_named(one.verification.result)} {by}",
                one,
                submitter=request.author,
                reproduces=None if original is None else original[0].folder,
                head=head,
            )
            links.append(f"[{added.oid[:8]}]({added.url})")
            known.append(one.known)
        self._comment(
            request,
            head,
            f"{_ADDED} in {', '.join(links)}." if links else f"{_ADDED} before.",
            scores,
            _listed(reproductions),
            _listed([f"{as_code(entry.path)} existed already" for entry in job.entries if entry.path in present]),
            "Entries are committed as they were checked; the pull request is closed, not merged.",
        )
        hub.close(repository, request.number)
        return CheckOutcome(subject, "added")

    def _check_next(self, job: _Job) -> None:
        """Check the next entry of a job; after an error of the Hub, the entry waits for the next round."""
        entry = job.waiting[0]
        try:
            one = self._examiner.examine(job.head, entry)
            job.examined.append(one)
            job.reasons += [f"{as_code(entry.path)}: {as_code(problem)}" for problem in one.verification.problems]
        except LeftError as error:
            job.left.append(f"{as_code(entry.path)}: {error}")
        except HubError:
            raise
        except AudioCompositionalityError as error:
            job.reasons.append(f"{as_code(entry.path)}: {as_code(error)}")
        del job.waiting[0]

    def _comment(self, request: PullRequest, head: str, *parts: str) -> None:
        """Comment on a pull request; the last line marks the commit as checked."""
        text = "\n\n".join([*filter(None, parts), _MARKER.format(head=head)])
        self._hub.comment(self._repository, request.number, text)

    def _merged(self, commit: str, entry: EntryFolder, verified: EntryFolder | None) -> CheckOutcome:
        """Verify an entry of main and return the outcome."""
        if verified is not None and self._examiner.verified(commit, entry, verified) is not None:
            return CheckOutcome(entry.path, "checked")
        try:
            entry.check()
            one = self._examiner.examine(commit, entry, keep=True)
        except LeftError as error:
            return CheckOutcome(entry.path, "left", (str(error),))
        except HubError:
            raise
        except AudioCompositionalityError as error:
            return CheckOutcome(entry.path, "refused", (_line(error),))
        if one.verification.problems:
            return CheckOutcome(entry.path, "refused", tuple(map(_line, one.verification.problems)))
        self._add(f"Verify {_named(one.verification.result)}", one)
        return CheckOutcome(entry.path, "verified")

    def _add(
        self,
        message: str,
        one: Examined,
        *,
        submitter: str | None = None,
        reproduces: str | None = None,
        head: str | None = None,
    ) -> Commit:
        """Commit a verification; with `head` also the files of the entry as they are in that commit, since main lacks
        them."""
        signed = verification_files(
            one.verification,
            secret=self._examiner.secret,
            submitter=submitter,
            date=one.date,
            reproduces=reproduces,
        )
        folders = {verification_folder(one.verification): signed}
        if head is not None:
            folders[one.folder] = self._examiner.files(head, one)
        files = {f"{folder}/{name}": content for folder, held in folders.items() for name, content in held.items()}
        return self._hub.commit(self._repository, files, message)


def new_entries(base: Files, head: Files, main: Files) -> tuple[list[EntryFolder], list[str]]:
    """Return the entries that a pull request adds, and its faults, from names, sizes and hashes of files alone.

    Without a fault, the entries may be fetched.

    Args:
        base: files of the commit that it branched off from.
        head: files of its last commit.
        main: files of the branch main now; it may already contain an entry with the same files.
    """
    reasons = [
        f"it {'changes' if path in head else 'deletes'} {as_code(path)}; nothing is ever replaced or deleted here"
        for path in base
        if path not in head or head[path].digest != base[path].digest
    ]
    added = {path: file for path, file in head.items() if path not in base}
    for path in added:
        parts = parse_path(path)
        too_long = part_problem(path)
        if too_long is not None:
            reasons.append(f"a part of the path {as_code(path)} is too long: {too_long}")
        elif parts is None or parts.file is None:
            reasons.append(f"{as_code(path)} is not a file of an entry, results/<model>/<revision>/<task>-<id>/…")
        elif parts.kind != "results":
            reasons.append(f"it adds {as_code(path)}; only the checker writes to verified/")
    entries = folders_of(added)[0]
    if len(entries) > MAX_ENTRIES:
        reasons.append(f"it adds {len(entries):,} entries; at most {MAX_ENTRIES} can be in one pull request")
        return [], reasons
    before, there = folders_of(base)[0], folders_of(main)[0]
    for key, entry in entries.items():
        if key in before or (key in there and _digests(there[key]) != _digests(entry)):
            reasons.append(f"{as_code(entry.path)} exists already")
        try:
            entry.check()
        except ResultError as error:
            reasons.append(f"{as_code(entry.path)}: {as_code(error)}")
    if not entries and not reasons:
        reasons.append("it adds nothing")
    return list(entries.values()), reasons


def scores_in_markdown(verifications: Iterable[Verification]) -> str:
    """Return the recomputed and the reported scores, as a list in Markdown."""
    lines = []
    for one in verifications:
        if one.recomputed is None:
            continue
        info, model = load_task(one.result.task).info, one.result.model
        interval = interval_phrase(one.recomputed.intervals.get(info.score.name))
        lines.append(
            f"- {info.title} of {as_code(model.id)}, revision {as_code(model.revision)}: recomputed "
            f"{number_text(one.recomputed.score, 6)}, reported {number_text(one.result.score, 6)}{interval}"
        )
    return "\n".join(lines)


def _paths(main: Files) -> set[str]:
    """Return the folders of the entries of main."""
    return {folder.path for folder in folders_of(main)[0].values()}


def _listed(reasons: Sequence[str]) -> str:
    more = [f"and {len(reasons) - MAX_REASONS:,} more"] if len(reasons) > MAX_REASONS else []
    return "\n".join(f"- {reason}" for reason in [*reasons[:MAX_REASONS], *more])


def _named(result: Result) -> str:
    return f"{result.task} of {shortened(result.model.id, 150)}"


def _digests(folder: EntryFolder) -> dict[str, str]:
    return {name: file.digest for name, file in folder.files.items()}


def _guarded(subject: str, check: Callable[[], CheckOutcome]) -> CheckOutcome:
    try:
        return check()
    except HubError as error:
        return CheckOutcome(subject, "failed", (str(error),))
    except Exception:
        # No error of a third party's pull request may block the others.
        _log.exception("the check of %s failed", subject)
        return CheckOutcome(subject, "failed", ("an unexpected error; see the log",))


def _line(text: object) -> str:
    return shortened(str(text), 300)


# ----- Time that the checker spends on each author


AUTHOR_SECONDS = 2 * 3_600.0
"""Seconds of checks for one author within `AUTHOR_WINDOW`; an entry in progress is finished."""

AUTHOR_WINDOW = 24 * 3_600.0


class Budget:
    """Seconds of checks by author, in memory: a restarted Space begins at zero."""

    def __init__(
        self,
        seconds: float = AUTHOR_SECONDS,
        window: float = AUTHOR_WINDOW,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with no time spent.

        Args:
            seconds: most seconds for each author within a window.
            window: seconds after which spent time no longer counts.
            clock: returns the time in seconds.
        """
        self._seconds = seconds
        self._window = window
        self._clock = clock
        self._used: dict[str, deque[tuple[float, float]]] = {}

    def is_spent(self, author: str) -> bool:
        """Whether the time of an author is used up."""
        used = self._used.get(author, deque())
        while used and used[0][0] < self._clock() - self._window:
            used.popleft()
        return sum(seconds for _, seconds in used) >= self._seconds

    @contextmanager
    def spending(self, author: str) -> Iterator[None]:
        """Count the time inside the context as the author's."""
        started = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self._used.setdefault(author, deque()).append((ended, ended - started))


# ----- The thread of the Space that runs the rounds


INTERVAL = 300.0
"""Seconds between two rounds."""

MOST_TOLD = 20
"""Most lines about the rounds."""


class Checker:
    """Rounds of checks in a thread of its own; errors are logged and reported, and do not end it."""

    def __init__(
        self, checks: Checks, changed: Callable[[], object] = lambda: None, interval: float = INTERVAL
    ) -> None:
        """Prepare the thread; `start` begins the rounds.

        Args:
            checks: the checks of a repository of results.
            changed: called after a round that has added or verified an entry.
            interval: seconds between two rounds.
        """
        self._checks = checks
        self._changed = changed
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pull-requests", daemon=True)
        self._state = "No round has ended yet."
        self._not_verified: dict[str, CheckOutcome] = {}
        # Time of the next look for new commits of checked pull requests.
        self._next = 0.0

    def start(self) -> None:
        """Begin with the first round."""
        self._thread.start()

    def stop(self) -> None:
        """Wait for the round in progress, and end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def state(self) -> str:
        """Return the time and outcome of the last round, in words."""
        return self._state

    def round(self) -> list[CheckOutcome]:
        """Run one round: verify one unverified entry of main, then check one entry per author.

        If more remains, the next round starts at once. New commits of checked pull requests are looked for once per
        interval.

        Raises:
            HubError: the Hub cannot be read or written.
        """
        try:
            merged = self._checks.verify_merged(most=1)
        except HubError as error:
            # The pull requests are checked nevertheless.
            merged = [CheckOutcome("main", "failed", (str(error),))]
        self._not_verified |= {outcome.subject: outcome for outcome in merged if outcome.action in ("refused", "left")}
        again = time.monotonic() >= self._next
        if again:
            self._next = time.monotonic() + self._interval
        return [*merged, *self._checks.check_pull_requests(again=again)]

    def _run(self) -> None:
        while not self._stop.is_set():
            pause = self._interval
            try:
                outcomes = self.round()
                lines = [shortened(str(outcome), 300) for outcome in outcomes] or ["no pull request is open"]
                if self._checks.goes_on:
                    pause = 0.0
                if any(outcome.action in ("added", "verified") for outcome in outcomes):
                    self._changed()
            except HubError as error:
                lines = [f"the Hub cannot be used: {shortened(str(error), 300)}"]
            except Exception:
                _log.exception("a round of checks failed")
                lines = ["the round failed; see the log of this Space"]
            for line in lines:
                _log.info("%s", line)
            kept = "\n".join([*lines[:MOST_TOLD], *(["…"] if len(lines) > MOST_TOLD else [])])
            left = [shortened(str(outcome), 300) for outcome in self._not_verified.values()][:MOST_TOLD]
            not_verified = "\n".join(["", "On main, but not verified:", *left]) if left else ""
            self._state = f"Last round {datetime.now(UTC):%Y-%m-%d %H:%M} UTC:\n{kept}{not_verified}"
            self._stop.wait(pause)
