"""Ends of intervals never pass what a measure can be."""

import numpy as np
import pytest

from audio_compositionality.evaluator.compare.comparison import View
from audio_compositionality.evaluator.compare.statistics import bounded_interval
from audio_compositionality.tasks.registry import list_tasks

SAMPLED = [(task.info.name, measure) for task in list_tasks() for measure in task.info.with_intervals]


class TestBounds:
    """Ends of intervals lie in the range of their measure, whatever the samples."""

    @pytest.mark.parametrize(("task", "measure"), SAMPLED, ids=lambda value: getattr(value, "name", value))
    def test_of_every_measure_with_an_interval(self, task, measure):
        low, high = (float(np.clip(end, -3, 3)) for end in measure.range)
        rng = np.random.default_rng(0)
        for spread in (0.1, 3.0, 1e3):
            # Contributions to a ratio: their mean lies in the range, and a few of them far outside.
            columns = rng.standard_cauchy((40, 3)) * spread
            columns += rng.uniform(low, high, 3) - columns.mean(axis=0)
            view = View(measure, ("a", "b", "c"), columns, np.arange(40))
            for interval in view.intervals:
                assert measure.range[0] <= interval[0] <= interval[1] <= measure.range[1]
            widest = measure.range[1] - measure.range[0]
            assert all(-widest <= test.interval[0] <= test.interval[1] <= widest for test in view.tests)

    def test_an_interval_within_them_is_left_as_it_is(self):
        assert bounded_interval((0.2, 0.9), 0.5, (0.0, 1.0)) == (0.2, 0.9)

    def test_the_one_that_was_printed(self):
        """[-1705, 737] of a score of at most 1."""
        low, high = bounded_interval((-1705.0, 737.0), -484.0, (-1e15, 1.0))
        assert (low, high) == pytest.approx((-1705, 1 - 485 * np.exp(-1221 / 485)))
        assert -50 < high < 1

    def test_an_end_within_is_not_stretched_by_one_outside(self):
        """One group of sixty is right: the upper end stays what the bootstrap gave."""
        low, high = bounded_interval((-0.01, 0.09), 1 / 60, (0.0, 1.0))
        assert 0 < low < 1 / 60
        assert high == 0.09

    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1e15, 1.0), (0.0, 1e15)])
    def test_near_the_estimate_both_scales_are_the_same(self, bounds):
        estimate = 0.001 if bounds[0] == 0 else 0.999
        outside = bounds[0] - 1e-4 if bounds[0] == 0 else bounds[1] + 1e-4
        near = estimate + 1e-7
        ends = sorted((near, outside))
        moved = bounded_interval((ends[0], ends[1]), estimate, bounds)
        assert min(abs(end - near) for end in moved) < 1e-9
        assert bounds[0] < moved[0] < moved[1] < bounds[1]

    def test_a_mean_that_is_a_bound_or_beyond_is_cut(self):
        assert bounded_interval((0.9, 1.2), 1.0, (0.0, 1.0)) == (0.9, 1.0)
        assert bounded_interval((1.1, 1.2), 1.15, (0.0, 1.0)) == (1.0, 1.0)
