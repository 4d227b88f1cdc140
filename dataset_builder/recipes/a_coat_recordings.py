"""Quadruples of scenes of recordings, in which the same recordings are added to two scenes (after arXiv 2603.13685)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.support.errors import InputError

from ..data import DatasetError, Pcm16, Row
from ..scenes.description import CITATION
from ..scenes.mixing import exact_clips
from ..scenes.pool import RecordingPool, Use
from ..scenes.recorded import RecordedRendering, RecordedSettings, check_texts, describe_placing, describe_recordings
from ..scenes.sources import random_generator
from ..scenes.transforms.base import Samples

if TYPE_CHECKING:
    from datasets import Features

    from ..sounds.entries import Sounds

CLIPS = ("A", "B", "C", "D")

PARTS = ("A", "C", "T")

_SIZES, _QUADRUPLES, _PLACES = 24, 25, 26
"""The random streams."""


@dataclass(frozen=True, kw_only=True)
class RecordedQuadrupleSettings(RecordedSettings):
    """Everything that decides the quadruples and their samples.

    Attributes:
        quadruples: how many.
        part_sources: most sources of each of A, C and T; a scene has at most twice as many.
        level_range: of a source, in decibels, from the lowest to the highest; it is drawn uniformly.

    Raises:
        InputError: see `RecordedSettings`.
    """

    eq_db: float = 0.0
    quadruples: int = 500
    part_sources: int = 2
    level_range: tuple[float, float] = (-12.0, 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = map(float, self.level_range)
        object.__setattr__(self, "level_range", (low, high))
        self._check("quadruples", self.quadruples, 1, 100_000)
        self._check("part_sources", self.part_sources, 1, 4)
        if not -40 <= low <= high <= 40:
            raise InputError(f"level_range is ({low:g}, {high:g}); it goes up, within -40 to 40 dB")


@dataclass(frozen=True)
class RecordedQuadruple:
    """A quadruple.

    Attributes:
        number: of the quadruple.
        recordings: numbers of those of A, of C and of T.
        gains: linear gain of each.
    """

    number: int
    recordings: Mapping[str, tuple[int, ...]]
    gains: Mapping[str, tuple[float, ...]]


class RenderedRecordedQuadruples(RecordedRendering[RecordedQuadrupleSettings]):
    """The quadruples of some settings and their sound; see `Rendering`."""

    @cached_property
    def quadruples(self) -> tuple[RecordedQuadruple, ...]:
        """The quadruples, in the order of `rows`."""
        return tuple(draw_quadruples(self.pool, self.settings))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(
            {
                "id": f"{RECIPE.name}-{quadruple.number:05d}",
                "split": "test",
                "metadata": {part: self._sources(numbers) for part, numbers in quadruple.recordings.items()},
                "gains": {part: list(gains) for part, gains in quadruple.gains.items()},
                "domain": self.settings.domain_name,
            }
            for quadruple in self.quadruples
        )

    def _sources(self, numbers: tuple[int, ...]) -> list[dict[str, str]]:
        pairs = zip(self.labels(numbers), self.ids(numbers), strict=True)
        return [{"label": label, "instance": instance} for label, instance in pairs]

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips A, B, C, D of a quadruple, each int16 [samples]."""
        quadruple = self.quadruples[index]
        a, c, t = (self._layer(quadruple, place) for place in range(len(PARTS)))
        return exact_clips([a, c, t], [(0,), (0, 2), (1,), (1, 2)])

    def _layer(self, quadruple: RecordedQuadruple, place: int) -> Samples:
        layer = np.zeros(self.settings.num_samples)
        part = PARTS[place]
        for n, (number, gain) in enumerate(zip(quadruple.recordings[part], quadruple.gains[part], strict=True)):
            layer += gain * self.placed(number, _PLACES, quadruple.number, place, n)
        return layer


def draw_quadruples(pool: RecordingPool, settings: RecordedQuadrupleSettings) -> Iterator[RecordedQuadruple]:
    """The quadruples of some settings, one after the other; further ones change none of those before.

    All sources of a quadruple have different labels. Labels are used as evenly as they can be, in T and in A and C, and
    so are their recordings and the numbers of sources. The random numbers of a quadruple depend on the seed and its
    number alone.

    Raises:
        DatasetError: there are too few labels.
    """
    needed = 3 * settings.part_sources
    count = len(pool.by_label)
    if count < needed:
        nearest = f": --set part_sources={count // 3}" if count >= 3 else "; 3 are the least (--set part_sources=1)"
        raise DatasetError(
            f"{pool.source} has {count} labels; {settings.part_sources} sources in each of A, C and T need "
            f"{needed}{nearest}"
        )
    use, in_parts = Use(), {"T": Counter[str](), "AC": Counter[str]()}
    for number in range(settings.quadruples):
        sizes = dict(zip(PARTS, _sizes(number, settings), strict=True))
        rng = random_generator(settings.seed, _QUADRUPLES, number)
        added = pool.draw_labels(sizes["T"], (), in_parts["T"], rng)
        beside = pool.draw_labels(sizes["A"] + sizes["C"], added, in_parts["AC"], rng)
        labels = {"A": beside[: sizes["A"]], "C": beside[sizes["A"] :], "T": added}
        levels = {part: rng.uniform(*settings.level_range, sizes[part]) for part in PARTS}
        yield RecordedQuadruple(
            number,
            {part: pool.draw_recordings(of_part, use, rng) for part, of_part in labels.items()},
            {part: tuple(float(10 ** (level / 20)) for level in levels[part]) for part in PARTS},
        )


