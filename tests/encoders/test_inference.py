"""How a model runs: the device, with torch imported only where that may be a GPU; precision; options."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from audio_compositionality.encoders import inference
from audio_compositionality.encoders.base import ModelCard, ModelError
from audio_compositionality.encoders.inference import device_name, resolve_device
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions

from .contract import Saved, different_clips, encoder_name

CPU = "__version__ = '2.9.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n"


@pytest.fixture
def without_torch(monkeypatch, tmp_path):
    """As in a process that has not imported torch; a test writes the file of versions of its build."""
    import torch

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(inference, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setattr(inference, "resolve_device", lambda device: torch.device("cuda:3"))
    return tmp_path / "version.py"


def test_a_build_without_cuda_needs_no_torch_to_be_on_the_cpu(without_torch):
    without_torch.write_text(CPU)
    assert device_name(None) == "cpu"
    assert device_name("cuda") == "cuda:3"


@pytest.mark.parametrize(
    "versions", [CPU.replace("cuda: Optional[str] = None", "cuda: Optional[str] = '12.8'"), "cuda = None\n", None]
)
def test_any_other_build_is_asked(without_torch, versions):
    if versions is not None:
        without_torch.write_text(versions)
    assert device_name(None) == "cuda:3"
    assert device_name("cpu") == "cpu"


def test_the_file_of_versions_of_the_installed_build_says_what_it_was_built_with():
    import torch

    spec = find_spec("torch")
    assert spec is not None
    assert Path(str(spec.origin)).with_name("version.py").is_file()
    assert inference._is_without_cuda() == (torch.version.cuda is None and torch.version.hip is None)
    with pytest.raises(ModelError, match="cannot use device 'nowhere'"):
        resolve_device("nowhere")


# Reduced precision and compilation, with models of several kinds


class Rounded(ModelEncoder[torch.Tensor]):
    """Embeds a clip as its first two samples; in reduced precision, with a known error."""

    error = torch.tensor([[0.0, 0.3], [0.0, 0.0], [0.4, 0.0]])

    def __init__(self, precision: str) -> None:
        card = ModelCard("rounded", "1", 16_000, 2, options=EncoderOptions(precision=precision))
        super().__init__(card, num_layers=0, device=torch.device("cpu"))

    def _extract_features(self, clips: np.ndarray) -> torch.Tensor:
        return self._on_device(clips[:, :2])

    def _encode(self, features: torch.Tensor) -> Hidden:
        is_reduced = torch.is_autocast_enabled("cpu")
        frames = features + self.error if is_reduced else features
        return Hidden(frames[:, None], 1.0)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_the_deviation_of_reduced_precision_by_hand(precision: str) -> None:
    clips = np.array([[0.6, 0.8, 0], [0.0, 0.5, 0], [0.3, -0.4, 0]], np.float32)
    encoder = Rounded(precision)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), clips[:, :2] + Rounded.error.numpy())
    deviation = encoder.precision_deviation(clips, 16_000)
    # Errors .3, 0 and .4 of norms 1, .5 and .5; the mean is (.3, .3), from which the clips are at .34, .13 and .49,
    # squared.
    assert deviation["relative_mean"] == pytest.approx((0.3 + 0 + 0.8) / 3, rel=1e-5)
    assert deviation["relative_max"] == pytest.approx(0.8, rel=1e-5)
    assert deviation["spread_ratio"] == pytest.approx(np.sqrt((0.09 + 0.16) / (0.34 + 0.13 + 0.49)), rel=1e-5)
    exact = Rounded("float32")
    np.testing.assert_array_equal(exact.embed(clips, 16_000), clips[:, :2])
    assert set(exact.precision_deviation(clips, 16_000).values()) == {0.0}


@pytest.mark.parametrize(
    ("family", "precision"),
    [("wav2vec2", "float16"), ("w2v-bert", "bfloat16"), ("encodec", "bfloat16"), ("qwen2-audio", "bfloat16")],
)
def test_every_kind_of_model_runs_in_reduced_precision(family: str, precision: str, saved: Saved) -> None:
    name = encoder_name(family, saved(family))
    encoder = load_model(name, device="cpu", options=EncoderOptions(precision=precision))
    assert encoder.card.id == f"{name.replace(str(saved(family)), family)}@{precision}"
    clips = different_clips(encoder.card.sample_rate, 0.71)
    assert encoder.embed(clips, encoder.card.sample_rate).dtype == np.float32
    # Something is rounded; how much, random weights on whatever processor do not say.
    assert encoder.precision_deviation(clips, encoder.card.sample_rate)["relative_max"] > 0


@pytest.mark.parametrize("family", ["clap"])
def test_a_callers_autocast_changes_nothing(family: str, saved: Saved) -> None:
    encoder = load_model(str(saved(family)), device="cpu")
    clips = different_clips(encoder.card.sample_rate, 0.71)
    expected = encoder.embed(clips, encoder.card.sample_rate)
    with torch.autocast("cpu", torch.bfloat16):
        np.testing.assert_array_equal(encoder.embed(clips, encoder.card.sample_rate), expected)


# Options


def test_the_suffix_tells_options_apart() -> None:
    assert EncoderOptions().suffix == ""
    assert EncoderOptions(compile=True).suffix == ""
    assert EncoderOptions(layer=0).suffix == "@layer=0"
    assert EncoderOptions(layer=3, pooling="max", precision="bfloat16").suffix == "@layer=3+pooling=max+bfloat16"
