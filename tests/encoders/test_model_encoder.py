"""Several layers of a model from one pass: each is what the model gives that was loaded for it alone."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.base import ClipError, ModelCard, ModelError
from audio_compositionality.encoders.families.whisper import WhisperEncoder
from audio_compositionality.encoders.loading.registry import load_layers, load_model
from audio_compositionality.encoders.model_encoder import Hidden, LayeredEncoder, ModelEncoder, deepest, embed_layers
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.pipeline import embed_batches, embed_batches_at_layers

from .contract import LISTED, Saved, different_clips, encoder_name, relative_error, small_networks
from .families.test_families import LAYERED, RATES
from .test_pipeline import Batch

ROUNDING = 1e-5
"""Relative difference between a pass that ends at a layer and one that goes on."""


def check_layers(
    name: str, rate: int, options: EncoderOptions | None = None, layers: tuple[int, ...] = (0, 1, -1)
) -> None:
    """Of all layers, some (the first, the second and the last) have the card and the embeddings of the model that was
    loaded for it."""
    options = options or EncoderOptions()
    encoders = load_layers(name, device="cpu", options=options)
    assert all(isinstance(encoder, LayeredEncoder) for encoder in encoders)
    clips = different_clips(rate, 0.35)
    together = embed_layers(encoders, deepest(encoders).prepare(clips, rate))
    assert len(encoders) == encoders[0].num_layers + 1 > 2
    for layer in (range(len(encoders))[place] for place in layers):
        encoder, embeddings = encoders[layer], together[layer]
        alone = load_model(name, device="cpu", options=options.changed(layer=layer))
        assert encoder.card == alone.card
        expected = alone.embed(clips, rate)
        assert embeddings.dtype == np.float32
        assert relative_error(embeddings, expected) < ROUNDING
        np.testing.assert_array_equal(encoder.embed(clips, rate), embeddings)
        frames, seconds = encoder.embed_frames(clips, rate)
        expected_frames, expected_seconds = alone.embed_frames(clips, rate)
        assert seconds == expected_seconds
        assert relative_error(frames, expected_frames) < ROUNDING


@pytest.mark.parametrize("family", LAYERED)
def test_each_layer_is_that_of_the_model_that_was_loaded_for_it(family: str, saved: Saved) -> None:
    check_layers(encoder_name(family, saved(family)), RATES.get(family, 16_000))


@pytest.mark.parametrize("name", LISTED)
def test_each_layer_of_a_listed_model(name: str) -> None:
    with small_networks():
        check_layers(f"untrained:{name}", 32_000, layers=(1,))


@pytest.mark.parametrize("pooling", ["max", "cls"])
def test_options_other_than_the_layer_are_kept(pooling: str, saved: Saved) -> None:
    check_layers(str(saved("ast")), 16_000, EncoderOptions(pooling=pooling))


def test_some_layers_need_no_block_behind_the_last_of_them(saved: Saved) -> None:
    first, second = load_layers(str(saved("ast")), [1, 0, 1], device="cpu")
    assert [first.card.options.layer, second.card.options.layer] == [0, 1]
    assert len(first._model.layers) == 1
    assert first._model is second._model
    assert first.is_same_model(second)
    (again,) = load_layers(str(saved("ast")), [1], device="cpu")
    assert not again.is_same_model(first)
    assert not first.is_same_model(load_model("random"))


def test_what_has_no_layers_says_so(saved: Saved, tmp_path: Path) -> None:
    for name in (str(saved("encodec")), "random"):
        with pytest.raises(ModelError, match=r"has no layers to choose from"):
            load_layers(name)
    with pytest.raises(ModelError, match=r"it takes no layer"):
        load_layers("random", [0, 1])
    with pytest.raises(ModelError, match=r"'whisper' has the layers 0 to 2, but layer 7 was requested"):
        load_layers(str(saved("whisper")), [0, 7])


class Alone(ModelEncoder[torch.Tensor]):
    """A model of somebody's with layers of which each takes a pass."""

    def __init__(self, options: EncoderOptions) -> None:
        self.check_options("alone", options, 2)
        super().__init__(
            ModelCard(f"alone{options.suffix}", "1", 16_000, 2, options=options),
            num_layers=2,
            device=torch.device("cpu"),
        )

    def _extract_features(self, clips):
        return torch.from_numpy(clips[:, :2].copy())

    def _encode(self, features):
        return Hidden((features + (self.card.options.layer or 0))[:, None], 1.0)


