"""Counterparts: groups of clips that differ only in which label is where, with their questions and time lines.

The clips of a group have the same sounds at the same positions, and a question with the same options about each, whose
answer differs from clip to clip. The measured events of the clips confirm it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import ceil, floor

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ..scenes.sources import dealt, random_generator
from ..sounds.annotations import Annotation, Interval
from .question_tasks import (
    ATOM_KINDS,
    KINDS,
    PRESENCE,
    SEQUENCE,
    STATES,
    QuestionSettings,
    kind_named,
    window_start,
    window_steps,
    window_text,
)
from .questions import (
    ALONE,
    NO,
    OVERLAP,
    YES,
    Question,
    QuestionError,
    in_sentence,
    question_templates,
    template_of,
)

SECONDS = 10
"""Length of a clip in seconds."""

FEWEST_LABELS = 5
"""Least number of labels: the anchor of a classification, and four that rotate."""

EARLY_END = 20
"""Steps by which a sound may end before its span: the longest silence that does not split an event."""

SPLITS = ("train", "test")

LEVELS = (0.0, 3.0, 6.0)
"""Differences between the loudest and the softest track in dB; groups alternate."""

TOGETHER, APART = "together", "apart"
ARRANGEMENTS = (TOGETHER, APART)

_GROUPS, _LABELS, _TEMPLATES = 70, 71, 72
"""Random streams."""

Spans = tuple[Interval, ...]

Tracks = Sequence[tuple[str, int, Spans]]
"""Label, variant and spans of each track of a clip."""


@dataclass(frozen=True)
class Track:
    """A sound in a clip.

    Attributes:
        label: label of the sound.
        variant: index of the sound within its label, from 0; tracks of one clip with the same variant share the sound.
        level: dB; 0 for the loudest track and negative for a softer one.
        spans: first step and the step after the last, of each span; spans do not touch.
    """

    label: str
    variant: int
    level: float
    spans: Spans


@dataclass(frozen=True)
class CounterpartClip:
    """A clip of a group.

    Attributes:
        name: unique among all clips of a data set.
        tracks: the sounds.
    """

    name: str
    tracks: tuple[Track, ...]


@dataclass(frozen=True)
class CounterpartQuestion:
    """A question about all clips of a group.

    Attributes:
        anchor: label in question, or empty.
        answers: one of the options for each clip.
        polarity: for Yes and No, the state that Yes affirms; else empty.
        other: label with which the anchor is compared, or empty.
        options: in order; each is the answer in one clip. Empty until the question has a wording.
        template: the wording; empty until it is chosen.
    """

    anchor: str
    answers: Sequence[str]
    polarity: str = ""
    other: str = ""
    options: tuple[str, ...] = ()
    template: str = ""


@dataclass(frozen=True)
class CounterpartGroup:
    """Clips that differ in which label is where.

    Attributes:
        name: unique among all groups of a data set.
        split: train or test.
        number: index of its set, from 0.
        task: a task of `questions`.
        variant: variant of the task.
        clips: two to four.
        questions: one; two for Yes or No, one about each of the exchanged labels.
        place: number of its kind, see `Kind`.
        arrangement: one of `ARRANGEMENTS` if the group has a counterpart in the other; else empty.
    """

    name: str
    split: str
    number: int
    task: str
    variant: str
    clips: tuple[CounterpartClip, ...]
    questions: tuple[CounterpartQuestion, ...]
    place: int
    arrangement: str = ""

    @property
    def kind(self) -> str:
        """Return task and variant as one name."""
        return f"{self.task}/{self.variant}"

    @property
    def pair(self) -> str:
        """Return the part of its name that its counterpart shares."""
        return self.name.removesuffix(f"-{self.arrangement}")

    @property
    def level_difference(self) -> float:
        """Return the difference between the loudest and the softest track in dB."""
        levels = [track.level for track in self.clips[0].tracks]
        return max(levels) - min(levels)


@dataclass(frozen=True)
class TimeLines:
    """A drawn group, before it has wordings, levels and a name.

    Attributes:
        clips: the tracks of each clip.
        asked: the questions.
        is_level: whether all tracks have the same level.
        apart: spans of the tracks of all clips in the arrangement apart; None if there is none.
    """

    clips: Sequence[Tracks]
    asked: Sequence[CounterpartQuestion]
    is_level: bool = False
    apart: Sequence[Spans] | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of group.

    Attributes:
        task: task of `questions`, with the variant unless it is the first.
        place: its number in random streams, unique among all kinds.
        draw: the function that draws a group of this kind.
    """

    task: str
    place: int
    draw: Callable[[Turn], TimeLines]


