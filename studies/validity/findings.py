"""What was found that one would not wish, with the figures that were measured. The sentences are in page.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .data import Score
from .dials import Dial
from .validate import Validity


@dataclass(frozen=True)
class Bullet:
    """A finding: what it is about, and what was found."""

    head: str
    text: str


def find(validity: Validity, texts: Mapping[str, Any]) -> tuple[Bullet, ...]:
    """The findings, each where one of its scores failed.

    Args:
        validity: what was measured.
        texts: the content of page.yaml.
    """
    further = texts["other findings"]
    return (
        *_along_dials(validity, texts["dial findings"], further["unforeseen"]),
        *_collapsed(validity, further["collapsed"]),
        *_intervals(validity, further),
        *_of_parts(validity, further["of parts"]),
    )


def _along_dials(validity: Validity, foreseen: list[dict[str, Any]], unforeseen: dict[str, str]) -> Iterator[Bullet]:
    dials = {dial.name: dial for dial in validity.dials}
    told: set[tuple[str, Score]] = set()
    for entry in foreseen:
        dial, scores = dials[entry["dial"]], [_score(name) for name in entry["scores"]]
        if all(dial.verdicts[score].holds for score in scores):
            continue
        # What is said of the number of sources is said of loudness in the same breath.
        names = [entry["dial"], *(["loudness"] if entry["dial"] == "number" else [])]
        told |= {(name, score) for name in names for score in scores}
        values = dial.scores[scores[0]]
        yield _bullet(
            entry,
            first=values[0],
            last=values[-1],
            level=dial.levels[-1],
            moved=_moved(dial),
            moved_loudness=_moved(dials["loudness"]),
            most={"loudness": max(dials["loudness"].scores[scores[0]])},
        )
    for dial in validity.dials:
        for score, verdict in dial.verdicts.items():
            if not verdict.holds and not verdict.claimed and (dial.name, score) not in told:
                values, should = dial.scores[score], verdict.behaviour.removesuffix("s")
                name = ".".join(score)
                yield _bullet(unforeseen, score=name, dial=dial.name, should=should, first=values[0], last=values[-1])


def _score(name: str) -> Score:
    task, score = name.split(".")
    return task, score


def _moved(dial: Dial) -> dict[str, float]:
    return {".".join(score): verdict.figure for score, verdict in dial.verdicts.items()}


def _bullet(entry: Mapping[str, Any], **figures: Any) -> Bullet:
    return Bullet(entry["head"].format(**figures), entry["text"].format(**figures))


def _collapsed(validity: Validity, entry: dict[str, str]) -> Iterator[Bullet]:
    """Fits that cannot do more than return a mean, and are not said to be collapsed."""
    dial = next(dial for dial in validity.dials if dial.name == "shared mean, noise")
    flags, constants = dial.scores["a_tre", "collapsed"], dial.scores["a_tre", "constant"]
    missed = [f"{x:g}" for x, flag, mean in zip(dial.levels, flags, constants, strict=True) if mean > 0.5 and not flag]
    if missed:
        yield _bullet(entry, levels=", ".join(missed))


def _intervals(validity: Validity, entries: Mapping[str, dict[str, str]]) -> Iterator[Bullet]:
    unclaimed = [item for item in validity.coverages if not item.claimed and not item.holds]
    plain = [item.covered for item in unclaimed if item.interval != "BCa"]
    if plain:
        yield _bullet(entries["clusters ignored"], worst=100 * min(plain))
    few = [item for item in unclaimed if item.interval == "BCa"]
    if few:
        worst = min(few, key=lambda item: item.covered)
        yield _bullet(entries["few clusters"], clusters=worst.clusters, worst=100 * worst.covered)


def _of_parts(validity: Validity, entry: dict[str, str]) -> Iterator[Bullet]:
    """What families of checks found that need not hold, and does not."""
    for part in validity.parts:
        for check in part.checks:
            if not check.holds and not check.claimed:
                yield _bullet(
                    entry,
                    part=part.name,
                    subject=check.subject,
                    score=check.score,
                    expected=check.expected,
                    measured=check.measured,
                )
