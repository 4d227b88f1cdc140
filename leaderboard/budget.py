"""How much time of the checker each author has."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AUTHOR_SECONDS = 2 * 3_600.0
"""Of checks for one author within `AUTHOR_WINDOW`; an entry that is under way is finished."""

AUTHOR_WINDOW = 24 * 3_600.0


class Budget:
    """Seconds of checks by author. It is kept in memory: a Space that starts anew has forgotten it."""

    def __init__(
        self, seconds: float = AUTHOR_SECONDS, window: float = AUTHOR_WINDOW, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nobody has used any.

        Args:
            seconds: for each author within a window.
            window: seconds after which what was used counts no more.
            clock: gives the time in seconds.
        """
        self._seconds = seconds
        self._window = window
        self._clock = clock
        self._used: dict[str, deque[tuple[float, float]]] = {}

    def is_spent(self, author: str) -> bool:
        """Whether an author has to wait."""
        used = self._used.get(author, deque())
        while used and used[0][0] < self._clock() - self._window:
            used.popleft()
        return sum(seconds for _, seconds in used) >= self._seconds

    @contextmanager
    def spending(self, author: str) -> Iterator[None]:
        """The time within is the author's."""
        started = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self._used.setdefault(author, deque()).append((ended, ended - started))
