"""The check of pull requests on the results repository: recompute, add what holds, say what is wrong with the rest.

A pull request is a stranger's. It may only add whole entries, under the names that their content gives them; sizes are
known before anything is fetched, and what is fetched is read by the code of `audio-compositionality verify`. It is
never merged, since it could change in that moment: the bytes that were checked are committed together with what was
found, and the pull request is closed. The checker says what it found in a comment, whose last line names the commit, so
that no commit is checked twice. A folder below ``verified/`` is only ever written here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.copies import Earlier
from audio_compositionality.evaluator.submissions.record import verification_files, verification_folder
from audio_compositionality.evaluator.submissions.submission_files import MAX_ENTRIES, OUTPUTS, parse_path
from audio_compositionality.evaluator.submissions.verification import Verification
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Commit, PullRequest
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import results_of
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.registry import load_task

from .budget import Budget
from .examination import Examined, Examiner, LeftError, Recompute, quoted, recompute_in_own_process
from .reading import Files, Folder, folders_of

MAX_CHECKS = 20
"""Pull requests that are checked in a round, each of another author."""

MAX_LOOKS = 200
"""Pull requests that are looked at in a round: the Hub allows so many calls."""

MAX_REASONS = 20
"""Reasons that a comment lists."""

_MARKER = "<!-- audio-compositionality: checked {head} -->"
_ADDED = "Added to main"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What became of a pull request, or of an entry that main has.

    Attributes:
        subject: ``#3``, or the folder of an entry.
        action: ``added``, ``verified``, ``refused``, ``left`` to the maintainers, ``checked`` before, ``waiting``
            since it is a draft, has changed meanwhile or has its turn later, or ``failed`` for reasons that are not
            its own.
        reasons: in words; empty where it says all.
    """

    subject: str
    action: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.subject}: {self.action}" + "".join(f"; {reason}" for reason in self.reasons)


