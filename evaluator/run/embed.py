"""The embeddings of a benchmark: taken from the store, and what is missing computed and stored."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from accelerate.utils import find_executable_batch_size
from accelerate.utils.memory import should_reduce_batch_size
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder import AUDIO_COLUMNS, Benchmark, ClipBatch, check_task
from audio_compositionality.encoders import ClipError, Encoder, ModelEncoder
from audio_compositionality.support.cache import cache_folder
from audio_compositionality.support.text import first_line
from audio_compositionality.encoders.pipeline import EmbeddedBatch, embed_batches
from .store import EmbeddingKey, EmbeddingStore, Shard, StoreError

from .processes import Processes, join_processes

CPU_BATCH_SIZE, GPU_BATCH_SIZE = 4, 32
"""Clips embedded at a time. On two cores Whisper tiny.en and base embed a clip fastest in batches of 2 to 4."""

DEVIATION_CLIPS = 16
"""Clips that the deviation of a lower precision from float32 is measured on."""

Rows = Sequence[Mapping[str, Any]]
Found = TypeVar("Found")


def embedding_root() -> Path:
    """The folder of embeddings where none is named: ``embeddings`` in the cache."""
    return cache_folder() / "embeddings"


def embed_benchmark(
    encoder: Encoder,
    benchmark: Benchmark,
    out: str | Path | None = None,
    *,
    tasks: Sequence[str] | None = None,
    batch_size: int | None = None,
    skip_invalid: bool = False,
    force: bool = False,
    progress: bool = True,
) -> list[EmbeddingStore]:
    """Embed every clip of a benchmark into stores; what is there already is not computed again.

    Args:
        encoder: an encoder.
        benchmark: the data.
        out: folder of all stores; by default ``embeddings`` in the cache.
        tasks: which of ``a_coat`` and ``a_tre``; default, all that the benchmark holds.
        batch_size: see `fill_store`.
        skip_invalid: see `fill_store`.
        force: compute all anew.
        progress: show progress bars.

    Returns:
        one store a task: `EmbeddingStore.load` has the embeddings, `EmbeddingStore.folder` says where they are.

    Raises:
        StoreError: stored embeddings are damaged.
        ClipError: a clip cannot be embedded.
    """
    processes = join_processes()
    stores = []
    for task in benchmark.tasks if tasks is None else tasks:
        rows = benchmark.rows(check_task(task, benchmark))
        store = open_store(encoder, benchmark, task, rows, embedding_root() if out is None else out)
        fill_store(
            store,
            encoder,
            benchmark,
            batch_size=batch_size,
            skip_invalid=skip_invalid,
            force=force,
            progress=progress,
            processes=processes,
        )
        stores.append(store)
    return stores


def open_store(
    encoder: Encoder, benchmark: Benchmark, task: str, rows: Rows, root: str | Path | None
) -> EmbeddingStore:
    """The store for an encoder's embeddings of a task whose rows are given; in memory where `root` is None."""
    key = EmbeddingKey.of(encoder, benchmark.fingerprint, task)
    return EmbeddingStore(root, key, [f"{row['id']}/{column}" for row in rows for column in AUDIO_COLUMNS[task]])


class ClipSource(Protocol):
    """What gives the clips of a store: a `Benchmark`, or `Recordings`."""

    def batches(self, task: str, batch_size: int, rows: range, *, keep_invalid: bool) -> Iterator[ClipBatch]:
        """See `Benchmark.batches`."""
        ...


def fill_store(
    store: EmbeddingStore,
    encoder: Encoder,
    source: ClipSource,
    *,
    batch_size: int | None,
    skip_invalid: bool,
    force: bool,
    progress: bool,
    processes: Processes,
) -> None:
    """Compute the shards that are missing, each process its own, and wait until all processes have.

    Batches of clips come in one stream, so that the input is made ready ahead of the model from the first shard to
    the last; none crosses the end of a shard, whose bytes thus do not depend on which others were there.

    Args:
        store: of the encoder and a task of the source.
        encoder: the encoder.
        source: the clips.
        batch_size: clips at a time; by default 4 on a CPU and 32 on a GPU. Halved whenever memory does not suffice.
        skip_invalid: record clips that cannot be embedded and leave them out.
        force: compute all shards anew.
        progress: show a bar in the main process, of its own share.
        processes: those that share the work.

    Raises:
        ClipError: a clip cannot be embedded, or the store has it as such, and `skip_invalid` is not given.
        StoreError: a stored shard is damaged, or one of another process cannot be seen.
        MemoryError: not even a single clip fits into the memory.
        ProcessError: another process has failed.
    """
    if batch_size is None:
        batch_size = CPU_BATCH_SIZE if device_of(encoder) == "cpu" else GPU_BATCH_SIZE
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be 1 or more")
    with processes.telling_failures():
        own = processes.share_of(store.num_shards)
        for shard in own:
            if force:
                store.discard(shard)
            elif store.has(shard):
                content = store.read(shard)
                if not skip_invalid:
                    refuse_skipped(store, content, store.clips(shard).start)
        description = f"{encoder.id}, {store.key.task}"
        if processes.count > 1:
            description += f" (process 1 of {processes.count}, its share)"
        hidden = not (progress and processes.is_main)
        with tqdm(total=_clips_in(store, own), desc=description, unit="clip", disable=hidden) as bar:

            def embed_missing(size: int) -> None:
                missing = [shard for shard in own if not store.has(shard)]
                bar.n = _clips_in(store, own) - _clips_in(store, missing)
                bar.refresh()
                if missing:
                    clips = _clips_of(source, store, missing, size, skip_invalid)
                    with closing(embed_batches(encoder, clips, skip_invalid=skip_invalid)) as stream:
                        _write_shards(store, missing, stream, bar, processes)

            _within_memory(embed_missing, batch_size, encoder)
        processes.wait()
        if processes.is_main:
            _check_complete(store)


