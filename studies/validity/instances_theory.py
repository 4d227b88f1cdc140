"""Encoders of which theory says what the scores across instances must give, beside what they give."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.registry import load_task

from . import instances_encoders as make
from .axes_data import heading
from .families import Check, at_least, at_most, near
from .instances_data import BINDING, BLOCKS, CLASSES, Encoder, InstancesMaterial, numbers, score

TURNED = 1e-6
"""What rounding may change of a number beside a shift of several lengths."""

TOP1 = ("top1", "part_top1", "alone_top1")
PAIRWISE = ("pairwise", "part_pairwise", "alone_pairwise")

SPREAD = {"top1": 0.021, "pairwise": 0.032}
"""Standard deviations over random encoders on 24 blocks of 8 classes, as measured on 300 of them."""

WITHIN = {"top1": 0.04, "pairwise": 0.06}
"""How far from chance nearly all random encoders are at most: two standard deviations."""

_MOST = 0.6  # of the random encoders that must be there: where .94 are, fewer of 10 are once in two thousand seeds


def perfect(data: InstancesMaterial) -> list[Check]:
    """The oracle: every choice is right, while its steps point apart."""
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
    """Encoders that cannot tell the candidates of a side apart."""
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
    """Chance, exactly, of every forced choice, fitted or not."""
    measures = data.measures(BLOCKS, encoder)
    fitted = ("fitted_top1", "fitted_part_top1", "fitted_alone_top1", "fitted_pairwise")
    chance = {name: 0.5 if name.endswith("pairwise") else 1 / CLASSES for name in (*TOP1, *PAIRWISE, *fitted)}
    return [near(subject, heading(BLOCKS, name), by, measures[name]) for name, by in chance.items()]


def calls(data: InstancesMaterial) -> list[Check]:
    """How many clips came before: right in every choice where clips come row by row, chance in the order they come in.

    The data give the clips of a row in the order of its recipe, two contexts and four sides of K = 8 classes.
    """
    task, rows = load_task(BLOCKS), data.clips[BLOCKS].rows
    recipe = load_recipe(task.info.recipe)
    given = [f"{row['id']}/{name}" for row in rows for name in recipe.clip_names(row)]
    place_of = {id: place for place, id in enumerate(given)}
    asked = [place_of[f"{row['id']}/{name}"] for row in rows for name in task.inputs(row, {}).clips]
    checks = []
    for shuffled, subject in ((False, "calls counted row by row"), (True, "calls counted in the order of hashes")):
        embeddings = make.calls(given, shuffled, data.seed)[asked]
        measures = numbers(score(BLOCKS, rows, embeddings))
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
    """Noise of each clip: chance on average, and each encoder as near to it as 24 blocks allow."""
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
    # An encoder that hears nothing can keep nothing: it is not stated.
    stated = sum("kept" in run for run in runs)
    return [*checks, near(subject, f"{heading(BLOCKS, 'kept')}, how often stated", 0, stated)]


def linear(data: InstancesMaterial) -> list[Check]:
    """The encoder `downsample` on rendered sound: what is added is the same in any context, and near chance."""
    rows, embeddings = data.downsampled()
    measures = numbers(score(BLOCKS, rows, embeddings))
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
    """Turned, × 1,000 and shifted: nothing may change."""
    encoders: dict[str, Encoder] = {
        BLOCKS: partial(make.noisy, sd=0.3, seed=data.seed),
        BINDING: partial(make.bound, share=0.3, sd=0.3, seed=data.seed),
    }
    checks = []
    for task, encoder in encoders.items():
        plain, moved = data.measures(task, encoder), data.measures(task, _turned(encoder, data.seed))
        change = max(abs(moved.get(name, math.nan) - value) for name, value in plain.items())
        subject = f"largest of {len(plain)} changes in {task}"
        checks.append(near("turned, × 1,000, shifted", subject, 0, change, TURNED))
    return checks


def _turned(encoder: Encoder, seed: int) -> Encoder:
    return lambda clips: make.turned(encoder(clips), seed)
