"""Rows of the leaderboard's table, made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from board_entries import folder, made_up

from audio_compositionality.evaluator.results.result import Result, SampleTable
from audio_compositionality.leaderboard.board import Entry
from audio_compositionality.tasks.base import TaskInfo
from audio_compositionality.tasks.registry import load_task

MakeEntry = Callable[..., Entry]


@pytest.fixture(scope="session")
def make_entry() -> MakeEntry:
    """`make_entry(encoder, number=0, task="a_coat", verified_on=None, submitter=None, **changes of `made_up`)`."""

    def make(
        encoder: str,
        number: int = 0,
        task: str = "a_coat",
        verified_on: str | None = None,
        submitter: str | None = None,
        **changes: Any,
    ) -> Entry:
        files = made_up(encoder, number, task, **changes)
        result = Result.loads(files["result.json"])
        return Entry(
            folder=folder(files),
            result=result.with_samples(SampleTable.loads(files["samples.csv"])),
            reported=result,
            verified_on=verified_on,
            samples=f"{folder(files)}/samples.csv",
            is_verifiable=False,
            submitter=submitter,
        )

    return make


@pytest.fixture(scope="session")
def coat() -> TaskInfo:
    """A task with an interval for a measure that it does not rank by."""
    return load_task("a_coat").info


@pytest.fixture(scope="session")
def tre() -> TaskInfo:
    """A task that ranks by a measure with an interval, and that has a measure that warns."""
    return load_task("a_tre").info


@pytest.fixture(scope="session")
def make_scored(make_entry: MakeEntry) -> MakeEntry:
    """`make_scored(encoder, value, number=0, half=0.02, **as of make_entry)`: an entry whose measures by sample have
    this mean, and about this half width of the interval, where chance is 0.01."""

    def make(encoder: str, value: float, number: int = 0, half: float = 0.02, **changes: Any) -> Entry:
        info = load_task(changes.get("task", "a_coat")).info
        trusted = {info.ranks_by, info.judge.name, *info.trusted}
        chance = {name: 0.01 for name in info.trusted.values() if isinstance(name, str)}
        noise = np.random.default_rng(number).normal(size=60)
        noise = half / 1.96 * 60**0.5 * (noise - noise.mean()) / noise.std()
        measures = {**chance, **dict.fromkeys(trusted, value)}
        return make_entry(encoder, number, measures=measures, values=value + noise, **changes)

    return make
