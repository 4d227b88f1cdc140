"""Steps in chunks against plain steps; two processes are in test_gathering."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from audio_compositionality.training.batches import Batch
from audio_compositionality.training.embedding import BatchEmbedder, Embeddings, cached_step, chunks_of
from audio_compositionality.training.losses import stage_loss

from .toy_towers import ToyTowers, gradients, toy_batch
from .two_processes import STAGES

EVERY = pytest.mark.parametrize(("kind", "form"), STAGES)


def step(kind: str, form: str, chunk: int | None, batch: Batch | None = None, **options: object):
    model = BatchEmbedder(ToyTowers())
    value = cached_step(model, toy_batch() if batch is None else batch, stage_loss(kind, form), chunk, **options)
    return value, gradients(model)


@EVERY
@pytest.mark.parametrize("chunk", [1, 3])
def test_chunks_have_the_gradient_of_the_whole(kind: str, form: str, chunk: int):
    value, whole = step(kind, form, None)
    loss, chunked = step(kind, form, chunk)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, value, rtol=1e-5, atol=1e-5)
    assert set(chunked) == set(whole) == set(dict(ToyTowers().named_parameters()))
    for name, gradient in whole.items():
        torch.testing.assert_close(chunked[name], gradient, rtol=1e-5, atol=1e-5)
        assert gradient.abs().max() > 1e-3


def test_a_chunk_that_holds_all_is_the_plain_step_and_gradients_are_added():
    model = BatchEmbedder(ToyTowers())
    loss = stage_loss("hard")(model(toy_batch()))
    loss.backward()
    plain = gradients(model)
    for chunk in (None, 8, 9):
        value, other = step("hard", "own", chunk)
        assert torch.equal(value, loss.detach())
        assert all(torch.equal(plain[name], gradient) for name, gradient in other.items())
    cached_step(model, toy_batch(seed=1), stage_loss("hard"), 3)
    _, second = step("hard", "own", None, toy_batch(seed=1))
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, plain[name] + second[name], rtol=1e-5, atol=1e-5)


@EVERY
def test_rows_without_negatives_or_positives(kind: str, form: str):
    batch = toy_batch()
    none = {"negatives": batch.negatives.take(slice(0)), "negative_row": batch.negative_row[:0]}
    none |= {"positives": batch.positives.take(slice(0)), "positive_row": batch.positive_row[:0]}
    alone = Batch(**{field.name: getattr(batch, field.name) for field in fields(batch)} | none)
    whole, chunked = step(kind, form, None, alone), step(kind, form, 3, alone)
    torch.testing.assert_close(chunked, whole, rtol=1e-5, atol=1e-5)


def test_chunks_take_the_texts_of_their_rows():
    batch, start = toy_batch(rows=7), 0
    for chunk in chunks_of(batch, 3):
        for kind in ("negative", "positive"):
            rows = getattr(batch, f"{kind}_row")
            there = (rows >= start) & (rows < start + len(chunk))
            assert getattr(chunk, f"{kind}_row").tolist() == (rows[there] - start).tolist()
            assert torch.equal(getattr(chunk, f"{kind}s").ids, getattr(batch, f"{kind}s").take(there).ids)
        assert torch.equal(chunk.rows, batch.rows[start : start + len(chunk)])
        start += len(chunk)
    assert start == 7


def test_dropout_draws_the_same_in_both_passes():
    """The reference embeds the chunks one by one, with gradient, from the same state of the generator."""
    batch, loss = toy_batch(), stage_loss("modular")
    model = BatchEmbedder(ToyTowers(dropout=0.5))
    torch.manual_seed(3)
    value = cached_step(model, batch, loss, 3)
    behind = torch.rand(4)
    cached = gradients(model)
    model.zero_grad()
    torch.manual_seed(3)
    chunks = [model(chunk) for chunk in chunks_of(batch, 3)]
    assert torch.equal(behind, torch.rand(4)), "the generator goes on behind the first pass"
    lists = {name: torch.cat([getattr(chunk, name) for chunk in chunks])
             for name in ("audio", "captions", "negatives", "positives")}  # fmt: skip
    rows = {name: getattr(batch, name) for name in ("negative_row", "positive_row", "expressions")}
    reference = loss(Embeddings(**lists, **rows, scale=chunks[0].scale))
    reference.backward()
    torch.testing.assert_close(value, reference.detach())
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(cached[name], gradient, rtol=1e-5, atol=1e-5)


def test_activations_of_one_chunk_are_kept_at_a_time():
    """With gradient, never more rows than a chunk are embedded; each row is embedded twice."""
    seen: list[tuple[bool, int]] = []

    class Watched(BatchEmbedder):
        def forward(self, batch: Batch) -> Embeddings:
            seen.append((torch.is_grad_enabled(), len(batch)))
            return super().forward(batch)

    cached_step(Watched(ToyTowers()), toy_batch(), stage_loss("hard"), 3)
    assert seen == [(False, 3), (False, 3), (False, 2), (True, 3), (True, 3), (True, 2)]


@EVERY
@pytest.mark.parametrize("chunk", [None, 3])
def test_a_scaler_of_gradients(kind: str, form: str, chunk: int | None):
    """For float16, which scales once, whatever the number of chunks."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    _, plain = step(kind, form, None)
    _, scaled = step(kind, form, chunk, backward=lambda value: scaler.scale(value).backward())
    for name, gradient in plain.items():
        torch.testing.assert_close(scaled[name] / 1024, gradient, rtol=1e-5, atol=1e-5)


def test_mixed_precision_around_the_whole_step():
    """An autocast keeps the weights that it has cast: those of the pass without gradient have none."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, whole = step("hard", "own", None)
        _, chunked = step("hard", "own", 3)
    assert set(chunked) == set(whole)
    for name, gradient in whole.items():
        torch.testing.assert_close(chunked[name], gradient, rtol=0.02, atol=0.02 * float(gradient.abs().max()))
