"""Clips that transforms are applied to, and those that their copies are compared with: settings, draws, card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, nearest

from ..sounds.entries import Sounds
from .description import CITATION, describe_sources
from .sources import ATTRIBUTES, SceneSettings, Source, draw_onsets, random_generator
from .transforms import list_transforms, load_transform
from .transforms.base import ParameterRange, Transform

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


SAME = "same"
"""The candidate of the base's own sources."""

DIFFERING = ("timbre", "pitch", "rate")
"""What the other candidate of a scene differs in, by turns; a source that is only softer would be the same again, once
it has the same level."""

RECORDING = "recording"
"""What that of a recording differs in: it is another one."""

CANDIDATES = (SAME, *DIFFERING, RECORDING)

_DIFFERENT, _ONSETS_CANDIDATES = 14, 15
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
        draw_onsets(scene, settings, random_generator(settings.seed, _ONSETS_CANDIDATES, number))
        for scene in (sources, different)
    )
    return OtherScene(factor, different, own_onsets, onsets)


def is_inverted(number: int) -> bool:
    """Whether the candidates of a base have inverted polarity: those of half, alike among single sources and others."""
    return number // 2 % 2 == 1


QUARTERS = 4
"""Parts of the range of a parameter, in each of which as many are drawn."""

PAPER_RANGES = (
    ("noise", ParameterRange(-30, 50)),
    ("pitch", ParameterRange(-12, 12)),
    ("reverb", ParameterRange(0.1, 3)),
    ("stretch", ParameterRange(0.5, 2)),
)
"""Those of the paper (arXiv 2505.06224, section IV): uniform; reverberation times below .1 s cannot be had there."""


