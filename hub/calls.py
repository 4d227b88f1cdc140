"""One call to the Hub, tried again where that can help, with an error that says what to do where it cannot."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from huggingface_hub import HfApi, constants

from .errors import Action, HubError, explain, is_of_client, is_transient, retry_after, status_of

WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try, where the Hub does not ask for more; those of huggingface_hub's own retries."""

LONGEST_WAIT = 300.0
"""Seconds; where the Hub asks for more, the call fails and says so."""

Answer = TypeVar("Answer")


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
            with plain_transfers():
                return function()
        except Exception as error:
            pause_or_raise(error, action, number, api)
    raise AssertionError("the last try returns or raises")


@contextmanager
def plain_transfers() -> Iterator[None]:
    """Files go by HTTP within, not by Xet, whose errors do not say what the Hub has answered.

    Warnings of huggingface_hub about what it does itself are not shown.
    """
    before = constants.HF_HUB_DISABLE_XET
    constants.HF_HUB_DISABLE_XET = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Use 'content=<...>'", DeprecationWarning)
            yield
    finally:
        constants.HF_HUB_DISABLE_XET = before


def pause_or_raise(error: BaseException, action: Action, number: int, api: HfApi | None = None) -> None:
    """Wait before the next try, after so many (from 0).

    Raises:
        HubError: another try would not help, or there were enough.
        BaseException: the error itself, where it is none of the clients'.
    """
    if isinstance(error, HubError) or not is_of_client(error):
        raise error
    wait = WAITS[number] if number < len(WAITS) else None
    asked = retry_after(error)
    if wait is None or not is_transient(error) or (asked is not None and asked > LONGEST_WAIT):
        raise explain(error, action, who(api or HfApi(), status_of(error))) from error
    # Rounded down by the Hub: one second more, as huggingface_hub itself waits.
    time.sleep(max(wait, 0.0 if asked is None else asked + 1))


def who(api: HfApi, status: int | None) -> dict[str, Any] | None:
    """What the Hub knows of the token, where a refusal is to be explained; None where it does not say."""
    if status not in (401, 403, 404):
        return None
    try:
        found: dict[str, Any] = api.whoami()
    except Exception as error:
        if is_of_client(error) or isinstance(error, OSError):
            return None
        raise
    return found
