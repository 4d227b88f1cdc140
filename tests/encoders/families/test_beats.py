from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers.models.wavlm.modeling_wavlm import WavLMAttention

from audio_compositionality.encoders.families.beats import BeatsEncoder
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.networks.beats_network import position_buckets
from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions

from ..contract import different_clips, small_networks


def load_three_blocks(options: EncoderOptions = DEFAULT_OPTIONS) -> BeatsEncoder:
    """A BEATs of three blocks instead of twelve; deep norm scales as for twelve."""
    with small_networks():
        loaded = load_model("untrained:beats-iter3", device="cpu", options=options)
    assert isinstance(loaded, BeatsEncoder)
    return loaded


@pytest.fixture(scope="module")
def encoder() -> BeatsEncoder:
    return load_three_blocks()


def test_buckets_are_those_of_wavlm() -> None:
    """WavLM, of the same authors, has the same buckets."""
    wavlm = WavLMAttention(768, 12, num_buckets=320, max_distance=800, has_relative_position_bias=True)
    with torch.no_grad():
        wavlm.rel_attn_embed.weight.copy_(torch.arange(320.0)[:, None].expand(320, 12))
        expected = wavlm.compute_bias(1_800, 1_800)[0]
    torch.testing.assert_close(position_buckets(1_800).float(), expected)


def test_fresh_weights_are_drawn_as_published(encoder: BeatsEncoder) -> None:
    """Deep norm's gain of (8·12)^(-1/4) but for queries and keys; Xavier's deviation is gain·sqrt(2/(in + out))."""
    weights = dict(encoder._model.named_parameters())
    gain = 96**-0.25
    for name, deviation in (
        ("encoder.layers.1.self_attn.q_proj.weight", (2 / 1_536) ** 0.5),
        ("encoder.layers.1.self_attn.k_proj.weight", (2 / 1_536) ** 0.5),
        ("encoder.layers.1.self_attn.v_proj.weight", gain * (2 / 1_536) ** 0.5),
        ("encoder.layers.1.self_attn.out_proj.weight", gain * (2 / 1_536) ** 0.5),
        ("encoder.layers.1.fc1.weight", gain * (2 / 3_840) ** 0.5),
        ("encoder.layers.1.fc2.weight", gain * (2 / 3_840) ** 0.5),
        ("encoder.relative_attention_bias.weight", 0.02),
        ("encoder.pos_conv.weight", (4 / (128 * 768)) ** 0.5),
    ):
        assert float(weights[name].std()) == pytest.approx(deviation, rel=0.05), name
        assert abs(float(weights[name].mean())) < 0.05 * deviation, name


def test_frames_that_fill_no_patch_are_left_out(encoder: BeatsEncoder) -> None:
    clips = different_clips(16_000, 1.0)
    filled = 400 + (5 * 16 - 1) * 160
    whole = encoder.embed(clips[:, : filled + 15 * 160], 16_000)
    np.testing.assert_array_equal(encoder.embed(clips[:, :filled], 16_000), whole)
    frames, hop = encoder.embed_frames(clips, 16_000)
    assert frames.shape == (3, 6, 768)
    assert hop == pytest.approx(0.16)
    with pytest.raises(ValueError, match=r"clips of 2799 samples at 16000 Hz are shorter than one patch of 'untrained"):
        encoder.embed(clips[:, :2_799], 16_000)


def test_frames_average_the_bands_of_a_moment(encoder: BeatsEncoder) -> None:
    clips = different_clips(16_000, 0.5)
    features = encoder.prepare(clips, 16_000)
    assert features.shape == (3, 48, 128)
    with torch.no_grad():
        ours = encoder._model(features)[0].numpy()
    assert ours.shape == (3, 3 * 8, 768)
    frames, _ = encoder.embed_frames(clips, 16_000)
    for moment in range(3):
        expected = ours[:, 8 * moment : 8 * moment + 8].mean(axis=1)
        np.testing.assert_allclose(frames[:, moment], expected, atol=1e-5)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), ours.mean(axis=1), atol=1e-5)


def test_layers(encoder: BeatsEncoder) -> None:
    clips = different_clips(16_000, 0.5)
    blocks = encoder._model.encoder.layers
    states: list[torch.Tensor] = []
    hooks = [blocks[0].register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))]
    hooks += [block.register_forward_hook(lambda _, inputs, output: states.append(output)) for block in blocks]
    final = encoder.embed(clips, 16_000)
    for hook in hooks:
        hook.remove()
    assert len(states) == 4
    np.testing.assert_allclose(final, states[3].mean(dim=1), atol=1e-6)
    # Post-normalisation: with fresh scales every state has mean 0 and deviation 1, the first one too.
    for state in states:
        torch.testing.assert_close(state.mean(dim=2), torch.zeros(3, 24), atol=1e-5, rtol=0)
        torch.testing.assert_close(state.std(dim=2, correction=0), torch.ones(3, 24), atol=1e-3, rtol=0)
    for layer in (0, 2, 3):
        of_layer = load_three_blocks(EncoderOptions(layer=layer))
        np.testing.assert_allclose(of_layer.embed(clips, 16_000), states[layer].mean(dim=1), atol=1e-5)
        assert (of_layer.card.parameters < encoder.card.parameters) == (layer < 3)