@dataclass(frozen=True)
class Turn:
    """The number of a group among all, and its share of the balanced choices.

    Attributes:
        number: number of the set that it belongs to.
        labels: labels of the group, in order.
        block: steps; if statistics must not reveal the answer, sounds last a whole number of blocks.
        rng: random generator of this group.
    """

    number: int
    labels: list[str]
    block: float
    rng: np.random.Generator


def draw_groups(
    kinds: Sequence[Kind], labels: Sequence[str], split: str, sets: int, seed: int, *, block: float
) -> Iterator[tuple[CounterpartGroup, ...]]:
    """Yield the groups of a split, set by set, one of each kind per set; if more sets are requested, earlier ones stay.

    Labels, wordings and levels are used equally often; times are drawn.

    Args:
        kinds: kinds of a set.
        labels: five or more.
        split: train or test.
        sets: number of sets.
        seed: seed of all choices.
        block: see `Turn`.

    Yields:
        A group, or two groups with the same sounds, together and apart.

    Raises:
        InputError: there are too few labels, or two that read alike.
    """
    if len({in_sentence(label) for label in labels}) != len(labels) or len(labels) < FEWEST_LABELS:
        raise InputError(
            f"labels are {shown(list(labels))}; questions need {FEWEST_LABELS} or more that read differently"
        )
    for number, kind in product(range(sets), kinds):
        at, of = (SPLITS.index(split), kind.place), kind_named(kind.task, _ALL_KINDS)
        rng = random_generator(seed, _GROUPS, *at, number)
        # Over as many groups as there are labels, each label is in each position once.
        turn, first = divmod(number, len(labels))
        order = np.roll(random_generator(seed, _LABELS, *at, turn).permutation(len(labels)), -first)
        lines = kind.draw(Turn(number, [labels[k] for k in order], block, rng))
        variants = sorted({variant for _, variant, _ in lines.clips[0]})
        levels = dict.fromkeys(variants, 0.0)
        if not lines.is_level:
            # Some variants, but not all, are softer by the level difference of the group.
            distinct = rng.permutation(variants).tolist()
            softer = distinct[: int(rng.integers(1, len(distinct)))]
            levels |= dict.fromkeys(softer, -LEVELS[number % len(LEVELS)])
        questions = []
        for asked in lines.asked:
            distinct = sorted(set(asked.answers))
            options = tuple(distinct[k] for k in rng.permutation(len(distinct)))
            # Over as many groups as a polarity has wordings, each wording is used once.
            every = question_templates(of.task, of.variant)
            side = list(dict.fromkeys(template.polarity for template in every)).index(asked.polarity)
            wordings = [template.name for template in every if template.polarity == asked.polarity]
            template = dealt(wordings, number, seed, _TEMPLATES, *at, side)
            questions.append(replace(asked, options=options, template=template))
        groups = []
        for arrangement in ("",) if lines.apart is None else ARRANGEMENTS:
            name = "-".join(filter(None, (split, f"{number:05d}", kind.task.replace("/", "-"), arrangement)))
            clips = []
            for place, tracks in enumerate(lines.clips, 1):
                every_span = [spans for _, _, spans in tracks] if arrangement != APART else lines.apart or ()
                of_clip = zip(tracks, every_span, strict=True)
                made = tuple(Track(label, which, levels[which], spans) for (label, which, _), spans in of_clip)
                clips.append(CounterpartClip(f"{name}-{place}", made))
            groups.append(
                CounterpartGroup(
                    name, split, number, of.task, of.variant, tuple(clips), tuple(questions), kind.place, arrangement
                )
            )
        yield tuple(groups)


_SETTINGS = QuestionSettings(counts=(1, 2, 3, 4), duration_options=3)


