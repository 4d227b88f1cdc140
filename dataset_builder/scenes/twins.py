"""Twins: groups of clips that differ in which label is where, their questions, and the time lines of each kind.

A group has clips with the same sounds at the same places, and a question with the same options about each, whose answer
is another in each. What a group says is borne out by what is heard in its clips, as it is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ..sounds.annotations import Annotation, Interval
from ..texts.question_tasks import (
    ATOM_TASKS,
    PRESENCE,
    SEQUENCE,
    STATES,
    question_tasks,
    window_start,
    window_steps,
    window_text,
)
from ..texts.questions import (
    ALONE,
    NO,
    OVERLAP,
    YES,
    Question,
    QuestionError,
    QuestionSettings,
    QuestionTask,
    in_sentence,
    question_templates,
    task_and_variant,
    template_of,
)
from .sources import dealt, random_generator

SECONDS = 10
"""Of a clip."""

FEWEST_LABELS = 5
"""The anchor of a classification, and four that take turns."""

EARLY_END = 20
"""Steps by which a sound may end before its span: the longest silence that is none."""

SPLITS = ("train", "test")

LEVELS = (0.0, 3.0, 6.0)
"""dB between the loudest and the softest track, dealt to groups."""

TOGETHER, APART = "together", "apart"
ARRANGEMENTS = (TOGETHER, APART)

_GROUPS, _LABELS, _TEMPLATES = 70, 71, 72
"""The random streams."""

Spans = tuple[Interval, ...]

Tracks = Sequence[tuple[str, int, Spans]]
"""Label, variant and spans of each track of a clip."""


@dataclass(frozen=True)
class Track:
    """A sound in a clip.

    Attributes:
        label: what is heard.
        variant: which of the label's sounds, from 0; tracks of one clip that have the same take the same.
        level: dB, 0 of the loudest track and negative of a softer one.
        spans: when, first step and the step after the last; they do not touch.
    """

    label: str
    variant: int
    level: float
    spans: Spans


@dataclass(frozen=True)
class TwinClip:
    """A clip of a group.

    Attributes:
        name: of its own among all clips of a data set.
        tracks: the sounds.
    """

    name: str
    tracks: tuple[Track, ...]


@dataclass(frozen=True)
class TwinQuestion:
    """What is asked of all clips of a group.

    Attributes:
        anchor: label that is asked about; or empty.
        options: in the order in which they stand; each is the answer in one clip.
        answers: one of the options for each clip.
        template: the wording.
        other: label that the anchor is compared with; or empty.
    """

    anchor: str
    options: tuple[str, ...]
    answers: tuple[str, ...]
    template: str
    other: str = ""


@dataclass(frozen=True)
class TwinGroup:
    """Clips that differ in what sounds where.

    Attributes:
        name: of its own among all groups of a data set.
        split: train or test.
        number: of the set that it is in, from 0.
        task: of `questions`.
        variant: of the task.
        clips: two to four.
        questions: one; of those answered by Yes or No two, about either of the labels that are exchanged.
        place: of its kind, see `Kind`.
        arrangement: one of `ARRANGEMENTS`, where it has a pair in the other; else empty.
    """

    name: str
    split: str
    number: int
    task: str
    variant: str
    clips: tuple[TwinClip, ...]
    questions: tuple[TwinQuestion, ...]
    place: int
    arrangement: str = ""

    @property
    def kind(self) -> str:
        """Task and variant, as one name."""
        return f"{self.task}/{self.variant}"

    @property
    def pair(self) -> str:
        """What its name has in common with that of its pair."""
        return self.name.removesuffix(f"-{self.arrangement}")

    @property
    def level_difference(self) -> float:
        """dB between the loudest and the softest track."""
        levels = [track.level for track in self.clips[0].tracks]
        return max(levels) - min(levels)


@dataclass(frozen=True)
class DrawnQuestion:
    """A question as it is drawn, before it has a wording.

    Attributes:
        anchor, answers, other: as of `TwinQuestion`.
        polarity: of Yes and No, what Yes says; else empty.
    """

    anchor: str
    answers: Sequence[str]
    polarity: str = ""
    other: str = ""


@dataclass(frozen=True)
class TimeLines:
    """What is drawn of a group before it has wordings, levels and a name.

    Attributes:
        clips: the tracks of each.
        asked: the questions.
        is_level: whether all tracks have one level.
        apart: spans of the tracks of all clips where they are pulled apart; None where they are not.
    """

    clips: Sequence[Tracks]
    asked: Sequence[DrawnQuestion]
    is_level: bool = False
    apart: Sequence[Spans] | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of groups.

    Attributes:
        task: of `questions`, with the variant where it is not the first.
        place: its number in random streams, of its own among all kinds.
        draw: what draws a group of it.
    """

    task: str
    place: int
    draw: Callable[[Turn], TimeLines]


