"""Counting: does an embedding order clips by how often the same sound is heard, also beyond the counts of training?

A ladder is some clips of one sound that is heard 1, 2 … times. What grows with the count elsewhere, such as energy, is
held in some ladders: there it carries no information. A probe that is trained on low counts of other labels orders the
high counts of a label, and one that is trained on high counts the low ones: so it must extrapolate, across labels too.
With captions nothing is trained: two clips and their captions have to match. The headline is the worst of what is held,
so that a model that reads energy alone, or extent alone, is at chance.

>>> rng = np.random.default_rng(0)
>>> counts, ladders = np.tile([2, 3, 4, 5], 60), np.repeat(np.arange(60), 4)
>>> held, labels = np.array(list(HELD))[ladders % 4], ladders // 4 % 5
>>> z = rng.normal(size=(240, 8)) + 4 * counts[:, None]
>>> result = count_instances(z, counts, ladders, held, labels)
>>> round(result["worst"], 1), result["chance"], result["n"]
(1.0, 0.5, 60)
>>> count_instances(0 * z, counts, ladders, held, labels)["worst"]
0.5
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Floats, Ints, above_share, nearest_name, read_matrix, unit_rows
from .columns import check_within, of_all, read_codes, read_column
from .evaluated import COAT as _CITATION
from .evaluated import MOST, Fields, count, measure, metric_class, share
from .probing import fit_probe, standardised_rows
from .similarity import NEAR, won_shares

HELD = {
    "energy": "the energy of a clip",
    "span": "the time from the first onset to the last",
    "density": "the time from one onset to the next",
    "activity": "the time for which the sound is heard",
}
"""What can be held, in words."""

BOUND = 3
"""The largest count that is low."""

PERMUTED = 4
"""Number words that are permuted for the floor, the largest that all ladders have."""

FOLDS = 5
"""Folds of labels at most."""


def count_instances(
    embeddings: ArrayLike,
    counts: Any,
    ladders: Any,
    held: Any,
    labels: Any,
    *,
    texts: ArrayLike | None = None,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how often two clips of a ladder are ordered by their counts, of m clips in n ladders.

    - `embeddings` [m, dim]; `counts` [m], integers that differ within a ladder; `ladders` [m] and `labels` [m], strings
      or integers; `held` [m], of HELD: what tells nothing of the count. A ladder has one label and one `held`.
    - Without `texts`, for each value of `held` by itself: labels are dealt to at most 5 folds. Ridge regression of the
      count is trained on the clips with at most `BOUND` events and predicts the others (up), and the other way round
      (down). Trained are the labels of all folds but two, the next fold chooses the penalty by the squared error of its
      clips of the training counts, and the clips of the fold itself are tested; with two labels, every second ladder of
      the other label chooses. The score of a ladder is the share of pairs of tested clips whose predictions are ordered
      as their counts, ties 1/2, up and down separately, and the mean of both.
    - With `texts` [m, dim], the captions of the clips: the score of a ladder is the share of all its pairs (i, j) with
      cos(i, i) + cos(j, j) > cos(i, j) + cos(j, i), of clip and caption, ties, within NEAR, 1/2.

    Results, None where they do not apply:

    - `worst`: the least of `order_energy`, `order_span`, `order_density` and `order_activity`, the means of the ladders
      where this is held. `chance` is exactly 1/2 for each; the least of several lies below it by chance;
    - `floor`, with `texts`: all ladders have the same number words, so a model that does not know them may be lucky in
      all alike. The four largest counts that all ladders have exchange their captions, in all 24 ways, everywhere
      likewise; it is the second largest `worst` of these, so that 1 of 24 is above it at most; with fewer counts that
      all ladders have, and so 6 ways or 2, the largest, and none is above it;
    - `order_up`, `order_down`: means over all ladders of the two ways of the probe;
    - `error`: mean of |prediction − count| over tested clips, the mean of the means of ladders; `error_constant`: the
      same of the training count that is nearest to the tested ones, the best constant of those that were trained;
    - `exact`: share of clips whose nearest caption in their ladder is that of the clip, of t ties each 1/t, and its
      chance, `exact_chance`;
    - `n` ladders;
    - with return_scores, lists of n whose means are the results: `scores` of worst, and `scores_NAME`. Ladders that do
      not count for a result have its mean.

    Raises ValueError when embeddings or texts are not finite [m, dim] of one shape, lengths differ, counts are no
    integers or occur twice in a ladder, a ladder has two labels or two `held`, an unknown `held`, fewer than two
    clips, without texts fewer than two on each side of `BOUND`, or there is but one label where something is held.

    >>> counts, ladders, same = [1, 2, 3, 1, 2, 3], [0, 0, 0, 1, 1, 1], ["span"] * 6
    >>> z = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    >>> result = count_instances(z, counts, ladders, same, ladders, texts=z)
    >>> result["worst"], result["exact"], round(result["exact_chance"], 3)
    (1.0, 1.0, 0.333)
    """
    z = read_matrix("embeddings", embeddings)
    rungs = _read_rungs(counts, ladders, held, labels, len(z))
    if texts is None:
        columns = _probed(z, rungs)
    else:
        captions = read_matrix("texts", texts)
        if captions.shape != z.shape:
            raise ValueError(f"texts must have the shape of embeddings, {z.shape}; got {captions.shape}.")
        columns = _matched(z, captions, rungs)
    order = columns.pop("order")
    parts = {name: of_all(order[rungs.held == name], rungs.held == name) for name in HELD if name in rungs.held}
    columns |= {f"order_{name}": column for name, column in parts.items()}
    columns["worst"] = min(parts.values(), key=lambda column: float(column.mean()))
    numbers: dict[str, Any] = {name: float(column.mean()) for name, column in columns.items()}
    numbers |= {"chance": 0.5, "n": len(order)}
    result = {name: numbers.get(name) for name in MEASURES}
    if return_scores:
        for name, fields in MEASURES.items():
            if "column" in fields:
                key = f"scores{fields['column'].removeprefix('score')}"
                result[key] = columns[name].tolist() if name in columns else None
    return result


