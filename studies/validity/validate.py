"""Do the scores measure what they claim? Encoders whose truth is known, scored like any other.

`validate` turns the dials of `constructed`, compares scores with `theory`, and simulates the intervals and
tests of `statistics`. What must hold is told apart from findings: where a published score, or a control, has been seen
to fail, the failure is a finding with its figure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from audio_compositionality.support.errors import InputError

from .agreement import Agreement, compare_with_theory
from .data import QUICK, Material, Plan
from .dials import Dial, turn_dials
from .families import Part, list_families
from .invariance import Invariance, transform
from .simulation import Coverage, FalsePositives, simulate_coverage, simulate_false_positives


@dataclass(frozen=True)
class Validity:
    """What `validate` measured; `quadruples` is their number, in which no T occurs twice, `parts` those of families."""

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
        """Whether everything holds that must."""
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
