"""Bag of words: a baseline that knows which words a text has and not how they are put together.

What tells twins of the same words apart is not in it, so that a task of order or of binding must leave it at ties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..base import FloatArray
from ..texts import check_texts, words_of
from .baselines import MELS, LogMelStatistics, card_of, listing_of, seeded_normals

DIM = 256


class BagOfWords(LogMelStatistics):
    """A random vector for each word; a text is the sum of those of its words, divided by the root of their number.

    Words are those of `words_of`: upper and lower case are one, punctuation is none. Texts of the same words have the
    same vector to the last bit, whatever the order. A clip is its log-mel statistics (`LogMelStatistics`), multiplied
    by a random matrix. Words and matrix are standard normal variates of fixed seeds, so that nothing of the one side
    tells of the other.
    """

    card = card_of("bag-of-words", DIM)

    def _run_model(self, features: FloatArray) -> FloatArray:
        # Row by row: the sums of a product of matrices depend on their size.
        return np.stack([row @ _projection() for row in super()._run_model(features)])

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """Embed texts; see `Model.embed_text`. One without a word is a vector of zeros."""
        return np.stack([_sum_of(words_of(text)) for text in check_texts(texts)])


def _sum_of(words: Sequence[str]) -> FloatArray:
    total = np.zeros(DIM)
    for word, count in sorted(Counter(words).items()):
        total += count * _vector_of(word)
    vector: FloatArray = (total / max(len(words), 1) ** 0.5).astype(np.float32)
    return vector


@lru_cache(maxsize=10_000)
def _vector_of(word: str) -> FloatArray:
    return seeded_normals(word.encode(), DIM, b"word")


@lru_cache(maxsize=1)
def _projection() -> FloatArray:
    return seeded_normals(b"projection", 2 * MELS * DIM).reshape(2 * MELS, DIM) / np.float32((2 * MELS) ** 0.5)


MODELS = (
    listing_of(
        BagOfWords,
        "texts: the sum of a random vector for each word, whatever their order; clips: a random projection of the "
        "log-mel statistics; knows nothing of which goes with which",
        is_baseline=False,
        is_reference=True,
        embeds_text=True,
    ),
)
