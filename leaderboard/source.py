"""The board that is shown: one thread reads it, visitors look at what it read last."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from audio_compositionality.hub.errors import HubError

from .entries import EMPTY_BOARD, Board

MAX_AGE = 300.0
"""Seconds after which the repository is read again."""

MIN_AGE = 20.0
"""Seconds before which it is not, whoever asks for it, so that nobody hammers the Hub."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BoardReading:
    """A board and how it was come by.

    Attributes:
        board: the last one that could be read.
        at: when the Hub was last asked and answered; None before that.
        trouble: why it could not be read the last time; None when it could.
        since: when that began.
    """

    board: Board = EMPTY_BOARD
    at: datetime | None = None
    trouble: str | None = None
    since: datetime | None = None


class BoardSource:
    """Reads the board again and again, in a thread of its own; nobody who looks at it waits."""

    def __init__(self, read: Callable[[], Board], max_age: float = MAX_AGE, min_age: float = MIN_AGE) -> None:
        """Nothing is read yet.

        Args:
            read: reads the board.
            max_age, min_age: see `MAX_AGE` and `MIN_AGE`.
        """
        self._read = read
        self._max_age = max_age
        self._min_age = min_age
        self._last = BoardReading()
        self._reads = False
        self._expired = threading.Event()
        self._expired.set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="board", daemon=True)

    def start(self) -> None:
        """Begin; the first reading is now."""
        self._thread.start()

    def stop(self) -> None:
        """End after the reading that is going on."""
        self._stop.set()
        self._expired.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def last(self) -> BoardReading:
        """What was read last."""
        return self._last

    @property
    def pending(self) -> bool:
        """Whether the board is being read, or will be as soon as it may."""
        return self._reads or self._expired.is_set()

    def expire(self) -> None:
        """Have the board read again: something was added, or somebody wants to know."""
        self._expired.set()

    def update(self) -> BoardReading:
        """Read the board now.

        Never raises: trouble with the Hub is told of in the reading, and the last board stays.
        """
        self._reads = True
        # What is added from here on is for the next reading.
        self._expired.clear()
        self._last = self._next()
        self._reads = False
        return self._last

    def _run(self) -> None:
        while not self._stop.is_set():
            self.update()
            self._stop.wait(self._min_age)
            self._expired.wait(self._max_age - self._min_age)

    def _next(self) -> BoardReading:
        try:
            return BoardReading(self._read(), datetime.now(UTC))
        except HubError as error:
            trouble = str(error)
            _log.warning("the results cannot be read: %s", trouble)
        except Exception:
            # Whatever strangers have put there: the board stays up, and the log says what to mend.
            _log.exception("the results cannot be read")
            trouble = "an unexpected error, which the log of this Space has"
        last = self._last
        return BoardReading(last.board, last.at, trouble, last.since if last.trouble else datetime.now(UTC))