def _sizes(number: int, settings: RecordedQuadrupleSettings) -> tuple[int, ...]:
    """How many sources A, C and T have: all combinations in turn, in an order that is drawn anew for each turn."""
    combinations: list[tuple[int, ...]] = list(product(range(1, settings.part_sources + 1), repeat=len(PARTS)))
    turn, place = divmod(number, len(combinations))
    order = random_generator(settings.seed, _SIZES, turn).permutation(len(combinations))
    return combinations[int(order[place])]


def _is_source(source: Any) -> bool:
    return isinstance(source, dict) and all(isinstance(source.get(key), str) for key in ("label", "instance"))


class _RecordedQuadruples:
    """The recipe; see `Recipe`."""

    name = "a_coat_recordings"
    version = 1
    splits = ("test",)
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, RecordedQuadrupleSettings]:
        """Settings by the name of a preset, of the timbres of the project's own voices."""
        return {"mini": RecordedQuadrupleSettings(quadruples=64), "full": RecordedQuadrupleSettings()}

    def of_recordings(
        self, settings: RecordedQuadrupleSettings, recordings: Sounds, requested: Mapping[str, Any]
    ) -> RecordedQuadrupleSettings:
        """Recordings in place of timbres; see `RecordedRecipe`."""
        return replace(settings, **{**requested, "recordings": recordings})

    def features(self, settings: RecordedQuadrupleSettings) -> Features:
        """``metadata`` and ``gains`` nest as those of the quadruples of synthetic scenes."""
        from datasets import Audio, Features, List, Value

        text = Value("string")
        return Features(
            {
                "id": text,
                **{name: Audio(sampling_rate=settings.sample_rate) for name in CLIPS},
                "metadata": {part: List({"label": text, "instance": text}) for part in PARTS},
                "gains": {part: List(Value("float64")) for part in PARTS},
                "domain": text,
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """A, B, C, D."""
        return CLIPS

    def render(self, settings: RecordedQuadrupleSettings) -> RenderedRecordedQuadruples:
        """Draw the rows; nothing is written."""
        return RenderedRecordedQuadruples.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row without the sources of A, C and T, or without their gains."""
        name = row["id"]
        for column in ("metadata", "gains"):
            if not isinstance(row.get(column), dict):
                raise DatasetError(f"row {name}: {column} is {row.get(column)!r}; it has those of A, C and T")
        for part in PARTS:
            sources, gains = (row[column].get(part) for column in ("metadata", "gains"))
            if not isinstance(sources, list) or not sources or not all(map(_is_source, sources)):
                raise DatasetError(
                    f"row {name}: the sources of {part} are {sources!r}; each has a label and an instance"
                )
            is_list = isinstance(gains, list) and all(isinstance(gain, float) and gain > 0 for gain in gains)
            if not is_list or len(gains) != len(sources):
                raise DatasetError(f"row {name}: the gains of {part} are {gains!r}; each source has one, above 0")
        check_texts(row, ("domain",))

    def describe(self, settings: RecordedQuadrupleSettings) -> str:
        """Markdown of the card."""
        low, high = settings.level_range
        most = settings.part_sources
        return f"""\
{settings.quadruples:,} quadruples A, B = A ∪ T, C, D = C ∪ T of scenes of recordings, after
*Evaluating Compositional Structure in Audio Representations*
([arXiv 2603.13685](https://arxiv.org/abs/2603.13685), ICASSP 2026): is adding the same sources to two scenes the same
step? T is the same recordings in B and in D, placed alike.

{describe_recordings(settings)} A, C and T have 1 to {most} sources each, all combinations equally often; all sources of
a quadruple have different labels, which are used as evenly as they can be (seed {settings.seed}).

| column | content |
|---|---|
| `id` | name of the row |
| `A`, `B`, `C`, `D` | clips: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `metadata` | the sources of A, C and T, each with `label` and `instance`, the name of the recording |
| `gains` | linear gain of each source |
| `domain` | what the recordings are |

{describe_placing(settings)} Then it is given a level that is drawn uniformly from {low:g} to {high:g} dB. The
four clips of a quadruple share one gain; A, C and T are rounded to 16 bits before they are added, so that B − A and
D − C are the same samples.

{CITATION}"""


RECIPE = _RecordedQuadruples()
