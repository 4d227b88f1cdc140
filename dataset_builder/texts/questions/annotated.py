"""Questions about recordings of a user's own with strong labels, as rows with their sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import Table, to_markdown
from audio_compositionality.support.text import listed, nearest, number_text

from ...data import Pcm16, Row
from ...scenes.rendering import SharedRendering
from ...scenes.whole_clips import whole_clip
from ...sounds.annotated import AUDIOTIME, WARNING, AnnotatedRecordings, has_negatives
from ...sounds.formats.base import Annotation
from ...sounds.intervals import Rules
from .base import Question, QuestionError, QuestionSettings, kind_of, question_tasks
from .check import check_questions
from .controls import Balance, balance_of, balance_table, require_balance
from .generation import ask, facts_of, split_by_recording
from .rows import row_of
from .templates import templates_digest

TRAIN, TEST = "train", "test"

MOST_TRAIN = 0.9
"""Of the recordings, for training."""


@dataclass(frozen=True, kw_only=True)
class AskedSettings:
    """What is asked of annotated recordings, whatever they are.

    Attributes:
        seed: of all choices, from 0 to 2^63 - 1.
        train: share of the recordings whose questions are for training; 0 for none.
        ask, counts, least_clips, duration_options: as of `QuestionSettings`.

    Raises:
        InputError: a value out of its range, or there are no such questions.
    """

    seed: int = 0
    train: float = 0.3
    ask: tuple[str, ...] = QuestionSettings.ask
    counts: tuple[int, ...] | None = None
    least_clips: int = QuestionSettings.least_clips
    duration_options: int = QuestionSettings.duration_options

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}; it must be from 0 to 2^63 - 1")
        if not 0 <= self.train <= MOST_TRAIN:
            raise InputError(f"train is {self.train:g}, a share of the recordings; it must be from 0 to {MOST_TRAIN:g}")
        kinds = [(task.name, variant) for task, variant in (kind_of(name, question_tasks()) for name in self.ask)]
        names = tuple(f"{task}/{variant}" for task, variant in kinds)
        if not names or len(set(names)) < len(names):
            raise InputError(f"ask is {', '.join(self.ask)!r}; it takes one kind of questions or several, each once")
        object.__setattr__(self, "ask", names)
        _ = self.questions

    @property
    def questions(self) -> QuestionSettings:
        """What is asked."""
        return QuestionSettings(self.ask, self.counts, self.least_clips, self.duration_options)

    def values(self) -> dict[str, Any]:
        """The settings as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(AskedSettings)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class AnnotatedSettings(AskedSettings):
    """Everything that decides questions about annotated recordings, and their clips.

    Attributes:
        recordings: what is asked about.
    """

    recordings: AnnotatedRecordings

    @property
    def questions(self) -> QuestionSettings:
        """What is asked; labels that are related in the recordings never meet."""
        return replace(super().questions, related=self.recordings.related, negatives=self.has_negatives)

    @property
    def has_negatives(self) -> bool:
        """Whether what does not overlap is asked about clips of AudioTime; see `negatives`."""
        return has_negatives(self.recordings.annotations)

    @property
    def sample_rate(self) -> int:
        """Hz, the highest of all clips."""
        return max(sound.rate for sound in self.recordings.sounds)

    def values(self) -> dict[str, Any]:
        """The settings as JSON values: of recordings the fingerprint, beside what counts as what, and all wordings."""
        resolutions = {annotation.resolution: annotation for annotation in self.recordings.annotations}
        return {
            **super().values(),
            "recordings": self.recordings.fingerprint,
            "rules": {f"{r:g}": asdict(Rules.of(annotation)) for r, annotation in sorted(resolutions.items())},
            "templates": templates_digest(),
            **({"negatives": AUDIOTIME} if self.has_negatives else {}),
        }


@dataclass(frozen=True)
class _Asked:
    """The questions of a split.

    Attributes:
        split: train or test.
        clips: all annotations of the split.
        questions: about them.
    """

    split: str
    clips: tuple[Annotation, ...]
    questions: tuple[Question, ...]


