"""Similarities of audio and texts: ties, expected ranks, and intervals of means."""

import math
from typing import Any

import numpy as np

from .arrays import Floats, Ints, read_matrix, unit_rows

NEAR = 1e-6
"""Similarities that differ by at most this are tied: float32 rounds cosines by about 1e-7."""
NORMAL = 1.959963984540054  # the .975 quantile of the normal distribution
LEAST_VARIANCE = 1e-15  # a variance of scores in [0, 1] below this is rounding


def unit_embeddings(name: str, x: Any) -> Floats:
    """Return the rows of an input at length 1; rows of zeros stay zero."""
    array = read_matrix(name, x)
    # Scale by powers of two, which is exact, so that no square underflows.
    exponents = np.frexp(np.abs(array).max(axis=1))[1]
    return unit_rows(np.ldexp(array, -exponents[:, None]))


def check_given(metric: str, audio: Any, text: Any, similarity: Any, **labels: Any) -> None:
    """Raise ValueError if both similarities and embeddings are given, or an input that the metric needs is missing."""
    embeddings = {"audio": audio, "text": text}
    if similarity is not None:
        beside = [name for name, x in embeddings.items() if x is not None]
        if beside:
            raise ValueError(f"similarity is given together with {', '.join(beside)}. Give one or the other.")
        embeddings = {"similarity": similarity}
    inputs = embeddings | labels
    missing = [name for name, x in inputs.items() if x is None]
    if missing:
        given = ", ".join(name for name in inputs if name not in missing) or "nothing"
        raise ValueError(f"{metric} got {given} without {', '.join(missing)}.")


def check_one_space(audio: Floats, text: Floats) -> None:
    """Raise ValueError if embeddings [n, dim] of audio and of text differ in dim."""
    if audio.shape[1] != text.shape[1]:
        raise ValueError(
            f"audio has {audio.shape[1]} dimensions and text {text.shape[1]}: the towers do not share a space."
        )


def read_keys(name: str, x: Any) -> list[Any]:
    """Return the entries of an array, a tensor or a sequence of strings or whole numbers. Raises ValueError."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    entries = x.tolist() if hasattr(x, "tolist") else list(x) if hasattr(x, "__iter__") else x
    for place, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        number = isinstance(entry, int | float | np.integer | np.floating) and not isinstance(entry, bool)
        if not isinstance(entry, str) and not (number and float(entry).is_integer()):
            raise ValueError(f"{name} must be strings or integers; row {place} has {entry!r}.")
    if not isinstance(entries, list):
        raise ValueError(f"{name} must be a list; got {entries!r}.")
    return [entry if isinstance(entry, str) else int(entry) for entry in entries]


def hit_chance(places: int, tied: int, sought: int) -> float:
    """Return the probability that a target is in the first places, over all orders of tied candidates."""
    drawn = min(max(places, 0), tied)
    draws = math.comb(tied, drawn)
    return (draws - math.comb(tied - sought, drawn)) / draws


def expected_precisions(starts: Ints, sizes: Ints, counts: Ints) -> Floats:
    """Return, per place, the mean over orders of ties of the precision there times whether it holds a target, [c]."""
    group = np.repeat(np.arange(len(starts)), sizes)
    place = np.arange(len(group))
    # The expected number of the group's other targets before a place is proportional to its rank in the group.
    earlier = (np.cumsum(counts) - counts)[group] + (place - starts[group]) * ((counts - 1) / np.maximum(sizes - 1, 1))[
        group
    ]
    precisions: Floats = (counts / sizes)[group] * (earlier + 1) / (place + 1)
    return precisions


def tie_starts(values: Floats) -> Ints:
    """Return the starts of the groups of ties in descending values: a group has all values within NEAR of its first."""
    starts = np.flatnonzero(np.diff(values, prepend=np.inf) < -NEAR)
    ends, risen, more = np.append(starts[1:], len(values)), -values, list[int]()
    for start, end in np.stack([starts, ends])[:, values[starts] - values[ends - 1] > NEAR].T.tolist():
        # No single gap exceeds NEAR, but together they may.
        place = start
        while (place := place + int(np.searchsorted(risen[place:end], risen[place] + NEAR, side="right"))) < end:
            more.append(place)
    return np.sort(np.concatenate([starts, np.array(more, np.int64)]))


def won_shares(steps: Floats) -> Floats:
    """Return 1 for a difference of similarities above NEAR, 1/2 for a tie within NEAR, else 0."""
    shares: Floats = np.where(steps > NEAR, 1.0, np.where(steps >= -NEAR, 0.5, 0.0))
    return shares


def mean_interval(scores: Floats, clusters: Ints | None = None) -> list[float]:
    """Return Wilson's 95 % interval of the mean p of scores in 0…1.

    The size is the effective one, p(1 − p) over the variance of the mean.
    """
    n, p = len(scores), float(scores.mean())
    sums = scores - p if clusters is None else np.bincount(clusters, scores - p)
    count = n if clusters is None else len(np.unique(clusters))
    # For independent scores of 0 or 1, the size is n.
    variance = float(np.square(sums).sum()) / n**2 * (n - 1) / n * count / max(count - 1, 1)
    size = p * (1 - p) / variance if variance > LEAST_VARIANCE and 0 < p < 1 else count
    z = NORMAL
    if clusters is not None and count > 1:  # Student's quantile: Abramowitz and Stegun, 26.7.5
        z += (z**3 + z) / (4 * (count - 1)) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * (count - 1) ** 2)
    centre = (p + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * math.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return [max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))]
