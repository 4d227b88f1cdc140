"""Calls to a server: connection, failures, retries where they can help, many threads at one pace."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import httpx2
from huggingface_hub import constants

from audio_compositionality.support.errors import causes_of
from audio_compositionality.support.loopback import is_loopback
from audio_compositionality.support.retries import LONGEST_WAIT, WAITS, requested_wait
from audio_compositionality.support.text import first_line, shortened

from ..base import ModelError
from ..loading.names import ENDPOINT, KEY_VARIABLE
from .endpoint_settings import EndpointSettings, without_key

MOST_BYTES = 1_000_000
"""Most bytes of a decompressed reply. An answer of 1,024 tokens with log-probabilities has a tenth of it."""

MOST_REDIRECTS = 3
"""Most redirects within a server that are followed for one question."""

REPEATED = frozenset({307, 308})
"""Redirects that keep the request; others turn it into a GET, which asks nothing (RFC 9110, 15.4)."""

_SUFFIX = "/chat/completions"


class OfflineError(Exception):
    """Nothing may be sent from this machine."""


class DeadlineError(Exception):
    """An exchange took longer than it may."""


class TooLargeError(Exception):
    """A reply has more bytes than `MOST_BYTES`.

    Attributes:
        status: of the reply.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"{status} with more than {MOST_BYTES} bytes")
        self.status = status


class RedirectError(Exception):
    """A redirect that is not followed.

    Attributes:
        status: of the reply.
        source: scheme, host and port of the server that was asked.
        target: scheme, host and port of the server that it names; None where it names none.
        endpoint: the URL to give where the other server is meant, up to /v1; None where it is unknown.
    """

    def __init__(self, status: int, source: str, target: str | None, endpoint: str | None = None) -> None:
        super().__init__(f"{status} from {source} to {target}")
        self.status = status
        self.source = source
        self.target = target
        self.endpoint = endpoint


@dataclass(frozen=True)
class HttpReply:
    """What a server sent back.

    Attributes:
        status: of HTTP.
        headers: by names in any case.
        body: decompressed.
        encoding: of its text.
    """

    status: int
    headers: httpx2.Headers
    body: bytes
    encoding: str

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(self.encoding, "replace")


class Server:
    """Sends questions to one server from any number of threads, until it is closed; connections are kept meanwhile.

    The event loop of one thread sends and receives everything. Only so does an exchange end at its deadline whatever it
    waits for: a connection, or the next byte of a head or of a body.
    """

    def __init__(self, url: str, silence: float) -> None:
        """Nothing is sent.

        Args:
            url: without `/chat/completions`, which is appended.
            silence: seconds without a byte from the server after which an exchange fails.
        """
        self._url = completions_url(url)
        self._is_here = is_loopback(httpx2.URL(self._url).host)
        self._client = httpx2.AsyncClient(
            follow_redirects=False,
            timeout=silence,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            verify=_certificates(),
            # A proxy is another machine: what is meant for this one, and its key, would leave it.
            trust_env=not self._is_here,
        )
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoint-http", daemon=True)
        self._thread.start()

    def post(self, question: bytes, key: str | None, seconds: float) -> HttpReply:
        """Send a question and wait for the whole reply, whatever its status is.

        Args:
            question: JSON.
            key: for the header Authorization; None where there is none.
            seconds: limit for the exchange.

        Raises:
            OfflineError: HF_HUB_OFFLINE is set, and the server is another machine.
            DeadlineError: there is no complete reply after so many seconds.
            TooLargeError: it has more than `MOST_BYTES`.
            RedirectError: it redirects to another server, or in a way that loses the question.
            httpx2.HTTPError: the server is not there, broke the connection, or breaks the protocol.
            CancelledError: it was closed meanwhile.
        """
        if constants.is_offline_mode() and not self._is_here:
            raise OfflineError
        with self._lock:
            if self._is_closed:
                raise CancelledError
            exchange = asyncio.run_coroutine_threadsafe(self._within(question, key, seconds), self._loop)
        return exchange.result()

    def abandon(self) -> None:
        """End all exchanges under way, each with CancelledError, and begin no more."""
        with self._lock:
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result()

    def close(self) -> None:
        """End all exchanges that are under way, and the connections."""
        self.abandon()
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel(self) -> None:
        exchanges = asyncio.all_tasks() - {asyncio.current_task()}
        for exchange in exchanges:
            exchange.cancel()
        await asyncio.gather(*exchanges, return_exceptions=True)

    async def _within(self, question: bytes, key: str | None, seconds: float) -> HttpReply:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._exchange(question, key)
        except TimeoutError:
            if limit.expired():
                raise DeadlineError from None
            raise

    async def _exchange(self, question: bytes, key: str | None) -> HttpReply:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        request = self._client.build_request("POST", self._url, content=question, headers=headers)
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._client.send(request, stream=True)
            try:
                if not response.has_redirect_location:
                    return await _whole(response)
                request = _redirected(response)
            finally:
                await response.aclose()
        raise RedirectError(response.status_code, _origin(request.url), _origin(request.url))


