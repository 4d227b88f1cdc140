"""Embeddings of clips and texts: read from the store, and the missing ones computed and stored.

The same clip must give the same embedding in any order and any batch: a score compares embeddings
of different clips, and if an embedding depends on when it was computed, so does the score. So a share of the embedded
clips is embedded once more at the end, in another order and other batches. Each different text is embedded
once, and kept in shards like clips.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import ClipBatch, Configuration, DatasetError
from audio_compositionality.encoders.base import ClipError, Model, ModelCard, ModelError, check_text_embeddings
from audio_compositionality.encoders.binned_frames import BinnedFrames
from audio_compositionality.encoders.check_sounds import relative_difference
from audio_compositionality.encoders.inference import allowed_in_company, free_memory, is_out_of_memory
from audio_compositionality.encoders.model_encoder import LayeredEncoder
from audio_compositionality.encoders.pipeline import EmbeddedBatch, embed_batches, embed_batches_at_layers
from audio_compositionality.support.progress import during
from audio_compositionality.support.text import first_line

from .blocks import KeptClip, batches_by_length, batches_in_order, clips_at
from .opened import OpenedTask, digest_of_texts
from .options import ITEMS_PER_SHARD, RunOptions
from .processes import Processes, join_processes
from .store import EmbeddingShard, EmbeddingStore, StoreKey

CPU_BATCH_SIZE, GPU_BATCH_SIZE = 4, 32
"""Clips per batch. On two cores Whisper tiny.en and base embed a clip fastest in batches of 2 to 4."""

DEVIATION_CLIPS = 16
"""Clips for measuring the deviation of a lower precision from float32."""

Value = TypeVar("Value")
AnyModel = TypeVar("AnyModel", bound=Model)


def open_store(model: Model, configuration: Configuration, options: RunOptions) -> EmbeddingStore:
    """The store for a model's embeddings of all clips of a configuration; in memory where `options.store` is None.

    A model under a control that changes texts alone shares the store of the model itself.
    """
    key = StoreKey.of(model.clips_card, configuration.recipe, configuration.fingerprint)
    return EmbeddingStore(options.store, key, configuration.clip_ids)


def embedder_of(model: Model, opened: OpenedTask) -> Model:
    """What embeds the clips of a task: the model; for a task that needs frames, its binned frames, whose clips last as
    long as the first row states (``duration``)."""
    if "frames" not in opened.task.info.needs or "frames" not in model.abilities:
        return model
    return BinnedFrames(model, float(opened.rows[0]["duration"]))


def embed_configuration(model: Model, configuration: Configuration, options: RunOptions) -> EmbeddingStore:
    """Embed every clip of a configuration into a store; see `embed_at_layers`."""
    return embed_at_layers([model], configuration, options)[0]


def embed_at_layers(models: Sequence[Model], configuration: Configuration, options: RunOptions) -> list[EmbeddingStore]:
    """Embed every clip of a configuration into stores; stored embeddings are not computed again.

    Several processes, see `join_processes`, each compute their own shards and wait for each other. Clips come in an
    order that is independent of rows, and some of them twice; see `fill_stores`.

    Args:
        models: an encoder, or several layers of one model, which then take one pass; see `models_by_pass`.
        configuration: of opened data.
        options: batch size, store, which clips to leave out.

    Returns:
        the store of each: `EmbeddingStore.load` has the embeddings, `EmbeddingStore.folder` says where they are.

    Raises:
        ClipError: a clip cannot be embedded, or is stored as such, and `options.skip_invalid` is not given.
        ModelError: the embedding of a clip depends on the other clips of its batch; the stores are empty then.
        StoreError: a stored shard is damaged, or a shard of another process is not visible.
        DatasetError: a clip cannot be read.
        MemoryError: not even a single clip fits into the memory.
        ProcessError: another process has failed.
    """
    stores = [open_store(model, configuration, options) for model in models]
    fill_stores(stores, models, configuration, options, join_processes())
    return stores


def models_by_pass(models: Sequence[AnyModel]) -> list[list[AnyModel]]:
    """Models in their order, grouped by shared pass: layers of one model."""
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
    models: Sequence[Model],
    configuration: Configuration,
    options: RunOptions,
    processes: Processes,
) -> None:
    """Compute the missing shards, each process its own, and wait until all processes have.

    Clips come in one stream, so that input is prepared ahead of the model from the first shard to the last, in
    the order of `EmbeddingStore.numbers`. At the end a share of this process's clips is embedded a second time, in
    other batches; only shards that pass are finished, and shards left unchecked by an interrupted run are checked by
    the next.

    Args:
        stores: of each model and the configuration.
        models: see `embed_at_layers`.
        configuration: the clips.
        options: see `embed_configuration`, also for the errors.
        processes: the processes that share the work.
    """
    first, model = stores[0], models[0]
    batch_size = batch_size_of(model, options)
    share = processes.stretch_of(first.num_shards)
    for store in stores:
        _check_stored(store, share, options)
    more = f" and {len(models) - 1} more of its layers" if len(models) > 1 else ""
    description = f"{model.card.id}{more}, {first.key.recipe}"
    if processes.count > 1:
        description += f" (process 1 of {processes.count}, its share)"
    left = sum(len(first.items(shard)) for shard in share if not all(_is_there(store, shard) for store in stores))
    with during(description, "clip", left, shown=options.progress and processes.is_main) as advance:
        counted = 0

        def embed_missing(size: int) -> None:
            nonlocal counted
            places = [place for place, store in enumerate(stores) if not all(_is_there(store, one) for one in share)]
            lacking = [stores[place] for place in places]
            missing = [shard for shard in share if not all(_is_there(store, shard) for store in lacking)]
            # After a lack of memory, the shard that was begun is computed anew.
            advance(left - _items_in(first, missing) - counted)
            counted = left - _items_in(first, missing)

            def count(items: int) -> None:
                nonlocal counted
                counted += items
                advance(items)

            if missing:
                batches = batches_in_order(configuration, first, missing, size, options.skip_invalid)
                with closing(_stream([models[place] for place in places], batches, options.skip_invalid)) as stream:
                    _write_shards(lacking, missing, stream, count)
            _check_company(stores, models, configuration, share, size, options.skip_invalid)

        within_memory(embed_missing, batch_size, model)
    processes.wait()
    if processes.is_main:
        for store in stores:
            store.check_complete()


def _check_stored(store: EmbeddingStore, share: Sequence[int], options: RunOptions) -> None:
    """Read the stored shards, or discard them where all are to be computed again."""
    for shard in share:
        if options.force:
            store.discard(shard)
        elif _is_there(store, shard):
            content = store.read(shard)
            if not options.skip_invalid:
                refuse_skipped(store, content, store.numbers(shard))


def _is_there(store: EmbeddingStore, shard: int) -> bool:
    """Whether a shard is stored already."""
    return store.has(shard) or store.awaits_check(shard)


def _check_company(
    stores: Sequence[EmbeddingStore],
    models: Sequence[Model],
    configuration: Configuration,
    share: Sequence[int],
    batch_size: int,
    skip_invalid: bool,
) -> None:
    """Embed a second time some clips of shards that await a check; see `accept_or_refuse`."""
    shards = [shard for shard in share if any(store.awaits_check(shard) for store in stores)]
    if not shards:
        return
    places = [place for place, store in enumerate(stores) if any(map(store.awaits_check, shards))]
    stores, models = [stores[place] for place in places], [models[place] for place in places]
    numbers = chosen_again(stores[0], shards)
    clips = clips_at(configuration, numbers)
    place_of = {clips[number].id: place for place, number in enumerate(numbers)}
    gathering = [_Gathering(place_of, store.dim) for store in stores]
    kept = (KeptClip.of(clips[number]) for number in numbers)
    batches = batches_by_length(kept, size_again(len(numbers), batch_size))
    with closing(_stream(models, batches, skip_invalid)) as stream:
        for embedded in stream:
            for one, batch in zip(gathering, embedded, strict=True):
                one.add(batch)
    again = [one.shard() for one in gathering]
    accept_or_refuse(stores, shards, numbers, again, [model.card for model in models], "clip")


def _stream(
    models: Sequence[Model], batches: Iterator[ClipBatch], skip_invalid: bool
) -> Generator[list[EmbeddedBatch]]:
    """The output of each model for each batch."""
    layers = [model for model in models if isinstance(model, LayeredEncoder)]
    if len(models) > 1:
        with closing(embed_batches_at_layers(layers, batches, skip_invalid=skip_invalid)) as stream:
            yield from stream
    else:
        with closing(embed_batches(models[0], batches, skip_invalid=skip_invalid)) as single:
            for batch in single:
                yield [batch]


def batch_size_of(model: Model, options: RunOptions) -> int:
    """Clips per batch of a model."""
    if options.batch_size is None:
        return CPU_BATCH_SIZE if model.device == "cpu" else GPU_BATCH_SIZE
    return options.batch_size


def refuse_skipped(store: EmbeddingStore, content: EmbeddingShard, numbers: Sequence[int] | None = None) -> None:
    """Raise the ClipError of the first clip, among some, that could not be embedded.

    Args:
        store: the store of the clips.
        content: a part of it.
        numbers: of the part's clips; None for all clips.
    """
    if content.errors:
        number, place = min((place if numbers is None else numbers[place], place) for place in content.errors)
        raise recorded_error(content.errors[place], store.folder, number, store.ids[number])


def recorded_error(reason: str, folder: Path | None, place: int, clip_id: str) -> ClipError:
    """The error about a clip without an embedding in the store, and its reason."""
    return ClipError(
        f"{reason} (as recorded in {folder}). --skip-invalid leaves it out, --force computes it again", place, clip_id
    )


def precision_deviation(model: Model, configuration: Configuration, skipped: Sequence[str]) -> dict[str, float] | None:
    """The effect of a lower precision: `ModelEncoder.precision_deviation`, and ``clips``, the number of clips compared.

    They are the first 16 of the configuration that are not in `skipped`, as far as they are of one length. None for
    float32.
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


