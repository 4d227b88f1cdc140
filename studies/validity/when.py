"""Checks of when one of several sounds occurs: answers and frames of models with one ability, compared with theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.metrics.when import best_constant, interval_overlaps
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.moments import moment_activities

from .checks import Chapter, Check, DialTable, Part, at_least, at_most, near, numbers, scored

Floats = NDArray[np.float64]

ANSWERS, FRAMES = "when", "when_frames"
"""The tasks."""

SHIFTS = (0.0, 0.1, 0.2, 0.4, 0.8)
"""Seconds by which a stated interval is moved."""

SURE = 3.0
"""Standard errors by which a mean may differ from its expectation."""

BIN = 0.1
"""Precision in seconds of times from frames."""


@dataclass(frozen=True)
class Moments:
    """Rows of the recipe as numbers; no sound is rendered.

    Attributes:
        groups: number of groups of three clips.
        seed: seed of every draw.
    """

    groups: int
    seed: int

    @cached_property
    def rows(self) -> Sequence[Row]:
        """All rows."""
        recipe = load_recipe(load_task(ANSWERS).info.recipe)
        return recipe.render(recipe.presets["mini"].changed(seed=self.seed, groups=self.groups)).rows

    @cached_property
    def truth(self) -> Floats:
        """True intervals, [n, 2]."""
        return np.array([(row["onset"], row["offset"]) for row in self.rows])

    @cached_property
    def spans(self) -> Floats:
        """The intervals of all sounds, [n, sounds, 2]."""
        return np.array([[(event["onset"], event["offset"]) for event in row["events"]] for row in self.rows])

    @property
    def duration(self) -> float:
        """Seconds of every clip."""
        return float(self.rows[0]["duration"])

    @property
    def lengths(self) -> Floats:
        """Seconds of the sounds that are asked about, [n]."""
        return self.truth[:, 1] - self.truth[:, 0]

    @cached_property
    def activities(self) -> Floats:
        """Return the share of each bin in which each label is heard, [n, bins, labels]."""
        labels = sorted({event["label"] for row in self.rows for event in row["events"]})
        return np.stack([moment_activities(row, labels, round(self.duration / BIN)) for row in self.rows])

    def answered(self, intervals: Floats) -> Scores:
        """The result of intervals [n, 2] that are stated in words."""
        return self.said([f"It is heard from {first:.3f} to {last:.3f} s." for first, last in intervals])

    def said(self, answers: Sequence[str]) -> Scores:
        """The result of answers."""
        return scored(ANSWERS, self.rows, Outputs(answers=answers))

    def framed(self, frames: Floats) -> Mapping[str, float]:
        """Return the measures of frames [n, bins, dim]."""
        clips = frames.reshape(len(self.rows), -1).astype(np.float32)
        return numbers(scored(FRAMES, self.rows, Outputs(clips=clips)))


def exact(data: Moments) -> list[Check]:
    """Check that true times in words are right everywhere, and that missing times are right nowhere."""
    right, reversed_times = numbers(data.answered(data.truth)), numbers(data.answered(data.truth[:, ::-1]))
    silent = numbers(data.said(["I cannot tell."] * len(data.rows)))
    return [
        near("states the true times", "overlap", 1, right["iou"]),
        near("states the true times", "hits", 1, right["hit"]),
        near("states the end first", "overlap", 0, reversed_times["iou"]),
        near("states the end first", "unparsed", len(data.rows), reversed_times["unparsed"]),
        near("states no time", "overlap", 0, silent["iou"]),
    ]


def shifted(data: Moments, seconds: float) -> tuple[float, float]:
    """Return the overlap of true intervals with intervals moved by some seconds towards the middle of the clip, and
    its theory: for the length L and the shift d, (L − d) / (L + d), or 0."""
    towards = np.where(data.truth.mean(axis=1) < data.duration / 2, seconds, -seconds)[:, None]
    theory = np.maximum(data.lengths - seconds, 0) / (data.lengths + seconds)
    return numbers(data.answered(data.truth + towards))["iou"], float(theory.mean())


def turn_shift(data: Moments, progress: bool) -> tuple[DialTable, list[Check]]:
    """Move the stated times away from the true ones."""
    pairs = [shifted(data, seconds) for seconds in SHIFTS]
    checks = [
        near(f"off by {seconds:g} s", "overlap", theory, measured, 1e-6)
        for seconds, (measured, theory) in zip(SHIFTS, pairs, strict=True)
    ]
    return DialTable("seconds", SHIFTS, {"overlap": tuple(measured for measured, _ in pairs)}), checks


def constant(data: Moments) -> list[Check]:
    """Check one interval for all: the best is the prior, and the whole clip is below it."""
    best = np.tile(best_constant(data.truth, data.duration)[0], (len(data.rows), 1))
    whole = numbers(data.answered(np.tile([0.0, data.duration], (len(data.rows), 1))))
    measures = numbers(data.answered(best))
    return [
        near("the best constant", "overlap", measures["iou_prior"], measures["iou"], 1e-6),
        near("the whole clip", "overlap", float(data.lengths.mean()) / data.duration, whole["iou"], 1e-6),
        at_most("the whole clip", "overlap", measures["iou_prior"], whole["iou"]),
    ]


def label_blind(data: Moments) -> list[Check]:
    """Check times without labels: a random sound scores as theory says, and the best interval at the label-blind
    baseline."""
    rng = np.random.default_rng([data.seed, 1])
    drawn = data.spans[np.arange(len(data.rows)), rng.integers(data.spans.shape[1], size=len(data.rows))]
    overlaps = [[interval_overlaps(span[None], spans) for span in spans] for spans in data.spans]
    best = []
    for spans in data.spans:
        ends = np.array([(a, b) for a in spans[:, 0] for b in spans[:, 1] if a < b])
        best.append(ends[np.argmax([interval_overlaps(one[None], spans).mean() for one in ends])])
    of_drawn, of_best = data.answered(drawn), data.answered(np.array(best))
    bar = numbers(of_best)["iou_label_blind"]
    return [
        within_errors("a sound drawn among all", float(np.mean(overlaps)), of_drawn),
        at_most("a sound drawn among all", "overlap", bar + SURE * _error(of_drawn), numbers(of_drawn)["iou"]),
        within_errors("the best without labels", bar, of_best),
    ]


def _error(scores: Scores) -> float:
    """Return the standard error of the overlap, over groups of three clips."""
    groups = scores.columns["score"].reshape(-1, 3).mean(axis=1)
    return float(groups.std(ddof=1) / np.sqrt(len(groups)))


def within_errors(subject: str, expected: float, scores: Scores) -> Check:
    """Check that a mean overlap is within `SURE` standard errors of its expectation."""
    return near(subject, "overlap", expected, numbers(scores)["iou"], SURE * _error(scores) + 1e-9)


def framed(data: Moments) -> list[Check]:
    """Check frames of models with one ability: with labels, the probe is right within a bin; else at most at the
    baselines."""
    active = data.activities
    every = active.sum(axis=2, keepdims=True)
    oracle, any_sound = data.framed(active), data.framed(np.minimum(every, 1))
    how_many, timeless = (
        data.framed(every),
        data.framed(np.repeat(active.mean(axis=1, keepdims=True), active.shape[1], 1)),
    )
    least = float(((data.lengths - BIN) / (data.lengths + BIN)).mean())
    return [
        at_least("frames of labels", "overlap", least, oracle["iou"]),
        at_most("frames of the presence of sound", "overlap", any_sound["iou_label_blind"], any_sound["iou"]),
        at_most("frames of the number of sounds", "overlap", how_many["iou_label_blind"], how_many["iou"]),
        at_most("frames without times", "overlap", timeless["iou_prior"], timeless["iou"]),
    ]


def chapter(*, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
    """Check the scores; see `dials.chapter`. Nothing is simulated."""
    data, page = Moments(40 if quick else 200, seed), Chapter("when.yaml", "when")
    checks = {"exact": exact, "constant": constant, "blind": label_blind, "frames": framed}
    along = {"shift": turn_shift}
    return (page.part("chapter", level=2, rows=len(data.rows)), *page.parts(checks, along, data, progress))
