"""Checks of the four axes: scores of constructed encoders, compared with the scores that theory requires."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from audio_compositionality.tasks.registry import load_benchmark, load_task
from audio_compositionality.tasks.shapes.designs import FACTORS

from . import axes_encoders as make
from .axes_encoders import (
    BOTH,
    CONSTRUCTED,
    DIM,
    MANY,
    SMALL,
    TRANSFORMS,
    UNPROBED,
    AxesMaterial,
    Encoder,
)
from .checks import Check, at_least, at_most, half_width, heading, near, numbers

NUMBERS = FACTORS[1:]
"""Factors whose levels are numbers."""

ROTATED = 1e-6
"""Tolerance for rounding of a closed form after a shift of the embeddings by several times their length."""

BLIND = 0.02
"""Largest allowed r_equivariance of an encoder to a change that does not affect it, for any number of clips."""


def perfect(data: AxesMaterial) -> list[Check]:
    """Check the perfectly disentangled encoder: every factor can be read, predicted and transferred."""
    subject, rows = "additive by factor", data.clips["factors"].rows

    def additive(clips: make.Clips) -> make.Floats:
        return clips.additive

    informativeness = data.measures("informativeness", additive)
    equivariance = data.measures("equivariance", additive)
    disentanglement = data.measures("disentanglement", additive)
    under = data.measures("transform_equivariance", additive)
    ones = [
        *(("informativeness", name, informativeness) for name in ("informativeness",)),
        *(("equivariance", name, equivariance) for name in ("r_equivariance", "r_level_top1", "r_context_top1", "p")),
        *(("disentanglement", name, disentanglement) for name in ("unseen", "seen")),
        *(("transform_equivariance", name, under) for name in ("r_equivariance", "p")),
    ]
    crossed_rows = [row["levels"] for row in rows if row["kind"] == "crossed"]
    levels = {factor: len({of_row[factor] for of_row in crossed_rows}) for factor in NUMBERS}
    crossed = make.in_random_directions
    mixed = data.measures("disentanglement", lambda clips: crossed(clips, data.seed))
    # Of random directions the squared cosine with a given one has the variance of a beta distribution, 2/dim² at most
    # for each direction of the larger space; there are six pairs of factors.
    deviation = math.sqrt(3 * 2 + 3 * 6) / 6 / DIM
    return [
        *(at_least(subject, heading(task, name), 0.99, given[name]) for task, name, given in ones),
        near(subject, "Disentanglement: main", 1, disentanglement["main"]),
        near(subject, "Disentanglement: leak", 0, disentanglement.get("leak", math.nan), 1e-4),
        near(subject, "Disentanglement: overlap", 0, disentanglement["overlap"]),
        near("in random directions", "Disentanglement: main", 1, mixed["main"]),
        at_least("in random directions", "Disentanglement", 0.95, mixed["unseen"]),
        near(
            "in random directions",
            "Disentanglement: overlap",
            mixed["overlap_chance"],
            mixed["overlap"],
            3 * deviation,
        ),
        *(
            near(
                subject, f"Equivariance: {factor} P from z", k / (2 * (k - 1)), equivariance[f"{factor}_p_start"], 0.03
            )
            for factor, k in levels.items()
        ),
    ]


def entangled(data: AxesMaterial) -> list[Check]:
    """Check random sums of products of factors: factors can be read in known contexts, but not at new levels."""
    subject, share = "random quadratic, 0.9", 0.9

    def encoder(clips: make.Clips) -> make.Floats:
        return make.random_quadratic(clips, share, data.seed)

    informativeness = data.measures("informativeness", encoder, BOTH)["informativeness"]
    unseen = data.measures("disentanglement", encoder, BOTH)
    return [
        at_least(subject, heading("informativeness", "informativeness"), 0.9, informativeness),
        at_least(subject, heading("disentanglement", "seen"), 0.9, unseen["seen"]),
        at_most(subject, heading("disentanglement", "unseen"), 0.8, unseen["unseen"]),
        at_most(subject, "Disentanglement: main", 0.5, unseen["main"]),
    ]


def energy_only(data: AxesMaterial) -> list[Check]:
    """Check an encoder of the clip's level: it represents the amplitude of a single source, and nothing else."""
    subject = "energy only"
    read = data.measures("informativeness", make.energy)
    moved = data.measures("equivariance", make.energy)
    still = data.measures("invariance", make.energy)
    heard = {"amplitude": 1.0}
    return [
        *(
            near(subject, f"Informativeness: {name}", heard.get(name, 0), read[f"{name}_informativeness"], 0.01)
            for name in FACTORS
        ),
        *(
            near(subject, f"Equivariance: {name}", heard.get(name, 0), moved[f"{name}_r_equivariance"], BLIND)
            for name in FACTORS
        ),
        *(near(subject, f"Invariance: {name}", 1, still[f"{name}_invariance"]) for name in ("lowpass", "reverb")),
        at_most(subject, "Invariance: gain", 0.9, still["gain_invariance"]),
        # The ranking scores are at chance, since all candidates have one level.
        near(subject, heading("invariance", "abx"), 0, still["abx"]),
    ]


