"""Questions to a server over HTTP: a reply is bounded in size and in time, and nothing goes on to another server."""

from __future__ import annotations

import asyncio
import ssl
import threading
from concurrent.futures import CancelledError
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache

import httpx2
from huggingface_hub import constants

MOST_BYTES = 1_000_000
"""Bytes of a reply when it is decompressed. An answer of 1,024 tokens with what is told of each has a tenth of it."""

MOST_REDIRECTS = 3
"""Redirects within a server that are followed for one question."""

REPEATED = frozenset({307, 308})
"""Redirects after which the same request is sent again; after others a GET is, which asks nothing (RFC 9110, 15.4)."""

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
        target: those of the one that it names; None where it names none.
        endpoint: the URL to give where the other server is meant, up to /v1; None where it cannot be told.
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

    All that is sent and received is so in the event loop of one thread. Only there an exchange ends when its time is
    over whatever it waits for: a connection, or the next byte of a head or of a body.
    """

    def __init__(self, url: str, silence: float) -> None:
        """Nothing is sent.

        Args:
            url: up to what `/chat/completions` is appended to.
            silence: seconds without a sign of the server after which an exchange fails.
        """
        self._url = completions_url(url)
        self._client = httpx2.AsyncClient(
            follow_redirects=False,
            timeout=silence,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            verify=_certificates(),
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
            seconds: that all of it may take.

        Raises:
            OfflineError: HF_HUB_OFFLINE is set.
            DeadlineError: there is no whole reply after so many seconds.
            TooLargeError: it has more than `MOST_BYTES`.
            RedirectError: it sends on to another server, or in a way in which the question gets lost.
            httpx2.HTTPError: the server is not there, broke the connection, or speaks otherwise.
            CancelledError: it was closed meanwhile.
        """
        if constants.is_offline_mode():
            raise OfflineError
        with self._lock:
            if self._is_closed:
                raise CancelledError
            exchange = asyncio.run_coroutine_threadsafe(self._within(question, key, seconds), self._loop)
        return exchange.result()

    def abandon(self) -> None:
        """End all exchanges that are under way, each with CancelledError, and begin none: it is a server to be left."""
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
    """Where a server takes questions: `/v1` is added to a URL that does not end in it, then `/chat/completions`."""
    if url.endswith(_SUFFIX):
        return url
    return f"{url if url.endswith('/v1') else url + '/v1'}{_SUFFIX}"


@cache
def _certificates() -> ssl.SSLContext:
    """Made once: reading them takes a good part of the time of a short exchange."""
    return httpx2.create_ssl_context()


async def _whole(response: httpx2.Response) -> HttpReply:
    """The reply, read to its end.

    Raises:
        TooLargeError: it says that it is larger than it may be, or turns out to be.
        httpx2.HTTPError: it breaks off, and it is no error; what an error says is worth what has come of it.
    """
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise TooLargeError(response.status_code)
    body = bytearray()
    try:
        # A server may compress a gigabyte into a megabyte: what is here comes bit by bit.
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
    # httpx2 takes away the port that is the scheme's own.
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def _endpoint(url: httpx2.URL) -> str | None:
    """What is given as the URL of an endpoint whose questions go to a URL; None where that holds more than the usual
    path, in which keys may stand."""
    is_usual = url.scheme in ("http", "https") and url.path == f"/v1{_SUFFIX}" and not url.query
    return f"{_origin(url)}/v1" if is_usual else None
