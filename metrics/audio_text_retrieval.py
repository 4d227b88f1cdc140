"""Retrieval: is a clip found by its caption among all clips, and a caption by its clip among all captions?

Each caption is a query for its one clip, and each clip is a query for its captions, ranked by cosine or by given
similarities. R@k is the share of queries with a target among the first k; mAP@10 also depends on the rank of each
target in the first 10.

Ties are averaged over all orders, so that a constant model is exactly at chance: R@1 = 1/N, not 1.
Nothing is trained. All in float64.

>>> rng = np.random.default_rng(0)
>>> audio = rng.normal(size=(50, 16))
>>> text, clip_of_text = np.repeat(audio, 5, axis=0), np.arange(250) // 5
>>> result = audio_text_retrieval(audio, text + 0.1 * rng.normal(size=(250, 16)), clip_of_text)
>>> result["text_to_audio_r1"], result["text_to_audio_median_rank"], result["audio_to_text_map10"]
(1.0, 1.0, 1.0)
>>> constant = audio_text_retrieval(audio, np.ones((250, 16)), clip_of_text)
>>> round(constant["audio_to_text_r1"], 12), constant["text_to_audio_median_rank"]
(0.02, 25.5)
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Floats, Ints, read_matrix
from .columns import result_of
from .evaluated import COMPA as _CITATION
from .evaluated import MOST, Fields, count, measure, metric_class, share
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

CUTOFFS = (1, 5, 10)
"""The values of k in R@k; the last one also for mAP@10."""

_DIRECTIONS = ("text_to_audio", "audio_to_text")

_NAMES = ("r1", "r5", "r10", "map10", "median_rank")


def audio_text_retrieval(
    audio: ArrayLike | None = None,
    text: ArrayLike | None = None,
    clip_of_text: ArrayLike | None = None,
    *,
    similarity: ArrayLike | None = None,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return retrieval scores of N clips by their M captions, and of captions by their clips.

    - `audio` [N, dim], `text` [M, dim]: embeddings of any length; `clip_of_text` [M]: the row of each caption's clip in
      audio; every clip has at least one caption;
    - `similarity` [M, N] replaces audio and text: similarities of captions with clips, by default their cosines.

    Results:

    - `text_to_audio_r1`, `_r5`, `_r10`: share of the captions that have their clip among the first k of all clips;
      `text_to_audio_map10`: mean of 1/rank, 0 beyond rank 10; `text_to_audio_median_rank`;
    - `audio_to_text_r1`, `_r5`, `_r10`: share of the clips that have one of their captions among the first k of all
      captions; `audio_to_text_map10`: mean of Σ_i i/r_i, over the ranks r_1 < r_2 < … of a clip's captions that are at
      most 10, over min(10, number of its captions); `audio_to_text_median_rank`, of each clip's best caption;
    - `chance_NAME` of each: the exact chance level; k/N if each clip has one caption;
    - `n` clips, `texts` captions;
    - `intervals`: 95 % by name, [low, high]: Wilson's over clips, since captions of one clip are not independent, with
      the size that gives the variance of these means, p(1 − p)/size. Median ranks have none;
    - with return_scores, lists of N, one value per clip, whose means are the results: `scores` of text_to_audio_r1,
      `scores_NAME` of the others; none for median ranks. For text to audio these are p + (N/M)·Σ(x − p) over the
      captions of the clip, with x the score of a caption and p the mean of all; if all clips have the same number of
      captions, this is the mean of x.

    Ties: starting at the largest similarity, all within NEAR of the largest remaining one form a group. All orders
    within a group are equally likely, and results are expectations; a rank is the mean rank, for several captions of a
    clip the mean rank of the first. So a constant model scores at chance: R@1 = 1/N rather than 1.

    Raises ValueError if audio or text is not a finite [n, dim] of the same dim (the towers do not share a space),
    clip_of_text does not name a row of audio for each text, a clip has no text, or similarity is given together with
    embeddings or is not a finite [M, N].

    >>> audio_text_retrieval([[1, 0], [0, 1]], [[1, 2], [2, 1]], [0, 1])["text_to_audio_r1"]
    0.0
    """
    check_given("audio_text_retrieval", audio, text, similarity, clip_of_text=clip_of_text)
    if similarity is not None:
        s = read_matrix("similarity", similarity)
        clip = _clips(clip_of_text, *s.shape)
    else:
        a, t = unit_embeddings("audio", audio), unit_embeddings("text", text)
        clip = _clips(clip_of_text, len(t), len(a))
        check_one_space(a, t)
        s = t @ a.T
    texts, n = s.shape
    relevant = clip[:, None] == np.arange(n)
    scores = {"text_to_audio": _query_scores(s, relevant), "audio_to_text": _query_scores(s.T, relevant.T)}
    chances = {
        "text_to_audio": _chances(n, np.ones(texts, np.int64)),
        "audio_to_text": _chances(texts, relevant.sum(axis=0)),
    }
    numbers: dict[str, Any] = {"n": n, "texts": texts}
    columns: dict[str, Floats] = {}
    for direction in _DIRECTIONS:
        for name, column, chance in zip(_NAMES, scores[direction], chances[direction], strict=True):
            mean = np.median if name == "median_rank" else np.mean
            numbers[f"{direction}_{name}"] = float(mean(column))
            numbers[f"chance_{direction}_{name}"] = float(mean(chance))
            if name != "median_rank":
                if direction == "text_to_audio":
                    # Contributions of the clips to the mean p of the texts' scores: p + (N/M)·Σ(x − p) over its texts.
                    p = column.mean()
                    column = p + n / texts * np.bincount(clip, column - p, minlength=n)
                columns[f"{direction}_{name}"] = column
    result = result_of(MEASURES, columns, numbers, return_scores)
    return result | {"intervals": {name: mean_interval(column) for name, column in columns.items()}}


