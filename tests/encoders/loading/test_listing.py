"""Where models are found, and that nothing heavy is imported to list them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading import listing
from audio_compositionality.encoders.loading.listing import ANY_OTHER, adapters, architectures, named_models
from audio_compositionality.encoders.loading.names import hub_id_of, list_models
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.support.discovery import Registry

ONE_FILE_FAMILY = """
from audio_compositionality.encoders.base import StagedEncoder
from audio_compositionality.encoders.loading.listing import ModelListing
from audio_compositionality.encoders.base import ModelCard


class Loudness(StagedEncoder):
    card = ModelCard("loudness", "v1", 8_000, 1, paradigm="by hand", licence="MIT")

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        return features.std(axis=1, keepdims=True)


MODELS = (ModelListing("loudness", 1, 8_000, "by hand", "MIT", "how loud a clip is", make=Loudness),)
"""


def test_listing_and_a_baseline_import_neither_torch_nor_transformers() -> None:
    code = """
import sys
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.encoders.loading.names import list_models
names = [listing.name for listing in list_models()]
load_model("downsample").embed([[0.0] * 32_000], 32_000)
assert has_twins("whisper-base")
heavy = {"torch", "transformers", "librosa", "huggingface_hub", "httpx2"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_family_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fake_families"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "loudness.py").write_text(ONE_FILE_FAMILY)
    (package / "helper.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("fake_families", "MODELS", "no.such.group", lambda models: models[0].name)
    monkeypatch.setattr(listing, "_models", registry)
    assert [(entry.name, entry.is_baseline) for entry in list_models()] == [("loudness", False)]
    model = load_model("loudness")
    np.testing.assert_allclose(model.embed([[0.5, -0.5]], 8_000), [[0.5]])
    assert not has_twins("loudness")


def test_every_family_says_what_it_handles() -> None:
    assert {"hear", "xares", "mteb"} <= set(adapters())
    assert {ANY_OTHER, "whisper", "clap", "audio-spectrogram-transformer", "mimi", "qwen2_audio"} <= set(
        architectures()
    )
    names = list(named_models())
    assert names[:3] == ["downsample", "random", "log-mel-statistics"]
    assert len(set(names)) == len(names)
    assert hub_id_of("whisper-base") == "openai/whisper-base"
    assert hub_id_of("panns-cnn14") is None
    assert hub_id_of("org/name") == "org/name"


def test_the_authors_beats_is_passed_as_a_file() -> None:
    with pytest.raises(ModelError, match=r"get BEATs_iter3\.pt from https://github\.com.*beats-iter3=/path/to/BEATs"):
        load_model("beats-iter3")
