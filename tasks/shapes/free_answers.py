"""Questions that are answered in words of one's own, without options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import LANGUAGE_MODEL

from ..base import BEST_CONSTANT, Profile, TaskInfo


@dataclass(frozen=True, kw_only=True)
class FreeAnswerInfo(TaskInfo):
    """The facts of a task of free answers, whose measures ``unparsed`` and ``n`` count unread and all answers."""

    needs: frozenset[str] = LANGUAGE_MODEL
    samples: str = "questions"
    on_request: bool = True
    controls: tuple[str, ...] = ("usual-times", "without-audio:", "other-audio:", "shuffled-audio:", "events-as-text:")
    is_level_matched: bool = True

    @property
    def floor(self) -> str:
        """No answer without knowledge of the clip exceeds it; measures may have a higher floor of their own."""
        return BEST_CONSTANT

    @property
    def described_by(self) -> tuple[str, ...]:
        """The constant answer that is learnt from other groups."""
        return ("usual-times",)

    @property
    def twin(self) -> tuple[str, str]:
        """A language model without training answers nothing."""
        return "without-audio:", "the same model without sound"

    @property
    def bars(self) -> Mapping[str, str]:
        """The model itself on other sound, and on sound without its order in time."""
        return {"other-audio:": "itself on another clip", "shuffled-audio:": "itself on shuffled stretches of sound"}

    @property
    def profile(self) -> Profile:
        """Scores by label and wording, and the share of unread answers."""
        return Profile(measure=self.ranks_by, groupings=("label", "template"), shares=(("unparsed", "n"),))


class FreeAnswerTask(ABC):
    """The part of a task of free answers by which single answers are scored, as other suites do; see `Task`."""

    @abstractmethod
    def answer_of(self, row: Row) -> str:
        """The right answer, in words that score 1."""

    @abstractmethod
    def score_of(self, row: Row, answer: str) -> float:
        """The score of one answer, from 0 to 1; its mean over all rows is the first measure."""
