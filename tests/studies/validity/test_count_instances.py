"""Constructed counters: what must hold holds on few ladders, and fails where ties count as order."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.metrics import count_instances as metric
from studies.validity import count_instances as counting
from studies.validity.count_instances import LadderMaterial


@pytest.fixture(scope="module")
def data() -> LadderMaterial:
    return LadderMaterial(80, 5)


def test_what_must_hold_holds(data: LadderMaterial) -> None:
    assert [check for check in counting.captions(data) if not check.holds] == []


def test_a_metric_that_takes_ties_for_order_is_seen(data: LadderMaterial, monkeypatch) -> None:
    monkeypatch.setattr(metric, "won_shares", lambda steps: (steps >= -1e-6).astype(np.float64))
    assert not all(check.holds for check in counting.captions(data))
