"""Questions about annotated recordings: their settings, how they are drawn, and their rows and sound."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, PlainSerializer, SkipValidation, field_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import Table, to_markdown
from audio_compositionality.support.text import listed, number_text, shown

from ..data import Pcm16, Rendering, Row
from ..scenes.pool import whole_clip
from ..sounds.annotations import Annotation, Rules, readings
from ..sounds.splits import check_shares, split_of_groups
from ..sounds.strong_labels import AUDIOTIME, WARNING, AnnotatedRecordings, has_negatives
from .question_controls import Balance, balance_of, balance_table, require_balance
from .question_tasks import TWO_COUNTS, Draft, Fact, QuestionKind, QuestionSettings, QuestionSpec, kind_named
from .questions import Question, QuestionError, check_labels, question_templates, row_of, templates_digest

if TYPE_CHECKING:
    from ..recipes.base import Recipe


TRAIN, TEST = "train", "test"

MOST_TRAIN = 0.9
"""Largest share of recordings for training."""


class NothingAskedError(QuestionError):
    """No question can be asked about the recordings; the message gives the reason.

    Attributes:
        lacks_clips: whether a kind of question lacks clips with a certain count (`QuestionSpec.least_clips`).
    """

    def __init__(self, reason: str, *, lacks_clips: bool) -> None:
        super().__init__(reason)
        self.lacks_clips = lacks_clips


class AskedSpec(QuestionSpec):
    """The settings of questions about annotated recordings from any source.

    Raises:
        InputError: a value is out of range, or a kind of question does not exist.
    """

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of every random choice.")
    train: float = Field(
        0.3, ge=0, le=MOST_TRAIN, description="Share of recordings whose questions are for training; 0 for none."
    )

    @field_validator("ask")
    @classmethod
    def _named(cls, ask: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(kind_named(name).name for name in ask)
        if not names or len(set(names)) < len(names):
            raise InputError(f"ask is {', '.join(ask)!r}; give one or more kinds of questions, each once")
        return names


class AnnotatedSpec(AskedSpec):
    """Everything that determines questions about annotated recordings, and their clips."""

    recordings: Annotated[
        AnnotatedRecordings, SkipValidation(), PlainSerializer(lambda recordings: recordings.fingerprint)
    ] = Field(repr=False, description="Recordings to ask about.")

    @property
    def questions(self) -> QuestionSettings:
        """Return the settings of the questions; labels that are related in the recordings never occur together."""
        of_user = {name: getattr(self, name) for name in QuestionSpec.model_fields}
        return QuestionSettings(**of_user, related=self.recordings.related, negatives=self.has_negatives)

    @property
    def has_negatives(self) -> bool:
        """Return whether AudioTime clips are used for questions without overlap; see `audiotime_negatives`."""
        return has_negatives(self.recordings.annotations)

    @property
    def sample_rate(self) -> int | None:
        """Return the sample rate of all clips in Hz; None if they differ."""
        return self.recordings.sample_rate

    @cached_property
    def drawn(self) -> AnnotatedQuestions:
        """Return the questions and their sound."""
        return AnnotatedQuestions(self)

    def values(self) -> dict[str, Any]:
        """Return the settings as JSON values: the recordings' fingerprint, the comparison rules, and all wordings."""
        resolutions = {annotation.resolution: annotation for annotation in self.recordings.annotations}
        values = super().values()
        return {
            "sounds": values.pop("recordings"),
            **values,
            "rules": {f"{r:g}": asdict(Rules.of(annotation)) for r, annotation in sorted(resolutions.items())},
            "templates": templates_digest(),
            **({"negatives": AUDIOTIME} if self.has_negatives else {}),
        }

    def rendering(self, recipe: Recipe[Any]) -> AnnotatedQuestions:
        """Return the questions and their sound."""
        return self.drawn

    def card(self) -> dict[str, Any]:
        """Return the values of the card's template."""
        clips = self.recordings.annotations
        lengths = [annotation.duration for annotation in clips]
        return {
            "about": "questions_of_labels.md",
            "clips": clips,
            "recordings": len({annotation.recording for annotation in clips}),
            "labels": sorted({label for annotation in clips for label in annotation.labels}),
            "seconds": list(dict.fromkeys(number_text(length, 1) for length in (min(lengths), max(lengths)))),
            "counts": listed([f"{len(part.questions):,} for {part.split}" for part in self.drawn.asked]),
            "asked": listed(list(self.ask), 10),
            "balance": to_markdown(*self.drawn.reports()),
            "notes": self.drawn.notes(),
            "warning": WARNING if self.has_negatives else "",
        }


# ----- the draw
def split_by_recording(
    annotations: Iterable[Annotation], shares: Mapping[str, float], *, seed: int = 0
) -> dict[str, tuple[Annotation, ...]]:
    """Divide recordings into parts with given shares; recordings of one group stay together.

    A recording is drawn by its name, so that adding or removing recordings only moves the borders between the parts.

    Args:
        annotations: annotations of recordings.
        shares: share of the groups, by name of the part; they add up to 1.
        seed: another seed gives another draw.

    Raises:
        InputError: a share is not positive, or they do not add up to 1.
    """
    check_shares(shares)
    parts: dict[str, list[Annotation]] = {name: [] for name in shares}
    for of_source in _by_source(annotations).values():
        part_of = split_of_groups([annotation.split_group for annotation in of_source], shares, seed=seed)
        for annotation in of_source:
            parts[part_of[annotation.split_group]].append(annotation)
    return {name: tuple(members) for name, members in parts.items()}


