"""What a model makes of the inputs of a task: embeddings of clips and texts, answers to prompts; each computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.protocols import AudioEncoder, AudioLanguageModel, AudioTextEncoder, Model
from audio_compositionality.tasks.base import Outputs, Task, TaskError

from .embed import batch_size_of, fill_store, open_store, refuse_skipped
from .opened import OpenedTask
from .options import RunOptions
from .processes import Processes
from .store import AnswerStore, EmbeddingShard, EmbeddingStore, StoreKey


@dataclass(frozen=True)
class ModelOutputs:
    """What a model made of the inputs of a task.

    Attributes:
        opened: the task, without the rows of clips that could not be embedded.
        outputs: for its rows.
        skipped: why a clip could not be embedded, by its id.
    """

    opened: OpenedTask
    outputs: Outputs
    skipped: dict[str, str]


def check_model_kind(task: Task, model: Model) -> None:
    """Refuse a model that cannot do what a task needs.

    Raises:
        TaskError: says what the task needs, and the command that lists models.
    """
    if not isinstance(model, task.info.model):
        raise TaskError(
            f"'{model.card.id}' is no {task.info.model.__name__}, which the task {task.info.name} needs: it lacks "
            f"{' or '.join(_missing(task.info.model, model))}"
        )


def _missing(protocol: type, model: Model) -> list[str]:
    return [name for name in ("embed", "embed_text", "answer") if hasattr(protocol, name) and not hasattr(model, name)]


def compute_outputs(model: Model, opened: OpenedTask, options: RunOptions, processes: Processes) -> ModelOutputs | None:
    """What a model makes of the inputs of a task; what is in the store is not computed again.

    Several processes share the embedding of clips; texts and answers are the main process's.

    Returns:
        the outputs in the main process, None in others.

    Raises:
        ClipError: a clip cannot be embedded, and `options.skip_invalid` is not given.
        TaskError: too little is left without those clips.
        StoreError: what is stored is damaged.
        ProcessError: another process has failed.
    """
    if opened.prompts and isinstance(model, AudioLanguageModel):
        return (
            ModelOutputs(opened, Outputs(answers=_answers(model, opened, options)), {}) if processes.is_main else None
        )
    store = None
    if opened.clip_ids and isinstance(model, AudioEncoder):
        store = open_store(model, opened.configuration, options)
        fill_store(store, model, opened.configuration, options, processes)
    if not processes.is_main:
        return None
    skipped: dict[str, str] = {}
    clips = np.zeros((0, 0), np.float32)
    if store is not None:
        opened, clips, skipped = embedded_rows(store, store.load(), opened, options.skip_invalid)
    texts = np.zeros((0, 0), np.float32)
    if opened.texts and isinstance(model, AudioTextEncoder):
        texts = _texts(model, opened, options)
    return ModelOutputs(opened, Outputs(clips=clips, texts=texts), skipped)


def embedded_rows(
    store: EmbeddingStore, content: EmbeddingShard, opened: OpenedTask, skip_invalid: bool
) -> tuple[OpenedTask, NDArray[np.floating], dict[str, str]]:
    """A task without the rows of clips that have no embedding, the embeddings of its clips, and why others have none.

    Raises:
        ClipError: there are such clips, and they are not to be left out.
        TaskError: what is left cannot be scored.
    """
    needed = set(opened.clip_ids)
    skipped = {store.ids[place]: why for place, why in content.errors.items() if store.ids[place] in needed}
    if not skipped:
        return opened, opened.clip_outputs(content.embeddings), {}
    if not skip_invalid:
        refuse_skipped(store, content)
    left = opened.without(list(skipped))
    return left, left.clip_outputs(content.embeddings), skipped


def _texts(model: AudioTextEncoder, opened: OpenedTask, options: RunOptions) -> NDArray[np.float32]:
    """Embeddings of the texts of all rows; each different text is embedded once."""
    unique = list(dict.fromkeys(opened.texts))
    key = StoreKey.of(model.card, opened.configuration.recipe, _digest(unique), "texts")
    store = EmbeddingStore(options.store, key, [_digest([text]) for text in unique])
    for shard in range(store.num_shards):
        if options.force or not store.has(shard):
            texts = [unique[place] for place in store.items(shard)]
            store.write(shard, EmbeddingShard(np.asarray(model.embed_text(texts), np.float32), {}))
    places = {text: place for place, text in enumerate(unique)}
    embeddings = store.load().embeddings
    return embeddings[[places[text] for text in opened.texts]]


def _answers(model: AudioLanguageModel, opened: OpenedTask, options: RunOptions) -> list[str]:
    """The answers to the prompts of all rows, a batch after the other."""
    prompts = opened.prompts
    ids = opened.clip_ids
    fingerprint = _digest([opened.configuration.fingerprint, *prompts])
    store = AnswerStore(
        options.store,
        replace(StoreKey.of(model.card, opened.configuration.recipe, fingerprint, "answers"), output_dim=None),
        [f"{id}?{number}" for number, id in enumerate(ids)],
    )
    size = batch_size_of(model, options)
    hidden = None if options.progress else True
    with tqdm(
        total=len(prompts), desc=f"{model.card.id}, {store.key.recipe}", unit="answer", disable=hidden, leave=None
    ) as bar:
        for shard in range(store.num_shards):
            items = store.items(shard)
            if options.force or not store.has(shard):
                clips = _clips_by_id(opened, ids[items.start : items.stop])
                answers: list[str] = []
                for start in range(0, len(items), size):
                    batch = range(items.start + start, min(items.start + start + size, items.stop))
                    answers += model.answer([clips[ids[k]] for k in batch], [prompts[k] for k in batch])
                store.write(shard, tuple(answers))
            bar.update(len(items))
    return store.load()


def _clips_by_id(opened: OpenedTask, ids: Sequence[str]) -> dict[str, Clip]:
    places = {id: place for place, id in enumerate(opened.configuration.clip_ids)}
    wanted = sorted({places[id] for id in ids})
    clips: dict[str, Clip] = {}
    for place in wanted:
        for clip in opened.configuration.clips(range(place, place + 1)):
            clips[clip.id] = clip
    return clips


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
