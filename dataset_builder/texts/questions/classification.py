"""Classification: which sound overlaps the anchor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ...sounds.formats.base import Annotation
from ...sounds.intervals import Rules, activities, relation
from .balance import by_answer
from .base import SIMULTANEITY, Draft, Fact, QuestionSettings
from .templates import spoken

OPTIONS = 4


class _Classification:
    """See `QuestionTask`."""

    name = "classification"
    variants = ("overlap",)
    needs: Mapping[str, str] = MappingProxyType(
        {"overlap": "a label that four others overlap, each in a clip in which the other three do not"}
    )
    time: Mapping[str, str] = MappingProxyType({"overlap": SIMULTANEITY})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """For each anchor each label that overlaps it; its rivals are apart from the anchor, or not heard at all."""
        rules, heard = Rules.of(annotation), activities(annotation)
        unsuitable = set(heard).union(*(settings.related.get(label, frozenset()) for label in heard))
        absent = vocabulary - unsuitable
        facts = []
        for anchor, activity in heard.items():
            relations = {label: relation(activity, heard[label], rules) for label in heard if label != anchor}
            apart = frozenset(label for label, of_pair in relations.items() if of_pair == "apart")
            for label, of_label in relations.items():
                if of_label == "overlap":
                    facts.append(
                        Fact(
                            annotation.key,
                            annotation.split_group,
                            label,
                            anchor,
                            rivals=absent | apart,
                            near=apart,
                        )
                    )
        return facts

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """Sets of four questions about one anchor with the same options, each of which is the answer once.

        So a label is beside the answer three times as often as it is the answer, and each two labels as often one way
        as the other.
        """
        by_anchor: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_anchor[fact.anchor].append(fact)
        drafts = []
        for anchor, of_anchor in sorted(by_anchor.items()):
            for number, facts_of_set in enumerate(_sets(of_anchor, rng, settings)):
                texts = tuple(spoken(fact.answer) for fact in facts_of_set)
                drafts += [Draft(fact, texts, spoken(fact.answer), f"{anchor} {number}") for fact in facts_of_set]
        return drafts


def _sets(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[list[Fact]]:
    """Facts of one anchor in fours: the answer of each may stand beside those of the three others."""
    waiting = {label: [of[k] for k in rng.permutation(len(of))] for label, of in sorted(by_answer(facts).items())}
    # What is heard apart from the anchor is the better rival: such clips come first.
    for of_label in waiting.values():
        of_label.sort(key=lambda fact: not fact.near & waiting.keys())
    sets: list[list[Fact]] = []
    while True:
        chain = _chain(waiting, settings)
        if chain is None:
            return sets
        sets.append(chain)
        for fact in chain:
            waiting[fact.answer].remove(fact)


def _chain(waiting: dict[str, list[Fact]], settings: QuestionSettings) -> list[Fact] | None:
    """Four facts of different answers that may be options of each other; None where there are none left.

    The answers of which most are left come first, so that as many sets as possible can be made.
    """
    order = sorted((label for label, of in waiting.items() if of), key=lambda label: (-len(waiting[label]), label))

    def extended(chain: list[Fact], place: int) -> list[Fact] | None:
        if len(chain) == OPTIONS:
            return chain
        for number in range(place, len(order) - (OPTIONS - len(chain)) + 1):
            fact = next((fact for fact in waiting[order[number]] if _fits(fact, chain, settings)), None)
            longer = extended([*chain, fact], number + 1) if fact is not None else None
            if longer is not None:
                return longer
        return None

    return extended([], 0)


def _fits(fact: Fact, chain: Sequence[Fact], settings: QuestionSettings) -> bool:
    return all(
        fact.answer in other.rivals
        and other.answer in fact.rivals
        and other.answer not in settings.related.get(fact.answer, ())
        for other in chain
    )


TASK = _Classification()