class Checks:
    """The checks of the results of an organisation. What is settled is remembered, and not asked for again."""

    def __init__(
        self,
        hub: Hub,
        org: str,
        secret: str,
        *,
        device: str | None = None,
        recompute: Recompute = recompute_in_own_process,
        budget: Budget | None = None,
    ) -> None:
        """Nothing is checked yet.

        Args:
            hub: as a user who may write to the repository of results.
            org: whose results.
            secret: signs the records of what was verified.
            device: torch device of fits.
            recompute: recomputes an entry.
            budget: of time for each author.
        """
        self._hub = hub
        self._repository = results_of(org)
        self._secret = secret
        self._examiner = Examiner(hub, self._repository, secret, device, recompute)
        self._budget = budget or Budget()
        # Of the verified entries of main, by their folders, which are made of their content.
        self._recognised: dict[str, Earlier] = {}
        # Of open pull requests the commit that was checked, or none; those looked at longest ago come first.
        self._heads: dict[int, str] = {}
        self._settled: set[str] = set()

    def check_pull_requests(self) -> list[Outcome]:
        """Check open pull requests whose head was not checked yet: of each author one, and `MAX_CHECKS` in all.

        Returns:
            one an open pull request, the oldest first. Trouble with one ends in its outcome, and the next is checked.

        Raises:
            HubError: the pull requests, or the commits of main, cannot be listed.
        """
        requests = {request.number: request for request in self._hub.pull_requests(self._repository)}
        user = self._hub.user()
        history = set(self._hub.commits(self._repository)) if requests else set()
        self._heads = {number: head for number, head in self._heads.items() if number in requests}
        outcomes: dict[int, Outcome] = {}
        busy: set[str] = set()
        for number in [*(number for number in requests if number not in self._heads), *self._heads]:
            request, subject = requests[number], f"#{number}"
            if len(outcomes) >= MAX_LOOKS or len(busy) >= MAX_CHECKS or request.author in busy:
                continue
            if self._budget.is_spent(request.author):
                outcomes[number] = Outcome(subject, "waiting", ("the checks of its author have taken long today",))
                continue
            outcomes[number] = _guarded(subject, partial(self._look, request, user, history, busy))
        later = "its turn is in a later round"
        return [outcomes.get(number, Outcome(f"#{number}", "waiting", (later,))) for number in requests]

    def verify_merged(self) -> list[Outcome]:
        """Verify the entries of main that can be verified and have no valid verification: those that maintainers add.

        Returns:
            one an entry that was not settled before. Trouble with one ends in its outcome, and the next is verified.

        Raises:
            HubError: the files of main cannot be listed.
        """
        commit = self._hub.head(self._repository)
        results, verified, _ = folders_of(self._hub.files(self._repository, commit))
        outcomes = []
        for key, entry in sorted(results.items()):
            if _is_verifiable(entry) and entry.path not in self._settled:
                outcome = _guarded(entry.path, partial(self._merged, commit, entry, verified.get(key)))
                if outcome.action != "failed":
                    self._settled.add(entry.path)
                if outcome.action != "checked":
                    outcomes.append(outcome)
        return outcomes

    def _look(self, request: PullRequest, user: str, history: Collection[str], busy: set[str]) -> Outcome:
        """See whether a pull request is to be checked; its author is busy then."""
        subject, number = f"#{request.number}", request.number
        self._heads[number] = self._heads.pop(number, "")
        head = self._hub.head(self._repository, request.revision)
        if self._heads[number] == head:
            return Outcome(subject, "checked")
        marker = f"\n{_MARKER.format(head=head)}"
        said = [comment.text for comment in self._hub.comments(self._repository, number) if comment.author == user]
        said = [text for text in said if text.rstrip().endswith(marker)]
        if any(text.startswith(_ADDED) for text in said):
            # The checker was killed before it could.
            self._hub.close(self._repository, number)
            return Outcome(subject, "added")
        if said:
            outcome = Outcome(subject, "checked")
        elif self._hub.status(self._repository, number) != "open":
            return Outcome(subject, "waiting", ("it is a draft",))
        else:
            busy.add(request.author)
            with self._budget.spending(request.author):
                outcome = self._check(request, head, history)
        if outcome.action != "waiting":
            self._heads[number] = head
        return outcome

    def _check(self, request: PullRequest, head: str, history: Collection[str]) -> Outcome:
        hub, repository, subject = self._hub, self._repository, f"#{request.number}"
        marker = _MARKER.format(head=head)

        def say(*parts: str) -> None:
            hub.comment(repository, request.number, "\n\n".join([part for part in parts if part] + [marker]))

        def refuse(reasons: Sequence[str]) -> Outcome:
            advice = "Push a commit that mends it: it is checked again by itself."
            say("This cannot be added as it is:", _listed(reasons), advice)
            return Outcome(subject, "refused", tuple(reasons))

        base = next((commit for commit in hub.commits(repository, request.revision) if commit in history), None)
        if base is None:
            return refuse(["its history has no commit in common with main"])
        before = hub.head(repository)
        main = hub.files(repository, before)
        entries, reasons = new_entries(hub.files(repository, base), hub.files(repository, head), main)
        if reasons:
            return refuse(reasons)
        present = {folder.path for folder in folders_of(main)[0].values()}
        wanted = [entry for entry in entries if entry.path not in present]
        examined, left, reasons = self._examined(head, wanted, self._earlier(before, main))
        if reasons:
            return refuse(reasons)
        numbers = figures(one.verification for one in examined)
        if left:
            text = "Maintainers decide about this. What they merge is verified by the checker, where it can be."
            say(text, _listed(left), numbers)
            return Outcome(subject, "left", tuple(left))
        if hub.head(repository, request.revision) != head or hub.status(repository, request.number) != "open":
            return Outcome(subject, "waiting", ("it has changed while it was checked",))
        by = f"(#{request.number} by {shortened(request.author, 100)})"
        commits = [
            self._add(f"Add {_named(one.verification.result)} {by}", one.verification, one, request) for one in examined
        ]
        links = ", ".join(f"[{commit.oid[:8]}]({commit.url})" for commit in commits)
        say(
            f"{_ADDED} in {links}." if commits else f"{_ADDED} before.",
            numbers,
            _listed([one.reproduces for one in examined if one.reproduces]),
            _listed([f"{quoted(entry.path)} was there already" for entry in entries if entry.path in present]),
            "Entries are committed as they were checked; the pull request is closed, not merged.",
        )
        hub.close(repository, request.number)
        return Outcome(subject, "added")

    def _examined(
        self, head: str, entries: Sequence[Folder], earlier: Sequence[Earlier]
    ) -> tuple[list[Examined], list[str], list[str]]:
        """Entries that were recomputed, why maintainers have to decide about some, and what is wrong with others."""
        examined: list[Examined] = []
        left, reasons = [], []
        for entry in entries:
            try:
                one = self._examiner.examine(head, entry)
                problems = one.verification.problems
                reasons += [f"{quoted(entry.path)}: {quoted(problem)}" for problem in problems]
                if not problems:
                    before = [*earlier, *filter(None, (other.earlier for other in examined))]
                    one = self._examiner.compared(one, before)
                examined.append(one)
            except LeftError as error:
                left.append(f"{quoted(entry.path)}: {error}")
            except HubError:
                raise
            except AudioCompositionalityError as error:
                reasons.append(f"{quoted(entry.path)}: {quoted(error)}")
        return examined, left, reasons

    def _earlier(self, commit: str, main: Files) -> list[Earlier]:
        """What the entries of main are recognised by, of all that are verified."""
        results, verified, _ = folders_of(main)
        for key, entry in results.items():
            if key in verified and _is_verifiable(entry) and entry.path not in self._recognised:
                checked = self._examiner.verified(commit, entry, verified[key])
                if checked is not None:
                    record, result = checked
                    model, date = result.model, record.date
                    self._recognised[entry.path] = Earlier(entry.path, result.task, model, date, record.sketch)
        return list(self._recognised.values())

    def _merged(self, commit: str, entry: Folder, verified: Folder | None) -> Outcome:
        """Verify an entry of main."""
        if verified is not None and self._examiner.verified(commit, entry, verified) is not None:
            return Outcome(entry.path, "checked")
        try:
            entry.check()
            verification = self._examiner.examine(commit, entry, keep=True).verification
        except LeftError as error:
            return Outcome(entry.path, "left", (str(error),))
        except HubError:
            raise
        except AudioCompositionalityError as error:
            return Outcome(entry.path, "refused", (_line(error),))
        if verification.problems:
            return Outcome(entry.path, "refused", tuple(map(_line, verification.problems)))
        self._add(f"Verify {_named(verification.result)}", verification)
        return Outcome(entry.path, "verified")

    def _add(
        self,
        message: str,
        verification: Verification,
        examined: Examined | None = None,
        request: PullRequest | None = None,
    ) -> Commit:
        """Commit what was found, with the files of the entry where main does not have them."""
        submitter = None if request is None else request.author
        date = None if examined is None else examined.date
        signed = verification_files(verification, secret=self._secret, submitter=submitter, date=date)
        folders = {verification_folder(verification): signed}
        if examined is not None:
            folders[examined.folder] = dict(examined.files)
        files = {f"{folder}/{name}": content for folder, held in folders.items() for name, content in held.items()}
        return self._hub.commit(self._repository, files, message)


