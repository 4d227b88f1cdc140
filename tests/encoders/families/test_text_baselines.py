"""Bag of words and random texts: what they know of a text, and that it is nothing more."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scipy.stats

from audio_compositionality.encoders.base import words_of
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model

RATE = 32_000


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, (count, RATE)).astype(np.float32)


def test_words() -> None:
    assert words_of("A dog barks, then a cat's meow; FIRST-class 2nd!") == [
        *["a", "dog", "barks", "then", "a", "cat's", "meow", "first-class", "2nd"]
    ]
    assert words_of("— ... !?") == []


def test_texts_of_the_same_words_are_one_to_the_last_bit() -> None:
    encoder = load_model("bag-of-words")
    pairs = [
        ("a slow high bell followed by a fast low organ", "a fast low organ followed by a slow high bell"),
        ("First a dog, later a cat.", "first a cat, later a dog"),
    ]
    for one, other in pairs:
        np.testing.assert_array_equal(*encoder.embed_text([one, other]))
    first, second = encoder.embed_text(["a dog before a cat", "a dog after a cat"])
    assert not np.allclose(first, second)


def test_a_text_is_the_sum_of_its_words() -> None:
    encoder = load_model("bag-of-words")
    dog, cat, both, twice = encoder.embed_text(["dog", "cat", "cat, DOG", "dog dog cat"])
    np.testing.assert_allclose(both, (dog + cat) / np.sqrt(2), atol=1e-6)
    np.testing.assert_allclose(twice, (2 * dog + cat) / np.sqrt(3), atol=1e-6)
    assert abs(np.corrcoef(dog, cat)[0, 1]) < 0.2
    np.testing.assert_array_equal(encoder.embed_text(["!?"]), np.zeros((1, 256)))


def test_a_clip_is_a_projection_of_its_log_mel_statistics() -> None:
    """Linear in them: distances are kept to about one part in sixteen, as by any random projection to 256."""
    statistics, projected = (load_model(name).embed(noise(4), RATE) for name in ("log-mel-statistics", "bag-of-words"))
    solution = np.linalg.lstsq(statistics.astype(float), projected.astype(float), rcond=None)[0]
    np.testing.assert_allclose(statistics @ solution, projected, atol=1e-4 * np.abs(projected).max())
    ratio = np.linalg.norm(projected, axis=1) / np.linalg.norm(statistics, axis=1)
    np.testing.assert_allclose(ratio, 1, atol=0.2)


def test_random_texts_are_independent_normals_by_their_content() -> None:
    encoder = load_model("random")
    texts = [f"text {number}" for number in range(100)]
    vectors = encoder.embed_text(texts)
    np.testing.assert_array_equal(load_model("random").embed_text(texts[::-1])[::-1], vectors)
    assert scipy.stats.kstest(vectors.ravel(), "norm").pvalue > 1e-3
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (unit @ unit.T)[np.triu_indices(100, 1)].std() == pytest.approx(768**-0.5, rel=0.05)
    # Not the vector of a clip with the same bytes.
    digest = hashlib.blake2b(b"text 0", digest_size=16).digest()
    of_clip = np.random.Generator(np.random.Philox(int.from_bytes(digest, "little"))).standard_normal(768, np.float32)
    assert abs(np.corrcoef(of_clip, vectors[0])[0, 1]) < 0.2


def test_lists_say_which_embed_text() -> None:
    """And those that are made without weights do."""
    listings = {listing.name: listing for listing in list_models()}
    assert {name for name, listing in listings.items() if listing.embeds_text} == {
        *["random", "bag-of-words", "tiny-clap", "laion-clap", "ms-clap-2022", "ms-clap-2023"]
    }
    assert listings["laion-clap"].gives == "sound, text"
    assert listings["downsample"].gives == "sound"
    for name, listing in listings.items():
        if listing.source is None and listing.make is not None:
            assert ("text" in load_model(name).abilities) == listing.embeds_text
    assert not listings["bag-of-words"].is_baseline
