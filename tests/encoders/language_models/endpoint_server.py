"""An OpenAI-compatible server on this machine for the real client, with faults on order, and a clock for tests."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import socket
import struct
import threading
import wave
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from audio_compositionality.encoders.language_models.endpoint import Clock, EndpointModel
from audio_compositionality.encoders.loading.names import parse_endpoint
from audio_compositionality.encoders.options import LanguageOptions


class StillClock(Clock):
    """Stands still but for who waits, so that hours pass at once; keeps the moments that were waited for."""

    def __init__(self) -> None:
        self.moment = 0.0
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def now(self) -> float:
        with self._lock:
            return self.moment

    async def wait_until(self, moment: float, stopped: asyncio.Event) -> None:
        with self._lock:
            if moment > self.moment:
                self.waits.append(moment - self.moment)
                self.moment = moment


@dataclass(frozen=True)
class Request:
    """A request that arrived.

    Attributes:
        path: of the URL.
        headers: by names in lower case.
        body: of the JSON.
        moment: of the server's clock.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    moment: float

    @property
    def content(self) -> Any:
        return self.body["messages"][0]["content"]

    @property
    def prompt(self) -> str:
        return self.content if isinstance(self.content, str) else self.content[-1]["text"]

    def sound(self) -> tuple[np.ndarray, int]:
        """int16 [samples] and the rate in Hz of the WAV file that was sent."""
        with wave.open(io.BytesIO(base64.b64decode(self.content[0]["input_audio"]["data"], validate=True))) as file:
            assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
            return np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """The connection ends before the answer does: after so many bytes of it, or with a reset before the first."""

    after: int = 10
    reset: bool = False


@dataclass(frozen=True)
class Raw:
    """A reply as its bytes come, head and all, until there are no more or nobody takes them.

    Attributes:
        parts: of the reply; `LoopbackEndpoint.taken` counts their bytes.
    """

    parts: Iterable[bytes]


def head(status: int = 200, **headers: str) -> bytes:
    """The head of a reply."""
    lines = [f"HTTP/1.1 {status} Some", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def completion(text: Any = "A", *, finish: str = "stop", **changes: Any) -> Response:
    """A chat completion; `changes` are of the whole answer, of `message` and of `logprobs`."""
    message = {"role": "assistant", "content": text, **changes.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": changes.pop("logprobs", None)}
    answer = {
        "id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}, **changes,
    }  # fmt: skip
    return Response(body=json.dumps(answer).encode(), headers={"Content-Type": "application/json"})


def refusal(status: int, message: str = "no", **headers: str) -> Response:
    """An error as OpenAI's servers word it."""
    body = json.dumps({"error": {"message": message, "type": "some_error", "code": None}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, body, {"Content-Type": "application/json", **named})


def logprobs(**tokens: float) -> dict[str, Any]:
    """The log-probabilities of the first token; the first of `tokens` is the one that was taken."""
    listed = [{"token": token, "logprob": value, "bytes": None} for token, value in tokens.items()]
    return {"content": [{**listed[0], "top_logprobs": listed}], "refusal": None}


class LoopbackEndpoint:
    """A server that listens as soon as it is made, until `close`.

    Attributes:
        url: as it stands in a model's name.
        requests: all that arrived, in order.
        respond: what to do about a request; by default the answer repeats the prompt.
        faults: taken in order before `respond` is asked.
        most_at_once: requests that were under way at a time.
        taken: bytes of `Raw` replies that somebody has taken.
    """

    def __init__(self, clock: Clock) -> None:
        self.requests: list[Request] = []
        self.respond: Callable[[Request], Response | Cut | Raw] = lambda request: completion(f"re: {request.prompt}")
        self.faults: list[Response | Cut | Raw] = []
        self.most_at_once = self._at_once = self.taken = 0
        self.closing = threading.Event()
        self.clock = clock
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"endpoint": self}))
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}/v1"
        self.name = f"endpoint:tiny@{self.url}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def act(self, request: Request) -> Response | Cut | Raw:
        with self.lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            fault = self.faults.pop(0) if self.faults else None
        try:
            return fault or self.respond(request)
        finally:
            with self.lock:
                self._at_once -= 1

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    endpoint: LoopbackEndpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        action = self.endpoint.act(Request(self.path, headers, json.loads(body), self.endpoint.clock.now()))
        if isinstance(action, Raw):
            self.close_connection = True
            for part in action.parts:
                self.wfile.write(part)
                with self.endpoint.lock:
                    self.endpoint.taken += len(part)
            return
        if isinstance(action, Cut):
            if action.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                os.close(self.connection.detach())
                return
            action, length = completion("never whole"), action.after
        else:
            length = len(action.body)
        try:
            self.send_response(action.status)
            for name, value in {**action.headers, "Content-Length": str(len(action.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(action.body[:length])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client had waited long enough

    def handle(self) -> None:
        # Of a reset on order the base class knows nothing.
        with contextlib.suppress(OSError, ValueError):
            super().handle()

    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `LoopbackEndpoint.requests` has it."""


def alone(prompts: list[str]) -> tuple[list[list[Any]], list[str]]:
    """Prompts about no clip, as `Model.answer` takes them."""
    return [[] for _ in prompts], prompts


@dataclass(frozen=True)
class Clip:
    waveform: np.ndarray
    sample_rate: int = 32_000


def clips_of(count: int, samples: int = 64) -> list[Clip]:
    """So many clips of noise."""
    rng = np.random.default_rng(count)
    return [Clip(rng.uniform(-1, 1, samples).astype(np.float32)) for _ in range(count)]


def prompts_of(count: int) -> list[str]:
    return [f"question {number}" for number in range(count)]


def model_of(
    server: LoopbackEndpoint, concurrency: int | None = None, clock: Clock | None = None, **options: Any
) -> EndpointModel:
    """The model behind a server, by default with the server's clock; nothing has been sent."""
    asked = LanguageOptions(batch_size=concurrency, **options)
    return EndpointModel(parse_endpoint(server.name), asked, clock=clock or server.clock)
