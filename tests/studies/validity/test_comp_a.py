"""Constructed models of captions: what they read by hand, what must hold on few items, and scores that are wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.metrics import comp_a as metric
from studies.validity import comp_a as captions
from studies.validity.comp_a import ORDER, CaptionMaterial, CaptionPlan, heard_facts, said_facts

FEW = CaptionPlan(items=60, models=4, every=2)

PARTS = {
    "oracle": captions.perfect,
    "named": captions.as_named,
    "bag": captions.bag,
    "random": captions.random,
    "space": captions.moved,
    "noise": lambda data: captions.turn_noise(data, False)[1],
    "counterparts": lambda data: captions.turn_counterparts(data, False)[1],
    "favour": lambda data: captions.turn_favour(data, False)[1],
}

LABELS = ("electric piano", "piano", "bell")


@pytest.fixture(scope="module")
def data():
    return CaptionMaterial(FEW, 0)


def event(label, start, stop, *words):
    return {"label": label, "start": start, "stop": stop, "attributes": list(words)}


def test_what_is_heard_is_told_from_events_alone():
    after = heard_facts([event("bell", 5.05, 10, "high"), event("piano", 0, 5.1, "low")])
    assert after == {
        ("sounds", "bell"),
        ("sounds", "piano"),
        ("is", "bell", "high"),
        ("is", "piano", "low"),
        ("before", "piano", "bell"),
    }
    assert ("with", "bell", "piano") in heard_facts([event("piano", 0.3, 10), event("bell", 0, 10)])


@pytest.mark.parametrize(
    ("caption", "relation"),
    [
        ("a bell followed by a low piano", ("before", "bell", "piano")),
        ("a bell after a low piano", ("before", "piano", "bell")),
        ("before a bell, a low piano", ("before", "piano", "bell")),
        ("first a bell, later a low piano", ("before", "bell", "piano")),
        ("a bell, but first a low piano", ("before", "piano", "bell")),
        ("a bell together with a low piano", ("with", "bell", "piano")),
        ("a bell while a low piano is heard", ("with", "bell", "piano")),
    ],
)
def test_what_is_said_is_told_from_words_alone(caption, relation):
    facts = said_facts(caption, LABELS)
    assert facts == {("sounds", "bell"), ("sounds", "piano"), ("is", "piano", "low"), relation}
    if relation[0] == "before":
        assert ("before", "bell", "piano") in said_facts(caption, LABELS, as_named=True)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("oracle", lambda s: s.swapaxes(1, 2)[:, ::-1]),
        ("named", lambda s: np.abs(s) + np.eye(s.shape[1])),
        ("bag", lambda s: s + 0.01 * np.eye(s.shape[1])),
        ("random", lambda s: s + 0.05 * np.eye(s.shape[1])),
        ("counterparts", lambda s: s + 0.05 * np.eye(s.shape[1])),
        ("favour", lambda s: s - s.mean(axis=1, keepdims=True)),
    ],
)
def test_a_metric_that_helps_or_harms_is_seen(data, part, change, monkeypatch):
    """Similarities of the items alone are changed, as by a metric that is wrong; the trivial baseline stays."""
    items = metric._items

    def changed(*given):
        right = items(*given)
        return replace(right, pairs=change(right.pairs), triplets=change(right.triplets))

    monkeypatch.setattr(metric, "_items", changed)
    assert not all(check.holds for check in PARTS[part](data))


def test_the_tie_rule_is_what_keeps_a_bag_of_words_at_nothing(data, monkeypatch):
    items = data.items[ORDER]
    clips, texts = captions.bag_of_words(items, 0)
    rounded = texts * (1 + 1e-7 * np.random.default_rng(0).normal(size=texts.shape))
    with_rule = items.measures(clips, rounded)
    assert (with_rule["match"], with_rule["match_ties"], with_rule["text"]) == (0.5, 1, 0)
    monkeypatch.setattr(metric, "NEAR", 0.0)
    without = items.measures(clips, rounded)
    assert without["match_ties"] == 0
    assert without["text"] > 0
