"""Zero-shot classification: is the text of the right class the nearest text to a clip?

A class has one text or several, such as prompts around its label; its direction is the mean of their directions. With
one label per clip: top-1, top-5 and macro recall; with several: macro mAP, from the ranks of the clips of a class
sorted by similarity to it.

Ties are averaged over all orders, so that a constant model is exactly at chance. Nothing is trained. All in float64.

>>> rng = np.random.default_rng(0)
>>> text, classes = rng.normal(size=(10, 32)), np.arange(200) % 10
>>> audio = text[classes] + 0.3 * rng.normal(size=(200, 32))
>>> result = zero_shot_audio(audio, text, classes)
>>> result["top1"], result["chance_top1"], result["macro_recall"], result["map"]
(1.0, 0.1, 1.0, 1.0)
>>> constant = zero_shot_audio(np.ones((200, 32)), text, classes)
>>> constant["map"] == constant["chance_map"]
True
"""

import difflib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Floats, read_matrix, unit_rows
from .columns import result_of
from .evaluated import COMPA as _CITATION
from .evaluated import count, metric_class, share
from .similarity import (
    check_given,
    check_one_space,
    expected_precisions,
    hit_chance,
    mean_interval,
    read_keys,
    tie_starts,
    unit_embeddings,
)

_SCORES = ("top1", "top5", "macro_recall", "map")


