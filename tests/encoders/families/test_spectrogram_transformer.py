from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
MakeClips = Callable[[int, float], np.ndarray]

BANDS, COLUMNS, STRIDE = 3, 16, 12
"""Of the tiny model: 32 mel bands in patches of 16 every 8, 204 frames in patches of 16 every 12."""


def by_hand(folder: Path, clips: np.ndarray, layer: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Class tokens [n, 2, dim] and patches [n, bands, columns, dim] from transformers' own extractor and model."""
    extractor = transformers.ASTFeatureExtractor.from_pretrained(folder)
    inputs = extractor(list(clips), sampling_rate=16_000, return_tensors="pt")
    with torch.no_grad():
        output = transformers.ASTModel.from_pretrained(folder).eval()(**inputs, output_hidden_states=True)
    hidden = (output.last_hidden_state if layer is None else output.hidden_states[layer]).numpy()
    assert hidden.shape[1] == 2 + BANDS * COLUMNS
    return hidden[:, :2], hidden[:, 2:].reshape(len(clips), BANDS, COLUMNS, -1)


def change_extractor(folder: Path, **settings: object) -> None:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.parametrize("layer", [None, 0, 1, 2])
def test_layers_and_poolings_equal_the_model_called_by_hand(
    layer: int | None, saved: Saved, make_clips: MakeClips
) -> None:
    folder, clips = saved("ast"), make_clips(16_000, 1.0)
    tokens, patches = by_hand(folder, clips, layer)
    # 98 frames of sound: the last patch column that begins within them is the ninth.
    moments = patches[:, :, : -(-98 // STRIDE)].mean(axis=1)
    assert moments.shape[1] == 9
    for pooling, expected in (
        (None, moments.mean(axis=1)),
        ("max", moments.max(axis=1)),
        ("cls", tokens.mean(axis=1)),
    ):
        encoder = load_model(str(folder), options=EncoderOptions(layer=layer, pooling=pooling))
        np.testing.assert_allclose(encoder.embed(clips, 16_000), expected, atol=1e-5 * np.abs(expected).max())
    frames, seconds = load_model(str(folder), options=EncoderOptions(layer=layer)).embed_frames(clips, 16_000)
    np.testing.assert_allclose(frames, moments, atol=1e-4)
    assert seconds == pytest.approx(0.12)


@pytest.mark.parametrize("settings", [{"mean": -6.0, "std": 3.0}, {"do_normalize": False}])
def test_the_extractors_own_normalisation_is_used(
    settings: dict[str, object], save: Save, make_clips: MakeClips, tmp_path: Path
) -> None:
    folder, clips = save("ast", tmp_path / "ast"), make_clips(16_000, 1.0)
    before = load_model(str(folder)).embed(clips, 16_000)
    change_extractor(folder, **settings)
    expected = by_hand(folder, clips, None)[1][:, :, :9].mean(axis=(1, 2))
    embeddings = load_model(str(folder)).embed(clips, 16_000)
    np.testing.assert_allclose(embeddings, expected, atol=1e-5 * np.abs(expected).max())
    assert np.abs(embeddings - before).max() > 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling_rate": 32_000}, "works at 32000 Hz, but spectrogram transformers are supported at 16000 Hz only"),
        ({"max_length": 100}, "makes 100 frames of 32 mel bands, but the model takes 204 of 32"),
        ({"num_mel_bins": 64}, "makes 204 frames of 64 mel bands, but the model takes 204 of 32"),
    ],
)
def test_an_extractor_that_does_not_fit_is_refused(
    settings: dict[str, object], message: str, save: Save, tmp_path: Path
) -> None:
    folder = save("ast", tmp_path / "ast")
    change_extractor(folder, **settings)
    with pytest.raises(ValueError, match=message):
        load_model(str(folder))


def test_another_kind_of_extractor_is_refused(save: Save, tmp_path: Path) -> None:
    folder = save("ast", tmp_path / "ast")
    transformers.WhisperFeatureExtractor().save_pretrained(folder)
    with pytest.raises(ValueError, match="with a WhisperFeatureExtractor; it needs the class ASTFeatureExtractor"):
        load_model(str(folder))
