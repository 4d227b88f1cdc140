"""Twins for atomic questions (`questions.atoms`): two clips that differ in which label is where.

Of presence, one of three sounds is of another kind in either clip: what is heard in one is not heard in the other. Of a
sequence, two sounds change places. Each group is asked in both polarities, and every question has the other answer in
the other clip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..annotations.base import Annotation
from ..questions.atoms import PRESENCE, SEQUENCE, STATES, VARIANTS, atom_templates, atom_text, state_of
from ..questions.base import NO, YES, Question, QuestionError
from .twin_groups import (
    FIRST,
    LAST,
    PLACES,
    Tracks,
    Turn,
    TwinGroup,
    TwinQuestion,
    clips_of,
    dealt_wording,
    turns,
)
from .twins import overlapping

_GROUPS, _WORDINGS = 75, 76
"""The random streams."""


@dataclass(frozen=True)
class AtomQuestion(TwinQuestion):
    """What is asked of both clips of a group.

    Attributes:
        other: of a sequence, the label that the anchor is compared with; else empty.
        polarity: the state of which Yes is right.
    """

    other: str = ""
    polarity: str = ""


def draw_atoms(labels: Sequence[str], split: str, sets: int, seed: int) -> Iterator[TwinGroup]:
    """The groups of a split, one of each of `ATOMS` in a set; further sets change none of those before.

    Args:
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    kinds = {atom: PLACES.index(atom) for atom in _DRAWN}
    for turn in turns(kinds, labels, split, sets, seed, stream=_GROUPS):
        clips = _DRAWN[turn.kind](turn.labels, turn.rng)
        if turn.rng.random() < 0.5:
            clips.reverse()
        yield _group(turn, clips)


def _group(turn: Turn, clips: Sequence[Tracks]) -> TwinGroup:
    task, rng = turn.kind, turn.rng
    made = clips_of(turn, clips)
    polarities = list(STATES[task]) if rng.random() < 0.5 else list(STATES[task])[::-1]
    questions = []
    for polarity, anchor, other in zip(polarities, turn.labels[:2], turn.labels[1::-1], strict=True):
        wordings = [template for template in atom_templates(task) if template.polarity == polarity]
        template = dealt_wording(turn, wordings, _WORDINGS, STATES[task].index(polarity))
        compared = other if task == SEQUENCE else ""
        answers = tuple(YES if _is_so(task, polarity, tracks, anchor, compared) else NO for tracks in clips)
        options = (YES, NO) if rng.random() < 0.5 else (NO, YES)
        questions.append(AtomQuestion(anchor, options, answers, template.name, compared, polarity))
    return TwinGroup(turn.name, turn.split, turn.number, task, VARIANTS[task], made, tuple(questions), turn.at[1])


def _is_so(task: str, polarity: str, tracks: Tracks, anchor: str, other: str) -> bool:
    """Whether Yes is right about tracks as they are laid out."""
    onsets = {label: spans[0][0] for label, _, spans in tracks}
    is_first = anchor in onsets if task == PRESENCE else onsets[anchor] < onsets[other]
    return is_first == (polarity == STATES[task][0])


def _presence(labels: Sequence[str], rng: np.random.Generator) -> list[Tracks]:
    """Three sounds, of which the first overlaps the others; one of them is of one kind, or of another."""
    lengths = [int(length) for length in rng.integers((300, 150, 150), (501, 351, 351))]
    spans = overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0] + 1)), rng)
    place = int(rng.integers(3))
    clips: list[Tracks] = []
    for label in labels[:2]:
        kinds = [*labels[2:4]]
        kinds.insert(place, label)
        clips.append([(kind, track, spans[track]) for track, kind in enumerate(kinds)])
    return clips


def _sequence(labels: Sequence[str], rng: np.random.Generator) -> list[Tracks]:
    """Two sounds that begin one after the other, and a third that begins whenever; the two change places."""
    lengths = [int(length) for length in rng.integers(150, 351, 3)]
    step = int(rng.integers(60, 301))
    first = int(rng.integers(FIRST, LAST - max(lengths[0], step + lengths[1]) + 1))
    third = int(rng.integers(FIRST, LAST - lengths[2] + 1))
    starts = (first, first + step, third)
    spans = [((start, start + length),) for start, length in zip(starts, lengths, strict=True)]
    return [
        [(one, 0, spans[0]), (two, 1, spans[1]), (labels[2], 2, spans[2])]
        for one, two in ((labels[0], labels[1]), (labels[1], labels[0]))
    ]


_DRAWN: Mapping[str, Callable[[Sequence[str], np.random.Generator], list[Tracks]]] = {
    PRESENCE: _presence,
    SEQUENCE: _sequence,
}
"""What draws the clips of a group; their numbers are those of the random streams."""


def atom_questions(group: TwinGroup, annotations: Sequence[Annotation]) -> tuple[Question, ...]:
    """The questions of a group, clip by clip.

    Args:
        group: of `draw_atoms`.
        annotations: what is heard in each of its clips, as measured.

    Raises:
        QuestionError: what is heard in a clip does not bear out its answer.
    """
    wordings = {template.name: template for template in atom_templates(group.task)}
    questions = []
    for place, (clip, annotation) in enumerate(zip(group.clips, annotations, strict=True)):
        for ask, suffix in zip(group.questions, ("-a", "-b"), strict=True):
            assert isinstance(ask, AtomQuestion)
            answer = ask.answers[place]
            state = state_of(group.task, annotation, ask.anchor, ask.other)
            if (state == ask.polarity) != (answer == YES):
                raise QuestionError(
                    f"{clip.name}: what is heard does not bear out the answer {answer!r}; it is {state}"
                )
            questions.append(
                Question(
                    id=f"{clip.name}{suffix}",
                    task=group.task,
                    variant=group.variant,
                    question=atom_text(wordings[ask.template], ask.anchor, ask.other),
                    options=ask.options,
                    answer=answer,
                    anchor=ask.anchor,
                    template=ask.template,
                    group=group.name,
                    recording=clip.name,
                    polarity=ask.polarity,
                    start=annotation.start,
                    source=annotation.source_name,
                    unit=f"{group.name}{suffix}",
                )
            )
    return tuple(questions)
