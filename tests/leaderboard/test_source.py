import threading

import pytest

from audio_compositionality.hub import HubError
from audio_compositionality.leaderboard.entries import EMPTY, Board
from audio_compositionality.leaderboard.source import MAX_AGE, MIN_AGE, Source

BOARD, NEXT = Board("1", (), ()), Board("2", (), ())


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def answers(*given):
    """A function that gives one after the other, or raises it, and the number of its calls."""
    left, calls = list(given), []

    def read():
        calls.append(1)
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    return read, calls


def test_it_is_read_again_when_it_is_old(clock):
    read, calls = answers(BOARD, NEXT)
    source = Source(read, clock)
    assert source.last.board is EMPTY
    assert source.reading().board is BOARD
    clock.now = MAX_AGE - 1
    assert source.reading().board is BOARD
    assert len(calls) == 1
    clock.now = MAX_AGE
    assert source.reading().board is NEXT
    assert source.last.board is NEXT


def test_the_button_does_not_wait_for_that_but_does_not_hammer(clock):
    read, calls = answers(BOARD, NEXT)
    source = Source(read, clock)
    source.reading()
    for _ in range(10):
        source.reading(now=True)
    assert len(calls) == 1
    clock.now = MIN_AGE
    assert source.reading(now=True).board is NEXT


@pytest.mark.parametrize("error", [HubError("no answer"), RuntimeError("a mistake")])
def test_trouble_leaves_the_last_board_with_a_note_of_since_when(clock, error):
    read, calls = answers(BOARD, error, error, NEXT)
    source = Source(read, clock)
    first = source.reading()
    clock.now = MAX_AGE
    second = source.reading()
    assert second.board is BOARD
    assert second.at == first.at
    assert ("no answer" in second.trouble) == isinstance(error, HubError)
    assert "a mistake" not in second.trouble
    assert source.reading() is second  # and it is not asked at once again
    clock.now = 2 * MAX_AGE
    assert source.reading().since == second.since
    clock.now = 3 * MAX_AGE
    healed = source.reading()
    assert (healed.board, healed.trouble, healed.since) == (NEXT, None, None)
    assert len(calls) == 4


def test_it_starts_without_the_hub(clock):
    read, _ = answers(HubError("no answer"), BOARD)
    source = Source(read, clock)
    assert source.reading().board is EMPTY
    assert source.reading().at is None
    clock.now = MAX_AGE
    assert source.reading().board is BOARD


def test_while_one_visitor_reads_the_others_see_what_there_was(clock):
    begun, done = threading.Event(), threading.Event()
    boards = [BOARD, NEXT]

    def read():
        if len(boards) == 1:
            begun.set()
            assert done.wait(30)
        return boards.pop(0)

    source = Source(read, clock)
    source.reading()
    clock.now = MAX_AGE
    thread = threading.Thread(target=source.reading)
    thread.start()
    assert begun.wait(30)
    assert source.reading().board is BOARD
    done.set()
    thread.join()
    assert source.reading().board is NEXT


def test_what_was_merged_is_shown_to_the_next_visitor(clock):
    read, _ = answers(BOARD, NEXT)
    source = Source(read, clock)
    assert source.reading().board is BOARD
    source.expire()
    assert source.reading().board is NEXT
