from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

from audio_compositionality.encoders.front_ends.kaldi import FLOOR, FilterBank, WindowedFilterBank, shortest_clip

from ..contract import different_clips


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


@pytest.mark.parametrize(("taper", "scale", "offset"), [("hanning", 1, 0.3), ("povey", 2**15, 0.0)])
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


def test_silence_and_a_constant_are_at_the_trivial() -> None:
    log_mel = FilterBank(40, "hanning")(torch.tensor([[0.0], [0.5]]).expand(2, 2_000))
    np.testing.assert_allclose(log_mel, np.log(FLOOR), atol=1e-6)


@pytest.mark.parametrize("seconds", [0.025, 1.0])
def test_window_equals_the_feature_extractor_of_transformers(seconds: float) -> None:
    clips = different_clips(16_000, seconds)
    extractor = transformers.ASTFeatureExtractor(max_length=98, num_mel_bins=40, mean=-3.5, std=4.0)
    expected = extractor(list(clips), sampling_rate=16_000, return_tensors="np")["input_values"]
    window = WindowedFilterBank(mels=40, frames=98, mean=-3.5, std=4.0)(torch.from_numpy(clips))
    assert window.frames == (clips.shape[1] - 400) // 160 + 1
    np.testing.assert_allclose(window.log_mel, expected, atol=1e-3)


@pytest.mark.parametrize("taper", ["hanning", "povey"])
def test_it_differs_from_torchaudio_by_rounding(taper: str) -> None:
    fbank = pytest.importorskip("torchaudio.compliance.kaldi").fbank
    clips = torch.from_numpy(different_clips(16_000, 0.5))
    for dtype, scale, tolerance in ((torch.float64, 2.0**15, 2e-3), (torch.float32, 1.0, 2e-2)):
        ours = FilterBank(128, taper, dtype)(scale * clips)
        settings = {"num_mel_bins": 128, "sample_frequency": 16_000.0, "window_type": taper}
        theirs = torch.stack([fbank((scale * clip.to(dtype))[None], **settings).float() for clip in clips])
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)
        assert (ours - theirs).abs().mean() < 2e-4
