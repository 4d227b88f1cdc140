"""A Hub on this machine under HF_HUB_OFFLINE: it is reached, and nothing else, whatever it or the environment says."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import _http
from huggingface_hub.utils._runtime import is_xet_available

from audio_compositionality.support.loopback import is_loopback, reach_loopback_hub

CONTENT = b"weights"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "::1"])
def test_a_host_on_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["localhost.evil.com", "127.0.0.1.evil.com", "evil.com", "::ffff:8.8.8.8", "8.8.8.8", "0.0.0.0", "", None],
)
def test_a_host_elsewhere(host):
    assert not is_loopback(host)


class Handler(BaseHTTPRequestHandler):
    """A file of a Hub, said to be in Xet too; /away leads to another machine."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("Location", "http://hub.invalid/file")
        self.send_header("ETag", '"e"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("X-Xet-Hash", "a" * 64)
        self.send_header("Link", '<http://hub.invalid/token>; rel="xet-auth"')
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(CONTENT)

    def log_message(self, *_):
        pass


@pytest.fixture
def serve():
    """`serve()`: a server on this machine that keeps in `asked` what it was asked for."""
    servers = []

    def start():
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.asked = []
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def hub(serve, monkeypatch, tmp_path):
    """A Hub on this machine, reached offline, in an environment with a proxy for everything."""
    hub, proxy = serve(), serve()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{hub.server_port}")
    template = f"{constants.ENDPOINT}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(_http, "_GLOBAL_CLIENT_FACTORY", _http.default_client_factory)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        for either in (name, name.lower()):
            monkeypatch.setenv(either, f"http://127.0.0.1:{proxy.server_port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    huggingface_hub.close_session()
    assert reach_loopback_hub()
    yield hub
    huggingface_hub.close_session()
    assert proxy.asked == []


def test_a_file_comes_from_the_hub_itself_and_not_through_xet_or_a_proxy(hub, tmp_path):
    assert not is_xet_available()
    path = huggingface_hub.hf_hub_download("lab/model", "file", cache_dir=tmp_path)
    assert Path(path).read_bytes() == CONTENT
    assert set(hub.asked) == {"/lab/model/resolve/main/file"}


@pytest.mark.parametrize("path", ["/away", None])
def test_another_machine_stays_out_of_reach(hub, path):
    with pytest.raises(OfflineModeIsEnabled, match=r"hub\.invalid"):
        huggingface_hub.get_session().get("http://hub.invalid/file" if path is None else constants.ENDPOINT + path)


def test_elsewhere_nothing_changes(hub, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://localhost.evil.com")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    assert not reach_loopback_hub()
    assert not constants.HF_HUB_DISABLE_XET
