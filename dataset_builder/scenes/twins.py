"""Groups of twins as they are described: their clips, tracks and questions, and what is dealt to each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ..sounds.intervals import Interval
from ..texts.questions.base import NO, YES, kind_of, question_tasks
from ..texts.questions.concurrency import ALONE, OVERLAP
from ..texts.questions.detection import window_start, window_steps, window_text
from ..texts.questions.templates import Template, spoken, templates
from .sources import random_generator

SECONDS = 10
"""Of a clip."""

FEWEST_LABELS = 5
"""The anchor of a classification, and four that take turns."""

EARLY_END = 20
"""Steps by which a sound may end before its span: the longest silence that is none."""

SPLITS = ("train", "test")

LEVELS = (0.0, 3.0, 6.0)
"""dB between the loudest and the softest track, dealt to groups."""

GROUPS, _LABELS, _TEMPLATES = 70, 71, 72
"""The random streams."""

PLACES = (
    *("counting", "duration", "concurrency", "classification", "detection"),
    *("counting apart", "duration apart", "presence", "sequence"),
    *("duration/longest", "counting/together"),
)
"""Kinds of groups of all recipes: the place of each is its number in random streams, so that further ones come last."""

FIRST, LAST = 20, 980
"""Steps between which everything is heard."""

SHARED = 100
"""Steps for which sounds that overlap do so, at least, where nothing else is dealt; one may end `EARLY_END` sooner."""

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
    spans: tuple[Interval, ...]


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
    """

    anchor: str
    options: tuple[str, ...]
    answers: tuple[str, ...]
    template: str


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
        questions: one; of concurrency two, about either of the labels that are exchanged.
        place: of its kind, in `PLACES`.
    """

    name: str
    split: str
    number: int
    task: str
    variant: str
    clips: tuple[TwinClip, ...]
    questions: tuple[TwinQuestion, ...]
    place: int

    @property
    def kind(self) -> str:
        """Task and variant, as one name."""
        return f"{self.task}/{self.variant}"

    @property
    def level_difference(self) -> float:
        """dB between the loudest and the softest track."""
        levels = [track.level for track in self.clips[0].tracks]
        return max(levels) - min(levels)


@dataclass(frozen=True)
class Turn:
    """The place of a group among all, and what is dealt to it.

    Attributes:
        kind: task of `questions`, with the variant where it is not the first.
        split: train or test.
        number: of the set that it is in.
        seed: of all choices.
        at: numbers of the random streams of wordings and labels: of the split, and of the kind of group.
        labels: that are heard, in the order of the group.
        rng: of this group.
    """

    kind: str
    split: str
    number: int
    seed: int
    at: tuple[int, int]
    labels: list[str]
    rng: np.random.Generator

    @property
    def name(self) -> str:
        """Of the group."""
        return f"{self.split}-{self.number:05d}-{self.kind.replace('/', '-')}"


@dataclass(frozen=True)
class Scene:
    """What is drawn of a group before it has wordings, levels and a name.

    Attributes:
        clips: of each clip label, variant and spans of each track.
        asked: anchor, answers of the clips, and polarity, of each question.
        is_level: whether all tracks have one level.
    """

    clips: Sequence[Tracks]
    asked: Sequence[tuple[str, Sequence[str], str]]
    is_level: bool = False


def turns(
    kinds: Mapping[str, int], labels: Sequence[str], split: str, sets: int, seed: int, *, stream: int
) -> Iterator[Turn]:
    """The groups of a split before anything of them is drawn: in each set one of each kind.

    Args:
        kinds: of groups, see `Turn.kind`, with their places in `PLACES`.
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.
        stream: the random stream of this recipe's groups.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    _check_labels(labels)
    for number in range(sets):
        for kind, place in kinds.items():
            at = (SPLITS.index(split), place)
            rng = random_generator(seed, stream, *at, number)
            yield Turn(kind, split, number, seed, at, _labels_of(labels, number, seed, at), rng)


def _check_labels(labels: Sequence[str]) -> None:
    """Refuse labels that are too few, or of which two read alike.

    Raises:
        InputError: they are.
    """
    if len({spoken(label) for label in labels}) != len(labels) or len(labels) < FEWEST_LABELS:
        raise InputError(
            f"labels are {shown(list(labels))}; questions need {FEWEST_LABELS} or more, all of which read differently"
        )


def _labels_of(labels: Sequence[str], number: int, seed: int, at: tuple[int, int]) -> list[str]:
    """The labels in the order of a group: in as many groups as there are labels, each stands at each place once."""
    turn, first = divmod(number, len(labels))
    order = random_generator(seed, _LABELS, *at, turn).permutation(len(labels))
    return [labels[k] for k in np.roll(order, -first)]


