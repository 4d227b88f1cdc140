"""What the leaderboard shows: the entries of the results repository at one commit, and what could not be read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from audio_compositionality.evaluator.results.result import TASKS, Result

VERIFIED, REPORTED = "verified", "reported"
"""The statuses: recomputed from the submitted embeddings by the checker, or the submitter's word."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Entry:
    """One submitted result.

    Attributes:
        folder: in the results repository, ``results/<encoder>/<revision>/<task>-<id>``.
        result: what is shown: of a verified entry what the checker computed, of another what was reported.
        reported: what was reported.
        interval: 95 % interval of the mean score of `result`.
        interval_kind: how it was computed.
        verified_on: when the checker computed `result`, ISO 8601; None of a reported entry.
        samples: path in the repository of the samples of `result`.
        has_embeddings: whether the submission can be verified.
        submitter: who submitted it, by the record of the checker; None where that is not known.
    """

    folder: str
    result: Result
    reported: Result
    interval: Interval | None
    interval_kind: str
    verified_on: str | None
    samples: str
    has_embeddings: bool
    submitter: str | None

    @property
    def id(self) -> str:
        """``<task>-<id>``, unique: it is made of the content."""
        return self.folder.rsplit("/", 1)[1]

    @property
    def status(self) -> str:
        """``verified`` or ``reported``."""
        return REPORTED if self.verified_on is None else VERIFIED

    @property
    def same(self) -> tuple[str | None, ...]:
        """Equal for entries of which the table shows one: task, data, encoder, revision, options and submitter.

        So nobody's entry takes the place of another's.
        """
        result = self.result
        options = json.dumps(dict(result.options), sort_keys=True)
        return (result.task, result.fingerprint, result.encoder_id, result.encoder_revision, options, self.submitter)

    @property
    def precedence(self) -> tuple[bool, str, str]:
        """The greater, the sooner it is shown of entries that are the `same`: a verified one before reported ones,
        whatever dates these state; then the newer, of verified ones that which the checker saw last."""
        return (self.verified_on is not None, self.verified_on or self.result.date, self.id)


@dataclass(frozen=True)
class Shown:
    """A row of the table.

    Attributes:
        entry: that is shown.
        count: how many entries there are that are the `same`, this one among them.
    """

    entry: Entry
    count: int


@dataclass(frozen=True)
class Rejected:
    """What is in the repository and is not shown.

    Attributes:
        path: of the file or folder.
        reason: why.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Board:
    """The results repository at one commit.

    Attributes:
        commit: that it was read at.
        entries: all of them.
        rejected: the rest, with reasons.
    """

    commit: str
    entries: tuple[Entry, ...]
    rejected: tuple[Rejected, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Entry]:
        """The entries by their id."""
        return {entry.id: entry for entry in self.entries}

    @cached_property
    def data(self) -> Mapping[str, tuple[str, ...]]:
        """For each task the fingerprints that it has entries of, the one with the most first."""
        found: dict[str, dict[str, int]] = {task: {} for task in TASKS}
        for entry in self.entries:
            counts = found[entry.result.task]
            counts[entry.result.fingerprint] = counts.get(entry.result.fingerprint, 0) + 1
        return {
            task: tuple(sorted(counts, key=lambda fingerprint: (-counts[fingerprint], fingerprint)))
            for task, counts in found.items()
        }

    @cached_property
    def encoders(self) -> tuple[str, ...]:
        """The ids of all encoders."""
        return tuple(sorted({entry.result.encoder_id for entry in self.entries}, key=lambda id: (id.casefold(), id)))

    def rows(self, task: str, fingerprint: str) -> list[Shown]:
        """What the table shows of a task and data: of entries that are the same, one."""
        return newest(
            entry for entry in self.entries if entry.result.task == task and entry.result.fingerprint == fingerprint
        )

    @cached_property
    def in_table(self) -> frozenset[str]:
        """The ids of the entries that the table shows."""
        return frozenset(row.entry.id for row in newest(self.entries))

    def of_encoder(self, encoder_id: str) -> list[Entry]:
        """All entries of an encoder by task and data, those first that the table prefers."""
        found = [entry for entry in self.entries if entry.result.encoder_id == encoder_id]
        found.sort(key=lambda entry: entry.precedence, reverse=True)
        return sorted(found, key=lambda entry: (entry.result.task, entry.result.fingerprint))


EMPTY = Board("", (), ())
"""Before anything was read."""


def newest(entries: Iterable[Entry]) -> list[Shown]:
    """Of entries that are the same, the one with the highest precedence."""
    groups: dict[tuple[str | None, ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.same, []).append(entry)
    return [Shown(max(group, key=lambda entry: entry.precedence), len(group)) for group in groups.values()]
