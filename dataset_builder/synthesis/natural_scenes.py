"""Scenes of recordings: expressions laid out in time with what slices there are, their events, and their sound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from ..data import Pcm16
from ..language.categories import tables_digest
from ..language.expressions import Expression, Leaf, Then, time_line
from ..language.templates import language_digest
from ..recordings.protocol import Recordings
from .instances import PEAK
from .natural import concatenated, fades_of, looped, overlaid
from .natural_pool import LONGEST_SLICE, SHORTEST_SLICE, Slice, SlicePool
from .recorded_settings import check_setting
from .rendering import SharedRendering
from .transforms.base import Samples


@dataclass(frozen=True, kw_only=True)
class NaturalSettings:
    """What decides captioned scenes of recordings.

    Attributes:
        recordings: with labels, two files of each or more.
        seed: seed of every random choice, from 0 to 2^63 - 1.
        duration: seconds of a clip; what is not filled is silent.
        sample_rate: Hz of every clip.
        domain: what the recordings are, in a word.

    Raises:
        InputError: a value out of its range.
    """

    recordings: Recordings = field(repr=False)
    seed: int = 0
    duration: float = 10.0
    sample_rate: int = 32_000
    domain: str = ""

    def __post_init__(self) -> None:
        self._check("seed", self.seed, 0, 2**63 - 1)
        self._check("duration", self.duration, 4 * SHORTEST_SLICE, 60)
        self._check("sample_rate", self.sample_rate, 8_000, 192_000)

    _check = staticmethod(check_setting)

    @property
    def num_samples(self) -> int:
        """Samples of a clip."""
        return round(self.duration * self.sample_rate)

    @property
    def domain_name(self) -> str:
        """The domain; ``recordings`` where none is given."""
        return self.domain or "recordings"

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; of the recordings the fingerprint."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recordings"}
        tables = {"language": language_digest(), "tables": tables_digest()}
        return {**values, **tables, "recordings": self.recordings.fingerprint}


@dataclass(frozen=True)
class Placed:
    """A part of a scene in time.

    Attributes:
        expression: what is heard.
        start: first sample.
        length: samples.
        parts: of a sequence or an overlay.
        fades: samples in which each two neighbours of a sequence overlap.
    """

    expression: Expression
    start: int
    length: int
    parts: tuple[Placed, ...] = ()
    fades: tuple[int, ...] = ()


def place(expression: Expression, lengths: Sequence[int], length: int | None = None) -> Placed:
    """Lay out an expression.

    What sounds together lasts as long as the longest of it: shorter slices are repeated, nothing is cut.

    Args:
        expression: any.
        lengths: of the slice of each leaf, in samples.
        length: of all, not less than what it lasts by itself; by default that.
    """
    sized = _sized(expression, iter(lengths))
    return _fitted(sized, 0, sized.length if length is None else length)


def _sized(expression: Expression, lengths: Iterator[int]) -> Placed:
    """How long each part lasts by itself."""
    if isinstance(expression, Leaf):
        return Placed(expression, 0, next(lengths))
    parts = tuple(_sized(part, lengths) for part in expression.operands)
    natural = [part.length for part in parts]
    length = sum(natural) - sum(fades_of(natural)) if isinstance(expression, Then) else max(natural)
    return Placed(expression, 0, length, parts)


def _fitted(sized: Placed, start: int, length: int) -> Placed:
    if not isinstance(sized.expression, Then):
        parts = tuple(_fitted(part, start, length) for part in sized.parts)
        return Placed(sized.expression, start, length, parts)
    lengths = [round(part.length * length / sized.length) for part in sized.parts]
    fades = fades_of(lengths)
    # The longest takes what rounding left.
    lengths[lengths.index(max(lengths))] += length - sum(lengths) + sum(fades)
    steps = [of_part - fade for of_part, fade in zip(lengths, [*fades, 0], strict=True)]
    starts = accumulate(steps[:-1], initial=start)
    fitted = (_fitted(*one) for one in zip(sized.parts, starts, lengths, strict=True))
    return Placed(sized.expression, start, length, tuple(fitted), tuple(fades))


def heard(placed: Placed) -> list[tuple[int, int]]:
    """When each leaf is heard, in samples: of a crossfade each of the two has half."""
    return list(_heard(placed, placed.start, placed.start + placed.length))


def _heard(placed: Placed, first: int, last: int) -> Iterator[tuple[int, int]]:
    if isinstance(placed.expression, Leaf):
        yield max(placed.start, first), min(placed.start + placed.length, last)
        return
    if not isinstance(placed.expression, Then):
        for part in placed.parts:
            yield from _heard(part, first, last)
        return
    cuts = [part.start + fade // 2 for part, fade in zip(placed.parts[1:], placed.fades, strict=True)]
    for part, begin, end in zip(placed.parts, [first, *cuts], [*cuts, last], strict=True):
        yield from _heard(part, max(begin, first), min(end, last))


Settings = TypeVar("Settings", bound=NaturalSettings)


class NaturalRendering(SharedRendering[Settings]):
    """A rendering of scenes of recordings; a subclass adds rows and clips, see `Rendering`."""

    @cached_property
    def pool(self) -> SlicePool:
        """The recordings as slices."""
        return SlicePool(self.settings.recordings, self.settings.sample_rate)

    def budgets(self, expression: Expression) -> list[int]:
        """Most samples of the slice of each leaf: sequences divide the time of a clip evenly."""
        spans = time_line(expression, (0, self.settings.num_samples), 0, lambda count: [1.0] * count)
        return [min(stop - start, round(LONGEST_SLICE * self.sample_rate)) for start, stop in spans]

    def lengths(self, slices: Sequence[Slice]) -> list[int]:
        """Samples that each slice lasts in a clip, those that are repeated to be heard long enough among them."""
        return [max(part.length, round(SHORTEST_SLICE * self.sample_rate)) for part in slices]

    def event(self, label: str, attributes: Sequence[str], times: tuple[int, int], part: Slice) -> dict[str, Any]:
        """An event as a row has it."""
        start, stop = (sample / self.sample_rate for sample in times)
        return {
            "label": label,
            "attributes": list(attributes),
            "start": start,
            "stop": stop,
            "file": self.pool.name(part.number),
        }

    def mixed(self, scenes: Sequence[tuple[Placed, Sequence[Slice]]]) -> list[Pcm16]:
        """Clips of one item, each int16 [samples], under one gain that brings the largest of all samples to `PEAK`."""
        sounds = {part: self.pool.samples(part) for _, slices in scenes for part in slices}
        clips = [_sound(placed, iter([sounds[part] for part in slices]), self.sample_rate) for placed, slices in scenes]
        gain = PEAK * 2**15 / max(float(np.abs(clip).max()) for clip in clips)
        total = self.settings.num_samples
        return [np.pad(np.rint(clip * gain), (0, total - len(clip))).astype(np.int16) for clip in clips]


def _sound(placed: Placed, slices: Iterator[Samples], rate: int) -> Samples:
    if isinstance(placed.expression, Leaf):
        return looped(next(slices), placed.length)
    parts = [_sound(part, slices, rate) for part in placed.parts]
    return concatenated(parts, placed.fades) if isinstance(placed.expression, Then) else overlaid(parts, rate)
