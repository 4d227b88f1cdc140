"""Nothing of a test on a loopback Hub leaves this machine, or touches what is the user's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .clients import process_environment
from .guard import sitecustomize as guard

ELSEWHERE = """
import asyncio, socket

def fails(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        assert "is not this machine" in str(error), error
    else:
        raise AssertionError(arguments)

async def stream(host):
    await asyncio.open_connection(host, 80)

fails(socket.create_connection, ("192.0.2.1", 80))
fails(socket.getaddrinfo, "example.org", 443)
fails(socket.gethostbyname, "example.org")
fails(socket.socket(type=socket.SOCK_DGRAM).sendto, b"", ("192.0.2.1", 53))
fails(socket.socket(socket.AF_INET6).connect, ("2001:db8::1", 80))
fails(lambda: asyncio.run(stream("192.0.2.1")))
fails(socket.getaddrinfo, "datasets-server.127.0.0.1", 80)
listening = socket.create_server(("127.0.0.1", 0))
socket.create_connection(("localhost", listening.getsockname()[1])).close()
"""


def test_the_guard_lets_nothing_out_also_of_other_processes(hub, tmp_path):
    exec(compile(ELSEWHERE, "elsewhere", "exec"), {})
    assert len(guard.attempts) == 6
    guard.attempts.clear()
    log = tmp_path / "attempts.txt"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ELSEWHERE!r}], check=True)"
    environment = process_environment(hub.url, tmp_path / "home", log)
    subprocess.run([sys.executable, "-c", child], env=environment, check=True, timeout=60)
    assert len(log.read_text().splitlines()) == 6


def test_no_module_of_the_clients_keeps_other_settings(hub, tmp_path):
    """Every address and cache folder in the modules of the clients that are loaded is this test's."""
    elsewhere = ("https://huggingface.co", str(Path.home() / ".cache" / "huggingface"))
    # The public Hub's own name, which others are compared with, and the folder that a default is put together from.
    meant = {"_HF_DEFAULT_ENDPOINT", "HUGGINGFACE_CO_URL_HOME", "default_home"}
    kept = []
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("huggingface_hub", "datasets", "evaluate"):
            for attribute, value in list(vars(module).items()):
                if isinstance(value, (str, Path)) and str(value).startswith(elsewhere) and attribute not in meant:
                    kept.append(f"{name}.{attribute} = {value}")
    assert not kept
