"""Dials of the models of captions: noise, how near twins are, and clips that are near to all captions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from . import comp_a_models as make
from .axes_data import heading
from .axes_dials import thinned
from .comp_a_data import ATTRIBUTE, ORDER, CaptionMaterial, Items
from .comp_a_theory import chance_near
from .families import Check, DialTable, at_least, at_most, near
from .instances_dials import moves

NOISE = (0.0, 0.05, 0.1, 0.2, 0.4, 3.0)
"""Standard deviations of the noise in each coordinate."""

DISTANCES = (0.02, 0.1, 0.2, 0.5, 1.0, 10.0)
"""Lengths of what is a clip's or a caption's own, where what an item shares is 1 long."""

STRENGTHS = (0.0, 0.5, 1.0, 2.0, 8.0)
"""How much nearer some clips are to all captions."""

Runs = list[list[dict[str, float]]]


def _turn(
    items: Items, levels: tuple[float, ...], models: int, make_one: Callable[[float, int], make.Pair], progress: bool
) -> Runs:
    """For each level what the task gives for some models that differ in their random numbers."""
    bar: Any = tqdm(levels, desc=f"captions: {items.task}", disable=not progress)
    return [[items.measures(*make_one(level, number)) for number in range(models)] for level in bar]


def _along(runs: Runs, name: str) -> tuple[float, ...]:
    return tuple(float(np.mean([run[name] for run in of_level])) for of_level in runs)


def turn_noise(data: CaptionMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """From who reads everything to who knows nothing: all scores fall from 1 to chance."""
    items, levels = data.items[ATTRIBUTE], thinned(NOISE, data.plan.every)
    models, count = data.plan.models, data.plan.models * len(items.rows)
    runs = _turn(items, levels, models, lambda sd, number: make.noisy(items, sd, data.seed, number), progress)
    names, subject, checks = ("text", "audio", "group", "match"), "as noise grows", []
    for name in names:
        score, values = heading(ATTRIBUTE, name), _along(runs, name)
        checks += [
            near(subject, f"{score}, at the start", 1, values[0]),
            moves(subject, score, levels, values, falls=True),
            chance_near(subject, f"{score}, at the end", runs[-1][0][f"chance_{name}"], values[-1], count),
        ]
    scores = {heading(ATTRIBUTE, name): _along(runs, name) for name in (*names, "floor_group")}
    return DialTable("sd of noise", levels, scores), checks


def turn_twins(data: CaptionMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Without knowledge: the nearer twins are, the less is won; the floor says so, and match stays at one half."""
    items, levels = data.items[ORDER], thinned(DISTANCES, data.plan.every)
    models, count = data.plan.models, data.plan.models * len(items.rows)
    runs = _turn(
        items, levels, models, lambda apart, number: make.near_twins(items, apart, data.seed, number), progress
    )
    checks = []
    for level, of_level in zip(levels, runs, strict=True):
        subject, means = f"twins {level:g} apart", {name: _along([of_level], name)[0] for name in of_level[0]}
        checks.append(chance_near(subject, heading(ORDER, "match"), 0.5, means["match"], count))
        for name in ("text", "audio", "group"):
            score = f"{heading(ORDER, name)} beside its floor"
            checks.append(chance_near(subject, score, means[f"floor_{name}"], means[name], count))
    floor = _along(runs, "floor_group")
    subject = "as twins part"
    checks += [
        at_most(subject, f"{heading(ORDER, 'floor_group')}, at the start", 0.01, floor[0]),
        moves(subject, heading(ORDER, "floor_group"), levels, floor),
        near(subject, f"{heading(ORDER, 'floor_group')}, at the end", 1 / 6, floor[-1], 0.02),
    ]
    names = ("text", "audio", "group", "match", "floor_text", "floor_audio", "floor_group")
    return DialTable("distance of twins", levels, {heading(ORDER, name): _along(runs, name) for name in names}), checks


def turn_favour(data: CaptionMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Who knows all, and of whose clips some are near to all captions: match stays, what captions choose is lost."""
    items, levels = data.items[ORDER], thinned(STRENGTHS, data.plan.every)
    runs = _turn(items, levels, 1, lambda strength, _: make.favouring(items, strength, data.seed), progress)
    names, subject = ("text", "audio", "group", "match"), "as clips are favoured"
    values = {name: _along(runs, name) for name in names}
    checks = [
        *(near(subject, f"{heading(ORDER, name)}, least", 1, min(values[name])) for name in ("text", "match")),
        *(moves(subject, heading(ORDER, name), levels, values[name], falls=True) for name in ("audio", "group")),
        at_most(subject, f"{heading(ORDER, 'group')}, at the end", 0.5, values["group"][-1]),
        at_least(subject, f"{heading(ORDER, 'group')}, at the start", 1, values["group"][0]),
    ]
    return DialTable("strength", levels, {heading(ORDER, name): values[name] for name in names}), checks
