"""A-TRE's training step at D = 768, against a DataLoader loop over nn.TransformerEncoder of the same shape."""

from __future__ import annotations

import argparse

import numpy as np
from _measure import line, shortest

from audio_compositionality.dataset_builder.rendered import rendered_preset


def run(_: argparse.Namespace) -> None:
    import torch
    from torch import nn

    from audio_compositionality.metrics.a_tre import a_tre

    dim, scenes, steps = 768, 2_048, 125
    rows = rendered_preset("full", recipes=["a_tre"]).configuration("a_tre").rows[:scenes]
    metadata = [row["metadata"] for row in rows]
    labels = sorted({label for scene in metadata for source in scene for label in source.values()})
    number = {label: index for index, label in enumerate(labels)}
    embeddings = np.random.default_rng(0).normal(size=(scenes + 2, dim)).astype(np.float32)
    splits = ["train"] * scenes + ["validation", "test"]

    def ours() -> None:
        # Both fits, raw and centred: twice the steps.
        a_tre(embeddings, [*metadata, metadata[0], metadata[1]], splits, max_steps=steps, progress=False)

    def ridge_only() -> None:
        a_tre(embeddings, [*metadata, metadata[0], metadata[1]], splits, max_steps=1, progress=False)

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(len(labels) + 1, dim, padding_idx=len(labels))
            self.cls = nn.Parameter(torch.randn(dim) * 0.02)
            layer = nn.TransformerEncoderLayer(dim, 1, 4 * dim, dropout=0.0, norm_first=True, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            sources = self.table(tokens).sum(dim=2)
            x = torch.cat([self.cls.expand(len(tokens), 1, -1), sources], dim=1)
            padding = torch.cat([torch.zeros(len(tokens), 1, dtype=torch.bool), (tokens == len(labels)).all(2)], dim=1)
            return self.encoder(x, src_key_padding_mask=padding)[:, 0]

    tokens = torch.full((scenes, 4, 4), len(labels))
    for row, scene in enumerate(metadata):
        for place, source in enumerate(scene):
            tokens[row, place] = torch.tensor([number[label] for label in source.values()])
    data = torch.utils.data.TensorDataset(tokens, torch.from_numpy(embeddings[:scenes]))
    model = Plain()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=1e-4)

    def plain() -> None:
        done = 0
        while done < steps:
            for batch, target in torch.utils.data.DataLoader(data, batch_size=64, shuffle=True):
                loss = 1 - nn.functional.cosine_similarity(model(batch), target).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
                done += 1
                if done == steps:
                    return

    overhead = shortest(ridge_only, 2)
    step = (shortest(ours, 2) - overhead) / (2 * (steps - 1))
    theirs = shortest(plain, 2) / steps
    line(f"A-TRE, one training step, D = {dim}", 1e3 * step, "DataLoader, nn.TransformerEncoder", 1e3 * theirs, "ms")
