"""Octave similarity: is a tone near its octave, nearer than to the octaves of other tones?

>>> result = toy_pairs([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]])
>>> result["toy_pairs"], result["null"]
(1.0, 0.0)
"""

from typing import Any

import datasets
import evaluate
import numpy as np
from numpy.typing import ArrayLike

VERSION = 1

MEASURES = {
    "toy_pairs": {
        "heading": "octave similarity",
        "meaning": "mean cosine of the embeddings of a tone and of its octave",
        "null": "null",
        "column": "score",
    },
    "null": {"heading": "null", "meaning": "the same for octaves of other tones"},
    "adjusted": {
        "heading": "adjusted similarity",
        "meaning": "(similarity − null) / (1 − null)",
        "range": (-1e6, 1.0),
    },
    "n": {"heading": "n", "meaning": "number of pairs", "digits": 0, "range": (2.0, 1e9)},
}

_DESCRIPTION = "Mean cosine of the embeddings of tones and of their octaves, beside that of other tones."
_CITATION = "@misc{toy_pairs, title = {A task that shows how a task is made}}"
_INPUTS = """
Args:
    low: embeddings [n, dim] of tones.
    high: embeddings [n, dim] of their octaves.
    return_scores: also return the n cosines as `scores`.
"""

PAGE = {
    "introduction": "# Octave similarity\n\nIs a tone near its octave?\n",
    "warning": "A made-up score: it shows how a task is made.\n",
    "inputs": {"low": "embeddings of tones", "high": "embeddings of their octaves"},
}


def toy_pairs(low: ArrayLike, high: ArrayLike, return_scores: bool = False) -> dict[str, Any]:
    """Score embeddings [n, dim] of n tones and of their octaves, n at least 2.

    Raises ValueError for other shapes.
    """
    units = [np.asarray(x, np.float64) for x in (low, high)]
    if units[0].ndim != 2 or units[0].shape != units[1].shape or len(units[0]) < 2:
        raise ValueError(f"low and high are {units[0].shape} and {units[1].shape}; both must be [n, dim] with n >= 2")
    cosines = np.array([[_cosine(a, b) for b in units[1]] for a in units[0]])
    scores = cosines.diagonal()
    n = len(scores)
    null = float((cosines.sum() - scores.sum()) / (n * (n - 1)))
    score = float(scores.mean())
    adjusted = (score - null) / (1 - null) if null < 1 - 1e-6 else 0.0
    result: dict[str, Any] = {"toy_pairs": score, "null": null, "adjusted": adjusted, "n": n}
    return {**result, "scores": scores.tolist()} if return_scores else result


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0


def example() -> dict[str, Any]:
    """Return arguments of `toy_pairs`: octaves that are their tones with noise."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=(8, 4))
    return {"low": low.round(3), "high": (low + rng.normal(0, 0.5, (8, 4))).round(3)}


class ToyPairs(evaluate.Metric):
    """The metric, as `evaluate.load` gives it."""

    def _info(self) -> evaluate.MetricInfo:
        vector = datasets.Sequence(datasets.Value("float64"))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"low": vector, "high": vector}),
        )

    def _compute(self, low: Any, high: Any, return_scores: bool = False) -> dict[str, Any]:
        return toy_pairs(low, high, return_scores)
