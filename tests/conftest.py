import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

# The clients of the Hub read it when they are imported: no test writes to the user's cache.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hub-cache-")

from audio_compositionality.dataset_builder import BenchmarkConfig, RenderedBenchmark
from audio_compositionality.dataset_builder.synthesis.timbres import default_voices


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["HF_HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches for the Hub, nor waits for it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No test writes to the user's cache, nor finds there what another has written."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def small_config() -> BenchmarkConfig:
    """Three classes of each attribute: 27 tones, 81 sources, a few rows."""
    return BenchmarkConfig(
        num_classes=3,
        quadruple_candidates=500,
        scene_candidates=2_000,
        quadruples=12,
        train_scenes=40,
        validation_scenes=8,
        test_scenes=8,
        voices=default_voices()[:3],
    )


@pytest.fixture(scope="session")
def small_benchmark(small_config: BenchmarkConfig) -> RenderedBenchmark:
    return RenderedBenchmark("small", small_config)


@pytest.fixture(scope="session")
def tiny_config(small_config: BenchmarkConfig) -> BenchmarkConfig:
    """As few rows as a data set can have and still fill two row groups."""
    return replace(small_config, quadruples=2, train_scenes=20, validation_scenes=2, test_scenes=2)


@pytest.fixture(scope="session")
def checkpoints() -> Path:
    """The folder with real pretrained weights, for tests marked ``weights``."""
    folder = os.environ.get("AUDIO_COMPOSITIONALITY_CHECKPOINTS")
    if not folder:
        pytest.skip("AUDIO_COMPOSITIONALITY_CHECKPOINTS names no folder with whisper-tiny.en and whisper-base")
    return Path(folder)
