"""Shared implementation of `polybench` and `audio_questions`: reading questions, shares, intervals."""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .answers import LETTERS, REFUSED, folded_words, match_answer
from .arrays import Floats, Ints
from .evaluated import MOST, Fields, count, share

TASKS = (
    *("counting", "duration", "concurrency", "classification", "detection"),
    *("counting_together", "duration_longest"),
)
"""The five tasks of the paper, in its order; then two that replace two of them and require a sense of time."""

REPLACED = {"counting": "counting_together", "duration": "duration_longest"}
"""Tasks of the paper that time-independent statistics of a clip answer in part, each with the task that replaces it in
means over tasks."""

POLARITIES = ("overlap", "alone")
"""The meaning of "Yes" in a question of concurrency: something overlaps the sound, or nothing does."""

RESAMPLES = 2000
"""Draws of the bootstrap."""

_CERTAINTY = 1.959963984540054  # the .975 quantile of the normal distribution

_LABELS = ("polyphony", "sources", "templates")

Mask = NDArray[np.bool_]

Pairs = Sequence[tuple[Floats, Floats]]
"""Numerators and denominators of a mean of ratios Σ numerator / Σ denominator, [n] each."""


# ----- inputs
@dataclass(frozen=True)
class Questions:
    """n questions and m answers to them.

    Attributes:
        question: number of the question of each answer, [m].
        place: position of the right option, [m]; choice: position of the chosen one, -1 if there is none, [m].
        text_taken: the text of the chosen option, None if there is none, [m].
        rules: the rule that read each answer, [m].
        weight: 1/R of a question with R answers, [m].
        task, group: numbers, [n]; tasks are numbered in the order of `tasks`; has_groups: whether groups were given.
        tasks: names, from `polybench` TASKS.
        text: the right answers, [n]; says_overlap: whether "Yes" means overlap, [n].
        k: number of options, [n].
        labels: groupings of the scores, [n] by name.
        overlap: seconds, NaN where unknown, [n]; None if not given.
    """

    question: Ints
    place: Ints
    choice: Ints
    text_taken: tuple[str | None, ...]
    rules: tuple[str, ...]
    weight: Floats
    task: Ints
    group: Ints
    has_groups: bool
    tasks: tuple[str, ...]
    text: tuple[str, ...]
    says_overlap: Mask
    k: Ints
    labels: Mapping[str, list[Any]]
    overlap: Floats | None

    @property
    def m(self) -> int:
        """Return the number of answers."""
        return len(self.question)

    @property
    def n(self) -> int:
        """Return the number of questions."""
        return len(self.task)

    @functools.cached_property
    def asked(self) -> dict[str, Mask]:
        """Return the questions of each task that has any, [n]."""
        masks = {task: self.task == place for place, task in enumerate(self.tasks)}
        return {task: mask for task, mask in masks.items() if mask.any()}

    @functools.cached_property
    def orders(self) -> Ints:
        """Return the number of answers of each question, [n]."""
        counts: Ints = np.bincount(self.question, minlength=self.n)
        return counts

    @functools.cached_property
    def correct(self) -> Floats:
        """Return the share of correct answers of each question, [n]."""
        return sums_at(self.question, self.choice == self.place, self.n) / self.orders

    @property
    def choices(self) -> list[int | None]:
        """Return the position that each answer takes, None if it takes none, [m]."""
        return [None if choice < 0 else int(choice) for choice in self.choice]


