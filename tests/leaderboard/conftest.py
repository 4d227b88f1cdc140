"""Rows of the leaderboard's table, made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from board_entries import folder, made_up

from audio_compositionality.evaluator.results.result import Result
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
            result=result,
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
