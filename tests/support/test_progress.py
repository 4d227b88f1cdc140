"""The bar of a command: its estimate by a clock of our own, and what is printed where there is no terminal."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from dataclasses import replace

import pytest

from audio_compositionality.support.progress import Estimate, Part, Progress, duration_text, during, progress_of


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def estimates(clock, estimate, key, seconds, items):
    """Work on a part, item by item; the time left after each, beside that of the clock."""
    estimate.begin(key)
    for _ in range(items):
        clock.now += seconds
        estimate.advance(key)
        yield clock.now, estimate.left()
    estimate.finish(key)


def test_after_a_resume_only_new_work_has_a_rate():
    """Of 1,000 clips 900 are stored: the rest takes as long as ever."""
    clock = Clock()
    estimate = Estimate({"clips": Part("m, a_coat", "clip", 100)}, clock)
    for now, left in estimates(clock, estimate, "clips", 0.5, 100):
        if now >= 5:
            assert left.is_all
            assert left.seconds == pytest.approx(50 - now, rel=0.01, abs=0.01)
    assert estimate.left().seconds == 0


@pytest.mark.parametrize("first", ["fast", "slow"])
def test_of_two_speeds_the_first_tenth_tells_the_whole(first):
    """One model takes 10 ms a clip and the other a second; a few clips beforehand took 25 % longer."""
    clock, truth = Clock(), {"fast": 0.01, "slow": 1.0}
    order = [first, *(name for name in truth if name != first)]
    parts = {name: Part(name, "clip", 200, name, seconds=1.25 * truth[name]) for name in order}
    estimate, whole = Estimate(parts, clock), 200 * 1.01
    for name in order:
        for now, left in estimates(clock, estimate, name, truth[name], 200):
            if 0.1 * whole <= now < 0.99 * whole:
                assert left.is_all
                assert left.seconds == pytest.approx(whole - now, rel=0.3)


def test_what_nothing_is_known_of_is_not_counted_and_it_says_so():
    clock = Clock()
    estimate = Estimate({"fast": Part("fast", "clip", 100, "fast"), "slow": Part("slow", "question", 100)}, clock)
    assert str(estimate.left()) == "time left unknown"
    for now, left in estimates(clock, estimate, "fast", 1.0, 100):
        if 10 <= now < 98:
            assert str(left) == f"more than {duration_text(100 - now)} left"
    # By the parts, for lack of the time.
    assert estimate.share() == 0.5


def test_a_part_takes_as_long_as_others_of_its_kind_by_their_sizes():
    clock = Clock()
    parts = {key: Part(key, "clip", 10, "clips of m", size) for key, size in (("a_coat", 10.0), ("a_tre", 40.0))}
    estimate = Estimate(parts, clock)
    list(estimates(clock, estimate, "a_coat", 1.0, 10))
    assert (estimate.left().seconds, estimate.left().is_all) == (40.0, True)


def test_the_wait_for_the_first_items_is_no_rate():
    """Clips are read ahead in blocks: the first one comes late, the others at once."""
    clock = Clock()
    estimate = Estimate({"clips": Part("m", "clip", 101)}, clock)
    estimate.begin("clips")
    clock.now += 30
    estimate.advance("clips")
    for _ in range(10):
        clock.now += 0.1
        estimate.advance("clips")
    assert estimate.left().seconds == pytest.approx(9)


def test_what_is_foreseen_is_corrected_by_what_others_took():
    """The machine has become three times as busy since the timing; of work of a moment nothing is concluded."""
    clock = Clock()
    parts = {key: Part(key, "clip", 100, key, seconds=0.1) for key in ("one", "two")}
    estimate = Estimate({**parts, "short": Part("short", "clip", 2, "short", seconds=1e-3)}, clock)
    list(estimates(clock, estimate, "short", 0.01, 2))
    assert estimate.left().seconds == pytest.approx(20, rel=0.02)
    for now, left in estimates(clock, estimate, "one", 0.3, 100):
        if now >= 6:
            assert left.seconds == pytest.approx(60 - now, rel=0.3)


def test_during_a_long_item_the_time_goes_on():
    clock = Clock()
    parts = {"one": Part("m, fit", "fit", 1, "fit"), "two": Part("n, fit", "fit", 1, "fit")}
    estimate = Estimate(parts, clock)
    list(estimates(clock, estimate, "one", 60.0, 1))
    estimate.begin("two")
    clock.now += 45
    assert estimate.left().seconds == pytest.approx(15)
    assert estimate.share() == pytest.approx(105 / 120)


def test_where_there_is_no_terminal_it_is_a_line_a_minute():
    clock, file = Clock(), io.StringIO()
    progress = Progress({"clips": Part("m, a_coat", "clip", 300)}, clock=clock, file=file)
    with progress.during("clips") as advance:
        for _ in range(300):
            clock.now += 1
            advance(1)
    progress.close()
    assert file.getvalue().splitlines() == [
        "20 % after 60 s, 4 min left: m, a_coat, clip 60 of 300",
        "40 % after 2 min, 3 min left: m, a_coat, clip 120 of 300",
        "60 % after 3 min, 2 min left: m, a_coat, clip 180 of 300",
        "80 % after 4 min, 60 s left: m, a_coat, clip 240 of 300",
        "100 % after 5 min, 0 s left: m, a_coat, clip 300 of 300",
    ]
    assert "\r" not in file.getvalue()


def test_in_a_terminal_it_is_one_bar_over_all_parts():
    clock, file = Clock(), Terminal()
    parts = {name: Part(name, "clip", 10, "clips") for name in ("one", "two")}
    progress = Progress(parts, clock=clock, file=file)
    for name in parts:
        with progress.during(name) as advance:
            for _ in range(10):
                clock.now += 1
                advance(1)
            progress.refresh()
    progress.close()
    shown = re.findall(r" *(\d+)%\|[^\r]*? left[^:\r]*: ([^\r]*?) *(?=\r|$)", file.getvalue())
    assert ("50", "one, clip 10 of 10") in shown
    assert ("100", "two, clip 10 of 10") in shown
    assert ("50", "two, clip 0 of 10") in shown
    assert "\n" not in file.getvalue()


def test_what_is_really_to_be_done_replaces_what_was_foreseen():
    """No clips were foreseen, of a model's stored layer; another layer needs all of them."""
    clock = Clock()
    estimate = Estimate({"clips": Part("m", "clip", 0, "clips of m", 4.0)}, clock)
    estimate.begin("clips", Part("m and 1 more of its layers", "clip", 100, "others"))
    for _ in range(50):
        clock.now += 1
        estimate.advance("clips")
    assert estimate.left().seconds == pytest.approx(50)
    assert estimate.position("clips") == "m and 1 more of its layers, clip 50 of 100"