def _write_shards(
    stores: Sequence[EmbeddingStore],
    shards: Sequence[int],
    stream: Iterator[list[EmbeddedBatch]],
    count: Callable[[int], None],
) -> None:
    """Gather embedded batches into shards of each store; a thread writes each while the model works on the next."""
    written: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="embedding-store") as writer:
        for shard in shards:
            contents = _gather(stores, shard, stream, count)
            if written is not None:
                written.result()
            written = writer.submit(_write, stores, shard, contents)
        if written is not None:
            written.result()


def _write(stores: Sequence[EmbeddingStore], shard: int, contents: Sequence[EmbeddingShard]) -> None:
    """Write a shard to the stores that lack it."""
    for store, content in zip(stores, contents, strict=True):
        if not _is_there(store, shard):
            store.write(shard, content, checked=False)


def _gather(
    stores: Sequence[EmbeddingStore], shard: int, stream: Iterator[list[EmbeddedBatch]], count: Callable[[int], None]
) -> list[EmbeddingShard]:
    """The next shard for each store, from as many batches as needed."""
    place_of = {stores[0].ids[number]: place for place, number in enumerate(stores[0].numbers(shard))}
    gathering = [_Gathering(place_of, store.dim) for store in stores]
    done = 0
    while done < len(place_of):
        batches = next(stream)
        for one, batch in zip(gathering, batches, strict=True):
            one.add(batch)
        done += len(batches[0].ids)
        count(len(batches[0].ids))
    return [one.shard() for one in gathering]


