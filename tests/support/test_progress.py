"""Bars: one line that is written again in a terminal, lines elsewhere, nothing where nobody asked."""

from __future__ import annotations

import pytest

from audio_compositionality.support.progress import during


def test_where_there_is_no_terminal_it_is_lines(capsys, monkeypatch):
    monkeypatch.setattr("audio_compositionality.support.progress.LINE_SECONDS", 0)
    with during("m, a_coat\n", "clip", 300, shown=True) as advance:
        for _ in range(3):
            advance(100)
    lines = capsys.readouterr().err.splitlines()
    assert ["m, a_coat" in line for line in lines] == [True] * 4
    assert [f"{done}/300" in line for done, line in zip((0, 100, 200, 300), lines, strict=True)] == [True] * 4
    assert not any("\r" in line for line in lines)


def test_in_a_terminal_it_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with during("m, a_coat", "clip", 2, shown=True) as advance:
        advance(2)
    shown = capsys.readouterr().err
    assert "m, a_coat" in shown
    assert "\n" not in shown


@pytest.mark.parametrize(("items", "shown"), [(2, False), (0, True)])
def test_nothing_is_printed_where_nobody_asked_or_nothing_is_left(capsys, items, shown):
    with during("a", "clip", items, shown=shown) as advance:
        advance(items)
    assert capsys.readouterr().err == ""
