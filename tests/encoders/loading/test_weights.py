from __future__ import annotations

import hashlib
import http.server
import json
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2
import numpy as np
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError, RemoteEntryNotFoundError
from safetensors.torch import save_file

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.beside_weights import RECORD, recorded_data
from audio_compositionality.encoders.loading.downloads import WeightsFile, check_digest, check_reachable
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.loading.twins import TWINS, Twin
from audio_compositionality.encoders.loading.weights import Weights, load_exactly, read_tensors
from audio_compositionality.encoders.networks.small_networks import save_clap, tiny_clap
from audio_compositionality.support.checked_files import digests_of, sealed_json
from audio_compositionality.support.files import cache_folder, sha256_of_file


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address of a server on loopback, and the folder that it serves."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))


def digest(algorithm: str, content: bytes) -> str:
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_weights_are_downloaded_once_and_their_hash_is_checked(
    algorithm: str, site: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    address, folder = site
    content = os.urandom(100_000)
    (folder / "model.pth").write_bytes(content)
    file = WeightsFile("model.pth", f"{address}/model.pth", 100_000, digest(algorithm, content))
    path = file.fetch("model")
    assert path.read_bytes() == content
    assert path.parent == cache_folder() / "weights"
    said = capsys.readouterr().err
    assert f"downloading model.pth (0 MB) from {address}" in said
    assert "100%" in said

    (folder / "model.pth").unlink()
    assert file.fetch("model") == path
    assert "downloading" not in capsys.readouterr().err


def test_a_file_that_has_changed_is_downloaded_anew_where_its_hash_is_on_record(site: tuple[str, Path]) -> None:
    address, folder = site
    (folder / "model.pth").write_bytes(b"published")
    checked = WeightsFile("model.pth", f"{address}/model.pth", 9, digest("sha256", b"published"))
    path = checked.fetch("model")
    path.write_bytes(b"damaged")
    unchecked = WeightsFile("model.pth", f"{address}/model.pth", 9)
    assert unchecked.fetch("model").read_bytes() == b"damaged"
    assert checked.fetch("model").read_bytes() == b"published"
    # What was there stays where nothing better comes.
    (folder / "model.pth").unlink()
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="404"):
        checked.fetch("model")
    assert [file.read_bytes() for file in path.parent.iterdir()] == [b"damaged"]


def test_what_cannot_be_downloaded_says_what_to_pass_instead(
    site: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = site
    with pytest.raises(ValueError, match=r"404[\s\S]*model=/path/to/gone\.pth"):
        WeightsFile("gone.pth", f"{address}/gone.pth", 1).fetch("model")
    (folder / "model.pth").write_bytes(b"not what was published")
    file = WeightsFile("model.pth", f"{address}/model.pth", 22, digest("sha256", b"what was published"))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"cannot download model\.pth from http://127.*hash"):
            file.fetch("model")
    assert not [path for path in (cache_folder() / "weights").rglob("*") if path.is_file()]
    # Of the Hub one without a published hash is taken as safetensors where there is such a file.
    there = {"model.safetensors", "pytorch_model.bin"}

    def download(repository: str, name: str, revision: str | None = None) -> str:
        if name not in there:
            response = httpx2.Response(404, request=httpx2.Request("GET", "https://hub"))
            raise RemoteEntryNotFoundError("404", response=response)
        (tmp_path / name).write_bytes(b"abc")
        return str(tmp_path / name)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    file = WeightsFile("pytorch_model.bin", "org/name", 3)
    assert file.fetch("model").name == "model.safetensors"
    there.remove("model.safetensors")
    assert file.fetch("model").name == "pytorch_model.bin"
    with pytest.raises(ValueError, match="has the sha256"):
        WeightsFile("pytorch_model.bin", "org/name", 3, "sha256:" + "0" * 64).fetch("model")