def _by_source(annotations: Iterable[Annotation]) -> dict[str, list[Annotation]]:
    """Return the annotations of each data set, in order."""
    by_source: dict[str, list[Annotation]] = defaultdict(list)
    for annotation in sorted(annotations, key=lambda annotation: (annotation.source_name, *annotation.key)):
        by_source[annotation.source_name].append(annotation)
    return by_source


def draw_questions(
    annotations: Iterable[Annotation], settings: QuestionSettings | None = None, *, seed: int = 0
) -> tuple[Question, ...]:
    """Return questions about recordings, balanced within each data set.

    Divide the recordings into splits first: a part of a balanced set is not balanced.

    Args:
        annotations: annotations of recordings, in any order.
        settings: settings of the questions; by default the five tasks.
        seed: seed of all choices.

    Raises:
        InputError: a kind of question does not exist.
        QuestionError: two annotations describe the same part of a recording, or two labels read alike.
    """
    if seed < 0:
        raise InputError(f"seed is {seed}; it must be 0 or more")
    settings = settings or QuestionSettings()
    by_source, questions = _by_source(annotations), []
    for source, of_source in by_source.items():
        counts = Counter(annotation.key for annotation in of_source)
        twice = [f"{name} at {start:g} s" for (name, start), count in counts.items() if count > 1]
        if twice:
            raise QuestionError(f"duplicate labels of {shown(twice)}")
        check_labels([label for annotation in of_source for label in annotation.labels])
        for kind in map(kind_named, settings.ask):
            # The random choices of each kind of question are independent of the other kinds.
            digest = hashlib.sha256("\n".join((source, kind.task, kind.variant)).encode()).digest()
            rng = np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])
            drafts = kind.drafts(facts_of(of_source, kind, settings), rng, settings)
            questions += _worded(drafts, kind, source, rng)
    return tuple(questions)


def facts_of(annotations: Sequence[Annotation], kind: QuestionKind, settings: QuestionSettings) -> list[Fact]:
    """Return the facts about recordings of one data set on which all readings of uncertain events agree, with the
    rivals common to all readings.

    Recordings with two related labels are left out: one label is a more general name of the other's sound.
    """
    positive = [annotation for annotation in annotations if not annotation.negative]
    vocabulary = frozenset(label for annotation in positive for label in annotation.labels)
    facts: list[Fact] = []
    # Negative clips are used only for the absence of overlap.
    for annotation in annotations if kind.task == "concurrency" else positive:
        labels = set(annotation.labels)
        if any(settings.related.get(label, frozenset()) & labels for label in labels):
            continue
        first, *rest = [kind.facts(way, vocabulary, settings) for way in readings(annotation)]
        by_claim = [{fact.claim: fact for fact in of_reading} for of_reading in rest]
        for fact in first:
            same = [of_reading[fact.claim] for of_reading in by_claim if fact.claim in of_reading]
            if len(same) == len(by_claim):
                rivals = fact.rivals.intersection(*(other.rivals for other in same))
                facts.append(replace(fact, rivals=rivals, near=fact.near & rivals))
    return facts


