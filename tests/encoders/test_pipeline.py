from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from audio_compositionality.encoders import ClipError, StagedEncoder, embed_dataset, load_encoder


@dataclass
class Batch:
    ids: list[str]
    waveforms: np.ndarray
    sample_rate: int = 16_000


class Peak(StagedEncoder[np.ndarray]):
    """Embeds a clip as its first two samples."""

    id = "peak"
    sample_rate = 16_000
    output_dim = 2
    revision = "v1"

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


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "embed_dataset"]


def test_order_is_kept_and_an_uneven_last_batch_counts() -> None:
    out = embed_dataset(Peak(), batches(4, 4, 4, 3), progress=False)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, np.repeat(np.arange(15)[:, None] / 1000, 2, axis=1), rtol=1e-6)


def test_equals_embed_for_a_real_encoder() -> None:
    clips = np.random.default_rng(0).normal(0, 0.1, (5, 3200)).astype(np.float32)
    encoder = load_encoder("log-mel-statistics")
    parts = [Batch(["a", "b", "c"], clips[:3], 16_000), Batch(["d", "e"], clips[3:], 16_000)]
    np.testing.assert_allclose(
        embed_dataset(encoder, parts, progress=False), encoder.embed(clips, 16_000), rtol=1e-6, atol=1e-6
    )


def test_an_encoder_without_stages_is_given_whole_batches() -> None:
    class Whole:
        id, sample_rate, output_dim, revision = "whole", 16_000, 1, "v1"

        def embed(self, waveforms, sample_rate):
            assert sample_rate == 16_000
            return waveforms[:, :1] * 2

    out = embed_dataset(Whole(), batches(2, 1), progress=False)
    np.testing.assert_allclose(out, [[0.0], [0.002], [0.004]], rtol=1e-6)


def test_the_progress_bar_counts_clips(capsys: pytest.CaptureFixture[str]) -> None:
    embed_dataset(Peak(), batches(4, 3), total=7)
    assert "7/7" in capsys.readouterr().err
    embed_dataset(Peak(), batches(4, 3), total=7, progress=False)
    assert capsys.readouterr().err == ""


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

    embed_dataset(Watched(), batches(*[1] * 10), progress=False)
    assert Watched.ahead == 4
    assert Watched.count == 10


def test_what_the_iterable_raises_is_passed_on() -> None:
    def broken() -> Iterator[Batch]:
        yield from batches(2)
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        embed_dataset(Peak(), broken(), progress=False)


def test_a_clip_that_is_not_finite_is_named_by_its_id() -> None:
    parts = list(batches(2, 3))
    parts[1].waveforms[1, 5] = np.nan
    with pytest.raises(ClipError, match="clip 'clip-3': waveform row 1 holds nan at sample 5"):
        embed_dataset(Peak(), parts, progress=False)


def test_nan_of_the_model_is_named_by_the_clips_id() -> None:
    class Broken(Peak):
        def _run_model(self, features):
            out = super()._run_model(features)
            out[np.isclose(out[:, 0], 0.004)] = np.nan
            return out

    with pytest.raises(ClipError, match="clip 'clip-4': encoder 'peak' returned 2 of 2 values"):
        embed_dataset(Broken(), batches(2, 3, 2), progress=False)


@pytest.mark.parametrize("stage", ["_extract_features", "_run_model"])
def test_another_error_keeps_its_type_and_names_the_batch(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Peak, _: np.ndarray) -> np.ndarray:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(Peak, stage, fail)
    with pytest.raises(RuntimeError, match="no kernel") as caught:
        embed_dataset(Peak(), batches(3), progress=False)
    assert caught.value.__notes__ == ["while embedding clips 'clip-0' to 'clip-2'"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
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
        embed_dataset(Interrupted(), endless(), progress=False)
    assert closed.is_set()


def test_malformed_batches_are_refused() -> None:
    with pytest.raises(ValueError, match="2 ids for 3 waveforms"):
        embed_dataset(Peak(), [Batch(["a", "b"], np.zeros((3, 10)))], progress=False)
    with pytest.raises(ValueError, match="no clip"):
        embed_dataset(Peak(), [], progress=False)

    class Short(Peak):
        def _run_model(self, features):
            return features[:1, :2]

    with pytest.raises(ValueError, match=r"returned shape \(1, 2\), but must return \[3, 2\]"):
        embed_dataset(Short(), batches(3), progress=False)
