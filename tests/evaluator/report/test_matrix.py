"""The matrix of the first screen: each number with the standing of its model, judged models first, the rest folded."""

from __future__ import annotations

import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.report import matrix as matrix_module
from audio_compositionality.evaluator.report.matrix import MatrixCell, matrix_of
from audio_compositionality.support.text import number_text

MODELS = ("random", "org/one", "untrained:org/one", "log-mel-statistics", "org/two")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory, write_results):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, MODELS, tasks=["a_coat"])
    return verdicts_of(compare_results([write_results(folder, ["org/one", "random"], tasks=["a_tre"])]))


def test_each_number_stands_with_its_verdict(verdicts):
    matrix = matrix_of(verdicts)
    # The data are the same, and are not named.
    assert matrix.tasks == (("A-COAT", "adjusted"), ("A-TRE", "centred"))
    assert [row.label for row in matrix.judged] == [
        label for label in verdicts.comparisons[0].labels if label in ("org/one", "org/two")
    ]
    assert [row.kind for row in matrix.references] == ["untrained network", "baseline", "baseline"]
    coat = verdicts.comparisons[0]
    for row in matrix.rows:
        cell, other = row.cells
        standing = verdicts.standing(row.label, coat)
        mean = float(coat.view("adjusted").means[coat.labels.index(row.label)])
        assert (cell.text, cell.standing) == (number_text(mean, 2, minus="−"), standing)
        assert cell.sign == ("" if standing is None else SIGNS[standing])
        assert (other.text == "") == (row.label not in ("org/one", "random"))
    assert MatrixCell("−0.25", None, "").brief == "−.25"
    assert MatrixCell("10.25", None, "").brief == "10.25"


def test_of_many_rows_those_of_models_are_on_the_first_screen(verdicts, monkeypatch):
    matrix = matrix_of(verdicts)
    assert (matrix.together, matrix.apart) == (matrix.rows, ())
    monkeypatch.setattr(matrix_module, "MOST_TOGETHER", 4)
    assert (matrix.together, matrix.apart) == (matrix.judged, matrix.references)
