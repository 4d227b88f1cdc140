"""Audio–text models whose truth is known: embeddings that are made from what rows say, and from random numbers."""

from __future__ import annotations

import numpy as np

from audio_compositionality.encoders.loading.registry import load_model

from .comp_a_data import Floats, Items

DIM = 64
"""Of random embeddings."""

_NOISE, _RANDOM, _TWINS, _FAVOUR = range(21, 25)  # independent random streams of one seed

Pair = tuple[Floats, Floats]
"""Embeddings of clips and of captions."""


def oracle(items: Items) -> Pair:
    """Reads events and captions."""
    return items.vectors(items.heard), items.vectors(items.said)


def first_named_first_heard(items: Items) -> Pair:
    """Reads events, and takes what a caption names first for what is heard first."""
    return items.vectors(items.heard), items.vectors(items.named)


def bag_of_words(items: Items, seed: int) -> Pair:
    """Reads events; of captions the words, as the baseline of that name has them."""
    model = load_model("bag-of-words")
    texts = model.embed_text([caption for row in items.rows for caption in row["captions"]])
    clips = items.vectors(items.heard)
    turn = np.random.default_rng([seed, _RANDOM]).normal(size=(clips.shape[1], texts.shape[1]))
    return clips @ turn, texts.astype(np.float64)


def random(items: Items, seed: int, number: int) -> Pair:
    """Knows nothing: another vector for every clip and caption."""
    clips, texts = np.random.default_rng([seed, _RANDOM, number]).normal(size=(2, len(items.item), DIM))
    return clips, texts


def near_twins(items: Items, distance: float, seed: int, number: int) -> Pair:
    """Knows nothing, and takes what an item has for nearly one: a vector of the item, and of `distance` times its
    length one of each clip and caption of their own."""
    rng = np.random.default_rng([seed, _TWINS, number])
    common = rng.normal(size=(2, len(items.rows), DIM))[:, items.item]
    clips, texts = common + distance * rng.normal(size=common.shape)
    return clips, texts


def noisy(items: Items, sd: float, seed: int, number: int) -> Pair:
    """The oracle beside noise of such a standard deviation in every coordinate, vectors of facts being 1 long."""
    rng = np.random.default_rng([seed, _NOISE, number])
    clips, texts = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True) + sd * rng.normal(size=vectors.shape)
        for vectors in oracle(items)
    )
    return clips, texts


def favouring(items: Items, strength: float, seed: int) -> Pair:
    """The oracle, to which some clips are nearer than others whatever is said: a direction that all captions share, and
    clips have more or less of."""
    clips, texts = oracle(items)
    more = strength * np.random.default_rng([seed, _FAVOUR]).uniform(size=(len(clips), 1))
    rest = np.sqrt(np.maximum(strength**2 - more**2, 0.0))
    # The second coordinate keeps all clips of one length.
    return np.hstack([clips, more, rest]), np.hstack([texts, np.ones((len(texts), 1)), np.zeros((len(texts), 1))])
