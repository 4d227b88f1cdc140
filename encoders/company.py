"""How far an embedding may depend on what is embedded before it and beside it: not beyond rounding."""

from __future__ import annotations

BATCHED = 1e-4
"""Largest relative difference that other clips in the batch may make; kernels for other sizes round otherwise."""


def allowed_in_company(precision: str) -> float:
    """The largest |a - b| / |b| of two embeddings of the same clip or text in different company.

    Args:
        precision: of the arithmetic, see `EncoderOptions`. Types of 16 bits keep 11 (float16) or 8 (bfloat16) digits,
            and round at every layer.
    """
    return {"float32": BATCHED, "float16": 0.02}.get(precision, 0.1)
