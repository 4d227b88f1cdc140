"""Twins: clips whose sounds are in the same places, so that only what sounds where tells the answer.

A group has two to four clips, one question with one list of options, and a different answer in each clip. Its clips
have the same tracks: spans in time, levels, and which sounds of a label they take. What differs is which label is on
which track (in detection: in which of four slots two events overlap). So neither the text nor anything about the sound
that does not tell labels apart says the answer, and whoever is right in all clips of a group has heard it.

Nothing here knows what a label sounds like. To give twins another sound:

1. `draw_groups(labels, split, sets, seed)` gives the groups of a split, seven for each set: 23 clips, 25 questions.
2. Each `TwinClip` has tracks. For each `Track` and each of its spans, in steps of 10 ms, put a sound of the label
   there, at ``level`` dB below the loudest; tracks of one ``variant`` take the same sound of a label (one pitch, one
   file), tracks of different variants another one where the label has several. A sound begins with its span and may end
   up to `EARLY_END` steps before it: all answers hold then as well. All clips of a group have one RMS.
3. Tell what is heard, as measured: an `Annotation` of each clip, `recording` being the clip's name and `group` the
   group's; a silence within a sound that is longer than the rules allow makes two events of it.
4. `twin_questions.questions_of(group, annotations)` gives the questions, or an error where the sound does not bear out
   an answer (it does if it fills its spans): then draw other sounds. `twin_questions.gap_of` and
   `TwinGroup.level_difference` are their dials; `questions.rows.row_of` makes rows of it all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ..annotations.intervals import Interval
from ..questions.base import NO, YES
from ..questions.concurrency import ALONE, OVERLAP
from ..questions.detection import window_start, window_steps, window_text
from ..questions.templates import spoken
from .timed_twins import BLOCK, TIMED
from .twin_groups import FIRST, GROUPS, LAST, PLACES, SECONDS, SHARED, Scene, Spans, TwinGroup, group_of, turns

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
