"""Embeddings of clips and texts: cached ones are read, missing ones are computed and stored.

A score compares embeddings of different clips, so a clip must give the same embedding in any order and any batch. To
check this, a share of the clips is embedded a second time at the end, in another order and other batches. Each
different text is embedded once, and cached in shards like clips.

Clips that arrive row by row would reveal their row to a model that counts its inputs. So clips are read a block at a
time (see `cache.EmbeddingCache`) and passed to the model in the order of their hashes, while the next block is read.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import (
    Clip,
    ClipBatch,
    Configuration,
    DatasetError,
    Pcm16,
    Waveform,
    to_waveform,
)
from audio_compositionality.encoders.base import ClipError, Model, ModelCard, ModelError, check_text_embeddings
from audio_compositionality.encoders.binned_frames import BinnedFrames
from audio_compositionality.encoders.inference import (
    allowed_in_company,
    free_memory,
    is_out_of_memory,
    relative_difference,
)
from audio_compositionality.encoders.model_encoder import LayeredEncoder
from audio_compositionality.encoders.pipeline import EmbeddedBatch, embed_batches, embed_batches_at_layers
from audio_compositionality.support.progress import during
from audio_compositionality.support.text import first_line

from .cache import SHARDS_PER_BLOCK, CacheError, CacheKey, EmbeddingCache, EmbeddingShard
from .opened import OpenedTask, digest_of_texts
from .options import ITEMS_PER_SHARD, RunOptions
from .processes import Processes, join_processes

CPU_BATCH_SIZE, GPU_BATCH_SIZE = 4, 32
"""Clips per batch. On two cores Whisper tiny.en and base embed a clip fastest in batches of 2 to 4."""

DEVIATION_CLIPS = 16
"""Clips for measuring the deviation of a lower precision from float32."""

Value = TypeVar("Value")
AnyModel = TypeVar("AnyModel", bound=Model)


def open_cache(model: Model, configuration: Configuration, options: RunOptions) -> EmbeddingCache:
    """Return the cache for a model's embeddings of all clips of a configuration; in memory if `options.cache` is None.

    A control that changes texts alone shares the cache of the model itself.
    """
    recipe, fingerprint = configuration.recipe, configuration.fingerprint
    key = CacheKey.of(model.clips_card, recipe, fingerprint, configuration.rows_digest)
    return EmbeddingCache(options.cache, key, configuration.clip_ids)


def embedder_of(model: Model, opened: OpenedTask) -> Model:
    """Return what embeds the clips of a task: the model, or its binned frames if the task needs frames.

    The first row's ``duration`` is the length of the clips whose frames are binned.
    """
    if "frames" not in opened.task.info.needs or "frames" not in model.abilities:
        return model
    return BinnedFrames(model, float(opened.rows[0]["duration"]))


def embed_configuration(model: Model, configuration: Configuration, options: RunOptions) -> EmbeddingCache:
    """Embed every clip of a configuration into a cache; see `embed_at_layers`."""
    return embed_at_layers([model], configuration, options)[0]


def embed_at_layers(models: Sequence[Model], configuration: Configuration, options: RunOptions) -> list[EmbeddingCache]:
    """Embed every clip of a configuration into caches; stored embeddings are not computed again.

    Several processes, see `join_processes`, each compute their own shards and wait for each other. The order of the
    clips is independent of the rows, and some are embedded twice; see `fill_caches`.

    Args:
        models: an encoder, or several layers of one model, which share a pass; see `models_by_pass`.
        configuration: of opened data.
        options: batch size, cache, whether to leave out unusable clips.

    Returns:
        one cache per model: `EmbeddingCache.load` returns the embeddings, `EmbeddingCache.folder` is their folder.

    Raises:
        ClipError: a clip cannot be embedded, or is cached as such, and `options.skip_invalid` is not given.
        ModelError: the embedding of a clip depends on the other clips of its batch; the caches are empty then.
        CacheError: a stored shard is damaged, or a shard of another process is not visible.
        DatasetError: a clip cannot be read.
        MemoryError: not even a single clip fits into the memory.
        ProcessError: another process has failed.
    """
    caches = [open_cache(model, configuration, options) for model in models]
    fill_caches(caches, models, configuration, options, join_processes())
    return caches


def models_by_pass(models: Sequence[AnyModel]) -> list[list[AnyModel]]:
    """Return models in groups that share a pass: layers of one model are a group; the order is kept."""
    groups: list[list[AnyModel]] = []
    for model in models:
        same = (group for group in groups if isinstance(group[0], LayeredEncoder) and group[0].is_same_model(model))
        group = next(same, None)
        if group is None:
            groups.append([model])
        else:
            group.append(model)
    return groups


def fill_caches(
    caches: Sequence[EmbeddingCache],
    models: Sequence[Model],
    configuration: Configuration,
    options: RunOptions,
    processes: Processes,
) -> None:
    """Compute this process's missing shards, and wait for the other processes.

    Clips come in one stream, in the order of `EmbeddingCache.numbers`, so that the next input is prepared while the
    model works. At the end a share of this process's clips is embedded a second time, in other batches. Only shards
    that pass this check are finished; shards that an interrupted run left unchecked are checked by the next run.

    Args:
        caches: of each model and the configuration.
        models: see `embed_at_layers`.
        configuration: the clips.
        options: see `embed_configuration`, also for the errors.
        processes: the processes that share the work.
    """
    first, model = caches[0], models[0]
    share = processes.stretch_of(first.num_shards)
    for cache in caches:
        for shard in share:
            if options.force:
                cache.discard(shard)
            elif cache.is_stored(shard):
                content = cache.read(shard)
                if not options.skip_invalid:
                    refuse_skipped(cache, content, cache.numbers(shard))
    title = f"{model.card.id}{f' and {len(models) - 1} more of its layers' if len(models) > 1 else ''}"
    title += f", {first.key.recipe}"
    if processes.count > 1:
        title += f" (process 1 of {processes.count}, its share)"
    left = sum(len(first.items(shard)) for shard in share if not all(cache.is_stored(shard) for cache in caches))
    with during(title, "clip", left, shown=options.progress and processes.is_main) as advance:
        embed = partial(_embed_missing, caches, models, configuration, share, options.skip_invalid, advance)
        within_memory(embed, batch_size_of(model, options), model)
    processes.wait()
    if processes.is_main:
        for cache in caches:
            cache.check_complete()


def _embed_missing(
    caches: Sequence[EmbeddingCache],
    models: Sequence[Model],
    configuration: Configuration,
    share: Sequence[int],
    skip_invalid: bool,
    advance: Callable[[float], object],
    size: int,
) -> None:
    """Compute the missing shards of this process's share in batches of `size`, and embed some clips a second time.

    A thread writes each shard while the model works on the next.
    """
    pairs = list(zip(caches, models, strict=True))
    lacking = [(cache, model) for cache, model in pairs if not all(map(cache.is_stored, share))]
    missing = [shard for shard in share if not all(cache.is_stored(shard) for cache, _ in lacking)]
    if missing:
        batches = batches_in_order(configuration, caches[0], missing, size, skip_invalid)
        written: list[Future[None]] = []
        with (
            closing(_stream([model for _, model in lacking], batches, skip_invalid)) as stream,
            ThreadPoolExecutor(1, thread_name_prefix="embedding-cache") as writer,
        ):
            for shard in missing:
                ids = [caches[0].ids[number] for number in caches[0].numbers(shard)]
                contents = _gathered([cache for cache, _ in lacking], ids, stream, advance)
                for future in written:
                    future.result()
                written = [
                    writer.submit(cache.write, shard, content, checked=False)
                    for (cache, _), content in zip(lacking, contents, strict=True)
                    if not cache.is_stored(shard)
                ]
            for future in written:
                future.result()
    unchecked = [shard for shard in share if any(cache.awaits_check(shard) for cache in caches)]
    if unchecked:
        again = [(cache, model) for cache, model in pairs if any(map(cache.awaits_check, unchecked))]
        of_caches = [cache for cache, _ in again]
        numbers = chosen_again(caches[0], unchecked)
        clips = clips_at(configuration, numbers)
        kept = (KeptClip.of(clips[number]) for number in numbers)
        batches = batches_by_length(kept, size_again(len(numbers), size))
        with closing(_stream([model for _, model in again], batches, skip_invalid)) as stream:
            contents = _gathered(of_caches, [clips[number].id for number in numbers], stream)
        accept_or_refuse(of_caches, unchecked, numbers, contents, [model.card for _, model in again], "clip")


def _gathered(
    caches: Sequence[EmbeddingCache],
    ids: Sequence[str],
    stream: Iterator[list[EmbeddedBatch]],
    advance: Callable[[float], object] | None = None,
) -> list[EmbeddingShard]:
    """Return the embeddings of some clips for each cache, from as many batches as needed, which come in any order."""
    place_of = {id: place for place, id in enumerate(ids)}
    embeddings = [np.full((len(ids), cache.dim), np.nan, np.float32) for cache in caches]
    errors: list[dict[int, str]] = [{} for _ in caches]
    left = len(ids)
    while left:
        batches = next(stream)
        for values, failed, batch in zip(embeddings, errors, batches, strict=True):
            places = [place_of[id] for id in batch.ids]
            values[places] = batch.embeddings
            failed |= {places[place]: error for place, error in batch.errors.items()}
        count = len(batches[0].ids)
        left -= count
        if advance is not None:
            advance(count)
    return [EmbeddingShard(*one) for one in zip(embeddings, errors, strict=True)]


def _stream(
    models: Sequence[Model], batches: Iterator[ClipBatch], skip_invalid: bool
) -> Generator[list[EmbeddedBatch]]:
    """Yield for each batch the output of each model."""
    layers = [model for model in models if isinstance(model, LayeredEncoder)]
    if len(models) > 1:
        with closing(embed_batches_at_layers(layers, batches, skip_invalid=skip_invalid)) as stream:
            yield from stream
    else:
        with closing(embed_batches(models[0], batches, skip_invalid=skip_invalid)) as single:
            for batch in single:
                yield [batch]


def batch_size_of(model: Model, options: RunOptions) -> int:
    """Return the number of clips per batch of a model."""
    if options.batch_size is None:
        return CPU_BATCH_SIZE if model.device == "cpu" else GPU_BATCH_SIZE
    return options.batch_size


def refuse_skipped(cache: EmbeddingCache, content: EmbeddingShard, numbers: Sequence[int] | None = None) -> None:
    """Raise the ClipError of the first clip that could not be embedded, if there is one.

    Args:
        cache: the cache of the clips.
        content: the embeddings of all clips, or of some.
        numbers: indices of these clips; None for all clips.
    """
    if content.errors:
        number, place = min((place if numbers is None else numbers[place], place) for place in content.errors)
        raise recorded_error(content.errors[place], cache.folder, number, cache.ids[number])


def recorded_error(reason: str, folder: Path | None, place: int, clip_id: str) -> ClipError:
    """Return the error for a clip that the cache records as unusable, with the reason."""
    return ClipError(
        f"{reason} (as recorded in {folder}). --skip-invalid leaves it out, --force computes it again", place, clip_id
    )


def precision_deviation(model: Model, configuration: Configuration, skipped: Sequence[str]) -> dict[str, float] | None:
    """Return the effect of a lower precision, see `ModelEncoder.precision_deviation`; None for float32.

    ``clips`` is the number of clips compared: the first 16 of the configuration that are not in `skipped`, up to the
    first clip of another length.
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


