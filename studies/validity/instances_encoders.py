"""Encoders across instances whose truth is known: embeddings are made from what the rows of the recipes say.

The oracle gives each label and each condition a coordinate of its own, and each context a vector in further ones: a
clip is the sum of its sources, beside its context. Every other encoder is what a function makes of that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.evaluator.run.store import EmbeddingStore, StoreKey

from .instances_data import CONDITIONS, ENGINES, LABELS, NOWHERE, VOICES, Clips, Floats

PLACES = 16
"""Coordinates of contexts."""

DIM = LABELS + CONDITIONS + PLACES

STRONG = 10.0
"""Length of the vectors of contexts and conditions, where that of a label is 1."""

NUISANCE = 2.0
"""Length of what is a recording's own, where that of a label is 1."""

COMMON = 4
"""Dimensions of what recordings under all conditions have in common."""

_CONTEXTS, _NOISE, _BASIS, _RECORDINGS, _PAIRS = range(11, 16)  # independent random streams of one seed


def oracle(clips: Clips, seed: int, *, strength: float = STRONG, labels: Floats | None = None) -> Floats:
    """Label, condition and context side by side, [n, DIM].

    Args:
        clips: n of them.
        seed: of the vectors of contexts.
        strength: length of the vectors of contexts and conditions.
        labels: in place of how many sources have each, [n, LABELS].
    """
    vectors = np.random.default_rng([seed, _CONTEXTS]).standard_normal((2 * len(clips.rows), PLACES)) / np.sqrt(PLACES)
    contexts = np.where((clips.contexts != NOWHERE)[:, None], vectors[clips.contexts], 0.0)
    embeddings: Floats = np.hstack(
        [clips.labels if labels is None else labels, strength * clips.conditions, strength * contexts]
    )
    return embeddings


def without_labels(clips: Clips, seed: int) -> Floats:
    """The oracle that does not hear labels."""
    return oracle(clips, seed, labels=np.zeros((len(clips), LABELS)))


def noise_of(clips: Clips, sd: float, seed: int, number: int = 0) -> Floats:
    """Noise of each clip, of so large a standard deviation in each of DIM coordinates."""
    noise: Floats = sd * np.random.default_rng([seed, _NOISE, number]).standard_normal((len(clips), DIM))
    return noise


def noisy(clips: Clips, sd: float, seed: int) -> Floats:
    """The oracle beside noise."""
    return oracle(clips, seed) + noise_of(clips, sd, seed)


def masked(clips: Clips, lost: float, sd: float, seed: int) -> Floats:
    """The noisy oracle, to which a context masks a share of the label of what is added to it."""
    labels = clips.labels.copy()
    scenes = np.flatnonzero(clips.is_scene)
    labels[scenes, clips.added[scenes]] -= lost
    return oracle(clips, seed, labels=labels) + noise_of(clips, sd, seed)


def counting(clips: Clips) -> Floats:
    """The number of sources along one direction, and nothing else."""
    embeddings = np.zeros((len(clips), DIM))
    embeddings[:, 0] = clips.labels.sum(axis=1)
    return embeddings


def calls(ids: Sequence[str], shuffled: bool, seed: int) -> Floats:
    """One-hot of how many clips came before, modulo 8, and nothing else.

    Args:
        ids: of the clips, row by row.
        shuffled: whether they come in the order of an `EmbeddingStore`, else in that of the rows.
        seed: of the data, which that order depends on.
    """
    order = np.arange(len(ids))
    if shuffled:
        key = StoreKey.of(ModelCard("calls", "1", 32_000, DIM), "blocks", str(seed))
        store = EmbeddingStore(None, key, ids)
        order = np.array([number for shard in range(store.num_shards) for number in store.numbers(shard)])
    embeddings = np.zeros((len(ids), DIM))
    embeddings[order, np.arange(len(ids)) % 8] = 1
    return embeddings


def with_common_nuisance(clips: Clips, share: float, seed: int) -> Floats:
    """Sums of random vectors of labels, of conditions, and of recordings, [n, DIM]: a linear encoder.

    What is a recording's own, whatever its label and condition, is `NUISANCE` long. By `share` its square lies in
    `COMMON` dimensions that are the same under all conditions; elsewhere it has no direction.
    """
    rng = np.random.default_rng([seed, _RECORDINGS])
    basis = np.linalg.qr(np.random.default_rng([seed, _BASIS]).standard_normal((DIM, COMMON)))[0]
    labels, conditions = (rng.standard_normal((count, DIM)) / np.sqrt(DIM) for count in (LABELS, CONDITIONS))
    common = rng.standard_normal((LABELS, CONDITIONS, COMMON)) / np.sqrt(COMMON) @ basis.T
    rest = rng.standard_normal((LABELS, CONDITIONS, DIM)) / np.sqrt(DIM)
    nuisance = NUISANCE * (np.sqrt(share) * common + np.sqrt(1 - share) * rest)
    vectors = labels[:, None] + STRONG * conditions + nuisance
    embeddings: Floats = np.einsum("nlc,lcd->nd", clips.recordings, vectors)
    return embeddings


def bound(clips: Clips, share: float, sd: float, seed: int) -> Floats:
    """A part for labels and a part for conditions, of which `share` is one of both together, beside noise.

    Squared lengths of all parts are 1 on average: (1 − share)(label + condition) + share · (label and condition).
    """
    rng = np.random.default_rng([seed, _PAIRS])
    labels, conditions = (rng.standard_normal((count, DIM)) / np.sqrt(DIM) for count in (LABELS, CONDITIONS))
    together = rng.standard_normal((LABELS, CONDITIONS, DIM)) / np.sqrt(DIM)
    vectors = np.sqrt(1 - share) * (labels[:, None] + conditions) + np.sqrt(share) * together
    embeddings: Floats = np.einsum("nlc,lcd->nd", clips.recordings, vectors) + noise_of(clips, sd, seed)
    return embeddings


def products(clips: Clips, *, of_engines: bool = False) -> Floats:
    """A coordinate for each label under each condition, or by each engine, which conditions of it share."""
    counts = clips.recordings
    if of_engines:
        counts = counts.reshape(len(clips), LABELS, ENGINES, VOICES).sum(axis=3)
    return np.asarray(counts.reshape(len(clips), -1))


def turned(embeddings: Floats, seed: int, *, shift: float = 5_000.0) -> Floats:
    """Embeddings in a random orthonormal basis, × 1,000, and shifted."""
    rng = np.random.default_rng([seed, _BASIS])
    dim = embeddings.shape[1]
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    moved: Floats = 1_000 * embeddings @ basis + shift * rng.standard_normal(dim)
    return moved
