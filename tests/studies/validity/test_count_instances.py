"""Constructed counters: what must hold holds on few ladders, and fails where ties count as order."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.metrics import count_instances as metric
from studies.validity import count_instances as counting
from studies.validity.count_instances import LadderMaterial


@pytest.mark.slow
def test_what_must_hold_holds_and_a_metric_that_takes_ties_for_order_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LUCKY", 8)
    data = LadderMaterial(80, 5)
    assert [check for check in counting.captions(data) if not check.holds] == []
    monkeypatch.setattr(metric, "won_shares", lambda steps: (steps >= -1e-6).astype(np.float64))
    assert not all(check.holds for check in counting.captions(data))