@pytest.mark.parametrize("way", ["nothing to do", "an error"])
def test_a_part_that_ends_at_once_is_no_rate(way):
    clock = Clock()
    parts = {key: Part(key, "clip", 100, "clips of m", seconds=2.0) for key in ("one", "two")}
    progress = Progress(parts, shown=False, clock=clock)
    with suppress(OSError), progress.during("one", replace(parts["one"], items=0) if way != "an error" else None):
        clock.now += 0.1
        raise OSError
    assert progress.estimate.left().seconds == 200
    with progress.during("two") as advance:
        clock.now += 2
        advance(1)
        assert progress.estimate.left().seconds == pytest.approx(198)


def test_a_fit_that_failed_is_no_rate():
    clock = Clock()
    progress = Progress({key: Part(key, "fit", 1, "fit") for key in ("one", "two")}, shown=False, clock=clock)
    with suppress(ValueError), progress.during("one"):
        raise ValueError
    assert str(progress.estimate.left()) == "time left unknown"


def test_a_part_that_was_not_foreseen_may_begin_while_the_bar_is_drawn():
    estimate = Estimate({str(number): Part("m", "clip", 10) for number in range(9)})
    drawn = iter(estimate._states.values())
    next(drawn)
    estimate.begin("new", Part("n", "clip", 5))
    assert len(list(drawn)) == 8
    assert estimate.position("new") == "n, clip 0 of 5"


def test_a_terminal_that_does_not_tell_its_size_has_a_bar():
    """As in `script` without a terminal of its own, or in a container."""
    pty = pytest.importorskip("pty")
    here, there = pty.openpty()
    with open(here, "rb", buffering=0) as read, open(there, "w", encoding="utf-8") as file:
        progress = Progress({"a": Part("m", "clip", 2)}, clock=Clock(), file=file)
        with progress.during("a"):
            progress.refresh()
        progress.close()
        assert "m, clip 0 of 2" in read.read(4096).decode()


def test_nothing_is_printed_where_nobody_asked(capsys):
    with progress_of({"a": Part("a", "clip", 2)}, shown=False) as whole:
        with during("a", Part("a", "clip", 2), shown=True) as advance:
            advance(2)
        assert whole.estimate.left().seconds == 0
    assert capsys.readouterr().err == ""


def test_a_part_without_a_command_has_a_bar_of_its_own(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with during("a", Part("m, a_coat", "clip", 2), shown=True) as advance:
        advance(2)
    assert "m, a_coat, clip 2 of 2" in capsys.readouterr().err
    with during("a", Part("m, a_coat", "clip", 0), shown=True) as advance:
        advance(0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("seconds", "text"), [(3, "3 s"), (600, "10 min"), (7200, "2.0 h")])
def test_durations_are_told_in_their_largest_unit(seconds, text):
    assert duration_text(seconds) == text
