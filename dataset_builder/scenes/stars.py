"""Stars of clips around a base, which differ from it in one factor of one source, and all single sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ..sounds.tones import ATTRIBUTES
from .sources import Layer, SceneSpec, Source, random_generator

STAR, CROSSED = KINDS = ("star", "crossed")

ONSET = "onset"
"""The factor of the clip whose onsets were redrawn."""

_TARGETS, _STARS, _CROSSED = 7, 8, 9
"""The random streams."""


@dataclass(frozen=True)
class FactorClip:
    """A clip as it is drawn.

    Attributes:
        id: of its row, behind the name of the recipe.
        block: name of its star; empty for a crossed clip.
        factor: what was changed of the star's base: an attribute of the target, or `ONSET`; empty where nothing was.
        sources: the target and those behind it.
        shares: onset of each source as a share of its period, in [0, 1).
    """

    id: str
    block: str
    factor: str
    sources: tuple[Source, ...]
    shares: tuple[float, ...]

    def layers(self, spec: SceneSpec) -> Sequence[Layer]:
        """The target and what is behind it, which are rounded to 16 bits before they are added: two clips of a star
        that differ in the target differ by the same samples as the two targets alone."""
        onsets = self.onsets(spec)
        return [(self.sources[part], onsets[part]) for part in (slice(1), slice(1, None))]

    def onsets(self, spec: SceneSpec) -> tuple[int, ...]:
        """First sample of each source."""
        return tuple(
            int(share * spec.periods[source.rate]) for share, source in zip(self.shares, self.sources, strict=True)
        )


def draw_stars(spec: SceneSpec, stars: int) -> Iterator[FactorClip]:
    """The clips of all stars: the base, every other class of each factor of the target, onsets redrawn.

    Targets are different from star to star. A star is the same in specs that differ in the number of stars alone.
    """
    classes = spec.num_classes
    codes = random_generator(spec.seed, _TARGETS).permutation(classes ** len(ATTRIBUTES))
    for number, code in enumerate(codes[:stars]):
        rng = random_generator(spec.seed, _STARS, number)
        target = Source.from_code(int(code), classes)
        versions = [
            (attribute, level, replace(target, **{attribute: level}))
            for attribute in ATTRIBUTES
            for level in range(classes)
            if level != getattr(target, attribute)
        ]
        background: list[Source] = []
        taken = {target, *(version for *_, version in versions)}
        count = int(rng.integers(spec.max_sources))
        while len(background) < count:
            source = Source.from_code(int(rng.integers(classes ** len(ATTRIBUTES))), classes)
            if source not in taken:
                taken.add(source)
                background.append(source)
        shares, redrawn = (tuple(map(float, rng.random(1 + count))) for _ in range(2))
        if spec.onset == "locked":
            shares = (0.0,) * len(shares)
        block = f"{STAR}-{number:05d}"
        yield FactorClip(f"{block}-base", block, "", (target, *background), shares)
        for attribute, level, version in versions:
            yield FactorClip(f"{block}-{attribute}-{level}", block, attribute, (version, *background), shares)
        yield FactorClip(f"{block}-{ONSET}", block, ONSET, (target, *background), redrawn)


def spread(classes: int, count: int) -> tuple[int, ...]:
    """So many of the classes 0..classes-1, with both ends, as evenly as they can be; halves are rounded up."""
    gaps = count - 1
    return tuple((2 * number * (classes - 1) + gaps) // (2 * gaps) for number in range(count))


def draw_crossed(spec: SceneSpec, kept: Mapping[str, Sequence[int]]) -> Iterator[FactorClip]:
    """Single sources of all combinations of the classes that are kept of each attribute.

    A source has one onset, whichever others are.
    """
    classes = spec.num_classes
    shares = random_generator(spec.seed, _CROSSED).random(classes ** len(ATTRIBUTES))
    for number, levels in enumerate(product(*(kept[attribute] for attribute in ATTRIBUTES))):
        source = Source(*levels)
        share = 0.0 if spec.onset == "locked" else float(shares[source.code(classes)])
        yield FactorClip(f"{CROSSED}-{number:05d}", "", "", (source,), (share,))
