"""Twins: groups of clips that differ in which label is where, their questions, and what is dealt to each group.

A group has clips with the same sounds at the same places, and a question with the same options about each, whose answer
is another in each. What a group says is borne out by what is heard in its clips, as it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ..sounds.formats.base import Annotation
from ..sounds.intervals import Interval
from ..texts.questions.base import (
    NO,
    YES,
    Question,
    QuestionError,
    QuestionSettings,
    QuestionTask,
    kind_of,
    spoken,
    template_of,
    templates,
)
from ..texts.questions.kinds import ATOM_TASKS, question_tasks, window_text
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
class Asked:
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
    asked: Sequence[Asked]
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
    if len({spoken(label) for label in labels}) != len(labels) or len(labels) < FEWEST_LABELS:
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
    task, variant = kind_of(turn.kind.task, twin_tasks())
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
    every = templates(task, variant)
    side = list(dict.fromkeys(template.polarity for template in every)).index(polarity)
    wordings = [template.name for template in every if template.polarity == polarity]
    cycle, place = divmod(turn.number, len(wordings))
    order = random_generator(turn.seed, _TEMPLATES, *turn.at, side, cycle).permutation(len(wordings))
    return wordings[int(order[place])]


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
    return window_text(int(answer), width) if width else spoken(answer)


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
