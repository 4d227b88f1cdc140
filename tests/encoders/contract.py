"""What every audio encoder does; small networks with which those that are read by our own code do it quickly.

The tests of a new family are a subclass:

class TestMine(ModelContract):
    @pytest.fixture
    def about(self, saved: Saved) -> About:
        return About(str(saved("mine")), sample_rate=16_000, output_dim=32)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr
import torch
from transformers import ClapAudioConfig, ViTConfig, ViTModel

from audio_compositionality.encoders.base import ClipError, ModelError, StagedEncoder
from audio_compositionality.encoders.families import audiomae
from audio_compositionality.encoders.loading.registry import has_twins, load_encoder
from audio_compositionality.encoders.networks import beats_network, cnn14, htsat, passt_network
from audio_compositionality.support.errors import InputError

Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
HubCache = Callable[[str, Path, list[str]], Path]

BATCHED = 1e-4
"""Relative difference that kernels for another size of batch may make."""


@dataclass(frozen=True)
class About:
    """What is expected of an encoder.

    Attributes:
        name: what `load_model` takes.
        sample_rate: of its card.
        output_dim: likewise.
        seconds: length of clips that it takes.
        has_trained_weights: whether the card has a digest of weights.
        different: relative difference of embeddings of different sounds, at least.
    """

    name: str
    sample_rate: int
    output_dim: int
    seconds: float = 0.5
    has_trained_weights: bool = True
    different: float = 1e-3


def encoder_name(family: str, folder: Path) -> str:
    """The name of the audio encoder in a folder, which of a model that answers is not what the folder is."""
    return f"tower:{folder}" if family in ("qwen2-audio", "audio-flamingo") else str(folder)


def different_clips(sample_rate: int, seconds: float) -> np.ndarray:
    """Three clips of very different level and content, float32 [3, samples]."""
    t = np.arange(round(seconds * sample_rate)) / sample_rate
    noise = np.random.default_rng(0).normal(0, 0.1, t.size)
    tone = 0.5 * np.sin(2 * np.pi * 440 * t) * (1 + np.sin(2 * np.pi * 3 * t)) / 2
    quiet = 0.01 * np.sin(2 * np.pi * 1000 * t) + 0.01 * noise
    return np.stack([noise, tone, quiet]).astype(np.float32)


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference of values, over the largest value that is expected."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


CHANNELS = (4, 6, 8, 10, 12, 14)
"""Of a small Cnn14."""

VIT = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48}
PASST = {"DIM": 24, "DEPTH": 2, "HEADS": 4}
HTSAT = {
    "depths": [1, 2, 1, 1], "num_attention_heads": [1, 1, 2, 2], "patch_embeds_hidden_size": 4, "hidden_size": 32,
}  # fmt: skip

LISTED = {
    "audiomae": (16_000, 24), "beats-iter3": (16_000, 768), "ms-clap-2022": (44_100, 1024),
    "ms-clap-2023": (44_100, 1024), "panns-cnn14": (32_000, 14), "passt-s": (32_000, 24),
}  # fmt: skip
"""Sample rate and dimension, of a small network, of the listed models whose weights our own code reads."""


def small_vit(make: Callable[[], Any] = audiomae.make_model) -> ViTModel:
    """AudioMAE's network with fewer dimensions."""
    with torch.device("meta"):
        settings = make().config.to_dict()
    return ViTModel(ViTConfig(**{**settings, **VIT}), add_pooling_layer=False)


