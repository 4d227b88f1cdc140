"""Do the scores measure what they claim? Encoders with a known truth, scored like any other.

`validate` turns the dials of `constructed`, compares scores with `theory`, and simulates the intervals and
tests of `statistics`. Requirements are separate from findings: where a published score, or a control, is known to fail,
the failure is a finding with its figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from audio_compositionality.support.errors import InputError

from .constructed import QUICK, Material, Plan, Score
from .dials import Dial, Invariance, transform, turn_dials
from .families import Part, list_families
from .simulation import Coverage, FalsePositives, simulate_coverage, simulate_false_positives
from .theory import Agreement, compare_with_theory


@dataclass(frozen=True)
class Validity:
    """The measurements of `validate`; `quadruples` is their number, all with different T, `parts` those of families."""

    plan: Plan
    quick: bool
    seed: int
    quadruples: int
    dials: tuple[Dial, ...]
    invariances: tuple[Invariance, ...]
    agreements: tuple[Agreement, ...]
    coverages: tuple[Coverage, ...]
    false_positives: tuple[FalsePositives, ...]
    parts: tuple[Part, ...]

    @property
    def holds(self) -> bool:
        """Whether all requirements hold."""
        verdicts = [verdict for dial in self.dials for verdict in dial.verdicts.values()]
        simulated: list[Coverage | FalsePositives] = [*self.coverages, *self.false_positives]
        return (
            all(item.holds for item in self.invariances)
            and all(item.holds for item in self.agreements)
            and all(verdict.holds for verdict in verdicts if verdict.claimed)
            and all(row.holds for row in simulated if row.claimed)
            and all(check.holds for part in self.parts for check in part.checks if check.claimed)
        )


def validate(*, simulations: int | None = None, quick: bool = False, seed: int = 0, progress: bool = True) -> Validity:
    """Score the constructed encoders and simulate the statistics.

    Args:
        simulations: simulated data sets of each setting; default 1,000, with `quick` 100.
        quick: fewer levels, samples and training steps.
        seed: of everything. The same seed gives the same result on one machine.
        progress: show progress bars.

    Raises:
        InputError: fewer than 20 simulations, or a negative seed.
    """
    plan = QUICK if quick else Plan()
    if simulations is not None:
        plan = replace(plan, simulations=simulations)
    if plan.simulations < 20:
        raise InputError(f"simulations is {plan.simulations}; below 20 a rate of 5 % cannot be seen")
    if seed < 0:
        raise InputError(f"seed is {seed}; it must be 0 or more")
    data = Material(plan, seed)
    return Validity(
        plan=plan,
        quick=quick,
        seed=seed,
        quadruples=len(data.quadruples),
        dials=turn_dials(data, progress),
        invariances=transform(data, progress),
        agreements=compare_with_theory(data),
        coverages=simulate_coverage(plan.simulations, plan.large, seed, progress),
        false_positives=simulate_false_positives(plan.simulations, seed, progress),
        parts=tuple(
            part
            for family in list_families()
            for part in family.run(quick=quick, simulations=plan.simulations, seed=seed, progress=progress)
        ),
    )


@dataclass(frozen=True)
class Bullet:
    """A finding: its subject and its text."""

    head: str
    text: str


def find(validity: Validity, texts: Mapping[str, Any]) -> tuple[Bullet, ...]:
    """The findings, each where one of its scores failed.

    Args:
        validity: the measurements.
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
        # The text on the number of sources covers loudness as well.
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
    """Fits that can only return a mean, and are not reported as collapsed."""
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
    """The failed checks of families that need not hold."""
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