def deaf(data: AxesMaterial) -> list[Check]:
    """Check an encoder that embeds copies exactly as their originals."""
    subject = "ignores transforms"

    def encoder(clips: make.Clips) -> make.Floats:
        return clips.deaf

    still, moved = data.measures("invariance", encoder), data.measures("transform_equivariance", encoder)
    labels = data.measures("transform_disentanglement", encoder)
    shifts = [abs(value) for name, value in labels.items() if name.endswith("_shift") or "_shift_quarter_" in name]
    onset = data.measures("onset_invariance", encoder)
    return [
        near(subject, heading("invariance", "invariance"), 1, still["invariance"]),
        near(subject, heading("invariance", "top1"), 1, still["top1"]),
        near(subject, heading("transform_equivariance", "r_explained"), 0, moved["r_explained"]),
        near(subject, heading("transform_equivariance", "r_equivariance"), 0, moved["r_equivariance"]),
        near(subject, "Equivariance to transforms: identity cosine", 1, moved["identity_cosine"]),
        near(subject, "Labels under transforms: largest shift", 0, max(shifts)),
        near(
            subject,
            "Labels under transforms: R² after - before",
            0,
            labels["shift_after"] - labels["shift_before"],
        ),
        near(subject, heading("onset_invariance", "invariance"), 1, onset["invariance"]),
        near(subject, heading("onset_invariance", "top1"), 1, onset["top1"]),
        *(
            near(subject, heading(task, "abx"), 1, of["abx"])
            for task, of in (("invariance", still), ("onset_invariance", onset))
        ),
    ]


def blind(data: AxesMaterial) -> list[Check]:
    """Check encoders that ignore a change, plus noise: the parameter of the change predicts nothing."""
    moved = data.measures("transform_equivariance", lambda clips: make.blind_to_strength(clips, data.seed))
    checks = []
    # No score may be above 0; the probe's loss to chance with few clips is a finding.
    for name in TRANSFORMS:
        subject, score = ("ignores strength", f"Equivariance to transforms: {name}"), moved[f"{name}_r_equivariance"]
        checks += [at_most(*subject, BLIND, score), at_least(*subject, -BLIND, score, claimed=False)]
    for factor in FACTORS:
        values = data.measures("equivariance", _unhearing(data, factor))
        score = values[f"{factor}_r_equivariance"]
        checks.append(at_most(f"ignores {factor}", f"Equivariance: {factor}", BLIND, score))
        checks.append(
            at_least(f"ignores {factor}", f"Equivariance: {factor}", -BLIND, score, claimed=False),
        )
    if not data.plan.many:
        return checks
    # With all combinations of levels, the probe no longer loses anything.
    many = AxesMaterial(MANY, data.seed)
    count = sum(row["kind"] == "crossed" for row in many.clips["factors"].rows)
    pitch = many.measures("equivariance", _unhearing(many, "pitch"))["pitch_r_equivariance"]
    checks.append(near(f"ignores pitch, {count:,} clips", "Equivariance: pitch", 0, pitch, BLIND))
    score = many.measures("equivariance", lambda clips: make.noise_of(clips, data.seed))["r_equivariance"]
    checks.append(near(f"noise, {count:,} clips", "Equivariance", 0, score, BLIND))
    under = many.measures("transform_equivariance", lambda clips: make.noise_of(clips, data.seed))["r_equivariance"]
    checks.append(near("noise, 400 originals", "Equivariance to transforms", 0, under, many.plan.tolerance))
    return checks


def _unhearing(data: AxesMaterial, factor: str) -> Encoder:
    return lambda clips: make.without(clips, factor, data.seed)


