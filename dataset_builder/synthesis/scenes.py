"""Sources, scenes and quadruples, and the sampling of candidates.

Paper (arXiv 2603.13685): section 3.1 defines sources and scenes, 3.2 quadruples, section 4.1 the candidate pools.

A source is one class of each attribute. For arithmetic on many candidates it has a *code*, the mixed-radix
number ``((timbre * K + pitch) * K + rate) * K + amplitude``; a set of sources is a row of codes in increasing
order, padded with ``EMPTY`` at its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

ATTRIBUTES = ("timbre", "pitch", "rate", "amplitude")
EMPTY = -1

Codes = NDArray[np.int32]


@dataclass(frozen=True, order=True)
class Source:
    """One sound source: its class of each attribute, integers in 0..K-1."""

    timbre: int
    pitch: int
    rate: int
    amplitude: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0:
                raise InputError(f"{field.name} is {value}; a class is an integer from 0 to K-1")

    @classmethod
    def from_code(cls, code: int, num_classes: int) -> Source:
        """The source whose code is ``code`` when each attribute has ``num_classes`` classes."""
        if not 0 <= code < num_classes ** len(ATTRIBUTES):
            raise InputError(f"code is {code}; with K = {num_classes} codes run from 0 to K^4-1")
        digits = []
        for _ in ATTRIBUTES:
            code, digit = divmod(code, num_classes)
            digits.append(digit)
        return cls(*digits[::-1])

    def code(self, num_classes: int) -> int:
        """The source's code when each attribute has ``num_classes`` classes."""
        code = 0
        # No `astuple`, which takes longer than all the rest: drawing items asks for the codes of many sources.
        for digit in (self.timbre, self.pitch, self.rate, self.amplitude):
            if digit >= num_classes:
                raise InputError(f"{self} has a class of {num_classes} or more; classes run from 0 to K-1")
            code = code * num_classes + digit
        return code


def _check_onsets(name: str, sources: tuple[Source, ...], onsets: tuple[int, ...]) -> None:
    if not sources:
        raise InputError(f"{name} has no source; a set of sources has at least one")
    if len(set(sources)) != len(sources):
        raise InputError(f"{name} holds a source twice: {sources}; no two sources of a scene are the same")
    if len(onsets) != len(sources):
        raise InputError(f"{name} has {len(sources)} sources but {len(onsets)} onsets")


@dataclass(frozen=True)
class Scene:
    """Sources that sound together (paper, section 3.1) and the sample at which each one starts.

    The identity of a scene is its set of sources: ``key`` leaves the onsets out.
    """

    id: str
    split: str
    sources: tuple[Source, ...]
    onsets: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_onsets(self.id, self.sources, self.onsets)

    @property
    def key(self) -> frozenset[Source]:
        """The set of sources: equal for scenes that differ in nothing but onsets or order."""
        return frozenset(self.sources)


@dataclass(frozen=True)
class Quadruple:
    """Base scenes A and C and the added sources T: the scenes A, B = A ∪ T, C, D = C ∪ T (paper, section 3.2).

    A source of A sounds from the same onset in A and in B, a source of T from the same onset in B and in D.
    """

    id: str
    a: tuple[Source, ...]
    c: tuple[Source, ...]
    t: tuple[Source, ...]
    a_onsets: tuple[int, ...]
    c_onsets: tuple[int, ...]
    t_onsets: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_onsets(f"{self.id} A", self.a, self.a_onsets)
        _check_onsets(f"{self.id} C", self.c, self.c_onsets)
        _check_onsets(f"{self.id} T", self.t, self.t_onsets)
        for name, base in (("A", self.a), ("C", self.c)):
            if set(base) & set(self.t):
                raise InputError(f"{self.id}: {name} and T share a source; T adds sources that {name} lacks")
        if set(self.a) == set(self.c):
            raise InputError(f"{self.id}: A and C are the same scene; the step would be compared with itself")


def count_scenes(num_classes: int, max_sources: int) -> int:
    """Number of different scenes of 1 to ``max_sources`` of the K^4 sources: Σ C(K^4, n)."""
    return sum(math.comb(num_classes ** len(ATTRIBUTES), n) for n in range(1, max_sources + 1))


