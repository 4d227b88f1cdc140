"""Without a network, a name that needs one says so at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.downloads import WeightsFile, check_reachable
from audio_compositionality.encoders.loading.registry import load_model


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """No connection can be opened and no proxy is set, but nobody told the Hub's client; returns who was asked."""
    asked: list[str] = []

    def refuse(address: tuple[str, int], **_: object) -> None:
        asked.append(address[0])
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: pytest.fail("the client was asked"))
    return asked


def test_a_name_says_what_to_pass(no_network: list[str]) -> None:
    with pytest.raises(ModelError, match=r"cannot be reached.*Without network, pass whisper-base=FOLDER"):
        load_model("whisper-base")
    with pytest.raises(
        ModelError, match=r"cannot get weights\.pt from https://example\.org.*model=/path/to/weights\.pt"
    ):
        WeightsFile("weights.pt", "https://example.org/weights.pt", 1).fetch("model")
    with pytest.raises(ModelError, match=r"cannot be reached.*model=/path/to/weights\.pt"):
        WeightsFile("weights.pt", "org/name", 1).fetch("model")
    assert no_network
    assert "example.org" in no_network


def test_a_client_that_is_told_to_be_offline_says_so(no_network: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> None:
        raise LocalEntryNotFoundError("An error happened while trying to locate the file")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", absent)
    with pytest.raises(ModelError, match=r"HF_HUB_OFFLINE is set, and the cache does not.*whisper-base=FOLDER"):
        load_model("whisper-base")
    assert not no_network


def test_a_proxy_is_left_to_the_client(no_network: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy:3128"})
    check_reachable("https://example.org")
    assert not no_network
