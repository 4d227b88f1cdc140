"""The answerer that states the same interval whenever it is asked when a sound is heard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.encoders.base import Model

from .chooser import answerer_card


class UsualTimes(Model):
    """Answers every question with the interval that overlaps most with the true ones to learn from."""

    card = answerer_card("usual-times", "the interval that overlaps most with those to learn from")

    needs_columns = frozenset({"onset", "offset", "duration"})

    def __init__(self) -> None:
        """It has yet to learn."""
        self._answer = ""

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; no clip is asked for."""
        from audio_compositionality.metrics.when import best_constant

        truth = np.array([(row["onset"], row["offset"]) for row in rows], np.float64)
        first, last = best_constant(truth, max(float(row["duration"]) for row in rows))[0]
        self._answer = f"{first:.3f} to {last:.3f} s"

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        return [self._answer for _ in prompts]
