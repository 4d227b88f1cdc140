"""Labelled answers, and how well they are read: ``python tests/metrics/labelled_answers.py`` prints it by kind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest

from audio_compositionality.metrics.answers import match_answer

SETS = ("kinds", "development", "held_out", "independent", "traps")
"""Files of answers; see `answers/README.md` for who wrote which, and when."""
ALL = "all"
"""Of all kinds together."""

_FOLDER = Path(__file__).parent / "answers"


@dataclass(frozen=True)
class LabelledAnswer:
    """An answer with the position of the option that it comes down to, None where it is not exactly one."""

    id: str
    kind: str
    options: tuple[str, ...]
    answer: str
    expected: int | None


@dataclass(frozen=True)
class Scores:
    """How answers are read.

    Attributes:
        answers: how many there are; parsed: of them those read as an option; true: those that come down to one;
            right: those read as that.
    """

    answers: int
    parsed: int
    true: int
    right: int

    @property
    def precision(self) -> float:
        """The share of right ones among those read as an option, 1 where none is."""
        return self.right / self.parsed if self.parsed else 1.0

    @property
    def recall(self) -> float:
        """The share of those read rightly among those that come down to an option, 1 where none does."""
        return self.right / self.true if self.true else 1.0

    @property
    def precision_interval(self) -> tuple[float, float]:
        """Wilson's, 95 %."""
        return _wilson(self.right, self.parsed)

    @property
    def recall_interval(self) -> tuple[float, float]:
        """Wilson's, 95 %."""
        return _wilson(self.right, self.true)


def labelled_answers(name: str) -> list[LabelledAnswer]:
    """One file; of the held-out half without what stands in the development half too."""
    rows = [json.loads(line) for line in (_FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]
    answers = [LabelledAnswer(**row | {"options": tuple(row["options"])}) for row in rows]
    if name != "held_out":
        return answers
    known = {(row.options, row.answer) for row in labelled_answers("development")}
    return [row for row in answers if (row.options, row.answer) not in known]


def scores_by_kind(rows: Sequence[LabelledAnswer]) -> dict[str, Scores]:
    """Scores of each kind, and of ALL."""
    kinds = [*dict.fromkeys(row.kind for row in rows), ALL]
    read = [(row, match_answer(row.answer, row.options).option) for row in rows]
    return {
        kind: Scores(
            answers=sum(kind in (row.kind, ALL) for row, _ in read),
            parsed=sum(kind in (row.kind, ALL) and option is not None for row, option in read),
            true=sum(kind in (row.kind, ALL) and row.expected is not None for row, _ in read),
            right=sum(kind in (row.kind, ALL) and None is not option == row.expected for row, option in read),
        )
        for kind in kinds
    }


def _wilson(count: int, size: int) -> tuple[float, float]:
    return tuple(binomtest(count, size).proportion_ci(method="wilson")) if size else (0.0, 1.0)


def _row(kind: str, scores: Scores) -> str:
    cells = [f"{kind:30}{scores.answers:5}"]
    for share, (low, high), size in (
        (scores.precision, scores.precision_interval, scores.parsed),
        (scores.recall, scores.recall_interval, scores.true),
    ):
        shown = f"{share:.3f} [{low:.3f}, {high:.3f}]" if size else "-"
        cells.append(f"{shown:>22} of {size:<4}")
    return "  ".join(cells)


if __name__ == "__main__":
    for name in SETS:
        print(
            f"\n{name}\n{'kind':30}{'n':>5}  {'precision':>22} of parsed  {'recall':>22} of those that name an option"
        )
        for kind, scores in scores_by_kind(labelled_answers(name)).items():
            print(_row(kind, scores))
