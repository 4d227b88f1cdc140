"""Composed retrieval: which clip is a source clip with a stated change?

A query is the embedding of a source clip plus the embedding of a change, a text such as "the same without a bell", each
at length 1. The sum is compared by cosine with the candidates of its row. R@1 is reported with controls that leave out
one half of the query: if the source alone finds the target, as in edited recordings (mteb's pull request 5246 reports
that a spectrum of the source beats a CLAP), nothing is composed. Ties are averaged over all orders, so that a constant
model is exactly at chance. Nothing is trained. All in float64.

>>> target, wrong, both = [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]
>>> result = composed_retrieval([[1.0, 0.0]], [[0.0, 1.0]], [[both, target, wrong]], [1])
>>> result["r1"], result["source_only_r1"], result["change_only_r1"], result["gain"]
(1.0, 0.5, 1.0, 0.0)
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Floats, Ints, check_length, nearest_name, unit_rows
from .columns import of_all, result_of
from .evaluated import COMPA as _CITATION
from .evaluated import Fields, count, hidden, measure, metric_class, share
from .similarity import NEAR, read_keys, unit_embeddings

KINDS = ("then", "without", "attribute")
"""Kinds of changes: a sound added before or after, a sound left out, a sound with another attribute."""


def composed_retrieval(
    source: ArrayLike,
    change: ArrayLike,
    candidates: Any,
    target: ArrayLike,
    kinds: Any = None,
    *,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how often the target of each of n queries ranks first among its candidates.

    - `source`, `change` [n, dim]; `candidates` n matrices [K, dim], K ≥ 2, as a list or an array [n, K, dim]; `target`
      [n], each a row of its candidates; `kinds` [n], from `KINDS`. A query is source + change, both at length 1.

    Results:

    - `r1`: share of the queries whose target has the greatest cosine; `mrr`: mean of 1/rank;
    - `source_only_r1`, `change_only_r1`: R@1 of the same model if the query is the source, or the change, alone;
    - `chance`, `chance_mrr`: for a model without knowledge: the means of 1/K and of (1 + … + 1/K)/K;
    - `trivial`: the greatest of `source_only_r1`, `change_only_r1` and `chance`; `gain`: r1 − trivial baseline. The
      greatest is chosen once, over all rows, and subtracted row by row, so that intervals and tests of gain are paired.
      The mean of the greatest of several numbers is at least the greatest of their means, so gain errs downwards;
    - `r1_KIND`: r1 over the rows of a kind, None if there are none;
    - `n`: number of queries;
    - with return_scores, lists of n whose means are the results: `scores` of r1, `scores_NAME` of the others. For
      r1_KIND, rows of other kinds get its mean, and rows of the kind are weighted.

    Cosines within NEAR of the target's cosine are tied; each of t tied candidates ranks first by 1/t. A query of zeros
    is tied with all.

    Raises ValueError if an input is not finite or not of its shape, dimensions differ, a row has fewer than two
    candidates, or a target is not one of them.

    >>> composed_retrieval([[1, 0]], [[0, 1]], [[[1, 1], [1, 1]]], [0])["r1"]
    0.5
    """
    z, t = unit_embeddings("source", source), unit_embeddings("change", change)
    check_length("change", t, len(z))
    check_length("candidates", candidates, len(z))
    matrices = [unit_embeddings(f"candidates[{number}]", x) for number, x in enumerate(candidates)]
    for number, x in enumerate(matrices):
        if len(x) < 2 or len({z.shape[1], t.shape[1], x.shape[1]}) > 1:
            raise ValueError(
                "A row needs 2 or more candidates, and all embeddings the same dim; source and change have "
                f"{z.shape[1]} and {t.shape[1]} columns, and candidates[{number}] is {list(x.shape)}."
            )
    # All candidates of all rows, the row of each, and the place of each row's target among them.
    sizes = np.array([len(x) for x in matrices])
    flat, row = np.concatenate(matrices), np.repeat(np.arange(len(z)), sizes)
    targets = read_keys("target", target)
    check_length("target", targets, len(sizes))
    for number, (place, size) in enumerate(zip(targets, sizes, strict=True)):
        if not isinstance(place, int) or not 0 <= place < size:
            raise ValueError(f"target must be a candidate of its row, 0 to {size - 1}; row {number} has {place!r}.")
    among_all: Ints = np.cumsum(sizes) - sizes + np.array(targets)
    columns: dict[str, Floats] = {"chance": 1 / sizes, "chance_mrr": _harmonic(sizes) / sizes}
    columns["r1"], columns["mrr"] = _target_ranks(z + t, flat, row, among_all)
    columns["source_only_r1"] = _target_ranks(z, flat, row, among_all)[0]
    columns["change_only_r1"] = _target_ranks(t, flat, row, among_all)[0]
    columns["trivial"] = max((columns[name] for name in ("chance", "source_only_r1", "change_only_r1")), key=np.mean)
    columns["gain"] = columns["r1"] - columns["trivial"]
    if kinds is not None:
        names = read_keys("kinds", kinds)
        check_length("kinds", names, len(z))
        wrong = next((name for name in names if name not in KINDS), None)
        if wrong is not None:
            near = nearest_name(str(wrong), KINDS)
            raise ValueError(f"kinds must be {', '.join(KINDS)}; got {wrong!r}. Did you mean {near}?")
        for kind in dict.fromkeys(names):
            of_kind = np.array([name == kind for name in names])
            columns[f"r1_{kind}"] = of_all(columns["r1"][of_kind], of_kind)
    return result_of(MEASURES, columns, {"n": len(z)}, return_scores)


