"""Which recordings are for training and which for test."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown

from ...sounds.formats.base import Annotation
from ...sounds.intervals import readings
from ...sounds.splits import check_shares, split_of_groups
from .balance import dealt, ordered_options
from .base import Draft, Fact, Question, QuestionError, QuestionSettings, QuestionTask, agreed, kind_of, question_tasks
from .templates import is_lettered, spoken, templates


def split_by_recording(
    annotations: Iterable[Annotation], shares: Mapping[str, float], *, seed: int = 0
) -> dict[str, tuple[Annotation, ...]]:
    """Recordings in parts of given shares; what is of one recording or group stays together.

    A recording is drawn by its name: another one that comes or goes moves no more than the borders between the parts.

    Args:
        annotations: of recordings.
        shares: of the groups, by name of the part; together 1.
        seed: another one draws otherwise.

    Raises:
        InputError: a share is not more than 0, or they are not 1 together.
    """
    check_shares(shares)
    ordered = sorted(annotations, key=lambda annotation: (annotation.source_name, *annotation.key))
    parts: dict[str, list[Annotation]] = {name: [] for name in shares}
    for source in sorted({annotation.source_name for annotation in ordered}):
        of_source = [annotation for annotation in ordered if annotation.source_name == source]
        part_of = split_of_groups([annotation.split_group for annotation in of_source], shares, seed=seed)
        for annotation in of_source:
            parts[part_of[annotation.split_group]].append(annotation)
    return {name: tuple(members) for name, members in parts.items()}


def ask(
    annotations: Iterable[Annotation], settings: QuestionSettings | None = None, *, seed: int = 0
) -> tuple[Question, ...]:
    """The questions about some recordings, those of each data set balanced by themselves.

    A split is made before: the balance of a part of the questions is not that of all.

    Args:
        annotations: of recordings; their order does not matter.
        settings: what is asked; the five tasks by default.
        seed: of all choices.

    Raises:
        InputError: there are no such questions.
        QuestionError: two annotations are of the same part of a recording, or two labels sound alike.
    """
    settings = settings or QuestionSettings()
    ordered = sorted(annotations, key=lambda annotation: (annotation.source_name, *annotation.key))
    _check(ordered)
    by_source: dict[str, list[Annotation]] = defaultdict(list)
    for annotation in ordered:
        by_source[annotation.source_name].append(annotation)
    questions: list[Question] = []
    for source, of_source in by_source.items():
        for name in settings.ask:
            task, variant = kind_of(name, question_tasks())
            rng = _generator(seed, source, task.name, variant)
            drafts = task.drafts(facts_of(of_source, task, variant, settings), variant, rng, settings)
            questions += _worded(drafts, task, variant, source, rng)
    return tuple(questions)


def _generator(seed: int, *names: str) -> np.random.Generator:
    """Random choices of one kind of questions: they do not depend on what else is asked."""
    if seed < 0:
        raise InputError(f"seed is {seed}; it must be 0 or more")
    digest = hashlib.sha256("\n".join(names).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])


def _check(annotations: Sequence[Annotation]) -> None:
    counts = Counter((annotation.source_name, annotation.key) for annotation in annotations)
    twice = [f"{key[0]} at {key[1]:g} s" for (_, key), count in counts.items() if count > 1]
    if twice:
        raise QuestionError(f"labels of {shown(twice)} are there more than once")
    spellings: dict[tuple[str, str], str] = {}
    for annotation in annotations:
        for label in annotation.labels:
            first = spellings.setdefault((annotation.source_name, spoken(label)), label)
            if is_lettered(spoken(label)):
                raise QuestionError(f"the label {label!r} starts as if it were a lettered option; write it in words")
            if first != label:
                raise QuestionError(f"the labels {first!r} and {label!r} read alike in a question; write one way")


def facts_of(
    annotations: Sequence[Annotation], task: QuestionTask, variant: str, settings: QuestionSettings
) -> list[Fact]:
    """All that can be asked of recordings of one data set, however what is heard perhaps is taken.

    Recordings with two labels that are related are left out: one says more or less of the other's sound.

    Args:
        annotations: of one data set.
        task: that asks.
        variant: of the task.
        settings: of the user.
    """
    positive = [annotation for annotation in annotations if not annotation.negative]
    vocabulary = frozenset(label for annotation in positive for label in annotation.labels)
    facts: list[Fact] = []
    # Negative clips stand for what does not overlap, and for nothing else.
    for annotation in annotations if task.name == "concurrency" else positive:
        if not _has_related(annotation, settings.related):
            ways = readings(annotation)
            facts += agreed([task.facts(way, variant, vocabulary, settings) for way in ways])
    return facts


def _has_related(annotation: Annotation, related: Mapping[str, frozenset[str]]) -> bool:
    return any(related.get(label, frozenset()) & set(annotation.labels) for label in annotation.labels)


def _worded(
    drafts: Sequence[Draft], task: QuestionTask, variant: str, source: str, rng: np.random.Generator
) -> list[Question]:
    """Questions from drafts: wordings are dealt to units, answers to places."""
    wordings = templates(task.name, variant)
    orders = ordered_options(drafts, rng)
    questions: list[Question] = []
    taken: Counter[str] = Counter()
    for polarity in sorted({wording.polarity for wording in wordings}):
        numbers = [number for number, draft in enumerate(drafts) if draft.polarity == polarity]
        units = [drafts[number].unit for number in numbers]
        hand = dealt([wording for wording in wordings if wording.polarity == polarity], units, rng)
        for number, wording in zip(numbers, hand, strict=True):
            draft = drafts[number]
            recording, start = draft.fact.key
            id = ":".join(filter(None, (f"{recording}@{start:g}", task.name, variant, draft.fact.anchor)))
            taken[id] += 1
            questions.append(
                Question(
                    id if taken[id] == 1 else f"{id}:{taken[id]}",
                    task.name,
                    variant,
                    wording.question(draft.fact.anchor),
                    orders[number],
                    draft.answer,
                    draft.fact.anchor,
                    wording.name,
                    draft.fact.group,
                    recording,
                    polarity,
                    start,
                    source,
                    draft.unit,
                )
            )
    return sorted(questions, key=lambda question: question.id)