@dataclass(frozen=True)
class Turn:
    """The place of a group among all, and what is dealt to it.

    Attributes:
        kind: of the group.
        split: train or test.
        number: of the set that it is in.
        seed: of all choices.
        labels: that are heard, in the order of the group.
        block: steps of which sounds last a whole number where their statistics must not tell the answer.
        rng: of this group.
    """

    kind: Kind
    split: str
    number: int
    seed: int
    labels: list[str]
    block: float
    rng: np.random.Generator

    @property
    def at(self) -> tuple[int, int]:
        """Numbers of the split and the kind in random streams."""
        return SPLITS.index(self.split), self.kind.place

    @property
    def name(self) -> str:
        """Of the group."""
        return f"{self.split}-{self.number:05d}-{self.kind.task.replace('/', '-')}"


def draw_groups(
    kinds: Sequence[Kind], labels: Sequence[str], split: str, sets: int, seed: int, *, block: float
) -> Iterator[tuple[TwinGroup, ...]]:
    """The groups of a split, set by set, one of each kind in a set; further sets change none of those before.

    Labels, wordings and levels are dealt evenly; times are drawn.

    Args:
        kinds: of a set.
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.
        block: see `Turn`.

    Yields:
        A group; or the two that have the same sounds, together and pulled apart.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    if len({in_sentence(label) for label in labels}) != len(labels) or len(labels) < FEWEST_LABELS:
        raise InputError(
            f"labels are {shown(list(labels))}; questions need {FEWEST_LABELS} or more, all of which read differently"
        )
    for number in range(sets):
        for kind in kinds:
            at = (SPLITS.index(split), kind.place)
            rng = random_generator(seed, _GROUPS, *at, number)
            turn = Turn(kind, split, number, seed, _labels_of(labels, number, seed, at), block, rng)
            lines = kind.draw(turn)
            group = _group_of(turn, lines)
            if lines.apart is None:
                yield (group,)
            else:
                yield _arranged(group, TOGETHER, None), _arranged(group, APART, lines.apart)


def _labels_of(labels: Sequence[str], number: int, seed: int, at: tuple[int, int]) -> list[str]:
    """The labels in the order of a group: in as many groups as there are labels, each stands at each place once."""
    turn, first = divmod(number, len(labels))
    order = random_generator(seed, _LABELS, *at, turn).permutation(len(labels))
    return [labels[k] for k in np.roll(order, -first)]


def _group_of(turn: Turn, lines: TimeLines) -> TwinGroup:
    """A group: wording and levels are dealt by its number, the order of options and who is softer drawn."""
    task, variant = task_and_variant(turn.kind.task, twin_tasks())
    variants = [track[1] for track in lines.clips[0]]
    levels = dict.fromkeys(variants, 0.0) if lines.is_level else _levels_of(variants, turn.number, turn.rng)
    clips = tuple(
        TwinClip(
            f"{turn.name}-{place}", tuple(Track(label, which, levels[which], spans) for label, which, spans in tracks)
        )
        for place, tracks in enumerate(lines.clips, 1)
    )
    questions = []
    for asked in lines.asked:
        distinct = sorted(set(asked.answers))
        options = tuple(distinct[k] for k in turn.rng.permutation(len(distinct)))
        wording = _wording_of(turn, task.name, variant, asked.polarity)
        questions.append(TwinQuestion(asked.anchor, options, tuple(asked.answers), wording, asked.other))
    return TwinGroup(turn.name, turn.split, turn.number, task.name, variant, clips, tuple(questions), turn.kind.place)


def _wording_of(turn: Turn, task: str, variant: str, polarity: str) -> str:
    """The wording that is dealt to a group: in as many groups as there are of its polarity, each comes once."""
    every = question_templates(task, variant)
    side = list(dict.fromkeys(template.polarity for template in every)).index(polarity)
    wordings = [template.name for template in every if template.polarity == polarity]
    wording: str = dealt(wordings, turn.number, turn.seed, _TEMPLATES, *turn.at, side)
    return wording


def _levels_of(variants: Sequence[int], number: int, rng: np.random.Generator) -> dict[int, float]:
    """The level of each variant: some, but not all, are softer, by what is dealt to the group."""
    distinct = rng.permutation(sorted(set(variants))).tolist()
    softer = distinct[: int(rng.integers(1, len(distinct)))]
    difference = LEVELS[number % len(LEVELS)]
    return {variant: -difference if variant in softer else 0.0 for variant in distinct}


def _arranged(group: TwinGroup, arrangement: str, spans: Sequence[Spans] | None) -> TwinGroup:
    """A group by another name, each track at other spans where such are given."""
    name = f"{group.name}-{arrangement}"
    clips = []
    for place, clip in enumerate(group.clips, 1):
        tracks = clip.tracks
        if spans is not None:
            tracks = tuple(replace(track, spans=moved) for track, moved in zip(tracks, spans, strict=True))
        clips.append(TwinClip(f"{name}-{place}", tracks))
    return replace(group, name=name, clips=tuple(clips), arrangement=arrangement)


_SETTINGS = QuestionSettings(counts=(1, 2, 3, 4), duration_options=3)


def twin_tasks() -> Mapping[str, QuestionTask]:
    """All tasks that twins can be about: those of questions, and the atoms that they are made of."""
    return {**question_tasks(), **ATOM_TASKS}


def questions_of(group: TwinGroup, annotations: Sequence[Annotation]) -> tuple[Question, ...]:
    """The questions of a group, clip by clip.

    Args:
        group: of twins.
        annotations: what is heard in each of its clips, as measured.

    Raises:
        QuestionError: what is heard in a clip does not bear out its answer.
    """
    task = twin_tasks()[group.task]
    questions = []
    for place, (clip, annotation) in enumerate(zip(group.clips, annotations, strict=True)):
        asked = {label for ask in group.questions for label in (ask.anchor, *ask.options) if label}
        facts = task.facts(annotation, group.variant, frozenset(annotation.labels) | asked, _SETTINGS)
        for ask, suffix in zip(group.questions, ("-a", "-b") if len(group.questions) > 1 else ("",), strict=True):
            template, answer = template_of(ask.template), ask.answers[place]
            borne_out = {
                _said(fact.answer, template.polarity, fact.width)
                for fact in facts
                if fact.anchor == ask.anchor and (not ask.other or ask.other in fact.options)
            }
            if borne_out != {answer}:
                raise QuestionError(
                    f"{clip.name}: what is heard does not bear out the answer {answer!r}; it says "
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


def _said(answer: str, polarity: str, width: int) -> str:
    """The answer of a fact as an option."""
    if polarity:
        return YES if answer == polarity else NO
    return window_text(int(answer), width) if width else in_sentence(answer)


def gap_of(question: Question, annotation: Annotation) -> float | None:
    """The shortest silence, in seconds, between the anchor and what comes before or after it.

    Of detection it is that between any two labels; where nothing is said to be apart, there is none.
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
"""Steps between which everything is heard."""

