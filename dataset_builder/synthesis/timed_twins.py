"""Twins whose answer is not in how much there is of each sound: whose event is longest, and how many sound at once.

What sounds is laid out in blocks, and in all clips of a group each label sounds in as many of them, in as many events,
at one level.

- `duration/longest`: three labels, each of which shares as many blocks with either of the others. So the clips of a
  group have the same blocks but for which label is which, and only the order of blocks says whose longest event is
  longest: statistics of single moments, be it of all bands together, say nothing of it.
- `counting/together`: four labels, each of which sounds twice in one voice and once in two. All that sounds at each
  time has as many voices in all clips of the group; only which labels are in one block differs. Statistics of a label
  by itself say nothing of it, and what bands tell that several labels share is little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor

import numpy as np

from ..annotations.intervals import Interval
from ..questions.templates import spoken
from .twin_groups import FIRST, LAST, Scene, Spans, Tracks

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
