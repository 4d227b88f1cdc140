from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

from audio_compositionality.encoders.front_ends import kaldi
from audio_compositionality.encoders.front_ends.kaldi import FLOOR, FilterBank, WindowedFilterBank, shortest_clip
from audio_compositionality.evaluator.run.evaluate import library_versions

from ..contract import different_clips

INSTALLED = kaldi.torchaudio_fbank() is not None


@pytest.fixture(params=["ours", "torchaudio"] if INSTALLED else ["ours"], autouse=True)
def computed_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test is of ours and, where it is installed, of torchaudio's filter bank."""
    if request.param == "ours":
        monkeypatch.setattr(kaldi, "torchaudio_fbank", lambda: None)


def filters_of_transformers(mels: int) -> np.ndarray:
    return mel_filter_bank(
        257, mels, 20, 8_000, 16_000, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True
    )  # fmt: skip


def log_mel_in_float64(clip: np.ndarray, mels: int, taper: str) -> np.ndarray:
    """What transformers computes in NumPy, frame by frame: [frames, mels]."""
    return spectrogram(
        clip.astype(np.float64),
        window_function(400, {"hanning": "hann", "povey": "povey"}[taper], periodic=False),
        frame_length=400,
        hop_length=160,
        fft_length=512,
        power=2.0,
        center=False,
        preemphasis=0.97,
        mel_filters=filters_of_transformers(mels),
        log_mel="log",
        mel_floor=np.finfo(np.float32).eps,
        remove_dc_offset=True,
        dtype=np.float64,
    ).T


@pytest.mark.parametrize("taper", ["hanning", "povey"])
@pytest.mark.parametrize("scale", [1, 2**15])
@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_equals_an_implementation_in_numpy(taper: str, scale: int, offset: float) -> None:
    clips = scale * (different_clips(16_000, 0.5) + np.float32(offset))
    expected = np.stack([log_mel_in_float64(clip, 40, taper) for clip in clips])
    exact = FilterBank(40, taper, torch.float64)(torch.from_numpy(clips))
    assert exact.dtype == torch.float32
    np.testing.assert_allclose(exact, expected, atol=1e-4)
    rounded = FilterBank(40, taper)(torch.from_numpy(clips)).numpy()
    # Bands of a tone's clip where there is nothing but rounding may differ.
    audible = expected > expected.max() + np.log(1e-11)
    assert audible.mean() > 0.8
    np.testing.assert_allclose(rounded[audible], expected[audible], atol=1e-2)
    np.testing.assert_allclose(rounded[0], expected[0], atol=1e-3)


@pytest.mark.parametrize(("samples", "frames"), [(400, 1), (559, 1), (560, 2), (160_000, 998)])
def test_frames_lie_wholly_within_the_clip(samples: int, frames: int) -> None:
    assert shortest_clip(frames) <= samples < shortest_clip(frames + 1)
    assert FilterBank(23, "povey")(torch.zeros(1, samples)).shape == (1, frames, 23)


def test_silence_and_a_constant_are_at_the_floor() -> None:
    log_mel = FilterBank(40, "hanning")(torch.tensor([[0.0], [0.5]]).expand(2, 2_000))
    np.testing.assert_allclose(log_mel, np.log(FLOOR), atol=1e-6)


def test_a_clip_does_not_depend_on_its_batch() -> None:
    bank = FilterBank(128, "hanning")
    clips = torch.from_numpy(different_clips(16_000, 0.5))
    together = bank(clips)
    for row, clip in enumerate(clips):
        torch.testing.assert_close(bank(clip[None])[0], together[row], rtol=0, atol=0)


@pytest.mark.parametrize("seconds", [0.025, 0.4, 1.0])
def test_window_equals_the_feature_extractor_of_transformers(seconds: float) -> None:
    clips = different_clips(16_000, seconds)
    extractor = transformers.ASTFeatureExtractor(max_length=98, num_mel_bins=40, mean=-3.5, std=4.0)
    expected = extractor(list(clips), sampling_rate=16_000, return_tensors="np")["input_values"]
    window = WindowedFilterBank(mels=40, frames=98, mean=-3.5, std=4.0)(torch.from_numpy(clips))
    assert window.frames == (clips.shape[1] - 400) // 160 + 1
    np.testing.assert_allclose(window.log_mel, expected, atol=1e-3)


def test_the_shortest_clip_of_so_many_frames() -> None:
    assert (shortest_clip(), shortest_clip(16), shortest_clip(1_025) - 1) == (400, 2_800, 400 + 1_024 * 160 - 1)


@pytest.mark.skipif(not INSTALLED, reason="torchaudio is not installed, or its build does not fit torch")
@pytest.mark.parametrize("computed_by", ["torchaudio"], indirect=True)
@pytest.mark.parametrize("taper", ["hanning", "povey"])
def test_ours_differs_from_torchaudio_by_rounding(taper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clips = torch.from_numpy(different_clips(16_000, 0.5))
    for dtype, scale, tolerance in ((torch.float64, 2.0**15, 2e-3), (torch.float32, 1.0, 2e-2)):
        theirs = FilterBank(128, taper, dtype)(scale * clips)
        with monkeypatch.context() as patch:
            patch.setattr(kaldi, "torchaudio_fbank", lambda: None)
            ours = FilterBank(128, taper, dtype)(scale * clips)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)
        assert (ours - theirs).abs().mean() < 2e-4
        assert (ours != theirs).any()
    assert "torchaudio" in library_versions()


@pytest.mark.parametrize("computed_by", ["ours"], indirect=True)
def test_torchaudio_is_asked_for_what_it_has_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    asked: list[dict[str, Any]] = []

    def fbank(clip: torch.Tensor, **settings: Any) -> torch.Tensor:
        asked.append({"shape": tuple(clip.shape), "dtype": clip.dtype, **settings})
        return clip.new_full((2, 40), float(clip.mean()))

    package, compliance, module = (ModuleType(f"torchaudio{name}") for name in ("", ".compliance", ".compliance.kaldi"))
    compliance.kaldi, module.fbank = module, fbank  # type: ignore[attr-defined]
    for one in (package, compliance, module):
        monkeypatch.setitem(sys.modules, one.__name__, one)
    log_mel = FilterBank(40, "povey", torch.float64)(torch.tensor([[1.0], [3.0]]).expand(2, 560))
    assert (log_mel.dtype, log_mel[:, 0, 0].tolist()) == (torch.float32, [1.0, 3.0])
    settings = {"num_mel_bins": 40, "sample_frequency": 16_000.0, "window_type": "povey", "dither": 0.0}
    assert asked == 2 * [{"shape": (1, 560), "dtype": torch.float64, **settings}]
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"{name} 1")
    assert library_versions()["torchaudio"] == "torchaudio 1"


def test_a_torchaudio_that_was_left_out_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "torchaudio.compliance", raising=False)
    monkeypatch.setitem(sys.modules, "torchaudio", None)
    assert kaldi.torchaudio_fbank() is None