SHARED = 100
"""Steps for which sounds that overlap do so, at least, where nothing else is dealt; one may end `EARLY_END` sooner."""

BLOCK = 40.0
"""Steps of a block, at most: so many fit into a clip that `_BLOCKS` of them do."""

_BLOCKS = int((LAST - FIRST) / BLOCK)

_SHAPES = (
    ((8, 2), ((5, 5),)),
    ((9, 2), ((6, 5),)),
    ((9, 3), ((6, 6),)),
    ((10, 2), ((6, 6), (7, 5))),
    ((7, 2, 2), ((4, 4, 3),)),
    ((8, 2, 2), ((4, 4, 4), (5, 4, 3))),
)
"""Blocks of the events of the label whose longest event is longest, and of either of the others: of each shape the same
total in as many events, none shorter than two blocks, and the longest three blocks longer than any of the others."""

_SLOTS, _SLOT = 6, 3
"""Of a clip of `counting/together`: times at which something sounds, and the blocks of each; a block lies between."""


def _longest(turn: Turn) -> TimeLines:
    """Three tracks with events of the same total and number, of which the first has the longest; labels take turns."""
    rng, block = turn.rng, turn.block
    winner, shorter = _SHAPES[int(rng.integers(len(_SHAPES)))]
    shapes = [winner, *(shorter[int(rng.integers(len(shorter)))] for _ in range(2))]
    runs = [_placed(shape, rng) for shape in shapes]
    # About one draw in ten: as often beside either of the others.
    while len({len(_blocks_of(one) & _blocks_of(other)) for one, other in _pairs(runs)}) > 1:
        runs = [_placed(shape, rng) for shape in shapes]
    shift = _shift(rng, block)
    spans: list[Spans] = [tuple(_span(first, last, block, shift) for first, last in of_track) for of_track in runs]
    return _rotated(spans, turn, is_level=True)


