"""Tiny models that hear and answer, written once a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from audio_compositionality.encoders.language_models.transformers_model import TransformersLanguageModel
from audio_compositionality.encoders.loading.names import KEY_VARIABLE
from audio_compositionality.encoders.loading.registry import load_model

from .endpoint_server import LoopbackEndpoint, StillClock
from .tiny import NEEDS, SAVERS

Folder = Callable[[str], Path]
Load = Callable[[str], TransformersLanguageModel]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Function of a family: the folder of a tiny model of it; tests must not write to it."""
    root = tmp_path_factory.mktemp("language-models")

    @cache
    def saved(family: str) -> Path:
        SAVERS[family](root / family)
        return root / family

    return saved


@pytest.fixture
def load(folder: Folder) -> Load:
    """Function of a family: a tiny model of it on the CPU, loaded anew."""

    def loaded(family: str) -> TransformersLanguageModel:
        model = load_model(str(folder(family)), device="cpu")
        assert isinstance(model, TransformersLanguageModel)
        return model

    return loaded


FIRST = ("qwen2-audio", "audio-flamingo-3", "qwen2.5-omni")
"""The families that the fast lane runs; the others share their code."""


@pytest.fixture(params=[pytest.param(one, marks=[] if one in FIRST else [pytest.mark.slow]) for one in SAVERS])
def family(request: pytest.FixtureRequest) -> str:
    """Each family in turn."""
    name: str = request.param
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return name


@pytest.fixture(scope="session")
def loaded() -> dict[str, TransformersLanguageModel]:
    """Models that were loaded before."""
    return {}


@pytest.fixture
def model(family: str, load: Load, loaded: dict[str, TransformersLanguageModel]) -> TransformersLanguageModel:
    """A tiny model of each family in turn; tests must not change it."""
    return loaded.setdefault(family, loaded.get(family) or load(family))


@pytest.fixture
def clock() -> StillClock:
    """The clock of `server`, on which waits take no time."""
    return StillClock()


@pytest.fixture
def server(clock: StillClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackEndpoint]:
    """A server, and an environment without keys; questions may be sent to it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    for name in (KEY_VARIABLE, "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    server = LoopbackEndpoint(clock)
    yield server
    server.close()
