"""Clips and what signal processing makes of them, by one number each (after arXiv 2505.06224)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..columns import AUDIO, NUMBER, TEXT, WHOLE, Column
from ..data import DatasetError, Pcm16, Row
from ..scenes.bases import CANDIDATES, PAPER_RANGES, QUARTERS, SAME, Base, TransformSpec, is_inverted
from ..scenes.orbits import Copy, RecentOrbits, base_length, middle_of, reach_of, render_candidates, render_orbit
from ..scenes.sources import LEVELS, SOURCE_LABELS, SOURCES, VALUES, random_generator
from ..scenes.transforms import ParameterRange, Samples, Transform
from ..sounds.entries import Sounds
from ..sounds.splits import FOLDS
from .base import Drawn, Recipe, Rendering

_COPIES = 13
"""The random stream."""


@dataclass(frozen=True)
class Orbit:
    """A base, its copies and its candidates.

    Attributes:
        number: of the base.
        base: the clip as it is, with its candidates.
        copies: none where it has none.
    """

    number: int
    base: Base
    copies: tuple[Copy, ...]

    def rows(self, spec: TransformSpec) -> Iterator[Row]:
        """The base, its copies, its candidates."""
        yield _row(self.base)
        for copy in self.copies:
            of_copy = {
                "transform": copy.transform.name,
                "parameter": copy.parameter,
                "unit": copy.transform.unit,
                "scaled": copy.scaled,
                "quarter": copy.number // spec.per_quarter,
            }
            yield _row(self.base, f"{copy.transform.name}-{copy.number}", of_copy)
        for kind, candidate in self.base.candidates:
            yield _row(candidate, kind, {"candidate": kind})

    def render(self, spec: TransformSpec) -> list[Pcm16]:
        """Their clips, in the same order.

        Raises:
            DatasetError: one is silent, or too short: names the base.
        """
        rate, reach = spec.clip_rate, reach_of(spec.spans)

        def length_of(sound: Samples) -> int:
            return base_length(sound, rate, spec.duration, reach)

        try:
            sound = self.base.sound()
            orbit = render_orbit(sound, length_of(sound), rate, self.copies, spec.headroom)
            if not self.base.candidates:
                return orbit
            sounds = [candidate.sound() for _, candidate in self.base.candidates]
            # Of sounds of two lengths the shorter one is that of both, or it would tell them apart.
            length = min(map(length_of, sounds))
            clips = [middle_of(one, length) for one in sounds]
            return orbit + render_candidates(clips, rate, orbit[0], inverted=is_inverted(self.number))
        except DatasetError as error:
            raise DatasetError(f"{self.base.title} {error}") from error


def _row(base: Base, what: str = "base", changes: Mapping[str, Any] | None = None) -> Row:
    row = {
        "id": f"{base.name}-{what}",
        "base": base.name,
        "transform": "",
        "candidate": "",
        "parameter": None,
        "unit": "",
        "scaled": None,
        "quarter": -1,
        "fold": base.fold,
    }
    return {**row, **(changes or {}), **base.said}


def draw_copies(base: Base, spec: TransformSpec) -> Iterator[Copy]:
    """The copies of a base: of each transform in each quarter of its range, uniformly.

    The random numbers of one depend on nothing but the seed, its base, transform and number.
    """
    for transform, span in spec.spans:
        key = int(hashlib.sha256(transform.name.encode()).hexdigest()[:8], 16)
        for number in range(QUARTERS * spec.per_quarter):
            generator = partial(random_generator, spec.seed, _COPIES, base.key, key, number)
            scaled = (number // spec.per_quarter + generator().random()) / QUARTERS
            yield Copy(transform, span.value(scaled), partial(_after_parameter, generator), number, scaled)


def _after_parameter(generator: partial[np.random.Generator]) -> np.random.Generator:
    rng = generator()
    rng.random()
    return rng


class Transforms(Recipe[TransformSpec]):
    """Clips, their copies after transforms, and candidates to compare these with."""

    name = "transforms"
    version = 2
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, TransformSpec]:
        """Specs by the name of a preset; those of ``paper-`` have the paper's ranges and transforms."""
        paper: dict[str, Any] = {"transforms": ("noise", "reverb"), "ranges": PAPER_RANGES}
        mini: dict[str, Any] = {"bases": 48, "untransformed": 112}
        return {
            "mini": TransformSpec(**mini),
            "full": TransformSpec(),
            "paper-mini": TransformSpec(**mini, **paper),
            "paper-full": TransformSpec(**paper),
        }

    def of_sounds(self, spec: TransformSpec, sounds: Sounds, requested: Mapping[str, Any]) -> TransformSpec:
        """Sounds in place of scenes: where the preset states ranges, all transforms that these name.

        The paper's are four, of which scenes allow two.
        """
        usual = tuple(name for name, _ in spec.ranges) or spec.transforms
        return super().of_sounds(spec, sounds, {"transforms": usual, **requested})

    def columns(self, spec: TransformSpec) -> Sequence[Column]:
        """What was done to which clip; null where there is nothing to say."""
        return (
            Column("id", TEXT, "name of the row"),
            Column("audio", AUDIO, "the clip"),
            Column("base", TEXT, "name of the clip that was transformed; its own where there are no copies"),
            Column("transform", TEXT, "what was done; empty for a base and for candidates"),
            Column(
                "candidate",
                TEXT,
                f"empty for bases and copies; `{SAME}`, or what the clip differs from its base in",
                choices=("", *CANDIDATES),
            ),
            Column("parameter", NUMBER, "by how much; null for the base", optional=True),
            Column("unit", TEXT, "of the parameter"),
            Column("scaled", NUMBER, "place of the parameter in its range, 0 to 1; null for the base", optional=True),
            Column("quarter", WHOLE, "of the range, 0 to 3; -1 for the base", choices=(-1, *range(QUARTERS))),
            Column(
                "fold",
                WHOLE,
                f"0 to {FOLDS - 1}: a base and its copies are in one, and so are the recordings of a group",
                choices=tuple(range(FOLDS)),
            ),
            Column("recording", TEXT, "name of a recording; empty for scenes"),
            Column("label", TEXT, "of a recording"),
            Column("number", NUMBER, "the label of a recording where labels are numbers, else null", optional=True),
            Column("group", TEXT, "of a recording"),
            Column("metadata", SOURCES, f"the sources: {SOURCE_LABELS}; empty for recordings"),
            Column("levels", LEVELS, "class of each factor, from 0, of a single source; else null", optional=True),
            Column(
                "values",
                VALUES,
                "`pitch` as a MIDI note, `rate` in Hz, `amplitude` in dB, of a single source; else null",
                optional=True,
            ),
        )

    def render(self, spec: TransformSpec) -> Rendering:
        """Draw the rows; nothing is written.

        Raises:
            InputError: a transform needs a package that is not there.
        """
        for transform, _ in spec.spans:
            transform.check_available()
        return super().render(spec)

    def draw(self, spec: TransformSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Each base, its copies and its candidates, then the clips without copies."""
        orbits: list[Orbit] = []
        rendered = RecentOrbits(lambda number: orbits[number].render(spec))

        def clip(number: int, place: int) -> Sequence[Pcm16]:
            return (rendered[number][place],)

        for number, base in enumerate(spec.material.draw()):
            copies = tuple(draw_copies(base, spec)) if base.candidates else ()
            orbits.append(Orbit(number, base, copies))
            for place, row in enumerate(orbits[-1].rows(spec)):
                yield Drawn(row, partial(clip, number, place))

    def sample_rate(self, spec: TransformSpec) -> int:
        """That of the sounds, where all have one."""
        return spec.clip_rate

    def check_row(self, row: Row) -> None:
        """Refuse a row that does not say what was done to which clip."""
        super().check_row(row)
        name, copy = row["id"], bool(row["transform"])
        if copy and row["candidate"]:
            raise DatasetError(f"row {name}: candidate is {row['candidate']!r}; it is empty where there is a transform")
        for column in ("parameter", "scaled"):
            if (row[column] is not None) != copy:
                raise DatasetError(f"row {name}: {column} is {row[column]!r}; a copy has a number, a base none")
        if (row["quarter"] >= 0) != copy:
            raise DatasetError(f"row {name}: quarter is {row['quarter']}; it is 0 to 3, and -1 for a base")

    def card(self, spec: TransformSpec) -> Mapping[str, Any]:
        """The transforms with their ranges."""
        spans = [(transform, _range_text(transform, span)) for transform, span in spec.spans]
        levelled = [f"`{transform.name}`" for transform, _ in spec.spans if transform.keeps_level]
        return {"spans": spans, "levelled": levelled, "draws": QUARTERS * spec.per_quarter}


def _range_text(transform: Transform, span: ParameterRange) -> str:
    ends = " to ".join(f"{end:,.10g}".replace("-", "−") for end in (span.low, span.high))
    return f"{ends} {transform.unit}".strip() + (", logarithmic" if span.scale == "log" else "")


RECIPE = Transforms()
