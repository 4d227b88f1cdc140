"""The dials: the expected and the measured behaviour of each score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import stats
from tqdm.auto import tqdm

from audio_compositionality.metrics.a_coat import a_coat

from . import constructed as make
from .constructed import A_COAT, BASE_SHARE, EXACT, SCORES, ConstructedEncoder, Floats, Material, Score, noisy

Behaviour = Literal["rises", "falls", "stays"]

TENTH = 0.1
"""Share of the raw score's gain from energy that `adjusted` may keep. Our choice."""


@dataclass(frozen=True)
class Verdict:
    """The expected and the measured behaviour of a score along a dial.

    Attributes:
        behaviour: rises or falls, strictly except for ties at its ceiling, the score of the most compositional end; or
            stays, within a tolerance.
        claimed: whether it must hold; otherwise a failure is a finding.
        figure: Spearman's correlation with the dial; for a score that should stay, the largest change from the first
            level.
        tolerance: of a score that should stay.
        holds: whether the behaviour is as expected.
    """

    behaviour: Behaviour
    claimed: bool
    figure: float
    tolerance: float | None
    holds: bool


@dataclass(frozen=True)
class Dial:
    """The scores along a dial.

    Attributes:
        name: of the dial, as `findings` of the page know it.
        levels: of the dial.
        scores: by task and name, one value a level.
        verdicts: of the scores with an expectation.
    """

    name: str
    levels: tuple[float, ...]
    scores: Mapping[Score, tuple[float, ...]]
    verdicts: Mapping[Score, Verdict]


@dataclass(frozen=True)
class _Expected:
    """The expected behaviour of a score along a dial; see `Verdict`. `tolerance` names one of `_tolerance`."""

    behaviour: Behaviour
    claimed: bool = True
    tolerance: str = ""


@dataclass(frozen=True)
class _DialPlan:
    """A dial: its encoder, or the share of permuted labels, at each level, and its expectations."""

    name: str
    levels: tuple[float, ...]
    expected: Mapping[Score, _Expected]
    encoder: Callable[[float], ConstructedEncoder]
    permutes: bool = False
    replicated: bool = False
    tasks: tuple[str, ...] = ("a_coat", "a_tre")


def _expect(expected: _Expected, *scores: str) -> dict[Score, _Expected]:
    """The same of several scores, each "task.name"."""
    names = [name.split(".") for name in scores]
    return {(task, name): expected for task, name in names}


_RISES, _FALLS = _Expected("rises"), _Expected("falls")
_SAME = _Expected("stays", tolerance="exact")
_NEAR = _Expected("stays", tolerance="sampling")
_WISHED = _Expected("stays", claimed=False, tolerance="sampling")
"""The wish for a score that is known to fail."""

_ALL_A_COAT = tuple(f"a_coat.{name}" for name in A_COAT)
_FITS = ("a_tre.a_tre", "a_tre.gain", "a_tre.a_tre_centred", "a_tre.top1")
_RIDGE = ("a_tre.ridge_centred", "a_tre.ridge_r2")
_ENERGY = {
    **_expect(_WISHED, "a_coat.a_coat", "a_coat.centred"),
    **_expect(_Expected("stays", tolerance="tenth"), "a_coat.adjusted"),
    **_expect(_NEAR, "a_coat.top1"),
}


def _dial_plans(seed: int) -> tuple[_DialPlan, ...]:
    return (*_dials_of_composition(seed), *_dials_of_shared_means(seed), *_dials_of_energy(seed))


def _dials_of_composition(seed: int) -> tuple[_DialPlan, ...]:
    """From compositional encoders to others."""
    return (
        _DialPlan(
            "noise",
            (0.0, 0.1, 0.2, 0.4, 0.7, 1.0),
            _expect(_RISES, *_ALL_A_COAT, *_FITS, *_RIDGE),
            lambda share: make.noisy(share, seed=seed),
        ),
        _DialPlan(
            "binding",
            (0.0, 0.3, 0.5, 0.7, 1.0),
            {
                **_expect(_SAME, *_ALL_A_COAT),
                **_expect(_FALLS, *_FITS, *_RIDGE),
            },
            lambda share: make.bound(share, seed=seed),
        ),
        _DialPlan(
            "saturation",
            (0.0, 0.4, 0.6, 0.8, 1.0),
            _expect(_FALLS, *_ALL_A_COAT, *_RIDGE),
            lambda share: make.saturating(share, seed=seed),
        ),
        _DialPlan(
            "permutation",
            (0.0, 0.25, 0.5, 0.75, 1.0),
            _expect(_FALLS, *_ALL_A_COAT, *_FITS, *_RIDGE),
            lambda _: make.additive(seed=seed),
            permutes=True,
        ),
    )