def test_a_published_hash(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    path.write_bytes(b"abc")
    # FIPS 180-2, appendix B.1, and RFC 1321, appendix A.5.
    assert sha256_of_file(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    check_digest(path, "md5:900150983cd24fb0d6963f7d28e17f72")
    check_digest(path, None)
    with pytest.raises(ValueError, match=r"has the md5 900150983cd24fb0d6963f7d28e17f72.*save them as \.safetensors"):
        check_digest(path, "md5:" + "0" * 32)


TENSORS = {"layer.weight": torch.arange(6.0).reshape(2, 3), "layer.bias": torch.ones(2)}


def test_tensors_of_a_file(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "weights.safetensors")
    contents = [TENSORS, {"model": TENSORS}, {"epoch": 3, "state_dict": {**TENSORS}}]
    for place, content in enumerate(contents):
        torch.save(content, tmp_path / f"{place}.pth")
    for name in ("weights.safetensors", "0.pth", "1.pth", "2.pth"):
        found = read_tensors(tmp_path / name)
        assert set(found) == set(TENSORS)
        assert all(torch.equal(found[name], tensor) for name, tensor in TENSORS.items())


class RunsCode:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("kind", ["zipped", "plain", "beside a sampler"])
def test_a_pickle_that_would_run_code_is_refused(kind: str, tmp_path: Path) -> None:
    trace, path = tmp_path / "was-run", tmp_path / "weights.pt"
    if kind == "plain":
        path.write_bytes(pickle.dumps({"model": RunsCode(trace)}, protocol=2))
    elif kind == "zipped":
        torch.save({"model": TENSORS, "more": RunsCode(trace)}, path)
    else:
        # Arrays of NumPy are read, and nothing with them.
        torch.save({"model": TENSORS, "sampler": {"queue": np.arange(3), "own": RunsCode(trace)}}, path)
    with pytest.raises(ValueError, match="could run code when read, so it was not loaded"):
        read_tensors(path)
    assert not trace.exists()
    with pytest.raises(ValueError, match="but the published file has 541141fa2ee191a88f24a3219fff024e"):
        load_model(f"panns-cnn14={path}", device="cpu")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("half.safetensors", b"\x10\x00\x00\x00\x00\x00\x00\x00{", "cannot read the weights in .*half"),
        ("half.pt", b"PK\x03\x04", r"half\.pt"),
        ("none.pth", None, r"cannot read the weights in .*none\.pth"),
        ("weights.h5", b"", r"must be a \.safetensors file or one of \.pt"),
        ("empty.pth", {"epoch": 1}, "holds no named tensors"),
    ],
)
def test_files_that_hold_no_weights(name: str, content: object, message: str, tmp_path: Path) -> None:
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    elif content is not None:
        torch.save(content, tmp_path / name)
    with pytest.raises(ValueError, match=message):
        read_tensors(tmp_path / name)


def test_every_weight_is_accounted_for() -> None:
    module = torch.nn.Linear(3, 2)
    state = {"weight": TENSORS["layer.weight"], "bias": TENSORS["layer.bias"]}
    load_exactly(module, {**state, "head.weight": torch.ones(1)}, "file", unused=("head.",))
    assert torch.equal(module.weight, state["weight"])
    for changed, message in (
        ({"weight": state["weight"]}, r"the weights in file do not match a Linear: 1 missing: bias$"),
        ({**state, "head": torch.ones(1)}, "1 unexpected: head"),
        ({**state, "bias": torch.ones(3)}, r"1 of another shape: bias \(stored \(3,\), model \(2,\)\)"),
    ):
        with pytest.raises(ValueError, match=message):
            load_exactly(module, changed, "file")


