"""When is it heard: answers as people and models write them, overlaps by hand, and bars beside brute force."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from audio_compositionality.metrics.spoken_times import spoken_times
from audio_compositionality.metrics.when import when

from .contract import MetricContract

READ = {
    "1.2 to 3.4 s": (1.2, 3.4),
    "from 0:01.2 until 0:03.4": (1.2, 3.4),
    "00:01 - 00:03": (1, 3),
    "between two and four seconds": (2, 4),
    "one and a half seconds to three seconds": (1.5, 3),
    '{"onset": 1.2, "offset": 3.4}': (1.2, 3.4),
    "onset: 1.2, offset 3.4": (1.2, 3.4),
    "1200 ms to 3400 ms": (1.2, 3.4),
    "1,200 ms to 3,400 ms": (1.2, 3.4),
    "I hear two clarinets.": None,
    "from 3.4 to 1.2 s": None,
    "3.4 s": None,
    "-1.2 to 3.4": None,
    "1. The drum: 0.2 to 1.0 s\n2. The bell: 1.2 to 3.4 s": (1.2, 3.4),
    "1. The bell starts at 1.2 s\n2. The bell ends at 3.4 s": (1.2, 3.4),
    "The bell is heard from 1.2 to 3.4 seconds, lasting 2.2 seconds.": (1.2, 3.4),
    "1.2 to 3.4 s of the 8-second clip": (1.2, 3.4),
    "The clip lasts 8 seconds. The bell starts at 1 and ends at 3.": (1, 3),
    '{"offset": 3.4, "onset": 1.2}': (1.2, 3.4),
    "It starts at 1.2 s and lasts 2.2 s.": (1.2, 3.4),
    "at 1.2 s for 2.2 s": (1.2, 3.4),
    "[1.2, 3.4]": (1.2, 3.4),
    "1.2 3.4": (1.2, 3.4),
    "clarinet 2: 1.2-3.4": (1.2, 3.4),
    "starts at 1.2 s (0:01.2) and ends at 3.4 s (0:03.4)": (1.2, 3.4),
    "1 min 3 s to 1 min 5.5 s": (63, 65.5),
    "Of the 3 sounds, the bell is from 1 to 3.": (1, 3),
    "in ms: 1200 to 3400": (1.2, 3.4),
    "1.2s–3.4s": (1.2, 3.4),
    "It could be 1–2 s or 3–4 s. Answer: 3.1 – 4.2": (3.1, 4.2),
    "half a second to one second": (0.5, 1),
    "1½ to 2½ seconds": (1.5, 2.5),
    "between the 1 second mark and the 3 second mark": (1, 3),
    "440 Hz": None,
    "from 1.2 (80% sure) to 3.4": None,
    "": None,
    "The bell starts at 1.2 s, with a soft attack, and the sound ends at 3.4 s": (1.2, 3.4),
    "twenty-one to twenty two point five seconds": (21, 22.5),
    "onset_ms: 1200, offset_ms: 3400": (1.2, 3.4),
    "2": None,
    "Answer: **1.2 s – 3.4 s**": (1.2, 3.4),
    "0.5...1.5": (0.5, 1.5),
    "1 second to 200 ms": None,
    "from 2 to 2": (2, 2),
    "Starts: 1.2 s; stops: 3.4 s; duration: 2.2 s": (1.2, 3.4),
    "It starts at 1.2 s, lasts 2.2 s and ends at 3.4 s.": (1.2, 3.4),
    "bell: 00:00:01,200 --> 00:00:03,400": (1.2, 3.4),
    "The onset of the bell is at 1.2 seconds, and the offset is at 3.4 seconds.": (1.2, 3.4),
    "**Onset:** 2.35 seconds  \n**Offset:** 4.1 seconds": (2.35, 4.1),
    "bell is heard at 1.2 seconds and 3.4 seconds": (1.2, 3.4),
    "It begins around the 3 second mark and continues until the 5 second mark": (3, 5),
    "<|1.20|><|3.40|>": (1.2, 3.4),
    "1.2s to the end": None,
    "From 1,2 to 3,4 seconds": (1.2, 3.4),
    "von 1,25 s, 3,5 s": (1.25, 3.5),
    "in ms: 1,200.5 to 3,400": (1.2005, 3.4),
    "0:01,2 to 0:03,4": (1.2, 3.4),
    "0:01,0:03": (1, 3),
    "1,2,3": (1, 2),
    "[1,2, 3,4]": (1.2, 3.4),
    "-1,2 to 3,4 s": None,
    "between 0 and 8 s; more exactly 1 to 2 s": (1, 2),
    "precisely 1 to precisely 3": (1, 3),
}
"""Answers and what they say."""


def example() -> dict[str, Any]:
    """Return arguments of `when`: 24 clips of three sounds, most answers about right, some of another sound."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {name: [] for name in ("predictions", "onset", "offset", "duration", "spans")}
    for _ in range(24):
        onsets = np.sort(rng.uniform(0.0, 5.0, 3)).round(2)
        spans = [[float(onset), round(float(onset) + float(rng.uniform(0.6, 2.4)), 2)] for onset in onsets]
        asked, said = rng.integers(3), rng.random()
        first, last = spans[asked] if said < 0.7 else spans[rng.integers(3)]
        answer = f"It is heard from {first + 0.1:.1f} to {last:.1f} seconds." if said < 0.9 else "I cannot tell."
        for name, value in zip(rows, (answer, *spans[asked], 8.0, spans), strict=True):
            rows[name].append(value)
    return rows


