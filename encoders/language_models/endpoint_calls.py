"""Calls to a server: what went wrong, tried again where that can help, at the pace that the server asks for."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2

from audio_compositionality.support.retries import LONGEST_WAIT, WAITS, requested_wait
from audio_compositionality.support.text import first_line, shortened

from ..base import ModelError
from ..loading.names import ENDPOINT, KEY_VARIABLE
from .endpoint_http import (
    MOST_BYTES,
    MOST_REDIRECTS,
    REPEATED,
    DeadlineError,
    HttpReply,
    OfflineError,
    RedirectError,
    TooLargeError,
)
from .endpoint_key import masked
from .endpoint_settings import EndpointSettings

RETRIED = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same question may be answered."""

TOO_MANY = 429

LONGEST_WORDS = 200
"""Letters of a server's words that a message shows."""

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


class EndpointError(ModelError):
    """A question that a server does not answer, or that is not sent; the message does not show the key.

    Attributes:
        status: HTTP status of the server's answer; None where there was none.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Clock:
    """The time, for the waits between tries; tests have one that stands still but for them."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def wait_until(self, moment: float, stopped: threading.Event) -> None:
        """Wait for a moment, or until there is nothing more to wait for."""
        stopped.wait(max(0.0, moment - self.now()))


@dataclass(frozen=True)
class Failure:
    """Why a question has no answer. Made of the client's error, which holds the request and with it the key.

    Attributes:
        reason: what went wrong, in words; without the key.
        advice: what to do about it.
        status: HTTP status of the server's answer; None where there was none.
        is_transient: whether the same question may be answered later.
        requested_wait: seconds that the server asks to wait; None where it does not.
    """

    reason: str
    advice: str = "see what the server says"
    status: int | None = None
    is_transient: bool = False
    requested_wait: float | None = None


class Stopped(Exception):  # noqa: N818, no error: nobody sees it
    """Another question has failed for good, so that this one is not asked any more."""


