"""Questions that are answered in words of one's own, without options."""

from __future__ import annotations

from abc import ABC, abstractmethod

from audio_compositionality.dataset_builder.data import Row


class FreeAnswerTask(ABC):
    """The part of a task of free answers by which single answers are scored, as other suites do; see `Task`."""

    @abstractmethod
    def answer_of(self, row: Row) -> str:
        """The right answer, in words that score 1."""

    @abstractmethod
    def score_of(self, row: Row, answer: str) -> float:
        """The score of one answer, from 0 to 1; its mean over all rows is the first measure."""
