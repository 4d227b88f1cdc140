"""Multiple-choice questions about polyphonic sounds (after arXiv 2603.05128)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from ..data import DataColumn, Rendering, Row
from ..sounds.entries import Sounds
from ..sounds.strong_labels import AnnotatedRecordings
from ..texts.counterparts import FEWEST_LABELS, OVERLAPPING, SPLITS, Kind, gap_of
from ..texts.label_questions import AnnotatedSpec
from ..texts.polyphony import AskedClip, Cast, CounterpartPool, PolyphonySpec
from ..texts.question_tasks import kind_named
from ..texts.questions import NO_TIME, ORDER, SIMULTANEITY, check_question_row, question_columns, row_of
from .base import Drawn, Recipe

AnySpec = PolyphonySpec | AnnotatedSpec

_NEEDS = {NO_TIME: "neither", SIMULTANEITY: "simultaneity", ORDER: "temporal order"}
"""The temporal information that a kind of question needs, in words; see `questions.NO_TIME`."""


class CounterpartRecipe(Recipe[Any]):
    """A recipe of groups of counterparts, from tones or a user's sounds.

    Attributes:
        kinds: kinds of groups; a set has one group of each.
        clips_of_set, questions_of_set: number of clips and questions in a set.
        test_sets: test sets of the preset ``mini``.
    """

    splits = SPLITS
    kinds: ClassVar[tuple[Kind, ...]]
    clips_of_set: ClassVar[int]
    questions_of_set: ClassVar[int]
    test_sets: ClassVar[int] = 24

    @cached_property
    def presets(self) -> Mapping[str, PolyphonySpec]:
        """Return the settings of each preset, by name."""
        return {"mini": PolyphonySpec(test_sets=self.test_sets), "full": PolyphonySpec()}

    def columns(self, spec: Any) -> Sequence[DataColumn]:
        """Return the columns; see `question_columns`."""
        return question_columns(tasks=tuple(dict.fromkeys(kind.task.partition("/")[0] for kind in self.kinds)))

    def draw(self, spec: Any, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the questions of the training split, then the questions of the test split; see `Cast.asked`."""
        pool = CounterpartPool(sounds, spec)
        pool.check_enough(FEWEST_LABELS)
        sets = {"train": spec.train_sets, "test": spec.test_sets}
        cast = Cast(pool, spec, self.kinds)
        for split in pool.splits:
            for asked in cast.asked(split, sets[split]):
                yield Drawn(self.row(asked), [asked.clip], pool.mixed)

    def row(self, asked: AskedClip) -> Row:
        """Return the row of a question."""
        question, annotation, group = asked.question, asked.annotation, asked.group
        gap = gap_of(question, annotation)
        return row_of(question, annotation, group.split, gap=gap, level_difference=group.level_difference)

    def render(self, spec: Any) -> Rendering:
        """Draw the rows without writing anything."""
        rendering: Rendering = spec.rendering(self)
        return rendering

    def check_row(self, row: Row) -> None:
        """Raise an error if a row is not a question of this recipe."""
        check_question_row(row, self.columns(None))

    def card(self, spec: Any) -> Mapping[str, Any]:
        """Return the values of the spec, and the numbers of clips and questions in a set."""
        return {"clips_of_set": self.clips_of_set, "questions_of_set": self.questions_of_set, **spec.card()}


class _Questions(CounterpartRecipe):
    """Multiple-choice questions about polyphonic sounds."""

    name = "polybench"
    version = 3
    # Questions about annotated recordings use them unchanged.
    one_length = False
    kinds = OVERLAPPING
    clips_of_set, questions_of_set = 23, 25
    test_sets = 12

    def of_annotated(self, recordings: AnnotatedRecordings, requested: Mapping[str, Any]) -> AnnotatedSpec:
        """Return a spec for questions about recordings with strong labels; see `AnnotatedRecipe`."""
        return AnnotatedSpec(recordings=recordings, **requested)

    def columns(self, spec: AnySpec | None) -> Sequence[DataColumn]:
        """Return columns for any question: annotated recordings can have kinds from installed packages."""
        return question_columns()

    def card(self, spec: AnySpec) -> Mapping[str, Any]:
        """Return the base's values, and the temporal information that each kind needs."""
        needs = {kind.task: _NEEDS[kind_named(kind.task).time] for kind in self.kinds}
        return {**super().card(spec), "needs": needs}


RECIPE = _Questions()
