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

_LARGEST = 1e150  # beyond this a float64 norm overflows

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


def toy_pairs(low: ArrayLike, high: ArrayLike, return_scores: bool = False) -> dict[str, Any]:
    """Score embeddings [n, dim] of n tones and of their octaves, n at least 2.

    Raises ValueError for other shapes.
    """
    tones, octaves = _matrix("low", low), _matrix("high", high)
    if tones.shape != octaves.shape or len(tones) < 2:
        raise ValueError(f"low and high are {tones.shape} and {octaves.shape}; both must be [n, dim] with n >= 2")
    cosines = np.array([[_cosine(a, b) for b in octaves] for a in tones])
    scores = cosines.diagonal()
    n = len(scores)
    null = float((cosines.sum() - scores.sum()) / (n * (n - 1)))
    score = float(scores.mean())
    adjusted = (score - null) / (1 - null) if null < 1 - 1e-6 else 0.0
    result: dict[str, Any] = {"toy_pairs": score, "null": null, "adjusted": adjusted, "n": n}
    return {**result, "scores": scores.tolist()} if return_scores else result


def _matrix(name: str, x: Any) -> np.ndarray:
    """Return embeddings as finite float64 [n, dim], or raise ValueError that says which are none, and why."""
    if hasattr(x, "detach"):  # a torch tensor, perhaps on a device, with a gradient, or in bfloat16
        x = x.detach().cpu().double()
    try:
        raw = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be an array [n, dim] with rows of equal length: {error}") from None
    if raw.dtype.kind not in "fiu" and raw.size:
        raise ValueError(f"{name} must hold real numbers; got an array of {raw.dtype}")
    if raw.ndim != 2 or 0 in raw.shape:
        raise ValueError(f"{name} must be [n, dim] with n >= 1 and dim >= 1; got shape {raw.shape}")
    array = raw.astype(np.float64)
    bad = ~(np.abs(array) <= _LARGEST)  # so written that NaN is bad
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise ValueError(f"{name} must be finite; the first is row {row} with {array[row][bad[row]][0]}")
    return array


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0


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

    def compute(self, **inputs: Any) -> dict[str, Any] | None:
        """Score the arrays given here, or those collected by `add` and `add_batch`."""
        given = [name for name in ("low", "high") if inputs.get(name) is not None]
        if len(given) == 1:
            raise ValueError(f"compute() got {given[0]} without {'high' if given == ['low'] else 'low'}; it needs both")
        result: dict[str, Any] | None = super().compute(**inputs)
        return result

    def _compute(self, low: Any, high: Any, return_scores: bool = False) -> dict[str, Any]:
        return toy_pairs(low, high, return_scores)
