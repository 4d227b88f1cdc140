"""Comparisons with transformers, called by hand as its documentation does, beside our own encoders.

Each function writes a checkpoint with seeded weights into a folder, embeds the seeded clips with `load_model` and
with transformers' own feature extractor and model, and returns name, reference and both sets of embeddings.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import transformers as t
from seeded import seeded_clips, seeded_state

from audio_compositionality.encoders.loading.registry import load_model

Pair = tuple[str, np.ndarray, np.ndarray]


def fill(model: torch.nn.Module) -> torch.nn.Module:
    """Give a model seeded weights; its constants stay. Returns it in evaluation mode."""
    own = model.state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in own.items() if tensor.is_floating_point()}
    seeded = {name: torch.from_numpy(np.asarray(array)) for name, array in seeded_state(shapes).items()}
    model.load_state_dict({**own, **seeded})
    return model.eval()


def reference(name: str) -> str:
    """What the table calls a model of transformers."""
    return f"transformers {t.__version__} ({name})"


def whisper_tiny(folder: Path) -> Pair:
    """Whisper tiny, but for its vocabulary; encoder frames of the clip's 10 s, averaged."""
    tokens = {f"{name}_token_id": 1 for name in ("bos", "eos", "pad", "decoder_start")}
    config = t.WhisperConfig(
        vocab_size=12, decoder_layers=1, suppress_tokens=None, begin_suppress_tokens=None, **tokens
    )
    assert (config.d_model, config.encoder_layers, config.num_mel_bins) == (384, 4, 80)
    model, extractor = fill(t.WhisperModel(config)), t.WhisperFeatureExtractor()
    clips = seeded_clips(16_000)
    inputs = extractor(list(clips), sampling_rate=16_000, return_tensors="pt", return_attention_mask=True)
    frames = (inputs["attention_mask"].sum(-1) - 1) // 2 + 1
    assert frames.tolist() == [500] * 4
    with torch.inference_mode():
        hidden = model.encoder(inputs["input_features"]).last_hidden_state
    theirs = hidden[:, :500].mean(dim=1).numpy()
    return reference("WhisperModel"), embed("whisper-tiny", folder, model, extractor, clips, 16_000), theirs


def laion_clap(folder: Path) -> Pair:
    """CLAP of the full size, but for its text part; the unfused checkpoint's extractor."""
    text = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
    config = t.ClapConfig(text_config={**text, "vocab_size": 20})
    model, extractor = fill(t.ClapModel(config)), t.ClapFeatureExtractor(truncation="rand_trunc")
    clips = seeded_clips(48_000)
    with torch.inference_mode():
        inputs = extractor(list(clips), sampling_rate=48_000, return_tensors="pt")
        theirs = model.get_audio_features(**inputs).pooler_output.numpy()
    return reference("ClapModel"), embed("laion-clap", folder, model, extractor, clips, 48_000), theirs


def af_whisper(folder: Path) -> Pair:
    """Audio Flamingo 3 with a small encoder and language model; frames of the clip's 10 s, averaged."""
    config = t.AudioFlamingo3Config(
        audio_config={
            "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256,
        },
        text_config={
            "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 2, "vocab_size": 40,
        },
        audio_token_id=39,
    )  # fmt: skip
    model = fill(t.AudioFlamingo3ForConditionalGeneration(config))
    extractor = t.WhisperFeatureExtractor(feature_size=128, return_attention_mask=True)
    clips = seeded_clips(16_000)
    # As AudioFlamingo3Processor calls it: without the argument the mask would count samples, not frames.
    inputs = extractor(list(clips), sampling_rate=16_000, return_tensors="pt", return_attention_mask=True)
    with torch.inference_mode():
        hidden = model.model.audio_tower(
            inputs["input_features"], input_features_mask=inputs["attention_mask"]
        ).last_hidden_state
    assert hidden.shape[1] == 750
    theirs = hidden[:, :250].mean(dim=1).numpy()
    return reference("AudioFlamingo3"), embed("af-whisper", folder, model, extractor, clips, 16_000), theirs


def embed(
    name: str, folder: Path, model: t.PreTrainedModel, extractor: object, clips: np.ndarray, rate: int
) -> np.ndarray:
    """Embeddings by our encoder of that name, with the weights of a model."""
    model.save_pretrained(folder / name)
    extractor.save_pretrained(folder / name)
    return load_model(f"{name}={folder / name}", device="cpu").embed(clips, rate)


DIRECT = {"whisper-tiny": whisper_tiny, "laion-clap": laion_clap, "af-whisper": af_whisper}
