from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.base import ClipError, Model, ModelCard, StagedEncoder
from audio_compositionality.encoders.pipeline import EmbeddedBatch, embed_batches


@dataclass
class Batch:
    ids: list[str]
    waveforms: np.ndarray
    sample_rate: int = 16_000
    errors: dict[int, str] = field(default_factory=dict)


class Peak(StagedEncoder[np.ndarray]):
    """Embeds a clip as its first two samples."""

    card = ModelCard("peak", "v1", 16_000, 2)

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        return features[:, :2].copy()


def batches(*sizes: int) -> Iterator[Batch]:
    """Batches of clips that hold their own number."""
    start = 0
    for size in sizes:
        numbers = np.arange(start, start + size)
        waveforms = np.repeat(numbers[:, None] / 1000, 100, axis=1).astype(np.float32)
        yield Batch([f"clip-{i}" for i in numbers], waveforms)
        start += size


def embed_all(encoder: Model, parts: Iterable[Batch]) -> np.ndarray:
    """The embeddings of all clips, in their order."""
    with closing(embed_batches(encoder, parts)) as embedded:
        return np.concatenate([batch.embeddings for batch in embedded])


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "embed_batches"]


def test_order_is_kept_and_an_uneven_last_batch_counts() -> None:
    out = embed_all(Peak(), batches(4, 4, 4, 3))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, np.repeat(np.arange(15)[:, None] / 1000, 2, axis=1), rtol=1e-6)


def test_input_is_made_ready_while_the_model_runs_but_not_far_ahead() -> None:
    prepared = threading.Semaphore(0)

    class Watched(Peak):
        count = 0
        ahead = 0

        def _extract_features(self, clips):
            Watched.count += 1
            prepared.release()
            return clips

        def _run_model(self, features):
            if Watched.ahead == 0:
                # Three more can be made while this one is held: two in the queue, one waiting for room.
                for _ in range(4):
                    assert prepared.acquire(timeout=10)
                assert not prepared.acquire(timeout=0.3)
                Watched.ahead = Watched.count
            return super()._run_model(features)

    embed_all(Watched(), batches(*[1] * 10))
    assert Watched.ahead == 4
    assert Watched.count == 10


def test_a_clip_that_is_not_finite_and_nan_of_the_model_are_named_by_the_clips_id() -> None:
    class Broken(Peak):
        def _run_model(self, features):
            out = super()._run_model(features)
            out[np.isclose(out[:, 0], 0.004)] = np.nan
            return out

    with pytest.raises(ClipError, match="clip 'clip-4': encoder 'peak' returned 2 of 2 values"):
        embed_all(Broken(), batches(2, 3, 2))
    parts = list(batches(2, 3))
    parts[1].waveforms[1, 5] = np.nan
    with pytest.raises(ClipError, match="clip 'clip-3': the waveform holds nan at sample 5"):
        embed_all(Peak(), parts)


@pytest.mark.parametrize("stage", ["_extract_features", "_run_model"])
def test_another_error_keeps_its_type_and_names_the_batch(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Peak, _: np.ndarray) -> np.ndarray:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(Peak, stage, fail)
    with pytest.raises(RuntimeError, match="no kernel") as caught:
        embed_all(Peak(), batches(3))
    assert caught.value.__notes__ == ["while embedding clips 'clip-0' to 'clip-2'"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt])
def test_leaving_early_stops_the_thread_and_closes_the_iterable(interruption: type[BaseException]) -> None:
    closed = threading.Event()

    def endless() -> Iterator[Batch]:
        try:
            while True:
                yield from batches(1)
        finally:
            closed.set()

    class Interrupted(Peak):
        calls = 0

        def _run_model(self, features):
            self.calls += 1
            if self.calls == 2:
                raise interruption
            return super()._run_model(features)

    with pytest.raises(interruption):
        embed_all(Interrupted(), endless())
    assert closed.is_set()


def test_malformed_batches_are_refused_and_an_error_of_the_iterable_is_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> Iterator[Batch]:
        yield from batches(2)
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        embed_all(Peak(), broken())
    with pytest.raises(ValueError, match="2 ids for 3 waveforms"):
        embed_all(Peak(), [Batch(["a", "b"], np.zeros((3, 10)))])
    monkeypatch.setattr(Peak, "_run_model", lambda self, features: features[:1, :2])
    with pytest.raises(ValueError, match=r"returned shape \(1, 2\), but must return \[3, 2\]"):
        embed_all(Peak(), batches(3))


