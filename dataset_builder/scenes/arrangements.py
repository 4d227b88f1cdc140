"""Kinds of twins: the time lines of each, and which label is where in its clips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, floor

import numpy as np

from ..sounds.intervals import Interval
from ..texts.questions.base import NO, YES, spoken
from ..texts.questions.kinds import ALONE, OVERLAP, PRESENCE, SEQUENCE, STATES, window_start, window_steps, window_text
from .twins import SECONDS, Asked, Kind, Spans, TimeLines, Tracks, Turn

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
    return TimeLines(clips, [Asked("", [str(count) for count in counts])], is_level=True)


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
    return TimeLines(clips, [Asked("", [str(count) for count in counts])], apart=apart)


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
        answers.append(spoken(order[0]))
    return TimeLines(clips, [Asked("", answers)], is_level, apart)


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
        asked.append(Asked(anchor, [YES if state == polarity else NO for state in states], polarity))
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
        answers.append(spoken(order[0]))
    return TimeLines(clips, [Asked(labels[0], answers)])


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
    return TimeLines(clips, [Asked("", answers)])


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
        asked.append(Asked(turn.labels[which], answers, polarity, compared))
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