def refuse_skipped(store: EmbeddingStore, content: Shard, first: int = 0) -> None:
    """Raise the ClipError of the first clip of some that could not be embedded.

    Args:
        store: which they are stored in.
        content: a part of it.
        first: number of the part's first clip.
    """
    if content.errors:
        place = min(content.errors)
        raise ClipError(
            f"{content.errors[place]} (as recorded in {store.folder}). --skip-invalid leaves it out, --force computes "
            "it again",
            place,
            store.ids[first + place],
        )


def precision_deviation(
    encoder: Encoder, benchmark: Benchmark, task: str, skipped: Sequence[str]
) -> dict[str, float] | None:
    """What a lower precision changes: `ModelEncoder.precision_deviation`, and ``clips``, the number of clips it is of.

    They are the first 16 of the task that are not in `skipped`. None where the precision is float32.
    """
    if not isinstance(encoder, ModelEncoder) or encoder.options.precision == "float32":
        return None
    waveforms: list[np.ndarray] = []
    rate = 0
    left_out = set(skipped)
    for batch in benchmark.batches(task, DEVIATION_CLIPS, keep_invalid=True):
        rate = batch.sample_rate
        waveforms += [clip for id, clip in zip(batch.ids, batch.waveforms, strict=True) if id not in left_out]
        if len(waveforms) >= DEVIATION_CLIPS:
            break
    clips = np.stack(waveforms[:DEVIATION_CLIPS])

    def deviation(count: int) -> dict[str, float]:
        return {**encoder.precision_deviation(clips[:count], rate), "clips": count}

    return _within_memory(deviation, len(clips), encoder)


def device_of(encoder: Encoder) -> str:
    """Where an encoder computes; one that does not say so is taken to compute on the CPU."""
    return str(getattr(encoder, "device", "cpu"))


def _clips_in(store: EmbeddingStore, shards: Sequence[int]) -> int:
    return sum(len(store.clips(shard)) for shard in shards)


def _clips_of(
    source: ClipSource, store: EmbeddingStore, shards: Sequence[int], batch_size: int, keep_invalid: bool
) -> Iterator[ClipBatch]:
    """The clips of some shards, in batches none of which crosses the end of a shard."""
    task = store.key.task
    # What is no task of a benchmark, a folder of recordings, has one clip a row.
    columns = len(AUDIO_COLUMNS.get(task, ("audio",)))
    for shard in shards:
        clips = store.clips(shard)
        rows = range(clips.start // columns, clips.stop // columns)
        yield from source.batches(task, batch_size, rows, keep_invalid=keep_invalid)


def _write_shards(
    store: EmbeddingStore,
    shards: Sequence[int],
    stream: Iterator[EmbeddedBatch],
    bar: tqdm[Any],
    processes: Processes,
) -> None:
    """Gather embedded batches into shards; a thread writes each while the model works on the next."""
    written: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="embedding-store") as writer:
        for shard in shards:
            content = _gather(store, shard, stream, bar)
            if written is not None:
                written.result()
            written = writer.submit(store.write, shard, content)
            processes.check()
        if written is not None:
            written.result()


def _gather(store: EmbeddingStore, shard: int, stream: Iterator[EmbeddedBatch], bar: tqdm[Any]) -> Shard:
    ids = [store.ids[clip] for clip in store.clips(shard)]
    embeddings = np.empty((len(ids), store.key.output_dim), np.float32)
    errors: dict[int, str] = {}
    done = 0
    while done < len(ids):
        batch = next(stream, None)
        found = [] if batch is None else list(batch.ids)
        if batch is None or not found or found != ids[done : done + len(found)]:
            raise ValueError(f"the data give the clips {found[:1]} where the rows have '{ids[done]}'")
        embeddings[done : done + len(found)] = batch.embeddings
        errors |= {done + place: error for place, error in batch.errors.items()}
        done += len(found)
        bar.update(len(found))
    return Shard(embeddings, errors)


def _within_memory(work: Callable[[int], Found], size: int, encoder: Encoder) -> Found:
    """`work(size)`, with half the size whenever it runs out of memory."""
    reason = ""

    def attempt(size: int) -> Found:
        nonlocal reason
        try:
            return work(size)
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
            reason = first_line(error)
        # Raised here, where the caught error is gone: its traceback would keep the tensors that have to go.
        raise RuntimeError(f"batches of {size} are out of memory.")

    def half() -> int:
        nonlocal size
        if size == 1:
            raise MemoryError(
                f"'{encoder.id}' runs out of memory with a single clip on device '{device_of(encoder)}': {reason}"
            )
        size //= 2
        warnings.warn(f"out of memory; '{encoder.id}' goes on with batches of {size} ({reason})", stacklevel=2)
        return size

    run: Callable[[], Found] = find_executable_batch_size(attempt, size, half)
    return run()


def _is_out_of_memory(error: Exception) -> bool:
    """More than accelerate takes for it: also allocations outside of torch's own, and NumPy's."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or should_reduce_batch_size(error):
        return True
    signs = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)


def _check_complete(store: EmbeddingStore) -> None:
    absent = [shard for shard in range(store.num_shards) if not store.has(shard)]
    if absent:
        raise StoreError(
            f"{store.folder} lacks {len(absent)} of {store.num_shards} shards, such as {absent[0]}, though every "
            "process has finished: it must be on a file system that all machines share, see --embeddings. If it is on "
            "one that shows new files late, the same command goes on from there"
        )