class _Gathering:
    """Embeddings of clips whose batches come in any order."""

    def __init__(self, place_of: Mapping[str, int], dim: int) -> None:
        self._place_of = place_of
        self._embeddings = np.full((len(place_of), dim), np.nan, np.float32)
        self._errors: dict[int, str] = {}

    def add(self, batch: EmbeddedBatch) -> None:
        places = [self._place_of[id] for id in batch.ids]
        self._embeddings[places] = batch.embeddings
        self._errors |= {places[place]: error for place, error in batch.errors.items()}

    def shard(self) -> EmbeddingShard:
        return EmbeddingShard(self._embeddings, self._errors)


def within_memory(work: Callable[[int], Value], size: int, model: Model) -> Value:
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
        # The caught error is gone here; its traceback would keep the tensors alive.
        if size == 1:
            raise MemoryError(
                f"'{model.card.id}' runs out of memory with a single clip on device '{model.device}': {reason}"
            )
        size //= 2
        warnings.warn(f"out of memory; '{model.card.id}' goes on with batches of {size} ({reason})", stacklevel=2)
        free_memory()


SHARE, FEWEST, MOST = 0.03, 16, 64
"""Share of the embedded items that are embedded again, and the fewest and most of them."""


def chosen_again(store: EmbeddingStore, shards: Sequence[int]) -> list[int]:
    """The items of some shards that are embedded a second time, in the order of that pass, not of the store."""
    numbers = [number for shard in shards for number in store.numbers(shard)]
    count = min(max(round(SHARE * len(numbers)), FEWEST), MOST)
    return store.by_hash(numbers, "again")[:count]


