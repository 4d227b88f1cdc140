"""The check of pull requests on the results repository: recompute, add valid entries, report faults of the rest.

A pull request is a stranger's. It may only add complete entries, under the names that follow from their content; sizes
are known before anything is fetched, and the code of `audio-compositionality verify` reads the files. It is
never merged, since it could change in that moment: the checked bytes are committed together with the
record, and the pull request is closed. The checker reports in a comment, whose last line names the commit, so
that no commit is checked twice. A folder below ``verified/`` is only ever written here.

In a round one entry of each author is checked: ten entries of one author delay the others by one. A pull request with
more goes on in the next round; its outcomes until then are kept in memory, and nothing is added before all of it is
checked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.copies import Earlier
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

from .board import Files
from .examination import (
    CheckClaim,
    Examined,
    Examiner,
    LeftError,
    Recompute,
    as_code,
    check_claim_in_own_process,
    recompute_in_own_process,
)

MAX_CHECKS = 20
"""Most pull requests with an entry checked in a round, each of another author."""

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
            since it is a draft, has changed meanwhile or has its turn later, or ``failed`` for reasons outside
            of it.
        reasons: in words; empty where the action says it all.
    """

    subject: str
    action: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject}: {self.action}" + "".join(f"; {reason}" for reason in self.reasons)


