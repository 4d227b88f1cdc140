"""One of two processes that compute losses and steps together: python two_processes.py RANK FOLDER.

What it computed of its own half of the rows is written to FOLDER/RANK.pt. The processes meet by a file. Gradients of
weights are shared as the loop does it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import distributed

from audio_compositionality.training.batches import Batch
from audio_compositionality.training.embedding import BatchEmbedder, Embeddings, cached_step, chunks_of
from audio_compositionality.training.loop import average_gradients
from audio_compositionality.training.losses import gather, gather_with_gradient, stage_loss

sys.path.insert(0, str(Path(__file__).parent))

from toy_towers import ToyTowers, gradients, toy_batch

STAGES = [("contrastive", "own"), ("hard", "own"), ("modular", "own"), ("modular", "paper"), ("modular", "release")]
VARIABLES = ("audio", "captions", "negatives", "positives", "scale")
ROWS = 8


def embedded(batch: Batch) -> Embeddings:
    """A batch embedded, in float64."""
    return BatchEmbedder(ToyTowers().double())(replace(batch, audio=batch.audio.double()))


def of_embeddings(embeddings: Embeddings) -> dict[str, dict[str, torch.Tensor]]:
    """The loss of each stage and its gradient for embeddings."""
    results = {}
    for kind, form in STAGES:
        leaves = {name: getattr(embeddings, name).detach().requires_grad_() for name in VARIABLES}
        loss = stage_loss(kind, form)(replace(embeddings, **leaves))
        loss.backward()
        results[f"{kind} {form}"] = {
            "loss": loss.detach(),
            **{name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None},
        }
    return results


def of_steps(batch: Batch, chunk: int | None) -> dict[str, dict[str, torch.Tensor]]:
    """The loss of each stage and the weights' gradients, in float32."""
    results = {}
    for kind, form in STAGES:
        model = BatchEmbedder(ToyTowers())
        loss = cached_step(model, batch, stage_loss(kind, form), chunk)
        average_gradients(list(model.parameters()))
        results[f"{kind} {form}"] = {"loss": loss, **gradients(model)}
    return results


def main() -> None:
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    share = chunks_of(toy_batch(ROWS), ROWS // 2)[rank]
    leaf = torch.full((2, 3), float(rank + 1), requires_grad=True)
    gathered = gather_with_gradient(leaf)
    (gathered * torch.arange(12.0).view(4, 3) * (rank + 1)).sum().backward()
    torch.save(
        {
            "gathered": gathered.detach(),
            "gradient": leaf.grad,
            "numbers": gather(torch.tensor([rank, 10 + rank])),
            "embeddings": of_embeddings(embedded(share)),
            "steps": of_steps(share, None),
            "chunks": of_steps(share, 3),
        },
        folder / f"{rank}.pt",
    )
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