def test_models_that_give_a_layer_a_pass_are_loaded_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "audio_compositionality.encoders.loading.registry._load", lambda name, device, options, *_, **__: Alone(options)
    )
    assert [one.card.options.layer for one in load_layers("alone", [2, 0])] == [0, 2]
    assert [one.card.options.layer for one in load_layers("alone")] == [0, 1, 2]


class Fragile(WhisperEncoder):
    """Two layers: 0 is the first two samples, 1 is their hundredfold, which overflows for loud clips; counts passes."""

    def __init__(self) -> None:
        card = ModelCard("fragile@layer=1", "1", 16_000, 2, options=EncoderOptions(layer=1))
        LayeredEncoder.__init__(self, card, num_layers=1, device=torch.device("cpu"))
        self.passes: list[tuple[int | None, ...]] = []

    def _extract_features(self, clips):
        return torch.from_numpy(clips[:, None, :2].copy())

    def _encode_at(self, features, layers):
        self.passes.append(tuple(layers))
        loud = torch.where(features.abs() > 0.5, torch.inf, 100 * features)
        return [Hidden(loud if layer else features, 1.0) for layer in layers]


def made(*levels: float) -> Batch:
    waveforms = np.repeat(np.array(levels, np.float32)[:, None], 8, axis=1)
    return Batch([f"clip-{level}" for level in levels], waveforms)


def test_one_pass_gives_all_layers_and_a_clip_that_fails_at_one_is_there_at_the_others() -> None:
    encoder = Fragile()
    shallow, deep = encoder.at_layers([0, 1])
    batches = [made(0.1, 0.2), made(0.3, 0.9), made(0.4)]
    with closing(embed_batches_at_layers([shallow, deep], batches, skip_invalid=True)) as stream:
        embedded = list(stream)
    assert encoder.passes.count((0, 1)) == 3
    for number, layer in enumerate((shallow, deep)):
        with closing(embed_batches(layer, batches, skip_invalid=True)) as stream:
            for one, expected in zip(embedded, stream, strict=True):
                np.testing.assert_array_equal(one[number].embeddings, expected.embeddings)
                assert one[number].errors == expected.errors
                assert one[number].ids == expected.ids
    assert [list(batch[0].errors) for batch in embedded] == [[], [], []]
    assert [list(batch[1].errors) for batch in embedded] == [[], [1], []]

    with (
        closing(embed_batches_at_layers([shallow, deep], batches)) as stream,
        pytest.raises(ClipError, match=r"clip 'clip-0.9': encoder 'fragile@layer=1' returned 2 of 2 values"),
    ):
        list(stream)


def test_batches_of_which_no_clip_can_be_embedded_are_nan_at_each_layer() -> None:
    encoders = Fragile().at_layers([0, 1])
    batch = replace(made(0.1, 0.2), errors={0: "is damaged", 1: "is damaged"})
    with closing(embed_batches_at_layers(encoders, [batch], skip_invalid=True)) as stream:
        ((first, second),) = stream
    assert np.isnan([first.embeddings, second.embeddings]).all()
    assert first.errors == second.errors == {0: "is damaged", 1: "is damaged"}


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None, reason="torch.compile needs a C++ compiler"
)
def test_compiled(tmp_path: Path) -> None:
    # Every kernel takes the compiler seconds.
    config = transformers.Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, conv_dim=(8, 8),
        conv_kernel=(10, 8), conv_stride=(10, 8), num_feat_extract_layers=2, num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    config.save_pretrained(tmp_path)
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(tmp_path)
    compiled, plain = (
        load_layers(f"untrained:{tmp_path}", [0, 1], device="cpu", options=EncoderOptions(compile=flag))
        for flag in (True, False)
    )
    assert [one.card.id for one in compiled] == [one.card.id for one in plain]
    features = plain[0].prepare(different_clips(16_000, 0.5), 16_000)
    expected = embed_layers(plain, features)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for ours, theirs in zip(embed_layers(compiled, features), expected, strict=True):
        assert relative_error(ours, theirs) < 1e-4
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs + 1