@dataclass(frozen=True)
class _Job:
    """A pull request whose entries are being checked.

    Attributes:
        author: of the pull request.
        head: the commit under check.
        entries: all entries that it adds.
        wanted: the entries that main lacked.
        examined: the recomputed ones among these, in their order.
        left: reasons for a decision of the maintainers on some.
        reasons: faults of others.
        checked: number of checked entries of `wanted`.
    """

    author: str
    head: str
    entries: tuple[EntryFolder, ...]
    wanted: tuple[EntryFolder, ...]
    examined: tuple[Examined, ...] = ()
    left: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    checked: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all entries were checked."""
        return self.checked == len(self.wanted)

    @property
    def progress(self) -> str:
        """Progress in words."""
        return f"{self.checked} of {len(self.wanted)} entries checked"


class Checks:
    """The checks of an organisation's results. Settled cases are remembered, and not looked up again."""

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
        """Nothing is checked yet.

        Args:
            hub: with a token that may write to the repository of results.
            org: the organisation.
            secret: for signing the records of verified entries.
            device: torch device of fits.
            recompute: recomputes an entry.
            check_claim: checks an entry that cannot be recomputed.
            budget: time for each author.
        """
        self._hub = hub
        self._repository = results_of(org)
        self._secret = secret
        self._examiner = Examiner(hub, self._repository, secret, device, recompute, check_claim)
        self._budget = budget or Budget()
        # Verified entries of main, by their folders, which are derived from their content.
        self._recognised: dict[str, Earlier] = {}
        # The checked commit of each open pull request, or none; those looked at longest ago come first.
        self._heads: dict[int, str] = {}
        self._settled: set[str] = set()
        # Number of failed checks of each entry of main.
        self._failures = Counter[str]()
        # Unfinished pull requests by number, and those among them that go on.
        self._jobs: dict[int, _Job] = {}
        self._going_on: set[int] = set()
        self._main_goes_on = False

    @property
    def goes_on(self) -> bool:
        """Whether there is more to check at once, in main or in pull requests whose authors have time left."""
        return self._main_goes_on or any(
            not self._budget.is_spent(self._jobs[number].author) for number in self._going_on
        )

    def check_pull_requests(self, *, again: bool = True) -> list[CheckOutcome]:
        """Check entries of open pull requests whose head is unchecked: one for each author, and `MAX_CHECKS` in
        all.

        Args:
            again: also look for new commits of checked pull requests.

        Returns:
            one outcome per open pull request, the oldest first. Trouble with one is its outcome, and the next is
            checked.

        Raises:
            HubError: the pull requests, or the commits of main, cannot be listed.
        """
        requests = {request.number: request for request in self._hub.pull_requests(self._repository)}
        user = self._hub.user()
        history = set(self._hub.commits(self._repository)) if requests else set()
        self._heads = {number: head for number, head in self._heads.items() if number in requests}
        self._jobs = {number: job for number, job in self._jobs.items() if number in requests}
        # An author's unfinished pull request comes before another of the same author.
        self._going_on &= set(self._jobs)
        begun = {self._jobs[number].author: number for number in self._going_on}
        outcomes: dict[int, CheckOutcome] = {}
        looks, busy = 0, set[str]()
        for number in [*(number for number in requests if number not in self._heads), *self._heads]:
            request, subject = requests[number], f"#{number}"
            if self._heads.get(number) and not again:
                outcomes[number] = CheckOutcome(subject, "checked")
                continue
            # No call to the Hub for authors that wait: hundreds of their pull requests delay nobody else.
            if self._budget.is_spent(request.author):
                far = [self._jobs[number].progress] if number in self._jobs else []
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
        """Verify the entries of main without a valid verification: the maintainers' own additions.

        Args:
            most: most entries recomputed now; by default all.

        Returns:
            one outcome per entry that was not settled before. Trouble with one is its outcome, and the next is
            verified.

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
        """Decide whether to check a pull request; its author is busy then."""
        subject, number = f"#{request.number}", request.number
        self._heads[number] = self._heads.pop(number, "")
        self._going_on.discard(number)
        head = self._hub.head(self._repository, request.revision)
        if self._heads[number] == head:
            return CheckOutcome(subject, "checked")
        marker = f"\n{_MARKER.format(head=head)}"
        said = [comment.text for comment in self._hub.comments(self._repository, number) if comment.author == user]
        said = [text for text in said if text.rstrip().endswith(marker)]
        if any(text.startswith(_ADDED) for text in said):
            # The checker was killed before it could close it.
            self._hub.close(self._repository, number)
            return CheckOutcome(subject, "added")
        if said:
            outcome = CheckOutcome(subject, "checked")
        elif self._hub.status(self._repository, number) != "open":
            return CheckOutcome(subject, "waiting", ("it is a draft",))
        else:
            busy.add(request.author)
            with self._budget.spending(request.author):
                outcome = self._check(request, head, history)
            if number in self._going_on:
                self._tell_progress(request, self._jobs[number])
        if outcome.action != "waiting":
            self._heads[number] = head
            self._jobs.pop(number, None)
        return outcome

    def _check(self, request: PullRequest, head: str, history: Collection[str]) -> CheckOutcome:
        hub, repository, subject = self._hub, self._repository, f"#{request.number}"
        marker = _MARKER.format(head=head)

        def say(*parts: str) -> None:
            hub.comment(repository, request.number, "\n\n".join([part for part in parts if part] + [marker]))

        def refuse(reasons: Sequence[str]) -> CheckOutcome:
            advice = "Push a commit that fixes it; it will be checked again automatically."
            say("This cannot be added as it is:", _listed(reasons), advice)
            return CheckOutcome(subject, "refused", tuple(reasons))

        job = self._jobs.get(request.number)
        if job is None or job.head != head:
            job, problems = self._begun(request, head, history)
            if problems:
                return refuse(problems)
            self._jobs[request.number] = job
        if not job.is_done:
            job = self._jobs[request.number] = self._with_next(job)
        if not job.is_done:
            self._going_on.add(request.number)
            return CheckOutcome(subject, "waiting", (f"{job.progress}, goes on in the next round",))
        if job.reasons:
            return refuse(job.reasons)
        main = self._hub.head(repository)
        examined, left, present = self._without_copies(job, main)
        numbers = figures(one.verification for one in examined)
        if left:
            text = "Maintainers decide about this. The checker verifies the entries that they merge, where it can."
            say(text, _listed(left), numbers)
            return CheckOutcome(subject, "left", tuple(left))
        if hub.head(repository, request.revision) != head or hub.status(repository, request.number) != "open":
            return CheckOutcome(subject, "waiting", ("it changed during the check",))
        by = f"(#{request.number} by {shortened(request.author, 100)})"
        commits = [
            self._add(f"Add {_named(one.verification.result)} {by}", one.verification, one, request, head)
            for one in examined
        ]
        links = ", ".join(f"[{commit.oid[:8]}]({commit.url})" for commit in commits)
        say(
            f"{_ADDED} in {links}." if commits else f"{_ADDED} before.",
            numbers,
            _listed(
                [
                    f"{as_code(one.folder)} is a reproduction: {as_code(one.reproduces)}"
                    for one in examined
                    if one.reproduces is not None
                ]
            ),
            _listed([f"{as_code(entry.path)} existed already" for entry in job.entries if entry.path in present]),
            "Entries are committed as they were checked; the pull request is closed, not merged.",
        )
        hub.close(repository, request.number)
        return CheckOutcome(subject, "added")

    def _begun(self, request: PullRequest, head: str, history: Collection[str]) -> tuple[_Job, list[str]]:
        """The job of a pull request, or the reasons against one."""
        hub, repository = self._hub, self._repository
        base = next((commit for commit in hub.commits(repository, request.revision) if commit in history), None)
        if base is None:
            return _Job(request.author, head, (), ()), ["its history has no commit in common with main"]
        main = hub.files(repository, hub.head(repository))
        entries, reasons = new_entries(hub.files(repository, base), hub.files(repository, head), main)
        present = _paths(main)
        wanted = tuple(entry for entry in entries if entry.path not in present)
        return _Job(request.author, head, tuple(entries), wanted), reasons

    def _with_next(self, job: _Job) -> _Job:
        """The job with one more entry checked."""
        entry, after = job.wanted[job.checked], replace(job, checked=job.checked + 1)
        try:
            one = self._examiner.examine(job.head, entry)
            problems = [f"{as_code(entry.path)}: {as_code(problem)}" for problem in one.verification.problems]
            return replace(after, examined=(*job.examined, one), reasons=(*job.reasons, *problems))
        except LeftError as error:
            return replace(after, left=(*job.left, f"{as_code(entry.path)}: {error}"))
        except HubError:
            raise
        except AudioCompositionalityError as error:
            return replace(after, reasons=(*job.reasons, f"{as_code(entry.path)}: {as_code(error)}"))

    def _without_copies(self, job: _Job, commit: str) -> tuple[list[Examined], list[str], set[str]]:
        """The entries of a job that main still lacks and that are no copies; reasons for a decision of the maintainers
        about others; and the folders of main.

        They are compared when all are checked: main may have received their originals meanwhile.
        """
        main = self._hub.files(self._repository, commit)
        earlier, present = self._earlier(commit, main), _paths(main)
        examined, left = list[Examined](), list(job.left)
        for one in job.examined:
            if one.folder not in present:
                try:
                    before = [*earlier, *filter(None, (other.earlier for other in examined))]
                    examined.append(self._examiner.compared(one, before))
                except LeftError as error:
                    left.append(f"{as_code(one.folder)}: {error}")
        return examined, left, present

    def _tell_progress(self, request: PullRequest, job: _Job) -> None:
        """Comment on the progress of a pull request: at first, and when its author has no time left."""
        spent = self._budget.is_spent(job.author)
        if spent or job.checked == 1:
            when = f"goes on when there is time again: {_SPENT}" if spent else "goes on in the next round"
            text = f"{job.progress} of commit {job.head[:8]}; {when}."
            self._hub.comment(self._repository, request.number, text)

    def _earlier(self, commit: str, main: Files) -> list[Earlier]:
        """All verified entries of main, for comparison."""
        results, verified, _ = folders_of(main)
        for key, entry in results.items():
            if key in verified and entry.is_verifiable and entry.path not in self._recognised:
                checked = self._examiner.verified(commit, entry, verified[key])
                if checked is not None:
                    result, record = checked.result, checked.record
                    self._recognised[entry.path] = Earlier(
                        entry.path, result.task, result.model, record.date, record.sketch
                    )
        return list(self._recognised.values())

    def _merged(self, commit: str, entry: EntryFolder, verified: EntryFolder | None) -> CheckOutcome:
        """Verify an entry of main."""
        if verified is not None and self._examiner.verified(commit, entry, verified) is not None:
            return CheckOutcome(entry.path, "checked")
        try:
            entry.check()
            verification = self._examiner.examine(commit, entry, keep=True).verification
        except LeftError as error:
            return CheckOutcome(entry.path, "left", (str(error),))
        except HubError:
            raise
        except AudioCompositionalityError as error:
            return CheckOutcome(entry.path, "refused", (_line(error),))
        if verification.problems:
            return CheckOutcome(entry.path, "refused", tuple(map(_line, verification.problems)))
        self._add(f"Verify {_named(verification.result)}", verification)
        return CheckOutcome(entry.path, "verified")

    def _add(
        self,
        message: str,
        verification: Verification,
        examined: Examined | None = None,
        request: PullRequest | None = None,
        head: str = "",
    ) -> Commit:
        """Commit a verification, with the files of the entry where main lacks them, as they were at a head."""
        submitter = None if request is None else request.author
        date = None if examined is None else examined.date
        first = None if examined is None or examined.reproduces is None else examined.reproduces.earlier.name
        signed = verification_files(verification, secret=self._secret, submitter=submitter, date=date, reproduces=first)
        folders = {verification_folder(verification): signed}
        if examined is not None:
            folders[examined.folder] = self._examiner.files(head, examined)
        files = {f"{folder}/{name}": content for folder, held in folders.items() for name, content in held.items()}
        return self._hub.commit(self._repository, files, message)


def new_entries(base: Files, head: Files, main: Files) -> tuple[list[EntryFolder], list[str]]:
    """The entries that a pull request adds, and the faults, from names, sizes and hashes of files alone.

    Args:
        base: files of the commit that it branched off from.
        head: files of its last commit.
        main: files of the branch main now; entries that it has with the same files are no obstacle.

    Returns:
        the entries, and the faults; without a fault the entries may be fetched.
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


