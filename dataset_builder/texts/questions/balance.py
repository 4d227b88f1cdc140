"""What keeps the text of questions from giving answers away: equal numbers, even dealing, positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from .base import Draft, Fact, QuestionSettings

Item = TypeVar("Item")

TWO_COUNTS = "two counts that {least} clips have each"
"""What `drafts_of_counts` needs; see `QuestionTask.needs`."""


def by_answer(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Facts by what they answer."""
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[fact.answer].append(fact)
    return groups


def picked(facts: Sequence[Fact], count: int, rng: np.random.Generator) -> list[Fact]:
    """So many facts in random order: the hardest, and of those that are as hard any."""
    mixed = [facts[k] for k in rng.permutation(len(facts))]
    hardest = sorted(mixed, key=lambda fact: -fact.hardness)[:count]
    return [hardest[k] for k in rng.permutation(len(hardest))]


def drafts_of_counts(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[Draft]:
    """Equal numbers of each count, which are the options of all questions: none is nearer to its answer than another.

    Counts are those of the settings, or those that enough clips have; where there are not two, nothing is asked.
    """
    groups = by_answer(facts)
    if settings.counts is not None:
        counts = [str(count) for count in sorted(set(settings.counts))]
    else:
        counts = sorted((count for count, of in groups.items() if len(of) >= settings.least_clips), key=int)
    if len(counts) < 2:
        return []
    least = min(len(groups.get(count, ())) for count in counts)
    return [
        Draft(fact, tuple(counts), count, f"{unit}")
        for count in counts
        for unit, fact in enumerate(picked(groups.get(count, ()), least, rng))
    ]


def dealt(things: Sequence[Item], units: Sequence[str], rng: np.random.Generator) -> list[Item]:
    """One of some things for each unit, in random order, each as often as the rest; as many as there are places.

    Args:
        things: to deal.
        units: of the places; places of one unit have the same.
        rng: deals.
    """
    distinct = sorted(set(units))
    hand = [things[k] for k in rng.permutation(np.resize(rng.permutation(len(things)), len(distinct)))]
    of_unit = dict(zip(distinct, hand, strict=True))
    return [of_unit[unit] for unit in units]


def ordered_options(drafts: Sequence[Draft], rng: np.random.Generator) -> list[tuple[str, ...]]:
    """The options of each question in the order in which they stand: answers are at each place equally often.

    Of a unit with as many questions as options, an answer is at each place once; of all questions with as many options,
    the numbers of answers at two places differ by at most one.
    """
    by_size: dict[int, list[int]] = defaultdict(list)
    for number in sorted(range(len(drafts)), key=lambda number: drafts[number].unit):
        by_size[len(drafts[number].options)].append(number)
    orders: list[tuple[str, ...]] = [()] * len(drafts)
    for size, members in sorted(by_size.items()):
        rounds = -(-len(members) // size)
        places = np.concatenate([rng.permutation(size) for _ in range(rounds)])
        for number, place in zip(members, places, strict=False):
            draft = drafts[number]
            rest = sorted(option for option in draft.options if option != draft.answer)
            mixed = [rest[k] for k in rng.permutation(len(rest))]
            orders[number] = (*mixed[:place], draft.answer, *mixed[place:])
    return orders
