"""One call to the Hub, tried again where that can help, with an error that says what to do where it cannot."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from huggingface_hub import HfApi

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.retries import LONGEST_WAIT, WAITS

from .errors import Action, explain, is_misread, is_of_client, is_transient, misread, retry_after, said, status_of

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


def call(action: Action, function: Callable[[], Answer], api: HfApi | None = None) -> Answer:
    """What a function of the clients returns; a failure that can pass is tried again, five times in all.

    Only for calls that may be made twice without harm.

    Args:
        action: what the call is for.
        function: calls one of the clients (`huggingface_hub`, `datasets`).
        api: the client whose token an error is to speak of.

    Raises:
        HubError: the call failed for good.
    """
    for number in range(len(WAITS) + 1):
        try:
            with quiet_client():
                return function()
        except Exception as error:
            pause_or_raise(error, action, number, api)
    raise AssertionError("the last try returns or raises")


def pause_or_raise(error: BaseException, action: Action, number: int, api: HfApi | None = None) -> None:
    """Wait before the next try, after so many (from 0); before the first one the log says why.

    Raises:
        HubError: another try would not help, or there were enough, or what the Hub answered is no reply of it.
        BaseException: the error itself, where it is none of the clients'.
    """
    # An error of ours is final: what raised it has been tried as often as helps.
    if isinstance(error, AudioCompositionalityError):
        raise error
    if not is_of_client(error):
        raise (misread(error, action) if is_misread(error) else error) from error.__cause__
    wait = WAITS[number] if number < len(WAITS) else None
    asked = retry_after(error)
    if wait is None or not is_transient(error) or (asked is not None and asked > LONGEST_WAIT):
        raise explain(error, action, who(api or HfApi(), status_of(error))) from error
    if number == 0:
        _log.warning("could not %s (%s); trying again a few times", action.what, said(error))
    # Rounded down by the Hub: one second more, as huggingface_hub itself waits.
    time.sleep(max(wait, 0.0 if asked is None else asked + 1))


def who(api: HfApi, status: int | None) -> dict[str, Any] | None:
    """What the Hub knows of the token, where a refusal is to be explained; None where it does not say."""
    if status not in (401, 403, 404):
        return None
    try:
        user: dict[str, Any] = api.whoami()
    except Exception as error:
        if is_of_client(error) or is_misread(error) or isinstance(error, OSError):
            return None
        raise
    return user if isinstance(user, dict) and isinstance(user.get("name"), str) else None


class _Retries(logging.Filter):
    """Holds back what huggingface_hub logs of each of its own retries while calls of ours are under way.

    Its retries multiply with ours: an outage of some minutes would be told dozens of times.
    """

    _WORDS = ("thrown while requesting", "Retrying in")

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._calls = 0

    @contextmanager
    def active(self) -> Iterator[None]:
        """For the time of one call; any number of threads may make calls."""
        with self._lock:
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1

    def filter(self, record: logging.LogRecord) -> bool:
        return not self._calls or not any(word in record.getMessage() for word in self._WORDS)


_RETRIES = _Retries()
quiet_client = _RETRIES.active
for _name in ("huggingface_hub.utils._http", "huggingface_hub.hf_api"):
    logging.getLogger(_name).addFilter(_RETRIES)