@contextmanager
def small_networks() -> Iterator[None]:
    """Within it, listed models whose weights our own code reads have few blocks and channels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audiomae, "LAYERS", 2)
        patch.setattr(audiomae, "make_model", small_vit)
        patch.setattr(beats_network, "LAYERS", 3)
        for module in (cnn14, htsat):
            patch.setattr(module, "CHANNELS", CHANNELS)
        patch.setattr(htsat, "ms_clap_config", partial(ClapAudioConfig, **HTSAT))
        for name, value in PASST.items():
            patch.setattr(passt_network, name, value)
        yield


@cache
def loaded(name: str, seed: int = 0) -> StagedEncoder[Any]:
    """An encoder on the CPU, loaded once a process; tests must not change it."""
    return load_encoder(name, device="cpu", seed=seed)


class ModelContract:
    """Tests of an encoder; a subclass has a fixture `about`."""

    @pytest.fixture
    def about(self) -> About:
        """What is expected of the encoder."""
        pytest.fail("a subclass of ModelContract has a fixture `about`")

    def embed(self, about: About, clips: Any, rate: int | None = None) -> np.ndarray:
        """Embeddings by the encoder."""
        return loaded(about.name).embed(clips, rate or about.sample_rate)

    def test_its_card_says_what_it_is(self, about: About) -> None:
        encoder = loaded(about.name)
        assert "audio" in encoder.abilities
        assert (encoder.card.sample_rate, encoder.card.output_dim) == (about.sample_rate, about.output_dim)
        assert encoder.card.id
        assert encoder.card.revision
        assert encoder.device == "cpu"
        if about.has_trained_weights:
            assert encoder.card.weights_sha256 is not None
            assert len(encoder.card.weights_sha256) == 64
            assert encoder.card.parameters
        with pytest.raises(FrozenInstanceError):
            encoder.card.id = "another"  # type: ignore[misc]

    def test_a_clip_is_one_finite_row_alone_in_a_batch_and_again(self, about: About) -> None:
        clips = different_clips(about.sample_rate, about.seconds)
        together = self.embed(about, clips)
        assert together.shape == (3, about.output_dim)
        assert together.dtype == np.float32
        assert np.isfinite(together).all()
        alone = np.concatenate([self.embed(about, clip[None]) for clip in clips])
        assert relative_error(together, alone) < BATCHED
        np.testing.assert_array_equal(self.embed(about, clips), together)
        assert relative_error(self.embed(about, clips[::-1])[::-1], together) < BATCHED
        # The clips are different sounds, so their embeddings differ by more than rounding.
        assert min(relative_error(together[i], together[j]) for i, j in [(0, 1), (0, 2), (1, 2)]) > about.different

    def test_silence_and_a_single_sample_are_finite_rows_or_refused_by_name(self, about: About) -> None:
        samples = round(about.seconds * about.sample_rate)
        for clip, words in ((np.zeros((1, samples)), f"of {samples} samples"), (np.full((1, 1), 0.1), "1 samples")):
            try:
                row = self.embed(about, clip)
            except (ClipError, ModelError) as error:
                message = str(error)
            else:
                assert row.shape == (1, about.output_dim)
                assert np.isfinite(row).all()
                continue
            assert loaded(about.name).card.id in message
            assert words in message

    def test_clips_at_another_rate_are_resampled_and_16_bits_are_the_same_clips(self, about: About) -> None:
        rate = 32_000 if about.sample_rate != 32_000 else 48_000
        clips = different_clips(rate, about.seconds)
        resampled = np.stack([soxr.resample(clip, rate, about.sample_rate, quality="HQ") for clip in clips])
        np.testing.assert_array_equal(self.embed(about, clips, rate), self.embed(about, resampled))
        samples = np.round(resampled * 32_767).astype(np.int16)
        np.testing.assert_array_equal(self.embed(about, samples), self.embed(about, samples / np.float32(32_768)))

    def test_its_twins_have_the_shape_and_other_weights(self, about: About) -> None:
        """An untrained twin has none of the weights, a shuffled one the same in another order."""
        clips = different_clips(about.sample_rate, about.seconds)
        if about.name.startswith("untrained:"):
            first, other = (loaded(about.name, seed).embed(clips, about.sample_rate) for seed in (0, 1))
            assert relative_error(other, first) > about.different
            return
        if not has_twins(about.name):
            with pytest.raises(ModelError, match=f"'untrained:{about.name}': '{about.name}' has no weights, so"):
                load_encoder(f"untrained:{about.name}")
            return
        trained = loaded(about.name)
        values = trained.embed(clips, about.sample_rate)
        for kind, licence in (("untrained", None), ("shuffled", trained.card.licence)):
            twin, again, other = (load_encoder(f"{kind}:{about.name}", device="cpu", seed=seed) for seed in (1, 1, 2))
            assert (twin.card.id, twin.card.output_dim) == (f"{kind}:{trained.card.id}", about.output_dim)
            assert (twin.card.weights_sha256, twin.card.licence) == (None, licence)
            assert twin.card.paradigm == ("untrained" if kind == "untrained" else "untrained (weights shuffled)")
            assert twin.card.parameters == trained.card.parameters
            assert twin.card.revision == again.card.revision
            assert twin.card.revision.startswith("seed-1-")
            embeddings = twin.embed(clips, about.sample_rate)
            np.testing.assert_array_equal(again.embed(clips, about.sample_rate), embeddings)
            for another in (other.embed(clips, about.sample_rate), values):
                assert relative_error(another, embeddings) > 1e-3


TEXTS = [
    "a dog barks",
    "a bell rings and then a dog barks while a bell rings",
    "bell",
    "a dog rings before a bell barks",
    "a bell rings",
]
"""Texts of different lengths, of words that tiny tokenizers know."""


class TextContract:
    """Tests of an encoder that embeds text; a subclass has a fixture `name`, of what `load_model` takes."""

    @pytest.fixture
    def name(self) -> str:
        """What is loaded."""
        pytest.fail("a subclass of TextContract has a fixture `name`")

    def embed_text(self, name: str, texts: list[str]) -> np.ndarray:
        """Embeddings by the encoder."""
        encoder = loaded(name)
        assert "text" in encoder.abilities
        return encoder.embed_text(texts)

    def test_a_text_is_one_finite_row_in_the_space_of_clips(self, name: str) -> None:
        embeddings = self.embed_text(name, TEXTS)
        assert embeddings.shape == (len(TEXTS), loaded(name).card.output_dim)
        assert embeddings.dtype == np.float32
        assert np.isfinite(embeddings).all()

    def test_a_text_embeds_the_same_alone_in_a_batch_and_again(self, name: str) -> None:
        together = self.embed_text(name, TEXTS)
        alone = np.concatenate([self.embed_text(name, [text]) for text in TEXTS])
        assert relative_error(together, alone) < 1e-6
        np.testing.assert_array_equal(self.embed_text(name, TEXTS), together)
        assert relative_error(self.embed_text(name, TEXTS[::-1])[::-1], together) < 1e-6
        pairs = ((i, j) for i in range(len(TEXTS)) for j in range(i))
        assert min(relative_error(together[i], together[j]) for i, j in pairs) > 1e-4

    @pytest.mark.parametrize(
        ("texts", "message"),
        [
            ("a dog", "texts are the single text 'a dog'; pass a list of texts"),
            ([], "there are no texts"),
            (["a dog", 3], "text 1 is 3; it must be a str"),
            (["a dog", " "], "text 1 is empty"),
        ],
    )
    def test_what_is_no_list_of_texts_is_refused(self, name: str, texts: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.embed_text(name, texts)