def read_questions(
    given: Mapping[str, Any], ids: Any, of_questions: Mapping[str, Any], parsed: bool, *, of_polybench: bool = True
) -> Questions:
    """Read the questions and answers. Raises ValueError.

    With `of_polybench`, ``tasks`` from TASKS are given; else ``kinds`` with any names, or none.
    """
    missing = [name for name, values in given.items() if values is None]
    if missing:
        rest = ", ".join(name for name in given if name not in missing) or "nothing"
        metric = "polybench" if of_polybench else "audio_questions"
        raise ValueError(f"{metric} got {rest} without {', '.join(missing)}.")
    columns = {name: _listed(name, values) for name, values in {**given, **of_questions}.items() if values is not None}
    names: list[Any] = [(row,) for row in range(len(columns["references"]))]
    if ids is not None:
        names = _names_of("ids", _listed("ids", ids))
    lengths = {name: len(values) for name, values in (columns | {"ids": names}).items()}
    if len(set(lengths.values())) > 1 or not names:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Every input needs one entry per answer, and at least one answer; got {shown}.")
    for name in {"groups", *_LABELS} & set(columns):
        columns[name] = _names_of(name, columns[name])
    tasks, of_tasks = columns.get("tasks", []), TASKS
    if not of_polybench:
        tasks = [str(entry) for entry in _names_of("kinds", columns.pop("kinds", ["all"] * len(names)))]
        of_tasks = tuple(sorted(set(tasks)))
    columns["tasks"] = tasks
    polarity = columns.get("polarity", [""] * len(names))
    choices, rules = list[int](), list[str]()
    for row, task in enumerate(tasks):
        options = _option_texts(row, columns["options"][row], columns["references"][row])
        columns["options"][row] = options
        if of_polybench and task not in TASKS:
            raise ValueError(f"tasks must be {', '.join(TASKS)}; row {row} has {task!r}.")
        if of_polybench and task == "concurrency" and sorted(map(folded_words, options)) != [("no",), ("yes",)]:
            raise ValueError(f"Options of concurrency must be Yes and No; row {row} has {options!r}.")
        if of_polybench and (task != "concurrency" or polarity[row] in (None, "")):
            polarity[row] = "overlap"
        if of_polybench and polarity[row] not in POLARITIES:
            raise ValueError(f"polarity must be {' or '.join(POLARITIES)}; row {row} has {polarity[row]!r}.")
        if "overlap" in columns:
            columns["overlap"][row] = _seconds(row, columns["overlap"][row])
        entry = columns["predictions"][row]
        if parsed:
            choices.append(_position_given(row, entry, options))
            rules.append("position" if choices[-1] >= 0 else "nothing")
        elif isinstance(entry, str):
            match = match_answer(entry, options)
            choices.append(-1 if match.option is None else match.option)
            rules.append(match.rule)
        else:
            raise ValueError(f"predictions must be texts, or positions with parsed=True; row {row} has {entry!r}.")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    question = np.array([numbers[name] for name in names])
    first = np.unique(question, return_index=True)[1]
    shared = {name: entries for name, entries in columns.items() if name != "predictions"}
    shared["options"] = [sorted(texts) for texts in columns["options"]]
    for row, place in enumerate(first[question]):
        for name, entries in shared.items():
            if entries[row] != entries[place]:
                what = "the set of options" if name == "options" else name
                raise ValueError(
                    f"Answers with the same id belong to one question; those to {names[row]!r} disagree in {what}: "
                    f"row {place} has {entries[place]!r}, row {row} has {entries[row]!r}."
                )
    references, options = columns["references"], columns["options"]
    groups, overlap = columns.get("groups"), columns.get("overlap")
    # Sorted by name, so that draws do not depend on the order of the rows.
    keys = groups or (names if ids is not None else None)
    return Questions(
        question=question,
        place=np.array([texts.index(text) for texts, text in zip(options, references, strict=True)]),
        choice=np.array(choices),
        text_taken=tuple(
            texts[choice] if choice >= 0 else None for texts, choice in zip(options, choices, strict=True)
        ),
        rules=tuple(rules),
        weight=1 / np.bincount(question)[question],
        task=np.array([of_tasks.index(tasks[row]) for row in first]),
        group=np.unique([repr(keys[row]) for row in first], return_inverse=True)[1] if keys else np.arange(len(first)),
        has_groups=groups is not None,
        tasks=of_tasks,
        text=tuple(references[row] for row in first),
        says_overlap=np.array([polarity[row] == "overlap" for row in first]),
        k=np.array([len(options[row]) for row in first]),
        labels={name: [columns[name][row] for row in first] for name in _LABELS if name in columns},
        overlap=None if overlap is None else np.array([overlap[row] for row in first], np.float64),
    )


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise ValueError(f"{name} must be a list; got {values!r}.")
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    entries = values.tolist() if hasattr(values, "tolist") else values
    try:
        return list(entries)
    except TypeError:
        raise ValueError(f"{name} must be a list; got {values!r}.") from None


