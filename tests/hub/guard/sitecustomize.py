"""Lets a process talk to this machine alone, and notes every attempt to reach another one.

An audit hook: Python raises these events below every library written in Python, `asyncio` included. Code that opens
sockets by itself, such as hf_xet, is not seen; the tests switch it off.

With this folder on PYTHONPATH, Python imports the module at its start, and the guard holds from the first line on in
every process that has `LOOPBACK_GUARD_LOG` in its environment, and in the processes that those start. In the process
of the tests it is imported like any module, and holds between `arm` and `disarm`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

LOG = "LOOPBACK_GUARD_LOG"
"""Environment variable: the file to which each attempt is appended, one a line."""

attempts: list[str] = []
"""Attempts of this process since `arm`."""

_armed = False

_NAMES = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
_ADDRESSES = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1, "socket.getnameinfo": 0}


def arm() -> None:
    """Refuse what would leave this machine, until `disarm`."""
    global _armed
    attempts.clear()
    _armed = True


def disarm() -> None:
    """Let everything through again; the hook itself cannot be taken away."""
    global _armed
    _armed = False


def _is_here(host: Any) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    return host in (None, "", "localhost", "::1") or str(host).removeprefix("::ffff:").startswith("127.")


def _note(attempt: str) -> None:
    attempts.append(attempt)
    if log := os.environ.get(LOG):
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{attempt}\n")


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _armed:
        return
    if event in _NAMES:
        host = arguments[0]
        if _is_here(host):
            return
        # `datasets` looks for its viewer beside the endpoint, http://datasets-server.127.0.0.1:PORT, and does without
        # when there is none: this name is of this machine's making, and has to be unknown without a question outside.
        viewer = isinstance(host, str) and host.startswith("datasets-server.")
        if not (viewer and _is_here(host.removeprefix("datasets-server."))):
            _note(f"{event} {host!r}")
        import socket

        raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is not this machine")
    if event in _ADDRESSES:
        address = arguments[_ADDRESSES[event]]
        # Sockets in the file system have a path for an address; a datagram on a connected socket has none.
        if isinstance(address, tuple) and not _is_here(address[0]):
            _note(f"{event} {address!r}")
            raise ConnectionRefusedError(f"{address!r} is not this machine")


sys.addaudithook(_watch)
if os.environ.get(LOG):
    arm()
