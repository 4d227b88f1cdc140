"""A Hub on this machine, for the real clients: repositories, uploads, pull requests, and faults on order.

It does what the clients of Hugging Face ask of the Hub, with the Hub's own answers and refusals. It serves 127.0.0.1
alone.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
import traceback
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from . import administration, discussions, reading, writing  # noqa: F401, they enter their endpoints
from .accounts import Accounts, Role
from .faults import CutDownload, CutUpload, Delay, Drop, Fault, Faults, Meanwhile, Reply, Status
from .storage import Repositories, Repository
from .wire import Call, HubError, Response, find_endpoint, refusal


@dataclass
class Request:
    """A request that was made."""

    method: str
    target: str
    range: str | None = None
    status: int | None = None


@dataclass(eq=False, repr=False)
class LoopbackHub:
    """A Hub that listens as soon as it is made, until `close`."""

    accounts: Accounts = field(default_factory=Accounts)
    faults: Faults = field(default_factory=Faults)
    requests: list[Request] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # requests for endpoints that this Hub lacks
    errors: list[str] = field(default_factory=list)  # tracebacks of its own mistakes
    # Signature of an address to upload to -> repository, hash and size of what belongs there.
    uploads: dict[str, tuple[Repository, str, int]] = field(default_factory=dict)
    # Kind and name of a repository, and hash of what has arrived, verified or not.
    uploaded: set[tuple[str, str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.repositories = Repositories()
        self.closing = threading.Event()
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="loopback-hub")
        self._thread.start()

    def token(self, user: str, role: Role = "write", permissions: tuple[str, ...] = ()) -> str:
        """A token of a user; see `Accounts.token`."""
        return self.accounts.token(user, role, permissions)

    def made(self, method: str, pattern: str = "") -> list[Request]:
        """The requests so far with this method whose path and query contain a pattern."""
        return [made for made in list(self.requests) if made.method == method and re.search(pattern, made.target)]

    def close(self) -> None:
        """Stop listening, end every connection, and wait for the threads."""
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        # `server_close` alone leaves connections that are kept alive answering.
        self._server.end_connections()
        self._server.server_close()

    def __enter__(self) -> LoopbackHub:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 64
    # Joined by `server_close`, so that no thread outlives the folder.
    daemon_threads = False

    def __init__(self, hub: LoopbackHub) -> None:
        self.hub = hub
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        """End the connections that are still open, so that their threads end."""
        with self._lock:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that goes away is no mistake of the Hub's; anything else a test has to hear of.
        trace = traceback.format_exc()
        if "ConnectionResetError" not in trace and "BrokenPipeError" not in trace:
            self.hub.errors.append(trace)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_any(self) -> None:
        hub = self.server.hub
        made = Request(self.command, self.path, self.headers.get("Range"))
        hub.requests.append(made)
        fault = hub.faults.take(self.command, self.path)
        if isinstance(fault, CutUpload):
            self._receive(fault.after)
            self._end(reset=True)
            return
        body = self._receive()
        match fault:
            case Status(acts=False):
                self._send(made, _ordered(fault))
                return
            case Reply(content, type):
                self._send(made, Response(200, content, {"Content-Type": type}))
                return
            case Drop(acts=False):
                self._end(fault.reset)
                return
            case Delay(seconds):
                if hub.closing.wait(seconds):
                    self._end(reset=True)
                    return
            case Meanwhile(action):
                action()
        response = self._act(body)
        match fault:
            case Status():
                self._send(made, _ordered(fault))
            case Drop(reset=reset):
                self._end(reset)
            case _:
                self._send(made, response, fault)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815, names that the base class looks for

    def _act(self, body: bytes) -> Response:
        hub = self.server.hub
        parts = urlsplit(self.path)
        query = dict(reversed(parse_qsl(parts.query, keep_blank_values=True)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = find_endpoint(self.command, parts.path)
        try:
            if found is None:
                hub.unknown.append(f"{self.command} {self.path}")
                raise HubError(404, "This Hub has no such endpoint")
            function, arguments = found
            token = hub.accounts.authenticate(headers.get("authorization"))
            return function(Call(hub, self.command, parts.path, query, headers, body, token), **arguments)
        except HubError as error:
            return refusal(error)
        except Exception:
            hub.errors.append(traceback.format_exc())
            return refusal(HubError(500, "The Hub made a mistake"))

    def _send(self, made: Request, response: Response, fault: Fault | None = None) -> None:
        # Before the client can go on, so that what it counts is there.
        made.status = response.status
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if isinstance(fault, CutDownload):
            self.wfile.write(response.body[: fault.after])
            self._end(fault.reset)
        else:
            self.wfile.write(response.body)

    def _receive(self, limit: int | None = None) -> bytes:
        """The body of the request, whole or its first bytes."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while limit is None or len(body) < limit:
                size = int(self.rfile.readline().split(b";")[0] or b"0", 16)
                body += self._read(size)
                if self._read(2) and size == 0:
                    break
            return body
        length = int(self.headers.get("Content-Length") or 0)
        return self._read(length if limit is None else min(limit, length))

    def _read(self, size: int) -> bytes:
        content = self.rfile.read(size)
        if len(content) < size:
            raise ConnectionResetError
        return content

    def _end(self, reset: bool) -> None:
        """End the connection now."""
        self.close_connection = True
        if reset:
            # Closed with what is unsent thrown away, which is what a reset is; the server would shut it down in order.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `LoopbackHub.requests` has it."""


def _ordered(fault: Status) -> Response:
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
    if fault.rate_limit is not None:
        headers["RateLimit"] = f'"api";r=0;t={fault.rate_limit}'
    if fault.html:
        return Response(
            fault.status, b"<html><body>Bad Gateway</body></html>", {"Content-Type": "text/html", **headers}
        )
    return refusal(HubError(fault.status, fault.message, code=fault.code, **headers))