def within_memory(work: Callable[[int], Value], size: int, model: Model) -> Value:
    """Return `work(size)`, halving the size whenever memory runs out.

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
        # After the except block, since the error's traceback would keep the tensors alive.
        if size == 1:
            raise MemoryError(
                f"'{model.card.id}' runs out of memory with a single clip on device '{model.device}': {reason}"
            )
        size //= 2
        warnings.warn(f"out of memory; '{model.card.id}' continues with batches of {size} ({reason})", stacklevel=2)
        free_memory()


SHARE, FEWEST, MOST = 0.03, 16, 64
"""Share of the embedded items that are embedded again, and the fewest and most of them."""


def chosen_again(cache: EmbeddingCache, shards: Sequence[int]) -> list[int]:
    """Return the items of some shards to embed a second time, in another order than in the cache."""
    numbers = [number for shard in shards for number in cache.numbers(shard)]
    count = min(max(round(SHARE * len(numbers)), FEWEST), MOST)
    return cache.by_hash(numbers, "again")[:count]


def size_again(count: int, batch_size: int) -> int:
    """Return the items per batch of the second pass: as in the first, unless all would be in one batch again."""
    return max(1, min(batch_size, -(-count // 2)))


def accept_or_refuse(
    caches: Sequence[EmbeddingCache],
    shards: Sequence[int],
    numbers: Sequence[int],
    again: Sequence[EmbeddingShard],
    cards: Sequence[ModelCard],
    what: str,
) -> None:
    """Finish the shards that await their check if the second embeddings of some items equal the first.

    Args:
        caches: one per model.
        shards: the shards that await their check.
        numbers: indices of the items that were embedded twice.
        again: their second embeddings, for each cache.
        cards: of each cache's model.
        what: ``clip`` or ``text``, for the message.

    Raises:
        ModelError: they differ by more than `allowed_in_company`; all embeddings in the caches are discarded.
    """
    place_of = {number: place for place, number in enumerate(numbers)}
    for cache, given, card in zip(caches, again, cards, strict=True):
        first = np.full((len(numbers), cache.dim), np.nan, np.float32)
        failed: set[int] = set()
        for shard in shards:
            wanted = {row: place_of[number] for row, number in enumerate(cache.numbers(shard)) if number in place_of}
            if wanted:
                content = cache.read(shard)
                first[list(wanted.values())] = content.embeddings[list(wanted)]
                failed |= {place for row, place in wanted.items() if row in content.errors}
        left = [place for place in range(len(numbers)) if place not in failed]
        # An item that has only one of the two embeddings differs in any case.
        difference = np.inf
        if failed == given.errors.keys():
            difference = relative_difference(given.embeddings[left], first[left])
        allowed = allowed_in_company(card.options.precision)
        if difference <= allowed:
            continue
        for other in caches:
            for shard in range(other.num_shards):
                other.discard(shard)
        raise ModelError(
            f"'{card.id}' gives the same {what} other embeddings in another batch: of {len(numbers)} embedded twice, "
            f"one differs by {difference:.1e} of its length; rounding explains at most {allowed:.0e}. No embedding may "
            "depend on earlier inputs or on the rest of the batch, so none was cached. To find the reason: "
            f"`audio-compositionality check-model {card.id}`"
        )
    for cache in caches:
        for shard in shards:
            if cache.awaits_check(shard):
                cache.accept(shard)


def text_cache(card: ModelCard, opened: OpenedTask, options: RunOptions) -> EmbeddingCache:
    """Return the cache for a model's embeddings of a task's different texts; in memory if `options.cache` is None.

    Its key depends on the texts alone, so tasks with the same texts share it.
    """
    unique = opened.unique_texts
    key = CacheKey.of(card, opened.configuration.recipe, digest_of_texts(unique), kind="texts")
    return EmbeddingCache(options.cache, key, [digest_of_texts([text]) for text in unique])


def fill_texts(cache: EmbeddingCache, model: Model, opened: OpenedTask, options: RunOptions) -> None:
    """Embed the texts that a cache lacks, shard by shard; an interrupted run continues after the last complete shard.

    Texts have the order of the cache, and some are embedded again at the end, like clips; see `fill_caches`.

    Raises:
        ModelError: the model gives another shape than it states, values that are not finite, or embeddings that depend
            on the other texts of the batch.
        CacheError: a stored shard is damaged.
        MemoryError: not even a single text fits into the memory.
    """
    unique, every = opened.unique_texts, range(cache.num_shards)
    if options.force:
        for shard in every:
            cache.discard(shard)
    missing = [shard for shard in every if not cache.is_stored(shard)]
    title = f"{model.card.id}, texts of {cache.key.recipe}"
    left = sum(len(cache.items(shard)) for shard in missing)
    with during(title, "text", left, shown=options.progress) as advance:
        for shard in missing:
            texts = [unique[number] for number in cache.numbers(shard)]
            cache.write(shard, EmbeddingShard(_embedded(model, texts), {}), checked=False)
            advance(len(texts))
    unchecked = [shard for shard in every if cache.awaits_check(shard)]
    if unchecked:
        numbers = chosen_again(cache, unchecked)
        size = size_again(len(numbers), ITEMS_PER_SHARD)
        again = EmbeddingShard(_embedded(model, [unique[number] for number in numbers], size), {})
        accept_or_refuse([cache], unchecked, numbers, [again], [model.card], "text")


def _embedded(model: Model, texts: Sequence[str], most: int = ITEMS_PER_SHARD) -> NDArray[np.float32]:
    """Return the embeddings of texts [n, dim], with at most `most` in a batch, or fewer if memory runs out."""

    def embed(size: int) -> NDArray[np.float32]:
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        return np.concatenate(
            [check_text_embeddings(np.asarray(model.embed_text(batch)), model, batch) for batch in batches]
        )

    return within_memory(embed, most, model)


MOST_BYTES = 2**30
"""Most bytes of samples kept per block: 512 clips of 10 s at 32 kHz are 328 MB in 16 bits, and 655 MB in float32. If a
block is larger, its last shards are read again later; the batches stay the same."""

NEAR = 8
"""Most unneeded clips between two needed ones that are read with them, since opening the rows again takes longer."""


@dataclass(frozen=True)
class KeptClip:
    """A clip in memory, see `Clip`: samples in 16 bits if that is exact, else in float32."""

    id: str
    samples: Pcm16 | Waveform
    sample_rate: int
    problem: str | None

    @classmethod
    def of(cls, clip: Clip) -> KeptClip:
        """Return a clip in the form in which it is kept."""
        waveform = np.asarray(clip.waveform, np.float32)
        scaled = waveform * np.float32(32_768)
        # The conversion changes a value that is out of range or NaN, and the comparison below then fails.
        with np.errstate(invalid="ignore"):
            samples = scaled.astype(np.int16)
        exact = np.array_equal(samples, scaled)
        return cls(clip.id, samples if exact else waveform, clip.sample_rate, clip.problem)

    @property
    def waveform(self) -> Waveform:
        """Return the samples as float32 in [-1, 1]."""
        samples: NDArray[Any] = self.samples
        return to_waveform(samples) if samples.dtype == np.int16 else samples


def batches_in_order(
    configuration: Configuration, cache: EmbeddingCache, shards: Iterable[int], batch_size: int, keep_invalid: bool
) -> Iterator[ClipBatch]:
    """Yield batches of clips of one length, shard by shard, within a shard in the order of the cache.

    No batch crosses the end of a shard, so a shard's bytes do not depend on which other shards were computed.

    Args:
        configuration: the clips.
        cache: of their embeddings.
        shards: ascending.
        batch_size: most clips of a batch.
        keep_invalid: see `Configuration.clips`.

    Raises:
        CacheError: the data give other clips than their rows.
        DatasetError: a clip cannot be read.
    """
    blocks = deque(list(block) for _, block in groupby(shards, lambda shard: shard // SHARDS_PER_BLOCK))

    def begin() -> _Block | None:
        return _Block(configuration, cache, blocks.popleft(), keep_invalid) if blocks else None

    ahead = begin()
    while ahead is not None:
        block = ahead
        block.read()
        if block.left:
            blocks.appendleft(block.left)
        ahead = begin()
        for shard in block.shards:
            for batch in batches_by_length(block.take(shard), batch_size):
                yield batch
                # Reads as many clips as were passed on, so that memory never holds two blocks.
                if ahead is not None:
                    ahead.read(len(batch.ids))


def batches_by_length(clips: Iterable[KeptClip], batch_size: int) -> Iterator[ClipBatch]:
    """Yield batches of clips of one length and rate, which need not be neighbours."""
    waiting: dict[tuple[int, int], list[KeptClip]] = {}
    for clip in clips:
        shape = (len(clip.samples), clip.sample_rate)
        alike = waiting.setdefault(shape, [])
        alike.append(clip)
        if len(alike) == batch_size:
            yield _batch(waiting.pop(shape))
    for alike in waiting.values():
        yield _batch(alike)


def _batch(clips: Sequence[KeptClip]) -> ClipBatch:
    if all(clip.samples.dtype == np.int16 for clip in clips):
        waveforms = to_waveform(np.stack([clip.samples for clip in clips]))
    else:
        waveforms = np.stack([clip.waveform for clip in clips])
    errors = {place: clip.problem for place, clip in enumerate(clips) if clip.problem is not None}
    return ClipBatch(tuple(clip.id for clip in clips), waveforms, clips[0].sample_rate, errors)


def clips_at(configuration: Configuration, places: Iterable[int]) -> Mapping[int, Clip]:
    """Return clips by their indices into `Configuration.clip_ids`, each read once; see `Clip.problem`."""
    chosen = set(places)
    wanted, clips = sorted(chosen), dict[int, Clip]()
    start = 0
    for end in range(1, len(wanted) + 1):
        if end < len(wanted) and wanted[end] - wanted[end - 1] <= NEAR + 1:
            continue
        # Includes at most `NEAR` unneeded clips between two needed ones; their problems do not matter.
        run, start = range(wanted[start], wanted[end - 1] + 1), end
        read = zip(run, configuration.clips(run, keep_invalid=True), strict=True)
        clips.update((place, clip) for place, clip in read if place in chosen)
    return clips


class _Block:
    """The clips of some shards of one block, read a few at a time.

    Attributes:
        shards: the shards whose clips are kept.
        left: the shards whose clips did not fit into `MOST_BYTES`.
    """

    def __init__(
        self, configuration: Configuration, cache: EmbeddingCache, shards: Sequence[int], keep_invalid: bool
    ) -> None:
        self.shards = list(shards)
        self.left: list[int] = []
        self._cache = cache
        self._wanted = {number for shard in shards for number in cache.numbers(shard)}
        self._numbers = range(min(self._wanted), max(self._wanted) + 1)
        # A problem of another process's clip does not matter here.
        self._clips = iter(configuration.clips(self._numbers, keep_invalid=True))
        self._configuration = configuration
        self._keep_invalid = keep_invalid
        self._read = 0
        self._kept: dict[int, KeptClip] = {}
        self._bytes = 0

    def read(self, count: int | None = None) -> None:
        """Read `count` more clips; by default all that are left."""
        left = len(self._numbers) - self._read
        count = left if count is None else min(count, left)
        begun = self._read
        for clip in islice(self._clips, count):
            self._keep(self._numbers[self._read], clip)
            self._read += 1
        if self._read < begun + count:
            expected = self._cache.ids[self._numbers[self._read]]
            raise CacheError(f"the data end before the clip '{expected}', which their rows name")

    def take(self, shard: int) -> Iterator[KeptClip]:
        """Yield the clips of a shard in its order, removing them from memory."""
        return (self._kept.pop(number) for number in self._cache.numbers(shard))

    def _keep(self, number: int, clip: Clip) -> None:
        if clip.id != self._cache.ids[number]:
            raise CacheError(f"the data contain the clip '{clip.id}'; their rows name '{self._cache.ids[number]}' here")
        if number not in self._wanted:
            return
        if clip.problem is not None and not self._keep_invalid:
            # Read alone, the clip raises an error that names the problem and the file.
            (clip,) = self._configuration.clips(range(number, number + 1))
        self._kept[number] = kept = KeptClip.of(clip)
        self._bytes += kept.samples.nbytes
        while self._bytes > MOST_BYTES and len(self.shards) > 1:
            shard = self.shards.pop()
            self.left.insert(0, shard)
            for other in self._cache.numbers(shard):
                self._wanted.discard(other)
                if other in self._kept:
                    self._bytes -= self._kept.pop(other).samples.nbytes