def _dials_of_shared_means(seed: int) -> tuple[_DialPlan, ...]:
    """From embeddings about the origin to nearly one direction."""
    base = make.noisy(BASE_SHARE, seed=seed)
    return (
        _DialPlan(
            "shared mean",
            (0.0, 0.5, 0.8, 0.95, 0.99, 0.999),
            {
                **_expect(_SAME, *_ALL_A_COAT),
                **_expect(_WISHED, "a_tre.a_tre", "a_tre.gain", "a_tre.ridge_r2"),
                **_expect(_RISES, "a_tre.constant"),
                **_expect(_NEAR, "a_tre.a_tre_centred", "a_tre.ridge_centred", "a_tre.top1"),
            },
            lambda share: make.anisotropic(share, base),
        ),
        _DialPlan(
            "shared mean, noise",
            (0.0, 0.8, 0.99, 0.999),
            {
                **_expect(_WISHED, "a_tre.a_tre", "a_tre.gain"),
                **_expect(_RISES, "a_tre.constant"),
                **_expect(_NEAR, "a_tre.a_tre_centred", *_RIDGE, "a_tre.top1"),
            },
            lambda share: make.anisotropic(share, make.noisy(0, seed=seed)),
            tasks=("a_tre",),
        ),
    )


def _dials_of_energy(seed: int) -> tuple[_DialPlan, ...]:
    """From noise to encoders of the amount of sound alone."""
    return (
        _DialPlan(
            "number",
            (0.0, 0.2, 0.5, 0.9, 1.0),
            _ENERGY,
            lambda share: make.counting(share, seed=seed),
            replicated=True,
            tasks=("a_coat",),
        ),
        _DialPlan(
            "loudness",
            (0.0, 0.5, 0.9, 0.99, 1.0),
            {
                **_ENERGY,
                **_expect(_WISHED, "a_tre.a_tre", "a_tre.gain", "a_tre.a_tre_centred", *_RIDGE),
                **_expect(_NEAR, "a_tre.top1"),
            },
            lambda share: make.loud(share, seed=seed),
            replicated=True,
        ),
    )


def turn_dials(data: Material, progress: bool) -> tuple[Dial, ...]:
    """Score the encoders along every dial."""
    plans = [_thinned(dial, data.plan.every) for dial in _dial_plans(data.seed)]
    with tqdm(desc="dials", total=sum(len(dial.levels) for dial in plans), disable=not progress) as bar:
        return tuple(_turn(dial, data, bar) for dial in plans)


def _thinned(dial: _DialPlan, every: int) -> _DialPlan:
    levels = [level for k, level in enumerate(dial.levels) if k % every == 0 or level == dial.levels[-1]]
    return replace(dial, levels=tuple(levels))


def _turn(dial: _DialPlan, data: Material, bar: Any) -> Dial:
    along: dict[Score, list[float]] = {score: [] for score in SCORES if score[0] in dial.tasks}
    first: dict[str, dict[str, Any]] = {}
    for level in dial.levels:
        encoder, share = dial.encoder(level), level if dial.permutes else 0.0
        results: dict[str, dict[str, Any]] = {}
        if "a_coat" in dial.tasks:
            count = data.plan.replicates if dial.replicated else 1
            runs = [data.a_coat(replace(encoder, seed=encoder.seed + k), share) for k in range(count)]
            results["a_coat"] = {**runs[0], **{name: float(np.mean([run[name] for run in runs])) for name in A_COAT}}
        if "a_tre" in dial.tasks:
            results["a_tre"] = data.a_tre(encoder, share)
        first = first or results
        for task, name in along:
            along[task, name].append(float(results[task][name]))
        bar.update()
    scores = {score: tuple(values) for score, values in along.items()}
    verdicts = {
        score: _verdict(expected, dial.levels, scores[score], _tolerance(expected.tolerance, score, scores, first))
        for score, expected in dial.expected.items()
    }
    return Dial(dial.name, dial.levels, scores, verdicts)


def _tolerance(
    kind: str, score: Score, scores: Mapping[Score, tuple[float, ...]], first: Mapping[str, Mapping[str, Any]]
) -> float | None:
    """How far a score may move; None for a score that should rise or fall."""
    if kind == "sampling":
        return sampling_error(*score, first[score[0]])
    if kind == "tenth":
        raw = scores["a_coat", "a_coat"]
        return TENTH * max(abs(value - raw[0]) for value in raw)
    return {"exact": EXACT, "": None}[kind]


