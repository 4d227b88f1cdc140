"""Encoders of which theory says what binding must be, and the dial from a sum to what is bound."""

from __future__ import annotations

import math
from functools import partial

from scipy import stats

from . import instances_encoders as make
from .axes_data import heading
from .families import Check, DialTable, near
from .instances_data import BINDING, Clips, Encoder, Floats, InstancesMaterial
from .instances_dials import beside, columns_of, moves, table_of, turn

BOUND = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Shares of a code that are of label and condition together."""

ROUGH = 0.2
"""Standard deviation of the noise beside them, in each coordinate."""


def theory(data: InstancesMaterial) -> list[Check]:
    """Sums of parts hear no binding; what is bound is heard across where its code is that of an engine."""
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
    """From a sum of a part for labels and one for conditions to a part for both together."""

    def encoder(clips: Clips, share: float) -> Floats:
        return make.bound(clips, share, ROUGH, data.seed)

    levels, measured = turn(data, BINDING, BOUND, encoder, progress)
    along = columns_of(measured, ("binding", "cosine", "across"))
    checks = [moves("as more is bound", heading(BINDING, name), levels, along[name]) for name in ("binding", "cosine")]
    for share, scores in zip(levels, measured, strict=True):
        subject = f"bound {share:g}"
        checks.append(beside(subject, BINDING, "binding", expected_binding(share, ROUGH), scores))
        # Under other conditions other parts are bound, of which these say nothing.
        checks.append(beside(subject, BINDING, "across", 0.5, scores))
    return table_of("share of both together", levels, BINDING, along), checks


def expected_binding(share: float, sd: float, dim: int = make.DIM) -> float:
    """How often X − Y of two renderings point the same way.

    X − Y is the sum i of four parts, |i|² = 4 share on average, beside noise n of variance 2 sd² in each of `dim`
    coordinates. (i + n)(i + n′) has the mean |i|² and the variance 4 sd² |i|² + 4 dim sd⁴; see `expected_pairwise`.
    """
    energy = 4 * share
    return float(stats.norm.cdf(energy / math.sqrt(4 * sd**2 * energy + 4 * dim * sd**4)))
