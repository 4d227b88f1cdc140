"""Shares of right answers with references and intervals, for the metrics over questions with options."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .answer_words import LETTERS
from .answers import REFUSED
from .arrays import Floats, Ints
from .evaluated import MOST, Fields, count, share
from .questions import Questions, sums_at

ANSWER_MEASURES: Fields = {
    "answers": count("answers", "number of answers: a question has one in each order of its options", 0.0),
    "unparsed": {
        "heading": "unparsed",
        "meaning": "number of answers that name no option, refusals among them; they are wrong",
        "range": (0.0, MOST),
        "digits": 0,
    },
    "refused": count("refused", "number of answers that are refusals", 0.0),
    "accuracy_parsed": share("accuracy of the parsed", "accuracy among the answers that name an option", shown=False),
}
"""The description of what `share_row` counts of answers, by name; see `MEASURES` of a metric."""

RESAMPLES = 2000
"""Draws of the bootstrap."""

_CERTAINTY = 1.959963984540054  # the .975 quantile of the normal distribution

Pairs = Sequence[tuple[Floats, Floats]]
"""Numerators and denominators of a mean of ratios Σ numerator / Σ denominator, [n] each."""


def share_row(a: Questions, mask: NDArray[np.bool_], draws: "Intervals | None" = None) -> dict[str, Any]:
    """The accuracy on some questions, and its references without listening."""
    rows = mask[a.question]
    correct, n = a.per_question(a.right), int(mask.sum())
    accuracy, chance = float(correct[mask].mean()), float((1 / a.k[mask]).mean())
    taken = rows & (a.choice >= 0)
    weight = float(a.weight[taken].sum())
    row = {
        "n": n,
        "answers": int(rows.sum()),
        "accuracy": accuracy,
        "interval": None,
        "adjusted": adjusted(accuracy, chance),
        "chance": chance,
        "majority": _best_of_each_task(a, mask, _text_counts),
        "best_position": _best_of_each_task(a, mask, _place_counts),
        "unparsed": int(rows.sum() - taken.sum()),
        "refused": sum(a.rules[place] in REFUSED for place in np.flatnonzero(rows)),
        "accuracy_parsed": float((a.weight * a.right)[taken].sum()) / weight if weight else None,
    }
    if draws is not None:
        draws.ask([(correct * mask, mask.astype(np.float64))], row, "interval")
    return row


def adjusted(accuracy: float, chance: float) -> float:
    """An accuracy, 0 being chance and 1 everything right."""
    return (accuracy - chance) / (1 - chance)


def _best_of_each_task(
    a: Questions, mask: NDArray[np.bool_], counts: Callable[[Questions, NDArray[np.bool_]], Floats]
) -> float:
    """Accuracy of a constant answer, the best one in each task."""
    parts = [mask & (a.task == task) for task in np.unique(a.task[mask])]
    return float(sum(counts(a, part).max() for part in parts) / mask.sum())


def _text_counts(a: Questions, mask: NDArray[np.bool_]) -> Floats:
    texts = [a.text[place] for place in np.flatnonzero(mask)]
    return np.unique(texts, return_counts=True)[1].astype(np.float64)


def _place_counts(a: Questions, mask: NDArray[np.bool_]) -> Floats:
    rows = mask[a.question]
    return sums_at(a.place[rows], a.weight[rows])


def groups_right(a: Questions, mask: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Whether all of some questions of a group are right, at its first question, and 1 there, [n] each."""
    wrong = np.bincount(a.group[mask], a.per_question(a.right)[mask] < 1, minlength=a.group.max() + 1)
    first = np.flatnonzero(mask)[np.unique(a.group[mask], return_index=True)[1]]
    right, count = np.zeros(a.n), np.zeros(a.n)
    count[first] = 1
    right[first] = wrong[a.group[first]] == 0
    return right, count


