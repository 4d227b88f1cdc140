"""The printed figures of arXiv 2603.05128: what follows from them alone, and that the metric gives them."""

from __future__ import annotations

import pytest

from audio_compositionality.metrics.polybench import polybench
from audio_compositionality.tasks.polybench import PRINTED

# Table 1: F1 and accuracy in %, by model and task. Concurrency is of polyphonic clips only.
TASKS = ("counting", "duration", "concurrency", "classification", "detection")
TABLE_1 = {
    "Qwen3-Omni-30B-A3B": ((55.9, 57.5), (70.2, 68.5), (85.2, 76.0), (77.2, 77.9), (57.3, 63.4)),
    "R1-AQA": ((34.5, 30.1), (42.1, 43.2), (93.7, 90.4), (29.5, 33.1), (22.4, 26.2)),
    "Audio Flamingo 3": ((56.3, 53.4), (67.4, 65.8), (53.1, 37.7), (47.8, 50.3), (36.2, 37.2)),
    "TimeAudio + Qwen3-8B": ((47.7, 43.8), (63.7, 63.7), (86.9, 78.1), (53.8, 50.3), (53.5, 51.7)),
    "AudSemThinker-QA GRPO": ((57.3, 51.4), (67.1, 64.4), (59.1, 43.2), (70.6, 70.3), (39.6, 37.2)),
}

# Table 2: concurrency with negatives, % of all questions in the columns printed as TP, FP, TN and FN.
TABLE_2 = {
    "Qwen3-Omni-30B-A3B": (18.2, 8.1, 8.8, 64.9),
    "R1-AQA": (24.3, 54.7, 2.7, 18.3),
    "Audio Flamingo 3": (10.1, 16.2, 16.9, 56.8),
    "TimeAudio + Qwen3-8B": (20.2, 41.9, 6.8, 31.1),
    "AudSemThinker-QA GRPO": (10.1, 29.8, 16.9, 43.2),
}

# What sections 4.1 and 4.2 call the accuracy of concurrency.
TEXT = (83.1, 42.6, 66.9, 51.4, 53.4)

# Counts that Table 2 must stand for: tp, fn, fp, tn; then sensitivity, specificity and balanced accuracy.
COUNTS = {
    "Qwen3-Omni-30B-A3B": ((27, 13, 12, 96), (0.675, 0.889, 78.2)),
    "R1-AQA": ((36, 4, 81, 27), (0.900, 0.250, 57.5)),
    "Audio Flamingo 3": ((15, 25, 24, 84), (0.375, 0.778, 57.6)),
    "TimeAudio + Qwen3-8B": ((30, 10, 62, 46), (0.750, 0.426, 58.8)),
    "AudSemThinker-QA GRPO": ((15, 25, 44, 64), (0.375, 0.593, 48.4)),
}

ROUNDED = 0.05 + 1e-9
"""By how much a figure with one decimal differs from what it was rounded from."""

ROW_OF_100 = 0.1 + 1e-9
"""The same where single figures were moved so that a row adds up to 100.0, as every row of Table 2 does."""


def test_the_board_of_the_task_has_these_figures() -> None:
    """Of concurrency the balanced accuracy of Table 2, for that is comparable; of what asks with time nothing."""
    assert PRINTED.measures == TASKS
    assert list(PRINTED.figures) == list(TABLE_1)
    for place, task in enumerate(TASKS):
        accuracies = {model: row[place][1] for model, row in TABLE_1.items()}
        if task == "concurrency":
            accuracies = {model: balanced for model, (_, (_, _, balanced)) in COUNTS.items()}
        for model, accuracy in accuracies.items():
            assert 100 * PRINTED.figures[model][task] == pytest.approx(accuracy, abs=ROUNDED), (model, task)


def test_two_columns_of_table_2_are_exchanged() -> None:
    for row in TABLE_2.values():
        assert sum(row) == pytest.approx(100)
    # All models were asked the same questions, so the share of positive ones is one number.
    as_printed = [round(tp + fn, 1) for tp, _, _, fn in TABLE_2.values()]
    exchanged = [round(tp + fn, 1) for tp, _, fn, _ in TABLE_2.values()]
    assert len(set(as_printed)) == 5
    assert set(exchanged) == {27.0}
    for (tp, _, _, tn), accuracy in zip(TABLE_2.values(), TEXT, strict=True):
        assert tp + tn == pytest.approx(accuracy, abs=0.1 + 1e-9), "what the text calls accuracy"


@pytest.mark.parametrize("model", TABLE_2)
def test_table_2_comes_out_of_the_metric(model: str) -> None:
    (tp, fn, fp, tn), (sensitivity, specificity, balanced) = COUNTS[model]
    result = polybench(
        ["Yes"] * tp + ["B. No"] * fn + ["(A)"] * fp + ["No."] * tn,
        ["Yes"] * (tp + fn) + ["No"] * (fp + tn),
        [["Yes", "No"]] * 148,
        ["concurrency"] * 148,
    )
    assert [result[name] for name in ("tp", "fn", "fp", "tn")] == [tp, fn, fp, tn]
    assert [100 * result[name] / 148 for name in ("tp", "fp", "fn", "tn")] == pytest.approx(
        TABLE_2[model], abs=ROW_OF_100
    )
    place = list(TABLE_2).index(model)
    assert 100 * result["accuracy"] == pytest.approx(TEXT[place], abs=ROUNDED)
    assert result["sensitivity"] == pytest.approx(sensitivity, abs=5e-4 + 1e-9)
    assert result["specificity"] == pytest.approx(specificity, abs=5e-4 + 1e-9)
    assert 100 * result["balanced_accuracy"] == pytest.approx(balanced, abs=ROUNDED)
    # Who always says No is right more often than all but the first.
    assert round(100 * result["majority"], 1) == 73.0
    assert (result["accuracy"] > result["majority"]) == (place == 0)
