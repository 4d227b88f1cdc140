"""Constructed counters: what must hold holds on few ladders, and fails where something tells that must not."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.metrics import count_instances as metric
from studies.validity import count_instances as counting
from studies.validity.count_instances import ClipFacts, LadderMaterial

PARTS = (counting.counters, counting.single, counting.random, counting.captions)


@pytest.fixture(scope="module")
def data() -> LadderMaterial:
    return LadderMaterial(80, 5)


@pytest.mark.parametrize("part", PARTS)
def test_what_must_hold_holds(data: LadderMaterial, part) -> None:
    assert all(check.holds for check in part(data)), [check for check in part(data) if not check.holds]


def test_facts_of_a_clip_by_hand() -> None:
    events = [{"start": start, "stop": start + 0.2} for start in (0.5, 1.0, 2.0)]
    facts = ClipFacts.of(events, np.array([3, -4, 0], np.int16))
    assert (facts.count, facts.span, facts.density) == (3, 1.5, pytest.approx(2 / 1.5))
    assert (facts.activity, facts.energy) == (pytest.approx(0.6), pytest.approx(np.log10(25)))


def test_a_metric_that_takes_ties_for_order_is_seen(data: LadderMaterial, monkeypatch) -> None:
    monkeypatch.setattr(metric, "_ordered_share", lambda values: float(np.mean(np.diff(values) >= 0)))
    assert not all(check.holds for check in counting.counters(data))