def new_entries(base: Files, head: Files, main: Files) -> tuple[list[Folder], list[str]]:
    """What a pull request adds, and why that cannot be, from the names, sizes and hashes of files alone.

    Args:
        base: files of the commit that it began at.
        head: files of its last commit.
        main: files of the branch main as it is now; entries that it has with the same files are no obstacle.

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
            reasons.append(f"{quoted(path)} is no file of an entry, results/<model>/<revision>/<task>-<id>/…")
        elif parts.kind != "results":
            reasons.append(f"it adds {quoted(path)}; only the checker writes to verified/")
    entries = folders_of(added)[0]
    if len(entries) > MAX_ENTRIES:
        reasons.append(f"it adds {len(entries):,} entries; at most {MAX_ENTRIES} can be in one pull request")
        return [], reasons
    before, there = folders_of(base)[0], folders_of(main)[0]
    for key, entry in entries.items():
        if key in before or (key in there and _digests(there[key]) != _digests(entry)):
            reasons.append(f"{quoted(entry.path)} is there already")
        try:
            entry.check()
        except ResultError as error:
            reasons.append(f"{quoted(entry.path)}: {quoted(error)}")
    if not entries and not reasons:
        reasons.append("it adds nothing")
    return list(entries.values()), reasons


def figures(verifications: Iterable[Verification]) -> str:
    """The recomputed scores beside those that were reported, as a list in Markdown."""
    lines = []
    for one in verifications:
        if one.recomputed is None:
            continue
        info, model = load_task(one.result.task).info, one.result.model
        ends = one.recomputed.intervals.get(info.score.name)
        interval = "" if ends is None else f", 95 % interval {ends[0]:.4f} to {ends[1]:.4f}"
        lines.append(
            f"- {info.title} of {quoted(model.id)}, revision {quoted(model.revision)}: recomputed "
            f"{number_text(one.recomputed.score, 6)}, reported {number_text(one.result.score, 6)}{interval}"
        )
    return "\n".join(lines)


def _is_verifiable(entry: Folder) -> bool:
    """Whether it has what scores can be computed of; what else is wrong with it is not looked at."""
    return any(name in entry.files for name in OUTPUTS)


def _listed(reasons: Sequence[str]) -> str:
    more = [f"and {len(reasons) - MAX_REASONS:,} more"] if len(reasons) > MAX_REASONS else []
    return "\n".join(f"- {reason}" for reason in [*reasons[:MAX_REASONS], *more])


def _named(result: Result) -> str:
    return f"{result.task} of {shortened(result.model.id, 150)}"


def _digests(folder: Folder) -> dict[str, str]:
    return {name: file.digest for name, file in folder.files.items()}


def _guarded(subject: str, check: Callable[[], Outcome]) -> Outcome:
    try:
        return check()
    except HubError as error:
        return Outcome(subject, "failed", (str(error),))
    except Exception:
        # Nothing of a stranger's may keep the others from being checked.
        _log.exception("the check of %s failed", subject)
        return Outcome(subject, "failed", ("an unexpected error, which the log has",))


def _line(text: object) -> str:
    return shortened(str(text), 300)
