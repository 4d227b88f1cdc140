"""Duration: which of the sounds that are heard is heard longest in total, or longest without interruption."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np

from ...sounds.formats.base import Annotation
from ...sounds.intervals import Rules, activities, longest, total
from .balance import by_answer, picked
from .base import NO_TIME, ORDER, Draft, Fact, QuestionSettings
from .templates import spoken


class _Duration:
    """See `QuestionTask`."""

    name = "duration"
    variants = ("total", "longest")
    needs: Mapping[str, str] = MappingProxyType(
        {
            "total": "two labels of which each is heard much longer than the other in some clip",
            "longest": "two labels of which each has an event much longer than the other's in some clip",
        }
    )
    time: Mapping[str, str] = MappingProxyType({"total": NO_TIME, "longest": ORDER})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """For each few labels that are heard the one that is longest by far, in total and at a stretch; or at a stretch
        alone, whatever the totals are."""
        rules, heard = Rules.of(annotation), activities(annotation)
        lengths = {label: (total(activity), longest(activity)) for label, activity in heard.items()}
        audible = [label for label, (whole, _) in lengths.items() if whole >= rules.min_event]
        facts = []
        for labels in combinations(audible, settings.duration_options):
            which = self.variants.index(variant)
            winner, *rest = sorted(labels, key=lambda label: lengths[label][which], reverse=True)
            most, following = lengths[winner][which], max(lengths[label][which] for label in rest)
            # Whole numbers: 1.25 times is five quarters.
            is_plain = 4 * most >= 5 * following and most - following >= rules.min_margin
            if is_plain and lengths[winner][1] > max(lengths[label][1] for label in rest):
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