_ALL_KINDS = {**KINDS, **ATOM_KINDS}
"""All kinds that groups can have: the kinds of questions, and their atoms."""


def questions_of(group: CounterpartGroup, annotations: Sequence[Annotation]) -> tuple[Question, ...]:
    """Return the questions of a group, clip by clip.

    Args:
        group: the group of counterparts.
        annotations: the measured events of each of its clips.

    Raises:
        QuestionError: the measured events of a clip contradict its answer.
    """
    questions = []
    for place, (clip, annotation) in enumerate(zip(group.clips, annotations, strict=True)):
        asked = {label for ask in group.questions for label in (ask.anchor, *ask.options) if label}
        facts = _ALL_KINDS[group.kind].facts(annotation, frozenset(annotation.labels) | asked, _SETTINGS)
        for ask, suffix in zip(group.questions, ("-a", "-b") if len(group.questions) > 1 else ("",), strict=True):
            template, answer = template_of(ask.template), ask.answers[place]
            borne_out = set()
            for fact in facts:
                if fact.anchor == ask.anchor and (not ask.other or ask.other in fact.options):
                    option = window_text(int(fact.answer), fact.width) if fact.width else in_sentence(fact.answer)
                    agrees = YES if fact.answer == template.polarity else NO
                    borne_out.add(agrees if template.polarity else option)
            if borne_out != {answer}:
                raise QuestionError(
                    f"{clip.name}: the measured events do not confirm the answer {answer!r}; they give "
                    f"{shown(sorted(borne_out)) or 'nothing'}"
                )
            questions.append(
                Question(
                    id=f"{clip.name}{suffix}",
                    task=group.task,
                    variant=group.variant,
                    question=template.question(ask.anchor, ask.other),
                    options=ask.options,
                    answer=answer,
                    anchor=ask.anchor,
                    template=ask.template,
                    group=group.name,
                    recording=clip.name,
                    polarity=template.polarity,
                    start=annotation.start,
                    source=annotation.source_name,
                    unit=f"{group.name}{suffix}",
                )
            )
    return tuple(questions)


def gap_of(question: Question, annotation: Annotation) -> float | None:
    """Return the shortest silence, in seconds, between the anchor and the sounds before and after it.

    For detection, between any two labels. None for other questions without an anchor, and if no sounds are apart.
    """
    if not question.anchor and question.task != "detection":
        return None
    gaps = [
        later.onset - earlier.offset
        for earlier in annotation.events
        for later in annotation.events
        if earlier.label != later.label
        and later.onset >= earlier.offset
        and question.anchor in ("", earlier.label, later.label)
    ]
    return round(min(gaps), 3) if gaps else None


FIRST, LAST = 20, 980
"""First and last step of all sounds."""

SHARED = 100
"""Least steps of an overlap unless the group has its own value; one sound may end `EARLY_END` sooner."""

BLOCK = 40.0
"""Most steps of a block: `_BLOCKS` of them fit into a clip."""

_BLOCKS = int((LAST - FIRST) / BLOCK)

_SHAPES = (
    ((8, 2), ((5, 5),)),
    ((9, 2), ((6, 5),)),
    ((9, 3), ((6, 6),)),
    ((10, 2), ((6, 6), (7, 5))),
    ((7, 2, 2), ((4, 4, 3),)),
    ((8, 2, 2), ((4, 4, 4), (5, 4, 3))),
)
"""Blocks of the events of the label with the longest event, and of both other labels. In each shape both have the same
total and number of events, none shorter than two blocks, and the longest is three blocks longer than any other
event."""

_SLOTS, _SLOT = 6, 3
"""For a clip of `counting/together`: number of times with sound, and the blocks of each; one block lies between
them."""


def _longest(turn: Turn) -> TimeLines:
    """Draw three tracks with the same total and number of events; the first has the longest one, and labels rotate."""
    rng, block = turn.rng, turn.block
    winner, shorter = _SHAPES[int(rng.integers(len(_SHAPES)))]
    shapes = [winner, *(shorter[int(rng.integers(len(shorter)))] for _ in range(2))]
    runs = [_placed(shape, rng) for shape in shapes]
    # Accept about one draw in ten, in which the longest event overlaps both others equally often.
    while len({len(set(_blocks(one)) & set(_blocks(other))) for one, other in combinations(runs, 2)}) > 1:
        runs = [_placed(shape, rng) for shape in shapes]
    shift = _shift(rng, block)
    spans: list[Spans] = [tuple(_span(first, last, block, shift) for first, last in of_track) for of_track in runs]
    return _rotated(spans, turn, is_level=True)


