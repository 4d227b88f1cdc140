"""Encoders for the four axes with a known truth: embeddings are made from the rows of the recipes.

A perfectly disentangled encoder gives each factor coordinates of its own: a source is x = (timbre, pitch, rate,
amplitude), where timbre is a corner of a regular simplex of 8 corners about the origin, of length 1, and each other
level a number of mean 0 and variance 1; a clip is the sum of its sources. A transform adds its strength, from 0 to 1,
in one coordinate more. Every other encoder is a function of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.designs import FACTORS

from .checks import numbers, scored

Floats = NDArray[np.float64]

CLASSES = 8
"""Levels of each factor."""

TIMBRE = slice(0, CLASSES)
"""Coordinates of the timbre."""

PLACES = {"timbre": TIMBRE, **{factor: slice(CLASSES + k, CLASSES + k + 1) for k, factor in enumerate(FACTORS[1:])}}
"""Coordinates of each factor."""

SOURCE = CLASSES + len(FACTORS) - 1
"""Coordinates of a source."""

TRANSFORMS = ("gain", "noise", "lowpass", "reverb")

DIM = 32
"""Dimensions of all embeddings; unused ones are 0."""


@dataclass(frozen=True)
class Clips:
    """Rows of a recipe, with their contents as numbers.

    Attributes:
        rows: n rows.
        sources: sum over the sources of each clip, [n, SOURCE].
        strengths: of each of `TRANSFORMS`, 0 where it was not applied, [n, 4].
        changed: whether a transform was applied, [n].
        candidates: whether a clip is a candidate with which copies are compared, [n].
        levels_in_db: 10 log10 of the summed squared gains, gain and noise of transforms included, [n].
        groups: number of each clip's original, which for an original is itself, [n].
        firsts: classes of the first source, [n, 4].
    """

    rows: Sequence[Row]
    sources: Floats
    strengths: Floats
    changed: NDArray[np.bool_]
    candidates: NDArray[np.bool_]
    levels_in_db: Floats
    groups: NDArray[np.int64]
    firsts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def additive(self) -> Floats:
        """Return embeddings by the perfectly disentangled encoder, [n, DIM]."""
        rest = np.zeros((len(self), DIM - SOURCE - len(TRANSFORMS)))
        embeddings: Floats = np.hstack([self.sources, self.strengths, rest])
        return embeddings

    @cached_property
    def deaf(self) -> Floats:
        """Return the same embeddings without the coordinates of transforms, [n, DIM]."""
        embeddings = self.additive.copy()
        embeddings[:, SOURCE:] = 0
        return embeddings


def read_clips(rows: Sequence[Row], classes: Mapping[tuple[str, str], int]) -> Clips:
    """Return the contents of rows of `factors` or `transforms`.

    Args:
        rows: of either recipe.
        classes: of each factor and label; see `classes_of`.
    """
    codes = source_codes()
    sources, strengths = np.zeros((len(rows), SOURCE)), np.zeros((len(rows), len(TRANSFORMS)))
    levels, firsts = np.zeros(len(rows)), np.zeros((len(rows), len(FACTORS)), np.int64)
    names = {name: place for place, name in enumerate(dict.fromkeys(row.get("base", row["id"]) for row in rows))}
    for place, row in enumerate(rows):
        power = 0.0
        for number, source in enumerate(row["metadata"]):
            places = [classes[factor, source[f"{factor}_label"]] for factor in FACTORS]
            sources[place] += sum(codes[factor][level] for factor, level in zip(FACTORS, places, strict=True))
            power += 10 ** (float(source["amplitude_label"].split()[0]) / 10)
            if number == 0:
                firsts[place] = places
        levels[place] = 10 * np.log10(power)
        transform = row.get("transform", "")
        if transform:
            strengths[place, TRANSFORMS.index(transform)] = row["scaled"]
            levels[place] += _louder(transform, row["parameter"])
    groups = np.array([names[row.get("base", row["id"])] for row in rows])
    candidates = np.array([bool(row.get("candidate")) for row in rows])
    # Candidates have the level of their base, the first clip of the group, whatever their sources are.
    first = np.unique(groups, return_index=True)[1]
    levels[candidates] = levels[first[groups[candidates]]]
    changed = np.array([bool(row.get("transform")) for row in rows])
    return Clips(rows, sources, strengths, changed, candidates, levels, groups, firsts)


def _louder(transform: str, parameter: float) -> float:
    """Return the change of level by a gain or noise in dB; 0 for the others, which restore the original level."""
    if transform == "gain":
        return parameter
    return float(10 * np.log10(1 + 10 ** (-parameter / 10))) if transform == "noise" else 0.0


def classes_of(rows: Sequence[Row]) -> dict[tuple[str, str], int]:
    """Return the class of each factor and label, from rows of `factors`, in which every star has all classes."""
    return {
        (factor, row["metadata"][0][f"{factor}_label"]): row["levels"][factor] for row in rows for factor in FACTORS
    }


def source_codes() -> dict[str, Floats]:
    """Return the vectors of the levels of each factor, [CLASSES, SOURCE]."""
    codes = {factor: np.zeros((CLASSES, SOURCE)) for factor in FACTORS}
    codes["timbre"][:, TIMBRE] = (np.eye(CLASSES) - 1 / CLASSES) / np.sqrt(1 - 1 / CLASSES)
    line = np.arange(CLASSES) - (CLASSES - 1) / 2
    for factor in FACTORS[1:]:
        codes[factor][:, PLACES[factor]] = (line / line.std())[:, None]
    return codes


def render(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Clips]:
    """Return the rows of each recipe, without sound.

    Args:
        settings: for each recipe, settings that differ from its preset mini.
    """
    rows = {
        name: load_recipe(name).render(load_recipe(name).presets["mini"].changed(**changes)).rows
        for name, changes in settings.items()
    }
    classes = classes_of(rows["factors"])
    return {name: read_clips(given, classes) for name, given in rows.items()}


# ----- encoders


def noise_of(clips: Clips, seed: int) -> Floats:
    """Return noise of expected squared length 1, [n, DIM]."""
    noise: Floats = np.random.default_rng([seed, 1]).standard_normal((len(clips), DIM)) / np.sqrt(DIM)
    return noise


def noisy(clips: Clips, share: float, seed: int, *, deaf: bool = False) -> Floats:
    """Return the additive encoder with noise as `share` of the variance; with `deaf`, it ignores transforms."""
    signal = clips.deaf if deaf else clips.additive
    size = float(np.sqrt(signal[~clips.changed].var(axis=0).sum()))
    embeddings: Floats = np.sqrt(1 - share) * signal + np.sqrt(share) * size * noise_of(clips, seed)
    return embeddings


def in_random_directions(clips: Clips, seed: int) -> Floats:
    """Return the additive encoder with each coordinate along a random direction."""
    directions = np.random.default_rng([seed, 2]).standard_normal((DIM, DIM)) / np.sqrt(DIM)
    embeddings: Floats = clips.additive @ directions
    return embeddings


def turned(embeddings: Floats, seed: int) -> Floats:
    """Return embeddings in a random orthonormal basis, × 1,000, and shifted far from the origin."""
    rng = np.random.default_rng([seed, 3])
    basis = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    moved: Floats = 1_000 * embeddings @ basis + 5_000 * rng.standard_normal(DIM)
    return moved


def bound_to_timbre(clips: Clips, share: float, seed: int) -> Floats:
    """Return an encoder in which the direction of each number depends on the timbre.

    `share` of the direction's squared length belongs to the timbre. For known timbres, each number is still a linear
    function of the embedding; for a new timbre, that part is unknown.
    """
    rng = np.random.default_rng([seed, 4])
    count = len(FACTORS) - 1
    # One direction per number and timbre. All are orthogonal, so there are that many dimensions at least.
    wide = SOURCE + count * CLASSES
    basis = np.linalg.qr(rng.standard_normal((wide, wide)))[0]
    numbers = clips.sources[:, CLASSES:SOURCE]
    turned = np.zeros((len(clips), count * CLASSES))
    for k in range(count):
        turned[np.arange(len(clips)), k * CLASSES + clips.firsts[:, 0]] = numbers[:, k]
    plain = np.hstack([clips.sources[:, TIMBRE], np.sqrt(1 - share) * numbers])
    embeddings: Floats = np.hstack([plain, np.sqrt(share) * turned]) @ basis
    return embeddings


def random_quadratic(clips: Clips, share: float, seed: int) -> Floats:
    """Return the additive encoder plus random sums of all products of two coordinates, which are `share` of the
    variance."""
    rng = np.random.default_rng([seed, 5])
    first, second = np.triu_indices(SOURCE)
    products = clips.sources[:, first] * clips.sources[:, second]
    mixed = products @ rng.standard_normal((len(first), DIM))
    linear = clips.sources @ rng.standard_normal((SOURCE, DIM))
    parts = [z / np.sqrt(z.var(axis=0).sum()) for z in (linear, mixed)]
    embeddings: Floats = np.sqrt(1 - share) * parts[0] + np.sqrt(share) * parts[1]
    return embeddings


def energy(clips: Clips) -> Floats:
    """Return the level of each clip, in units of 10 dB, along one direction, and nothing else."""
    embeddings = np.zeros((len(clips), DIM))
    embeddings[:, 0] = clips.levels_in_db / 10
    return embeddings


def without(clips: Clips, factor: str, seed: int, noise: float = 0.1) -> Floats:
    """Return the additive encoder without one factor, with `noise` as a share of the variance."""
    embeddings = noisy(clips, noise, seed)
    embeddings[:, PLACES[factor]] -= np.sqrt(1 - noise) * clips.sources[:, PLACES[factor]]
    return embeddings


def blind_to_strength(clips: Clips, seed: int) -> Floats:
    """Return an encoder, with noise, that moves every transformed copy by the same step, whatever the strength."""
    embeddings = noisy(clips, 0.1, seed, deaf=True)
    embeddings[:, SOURCE] += clips.changed
    return embeddings


Encoder = Callable[[Clips], NDArray[np.float64]]

RIDGE = ("ridge",)

BOTH = ("ridge", "kernel")
"""The default probes of tasks."""

CONSTRUCTED = ("factors", "transforms")
"""Recipes from whose rows embeddings are made."""

UNPROBED = ("onset_invariance", "invariance")
"""Tasks in which nothing is fitted."""


@dataclass(frozen=True)
class AxesPlan:
    """The amount of measurement.

    Attributes:
        factors, transforms: settings that differ from the preset mini of the recipe.
        every: step between the measured levels of a dial, whose ends are always measured.
        tolerance: tolerance of a score of random embeddings that is 0 in theory.
        many: whether scores that are biased for few clips are also measured on as many clips as the preset full has.
        turned_by: probes whose scores must not depend on rotation, scale and shift.
    """

    factors: Mapping[str, Any]
    transforms: Mapping[str, Any]
    every: int
    tolerance: float
    many: bool
    turned_by: tuple[str, ...]


FULL = AxesPlan({}, {}, 1, 0.05, True, BOTH)

MANY = AxesPlan({"crossed_levels": (8, 8, 8, 8)}, {"bases": 400}, 1, 0.05, False, RIDGE)
"""All combinations of levels and 400 clips with copies, as in the presets full."""

SMALL = AxesPlan(
    {"stars": 12, "crossed_levels": (8, 3, 3, 3)}, {"bases": 40, "untransformed": 100}, 2, 0.15, False, RIDGE
)
"""A quick plan, in seconds: fewer clips vary more, so the bands are wider."""


class AxesMaterial:
    """Rows of both recipes and the scores of encoders on them."""

    def __init__(self, plan: AxesPlan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        self.clips = render(
            {"factors": {"seed": seed, **plan.factors}, "transforms": {"seed": seed, **plan.transforms}}
        )

    def scores(self, task: str, encoder: Encoder, probes: tuple[str, ...] = RIDGE) -> Scores:
        """Return the result of a task for an encoder."""
        clips = self.clips[load_task(task).info.recipe]
        asked = [place for place, row in enumerate(clips.rows) if load_task(task).inputs(row, {}).clips]
        requested = {} if task in UNPROBED else {"probes": list(probes)}
        return scored(task, clips.rows, Outputs(clips=encoder(clips)[asked]), **requested)

    def measures(self, task: str, encoder: Encoder, probes: tuple[str, ...] = RIDGE) -> dict[str, float]:
        """Return the numbers of a task for an encoder, without missing ones."""
        return numbers(self.scores(task, encoder, probes))
