"""Embedding: each clip once, in batches that fit, in shards that last, whoever computes them."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.base import ClipError, ModelCard, StagedEncoder
from audio_compositionality.evaluator.run.cache import CacheError, EmbeddingCache
from audio_compositionality.evaluator.run.embeddings import embed_configuration, fill_caches, open_cache
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.processes import Processes

from .toys import Numbered


class Number(StagedEncoder[np.ndarray]):
    """Embeds a scene as its number and that number squared; keeps the batches that it was given."""

    card = ModelCard("number", "v1", 16_000, 2)

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        numbers = features[:, 0]
        self.batches.append(numbers.astype(int).tolist())
        return np.stack([numbers, numbers**2], axis=1)


def numbers(count: int) -> np.ndarray:
    return np.stack([np.arange(count), np.arange(count) ** 2], axis=1).astype(np.float32)


def fill(encoder, configuration, root, processes=None, **options) -> EmbeddingCache:
    made = RunOptions(cache=root, **{"progress": False, **options})
    store = open_cache(encoder, configuration, made)
    fill_caches([store], [encoder], configuration, made, processes or Processes())
    return store


def first_time(batches: list[list[int]]) -> list[list[int]]:
    """The batches before the first one of clips that were there already: at the end some are embedded again."""
    seen: set[int] = set()
    for place, batch in enumerate(batches):
        if seen & set(batch):
            return batches[:place]
        seen |= set(batch)
    return batches


def shards_of(store: EmbeddingCache, batches: list[list[int]]) -> list[set[int]]:
    """The shards of the clips of each batch."""
    shard_of = {number: shard for shard in range(store.num_shards) for number in store.numbers(shard)}
    return [{shard_of[number] for number in batch} for batch in batches]


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_clips_that_are_drawn_otherwise_are_embedded_anew(tmp_path):
    """A draw that changes without its version leaves the fingerprint and the ids as they were."""
    fill(Number(), Numbered(70), tmp_path)
    other = Numbered(70)
    other.rows_digest = "0" * 64
    other.sound = lambda number: (np.full(8, number + 1, np.float32), 16_000)
    assert (fill(Number(), other, tmp_path).load().embeddings[:, 0] == np.arange(1, 71)).all()


@pytest.mark.parametrize("root", ["store", None])
@pytest.mark.parametrize("batch_size", [None, 1, 7, 64])
def test_every_clip_is_embedded_once_and_no_batch_crosses_a_shard(tmp_path, root, batch_size):
    encoder = Number()
    options = RunOptions(cache=tmp_path / root if root else None, batch_size=batch_size, progress=False)
    store = embed_configuration(encoder, Numbered(150), options)
    assert (store.load().embeddings == numbers(150)).all()
    first = first_time(encoder.batches)
    assert sorted(number for batch in first for number in batch) == list(range(150))
    assert all(len(shards) == 1 for shards in shards_of(store, first))
    assert max(len(batch) for batch in first) == (batch_size or 4)
    assert sum(map(len, encoder.batches[len(first) :])) == 16


def test_force_computes_all_anew(tmp_path):
    for force, computed in ((False, 70 + 16), (False, 0), (True, 70 + 16)):
        encoder = Number()
        fill(encoder, Numbered(70), tmp_path, force=force)
        assert sum(map(len, encoder.batches)) == computed


def test_the_input_is_made_ready_ahead_across_the_ends_of_shards(tmp_path):
    """While the model holds the last batch of a shard, the first ones of the next are prepared."""
    prepared = threading.Semaphore(0)
    order = open_cache(Number(), Numbered(128), RunOptions())
    last = order.numbers(0)[-1]

    class Watched(Number):
        def _extract_features(self, clips):
            if clips[0, 0] in order.numbers(1):
                prepared.release()
            return clips

        def _run_model(self, features):
            if features[-1, 0] == last:
                assert prepared.acquire(timeout=10)
                assert prepared.acquire(timeout=10)
            return super()._run_model(features)

    fill(Watched(), Numbered(128), tmp_path, batch_size=16)


def test_shards_are_on_the_disk_as_they_complete_and_wait_for_their_check(tmp_path):
    store = open_cache(Number(), Numbered(200), RunOptions(cache=tmp_path))

    class Stopping(Number):
        def _run_model(self, features):
            if features[0, 0] == store.numbers(2)[0]:
                raise KeyboardInterrupt
            return super()._run_model(features)

    with pytest.raises(KeyboardInterrupt):
        fill(Stopping(), Numbered(200), tmp_path, batch_size=16)
    assert [store.awaits_check(shard) for shard in range(4)] == [True, True, False, False]
    assert not any(map(store.has, range(4)))
    encoder = Number()
    fill(encoder, Numbered(200), tmp_path, batch_size=16)
    assert set.union(*shards_of(store, first_time(encoder.batches)[:8])) == {2, 3}
    assert all(map(store.has, range(4)))


@pytest.mark.parametrize("skip_invalid", [False, True])
def test_a_damaged_shard_is_found_before_anything_is_computed(tmp_path, skip_invalid):
    store = fill(Number(), Numbered(200), tmp_path)
    store.discard(0)
    store.path(3).write_bytes(b"half")
    encoder = Number()
    with pytest.raises(CacheError, match=r"00003-of-00004\.safetensors is damaged"):
        fill(encoder, Numbered(200), tmp_path, skip_invalid=skip_invalid)
    assert encoder.batches == []


def test_what_cannot_be_written_stops_the_work(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(EmbeddingCache, "write", full)
    with pytest.raises(OSError, match="No space left"):
        fill(Number(), Numbered(640), tmp_path)


def test_data_whose_clips_are_not_those_of_the_rows_are_refused():
    configuration = Numbered(70)
    configuration.clip_ids = [f"s{number + (number > 65)}/audio" for number in range(70)]
    with pytest.raises(CacheError, match=r"the data contain the clip .*; their rows name 's6"):
        fill(Number(), configuration, None)


class TestMemory:
    """A batch that does not fit is halved, and what is finished is kept."""

    class Limited(Number):
        def __init__(self, most: int, error: Exception, late: bool = False) -> None:
            super().__init__()
            self.most, self.error, self.late = most, error, late
            self.refused: list[int] = []

        def _run_model(self, features):
            late = self.late and sum(map(len, self.batches)) < 100
            if len(features) > self.most and not late:
                self.refused.append(len(features))
                raise self.error
            return super()._run_model(features)

    OUT_OF_MEMORY = (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        MemoryError("Unable to allocate 3.00 GiB for an array"),
    )

    @pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda error: str(error)[:20])
    def test_is_known_by_its_words_and_the_batch_size_falls_until_a_batch_fits(self, tmp_path, error):
        encoder = self.Limited(3, error)
        with pytest.warns(UserWarning, match="out of memory; 'number' continues with batches of") as said:
            store = fill(encoder, Numbered(9), tmp_path, batch_size=8)
        assert encoder.refused == [8, 4]
        assert [str(warning.message).split("batches of ")[1].split()[0] for warning in said] == ["4", "2"]
        assert {len(batch) for batch in first_time(encoder.batches)} == {2, 1}
        assert (store.load().embeddings == numbers(9)).all()
        other = self.Limited(5, RuntimeError("CUDA error: an illegal memory access was encountered"))
        with pytest.raises(RuntimeError, match="illegal memory access"):
            fill(other, Numbered(10), None, batch_size=8)
        assert other.refused == [8]

    def test_late_in_the_data_only_what_is_missing_is_computed_again(self, tmp_path):
        encoder = self.Limited(8, self.OUT_OF_MEMORY[0], late=True)
        with pytest.warns(UserWarning, match="batches of 8"):
            store = fill(encoder, Numbered(200), tmp_path, batch_size=16)
        numbers_of = [number for batch in encoder.batches for number in batch][:-16]
        times = Counter(shard for shards in shards_of(store, [[number] for number in numbers_of]) for shard in shards)
        assert times[0] == 64
        assert times[2] == 64
        assert 64 < times[1] < 128
        assert (store.load().embeddings == numbers(200)).all()

    def test_a_single_clip_that_does_not_fit_is_an_error(self, tmp_path):
        message = "'number' runs out of memory with a single clip on device 'cpu': CUDA out of memory"
        with pytest.warns(UserWarning, match="batches of 1"), pytest.raises(MemoryError, match=message):
            fill(self.Limited(0, self.OUT_OF_MEMORY[0]), Numbered(2), tmp_path, batch_size=2)

    def test_the_input_thread_has_ended_and_the_batch_is_gone_before_the_next_attempt(self, tmp_path, monkeypatch):
        """Neither a second thread nor an error's traceback may keep what has to make room."""
        seen = []
        alive = []

        class Features:
            def __init__(self, clips):
                self.clips = clips

        class Held(Number):
            def _extract_features(self, clips):
                features = Features(clips)
                alive.append(weakref.ref(features))
                return features

            def _run_model(self, features):
                if len(features.clips) > 4:
                    held = np.zeros(8)  # Only a frame of the traceback holds on to it.
                    alive.append(weakref.ref(held))
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
                return super()._run_model(features.clips)

        def clear(garbage_collection: bool = False) -> None:
            gc.collect()
            threads = [thread for thread in threading.enumerate() if thread.name == "embed_batches"]
            seen.append((threads, [reference for reference in alive if reference() is not None]))

        monkeypatch.setattr("accelerate.utils.memory.clear_device_cache", clear)
        with pytest.warns(UserWarning, match="batches of 4"):
            fill(Held(), Numbered(200), tmp_path, batch_size=8)
        assert seen == [([], [])]


