"""One call to the Hub: retried if that can help, otherwise an error that names the remedy."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from huggingface_hub import HfApi

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.loopback import reach_loopback_hub
from audio_compositionality.support.retries import LONGEST_WAIT, WAITS

from .errors import Action, explain, is_misread, is_of_client, is_transient, misread, retry_after, said, status_of

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


def call(action: Action, function: Callable[[], Answer], api: HfApi | None = None) -> Answer:
    """Return the result of a client's function; retry temporary failures, with five attempts in all.

    Only for calls that can be repeated without harm.

    Args:
        action: the purpose of the call.
        function: calls one of the clients (`huggingface_hub`, `datasets`).
        api: the client whose token is described in an error.

    Raises:
        HubError: the call failed for good.
    """
    reach_loopback_hub()
    for number in range(len(WAITS) + 1):
        try:
            with quiet_client():
                return function()
        except Exception as error:
            pause_or_raise(error, action, number, api)
    raise AssertionError("the last try returns or raises")


def pause_or_raise(error: BaseException, action: Action, number: int, api: HfApi | None = None) -> None:
    """Wait before the next attempt, or raise; the reason is logged before the first retry.

    Args:
        error: the failure.
        action: the purpose of the call.
        number: attempts so far, from 0.
        api: the client whose token is described in an error.

    Raises:
        HubError: another attempt would not help, no attempts are left, or the Hub's answer is not a valid reply.
        BaseException: the error itself, if it does not come from a client.
    """
    # Our own errors are final: their source has retried already.
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
    # The Hub rounds down: wait one second more, as huggingface_hub does.
    time.sleep(max(wait, 0.0 if asked is None else asked + 1))


def who(api: HfApi, status: int | None) -> dict[str, Any] | None:
    """Return the Hub's facts about the token, to explain a refusal; None if the Hub gives none."""
    if status not in (401, 403, 404):
        return None
    try:
        user: dict[str, Any] = api.whoami()
    except Exception as error:
        if is_of_client(error) or is_misread(error) or isinstance(error, OSError):
            return None
        raise
    return user if isinstance(user, dict) and isinstance(user.get("name"), str) else None


@contextmanager
def quiet_client() -> Iterator[None]:
    """Suppress huggingface_hub's log of its own retries during a call.

    Its retries multiply with ours: an outage of a few minutes would be logged dozens of times.
    """

    def is_news(record: logging.LogRecord) -> bool:
        return not any(words in record.getMessage() for words in ("thrown while requesting", "Retrying in"))

    loggers = [logging.getLogger(f"huggingface_hub.{name}") for name in ("utils._http", "hf_api")]
    for logger in loggers:
        logger.addFilter(is_news)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_news)
