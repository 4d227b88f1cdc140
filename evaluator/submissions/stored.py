"""What a local result was computed from: embeddings and answers in the stores; no model is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.tasks.base import Outputs

if TYPE_CHECKING:
    from audio_compositionality.evaluator.run.opened import OpenedTask
    from audio_compositionality.evaluator.run.store import EmbeddingStore, ShardStore


def stored_embeddings(result: Result, opened: OpenedTask, root: str | Path | None = None) -> NDArray[np.floating]:
    """The embeddings that a local result was computed from, [clips and different texts of the task, dim]; see
    `OpenedTask.embedded_ids`.

    Args:
        result: the result.
        opened: its task with the data.
        root: of the store; default `store_root`.

    Raises:
        ResultError: they are not there, or some clips could not be embedded.
        StoreError: they are damaged, or of other clips.
    """
    from audio_compositionality.evaluator.run.embeddings import text_store
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.evaluator.run.store import EmbeddingStore, StoreKey, store_root

    configuration, card = opened.configuration, result.model.card()
    folder = store_root() if root is None else Path(root)
    parts: list[NDArray[np.floating]] = []
    if opened.clip_ids:
        key = StoreKey.of(card, configuration.recipe, configuration.fingerprint)
        store = EmbeddingStore(folder, key, configuration.clip_ids)
        parts.append(opened.clip_outputs(_loaded(store, result.model.id)))
    if opened.texts:
        parts.append(_loaded(text_store(card, opened, RunOptions(store=folder)), result.model.id))
    return np.concatenate(parts)


def stored_answers(result: Result, opened: OpenedTask, root: str | Path | None = None) -> list[str]:
    """The answers that a local result was computed from, in the order of the prompts of the task.

    Args:
        result: the result.
        opened: its task with the data.
        root: of the store; default `store_root`.

    Raises:
        ResultError: they are not there, or some questions could not be asked.
        StoreError: they are damaged, or to other prompts.
    """
    from audio_compositionality.evaluator.run.store import answer_store, store_root

    store = answer_store(result.model.card(), opened, store_root() if root is None else Path(root))
    _check_whole(store, "answers", result.model.id)
    content = store.load()
    if content.errors:
        raise ResultError(f"{len(content.errors)} clips have no answer, such as {store.ids[min(content.errors)]}")
    return list(content.answers)


def stored_outputs(result: Result, opened: OpenedTask, root: str | Path | None = None) -> Outputs:
    """What a local result was computed from: see `stored_answers` and `stored_embeddings`."""
    if opened.prompts:
        return Outputs(answers=stored_answers(result, opened, root))
    return opened.outputs(stored_embeddings(result, opened, root))


def _loaded(store: EmbeddingStore, model: str) -> NDArray[np.floating]:
    """All embeddings of a store; raises ResultError where some are missing."""
    _check_whole(store, "embeddings", model)
    content = store.load()
    if content.errors:
        raise ResultError(f"{len(content.errors)} clips have no embedding, such as {store.ids[min(content.errors)]}")
    return content.embeddings


def _check_whole(store: ShardStore[Any], what: str, model: str) -> None:
    absent = sum(not store.has(shard) for shard in range(store.num_shards))
    if absent:
        raise ResultError(
            f"{store.folder} lacks {absent} of {store.num_shards} files of the {what} of {model}: "
            "--store says in which folder they are; where they are gone, `audio-compositionality evaluate --force` "
            "with the model and options of the result makes them again"
        )
