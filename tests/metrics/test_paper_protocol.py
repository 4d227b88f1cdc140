"""The linear layer of arXiv 2505.06224, written as its published code has it, falls where embeddings are large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audio_compositionality.metrics.informativeness import informativeness
from audio_compositionality.tasks.registry import load_benchmark

SCALE = 14
"""Standard deviation of the features of x-vector, one of the paper's encoders."""


def factor_clips(scale: float = 1.0) -> dict[str, Any]:
    """Arguments of `informativeness`: five levels that move embeddings of 64 dimensions along a line, and noise."""
    rng = np.random.default_rng(0)
    block, level = np.repeat(np.arange(20), 5), np.tile(np.arange(5.0), 20)
    z = level[:, None] * rng.normal(size=64) / 2 + 0.5 * rng.normal(size=(100, 64))
    return {"embeddings": scale * z, "labels": level, "folds": block % 5, "blocks": block}


def paper_layer(data: dict[str, Any]) -> float:
    """R² over all folds of the paper's SLP on one embedding: raw features and labels, the last state for the best."""
    z, y = (torch.tensor(data[name], dtype=torch.float32) for name in ("embeddings", "labels"))
    errors, total = 0.0, 0.0
    for fold in range(5):
        torch.manual_seed(fold)
        test, held = torch.tensor(data["folds"] == fold), torch.tensor(data["folds"] == (fold + 1) % 5)
        train = ~(test | held)
        layer = nn.Linear(z.shape[1], 1)
        adam = torch.optim.Adam(layer.parameters(), lr=1e-3, weight_decay=1e-3)
        least, waited, state = np.inf, 0, layer.state_dict()
        for _ in range(100):
            for rows in torch.randperm(int(train.sum())).split(32):
                adam.zero_grad()
                nn.functional.mse_loss(layer(z[train][rows])[:, 0], y[train][rows]).backward()
                adam.step()
            with torch.no_grad():
                loss = float(nn.functional.mse_loss(layer(z[held])[:, 0], y[held]))
            waited = 0 if loss < least else waited + 1
            if loss < least:
                least, state = loss, layer.state_dict()  # by reference: it goes on changing
            if waited == 10:
                break
        layer.load_state_dict(state)
        with torch.no_grad():
            errors += float(torch.square(layer(z[test])[:, 0] - y[test]).sum())
        total += float(torch.square(y[train].mean() - y[test]).sum())
    return 1 - errors / total


@pytest.mark.slow
def test_the_papers_layer_falls_where_embeddings_are_large_and_closed_forms_do_not() -> None:
    small, large = factor_clips(), factor_clips(SCALE)
    printed = paper_layer(small)
    assert printed > 0.85
    assert paper_layer(large) < printed - 0.3
    for probe in ("ridge", "kernel"):
        ours = [informativeness(**data, probes=probe)["informativeness"] for data in (small, large)]
        assert ours[0] > 0.95
        assert ours[1] == pytest.approx(ours[0], abs=1e-9)
    # What the protocol asks for is that probe, but for the best state, which is kept.
    same = informativeness(**small, probes="slp", scaled=False)["slp"]
    assert same == pytest.approx(printed, abs=0.1)


def test_every_task_with_probes_has_them_raw_under_the_papers_protocol() -> None:
    protocols = [task.info.protocols.get("paper") for task in load_benchmark("axes")]
    probed = [settings for settings in protocols if settings and "probes" in settings]
    assert len(probed) == 6
    assert all(settings == {"probes": ["slp", "mlp"], "scaled": False} for settings in probed)
