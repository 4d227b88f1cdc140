"""The same clip must give the same embedding, whatever was embedded before it and beside it.

A score compares embeddings of different clips; where an embedding tells when it was computed, so does the score. So a
share of what has been embedded is embedded once more at the end, in another order and beside others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audio_compositionality.encoders.base import ModelCard, ModelError
from audio_compositionality.encoders.check_sounds import relative_difference
from audio_compositionality.encoders.inference import allowed_in_company

from .store import EmbeddingShard, EmbeddingStore

SHARE, FEWEST, MOST = 0.03, 16, 64
"""Of the items that were embedded, how many are embedded again, and how few and how many these may be."""


def chosen_again(store: EmbeddingStore, shards: Sequence[int]) -> list[int]:
    """The items of some shards that are embedded a second time, in the order for it: other than that of the store."""
    numbers = [number for shard in shards for number in store.numbers(shard)]
    count = min(max(round(SHARE * len(numbers)), FEWEST), MOST)
    return store.by_hash(numbers, "again")[:count]


def size_again(count: int, batch_size: int) -> int:
    """Items at a time: as before, unless all would be beside each other again."""
    return max(1, min(batch_size, -(-count // 2)))


def accept_or_refuse(
    stores: Sequence[EmbeddingStore],
    shards: Sequence[int],
    numbers: Sequence[int],
    again: Sequence[EmbeddingShard],
    cards: Sequence[ModelCard],
    what: str,
) -> None:
    """Finish the shards that await a check, if items that were embedded a second time are as they were.

    Args:
        stores: of each model that was run.
        shards: which await a check.
        numbers: of the items.
        again: for each store what they gave the second time.
        cards: of each store's model.
        what: the items' name: clips, texts.

    Raises:
        ModelError: they differ by more than `allowed_in_company`; what the stores have is discarded then.
    """
    for store, given, card in zip(stores, again, cards, strict=True):
        difference = _difference(_stored(store, shards, numbers), given)
        allowed = allowed_in_company(card.options.precision)
        if difference <= allowed:
            continue
        for other in stores:
            for shard in range(other.num_shards):
                other.discard(shard)
        raise ModelError(
            f"'{card.id}' gives the same {what} other embeddings in other company: of {len(numbers)} that were "
            f"embedded a second time one differs by {difference:.1e} of its length, where at most {allowed:.0e} may be "
            "rounding; what comes before and beside it must not change an embedding, so none is kept: "
            f"`audio-compositionality check-model {card.id}` looks for the reason"
        )
    for store in stores:
        for shard in shards:
            if store.awaits_check(shard):
                store.accept(shard)


def _stored(store: EmbeddingStore, shards: Sequence[int], numbers: Sequence[int]) -> EmbeddingShard:
    """What a store has of some items."""
    place_of = {number: place for place, number in enumerate(numbers)}
    embeddings = np.full((len(numbers), store.dim), np.nan, np.float32)
    errors: dict[int, str] = {}
    for shard in shards:
        wanted = [(row, place_of[number]) for row, number in enumerate(store.numbers(shard)) if number in place_of]
        content = store.read(shard) if wanted else None
        for row, place in wanted:
            assert content is not None
            embeddings[place] = content.embeddings[row]
            if row in content.errors:
                errors[place] = content.errors[row]
    return EmbeddingShard(embeddings, errors)


def _difference(first: EmbeddingShard, second: EmbeddingShard) -> float:
    """The largest relative difference; infinite where an item has an embedding only once."""
    if first.errors.keys() != second.errors.keys():
        return np.inf
    left = [place for place in range(len(first.embeddings)) if place not in first.errors]
    return relative_difference(second.embeddings[left], first.embeddings[left])