CountInstances = metric_class(
    count_instances,
    [
        {"embeddings": "numbers", "counts": "integer", "ladders": ladder, "held": "text", "labels": label}
        for ladder in ("text", "integer")
        for label in ("text", "integer")
    ],
    citation=_CITATION,
)


@dataclass(frozen=True)
class _Rungs:
    """Clips in ladders.

    Attributes:
        counts: of each clip, [m].
        ladder: number of each clip's ladder, by its name, [m].
        label: of each clip, likewise.
        labels: their names.
        rows: the clips of each ladder by their counts, ladders as they first appear.
        held: what is held in each of these ladders, [n].
    """

    counts: Ints
    ladder: Ints
    label: Ints
    labels: Sequence[Any]
    rows: Sequence[Ints]
    held: NDArray[Any]


def _read_rungs(counts: Any, ladders: Any, held: Any, labels: Any, n: int) -> _Rungs:
    """The clips of ladders, or ValueError."""
    number, values = read_codes("counts", counts, n)
    ladder, names = read_codes("ladders", ladders, n)
    kept, label = read_column("held", held, n), read_codes("labels", labels, n)
    unknown = np.flatnonzero(~np.isin(kept, list(HELD)))
    if len(unknown):
        value = kept[unknown[0]].item()
        raise ValueError(
            f"held must be one of {list(HELD)}; row {unknown[0]} has {value!r}. "
            f"Did you mean {nearest_name(str(value), list(HELD))!r}?"
        )
    if isinstance(values[0], str):
        raise ValueError(f"counts must be integers; row 0 has {values[number[0]]!r}.")
    for wholes, (whole, of_whole) in (("values of held", read_codes("held", held, n)), ("labels", label)):
        check_within("ladder", names, ladder, wholes, whole, of_whole)
    count_of_row = np.array(values, np.int64)[number]
    rows = []
    for code in dict.fromkeys(ladder.tolist()):
        members = np.flatnonzero(ladder == code)
        ordered = members[np.argsort(count_of_row[members], kind="stable")]
        if len(ordered) < 2 or (np.diff(count_of_row[ordered]) == 0).any():
            shown = count_of_row[ordered].tolist()
            raise ValueError(f"Ladder {names[code]!r} has the counts {shown}; it needs 2 or more, all different.")
        rows.append(ordered)
    return _Rungs(count_of_row, ladder, *label, rows, kept[[of_ladder[0] for of_ladder in rows]])


