"""Scenes that transforms are applied to: by turns a single source, whose labels are all known, and a few together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from .rows import draw_onsets, random_generator
from .scenes import ATTRIBUTES, Source
from .settings import SceneSettings

FOLDS = 5

_SINGLES, _TOGETHER, _ONSETS = 10, 11, 12
"""The random streams."""


@dataclass(frozen=True)
class BaseScene:
    """A scene.

    Attributes:
        sources: one or more.
        onsets: first sample of each.
        fold: 0 to 4, as often among the single sources as among the others.
    """

    sources: tuple[Source, ...]
    onsets: tuple[int, ...]
    fold: int


def draw_bases(settings: SceneSettings, total: int, further: int = 0) -> Iterator[BaseScene]:
    """So many scenes, no two of the same sources: single sources at even places, 2 to N sources at odd ones.

    Then `further` single sources. A scene depends on the seed and on those before it alone: a longer list begins with
    the shorter one.
    """
    singles, together = _draw_singles(settings), _draw_together(settings)
    for number in range(total + further):
        single = number >= total or number % 2 == 0
        of_its_kind = number // 2 if number < total else number - total // 2
        sources = next(singles if single else together)
        onsets = draw_onsets(sources, settings, random_generator(settings.seed, _ONSETS, number))
        yield BaseScene(sources, onsets, of_its_kind % FOLDS)


def _draw_singles(settings: SceneSettings) -> Iterator[tuple[Source, ...]]:
    """Single sources, K at a time, among which each class of each attribute occurs once."""
    drawn: set[Source] = set()
    for block in count():
        rng = random_generator(settings.seed, _SINGLES, block)
        while True:
            levels = zip(*(rng.permutation(settings.num_classes).tolist() for _ in ATTRIBUTES), strict=True)
            sources = [Source(*classes) for classes in levels]
            if drawn.isdisjoint(sources):
                break
        drawn.update(sources)
        yield from ((source,) for source in sources)


def _draw_together(settings: SceneSettings) -> Iterator[tuple[Source, ...]]:
    """Sets of 2 to N sources, each number as often as the others on average, each source uniform on the K^4."""
    drawn: set[frozenset[Source]] = set()
    for number in count():
        rng = random_generator(settings.seed, _TOGETHER, number)
        size = int(rng.integers(2, settings.max_sources + 1))
        while True:
            codes = rng.integers(settings.num_classes ** len(ATTRIBUTES), size=size)
            sources = tuple(Source.from_code(int(code), settings.num_classes) for code in codes)
            if len(set(sources)) == size and frozenset(sources) not in drawn:
                break
        drawn.add(frozenset(sources))
        yield sources


def most_singles(settings: SceneSettings) -> int:
    """How many single sources can be drawn, K at a time, in a few hundred tries for the last of them: half at most."""
    sources: int = settings.num_classes ** len(ATTRIBUTES)
    return int(sources * min(0.5, 1 - 2 ** (-8 / settings.num_classes)))
