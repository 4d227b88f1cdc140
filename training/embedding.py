"""The embeddings of a batch, and the module that makes them, which is what several processes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from .batch import Batch
from .tokens import join_tokens

if TYPE_CHECKING:
    from .model import TwoTowers


@dataclass(frozen=True)
class Embeddings:
    """What a loss is computed of: a batch embedded, of unit length. Texts stand in lists, as in `Batch`.

    Attributes:
        audio: [B, D], the clips.
        captions: [B, D], their captions.
        negatives: [n, D], texts that are false of the clip of their row.
        negative_row: int64 [n], the row of each, ascending.
        positives: [m, D], texts that are true of the clip of their row.
        positive_row: int64 [m], the row of each, ascending.
        expressions: int64 [B], equal where two rows say the same.
        scale: what cosines are multiplied by, without dimensions.
    """

    audio: Tensor
    captions: Tensor
    negatives: Tensor
    negative_row: Tensor
    positives: Tensor
    positive_row: Tensor
    expressions: Tensor
    scale: Tensor


class Embedder(nn.Module):
    """A batch embedded by two towers in one call of `forward`.

    One call, since what wraps a model, such as DistributedDataParallel or `Accelerator.prepare`, sees its `forward`
    alone: this is what to wrap, not the towers.

    Args:
        towers: the towers.
    """

    def __init__(self, towers: TwoTowers) -> None:
        super().__init__()
        self.towers = towers

    def forward(self, batch: Batch) -> Embeddings:
        """Embed the clips, and all texts in one go."""
        texts = join_tokens([batch.captions, batch.negatives, batch.positives], self.towers.pad_token)
        counts = [len(batch.captions), len(batch.negatives), len(batch.positives)]
        captions, negatives, positives = torch.split(self.towers.embed_text(texts), counts)
        return Embeddings(
            audio=self.towers.embed_audio(batch.audio),
            captions=captions,
            negatives=negatives,
            negative_row=batch.negative_row,
            positives=positives,
            positive_row=batch.positive_row,
            expressions=batch.expressions,
            scale=self.towers.scale(),
        )
