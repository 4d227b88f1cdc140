"""Two clips at exactly one level for each base: its sources at other times, and others that differ in one factor.

Whoever hears the factor and not the nuisance finds a copy of the base nearer to the first than to the second. Neither
the level tells them apart, since it is one, nor the samples: sources begin at other times than in the base, and the
polarity of both candidates is inverted for half of the bases, which turns every correlation with the samples round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .rows import draw_onsets, random_generator
from .scenes import Source
from .settings import SceneSettings

SAME = "same"
"""The candidate of the base's own sources."""

DIFFERING = ("timbre", "pitch", "rate")
"""What the other candidate of a scene differs in, by turns; a source that is only softer would be the same again, once
it has the same level."""

RECORDING = "recording"
"""What that of a recording differs in: it is another one."""

CANDIDATES = (SAME, *DIFFERING, RECORDING)

_DIFFERENT, _ONSETS = 14, 15
"""The random streams."""


@dataclass(frozen=True)
class OtherScene:
    """A scene that differs from another in one factor of its first source.

    Attributes:
        factor: of `DIFFERING`.
        sources: of it.
        own_onsets: first samples of the sources of the scene that it is compared with, drawn anew.
        onsets: of its own, the same shares of the periods.
    """

    factor: str
    sources: tuple[Source, ...]
    own_onsets: tuple[int, ...]
    onsets: tuple[int, ...]


def draw_other_scene(sources: tuple[Source, ...], settings: SceneSettings, number: int) -> OtherScene:
    """Another class of one factor of the first source, uniformly; no source is there twice where that can be avoided.

    Args:
        sources: of the scene.
        settings: of all scenes.
        number: of the base; factors take turns by it, alike among single sources and scenes of several.
    """
    rng = random_generator(settings.seed, _DIFFERENT, number)
    first, rest = sources[0], sources[1:]
    factor = DIFFERING[number // 2 % len(DIFFERING)]
    versions = [replace(first, **{factor: code}) for code in range(settings.num_classes)]
    versions.remove(first)
    versions = [source for source in versions if source not in rest] or versions
    different = (versions[int(rng.integers(len(versions)))], *rest)
    own_onsets, onsets = (
        draw_onsets(scene, settings, random_generator(settings.seed, _ONSETS, number)) for scene in (sources, different)
    )
    return OtherScene(factor, different, own_onsets, onsets)


def is_inverted(number: int) -> bool:
    """Whether the candidates of a base have inverted polarity: those of half, alike among single sources and others."""
    return number // 2 % 2 == 1