def completions_url(url: str) -> str:
    """The URL for questions to a server: `/v1` is added to a URL that does not end in it, then `/chat/completions`."""
    if url.endswith(_SUFFIX):
        return url
    return f"{url if url.endswith('/v1') else url + '/v1'}{_SUFFIX}"


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates, read once: that takes a good part of the time of a short exchange."""
    return httpx2.create_ssl_context()


async def _whole(response: httpx2.Response) -> HttpReply:
    """The reply, read to its end.

    Raises:
        TooLargeError: it is too large, by its own statement or in fact.
        httpx2.HTTPError: it breaks off and its status is no error; of an error the part received is kept.
    """
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise TooLargeError(response.status_code)
    body = bytearray()
    try:
        # A server may compress a gigabyte into a megabyte: the content is read in pieces.
        async with aclosing(response.aiter_bytes()) as parts:
            async for part in parts:
                body += part
                if max(len(body), response.num_bytes_downloaded) > MOST_BYTES:
                    raise TooLargeError(response.status_code)
    except httpx2.HTTPError:
        if response.is_success:
            raise
    return HttpReply(response.status_code, response.headers, bytes(body), response.encoding or "utf-8")


def _redirected(response: httpx2.Response) -> httpx2.Request:
    """The request that a redirect asks for.

    Raises:
        RedirectError: it goes to another server, or without the question.
    """
    request, source = response.next_request, _origin(response.url)
    if request is None:
        raise RedirectError(response.status_code, source, None)
    target = _origin(request.url)
    if target != source or response.status_code not in REPEATED:
        raise RedirectError(response.status_code, source, target, _endpoint(request.url))
    return request


def _origin(url: httpx2.URL) -> str:
    """Scheme, host and port of a URL (RFC 6454); a user and a password are left out."""
    # httpx2 removes the default port of the scheme.
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def _endpoint(url: httpx2.URL) -> str | None:
    """The endpoint's URL, from the URL of its questions; None where that holds more than the usual path, since the rest
    may be a key."""
    is_usual = url.scheme in ("http", "https") and url.path == f"/v1{_SUFFIX}" and not url.query
    return f"{_origin(url)}/v1" if is_usual else None


RETRIED = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same question may still be answered."""

TOO_MANY = 429