def zero_shot_audio(
    audio: ArrayLike | None = None,
    text: ArrayLike | None = None,
    labels: Any = None,
    *,
    class_of_text: Any = None,
    similarity: ArrayLike | None = None,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how often the right class is the nearest to a clip, of n clips and C classes.

    - `audio` [n, dim], `text` [t, dim]: embeddings of any length; `class_of_text` [t]: the class of each text, by
      default its row. A class with several texts has the direction of their mean, each text at length 1;
    - `similarity` [n, t] replaces audio and text; the similarity of a class is then the mean over its texts;
    - `labels` [n]: the class of each clip; or a list of at least one class per clip.

    Results:

    - `top1`: share of the clips whose nearest class is their own; if a clip has several labels, one of them;
    - `top5`: share of the clips with a right class among the five nearest;
    - `macro_recall`: mean of top1 over the clips of a class, then over the classes that have clips. None if labels are
      lists;
    - `map`: mean over the classes that have clips of their average precision: the mean, over the clips of a class, of
      the share of its clips among all clips at least as near to the class as this one;
    - `chance_NAME` of each: the exact chance level. For map it is above the share of the class's clips, since the first
      places weigh most;
    - `n` clips, `classes` C;
    - `intervals`: 95 % by name, [low, high]: Wilson's, with the size that gives the variance of these means over clips,
      p(1 − p)/size;
    - with return_scores, lists of n whose means are the results: `scores` of top1, `scores_NAME` of the others, None if
      the result is None. For macro_recall and map they are linearised contributions: the result plus n times its
      derivative by the weight of the clip, exactly their mean; so an interval from these accounts for the effect of a
      clip on the precision of others.

    Ties: starting at the largest similarity, all within NEAR of the largest remaining one form a group. All orders
    within a group are equally likely, and results are expectations: a constant model scores at chance.

    Raises ValueError if audio or text is not a finite [n, dim] of the same dim (the towers do not share a space),
    labels do not have n entries, are not classes, or name a class twice for one clip, class_of_text does not have t
    entries, or similarity is given together with embeddings or is not a finite [n, t].

    >>> zero_shot_audio([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[0], [0, 1]])["map"]
    1.0
    """
    check_given("zero_shot_audio", audio, text, similarity, labels=labels)
    if similarity is not None:
        s = read_matrix("similarity", similarity)
        classes, weights = _classes(class_of_text, s.shape[1])
        s = s @ (weights / weights.sum(axis=0))
    else:
        a, t = unit_embeddings("audio", audio), unit_embeddings("text", text)
        check_one_space(a, t)
        classes, weights = _classes(class_of_text, len(t))
        s = a @ unit_rows(weights.T @ t).T
    relevant, has_lists = _labels(labels, classes, len(s))
    columns, chances = _class_scores(s, relevant, has_lists)
    numbers = {f"chance_{name}": chance for name, chance in chances.items()} | {"n": len(s), "classes": len(classes)}
    result = result_of(MEASURES, columns, numbers, return_scores)
    return result | {"intervals": {name: mean_interval(column) for name, column in columns.items()}}


# Features have one length, the number of clips; the texts of the classes are passed to `compute`.
ZeroShotAudio = metric_class(
    zero_shot_audio,
    [{"audio": "numbers", "labels": labels} for labels in ("text", "number", "texts", "numbers")],
    citation=_CITATION,
    whole=False,
    instead=("similarity",),
)


# ----- inputs
def _classes(class_of_text: Any, texts: int) -> tuple[dict[Any, int], Floats]:
    """Return the classes with their columns, and which text belongs to which, 0 or 1 [t, C]."""
    keys = list(range(texts)) if class_of_text is None else read_keys("class_of_text", class_of_text)
    if len(keys) != texts:
        raise ValueError(f"class_of_text must have one entry per text ({texts}); got {len(keys)}.")
    classes = {key: column for column, key in enumerate(dict.fromkeys(keys))}
    return classes, np.eye(len(classes))[[classes[key] for key in keys]]


def _labels(labels: Any, classes: dict[Any, int], n: int) -> tuple[NDArray[np.bool_], bool]:
    """Return which classes each clip has [n, C], and whether its labels are a list."""
    if hasattr(labels, "detach"):
        labels = labels.detach().cpu()
    rows = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if not isinstance(rows, list) or len(rows) != n:
        raise ValueError(f"labels must have one entry per clip ({n}); got {np.size(rows)}.")
    lists = [isinstance(row, list | tuple | np.ndarray) for row in rows]
    if any(lists) and not all(lists):
        raise ValueError(
            f"labels must be one class per clip, or a list per clip; row {lists.index(False)} is not a list."
        )
    if not any(lists):
        rows = [[key] for key in read_keys("labels", rows)]
    relevant = np.zeros((n, len(classes)), dtype=bool)
    for row, entries in enumerate(rows):
        keys = read_keys(f"labels[{row}]", entries) if lists[row] else entries
        for key in keys:
            if key not in classes:
                nearest = difflib.get_close_matches(str(key), [str(name) for name in classes], 1)
                hint = f"the nearest is {nearest[0]!r}" if nearest else f"there are {len(classes)}"
                raise ValueError(f"labels must be classes of the texts; row {row} has {key!r}, {hint}.")
            if relevant[row, classes[key]]:
                raise ValueError(f"labels of a clip must be different classes; row {row} has {key!r} twice.")
            relevant[row, classes[key]] = True
        if not keys:
            raise ValueError(f"Every clip needs a class; row {row} has none.")
    return relevant, any(lists)


# ----- scores
def _class_scores(
    s: Floats, relevant: NDArray[np.bool_], has_lists: bool
) -> tuple[dict[str, Floats], dict[str, float]]:
    """Return the contribution of each clip to each score, [n], and the chances."""
    n, count = s.shape
    hits = np.array([_hits(values, right) for values, right in zip(s, relevant, strict=True)])
    columns = {"top1": hits[:, 0], "top5": hits[:, 1]}
    kinds, clips = np.unique(relevant.sum(axis=1), return_counts=True)
    chances = {
        name: sum(hit_chance(k, count, int(kind)) * int(few) for kind, few in zip(kinds, clips, strict=True)) / n
        for name, k in (("top1", 1), ("top5", 5))
    }
    sizes = relevant.sum(axis=0)
    used = np.flatnonzero(sizes)
    if not has_lists:
        label = np.searchsorted(used, relevant.argmax(axis=1))
        recalls = np.bincount(label, hits[:, 0]) / sizes[used]
        columns["macro_recall"] = recalls.mean() + n / len(used) * (hits[:, 0] - recalls[label]) / sizes[used][label]
        chances["macro_recall"] = 1 / count
    precisions = [_average_precision(s[:, column], relevant[:, column]) for column in used]
    mean = float(np.mean([precision for precision, _ in precisions]))
    columns["map"] = mean + n * np.mean([influence for _, influence in precisions], axis=0)
    # The expected average precision of n tied clips, some of them right, over all orders.
    start, tied = np.zeros(1, np.int64), np.array([n])
    expected = [float(expected_precisions(start, tied, sizes[[column]]).sum()) / sizes[column] for column in used]
    chances["map"] = float(np.mean(expected))
    return columns, chances


def _hits(values: Floats, right: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the probability that a right class is the first, and one of the first five, from values [C]."""
    order = np.argsort(-values, kind="stable")
    starts = tie_starts(values[order])
    counts = np.add.reduceat(right[order].astype(np.int64), starts)
    first = int(np.flatnonzero(counts)[0])
    tied = int(np.append(starts, len(values))[first + 1] - starts[first])
    top1, top5 = (hit_chance(k - int(starts[first]), tied, int(counts[first])) for k in (1, 5))
    return top1, top5


def _average_precision(values: Floats, right: NDArray[np.bool_]) -> tuple[float, Floats]:
    """Return the average precision of clips [n] for a class, and its derivative by the weight of each clip, [n].

    Let y_r be whether the clip at rank r is right, Y_r the number right up to r, and P the total. Then it is Σ_r
    y_r·(Y_r/r)/P. A clip at rank k adds to Y and to r from k on, and to P: y_k·(Y_k/k − AP) + Σ_{r ≥ k} y_r·(y_k −
    Y_r/r)/r, over P. These add up to 0. In a group of ties y is the group's mean, and so is the contribution of each
    place.
    """
    order = np.argsort(-values, kind="stable")
    starts = tie_starts(values[order])
    sizes = np.diff(starts, append=len(values))
    counts = np.add.reduceat(right[order].astype(np.int64), starts)
    total = int(counts.sum())
    precision = float(expected_precisions(starts, sizes, counts).sum()) / total

    group = np.repeat(np.arange(len(starts)), sizes)
    place = np.arange(1, len(values) + 1)
    share = (counts / sizes)[group]
    share_before = np.cumsum(share) / place
    weights = np.cumsum((share / place)[::-1])[::-1]
    losses = np.cumsum((share * share_before / place)[::-1])[::-1]
    means = [(np.add.reduceat(x, starts) / sizes)[group] for x in (share_before + weights, losses)]
    influence = np.empty(len(values))
    influence[order] = (right[order] * (means[0] - precision) - means[1]) / total
    return precision, influence - influence.mean()


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "top1": share(
        "zero-shot top-1",
        "share of clips whose nearest class is right; if a clip has several labels, one of them",
        null="chance_top1",
        column="score",
    ),
    "top5": share(
        "top-5",
        "share of clips with a right class among the five nearest",
        null="chance_top5",
        column="score_top5",
    ),
    "macro_recall": share(
        "macro recall",
        "top-1 of the clips of a class, mean over classes; none if clips have several labels",
        null="chance_macro_recall",
        column="score_macro_recall",
        outside="Values of single clips are linearised contributions to the mean over classes, and can lie "
        "outside its range.",
    ),
    "map": share(
        "mAP",
        "average precision of the clips of a class sorted by similarity to it, mean over classes",
        null="chance_map",
        column="score_map",
        outside="Values of single clips are linearised contributions to the mean over classes, and can lie "
        "outside its range.",
    ),
    "chance_top1": share("chance of top-1", "top-1 of a model without knowledge, exactly", shown=False),
    "chance_top5": share("chance of top-5", "top-5 of a model without knowledge, exactly", shown=False),
    "chance_macro_recall": share(
        "chance of macro recall",
        "macro recall of a model without knowledge: 1 over the number of classes, exactly",
        shown=False,
    ),
    "chance_map": share("chance of mAP", "mAP of a model without knowledge, exactly", shown=False),
    "n": count("n", "number of clips"),
    "classes": count("classes", "number of classes to choose from"),
}
"""Description of each number that `zero_shot_audio` returns, by name, the score first."""
