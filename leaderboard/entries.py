"""What the leaderboard shows: the entries of the results repository at one commit, and what could not be read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.tasks.registry import load_task

VERIFIED, REPORTED = "verified", "reported"
"""The statuses: recomputed from the submitted embeddings or answers by the checker, or the submitter's word."""

Interval = tuple[float, float]


@dataclass(frozen=True, order=True)
class DataKey:
    """What entries of a task must share to stand in one table: the data, and the version of the task."""

    fingerprint: str
    version: int

    def __str__(self) -> str:
        return f"{self.fingerprint}-{self.version}"


@dataclass(frozen=True)
class Entry:
    """One submitted result.

    Attributes:
        folder: in the results repository, ``results/<model>/<revision>/<task>-<id>``.
        result: what is shown: of a verified entry what the checker computed, of another what was reported.
        reported: what was reported.
        verified_on: when the checker computed `result`, ISO 8601; None of a reported entry.
        samples: path in the repository of the samples of `result`.
        is_verifiable: whether the submission can be verified.
        submitter: who submitted it, by the record of the checker; None where that is not known.
        reproduces: folder of the entry that it is a reproduction of, by the same record; None of others.
    """

    folder: str
    result: Result
    reported: Result
    verified_on: str | None
    samples: str
    is_verifiable: bool
    submitter: str | None
    reproduces: str | None = None

    @property
    def id(self) -> str:
        """``<task>-<id>``, unique: it is made of the content."""
        return self.folder.rsplit("/", 1)[1]

    @property
    def model(self) -> str:
        """The id of the model."""
        return self.result.model.id

    @property
    def status(self) -> str:
        """``verified`` or ``reported``."""
        return REPORTED if self.verified_on is None else VERIFIED

    @property
    def data(self) -> DataKey:
        """Which of the task's tables it belongs to."""
        return DataKey(self.result.fingerprint, self.result.task_version)

    def interval(self, measure: str) -> Interval | None:
        """95 % interval of a measure; None where there is none."""
        return self.result.intervals.get(measure)

    @property
    def same(self) -> tuple[object, ...]:
        """Equal for entries of which the table shows one: task, version, data, model, revision, options, settings and
        submitter.

        So nobody's entry takes the place of another's.
        """
        model = self.result.model
        options, settings = model.options.model_dump_json(), json.dumps(self.result.settings, sort_keys=True)
        return (*self.result.key, model.id, model.revision, options, settings, self.submitter)

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
        entries: all of them, of tasks that are installed.
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
    def data(self) -> Mapping[str, tuple[DataKey, ...]]:
        """For each task with entries what they are of: the installed version of the task first, then the most."""
        counts: dict[str, Counter[DataKey]] = {}
        for entry in self.entries:
            counts.setdefault(entry.result.task, Counter())[entry.data] += 1
        return {
            task: tuple(sorted(count, key=lambda key: (is_older(task, key), -count[key], key)))
            for task, count in counts.items()
        }

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The ids of all models."""
        return tuple(sorted({entry.model for entry in self.entries}, key=lambda id: (id.casefold(), id)))

    def rows(self, task: str, data: DataKey) -> list[Shown]:
        """What the table shows of a task and data: of entries that are the same, one."""
        return newest(entry for entry in self.entries if entry.result.task == task and entry.data == data)

    @cached_property
    def in_table(self) -> frozenset[str]:
        """The ids of the entries that the table shows."""
        return frozenset(row.entry.id for row in newest(self.entries))

    def of_model(self, model: str) -> list[Entry]:
        """All entries of a model by task and data, those first that the table prefers."""
        entries = [entry for entry in self.entries if entry.model == model]
        entries.sort(key=lambda entry: entry.precedence, reverse=True)
        return sorted(entries, key=lambda entry: entry.result.key)


EMPTY_BOARD = Board("", (), ())
"""Before anything was read."""


def newest(entries: Iterable[Entry]) -> list[Shown]:
    """Of entries that are the same, the one with the highest precedence."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.same, []).append(entry)
    return [Shown(max(group, key=lambda entry: entry.precedence), len(group)) for group in groups.values()]


def is_older(task: str, data: DataKey) -> bool:
    """Whether entries are of another version of their task than the installed one."""
    return data.version != load_task(task).info.version
