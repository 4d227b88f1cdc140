"""Texts as a network takes them: numbers of tokens, padded to one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Tokens:
    """Texts of a batch.

    Attributes:
        ids: int64 [M, T], the numbers of their tokens, special ones among them, padded behind.
        mask: bool [M, T], False where there is padding.
    """

    ids: torch.Tensor
    mask: torch.Tensor

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def to(self, device: torch.device | str) -> Tokens:
        """The same on a device."""
        return Tokens(self.ids.to(device, non_blocking=True), self.mask.to(device, non_blocking=True))

    def take(self, which: slice | torch.Tensor) -> Tokens:
        """Some of the texts, less the columns that are padding in all of them."""
        mask = self.mask[which]
        longest = int(mask.sum(dim=1).max()) if len(mask) else 0
        return Tokens(self.ids[which][:, :longest], mask[:, :longest])


def pad_tokens(numbers: Sequence[Sequence[int]], pad: int) -> Tokens:
    """Texts of different lengths as one batch.

    Args:
        numbers: of the tokens of each text.
        pad: number of the token that stands for nothing.
    """
    longest = max(map(len, numbers), default=0)
    ids = torch.full((len(numbers), longest), pad, dtype=torch.int64)
    mask = torch.zeros((len(numbers), longest), dtype=torch.bool)
    for row, one in enumerate(numbers):
        ids[row, : len(one)] = torch.tensor(one, dtype=torch.int64)
        mask[row, : len(one)] = True
    return Tokens(ids, mask)


def join_tokens(parts: Sequence[Tokens], pad: int) -> Tokens:
    """The texts of several batches, one batch behind the other.

    Args:
        parts: at least one.
        pad: as `pad_tokens`.
    """
    longest = max(part.ids.shape[1] for part in parts)
    ids = [torch.nn.functional.pad(part.ids, (0, longest - part.ids.shape[1]), value=pad) for part in parts]
    masks = [torch.nn.functional.pad(part.mask, (0, longest - part.mask.shape[1])) for part in parts]
    return Tokens(torch.cat(ids), torch.cat(masks))
