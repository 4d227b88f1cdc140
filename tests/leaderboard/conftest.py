"""Rows of the leaderboard's table, made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from board_entries import folder, made_up

from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.leaderboard.entries import Entry

MakeEntry = Callable[..., Entry]


@pytest.fixture(scope="session")
def make_entry() -> MakeEntry:
    """`make_entry(encoder_id, number=0, task="a_coat", verified_on=None, submitter=None, **changes of the result)`."""

    def make(
        encoder: str,
        number: int = 0,
        task: str = "a_coat",
        verified_on: str | None = None,
        submitter: str | None = None,
        **changes: Any,
    ) -> Entry:
        files = made_up(encoder, number, task, **changes)
        result = Result.loads(files["result.json"].decode())
        return Entry(
            folder=folder(files),
            result=result,
            reported=result,
            interval=result.interval,
            interval_kind="t, reported" if verified_on is None else "BCa",
            verified_on=verified_on,
            samples=f"{folder(files)}/samples.parquet",
            has_embeddings=False,
            submitter=submitter,
        )

    return make
