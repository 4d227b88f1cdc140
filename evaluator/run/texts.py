"""The embeddings of texts: each different text once, kept in shards as clips are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.encoders.base import ClipError, ModelError, check_embeddings
from audio_compositionality.encoders.protocols import AudioTextEncoder, ModelCard
from audio_compositionality.support.text import shortened

from .embed import within_memory
from .opened import OpenedTask
from .options import RunOptions
from .store import ITEMS_PER_SHARD, EmbeddingShard, EmbeddingStore, StoreKey

LONGEST = 80
"""Characters of a text in a message."""


def digest_of_texts(texts: Sequence[str]) -> str:
    """SHA-256 of texts in their order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def text_store(card: ModelCard, opened: OpenedTask, options: RunOptions) -> EmbeddingStore:
    """The store for a model's embeddings of the different texts of a task; in memory where `options.store` is None.

    Its key is made of the texts alone, so that tasks which ask for the same ones share it.
    """
    unique = opened.unique_texts
    key = StoreKey.of(card, opened.configuration.recipe, digest_of_texts(unique), "texts")
    return EmbeddingStore(options.store, key, [digest_of_texts([text]) for text in unique])


def missing_shards(store: EmbeddingStore, options: RunOptions) -> list[int]:
    """The shards that have to be computed."""
    return [shard for shard in range(store.num_shards) if options.force or not store.has(shard)]


def fill_texts(store: EmbeddingStore, model: AudioTextEncoder, opened: OpenedTask, options: RunOptions) -> None:
    """Embed the texts that a store lacks, a shard at a time: whoever is stopped goes on behind the last whole one.

    Raises:
        ModelError: the model gives another shape than it says, or values that are not finite.
        StoreError: a stored shard is damaged.
        MemoryError: not even a single text fits into the memory.
    """
    unique, missing = opened.unique_texts, missing_shards(store, options)
    hidden = None if options.progress else True
    description = f"{model.card.id}, texts of {store.key.recipe}"
    with tqdm(total=len(unique), desc=description, unit="text", disable=hidden, leave=None) as bar:
        bar.update(len(unique) - sum(len(store.items(shard)) for shard in missing))
        for shard in missing:
            texts = [unique[place] for place in store.items(shard)]
            store.write(shard, EmbeddingShard(_embedded(model, texts), {}))
            bar.update(len(texts))


def _embedded(model: AudioTextEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embeddings of texts [n, dim], in one batch or, where memory does not suffice, in several."""

    def embed(size: int) -> NDArray[np.float32]:
        starts = range(0, len(texts), size)
        return np.concatenate([_checked(model, list(texts[start : start + size])) for start in starts])

    return within_memory(embed, ITEMS_PER_SHARD, model)


def _checked(model: AudioTextEncoder, texts: list[str]) -> NDArray[np.float32]:
    try:
        return check_embeddings(np.asarray(model.embed_text(texts)), model, len(texts))
    except ClipError as error:
        text = shortened(repr(texts[error.row]), LONGEST)
        raise ModelError(f"of the text {text}: {error.reason}") from error