def sampling_error(task: str, name: str, result: Mapping[str, Any]) -> float:
    """Half the width of the 95 % interval of a score, over samples: a change within it is not informative.

    Student's t for means of cosines (of the centred score where a score has no samples of its own); for top-1 Agresti
    and Coull 1998, "Approximate is better than exact", two successes and two failures added.
    """
    n = int(result["n"])
    if name == "top1":
        share = (result["top1"] * n + 2) / (n + 4)
        return 1.96 * math.sqrt(share * (1 - share) / (n + 4))
    raw = name == task
    scores = result["scores" if raw else "scores_centred"]
    return float(stats.t.ppf(0.975, n - 1) * stats.sem(scores))


def _verdict(expected: _Expected, levels: Sequence[float], values: Sequence[float], tolerance: float | None) -> Verdict:
    if tolerance is not None:
        change = max(abs(value - values[0]) for value in values)
        return Verdict(expected.behaviour, expected.claimed, change, tolerance, change <= tolerance)
    figure = monotone(levels, values, falls=expected.behaviour == "falls")
    target = -1 if expected.behaviour == "falls" else 1
    return Verdict(expected.behaviour, expected.claimed, figure, None, abs(figure - target) < EXACT)


def monotone(levels: Sequence[float], values: Sequence[float], *, falls: bool = False) -> float:
    """Spearman's correlation of a score with its dial.

    Several levels at the score of the compositional end (the last level, the first if the score falls) count as one,
    the nearest to the other end: a score at its ceiling cannot rise. 0 where nothing varies.
    """
    ends = list(zip(levels, values, strict=True))
    if falls:
        ends.reverse()
    ceiling = ends[-1][1]
    reached = next(k for k, (_, value) in enumerate(ends) if abs(value - ceiling) <= EXACT)
    if all(abs(value - ceiling) <= EXACT for _, value in ends[reached:]):
        ends = ends[: reached + 1]
    if len(ends) < 2:
        return 0.0
    x, y = zip(*ends, strict=True)
    return float(stats.spearmanr(x, y).statistic) if np.ptp(y) > 0 else 0.0


@dataclass(frozen=True)
class Invariance:
    """How far a transformation of all embeddings moves a score: `change` is the largest; `reason` of the tolerance."""

    transformation: str
    score: Score
    change: float
    tolerance: float
    reason: str

    @property
    def holds(self) -> bool:
        """Whether the score stays put."""
        return self.change <= self.tolerance


def transform(data: Material, progress: bool) -> tuple[Invariance, ...]:
    """Scale and rotation of the noisy encoder; the shared mean is a dial."""
    base = noisy(BASE_SHARE, seed=data.seed)
    steps, embeddings = data.steps(base), base.embed(data.scenes)
    rng = np.random.default_rng([data.seed, 1])
    moves: dict[str, list[Callable[[Floats], Floats]]] = {
        "scale × 1,000": [lambda z: 1_000 * z],
        "rotation": [_rotation(base.dim, rng) for _ in range(data.plan.rotations)],
    }
    steps_of_bar = data.plan.seeds - 1 + sum(map(len, moves.values()))
    with tqdm(desc="scale and rotation", total=steps_of_bar, disable=not progress) as bar:

        def fit(z: Floats, fit_seed: int = 0) -> dict[str, Any]:
            bar.update()
            return data.fit(z, fit_seed=fit_seed)

        plain = {"a_coat": data.a_coat(base), "a_tre": data.a_tre(base)}
        fits_of_seeds = [plain["a_tre"], *(fit(embeddings, seed) for seed in range(1, data.plan.seeds))]
        moved = {
            name: [
                {
                    "a_coat": a_coat(*(move(z) for z in steps), **data.quadruples.matching),
                    "a_tre": fit(move(embeddings)),
                }
                for move in variants
            ]
            for name, variants in moves.items()
        }
    invariances = []
    for name, results in moved.items():
        for task, score in SCORES:
            if score == "collapsed":
                continue
            reference, tolerance, reason = plain[task][score], EXACT, "rounding"
            if task == "a_tre" and score in ("a_tre", "gain", "a_tre_centred", "top1"):
                seeds = [fitted[score] for fitted in fits_of_seeds]
                reference = float(np.mean(seeds))
                spread = math.sqrt(1 + 1 / len(seeds)) * float(np.std(seeds, ddof=1))
                # A rate over n scenes moves in steps of 1/n, which the spread of a few fits can miss.
                step = 1 / plain[task]["n"] if score == "top1" else 0.0
                tolerance = max(float(stats.t.ppf(1 - 0.005 / len(results), len(seeds) - 1)) * spread, step)
                reason = "another seed"
            change = max(abs(result[task][score] - reference) for result in results)
            invariances.append(Invariance(name, (task, score), change, tolerance, reason))
    return tuple(invariances)


def _rotation(dim: int, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    matrix = stats.ortho_group.rvs(dim, random_state=rng)
    return lambda z: z @ matrix
