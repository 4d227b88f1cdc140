"""Atomic questions about scenes in which sounds overlap: is one heard, and does one begin before another?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ..data import DatasetError, Row
from ..scenes.twin_scenes import CITATION, COLUMNS, AtomScenes, AtomSettings, describe_scenes
from ..scenes.twins import SPLITS
from ..texts.questions.atoms import ATOMS, PRESENCE, SEQUENCE, STATES, TIME
from ..texts.questions.rows import CLIP, check_question_row, question_features

if TYPE_CHECKING:
    from datasets import Features

QUESTIONS_OF_SET, CLIPS_OF_SET = 8, 4


class _AtomicQuestions:
    """The recipe; see `Recipe`."""

    name = "polybench_atoms"
    version = 1
    splits = SPLITS
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, AtomSettings]:
        """Settings by the name of a preset."""
        return {"mini": AtomSettings(test_sets=24), "full": AtomSettings()}

    def features(self, settings: AtomSettings) -> Features:
        """See `rows.question_features`."""
        return question_features(settings.sample_rate)

    def clip_names(self, row: Row) -> tuple[str, ...]:
        """The one clip, ``audio``."""
        return (CLIP,)

    def render(self, settings: AtomSettings) -> AtomScenes:
        """Draw the rows; nothing is written."""
        return AtomScenes.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that is no atomic question."""
        if row.get("task") not in ATOMS:
            raise DatasetError(f"row {row['id']}: task is {row.get('task')!r}; it is {' or '.join(ATOMS)}")
        states = STATES[row["task"]]
        if row.get("polarity") not in states:
            raise DatasetError(f"row {row['id']}: polarity is {row.get('polarity')!r}; it is {' or '.join(states)}")
        # The polarities of the questions about overlap are others.
        check_question_row({**row, "polarity": ""})

    def describe(self, settings: AtomSettings) -> str:
        """Markdown of the card."""
        questions, clips = (f"{count * settings.test_sets:,}" for count in (QUESTIONS_OF_SET, CLIPS_OF_SET))
        text = f"""\
{questions} questions about {clips} clips in which sounds overlap, and {QUESTIONS_OF_SET * settings.train_sets:,} to
learn from, each answered by Yes or No: is a sound heard (`presence`), and does one begin before another (`sequence`)?
What is asked of overlapping sounds elsewhere is made of these. They are twins: of two clips one has a sound of one kind
where the other has one of another kind, or two sounds change places, so that every question has the other answer in the
other clip; and it is asked either way, so that Yes is right as often as No whatever is heard. Sounds that begin one
before the other do so by half a second or more. Of simultaneity and order in time `presence` needs {TIME[PRESENCE]},
`sequence` {TIME[SEQUENCE]}. Two algorithms that have nothing in common agree on every answer."""
        polarity = "what Yes says: `overlap` or `alone`; else empty"
        told = "what Yes says: `present` or `absent`, `before` or `after`"
        kinds = "`counting`, `duration`, `concurrency`, `classification`, `detection`, and how"
        columns = COLUMNS.replace(f"of Yes and No, {polarity}", told).replace(kinds, "`presence`, `sequence`, and how")
        return "\n\n".join((text, describe_scenes(settings), columns, CITATION))


RECIPE = _AtomicQuestions()