def group_of(turn: Turn, scene: Scene) -> TwinGroup:
    """A group of a scene: wording and levels are dealt by its number, the order of options and who is softer drawn."""
    task, variant = kind_of(turn.kind, question_tasks())
    clips = clips_of(turn, scene.clips, is_level=scene.is_level)
    questions = []
    for anchor, answers, polarity in scene.asked:
        distinct = sorted(set(answers))
        options = tuple(distinct[k] for k in turn.rng.permutation(len(distinct)))
        wordings = [template for template in templates(task.name, variant) if template.polarity == polarity]
        side = (OVERLAP, ALONE).index(polarity) if polarity else 0
        wording = dealt_wording(turn, wordings, _TEMPLATES, side)
        questions.append(TwinQuestion(anchor, options, tuple(answers), wording.name))
    return TwinGroup(turn.name, turn.split, turn.number, task.name, variant, clips, tuple(questions), place=turn.at[1])


def clips_of(turn: Turn, clips: Sequence[Tracks], *, is_level: bool = False) -> tuple[TwinClip, ...]:
    """The clips of a group, whose tracks get their levels: one of all, or dealt."""
    variants = [track[1] for track in clips[0]]
    levels = dict.fromkeys(variants, 0.0) if is_level else _levels_of(variants, turn.number, turn.rng)
    return tuple(
        TwinClip(
            f"{turn.name}-{place}", tuple(Track(label, which, levels[which], spans) for label, which, spans in tracks)
        )
        for place, tracks in enumerate(clips, 1)
    )


def dealt_wording(turn: Turn, wordings: Sequence[Template], stream: int, side: int) -> Template:
    """The wording that is dealt to a group: in as many groups as there are wordings, each comes once.

    Args:
        turn: of the group.
        wordings: of one polarity.
        stream: the random stream of such wordings.
        side: number of the polarity.
    """
    cycle, place = divmod(turn.number, len(wordings))
    return wordings[int(random_generator(turn.seed, stream, *turn.at, side, cycle).permutation(len(wordings))[place])]


def _levels_of(variants: Sequence[int], number: int, rng: np.random.Generator) -> dict[int, float]:
    """The level of each variant: some, but not all, are softer, by what is dealt to the group."""
    distinct = rng.permutation(sorted(set(variants))).tolist()
    softer = distinct[: int(rng.integers(1, len(distinct)))]
    difference = LEVELS[number % len(LEVELS)]
    return {variant: -difference if variant in softer else 0.0 for variant in distinct}


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


def _longest(labels: Sequence[str], rng: np.random.Generator, block: float) -> Scene:
    """Three tracks with events of the same total and number, of which the first has the longest; labels take turns."""
    winner, shorter = _SHAPES[int(rng.integers(len(_SHAPES)))]
    shapes = [winner, *(shorter[int(rng.integers(len(shorter)))] for _ in range(2))]
    runs = [_placed(shape, rng) for shape in shapes]
    # About one draw in ten: as often beside either of the others.
    while len({len(_blocks_of(one) & _blocks_of(other)) for one, other in _pairs(runs)}) > 1:
        runs = [_placed(shape, rng) for shape in shapes]
    shift = _shift(rng, block)
    spans: list[Spans] = [tuple(_span(first, last, block, shift) for first, last in of_track) for of_track in runs]
    clips, answers = [], []
    for turn in rng.permutation(3).tolist():
        order = np.roll(labels[:3], turn).tolist()
        clips.append([(label, track, spans[track]) for track, label in enumerate(order)])
        answers.append(spoken(order[0]))
    return Scene(clips, [("", answers, "")], is_level=True)


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


def _together(labels: Sequence[str], rng: np.random.Generator, block: float) -> Scene:
    """Six times at which voices sound, four in two of them and two in the rest; two, three or four labels at once.

    Whatever the answer, each of four labels sounds at three times, at two of them in one voice and at one in two.
    """
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
    return Scene(clips, [("", [str(count) for count in counts], "")], is_level=True)


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


TIMED: Mapping[str, Callable[[Sequence[str], np.random.Generator, float], Scene]] = {
    "duration/longest": _longest,
    "counting/together": _together,
}
"""What draws a group of a kind of question: of its labels, a random stream, and the steps of a block."""


_SOONEST = 44
"""The step at which the first slot of a detection may begin: nothing overlaps in the first half second."""

_GAPS = (25, 50, 80)
"""Steps of silence beside what is asked about, dealt to groups."""

_OVERLAPS = (80, 120, 170)
"""Steps for which the anchor and another are heard together, dealt to groups."""