def _placed(lengths: Sequence[int], rng: np.random.Generator) -> list[Interval]:
    """Events of so many blocks in a drawn order and at drawn places, a block of silence or more between two."""
    order = rng.permutation(lengths).tolist()
    spare = _BLOCKS - sum(order) - (len(order) - 1)
    # Each way to deal what is left to the silences is as likely.
    bars = np.sort(rng.permutation(spare + len(order))[: len(order)]) - np.arange(len(order))
    starts = bars + np.arange(len(order)) + np.concatenate(([0], np.cumsum(order)[:-1]))
    return [(start, start + length) for start, length in zip(starts.tolist(), order, strict=True)]


def _pairs(runs: Sequence[Sequence[Interval]]) -> list[tuple[Sequence[Interval], Sequence[Interval]]]:
    return [(runs[0], runs[1]), (runs[0], runs[2]), (runs[1], runs[2])]


def _blocks_of(runs: Sequence[Interval]) -> set[int]:
    return {block for first, last in runs for block in range(first, last)}


def _shift(rng: np.random.Generator, block: float) -> int:
    """Steps by which the first block begins after the first step at which anything may."""
    return int(rng.integers(0, int(LAST - FIRST - _BLOCKS * block) + 1))


def _span(first: int, last: int, block: float, shift: int) -> Interval:
    """Blocks in steps: no step of the block before or after, in which a sound that repeats would begin again."""
    return FIRST + shift + ceil(first * block), FIRST + shift + floor(last * block)


def _together(turn: Turn) -> TimeLines:
    """Six times at which voices sound, four in two of them and two in the rest; two, three or four labels at once.

    Whatever the answer, each of four labels sounds at three times, at two of them in one voice and at one in two.
    """
    labels, rng, block = turn.labels, turn.rng, turn.block
    slots, shift = _slots(rng), _shift(rng, block)
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
    return TimeLines(clips, [DrawnQuestion("", [str(count) for count in counts])], is_level=True)


def _slots(rng: np.random.Generator) -> list[int]:
    """The first block of each time: a block or more of silence lies between two."""
    spare = _BLOCKS - _SLOTS * _SLOT - (_SLOTS - 1)
    dealt = np.cumsum(rng.multinomial(spare, [1 / (_SLOTS + 1)] * (_SLOTS + 1)))
    return [place * (_SLOT + 1) + int(dealt[place]) for place in range(_SLOTS)]


