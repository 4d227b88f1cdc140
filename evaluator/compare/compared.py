"""Results compared in Python: one tidy table, with the verdicts on all models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas

from audio_compositionality.dataset_builder.data import HeldData

from .comparison import compare_results
from .loading import GivenResults
from .model_verdicts import Verdicts, verdicts_of
from .rows import tidy_frame


class ComparedFrame(pandas.DataFrame):
    """The tidy table of a comparison, a row a number of a model; see `ScoreRow` for its columns.

    Attributes:
        verdicts: the verdicts on all models; ``print(frame.verdicts.text)``. A part of the table has none.
    """

    _metadata = ("verdicts",)

    verdicts: Verdicts

    def __reduce__(self) -> tuple[Callable[[pandas.DataFrame], pandas.DataFrame], tuple[pandas.DataFrame]]:
        """A pickle is the plain table: the verdicts hold opened data, which stay with their process."""
        return pandas.DataFrame, (pandas.DataFrame(self),)


def compare(results: GivenResults, *, data: str | Path | HeldData[Any] | None = None) -> ComparedFrame:
    """Compare results of the same version of a task on the same data.

    Args:
        results: one or several: folders of results, their JSON files, or results that `evaluate` has returned.
        data: where to open the data from; by default as the results state.

    Raises:
        ResultError: there are no results, one is damaged, or two are of the same model, revision, task and data.
        DatasetError: `data` is given and cannot be opened, or is the data of none of the results.
    """
    comparisons = compare_results(results, data=data)
    frame = ComparedFrame(tidy_frame(comparisons))
    frame.verdicts = verdicts_of(comparisons)
    return frame
