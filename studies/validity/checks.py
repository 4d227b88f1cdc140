"""Checks of scores on encoders with a known truth: each module of this package returns a list of them for the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy import stats
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Row as DataRow
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task

EXACTLY = 1e-9
"""Tolerance for float64 rounding of a number that theory gives exactly: far below any printed digit."""


@dataclass(frozen=True)
class Check:
    """A number and the range where theory expects it.

    Attributes:
        subject: the measured object, such as an encoder.
        score: the number.
        expected: the expectation by theory, in words or figures.
        measured: the measured number; NaN never holds.
        low, high: the range in which it has to be, both ends included.
        claimed: whether it must hold; otherwise a failure is a finding.
        finding: a sentence about the failure; if empty, the page forms one from the other fields.
    """

    subject: str
    score: str
    expected: str
    measured: float
    low: float
    high: float
    claimed: bool = True
    finding: str = ""

    @property
    def holds(self) -> bool:
        """Whether the number is where theory expects it."""
        return self.low <= self.measured <= self.high


def near(
    subject: str, score: str, expected: float, measured: float, tolerance: float = EXACTLY, *, claimed: bool = True
) -> Check:
    """Check a number that theory expects to be `expected`, give or take a tolerance."""
    text = f"{expected:.4g}" if tolerance <= EXACTLY else f"{expected:.4g} ± {tolerance:.2g}"
    return Check(subject, score, text, measured, expected - tolerance, expected + tolerance, claimed)


def at_least(subject: str, score: str, least: float, measured: float, *, claimed: bool = True) -> Check:
    """Check a number that theory bounds from below."""
    return Check(subject, score, f"≥ {least:.4g}", measured, least, math.inf, claimed)


def at_most(subject: str, score: str, most: float, measured: float, *, claimed: bool = True) -> Check:
    """Check a number that theory bounds from above."""
    return Check(subject, score, f"≤ {most:.4g}", measured, -math.inf, most, claimed)


def moves(subject: str, score: str, levels: Sequence[float], values: Sequence[float], *, falls: bool = False) -> Check:
    """Check that a score rises or falls along all levels of a dial; the check fails if a level has no score."""
    rank = monotone(levels, values, falls=falls) if np.isfinite(values).all() else math.nan
    return near(subject, f"{score}: ρ", -1 if falls else 1, rank)


def monotone(levels: Sequence[float], values: Sequence[float], *, falls: bool = False) -> float:
    """Return Spearman's correlation of a score with its dial.

    The compositional end is the last level, or the first if the score falls. Consecutive levels with the score of that
    end count as one level, since a score at its ceiling cannot rise. 0 if the score does not vary.
    """
    ends = list(zip(levels, values, strict=True))
    if falls:
        ends.reverse()
    ceiling = ends[-1][1]
    reached = next(k for k, (_, value) in enumerate(ends) if abs(value - ceiling) <= EXACTLY)
    if all(abs(value - ceiling) <= EXACTLY for _, value in ends[reached:]):
        ends = ends[: reached + 1]
    if len(ends) < 2:
        return 0.0
    x, y = zip(*ends, strict=True)
    return float(stats.spearmanr(x, y).statistic) if np.ptp(y) > 0 else 0.0


def thinned(levels: Sequence[float], every: int) -> tuple[float, ...]:
    """Return every `every`-th level of a dial, and both ends."""
    return tuple(level for k, level in enumerate(levels) if k % every == 0 or level == levels[-1])


def scored(task: str, rows: Sequence[DataRow], outputs: Outputs, **requested: Any) -> Scores:
    """Return the scores of a task for outputs of a model on rows of its recipe, with settings instead of defaults."""
    chosen = load_task(task)
    return chosen.score(rows, outputs, chosen.settings(rows, requested), "cpu", False)


def numbers(scores: Scores) -> dict[str, float]:
    """Return the measures of a score by name, without missing ones."""
    return {name: float(value) for name, value in scores.measures.items() if value is not None}


def half_width(scores: NDArray[np.float64]) -> float:
    """Return half the 99.9 % interval of the mean of scores, Student's t."""
    return float(stats.t.ppf(0.9995, len(scores) - 1) * stats.sem(scores))


SURE = 4.0
"""Standard errors by which a share may differ from its chance."""


def chance_near(subject: str, score: str, chance: float, value: float, count: int) -> Check:
    """Check that a share of `count` independent items is at chance, within `SURE` standard errors plus one item."""
    tolerance = SURE * math.sqrt(chance * (1 - chance) / count) + 1 / count
    return near(subject, f"{score}, of {count:,} items", chance, value, tolerance)


def heading(task: str, name: str) -> str:
    """Return the readable name of a measure of a task."""
    info = load_task(task).info
    measure = info.measure(name)
    return info.title if measure == info.score else f"{info.title}: {measure.heading}"


@dataclass(frozen=True)
class DialTable:
    """Scores along a dial.

    Attributes:
        level: heading of its levels.
        levels: levels of the dial.
        scores: by heading, one value a level.
    """

    level: str
    levels: tuple[float, ...]
    scores: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Part:
    """A section of the page.

    Attributes:
        name: name of the part, in the table of what must hold.
        title, text: title and text of the section.
        checks: the expectations; may be empty in a part that only opens a chapter.
        dial: the scores of the checks, where they are along a dial.
        level: level of the heading.
    """

    name: str
    title: str
    text: str
    checks: tuple[Check, ...] = ()
    dial: DialTable | None = None
    level: int = 3


@dataclass(frozen=True)
class Chapter:
    """Parts with a name in common, whose texts are in one YAML file of this folder.

    Attributes:
        file: its name; it has ``title`` and ``text`` of each part by the part's key.
        name: name of the chapter, in the table of what must hold.
    """

    file: str
    name: str

    def part(
        self, key: str, checks: Sequence[Check] = (), dial: DialTable | None = None, *, level: int = 3, **figures: Any
    ) -> Part:
        """Return the part of a key; its text is filled with the figures."""
        texts = page_texts(self.file)[key]
        title = texts["title"].split(". ", 1)[-1]
        text = texts["text"].format(**figures)
        name = f"{self.name}: {title[0].lower()}{title[1:]}"
        return Part(name, texts["title"], text, tuple(checks), dial, level)

    def parts(
        self,
        checks: Mapping[str, Callable[[Any], Sequence[Check]]],
        dials: Mapping[str, Callable[[Any, bool], tuple[DialTable, Sequence[Check]]]],
        data: Any,
        progress: bool,
    ) -> list[Part]:
        """Return the parts of some checks and dials, by their keys; the functions make them of a material."""
        bar = tqdm(checks.items(), desc=self.name, disable=not progress)
        made = [self.part(key, check(data)) for key, check in bar]
        for key, turn in dials.items():
            table, along = turn(data, progress)
            made.append(self.part(key, along, table))
        return made


@cache
def page_texts(file: str) -> dict[str, Any]:
    """Return the content of a YAML file of this folder."""
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(file).read_text("utf-8"))
    return content