LONGEST_WORDS = 200
"""Most characters of a server's words in a message."""

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
    """The time, for the waits between tries; in tests only these move it."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def wait_until(self, moment: float, stopped: threading.Event) -> None:
        """Wait for a moment, or until there is nothing more to wait for."""
        stopped.wait(max(0.0, moment - self.now()))


@dataclass(frozen=True)
class Failure:
    """The reason why a question has no answer, without the client's error, which holds the request and so the key.

    Attributes:
        reason: in words; without the key.
        advice: what to do about it.
        status: HTTP status of the server's answer; None where there was none.
        is_transient: whether the same question may be answered later.
        requested_wait: seconds that the server asks to wait; None where it does not.
    """

    reason: str
    advice: str = "see the server's message"
    status: int | None = None
    is_transient: bool = False
    requested_wait: float | None = None


class Stopped(Exception):  # noqa: N818, no error: nobody sees it
    """Another question has failed for good, so that this one is not asked any more."""


class Pace:
    """The time of the next question, common to all threads, so that a server that asks one to wait is left alone.

    Waits are not random: the same failures make the same waits.
    """

    def __init__(self, name: str, clock: Clock, threads: int) -> None:
        """Take the model's name, for messages, the clock, and how many threads there are at most."""
        self._name = name
        self._clock = clock
        # Where a server admits one question at a time, each thread may be refused as often as there are others.
        self._most_tries = threads * (len(WAITS) + 1)
        self._lock = threading.Lock()
        self._resume = clock.now()
        self._answered = 0

    def call(self, ask: Callable[[], Answer | Failure], stopped: threading.Event) -> Answer:
        """The server's answer; transient failures are retried, five tries in all.

        Tries after a rate limit are counted anew where another question was answered meanwhile: then the server works,
        and only others had its answers. That goes on for five tries for each thread.

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
            who = "all questions wait" if is_for_all else "asked again after"
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
    """The failure behind an error of the client; None for any other error.

    Args:
        error: of `Server.post`, or of reading what it returns.
        key: that was sent, to be masked.
        model: its name on the server.
        settings: how the server was asked.
    """
    if isinstance(error, OfflineError):
        return Failure(
            "HF_HUB_OFFLINE is set, and the server is not on this machine: no question is sent", "unset HF_HUB_OFFLINE"
        )
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
    cause = tuple(causes_of(error))[-1]
    why = shortened(without_key(_cause_of(cause), key), LONGEST_WORDS)
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
        f"there was no complete answer within {deadline:g} s, the limit of a question with all its tries",
        "see whether the server is overloaded, or allow more (--set deadline=...)",
    )


def _redirect(error: RedirectError, key: str | None, model: str) -> Failure:
    source, target = (shortened(without_key(name or "", key), LONGEST_WORDS) for name in (error.source, error.target))
    if error.target is None:
        reason = f"the server {source} answered {error.status}, a redirect to no address"
        return Failure(reason, "check the URL, which goes up to /v1", error.status)
    if error.target == error.source:
        what = f"more than {MOST_REDIRECTS} times" if error.status in REPEATED else "in a way that loses the question"
        reason = f"the server {source} redirects ({error.status}) within it {what}"
        return Failure(reason, "give the URL that it redirects to, up to /v1", error.status)
    name = f"{ENDPOINT}{model}@" + ("URL" if error.endpoint is None else without_key(error.endpoint, key))
    reason = f"the server redirects ({error.status}) from {source} to {target}, where nothing was sent"
    return Failure(reason, f"if that is the one to ask, name it: {shortened(name, LONGEST_WORDS)}", error.status)


def no_completion(what: str) -> Failure:
    """The failure of a reply that is no answer; `what` it is instead, without the key."""
    return Failure(
        f"the server's answer is not a chat completion ({shortened(what, LONGEST_WORDS)})",
        "check that the URL is that of an OpenAI-compatible server, up to /v1",
    )


def refusal_of(reply: HttpReply, key: str | None) -> Failure:
    """The failure of a reply with an error status; it has the server's words, without the key."""
    status = reply.status
    # Cut only after masking: a part of the key could not be recognised.
    words = shortened(without_key(" ".join(_words_of(reply).split()), key), LONGEST_WORDS)
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
        advice = "see the server's message; another model or shorter clips may work"
    reason = f"the server answered {status}" + (f" ({words})" if words else "")
    return Failure(reason, advice, status, status in RETRIED, requested_wait(reply.headers))


def _words_of(reply: HttpReply) -> str:
    """The server's own words about a failure; empty where they are a page or cannot be read."""
    try:
        return server_words(json.loads(reply.body))
    except RecursionError:
        return ""
    except ValueError:
        return "" if "html" in reply.headers.get("Content-Type", "").lower() else reply.text