class TestContract(MetricContract):
    name = "when"
    embeddings = ()
    needed = ("predictions", "onset", "offset", "duration")


def test_answers_are_read_as_people_read_them():
    for answer, said in READ.items():
        assert spoken_times(answer) == (None if said is None else pytest.approx(said)), answer


@pytest.mark.parametrize("part", ["1,200 ms", "(1,2", "1:", "and a ", "twenty-", "point one ", "\n1.", "from 1 to "])
def test_the_work_of_reading_grows_as_the_answer_does(part):
    """By lines that are run, whatever the load; a pattern that backtracks would not get through the long answer."""

    def lines(count):
        run = 0

        def trace(frame, event, argument):
            nonlocal run
            run += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            spoken_times(part * count)
        finally:
            sys.settrace(before)
        return run

    assert lines(100) <= 2.2 * lines(50)
    spoken_times(part * 5_000)


def test_numbers_by_hand():
    answers = ["1 to 3 s", "from 2 to 4", "no idea", "0 to 100 s"]
    spans = [[[1, 3], [5, 6]], [[1, 3], [4, 6]], [[2, 4], [6, 8]], [[4, 8], [0, 2]]]
    result = when(answers, [1, 1, 2, 4], [3, 3, 4, 8], [8] * 4, spans=spans, return_scores=True)
    assert result["scores"] == pytest.approx([1, 1 / 3, 0, 1 / 2])
    assert result["intervals"] == [[1, 3], [2, 4], None, [0, 8]]
    assert (result["hit"], result["unparsed"], result["n"]) == (0.5, 1, 4)
    # Beside the median of the same three answers: 1, 1 and 4; 3, 3 and 8.
    assert result["onset_error"] == pytest.approx((0 + 1 + 4) / 3)
    assert result["onset_error_prior"] == pytest.approx((0 + 0 + 3) / 3)
    assert result["offset_error"] == pytest.approx((0 + 1 + 0) / 3)
    assert result["offset_error_prior"] == pytest.approx((0 + 0 + 5) / 3)
    # Apart from each other, a sound itself is best: half of two.
    assert result["iou_label_blind"] == pytest.approx(0.5)
    turned = [of_clip[::-1] for of_clip in spans]
    assert when(answers, [1, 1, 2, 4], [3, 3, 4, 8], [8] * 4, spans=turned, return_scores=True) == result
    # From 0 to 2 s both are hit, and by none from an onset to an offset.
    both = when([[0, 2]] * 2, [0, 0.5], [1, 2.5], [4, 4], spans=[[[0, 1], [0.5, 2.5]]] * 2, parsed=True)
    assert both["hit"] == both["hit_label_blind"] == both["hit_prior"] == 1
    unread = when([None], [1], [2], [8], parsed=True)
    assert unread["onset_error"] is unread["offset_error_prior"] is None


