"""Constructed models of negation and of two clips: what must hold, and that rows with a flaw are seen."""

from __future__ import annotations

import pytest

from studies.validity import negation as study


@pytest.mark.parametrize(("check", "count"), [(study.captions, 80), (study.questions, 80), (study.two_clips, 30)])
def test_every_number_is_where_theory_has_it(check, count):
    checks = check(count, seed=11)
    assert [one for one in checks if not one.holds] == []
    assert len(checks) > 20


@pytest.mark.parametrize(
    ("caption", "meaning"),
    [
        ("electric piano and no bell", ("no", True, "electric piano", "bell")),
        ("bell and something else", ("nothing else", False, "bell", "")),
        ("not only bell", ("not only", True, "bell", "")),
        ("only bell", ("not only", False, "bell", "")),
        ("bell not before organ", ("not before", True, "bell", "organ")),
        ("organ after bell", ("not after", False, "bell", "organ")),
        ("bell heard three times", ("times", False, "bell", "")),
    ],
)
def test_captions_are_read(caption, meaning):
    assert study.said(caption) == meaning


def test_without_mirrors_a_liking_of_a_word_would_win_or_lose():
    rows = study.drawn("negation", 11, items=80)

    def monotone(caption, heard):
        """It likes clips of one sound for "nothing else", whatever else is said."""
        liked = float(len(set(heard)) == 1)
        return liked if study.said(caption)[1] else 1 - liked

    assert study.caption_measures(rows, monotone)["match_only"] == 0.5
    assert study.caption_measures(rows[::2], monotone)["match_only"] == 1