def draw_groups(
    labels: Sequence[str], split: str, sets: int, seed: int, *, block: float = BLOCK
) -> Iterator[TwinGroup]:
    """The groups of a split, set by set, one of each of `KINDS` in a set; further sets change none of those before.

    Labels, wordings, levels, gaps and overlaps are dealt evenly; times are drawn.

    Args:
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.
        block: steps of which the sounds of `TIMED` last a whole number; of sounds that repeat, their period.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    for turn in turns(KINDS, labels, split, sets, seed, stream=GROUPS):
        if turn.kind in TIMED:
            scene = TIMED[turn.kind](turn.labels, turn.rng, block)
        else:
            scene = _TASKS[turn.kind](turn.labels, turn.number, turn.rng)
        yield group_of(turn, scene)


def _counting(labels: Sequence[str], number: int, rng: np.random.Generator) -> Scene:
    """Four tracks that are all heard together."""
    return counted([((int(rng.integers(FIRST, 300)), int(rng.integers(600, LAST))),) for _ in range(4)], labels, rng)


def counted(spans: Sequence[Spans], labels: Sequence[str], rng: np.random.Generator) -> Scene:
    """One to four labels on four tracks."""
    counts = [int(count) for count in 1 + rng.permutation(4)]
    clips = []
    for count in counts:
        some = [labels[k] for k in rng.permutation(4)[:count]]
        # Each label at least once, and which ones more often is drawn.
        dealt = rng.permutation([*range(count), *rng.integers(count, size=4 - count)])
        clips.append([(some[which], track, spans[track]) for track, which in enumerate(dealt)])
    return Scene(clips, [("", [str(count) for count in counts], "")])


def _duration(labels: Sequence[str], number: int, rng: np.random.Generator) -> Scene:
    """Three tracks of very different lengths, the longest of which overlaps the others."""
    unit = int(rng.integers(50, 71))
    lengths = [share * unit + int(rng.integers(0, 21)) for share in (11, 7, 4)]
    return longest_of(overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0])), rng), labels, rng)


def longest_of(spans: Sequence[Spans], labels: Sequence[str], rng: np.random.Generator) -> Scene:
    """Three tracks, of which the first is the longest, and on which labels take turns."""
    clips, answers = [], []
    for shift in rng.permutation(3).tolist():
        order = np.roll(labels[:3], shift).tolist()
        clips.append([(label, track, spans[track]) for track, label in enumerate(order)])
        answers.append(spoken(order[0]))
    return Scene(clips, [("", answers, "")])


def overlapping(lengths: Sequence[int], first: int, rng: np.random.Generator) -> list[Spans]:
    """The span of each sound: the first begins at a step, the others, shorter ones, overlap it on a side or within."""
    longest, *shorter = lengths
    spans: list[Spans] = [((first, first + longest),)]
    for length in shorter:
        low, high = max(FIRST, first + SHARED - length), min(LAST - length, first + longest - SHARED)
        start = int(rng.integers(low, high + 1))
        spans.append(((start, start + length),))
    return spans


def _concurrency(labels: Sequence[str], number: int, rng: np.random.Generator) -> Scene:
    """One track overlaps another; a third, of the same length, sound and level as the first, is alone."""
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
        asked.append((anchor, [YES if state == polarity else NO for state in states], polarity))
    return Scene(clips, asked)


def _classification(labels: Sequence[str], number: int, rng: np.random.Generator) -> Scene:
    """An anchor, a sound that overlaps it, one before, one after, and one that is not there; four labels take turns."""
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
    for turn in rng.permutation(4).tolist():
        order = np.roll(labels[1:5], turn).tolist()
        tracks = [(order[track], 1 + track, spans[track]) for track in range(3)]
        clips.append([(labels[0], 0, ((anchor, anchor + length),)), *tracks])
        answers.append(spoken(order[0]))
    return Scene(clips, [(labels[0], answers, "")])


def _detection(labels: Sequence[str], number: int, rng: np.random.Generator) -> Scene:
    """Two labels in each of four slots: together in one of them, one after the other in the rest."""
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
    return Scene(clips, [("", answers, "")])


_TASKS: Mapping[str, Callable[[Sequence[str], int, np.random.Generator], Scene]] = {
    "counting": _counting,
    "duration": _duration,
    "concurrency": _concurrency,
    "classification": _classification,
    "detection": _detection,
}
"""What draws a group of the first variant of a task."""

KINDS = {kind: PLACES.index(kind) for kind in (*_TASKS, *TIMED)}
"""Of the groups of a set, in their order, with their places in random streams."""
