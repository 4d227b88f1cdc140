"""Whether a model hears the same in a batch as alone: four clips of different lengths, put to it both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import FloatArray
from .batches import Batches, Question
from .front_end import FrontEnd, Inputs

SECONDS = (0.5, 2.0, 5.0, 10.0)
"""Lengths of the clips, which the model's limit may cut."""

_PROMPTS = (
    "Is anything heard?",
    "Which of these is heard?\nA. dog\nB. rain\nAnswer with one letter only.",
    "How many different kinds of sound can be heard?\nA. one\nB. two\nC. three\nAnswer with one letter only.",
    "What is heard first?",
)


def tolerance(precision: str) -> float:
    """How much of the probability of the next token may move between alone and together.

    The total variation distance, so that of so many answers at most one in 1/tolerance can change; rounding alone moves
    about 1e-6 in float32 and some hundredths in bfloat16, and what is heard wrongly moves tenths.
    """
    return {"float32": 1e-3, "float16": 0.02}.get(precision, 0.1)


def difference_alone_and_together(
    front_end: FrontEnd, batches: Batches[Any], next_token: Callable[[Sequence[Question], Inputs], Sequence[Any]]
) -> float:
    """The largest total variation distance, over four clips, of the next token alone and in a batch; NaN where one is.

    Args:
        front_end: of the model.
        batches: of the model; their size may be halved on the way.
        next_token: the probabilities of the next token of each question of a batch.
    """
    questions = [
        Question(front_end.chat(prompt), _clip(min(seconds, front_end.limit_seconds), front_end.sample_rate))
        for prompt, seconds in zip(_PROMPTS, SECONDS, strict=True)
    ]
    alone = [batches.run([question], next_token)[0] for question in questions]
    together = batches.run(questions, next_token)
    differences = [float((one - other).abs().sum() / 2) for one, other in zip(alone, together, strict=True)]
    # Python's own maximum of NaN and a number depends on their order.
    return float(np.max(differences))


def _clip(seconds: float, sample_rate: int) -> FloatArray:
    """Bursts of noise, three a second."""
    count = round(seconds * sample_rate)
    noise = np.random.Generator(np.random.Philox(count)).standard_normal(count, np.float32)
    bursts = np.maximum(np.sin(2 * np.pi * 3 * np.arange(count) / sample_rate), 0)
    return (0.1 * noise * bursts).astype(np.float32)
