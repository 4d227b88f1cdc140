"""Counting: do clips and captions match by the number of times a sound occurs?

A ladder is a set of clips in which one sound occurs 1, 2 … times, with a caption each. Each ladder holds constant one
quantity that usually grows with the count, such as energy, so that it carries no information there. Two clips and their
captions have to match; nothing is trained. The main score is the minimum over the held quantities, so that a model that
uses energy alone, or extent alone, is at chance.

>>> counts, ladders = np.tile([1, 2, 3, 4], 40), np.repeat(np.arange(40), 4)
>>> held = np.array(list(HELD))[ladders % 4]
>>> words = np.eye(4)[counts - 1]
>>> result = count_instances(words, words, counts, ladders, held)
>>> result["worst"], result["chance"], result["n"]
(1.0, 0.5, 40)
>>> count_instances(words, np.ones((160, 4)), counts, ladders, held)["worst"]
0.5
"""

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Floats, nearest_name, read_matrix, unit_rows
from .columns import check_within, of_all, read_codes, read_column, result_of
from .evaluated import COAT as _CITATION
from .evaluated import Fields, count, metric_class, share
from .similarity import NEAR, won_shares

HELD = {
    "energy": "the energy of a clip",
    "span": "the time from the first onset to the last",
    "density": "the time from one onset to the next",
    "activity": "the time for which the sound is heard",
}
"""Quantities that a ladder can hold constant, with their descriptions."""

PERMUTED = 4
"""Number words permuted for the trivial baseline: the largest that all ladders have."""


def count_instances(
    embeddings: ArrayLike, texts: ArrayLike, counts: Any, ladders: Any, held: Any, *, return_scores: bool = False
) -> dict[str, Any]:
    """Return how often two clips of a ladder match their captions, for m clips in n ladders.

    - `embeddings` [m, dim] of clips and `texts` [m, dim] of their captions; `counts` [m], integers that differ within a
      ladder; `ladders` [m], strings or integers; `held` [m], from HELD: the quantity that is independent of the count.
      A ladder has one `held`.
    - The score of a ladder is the share of all its pairs (i, j) with cos(i, i) + cos(j, j) > cos(i, j) + cos(j, i),
      where the first index is the clip and the second the caption; ties within NEAR count 1/2.

    Results, None if they do not apply:

    - `worst`: the smallest of `order_energy`, `order_span`, `order_density` and `order_activity`, the means of the
      ladders that hold this quantity. `chance` is exactly 1/2 for each; the smallest of several is below it by chance;
    - `trivial`: all ladders share the number words, so a model that does not know them may be lucky in all at once. The
      captions of the four largest counts that all ladders have are exchanged in all 24 ways, equally in all ladders;
      this is the second largest `worst` of these, so that at most 1 of 24 is above it. With fewer shared counts, and so
      6 ways or 2, it is the largest, and none is above it;
    - `exact`: share of clips whose nearest caption in their ladder is their own, each of t ties counting 1/t, and its
      chance, `exact_chance`;
    - `n` ladders;
    - with return_scores, lists of n whose means are the results: `scores` of worst, and `scores_NAME`. Ladders that do
      not count for a result get its mean.

    Raises ValueError if embeddings or texts are not finite [m, dim] of one shape, lengths differ, counts are not
    integers or occur twice in a ladder, or a ladder has two `held`, an unknown `held`, or fewer than two clips.

    >>> counts, ladders, same = [1, 2, 3, 1, 2, 3], [0, 0, 0, 1, 1, 1], ["span"] * 6
    >>> z = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    >>> result = count_instances(z, z, counts, ladders, same)
    >>> result["worst"], result["exact"], round(result["exact_chance"], 3)
    (1.0, 1.0, 0.333)
    """
    z, captions = read_matrix("embeddings", embeddings), read_matrix("texts", texts)
    if captions.shape != z.shape:
        raise ValueError(f"texts must have the shape of embeddings, {z.shape}; got {captions.shape}.")
    number, values = read_codes("counts", counts, len(z))
    ladder, names = read_codes("ladders", ladders, len(z))
    kept = read_column("held", held, len(z))
    unknown = np.flatnonzero(~np.isin(kept, list(HELD)))
    if len(unknown):
        value = kept[unknown[0]].item()
        raise ValueError(
            f"held must be one of {list(HELD)}; row {unknown[0]} has {value!r}. "
            f"Did you mean {nearest_name(str(value), list(HELD))!r}?"
        )
    if isinstance(values[0], str):
        raise ValueError(f"counts must be integers; row 0 has {values[number[0]]!r}.")
    codes, known = read_codes("held", kept, len(z))
    check_within("ladder", names, ladder, "values of held", codes, known)
    count_of_row = np.array(values, np.int64)[number]
    rungs = []  # the clips of each ladder sorted by count, ladders in order of appearance
    for code in dict.fromkeys(ladder.tolist()):
        members = np.flatnonzero(ladder == code)
        rows = members[np.argsort(count_of_row[members], kind="stable")]
        if len(rows) < 2 or (np.diff(count_of_row[rows]) == 0).any():
            shown = count_of_row[rows].tolist()
            raise ValueError(f"Ladder {names[code]!r} has the counts {shown}; it needs 2 or more, all different.")
        rungs.append(rows)
    held_in = kept[[rows[0] for rows in rungs]]

    z, captions = unit_rows(z), unit_rows(captions)
    words = sorted(set.intersection(*(set(count_of_row[rows].tolist()) for rows in rungs)))[-PERMUTED:]
    orders = np.array(list(permutations(range(len(words)))), np.int64)
    # The score of each ladder under each permutation of the captions; the first is the identity.
    table, exact = np.empty((len(rungs), len(orders))), np.empty(len(rungs))
    for place, rows in enumerate(rungs):
        cosines = z[rows] @ captions[rows].T
        moved = np.searchsorted(count_of_row[rows], words)
        exchanged = np.tile(np.arange(len(rows)), (len(orders), 1))
        exchanged[:, moved] = moved[orders]
        own = cosines[np.arange(len(rows)), exchanged]
        # The share of pairs whose sum of cosines is larger than with exchanged captions, ties 1/2.
        i, j = np.triu_indices(len(rows), 1)
        gains = own[:, i] + own[:, j] - cosines[i, exchanged[:, j]] - cosines[j, exchanged[:, i]]
        table[place] = won_shares(gains).mean(axis=1)
        steps = cosines - np.diagonal(cosines)[:, None]
        is_first = (steps <= NEAR).all(axis=1)
        exact[place] = (is_first / (np.abs(steps) <= NEAR).sum(axis=1)).mean()
    worst = np.min([table[held_in == name].mean(axis=0) for name in set(held_in.tolist())], axis=0)
    columns: dict[str, Floats] = {
        f"order_{name}": of_all(table[held_in == name, 0], held_in == name) for name in HELD if name in held_in
    }
    columns["worst"] = min(columns.values(), key=lambda column: float(column.mean()))
    columns["trivial"] = np.full(len(rungs), np.quantile(worst, 0.95, method="higher"))
    columns |= {"exact": exact, "exact_chance": np.array([1 / len(rows) for rows in rungs])}
    return result_of(MEASURES, columns, {"chance": 0.5, "n": len(rungs)}, return_scores)


