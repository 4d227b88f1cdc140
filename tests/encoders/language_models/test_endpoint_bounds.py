"""What a server behind a model cannot do: send questions on to another, fill the memory, or take for ever."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest

from audio_compositionality.encoders.language_models import endpoint
from audio_compositionality.encoders.loading.names import parse_endpoint
from audio_compositionality.encoders.options import LanguageOptions
from audio_compositionality.support.retries import WAITS

from .endpoint_server import (
    LoopbackEndpoint,
    Raw,
    Request,
    Response,
    StillClock,
    alone,
    completion,
    head,
    model_of,
    refusal,
)

MB = 1_000_000


def error_of(model: endpoint.EndpointModel, prompts: int = 1) -> endpoint.EndpointError:
    """The error of questions, which is one line."""
    with pytest.raises(endpoint.EndpointError) as caught:
        model.answer(*alone([f"question {number}" for number in range(prompts)]))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    return caught.value


# Redirects


@pytest.mark.parametrize(
    ("status", "place"),
    [(301, "{url}"), (307, "/v1/chat/completions"), (308, "")],
)
def test_a_redirect_is_not_followed(server: LoopbackEndpoint, clock: StillClock, status: int, place: str):
    other = LoopbackEndpoint(clock)
    try:
        location = place.format(url=f"{other.url}/chat/completions")
        server.respond = lambda request: Response(status, b"over there", {"Location": location})
        error = error_of(model_of(server))
    finally:
        other.close()
    assert f"the server redirects ({status}), which is not followed; give the URL" in str(error)
    assert (error.status, len(server.requests), other.requests, clock.waits) == (status, 1, [], [])


# Size


def endless(first: bytes, total: int = 600 * MB, part: bytes = b" " * 2**16) -> Iterator[bytes]:
    """A reply of 600 MB, which nobody has to make."""
    yield first
    for _ in range(total // len(part)):
        yield part


def bomb(code: Callable[[], Any], total: int = 300 * MB) -> Iterator[bytes]:
    """The compressed form of a reply of 300 MB."""
    maker, part = code(), b" " * 2**20
    for _ in range(total // len(part)):
        yield maker.compress(part)
    yield maker.flush()


def gzipped() -> Any:
    return zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)


REPLIES: dict[str, Callable[[], Iterator[bytes]]] = {
    "to its end": lambda: endless(head()),
    "error": lambda: endless(head(400, Content_Type="application/json") + b'{"error": "'),
    "error that can pass": lambda: endless(head(503, Retry_After="1")),
    "gzip": lambda: chain([head(Content_Encoding="gzip")], bomb(gzipped)),
    "deflate": lambda: chain([head(Content_Encoding="deflate")], bomb(zlib.compressobj)),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_that_is_too_large_ends_it_at_once_and_fills_no_memory(
    server: LoopbackEndpoint, clock: StillClock, name: str
):
    parts = REPLIES[name]()
    server.respond = lambda request: Raw(parts)  # type: ignore[assignment, return-value]
    model = model_of(server)
    tracemalloc.start()
    try:
        error = error_of(model)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "with more than 1 MB; the rest was not read" in str(error)
    assert (len(server.requests), clock.waits) == (1, [])
    # That of the sockets between the two is in it.
    assert server.taken < 64 * MB
    assert most < 32 * MB


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("more", [0, 1])
def test_a_megabyte_may_be_answered_and_not_a_byte_more(server: LoopbackEndpoint, encoding: str, more: int):
    body = completion("A").body
    body += b" " * (endpoint.MOST_BYTES - len(body) + more)
    packed = gzip.compress(body) if encoding == "gzip" else body
    server.respond = lambda request: Response(body=packed, headers={"Content-Encoding": encoding})
    if more:
        assert "with more than 1 MB" in str(error_of(model_of(server)))
    else:
        assert model_of(server).answer(*alone(["a"])) == ["A"]
    assert endpoint.MOST_BYTES == MB


# Time


def dribble(first: bytes, each: bytes = b" ", count: int = 600, seconds: float = 0.1) -> Iterator[bytes]:
    """A reply a byte at a time, which has no silence in it; whole it would take a minute."""
    pause = threading.Event()
    yield first
    for _ in range(count):
        pause.wait(seconds)
        yield each


SLOW: dict[str, Callable[[], Iterator[bytes]]] = {
    "body": lambda: dribble(head()),
    "head": lambda: dribble(b"HTTP/1.1 200 Fine\r\nX-Long: "),
    "words before the head": lambda: dribble(b"", each=b"HTTP/1.1 102 Processing\r\n\r\n"),
    "bytes that are none": lambda: dribble(
        head(Content_Encoding="gzip") + b"\x1f\x8b\x08" + bytes(7), each=b"\x00\x00\x00\xff\xff"
    ),
    "silence": lambda: dribble(b"", each=b"", seconds=5, count=12),
}


@pytest.mark.parametrize("name", SLOW)
def test_an_answer_without_end_ends_at_the_deadline(server: LoopbackEndpoint, clock: StillClock, name: str):
    parts = SLOW[name]()
    ended: list[bool] = []

    def replies() -> Iterator[bytes]:
        yield from parts
        ended.append(True)

    server.respond = lambda request: Raw(replies())  # type: ignore[assignment, return-value]
    error = error_of(model_of(server, deadline=0.5))
    assert "there was no complete answer within 0.5 s, the limit of a question with all its tries" in str(error)
    assert "--set deadline=..." in str(error)
    assert not ended
    assert (len(server.requests), clock.waits) == (1, [])


def test_a_connection_that_is_never_made_ends_at_the_deadline(clock: StillClock, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        waiting: list[socket.socket] = []
        try:
            # The system takes one or a few, and then no more.
            with pytest.raises(TimeoutError):
                waiting.extend(socket.create_connection(place, 0.3) for _ in range(50))
            address = parse_endpoint(f"endpoint:tiny@http://127.0.0.1:{place[1]}/v1")
            model = endpoint.EndpointModel(address, LanguageOptions(deadline=0.5), clock=clock)
            assert "no complete answer within 0.5 s" in str(error_of(model))
        finally:
            for one in waiting:
                one.close()


def test_the_tries_of_a_question_share_its_deadline(server: LoopbackEndpoint, clock: StillClock):
    def respond(request: Request) -> Response:
        server.closing.wait(0.4)
        return refusal(503, "later")

    server.respond = respond
    text = str(error_of(model_of(server, deadline=0.6)))
    assert "no complete answer within 0.6 s" in text
    assert 1 <= len(server.requests) <= 2
    # Five would have been made, with all waits between them.
    assert sum(clock.waits) < sum(WAITS)


@pytest.mark.slow
def test_waits_that_the_server_asks_for_do_not_count(server: LoopbackEndpoint):
    """With the clock of the machine: a wait that is longer than the deadline."""
    server.faults = [refusal(429, "slow down", Retry_After="1.5")]
    assert model_of(server, deadline=1, clock=endpoint.Clock()).answer(*alone(["a"])) == ["re: a"]


def test_each_question_has_a_deadline_of_its_own(server: LoopbackEndpoint):
    """All together take longer than one may."""

    def respond(request: Request) -> Response:
        server.closing.wait(0.3)
        return completion("A")

    server.respond = respond
    assert model_of(server, concurrency=1, deadline=2.0).answer(*alone(["a"] * 8)) == ["A"] * 8


# The client


def test_where_questions_go():
    for url in ("http://h/one", "http://h/one/v1", "http://h/one/v1/chat/completions"):
        assert endpoint.completions_url(url) == "http://h/one/v1/chat/completions"
    assert endpoint.completions_url("http://h") == "http://h/v1/chat/completions"
    assert endpoint.completions_url("http://h/one/chat/completions") == "http://h/one/chat/completions"


def test_nothing_of_a_client_stays_behind(server: LoopbackEndpoint, caplog: pytest.LogCaptureFixture):
    """Neither threads nor words of asyncio about what was not waited for."""
    with caplog.at_level(logging.WARNING):
        model = model_of(server, deadline=0.3)
        assert model.answer(*alone(["a", "b"])) == ["re: a", "re: b"]
        server.respond = lambda request: Raw(dribble(head()))  # type: ignore[assignment, return-value]
        error_of(model, prompts=3)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("endpoint")]
    assert not caplog.records
