"""What a Space says at its start of what it can do."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from audio_compositionality.evaluator.submissions.record import LEAST_SECRET, SECRET_VARIABLE
from audio_compositionality.leaderboard.space import signing_secret

LONG = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("secret", "checks", "told"),
    [
        (LONG, True, []),
        (
            LONG[:-1],
            True,
            ["of 32 characters or more", f"{SECRET_VARIABLE} has 31 characters; it must have 32 or more"],
        ),
        ("", True, ["it checks nothing, and shows no entry as verified"]),
        (LONG, False, ["no token with write access"]),
        ("short", False, ["no token with write access", "has 5 characters"]),
    ],
)
def test_the_log_says_at_the_start_why_nothing_is_checked(secret, checks, told, monkeypatch, caplog):
    monkeypatch.setenv(SECRET_VARIABLE, secret)
    with caplog.at_level(logging.WARNING):
        found, problem = signing_secret(checks)
    assert found == (secret if len(secret) >= LEAST_SECRET else None)
    assert " ".join(record.getMessage() for record in caplog.records) == problem
    assert all(words in problem for words in told)
    assert bool(problem) == bool(told)


@pytest.mark.parametrize("page", ["docs/hub.md", "leaderboard/README.md", "push_scripts/reports.py"])
def test_pages_say_how_long_a_secret_is(page):
    text = (Path(__file__).parents[2] / page).read_text("utf-8")
    assert f"{LEAST_SECRET} characters or more" in text
