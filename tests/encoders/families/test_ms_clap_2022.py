"""MS-CLAP 2022 with few channels: what it does to clips of any length, its layers, and wrong checkpoints.

`tests/encoders/test_references.py` compares the whole model with the published package.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import librosa
import numpy as np
import pytest
import torch
from compare import fixture_state

from audio_compositionality.encoders.families.ms_clap import BASE, MsClap2022Encoder, convert_ms_clap_2022
from audio_compositionality.encoders.families.ms_clap import UNUSED_2022 as UNUSED
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.loading.weights import load_exactly
from audio_compositionality.encoders.networks import cnn14, htsat
from audio_compositionality.encoders.options import EncoderOptions

RATE = 44_100
CHANNELS = (4, 6, 8, 10, 12, 14)

MakeClips = Callable[[int, float], np.ndarray]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., MsClap2022Encoder]:
    """Function of options: a small model with fresh weights."""
    monkeypatch.setattr(cnn14, "CHANNELS", CHANNELS)
    monkeypatch.setattr(htsat, "CHANNELS", CHANNELS)

    def load(**options: Any) -> MsClap2022Encoder:
        encoder = load_model("untrained:ms-clap-2022", device="cpu", options=EncoderOptions(**options), seed=3)
        assert isinstance(encoder, MsClap2022Encoder)
        return encoder

    return load


@pytest.fixture(scope="session")
def official() -> dict[str, torch.Tensor]:
    """A checkpoint of the full size by the official names, but for the text encoder."""
    return {name: torch.from_numpy(array) for name, array in fixture_state("ms-clap-2022").items()}


def test_the_front_end_is_that_of_the_published_configuration(
    load: Callable[..., MsClap2022Encoder], make_clips: MakeClips
) -> None:
    """1,024 samples every 320, 64 bands, 50-14,000 Hz at 44.1 kHz."""
    clips = make_clips(RATE, 6.0)
    mel = librosa.feature.melspectrogram(
        y=clips, sr=RATE, n_fft=1024, hop_length=320, n_mels=64, fmin=50, fmax=14_000, pad_mode="reflect"
    )
    expected = librosa.power_to_db(mel, amin=1e-10, top_db=None)
    actual = load()._extract_features(clips).log_mel.mT.numpy()
    # Single precision differs from librosa's double in bands of a tone that are near the floor.
    assert np.abs(actual - expected).max() < 0.2
    assert np.abs(actual - expected).mean() < 1e-3


def test_a_longer_clip_is_embedded_whole(load: Callable[..., MsClap2022Encoder], make_clips: MakeClips) -> None:
    clips = make_clips(RATE, 10.0)
    encoder = load()
    embeddings = encoder.embed(clips, RATE)
    assert embeddings.shape == (3, 1024)
    np.testing.assert_array_equal(encoder.embed(clips, RATE), embeddings)
    alone = np.concatenate([encoder.embed(clip[None], RATE) for clip in clips])
    np.testing.assert_allclose(embeddings, alone, atol=1e-4)
    for second in range(10):
        changed = clips.copy()
        changed[:, second * RATE : (second + 1) * RATE] *= 0.01
        assert np.abs(encoder.embed(changed, RATE) - embeddings).max(axis=1).min() > 0


@pytest.mark.parametrize("seconds", [3.5, 0.01])
def test_shorter_clips_are_repeated_up_to_five_seconds(
    seconds: float, load: Callable[..., MsClap2022Encoder], make_clips: MakeClips
) -> None:
    clips = make_clips(RATE, seconds)
    repeated = np.tile(clips, math.ceil(5 / seconds))[:, : 5 * RATE]
    encoder = load()
    np.testing.assert_array_equal(encoder.embed(clips, RATE), encoder.embed(repeated, RATE))
    frames, frame_seconds = encoder.embed_frames(clips, RATE)
    assert frame_seconds == pytest.approx(32 * 320 / RATE)
    assert frames.shape[1] == math.ceil(seconds / frame_seconds)


@pytest.mark.parametrize(("layer", "frames", "dim"), [(0, 1379, 64), (1, 689, 4), (5, 43, 12), (6, 43, 14)])
def test_layers(
    layer: int, frames: int, dim: int, load: Callable[..., MsClap2022Encoder], make_clips: MakeClips
) -> None:
    clips = make_clips(RATE, 10.0)
    encoder = load(layer=layer)
    hidden, frame_seconds = encoder.embed_frames(clips, RATE)
    assert hidden.shape == (3, frames, dim)
    assert frame_seconds == pytest.approx(2 ** min(layer, 5) * 320 / RATE)
    assert encoder.card.output_dim == dim
    np.testing.assert_allclose(encoder.embed(clips, RATE), hidden.mean(axis=1), rtol=1e-5, atol=1e-5)


def test_another_pooling_is_that_of_the_last_block(
    load: Callable[..., MsClap2022Encoder], make_clips: MakeClips
) -> None:
    clips = make_clips(RATE, 6.0)
    encoder = load(pooling="max")
    assert encoder.card.output_dim == CHANNELS[-1]
    np.testing.assert_allclose(encoder.embed(clips, RATE), load(layer=6, pooling="max").embed(clips, RATE), atol=1e-6)


@pytest.mark.slow
def test_every_tensor_of_the_official_checkpoint_is_accounted_for(official: dict[str, torch.Tensor]) -> None:
    """What the file holds beside the audio encoder's weights: the text encoder and the temperature."""
    others = {
        "caption_encoder.base.embeddings.position_ids": torch.zeros(1, 512, dtype=torch.int64),
        "caption_encoder.projection.linear1.weight": torch.zeros(2, 2),
        "logit_scale": torch.zeros(()),
    }
    model = htsat.ProjectedCnn14()
    load_exactly(model, convert_ms_clap_2022({**official, **others}), "file", UNUSED)
    torch.testing.assert_close(model.blocks[5].conv2.weight, official[BASE + "conv_block6.conv2.weight"])
    torch.testing.assert_close(model.log_mel.filters, official[BASE + "logmel_extractor.melW"])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({BASE + "conv_block6.bn2.weight": None}, r"1 missing: blocks\.5\.bn2\.weight"),
        ({"audio_encoder.projection.linear1.weight": None}, r"1 missing: projection\.linear1\.weight"),
        ({BASE + "logmel_extractor.melW": None}, r"1 missing: log_mel\.filters"),
        ({BASE + "spectrogram_extractor.stft.conv_real.weight": None}, r"conv_real\.weight' are missing"),
        ({BASE + "conv_block7.conv1.weight": torch.zeros(1)}, r"1 unexpected: blocks\.6\.conv1\.weight"),
        ({BASE + "fc1.bias": torch.zeros(7)}, r"of another shape: fc1\.bias \(stored \(7,\), model \(2048,\)\)"),
    ],
)
def test_wrong_weights_are_named(
    change: dict[str, torch.Tensor | None], complaint: str, official: dict[str, torch.Tensor]
) -> None:
    state = {name: tensor for name, tensor in {**official, **change}.items() if tensor is not None}
    with pytest.raises(ValueError, match=complaint):
        load_exactly(htsat.ProjectedCnn14(), convert_ms_clap_2022(state), "file", UNUSED)
