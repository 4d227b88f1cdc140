"""Questions about scenes in which sounds overlap, and about the same sounds one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ..data import DatasetError, Row
from ..scenes.arrangements import APART_TASKS, ARRANGEMENTS
from ..scenes.twin_scenes import CITATION, COLUMNS, ApartScenes, ApartSettings, describe_scenes
from ..scenes.twins import SPLITS
from ..texts.questions.rows import CLIP, check_question_row, question_features

if TYPE_CHECKING:
    from datasets import Features

QUESTIONS_OF_SET = 14
"""In both arrangements."""

_COLUMNS = """
| `arrangement` | `together` or `apart` |
| `pair` | what the question about a scene has in common with that about the same sounds in the other arrangement |"""


class _ApartQuestions:
    """The recipe; see `Recipe`."""

    name = "polybench_apart"
    version = 1
    splits = SPLITS
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, ApartSettings]:
        """Settings by the name of a preset."""
        return {"mini": ApartSettings(test_sets=24), "full": ApartSettings()}

    def features(self, settings: ApartSettings) -> Features:
        """See `rows.question_features`."""
        from datasets import Value

        return question_features(settings.sample_rate, dict.fromkeys(("arrangement", "pair"), Value("string")))

    def clip_names(self, row: Row) -> tuple[str, ...]:
        """The one clip, ``audio``."""
        return (CLIP,)

    def render(self, settings: ApartSettings) -> ApartScenes:
        """Draw the rows; nothing is written."""
        return ApartScenes.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that is no question of a pair."""
        check_question_row(row)
        if row.get("arrangement") not in ARRANGEMENTS:
            raise DatasetError(
                f"row {row['id']}: arrangement is {row.get('arrangement')!r}; it is {' or '.join(ARRANGEMENTS)}"
            )
        if not isinstance(row.get("pair"), str) or not row["pair"]:
            raise DatasetError(f"row {row['id']}: pair is {row.get('pair')!r}; it is a text")
        if row["task"] not in APART_TASKS:
            raise DatasetError(f"row {row['id']}: task is {row['task']!r}; it is {' or '.join(APART_TASKS)}")

    def describe(self, settings: ApartSettings) -> str:
        """Markdown of the card."""
        tested, trained = (f"{QUESTIONS_OF_SET * sets:,}" for sets in (settings.test_sets, settings.train_sets))
        text = f"""\
{tested} multiple-choice questions, each about a clip of its own, and {trained} to learn from: what does it cost a model
that sounds overlap? Half of the clips are scenes in which sounds are together, half the same sounds pulled apart, one
after the other: the same kinds, pitches, lengths and levels, the same question with the same options and the same
answer. Asked is what has one answer in both: how many kinds of sound there are (four sounds of one to four kinds) and
which lasts longest (three sounds of lengths like 4 : 7 : 11). The share that is answered rightly of the scenes pulled
apart, less that of the scenes together, is what overlap costs; what else differs is how much silence there is.

The clips of one arrangement are twins: the sounds are at the same places, and only which label is where differs, so
that text alone is at chance. Two algorithms that have nothing in common agree on every answer."""
        return "\n\n".join((text, describe_scenes(settings), COLUMNS + _COLUMNS, CITATION))


RECIPE = _ApartQuestions()
