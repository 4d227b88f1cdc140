"""Twins: clips whose sounds are in the same places, so that only what sounds where tells the answer.

A group has two to four clips, one question with one list of options, and a different answer in each clip. Its clips
have the same tracks: spans in time, levels, and which sounds of a label they take. What differs is which label is on
which track (in detection: in which of four slots two events overlap). So neither the text nor anything about the sound
that does not tell labels apart says the answer, and whoever is right in all clips of a group has heard it.

Nothing here knows what a label sounds like. To give twins another sound:

1. `draw_groups(labels, split, sets, seed)` gives the groups of a split, five for each set: 17 clips, 19 questions.
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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ..annotations.intervals import Interval
from ..questions.base import NO, YES
from ..questions.concurrency import ALONE, OVERLAP
from ..questions.detection import window_start, window_steps, window_text
from ..questions.tasks import question_tasks
from ..questions.templates import Template, spoken, templates
from .rows import random_generator

SECONDS = 10
"""Of a clip."""

FEWEST_LABELS = 5
"""The anchor of a classification, and four that take turns."""

EARLY_END = 20
"""Steps by which a sound may end before its span: the longest silence that is none."""

SPLITS = ("train", "test")

LEVELS = (0.0, 3.0, 6.0)
"""dB between the loudest and the softest track, dealt to groups."""

_GROUPS, _LABELS, _TEMPLATES = 70, 71, 72
"""The random streams."""

FIRST, LAST = 20, 980
"""Steps between which everything is heard."""

_SOONEST = 44
"""The step at which the first slot of a detection may begin: nothing overlaps in the first half second."""

_GAPS = (25, 50, 80)
"""Steps of silence beside what is asked about, dealt to groups."""

_OVERLAPS = (80, 120, 170)
"""Steps for which the anchor and another are heard together, dealt to groups."""

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
    """

    name: str
    split: str
    number: int
    task: str
    variant: str
    clips: tuple[TwinClip, ...]
    questions: tuple[TwinQuestion, ...]

    @property
    def level_difference(self) -> float:
        """dB between the loudest and the softest track."""
        levels = [track.level for track in self.clips[0].tracks]
        return max(levels) - min(levels)


@dataclass(frozen=True)
class Turn:
    """The place of a group among all, and what is dealt to it.

    Attributes:
        task: of `questions`.
        split: train or test.
        number: of the set that it is in.
        seed: of all choices.
        at: numbers of the random streams of wordings and labels: of the split, and of the kind of group.
        labels: that are heard, in the order of the group.
        rng: of this group.
    """

    task: str
    split: str
    number: int
    seed: int
    at: tuple[int, int]
    labels: list[str]
    rng: np.random.Generator

    @property
    def name(self) -> str:
        """Of the group."""
        return f"{self.split}-{self.number:05d}-{self.task}"


@dataclass(frozen=True)
class Scene:
    """What is drawn of a group before it has wordings, levels and a name.

    Attributes:
        clips: of each clip label, variant and spans of each track.
        asked: anchor, answers of the clips, and polarity, of each question.
    """

    clips: Sequence[Tracks]
    asked: Sequence[tuple[str, Sequence[str], str]]


def draw_groups(labels: Sequence[str], split: str, sets: int, seed: int) -> Iterator[TwinGroup]:
    """The groups of a split, set by set, one of each task in a set; further sets change none of those before.

    Labels, wordings, levels, gaps and overlaps are dealt evenly; times are drawn.

    Args:
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    for turn in turns(_TASKS, labels, split, sets, seed, stream=_GROUPS):
        yield group_of(turn, _TASKS[turn.task](turn.labels, turn.number, turn.rng))


def turns(
    tasks: Iterable[str], labels: Sequence[str], split: str, sets: int, seed: int, *, stream: int, first: int = 0
) -> Iterator[Turn]:
    """The groups of a split before anything of them is drawn: in each set one of each task.

    Args:
        tasks: in the order of their random streams.
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.
        stream: the random stream of this kind of groups.
        first: number of the first task among those of all kinds.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    _check_labels(labels)
    for number in range(sets):
        for place, task in enumerate(tasks, first):
            at = (SPLITS.index(split), place)
            rng = random_generator(seed, stream, *at, number)
            yield Turn(task, split, number, seed, at, _labels_of(labels, number, seed, at), rng)


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
    variant = question_tasks()[turn.task].variants[0]
    clips = clips_of(turn, scene.clips)
    questions = []
    for anchor, answers, polarity in scene.asked:
        distinct = sorted(set(answers))
        options = tuple(distinct[k] for k in turn.rng.permutation(len(distinct)))
        wordings = [template for template in templates(turn.task, variant) if template.polarity == polarity]
        side = (OVERLAP, ALONE).index(polarity) if polarity else 0
        wording = dealt_wording(turn, wordings, _TEMPLATES, side)
        questions.append(TwinQuestion(anchor, options, tuple(answers), wording.name))
    return TwinGroup(turn.name, turn.split, turn.number, turn.task, variant, clips, tuple(questions))


def clips_of(turn: Turn, clips: Sequence[Tracks]) -> tuple[TwinClip, ...]:
    """The clips of a group, whose tracks get their levels."""
    levels = _levels_of([track[1] for track in clips[0]], turn.number, turn.rng)
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
"""What draws a group of a task; their numbers are those of the random stream."""

TASKS = tuple(_TASKS)
"""Of the groups of a set, in their order; the place of each is its number in random streams."""
