"""Kinds of questions: the facts that each can ask about a recording, and how answers and options are chosen.

Five tasks after arXiv 2603.05128, each with variants, and the two atoms of questions about overlap: is a sound
present, and does one sound begin before another?
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec
from audio_compositionality.support.text import nearest

from ..sounds.annotations import (
    STEPS,
    Activity,
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
    MOST_OPTIONS,
    NO,
    NO_TIME,
    ORDER,
    OVERLAP,
    SIMULTANEITY,
    YES,
    in_sentence,
)

OPTIONS = 4
"""Options of a classification and of a detection."""

TWO_COUNTS = "two counts with {least} clips each"
"""What `_drafts_of_counts` needs."""


class QuestionSpec(Spec):
    """The user's settings of questions."""

    ask: tuple[str, ...] = Field(
        ("counting", "duration", "concurrency", "classification", "detection"),
        description="Kinds of questions, each a task or `task/variant`.",
    )
    counts: tuple[int, ...] | None = Field(
        None, description="Options of counting questions; by default all counts that at least `least_clips` clips have."
    )
    least_clips: int = Field(
        10, ge=1, description="Fewest clips with a count for it to become an option; see `counts`."
    )
    duration_options: int = Field(
        2, ge=2, le=MOST_OPTIONS, description="Number of options if durations are compared; generated scenes have 3."
    )
    absent_options: bool = Field(
        False, description="Whether the wrong options of classification are always sounds absent from the clip."
    )

    @field_validator("counts")
    @classmethod
    def _can_be_options(cls, counts: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if counts is not None and (not 2 <= len(set(counts)) <= MOST_OPTIONS or min(counts) < 1):
            raise InputError(f"counts is {counts}; give 2 to {MOST_OPTIONS} different whole numbers, each 1 or more")
        return counts


class QuestionSettings(QuestionSpec):
    """The settings of questions, and the known relations between labels."""

    related: Mapping[str, frozenset[str]] = Field(
        {},
        description="For each label, more and less specific labels of the same sound, e.g. its ancestors in an "
        "ontology; they never occur in one question.",
    )
    negatives: bool = Field(
        False,
        description="Whether concurrency takes sounds without overlap from negative clips; all "
        "other questions are about clips that are not negative.",
    )


# ----- facts that can be asked, and questions before they have a wording
@dataclass(frozen=True)
class Fact:
    """A fact about a clip that a question can be about.

    Attributes:
        key: recording and start of the clip.
        group: group of the clip.
        answer: the right one: a label, a count, a state, or a time in steps.
        anchor: label in question, or empty.
        options: labels that must all be options; empty if they are chosen.
        rivals: labels that may be wrong options.
        near: rivals that are present in the clip, and so hard to distinguish from the answer.
        hardness: among facts of one kind, harder ones are used first.
        width: for detection, steps of a window.
        length: for detection, steps of the clip.
    """

    key: tuple[str, float]
    group: str
    answer: str
    anchor: str = ""
    options: frozenset[str] = frozenset()
    rivals: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    hardness: int = 0
    width: int = 0
    length: int = 0

    @property
    def claim(self) -> tuple[str, str, frozenset[str], int]:
        """Return the claim of the fact, equal for two readings of a clip that agree."""
        return self.anchor, self.answer, self.options, self.width


@dataclass(frozen=True)
class Draft:
    """A question before it has a wording and an order of options.

    Attributes:
        fact: the fact that it is about.
        options: as written, in any order.
        answer: one of them.
        polarity: as in `Question`.
        unit: as in `Question`.
    """

    fact: Fact
    options: tuple[str, ...]
    answer: str
    unit: str
    polarity: str = ""


class _Heard:
    """A clip from which facts are read; all its events count as present."""

    def __init__(self, annotation: Annotation, vocabulary: frozenset[str], settings: QuestionSettings) -> None:
        self.annotation, self.vocabulary, self.settings = annotation, vocabulary, settings
        self.rules, self.activities = Rules.of(annotation), activities(annotation)

    def fact(self, answer: object, anchor: str = "", **more: Any) -> Fact:
        return Fact(self.annotation.key, self.annotation.split_group, str(answer), anchor, **more)


Facts = Callable[[_Heard], Iterable[Fact]]
Drafts = Callable[[Sequence[Fact], np.random.Generator, QuestionSettings], list[Draft]]


def _no_drafts(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[Draft]:
    """Return nothing: atoms are only asked about counterparts."""
    return []


@dataclass(frozen=True)
class QuestionKind:
    """A kind of question.

    Attributes:
        name: task and variant, e.g. ``counting/kinds``.
        time: the temporal information that the answer needs: `NO_TIME`, `SIMULTANEITY` or `ORDER`.
        read: returns the facts about a clip that can be asked; none that is ambiguous.
        drafts: chooses facts and their options, so that the text does not reveal the answer.
        needs: the clips that it needs, in words.
    """

    name: str
    time: str
    read: Facts
    drafts: Drafts = _no_drafts
    needs: str = ""

    @property
    def task(self) -> str:
        """Return the task, e.g. ``counting``."""
        return self.name.partition("/")[0]

    @property
    def variant(self) -> str:
        """Return the variant of the task, e.g. ``kinds``."""
        return self.name.partition("/")[2]

    def facts(self, annotation: Annotation, vocabulary: frozenset[str], settings: QuestionSettings) -> list[Fact]:
        """Return the facts of one reading of a clip; `vocabulary`: all labels that an annotator would have noted."""
        return list(self.read(_Heard(annotation, vocabulary, settings)))


def grouped(facts: Iterable[Fact], field: str) -> dict[Any, list[Fact]]:
    """Return facts by one of their fields."""
    groups: dict[Any, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[getattr(fact, field)].append(fact)
    return groups


def _picked(facts: Sequence[Fact], count: int, rng: np.random.Generator) -> list[Fact]:
    """Return the `count` hardest facts in random order; ties are broken at random."""
    mixed = [facts[k] for k in rng.permutation(len(facts))]
    hardest = sorted(mixed, key=lambda fact: -fact.hardness)[:count]
    return [hardest[k] for k in rng.permutation(len(hardest))]


# ----- counting: the number of kinds of sound, in total or at once; or of sources, if labels distinguish them
def _counted(clip: _Heard, sounds: Iterable[Activity], count: int) -> list[Fact]:
    """Return a count if each of the sounds is long enough in total."""
    audible = all(total(sound) >= clip.rules.min_event for sound in sounds)
    return [clip.fact(count)] if count and audible else []


def _kinds(clip: _Heard) -> list[Fact]:
    return _counted(clip, clip.activities.values(), len(clip.activities))


def _sources(clip: _Heard) -> list[Fact]:
    events = clip.annotation.events
    if any(event.source is None for event in events):
        return []
    spans = defaultdict(list)
    for event in events:
        spans[event.label, event.source].append((steps_of(event.onset), steps_of(event.offset)))
    return _counted(clip, [union(of_one, clip.rules.merge_gap) for of_one in spans.values()], len(spans))


def _most_at_once(clip: _Heard) -> list[Fact]:
    """Return the most labels that overlap for long enough; nothing if one more nearly or briefly overlaps."""
    heard = tuple(clip.activities.values())
    lasting = (n for n in range(len(heard), 0, -1) if longest(together(heard, n)) >= clip.rules.min_overlap)
    count = next(lasting, 0)
    near = [widened(activity, clip.rules.guard) for activity in heard]
    return _counted(clip, heard, 0 if together(near, count + 1) else count)


def _drafts_of_counts(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[Draft]:
    """Draft equally many facts of each count, with all counts as options of every question: none is closer to the
    answer.

    Counts are given in the settings, or are those that enough clips have; if there are fewer than two, nothing is
    asked.
    """
    groups = grouped(facts, "answer")
    enough = (count for count, of in groups.items() if len(of) >= settings.least_clips)
    counts = sorted(enough if settings.counts is None else map(str, set(settings.counts)), key=int)
    least = min((len(groups.get(count, ())) for count in counts), default=0) if len(counts) > 1 else 0
    return [
        Draft(fact, tuple(counts), count, f"{unit}")
        for count in (counts if least else ())
        for unit, fact in enumerate(_picked(groups[count], least, rng))
    ]


# ----- duration: the sound with the longest total, or with the longest uninterrupted stretch
def _durations(which: int, clip: _Heard) -> Iterator[Fact]:
    """Yield, for each set of present labels, the one that is by far the longest.

    `which` is 0 to compare totals, and 1 to compare longest stretches; the stretch must be the longest in either case.
    """
    lengths = {label: (total(activity), longest(activity)) for label, activity in clip.activities.items()}
    audible = [label for label, (whole, _) in lengths.items() if whole >= clip.rules.min_event]
    for labels in combinations(audible, clip.settings.duration_options):
        winner, *rest = sorted(labels, key=lambda label: lengths[label][which], reverse=True)
        most, following = lengths[winner][which], max(lengths[label][which] for label in rest)
        # Whole numbers: 1.25 times is five quarters.
        is_plain = 4 * most >= 5 * following and most - following >= clip.rules.min_margin
        if is_plain and lengths[winner][1] > max(lengths[label][1] for label in rest):
            yield clip.fact(winner, options=frozenset(labels))


def _drafts_of_durations(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[Draft]:
    """Draft equally many questions for each set of labels with each of them as the answer."""
    drafts = []
    for options, of_set in sorted(grouped(facts, "options").items(), key=lambda item: sorted(item[0])):
        wins, texts = grouped(of_set, "answer"), tuple(map(in_sentence, sorted(options)))
        least = min(len(wins.get(label, ())) for label in options)
        for label in sorted(options) if least else ():
            for unit, fact in enumerate(_picked(wins[label], least, rng)):
                drafts.append(Draft(fact, texts, in_sentence(label), f"{', '.join(texts)} {unit}"))
    return drafts


# ----- concurrency: whether anything overlaps the anchor; or whether there is any overlap at all
def _states_asked(clip: _Heard) -> tuple[str, ...]:
    if not clip.settings.negatives:
        return OVERLAP, ALONE
    return (ALONE,) if clip.annotation.negative else (OVERLAP,)


def _state(of_pairs: Sequence[str]) -> str:
    """Return the state of sounds with these relations; empty if it is ambiguous."""
    if "overlap" in of_pairs:
        return OVERLAP
    return "" if "ambiguous" in of_pairs else ALONE


def _state_of_clip(clip: _Heard) -> list[Fact]:
    # A momentary sound makes it uncertain that nothing overlaps.
    state = _state(list(relations(clip.annotation).values())) if len(clip.annotation.labels) > 1 else ""
    return [clip.fact(state)] if state in _states_asked(clip) else []


def _states_of_anchors(clip: _Heard) -> Iterator[Fact]:
    """Yield, for each label, whether it overlaps another or is apart from all."""
    pairs = relations(clip.annotation)
    for label, activity in clip.activities.items():
        state = _state([of_pair for pair, of_pair in pairs.items() if label in pair])
        if state in _states_asked(clip) and total(activity) >= clip.rules.min_event:
            # Absence of overlap is harder to detect among overlapping sounds than among others, or in an otherwise
            # empty clip.
            elsewhere = [of_pair for pair, of_pair in pairs.items() if label not in pair]
            hardness = (len(clip.activities) > 1) + ("overlap" in elsewhere) if state == ALONE else 0
            yield clip.fact(state, label, hardness=hardness)


def _drafts_of_states(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[Draft]:
    """Draft equally many questions about each anchor in each state, in each of the two polarities of wording."""
    drafts, odd = [], 0
    for anchor, of_anchor in sorted(grouped(facts, "anchor").items()):
        states = grouped(of_anchor, "answer")
        count = min(len(states.get(state, ())) for state in (OVERLAP, ALONE))
        # For an odd number, one polarity has one more question in both states; polarities alternate.
        more = count // 2 + (count % 2 and odd % 2)
        odd += count % 2
        for state in (OVERLAP, ALONE) if count else ():
            for number, fact in enumerate(_picked(states[state], count, rng)):
                polarity = ALONE if number < more else OVERLAP
                answer = YES if polarity == state else NO
                drafts.append(Draft(fact, (YES, NO), answer, f"{anchor} {number}", polarity))
    return drafts


# ----- classification: the sound that overlaps the anchor
def _overlapping(clip: _Heard) -> Iterator[Fact]:
    """Yield, for each anchor, each label that overlaps it; its rivals are apart from the anchor, or absent."""
    heard, related = clip.activities, clip.settings.related
    absent = clip.vocabulary - set(heard).union(*(related.get(label, frozenset()) for label in heard))
    for anchor, activity in heard.items():
        of_pairs = {label: relation(activity, heard[label], clip.rules) for label in heard if label != anchor}
        apart = frozenset(label for label, of_pair in of_pairs.items() if of_pair == "apart")
        for label, of_label in of_pairs.items():
            if of_label == "overlap":
                near = frozenset() if clip.settings.absent_options else apart
                yield clip.fact(label, anchor, rivals=absent | near, near=near)


def _drafts_of_overlaps(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[Draft]:
    """Draft sets of four questions about one anchor with the same options; each option is the answer once.

    A label is thus a wrong option three times as often as the answer, and of each two labels in a set, either is the
    answer equally often.
    """
    drafts = []
    for anchor, of_anchor in sorted(grouped(facts, "anchor").items()):
        for number, four in enumerate(_sets_of_answers(of_anchor, rng, settings)):
            texts = tuple(in_sentence(fact.answer) for fact in four)
            drafts += [Draft(fact, texts, text, f"{anchor} {number}") for fact, text in zip(four, texts, strict=True)]
    return drafts


def _sets_of_answers(
    facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings
) -> Iterator[list[Fact]]:
    """Yield facts about one anchor in fours: each answer may be an option next to the other three."""
    by_answer = sorted(grouped(facts, "answer").items())
    waiting = {label: [of[k] for k in rng.permutation(len(of))] for label, of in by_answer}
    # A sound apart from the anchor is the better rival: such clips come first.
    for of_label in waiting.values():
        of_label.sort(key=lambda fact: not fact.near & waiting.keys())
    while chain := _chain(waiting, settings):
        yield chain
        for fact in chain:
            waiting[fact.answer].remove(fact)


def _chain(waiting: Mapping[str, list[Fact]], settings: QuestionSettings) -> list[Fact] | None:
    """Return four facts with different answers that may be options of each other; None if there are none left.

    The most frequent remaining answers come first, to get as many sets as possible.
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


# ----- detection: the time at which two sounds first overlap; or the number of overlaps
# Windows lie on a grid of a fifth of their length, and the overlap begins in the middle fifth of its window: perceiving
# it a little earlier or later gives the same answer. The windows of a question are windows in which overlaps of other
# clips begin, so that they are on the same grid and equally early.
PARTS = 5
"""Grid positions in a window."""

_HALF_SECOND = STEPS // 2


def _regions(clip: _Heard) -> list[Fact]:
    regions = overlap_regions(clip.activities, clip.rules)
    return [clip.fact(len(regions))] if regions else []


def _first_window(clip: _Heard) -> list[Fact]:
    """Return the window in which the first overlap begins, as its first step."""
    onset = first_overlap(clip.activities, clip.rules)
    if onset is None:
        return []
    length = steps_of(clip.annotation.duration)
    width = window_steps(clip.annotation.duration, clip.annotation.resolution)
    start = window_start(onset, width)
    return [clip.fact(start, width=width, length=length)] if start + width <= length else []


def window_steps(duration: float, resolution: float) -> int:
    """Return the steps of a window: a tenth of the clip, to half a second, but at least twice the resolution."""
    tenth = round(steps_of(duration) / 10 / _HALF_SECOND) * _HALF_SECOND
    least = -(-2 * steps_of(resolution) // _HALF_SECOND) * _HALF_SECOND
    return max(tenth, least, _HALF_SECOND)


def window_start(onset: int, width: int) -> int:
    """Return the first step of the window whose middle fifth has a given step; earlier at the beginning of the clip."""
    part = width // PARTS
    return max(onset // part - PARTS // 2, 0) * part


def window_text(start: int, width: int) -> str:
    """Return a window as an option, from its first step and its length."""
    return f"{start / STEPS:.1f} to {(start + width) / STEPS:.1f} s"


def _drafts_of_windows(facts: Sequence[Fact], rng: np.random.Generator, settings: QuestionSettings) -> list[Draft]:
    """Draft fours of questions with the same windows; each window is the answer once."""
    drafts = []
    for width, of_width in sorted(grouped(facts, "width").items()):
        for number, four in enumerate(_sets_of_windows(of_width, width, rng)):
            texts = tuple(window_text(int(fact.answer), width) for fact in four)
            drafts += [Draft(fact, texts, text, f"{width} {number}") for fact, text in zip(four, texts, strict=True)]
    return drafts


def _sets_of_windows(facts: Sequence[Fact], width: int, rng: np.random.Generator) -> list[list[Fact]]:
    """Return facts in fours whose windows do not overlap and lie in the clips of all four; as many as possible."""
    mixed = [facts[k] for k in rng.permutation(len(facts))]
    ordered = sorted(mixed, key=lambda fact: int(fact.answer))
    low, high = 0, len(ordered) // OPTIONS
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_matched(ordered, middle, width)) == middle else (low, middle - 1)
    return _matched(ordered, low, width)


def _matched(ordered: Sequence[Fact], count: int, width: int) -> list[list[Fact]]:
    """Return `count` sets, the first of each among the earliest facts; fewer if there are not enough."""
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


# ----- atoms, which are never asked about recordings as they are
ATOMS = PRESENCE, SEQUENCE = "presence", "sequence"
PRESENT, ABSENT, BEFORE, AFTER = "present", "absent", "before", "after"

STATES: Mapping[str, tuple[str, str]] = {PRESENCE: (PRESENT, ABSENT), SEQUENCE: (BEFORE, AFTER)}
"""The two states of each atom; a polarity is the state that Yes affirms."""

LEAST_STEP = 50
"""Fewest steps between two beginnings so that one counts as earlier."""


def _presence(clip: _Heard) -> Iterator[Fact]:
    """Yield, for each label, whether it is present; labels that are present for too short a time are left out."""
    for label in sorted(clip.vocabulary):
        if label not in clip.activities:
            yield clip.fact(ABSENT, label)
        elif total(clip.activities[label]) >= clip.rules.min_event:
            yield clip.fact(PRESENT, label)


def _sequence(clip: _Heard) -> Iterator[Fact]:
    """Yield the first to begin of any two labels, unless they begin together; the other is the wrong option."""
    onsets = {label: activity[0][0] for label, activity in clip.activities.items() if activity}
    for one, other in permutations(onsets, 2):
        if abs(onsets[other] - onsets[one]) >= LEAST_STEP:
            state = BEFORE if onsets[other] > onsets[one] else AFTER
            yield clip.fact(state, one, options=frozenset((other,)))


_OF_LABELS = (
    QuestionKind("counting/kinds", NO_TIME, _kinds, _drafts_of_counts, TWO_COUNTS),
    QuestionKind(
        "counting/sources", NO_TIME, _sources, _drafts_of_counts, f"sources that labels distinguish, and {TWO_COUNTS}"
    ),
    QuestionKind("counting/together", SIMULTANEITY, _most_at_once, _drafts_of_counts, TWO_COUNTS),
    QuestionKind(
        "duration/total", NO_TIME, partial(_durations, 0), _drafts_of_durations,
        "two labels, each heard much longer than the other in some clip",
    ),
    QuestionKind(
        "duration/longest", ORDER, partial(_durations, 1), _drafts_of_durations,
        "two labels, each with an event much longer than the other's in some clip",
    ),
    QuestionKind(
        "concurrency/anchor", SIMULTANEITY, _states_of_anchors, _drafts_of_states,
        "a label that clearly overlaps another in some clip and is alone in another clip",
    ),
    QuestionKind(
        "concurrency/clip", SIMULTANEITY, _state_of_clip, _drafts_of_states,
        "a clip in which labels clearly overlap, and one in which they are all apart",
    ),
    QuestionKind(
        "classification/overlap", SIMULTANEITY, _overlapping, _drafts_of_overlaps,
        "a label that is overlapped by four others, each in a clip in which the other three do not overlap it",
    ),
    QuestionKind(
        "detection/first", ORDER, _first_window, _drafts_of_windows,
        "four clips in which sounds first overlap at different times",
    ),
    QuestionKind("detection/regions", ORDER, _regions, _drafts_of_counts, TWO_COUNTS),
)  # fmt: skip

KINDS: Mapping[str, QuestionKind] = {kind.name: kind for kind in _OF_LABELS}
"""Kinds by name, the default variant of each task first."""

ATOM_KINDS: Mapping[str, QuestionKind] = {
    kind.name: kind
    for kind in (
        QuestionKind(f"{PRESENCE}/heard", NO_TIME, _presence),
        QuestionKind(f"{SEQUENCE}/onsets", ORDER, _sequence),
    )
}

TASKS = tuple(dict.fromkeys(kind.task for kind in KINDS.values()))


def kind_named(name: str, kinds: Mapping[str, QuestionKind] = KINDS) -> QuestionKind:
    """Return the kind called ``task`` or ``task/variant``.

    Raises:
        InputError: this kind does not exist.
    """
    task, _, variant = name.partition("/")
    variants = [kind.variant for kind in kinds.values() if kind.task == task]
    if not variants:
        raise InputError(f"there is no task {task!r}; {nearest(task, dict.fromkeys(k.task for k in kinds.values()))}")
    if variant and variant not in variants:
        raise InputError(f"the task {task!r} has no variant {variant!r}; {nearest(variant, variants)}")
    return kinds[f"{task}/{variant or variants[0]}"]