def _names_of(name: str, entries: Sequence[Any]) -> list[Any]:
    """Return entries as texts and whole numbers, or raise ValueError."""
    for row, entry in enumerate(entries):
        number = isinstance(entry, int | float) and not isinstance(entry, bool) and float(entry).is_integer()
        if not isinstance(entry, str) and not number:
            raise ValueError(f"{name} must be texts or integers; row {row} has {entry!r}.")
    return [entry if isinstance(entry, str) else int(entry) for entry in entries]


def _option_texts(row: int, entry: Any, reference: Any) -> list[str]:
    """Return the options of a row, or raise ValueError."""
    texts = entry.tolist() if hasattr(entry, "tolist") else entry
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"options must hold a list of texts per answer; row {row} has {entry!r}.")
    if not 2 <= len(texts) <= len(LETTERS):
        raise ValueError(f"A question needs 2 to {len(LETTERS)} options; row {row} has {len(texts)}: {texts!r}.")
    if not isinstance(reference, str):
        raise ValueError(f"references must be texts; row {row} has {reference!r}.")
    count = list(texts).count(reference)
    if count != 1:
        times = "not" if count == 0 else f"{count} times"
        raise ValueError(
            f"The right answer must occur once among its options; in row {row} {reference!r} is {times} in {texts!r}."
        )
    return list(texts)


def _seconds(row: int, entry: Any) -> float | None:
    if entry is None or (isinstance(entry, float) and math.isnan(entry)):
        return None
    number = isinstance(entry, int | float | np.number) and not isinstance(entry, bool)
    if not number or not 0 <= float(entry) < math.inf:
        raise ValueError(f"overlap must be seconds, at least 0, or None; row {row} has {entry!r}.")
    return float(entry)


def _position_given(row: int, entry: Any, options: Sequence[str]) -> int:
    if entry is None or entry == "":
        return -1
    try:
        position = int(entry)
        exact = not isinstance(entry, bool) and (isinstance(entry, str) or position == entry)
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact or not -1 <= position < len(options):
        raise ValueError(
            f"With parsed=True a prediction must be 0 to {len(options) - 1}, or -1; row {row} has {entry!r}."
        )
    return position


def in_means(tasks: Iterable[str]) -> list[str]:
    """Return the tasks that enter means over tasks: all but those replaced by another of them."""
    asked = list(tasks)
    return [task for task in asked if REPLACED.get(task) not in asked]


def sums_at(places: Ints, values: Any, count: int = 0) -> Floats:
    """Return sums of values by index."""
    return np.bincount(places, values, minlength=count).astype(np.float64)


# ----- shares
def share_row(a: Questions, mask: Mask, draws: "Intervals | None" = None) -> dict[str, Any]:
    """Return the accuracy on some questions, and its references without listening."""
    rows, n = mask[a.question], int(mask.sum())
    accuracy, chance = float(a.correct[mask].mean()), float((1 / a.k[mask]).mean())
    taken = rows & (a.choice >= 0)
    weight = float(a.weight[taken].sum())
    majority = best_position = 0.0
    for task in np.unique(a.task[mask]):
        part = mask & (a.task == task)
        majority += max(Counter(a.text[place] for place in np.flatnonzero(part)).values())
        of_part = part[a.question]
        best_position += sums_at(a.place[of_part], a.weight[of_part]).max()
    row = {
        "n": n,
        "answers": int(rows.sum()),
        "accuracy": accuracy,
        "interval": None,
        "adjusted": adjusted(accuracy, chance),
        "chance": chance,
        "majority": float(majority / n),
        "best_position": float(best_position / n),
        "unparsed": int(rows.sum() - taken.sum()),
        "refused": sum(a.rules[place] in REFUSED for place in np.flatnonzero(rows)),
        "accuracy_parsed": float((a.weight * (a.choice == a.place))[taken].sum()) / weight if weight else None,
    }
    if draws is not None:
        draws.ask([(a.correct * mask, mask.astype(np.float64))], row, "interval")
    return row