@pytest.mark.parametrize("shift", [0.25, 1.0])
def test_a_shift_costs_what_the_formula_says(shift):
    """Intervals of length L, moved by d, share L - d of L + d."""
    rng = np.random.default_rng(0)
    onset, length = rng.uniform(0, 4, 50), rng.uniform(0.6, 2, 50)
    result = when(np.stack([onset, onset + length], 1) + shift, onset, onset + length, [8] * 50, parsed=True)
    assert result["iou"] == pytest.approx(np.mean(np.maximum(length - shift, 0) / (length + shift)))
    assert result["onset_error"] == pytest.approx(shift)


def all_hits(truth, step):
    """The largest share of hits of all intervals on a grid, by the definition alone."""
    times = np.arange(0, truth.max() + 1, step)
    intervals = np.stack([times[ends] for ends in np.triu_indices(len(times), 1)], 1)
    return (overlaps(intervals, truth) >= 0.5).mean(axis=1).max()


def overlaps(intervals: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """IoU [n, m] of intervals [n, 2] with true ones [m, 2], by its definition."""
    first, last = intervals.T[..., None]
    shared = np.minimum(last, truth[:, 1]) - np.maximum(first, truth[:, 0])
    return np.maximum(shared, 0) / (np.maximum(last, truth[:, 1]) - np.minimum(first, truth[:, 0]))


def test_bars_are_the_best_also_off_any_grid():
    """Times are multiples of .04, and so an interval on a grid of .02 is among the best for hits nearly always."""
    rng, reached = np.random.default_rng(5), []
    for _ in range(4):
        onset = rng.integers(0, 75, 4) * 0.04
        truth = np.stack([onset, onset + rng.integers(10, 60, 4) * 0.04], 1)
        result = when(truth, *truth.T, [9] * 4, spans=[truth] * 4, parsed=True)
        # A grid that is twice as fine shows at most what there is.
        grid = all_hits(truth, 0.02)
        assert result["hit_prior"] == result["hit_label_blind"] >= grid
        reached.append(result["hit_prior"] == grid)
        pairs = [(a, b) for a in truth[:, 0] for b in truth[:, 1] if a < b]
        best = overlaps(np.array(pairs), truth).mean(axis=1).max()
        assert result["iou_prior"] == pytest.approx(best) == pytest.approx(result["iou_label_blind"])
        drawn = np.sort(rng.uniform(0, 6, (50, 2)))
        assert overlaps(drawn, truth).mean(axis=1).max() < result["iou_prior"]
    assert np.mean(reached) > 0.9
    whole = when([[0, 8]] * 4, *truth.T, [9] * 4, parsed=True)
    assert whole["iou"] == pytest.approx(np.mean(truth[:, 1] - truth[:, 0]) / 8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predictions": None}, "when got onset, offset, duration without predictions"),
        ({"predictions": [1, 2]}, "must be texts"),
        ({"predictions": [[1, 2, 3], None], "parsed": True}, r"\[onset, offset\] or None; row 0"),
        ({"onset": [3, 1]}, "row 0 has 3 to 2 s"),
        ({"onset": [float("nan"), 1]}, "onset must be finite; row 0"),
        ({"spans": [[[1, 2]], [[3, 4]]]}, "include the true one; row 1"),
    ],
)
def test_refusals_say_what_and_where(changes, message):
    given = {"predictions": ["1 to 2", ""], "onset": [1, 1], "offset": [2, 2], "duration": [8, 8]}
    with pytest.raises(ValueError, match=message):
        when(**given | changes)
