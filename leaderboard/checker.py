"""The thread of the Space that checks pull requests, entry by entry, for as long as the Space runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from audio_compositionality.hub.errors import HubError
from audio_compositionality.support.text import shortened

from .pull_requests import Checks, Outcome

INTERVAL = 300.0
"""Seconds between two rounds."""

MOST_TOLD = 20
"""Lines of what is told of the rounds."""

_log = logging.getLogger(__name__)


class Checker:
    """Checks in a thread of its own; trouble is logged and told, and ends nothing."""

    def __init__(
        self, checks: Checks, changed: Callable[[], object] = lambda: None, interval: float = INTERVAL
    ) -> None:
        """Nothing is checked yet.

        Args:
            checks: of a repository of results.
            changed: called after a round that has added or verified something.
            interval: seconds between two rounds.
        """
        self._checks = checks
        self._changed = changed
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pull-requests", daemon=True)
        self._state = "No round has ended yet."
        self._not_verified: dict[str, Outcome] = {}
        # When those that were checked are asked for new commits again.
        self._next = 0.0
        # Seconds until the next round.
        self._pause = interval

    def start(self) -> None:
        """Begin; the first round is now."""
        self._thread.start()

    def stop(self) -> None:
        """End after the round that is going on."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def state(self) -> str:
        """When the last round was, and what it found."""
        return self._state

    def round(self) -> list[Outcome]:
        """One round: an entry that main has without a verification, then one of each author's pull requests.

        Where there is more, the next round is at once; those that were checked are asked for new commits in rounds that
        are an interval apart.

        Raises:
            HubError: the Hub cannot be read or written.
        """
        try:
            merged = self._checks.verify_merged(most=1)
        except HubError as error:
            # No reason to let the pull requests wait.
            merged = [Outcome("main", "failed", (str(error),))]
        self._not_verified |= {outcome.subject: outcome for outcome in merged if outcome.action in ("refused", "left")}
        again = time.monotonic() >= self._next
        if again:
            self._next = time.monotonic() + self._interval
        return [*merged, *self._checks.check_pull_requests(again=again)]

    def _run(self) -> None:
        while not self._stop.is_set():
            lines = self._lines()
            for line in lines:
                _log.info("%s", line)
            kept = "\n".join([*lines[:MOST_TOLD], *(["…"] if len(lines) > MOST_TOLD else [])])
            left = [shortened(str(outcome), 300) for outcome in self._not_verified.values()][:MOST_TOLD]
            not_verified = "\n".join(["", "On main, and not verified:", *left]) if left else ""
            self._state = f"Last round {datetime.now(UTC):%Y-%m-%d %H:%M} UTC:\n{kept}{not_verified}"
            self._stop.wait(self._pause)

    def _lines(self) -> list[str]:
        """What is to be told of a round, which is made."""
        self._pause = self._interval
        try:
            outcomes = self.round()
            if self._checks.goes_on:
                self._pause = 0.0
        except HubError as error:
            return [f"the Hub cannot be used: {shortened(str(error), 300)}"]
        except Exception:
            _log.exception("a round of checks failed")
            return ["the round failed; the log of this Space says why"]
        if any(outcome.action in ("added", "verified") for outcome in outcomes):
            self._changed()
        return [shortened(str(outcome), 300) for outcome in outcomes] or ["no pull request is open"]