def _cast(count: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Which of four labels are heard in the voices of each time, the two of four voices first; so many at once at most.

    That many are at once in one of the times, of three as often in two: how often labels meet in all, which bands that
    they share tell a little of, is as alike as it can be.
    """
    full: list[tuple[int, ...]]
    doubled: list[tuple[int, ...]] = [(2, 2), (3, 3)]
    if count == 4:
        full = [(0, 1, 2, 3), (0, 0, 1, 1)]
    elif count == 2:
        full, doubled = [(0, 0, 1, 1), (2, 2, 3, 3)], []
    elif rng.random() < 0.5:
        full = [(0, 0, *_two_of([1, 2, 3], rng)), (1, 1, *_two_of([0, 2, 3], rng))]
    else:
        full, doubled = [(0, 0, *_two_of([1, 2, 3], rng)), (1, 1, 2, 2)], [(3, 3)]
    single = Counter(who for cast in full for who in cast if cast.count(who) == 1)
    left = [who for who in range(4) for _ in range(2 - single[who])]
    return [*(full[place] for place in rng.permutation(2)), *doubled, *_couples(left, rng)]


def _two_of(labels: Sequence[int], rng: np.random.Generator) -> list[int]:
    two: list[int] = rng.permutation(labels)[:2].tolist()
    return two


def _couples(labels: Sequence[int], rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Labels two by two, in a drawn order of those in which no two are the same."""
    while True:
        order = rng.permutation(labels).tolist()
        couples = [tuple(order[place : place + 2]) for place in range(0, len(order), 2)]
        if all(one != other for one, other in couples):
            return couples


_SOONEST = 44
"""The step at which the first slot of a detection may begin: nothing overlaps in the first half second."""

_GAPS = (25, 50, 80)
"""Steps of silence beside what is asked about, dealt to groups."""

_OVERLAPS = (80, 120, 170)
"""Steps for which the anchor and another are heard together, dealt to groups."""


def _counting(turn: Turn) -> TimeLines:
    """Four tracks that are all heard together."""
    rng = turn.rng
    return _counted([((int(rng.integers(FIRST, 300)), int(rng.integers(600, LAST))),) for _ in range(4)], turn)


def _counted(spans: Sequence[Spans], turn: Turn, apart: Sequence[Spans] | None = None) -> TimeLines:
    """One to four labels on four tracks."""
    counts = [int(count) for count in 1 + turn.rng.permutation(4)]
    clips = []
    for count in counts:
        some = [turn.labels[k] for k in turn.rng.permutation(4)[:count]]
        # Each label at least once, and which ones more often is drawn.
        dealt = turn.rng.permutation([*range(count), *turn.rng.integers(count, size=4 - count)])
        clips.append([(some[which], track, spans[track]) for track, which in enumerate(dealt)])
    return TimeLines(clips, [DrawnQuestion("", [str(count) for count in counts])], apart=apart)


def _duration(turn: Turn) -> TimeLines:
    """Three tracks of very different lengths, the longest of which overlaps the others."""
    rng = turn.rng
    unit = int(rng.integers(50, 71))
    lengths = [share * unit + int(rng.integers(0, 21)) for share in (11, 7, 4)]
    return _rotated(_overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0])), rng), turn)


def _rotated(
    spans: Sequence[Spans], turn: Turn, *, is_level: bool = False, apart: Sequence[Spans] | None = None
) -> TimeLines:
    """Three tracks, of which the first is the longest, and on which labels take turns."""
    clips, answers = [], []
    for shift in turn.rng.permutation(3).tolist():
        order = np.roll(turn.labels[:3], shift).tolist()
        clips.append([(label, track, spans[track]) for track, label in enumerate(order)])
        answers.append(in_sentence(order[0]))
    return TimeLines(clips, [DrawnQuestion("", answers)], is_level, apart)


def _overlapping(lengths: Sequence[int], first: int, rng: np.random.Generator) -> list[Spans]:
    """The span of each sound: the first begins at a step, the others, shorter ones, overlap it on a side or within."""
    longest, *shorter = lengths
    spans: list[Spans] = [((first, first + longest),)]
    for length in shorter:
        low, high = max(FIRST, first + SHARED - length), min(LAST - length, first + longest - SHARED)
        start = int(rng.integers(low, high + 1))
        spans.append(((start, start + length),))
    return spans