def _probed(z: Floats, rungs: _Rungs) -> dict[str, Floats]:
    """The scores of ladders by probes, by name, each [n]."""
    is_low = rungs.counts <= BOUND
    for rows in rungs.rows:
        if not 2 <= is_low[rows].sum() <= len(rows) - 2:
            raise ValueError(
                f"A ladder has the counts {rungs.counts[rows].tolist()}; a probe needs 2 or more up to "
                f"{BOUND} and 2 or more above it."
            )
    predictions, nearest = np.zeros(len(z)), np.zeros(len(z))
    for name in dict.fromkeys(rungs.held.tolist()):
        part = np.concatenate([rows for rows, held in zip(rungs.rows, rungs.held, strict=True) if held == name])
        part.sort()
        x, y = standardised_rows(z[part]), rungs.counts[part].astype(np.float64)
        for train, validation, test in _rotation(rungs.label[part], rungs.labels, rungs.ladder[part], name):
            low = is_low[part]
            for trained, constant in ((low, y[low].max()), (~low, y[~low].min())):
                fit, choose = ((x[rows & trained], y[rows & trained][:, None]) for rows in (train, validation))
                tested = test & ~trained
                predictions[part[tested]] = fit_probe("ridge", fit, choose, x[tested])[0][:, 0]
                nearest[part[tested]] = constant
    columns: dict[str, Floats] = {}
    for name, tested in (("order_up", ~is_low), ("order_down", is_low)):
        columns[name] = np.array([_ordered_share(predictions[rows[tested[rows]]]) for rows in rungs.rows])
    columns["order"] = (columns["order_up"] + columns["order_down"]) / 2
    for name, values in (("error", predictions), ("error_constant", nearest)):
        columns[name] = np.array([np.abs(values[rows] - rungs.counts[rows]).mean() for rows in rungs.rows])
    return columns


def _rotation(label: Ints, label_names: Sequence[Any], ladder: Ints, name: str) -> list[tuple[NDArray[np.bool_], ...]]:
    """Training, validation and test rows, as masks: labels in folds, each fold tested once."""
    labels, place = np.unique(label, return_inverse=True)
    if len(labels) < 2:
        raise ValueError(
            f"A probe is tested on other labels than it is trained on; where {name} is held, all ladders are of "
            f"{label_names[labels[0]]!r}."
        )
    folds = min(FOLDS, len(labels))
    fold = place % folds
    rotation: list[tuple[NDArray[np.bool_], ...]] = []
    for tested in range(folds):
        rest = fold != tested
        validation = fold == (tested + 1) % folds
        if folds == 2:
            validation = rest & (np.searchsorted(np.unique(ladder[rest]), ladder) % 2 == 1)
        train = rest & ~validation
        # A single ladder of the only other label does both.
        rotation.append((train, validation, ~rest) if validation.any() else (rest, rest, ~rest))
    return rotation


