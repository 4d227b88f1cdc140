"""The board that is shown: read again when it is old, kept when the Hub cannot be read."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from audio_compositionality.hub import HubError

from .entries import EMPTY, Board

MAX_AGE = 300.0
"""Seconds after which a visit has the repository read again."""

MIN_AGE = 20.0
"""Seconds before which not even the button has it read again, so that nobody hammers the Hub."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """A board and how it was come by.

    Attributes:
        board: the last one that could be read.
        at: when the Hub was last asked and answered; None before that.
        trouble: why it could not be read the last time; None when it could.
        since: when that began.
    """

    board: Board = EMPTY
    at: datetime | None = None
    trouble: str | None = None
    since: datetime | None = None


class Source:
    """Gives the board to any number of visitors, and reads it for one of them at a time."""

    def __init__(self, read: Callable[[], Board], clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is read yet.

        Args:
            read: reads the board.
            clock: seconds.
        """
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._last = Reading()

    @property
    def last(self) -> Reading:
        """What was read last."""
        return self._last

    def reading(self, *, now: bool = False) -> Reading:
        """The board, read again where it is older than `MAX_AGE`, or with `now` than `MIN_AGE`.

        Never raises: trouble with the Hub is told of in the reading, and the last board stays. While one thread reads,
        others get what there was; only the first ever is waited for.
        """
        if not self._lock.acquire(blocking=self._last.at is None):
            return self._last
        try:
            age = None if self._asked is None else self._clock() - self._asked
            if age is None or age >= (MIN_AGE if now else MAX_AGE):
                self._last = self._next()
                self._asked = self._clock()
            return self._last
        finally:
            self._lock.release()

    def expire(self) -> None:
        """Have the next visit read the board again: something was merged."""
        self._asked = None

    def _next(self) -> Reading:
        try:
            return Reading(self._read(), datetime.now(UTC))
        except HubError as error:
            trouble = str(error)
            _log.warning("the results cannot be read: %s", trouble)
        except Exception:
            # Whatever strangers have put there: the board stays up, and the log says what to mend.
            _log.exception("the results cannot be read")
            trouble = "an unexpected error, which the log of this Space has"
        last = self._last
        return Reading(last.board, last.at, trouble, last.since if last.trouble else datetime.now(UTC))
