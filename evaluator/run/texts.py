"""The embeddings of texts: each different text once, kept in shards as clips are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.encoders.base import Model, ModelCard, check_text_embeddings

from .company import accept_or_refuse, chosen_again, size_again
from .embed import within_memory
from .opened import OpenedTask, digest_of_texts
from .options import ITEMS_PER_SHARD, RunOptions
from .store import EmbeddingShard, EmbeddingStore
from .store_key import StoreKey


def text_store(card: ModelCard, opened: OpenedTask, options: RunOptions) -> EmbeddingStore:
    """The store for a model's embeddings of the different texts of a task; in memory where `options.store` is None.

    Its key is made of the texts alone, so that tasks which ask for the same ones share it.
    """
    unique = opened.unique_texts
    key = StoreKey.of(card, opened.configuration.recipe, digest_of_texts(unique), "texts")
    return EmbeddingStore(options.store, key, [digest_of_texts([text]) for text in unique])


def fill_texts(store: EmbeddingStore, model: Model, opened: OpenedTask, options: RunOptions) -> None:
    """Embed the texts that a store lacks, a shard at a time: whoever is stopped goes on behind the last whole one.

    They come in the order of the store, and some are embedded again at the end, as clips are; see `fill_stores`.

    Raises:
        ModelError: the model gives another shape than it says, values that are not finite, or other ones in other
            company.
        StoreError: a stored shard is damaged.
        MemoryError: not even a single text fits into the memory.
    """
    unique, every = opened.unique_texts, range(store.num_shards)
    if options.force:
        for shard in every:
            store.discard(shard)
    missing = [shard for shard in every if not store.has(shard) and not store.awaits_check(shard)]
    hidden = None if options.progress else True
    description = f"{model.card.id}, texts of {store.key.recipe}"
    with tqdm(total=len(unique), desc=description, unit="text", disable=hidden, leave=None) as bar:
        bar.update(len(unique) - sum(len(store.items(shard)) for shard in missing))
        for shard in missing:
            texts = [unique[number] for number in store.numbers(shard)]
            store.write(shard, EmbeddingShard(_embedded(model, texts), {}), checked=False)
            bar.update(len(texts))
    unchecked = [shard for shard in every if store.awaits_check(shard)]
    if unchecked:
        numbers = chosen_again(store, unchecked)
        size = size_again(len(numbers), ITEMS_PER_SHARD)
        again = EmbeddingShard(_embedded(model, [unique[number] for number in numbers], size), {})
        accept_or_refuse([store], unchecked, numbers, [again], [model.card], "text")


def _embedded(model: Model, texts: Sequence[str], most: int = ITEMS_PER_SHARD) -> NDArray[np.float32]:
    """Embeddings of texts [n, dim], so many in a batch or, where memory does not suffice, fewer."""

    def embed(size: int) -> NDArray[np.float32]:
        starts = range(0, len(texts), size)
        return np.concatenate([_embed(model, list(texts[start : start + size])) for start in starts])

    return within_memory(embed, most, model)


def _embed(model: Model, texts: list[str]) -> NDArray[np.float32]:
    return check_text_embeddings(np.asarray(model.embed_text(texts)), model, texts)
