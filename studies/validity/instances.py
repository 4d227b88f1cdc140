"""Checks of the scores across instances: constructed encoders compared with theory, and dials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.designs import FACTORS

from . import instances_encoders as make
from .checks import (
    Chapter,
    Check,
    DialTable,
    Part,
    at_least,
    at_most,
    half_width,
    heading,
    moves,
    near,
    numbers,
    scored,
    thinned,
)
from .instances_encoders import (
    BINDING,
    BLOCKS,
    CLASSES,
    DIM,
    FULL,
    HELD_OUT,
    SMALL,
    Clips,
    Encoder,
    Floats,
    InstancesMaterial,
)

NOISE = (0.0, 0.1, 0.2, 0.4, 0.8)
"""Standard deviations of the noise in each coordinate, where a label has length 1."""

MASKED = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of a label that a context masks."""

FAINT = 0.2
"""Standard deviation of the noise added to them."""

STRENGTHS = (0.1, 0.5, 1.0, 2.0, 10.0)
"""Lengths of the vectors of contexts and conditions, where a label has length 1."""

COMMON = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the nuisance in a few dimensions that are the same under all conditions."""

Levels = tuple[float, ...]
Along = dict[str, tuple[float, ...]]


def turn(
    data: InstancesMaterial, task: str, levels: Levels, encoder: Callable[[Clips, float], Floats], progress: bool
) -> tuple[Levels, list[Scores]]:
    """Return the measured levels of a dial, and the scores at each."""
    few, clips = thinned(levels, data.plan.every), data.clips[task]
    bar = tqdm(few, desc=f"instances: {task}", disable=not progress)
    return few, [scored(task, clips.rows, Outputs(clips=encoder(clips, level))) for level in bar]


def columns_of(measured: Sequence[Scores], names: Sequence[str]) -> Along:
    """Return some numbers along the dial; NaN for a missing one."""
    return {name: tuple(numbers(scores).get(name, math.nan) for scores in measured) for name in names}


def table_of(level: str, levels: Levels, task: str, along: Mapping[str, tuple[float, ...]]) -> DialTable:
    """Return the numbers along the dial as a table."""
    return DialTable(level, levels, {heading(task, name): values for name, values in along.items()})


def turn_noise(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Measure the scores from the oracle to noise."""
    levels, measured = turn(data, BLOCKS, NOISE, lambda clips, sd: make.noisy(clips, sd, data.seed), progress)
    names = ("top1", "part_top1", "alone_top1", "pairwise", "replacement_cosine")
    along = columns_of(measured, names)
    subject, checks = "as noise grows", []
    for name, values in along.items():
        score = heading(BLOCKS, name)
        checks += [
            near(subject, f"{score}, at the start", 1, values[0]),
            moves(subject, score, levels, values, falls=True),
        ]
    for name in ("top1", "part_top1", "alone_top1"):
        checks.append(near(subject, f"{heading(BLOCKS, name)}, at the end", 1 / CLASSES, along[name][-1], 0.1))
    for level, scores in zip(levels[1:], measured[1:], strict=True):
        checks.append(against_theory(f"noise {level:g}", BLOCKS, "pairwise", expected_pairwise(1, 1, level), scores))
    return table_of("sd of noise", levels, BLOCKS, along), checks


def expected_pairwise(first: float, second: float, sd: float, dim: int = make.DIM) -> float:
    """Return how often two replacements of the noisy oracle point the same way.

    u is the difference of two labels, |u|² = 2, with first · u on one side and second · u on the other, each plus noise
    n of variance 2 sd² in each of `dim` coordinates. (first u + n)(second u + n′) has the mean 2 first second and the
    variance 4 sd² (first² + second²) + 4 dim sd⁴, and is close to normal in many dimensions.
    """
    variance = 4 * sd**2 * (first**2 + second**2) + 4 * dim * sd**4
    return float(stats.norm.cdf(2 * first * second / math.sqrt(variance)))


