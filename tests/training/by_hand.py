"""The losses of CompA-CLAP as double loops over Python's numbers, and rows to try them on.

Written from the formulas (arXiv 2310.08753, equations 4 to 7), one row and one sum at a time; nothing is shared with
what is tested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

Vector = Sequence[float]


def dot(left: Vector, right: Vector) -> float:
    return math.fsum(x * y for x, y in zip(left, right, strict=True))


def log_sum(logits: Sequence[float]) -> float:
    highest = max(logits)
    return highest + math.log(math.fsum(math.exp(x - highest) for x in logits))


@dataclass(frozen=True)
class Rows:
    """Clips and captions [B, D], negatives [B, K, D] and positives [B, P, D] with their masks, and `same` [B, B]."""

    audio: torch.Tensor
    text: torch.Tensor
    negatives: torch.Tensor
    negative_mask: torch.Tensor
    positives: torch.Tensor
    positive_mask: torch.Tensor
    same: torch.Tensor
    scale: float

    def texts(self, kind: str, i: int) -> list[Vector]:
        """The negatives or positives of a row that there are."""
        block, mask = getattr(self, f"{kind}s"), getattr(self, f"{kind}_mask")
        return [vector.tolist() for vector, there in zip(block[i], mask[i], strict=True) if there]

    def logit(self, left: Vector, right: Vector) -> float:
        return self.scale * dot(left, right)

    def to_compare(self, i: int) -> list[int]:
        """The rows that row i is held against: itself, and those that say something else."""
        return [j for j in range(len(self.audio)) if j == i or not self.same[i, j]]

    def clip(self, i: int) -> Vector:
        return self.audio[i].tolist()

    def caption(self, i: int) -> Vector:
        return self.text[i].tolist()

    def text_to_clips(self, text: Vector, i: int) -> list[float]:
        return [self.logit(text, self.clip(j)) for j in self.to_compare(i)]

    def clip_to_captions(self, i: int) -> list[float]:
        return [self.logit(self.clip(i), self.caption(j)) for j in self.to_compare(i)]

    def clip_to_own(self, kind: str, i: int) -> list[float]:
        return [self.logit(self.clip(i), text) for text in self.texts(kind, i)]


def contrastive(rows: Rows) -> list[float]:
    losses = []
    for i in range(len(rows.audio)):
        right = rows.logit(rows.clip(i), rows.caption(i))
        to_audio = -right + log_sum(rows.text_to_clips(rows.caption(i), i))
        to_text = -right + log_sum(rows.clip_to_captions(i))
        losses.append((to_audio + to_text) / 2)
    return losses


def hard_negative(rows: Rows) -> list[float]:
    losses = []
    for i in range(len(rows.audio)):
        right = rows.logit(rows.clip(i), rows.caption(i))
        to_audio = -right + log_sum(rows.text_to_clips(rows.caption(i), i))
        to_text = -right + log_sum(rows.clip_to_captions(i) + rows.clip_to_own("negative", i))
        losses.append((to_audio + to_text) / 2)
    return losses


def own(rows: Rows) -> list[float]:
    losses = []
    for i in range(len(rows.audio)):
        right = rows.logit(rows.clip(i), rows.caption(i))
        to_audio = -right + log_sum(rows.text_to_clips(rows.caption(i), i))
        wrong = [rows.logit(rows.clip(i), rows.caption(j)) for j in rows.to_compare(i) if j != i]
        wrong += rows.clip_to_own("negative", i)
        to_text = [-q + log_sum([q, *wrong]) for q in [right, *rows.clip_to_own("positive", i)]]
        losses.append((to_audio + sum(to_text) / len(to_text)) / 2)
    return losses


def paper(rows: Rows) -> list[float]:
    losses = []
    for i in range(len(rows.audio)):
        positives = rows.clip_to_own("positive", i) or [rows.logit(rows.clip(i), rows.caption(i))]
        pulled = sum(positives) / len(positives)
        to_audio = -pulled + log_sum(rows.text_to_clips(rows.caption(i), i))
        to_text = -pulled + log_sum(rows.clip_to_captions(i) + rows.clip_to_own("negative", i))
        losses.append((to_audio + to_text) / 2)
    return losses


def release(rows: Rows) -> list[float]:
    losses = []
    for i in range(len(rows.audio)):
        texts = [rows.caption(i), *rows.texts("positive", i)]
        competing = rows.clip_to_captions(i) + rows.clip_to_own("positive", i) + rows.clip_to_own("negative", i)
        to_text, to_audio = [], []
        for text in texts:
            right = rows.logit(rows.clip(i), text)
            to_text.append(-right + log_sum(competing))
            to_audio.append(-right + log_sum(rows.text_to_clips(text, i)))
        losses.append((sum(to_audio) + sum(to_text)) / len(texts) / 2)
    return losses


def drawn(
    seed: int = 0, rows: int = 5, negatives: int = 3, positives: int = 2, dim: int = 6, scale: float = 14.3
) -> Rows:
    """Random rows, every second text masked; the second and the last say the same."""
    generator = torch.Generator().manual_seed(seed)

    def unit(*shape: int) -> torch.Tensor:
        values = torch.randn(*shape, dim, generator=generator, dtype=torch.float64)
        return torch.nn.functional.normalize(values, dim=-1)

    same = torch.eye(rows, dtype=torch.bool)
    same[1, -1] = same[-1, 1] = True
    return Rows(
        audio=unit(rows),
        text=unit(rows),
        negatives=unit(rows, negatives),
        negative_mask=torch.rand(rows, negatives, generator=generator) < 0.5,
        positives=unit(rows, positives),
        positive_mask=torch.rand(rows, positives, generator=generator) < 0.5,
        same=same,
        scale=scale,
    )


def negative_logits(rows: Rows) -> Rows:
    """The same rows, all logits below 0: what the authors' masks fail on."""
    direction = torch.zeros(rows.audio.shape[1], dtype=torch.float64)
    direction[0] = 3.0

    def towards(values: torch.Tensor, sign: int) -> torch.Tensor:
        return torch.nn.functional.normalize(values + sign * direction, dim=-1)

    texts = {name: towards(getattr(rows, name), -1) for name in ("text", "negatives", "positives")}
    return replace(rows, audio=towards(rows.audio, 1), **texts)