def _concurrency(turn: Turn) -> TimeLines:
    """One track overlaps another; a third, of the same length, sound and level as the first, is alone."""
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
    # Each polarity about one of the two: so in either state, Yes is right as often as No.
    polarities = (OVERLAP, ALONE) if rng.random() < 0.5 else (ALONE, OVERLAP)
    asked = []
    for anchor, polarity in zip((labels[0], labels[2]), polarities, strict=True):
        states = [OVERLAP if anchor == first else ALONE for first, _ in exchanged]
        asked.append(DrawnQuestion(anchor, [YES if state == polarity else NO for state in states], polarity))
    return TimeLines(clips, asked)


def _classification(turn: Turn) -> TimeLines:
    """An anchor, a sound that overlaps it, one before, one after, and one that is not there; four labels take turns."""
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
    return TimeLines(clips, [DrawnQuestion(labels[0], answers)])


def _detection(turn: Turn) -> TimeLines:
    """Two labels in each of four slots: together in one of them, one after the other in the rest."""
    labels, rng = turn.labels, turn.rng
    length, late, gap = int(rng.integers(86, 93)), int(rng.integers(6, 16)), int(rng.integers(22, 31))
    slot = 2 * length + gap
    # What is left stands between the slots, each two of which are apart.
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
    return TimeLines(clips, [DrawnQuestion("", answers)])


_LEAST_GAP = 25
"""Steps between two sounds that follow each other, at least."""


def _one_after_the_other(lengths: Sequence[int], rng: np.random.Generator) -> list[Spans]:
    """The span of each sound, in a drawn order; what is left of the clip is dealt to the silences."""
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
    """Four sounds, and one to four labels on them; together, all are heard at once for a while."""
    rng = turn.rng
    lengths = [int(length) for length in rng.integers(170, 216, 4)]
    longest = max(lengths)
    shared = int(rng.integers(FIRST + longest - SHARED, LAST - longest))
    starts = [shared - int(rng.integers(0, length - SHARED + 1)) for length in lengths]
    spans = [((start, start + length),) for start, length in zip(starts, lengths, strict=True)]
    return _counted(spans, turn, apart=_one_after_the_other(lengths, rng))


def _duration_both_ways(turn: Turn) -> TimeLines:
    """Three sounds of very different lengths, on which labels take turns; together, the longest overlaps the others."""
    rng = turn.rng
    unit = int(rng.integers(36, 40))
    lengths = [share * unit + int(rng.integers(0, 9)) for share in (11, 7, 4)]
    spans = _overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0])), rng)
    return _rotated(spans, turn, apart=_one_after_the_other(lengths, rng))


def _presence(turn: Turn) -> TimeLines:
    """Three sounds, of which the first overlaps the others; one of them is of one kind, or of another."""
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
    """Two sounds that begin one after the other, and a third that begins whenever; the two change places."""
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
    """Two clips in either order, of the first of which the first state is true of the first label, in the second of the
    second; either label is asked about in a polarity of its own."""
    first_is_first = turn.rng.random() < 0.5
    states = STATES[atom]
    polarities = states if turn.rng.random() < 0.5 else states[::-1]
    asked = []
    for which, polarity in enumerate(polarities):
        is_right = [(polarity == states[0]) == (clip == which) for clip in (0, 1)]
        answers = [YES if right else NO for right in (is_right if first_is_first else is_right[::-1])]
        compared = turn.labels[1 - which] if atom == SEQUENCE else ""
        asked.append(DrawnQuestion(turn.labels[which], answers, polarity, compared))
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
"""The paper's five kinds of questions about sounds that overlap, and two of them that need time."""

PAIRED = (Kind("counting", 5, _counting_both_ways), Kind("duration", 6, _duration_both_ways))
"""Kinds of questions that have one answer whether sounds are together or apart."""

ATOMIC = (Kind(PRESENCE, 7, _presence), Kind(SEQUENCE, 8, _sequence))
"""What questions about overlap are made of."""
