"""Constructed models of composed retrieval: all expectations hold on few rows, and a wrong metric is seen."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.metrics import composed_retrieval as metric
from studies.validity import composed
from studies.validity.composed import Composed

PARTS = [composed.abilities, composed.shortcuts, composed.without_knowledge]


@pytest.fixture(scope="module")
def data():
    return Composed(144, 1)


@pytest.mark.parametrize("part", PARTS)
def test_expectations_hold(data, part):
    assert [check for check in part(data) if not check.holds] == []


def test_a_metric_that_breaks_ties_by_the_order_of_candidates_is_seen(data, monkeypatch):
    def target_ranks(query, flat, row, place):
        cosines = np.einsum("ij,ij->i", query[row], flat)
        first = [np.flatnonzero(row == k)[np.argmax(cosines[row == k])] for k in range(len(query))]
        return (np.array(first) == place).astype(float), np.ones(len(query))

    monkeypatch.setattr(metric, "_target_ranks", target_ranks)
    assert not all(check.holds for check in composed.shortcuts(data))
