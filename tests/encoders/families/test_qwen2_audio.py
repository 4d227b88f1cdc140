"""The audio tower of Qwen2-Audio against transformers' own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

Saved = Callable[[str], Path]
MakeClips = Callable[[int, float], np.ndarray]
FAMILIES = ["qwen2-audio", "qwen2-audio-encoder"]


def relative_error(actual: np.ndarray, expected: torch.Tensor) -> float:
    return float(np.abs(actual - expected.numpy()).max() / expected.abs().max())


def tower_by_hand(family: str, saved: Saved, clips: np.ndarray) -> tuple[transformers.utils.ModelOutput, int, int]:
    """What the tower returns in the full model, and the frames that it takes for sound, before and after averaging."""
    model = transformers.Qwen2AudioForConditionalGeneration.from_pretrained(saved("qwen2-audio")).eval()
    inputs = transformers.WhisperFeatureExtractor.from_pretrained(saved(family))(
        list(clips), sampling_rate=16_000, return_tensors="pt", return_attention_mask=True
    )
    tower = model.model.audio_tower
    if family == "qwen2-audio-encoder":
        tower.load_state_dict(transformers.Qwen2AudioEncoder.from_pretrained(saved(family)).state_dict())
    before, after = tower._get_feat_extract_output_lengths(inputs.attention_mask[0].sum())
    model.config.audio_token_id = 5  # one of the tiny vocabulary
    tokens = torch.full((len(clips), int(after) + 1), model.config.audio_token_id)
    tokens[:, -1] = 6  # a single token would be taken for one that continues a text
    given: dict[str, torch.Tensor] = {}
    hook = tower.register_forward_pre_hook(lambda _, args, kwargs: given.update(kwargs), with_kwargs=True)
    with torch.no_grad():
        model(
            input_ids=tokens,
            input_features=inputs.input_features,
            attention_mask=torch.ones_like(tokens),
            feature_attention_mask=inputs.attention_mask,
        )
        hook.remove()
        assert "attention_mask" in given
        output = tower(inputs.input_features, **given, output_hidden_states=True)
    return output, int(before), int(after)


@pytest.mark.parametrize(("seconds", "frames_of_sound"), [(0.04, 1), (0.5, 12), (0.71, 18), (3.0, 75)])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_mean_over_the_frames_of_sound(
    family: str, seconds: float, frames_of_sound: int, saved: Saved, make_clips: MakeClips
) -> None:
    folder, clips = saved(family), make_clips(16_000, seconds)
    output, _, count = tower_by_hand(family, saved, clips)
    assert count == frames_of_sound
    expected = output.last_hidden_state[:, :count]
    encoder = load_model(f"tower:{folder}")
    frames, distance = encoder.embed_frames(clips, 16_000)
    assert distance == pytest.approx(0.04, rel=1e-12)
    assert relative_error(frames, expected) < 1e-5
    assert relative_error(encoder.embed(clips, 16_000), expected.mean(1)) < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_layers(family: str, saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved(family), make_clips(16_000, 0.71)
    output, before, after = tower_by_hand(family, saved, clips)
    for layer, count, milliseconds in ((0, before, 20), (1, before, 20), (2, after, 40)):
        encoder = load_model(f"tower:{folder}", options=EncoderOptions(layer=layer))
        frames, distance = encoder.embed_frames(clips, 16_000)
        assert distance == pytest.approx(milliseconds / 1000, rel=1e-12)
        assert relative_error(frames, output.hidden_states[layer][:, :count]) < 1e-5


def test_clips_shorter_than_a_frame_and_longer_than_the_window(saved: Saved) -> None:
    encoder = load_model(f"tower:{saved('qwen2-audio')}")
    with pytest.raises(
        ValueError, match="clips of 320 samples at 16000 Hz are shorter than one frame of 'tower:qwen2-audio'"
    ):
        encoder.embed(np.full((1, 320), 0.1), 16_000)
    with pytest.raises(ValueError, match=r"clips last 3\.1 s, but 'tower:qwen2-audio' takes 3 s at most"):
        encoder.embed(np.full((1, 49_600), 0.1), 16_000)


def test_only_the_shards_of_the_tower_are_read(saved: Saved, make_clips: MakeClips, tmp_path: Path) -> None:
    model = transformers.Qwen2AudioForConditionalGeneration.from_pretrained(saved("qwen2-audio"))
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    transformers.WhisperFeatureExtractor.from_pretrained(saved("qwen2-audio")).save_pretrained(tmp_path)
    others = [
        shard
        for shard in tmp_path.glob("model-*.safetensors")
        if not any("audio_tower" in name for name in load_file(shard))
    ]
    assert others
    for shard in others:
        shard.unlink()
    clips = make_clips(16_000, 0.5)
    np.testing.assert_array_equal(
        load_model(f"tower:{tmp_path}").embed(clips, 16_000),
        load_model(f"tower:{saved('qwen2-audio')}").embed(clips, 16_000),
    )
