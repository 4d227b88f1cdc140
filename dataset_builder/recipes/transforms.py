"""Clips and what signal processing makes of them, by one number each (after arXiv 2505.06224)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data import DatasetError, Pcm16, Row
from ..scenes.mixing import resampled
from ..scenes.recorded import check_texts
from ..scenes.rendering import SceneRendering
from ..scenes.sources import (
    ATTRIBUTES,
    SceneSettings,
    Source,
    check_sources,
    labels_of,
    random_generator,
    source_features,
)
from ..scenes.transformed import (
    CANDIDATES,
    FOLDS,
    PAPER_RANGES,
    QUARTERS,
    RECORDING,
    SAME,
    TransformSettings,
    describe_transforms,
    draw_bases,
    draw_other_scene,
    is_inverted,
)
from ..scenes.transforms.base import Transform
from ..sounds.splits import folds_of, other_recording, select_recordings

if TYPE_CHECKING:
    from datasets import Features

    from ..scenes.orbits import RecentOrbits
    from ..sounds.entries import Sounds

VALUED = ("pitch", "rate", "amplitude")
"""The factors of a source whose classes are numbers."""

_COPIES = 13
"""The random stream."""


@dataclass(frozen=True)
class Base:
    """A clip as it is before any transform.

    Attributes:
        name: ``transforms-00012``.
        key: what its random numbers depend on.
        fold: 0 to 4.
        sources: of a scene; none for a recording.
        onsets: first sample of each source.
        recording: its number; None for a scene.
    """

    name: str
    key: int
    fold: int
    sources: tuple[Source, ...] = ()
    onsets: tuple[int, ...] = ()
    recording: int | None = None


@dataclass(frozen=True)
class Draw:
    """One draw of a parameter.

    Attributes:
        transform: what it is a parameter of.
        number: of the draw, quarter by quarter.
        scaled: its place in the range, from 0 to 1.
        parameter: in the unit of the transform.
    """

    transform: Transform
    number: int
    scaled: float
    parameter: float


@dataclass(frozen=True)
class Candidate:
    """A clip that copies of a base are compared with.

    Attributes:
        kind: `SAME`, or what it differs from the base in.
        like: what it is made of, as a base is.
    """

    kind: str
    like: Base


class RenderedTransforms(SceneRendering[TransformSettings]):
    """The bases of some settings, their copies, their candidates and the sound of all; see `Rendering`."""

    def __init__(self, settings: TransformSettings) -> None:
        """Nothing is drawn before it is asked for.

        Raises:
            InputError: a transform needs a package that is not there.
        """
        super().__init__(settings)
        self.sample_rate = settings.clip_rate
        self._spans = settings.spans
        for transform, _ in self._spans:
            transform.check_available()

    @cached_property
    def bases(self) -> tuple[Base, ...]:
        """The clips without their copies: those that are transformed, then the further ones."""
        settings = self.settings
        if settings.recordings is None:
            scenes = enumerate(draw_bases(settings, settings.bases, settings.untransformed))
            return tuple(Base(_name(n), n, scene.fold, scene.sources, scene.onsets) for n, scene in scenes)
        entries = settings.recordings.entries
        transformed = select_recordings(entries, settings.bases, settings.seed)
        every = select_recordings(entries, settings.bases + settings.untransformed, settings.seed)
        selected = [*transformed, *sorted(set(every).difference(transformed))]
        folds = folds_of([entries[index] for index in selected], settings.seed, range(len(transformed)))
        return tuple(
            Base(_name(n), _key(entries[index].sha256), fold, recording=index)
            for n, (index, fold) in enumerate(zip(selected, folds, strict=True))
        )

    @cached_property
    def draws(self) -> tuple[tuple[Draw, ...], ...]:
        """The parameters of each base, in the order of its rows; none where it has no copies."""
        count = self.settings.bases
        return tuple(tuple(self._draws_of(base)) if n < count else () for n, base in enumerate(self.bases))

    @cached_property
    def candidates(self) -> tuple[tuple[Candidate, ...], ...]:
        """The clips that copies of each base are compared with: the same sources, then others; none without copies."""
        count = self.settings.bases
        return tuple(self._candidates_of(n, base) if n < count else () for n, base in enumerate(self.bases))

    def _candidates_of(self, number: int, base: Base) -> tuple[Candidate, ...]:
        settings = self.settings
        if base.recording is None or settings.recordings is None:
            scene = draw_other_scene(base.sources, settings, number)
            other = replace(base, sources=scene.sources, onsets=scene.onsets)
            return Candidate(SAME, replace(base, onsets=scene.own_onsets)), Candidate(scene.factor, other)
        among = [other.recording for other in self.bases[: settings.bases] if other.recording is not None]
        entry = other_recording(settings.recordings.entries, base.recording, among, settings.seed)
        return Candidate(SAME, base), Candidate(RECORDING, replace(base, recording=entry))

    def _draws_of(self, base: Base) -> Iterator[Draw]:
        count = self.settings.per_quarter
        for transform, span in self._spans:
            for number in range(QUARTERS * count):
                share = self._rng(base, transform, number).random()
                scaled = (number // count + share) / QUARTERS
                yield Draw(transform, number, scaled, span.value(scaled))

    def _rng(self, base: Base, transform: Transform, number: int) -> np.random.Generator:
        """The random numbers of one copy: they depend on nothing but the seed, its base, transform and number."""
        return random_generator(self.settings.seed, _COPIES, base.key, _key_of_name(transform.name), number)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio: each base, its copies and its candidates, then the clips without copies."""
        return tuple(
            row
            for base, draws, candidates in zip(self.bases, self.draws, self.candidates, strict=True)
            for row in (
                self._row(base),
                *(self._row(base, draw) for draw in draws),
                *(self._row(candidate.like, candidate=candidate.kind) for candidate in candidates),
            )
        )

    def _row(self, base: Base, draw: Draw | None = None, candidate: str = "") -> Row:
        settings = self.settings
        entry = None
        if base.recording is not None and settings.recordings is not None:
            entry = settings.recordings.entries[base.recording]
        single = base.sources[0] if len(base.sources) == 1 else None
        return {
            "id": f"{base.name}-{_what(draw, candidate)}",
            "split": "test",
            "base": base.name,
            "transform": "" if draw is None else draw.transform.name,
            "candidate": candidate,
            "parameter": None if draw is None else draw.parameter,
            "unit": "" if draw is None else draw.transform.unit,
            "scaled": None if draw is None else draw.scaled,
            "quarter": -1 if draw is None else draw.number // settings.per_quarter,
            "fold": base.fold,
            "recording": "" if entry is None else entry.id,
            "label": "" if entry is None else entry.label,
            "number": None if entry is None else entry.number,
            "group": "" if entry is None else entry.group,
            "metadata": labels_of(base.sources, settings),
            "levels": None if single is None else {name: getattr(single, name) for name in ATTRIBUTES},
            "values": None if single is None else _values(single, settings),
        }

    @cached_property
    def _orbits(self) -> RecentOrbits:
        from ..scenes.orbits import RecentOrbits

        return RecentOrbits(self._render_orbit)

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip, int16 [samples]."""
        in_orbit, bases = 3 + len(self._spans) * QUARTERS * self.settings.per_quarter, self.settings.bases
        number, place = divmod(index, in_orbit)
        if number >= bases:
            number, place = bases + index - bases * in_orbit, 0
        return (self._orbits[number][place],)

    def _render_orbit(self, number: int) -> list[Pcm16]:
        from ..scenes.orbits import Copy, middle_of, render_candidates, render_orbit

        base = self.bases[number]
        copies = [
            Copy(draw.transform, draw.parameter, partial(self._rng_of, base, draw)) for draw in self.draws[number]
        ]
        try:
            source = self._source(base)
            orbit = render_orbit(source, self._length(source), self.sample_rate, copies, self.settings.headroom)
            if not self.candidates[number]:
                return orbit
            sounds = [self._source(candidate.like) for candidate in self.candidates[number]]
            # Of recordings of two lengths the shorter one is that of both, or it would tell them apart.
            length = min(map(self._length, sounds))
            clips = [middle_of(sound, length) for sound in sounds]
            return orbit + render_candidates(clips, self.sample_rate, orbit[0], inverted=is_inverted(number))
        except DatasetError as error:
            raise DatasetError(f"{self._title(base)} {error}") from error

    def _length(self, source: NDArray[np.float64]) -> int:
        """Samples of the clip that is taken from some sound."""
        from ..scenes.orbits import base_length, reach_of

        return base_length(source, self.sample_rate, self.settings.duration, reach_of(self._spans))

    def _rng_of(self, base: Base, draw: Draw) -> np.random.Generator:
        """The random numbers of a copy that come after its parameter."""
        rng = self._rng(base, draw.transform, draw.number)
        rng.random()
        return rng

    def _title(self, base: Base) -> str:
        recordings = self.settings.recordings
        if base.recording is None or recordings is None:
            return f"base {base.name}"
        return f"{recordings.source}: recording {recordings.entries[base.recording].id}"

    def _source(self, base: Base) -> NDArray[np.float64]:
        """The sound that a base is taken from, at the rate of the clips."""
        recordings = self.settings.recordings
        if base.recording is None or recordings is None:
            return self.tone_bank.mix(base.sources, base.onsets).astype(np.float64)
        return resampled(*recordings.waveform(base.recording), self.sample_rate)


def _what(draw: Draw | None, candidate: str) -> str:
    """What a row is of its base, for its id."""
    return candidate or ("base" if draw is None else f"{draw.transform.name}-{draw.number}")


def _name(number: int) -> str:
    return f"{RECIPE.name}-{number:05d}"


def _key(sha256: str) -> int:
    return int(sha256[:8], 16)


def _key_of_name(name: str) -> int:
    return _key(hashlib.sha256(name.encode()).hexdigest())


def _values(source: Source, settings: SceneSettings) -> dict[str, float]:
    return {
        "pitch": float(settings.pitches[source.pitch]),
        "rate": settings.rates[source.rate],
        "amplitude": settings.decibels[source.amplitude],
    }


class _Transforms:
    """The recipe; see `Recipe`."""

    name = "transforms"
    version = 2
    splits = ("test",)
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, TransformSettings]:
        """Settings by the name of a preset; those of ``paper-`` have the paper's ranges and transforms."""
        paper: dict[str, Any] = {"transforms": ("noise", "reverb"), "ranges": PAPER_RANGES}
        mini: dict[str, Any] = {"bases": 48, "untransformed": 112}
        return {
            "mini": TransformSettings(**mini),
            "full": TransformSettings(),
            "paper-mini": TransformSettings(**mini, **paper),
            "paper-full": TransformSettings(**paper),
        }

    def of_recordings(
        self, settings: TransformSettings, recordings: Sounds, requested: Mapping[str, Any]
    ) -> TransformSettings:
        """Recordings in place of scenes: where the preset states ranges, all transforms that these name.

        The paper's are four, of which scenes allow two.
        """
        usual = tuple(name for name, _ in settings.ranges) or settings.transforms
        return replace(settings, **{"transforms": usual, **requested, "recordings": recordings})

    def features(self, settings: TransformSettings) -> Features:
        """``metadata`` as of the other recipes of scenes; null where there is nothing to say."""
        from datasets import Audio, Features, Value

        text, number = Value("string"), Value("float64")
        return Features(
            {
                "id": text,
                "audio": Audio(sampling_rate=settings.clip_rate),
                "base": text,
                "transform": text,
                "candidate": text,
                "parameter": number,
                "unit": text,
                "scaled": number,
                "quarter": Value("int32"),
                "fold": Value("int32"),
                **{"recording": text, "label": text, "number": number, "group": text},
                "metadata": source_features()["metadata"],
                "levels": {name: Value("int32") for name in ATTRIBUTES},
                "values": {name: number for name in VALUED},
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return ("audio",)

    def render(self, settings: TransformSettings) -> RenderedTransforms:
        """Draw the rows; nothing is written."""
        return RenderedTransforms.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that does not say what was done to which clip."""
        name = row["id"]
        check_texts(row, ("base", "transform", "candidate", "unit", "recording", "label", "group"))
        copy = bool(row["transform"])
        if row["candidate"] not in (("",) if copy else ("", *CANDIDATES)):
            raise DatasetError(
                f"row {name}: candidate is {row['candidate']!r}; it is empty, or of a clip without a transform one of "
                f"{', '.join(CANDIDATES)}"
            )
        for column in ("parameter", "scaled"):
            if isinstance(row.get(column), float) != copy:
                raise DatasetError(f"row {name}: {column} is {row.get(column)!r}; a copy has a number, a base none")
        if not isinstance(row.get("number"), float | None):
            raise DatasetError(f"row {name}: number is {row['number']!r}; it is a number or null")
        if row.get("quarter") not in (range(QUARTERS) if copy else (-1,)):
            raise DatasetError(f"row {name}: quarter is {row.get('quarter')!r}; it is 0 to 3, and -1 for a base")
        if row.get("fold") not in range(FOLDS):
            raise DatasetError(f"row {name}: fold is {row.get('fold')!r}; it is 0 to {FOLDS - 1}")
        if row.get("metadata") != []:
            check_sources(name, row.get("metadata"))

    def describe(self, settings: TransformSettings) -> str:
        """Markdown of the card."""
        return describe_transforms(settings)


RECIPE = _Transforms()
