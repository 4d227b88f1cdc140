"""What keeps a check from taking for ever: a process of its own, and a budget for each author."""

import math
import os
import time
from pathlib import Path

import pytest

from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.hub.errors import HubError
from audio_compositionality.leaderboard.examination import DiedError, OverdueError, in_own_process
from audio_compositionality.leaderboard.pull_requests import Budget


def test_what_a_function_returns_or_raises_arrives():
    assert in_own_process(math.hypot, 3, 4, seconds=60) == 5
    with pytest.raises(ZeroDivisionError):
        in_own_process(divmod, 1, 0, seconds=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", [ResultError("it is bad"), HubError("gone", 404)], ids=lambda error: type(error).__name__
)
def test_our_errors_arrive_as_they_are(error, monkeypatch):
    # The fresh process imports this module, from where it stands.
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    with pytest.raises(type(error), match=str(error)) as caught:
        in_own_process(_raise, error, seconds=120)
    assert vars(caught.value) == vars(error)


def _raise(error):
    raise error


def test_what_takes_too_long_is_ended():
    started = time.monotonic()
    with pytest.raises(OverdueError, match="ended after 1 s"):
        in_own_process(time.sleep, 600, seconds=1)
    assert time.monotonic() - started < 300


def test_a_process_that_dies_is_told_of():
    with pytest.raises(DiedError, match="exit code 7"):
        in_own_process(os._exit, 7, seconds=60)


def test_an_author_has_so_much_time_and_no_more():
    now = [0.0]
    budget = Budget(seconds=10, window=100, clock=lambda: now[0])
    for _ in range(2):
        assert not budget.is_spent("eve")
        with budget.spending("eve"):
            now[0] += 6
    assert budget.is_spent("eve")
    assert not budget.is_spent("bob")
    now[0] = 107
    assert not budget.is_spent("eve")


def test_time_counts_also_where_a_check_fails():
    now = [0.0]
    budget = Budget(seconds=10, window=100, clock=lambda: now[0])

    def fails():
        with budget.spending("eve"):
            now[0] += 10
            raise ResultError("bad")

    with pytest.raises(ResultError):
        fails()
    assert budget.is_spent("eve")
