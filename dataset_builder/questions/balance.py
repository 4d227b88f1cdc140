"""What keeps the text of questions from giving answers away: equal numbers, even dealing, positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from .base import Draft, Fact, QuestionSettings

Item = TypeVar("Item")


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

    Counts are those of the settings, or those that enough clips have; where there are not two of them, nothing is asked.
    """
    groups = by_answer(facts)
    if settings.counts is not None:
        counts = [str(count) for count in sorted(set(settings.counts))]
    else:
        counts = sorted((count for count, of in groups.items() if len(of) >= settings.least_clips), key=int)
    if len(counts) < 2:
        return []
    least = min(len(groups.get(count, ())) for count in counts)
    return [Draft(fact, tuple(counts), count) for count in counts for fact in picked(groups.get(count, ()), least, rng)]


def dealt(things: Sequence[Item], strata: Sequence[Hashable], rng: np.random.Generator) -> list[Item]:
    """One of some things for each place, each as often as the rest in every stratum, in random order.

    Args:
        things: to deal.
        strata: of the places.
        rng: deals.
    """
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, stratum in enumerate(strata):
        places[stratum].append(place)
    result: list[Item | None] = [None] * len(strata)
    turn = 0
    for _, of_stratum in sorted(places.items(), key=lambda item: str(item[0])):
        # Where one stratum has ended the next goes on, so that all of them together are even as well.
        hand = [things[(turn + number) % len(things)] for number in range(len(of_stratum))]
        turn += len(of_stratum)
        for place, k in zip(of_stratum, rng.permutation(len(hand)), strict=True):
            result[place] = hand[k]
    return [thing for thing in result if thing is not None]


def ordered_options(drafts: Sequence[Draft], rng: np.random.Generator) -> list[tuple[str, ...]]:
    """The options of each question in the order in which they stand: answers are at each place equally often.

    Of questions with as many options, the numbers of answers at two places differ by at most one.
    """
    sizes = [len(draft.options) for draft in drafts]
    orders: list[tuple[str, ...]] = [()] * len(drafts)
    for size in sorted(set(sizes)):
        members = [number for number, of in enumerate(sizes) if of == size]
        answer_places = rng.permutation(np.resize(rng.permutation(size), len(members)))
        for number, place in zip(members, answer_places, strict=True):
            draft = drafts[number]
            rest = sorted(option for option in draft.options if option != draft.answer)
            mixed = [rest[k] for k in rng.permutation(len(rest))]
            orders[number] = (*mixed[:place], draft.answer, *mixed[place:])
    return orders
