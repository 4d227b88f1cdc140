"""Tiny checkpoints with random weights, written as transformers writes them, and where real ones are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers


@pytest.fixture(params=["whisper-tiny.en", "whisper-base"])
def real_whisper(request: pytest.FixtureRequest, checkpoints: Path) -> Path:
    """Folder of a genuinely pretrained Whisper."""
    folder: Path = checkpoints / request.param
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"{checkpoints} holds no {request.param}/model.safetensors")
    return folder


@pytest.fixture
def make_clips() -> Callable[[int, float], np.ndarray]:
    """Function of a sample rate and a length in seconds: three clips of very different level and content."""
    return _make_clips


def _make_clips(sample_rate: int, seconds: float) -> np.ndarray:
    t = np.arange(round(seconds * sample_rate)) / sample_rate
    noise = np.random.default_rng(0).normal(0, 0.1, t.size)
    tone = 0.5 * np.sin(2 * np.pi * 440 * t) * (1 + np.sin(2 * np.pi * 3 * t)) / 2
    quiet = 0.01 * np.sin(2 * np.pi * 1000 * t) + 0.01 * noise
    return np.stack([noise, tone, quiet]).astype(np.float32)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a tiny model of a family, written once a session; tests must not write to it."""
    root = tmp_path_factory.mktemp("models")

    def folder(family: str) -> Path:
        path = root / family
        if not path.exists():
            _save_tiny(family, path)
        return path

    return folder


@pytest.fixture
def save() -> Callable[[str, Path], Path]:
    """Function of a family and a folder: writes a tiny model there that the test may change."""
    return _save_tiny


def _save_tiny(family: str, folder: Path) -> Path:
    """Save a tiny randomly initialised model and its feature extractor; all weights are non-zero."""
    model, extractor = _tiny(family)
    with torch.random.fork_rng():
        torch.manual_seed(sum(family.encode()))
        instance = model()
        with torch.no_grad():
            # Initial biases, tokens and positions are zero and would hide an error.
            for parameter in instance.parameters():
                if not parameter.any():
                    parameter.normal_(0, 0.1)
    instance.save_pretrained(folder)
    extractor.save_pretrained(folder)
    return folder


def _tiny(family: str) -> tuple[Callable[[], Any], Any]:
    t = transformers
    layers = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "vocab_size": 12,
    }
    convolutions = {
        "conv_dim": (16, 16, 16),
        "conv_kernel": (10, 3, 3),
        "conv_stride": (8, 4, 4),
        "num_feat_extract_layers": 3,
        "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4,
    }
    speech = t.Wav2Vec2FeatureExtractor(do_normalize=True)
    if family == "wav2vec2":
        config = t.Wav2Vec2Config(**layers, **convolutions)
        return lambda: t.Wav2Vec2Model(config), speech
    if family == "wav2vec2-masked":
        config = t.Wav2Vec2Config(**layers, **convolutions, feat_extract_norm="layer", do_stable_layer_norm=True)
        extractor = t.Wav2Vec2FeatureExtractor(do_normalize=True, return_attention_mask=True)
        return lambda: t.Wav2Vec2ForCTC(config), extractor
    if family == "hubert":
        config = t.HubertConfig(**layers, **convolutions)
        return lambda: t.HubertModel(config), speech
    if family == "wavlm":
        config = t.WavLMConfig(**layers, **convolutions)
        return lambda: t.WavLMModel(config), speech
    if family == "speech-to-text":
        config = t.Speech2TextConfig(
            d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=12, conv_channels=16, input_feat_per_channel=80,
            bos_token_id=0, eos_token_id=2, pad_token_id=1, decoder_start_token_id=2,
        )  # fmt: skip
        return lambda: t.Speech2TextModel(config), t.Speech2TextFeatureExtractor(feature_size=80, num_mel_bins=80)
    if family == "w2v-bert":
        config = t.Wav2Vec2BertConfig(**{**layers, "vocab_size": 12}, feature_projection_input_dim=160)
        return lambda: t.Wav2Vec2BertModel(config), t.SeamlessM4TFeatureExtractor()
    if family == "ast":
        config = t.ASTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_length=204,
            num_mel_bins=32, patch_size=16, frequency_stride=8, time_stride=12, num_labels=3,
        )  # fmt: skip
        extractor = t.ASTFeatureExtractor(max_length=204, num_mel_bins=32)
        return lambda: t.ASTForAudioClassification(config), extractor
    if family in ("clap", "clap-fusion"):
        fusion = family == "clap-fusion"
        audio = {
            "spec_size": 64, "num_mel_bins": 16, "patch_size": 4, "patch_stride": 4, "window_size": 4,
            "depths": [1, 1], "num_attention_heads": [2, 2], "hidden_size": 32, "patch_embeds_hidden_size": 16,
            "num_hidden_layers": 2, "enable_fusion": fusion, "aff_block_r": 2,
        }  # fmt: skip
        text = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
        config = t.ClapConfig(
            text_config={**text, "vocab_size": 20}, audio_config={**audio, "fusion_type": None}, projection_dim=24
        )
        extractor = t.ClapFeatureExtractor(
            feature_size=16, max_length_s=2, truncation="fusion" if fusion else "rand_trunc"
        )
        return lambda: t.ClapModel(config), extractor
    if family == "whisper":
        config = t.WhisperConfig(
            d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=12, max_source_positions=150, num_mel_bins=16,
            bos_token_id=1, eos_token_id=1, pad_token_id=1, decoder_start_token_id=1,
            suppress_tokens=None, begin_suppress_tokens=None,
        )  # fmt: skip
        extractor = t.WhisperFeatureExtractor(feature_size=16, chunk_length=3)
        return lambda: t.WhisperForConditionalGeneration(config), extractor
    raise ValueError(family)
