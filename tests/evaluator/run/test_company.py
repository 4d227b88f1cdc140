"""What comes before a clip, and beside it, changes neither its embedding nor a score."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.encoders.base import Model, ModelCard, ModelError
from audio_compositionality.encoders.inference import BATCHED, allowed_in_company
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.evaluator.run import embeddings
from audio_compositionality.evaluator.run.embeddings import batches_in_order, chosen_again, open_cache, size_again
from audio_compositionality.evaluator.run.evaluate import evaluate, evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions

from .test_embed import Number, fill
from .toys import Captions, ManyTexts, Numbered, TextEncoder

CLASSES = 6


class Counter(Model):
    """One-hot of how many clips there were before, modulo the number of classes; it hears nothing."""

    device = "cpu"
    card = ModelCard("counter", "v1", 32_000, CLASSES)

    def __init__(self, dim: int = CLASSES) -> None:
        self.calls, self.dim = 0, dim

    def embed(self, waveforms, sample_rate):
        counts = self.calls + np.arange(len(waveforms))
        self.calls += len(waveforms)
        return np.eye(self.dim, dtype=np.float32)[counts % self.dim]


class Beside(Number):
    """Adds a part of what the whole batch is."""

    def __init__(self, part: float, **card) -> None:
        super().__init__()
        self.part = part
        self.card = ModelCard("beside", "v1", 16_000, 2, **card)

    def _run_model(self, features):
        vectors = super()._run_model(features)
        return vectors * (1 + self.part * features[:, :1].mean())


@pytest.fixture(scope="module")
def clips_of_blocks() -> RenderedData:
    """Rows of 2 + 4 · 6 clips, in which the same class always comes 6 later."""
    return rendered_preset("mini", recipes=["a_coat_instances"], blocks=40, duration=0.25)


def test_a_counter_of_calls_stops_the_run(clips_of_blocks, tmp_path):
    options = RunOptions(cache=tmp_path / "store", out=tmp_path / "out", progress=False)
    with pytest.raises(ModelError) as stopped:
        evaluate(Counter(), clips_of_blocks, tasks=["a_coat_instances"], options=options)
    message = str(stopped.value)
    assert "'counter' gives the same clip other embeddings in another batch" in message
    assert "check-model counter" in message
    assert "\n" not in message
    assert not list(tmp_path.rglob("*.safetensors*"))
    assert not (tmp_path / "out").exists()


def test_in_the_order_of_hashes_a_counter_is_at_chance(clips_of_blocks, tmp_path, monkeypatch):
    """Were nothing embedded twice: it had top-1 1.000 while clips came in the order of the rows."""
    monkeypatch.setattr(embeddings, "allowed_in_company", lambda precision: np.inf)
    options = RunOptions(out=tmp_path, progress=False)
    (result,) = evaluate(Counter(), clips_of_blocks, tasks=["a_coat_instances"], options=options)
    _, samples = load_result(next(tmp_path.rglob("a_coat_instances.json")))
    for name, column in (("top1", "score"), ("part_top1", "score_part_top1"), ("alone_top1", "score_alone_top1")):
        values = samples.columns[column]
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(result.measures[name] - 1 / CLASSES) < 3 * error
        assert error < 0.05


@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("root", ["store", None])
def test_what_is_beside_a_clip_may_change_it_by_rounding(tmp_path, precision, root):
    allowed = allowed_in_company(precision)
    assert BATCHED == allowed_in_company("float32") < allowed_in_company("float16") < allowed_in_company("bfloat16")
    folder = tmp_path / root if root else None
    options = EncoderOptions(precision=precision)
    fill(Beside(allowed / 400, options=options), Numbered(150), folder)
    with pytest.raises(ModelError, match=f"rounding explains at most {allowed:.0e}"):
        fill(Beside(allowed, options=options), Numbered(150), folder, force=True)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == (["key.json"] if root else [])


def test_nothing_is_left_of_layers_or_of_earlier_runs(tmp_path):
    store = fill(Number(), Numbered(200), tmp_path)
    store.discard(2)

    class Noisy(Number):
        def _run_model(self, features):
            return super()._run_model(features) + len(self.batches)

    with pytest.raises(ModelError, match="'number' gives the same clip other embeddings"):
        fill(Noisy(), Numbered(200), tmp_path)
    assert not any(store.has(shard) or store.awaits_check(shard) for shard in range(4))


def test_a_run_that_was_stopped_before_the_check_is_checked_by_the_next(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(embeddings, "relative_difference", stopped)
    counter = Counter(dim=CLASSES)
    with pytest.raises(KeyboardInterrupt):
        fill(counter, Numbered(200), tmp_path)
    monkeypatch.undo()
    store = open_cache(counter, Numbered(200), RunOptions(cache=tmp_path))
    assert [store.awaits_check(shard) for shard in range(4)] == [True] * 4
    calls = counter.calls
    with pytest.raises(ModelError, match="other embeddings in another batch"):
        fill(counter, Numbered(200), tmp_path)
    # Nothing but the check was done.
    assert counter.calls == calls + 16
    assert not list(tmp_path.rglob("*.safetensors*"))


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (10, 10), (100, 16), (1_000, 30), (5_000, 64)])
def test_as_many_are_embedded_twice_as_the_clips_ask_for_and_not_all_beside_each_other_again(count, expected):
    store = open_cache(Number(), Numbered(count), RunOptions())
    chosen = chosen_again(store, range(store.num_shards))
    assert len(chosen) == len(set(chosen)) == expected
    assert chosen != sorted(chosen) or count == 1
    for chosen_of, batch, size in ((1, 4, 1), (2, 4, 1), (3, 4, 2), (16, 4, 4), (16, 64, 8)):
        assert size_again(chosen_of, batch) == size


def test_a_counter_of_texts_stops_the_run(tmp_path):
    class CountsTexts(TextEncoder):
        def embed_text(self, texts):
            start = len(self.texts)
            self.texts += texts
            return np.eye(2, dtype=np.float32)[(start + np.arange(len(texts))) // 3 % 2]

    with pytest.raises(ModelError, match="'text-encoder' gives the same text other embeddings in another batch"):
        evaluate_models([CountsTexts()], ManyTexts(150), [Captions()], RunOptions(cache=tmp_path, progress=False))
    assert not list(tmp_path.rglob("*.safetensors*"))


class Lengths(Numbered):
    """Clips of three lengths, some of which 16 bits cannot hold."""

    def sound(self, number):
        samples = np.full(8 * (1 + number % 3), number / 2**15 if number % 2 else 0.1, np.float32)
        samples[0] = number / 2**11
        return samples, 16_000


def ordered(count: int, shards, batch_size: int = 16):
    configuration = Lengths(count)
    store = open_cache(Number(), configuration, RunOptions())
    return configuration, store, list(batches_in_order(configuration, store, shards, batch_size, False))


def test_clips_are_read_in_the_order_of_rows_and_given_in_that_of_hashes():
    configuration, store = Lengths(1_100), open_cache(Number(), Lengths(1_100), RunOptions())
    given_batches = batches_in_order(configuration, store, range(18), 16, False)
    batches = [next(given_batches)]
    assert configuration.read == [range(512)]
    # The next block is read while one is given.
    batches.append(next(given_batches))
    assert configuration.read == [range(512), range(512, 1_024)]
    batches += given_batches
    assert configuration.read == [range(512), range(512, 1_024), range(1_024, 1_100)]
    by_id = {clip.id: clip.waveform for clip in configuration.clips(range(1_100))}
    given = [id for batch in batches for id in batch.ids]
    assert sorted(given) == sorted(by_id)
    assert given != list(by_id)
    for batch in batches:
        for id, waveform in zip(batch.ids, batch.waveforms, strict=True):
            assert waveform.tobytes() == by_id[id].tobytes()
    # Of 64 clips of three lengths, no more batches than it takes.
    assert len(batches) <= 18 * 3 * 2


def test_a_block_that_is_too_large_is_read_again_and_gives_the_same_batches(monkeypatch):
    _, _, expected = ordered(600, [0, 1, 3, 4, 8, 9])
    monkeypatch.setattr(embeddings, "MOST_BYTES", 150 * 64)
    configuration, _, batches = ordered(600, [0, 1, 3, 4, 8, 9])
    assert len(configuration.read) > 2
    assert [batch.ids for batch in batches] == [batch.ids for batch in expected]
    assert all((ours.waveforms == theirs.waveforms).all() for ours, theirs in zip(batches, expected, strict=True))