def adjusted(accuracy: float, chance: float) -> float:
    """Return an accuracy rescaled so that chance is 0 and all correct is 1."""
    return (accuracy - chance) / (1 - chance)


def shared_ratios(a: Questions, grouped: Mask) -> dict[str, Pairs]:
    """Return the shares with intervals that all question metrics have: groups, over some questions, and orders."""
    ratios: dict[str, Pairs] = {"groups_right": [groups_right(a, grouped)]} if a.has_groups else {}
    if (a.orders > 1).any():
        several = (a.orders > 1).astype(np.float64)
        ratios |= {name: [(values * several, several)] for name, values in order_scores(a).items()}
    return ratios


def shared_numbers(a: Questions, grouped: Mask, ratios: Mapping[str, Pairs]) -> dict[str, Any]:
    """Return the numbers that all question metrics have, with shares of groups over some questions, and the ratios."""
    everything = np.ones(a.n, bool)
    numbers = share_row(a, everything) | order_numbers(a, everything) | positions(a, np.ones(a.m, bool))
    if a.has_groups:
        numbers |= group_numbers(a, grouped)
    return numbers | {name: mean_of_ratios(pairs) for name, pairs in ratios.items()}


def groups_right(a: Questions, mask: Mask) -> tuple[Floats, Floats]:
    """Return whether all of a group's questions are right, at its first question, and 1 there, [n] each."""
    wrong = np.bincount(a.group[mask], a.correct[mask] < 1, minlength=a.group.max() + 1)
    first = np.flatnonzero(mask)[np.unique(a.group[mask], return_index=True)[1]]
    right, count = np.zeros(a.n), np.zeros(a.n)
    count[first] = 1
    right[first] = wrong[a.group[first]] == 0
    return right, count


def group_numbers(a: Questions, mask: Mask) -> dict[str, Any]:
    """Return the number of groups, and the number right by chance."""
    logarithms = np.bincount(a.group[mask], (a.orders * np.log(a.k))[mask], minlength=a.group.max() + 1)
    present = np.unique(a.group[mask])
    return {"groups": len(present), "groups_right_chance": float(np.exp(-logarithms[present]).mean())}


def order_numbers(a: Questions, mask: Mask) -> dict[str, Any]:
    """Return the scores of questions with several orders; empty if there are none."""
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
    """Return scores of orders for each question, [n]; consistency is 0 if there is only one order."""
    taken: list[list[str | None]] = [[] for _ in range(a.n)]
    for place, text in zip(a.question, a.text_taken, strict=True):
        taken[place].append(text)
    same = np.zeros(a.n)
    for place, texts in enumerate(taken):
        pairs = list(itertools.combinations(texts, 2))
        same[place] = np.mean([one is not None and one == two for one, two in pairs]) if pairs else 0.0
    return {"correctness": a.correct, "consistency": same, "all_orders_right": (a.correct == 1).astype(np.float64)}


def positions(a: Questions, rows: Mask) -> dict[str, Any]:
    """Return the share of each position among the chosen options, and its distance from the share without a habit."""
    taken = rows & (a.choice >= 0)
    options = a.k[a.question]
    weight, most = a.weight[taken], int(options[rows].max())
    if not len(weight):
        return {"position": {letter: None for letter in LETTERS[:most]}, "position_distance": None}
    shares = sums_at(a.choice[taken], weight, most)
    by_size = np.bincount(options[taken], weight)
    expected = np.array([sum(part / k for k, part in enumerate(by_size) if k > place) for place in range(most)])
    shares /= shares.sum()
    distance = float(np.abs(shares - expected / expected.sum()).sum() / 2)
    return {
        "position": {letter: float(share) for letter, share in zip(LETTERS, shares, strict=False)},
        "position_distance": distance,
    }


def mean_of_ratios(pairs: Pairs) -> float:
    """Return the mean of the ratios Σ numerator / Σ denominator."""
    return float(np.mean([numerator.sum() / denominator.sum() for numerator, denominator in pairs]))


