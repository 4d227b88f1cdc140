"""How far copies of embeddings and of answers are from honest models, and where the limits of `likeness` and `choices`
lie between them.

`python -m audio_compositionality.studies.copies --out embeddings MODEL …` embeds the clips of some quadruples of the
preset mini at all layers of each model, and prints which pairs of models are called copies, how near honest ones come,
and what every manipulation does to the distance and to the numbers that rank; `--answers` does the same of made-up
models that answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.evaluator.submissions.choices import (
    LETTERS,
    Choices,
    agreement_of_errors,
    are_nearly_same_choices,
)
from audio_compositionality.evaluator.submissions.copies import sketch_of
from audio_compositionality.evaluator.submissions.likeness import (
    Shape,
    are_nearly_same,
    difference_of_ranks,
    have_same_dimensions,
    same_dimensions,
)
from audio_compositionality.evaluator.submissions.rounded import RoundedEmbeddings

Floats = NDArray[np.floating]
Generator = np.random.Generator


def _noise(z: Floats, share: float, rng: Generator) -> Floats:
    """Each dimension with noise of a share of its standard deviation."""
    return z + share * z.std(axis=0) * rng.normal(size=z.shape)


def _even_noise(z: Floats, share: float, rng: Generator) -> Floats:
    """All dimensions with noise of a share of their root mean square standard deviation."""
    return z + share * np.sqrt(z.var(axis=0).mean()) * rng.normal(size=z.shape)


def _dropped(z: Floats, share: float, rng: Generator) -> Floats:
    kept = max(1, round((1 - share) * z.shape[1]))
    return z[:, np.sort(rng.choice(z.shape[1], kept, replace=False))]


def _doubled(z: Floats, share: float, rng: Generator) -> Floats:
    again = rng.choice(z.shape[1], max(1, round(share * z.shape[1])), replace=False)
    return np.concatenate([z, z[:, again]], axis=1)


def _added(z: Floats, share: float, rng: Generator) -> Floats:
    count = max(1, round(share * z.shape[1]))
    return np.concatenate([z, np.sqrt(z.var(axis=0).mean()) * rng.normal(size=(len(z), count))], axis=1)


def _moved(z: Floats, deviations: float, rng: Generator) -> Floats:
    """One row moved by so many standard deviations in all dimensions."""
    moved = z.copy()
    moved[rng.integers(len(z))] += deviations * z.std(axis=0)
    return moved


def _exchanged(z: Floats, share: float, rng: Generator) -> Floats:
    """A share of the rows exchanged, two by two."""
    exchanged = z.copy()
    count = max(1, round(share * len(z) / 2))
    places = rng.choice(len(z), 2 * count, replace=False).reshape(2, count)
    exchanged[places[0]], exchanged[places[1]] = z[places[1]], z[places[0]]
    return exchanged


def _rotated(z: Floats, _: float, rng: Generator) -> Floats:
    return z @ np.linalg.qr(rng.normal(size=(z.shape[1],) * 2))[0]


def _to_unit(z: Floats, _: float, rng: Generator) -> Floats:
    lengths = np.linalg.norm(z, axis=1, keepdims=True)
    return z / np.where(lengths > 0, lengths, 1)


_CHANGES: Mapping[str, Callable[[Floats, float, Generator], Floats]] = {
    "float16": lambda z, _, rng: (z / np.abs(z).max()).astype(np.float16).astype(np.float64),
    "scale": lambda z, factor, rng: factor * z,
    "shift": lambda z, deviations, rng: z + deviations * z.std() * rng.normal(size=z.shape[1]),
    "rotation": _rotated,
    "signs": lambda z, _, rng: z * rng.choice([-1, 1], size=z.shape[1]),
    "permuted dimensions": lambda z, _, rng: z[:, rng.permutation(z.shape[1])],
    "dropped dimensions": _dropped,
    "doubled dimensions": _doubled,
    "noise": _noise,
    "even noise": _even_noise,
    "added noise dimensions": _added,
    "one row moved": _moved,
    "rows to unit length": _to_unit,
    "rows exchanged": _exchanged,
}

_STRENGTHS: Mapping[str, Sequence[float]] = {
    "scale": (1e-3, 3.0, -7.0),
    "shift": (1.0, 100.0),
    "dropped dimensions": (0.05, 0.1, 0.25, 0.5),
    "doubled dimensions": (0.05, 0.1, 0.5, 1.0),
    "noise": (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5),
    "even noise": (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5),
    "added noise dimensions": (0.05, 0.1, 0.25, 0.5, 1.0),
    "one row moved": (3.0, 30.0, 1e4),
    "rows exchanged": (0.01, 0.02, 0.05),
}

MANIPULATIONS: tuple[tuple[str, float], ...] = tuple(
    (name, strength) for name in _CHANGES for strength in _STRENGTHS.get(name, (0.0,))
)
"""What is done to copies so that they look like another's: a name, and how strong it is, a share or a number of
standard deviations."""


def manipulated(embeddings: Floats, name: str, strength: float, seed: int) -> Floats:
    """Embeddings [clips, dim] changed by one of `MANIPULATIONS`; their order stays that of the clips."""
    return _CHANGES[name](embeddings.astype(np.float64), strength, np.random.default_rng([seed, len(name)]))