def random(data: AxesMaterial) -> list[Check]:
    """Check noise: nothing can be read, predicted, transferred or kept, and rankings are at chance."""
    subject, allowed = "noise", data.plan.tolerance

    def encoder(clips: make.Clips) -> make.Floats:
        return make.noise_of(clips, data.seed)

    results = {name: data.scores(name, encoder) for name in axes_tasks()}
    measures = {name: numbers(scores) for name, scores in results.items()}
    nothing = [
        *(("informativeness", name) for name in ("informativeness", "shuffled")),
        *(("equivariance", name) for name in ("p", "p_start", "p_gain", "shuffled_p")),
        *(("disentanglement", name) for name in ("unseen", "seen")),
        *(("transform_equivariance", name) for name in ("p", "shuffled_p")),
        ("transform_disentanglement", "shift_after"),
    ]
    checks = [near(subject, heading(task, name), 0, measures[task][name], allowed) for task, name in nothing]
    for task in ("equivariance", "transform_equivariance"):
        # No score may be above 0; the probe's loss from the parameter where clips are few is a finding.
        name, score = heading(task, "r_equivariance"), measures[task]["r_equivariance"]
        checks += [at_most(subject, name, allowed, score), at_least(subject, name, -allowed, score, claimed=False)]
    for task in UNPROBED:
        for name in ("invariance", "abx"):
            scores = results[task].columns[load_task(task).info.measure(name).column or ""]
            checks.append(near(subject, heading(task, name), 0, float(np.mean(scores)), half_width(scores)))
    moved, clips = measures["equivariance"], data.clips["transforms"]
    for name in ("level", "context"):
        score, chance = moved[f"r_{name}_top1"], moved[f"r_{name}_chance"]
        checks.append(near(subject, heading("equivariance", f"r_{name}_top1"), chance, score, 0.02))
    for task in UNPROBED:
        # Within the central 99.9 % of the binomial about chance.
        trials = int(clips.changed.sum() if task == "invariance" else clips.candidates.sum() / 2)
        chance = measures[task]["top1_chance"]
        low, high = map(float, stats.binom.ppf([0.0005, 0.9995], trials, chance) / trials)
        expected = f"{chance:.4f}, binomial {low:.3f} to {high:.3f}"
        checks.append(Check(subject, heading(task, "top1"), expected, measures[task]["top1"], low, high))
    return [
        *checks,
        # Main effects of noise have three directions each, which are random: 3/dim, ± 3 standard deviations.
        near(
            subject,
            "Disentanglement: overlap",
            measures["disentanglement"]["overlap_chance"],
            measures["disentanglement"]["overlap"],
            3 * math.sqrt(2 / 6) / DIM,
        ),
    ]


def constant(data: AxesMaterial) -> list[Check]:
    """Check an encoder with the same embedding for every clip: every score is 0, and none is NaN."""
    subject = "constant"
    checks = []
    for task in axes_tasks():
        measures = data.measures(task, lambda clips: np.full((len(clips), DIM), 3.0))
        score = heading(task, score_of(task))
        checks.append(near(subject, score, 0, measures[score_of(task)]))
        broken = sum(not math.isfinite(value) for value in measures.values())
        checks.append(near(subject, f"numbers of {task} that are not finite", 0, broken))
    return checks


def moved_in_space(given: AxesMaterial) -> list[Check]:
    """Check embeddings that are rotated, × 1,000 and shifted: no score may change, except plain cosines, which depend
    on the origin by design."""
    # A small material suffices: a dependence on rotation, scale or shift would show with any number of clips.
    data, seed = AxesMaterial(SMALL, given.seed), given.seed
    checks = []
    for task in axes_tasks():
        plain, turned = (
            data.measures(task, encoder, given.plan.turned_by)
            for encoder in (
                lambda clips: make.noisy(clips, 0.2, seed),
                lambda clips: make.turned(make.noisy(clips, 0.2, seed), seed),
            )
        )
        changes = {
            name: abs(turned[name] - value) / max(1.0, abs(value))
            for name, value in plain.items()
            if "cosine" not in name or "centred" in name
        }
        checks.append(
            near(
                "rotated, × 1,000, shifted",
                f"largest of {len(changes)} changes in {task}",
                0,
                max(changes.values()),
                ROTATED,
            )
        )
    return checks


def axes_tasks() -> list[str]:
    """Return the names of the tasks of the four axes that score the rows of `AxesMaterial.clips`."""
    return [task.info.name for task in load_benchmark("axes") if task.info.recipe in CONSTRUCTED]


def score_of(task: str) -> str:
    """Return the name of the measure that a task ranks by."""
    return next(scored.info.ranks_by for scored in load_benchmark("axes") if scored.info.name == task)
