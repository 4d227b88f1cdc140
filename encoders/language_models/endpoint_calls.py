"""Calls to a server by many threads: tried again where that can help, at the pace that the server asks for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from audio_compositionality.support.retries import LONGEST_WAIT, WAITS, requested_wait
from audio_compositionality.support.text import first_line, shortened

from ..base import ModelError
from .endpoint_name import KEY_VARIABLE, masked

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


def ask_all(
    questions: Sequence[Callable[[threading.Event], Answer]],
    threads: int,
    on_answer: Callable[[int, Answer], object] | None = None,
) -> list[Answer]:
    """Ask questions, so many at a time; their answers in order.

    Args:
        questions: each is given an event that is set when there is nothing more to ask.
        threads: how many are asked at a time, at most.
        on_answer: called with the place of each question and its answer as soon as that is there, in this thread.

    Raises:
        Exception: that of the first question in order that failed. Those that are under way then are waited for, and no
            further one is asked.
    """
    stopped = threading.Event()
    pool = ThreadPoolExecutor(max(1, min(threads, len(questions))), thread_name_prefix="endpoint")
    try:
        answers = [pool.submit(question, stopped) for question in questions]
        places = {answer: place for place, answer in enumerate(answers)}
        for answer in as_completed(places):
            if not answer.cancelled() and answer.exception() is None:
                if on_answer is not None:
                    on_answer(places[answer], answer.result())
            elif not stopped.is_set():
                stopped.set()
                for other in answers:
                    other.cancel()
    except BaseException:
        # The user has interrupted it: what is under way is not waited for.
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    error = next(filter(None, map(_error_of, answers)), None)
    if error is not None:
        raise error
    return [answer.result() for answer in answers]


def _error_of(answer: Future[Any]) -> BaseException | None:
    if answer.cancelled():
        return None
    error = answer.exception()
    return None if isinstance(error, Stopped) else error


def failure_of(error: Exception, key: str | None, timeout: float) -> Failure | None:
    """What an error of the client says; None of one that is none of the client's.

    Args:
        error: of `InferenceClient`, or of reading what it returns.
        key: that was sent, to be masked.
        timeout: seconds after which the client gives up.
    """
    chain = tuple(_chain(error))
    response = next(filter(None, map(_response_of, chain)), None)
    if response is not None:
        return _refusal(response, key)
    if any(isinstance(cause, OfflineModeIsEnabled) for cause in chain):
        return Failure("huggingface_hub is offline, and it sends the questions", "unset HF_HUB_OFFLINE")
    if any(isinstance(cause, (httpx2.TimeoutException, TimeoutError)) for cause in chain):
        return Failure(
            f"there was no answer within {timeout:g} s", "see whether the server is overloaded", is_transient=True
        )
    why = shortened(masked(first_line(chain[-1]), key), LONGEST_WORDS)
    if any(isinstance(cause, (httpx2.TransportError, ConnectionError)) for cause in chain):
        reason = f"the server cannot be reached or broke the connection ({why})"
        return Failure(reason, "check the URL, and whether the server runs", is_transient=True)
    if isinstance(error, httpx2.HTTPError):
        return Failure(f"the question could not be sent ({why})", "check the URL")
    # What huggingface_hub raises of an answer that it cannot read; with NaN in one it calls itself without end.
    if isinstance(error, RecursionError):
        return no_completion("nested too deep, or with a number that is none")
    return no_completion(why) if isinstance(error, ValueError) else None


def no_completion(what: str) -> Failure:
    """The failure of an answer that is none; `what` it is instead, without the key."""
    return Failure(
        f"the server's answer is no chat completion ({shortened(what, LONGEST_WORDS)})",
        "check that the URL is that of an OpenAI-compatible server, up to /v1",
    )


def _refusal(response: httpx2.Response, key: str | None) -> Failure:
    status = response.status_code
    # Cut after it is masked: a part of the key could not be recognised.
    words = shortened(masked(" ".join(_words_of(response).split()), key), LONGEST_WORDS)
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
    return Failure(reason, advice, status, status in RETRIED, requested_wait(response.headers))


def _words_of(response: httpx2.Response) -> str:
    """What a server says of what went wrong, in its own words; empty where they are a page or cannot be read."""
    try:
        return words_in(response.json())
    except RecursionError:
        return ""
    except (ValueError, httpx2.HTTPError, httpx2.StreamError):
        try:
            return "" if "html" in response.headers.get("Content-Type", "").lower() else response.text
        except (httpx2.HTTPError, httpx2.StreamError):
            return ""


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


def _response_of(error: BaseException) -> httpx2.Response | None:
    return error.response if isinstance(error, (HfHubHTTPError, httpx2.HTTPStatusError)) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was raised from."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