def _placed(lengths: Sequence[int], rng: np.random.Generator) -> list[Interval]:
    """Place events of given lengths in blocks, randomly, with at least a block of silence between them."""
    order = rng.permutation(lengths).tolist()
    spare = _BLOCKS - sum(order) - (len(order) - 1)
    # All ways to divide the rest among the silences are equally likely.
    bars = np.sort(rng.permutation(spare + len(order))[: len(order)]) - np.arange(len(order))
    starts = bars + np.arange(len(order)) + np.concatenate(([0], np.cumsum(order)[:-1]))
    return [(start, start + length) for start, length in zip(starts.tolist(), order, strict=True)]


def _blocks(runs: Sequence[Interval]) -> list[int]:
    return [block for first, last in runs for block in range(first, last)]


def _shift(rng: np.random.Generator, block: float) -> int:
    """Draw the steps from the first allowed step to the first block."""
    return int(rng.integers(0, int(LAST - FIRST - _BLOCKS * block) + 1))


def _span(first: int, last: int, block: float, shift: int) -> Interval:
    """Return blocks in steps, without the steps shared with other blocks: a repeated sound restarts in them."""
    return FIRST + shift + ceil(first * block), FIRST + shift + floor(last * block)


def _together(turn: Turn) -> TimeLines:
    """Draw six times, two with four voices and four with two voices; two, three or four labels sound at once.

    Whatever the answer, each of four labels sounds at three times: in one voice at two of them, in two voices at one.
    """
    labels, rng, block = turn.labels, turn.rng, turn.block
    # The first block of each time, with at least one block of silence between times.
    spare = _BLOCKS - _SLOTS * _SLOT - (_SLOTS - 1)
    silences = np.cumsum(rng.multinomial(spare, [1 / (_SLOTS + 1)] * (_SLOTS + 1)))
    slots = [place * (_SLOT + 1) + int(silences[place]) for place in range(_SLOTS)]
    shift = _shift(rng, block)
    voices = [[int(voice) for voice in rng.permutation(4)[: 4 if place < 2 else 2]] for place in range(_SLOTS)]
    order = rng.permutation(_SLOTS).tolist()
    counts = [2 + int(count) for count in rng.permutation(3)]
    clips: list[Tracks] = []
    for count in counts:
        names = [labels[k] for k in rng.permutation(4)]
        clip = []
        for place, cast in enumerate(_cast(count, rng)):
            first = slots[order[place]]
            span = _span(first, first + _SLOT, block, shift)
            clip += [
                (names[who], voice, (span,)) for who, voice in zip(rng.permutation(cast), voices[place], strict=True)
            ]
        clips.append(clip)
    return TimeLines(clips, [CounterpartQuestion("", [str(count) for count in counts])], is_level=True)


