"""Counting: how many kinds of sound there are; or how many sources, where labels tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..annotations.base import Annotation
from ..annotations.intervals import Rules, activities, steps_of, total, union
from .balance import TWO_COUNTS, drafts_of_counts
from .base import Draft, Fact, QuestionSettings


class _Counting:
    """See `QuestionTask`."""

    name = "counting"
    variants = ("kinds", "sources")
    needs: Mapping[str, str] = MappingProxyType(
        {"kinds": TWO_COUNTS, "sources": f"sources that labels tell apart, and {TWO_COUNTS}"}
    )

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """The number of kinds or sources, if each is heard for long enough in total."""
        rules = Rules.of(annotation)
        if variant == "kinds":
            totals = [total(activity) for activity in activities(annotation).values()]
        else:
            if any(event.source is None for event in annotation.events):
                return []
            spans: dict[tuple[str, str | None], list[tuple[int, int]]] = {}
            for event in annotation.events:
                span = steps_of(event.onset), steps_of(event.offset)
                spans.setdefault((event.label, event.source), []).append(span)
            totals = [total(union(of_source, rules.merge_gap)) for of_source in spans.values()]
        if not totals or min(totals) < rules.min_event:
            return []
        return [Fact(annotation.key, annotation.split_group, str(len(totals)))]

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """Equal numbers of each count, which are the options of all questions."""
        return drafts_of_counts(facts, rng, settings)


TASK = _Counting()