def against_theory(subject: str, task: str, name: str, theory: float, scores: Scores) -> Check:
    """Compare a score with theory: the 99.9 % interval of Student's t over blocks or trials, and .02 for the theory."""
    values = scores.columns[str(load_task(task).info.measure(name).column)]
    tolerance = half_width(values) + 0.02 if np.ptp(values) > 0 else 0.02
    return near(subject, f"{heading(task, name)}, theory", theory, numbers(scores)[name], float(tolerance))


def turn_strength(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Measure growing context and condition: forced choice is unaffected, the step is not."""

    def encoder(clips: Clips, strength: float) -> Floats:
        return make.oracle(clips, data.seed, strength=strength)

    levels, measured = turn(data, BLOCKS, STRENGTHS, encoder, progress)
    along = columns_of(measured, ("top1", "pairwise", "step", "step_null", "step_adjusted", "conflict"))
    checks = []
    for place, strength in enumerate(levels):
        theory = {
            **dict.fromkeys(("top1", "pairwise"), 1.0),
            **dict.fromkeys(("step", "step_adjusted"), 1 / (1 + strength**2)),
            "step_null": 0.0,
            "conflict": 0.5 + 0.5 * float(np.sign(1 - strength)),
        }
        subject = f"strength {strength:g}"
        checks += [near(subject, heading(BLOCKS, name), by, along[name][place]) for name, by in theory.items()]
    return table_of("length of context and condition", levels, BLOCKS, along), checks


def turn_masking(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Measure masking of the added source by contexts: recognition alone stays, and its kept share falls."""

    def encoder(clips: Clips, lost: float) -> Floats:
        return make.masked(clips, lost, FAINT, data.seed)

    levels, measured = turn(data, BLOCKS, MASKED, encoder, progress)
    along = columns_of(measured, ("alone_top1", "part_top1", "top1", "kept", "pairwise", "part_pairwise"))
    alone, subject = along["alone_top1"], "as more is masked"
    checks = [near(subject, f"{heading(BLOCKS, 'alone_top1')}: largest change", 0, max(alone) - min(alone))]
    for name in ("part_top1", "top1", "kept"):
        checks.append(moves(subject, heading(BLOCKS, name), levels, along[name], falls=True))
    checks += [
        near(subject, f"{heading(BLOCKS, 'kept')}, at the start", 1, along["kept"][0], 0.15),
        near(subject, f"{heading(BLOCKS, 'kept')}, at the end", 0, along["kept"][-1], 0.15),
        near(subject, f"{heading(BLOCKS, 'top1')}, at the end", 1 / CLASSES, along["top1"][-1], 0.1),
    ]
    for lost, scores in zip(levels, measured, strict=True):
        for name, first in (("pairwise", 1 - lost), ("part_pairwise", 1.0)):
            theory = expected_pairwise(first, 1 - lost, FAINT)
            checks.append(against_theory(f"masked {lost:g}", BLOCKS, name, theory, scores))
    return table_of("share masked", levels, BLOCKS, along), checks


def turn_common_nuisance(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Move the nuisance of recordings into few dimensions, where a fitted map can remove it."""

    def encoder(clips: Clips, share: float) -> Floats:
        return make.with_common_nuisance(clips, share, data.seed)

    levels, measured = turn(data, BLOCKS, COMMON, encoder, progress)
    along = columns_of(measured, ("top1", "fitted_top1", "pairwise", "fitted_pairwise"))
    subject, checks = "as conditions have more in common", []
    for name in ("top1", "pairwise"):
        score, plain, fitted = heading(BLOCKS, name), along[name], along[f"fitted_{name}"]
        checks += [
            at_most(subject, f"{score}: fitted − plain, at the start", 0.05, fitted[0] - plain[0]),
            at_least(subject, f"{score}: fitted − plain, at the end", 0.2, fitted[-1] - plain[-1]),
            at_most(subject, f"{score}: largest rise of the plain one", 0.05, max(plain) - plain[0]),
        ]
    checks.append(moves(subject, "fitted top-1", levels, along["fitted_top1"]))
    return table_of("share in common", levels, BLOCKS, along), checks


TURNED = 1e-6
"""Tolerance for rounding of a number with a shift of several lengths."""

TOP1 = ("top1", "part_top1", "alone_top1")
PAIRWISE = ("pairwise", "part_pairwise", "alone_pairwise")

SPREAD = {"top1": 0.021, "pairwise": 0.032}
"""Standard deviations over random encoders on 24 blocks of 8 classes, as measured on 300 of them."""

WITHIN = {"top1": 0.04, "pairwise": 0.06}
"""How far from chance nearly all random encoders are at most: two standard deviations."""

_MOST = 0.6  # required share of random encoders: where .94 are within, 10 have fewer in one of two thousand seeds


def perfect(data: InstancesMaterial) -> list[Check]:
    """Check the oracle: every choice is right, although its steps point apart."""
    subject = "oracle"
    measures = data.measures(BLOCKS, lambda clips: make.oracle(clips, data.seed))
    strong = make.STRONG**2
    return [
        *(near(subject, heading(BLOCKS, name), 1, measures[name]) for name in (*TOP1, *PAIRWISE, "kept")),
        near(subject, heading(BLOCKS, "replacement_cosine"), 1, measures["replacement_cosine"]),
        near(subject, heading(BLOCKS, "step"), 1 / (1 + strong), measures["step"]),
        at_most(subject, heading(BLOCKS, "step"), 0.01, measures["step"]),
        near(subject, heading(BLOCKS, "step_null"), 0, measures["step_null"]),
        near(subject, heading(BLOCKS, "conflict"), 0, measures["conflict"]),
        *_same("oracle without labels", data, lambda clips: make.without_labels(clips, data.seed)),
    ]


def deaf(data: InstancesMaterial) -> list[Check]:
    """Check encoders that embed the candidates of a side equally."""
    dim = make.DIM
    return [
        *_same("constant", data, lambda clips: np.full((len(clips), dim), 3.7)),
        *_same("number of sources", data, make.counting),
        near(
            "constant",
            heading(BINDING, "binding"),
            0.5,
            data.measures(BINDING, lambda clips: np.full((len(clips), dim), 3.7))["binding"],
        ),
    ]


def _same(subject: str, data: InstancesMaterial, encoder: Encoder) -> list[Check]:
    """Check that every forced choice, fitted or not, is exactly at chance."""
    measures = data.measures(BLOCKS, encoder)
    fitted = ("fitted_top1", "fitted_part_top1", "fitted_alone_top1", "fitted_pairwise")
    chance = {name: 0.5 if name.endswith("pairwise") else 1 / CLASSES for name in (*TOP1, *PAIRWISE, *fitted)}
    return [near(subject, heading(BLOCKS, name), by, measures[name]) for name, by in chance.items()]


def calls(data: InstancesMaterial) -> list[Check]:
    """Check an encoder that counts earlier clips: always right if clips came row by row, at chance in the actual order.

    A row's clips are in the order of its recipe: two contexts and four sides of K = 8 classes.
    """
    task, rows = load_task(BLOCKS), data.clips[BLOCKS].rows
    recipe = load_recipe(task.info.recipe)
    given = [f"{row['id']}/{name}" for row in rows for name in recipe.clip_names(row)]
    place_of = {id: place for place, id in enumerate(given)}
    asked = [place_of[f"{row['id']}/{name}"] for row in rows for name in task.inputs(row, {}).clips]
    checks = []
    for shuffled, subject in ((False, "calls counted row by row"), (True, "calls counted in the order of hashes")):
        embeddings = make.calls(given, shuffled, data.seed)[asked]
        measures = numbers(scored(BLOCKS, rows, Outputs(clips=embeddings)))
        for names, chance, spread in (
            (TOP1, 1 / CLASSES, SPREAD["top1"]),
            (PAIRWISE, 0.5, SPREAD["pairwise"]),
        ):
            tolerance = 4 * spread * math.sqrt(24 / data.plan.blocks)
            for name in names:
                expected = (chance, tolerance) if shuffled else (1,)
                checks.append(near(subject, heading(BLOCKS, name), expected[0], measures[name], *expected[1:]))
    return checks


def random(data: InstancesMaterial) -> list[Check]:
    """Check noise: at chance on average, and each encoder as close to chance as 24 blocks allow."""
    runs = [
        data.measures(BLOCKS, partial(make.noise_of, sd=1.0, seed=data.seed, number=number))
        for number in range(data.plan.randoms)
    ]
    subject, checks = f"{len(runs)} random encoders", []
    # Fewer blocks than 24 are never drawn; more are nearer to chance.
    narrower = np.sqrt(24 / data.plan.blocks)
    for name, spread in SPREAD.items():
        values, chance = np.array([run[name] for run in runs]), 0.5 if name == "pairwise" else 1 / CLASSES
        tolerance = 4 * spread * narrower / np.sqrt(len(runs))
        checks.append(near(subject, f"{heading(BLOCKS, name)}, mean", chance, float(values.mean()), float(tolerance)))
        share = float(np.mean(np.abs(values - chance) <= WITHIN[name] * narrower))
        within = f"{heading(BLOCKS, name)}, share within ± {WITHIN[name] * narrower:.2g}"
        checks.append(at_least(subject, within, _MOST, share))
    # A random encoder recognises no source alone, so there is nothing to keep: `kept` is not stated.
    stated = sum("kept" in run for run in runs)
    return [*checks, near(subject, f"{heading(BLOCKS, 'kept')}, how often stated", 0, stated)]


def linear(data: InstancesMaterial) -> list[Check]:
    """Check the encoder `downsample` on rendered sound: the added part is the same in any context, and near chance."""
    rows, embeddings = data.downsampled()
    measures = numbers(scored(BLOCKS, rows, Outputs(clips=embeddings)))
    checks = []
    for names, tolerance in zip((TOP1, PAIRWISE), data.plan.linear, strict=True):
        scene, part, alone = (measures[name] for name in names)
        chance, titles = measures[f"{names[0]}_chance"], [heading(BLOCKS, name) for name in names]
        checks += [
            near("downsample", f"{titles[1]} − alone", 0, part - alone, TURNED),
            near("downsample", f"{titles[0]} − alone", 0, scene - alone, TURNED),
            near("downsample", titles[0], chance, scene, tolerance),
        ]
    return checks


def moved_in_space(data: InstancesMaterial) -> list[Check]:
    """Check that scores of embeddings that are rotated, × 1,000 and shifted stay the same."""
    encoders: dict[str, Encoder] = {
        BLOCKS: partial(make.noisy, sd=0.3, seed=data.seed),
        BINDING: partial(make.bound, share=0.3, sd=0.3, seed=data.seed),
    }
    checks = []
    for task, encoder in encoders.items():
        plain, clips = data.measures(task, encoder), data.clips[task]
        moved = numbers(scored(task, clips.rows, Outputs(clips=make.turned(encoder(clips), data.seed))))
        change = max(abs(moved.get(name, math.nan) - value) for name, value in plain.items())
        subject = f"largest of {len(plain)} changes in {task}"
        checks.append(near("rotated, × 1,000, shifted", subject, 0, change, TURNED))
    return checks


BOUND = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Shares of a code that belong to label and condition together."""

ROUGH = 0.2
"""Standard deviation of the noise added to them, in each coordinate."""


def binding_theory(data: InstancesMaterial) -> list[Check]:
    """Check that sums of parts have no binding, and that a bound code transfers to other voices if it encodes the
    engine."""
    encoders: dict[str, tuple[Encoder, float, float]] = {
        "label + condition": (partial(make.bound, share=0.0, sd=0.0, seed=data.seed), 0.5, 0.5),
        "label × condition": (make.products, 1.0, 0.5),
        "label × engine": (partial(make.products, of_engines=True), 1.0, 1.0),
    }
    checks = []
    for subject, (encoder, within, across) in encoders.items():
        measures = data.measures(BINDING, encoder)
        checks += [
            near(subject, heading(BINDING, "binding"), within, measures["binding"]),
            near(subject, heading(BINDING, "cosine"), 2 * within - 1, measures["cosine"]),
            near(subject, heading(BINDING, "across"), across, measures["across"]),
        ]
    return checks


def turn_binding(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Move from a sum of a part for labels and a part for conditions to a part for each pair of both."""

    def encoder(clips: Clips, share: float) -> Floats:
        return make.bound(clips, share, ROUGH, data.seed)

    levels, measured = turn(data, BINDING, BOUND, encoder, progress)
    along = columns_of(measured, ("binding", "cosine", "across"))
    checks = [moves("as more is bound", heading(BINDING, name), levels, along[name]) for name in ("binding", "cosine")]
    for share, scores in zip(levels, measured, strict=True):
        subject = f"bound {share:g}"
        checks.append(against_theory(subject, BINDING, "binding", expected_binding(share, ROUGH), scores))
        # Under other conditions other parts are bound, which these do not predict.
        checks.append(against_theory(subject, BINDING, "across", 0.5, scores))
    return table_of("share of both together", levels, BINDING, along), checks


def expected_binding(share: float, sd: float, dim: int = make.DIM) -> float:
    """Return how often X − Y of two renderings point the same way.

    X − Y is the sum i of four parts, |i|² = 4 share on average, plus noise n of variance 2 sd² in each of `dim`
    coordinates. (i + n)(i + n′) has the mean |i|² and the variance 4 sd² |i|² + 4 dim sd⁴; see `expected_pairwise`.
    """
    energy = 4 * share
    return float(stats.norm.cdf(energy / math.sqrt(4 * sd**2 * energy + 4 * dim * sd**4)))


BY_HEART = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of a code that belong to timbre and pitch together."""

PAIR = ("timbre", "pitch")

SCENE_DIM = 32

SLIGHT = 0.05
"""Tolerance of a gap that should be 0: ridge regression learns from few scenes. Our choice."""

_VECTORS, _NOISE = 21, 22  # independent random streams of one seed


def embed_scenes(rows: Sequence[Row], share: float, seed: int) -> Floats:
    """Return sums over sources of a vector per label, with `share` for each pair of timbre and pitch, [n,
    SCENE_DIM]."""
    rng = np.random.default_rng([seed, _VECTORS])
    names = [sorted({source[f"{factor}_label"] for row in rows for source in row["metadata"]}) for factor in FACTORS]
    vectors = {
        (factor, label): rng.standard_normal(SCENE_DIM)
        for factor, labels in zip(FACTORS, names, strict=True)
        for label in labels
    }
    timbres, pitches = (names[FACTORS.index(factor)] for factor in PAIR)
    together = {(timbre, pitch): rng.standard_normal(SCENE_DIM) for timbre in timbres for pitch in pitches}
    embeddings = np.zeros((len(rows), SCENE_DIM))
    for place, row in enumerate(rows):
        for source in row["metadata"]:
            labels = {factor: source[f"{factor}_label"] for factor in FACTORS}
            alone = sum(vectors[item] for item in labels.items()) / math.sqrt(len(FACTORS))
            pair = together[labels[PAIR[0]], labels[PAIR[1]]]
            embeddings[place] += math.sqrt(1 - share) * alone + math.sqrt(share) * pair
    return embeddings


def held_out(data: InstancesMaterial, embeddings: Floats) -> Scores:
    """Return the result for embeddings of the scenes, with combinations of timbre and pitch held out."""
    return scored(HELD_OUT, data.scenes, Outputs(clips=embeddings), pairs=["_".join(PAIR)])


def held_out_theory(data: InstancesMaterial) -> list[Check]:
    """Check that noise and a constant have no gap; rotation and scale change nothing."""
    n = len(data.scenes)
    noise = held_out(data, np.random.default_rng([data.seed, _NOISE]).standard_normal((n, SCENE_DIM)))
    measures, constant = numbers(noise), numbers(held_out(data, np.full((n, SCENE_DIM), 3.7)))
    half = embed_scenes(data.scenes, 0.5, data.seed)
    plain = numbers(held_out(data, half))
    # A shift matters: embeddings are scaled to length 1 about the origin.
    moved = numbers(held_out(data, make.turned(half, data.seed, shift=0.0)))
    change = max(abs(moved.get(name, math.nan) - value) for name, value in plain.items())
    return [
        *(
            near("noise", heading(HELD_OUT, name), 0, measures[name], half_width(noise.columns[column]))
            for name, column in (("gap", "score"), ("held_out", "score_held_out"), ("random", "score_random"))
        ),
        *(near("constant", heading(HELD_OUT, name), 0, constant[name]) for name in ("gap", "held_out", "random")),
        near("rotated, × 1,000", f"largest of {len(plain)} changes", 0, change, 1e-6),
    ]


def turn_heart(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Move from sums of class vectors to vectors of pairs, which can only be memorized in training."""
    levels = thinned(BY_HEART, data.plan.every)
    bar = tqdm(levels, desc=f"instances: {HELD_OUT}", disable=not progress)
    measured = [held_out(data, embed_scenes(data.scenes, share, data.seed)) for share in bar]
    along = columns_of(measured, ("held_out", "random", "gap", "gap_single", "kept", "ridge_gap", "interaction"))
    subject, names = "as more is memorized", {name: heading(HELD_OUT, name) for name in along}
    falling = {"gap": False, "held_out": True, "kept": True, "interaction": False}
    return table_of("share memorized", levels, HELD_OUT, along), [
        near("additive", names["gap"], 0, along["gap"][0], SLIGHT),
        near("additive", names["ridge_gap"], 0, along["ridge_gap"][0], SLIGHT),
        at_least("additive", names["held_out"], 0.9, along["held_out"][0]),
        at_least("additive", names["kept"], 0.95, along["kept"][0]),
        *(moves(subject, names[name], levels, along[name], falls=falls) for name, falls in falling.items()),
        at_least("memorized", names["random"], 0.5, along["random"][-1]),
        at_least("memorized", names["gap"], 0.2, along["gap"][-1]),
        at_least("memorized", names["gap_single"], 0.4, along["gap_single"][-1]),
        at_most("memorized", names["kept"], 0.75, along["kept"][-1]),
    ]


def chapter(*, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
    """Check the scores across instances; see `dials.chapter`. Nothing is simulated."""
    data, page = InstancesMaterial(SMALL if quick else FULL, seed), Chapter("instances.yaml", "instances")
    rows: dict[str, Any] = {"blocks": len(data.clips[BLOCKS].rows), "trials": len(data.clips[BINDING].rows)}
    checks = {
        "oracle": perfect,
        "deaf": deaf,
        "calls": calls,
        "random": random,
        "linear": linear,
        "space": moved_in_space,
        "bound": binding_theory,
        "held out": held_out_theory,
    }
    along = {
        "noise": turn_noise,
        "strength": turn_strength,
        "masking": turn_masking,
        "nuisance": turn_common_nuisance,
        "binding": turn_binding,
        "by heart": turn_heart,
    }
    head = page.part("chapter", level=2, scenes=len(data.scenes), dim=DIM, classes=CLASSES, **rows)
    return (head, *page.parts(checks, along, data, progress))
