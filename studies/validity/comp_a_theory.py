"""Models of captions of which theory says what the scores must be, beside what they are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.tasks.base import Scores
from audio_compositionality.tasks.registry import load_task

from . import comp_a_models as make
from .axes_data import heading
from .comp_a_data import ATTRIBUTE, ORDER, CaptionMaterial
from .families import Check, near

PAPER = ("text", "audio", "group", "match")

SURE = 4.0
"""Standard errors that a share may be off its chance."""


def perfect(data: CaptionMaterial) -> list[Check]:
    """Who reads events and captions is right in everything, triplets too."""
    checks = []
    for task, items in data.items.items():
        measures = items.measures(*make.oracle(items))
        prefixes = ("", "triplets_", "mixed_") if task == ORDER else ("",)
        for name in (f"{prefix}{name}" for prefix in prefixes for name in PAPER):
            checks.append(near("reads events and captions", heading(task, name), 1, measures[name]))
    return checks


def as_named(data: CaptionMaterial) -> list[Check]:
    """First named, first heard: right where captions are so, wrong elsewhere; and of attributes right."""
    items, subject = data.items[ORDER], "first named, first heard"
    scores = items.score(*make.first_named_first_heard(items))
    checks = []
    for mention, expected in (("forward", 1.0), ("reverse", 0.0)):
        of_mention = items.splits()[f"mention {mention}"]
        for name in ("match", "group"):
            value = _mean(ORDER, scores, name, of_mention)
            checks.append(near(subject, f"{heading(ORDER, name)}, {mention}", expected, value))
    of_attributes = data.items[ATTRIBUTE]
    measures = of_attributes.measures(*make.first_named_first_heard(of_attributes))
    return [*checks, near(subject, heading(ATTRIBUTE, "group"), 1, measures["group"])]


def bag(data: CaptionMaterial) -> list[Check]:
    """Words without their order: nothing is won, all assignments are tied, on every split."""
    checks, subject = [], "bag of words"
    expected = {"text": 0.0, "audio": 0.0, "group": 0.0, "match": 0.5, "text_pairwise": 0.5, "audio_pairwise": 0.5}
    for task, items in data.items.items():
        scores = items.score(*make.bag_of_words(items, data.seed))
        splits = {"all items": np.ones(len(items.rows), bool), **items.splits()}
        for name, value in expected.items():
            means = np.array([_mean(task, scores, name, split) for split in splits.values()])
            worst = float(means[np.abs(means - value).argmax()])
            checks.append(near(subject, f"{heading(task, name)}, farthest of {len(splits)} splits", value, worst))
        checks.append(near(subject, heading(task, "floor_group"), 0, float(scores.measures["floor_group"] or 0)))
    return checks


def random(data: CaptionMaterial) -> list[Check]:
    """Who knows nothing and takes nothing for one is at chance, and so is the floor."""
    checks = []
    for task, items in data.items.items():
        runs = [items.measures(*make.random(items, data.seed, number)) for number in range(data.plan.models)]
        counts = {"": "n", "triplets_": "triplets_n", "mixed_": "n"} if task == ORDER else {"": "n"}
        for prefix, count in counts.items():
            for name in PAPER:
                value = float(np.mean([run[f"{prefix}{name}"] for run in runs]))
                chance, of_items = runs[0][f"{prefix}chance_{name}"], round(runs[0][count]) * len(runs)
                checks.append(chance_near("random", heading(task, f"{prefix}{name}"), chance, value, of_items))
        floor = float(np.mean([run["floor_group"] for run in runs]))
        checks.append(near("random", heading(task, "floor_group"), runs[0]["chance_group"], floor, 0.01))
    return checks


def moved(data: CaptionMaterial) -> list[Check]:
    """Turned, and of other lengths: nothing changes."""
    checks = []
    for task, items in data.items.items():
        clips, texts = make.noisy(items, 0.2, data.seed, 0)
        rng = np.random.default_rng(data.seed)
        turn = np.linalg.qr(rng.normal(size=(clips.shape[1],) * 2))[0]
        lengths = np.exp(rng.normal(size=(2, len(clips), 1)))
        plain = items.measures(clips, texts)
        other = items.measures(1_000 * lengths[0] * clips @ turn, 0.001 * lengths[1] * texts @ turn)
        change = max(abs(other.get(name, math.nan) - value) for name, value in plain.items())
        checks.append(near("turned, of other lengths", f"largest of {len(plain)} changes in {task}", 0, change, 1e-6))
    return checks


def chance_near(subject: str, score: str, chance: float, value: float, count: int) -> Check:
    """A share of so many independent items beside its chance, within `SURE` standard errors, and one item."""
    tolerance = SURE * math.sqrt(chance * (1 - chance) / count) + 1 / count
    return near(subject, f"{score}, of {count:,} items", chance, value, tolerance)


def _mean(task: str, scores: Scores, name: str, items: NDArray[np.bool_]) -> float:
    """A measure by sample, over some items."""
    column = str(load_task(task).info.measure(name).column)
    return float(scores.columns[column][items].mean())
