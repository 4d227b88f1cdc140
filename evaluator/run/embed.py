"""The embeddings of clips: taken from the store, and what is missing computed and stored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import ClipBatch, Configuration, DatasetError, in_batches
from audio_compositionality.encoders.base import ClipError
from audio_compositionality.encoders.layers import LayeredEncoder
from audio_compositionality.encoders.loading.controls import ControlledEncoder
from audio_compositionality.encoders.memory import free_memory, is_out_of_memory
from audio_compositionality.encoders.pipeline import EmbeddedBatch, embed_batches, embed_batches_at_layers
from audio_compositionality.encoders.protocols import AudioEncoder, Model
from audio_compositionality.support.text import first_line

from .options import RunOptions
from .processes import Processes, join_processes
from .store import EmbeddingShard, EmbeddingStore, StoreError, StoreKey, check_batch_size

CPU_BATCH_SIZE, GPU_BATCH_SIZE = 4, 32
"""Clips embedded at a time. On two cores Whisper tiny.en and base embed a clip fastest in batches of 2 to 4."""

DEVIATION_CLIPS = 16
"""Clips that the deviation of a lower precision from float32 is measured on."""

Value = TypeVar("Value")
AnyModel = TypeVar("AnyModel", bound=Model)


def open_store(model: AudioEncoder, configuration: Configuration, options: RunOptions) -> EmbeddingStore:
    """The store for a model's embeddings of all clips of a configuration; in memory where `options.store` is None.

    A model under a control that changes texts alone shares that of the model.
    """
    card = model.clips_card if isinstance(model, ControlledEncoder) else model.card
    key = StoreKey.of(card, configuration.recipe, configuration.fingerprint)
    return EmbeddingStore(options.store, key, configuration.clip_ids)


def embed_configuration(model: AudioEncoder, configuration: Configuration, options: RunOptions) -> EmbeddingStore:
    """Embed every clip of a configuration into a store; see `embed_at_layers`."""
    return embed_at_layers([model], configuration, options)[0]


def embed_at_layers(
    models: Sequence[AudioEncoder], configuration: Configuration, options: RunOptions
) -> list[EmbeddingStore]:
    """Embed every clip of a configuration into stores; what is there already is not computed again.

    Several processes, see `join_processes`, compute each its own shards and wait for each other.

    Args:
        models: an encoder, or several that are layers of one model, which then take one pass; see `models_by_pass`.
        configuration: of opened data.
        options: batch size, store, which clips to leave out.

    Returns:
        the store of each: `EmbeddingStore.load` has the embeddings, `EmbeddingStore.folder` says where they are.

    Raises:
        ClipError: a clip cannot be embedded, or the store has it as such, and `options.skip_invalid` is not given.
        StoreError: a stored shard is damaged, or one of another process cannot be seen.
        DatasetError: a clip cannot be read.
        MemoryError: not even a single clip fits into the memory.
        ProcessError: another process has failed.
    """
    stores = [open_store(model, configuration, options) for model in models]
    fill_stores(stores, models, configuration, options, join_processes())
    return stores


def models_by_pass(models: Sequence[AnyModel]) -> list[list[AnyModel]]:
    """Models in their order, those together of which one pass gives the embeddings: layers of one model."""
    groups: list[list[AnyModel]] = []
    for model in models:
        same = (group for group in groups if isinstance(group[0], LayeredEncoder) and group[0].is_same_model(model))
        group = next(same, None)
        if group is None:
            groups.append([model])
        else:
            group.append(model)
    return groups


def fill_stores(
    stores: Sequence[EmbeddingStore],
    models: Sequence[AudioEncoder],
    configuration: Configuration,
    options: RunOptions,
    processes: Processes,
) -> None:
    """Compute the shards that are missing, each process its own, and wait until all processes have.

    Clips come in one stream, so that the input is made ready ahead of the model from the first shard to the last. No
    batch crosses the end of a shard, whose bytes thus do not depend on which others were there.

    Args:
        stores: of each model and the configuration.
        models: see `embed_at_layers`.
        configuration: the clips.
        options: see `embed_configuration`, which says what is raised.
        processes: those that share the work.
    """
    first, model = stores[0], models[0]
    batch_size = batch_size_of(model, options)
    share = processes.share_of(first.num_shards)
    for store in stores:
        _check_stored(store, share, options)
    more = f" and {len(models) - 1} more of its layers" if len(models) > 1 else ""
    description = f"{model.card.id}{more}, {first.key.recipe}"
    if processes.count > 1:
        description += f" (process 1 of {processes.count}, its share)"
    hidden = None if options.progress and processes.is_main else True
    with tqdm(total=_items_in(first, share), desc=description, unit="clip", disable=hidden, leave=None) as bar:

        def embed_missing(size: int) -> None:
            places = [place for place, store in enumerate(stores) if not all(map(store.has, share))]
            lacking = [stores[place] for place in places]
            missing = [shard for shard in share if not all(store.has(shard) for store in lacking)]
            bar.n = _items_in(first, share) - _items_in(first, missing)
            bar.refresh()
            if missing:
                batches = _batches_of(configuration, first, missing, size, options.skip_invalid)
                with closing(_stream([models[place] for place in places], batches, options.skip_invalid)) as stream:
                    _write_shards(lacking, missing, stream, bar)

        within_memory(embed_missing, batch_size, model)
    processes.wait()
    if processes.is_main:
        for store in stores:
            store.check_complete()


def _check_stored(store: EmbeddingStore, share: Sequence[int], options: RunOptions) -> None:
    """Look at the shards that are there, or forget them where all are to be computed again."""
    for shard in share:
        if options.force:
            store.discard(shard)
        elif store.has(shard):
            content = store.read(shard)
            if not options.skip_invalid:
                refuse_skipped(store, content, store.items(shard).start)


def _stream(
    models: Sequence[AudioEncoder], batches: Iterator[ClipBatch], skip_invalid: bool
) -> Generator[list[EmbeddedBatch]]:
    """What each model gives of each batch."""
    layers = [model for model in models if isinstance(model, LayeredEncoder)]
    if len(models) > 1:
        with closing(embed_batches_at_layers(layers, batches, skip_invalid=skip_invalid)) as stream:
            yield from stream
    else:
        with closing(embed_batches(models[0], batches, skip_invalid=skip_invalid)) as single:
            for batch in single:
                yield [batch]


def batch_size_of(model: Model, options: RunOptions) -> int:
    """Clips that a model is given at a time.

    Raises:
        InputError: less than 1 is asked for, or more than a file of the store holds.
    """
    if options.batch_size is None:
        return CPU_BATCH_SIZE if model.device == "cpu" else GPU_BATCH_SIZE
    check_batch_size(options.batch_size, "batch_size")
    return options.batch_size


def refuse_skipped(store: EmbeddingStore, content: EmbeddingShard, first: int = 0) -> None:
    """Raise the ClipError of the first clip of some that could not be embedded.

    Args:
        store: which they are stored in.
        content: a part of it.
        first: number of the part's first clip.
    """
    if content.errors:
        place = min(content.errors)
        raise recorded_error(content.errors[place], store.folder, place, store.ids[first + place])


def recorded_error(reason: str, folder: Path | None, place: int, clip_id: str) -> ClipError:
    """The error about a clip that a store has nothing of, and why."""
    return ClipError(
        f"{reason} (as recorded in {folder}). --skip-invalid leaves it out, --force computes it again", place, clip_id
    )


def precision_deviation(
    model: AudioEncoder, configuration: Configuration, skipped: Sequence[str]
) -> dict[str, float] | None:
    """What a lower precision changes: `ModelEncoder.precision_deviation`, and ``clips``, the number of clips it is of.

    They are the first 16 of the configuration that are not in `skipped`, as far as they have one length. None where
    the precision is float32.
    """
    if model.card.options.precision == "float32":
        return None
    from audio_compositionality.encoders.model_encoder import ModelEncoder

    if not isinstance(model, ModelEncoder):
        return None
    left_out = set(skipped)
    clips: list[np.ndarray] = []
    rate = 0
    for clip in configuration.clips(keep_invalid=True):
        if clip.id in left_out or clip.problem is not None:
            continue
        if clips and (len(clip.waveform), clip.sample_rate) != (len(clips[0]), rate):
            break
        rate = clip.sample_rate
        clips.append(clip.waveform)
        if len(clips) == DEVIATION_CLIPS:
            break
    if not clips:
        raise DatasetError(f"{configuration.source} has no clip of {configuration.recipe} that can be embedded")
    waveforms = np.stack(clips)

    def deviation(count: int) -> dict[str, float]:
        return {**model.precision_deviation(waveforms[:count], rate), "clips": count}

    return within_memory(deviation, len(waveforms), model)


def _items_in(store: EmbeddingStore, shards: Sequence[int]) -> int:
    return sum(len(store.items(shard)) for shard in shards)


def _batches_of(
    configuration: Configuration, store: EmbeddingStore, shards: Sequence[int], batch_size: int, keep_invalid: bool
) -> Iterator[ClipBatch]:
    """The clips of some shards, in batches none of which crosses the end of a shard."""
    for shard in shards:
        yield from in_batches(configuration.clips(store.items(shard), keep_invalid=keep_invalid), batch_size)


def _write_shards(
    stores: Sequence[EmbeddingStore], shards: Sequence[int], stream: Iterator[list[EmbeddedBatch]], bar: tqdm[Any]
) -> None:
    """Gather embedded batches into shards of each store; a thread writes each while the model works on the next."""
    written: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="embedding-store") as writer:
        for shard in shards:
            contents = _gather(stores, shard, stream, bar)
            if written is not None:
                written.result()
            written = writer.submit(_write, stores, shard, contents)
        if written is not None:
            written.result()


def _write(stores: Sequence[EmbeddingStore], shard: int, contents: Sequence[EmbeddingShard]) -> None:
    """Write a shard to the stores that lack it."""
    for store, content in zip(stores, contents, strict=True):
        if not store.has(shard):
            store.write(shard, content)


def _gather(
    stores: Sequence[EmbeddingStore], shard: int, stream: Iterator[list[EmbeddedBatch]], bar: tqdm[Any]
) -> list[EmbeddingShard]:
    ids = [stores[0].ids[clip] for clip in stores[0].items(shard)]
    contents = [EmbeddingShard(np.empty((len(ids), store.dim), np.float32), {}) for store in stores]
    errors: list[dict[int, str]] = [{} for _ in stores]
    done = 0
    while done < len(ids):
        batches = next(stream, [])
        names = list(batches[0].ids) if batches else []
        if not names or names != ids[done : done + len(names)]:
            raise StoreError(f"the data give the clips {names[:1]} where their rows have '{ids[done]}'")
        for content, failed, batch in zip(contents, errors, batches, strict=True):
            content.embeddings[done : done + len(names)] = batch.embeddings
            failed |= {done + place: error for place, error in batch.errors.items()}
        done += len(names)
        bar.update(len(names))
    return [EmbeddingShard(content.embeddings, failed) for content, failed in zip(contents, errors, strict=True)]


def within_memory(work: Callable[[int], Value], size: int, model: AudioEncoder) -> Value:
    """`work(size)`, with half the size whenever it runs out of memory.

    Raises:
        MemoryError: a size of 1 is too large.
    """
    while True:
        try:
            return work(size)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            reason = first_line(error)
        # Here the caught error is gone, whose traceback would keep the tensors that have to go.
        if size == 1:
            raise MemoryError(
                f"'{model.card.id}' runs out of memory with a single clip on device '{model.device}': {reason}"
            )
        size //= 2
        warnings.warn(f"out of memory; '{model.card.id}' goes on with batches of {size} ({reason})", stacklevel=2)
        free_memory()
