"""What one step learns from: clips, captions, and texts that are true or false of each clip."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch

from .tokens import Tokens


@dataclass(frozen=True)
class Batch:
    """The share of one process of the rows of one step.

    Texts beside the captions stand in one list with the row of each, since rows have different numbers of them and
    nothing should be embedded for padding.

    Attributes:
        audio: [B, ...], features of the clips.
        captions: B texts, one a clip.
        negatives: n texts, each false of the clip of its row.
        negative_row: int64 [n], the row of each, ascending.
        positives: m texts, each true of the clip of its row.
        positive_row: int64 [m], the row of each, ascending.
        expressions: int64 [B], equal where two rows say the same.
        rows: int64 [B], numbers of the rows in the data.
    """

    audio: torch.Tensor
    captions: Tokens
    negatives: Tokens
    negative_row: torch.Tensor
    positives: Tokens
    positive_row: torch.Tensor
    expressions: torch.Tensor
    rows: torch.Tensor

    def __len__(self) -> int:
        return int(self.audio.shape[0])

    def to(self, device: torch.device | str) -> Batch:
        """The same on a device."""
        return replace(self, **{field.name: getattr(self, field.name).to(device) for field in fields(self)})


def scatter_rows(values: torch.Tensor, row_of: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings of a list as a block.

    Args:
        values: [n, D].
        row_of: int64 [n], the row of each, ascending.
        rows: B.

    Returns:
        [B, K, D], zeros where a row has fewer than the longest of them, K; bool [B, K], True where there is one.
    """
    counts = torch.bincount(row_of, minlength=rows)
    longest = int(counts.max()) if len(row_of) else 0
    first = counts.cumsum(0) - counts
    place = torch.arange(len(row_of), device=row_of.device) - first[row_of]
    block = values.new_zeros(rows, longest, values.shape[1]).index_put((row_of, place), values)
    mask = torch.arange(longest, device=row_of.device)[None] < counts[:, None]
    return block, mask
