"""Two towers of a few hundred weights with a batch for them, which tests of steps take."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from audio_compositionality.training.batches import Batch, Tokens

FEATURES, DIM, WORDS = 7, 5, 11


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


class ToyTowers(nn.Module):
    """As `TwoTowers`, less what a step does not need. In float32."""

    pad_token = 0

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.audio = nn.Sequential(nn.Linear(FEATURES, 9), nn.Tanh(), nn.Dropout(dropout), nn.Linear(9, DIM))
        self.words = nn.Embedding(WORDS, 6)
        self.text = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, DIM))
        self.log_scale = nn.Parameter(torch.zeros(()))
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator))

    def embed_audio(self, features: Tensor) -> Tensor:
        return nn.functional.normalize(self.audio(features), dim=-1)

    def embed_text(self, tokens: Tokens) -> Tensor:
        places = 1 + torch.arange(tokens.ids.shape[1])  # Order matters.
        words = self.words(tokens.ids) * (tokens.mask * places)[..., None]
        return nn.functional.normalize(self.text(words.sum(1)), dim=-1)

    def scale(self) -> Tensor:
        return 3 * self.log_scale.exp()


def toy_batch(rows: int = 8, seed: int = 0) -> Batch:
    """Rows with 0 to 4 negatives and positives each, other numbers in every row; two say the same."""
    generator = torch.Generator().manual_seed(seed)

    def texts(number: int) -> Tokens:
        lengths = torch.randint(1, 6, (number,), generator=generator).tolist()
        return pad_tokens([torch.randint(1, WORDS, (n,), generator=generator).tolist() for n in lengths], pad=0)

    def row_of(most: int) -> Tensor:
        counts = torch.randint(0, most + 1, (rows,), generator=generator)
        counts[-1] = most
        return torch.repeat_interleave(torch.arange(rows), counts)

    negative_row, positive_row = row_of(4), row_of(3)
    expressions = torch.arange(rows)
    expressions[rows // 2] = 0
    return Batch(
        audio=torch.randn(rows, FEATURES, generator=generator),
        captions=texts(rows),
        negatives=texts(len(negative_row)),
        negative_row=negative_row,
        positives=texts(len(positive_row)),
        positive_row=positive_row,
        expressions=expressions,
        rows=torch.arange(rows),
    )


def gradients(module: nn.Module) -> dict[str, Tensor]:
    """The gradients of a module's weights, by their names less what wraps them."""
    return {
        name.removeprefix("module.").removeprefix("towers."): weight.grad.clone()
        for name, weight in module.named_parameters()
        if weight.grad is not None
    }