def _worded(drafts: Sequence[Draft], kind: QuestionKind, source: str, rng: np.random.Generator) -> list[Question]:
    """Make questions from drafts: answers are used in each position, and wordings in units, equally often.

    In a unit with as many questions as options, the answer is in each position once. Among all questions with equally
    many options, the numbers of answers in two positions differ by at most one. All questions of a unit have one
    wording.
    """
    by_size: dict[int, list[int]] = defaultdict(list)
    for number in sorted(range(len(drafts)), key=lambda number: drafts[number].unit):
        by_size[len(drafts[number].options)].append(number)
    orders: dict[int, tuple[str, ...]] = {}
    for size, members in sorted(by_size.items()):
        rounds = -(-len(members) // size)
        places = np.concatenate([rng.permutation(size) for _ in range(rounds)])
        for number, place in zip(members, places, strict=False):
            draft = drafts[number]
            rest = sorted(option for option in draft.options if option != draft.answer)
            mixed = [rest[k] for k in rng.permutation(len(rest))]
            orders[number] = (*mixed[:place], draft.answer, *mixed[place:])
    templates = question_templates(kind.task, kind.variant)
    questions: list[Question] = []
    taken: Counter[str] = Counter()
    for polarity in sorted({template.polarity for template in templates}):
        wordings = [template for template in templates if template.polarity == polarity]
        numbers = [number for number, draft in enumerate(drafts) if draft.polarity == polarity]
        units = sorted({drafts[number].unit for number in numbers})
        hand = rng.permutation(np.resize(rng.permutation(len(wordings)), len(units)))
        of_unit = {unit: wordings[k] for unit, k in zip(units, hand, strict=True)}
        for number in numbers:
            draft = drafts[number]
            fact, (recording, start), wording = draft.fact, draft.fact.key, of_unit[draft.unit]
            id = ":".join(filter(None, (f"{recording}@{start:g}", kind.task, kind.variant, fact.anchor)))
            taken[id] += 1
            questions.append(
                Question(
                    id=id if taken[id] == 1 else f"{id}:{taken[id]}",
                    task=kind.task,
                    variant=kind.variant,
                    question=wording.question(fact.anchor),
                    options=orders[number],
                    answer=draft.answer,
                    anchor=fact.anchor,
                    template=wording.name,
                    group=fact.group,
                    recording=recording,
                    polarity=polarity,
                    start=start,
                    source=source,
                    unit=draft.unit,
                )
            )
    return sorted(questions, key=lambda question: question.id)


# ----- rows and sound
class _Part(NamedTuple):
    """The questions of a split, and the clips considered for them."""

    split: str
    clips: tuple[Annotation, ...]
    questions: tuple[Question, ...]


class AnnotatedQuestions(Rendering):
    """Questions about annotated recordings and their sound; see `Rendering`."""

    def __init__(self, settings: AnnotatedSpec) -> None:
        """Draw nothing until it is needed; the sample rate is the highest of all clips."""
        self.settings = settings
        self.sample_rate = max(sound.rate for sound in settings.recordings.sounds)
        clips = settings.recordings.annotations
        self._numbers = {annotation.key: number for number, annotation in enumerate(clips)}

    @cached_property
    def asked(self) -> tuple[_Part, ...]:
        """Return the questions of each split, balanced within it.

        Raises:
            QuestionError: no question is possible in the test split; gives the reason.
            LeakError: the text of questions reveals answers.
        """
        require_balance(self.balances)
        return self._parts

    @cached_property
    def _parts(self) -> tuple[_Part, ...]:
        settings = self.settings
        shares = {TRAIN: settings.train, TEST: 1 - settings.train} if settings.train else {TEST: 1.0}
        split = split_by_recording(settings.recordings.annotations, shares, seed=settings.seed)
        parts = tuple(
            _Part(name, clips, draw_questions(clips, settings.questions, seed=settings.seed))
            for name, clips in split.items()
        )
        test = parts[-1]
        if not test.questions:
            reasons = "; ".join(self._reason(test, name) for name in settings.ask)
            of_counts = any(TWO_COUNTS in kind_named(name).needs for name in settings.ask)
            raise NothingAskedError(
                f"{settings.recordings.source}: no questions are possible about the {len(test.clips):,} clips of "
                "the split "
                f"{TEST}: {reasons}",
                lacks_clips=settings.least_clips > 1 and of_counts,
            )
        return parts

    @cached_property
    def balances(self) -> tuple[Balance, ...]:
        """Return the balance of the questions of each split and kind: controls without audio."""
        return tuple(
            replace(balance, source=f"{balance.source} ({part.split})")
            for part in self._parts
            for balance in balance_of(part.questions, part.clips)
        )

    def reports(self) -> Sequence[Table]:
        """Return the balance report, one row for each split and kind of question."""
        _ = self.asked
        return (balance_table(self.balances),)

    def notes(self) -> Sequence[str]:
        """Return notes on the kinds of questions that are impossible in a split, and why."""
        return tuple(
            f"no questions in the split {part.split}: {self._reason(part, name)}"
            for part in self.asked
            for name in self.settings.ask
            if not any(question.kind == name for question in part.questions)
        )

    def _reason(self, part: _Part, name: str) -> str:
        """Return the reason why a kind of question is impossible."""
        kind, settings = kind_named(name), self.settings.questions
        facts = facts_of(part.clips, kind, settings)
        clips = len({fact.key for fact in facts})
        # Answers that are times do not help the reader.
        answers = Counter(answer for answer, _ in {(fact.answer, fact.key) for fact in facts if not fact.width})
        frequent = sorted(answers.items(), key=lambda item: (-item[1], item[0]))[:4]
        there = ", ".join(f"{answer} in {number}" for answer, number in frequent)
        needs = kind.needs.format(least=settings.least_clips)
        return f"{name} needs {needs}; {clips} of {len(part.clips)} clips qualify{f' ({there})' if there else ''}"

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows without their audio."""
        annotations = self.settings.recordings.annotations
        return tuple(
            row_of(question, annotations[self._numbers[question.recording, question.start]], part.split)
            for part in self.asked
            for question in part.questions
        )

    def rate(self, index: int) -> int:
        """Return the sample rate of a row's clip in Hz."""
        return self.settings.recordings.sounds[self._number(index)].rate

    def clips(self, index: int) -> Sequence[Pcm16]:
        """Return the unchanged clip of its file, int16 [samples]."""
        samples, _ = self.settings.recordings.waveform(self._number(index))
        return (whole_clip(samples, len(samples)),)

    def _number(self, index: int) -> int:
        row = self.rows[index]
        return self._numbers[row["recording"], row["start"]]