class Pace:
    """When the next question may be sent: one for all threads, so that a server that asks one to wait is left alone.

    Nothing is drawn at random: the same failures make the same waits.
    """

    def __init__(self, name: str, clock: Clock, threads: int) -> None:
        """Take the model's name, for messages, the clock, and how many threads there are at most."""
        self._name = name
        self._clock = clock
        # Where a server lets one question through at a time, each thread may be refused as often as there are others.
        self._most_tries = threads * (len(WAITS) + 1)
        self._lock = threading.Lock()
        self._resume = clock.now()
        self._answered = 0

    def call(self, ask: Callable[[], Answer | Failure], stopped: threading.Event) -> Answer:
        """What a server answers; failures that can pass are tried again, five times in all.

        Tries after a rate limit are counted anew where another question was answered meanwhile: then the server works,
        and has only given its answers to others. That goes on for five tries for each thread.

        Raises:
            EndpointError: the question failed for good.
            Stopped: there is nothing more to ask.
        """
        tries, in_a_row, answered = 0, 0, self._answered
        while True:
            self._wait_for_turn(stopped)
            outcome = ask()
            if not isinstance(outcome, Failure):
                with self._lock:
                    self._answered += 1
                return outcome
            tries += 1
            if outcome.status == TOO_MANY and self._answered != answered:
                in_a_row, answered = 0, self._answered
            is_enough = in_a_row == len(WAITS) or tries == self._most_tries
            if is_enough or not outcome.is_transient or (outcome.requested_wait or 0) > LONGEST_WAIT:
                raise self._final(outcome, tries)
            self._wait_after(outcome, WAITS[in_a_row], stopped)
            in_a_row += 1

    def _wait_for_turn(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            # Another thread may move it on while this one waits.
            moment = self._resume
            if moment <= self._clock.now():
                return
            self._clock.wait_until(moment, stopped)
        raise Stopped

    def _wait_after(self, failure: Failure, seconds: float, stopped: threading.Event) -> None:
        seconds = max(seconds, failure.requested_wait or 0.0)
        now = self._clock.now()
        is_for_all = failure.status == TOO_MANY or failure.requested_wait is not None
        with self._lock:
            is_news = not is_for_all or self._resume <= now
            if is_for_all:
                self._resume = max(self._resume, now + seconds)
        if is_news:
            who = "all questions wait" if is_for_all else "it is asked again after"
            _log.warning("'%s': %s; %s %g s", self._name, failure.reason, who, seconds)
        if not is_for_all:
            self._clock.wait_until(now + seconds, stopped)

    def _final(self, failure: Failure, tries: int) -> EndpointError:
        often = f", asked {tries} times" if tries > 1 else ""
        asked = failure.requested_wait
        if failure.is_transient and asked is not None and asked > LONGEST_WAIT:
            often = f"{often}; it asks to wait {asked:.0f} s"
        return EndpointError(f"'{self._name}': {failure.reason}{often}; {failure.advice}", failure.status)


def failure_of(error: Exception, key: str | None, model: str, settings: EndpointSettings) -> Failure | None:
    """What an error of the client says; None of one that is none of the client's.

    Args:
        error: of `Server.post`, or of reading what it returns.
        key: that was sent, to be masked.
        model: what the server calls it.
        settings: how the server was asked.
    """
    if isinstance(error, OfflineError):
        return Failure("huggingface_hub is offline, and so no question is sent", "unset HF_HUB_OFFLINE")
    if isinstance(error, DeadlineError):
        return out_of_time(settings.deadline)
    if isinstance(error, TooLargeError):
        return Failure(
            f"the server answered {error.status} with more than {MOST_BYTES / 1e6:g} MB, and no more of it was read",
            "check that the URL is that of an OpenAI-compatible server, up to /v1",
            error.status,
        )
    if isinstance(error, RedirectError):
        return _redirect(error, key, model)
    if isinstance(error, httpx2.TimeoutException):
        return Failure(
            f"there was no answer within {settings.timeout:g} s",
            "see whether the server is overloaded",
            is_transient=True,
        )
    cause = tuple(_chain(error))[-1]
    why = shortened(masked(_cause_of(cause), key), LONGEST_WORDS)
    if isinstance(error, (httpx2.TransportError, ConnectionError)):
        reason = f"the server cannot be reached or broke the connection ({why})"
        return Failure(reason, "check the URL, and whether the server runs", is_transient=True)
    if isinstance(error, httpx2.DecodingError):
        return no_completion(f"it cannot be decompressed: {why}")
    if isinstance(error, (httpx2.HTTPError, httpx2.InvalidURL)):
        return Failure(f"the question could not be sent ({why})", "check the URL")
    if isinstance(error, RecursionError):
        return no_completion("nested too deep")
    return no_completion(why) if isinstance(error, ValueError) else None


def out_of_time(deadline: float) -> Failure:
    """The failure of a question that was not answered within so many seconds."""
    return Failure(
        f"there was no whole answer within {deadline:g} s, the most that a question may take in all",
        "see whether the server is overloaded, or allow more (--set deadline=...)",
    )


def _redirect(error: RedirectError, key: str | None, model: str) -> Failure:
    source, target = (shortened(masked(name or "", key), LONGEST_WORDS) for name in (error.source, error.target))
    if error.target is None:
        reason = f"the server {source} answered {error.status}, a redirect to no address"
        return Failure(reason, "check the URL, which goes up to /v1", error.status)
    if error.target == error.source:
        what = f"more than {MOST_REDIRECTS} times" if error.status in REPEATED else "in a way that loses the question"
        reason = f"the server {source} redirects ({error.status}) within it {what}"
        return Failure(reason, "give the URL that it redirects to, up to /v1", error.status)
    name = f"{ENDPOINT}{model}@" + ("URL" if error.endpoint is None else masked(error.endpoint, key))
    reason = f"the server redirects ({error.status}) from {source} to {target}, where nothing was sent"
    return Failure(reason, f"if that is the one to ask, name it: {shortened(name, LONGEST_WORDS)}", error.status)


def no_completion(what: str) -> Failure:
    """The failure of an answer that is none; `what` it is instead, without the key."""
    return Failure(
        f"the server's answer is no chat completion ({shortened(what, LONGEST_WORDS)})",
        "check that the URL is that of an OpenAI-compatible server, up to /v1",
    )


def refusal_of(reply: HttpReply, key: str | None) -> Failure:
    """The failure of a reply that is no success; the server's words are in it, without the key."""
    status = reply.status
    # Cut after it is masked: a part of the key could not be recognised.
    words = shortened(masked(" ".join(_words_of(reply).split()), key), LONGEST_WORDS)
    if status in (401, 403):
        advice = (
            f"set the environment variable {KEY_VARIABLE} to a key for it"
            if key is None
            else f"check the key in the environment variable {KEY_VARIABLE}"
        )
    elif status == 404:
        advice = "check the model's name and the URL, which goes up to /v1"
    elif status in RETRIED:
        advice = "run the same command later: it goes on from there"
    else:
        advice = "see what the server says: another model or shorter clips may do"
    reason = f"the server answered {status}" + (f" ({words})" if words else "")
    return Failure(reason, advice, status, status in RETRIED, requested_wait(reply.headers))


def _words_of(reply: HttpReply) -> str:
    """What a server says of what went wrong, in its own words; empty where they are a page or cannot be read."""
    try:
        return words_in(json.loads(reply.body))
    except RecursionError:
        return ""
    except ValueError:
        return "" if "html" in reply.headers.get("Content-Type", "").lower() else reply.text


def words_in(content: Any) -> str:
    """The message within the JSON of an error: OpenAI's ``{"error": {"message"}}``, or one of the usual others."""
    while isinstance(content, list) and content:
        content = content[0]
    if not isinstance(content, dict):
        return str(content)
    for name in ("error", "message", "detail", "errors"):
        if content.get(name):
            return words_in(content[name])
    return str(content)


def _cause_of(error: BaseException) -> str:
    """The first line of an error; of several, as of the addresses of one name, of the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    # The words of asyncio, in place of those in which the system says why.
    if isinstance(error, OSError) and error.errno is not None and "Connect call failed" in str(error):
        return os.strerror(error.errno)
    return first_line(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was raised from."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
