"""Clips that differ in one factor of one source, and single sources of all combinations (after arXiv 2505.06224)."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError

from ..data import DatasetError, Pcm16, Row
from ..scenes.description import CITATION, describe_sources
from ..scenes.rendering import SceneRendering
from ..scenes.sources import (
    ATTRIBUTES,
    SceneSettings,
    Source,
    check_sources,
    gains_of,
    labels_of,
    random_generator,
    source_features,
)

if TYPE_CHECKING:
    from datasets import Features

STAR, CROSSED = KINDS = ("star", "crossed")

ONSET = "onset"
"""The factor of the clip whose onsets were redrawn."""

VALUED = ("pitch", "rate", "amplitude")
"""The factors whose classes are numbers."""

_TARGETS, _STARS, _CROSSED, _LEVELS = 7, 8, 9, 10
"""The random streams."""

NEAREST, FARTHEST = 1 / 6, 1 / 3
"""How far, in widths of a bin, the levels of a draw of their own lie from the centres of the bins."""


@dataclass(frozen=True, kw_only=True)
class FactorSettings(SceneSettings):
    """Everything that decides the clips and their samples. Defaults are the sizes of the preset ``full``.

    Attributes:
        max_sources: N, most sources of a star: a target and up to N - 1 others behind it.
        stars: how many there are.
        crossed_levels: how many classes of timbre, pitch, rate and amplitude the crossed part keeps at most, spread as
            evenly as they can be, the first and the last among them.

    With the seed 0, that of the presets, levels are the centres of their bins. Any other seed moves all levels of the
    pitch, of the rate and of the amplitude by one step of its own each, so that no single source of the crossed part,
    which has all combinations, is one of the presets'; they stay in their bins, and as evenly spaced. Voices stay.

    Raises:
        InputError: see `SceneSettings`.
    """

    max_sources: int = 3
    stars: int = 300
    crossed_levels: tuple[int, int, int, int] = (8, 8, 8, 8)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "crossed_levels", tuple(operator.index(count) for count in self.crossed_levels))
        sources = self.num_classes ** len(ATTRIBUTES)
        versions = 1 + len(ATTRIBUTES) * (self.num_classes - 1)
        self._check("max_sources (N)", self.max_sources, 2, 1 + sources - versions)
        self._check("stars", self.stars, 1, sources)
        if len(self.crossed_levels) != len(ATTRIBUTES):
            raise InputError(f"crossed_levels is {self.crossed_levels}; it has a number for {', '.join(ATTRIBUTES)}")
        for attribute, count in zip(ATTRIBUTES, self.crossed_levels, strict=True):
            self._check(f"crossed_levels of {attribute}", count, 2, 49)

    @cached_property
    def moves(self) -> tuple[int, float, float]:
        """How far this draw's levels lie from the centres of their bins: semitones, and shares of a bin of the rate and
        of the amplitude. 0, 0, 0 with the seed 0; no semitone where a bin has fewer than three."""
        if self.seed == 0:
            return 0, 0.0, 0.0
        rng = random_generator(self.seed, _LEVELS)
        most = int((self.pitch_range[1] - self.pitch_range[0]) / self.num_classes * FARTHEST)
        signs, shares = rng.choice([-1, 1], 3), rng.uniform(NEAREST, FARTHEST, 2)
        semitones = int(rng.integers(1, most + 1)) if most else 0
        return int(signs[0]) * semitones, float(signs[1] * shares[0]), float(signs[2] * shares[1])

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """MIDI note of each class of pitch."""
        return tuple(pitch + self.moves[0] for pitch in super().pitches)

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Repetitions a second of each class of rate."""
        low, high = self.rate_range
        step = (high / low) ** (self.moves[1] / self.num_classes)
        return tuple(rate * step for rate in super().rates)

    @cached_property
    def decibels(self) -> tuple[float, ...]:
        """Gain in dB of each class of amplitude."""
        low, high = self.amplitude_range
        step = self.moves[2] * (high - low) / self.num_classes
        return tuple(level + step for level in super().decibels)

    @property
    def crossed_classes(self) -> dict[str, tuple[int, ...]]:
        """The classes of each attribute that the crossed part keeps, in increasing order."""
        return {
            attribute: _spread(self.num_classes, min(count, self.num_classes))
            for attribute, count in zip(ATTRIBUTES, self.crossed_levels, strict=True)
        }

    def values(self) -> dict[str, Any]:
        """The settings as JSON values."""
        moved = {"moves": list(self.moves)} if self.seed else {}
        return {**super().values(), "crossed_levels": list(self.crossed_levels), **moved}