def _cast(count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Assign four labels to the voices of each time, the two times of four voices first; at most `count` at once.

    A maximum of four is reached at one time, a maximum of three at one or two. The number of times at which two labels
    meet, which shared frequency bands partly reveal, therefore differs as little as possible.
    """
    full: list[tuple[int, ...]]
    doubled: list[tuple[int, ...]] = [(2, 2), (3, 3)]
    if count == 4:
        full = [(0, 1, 2, 3), (0, 0, 1, 1)]
    elif count == 2:
        full, doubled = [(0, 0, 1, 1), (2, 2, 3, 3)], []
    elif rng.random() < 0.5:
        full = [(k, k, *rng.permutation([other for other in range(4) if other != k])[:2].tolist()) for k in (0, 1)]
    else:
        full, doubled = [(0, 0, *rng.permutation([1, 2, 3])[:2].tolist()), (1, 1, 2, 2)], [(3, 3)]
    single = Counter(who for cast in full for who in cast if cast.count(who) == 1)
    left = [who for who in range(4) for _ in range(2 - single[who])]
    voices = [*(full[place] for place in rng.permutation(2)), *doubled]
    while True:
        # In random order without a pair of equal labels.
        order = rng.permutation(left).tolist()
        couples = [tuple(order[place : place + 2]) for place in range(0, len(order), 2)]
        if all(one != other for one, other in couples):
            return [*voices, *couples]


_SOONEST = 44
"""First step of the first slot of a detection: nothing overlaps in the first half second."""

_GAPS = (25, 50, 80)
"""Steps of silence around the label in question; groups alternate."""

_OVERLAPS = (80, 120, 170)
"""Steps of overlap of the anchor with another label; groups alternate."""


def _counting(turn: Turn) -> TimeLines:
    """Draw four simultaneous tracks."""
    rng = turn.rng
    return _counted([((int(rng.integers(FIRST, 300)), int(rng.integers(600, LAST))),) for _ in range(4)], turn)


def _counted(spans: Sequence[Spans], turn: Turn, apart: Sequence[Spans] | None = None) -> TimeLines:
    """Put one to four labels on four tracks."""
    counts = [int(count) for count in 1 + turn.rng.permutation(4)]
    clips = []
    for count in counts:
        some = [turn.labels[k] for k in turn.rng.permutation(4)[:count]]
        # Each label is used at least once; the repeated ones are drawn.
        dealt = turn.rng.permutation([*range(count), *turn.rng.integers(count, size=4 - count)])
        clips.append([(some[which], track, spans[track]) for track, which in enumerate(dealt)])
    return TimeLines(clips, [CounterpartQuestion("", [str(count) for count in counts])], apart=apart)


def _duration(turn: Turn) -> TimeLines:
    """Draw three tracks of very different lengths; the longest overlaps the others."""
    rng = turn.rng
    unit = int(rng.integers(50, 71))
    lengths = [share * unit + int(rng.integers(0, 21)) for share in (11, 7, 4)]
    return _rotated(_overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0])), rng), turn)


def _rotated(
    spans: Sequence[Spans], turn: Turn, *, is_level: bool = False, apart: Sequence[Spans] | None = None
) -> TimeLines:
    """Rotate the labels over three tracks, the first one the longest."""
    clips, answers = [], []
    for shift in turn.rng.permutation(3).tolist():
        order = np.roll(turn.labels[:3], shift).tolist()
        clips.append([(label, track, spans[track]) for track, label in enumerate(order)])
        answers.append(in_sentence(order[0]))
    return TimeLines(clips, [CounterpartQuestion("", answers)], is_level, apart)


def _overlapping(lengths: Sequence[int], first: int, rng: np.random.Generator) -> list[Spans]:
    """Draw the span of each sound: the first at a given step; shorter ones overlap one of its sides or lie within."""
    longest, *shorter = lengths
    spans: list[Spans] = [((first, first + longest),)]
    for length in shorter:
        low, high = max(FIRST, first + SHARED - length), min(LAST - length, first + longest - SHARED)
        start = int(rng.integers(low, high + 1))
        spans.append(((start, start + length),))
    return spans


def _concurrency(turn: Turn) -> TimeLines:
    """Draw a track that overlaps another, and a third one, alone, with the length, sound and level of the first."""
    labels, number, rng = turn.labels, turn.number, turn.rng
    length, other = int(rng.integers(220, 291)), int(rng.integers(220, 291))
    gap, overlap = _GAPS[number % len(_GAPS)], _OVERLAPS[number // len(_GAPS) % len(_OVERLAPS)]
    pair = length + other - overlap
    start = int(rng.integers(FIRST, LAST - (pair + gap + length) + 1))
    alone_first, other_first = rng.random(2) < 0.5
    of_pair, alone = (start + length + gap, start) if alone_first else (start, start + pair + gap)
    one = of_pair + (other - overlap) * int(other_first)
    two = of_pair + (length - overlap) * int(not other_first)
    exchanged = [(labels[0], labels[2]), (labels[2], labels[0])]
    if rng.random() < 0.5:
        exchanged.reverse()
    clips = [
        [
            (first, 0, ((one, one + length),)),
            (labels[1], 1, ((two, two + other),)),
            (third, 0, ((alone, alone + length),)),
        ]
        for first, third in exchanged
    ]
    # One polarity for each label, so that in either state Yes is right as often as No.
    polarities = (OVERLAP, ALONE) if rng.random() < 0.5 else (ALONE, OVERLAP)
    asked = []
    for anchor, polarity in zip((labels[0], labels[2]), polarities, strict=True):
        states = [OVERLAP if anchor == first else ALONE for first, _ in exchanged]
        asked.append(CounterpartQuestion(anchor, [YES if state == polarity else NO for state in states], polarity))
    return TimeLines(clips, asked)


def _classification(turn: Turn) -> TimeLines:
    """Draw an anchor, a sound that overlaps it, one before, one after, and an absent one; four labels rotate."""
    labels, number, rng = turn.labels, turn.number, turn.rng
    gap, overlap = _GAPS[number % len(_GAPS)], _OVERLAPS[number // len(_GAPS) % len(_OVERLAPS)]
    length, before, after, with_it = rng.integers((220, 180, 180, 180), (291, 241, 241, 241)).tolist()
    start = int(rng.integers(FIRST, LAST - (before + length + after + 2 * gap) + 1))
    anchor = start + before + gap
    partner = anchor + overlap - with_it if rng.random() < 0.5 else anchor + length - overlap
    spans = [
        ((partner, partner + with_it),),
        ((start, start + before),),
        ((anchor + length + gap, anchor + length + gap + after),),
    ]
    clips, answers = [], []
    for shift in rng.permutation(4).tolist():
        order = np.roll(labels[1:5], shift).tolist()
        tracks = [(order[track], 1 + track, spans[track]) for track in range(3)]
        clips.append([(labels[0], 0, ((anchor, anchor + length),)), *tracks])
        answers.append(in_sentence(order[0]))
    return TimeLines(clips, [CounterpartQuestion(labels[0], answers)])


def _detection(turn: Turn) -> TimeLines:
    """Draw two labels in each of four slots: together in one slot, one after the other in the rest."""
    labels, rng = turn.labels, turn.rng
    length, late, gap = int(rng.integers(86, 93)), int(rng.integers(6, 16)), int(rng.integers(22, 31))
    slot = 2 * length + gap
    # The remaining time is divided among the gaps between slots.
    rest = rng.multinomial(LAST - _SOONEST - 4 * slot - 3 * _GAPS[0], [0.2] * 5)
    starts = [_SOONEST + place * (slot + _GAPS[0]) + int(rest[: place + 1].sum()) for place in range(4)]
    within = [int(rng.integers(0, slot - length - late + 1)) for _ in starts]
    second_first = rng.random(4) < 0.5
    width = window_steps(SECONDS, 0)
    windows = [window_start(start + shift + late, width) for start, shift in zip(starts, within, strict=True)]
    clips, answers = [], []
    for together in rng.permutation(4).tolist():
        spans: tuple[list[Interval], list[Interval]] = ([], [])
        for place, start in enumerate(starts):
            first = start + within[place] if place == together else start
            second = first + late if place == together else start + length + gap
            order = spans[::-1] if second_first[place] else spans
            for of_label, onset in zip(order, (first, second), strict=True):
                of_label.append((onset, onset + length))
        clips.append([(labels[k], k, tuple(spans[k])) for k in range(2)])
        answers.append(window_text(windows[together], width))
    return TimeLines(clips, [CounterpartQuestion("", answers)])


_LEAST_GAP = 25
"""Fewest steps between two sounds one after the other."""


def _one_after_the_other(lengths: Sequence[int], rng: np.random.Generator) -> list[Spans]:
    """Draw the span of each sound, in random order; the rest of the clip is divided among the silences."""
    count = len(lengths)
    rest = LAST - FIRST - sum(lengths) - (count - 1) * _LEAST_GAP
    silences = rng.multinomial(rest, [1 / (count + 1)] * (count + 1))
    spans: dict[int, Spans] = {}
    step = FIRST
    for which, silence in zip(rng.permutation(count).tolist(), silences[:count].tolist(), strict=True):
        start = step + silence
        spans[which] = ((start, start + lengths[which]),)
        step = start + lengths[which] + _LEAST_GAP
    return [spans[which] for which in range(count)]


def _counting_both_ways(turn: Turn) -> TimeLines:
    """Draw four sounds with one to four labels; in the arrangement together, all overlap for a while."""
    rng = turn.rng
    lengths = [int(length) for length in rng.integers(170, 216, 4)]
    longest = max(lengths)
    shared = int(rng.integers(FIRST + longest - SHARED, LAST - longest))
    starts = [shared - int(rng.integers(0, length - SHARED + 1)) for length in lengths]
    spans = [((start, start + length),) for start, length in zip(starts, lengths, strict=True)]
    return _counted(spans, turn, apart=_one_after_the_other(lengths, rng))


def _duration_both_ways(turn: Turn) -> TimeLines:
    """Draw three sounds of very different lengths; labels rotate, and together, the longest overlaps the others."""
    rng = turn.rng
    unit = int(rng.integers(36, 40))
    lengths = [share * unit + int(rng.integers(0, 9)) for share in (11, 7, 4)]
    spans = _overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0])), rng)
    return _rotated(spans, turn, apart=_one_after_the_other(lengths, rng))


def _presence(turn: Turn) -> TimeLines:
    """Draw three sounds, the first overlapping the others; one of them has either of two labels."""
    labels, rng = turn.labels, turn.rng
    lengths = [int(length) for length in rng.integers((300, 150, 150), (501, 351, 351))]
    spans = _overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0] + 1)), rng)
    place = int(rng.integers(3))
    clips: list[Tracks] = []
    for label in labels[:2]:
        kinds = [*labels[2:4]]
        kinds.insert(place, label)
        clips.append([(kind, track, spans[track]) for track, kind in enumerate(kinds)])
    return _either_way(turn, clips, PRESENCE)


def _sequence(turn: Turn) -> TimeLines:
    """Draw two sounds that begin one after the other and exchange positions, and a third that begins at any time."""
    labels, rng = turn.labels, turn.rng
    lengths = [int(length) for length in rng.integers(150, 351, 3)]
    step = int(rng.integers(60, 301))
    first = int(rng.integers(FIRST, LAST - max(lengths[0], step + lengths[1]) + 1))
    third = int(rng.integers(FIRST, LAST - lengths[2] + 1))
    starts = (first, first + step, third)
    spans = [((start, start + length),) for start, length in zip(starts, lengths, strict=True)]
    orders = ((labels[0], labels[1]), (labels[1], labels[0]))
    clips = [[(one, 0, spans[0]), (two, 1, spans[1]), (labels[2], 2, spans[2])] for one, two in orders]
    return _either_way(turn, clips, SEQUENCE)


def _either_way(turn: Turn, clips: Sequence[Tracks], atom: str) -> TimeLines:
    """Return two clips in random order: in one the first label is in the first state, in the other the second label;
    each question about a label has its own polarity."""
    first_is_first = turn.rng.random() < 0.5
    states = STATES[atom]
    polarities = states if turn.rng.random() < 0.5 else states[::-1]
    asked = []
    for which, polarity in enumerate(polarities):
        is_right = [(polarity == states[0]) == (clip == which) for clip in (0, 1)]
        answers = [YES if right else NO for right in (is_right if first_is_first else is_right[::-1])]
        compared = turn.labels[1 - which] if atom == SEQUENCE else ""
        asked.append(CounterpartQuestion(turn.labels[which], answers, polarity, compared))
    return TimeLines(clips if first_is_first else clips[::-1], asked)


OVERLAPPING = (
    Kind("counting", 0, _counting),
    Kind("duration", 1, _duration),
    Kind("concurrency", 2, _concurrency),
    Kind("classification", 3, _classification),
    Kind("detection", 4, _detection),
    Kind("duration/longest", 9, _longest),
    Kind("counting/together", 10, _together),
)
"""The paper's five kinds of questions about polyphonic sounds, and two more that need time."""

PAIRED = (Kind("counting", 5, _counting_both_ways), Kind("duration", 6, _duration_both_ways))
"""Kinds of questions whose answer is the same together and apart."""

ATOMIC = (Kind(PRESENCE, 7, _presence), Kind(SEQUENCE, 8, _sequence))
"""The atoms of questions about overlap."""
