"""Scores of single questions, and what a question is told apart by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row

from .base import Floats


def mean_of_parts(correct: Floats, parts: NDArray[np.int64]) -> Floats:
    """Scores, [n], whose mean is the mean over parts of the share of right ones: that, and by how much a question is
    off the share of its part, weighted so that parts count the same.

    The plain weights have the same mean. Theirs would vary with how many questions of each part are drawn again, and
    an interval of who is always right would not be 1.
    """
    sizes = np.bincount(parts)
    shares = np.bincount(parts, correct) / np.maximum(sizes, 1)
    count = int((sizes > 0).sum())
    scores: Floats = shares.sum() / count + len(parts) / (count * sizes[parts]) * (correct - shares[parts])
    return scores


def all_right(correct: Floats, groups: NDArray[np.int64], parts: NDArray[np.int64]) -> Floats:
    """Scores, [n], whose mean over the questions of a part is the share of its groups that are all right: that, and by
    how much a group is off it, weighted so that groups count the same; see `mean_of_parts`."""
    scores = np.zeros(len(correct))
    for part in np.unique(parts):
        members = np.flatnonzero(parts == part)
        numbers = np.unique(groups[members], return_inverse=True)[1].reshape(-1)
        is_right, sizes = np.bincount(numbers, correct[members] < 1) == 0, np.bincount(numbers)
        share, weights = is_right.mean(), len(members) / (len(sizes) * sizes)
        scores[members] = (share + weights * (is_right - share))[numbers]
    return scores


def of_all(scores: Floats, counted: NDArray[np.bool_]) -> Floats:
    """Scores, [n], of all questions, from those of the questions that count, with the same mean: the others stand at
    it, and change nothing however often they are drawn.

    Args:
        scores: of the questions that count.
        counted: which do, [n].
    """
    mean = scores.mean()
    every: Floats = np.full(len(counted), mean)
    every[counted] += len(counted) / len(scores) * (scores - mean)
    return every


def usual_choices(ids: Sequence[str], choices: Sequence[int]) -> list[int]:
    """What is chosen most often in the answers to each question, of several the first: of each id, in the order in
    which ids first come.

    Args:
        ids: of the question of each answer.
        choices: what each answer chooses, as many.
    """
    by_question: dict[str, list[int]] = {}
    for id, choice in zip(ids, choices, strict=True):
        by_question.setdefault(id, []).append(choice)
    return [Counter(taken).most_common(1)[0][0] for taken in by_question.values()]


def constant_answers(rows: Sequence[Row]) -> float:
    """The share of questions that are answered rightly by always giving the text, or always taking the position, that
    is right most often in their task: the better of the two, chosen when all answers are known."""
    right = 0
    for task in dict.fromkeys(row["task"] for row in rows):
        answers = [(row["answer"], row["options"].index(row["answer"])) for row in rows if row["task"] == task]
        right += max(max(Counter(values).values()) for values in zip(*answers, strict=True))
    return right / len(rows)


def overlap_quartiles(seconds: Sequence[float]) -> tuple[str, ...]:
    """Names of quartiles of the overlap, by what they span; without overlap is a group of its own."""
    values = np.array(seconds, np.float64)
    positive = values[values > 0]
    if not len(positive):
        return ("0 s",) * len(values)
    quartile = np.searchsorted(np.quantile(positive, [0.25, 0.5, 0.75]), values)
    names = {}
    for number in set(quartile[values > 0].tolist()):
        part = values[(quartile == number) & (values > 0)]
        low, high = f"{part.min():.2f}", f"{part.max():.2f}"
        names[number] = f"{low} s" if low == high else f"{low} to {high} s"
    return tuple(
        "0 s" if value == 0 else names[number] for value, number in zip(values, quartile.tolist(), strict=True)
    )