class AnnotatedQuestions(SharedRendering[AnnotatedSettings]):
    """Questions about annotated recordings and their sound; see `RatedRendering` and `ReportedRendering`."""

    @cached_property
    def asked(self) -> tuple[_Asked, ...]:
        """The questions of each split, balanced by themselves.

        Raises:
            QuestionError: nothing can be asked in the split test, and why.
            LeakError: the text of questions gives answers away.
        """
        require_balance(self.balances)
        return self._splits

    @cached_property
    def _splits(self) -> tuple[_Asked, ...]:
        """The questions of each split, checked by the second algorithm."""
        settings = self.settings
        shares = {TRAIN: settings.train, TEST: 1 - settings.train} if settings.train else {TEST: 1.0}
        parts = split_by_recording(settings.recordings.annotations, shares, seed=settings.seed)
        asked = []
        for split, of_split in parts.items():
            questions = ask(of_split, settings.questions, seed=settings.seed)
            check_questions(questions, of_split)
            asked.append(_Asked(split, of_split, questions))
        *_, test = asked
        if not test.questions:
            reasons = "; ".join(self._reason(test, name) for name in settings.ask)
            raise QuestionError(
                f"{settings.recordings.source}: nothing can be asked of the {len(test.clips):,} clips of the split "
                f"{TEST}: {reasons}"
            )
        return tuple(asked)

    @cached_property
    def balances(self) -> tuple[Balance, ...]:
        """What is known of the questions of each split and kind without hearing."""
        return tuple(
            replace(balance, source=f"{balance.source} ({part.split})")
            for part in self._splits
            for balance in balance_of(part.questions, part.clips)
        )

    def reports(self) -> Sequence[Table]:
        """The balance report, a row a split and kind of question."""
        _ = self.asked
        return (balance_table(self.balances),)

    def notes(self) -> Sequence[str]:
        """Which kinds of questions cannot be asked in a split, and why."""
        return tuple(
            f"no questions in the split {part.split}: {self._reason(part, name)}"
            for part in self.asked
            for name in self.settings.ask
            if not any(question.kind == name for question in part.questions)
        )

    def _reason(self, part: _Asked, name: str) -> str:
        """Why a kind of question cannot be asked."""
        task, variant = kind_of(name, question_tasks())
        settings = self.settings.questions
        needs = task.needs[variant].format(least=settings.least_clips)
        facts = facts_of(part.clips, task, variant, settings)
        clips = len({fact.key for fact in facts})
        # A time tells a reader nothing.
        answers = Counter(answer for answer, _ in {(fact.answer, fact.key) for fact in facts if not fact.width})
        there = ", ".join(f"{answer} in {number}" for answer, number in _most_common(answers))
        return f"{name} needs {needs}; {clips} of {len(part.clips)} clips qualify{f' ({there})' if there else ''}"

    @cached_property
    def _numbers(self) -> Mapping[tuple[str, float], int]:
        return {annotation.key: number for number, annotation in enumerate(self.settings.recordings.annotations)}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        annotations = self.settings.recordings.annotations
        return tuple(
            row_of(question, annotations[self._numbers[question.recording, question.start]], part.split)
            for part in self.asked
            for question in part.questions
        )

    def rate(self, index: int) -> int:
        """Hz of the clip of a row."""
        return self.settings.recordings.sounds[self._number(index)].rate

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip as it is in its file, int16 [samples]."""
        samples, _ = self.settings.recordings.waveform(self._number(index))
        return (whole_clip(samples, len(samples)),)

    def _number(self, index: int) -> int:
        row = self.rows[index]
        return self._numbers[row["recording"], row["start"]]


def _most_common(answers: Counter[str]) -> list[tuple[str, int]]:
    """The four answers that are right in most clips."""
    return sorted(answers.items(), key=lambda item: (-item[1], item[0]))[:4]


def settings_of_annotated(recordings: AnnotatedRecordings, requested: Mapping[str, Any]) -> AnnotatedSettings:
    """Settings of questions about annotated recordings.

    Args:
        recordings: with labels.
        requested: as `AnnotatedRecipe.of_annotated` has it.

    Raises:
        InputError: there is no such setting, or a value out of its range.
    """
    names = [field.name for field in fields(AskedSettings)]
    for name in requested:
        if name not in names:
            raise InputError(f"questions about annotated recordings have no setting {name!r}; {nearest(name, names)}")
    return AnnotatedSettings(recordings=recordings, **requested)


def describe_annotated(settings: AnnotatedSettings) -> str:
    """Markdown of the card: what is asked of which recordings, and the balance report; without the columns."""
    rendering = AnnotatedQuestions.of(settings)
    clips = settings.recordings.annotations
    labels = sorted({label for annotation in clips for label in annotation.labels})
    lengths = [annotation.duration for annotation in clips]
    seconds = dict.fromkeys(number_text(length, 1) for length in (min(lengths), max(lengths)))
    counts = listed([f"{len(part.questions):,} for {part.split}" for part in rendering.asked])
    recordings = len({annotation.recording for annotation in clips})
    notes = "".join(f"\n\nThere are {note}." for note in rendering.notes())
    warning = f"\n\n**Mixed concurrency**: {WARNING}." if settings.has_negatives else ""
    return f"""\
Multiple-choice questions about {len(clips):,} clips of {recordings:,} recordings with strong labels
({settings.recordings.format}), after *PolyBench* ([arXiv 2603.05128](https://arxiv.org/abs/2603.05128)): {counts}, of
the kinds {listed(list(settings.ask), 10)}. A clip is what the file has, mono, 16-bit, as long
({" to ".join(seconds)} s) and at the rate that it has. No recording is in two splits.

Labels: {", ".join(labels)}.

What is neither plainly overlapping nor plainly apart is not asked about; where labels are soft, an answer is the same
however what is heard perhaps is taken. Two algorithms that have nothing in common agree on every answer. No text gives
answers away, which a classifier of the text alone (`blind`) is at chance for; `present` knows what is heard, and not
when:

{to_markdown(*rendering.reports())}{notes}{warning}"""
