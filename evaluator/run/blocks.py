"""Clips on their way to a model: read row by row, given in the order of their hashes.

Clips that arrive row by row would reveal their row to a model that counts. So clips are read a block at a time (see
`store.EmbeddingStore`), kept until the block is complete, and passed on in another order, while the next block is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Clip, ClipBatch, Configuration, Pcm16, Waveform, to_waveform

from .store import SHARDS_PER_BLOCK, EmbeddingStore, StoreError

MOST_BYTES = 2**30
"""Bytes of samples kept per block: 512 clips of 10 s at 32 kHz are 328 MB in 16 bits, and 655 MB in float32. Of a
larger block, the last shards are read a second time, which changes no batch."""

NEAR = 8
"""Most unwanted clips between two wanted ones that are read with them: opening stored rows again takes longer."""


@dataclass(frozen=True)
class KeptClip:
    """A clip in memory, see `Clip`: samples in 16 bits where these are exact, else float32."""

    id: str
    samples: Pcm16 | Waveform
    sample_rate: int
    problem: str | None

    @classmethod
    def of(cls, clip: Clip) -> KeptClip:
        """The clip to keep."""
        waveform = np.asarray(clip.waveform, np.float32)
        scaled = waveform * np.float32(32_768)
        # A value out of range, or NaN, changes in the conversion, and the comparison shows it.
        with np.errstate(invalid="ignore"):
            samples = scaled.astype(np.int16)
        exact = np.array_equal(samples, scaled)
        return cls(clip.id, samples if exact else waveform, clip.sample_rate, clip.problem)

    @property
    def waveform(self) -> Waveform:
        """Float32 in [-1, 1]."""
        samples: NDArray[Any] = self.samples
        return to_waveform(samples) if samples.dtype == np.int16 else samples


def batches_in_order(
    configuration: Configuration, store: EmbeddingStore, shards: Iterable[int], batch_size: int, keep_invalid: bool
) -> Iterator[ClipBatch]:
    """The clips of some shards, shard by shard in the order of the store, except that clips of one length go together.

    No batch crosses the end of a shard, so its bytes do not depend on which other shards were computed.

    Args:
        configuration: the clips.
        store: of their embeddings.
        shards: ascending.
        batch_size: most clips of a batch.
        keep_invalid: see `Configuration.clips`.

    Raises:
        StoreError: the data give other clips than their rows.
        DatasetError: a clip cannot be read.
    """
    blocks = deque(list(block) for _, block in groupby(shards, lambda shard: shard // SHARDS_PER_BLOCK))

    def begin() -> _Block | None:
        return _Block(configuration, store, blocks.popleft(), keep_invalid) if blocks else None

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
                # As many as were passed on: the model never waits for a block, and memory never holds two.
                if ahead is not None:
                    ahead.read(len(batch.ids))


def batches_by_length(clips: Iterable[KeptClip], batch_size: int) -> Iterator[ClipBatch]:
    """Batches of clips of one length and rate, not necessarily neighbours."""
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
    """Clips by their numbers in `Configuration.clip_ids`, each read once; see `Clip.problem`."""
    wanted = set(places)
    clips: dict[int, Clip] = {}
    for run in _runs(sorted(wanted)):
        # A problem of an unwanted clip between two wanted ones does not matter.
        for place, clip in zip(run, configuration.clips(run, keep_invalid=True), strict=True):
            if place in wanted:
                clips[place] = clip
    return clips


def _runs(places: Sequence[int]) -> Iterator[range]:
    """Ranges that cover ascending numbers, with at most `NEAR` others between two of them."""
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] - places[end - 1] > NEAR + 1:
            yield range(places[start], places[end - 1] + 1)
            start = end


class _Block:
    """The clips of some shards of one block, read bit by bit.

    Attributes:
        shards: the shards whose clips are kept.
        left: the shards whose clips did not fit.
    """

    def __init__(
        self, configuration: Configuration, store: EmbeddingStore, shards: Sequence[int], keep_invalid: bool
    ) -> None:
        self.shards = list(shards)
        self.left: list[int] = []
        self._store = store
        self._wanted = {number for shard in shards for number in store.numbers(shard)}
        self._numbers = range(min(self._wanted), max(self._wanted) + 1)
        # A problem of another process's clip does not matter here.
        self._clips = iter(configuration.clips(self._numbers, keep_invalid=True))
        self._configuration = configuration
        self._keep_invalid = keep_invalid
        self._read = 0
        self._kept: dict[int, KeptClip] = {}
        self._bytes = 0

    def read(self, count: int | None = None) -> None:
        """Read this many more clips; by default all that are left."""
        left = len(self._numbers) - self._read
        count = left if count is None else min(count, left)
        begun = self._read
        for clip in islice(self._clips, count):
            self._keep(self._numbers[self._read], clip)
            self._read += 1
        if self._read < begun + count:
            expected = self._store.ids[self._numbers[self._read]]
            raise StoreError(f"the data end before the clip '{expected}' of their rows")

    def take(self, shard: int) -> Iterator[KeptClip]:
        """The clips of a shard in its order; each is forgotten here."""
        return (self._kept.pop(number) for number in self._store.numbers(shard))

    def _keep(self, number: int, clip: Clip) -> None:
        if clip.id != self._store.ids[number]:
            raise StoreError(f"the data give the clip '{clip.id}' where their rows have '{self._store.ids[number]}'")
        if number not in self._wanted:
            return
        if clip.problem is not None and not self._keep_invalid:
            # Read by itself, it names the problem and the file.
            (clip,) = self._configuration.clips(range(number, number + 1))
        self._kept[number] = kept = KeptClip.of(clip)
        self._bytes += kept.samples.nbytes
        while self._bytes > MOST_BYTES and len(self.shards) > 1:
            shard = self.shards.pop()
            self.left.insert(0, shard)
            for other in self._store.numbers(shard):
                self._wanted.discard(other)
                if other in self._kept:
                    self._bytes -= self._kept.pop(other).samples.nbytes
