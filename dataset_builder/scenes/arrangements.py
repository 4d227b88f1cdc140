"""The questions of twins, from what is heard in them as measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from audio_compositionality.support.text import shown

from ..sounds.formats.base import Annotation
from ..texts.questions.atoms import PRESENCE, SEQUENCE, STATES, VARIANTS, atom_templates, atom_text, state_of
from ..texts.questions.base import NO, YES, Question, QuestionError, QuestionSettings, question_tasks
from ..texts.questions.detection import window_text
from ..texts.questions.templates import spoken, template_of
from .twins import (
    FIRST,
    LAST,
    PLACES,
    SHARED,
    Scene,
    Spans,
    Tracks,
    Turn,
    TwinClip,
    TwinGroup,
    TwinQuestion,
    clips_of,
    counted,
    dealt_wording,
    group_of,
    longest_of,
    overlapping,
    turns,
)

_ASKED = QuestionSettings(counts=(1, 2, 3, 4), duration_options=3)


def questions_of(group: TwinGroup, annotations: Sequence[Annotation]) -> tuple[Question, ...]:
    """The questions of a group, clip by clip.

    Args:
        group: of twins.
        annotations: what is heard in each of its clips, as measured.

    Raises:
        QuestionError: what is heard in a clip does not bear out its answer.
    """
    task = question_tasks()[group.task]
    questions = []
    for place, (clip, annotation) in enumerate(zip(group.clips, annotations, strict=True)):
        vocabulary = frozenset(annotation.labels).union(*(ask.options for ask in group.questions))
        facts = task.facts(annotation, group.variant, vocabulary, _ASKED)
        for ask, suffix in zip(group.questions, ("-a", "-b") if len(group.questions) > 1 else ("",), strict=True):
            template, answer = template_of(ask.template), ask.answers[place]
            borne_out = {
                _said(fact.answer, template.polarity, fact.width) for fact in facts if fact.anchor == ask.anchor
            }
            if borne_out != {answer}:
                raise QuestionError(
                    f"{clip.name}: what is heard does not bear out the answer {answer!r}; it says "
                    f"{shown(sorted(borne_out)) or 'nothing'}"
                )
            questions.append(
                Question(
                    f"{clip.name}{suffix}",
                    group.task,
                    group.variant,
                    template.question(ask.anchor),
                    ask.options,
                    answer,
                    ask.anchor,
                    ask.template,
                    group.name,
                    clip.name,
                    template.polarity,
                    annotation.start,
                    annotation.source_name,
                    f"{group.name}{suffix}",
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


TOGETHER, APART = "together", "apart"
ARRANGEMENTS = (TOGETHER, APART)

_PAIRS = 74
"""The random stream."""

_LEAST_GAP = 25
"""Steps between two sounds that follow each other, at least."""

Draw = Callable[[Sequence[str], np.random.Generator], tuple[Scene, list[Spans]]]


def draw_pairs(labels: Sequence[str], split: str, sets: int, seed: int) -> Iterator[TwinGroup]:
    """The groups of a split: in each set one pair of `ARRANGEMENTS` of each task, whose names end in these.

    Args:
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    kinds = {task: PLACES.index(f"{task} apart") for task in _TASKS}
    for turn in turns(kinds, labels, split, sets, seed, stream=_PAIRS):
        scene, apart = _TASKS[turn.kind](turn.labels, turn.rng)
        group = group_of(turn, scene)
        yield _arranged(group, TOGETHER, None)
        yield _arranged(group, APART, apart)


def arrangement_of(group: TwinGroup) -> tuple[str, str]:
    """The arrangement of a group, and the name of its pair."""
    pair, _, arrangement = group.name.rpartition("-")
    return arrangement, pair


def _arranged(group: TwinGroup, arrangement: str, spans: Sequence[Spans] | None) -> TwinGroup:
    """A group by another name, each track at other spans where such are given."""
    name = f"{group.name}-{arrangement}"
    clips = []
    for place, clip in enumerate(group.clips, 1):
        tracks = clip.tracks
        if spans is not None:
            tracks = tuple(replace(track, spans=moved) for track, moved in zip(tracks, spans, strict=True))
        clips.append(TwinClip(f"{name}-{place}", tracks))
    # Its pitches are drawn as those of the twins that are asked the same.
    return replace(group, name=name, clips=tuple(clips), place=PLACES.index(group.task))


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


def _counting(labels: Sequence[str], rng: np.random.Generator) -> tuple[Scene, list[Spans]]:
    """Four sounds, and one to four labels on them; together, all are heard at once for a while."""
    lengths = [int(length) for length in rng.integers(170, 216, 4)]
    longest = max(lengths)
    shared = int(rng.integers(FIRST + longest - SHARED, LAST - longest))
    starts = [shared - int(rng.integers(0, length - SHARED + 1)) for length in lengths]
    spans = [((start, start + length),) for start, length in zip(starts, lengths, strict=True)]
    return counted(spans, labels, rng), _one_after_the_other(lengths, rng)


def _duration(labels: Sequence[str], rng: np.random.Generator) -> tuple[Scene, list[Spans]]:
    """Three sounds of very different lengths, on which labels take turns; together, the longest overlaps the others."""
    unit = int(rng.integers(36, 40))
    lengths = [share * unit + int(rng.integers(0, 9)) for share in (11, 7, 4)]
    spans = overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0])), rng)
    return longest_of(spans, labels, rng), _one_after_the_other(lengths, rng)


_TASKS: Mapping[str, Draw] = {"counting": _counting, "duration": _duration}
"""What draws a pair of a task; their numbers are those of the random stream, after those of `twins`."""

APART_TASKS = tuple(_TASKS)
"""Tasks whose questions have one answer in both arrangements."""


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
