"""The rounds of the check of pull requests, as the Space makes them."""

from __future__ import annotations

from audio_compositionality.leaderboard.pull_requests import CheckOutcome, Checks


def rounds(checks: Checks) -> list[CheckOutcome]:
    """What the last of the rounds finds that follow each other at once."""
    outcomes = checks.check_pull_requests()
    while checks.goes_on:
        outcomes = checks.check_pull_requests(again=False)
    return outcomes
