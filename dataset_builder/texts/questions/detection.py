"""Detection: when two sounds are first heard together; or how often they are.

Windows lie on a grid of a fifth of their length, and the overlap begins in the middle fifth of its window: so nobody is
wrong who hears it a little earlier or later. The windows of a question are those in which overlaps of other clips
begin, so that they are on the same grid and as early.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ...sounds.formats.base import Annotation
from ...sounds.intervals import STEPS, Rules, activities, first_overlap, overlap_regions, steps_of
from .balance import TWO_COUNTS, drafts_of_counts
from .base import ORDER, Draft, Fact, QuestionSettings

OPTIONS = 4

PARTS = 5
"""Places of the grid in a window."""

_HALF_SECOND = STEPS // 2


class _Detection:
    """See `QuestionTask`."""

    name = "detection"
    variants = ("first", "regions")
    needs: Mapping[str, str] = MappingProxyType(
        {"first": "four clips in which sounds are first heard together at different times", "regions": TWO_COUNTS}
    )
    time: Mapping[str, str] = MappingProxyType({"first": ORDER, "regions": ORDER})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """The window in which the first overlap begins, as its first step; or the number of overlaps."""
        rules, heard = Rules.of(annotation), activities(annotation)
        if variant == "regions":
            regions = overlap_regions(heard, rules)
            return [Fact(annotation.key, annotation.split_group, str(len(regions)))] if regions else []
        onset = first_overlap(heard, rules)
        if onset is None:
            return []
        width, length = window_steps(annotation.duration, annotation.resolution), steps_of(annotation.duration)
        start = window_start(onset, width)
        if start + width > length:
            return []
        return [Fact(annotation.key, annotation.split_group, str(start), width=width, length=length)]

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """Fours of questions with the same windows, each of which is the answer once; or equal numbers of counts."""
        if variant == "regions":
            return drafts_of_counts(facts, rng, settings)
        by_width: dict[int, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_width[fact.width].append(fact)
        drafts = []
        for width, of_width in sorted(by_width.items()):
            for number, facts_of_set in enumerate(_sets(of_width, width, rng)):
                texts = tuple(window_text(int(fact.answer), width) for fact in facts_of_set)
                unit = f"{width} {number}"
                drafts += [Draft(fact, texts, text, unit) for fact, text in zip(facts_of_set, texts, strict=True)]
        return drafts


def window_steps(duration: float, resolution: float) -> int:
    """Length of the windows of a clip, steps: a tenth of it to half a second, and no less than twice the resolution."""
    tenth = round(steps_of(duration) / 10 / _HALF_SECOND) * _HALF_SECOND
    least = -(-2 * steps_of(resolution) // _HALF_SECOND) * _HALF_SECOND
    return max(tenth, least, _HALF_SECOND)


def window_start(onset: int, width: int) -> int:
    """First step of the window in whose middle fifth a step lies; at the beginning of the clip it may lie earlier."""
    part = width // PARTS
    return max(onset // part - PARTS // 2, 0) * part


def window_text(start: int, width: int) -> str:
    """A window as an option, from its first step and its length."""
    return f"{start / STEPS:.1f} to {(start + width) / STEPS:.1f} s"


_WINDOW = re.compile(r"(\d+\.\d) to (\d+\.\d) s")


def window_times(text: str) -> tuple[float, float] | None:
    """Begin and end of a window in seconds; None of a text that is none."""
    match = _WINDOW.fullmatch(text)
    return (float(match[1]), float(match[2])) if match else None


def _sets(facts: Sequence[Fact], width: int, rng: np.random.Generator) -> list[list[Fact]]:
    """Facts in fours whose windows do not overlap and lie in the clips of all four; as many as possible."""
    mixed = [facts[k] for k in rng.permutation(len(facts))]
    ordered = sorted(mixed, key=lambda fact: int(fact.answer))
    low, high = 0, len(ordered) // OPTIONS
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_matched(ordered, middle, width)) == middle else (low, middle - 1)
    return _matched(ordered, low, width)


def _matched(ordered: Sequence[Fact], count: int, width: int) -> list[list[Fact]]:
    """As many sets, the first of each among the earliest facts; fewer where there are not enough."""
    sets = [[fact] for fact in ordered[:count]]
    rest = list(ordered[count:])
    for _ in range(OPTIONS - 1):
        later, place = [], 0
        for chain in sets:
            while place < len(rest) and not _follows(rest[place], chain, width):
                later.append(rest[place])
                place += 1
            if place == len(rest):
                break
            chain.append(rest[place])
            place += 1
        rest = later + rest[place:]
    return [chain for chain in sets if len(chain) == OPTIONS]


def _follows(fact: Fact, chain: Sequence[Fact], width: int) -> bool:
    start = int(fact.answer)
    return start - int(chain[-1].answer) >= width and all(start + width <= other.length for other in chain)


TASK = _Detection()
