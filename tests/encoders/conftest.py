"""Tiny checkpoints with random weights, written as transformers writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers


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
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Path, list[str]], Path]:
    """Function of a Hub id, a folder, and files that the repository does not have.

    The folder becomes all that the Hub's cache holds, and is known to hold, of the repository; returns where it is,
    which is named by the commit. Tests have no network, so that anything else cannot be had.
    """
    root = tmp_path / "hub-cache"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(root))

    def fill(repository: str, folder: Path, absent: list[str]) -> Path:
        commit = "0123456789abcdef0123456789abcdef01234567"
        base = root / f"models--{repository.replace('/', '--')}"
        (base / "refs").mkdir(parents=True)
        (base / "refs" / "main").write_text(commit)
        (base / ".no_exist" / commit).mkdir(parents=True)
        for name in absent:
            (base / ".no_exist" / commit / name).touch()
        (base / "snapshots").mkdir()
        return folder.rename(base / "snapshots" / commit)

    return fill


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
            if instance.config.model_type.startswith(("encodec", "dac", "mimi", "pe_audio")):
                _strengthen(instance)
    instance.save_pretrained(folder)
    extractor.save_pretrained(folder)
    return folder


def _strengthen(codec: Any) -> None:
    """Filters of unit norm and small biases: else a tiny codec answers its biases, whatever the sound."""
    for name, parameter in codec.named_parameters():
        if parameter.ndim == 3 and not name.endswith("original1"):
            parameter.div_(parameter.flatten(1).norm(dim=1)[:, None, None])
        elif name.endswith("bias"):
            parameter.mul_(0.1)


_SPEECH_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "hubert": ("Hubert", {"do_stable_layer_norm": True}),
    "wavlm": ("WavLM", {}),
    "sew": ("SEW", {"squeeze_factor": 2}),
    "sew-d": ("SEWD", {"squeeze_factor": 2}),
    "wav2vec2-conformer": ("Wav2Vec2Conformer", {}),
}
"""Name in transformers and what differs from wav2vec 2.0."""


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
    if family == "wav2vec2-adapter":
        config = t.Wav2Vec2Config(
            **layers, **convolutions, add_adapter=True, num_adapter_layers=2, output_hidden_size=24
        )
        return lambda: t.Wav2Vec2Model(config), speech
    if family in _SPEECH_MODELS:
        name, more = _SPEECH_MODELS[family]
        config = getattr(t, f"{name}Config")(**{**layers, **convolutions, **more})
        return lambda: getattr(t, f"{name}Model")(config), speech
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
    if family in ("encodec", "encodec-stereo"):
        config = t.EncodecConfig(
            num_filters=4, hidden_size=16, num_lstm_layers=1, codebook_size=16, upsampling_ratios=[8, 5, 4], compress=1,
        )  # fmt: skip
        if family == "encodec":
            return lambda: t.EncodecModel(config), t.EncodecFeatureExtractor()
        stereo = {
            "sampling_rate": 48_000, "audio_channels": 2, "normalize": True, "chunk_length_s": 0.25, "overlap": 0.01,
            "norm_type": "time_group_norm", "use_causal_conv": False,
        }  # fmt: skip
        chunked = t.EncodecConfig(**{**config.to_dict(), **stereo, "target_bandwidths": [24.0]})
        extractor = t.EncodecFeatureExtractor(feature_size=2, sampling_rate=48_000, chunk_length_s=0.25, overlap=0.01)
        return lambda: t.EncodecModel(chunked), extractor
    if family == "dac":
        config = t.DacConfig(
            encoder_hidden_size=4, downsampling_ratios=[2, 4, 5, 8], decoder_hidden_size=32, n_codebooks=2,
            codebook_size=16, codebook_dim=4, sampling_rate=44_100,
        )  # fmt: skip
        return lambda: t.DacModel(config), t.DacFeatureExtractor(sampling_rate=44_100, hop_length=320)
    if family == "mimi":
        config = t.MimiConfig(
            num_filters=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
            intermediate_size=48, sliding_window=20, codebook_size=16, codebook_dim=8, num_quantizers=4,
            vector_quantization_hidden_dimension=8, upsample_groups=4, layer_scale_initial_scale=0.5,
        )  # fmt: skip
        return lambda: t.MimiModel(config), t.EncodecFeatureExtractor()
    if family.startswith("pe-audio"):
        audio = {
            "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
            "head_dim": 16,
            "dac_config": {"encoder_hidden_size": 2, "downsampling_ratios": [2, 8, 10, 12], "codebook_dim": 8},
        }  # fmt: skip
        text = {
            "model_type": "modernbert", "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 1,
            "num_attention_heads": 2, "vocab_size": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "cls_token_id": 1, "sep_token_id": 2,
        }  # fmt: skip
        extractor = t.PeAudioFeatureExtractor()
        if family == "pe-audio-encoder":
            config = t.PeAudioEncoderConfig(**audio)
            return lambda: t.PeAudioEncoder(config), extractor
        config = t.PeAudioConfig(audio_config=audio, text_config=text)
        model = t.PeAudioFrameLevelModel if family == "pe-audio-frames" else t.PeAudioModel
        return lambda: model(config), extractor
    if family == "audio-flamingo":
        config = t.AudioFlamingo3Config(
            audio_config={
                "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
                "max_source_positions": 150, "num_mel_bins": 16,
            },
            text_config={
                "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                "num_key_value_heads": 2, "vocab_size": 20,
            },
            audio_token_id=19,
        )  # fmt: skip
        extractor = t.WhisperFeatureExtractor(feature_size=16, chunk_length=3, return_attention_mask=True)
        return lambda: t.AudioFlamingo3ForConditionalGeneration(config), extractor
    if family.startswith("qwen2-audio"):
        audio = {
            "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "num_mel_bins": 16,
            "max_source_positions": 150,
        }  # fmt: skip
        extractor = t.WhisperFeatureExtractor(feature_size=16, chunk_length=3, return_attention_mask=True)
        if family == "qwen2-audio-encoder":
            config = t.Qwen2AudioEncoderConfig(**audio)
            return lambda: t.Qwen2AudioEncoder(config), extractor
        text = {**layers, "model_type": "qwen2", "num_key_value_heads": 4}
        config = t.Qwen2AudioConfig(audio_config={**audio, "model_type": "qwen2_audio_encoder"}, text_config=text)
        return lambda: t.Qwen2AudioForConditionalGeneration(config), extractor
    raise ValueError(family)