class TestSkipInvalid:
    class Broken(Number):
        def _run_model(self, features):
            out = super()._run_model(features)
            out[np.isin(features[:, 0], [70, 71])] = np.nan
            return out

    def test_skipped_clips_are_recorded_and_change_no_other_shard(self, tmp_path):
        store = fill(self.Broken(), Numbered(200), tmp_path / "a", skip_invalid=True)
        assert sorted(store.load().errors) == [70, 71]
        whole = fill(Number(), Numbered(200), tmp_path / "b")
        touched = set.union(*shards_of(store, [[70], [71]]))
        for shard in set(range(4)) - touched:
            assert store.path(shard).read_bytes() == whole.path(shard).read_bytes()
        left = [place for place in range(200) if place not in (70, 71)]
        assert (store.load().embeddings[left] == whole.load().embeddings[left]).all()

    def test_without_the_flag_a_record_stops_before_anything_is_computed(self, tmp_path):
        store = fill(self.Broken(), Numbered(200), tmp_path, skip_invalid=True)
        store.discard(3)
        encoder = Number()
        with pytest.raises(
            ClipError, match=r"clip 's70/audio': encoder 'number' returned 2 of 2 values.*as recorded in"
        ):
            fill(encoder, Numbered(200), tmp_path)
        assert encoder.batches == []
        fill(encoder, Numbered(200), tmp_path, skip_invalid=True)
        assert set.union(*shards_of(store, encoder.batches)) == {3}


