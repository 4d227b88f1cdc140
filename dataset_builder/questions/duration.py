"""Duration: which of the sounds that are heard is heard longest in total."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np

from ..annotations.base import Annotation
from ..annotations.intervals import Rules, activities, longest, total
from .balance import by_answer, picked
from .base import Draft, Fact, QuestionSettings
from .templates import spoken


class _Duration:
    """See `QuestionTask`."""

    name = "duration"
    variants = ("total",)
    needs: Mapping[str, str] = MappingProxyType(
        {"total": "two labels of which each is heard much longer than the other in some clip"}
    )

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """For each few labels that are heard the one that lasts longest by far, in total and at a stretch."""
        rules, heard = Rules.of(annotation), activities(annotation)
        lengths = {label: (total(activity), longest(activity)) for label, activity in heard.items()}
        audible = [label for label, (whole, _) in lengths.items() if whole >= rules.min_event]
        facts = []
        for labels in combinations(audible, settings.duration_options):
            winner, *rest = sorted(labels, key=lambda label: lengths[label], reverse=True)
            whole, stretch = lengths[winner]
            next_whole = max(lengths[label][0] for label in rest)
            # Whole numbers: 1.25 times is five quarters.
            if (
                4 * whole >= 5 * next_whole
                and whole - next_whole >= rules.min_margin
                and stretch > max(lengths[label][1] for label in rest)
            ):
                facts.append(Fact(annotation.key, annotation.split_group, winner, options=frozenset(labels)))
        return facts

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """Of each set of labels as many questions that one of them wins as that any other does."""
        by_options: dict[frozenset[str], list[Fact]] = defaultdict(list)
        for fact in facts:
            by_options[fact.options].append(fact)
        drafts = []
        for options, of_set in sorted(by_options.items(), key=lambda item: sorted(item[0])):
            wins = by_answer(of_set)
            least = min(len(wins.get(label, ())) for label in options)
            for label in sorted(options) if least else ():
                texts = tuple(map(spoken, sorted(options)))
                for unit, fact in enumerate(picked(wins[label], least, rng)):
                    drafts.append(Draft(fact, texts, spoken(label), f"{', '.join(texts)} {unit}"))
        return drafts


TASK = _Duration()
