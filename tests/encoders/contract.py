"""What every audio encoder does. The tests of a new family are a subclass:

class TestMine(ModelContract):
    @pytest.fixture
    def about(self, saved: Saved) -> About:
        return About(str(saved("mine")), sample_rate=16_000, output_dim=32)
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from audio_compositionality.encoders.base import StagedEncoder
from audio_compositionality.encoders.loading.registry import has_twins, load_encoder
from audio_compositionality.support.errors import InputError

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
    """

    name: str
    sample_rate: int
    output_dim: int
    seconds: float = 0.5
    has_trained_weights: bool = True


def encoder_name(family: str, folder: Path) -> str:
    """The name of the audio encoder in a folder, which of a model that answers is not what the folder is."""
    return f"tower:{folder}" if family == "qwen2-audio" else str(folder)


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

    def test_a_clip_is_one_finite_row(self, about: About) -> None:
        embeddings = self.embed(about, different_clips(about.sample_rate, about.seconds))
        assert embeddings.shape == (3, about.output_dim)
        assert embeddings.dtype == np.float32
        assert np.isfinite(embeddings).all()

    def test_a_clip_embeds_the_same_alone_in_a_batch_and_again(self, about: About) -> None:
        clips = different_clips(about.sample_rate, about.seconds)
        together = self.embed(about, clips)
        alone = np.concatenate([self.embed(about, clip[None]) for clip in clips])
        assert relative_error(together, alone) < BATCHED
        np.testing.assert_array_equal(self.embed(about, clips), together)
        assert relative_error(self.embed(about, clips[::-1])[::-1], together) < BATCHED
        # The clips are different sounds, so their embeddings differ by more than rounding.
        assert min(relative_error(together[i], together[j]) for i, j in [(0, 1), (0, 2), (1, 2)]) > 1e-3

    def test_clips_at_another_rate_are_resampled(self, about: About) -> None:
        rate = 32_000 if about.sample_rate != 32_000 else 48_000
        clips = different_clips(rate, about.seconds)
        resampled = np.stack([soxr.resample(clip, rate, about.sample_rate, quality="HQ") for clip in clips])
        np.testing.assert_array_equal(self.embed(about, clips, rate), self.embed(about, resampled))

    def test_16_bit_samples_are_the_same_clips(self, about: About) -> None:
        samples = np.round(different_clips(about.sample_rate, about.seconds) * 32_767).astype(np.int16)
        floats = samples / np.float32(32_768)
        np.testing.assert_array_equal(self.embed(about, samples), self.embed(about, floats))

    def test_its_untrained_twin_has_the_shape_but_not_the_weights(self, about: About) -> None:
        if not has_twins(about.name):
            pytest.skip("has no weights that could be fresh")
        trained = loaded(about.name)
        twin, other_seed = (loaded(f"untrained:{about.name}", seed) for seed in (1, 2))
        assert (twin.card.id, twin.card.output_dim) == (f"untrained:{trained.card.id}", about.output_dim)
        assert (twin.card.weights_sha256, twin.card.paradigm, twin.card.licence) == (None, "untrained", None)
        assert twin.card.parameters == trained.card.parameters
        assert twin.card.revision.startswith("seed-1")
        clips = different_clips(about.sample_rate, about.seconds)
        embeddings = twin.embed(clips, about.sample_rate)
        again = load_encoder(f"untrained:{about.name}", device="cpu", seed=1)
        np.testing.assert_array_equal(again.embed(clips, about.sample_rate), embeddings)
        for another in (other_seed, trained):
            assert relative_error(another.embed(clips, about.sample_rate), embeddings) > 1e-3

    def test_its_shuffled_twin_has_the_weights_in_another_order(self, about: About) -> None:
        if not has_twins(about.name):
            pytest.skip("has no weights that could be shuffled")
        trained, twin = loaded(about.name), load_encoder(f"shuffled:{about.name}", device="cpu", seed=1)
        assert (twin.card.id, twin.card.output_dim) == (f"shuffled:{trained.card.id}", about.output_dim)
        assert (twin.card.weights_sha256, twin.card.licence) == (None, trained.card.licence)
        assert twin.card.parameters == trained.card.parameters
        assert twin.card.revision.startswith("seed-1-")
        clips = different_clips(about.sample_rate, about.seconds)
        embeddings = (encoder.embed(clips, about.sample_rate) for encoder in (twin, trained))
        assert relative_error(*embeddings) > 1e-3


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
            ("a dog", "texts are the one text 'a dog'; pass a list of texts"),
            ([], "there are no texts"),
            (["a dog", 3], "text 1 is 3; it must be a str"),
            (["a dog", " "], "text 1 is empty"),
        ],
    )
    def test_what_is_no_list_of_texts_is_refused(self, name: str, texts: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.embed_text(name, texts)
