"""What held-out combinations must cost an encoder that composes classes, one that knows pairs by heart, and noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.tasks.base import Scores
from audio_compositionality.tasks.shapes.designs import FACTORS

from . import instances_encoders as make
from .axes_data import heading
from .axes_dials import thinned
from .axes_theory import half_width
from .families import Check, DialTable, at_least, at_most, near
from .instances_data import HELD_OUT, Floats, InstancesMaterial, numbers, score
from .instances_dials import columns_of, moves, table_of

BY_HEART = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of a code that are of timbre and pitch together."""

PAIR = ("timbre", "pitch")

DIM = 32

SLIGHT = 0.05
"""How large a gap may be that should be none: ridge regression learns from few scenes. Our choice."""

_VECTORS, _NOISE = 21, 22  # independent random streams of one seed


def embed_scenes(rows: Sequence[Row], share: float, seed: int) -> Floats:
    """Sums over sources of a vector for each label, of which `share` is one of timbre and pitch together, [n, DIM]."""
    rng = np.random.default_rng([seed, _VECTORS])
    names = [sorted({source[f"{factor}_label"] for row in rows for source in row["metadata"]}) for factor in FACTORS]
    vectors = {
        (factor, label): rng.standard_normal(DIM)
        for factor, labels in zip(FACTORS, names, strict=True)
        for label in labels
    }
    timbres, pitches = (names[FACTORS.index(factor)] for factor in PAIR)
    together = {(timbre, pitch): rng.standard_normal(DIM) for timbre in timbres for pitch in pitches}
    embeddings = np.zeros((len(rows), DIM))
    for place, row in enumerate(rows):
        for source in row["metadata"]:
            labels = {factor: source[f"{factor}_label"] for factor in FACTORS}
            alone = sum(vectors[item] for item in labels.items()) / math.sqrt(len(FACTORS))
            pair = together[labels[PAIR[0]], labels[PAIR[1]]]
            embeddings[place] += math.sqrt(1 - share) * alone + math.sqrt(share) * pair
    return embeddings


def held_out(data: InstancesMaterial, embeddings: Floats) -> Scores:
    """What the task gives for embeddings of the scenes, combinations of timbre and pitch held out."""
    return score(HELD_OUT, data.scenes, embeddings, pairs=["_".join(PAIR)])


def theory(data: InstancesMaterial) -> list[Check]:
    """Noise and a constant lose nothing and have nothing; turning and scaling change nothing."""
    n = len(data.scenes)
    noise = held_out(data, np.random.default_rng([data.seed, _NOISE]).standard_normal((n, DIM)))
    measures, constant = numbers(noise), numbers(held_out(data, np.full((n, DIM), 3.7)))
    half = embed_scenes(data.scenes, 0.5, data.seed)
    plain = numbers(held_out(data, half))
    # A shift is seen: embeddings are brought to length 1 about the origin.
    moved = numbers(held_out(data, make.turned(half, data.seed, shift=0.0)))
    change = max(abs(moved.get(name, math.nan) - value) for name, value in plain.items())
    return [
        *(
            near("noise", heading(HELD_OUT, name), 0, measures[name], half_width(noise.columns[column]))
            for name, column in (("gap", "score"), ("held_out", "score_held_out"), ("random", "score_random"))
        ),
        *(near("constant", heading(HELD_OUT, name), 0, constant[name]) for name in ("gap", "held_out", "random")),
        near("turned, × 1,000", f"largest of {len(plain)} changes", 0, change, 1e-6),
    ]


def turn_heart(data: InstancesMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """From sums of classes to what only who has heard a pair can know."""
    levels = thinned(BY_HEART, data.plan.every)
    bar = tqdm(levels, desc=f"instances: {HELD_OUT}", disable=not progress)
    measured = [held_out(data, embed_scenes(data.scenes, share, data.seed)) for share in bar]
    along = columns_of(measured, ("held_out", "random", "gap", "gap_single", "kept", "ridge_gap", "interaction"))
    subject, names = "as more is by heart", {name: heading(HELD_OUT, name) for name in along}
    falling = {"gap": False, "held_out": True, "kept": True, "interaction": False}
    return table_of("share by heart", levels, HELD_OUT, along), [
        near("additive", names["gap"], 0, along["gap"][0], SLIGHT),
        near("additive", names["ridge_gap"], 0, along["ridge_gap"][0], SLIGHT),
        at_least("additive", names["held_out"], 0.9, along["held_out"][0]),
        at_least("additive", names["kept"], 0.95, along["kept"][0]),
        *(moves(subject, names[name], levels, along[name], falls=falls) for name, falls in falling.items()),
        at_least("by heart", names["random"], 0.5, along["random"][-1]),
        at_least("by heart", names["gap"], 0.2, along["gap"][-1]),
        at_least("by heart", names["gap_single"], 0.4, along["gap_single"][-1]),
        at_most("by heart", names["kept"], 0.75, along["kept"][-1]),
    ]