def size_again(count: int, batch_size: int) -> int:
    """Items per batch: as before, unless all would be in one batch again."""
    return max(1, min(batch_size, -(-count // 2)))


def accept_or_refuse(
    stores: Sequence[EmbeddingStore],
    shards: Sequence[int],
    numbers: Sequence[int],
    again: Sequence[EmbeddingShard],
    cards: Sequence[ModelCard],
    what: str,
) -> None:
    """Finish the shards that await a check, if the second embeddings of some items equal the first.

    Args:
        stores: one per model.
        shards: the shards that await a check.
        numbers: of the items.
        again: for each store the second embeddings.
        cards: one per store's model.
        what: the name of the items: clips, texts.

    Raises:
        ModelError: they differ by more than `allowed_in_company`; the stores' embeddings are discarded then.
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
            f"'{card.id}' gives the same {what} other embeddings in another batch: of {len(numbers)} embedded twice, "
            f"one differs by {difference:.1e} of its length, where rounding explains {allowed:.0e} at most. Earlier "
            "inputs and the rest of a batch must not change an embedding, so none is kept: "
            f"`audio-compositionality check-model {card.id}` looks for the reason"
        )
    for store in stores:
        for shard in shards:
            if store.awaits_check(shard):
                store.accept(shard)


def _stored(store: EmbeddingStore, shards: Sequence[int], numbers: Sequence[int]) -> EmbeddingShard:
    """The stored embeddings of some items."""
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
    """The largest relative difference; infinite where an item has only one of the two embeddings."""
    if first.errors.keys() != second.errors.keys():
        return np.inf
    left = [place for place in range(len(first.embeddings)) if place not in first.errors]
    return relative_difference(second.embeddings[left], first.embeddings[left])


def text_store(card: ModelCard, opened: OpenedTask, options: RunOptions) -> EmbeddingStore:
    """The store for a model's embeddings of the different texts of a task; in memory where `options.store` is None.

    Its key depends on the texts alone, so tasks with the same texts share it.
    """
    unique = opened.unique_texts
    key = StoreKey.of(card, opened.configuration.recipe, digest_of_texts(unique), "texts")
    return EmbeddingStore(options.store, key, [digest_of_texts([text]) for text in unique])


def fill_texts(store: EmbeddingStore, model: Model, opened: OpenedTask, options: RunOptions) -> None:
    """Embed the texts that a store lacks, a shard at a time: an interrupted run continues after the last complete one.

    They come in the order of the store, and some are embedded again at the end, like clips; see `fill_stores`.

    Raises:
        ModelError: the model gives another shape than it states, values that are not finite, or embeddings that depend
            on the other texts of the batch.
        StoreError: a stored shard is damaged.
        MemoryError: not even a single text fits into the memory.
    """
    unique, every = opened.unique_texts, range(store.num_shards)
    if options.force:
        for shard in every:
            store.discard(shard)
    missing = [shard for shard in every if not store.has(shard) and not store.awaits_check(shard)]
    title = f"{model.card.id}, texts of {store.key.recipe}"
    with during(title, "text", _items_in(store, missing), shown=options.progress) as advance:
        for shard in missing:
            texts = [unique[number] for number in store.numbers(shard)]
            store.write(shard, EmbeddingShard(_embedded(model, texts), {}), checked=False)
            advance(len(texts))
    unchecked = [shard for shard in every if store.awaits_check(shard)]
    if unchecked:
        numbers = chosen_again(store, unchecked)
        size = size_again(len(numbers), ITEMS_PER_SHARD)
        again = EmbeddingShard(_embedded(model, [unique[number] for number in numbers], size), {})
        accept_or_refuse([store], unchecked, numbers, [again], [model.card], "text")


def _embedded(model: Model, texts: Sequence[str], most: int = ITEMS_PER_SHARD) -> NDArray[np.float32]:
    """Embeddings of texts [n, dim], with at most `most` in a batch, or fewer where memory does not suffice."""

    def embed(size: int) -> NDArray[np.float32]:
        starts = range(0, len(texts), size)
        return np.concatenate([_embed(model, list(texts[start : start + size])) for start in starts])

    return within_memory(embed, most, model)


def _embed(model: Model, texts: list[str]) -> NDArray[np.float32]:
    return check_text_embeddings(np.asarray(model.embed_text(texts)), model, texts)
