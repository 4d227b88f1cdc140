"""A Whisper of random weights, for the scripts that run our encoders in other suites."""

from __future__ import annotations

import torch
import transformers


def save_tiny_whisper(folder: str, window_seconds: int = 30) -> str:
    """Write the model and its feature extractor as transformers does; returns the folder."""
    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=12, num_mel_bins=80,
        max_source_positions=50 * window_seconds, bos_token_id=1, eos_token_id=1, pad_token_id=1,
        decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.WhisperForConditionalGeneration(config).save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=window_seconds).save_pretrained(folder)
    return folder
