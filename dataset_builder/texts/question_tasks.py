"""The kinds of questions: the facts that each may ask about a recording, and the choice of answers and options.

Five tasks after arXiv 2603.05128, each with variants, and the two atoms of questions about overlap: is a sound
present, and does one begin before another?
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from types import MappingProxyType

import numpy as np

from audio_compositionality.support.discovery import Registry

from ..sounds.annotations import (
    STEPS,
    Annotation,
    Rules,
    activities,
    first_overlap,
    longest,
    overlap_regions,
    relation,
    relations,
    steps_of,
    together,
    total,
    union,
    widened,
)
from .questions import (
    ALONE,
    NO,
    NO_TIME,
    ORDER,
    OVERLAP,
    SIMULTANEITY,
    TWO_COUNTS,
    YES,
    Draft,
    Fact,
    QuestionSettings,
    QuestionTask,
    by_answer,
    drafts_of_counts,
    in_sentence,
    picked,
)

OPTIONS = 4
"""Options of a classification and of a detection."""


class _Counting:
    """Counting: the number of kinds of sound, in all or at once; or of sources, where labels distinguish them."""

    name = "counting"
    variants = ("kinds", "sources", "together")
    needs: Mapping[str, str] = MappingProxyType(
        {"kinds": TWO_COUNTS, "sources": f"sources that labels tell apart, and {TWO_COUNTS}", "together": TWO_COUNTS}
    )
    time: Mapping[str, str] = MappingProxyType({"kinds": NO_TIME, "sources": NO_TIME, "together": SIMULTANEITY})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """The number of kinds or sources, or of simultaneous kinds, if each is long enough in total."""
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
        """Equally many facts of each count, with all counts as the options of every question."""
        return drafts_of_counts(facts, rng, settings)


def _most_at_once(annotation: Annotation) -> int:
    """Most labels with a long enough overlap; 0 where one more is nearly present, or present for a moment."""
    rules, heard = Rules.of(annotation), tuple(activities(annotation).values())
    count = max(n for n in range(len(heard) + 1) if n == 0 or longest(together(heard, n)) >= rules.min_overlap)
    near = [widened(activity, rules.guard) for activity in heard]
    return 0 if together(near, count + 1) else count


class _Duration:
    """Duration: the sound with the longest total, or with the longest uninterrupted stretch."""

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
        """For each few present labels, the one that is longest by far, in total and at a stretch; or at a stretch
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
        """Of each set of labels, equally many questions with each of them as the answer."""
        by_options: dict[frozenset[str], list[Fact]] = defaultdict(list)
        for fact in facts:
            by_options[fact.options].append(fact)
        drafts = []
        for options, of_set in sorted(by_options.items(), key=lambda item: sorted(item[0])):
            wins = by_answer(of_set)
            least = min(len(wins.get(label, ())) for label in options)
            for label in sorted(options) if least else ():
                texts = tuple(map(in_sentence, sorted(options)))
                for unit, fact in enumerate(picked(wins[label], least, rng)):
                    drafts.append(Draft(fact, texts, in_sentence(label), f"{', '.join(texts)} {unit}"))
        return drafts


class _Concurrency:
    """Concurrency: whether anything overlaps the anchor; or whether there is any overlap at all."""

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
        """For each label, whether it overlaps another or is apart from all; for the clip, whether any two overlap."""
        pairs = relations(annotation)
        asked = ((ALONE,) if annotation.negative else (OVERLAP,)) if settings.negatives else (OVERLAP, ALONE)
        if variant == "clip":
            # A sound of a moment leaves it uncertain that nothing overlaps.
            state = _state(list(pairs.values())) if len(annotation.labels) > 1 else ""
            return [Fact(annotation.key, annotation.split_group, state)] if state in asked else []
        rules, heard = Rules.of(annotation), activities(annotation)
        facts = []
        for label, activity in heard.items():
            state = _state([relation for pair, relation in pairs.items() if label in pair])
            if state not in asked or total(activity) < rules.min_event:
                continue
            # Absence of overlap is harder to tell among overlapping sounds than among others, or in an otherwise empty
            # clip.
            elsewhere = [relation for pair, relation in pairs.items() if label not in pair]
            hardness = (len(heard) > 1) + ("overlap" in elsewhere) if state == ALONE else 0
            facts.append(Fact(annotation.key, annotation.split_group, state, label, hardness=hardness))
        return facts

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """Of each anchor, equally many questions in each state, in each of the two polarities of wording."""
        by_anchor: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_anchor[fact.anchor].append(fact)
        drafts = []
        odd = 0
        for _, of_anchor in sorted(by_anchor.items()):
            states = by_answer(of_anchor)
            count = min(len(states.get(state, ())) for state in (OVERLAP, ALONE))
            # Of an odd number, one polarity has one question more, in both states; the polarities take turns.
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
    """The state of sounds with these relations; empty where it is ambiguous."""
    if "overlap" in relations:
        return OVERLAP
    return "" if "ambiguous" in relations else ALONE