class TestSkipInvalid:
    """Clips hold their number, and `Peak` returns it: what is embedded in whose place can be read off."""

    class Sound(Peak):
        """Refuses some clips in the model, and remembers the batches that each stage was given."""

        def __init__(self, *refused: int) -> None:
            self.refused = refused
            self.prepared: list[list[int]] = []
            self.embedded: list[list[int]] = []

        def _extract_features(self, clips):
            self.prepared.append(np.rint(clips[:, 0] * 1000).astype(int).tolist())
            return clips

        def _run_model(self, features):
            numbers = np.rint(features[:, 0] * 1000).astype(int)
            self.embedded.append(numbers.tolist())
            out = super()._run_model(features)
            out[np.isin(numbers, self.refused)] = np.inf
            return out

    def embedded(self, encoder: Peak, parts: list[Batch]) -> list[EmbeddedBatch]:
        return list(embed_batches(encoder, parts, skip_invalid=True))

    @pytest.mark.parametrize(
        ("broken", "refused", "given"),
        [
            ((), (), {}),
            ((0,), (), {}),
            *(((), refused, {}) for refused in ((1,), (0, 2), (0, 1, 2))),
            ((2,), (1,), {0: "is damaged and cannot be decoded"}),
            ((), (), {0: "a", 1: "b", 2: "c"}),
        ],
    )
    def test_clips_that_cannot_be_embedded_leave_the_others(
        self, broken: tuple[int, ...], refused: tuple[int, ...], given: dict[int, str]
    ) -> None:
        part, after = batches(3, 1)
        part.waveforms[list(broken), 7] = np.nan
        part.errors = dict(given)
        before = part.waveforms.copy()
        encoder = self.Sound(*refused)
        found, last = self.embedded(encoder, [part, after])
        wrong = {
            **given,
            **dict.fromkeys(broken, "holds nan at sample 7"),
            **dict.fromkeys(refused, "2 of 2 values that are NaN or infinite"),
        }
        assert set(found.errors) == set(wrong)
        assert all(words in found.errors[row] for row, words in wrong.items())
        valid = [row for row in range(3) if row not in wrong]
        assert found.embeddings.shape == (3, 2)
        assert np.isnan(found.embeddings[list(wrong)]).all()
        np.testing.assert_allclose(found.embeddings[valid, 0], np.array(valid) / 1000, rtol=1e-6)
        assert not last.errors
        np.testing.assert_array_equal(part.waveforms, before)
        # Another clip took the place of an invalid one, so that batches kept their size; nothing is done twice.
        assert all(len(numbers) == 3 for numbers in encoder.embedded[:-1])
        if not wrong:
            assert encoder.prepared == encoder.embedded == [[0, 1, 2], [3]]
        if broken == (0,):
            assert encoder.embedded[0] == [1, 1, 2]
        if len(given) == 3:
            assert encoder.prepared == [[3]]

    def test_an_encoder_without_stages_is_given_whole_batches(self) -> None:
        class Whole(Model):
            card = ModelCard("whole", "v1", 16_000, 1)
            device = "cpu"

            def embed(self, waveforms, sample_rate):
                assert sample_rate == 16_000
                return np.where(np.isclose(waveforms[:, :1], 0.001), np.nan, 2 * waveforms[:, :1])

        (found,) = embed_batches(Whole(), batches(3), skip_invalid=True)
        assert list(found.errors) == [1]
        np.testing.assert_allclose(found.embeddings[[0, 2]], [[0.0], [0.004]], rtol=1e-6)

    def test_other_clips_keep_their_embeddings_to_the_last_bit(self) -> None:
        """A matrix product rounds differently for another number of rows, so the batch must keep its size."""
        weights = torch.from_numpy(np.random.default_rng(0).normal(size=(100, 33)).astype(np.float32))

        class Product(Peak):
            card = ModelCard("product", "v1", 16_000, 33)

            def _run_model(self, features):
                return (torch.from_numpy(features) @ weights).numpy()

        clips = np.random.default_rng(1).normal(size=(7, 100)).astype(np.float32)
        whole = Product().embed(clips, 16_000)
        broken = clips.copy()
        broken[2] = np.nan
        (found,) = self.embedded(Product(), [Batch([f"clip-{i}" for i in range(7)], broken)])
        others = [row for row in range(7) if row != 2]
        assert found.embeddings[others].tobytes() == whole[others].tobytes()


def test_after_an_error_the_thread_has_ended_before_the_error_is_seen() -> None:
    """However long a batch takes to be made ready: the next attempt must not meet it."""
    busy = threading.Event()

    class Slow(Peak):
        def _extract_features(self, clips):
            if clips[0, 0] > 0:
                busy.set()
                time.sleep(0.5)
                busy.clear()
            return clips

        def _run_model(self, features):
            assert busy.wait(10)
            raise RuntimeError("CUDA out of memory. Tried to allocate")

    with pytest.raises(RuntimeError, match="out of memory"):
        embed_all(Slow(), batches(1, 1))
    assert not busy.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "embed_batches"]
