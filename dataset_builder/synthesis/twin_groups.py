"""Groups of twins as they are described: their clips, tracks and questions, and what is dealt to each group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ..annotations.intervals import Interval
from ..questions.base import kind_of
from ..questions.concurrency import ALONE, OVERLAP
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
