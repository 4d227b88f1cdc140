"""The matrix on the first screen: models by tasks, with the score and the verdict in each cell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.model_verdicts import Verdicts
from audio_compositionality.evaluator.compare.rows import score_rows
from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.compare.tables import versioned_title
from audio_compositionality.evaluator.compare.task_verdicts import Standing, worst
from audio_compositionality.support.text import number_text

from .sections import section_title


@dataclass(frozen=True)
class MatrixCell:
    """The score of a model in a task.

    Attributes:
        text: the score by the measure that the task judges by; empty if there is no result.
        standing: of the model; None for baselines, twins and controls, which are not judged.
        words: score and standing for screen readers.
    """

    text: str
    standing: Standing | None
    words: str

    @property
    def sign(self) -> str:
        """Return one of `SIGNS`; empty if the model is not judged."""
        return "" if self.standing is None else SIGNS[self.standing]

    @property
    def brief(self) -> str:
        """Return the score without the zero before its point (``.25``), for many columns."""
        return re.sub(r"^(−?)0\.", r"\1.", self.text)


@dataclass(frozen=True)
class MatrixRow:
    """A model.

    Attributes:
        label: of the model.
        kind: ``model``, ``untrained network``, ``baseline`` or ``control``.
        standing: over all tasks; None if the model is not judged.
        cells: one per task.
    """

    label: str
    kind: str
    standing: Standing | None
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class Matrix:
    """Models by tasks.

    Attributes:
        tasks: titles and the heading of the measure that each judges by.
        rows: the judged models first, then the references.
    """

    tasks: tuple[tuple[str, str], ...]
    rows: tuple[MatrixRow, ...]

    @property
    def is_wide(self) -> bool:
        """Whether the titles of the tasks are rotated."""
        return len(self.tasks) > MOST_LEVEL

    @property
    def together(self) -> tuple[MatrixRow, ...]:
        """Return the rows of the first screen: all rows, or only the judged models if there are many."""
        return self.rows if len(self.rows) <= MOST_TOGETHER or not self.judged else self.judged

    @property
    def apart(self) -> tuple[MatrixRow, ...]:
        """Return the other rows, which are folded."""
        return () if self.together is self.rows else self.references

    @property
    def judged(self) -> tuple[MatrixRow, ...]:
        """Return the rows of judged models."""
        return tuple(row for row in self.rows if row.standing is not None)

    @property
    def references(self) -> tuple[MatrixRow, ...]:
        """Return the rows of twins, controls and baselines."""
        return tuple(row for row in self.rows if row.standing is None)


MOST_LEVEL = 6
"""Most tasks whose titles are horizontal."""

MOST_TOGETHER = 14
"""Most models, twins and baselines in one table; if there are more, the first screen has the models alone."""


def matrix_of(verdicts: Verdicts) -> Matrix:
    """Return the matrix of all results; titles name the data only if there are several."""
    comparisons = verdicts.comparisons
    several = len({comparison.data_name for comparison in comparisons}) > 1
    titles = [
        section_title(comparison) if several else versioned_title(comparison.info, comparison.version)
        for comparison in comparisons
    ]
    kinds = {result.label: result.kind for comparison in comparisons for result in comparison.results}
    standings: dict[str, Standing] = {}
    for model in verdicts.models:
        # A model that also embeds texts has two verdicts.
        standings[model.label] = worst([model.standing, standings.get(model.label, Standing.ABOVE)])
    rows = []
    for label in sorted(kinds, key=lambda label: _ORDER.index(kinds[label])):
        cells = []
        for comparison in comparisons:
            if label not in comparison.labels:
                cells.append(MatrixCell("", None, "no result"))
                continue
            measure = comparison.info.judge
            (row,) = score_rows(comparison, comparison.labels.index(label), [measure])
            text = number_text(row.value, 2 if measure.digits == 3 else measure.digits, minus="−")
            standing = verdicts.standing(label, comparison)
            cells.append(MatrixCell(text, standing, text if standing is None else f"{text}, {standing.value}"))
        rows.append(MatrixRow(label, kinds[label].value, standings.get(label), tuple(cells)))
    measures = (comparison.info.judge.heading for comparison in comparisons)
    return Matrix(tuple(zip(titles, measures, strict=True)), tuple(rows))


_ORDER = (ModelKind.TRAINED, ModelKind.UNTRAINED, ModelKind.CONTROL, ModelKind.BASELINE)
