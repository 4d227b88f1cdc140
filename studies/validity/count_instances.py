"""Counting on the page of `validate`: models that read one fact of a clip, or several, beside theory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Pcm16, Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task

from .axes_encoders import heading
from .families import Chapter, Check, Part, at_most, near

Floats = NDArray[np.float64]

PROBED, CAPTIONED = "count_instances", "count_instances_text"
"""The tasks."""

ASPECTS = ("energy", "span", "density", "activity")

TOLD_IN = {
    "energy": ("span", "density"),
    "span": ("energy", "density"),
    "density": ("span", "activity"),
    "activity": ("energy", "span", "density"),
}
"""Where each aspect grows with the count; in the part where it is held it tells nothing."""

SURE = 3.0
"""Standard errors by which a share may differ from its chance."""

LUCKY = 40
"""Models that do not know number words."""

NUMBER_WORDS = ("one", "two", "three", "four", "five")


@dataclass(frozen=True)
class ClipFacts:
    """The facts of a clip, measured.

    Attributes:
        count: of events.
        energy: logarithm of its energy, to base 10.
        span: seconds from the first onset to the last.
        density: onsets a second, 0 of a single one.
        activity: seconds of sound.
    """

    count: int
    energy: float
    span: float
    density: float
    activity: float

    @classmethod
    def of(cls, events: Sequence[Mapping[str, Any]], samples: Pcm16) -> ClipFacts:
        """Measure a clip, by its events and its samples."""
        onsets = [event["start"] for event in events]
        span = onsets[-1] - onsets[0]
        energy = float(np.log10(np.square(samples, dtype=np.float64).sum()))
        activity = sum(event["stop"] - event["start"] for event in events)
        return cls(len(events), energy, span, (len(events) - 1) / span if span else 0.0, activity)


class LadderMaterial:
    """Ladders of tones and the facts of their clips.

    Attributes:
        rows: of the recipe.
        facts: of each clip, ladder by ladder.
    """

    def __init__(self, ladders: int, seed: int) -> None:
        recipe = load_recipe(load_task(PROBED).info.recipe)
        rendering = recipe.render(recipe.presets["mini"].changed(ladders=ladders, seed=seed))
        self.rows: Sequence[Row] = rendering.rows
        self.facts = [
            ClipFacts.of(events, samples)
            for place, row in enumerate(self.rows)
            for events, samples in zip(row["events"], rendering.clips(place), strict=True)
        ]
        self.rng = np.random.default_rng([seed, ladders])

    def probed(self, *names: str) -> dict[str, float]:
        """The measures of an encoder that gives some facts."""
        return self.encoded(np.array([[getattr(fact, name) for name in names] for fact in self.facts], np.float64))

    def encoded(self, clips: Floats) -> dict[str, float]:
        """The measures of the embeddings of all clips."""
        return _numbers(load_task(PROBED).score(self.rows, Outputs(clips=clips), {}, "cpu", False))

    def captioned(self, clips: Floats, texts: Floats) -> dict[str, float]:
        """The measures of the embeddings of all clips and captions."""
        return _numbers(load_task(CAPTIONED).score(self.rows, Outputs(clips=clips, texts=texts), {}, "cpu", False))

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Of all clips."""
        return np.array([fact.count for fact in self.facts])

    @cached_property
    def said(self) -> NDArray[np.int64]:
        """The number that each caption says, by its words."""
        captions = [caption.split() for row in self.rows for caption in row["captions"]]
        return np.array([next(n for n, word in enumerate(NUMBER_WORDS, 1) if word in words) for words in captions])

    @property
    def error(self) -> float:
        """Standard error of the share of a part without knowledge, at most: ladders of one fair coin each. Up and down
        share their products of trained and tested clips, and count for no more than one of them."""
        return math.sqrt(0.25 / (len(self.rows) // len(ASPECTS)))


def _numbers(scores: Scores) -> dict[str, float]:
    return {name: float(value) for name, value in scores.measures.items() if value is not None}


def _near(subject: str, name: str, expected: float, measures: Mapping[str, float], tolerance: float = 1e-9) -> Check:
    return near(subject, heading(PROBED, name), expected, measures[name], tolerance)


def counters(data: LadderMaterial) -> list[Check]:
    """Exact counts, alone and beside energy and span; counts up to three; one vector for all."""
    checks = []
    for subject, measures in (
        ("the count", data.probed("count")),
        ("energy, count and span", data.probed("energy", "count", "span")),
    ):
        checks += [_near(subject, name, 1, measures) for name in ("worst", "order_up", "order_down")]
    three = data.encoded(np.minimum(data.counts, 3)[:, None].astype(np.float64))
    constant = data.encoded(np.ones((len(data.counts), 4)))
    checks += [_near("counts up to three", name, 0.5, three) for name in ("worst", "order_up")]
    return [*checks, *(_near("one vector for all", f"order_{name}", 0.5, constant) for name in ASPECTS)]


def single(data: LadderMaterial) -> list[Check]:
    """Each aspect alone is right where it grows, and at chance where it is held."""
    checks = []
    for aspect, parts in TOLD_IN.items():
        measures, subject = data.probed(aspect), f"{aspect} alone"
        checks += [_near(subject, f"order_{part}", 1, measures) for part in parts]
        checks.append(_near(subject, f"order_{aspect}", 0.5, measures, SURE * data.error))
    for pair in (("energy", "span"), ("energy", "activity"), ("span", "activity")):
        measures = data.probed(*pair)
        checks.append(_near(" and ".join(pair), "order_activity", 0.5, measures, SURE * data.error))
    return checks


def random(data: LadderMaterial) -> list[Check]:
    """Another vector for each clip."""
    measures = data.encoded(data.rng.normal(size=(len(data.counts), 64)))
    return [_near("random vectors", f"order_{part}", 0.5, measures, SURE * data.error) for part in ASPECTS]


def captions(data: LadderMaterial) -> list[Check]:
    """Who reads and hears numbers; who reads none; who always hears more."""
    heard, read = np.eye(len(NUMBER_WORDS))[data.counts - 1], np.eye(len(NUMBER_WORDS))[data.said - 1]
    same = np.ones_like(read)
    turned = np.column_stack([np.cos(1 - data.said / 10), np.sin(1 - data.said / 10)])
    always = np.column_stack([np.ones(len(turned)), np.zeros(len(turned))])
    chance = float(np.mean([1 / len(row["counts"]) for row in data.rows]))
    checks = []
    for subject, order, exact, measures in (
        ("reads and hears numbers", 1.0, 1.0, data.captioned(heard, read)),
        ("all words but numbers", 0.5, chance, data.captioned(heard, same)),
        ("always more", 0.5, chance, data.captioned(always, turned)),
    ):
        checks += [
            near(subject, heading(CAPTIONED, f"order_{part}"), order, measures[f"order_{part}"]) for part in ASPECTS
        ]
        checks.append(near(subject, heading(CAPTIONED, "exact"), exact, measures["exact"]))
    lucky = 0
    for _ in range(LUCKY):
        words = data.rng.normal(size=(len(NUMBER_WORDS), 64))
        measures = data.captioned(np.outer(data.counts, words[0] - words[1]), words[data.said - 1])
        lucky += measures["worst"] > measures["floor"]
    # One of 24 orders of the words at most is above the second largest.
    share, error = 1 / 24, math.sqrt(1 / 24 * 23 / 24 / LUCKY)
    return [
        *checks,
        at_most("unknown number words", "share of models above the floor", share + SURE * error, lucky / LUCKY),
    ]


_part = Chapter("count_instances.yaml", "counting").part


class Counting:
    """The family; see `Family`."""

    # Families are sorted by name: this one comes after "text".
    name = "times counted"

    def run(self, *, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
        """Check the scores of counting; see `Family`. Nothing is simulated."""
        data = LadderMaterial(120 if quick else 400, seed)
        parts = [_part("chapter", level=2, ladders=len(data.rows))]
        for check in tqdm((counters, single, random, captions), desc="counting", disable=not progress):
            parts.append(_part(check.__name__, check(data), error=f"{data.error:.3f}"))
        return tuple(parts)


FAMILY = Counting()
