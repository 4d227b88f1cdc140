"""R as the text of arXiv 2505.06224 has it, beside a plain loop of PyTorch that shares no line with the metric's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from audio_compositionality.metrics import probing, steps
from audio_compositionality.metrics.equivariance import equivariance

DIM, ROWS = 12, 40


def rows(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """z [n, DIM] and z′ of length 1, and P [n, 1] in 0…1."""
    generator = torch.Generator().manual_seed(seed)
    z, end = (torch.randn(count, DIM, generator=generator) for _ in range(2))
    return (
        z / z.norm(dim=1, keepdim=True),
        end / end.norm(dim=1, keepdim=True),
        torch.rand(count, 1, generator=generator),
    )


class Plain(torch.nn.Module):
    """The paper's words, layer by layer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.embed = torch.nn.Linear(1, 32)
        if name == "slp":
            self.only = torch.nn.Linear(DIM + 32, DIM)
        else:
            self.first = torch.nn.Linear(DIM + 32, 512)
            self.second = torch.nn.Linear(512, 512)
            self.third = torch.nn.Linear(512, DIM)
        self.name = name

    def forward(self, z: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        joined = torch.cat((z, self.embed(p)), -1)
        if self.name == "slp":
            only: torch.Tensor = self.only(joined)
            return only
        hidden = self.second(self.first(joined).clamp(min=0)).clamp(min=0)
        answer: torch.Tensor = self.third(hidden)
        return answer


def seeded(name: str) -> tuple[Any, Plain]:
    """The metric's probe and the plain one, with the weights of one random state."""
    torch.manual_seed(3)
    ours = steps._foretelling(DIM, 1, steps.R_HIDDEN if name == "mlp" else ())
    torch.manual_seed(3)
    return ours, Plain(name)


def plain_loss(answer: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return torch.stack([1 - a @ b / (a.norm() * b.norm()) for a, b in zip(answer, wanted, strict=True)]).mean()


@pytest.mark.parametrize("name", ["slp", "mlp"])
def test_a_step_of_training_leads_to_the_same_loss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "EPOCHS", 1)
    monkeypatch.setattr(probing, "BATCH_ROWS", ROWS)
    ours, plain = seeded(name)
    z, end, p = rows(ROWS, 1)
    other, other_end, other_p = rows(ROWS, 2)
    held = (torch.cat((other, other_p), 1), other_end)
    with torch.no_grad():
        before = float(plain_loss(plain(other, other_p), other_end))
        assert float(steps._cosine_loss(ours(held[0]), other_end)) == pytest.approx(before, abs=1e-6)
    loss = steps.descend(ours, steps._cosine_loss, (torch.cat((z, p), 1), end), held, 0)
    adam = torch.optim.Adam(plain.parameters(), lr=1e-3, weight_decay=1e-3)
    plain_loss(plain(z, p), end).backward()
    adam.step()
    with torch.no_grad():
        after = float(plain_loss(plain(other, other_p), other_end))
    assert loss == pytest.approx(after, abs=1e-5)
    assert abs(after - before) > 1e-4


def turned() -> dict[str, Any]:
    """Arguments of `equivariance`: each level turns an embedding by one angle in all of its planes, and noise."""
    rng = np.random.default_rng(0)
    orbit, level = np.repeat(np.arange(30), 3), np.tile(np.arange(3.0), 30)
    planes = (rng.normal(size=(30, 4)) + 1j * rng.normal(size=(30, 4)))[orbit] * np.exp(0.6j * level)[:, None]
    z = np.hstack([planes.real, planes.imag]) * np.exp(rng.normal(0, 0.5, 90))[:, None]
    return {"embeddings": z, "orbits": orbit, "parameters": level, "folds": orbit % 5, "blocks": orbit}


@pytest.mark.slow
def test_r_is_of_directions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "EPOCHS", 2)
    data = turned()
    result = equivariance(**data, probes="slp", scaled=False)
    # Lengths say nothing, neither of one clip nor of all.
    lengths = np.random.default_rng(1).uniform(0.1, 14, (90, 1))
    other = equivariance(**data | {"embeddings": lengths * data["embeddings"]}, probes="slp", scaled=False)
    for name in ("r_equivariance", "r_slp", "r_cosine", "r_mse", "identity_cosine"):
        assert other[name] == pytest.approx(result[name], abs=1e-4), name
    # P reads embeddings as they come.
    assert other["p_slp"] != pytest.approx(result["p_slp"], abs=1e-3)
    # What is foretold has the length 1, so that |z′ − g|² is 2·(1 − cosine); `r_mse` is in variances of z of length 1.
    unit = steps.unit_rows(data["embeddings"])
    best = result["r_mse"] * unit.shape[1] * unit.var(axis=0).mean()
    assert best == pytest.approx(2 * (1 - result["r_cosine"]), abs=1e-6)