def sample_scenes(rng: np.random.Generator, count: int, num_classes: int, max_sources: int) -> Codes:
    """Draw ``count`` different candidate scenes (paper, section 4.1).

    The number of sources is uniform on 1..max_sources, a source uniform on the K^4; a scene with a repeated
    source and a scene that was drawn before are drawn again. There are only K^4 scenes of one source (4,096
    for K = 8), so a pool of 150,000 exhausts them: practically all are in it (2.7 % of the pool), and what they
    leave of their quarter goes to the other sizes in equal parts (32.4 % each).

    Returns int32 codes [count, max_sources], rows in increasing order padded with EMPTY.
    Raises InputError where fewer than twice ``count`` scenes exist.
    """
    available = count_scenes(num_classes, max_sources)
    if 2 * count > available:
        raise InputError(
            f"{count:,} candidate scenes were asked for, but K = {num_classes} classes and up to {max_sources} "
            f"sources make {available:,} scenes; a pool may hold at most half of them"
        )

    def draw(n: int) -> Codes:
        sizes = rng.integers(1, max_sources + 1, n)
        codes = rng.integers(0, num_classes ** len(ATTRIBUTES), (n, max_sources), dtype=np.int32)
        return _as_sets(codes, sizes)

    return _distinct(draw, count)


def sample_quadruples(rng: np.random.Generator, count: int, num_classes: int, max_sources: int) -> Codes:
    """Draw ``count`` different candidate quadruples (paper, sections 3.2 and 4.1).

    |T| is uniform on 1..N-1, then |A| and |C| independently uniform on 1..N-|T|. A quadruple in which A and T
    or C and T share a source, or in which A = C, is drawn again, as is one drawn before; (A, C, T) and
    (C, A, T) compare the same two steps and count as the same.

    Returns int32 codes [count, 3, max_sources - 1], the sets A, C, T in this order.
    Raises InputError where the pool could not plausibly be filled.
    """
    available = count_scenes(num_classes, max_sources) ** 2
    if 100 * count > available:
        raise InputError(
            f"{count:,} candidate quadruples were asked for, but K = {num_classes} classes and up to "
            f"{max_sources} sources make about {available:,}; a pool may hold at most a hundredth of them"
        )
    width = max_sources - 1

    def draw(n: int) -> Codes:
        t_size = rng.integers(1, max_sources, n)
        sizes = np.stack(
            [1 + rng.integers(0, max_sources - t_size), 1 + rng.integers(0, max_sources - t_size), t_size], 1
        )
        codes = rng.integers(0, num_classes ** len(ATTRIBUTES), (n, 3, width), dtype=np.int32)
        sets = _as_sets(codes.reshape(-1, width), sizes.reshape(-1)).reshape(n, 3, width)
        a, c, t = sets[:, 0], sets[:, 1], sets[:, 2]
        valid = (sets[:, :, 0] != EMPTY).all(axis=1) & ~_share(a, t) & ~_share(c, t) & (a != c).any(axis=1)
        swap = _lexicographically_after(a, c)
        sets[swap] = sets[swap][:, [1, 0, 2]]
        sets[~valid] = EMPTY
        return sets.reshape(n, 3 * width)

    candidates = _distinct(draw, count).reshape(count, 3, width)
    # The order of A and C was fixed only to recognise repeats: give it back its chance.
    swap = rng.random(count) < 0.5
    candidates[swap] = candidates[swap][:, [1, 0, 2]]
    return candidates


def _as_sets(codes: Codes, sizes: NDArray[np.int64]) -> Codes:
    """Keep the first ``sizes`` codes of each row, in increasing order; a row with a repeat becomes all EMPTY."""
    largest = np.iinfo(np.int32).max
    kept = np.where(np.arange(codes.shape[1]) < sizes[:, None], codes, largest)
    kept.sort(axis=1)
    repeated = ((kept[:, 1:] == kept[:, :-1]) & (kept[:, 1:] != largest)).any(axis=1)
    kept[kept == largest] = EMPTY
    kept[repeated] = EMPTY
    return kept.astype(np.int32)


def _share(x: Codes, y: Codes) -> NDArray[np.bool_]:
    equal = (x[:, :, None] == y[:, None, :]) & (x[:, :, None] != EMPTY)
    return np.asarray(equal.any(axis=(1, 2)))


def _lexicographically_after(x: Codes, y: Codes) -> NDArray[np.bool_]:
    """Whether row x comes after row y in lexicographic order."""
    first = (x != y).argmax(axis=1)
    rows = np.arange(len(x))
    return np.asarray(x[rows, first] > y[rows, first])


def _distinct(draw: Any, count: int) -> Codes:
    """The first ``count`` different rows of repeated draws; rows that start with EMPTY are refused draws."""
    rows = draw(count)
    while True:
        rows = rows[rows[:, 0] != EMPTY]
        _, first = np.unique(rows, axis=0, return_index=True)
        rows = rows[np.sort(first)]
        if len(rows) >= count:
            return np.ascontiguousarray(rows[:count])
        rows = np.concatenate([rows, draw(count)])