def test_fresh_weights_follow_the_seed_and_leave_the_generator_alone(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    first, again, other = (
        Weights("name", None, Twin(TWINS["untrained"], seed)).build(lambda: torch.nn.Linear(3, 2)).weight
        for seed in (0, 0, 1)
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    twin = Weights("name", None, Twin(TWINS["untrained"], 1))
    assert (twin.id, twin.revision, twin.weights_sha256) == ("untrained:name", "seed-1", None)

    save_file({"w": TENSORS["layer.weight"], "b": TENSORS["layer.bias"]}, tmp_path / "weights.safetensors")
    weights = Weights("name", tmp_path / "weights.safetensors")
    module = weights.build(lambda: torch.nn.Linear(3, 2), lambda stored: {"weight": stored["w"], "bias": stored["b"]})
    assert torch.equal(module.bias, TENSORS["layer.bias"])
    assert not module.training
    assert weights.revision == f"sha256-{sha256_of_file(tmp_path / 'weights.safetensors')}"


# Without a network


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
    for load, message in (
        (lambda: load_model("whisper-base"), "cannot be reached.*Without network, pass whisper-base=FOLDER"),
        (
            WeightsFile("w.pt", "https://example.org/w.pt", 1).fetch,
            r"cannot download w\.pt from https://ex.*m=/path/to/w\.pt",
        ),
        (WeightsFile("w.pt", "org/name", 1).fetch, r"cannot be reached.*m=/path/to/w\.pt"),
    ):
        with pytest.raises(ModelError, match=message):
            load(*(["m"] if hasattr(load, "__self__") else []))  # type: ignore[operator]
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


# What a model was trained on, from the record beside its weights


def test_the_recipe_is_named(tmp_path):
    (tmp_path / "weights").write_bytes(b"weights")
    files = digests_of(tmp_path, tmp_path.iterdir())
    for data, recipe, expected in (
        ("40 rows of scenes, mini", "scenes", "40 rows of scenes, mini"),
        ("40 rows of /folder", "scenes", "40 rows of /folder (scenes)"),
        ("my own", None, "my own"),
    ):
        (tmp_path / RECORD).write_bytes(sealed_json({"trained_on": data, "recipe": recipe, "files": files}))
        assert recorded_data(lambda name: tmp_path / name, is_stated=True) == expected


def test_without_a_record_nothing_is_said_and_one_that_cannot_be_read_is_refused(tmp_path):
    def without_network(name):
        raise ModelError("no network")

    assert recorded_data(lambda name: None, is_stated=False) is None
    assert recorded_data(without_network, is_stated=True) is None
    (tmp_path / RECORD).write_bytes(sealed_json({"recipe": "scenes"}))
    with pytest.raises(ModelError, match="does not state the training data of the weights next to it"):
        recorded_data(lambda name: tmp_path / name, is_stated=True)
    (tmp_path / RECORD).write_bytes(sealed_json({"trained_on": "rows", "files": {}}))
    with pytest.raises(ModelError, match=r"training\.json names no files"):
        recorded_data(lambda name: tmp_path / name, is_stated=True)
    for content in (b"[]", json.dumps({"trained_on": "rows"}).encode(), sealed_json({"trained_on": "rows"})[:-9]):
        (tmp_path / RECORD).write_bytes(content)
        with pytest.raises(ModelError, match=r"training\.json is damaged: it differs from what was .* train it again"):
            recorded_data(lambda name: tmp_path / name, is_stated=True)


def test_the_card_of_a_folder_says_it_and_that_of_its_twin_does_not(tmp_path):
    save_clap(tiny_clap(), tmp_path)
    assert load_model(str(tmp_path)).card.trained_on is None
    revision = load_model(str(tmp_path)).card.revision
    files = digests_of(tmp_path, tmp_path.iterdir())
    (tmp_path / RECORD).write_bytes(sealed_json({"trained_on": "4 rows of scenes", "recipe": "scenes", "files": files}))
    card = load_model(str(tmp_path)).card
    assert (card.trained_on, card.revision) == ("4 rows of scenes", revision)
    assert load_model(f"untrained:{tmp_path}").card.trained_on is None


def test_a_file_of_the_model_that_was_changed_is_refused_by_name(tmp_path):
    save_clap(tiny_clap(), tmp_path)
    files = digests_of(tmp_path, tmp_path.iterdir())
    (tmp_path / RECORD).write_bytes(sealed_json({"trained_on": "rows", "files": files}))
    assert load_model(str(tmp_path)).card.trained_on == "rows"
    # A bit of white space behind the JSON, or of the exponent of the last weight.
    for name, bit in (("config.json", 0x2A), ("model.safetensors", 0x40)):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-1] + bytes([content[-1] ^ bit]))
        with pytest.raises(ModelError, match=rf"{name} is damaged or was changed: its SHA-256 differs from training"):
            load_model(str(tmp_path))
        if name == "config.json":
            (tmp_path / name).write_bytes(content)
    # Fresh weights are not those of the file.
    load_model(f"untrained:{tmp_path}")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors is missing; get the model again or train it again"):
        load_model(str(tmp_path))
