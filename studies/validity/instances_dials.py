"""Dials of the encoders across instances: what each score does as noise, masking or a common nuisance grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from scipy import stats
from tqdm.auto import tqdm

from audio_compositionality.tasks.base import Scores
from audio_compositionality.tasks.registry import load_task

from . import instances_encoders as make
from .axes_data import heading
from .axes_dials import thinned
from .axes_theory import half_width
from .dials import monotone
from .families import Check, DialTable, at_least, at_most, near
from .instances_data import BLOCKS, CLASSES, Clips, Floats, InstancesMaterial, numbers

NOISE = (0.0, 0.1, 0.2, 0.4, 0.8)
"""Standard deviations of the noise in each coordinate, where a label is 1."""

MASKED = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of a label that a context masks."""

FAINT = 0.2
"""Standard deviation of the noise beside them."""

STRENGTHS = (0.1, 0.5, 1.0, 2.0, 10.0)
"""Lengths of the vectors of contexts and conditions, where a label is 1."""

COMMON = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the nuisance that lie in few dimensions, the same under all conditions."""

Levels = tuple[float, ...]
Along = dict[str, tuple[float, ...]]


def turn(
    data: InstancesMaterial, task: str, levels: Levels, encoder: Callable[[Clips, float], Floats], progress: bool
) -> tuple[Levels, list[Scores]]:
    """The levels that are measured, and the scores at each."""
    few = thinned(levels, data.plan.every)
    bar = tqdm(few, desc=f"instances: {task}", disable=not progress)
    return few, [data.scores(task, partial(_at, encoder, level)) for level in bar]


def _at(encoder: Callable[[Clips, float], Floats], level: float, clips: Clips) -> Floats:
    return encoder(clips, level)


def columns_of(measured: Sequence[Scores], names: Sequence[str]) -> Along:
    """Some numbers along the dial; NaN where a task has none."""
    return {name: tuple(numbers(scores).get(name, math.nan) for scores in measured) for name in names}


def table_of(level: str, levels: Levels, task: str, along: Mapping[str, tuple[float, ...]]) -> DialTable:
    """Numbers along the dial as a table."""
    return DialTable(level, levels, {heading(task, name): values for name, values in along.items()})


def turn_noise(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """From the oracle to noise."""
    levels, measured = turn(data, BLOCKS, NOISE, lambda clips, sd: make.noisy(clips, sd, data.seed), progress)
    names = ("top1", "part_top1", "alone_top1", "pairwise", "replacement_cosine")
    along = columns_of(measured, names)
    subject, checks = "as noise grows", []
    for name, values in along.items():
        score = heading(BLOCKS, name)
        checks += [
            near(subject, f"{score}, at the start", 1, values[0]),
            moves(subject, score, levels, values, falls=True),
        ]
    for name in ("top1", "part_top1", "alone_top1"):
        checks.append(near(subject, f"{heading(BLOCKS, name)}, at the end", 1 / CLASSES, along[name][-1], 0.1))
    for level, scores in zip(levels[1:], measured[1:], strict=True):
        checks.append(beside(f"noise {level:g}", BLOCKS, "pairwise", expected_pairwise(1, 1, level), scores))
    return table_of("sd of noise", levels, BLOCKS, along), checks


def moves(subject: str, score: str, levels: Sequence[float], values: Sequence[float], *, falls: bool = False) -> Check:
    """Whether a score rises or falls all the way; it does not where it is missing at some level."""
    rank = monotone(levels, values, falls=falls) if np.isfinite(values).all() else math.nan
    return near(subject, f"{score}: ρ", -1 if falls else 1, rank)


def expected_pairwise(first: float, second: float, sd: float, dim: int = make.DIM) -> float:
    """How often two replacements of the noisy oracle point the same way.

    u is the difference of two labels, |u|² = 2, of which first · u is heard on one side and second · u on the other,
    each beside noise n of variance 2 sd² in each of `dim` coordinates. (first u + n)(second u + n′) has the mean
    2 first second and the variance 4 sd² (first² + second²) + 4 dim sd⁴, and is close to normal in many dimensions.
    """
    variance = 4 * sd**2 * (first**2 + second**2) + 4 * dim * sd**4
    return float(stats.norm.cdf(2 * first * second / math.sqrt(variance)))


def beside(subject: str, task: str, name: str, theory: float, scores: Scores) -> Check:
    """A score beside theory: the 99.9 % interval of Student's t over blocks or trials, and .02 for the theory."""
    values = scores.columns[str(load_task(task).info.measure(name).column)]
    tolerance = half_width(values) + 0.02 if np.ptp(values) > 0 else 0.02
    return near(subject, f"{heading(task, name)} beside theory", theory, numbers(scores)[name], float(tolerance))