@dataclass(frozen=True, kw_only=True)
class TransformSettings(SceneSettings):
    """Everything that decides the clips and their samples. Defaults are the sizes of the preset ``full``.

    Attributes:
        max_sources: N, most sources of a base that is a scene.
        bases: how many clips are transformed; of recordings at most so many.
        untransformed: how many further clips there are without copies, for probes to learn from: single sources, or
            recordings, of these at most so many.
        per_quarter: how many parameters of a transform are drawn in each quarter of its range.
        transforms: their names.
        ranges: of parameters, by the name of a transform; by default its own.
        headroom: decibels by which all clips are lowered, so that hardly any passes full scale. It is the same for all
            bases: the level of a clip still tells the amplitude of its source. (No single source of the preset
            ``full`` needs more than 10.0, none can need more than 16; 3 of 200 scenes of several need more than 12.)
        recordings: what is transformed in place of scenes. They keep their rate where all have one, and are brought to
            ``sample_rate`` where they differ; a clip is the middle of its recording, of ``duration`` at most.

    Raises:
        InputError: see `SceneSettings`; also an unknown transform, or one that is for recordings alone.
    """

    max_sources: int = 3
    bases: int = 400
    untransformed: int = 800
    per_quarter: int = 1
    transforms: tuple[str, ...] = ("gain", "noise", "lowpass", "reverb")
    ranges: tuple[tuple[str, ParameterRange], ...] = ()
    headroom: float = 12.0
    recordings: Sounds | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "transforms", tuple(self.transforms))
        object.__setattr__(self, "headroom", float(self.headroom))
        if self.recordings is None:
            self._check("bases", self.bases, 2 * FOLDS, 2 * most_singles(self))
            self._check("untransformed", self.untransformed, 0, most_singles(self) - (self.bases + 1) // 2)
        else:
            self._check("bases", self.bases, FOLDS, 10**6)
            self._check("untransformed", self.untransformed, 0, 10**6)
        self._check("per_quarter", self.per_quarter, 1, 100)
        if not 0 <= self.headroom <= 60:
            raise InputError(f"headroom is {self.headroom} dB; it must be from 0 to 60")
        self._check_transforms()

    def _check_transforms(self) -> None:
        natural = self.recordings is not None
        valid = [name for name in list_transforms() if natural or not load_transform(name).natural_only]
        if not self.transforms or len(set(self.transforms)) < len(self.transforms):
            raise InputError(f"transforms is {self.transforms}; it names some of {', '.join(valid)}, each once")
        for name in self.transforms:
            if load_transform(name).natural_only and not natural:
                raise InputError(f"the transform {name!r} is for recordings, not for scenes; {nearest(name, valid)}")
        for name, span in self.ranges:
            load_transform(name)
            if not (span.low < span.high and (span.scale == "linear" or span.low > 0)):
                raise InputError(f"the range of {name} is {span}; low is below high, and positive on the scale log")
        for transform, span in self.spans:
            if not span.low < span.high:
                raise InputError(
                    f"clips of {self.clip_rate:,} Hz allow no {transform.name} from {span.low:g} {transform.unit} on; "
                    "leave it out"
                )

    @property
    def clip_rate(self) -> int:
        """Hz of every clip."""
        return (self.recordings.sample_rate if self.recordings is not None else None) or self.sample_rate

    @property
    def spans(self) -> list[tuple[Transform, ParameterRange]]:
        """The transforms, each with the range that its parameters are drawn from."""
        stated = dict(self.ranges)
        spans = []
        for transform in map(load_transform, self.transforms):
            usual = ParameterRange(transform.low, transform.high, transform.scale)
            spans.append((transform, transform.limits(self.clip_rate, stated.get(transform.name, usual))))
        return spans

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; of recordings the fingerprint, without what decides scenes alone."""
        values = super().values()
        del values["ranges"]
        values["transforms"] = [
            [transform.name, transform.version, float(span.low), float(span.high), span.scale]
            for transform, span in self.spans
        ]
        if self.recordings is None:
            del values["recordings"]
            return values
        kept = ("seed", "bases", "untransformed", "per_quarter", "transforms", "headroom", "duration")
        return {
            **{name: values[name] for name in kept},
            "sample_rate": self.clip_rate,
            "recordings": self.recordings.fingerprint,
        }


def describe_transforms(settings: TransformSettings) -> str:
    """Markdown of the card."""
    draws = QUARTERS * settings.per_quarter
    transforms = "\n".join(
        f"| `{transform.name}` | {_range_text(transform, span)} | {transform.meaning} |"
        for transform, span in settings.spans
    )
    levelled = [f"`{transform.name}`" for transform, _ in settings.spans if transform.keeps_level]
    level = f" Copies by {listed(levelled)} have the root mean square of their base." if levelled else ""
    return f"""\
{_describe_bases(settings)} Each is there as it is and, {draws} times, after each of {len(settings.spans)} transforms,
after *Towards a Unified Representation Evaluation Framework Beyond Downstream Tasks*
([arXiv 2505.06224](https://arxiv.org/abs/2505.06224), IJCNN 2025): what does a representation do when one property of a
sound changes by a known amount?

| transform | parameter | what it does |
|---|---|---|
{transforms}

Parameters are drawn uniformly in each quarter of a range, on its scale ({settings.per_quarter} a quarter, seed
{settings.seed}), by random numbers of their own for each base, transform and quarter.{level} All clips are lowered by
{settings.headroom:g} dB; a base and its copies by more, and then alike, where one of them would pass full scale.
{_describe_untransformed(settings)}

{_describe_candidates(settings)}

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip: at most {settings.duration:g} s, mono, {settings.clip_rate} Hz, 16-bit |
| `base` | name of the clip that was transformed; its copies have its length; its own where there are none |
| `transform` | what was done; empty for a base and for candidates |
| `candidate` | empty for bases and copies; `{SAME}`, or what the clip differs from its base in |
| `parameter`, `unit` | by how much; null for the base |
| `scaled` | place of the parameter in its range, from 0 to 1; null for the base |
| `quarter` | of the range, 0 to 3; -1 for the base |
| `fold` | 0 to {FOLDS - 1}: a base and its copies are in one, and so are the recordings of a group |
| `recording`, `label`, `group` | of a recording; empty for scenes |
| `number` | the label of a recording where labels are numbers, else null |
| `metadata` | the sources: `timbre_label`, `pitch_label`, `rate_label`, `amplitude_label`; empty for recordings |
| `levels` | class of each factor, from 0, where the base is a single source; else null |
| `values` | `pitch` as a MIDI note, `rate` in Hz, `amplitude` in dB, where the base is a single source; else null |
{_describe_scenes(settings)}"""


def _range_text(transform: Transform, span: ParameterRange) -> str:
    ends = " to ".join(f"{end:,.10g}".replace("-", "−") for end in (span.low, span.high))
    return f"{ends} {transform.unit}".strip() + (", logarithmic" if span.scale == "log" else "")


def _describe_bases(settings: TransformSettings) -> str:
    if settings.recordings is not None:
        return f"At most {settings.bases:,} recordings, as evenly over their labels as these allow."
    return (
        f"{settings.bases:,} sound scenes: by turns a single source, and 2 to {settings.max_sources} sources together."
    )


def _describe_untransformed(settings: TransformSettings) -> str:
    if settings.recordings is not None:
        what = f"Other recordings, as many as there are and at most {settings.untransformed:,}, come after them"
    else:
        what = f"{settings.untransformed:,} further single sources come after them"
    return f"{what} without copies: probes learn from originals alone." if settings.untransformed else ""


def _describe_candidates(settings: TransformSettings) -> str:
    if settings.recordings is not None:
        what = (
            "the recording itself and another one (of another label where there is one, else of another group), the "
            "longer one cut to the length of the shorter. Sounds of recordings cannot be moved in time, so that these "
            "begin when they do in the base"
        )
    else:
        factors = f"{', '.join(DIFFERING[:-1])} or {DIFFERING[-1]}"
        what = f"the sources of the base at other times, and the same but for the {factors} of the first one, by turns"
    return (
        f"After the copies of each base come two **candidates**: {what}. Both have exactly one root mean square, that "
        "of the base (less where one would pass full scale), nothing above 7.2 kHz, so that they are as loud as each "
        "other at any rate from 16 kHz on, and one polarity, which is inverted for every other two "
        "bases: to which of them a copy is nearer can be told neither from its level nor, on average, from the "
        "correlation of samples."
    )


def _describe_scenes(settings: TransformSettings) -> str:
    return "" if settings.recordings is not None else f"\n{describe_sources(settings)}\n\n{CITATION}"
