"""Two processes have the losses and the gradients of one that has all rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from audio_compositionality.training.losses import gather, gather_with_gradient, processes

from .toy_towers import toy_batch
from .two_processes import ROWS, STAGES, VARIABLES, embedded, of_embeddings, of_steps

NAMES = [f"{kind} {form}" for kind, form in STAGES]
EVERY = pytest.mark.parametrize("name", NAMES)
WORKER = Path(__file__).with_name("two_processes.py")


def computed(folder: Path) -> list[dict[str, Any]]:
    """What two processes computed, each of its half of the rows."""
    workers = [
        subprocess.Popen([sys.executable, WORKER, str(rank), folder], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        errors = [worker.communicate(timeout=240)[1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], "\n".join(errors)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return computed(tmp_path_factory.mktemp("processes"))


@pytest.mark.slow
def test_rows_of_both_and_their_gradient(both: list[dict[str, Any]]):
    """Process 0 weighs rows with 0 … 11, process 1 with twice that: each receives thrice that for its own rows."""
    for rank, result in enumerate(both):
        assert result["gathered"].tolist() == [[1.0] * 3] * 2 + [[2.0] * 3] * 2
        assert torch.equal(result["gradient"], 3 * torch.arange(12.0).view(4, 3)[2 * rank : 2 * rank + 2])
        assert result["numbers"].tolist() == [0, 10, 1, 11]


@pytest.mark.slow
@EVERY
def test_losses_and_gradients_of_embeddings(both: list[dict[str, Any]], name: str):
    one = of_embeddings(embedded(toy_batch(ROWS)))[name]
    results = [result["embeddings"][name] for result in both]
    assert set(results[0]) == set(results[1]) == set(one)
    assert float(sum(result["loss"] for result in results) / 2) == pytest.approx(float(one["loss"]), abs=1e-9)
    assert float(results[0]["loss"]) != pytest.approx(float(one["loss"]), abs=1e-3)
    for field in set(VARIABLES) & set(one):
        parts = [result[field] for result in results]
        joined = sum(parts) if field == "scale" else torch.cat(parts)
        torch.testing.assert_close(joined / 2, one[field], rtol=0, atol=1e-9)


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("kind", ["steps", "chunks"])
def test_gradients_of_weights_after_a_step(both: list[dict[str, Any]], name: str, kind: str):
    """Plain, and in chunks, the last of which has fewer rows: those of a plain step of all rows."""
    results = [result[kind][name] for result in both]
    one = of_steps(toy_batch(ROWS), None)[name]
    losses = [result.pop("loss") for result in results]
    assert float(sum(losses) / 2) == pytest.approx(float(one.pop("loss")), abs=1e-5)
    for result in results:
        assert set(result) == set(one)
        for weight, gradient in one.items():
            torch.testing.assert_close(result[weight], gradient, rtol=1e-5, atol=1e-5)


def test_one_process():
    tensor = torch.ones(2, 3)
    assert processes() == (0, 1)
    assert gather_with_gradient(tensor) is tensor
    assert gather(tensor) is tensor