def group_numbers(a: Questions, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Number of groups, and the number right by chance."""
    logarithms = np.bincount(a.group[mask], (a.orders * np.log(a.k))[mask], minlength=a.group.max() + 1)
    present = np.unique(a.group[mask])
    return {"groups": len(present), "groups_right_chance": float(np.exp(-logarithms[present]).mean())}


def order_numbers(a: Questions, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Scores of questions with several orders; empty where there are none."""
    several = mask & (a.orders > 1)
    if not several.any():
        return {}
    orders, k = a.orders[several].astype(np.float64), a.k[several].astype(np.float64)
    parts = {name: float(values[several].mean()) for name, values in order_scores(a).items()}
    return parts | {
        "consistency_chance": float((1 / k).mean()),
        "all_orders_right_chance": float(np.exp(-orders * np.log(k)).mean()),
    }


def order_scores(a: Questions) -> dict[str, Floats]:
    """Scores of orders for each question, [n]; consistency is 0 where there is only one order."""
    correct = a.per_question(a.right)
    rows: list[list[int]] = [[] for _ in range(a.n)]
    for row, place in enumerate(a.question):
        rows[place].append(row)
    same = np.zeros(a.n)
    for place, answers in enumerate(rows):
        texts = [a.text_taken[row] for row in answers]
        pairs = list(itertools.combinations(texts, 2))
        same[place] = np.mean([one is not None and one == two for one, two in pairs]) if pairs else 0.0
    return {"correctness": correct, "consistency": same, "all_orders_right": (correct == 1).astype(np.float64)}


def positions(a: Questions, rows: NDArray[np.bool_]) -> dict[str, Any]:
    """Share of each position among the chosen options, and its distance from the share without a habit."""
    taken = rows & (a.choice >= 0)
    weight, most = a.weight[taken], int(a.options[rows].max())
    if not len(weight):
        return {"position": {letter: None for letter in LETTERS[:most]}, "position_distance": None}
    shares = sums_at(a.choice[taken], weight, most)
    by_size = np.bincount(a.options[taken], weight)
    expected = np.array([sum(part / k for k, part in enumerate(by_size) if k > place) for place in range(most)])
    shares /= shares.sum()
    distance = float(np.abs(shares - expected / expected.sum()).sum() / 2)
    return {
        "position": {letter: float(share) for letter, share in zip(LETTERS, shares, strict=False)},
        "position_distance": distance,
    }


def mean_of_ratios(pairs: Pairs) -> float:
    """The mean of the ratios Σ numerator / Σ denominator."""
    return float(np.mean([numerator.sum() / denominator.sum() for numerator, denominator in pairs]))


class Intervals:
    """95 % intervals of means of ratios, all by the same draws of entire groups."""

    def __init__(self, group: Ints) -> None:
        self._group = group
        self._asked: list[tuple[Pairs, dict[str, Any], str]] = []

    def ask(self, pairs: Pairs, table: dict[str, Any], key: str) -> None:
        """Have `fill` write the interval into a table."""
        table[key] = None
        self._asked.append((pairs, table, key))

    def fill(self) -> None:
        """Draw, and write every interval that was asked for."""
        columns = [column for pairs, _, _ in self._asked for pair in pairs for column in pair]
        sums = np.stack([sums_at(self._group, column) for column in columns], axis=1)
        place, drawn = 0, _drawn_sums(sums)
        for pairs, table, key in self._asked:
            part = slice(place, place + 2 * len(pairs))
            place = part.stop
            table[key] = _share_interval(mean_of_ratios(pairs), sums[:, part], drawn[:, part])


def _drawn_sums(sums: Floats) -> Floats:
    """Sums [RESAMPLES, columns] over as many groups as there are, drawn with replacement."""
    rng, count = np.random.default_rng(0), len(sums)
    # In blocks, so that memory does not grow with the number of groups.
    block = max(1, min(RESAMPLES, 2**22 // count))
    totals = []
    for start in range(0, RESAMPLES, block):
        size = min(block, RESAMPLES - start)
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        totals.append(np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count) @ sums)
    return np.concatenate(totals)


def _share_interval(value: float, sums: Floats, drawn: Floats) -> list[float]:
    """The interval of a value, from alternating sums of numerators and denominators: over groups, and over draws."""
    count = int((sums[:, 1::2] > 0).any(axis=1).sum())
    if count == 1:
        return [0.0, 1.0]
    if value in (0.0, 1.0):
        wide = _CERTAINTY**2 / (count + _CERTAINTY**2)
        return [0.0, wide] if value == 0 else [1 - wide, 1.0]
    present = drawn[:, 1::2] > 0
    parts = np.divide(drawn[:, 0::2], drawn[:, 1::2], out=np.zeros(present.shape), where=present)
    means = parts.sum(axis=1)[present.any(axis=1)] / present.sum(axis=1)[present.any(axis=1)]
    level = _expanded_level(count)
    low, high = np.quantile(means, [level, 1 - level])
    return [float(min(low, value)), float(max(high, value))]


def _expanded_level(count: int) -> float:
    """The lower tail of the percentile interval of `count` groups: Φ(−t √(G / (G − 1))), t Student's quantile."""
    z, df = _CERTAINTY, count - 1
    # Abramowitz and Stegun, 26.7.5; for 1 to 3 degrees of freedom the series is slightly, and negligibly, too short.
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    return 0.5 * math.erfc(t * math.sqrt(count / df) / math.sqrt(2))