def _matched(z: Floats, captions: Floats, rungs: _Rungs) -> dict[str, Floats]:
    """The scores of ladders by their captions, by name, each [n]; of the floor the same for all."""
    clips, texts = unit_rows(z), unit_rows(captions)
    words = sorted(set.intersection(*(set(rungs.counts[rows].tolist()) for rows in rungs.rows)))[-PERMUTED:]
    orders = [list(order) for order in permutations(range(len(words)))]
    table, exact = np.empty((len(rungs.rows), len(orders))), []
    for place, rows in enumerate(rungs.rows):
        cosines = clips[rows] @ texts[rows].T
        moved = np.searchsorted(rungs.counts[rows], words)
        for number, order in enumerate(orders):
            columns = np.arange(len(rows))
            columns[moved] = moved[order]
            table[place, number] = _matched_share(cosines[:, columns])
        exact.append(_nearest_share(cosines))
    worst = np.min([table[rungs.held == held].mean(axis=0) for held in set(rungs.held.tolist())], axis=0)
    chance = np.array([1 / len(rows) for rows in rungs.rows])
    floor = np.full(len(chance), np.quantile(worst, 0.95, method="higher"))
    return {"order": table[:, 0], "exact": np.array(exact), "exact_chance": chance, "floor": floor}


def _matched_share(cosines: Floats) -> float:
    """The share of pairs of rows and their columns whose sum of cosines is above that of the exchange, ties 1/2."""
    steps = np.add.outer(np.diagonal(cosines), np.diagonal(cosines)) - cosines - cosines.T
    return float(won_shares(steps[np.triu_indices(len(cosines), 1)]).mean())


def _nearest_share(cosines: Floats) -> float:
    """The share of rows whose nearest column is that of their place, of t ties each 1/t."""
    steps = cosines - np.diagonal(cosines)[:, None]
    first = (steps <= NEAR).all(axis=1)
    return float((first / (np.abs(steps) <= NEAR).sum(axis=1)).mean())


def _ordered_share(values: Floats) -> float:
    """The share of pairs of values that rise, ties 1/2."""
    first, second = np.array(list(combinations(range(len(values)), 2))).T
    return float(above_share(values[second], values[first]).mean())


VERSION = 1
"""It rises with every change of code or constants that can change a number."""

_OUTSIDE = "Scores of single ladders are weighted, so that the ladders of a part stand for all."


def _order(heading: str, meaning: str, column: str, **more: Any) -> Fields:
    """The fields of a share of pairs that are ordered by their counts."""
    words = f"how often two clips are ordered by their counts {meaning}"
    return share(heading, words, null="chance", column=column, outside=_OUTSIDE, **more)


MEASURES = {
    "worst": _order("Counting", "where that succeeds least of what is held", "score", floor="floor"),
    "floor": share(
        "floor",
        "counting that 1 of 24 permutations of the number words exceeds at most, the same in all ladders",
        shown=False,
    ),
    "chance": share("chance", "all orders of a model without knowledge: exactly 1/2", shown=False),
    **{
        f"order_{name}": _order(f"{name} held", f"where {meaning} tells nothing of it", f"score_order_{name}")
        for name, meaning in HELD.items()
    },
    "order_up": _order("up", "by a probe that is trained on lower ones", "score_order_up", shown=False),
    "order_down": _order("down", "by a probe that is trained on higher ones", "score_order_down", shown=False),
    "error": measure(
        "error",
        "mean absolute error of the predicted count, beyond the counts of training",
        range=(0.0, MOST),
        null="error_constant",
        column="score_error",
        less_is_better=True,
        shown=False,
    ),
    "error_constant": measure("constant", "error of the nearest count of training", range=(0.0, MOST), shown=False),
    "exact": share(
        "exact",
        "how often the nearest caption of a ladder is that of the clip",
        null="exact_chance",
        column="score_exact",
    ),
    "exact_chance": share("chance of exact", "one of the captions of a ladder at random", shown=False),
    "n": count("n", "number of ladders"),
}
"""The description of each number of `count_instances`, by name, the score first."""
