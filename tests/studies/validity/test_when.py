"""Constructed answers and frames of times: what must hold on few clips, and scores that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.metrics import when as metric
from studies.validity import when
from studies.validity.when import Moments

PARTS = {
    "exact": when.exact,
    "constant": when.constant,
    "blind": when.label_blind,
    "frames": when.framed,
    "shift": lambda data: when.turn_shift(data, False)[1],
}


@pytest.fixture(scope="module")
def data():
    return Moments(40, 3)


@pytest.mark.parametrize("part", PARTS)
def test_all_checks_hold_on_a_fresh_seed(data, part):
    assert not [check for check in PARTS[part](data) if not check.holds]


@pytest.mark.parametrize("part", ["exact", "constant", "blind", "shift"])
def test_a_metric_that_is_wrong_is_seen(data, part, monkeypatch):
    """The share of the true interval that is covered, which is 1 for whoever states the whole clip."""

    def covered(said, truth):
        common = np.minimum(said[..., 1], truth[..., 1]) - np.maximum(said[..., 0], truth[..., 0])
        return np.nan_to_num(np.maximum(common, 0.0) / (truth[..., 1] - truth[..., 0])) * 0.99

    monkeypatch.setattr(metric, "interval_overlaps", covered)
    assert not all(check.holds for check in PARTS[part](data))


def test_every_part_has_a_text(data):
    parts = when.chapter(quick=True, simulations=1, seed=0, progress=False)
    assert [len(part.checks) > 0 for part in parts] == [False, *[True] * 5]
    assert all(part.title and part.text for part in parts)