ComposedRetrieval = metric_class(
    composed_retrieval,
    {"source": "numbers", "change": "numbers", "candidates": "vectors", "target": "integer"},
    citation=_CITATION,
)


def _harmonic(counts: Ints) -> Floats:
    """Return 1 + 1/2 + … + 1/k for each count k."""
    sums: Floats = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, counts.max() + 1))])[counts]
    return sums


def _target_ranks(query: Floats, flat: Floats, row: Ints, place: Ints) -> tuple[Floats, Floats]:
    """Return whether the target of each query ranks first, and its reciprocal rank, expected over orders of ties."""
    cosines = np.einsum("ij,ij->i", unit_rows(query)[row], flat)
    of_target = cosines[place][row]
    better = np.bincount(row, cosines > of_target + NEAR).astype(np.int64)
    tied = np.bincount(row, cosines >= of_target - NEAR).astype(np.int64) - better
    return (better == 0) / tied, (_harmonic(better + tied) - _harmonic(better)) / tied


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

_WEIGHTED = "Scores of single rows are weighted, so that only rows of the kind count."


def _scored(name: str, heading: str, meaning: str, **more: Any) -> Fields:
    """Return the fields of a share that is the mean of the column with its name."""
    return share(heading, meaning, column=f"score_{name}", **more)


MEASURES = {
    "r1": _scored("r1", "composed R@1", "share of the queries whose target is first", null="chance", trivial="trivial")
    | {"column": "score"},
    "gain": measure("gain", "R@1 less the trivial baseline, row by row", column="score_gain"),
    "trivial": share("trivial", "the greatest of R@1 of the source alone, of the change alone, and chance"),
    "source_only_r1": _scored("source_only_r1", "source alone", "R@1 if the source clip alone is the query"),
    "change_only_r1": _scored("change_only_r1", "change alone", "R@1 if the change alone is the query"),
    "chance": share("chance", "R@1 of a model without knowledge, exactly"),
    "mrr": hidden(_scored("mrr", "MRR", "mean of 1 over the rank of the target", null="chance_mrr")),
    "chance_mrr": hidden(share("chance of MRR", "MRR of a model without knowledge, exactly")),
    **{
        f"r1_{kind}": _scored(f"r1_{kind}", f"R@1 {kind}", f"R@1 of changes of the kind {kind}", outside=_WEIGHTED)
        for kind in KINDS
    },
    "n": count("n", "number of queries"),
}
"""Description of each number that `composed_retrieval` returns, by name, the score first."""