# Features have one length, the number of captions; the clips, which are fewer, are passed to `compute`.
AudioTextRetrieval = metric_class(
    audio_text_retrieval,
    {"text": "numbers", "clip_of_text": "number"},
    citation=_CITATION,
    whole=False,
    instead=("similarity",),
)


# ----- inputs
def _clips(clip_of_text: Any, texts: int, n: int) -> Ints:
    """Return the clip of each text, [M]."""
    keys = read_keys("clip_of_text", clip_of_text)
    if len(keys) != texts:
        raise ValueError(f"clip_of_text must have one entry per text ({texts}); got {len(keys)}.")
    wrong = [row for row, key in enumerate(keys) if not isinstance(key, int) or not 0 <= key < n]
    if wrong:
        raise ValueError(
            f"clip_of_text must hold rows of the {n} clips, from 0 to {n - 1}; row {wrong[0]} has {keys[wrong[0]]!r}."
        )
    without = sorted(set(range(n)) - set(keys))
    if without:
        raise ValueError(f"Every clip needs a text; {len(without)} of {n} have none, the first is clip {without[0]}.")
    return np.array(keys)


# ----- ranks
def _query_scores(s: Floats, relevant: NDArray[np.bool_]) -> Floats:
    """Return the scores of queries with similarities [q, c] to candidates, some of them targets, [5, q]; see _NAMES."""
    table = np.empty((len(_NAMES), len(s)))
    for query, (values, sought) in enumerate(zip(s, relevant, strict=True)):
        order = np.argsort(-values, kind="stable")
        starts = tie_starts(values[order])
        table[:, query] = _group_scores(starts, len(values), np.add.reduceat(sought[order].astype(np.int64), starts))
    return table


def _chances(candidates: int, counts: Ints) -> Floats:
    """Return the scores [5, q] of queries with these numbers of targets if all candidates are tied."""
    kinds, place = np.unique(counts, return_inverse=True)
    scores = [_group_scores(np.zeros(1, np.int64), candidates, np.array([count])) for count in kinds]
    return np.array(scores).T[:, place]


def _group_scores(starts: Ints, candidates: int, counts: Ints) -> list[float]:
    """Return the scores of a query from the starts of its groups of ties and the number of targets in each."""
    sizes = np.diff(starts, append=candidates)
    first = int(np.flatnonzero(counts)[0])
    before, tied, sought = int(starts[first]), int(sizes[first]), int(counts[first])
    precisions = expected_precisions(starts, sizes, counts)[: CUTOFFS[-1]]
    return [
        *(hit_chance(k - before, tied, sought) for k in CUTOFFS),
        float(precisions.sum()) / min(CUTOFFS[-1], int(counts.sum())),
        before + (tied + 1) / (sought + 1),
    ]


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

_OUTSIDE = (
    "Values of single clips are their contributions to the mean over all captions; if clips have different "
    "numbers of captions, these can lie outside its range."
)
_WAYS = {
    "text_to_audio": ("captions that have their clip", "of all clips"),
    "audio_to_text": ("clips that have one of their captions", "of all captions"),
}
_PRECISIONS = {
    "text_to_audio": "mean over captions of 1 over the rank of the clip, 0 beyond rank 10",
    "audio_to_text": "mean average precision of a clip's captions among the first 10",
}
_MEDIANS = {
    "text_to_audio": "median over captions of the rank of their clip",
    "audio_to_text": "median over clips of the rank of the best of their captions",
}


def _measures() -> dict[str, Fields]:
    """Return the measures of both directions, then the chance of each, then the counts."""
    measures: dict[str, Fields] = {}
    for way, (sought, among) in _WAYS.items():
        arrow = way.replace("_to_", "→")
        shares = {"map10": ("mAP@10", _PRECISIONS[way])}
        for k in CUTOFFS:
            first = "first" if k == 1 else f"among the first {k}"
            shares[f"r{k}"] = (f"R@{k}", f"share of the {sought} {first} {among}")
        for name in (*(f"r{k}" for k in CUTOFFS), "map10"):
            heading, meaning = shares[name]
            column = "score" if (way, name) == ("text_to_audio", "r1") else f"score_{way}_{name}"
            outside = {"outside": _OUTSIDE} if way == "text_to_audio" else {}
            measures[f"{way}_{name}"] = share(f"{arrow} {heading}", meaning, column=column, **outside)
        measures[f"{way}_r5"]["shown"] = False
        rank = measure(f"{arrow} median rank", _MEDIANS[way], range=(1.0, MOST), digits=1, less_is_better=True)
        measures[f"{way}_median_rank"] = rank
    chances = {}
    for name, fields in measures.items():
        fields["null"] = f"chance_{name}"
        kept = {field: fields[field] for field in ("range", "digits") if field in fields}
        meaning = f"{fields['heading']} of a model without knowledge, exactly"
        chances[f"chance_{name}"] = measure(f"chance of {fields['heading']}", meaning, shown=False, **kept)
    counts = {"n": count("n", "number of clips"), "texts": count("captions", "number of captions")}
    return measures | chances | counts


MEASURES = _measures()
"""Description of each number that `audio_text_retrieval` returns, by name, the score first."""