class TestShares:
    """The shares of two processes, one after the other in this one."""

    @staticmethod
    def process(rank: int, count: int) -> Processes:
        processes = Processes()
        processes.rank, processes.count = rank, count
        return processes

    @pytest.mark.parametrize(("count", "shares"), [(2, [{0}, {1, 2}]), (5, [set(), {0}, set(), {1}, {2}])])
    def test_together_they_write_what_one_would(self, tmp_path, count, shares):
        fill(Number(), Numbered(150), tmp_path / "one")
        for rank in reversed(range(count)):
            encoder = Number()
            store = fill(encoder, Numbered(150), tmp_path / "two", self.process(rank, count))
            assert set().union(*shards_of(store, encoder.batches)) == shares[rank]
        assert files(tmp_path / "one") == files(tmp_path / "two")

    def test_shards_that_another_process_has_written_elsewhere_are_missed(self, tmp_path):
        fill(Number(), Numbered(150), tmp_path / "one machine", self.process(1, 2))
        with pytest.raises(
            CacheError, match=r"2 of 3 shards are missing from .*, such as 1, .* a file system that all machines share"
        ):
            fill(Number(), Numbered(150), tmp_path / "another", self.process(0, 2))

    def test_bars_are_of_the_own_share_and_of_what_is_not_stored_yet(self, tmp_path, capsys, monkeypatch):
        fill(Number(), Numbered(150), tmp_path / "log", progress=True)
        assert capsys.readouterr().err == "", "a log that is no terminal"
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        store = fill(Number(), Numbered(150), tmp_path, self.process(1, 2), progress=True)
        assert capsys.readouterr().err == "", "another than the main process"
        fill(Number(), Numbered(150), tmp_path, self.process(0, 2), progress=True)
        shown = capsys.readouterr().err
        assert "number, numbers (process 1 of 2, its share)" in shown
        assert "0/64" in shown
        store.discard(2)
        fill(Number(), Numbered(150), tmp_path, progress=True)
        shown = capsys.readouterr().err
        assert "0/22" in shown
