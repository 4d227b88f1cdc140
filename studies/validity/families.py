"""Families of checks on constructed encoders: each is a module of this folder with an object `FAMILY`.

The page and the exit status depend on this interface of families alone, so that a new family is a new file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import yaml

from audio_compositionality.support.discovery import Registry

EXACTLY = 1e-9
"""Tolerance for rounding of a number that theory gives exactly."""


@dataclass(frozen=True)
class Check:
    """A number beside its theoretical expectation.

    Attributes:
        subject: the measured object, such as an encoder.
        score: the number.
        expected: by theory, in words or figures.
        measured: the measured number; NaN never holds.
        low, high: the range where it has to be, both included.
        claimed: whether it must hold; otherwise a failure is a finding.
    """

    subject: str
    score: str
    expected: str
    measured: float
    low: float
    high: float
    claimed: bool = True

    @property
    def holds(self) -> bool:
        """Whether the number is where theory expects it."""
        return self.low <= self.measured <= self.high


def near(
    subject: str, score: str, expected: float, measured: float, tolerance: float = EXACTLY, *, claimed: bool = True
) -> Check:
    """A number that theory expects to be `expected`, give or take a tolerance."""
    said = f"{expected:.4g}" if tolerance <= EXACTLY else f"{expected:.4g} ± {tolerance:.2g}"
    return Check(subject, score, said, measured, expected - tolerance, expected + tolerance, claimed)


def at_least(subject: str, score: str, least: float, measured: float, *, claimed: bool = True) -> Check:
    """A number that theory bounds from below."""
    return Check(subject, score, f"≥ {least:.4g}", measured, least, math.inf, claimed)


def at_most(subject: str, score: str, most: float, measured: float, *, claimed: bool = True) -> Check:
    """A number that theory bounds from above."""
    return Check(subject, score, f"≤ {most:.4g}", measured, -math.inf, most, claimed)


@dataclass(frozen=True)
class DialTable:
    """Scores along a dial.

    Attributes:
        level: heading of its levels.
        levels: of the dial.
        scores: by heading, one value a level.
    """

    level: str
    levels: tuple[float, ...]
    scores: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Part:
    """A section of the page.

    Attributes:
        name: of the part, in the table of what must hold.
        title, text: of the section.
        checks: the expectations; may be empty in a part that only opens a chapter.
        dial: the scores of the checks, where they are along a dial.
        level: of the heading.
    """

    name: str
    title: str
    text: str
    checks: tuple[Check, ...] = ()
    dial: DialTable | None = None
    level: int = 3


class Family(Protocol):
    """Checks of one subject, in the order of the page."""

    name: str

    def run(self, *, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
        """Check everything.

        Args:
            quick: fewer samples and levels, with wider bands.
            simulations: simulated data sets of each setting.
            seed: of everything.
            progress: show progress bars.
        """
        ...


_FAMILIES: Registry[Family] = Registry(
    __package__, "FAMILY", "audio_compositionality.validity", lambda family: family.name
)


def list_families() -> list[Family]:
    """All families, by name."""
    return [family for _, family in sorted(_FAMILIES.all().items())]


@dataclass(frozen=True)
class Chapter:
    """Common properties of the parts of a chapter.

    Attributes:
        file: name of the YAML file in this folder; of each part it has ``title`` and ``text`` by a key.
        name: of the chapter, in the table of what must hold.
    """

    file: str
    name: str

    def part(
        self, key: str, checks: Sequence[Check] = (), dial: DialTable | None = None, *, level: int = 3, **figures: Any
    ) -> Part:
        """The part of a key; its text is filled with the figures."""
        texts = _texts(self.file)[key]
        title = texts["title"]
        text = texts["text"].format(**figures)
        return Part(f"{self.name}: {title[0].lower()}{title[1:]}", title, text, tuple(checks), dial, level)


@cache
def _texts(file: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(file).read_text("utf-8"))
    return content