def turn_strength(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Context and condition grow beside the class: forced choice does not mind, the step does."""

    def encoder(clips: Clips, strength: float) -> Floats:
        return make.oracle(clips, data.seed, strength=strength)

    levels, measured = turn(data, BLOCKS, STRENGTHS, encoder, progress)
    along = columns_of(measured, ("top1", "pairwise", "step", "step_null", "step_adjusted", "conflict"))
    checks = []
    for place, strength in enumerate(levels):
        theory = {
            **dict.fromkeys(("top1", "pairwise"), 1.0),
            **dict.fromkeys(("step", "step_adjusted"), 1 / (1 + strength**2)),
            "step_null": 0.0,
            "conflict": 0.5 + 0.5 * float(np.sign(1 - strength)),
        }
        subject = f"strength {strength:g}"
        checks += [near(subject, heading(BLOCKS, name), by, along[name][place]) for name, by in theory.items()]
    return table_of("length of context and condition", levels, BLOCKS, along), checks


def turn_masking(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Contexts mask what is added: recognition alone stays, and what is kept of it falls."""

    def encoder(clips: Clips, lost: float) -> Floats:
        return make.masked(clips, lost, FAINT, data.seed)

    levels, measured = turn(data, BLOCKS, MASKED, encoder, progress)
    along = columns_of(measured, ("alone_top1", "part_top1", "top1", "kept", "pairwise", "part_pairwise"))
    alone, subject = along["alone_top1"], "as more is masked"
    checks = [near(subject, f"{heading(BLOCKS, 'alone_top1')}: largest change", 0, max(alone) - min(alone))]
    for name in ("part_top1", "top1", "kept"):
        checks.append(moves(subject, heading(BLOCKS, name), levels, along[name], falls=True))
    checks += [
        near(subject, f"{heading(BLOCKS, 'kept')}, at the start", 1, along["kept"][0], 0.15),
        near(subject, f"{heading(BLOCKS, 'kept')}, at the end", 0, along["kept"][-1], 0.15),
        near(subject, f"{heading(BLOCKS, 'top1')}, at the end", 1 / CLASSES, along["top1"][-1], 0.1),
    ]
    for lost, scores in zip(levels, measured, strict=True):
        for name, first in (("pairwise", 1 - lost), ("part_pairwise", 1.0)):
            theory = expected_pairwise(first, 1 - lost, FAINT)
            checks.append(beside(f"masked {lost:g}", BLOCKS, name, theory, scores))
    return table_of("share masked", levels, BLOCKS, along), checks


def turn_common_nuisance(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """What recordings have of their own comes to lie in few dimensions: a fitted map can take it away."""

    def encoder(clips: Clips, share: float) -> Floats:
        return make.with_common_nuisance(clips, share, data.seed)

    levels, measured = turn(data, BLOCKS, COMMON, encoder, progress)
    along = columns_of(measured, ("top1", "fitted_top1", "pairwise", "fitted_pairwise"))
    subject, checks = "as conditions have more in common", []
    for name in ("top1", "pairwise"):
        score, plain, fitted = heading(BLOCKS, name), along[name], along[f"fitted_{name}"]
        checks += [
            at_most(subject, f"{score}: fitted − plain, at the start", 0.05, fitted[0] - plain[0]),
            at_least(subject, f"{score}: fitted − plain, at the end", 0.2, fitted[-1] - plain[-1]),
            at_most(subject, f"{score}: largest rise of the plain one", 0.05, max(plain) - plain[0]),
        ]
    checks.append(moves(subject, "fitted top-1", levels, along["fitted_top1"]))
    return table_of("share in common", levels, BLOCKS, along), checks
