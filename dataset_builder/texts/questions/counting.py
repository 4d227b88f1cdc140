"""Counting: how many kinds of sound there are, or at once; or how many sources, where labels tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ...sounds.formats.base import Annotation
from ...sounds.intervals import Rules, activities, longest, steps_of, together, total, union, widened
from .balance import TWO_COUNTS, drafts_of_counts
from .base import NO_TIME, SIMULTANEITY, Draft, Fact, QuestionSettings


class _Counting:
    """See `QuestionTask`."""

    name = "counting"
    variants = ("kinds", "sources", "together")
    needs: Mapping[str, str] = MappingProxyType(
        {"kinds": TWO_COUNTS, "sources": f"sources that labels tell apart, and {TWO_COUNTS}", "together": TWO_COUNTS}
    )
    time: Mapping[str, str] = MappingProxyType({"kinds": NO_TIME, "sources": NO_TIME, "together": SIMULTANEITY})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """The number of kinds or sources, or of kinds at once, if each is heard for long enough in total."""
        rules = Rules.of(annotation)
        if variant != "sources":
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
        count = _most_at_once(annotation) if variant == "together" else len(totals)
        return [Fact(annotation.key, annotation.split_group, str(count))] if count else []

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """Equal numbers of each count, which are the options of all questions."""
        return drafts_of_counts(facts, rng, settings)


def _most_at_once(annotation: Annotation) -> int:
    """Most labels that are heard together for long enough; 0 where one more nearly are, or are for a moment."""
    rules, heard = Rules.of(annotation), tuple(activities(annotation).values())
    count = max(n for n in range(len(heard) + 1) if n == 0 or longest(together(heard, n)) >= rules.min_overlap)
    near = [widened(activity, rules.guard) for activity in heard]
    return 0 if together(near, count + 1) else count


TASK = _Counting()
