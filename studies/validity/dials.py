"""Checks of A-COAT and A-TRE: the dials of `constructed`, scale and rotation, theory, intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from tqdm.auto import tqdm

from audio_compositionality.metrics.a_coat import a_coat

from . import constructed as make
from .checks import EXACTLY, Chapter, Check, DialTable, Part, at_most, heading, moves, near, page_texts, thinned
from .constructed import A_COAT, BASE_SHARE, QUICK, SCORES, ConstructedEncoder, Floats, Material, Plan, Score
from .simulation import COMMON, DIM, ENCODERS, coverage_band, simulate_coverage, simulate_false_positives
from .theory import compare_with_theory

TENTH = 0.1
"""Share of the raw score's gain from energy that `adjusted` may keep. Our choice."""

_ALL_A_COAT = " ".join(f"a_coat.{name}" for name in A_COAT)
_FITS = "a_tre.a_tre a_tre.gain a_tre.a_tre_centred a_tre.top1"
_RIDGE = "a_tre.ridge_centred a_tre.ridge_r2"


@dataclass(frozen=True)
class Dial:
    """A dial and the expected behaviour of scores along it.

    Attributes:
        levels: from one end to the other.
        encoder: the encoder at a level.
        rises, falls, stays: scores, each "task.name" and separated by blanks, that must rise, fall (strictly, except
            for ties at the score of the most compositional end), or stay within rounding.
        nearly: scores that must stay within their sampling error.
        wished: scores that should stay within their sampling error, and are known not to.
        tenth: scores that must stay within `TENTH` of what the raw score moves.
        permutes: whether a level is a share of permuted labels.
        replicated: whether A-COAT is the mean over several encoders.
        tasks: that score it.
    """

    levels: tuple[float, ...]
    encoder: Callable[[float], ConstructedEncoder]
    rises: str = ""
    falls: str = ""
    stays: str = ""
    nearly: str = ""
    wished: str = ""
    tenth: str = ""
    permutes: bool = False
    replicated: bool = False
    tasks: tuple[str, ...] = ("a_coat", "a_tre")


def dials(seed: int) -> dict[str, Dial]:
    """Return the dials by their keys in scores.yaml."""
    base, noise = make.noisy(BASE_SHARE, seed=seed), make.noisy(0, seed=seed)
    energy: dict[str, Any] = {"tenth": "a_coat.adjusted", "replicated": True}
    return {
        "noise": Dial(
            (0.0, 0.1, 0.2, 0.4, 0.7, 1.0),
            lambda share: make.noisy(share, seed=seed),
            rises=f"{_ALL_A_COAT} {_FITS} {_RIDGE}",
        ),
        "binding": Dial(
            (0.0, 0.3, 0.5, 0.7, 1.0),
            lambda share: make.bound(share, seed=seed),
            stays=_ALL_A_COAT,
            falls=f"{_FITS} {_RIDGE}",
        ),
        "saturation": Dial(
            (0.0, 0.4, 0.6, 0.8, 1.0),
            lambda share: make.saturating(share, seed=seed),
            falls=f"{_ALL_A_COAT} {_RIDGE}",
        ),
        "permutation": Dial(
            (0.0, 0.25, 0.5, 0.75, 1.0),
            lambda _: make.additive(seed=seed),
            falls=f"{_ALL_A_COAT} {_FITS} {_RIDGE}",
            permutes=True,
        ),
        "shared mean": Dial(
            (0.0, 0.5, 0.8, 0.95, 0.99, 0.999),
            lambda share: make.anisotropic(share, base),
            stays=_ALL_A_COAT,
            rises="a_tre.constant",
            nearly="a_tre.a_tre_centred a_tre.ridge_centred a_tre.top1",
            wished="a_tre.a_tre a_tre.gain a_tre.ridge_r2",
        ),
        "shared mean, noise": Dial(
            (0.0, 0.8, 0.99, 0.999),
            lambda share: make.anisotropic(share, noise),
            rises="a_tre.constant",
            nearly=f"a_tre.a_tre_centred {_RIDGE} a_tre.top1",
            wished="a_tre.a_tre a_tre.gain",
            tasks=("a_tre",),
        ),
        "number": Dial(
            (0.0, 0.2, 0.5, 0.9, 1.0),
            lambda share: make.counting(share, seed=seed),
            nearly="a_coat.top1",
            wished="a_coat.a_coat a_coat.centred",
            tasks=("a_coat",),
            **energy,
        ),
        "loudness": Dial(
            (0.0, 0.5, 0.9, 0.99, 1.0),
            lambda share: make.loud(share, seed=seed),
            nearly="a_coat.top1 a_tre.top1",
            wished=f"a_coat.a_coat a_coat.centred a_tre.a_tre a_tre.gain a_tre.a_tre_centred {_RIDGE}",
            **energy,
        ),
    }