class Intervals:
    """95 % intervals of means of ratios, all from the same draws of entire groups."""

    def __init__(self, group: Ints) -> None:
        self._group = group
        self._asked: list[tuple[Pairs, dict[str, Any], str]] = []

    def ask(self, pairs: Pairs, table: dict[str, Any], key: str) -> None:
        """Request an interval, which `fill` writes into a table."""
        table[key] = None
        self._asked.append((pairs, table, key))

    def fill(self) -> None:
        """Draw groups, and write every requested interval."""
        columns = [column for pairs, _, _ in self._asked for pair in pairs for column in pair]
        sums = np.stack([sums_at(self._group, column) for column in columns], axis=1)
        # Draw as many groups as there are, with replacement, in blocks, so that memory does not grow with their number.
        rng, count, totals = np.random.default_rng(0), len(sums), []
        block = max(1, min(RESAMPLES, 2**22 // count))
        for start in range(0, RESAMPLES, block):
            size = min(block, RESAMPLES - start)
            groups = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
            totals.append(np.bincount(groups.ravel(), minlength=size * count).reshape(size, count) @ sums)
        place, drawn = 0, np.concatenate(totals)
        for pairs, table, key in self._asked:
            part = slice(place, place + 2 * len(pairs))
            place = part.stop
            table[key] = _share_interval(mean_of_ratios(pairs), sums[:, part], drawn[:, part])


def _share_interval(value: float, sums: Floats, drawn: Floats) -> list[float]:
    """Return the interval of a value, from alternating sums of numerators and denominators, over groups and draws."""
    count = int((sums[:, 1::2] > 0).any(axis=1).sum())
    if count == 1:
        return [0.0, 1.0]
    if value in (0.0, 1.0):
        wide = _CERTAINTY**2 / (count + _CERTAINTY**2)
        return [0.0, wide] if value == 0 else [1 - wide, 1.0]
    present = drawn[:, 1::2] > 0
    parts = np.divide(drawn[:, 0::2], drawn[:, 1::2], out=np.zeros(present.shape), where=present)
    means = parts.sum(axis=1)[present.any(axis=1)] / present.sum(axis=1)[present.any(axis=1)]
    # The lower tail of the percentile interval for this number of groups: Φ(−t √(G / (G − 1))), with t Student's
    # quantile, by Abramowitz and Stegun, 26.7.5; for 1 to 3 degrees of freedom the series is slightly, and negligibly,
    # too short.
    z, df = _CERTAINTY, count - 1
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    level = 0.5 * math.erfc(t * math.sqrt(count / df) / math.sqrt(2))
    low, high = np.quantile(means, [level, 1 - level])
    return [float(min(low, value)), float(max(high, value))]


# ----- measures
ANSWER_MEASURES: Fields = {
    "answers": count("answers", "number of answers: a question has one in each order of its options", 0.0),
    "unparsed": {
        "heading": "unparsed",
        "meaning": "number of answers that name no option, including refusals; they count as wrong",
        "range": (0.0, MOST),
        "digits": 0,
    },
    "refused": count("refused", "number of answers that are refusals", 0.0),
    "accuracy_parsed": share("accuracy of the parsed", "accuracy among the answers that name an option", shown=False),
}
"""Description of the counts of answers in `share_row`, by name; see `MEASURES` of a metric."""

GROUP_MEASURES: Fields = {
    "groups_right_chance": share(
        "chance of groups right",
        "groups right by drawing an option each time: the mean of the product of 1/k",
        shown=False,
    ),
    "groups": count("groups", "number of groups", 0.0),
}
"""Description of the numbers of groups."""

ORDER_MEASURES: Fields = {
    "consistency": share(
        "consistency",
        "share of pairs of orders of a question that get the same answer, the mean over the questions",
        null="consistency_chance",
        shown=False,
    ),
    "consistency_chance": share("chance of consistency", "consistency of drawing an option", shown=False),
    "all_orders_right": share(
        "right in all orders",
        "share of questions answered correctly in every order of their options",
        null="all_orders_right_chance",
        shown=False,
    ),
    "all_orders_right_chance": share(
        "chance of right in all orders", "right in all orders by drawing an option each time", shown=False
    ),
    "position_distance": share(
        "position habit",
        "distance of the shares of chosen positions from equal shares: 0 without a habit",
        shown=False,
    ),
}
"""Description of the scores of questions asked in several orders of their options."""
