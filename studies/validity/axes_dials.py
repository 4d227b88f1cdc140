"""Dials of the encoders for the four axes: what each score does as noise, or entanglement, grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tqdm.auto import tqdm

from audio_compositionality.tasks.shapes.designs import FACTORS

from . import axes_encoders as make
from .axes_data import AxesMaterial, Encoder, heading
from .axes_theory import half_width
from .dials import monotone
from .families import EXACTLY, Check, DialTable, at_least, at_most, near

NOISE = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
"""Shares of noise in the variance of embeddings."""

ENTANGLEMENT = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Shares of the direction of a number that depend on the timbre."""

FAINT = 0.02
"""Share of noise beside the entanglement: without any, however little all timbres have in common can be found."""

STAYS = 0.05
"""How far informativeness may fall along the dial of entanglement. Our choice."""

_FALLING = (
    ("informativeness", "informativeness"),
    ("equivariance", "r_equivariance"),
    ("equivariance", "p"),
    ("disentanglement", "unseen"),
    ("onset_invariance", "invariance"),
    ("invariance", "invariance"),
    ("transform_equivariance", "r_equivariance"),
    ("transform_equivariance", "p"),
    ("transform_disentanglement", "shift_after"),
)
"""Scores that noise must bring from 1 to 0."""

_DEAF = ("invariance", "transform_disentanglement")
"""Tasks in which a transform must be nothing, for the encoder without noise to be perfect."""

_OVERSHOOTS = (("equivariance", "r_equivariance"), ("transform_equivariance", "r_equivariance"))
"""Scores that fall below 0 where there is little to learn from."""


def turn_noise(data: AxesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Every score from the perfect encoder to noise."""
    levels = thinned(NOISE, data.plan.every)
    values: dict[tuple[str, str], list[float]] = {score: [] for score in _FALLING}
    beside: list[Check] = []
    for level in tqdm(levels, desc="axes: noise", disable=not progress):
        measures = {
            task: data.measures(task, _noisy(level, data.seed, deaf=task in _DEAF))
            for task in dict.fromkeys(task for task, _ in _FALLING)
        }
        for task, name in values:
            values[task, name].append(measures[task][name])
        scores = data.scores("invariance", _noisy(level, data.seed, deaf=True)).columns["score"]
        tolerance = max(half_width(scores), EXACTLY)
        theory = expected_invariance(data, level)
        beside.append(near(f"noise {level:g}", "Invariance beside theory", theory, float(scores.mean()), tolerance))
    checks = []
    for task, name in _FALLING:
        checks += _from_one_to_zero(data, heading(task, name), levels, values[task, name], (task, name) in _OVERSHOOTS)
    columns = {heading(task, name): tuple(column) for (task, name), column in values.items()}
    return DialTable("share of noise", levels, columns), [*checks, *beside]


def _noisy(level: float, seed: int, *, deaf: bool) -> Encoder:
    return lambda clips: make.noisy(clips, level, seed, deaf=deaf)


def expected_invariance(data: AxesMaterial, share: float) -> float:
    """The invariance of a deaf and noisy encoder: 1 - 2σ²/(S + 2σ²), S the mean squared distance of two signals."""
    clips = data.clips["transforms"]
    copied = np.isin(clips.groups, clips.groups[clips.changed]) & ~clips.changed & ~clips.candidates
    signal = clips.deaf[copied]
    apart = 2 * float(signal.var(axis=0, ddof=1).sum()) * (1 - share)
    noise = 2 * share * float(clips.deaf[~clips.changed].var(axis=0).sum())
    return apart / (apart + noise)


def _from_one_to_zero(
    data: AxesMaterial, score: str, levels: Sequence[float], values: Sequence[float], overshoots: bool
) -> list[Check]:
    """1 without noise, falling all the way, and 0 at the end."""
    subject, allowed = "as noise grows", data.plan.tolerance
    last = [at_most(subject, f"{score}, at the end", allowed, values[-1])]
    last.append(at_least(subject, f"{score}, at the end", -allowed, values[-1], claimed=not overshoots))
    # Where validation leaves the parameter out in some folds or all, a score is about 0: there it has nowhere to fall.
    above = np.flatnonzero(np.abs(values) > allowed)
    count = min(int(above.max(initial=0)) + 2, len(values))
    return [
        at_least(subject, f"{score}, at the start", 0.99, values[0]),
        near(subject, f"{score}: ρ", -1, monotone(levels[:count], values[:count], falls=True)),
        *last,
    ]


def turn_entanglement(data: AxesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Numbers whose direction turns with the timbre: what is read stays, what is read from new timbres falls."""
    levels = thinned(ENTANGLEMENT, data.plan.every)
    scores: dict[str, list[float]] = {}
    for level in tqdm(levels, desc="axes: entanglement", disable=not progress):
        for name, value in _entangled(data, level).items():
            scores.setdefault(name, []).append(value)
    subject = "as entanglement grows"
    read, unseen, of_new = scores["Informativeness"], scores["Disentanglement"], scores["numbers from new timbres"]
    checks = [
        at_most(subject, "Informativeness: largest fall", STAYS, read[0] - min(read)),
        near(subject, "Disentanglement: ρ", -1, monotone(levels, unseen, falls=True)),
        near(subject, "numbers from new timbres: ρ", -1, monotone(levels, of_new, falls=True)),
        at_least(subject, "numbers from new timbres, at the start", 0.95, of_new[0]),
        near(subject, "numbers from new timbres, at the end", 0, of_new[-1], 2 * data.plan.tolerance),
        at_least(subject, "numbers from seen timbres, at the end", 0.9, scores["numbers from seen timbres"][-1]),
    ]
    return DialTable("share of timbre", levels, {name: tuple(column) for name, column in scores.items()}), checks


def _entangled(data: AxesMaterial, level: float) -> Mapping[str, float]:
    def encoder(clips: make.Clips) -> make.Floats:
        embeddings = make.bound_to_timbre(clips, level, data.seed)
        noise = np.random.default_rng([data.seed, 6]).standard_normal(embeddings.shape)
        size = float(np.sqrt(FAINT * embeddings.var(axis=0).sum() / embeddings.shape[1]))
        return embeddings + size * noise

    read = data.measures("informativeness", encoder)
    pairs = data.measures("disentanglement", encoder)
    means = {
        kind: float(np.mean([pairs[f"{factor}_over_timbre_{kind}"] for factor in FACTORS[1:]]))
        for kind in ("unseen", "seen")
    }
    return {
        "Informativeness": read["informativeness"],
        "Disentanglement": pairs["unseen"],
        "numbers from new timbres": means["unseen"],
        "numbers from seen timbres": means["seen"],
    }


def thinned(levels: Sequence[float], every: int) -> tuple[float, ...]:
    """Each how many levels, and both ends."""
    return tuple(level for k, level in enumerate(levels) if k % every == 0 or level == levels[-1])