def turn(key: str, dial: Dial, data: Material, bar: Any) -> tuple[DialTable, list[Check]]:
    """Score the encoders along a dial, and check how the scores move."""
    levels = thinned(dial.levels, data.plan.every)
    along: dict[Score, list[float]] = {score: [] for score in SCORES if score[0] in dial.tasks}
    first: dict[str, dict[str, Any]] = {}
    for level in levels:
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

    def named(text: str) -> list[Score]:
        return [(task, name) for task, name in (score.split(".") for score in text.split())]

    texts = page_texts("scores.yaml")[key]
    subject = texts["level"]
    checks = [moves(subject, heading(*score), levels, along[score]) for score in named(dial.rises)]
    checks += [moves(subject, heading(*score), levels, along[score], falls=True) for score in named(dial.falls)]
    changes = {score: max(abs(value - values[0]) for value in values) for score, values in along.items()}
    allowed = {score: EXACTLY for score in named(dial.stays)}
    allowed |= {score: sampling_error(*score, first[score[0]]) for score in named(f"{dial.nearly} {dial.wished}")}
    allowed |= {score: TENTH * changes["a_coat", "a_coat"] for score in named(dial.tenth)}
    for score, tolerance in allowed.items():
        claimed, values = score not in named(dial.wished), along[score]
        check = at_most(subject, f"{heading(*score)}: largest change", tolerance, changes[score], claimed=claimed)
        told = texts.get("findings", {}).get(".".join(score), "").format(first=values[0], last=values[-1])
        checks.append(replace(check, finding=told))
    if "collapsed" in texts.get("findings", {}):
        flags, constants = along["a_tre", "collapsed"], along["a_tre", "constant"]
        missed = [f"{x:g}" for x, flag, mean in zip(levels, flags, constants, strict=True) if mean > 0.5 and not flag]
        check = near(subject, "fits that return the mean and are not collapsed", 0, len(missed), claimed=False)
        checks.append(replace(check, finding=texts["findings"]["collapsed"].format(levels=", ".join(missed))))
    return DialTable(subject, levels, {heading(*score): tuple(values) for score, values in along.items()}), checks


def sampling_error(task: str, name: str, result: Mapping[str, Any]) -> float:
    """Return half the width of the 95 % interval of a score over samples: a change within it is not informative.

    Student's t for means of cosines (of the centred score where a score has no samples of its own); for top-1 Agresti
    and Coull 1998, "Approximate is better than exact", two successes and two failures added.
    """
    n = int(result["n"])
    if name == "top1":
        share = (result["top1"] * n + 2) / (n + 4)
        return 1.96 * math.sqrt(share * (1 - share) / (n + 4))
    scores = result["scores" if name == task else "scores_centred"]
    return float(stats.t.ppf(0.975, n - 1) * stats.sem(scores))


def move(data: Material, progress: bool) -> list[Check]:
    """Check that scale and rotation of the noisy encoder change no score; the shared mean is a dial."""
    base = make.noisy(BASE_SHARE, seed=data.seed)
    steps, embeddings = data.steps(base), base.embed(data.scenes)
    rng = np.random.default_rng([data.seed, 1])
    moved: dict[str, list[Floats]] = {
        "scale × 1,000": [1_000 * np.eye(base.dim)],
        "rotation": [stats.ortho_group.rvs(base.dim, random_state=rng) for _ in range(data.plan.rotations)],
    }
    plain = {"a_coat": data.a_coat(base), "a_tre": data.a_tre(base)}
    of_seeds = [plain["a_tre"]]
    of_seeds += [data.fit(embeddings, fit_seed=seed) for seed in range(1, data.plan.seeds)]
    checks = []
    for subject, matrices in tqdm(moved.items(), desc="scale and rotation", disable=not progress):
        results = [
            {
                "a_coat": a_coat(*(z @ matrix for z in steps), **data.quadruples.matching),
                "a_tre": data.fit(embeddings @ matrix),
            }
            for matrix in matrices
        ]
        for task, name in SCORES:
            if name == "collapsed":
                continue
            reference, tolerance = plain[task][name], EXACTLY
            if f"{task}.{name}" in _FITS.split():
                # A trained fit meets rotated embeddings as another seed would meet the plain ones.
                seeds = [fitted[name] for fitted in of_seeds]
                reference = float(np.mean(seeds))
                spread = math.sqrt(1 + 1 / len(seeds)) * float(np.std(seeds, ddof=1))
                # A rate over n scenes moves in steps of 1/n, which the spread of a few fits can miss.
                step = 1 / plain[task]["n"] if name == "top1" else 0.0
                tolerance = max(float(stats.t.ppf(1 - 0.005 / len(results), len(seeds) - 1)) * spread, step)
            change = max(abs(result[task][name] - reference) for result in results)
            checks.append(at_most(subject, f"{heading(task, name)}: largest change", tolerance, change))
    return checks


def chapter(*, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
    """Check A-COAT and A-TRE.

    Args:
        quick: fewer samples, levels and training steps, with wider bands.
        simulations: simulated data sets of each setting.
        seed: seed of all random choices.
        progress: show progress bars.
    """
    part = Chapter("scores.yaml", "A-COAT and A-TRE").part
    data = Material(QUICK if quick else Plan(), seed)
    plan, all_dials = data.plan, dials(seed)
    made = [
        part(
            "dials",
            level=2,
            quadruples=len(data.quadruples),
            train=plan.train,
            test=plan.test,
            steps=plan.max_steps,
        )
    ]
    with tqdm(
        desc="dials",
        total=sum(len(thinned(dial.levels, plan.every)) for dial in all_dials.values()),
        disable=not progress,
    ) as bar:
        for key, dial in all_dials.items():
            table, checks = turn(key, dial, data, bar)
            made.append(part(key, checks, table, base=BASE_SHARE, replicates=plan.replicates))
    low, high = coverage_band(simulations)
    made += [
        part("invariance", move(data, progress), level=2, base=BASE_SHARE, rotations=plan.rotations, seeds=plan.seeds),
        part("theory", compare_with_theory(data), level=2),
        part(
            "coverage",
            simulate_coverage(simulations, plan.large, seed, progress),
            level=2,
            simulations=simulations,
            dim=DIM,
            common=COMMON,
            low=low,
            high=high,
        ),
        part(
            "false positives",
            simulate_false_positives(simulations, seed, progress),
            level=2,
            encoders=ENCODERS,
            simulations=simulations,
        ),
    ]
    return tuple(made)
