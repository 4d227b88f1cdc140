"""Binding: does an embedding show which voice says which word, if the voices and the words are the same?

X holds two sources, (u, w) and (v, w′): voice u says word w, voice v says w′. Y holds (u, w′) and (v, w): the same
voices and words, paired differently. X₂ and Y₂ are the same recordings through another channel and from another phase.
The score is how often z(X₁) − z(Y₁) and z(X₂) − z(Y₂) point the same way.

An encoder whose embedding is a word part plus a voice part has z(X) = z(Y). It is exactly at chance, as is every
encoder that represents only the parts and not which belong together. In X₃ and Y₃ other voices say the words, so that
recognising the recordings does not help. Nothing is trained. All in float64.

>>> rng = np.random.default_rng(0)
>>> x, y = rng.normal(size=(2, 200, 16))
>>> result = binding(x, y, x + 1, y + 1)
>>> result["binding"], result["binding_chance"], result["across"]
(1.0, 0.5, None)
>>> binding(x, x, y, y)["binding"]
0.5
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import NO_STEP, Floats, above_share, check_together, read_matrix, row_cosines, row_norms, unit_rows
from .columns import result_of
from .evaluated import COAT as _CITATION
from .evaluated import count, measure, metric_class, share


def binding(
    x1: ArrayLike,
    y1: ArrayLike,
    x2: ArrayLike,
    y2: ArrayLike,
    x3: ArrayLike | None = None,
    y3: ArrayLike | None = None,
    *,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how often a pairing is recognised across two renderings of n trials, and across conditions.

    `x1`, `y1`, `x2`, `y2` [n, dim]: embeddings of the scenes of each trial, x of one pairing and y of the other. `x3`,
    `y3` [n, dim], together or not at all: embeddings of the same pairings under other conditions.

    - `binding`: share of trials with cos(x1 − y1, x2 − y2) > 0, ties half. `binding_chance` is exactly 1/2: exchanging
      x2 and y2 flips the sign. A difference of zero (see `NO_STEP`) has a cosine of 0, which is a tie;
    - `cosine`: the mean of that cosine, chance 0;
    - `across`, `across_cosine`: binding and cosine between x1 − y1 and x3 − y3, None without x3 and y3; chance 1/2 and
      0;
    - `n`: number of trials;
    - with return_scores, lists of n whose means are the results: `scores` of binding (0, 1/2 or 1), `scores_cosine`,
      `scores_across` and `scores_across_cosine`, None if the result is None.

    Raises ValueError if an input is not a finite [n, dim] array with n, dim ≥ 1, shapes differ, or only one of x3 and
    y3 is given.

    >>> binding([[1, 0]], [[0, 1]], [[0, 1]], [[1, 0]])["binding"]
    0.0
    """
    check_together({"x3": x3, "y3": y3}, "across needs both")
    inputs = {"x1": x1, "y1": y1, "x2": x2, "y2": y2} | ({} if x3 is None else {"x3": x3, "y3": y3})
    arrays = {name: read_matrix(name, x) for name, x in inputs.items()}
    if len({x.shape for x in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"All embeddings must have the same shape [n, dim]; got {shapes}.")
    # Scale by a power of two, which is exact.
    exponent = math.frexp(max(float(np.abs(x).max()) for x in arrays.values()))[1]
    scaled = [np.ldexp(x, -exponent) for x in arrays.values()]
    directions = []
    for x, y in zip(scaled[::2], scaled[1::2], strict=True):
        step = x - y
        step[row_norms(step) <= NO_STEP * np.maximum(row_norms(x), row_norms(y))] = 0.0
        directions.append(unit_rows(step))
    columns: dict[str, Floats] = {}
    for names, direction in zip((("binding", "cosine"), ("across", "across_cosine")), directions[1:], strict=False):
        cosines = row_cosines(directions[0], direction)
        columns |= dict(zip(names, (above_share(cosines, np.zeros(1)), cosines), strict=True))
    return result_of(MEASURES, columns, {"binding_chance": 0.5, "n": len(directions[0])}, return_scores)


Binding = metric_class(
    binding,
    dict.fromkeys(("x1", "y1", "x2", "y2"), "numbers"),
    citation=_CITATION,
)


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "binding": share(
        "Binding",
        "how often the pairing of attributes is recognised, across two renderings of the same sounds",
        null="binding_chance",
        column="score",
    ),
    "binding_chance": share(
        "binding chance",
        "binding, within and across conditions, of an encoder that represents no pairing: exactly 1/2",
        shown=False,
    ),
    "cosine": measure(
        "cosine", "mean cosine of the two differences behind binding, chance 0", column="score_cosine", shown=False
    ),
    "across": share(
        "across",
        "binding between recordings under different conditions, such as other voices",
        null="binding_chance",
        column="score_across",
    ),
    "across_cosine": measure(
        "across cosine",
        "mean cosine of the two differences behind binding across conditions, chance 0",
        column="score_across_cosine",
        shown=False,
    ),
    "n": count("n", "number of trials"),
}
"""Description of each number that `binding` returns, by name, the score first."""