class _Classification:
    """Classification: the sound that overlaps the anchor."""

    name = "classification"
    variants = ("overlap",)
    needs: Mapping[str, str] = MappingProxyType(
        {"overlap": "a label that four others overlap, each in a clip in which the other three do not"}
    )
    time: Mapping[str, str] = MappingProxyType({"overlap": SIMULTANEITY})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """For each anchor, each label that overlaps it; its rivals are apart from the anchor, or absent."""
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

        So a label is a wrong option three times as often as the answer, and of each two labels, either is the answer
        beside the other equally often.
        """
        by_anchor: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_anchor[fact.anchor].append(fact)
        drafts = []
        for anchor, of_anchor in sorted(by_anchor.items()):
            for number, facts_of_set in enumerate(_sets_of_answers(of_anchor, rng, settings)):
                texts = tuple(in_sentence(fact.answer) for fact in facts_of_set)
                drafts += [Draft(fact, texts, in_sentence(fact.answer), f"{anchor} {number}") for fact in facts_of_set]
        return drafts


def _sets_of_answers(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[list[Fact]]:
    """Facts of one anchor in fours: the answer of each may be an option beside the answers of the other three."""
    waiting = {label: [of[k] for k in rng.permutation(len(of))] for label, of in sorted(by_answer(facts).items())}
    # A sound apart from the anchor is the better rival: such clips come first.
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

    The most frequent remaining answers come first, for as many sets as possible.
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


PARTS = 5
"""Places of the grid in a window."""

_HALF_SECOND = STEPS // 2


class _Detection:
    """Detection: the time at which two sounds first overlap; or the number of overlaps.

    Windows lie on a grid of a fifth of their length, and the overlap begins in the middle fifth of its window: hearing
    it a little earlier or later gives the same answer. The windows of a question are those in which overlaps of other
    clips begin, so that they are on the same grid and equally early.
    """

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
        """Fours of questions with the same windows, each of which is the answer once; or equally many of each count."""
        if variant == "regions":
            return drafts_of_counts(facts, rng, settings)
        by_width: dict[int, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_width[fact.width].append(fact)
        drafts = []
        for width, of_width in sorted(by_width.items()):
            for number, facts_of_set in enumerate(_sets_of_windows(of_width, width, rng)):
                texts = tuple(window_text(int(fact.answer), width) for fact in facts_of_set)
                unit = f"{width} {number}"
                drafts += [Draft(fact, texts, text, unit) for fact, text in zip(facts_of_set, texts, strict=True)]
        return drafts


def window_steps(duration: float, resolution: float) -> int:
    """Length of the windows of a clip in steps: a tenth of it, to half a second, but at least twice the resolution."""
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


def _sets_of_windows(facts: Sequence[Fact], width: int, rng: np.random.Generator) -> list[list[Fact]]:
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


PRESENCE, SEQUENCE = "presence", "sequence"
ATOMS = (PRESENCE, SEQUENCE)

PRESENT, ABSENT, BEFORE, AFTER = "present", "absent", "before", "after"

STATES: Mapping[str, tuple[str, str]] = MappingProxyType({PRESENCE: (PRESENT, ABSENT), SEQUENCE: (BEFORE, AFTER)})
"""The two states of each atom; a polarity is the state that Yes affirms."""

LEAST_STEP = 50
"""Fewest steps between two beginnings of which one counts as earlier."""


class _Atom:
    """The common part of atoms: only twins have them as questions, so no facts are chosen."""

    needs: Mapping[str, str] = MappingProxyType({})

    def drafts(
        self, facts: Sequence[Fact], variant: str, rng: np.random.Generator, settings: QuestionSettings
    ) -> list[Draft]:
        """None."""
        return []


class _Presence(_Atom):
    """Presence: whether a sound is present."""

    name = PRESENCE
    variants = ("heard",)
    time: Mapping[str, str] = MappingProxyType({"heard": NO_TIME})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """For each label, whether it is present; labels that are present for too short a time are left out."""
        least, heard = Rules.of(annotation).min_event, activities(annotation)
        return [
            Fact(annotation.key, annotation.split_group, PRESENT if label in heard else ABSENT, label)
            for label in sorted(vocabulary)
            if label not in heard or total(heard[label]) >= least
        ]


class _Sequence(_Atom):
    """Sequence: whether a sound begins before another, or after it."""

    name = SEQUENCE
    variants = ("onsets",)
    time: Mapping[str, str] = MappingProxyType({"onsets": ORDER})

    def facts(
        self, annotation: Annotation, variant: str, vocabulary: frozenset[str], settings: QuestionSettings
    ) -> list[Fact]:
        """For each two labels, the first to begin, unless both begin at about one time; the other is the option."""
        onsets = {label: activity[0][0] for label, activity in activities(annotation).items() if activity}
        return [
            Fact(
                annotation.key,
                annotation.split_group,
                BEFORE if onsets[other] > onsets[one] else AFTER,
                one,
                options=frozenset((other,)),
            )
            for one, other in permutations(onsets, 2)
            if abs(onsets[other] - onsets[one]) >= LEAST_STEP
        ]


ATOM_TASKS: Mapping[str, QuestionTask] = MappingProxyType({PRESENCE: _Presence(), SEQUENCE: _Sequence()})
"""Separate from the tasks, since nobody asks them about recordings as they are."""

_registry: Registry[QuestionTask] = Registry(
    None,
    "TASK",
    "audio_compositionality.questions",
    lambda task: task.name,
    listed=(_Counting(), _Duration(), _Concurrency(), _Classification(), _Detection()),
)


def question_tasks() -> dict[str, QuestionTask]:
    """All tasks by name."""
    return _registry.all()