def figures(verifications: Iterable[Verification]) -> str:
    """The recomputed scores beside the reported ones, as a list in Markdown."""
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
    """The folders of the entries of main."""
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
        # No error of a stranger's pull request may block the others.
        _log.exception("the check of %s failed", subject)
        return CheckOutcome(subject, "failed", ("an unexpected error, which the log has",))


def _line(text: object) -> str:
    return shortened(str(text), 300)


# ----- Each author's time of the checker


AUTHOR_SECONDS = 2 * 3_600.0
"""Seconds of checks for one author within `AUTHOR_WINDOW`; an entry in progress is finished."""

AUTHOR_WINDOW = 24 * 3_600.0


class Budget:
    """Seconds of checks by author. They are kept in memory: a restarted Space begins at zero."""

    def __init__(
        self,
        seconds: float = AUTHOR_SECONDS,
        window: float = AUTHOR_WINDOW,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """No time is spent yet.

        Args:
            seconds: for each author within a window.
            window: seconds after which spent time no longer counts.
            clock: gives the time in seconds.
        """
        self._seconds = seconds
        self._window = window
        self._clock = clock
        self._used: dict[str, deque[tuple[float, float]]] = {}

    def is_spent(self, author: str) -> bool:
        """Whether an author has to wait."""
        used = self._used.get(author, deque())
        while used and used[0][0] < self._clock() - self._window:
            used.popleft()
        return sum(seconds for _, seconds in used) >= self._seconds

    @contextmanager
    def spending(self, author: str) -> Iterator[None]:
        """Count the time within as the author's."""
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
    """Checks in a thread of its own; trouble is logged and reported, and ends nothing."""

    def __init__(
        self, checks: Checks, changed: Callable[[], object] = lambda: None, interval: float = INTERVAL
    ) -> None:
        """Nothing is checked yet.

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
        # Seconds until the next round.
        self._pause = interval

    def start(self) -> None:
        """Begin; the first round is now."""
        self._thread.start()

    def stop(self) -> None:
        """End after the round in progress."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def state(self) -> str:
        """Time and outcome of the last round."""
        return self._state

    def round(self) -> list[CheckOutcome]:
        """One round: an entry that main has without a verification, then one of each author's pull requests.

        Where there is more, the next round is at once; new commits of checked pull requests are looked for in rounds
        that are an interval apart.

        Raises:
            HubError: the Hub cannot be read or written.
        """
        try:
            merged = self._checks.verify_merged(most=1)
        except HubError as error:
            # No reason to delay the pull requests.
            merged = [CheckOutcome("main", "failed", (str(error),))]
        self._not_verified |= {outcome.subject: outcome for outcome in merged if outcome.action in ("refused", "left")}
        again = time.monotonic() >= self._next
        if again:
            self._next = time.monotonic() + self._interval
        return [*merged, *self._checks.check_pull_requests(again=again)]

    def _run(self) -> None:
        while not self._stop.is_set():
            lines = self._lines()
            for line in lines:
                _log.info("%s", line)
            kept = "\n".join([*lines[:MOST_TOLD], *(["…"] if len(lines) > MOST_TOLD else [])])
            left = [shortened(str(outcome), 300) for outcome in self._not_verified.values()][:MOST_TOLD]
            not_verified = "\n".join(["", "On main, and not verified:", *left]) if left else ""
            self._state = f"Last round {datetime.now(UTC):%Y-%m-%d %H:%M} UTC:\n{kept}{not_verified}"
            self._stop.wait(self._pause)

    def _lines(self) -> list[str]:
        """The report of a round; runs the round."""
        self._pause = self._interval
        try:
            outcomes = self.round()
            if self._checks.goes_on:
                self._pause = 0.0
        except HubError as error:
            return [f"the Hub cannot be used: {shortened(str(error), 300)}"]
        except Exception:
            _log.exception("a round of checks failed")
            return ["the round failed; the log of this Space says why"]
        if any(outcome.action in ("added", "verified") for outcome in outcomes):
            self._changed()
        return [shortened(str(outcome), 300) for outcome in outcomes] or ["no pull request is open"]