def server_words(content: Any) -> str:
    """The message within the JSON of an error: OpenAI's ``{"error": {"message"}}``, or one of the usual others."""
    while isinstance(content, list) and content:
        content = content[0]
    if not isinstance(content, dict):
        return str(content)
    for name in ("error", "message", "detail", "errors"):
        if content.get(name):
            return server_words(content[name])
    return str(content)


def _cause_of(error: BaseException) -> str:
    """The first line of an error; of several, as of the addresses of one name, of the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    # The words of asyncio, in place of the system's own reason.
    if isinstance(error, OSError) and error.errno is not None and "Connect call failed" in str(error):
        return os.strerror(error.errno)
    return first_line(error)


class QuestionWindow:
    """A window that moves over questions: so many are under way, and the next one is asked when any is answered.

    A slow question occupies one thread alone, whatever call it came with.
    """

    def __init__(self, threads: int) -> None:
        """Take the most questions that are under way at a time."""
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="endpoint")
        self._stopped = threading.Event()
        self._telling = threading.Lock()
        self._change = threading.Condition()
        self._put = self._left = 0
        self._errors: dict[int, BaseException] = {}

    def put(
        self,
        questions: Sequence[Callable[[threading.Event], Answer]],
        on_answer: Callable[[int, Answer], object] | None = None,
    ) -> list[Future[Answer]]:
        """Accept questions, to be asked in order after earlier ones.

        Args:
            questions: each is given an event that is set when there is nothing more to ask.
            on_answer: called with the place of each question and its answer as soon as that is there, by any thread,
                never by two at a time. An error that it raises counts as the question's.

        Returns:
            a future answer for each.
        """
        futures = []
        for place, question in enumerate(questions):
            with self._change:
                number = self._put
                self._put += 1
                self._left += 1
            future = self._pool.submit(self._ask, question, place, on_answer)
            future.add_done_callback(partial(self._note, number))
            futures.append(future)
        return futures

    def wait_for_room(self) -> None:
        """Wait until more questions can be put before a thread has nothing to do.

        Raises:
            Exception: see `wait`.
        """
        self.wait(2 * self._threads)

    def wait(self, most: int = 0) -> None:
        """Wait until no more than so many questions are left, under way or not begun.

        Raises:
            Exception: that of the first question in order that failed. Questions under way at that time are waited for,
                and no further one is asked.
        """
        with self._change:
            self._change.wait_for(lambda: bool(self._errors) or self._left <= most)
        if self._errors:
            self.stop(wait=True)
            raise self._errors[min(self._errors)]

    def stop(self, *, wait: bool) -> None:
        """Ask no further question; ``wait`` for those that are under way."""
        self._stopped.set()
        self._pool.shutdown(wait=wait, cancel_futures=True)

    def _ask(
        self,
        question: Callable[[threading.Event], Answer],
        place: int,
        on_answer: Callable[[int, Answer], object] | None,
    ) -> Answer:
        if self._stopped.is_set():
            raise Stopped
        answer = question(self._stopped)
        if on_answer is not None:
            # By this thread: answers are kept whatever the calling thread is busy with.
            with self._telling:
                on_answer(place, answer)
        return answer

    def _note(self, number: int, future: Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        with self._change:
            self._left -= 1
            if error is not None and not isinstance(error, (Stopped, CancelledError)):
                self._errors[number] = error
                self._stopped.set()
            self._change.notify_all()


@contextmanager
def open_window(threads: int) -> Iterator[QuestionWindow]:
    """A window until the end of the block, which waits for the remaining questions.

    Raises:
        Exception: see `QuestionWindow.wait`; as the block raises, after questions under way have been answered.
    """
    window = QuestionWindow(threads)
    try:
        yield window
        window.wait()
    except Exception:
        window.stop(wait=True)
        raise
    except BaseException:
        # Interrupted by the user: questions under way are not waited for.
        window.stop(wait=False)
        raise
    window.stop(wait=True)
