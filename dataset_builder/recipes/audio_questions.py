"""Multiple-choice questions about sounds that others wrote: a user's tables, and published benchmarks."""

from __future__ import annotations

from collections.abc import Mapping

from audio_compositionality.support.spec import Spec

from .question_rows import QuestionRecipe


class _AudioQuestions(QuestionRecipe[Spec]):
    """Questions with options about one or several clips, which are read and never drawn."""

    name = "audio_questions"
    one_length = False

    @property
    def presets(self) -> Mapping[str, Spec]:
        """Return no presets: the rows come from a table."""
        return {}


RECIPE = _AudioQuestions()