def _spread(classes: int, count: int) -> tuple[int, ...]:
    """So many of the classes 0..classes-1, with both ends, as evenly as they can be; halves are rounded up."""
    gaps = count - 1
    return tuple((2 * number * (classes - 1) + gaps) // (2 * gaps) for number in range(count))


@dataclass(frozen=True)
class FactorClip:
    """A clip as it is drawn.

    Attributes:
        id: of its row.
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

    def onsets(self, settings: SceneSettings) -> tuple[int, ...]:
        """First sample of each source."""
        return tuple(
            int(share * settings.periods[source.rate]) for share, source in zip(self.shares, self.sources, strict=True)
        )


class RenderedFactors(SceneRendering[FactorSettings]):
    """The clips of some settings and their sound; see `Rendering`."""

    @cached_property
    def drawn(self) -> tuple[FactorClip, ...]:
        """The clips, in the order of `rows`: star by star, then the crossed ones."""
        return (*draw_stars(self.settings), *draw_crossed(self.settings))

    @cached_property
    def gains(self) -> tuple[float, ...]:
        """Linear gain of each clip: 1 / max(1, largest peak of its star); that of a crossed clip is its own."""
        peaks: dict[str, float] = {}
        for clip in self.drawn:
            peak = self.tone_bank.peak(clip.sources, clip.onsets(self.settings))
            of_block = clip.block or clip.id
            peaks[of_block] = max(peak, peaks.get(of_block, 1.0))
        return tuple(1 / peaks[clip.block or clip.id] for clip in self.drawn)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(_row(clip, gain, self.settings) for clip, gain in zip(self.drawn, self.gains, strict=True))

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip, int16 [samples].

        The target and what is behind it are rounded to 16 bits before they are added: two clips of a star that differ
        in the target differ by the same samples as the two targets alone.
        """
        clip = self.drawn[index]
        onsets = clip.onsets(self.settings)
        layers = [(clip.sources[part], onsets[part]) for part in (slice(1), slice(1, None))]
        return (self.tone_bank.layered_clip(layers, self.gains[index]),)


def draw_stars(settings: FactorSettings) -> Iterator[FactorClip]:
    """The clips of all stars: the base, every other class of each factor of the target, onsets redrawn.

    Targets are different from star to star. A star is the same in settings that differ in the number of stars alone.
    """
    classes = settings.num_classes
    codes = random_generator(settings.seed, _TARGETS).permutation(classes ** len(ATTRIBUTES))
    for number, code in enumerate(codes[: settings.stars]):
        rng = random_generator(settings.seed, _STARS, number)
        target = Source.from_code(int(code), classes)
        versions = [
            (attribute, level, replace(target, **{attribute: level}))
            for attribute in ATTRIBUTES
            for level in range(classes)
            if level != getattr(target, attribute)
        ]
        background: list[Source] = []
        taken = {target, *(version for *_, version in versions)}
        count = int(rng.integers(settings.max_sources))
        while len(background) < count:
            source = Source.from_code(int(rng.integers(classes ** len(ATTRIBUTES))), classes)
            if source not in taken:
                taken.add(source)
                background.append(source)
        shares, redrawn = (tuple(map(float, rng.random(1 + count))) for _ in range(2))
        if settings.onset == "locked":
            shares = (0.0,) * len(shares)
        block = f"{STAR}-{number:05d}"
        name = f"{RECIPE.name}-{block}"
        yield FactorClip(f"{name}-base", block, "", (target, *background), shares)
        for attribute, level, version in versions:
            yield FactorClip(f"{name}-{attribute}-{level}", block, attribute, (version, *background), shares)
        yield FactorClip(f"{name}-{ONSET}", block, ONSET, (target, *background), redrawn)


def draw_crossed(settings: FactorSettings) -> Iterator[FactorClip]:
    """Single sources of all combinations of the classes that are kept; a source has one onset, whichever others are."""
    classes = settings.num_classes
    shares = random_generator(settings.seed, _CROSSED).random(classes ** len(ATTRIBUTES))
    for number, levels in enumerate(product(*settings.crossed_classes.values())):
        source = Source(*levels)
        share = 0.0 if settings.onset == "locked" else float(shares[source.code(classes)])
        yield FactorClip(f"{RECIPE.name}-{CROSSED}-{number:05d}", "", "", (source,), (share,))


def _row(clip: FactorClip, gain: float, settings: FactorSettings) -> Row:
    target = clip.sources[0]
    return {
        "id": clip.id,
        "split": "test",
        "kind": STAR if clip.block else CROSSED,
        "block": clip.block,
        "factor": clip.factor,
        "levels": {attribute: getattr(target, attribute) for attribute in ATTRIBUTES},
        "values": {
            "pitch": float(settings.pitches[target.pitch]),
            "rate": settings.rates[target.rate],
            "amplitude": settings.decibels[target.amplitude],
        },
        "metadata": labels_of(clip.sources, settings),
        "onsets": list(clip.shares),
        "gains": gains_of(clip.sources, settings),
        "gain": gain,
    }


class _Factors:
    """The recipe; see `Recipe`."""

    name = "factors"
    version = 1
    splits = ("test",)
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, FactorSettings]:
        """Settings by the name of a preset; those of ``paper-`` are the same, since the paper has no such clips."""
        mini, full = FactorSettings(stars=32, crossed_levels=(8, 4, 4, 4)), FactorSettings()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def features(self, settings: FactorSettings) -> Features:
        """``metadata`` and ``gains`` as of the other recipes of scenes; onsets are shares of a period."""
        from datasets import Audio, Features, List, Value

        columns = source_features()
        return Features(
            {
                "id": Value("string"),
                "audio": Audio(sampling_rate=settings.sample_rate),
                **{name: Value("string") for name in ("kind", "block", "factor")},
                "levels": {attribute: Value("int32") for attribute in ATTRIBUTES},
                "values": {attribute: Value("float64") for attribute in VALUED},
                "metadata": columns["metadata"],
                "onsets": List(Value("float64")),
                "gains": columns["gains"],
                "gain": Value("float64"),
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return ("audio",)

    def render(self, settings: FactorSettings) -> RenderedFactors:
        """Draw the rows; nothing is written."""
        return RenderedFactors.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that does not say what its target is, or of which star it is and what was changed."""
        name = row["id"]
        check_sources(name, row.get("metadata"))
        if row.get("kind") not in KINDS:
            raise DatasetError(f"row {name}: kind is {row.get('kind')!r}; it is one of {', '.join(KINDS)}")
        factors = ("", *ATTRIBUTES, ONSET) if row["kind"] == STAR else ("",)
        if row.get("factor") not in factors:
            raise DatasetError(
                f"row {name}: factor is {row.get('factor')!r}; that of a {row['kind']} clip is one of "
                f"{', '.join(map(repr, factors))}"
            )
        block = row.get("block")
        if not isinstance(block, str) or bool(block) != (row["kind"] == STAR):
            raise DatasetError(f"row {name}: block is {block!r}; it is a star's name, and empty for a crossed clip")
        for column, keys, kind in (("levels", ATTRIBUTES, int), ("values", VALUED, float)):
            numbers = row.get(column)
            if not isinstance(numbers, dict) or not all(isinstance(numbers.get(key), kind) for key in keys):
                raise DatasetError(f"row {name}: {column} is {numbers!r}; it has a number for {', '.join(keys)}")

    def describe(self, settings: FactorSettings) -> str:
        """Markdown of the card."""
        kept = settings.crossed_classes
        total = math.prod(map(len, kept.values()))
        levels = ";\n  ".join(f"{attribute} {', '.join(map(str, classes))}" for attribute, classes in kept.items())
        in_star = 2 + len(ATTRIBUTES) * (settings.num_classes - 1)
        moved = " The seed also moves the levels of pitch, rate and amplitude from the centres of their bins."
        moved = moved if settings.seed else ""
        behind = f"0 to {settings.max_sources - 1} other sources"
        return f"""\
Clips that differ in one factor and in nothing else, after the four axes (informativeness, equivariance, invariance,
disentanglement) of *Towards a Unified Representation Evaluation Framework Beyond Downstream Tasks*
([arXiv 2505.06224](https://arxiv.org/abs/2505.06224), IJCNN 2025), with exact interventions in place of its signal
processing. Two kinds of clips:

- {settings.stars:,} **stars** of {in_star} clips (`kind` `star`): a target source with {behind} behind it; the base,
  every other class of each factor of the target, and the base with all onsets redrawn. The clips of a star share one
  gain, below 1 only where one of them would pass full scale, and but for the last the onsets, as shares of the period.
  The target and what is behind it are rounded to 16 bits before they are added, so that the difference of two clips
  is that of the two targets, sample by sample.
- {total:,} **crossed** clips (`kind` `crossed`): single sources, every combination of these classes:
  {levels}.

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `kind` | `star` or `crossed` |
| `block` | the star that the clip is of; empty for a crossed clip |
| `factor` | what was changed of the star's base: `timbre`, `pitch`, `rate`, `amplitude`, `onset`; empty for the base |
| `levels` | class of each factor of the target, from 0 |
| `values` | of the target: `pitch` as a MIDI note, `rate` in Hz, `amplitude` in dB |
| `metadata` | the sources, the target first: `timbre_label`, `pitch_label`, `rate_label`, `amplitude_label` |
| `onsets` | onset of each source as a share of its period |
| `gains` | linear gain of each source |
| `gain` | linear gain of the whole clip |

{describe_sources(settings)}{moved} Sources were drawn uniformly (seed {settings.seed}); no two stars have the same
target.

{CITATION}"""


RECIPE = _Factors()