CountInstances = metric_class(
    count_instances,
    [
        {"embeddings": "numbers", "texts": "numbers", "counts": "integer", "ladders": ladder, "held": "text"}
        for ladder in ("text", "integer")
    ],
    citation=_CITATION,
)


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

_OUTSIDE = "Scores of single ladders are weighted, so that the ladders of a part represent all."


def _order(heading: str, meaning: str, column: str, **more: Any) -> Fields:
    """Return the fields of a share of pairs that are ordered by their counts."""
    words = f"how often two clips are ordered by their counts {meaning}"
    return share(heading, words, null="chance", column=column, outside=_OUTSIDE, **more)


MEASURES = {
    "worst": _order("Counting", "with the held quantity for which this is lowest", "score", trivial="trivial"),
    "trivial": share(
        "trivial",
        "score that at most 1 of 24 permutations of the number words, equal in all ladders, exceeds",
        shown=False,
    ),
    "chance": share("chance", "all orders of a model without knowledge: exactly 1/2", shown=False),
    **{
        f"order_{name}": _order(f"{name} held", f"if {meaning} is independent of the count", f"score_order_{name}")
        for name, meaning in HELD.items()
    },
    "exact": share(
        "exact",
        "how often the nearest caption of a ladder is the clip's own",
        null="exact_chance",
        column="score_exact",
    ),
    "exact_chance": share("chance of exact", "one of the captions of a ladder at random", shown=False),
    "n": count("n", "number of ladders"),
}
"""Description of each number that `count_instances` returns, by name, the score first."""
