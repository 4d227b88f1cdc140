"""The questions of twins, from what is heard in them as measured."""

from __future__ import annotations

from collections.abc import Sequence

from audio_compositionality.support.text import shown

from ..annotations.base import Annotation
from ..questions.base import NO, YES, Question, QuestionError, QuestionSettings
from ..questions.detection import window_text
from ..questions.tasks import question_tasks
from ..questions.templates import spoken, template_of
from .twin_groups import TwinGroup

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
