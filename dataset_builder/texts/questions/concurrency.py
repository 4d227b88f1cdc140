"""Concurrency: whether anything overlaps the anchor; or whether anything overlaps at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ...sounds.formats.base import Annotation
from ...sounds.intervals import Rules, activities, relations, total
from .balance import by_answer, picked
from .base import NO, SIMULTANEITY, YES, Draft, Fact, QuestionSettings

OVERLAP, ALONE = "overlap", "alone"
"""States of an anchor, and what Yes says in a question."""


class _Concurrency:
    """See `QuestionTask`."""

    name = "concurrency"
    variants = ("anchor", "clip")
    needs: Mapping[str, str] = MappingProxyType(
        {
            "anchor": "a label that plainly overlaps another in some clip and is alone in another clip",
            "clip": "a clip in which labels plainly overlap, and one in which they are all apart",
        }
    )
    time: Mapping[str, str] = MappingProxyType({"anchor": SIMULTANEITY, "clip": SIMULTANEITY})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """For each label whether it overlaps another or is apart from all; or of the clip whether any two overlap."""
        pairs = relations(annotation)
        asked = ((ALONE,) if annotation.negative else (OVERLAP,)) if settings.negatives else (OVERLAP, ALONE)
        if variant == "clip":
            # What is heard for a moment only is no reason to be sure that nothing overlaps.
            state = _state(list(pairs.values())) if len(annotation.labels) > 1 else ""
            return [Fact(annotation.key, annotation.split_group, state)] if state in asked else []
        rules, heard = Rules.of(annotation), activities(annotation)
        facts = []
        for label, activity in heard.items():
            state = _state([relation for pair, relation in pairs.items() if label in pair])
            if state not in asked or total(activity) < rules.min_event:
                continue
            # Alone among sounds that overlap each other is harder than alone among sounds, or in the clip.
            elsewhere = [relation for pair, relation in pairs.items() if label not in pair]
            hardness = (len(heard) > 1) + ("overlap" in elsewhere) if state == ALONE else 0
            facts.append(Fact(annotation.key, annotation.split_group, state, label, hardness=hardness))
        return facts

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """Of each anchor as many of one state as of the other, in each of the two polarities of wording."""
        by_anchor: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_anchor[fact.anchor].append(fact)
        drafts = []
        odd = 0
        for _, of_anchor in sorted(by_anchor.items()):
            states = by_answer(of_anchor)
            count = min(len(states.get(state, ())) for state in (OVERLAP, ALONE))
            # Of an odd number, one polarity has one question more, of both states; the polarities take turns.
            more = count // 2 + (count % 2 and odd % 2)
            odd += count % 2
            for state in (OVERLAP, ALONE) if count else ():
                for number, fact in enumerate(picked(states[state], count, rng)):
                    polarity = ALONE if number < more else OVERLAP
                    answer = YES if polarity == state else NO
                    unit = f"{fact.anchor} {number}"
                    drafts.append(Draft(fact, (YES, NO), answer, unit, polarity))
        return drafts


def _state(relations: list[str]) -> str:
    """What is said of sounds with these relations; nothing where it is ambiguous."""
    if "overlap" in relations:
        return OVERLAP
    return "" if "ambiguous" in relations else ALONE


TASK = _Concurrency()
