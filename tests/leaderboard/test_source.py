import threading
import time

import pytest

from audio_compositionality.hub.errors import HubError
from audio_compositionality.leaderboard.board import EMPTY_BOARD, Board, BoardSource

BOARD, NEXT = Board("1", (), ()), Board("2", (), ())


class Answers:
    """Gives one after the other, or raises it, then the last for ever; and when it was asked."""

    def __init__(self, *given):
        self.left = list(given)
        self.asked = []

    def __call__(self):
        self.asked.append(time.monotonic())
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def started():
    """`started(read, max_age, min_age)` -> a source whose thread runs until the test is over."""
    sources = []

    def start(*arguments):
        source = BoardSource(*arguments)
        sources.append(source)
        source.start()
        return source

    yield start
    for source in sources:
        source.stop()


def soon(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_visitors_see_what_there_is_before_and_while_it_is_read(started):
    begun, done = threading.Semaphore(0), threading.Semaphore(0)
    boards = [BOARD, NEXT]

    def read():
        begun.release()
        assert done.acquire(timeout=30)
        return boards.pop(0)

    source = BoardSource(read)
    assert source.last.board is EMPTY_BOARD
    assert source.pending
    source = started(read, 600, 0)
    assert begun.acquire(timeout=30)
    assert (source.last.board, source.last.at) == (EMPTY_BOARD, None)
    assert source.pending
    done.release()
    soon(lambda: not source.pending)
    assert source.last.board is BOARD
    source.expire()
    assert begun.acquire(timeout=30)
    assert source.last.board is BOARD
    assert source.pending
    done.release()
    soon(lambda: not source.pending)
    assert source.last.board is NEXT


def test_it_is_read_again_when_it_is_old(started):
    read = Answers(BOARD, NEXT)
    source = started(read, 0.2, 0.1)
    soon(lambda: len(read.asked) >= 4)
    assert source.last.board is NEXT
    assert min(second - first for first, second in zip(read.asked, read.asked[1:], strict=False)) >= 0.19


def test_it_is_not_read_again_before(started):
    read = Answers(BOARD)
    started(read, 600, 0)
    soon(lambda: read.asked)
    time.sleep(0.2)
    assert len(read.asked) == 1


def test_whoever_asks_does_not_wait_for_that_but_cannot_hammer(started):
    read = Answers(BOARD, NEXT)
    source = started(read, 600, 0.3)
    soon(lambda: source.last.board is BOARD)
    for _ in range(10):
        source.expire()
    assert source.pending
    soon(lambda: source.last.board is NEXT)
    assert read.asked[1] - read.asked[0] >= 0.29
    time.sleep(0.4)
    assert len(read.asked) == 2
    assert not source.pending


def test_what_is_added_while_it_is_read_is_read_next(started):
    def read():
        if not boards:
            return NEXT
        source.expire()
        return boards.pop()

    boards = [BOARD]
    source = BoardSource(read, 600, 0)
    assert source.update().board is BOARD
    assert source.pending
    assert source.update().board is NEXT
    assert not source.pending


@pytest.mark.parametrize("error", [HubError("no answer"), RuntimeError("a mistake")])
def test_trouble_leaves_the_last_board_with_a_note_of_since_when(error):
    source = BoardSource(Answers(BOARD, error, error, NEXT))
    first, second, third, healed = (source.update() for _ in range(4))
    assert second.board is BOARD
    assert second.at == first.at
    assert ("no answer" in second.trouble) == isinstance(error, HubError)
    assert "a mistake" not in second.trouble
    assert third.since == second.since
    assert (healed.board, healed.trouble, healed.since) == (NEXT, None, None)


def test_it_starts_without_the_hub():
    source = BoardSource(Answers(HubError("no answer"), BOARD))
    assert source.update().board is EMPTY_BOARD
    assert source.last.at is None
    assert source.update().board is BOARD
