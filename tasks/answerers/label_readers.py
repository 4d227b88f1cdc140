"""Answerers that are told the labels of a clip and hear nothing: what the labels allow.

`oracle` knows them with their times, and answers by the symbolic rules that a detector's events are answered by: what
it misses, no detector can get. `present` knows which labels there are and not when.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from audio_compositionality.dataset_builder.texts.question_tasks import PRESENCE, PRESENT
from audio_compositionality.dataset_builder.texts.questions import YES, annotation_of, in_sentence

from .base import Chooser, Prompted, card_of, drawn, letters
from .symbolic import place_of_answer


class _LabelReader(Chooser):
    """An answerer that is told labels: of a row, what is heard when is read, and not its answer."""

    @property
    def abilities(self) -> frozenset[str]:
        """It reads labels in place of sound."""
        return super().abilities | {"labels"}

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`.

        Raises:
            ModelError: a clip has no row.
        """
        row_of = iter(self.rows_of(clips))
        return letters(prompts, lambda asked, prompt: self._place(asked, prompt, dict(next(row_of))))

    @abstractmethod
    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        """The place of the option that is taken."""


class Oracle(_LabelReader):
    """Knows what is heard when; answers by the symbolic rules."""

    card = card_of("oracle", "told the labels with their times", kind="control")

    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        return place_of_answer(asked, annotation_of(row))


class Present(_LabelReader):
    """Knows what is heard, and not when: draws from the options that this leaves.

    A number of kinds is known, no more of which can be heard at once, and whether one is heard. What is not heard
    neither overlaps nor lasts. The only kind that is heard overlaps nothing.
    """

    card = card_of("present", "told the labels without their times", kind="control")

    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        if asked.wording is None:
            return None
        heard = {in_sentence(event["label"]) for event in row["events"]}
        possible = self._possible(asked, heard) or list(asked.options)
        return asked.options.index(possible[drawn(len(possible), prompt, row["id"])])

    @staticmethod
    def _possible(asked: Prompted, heard: set[str]) -> list[str]:
        assert asked.wording is not None
        what = asked.wording.asked
        if asked.kind == "counting/kinds":
            return [option for option in asked.options if option == str(len(heard))]
        if asked.kind == "counting/together":
            return [option for option in asked.options if option.isdecimal() and int(option) <= len(heard)]
        if what.task in {"duration", "classification"}:
            return [option for option in asked.options if option in heard]
        if what.task == PRESENCE:
            says_yes = (what.anchor in heard) == (what.polarity == PRESENT)
            return [option for option in asked.options if (option == YES) == says_yes]
        if what.task == "concurrency" and len(heard) < 2:
            return [option for option in asked.options if (option == YES) == (what.polarity == "alone")]
        return []
