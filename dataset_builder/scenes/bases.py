"""Clips for transforms, and the candidates with which their copies are compared, from tones or any sounds."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, InstanceOf, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..data import DatasetError, Pcm16, Row
from ..sounds.entries import Sounds, SoundsField
from ..sounds.splits import FOLDS, folds_of, other_recording, select_recordings
from ..sounds.tones import ATTRIBUTES
from .effects import Floats, ParameterRange, Signal, Transform, list_transforms, load_transform, root_mean_square
from .mixing import middle_of, resampled
from .sources import (
    FULL_SCALE,
    SceneSpec,
    Source,
    ToneBank,
    draw_onsets,
    labels_of,
    levels_of,
    random_generator,
    values_of,
)

_SINGLES, _TOGETHER, _ONSETS = 10, 11, 12
"""Random streams."""


@dataclass(frozen=True)
class BaseScene:
    """A scene.

    Attributes:
        sources: one or more.
        onsets: first sample of each source.
        fold: 0 to 4, equally frequent among single sources and mixtures.
    """

    sources: tuple[Source, ...]
    onsets: tuple[int, ...]
    fold: int


def draw_bases(spec: SceneSpec, total: int, further: int = 0) -> Iterator[BaseScene]:
    """Yield `total` scenes, no two with the same sources: single sources at even indices, 2 to N sources at odd ones.

    Then yield `further` single sources. A scene depends only on the seed and on earlier scenes: a longer list begins
    with the shorter one.
    """
    singles, together = _draw_singles(spec), _draw_together(spec)
    for number in range(total + further):
        single = number >= total or number % 2 == 0
        of_its_kind = number // 2 if number < total else number - total // 2
        sources = next(singles if single else together)
        onsets = draw_onsets(sources, spec, random_generator(spec.seed, _ONSETS, number))
        yield BaseScene(sources, onsets, of_its_kind % FOLDS)


def _draw_singles(spec: SceneSpec) -> Iterator[tuple[Source, ...]]:
    """Yield single sources, K at a time, in which each class of each attribute occurs once."""
    drawn: set[Source] = set()
    for block in count():
        rng = random_generator(spec.seed, _SINGLES, block)
        while True:
            levels = zip(*(rng.permutation(spec.num_classes).tolist() for _ in ATTRIBUTES), strict=True)
            sources = [Source(*classes) for classes in levels]
            if drawn.isdisjoint(sources):
                break
        drawn.update(sources)
        yield from ((source,) for source in sources)


def _draw_together(spec: SceneSpec) -> Iterator[tuple[Source, ...]]:
    """Yield sets of 2 to N sources, all sizes equally frequent on average, each source uniform on the K^4."""
    drawn: set[frozenset[Source]] = set()
    for number in count():
        rng = random_generator(spec.seed, _TOGETHER, number)
        size = int(rng.integers(2, spec.max_sources + 1))
        while True:
            codes = rng.integers(spec.num_classes ** len(ATTRIBUTES), size=size)
            sources = tuple(Source.from_code(int(code), spec.num_classes) for code in codes)
            if len(set(sources)) == size and frozenset(sources) not in drawn:
                break
        drawn.add(frozenset(sources))
        yield sources


SAME = "same"
"""The candidate with the base's own sources."""

DIFFERING = ("timbre", "pitch", "rate")
"""Factors of the other candidate of a scene, in turn; not amplitude, since at equal level a softer source would be the
same."""

RECORDING = "recording"
"""The factor of the other candidate of a recording: another recording."""

CANDIDATES = (SAME, *DIFFERING, RECORDING)

_DIFFERENT, _ONSETS_CANDIDATES = 14, 15
"""Random streams."""


QUARTERS = 4
"""Parts of the range of a parameter, with equally many draws each."""

PAPER_RANGES = (
    ("noise", ParameterRange(-30, 50)),
    ("pitch", ParameterRange(-12, 12)),
    ("reverb", ParameterRange(0.1, 3)),
    ("stretch", ParameterRange(0.5, 2)),
)
"""The paper's ranges (arXiv 2505.06224, section IV): uniform; reverberation times below .1 s are impossible there."""


class TransformSpec(SceneSpec):
    """Everything that determines the clips and their samples. Defaults are the sizes of the preset ``full``.

    Raises:
        InputError: see `SceneSpec`; also if a transform is unknown, or does not suit the sounds.
    """

    of_tones: ClassVar[frozenset[str]] = SceneSpec.of_tones | {"max_sources", "onset"}

    max_sources: int = Field(3, ge=2, le=16, description="N, most sources of a base that is a scene.")
    bases: int = Field(400, description="Clips to transform; with recordings, at most this many.")
    untransformed: int = Field(
        800,
        description=(
            "Further clips without copies, for training probes: single sources, or at most this many recordings."
        ),
    )
    per_quarter: int = Field(
        1, ge=1, le=100, description="Number of parameters of a transform drawn in each quarter of its range."
    )
    transforms: tuple[str, ...] = Field(("gain", "noise", "lowpass", "reverb"), description="Names of the transforms.")
    ranges: tuple[tuple[str, InstanceOf[ParameterRange]], ...] = Field(
        (), description="Parameter ranges by the name of a transform; by default the transform's own range."
    )
    headroom: float = Field(
        12.0,
        ge=0,
        le=60,
        # No single source of the preset `full` needs more than 10.0 dB, none can need more than 16; 3 of 200 scenes
        # with several sources need more than 12.
        description=(
            "dB by which all clips are lowered, so that hardly any exceeds full scale; equal for all bases, since "
            "the level of a clip reveals the amplitude of its source."
        ),
    )
    sounds: SoundsField = Field(
        None,
        repr=False,
        description=(
            "Sounds to transform instead of scenes. They keep their sample rate if all have the same; a clip is "
            "the middle of "
            "its sound, at most `duration` long."
        ),
    )

    @model_validator(mode="after")
    def _check_bases(self) -> Self:
        least, most_bases, most_further = FOLDS, 10**6, 10**6
        if self.is_of_tones:
            # K at a time, with a few hundred attempts for the last ones: at most half of all single sources.
            singles = int(self.num_classes ** len(ATTRIBUTES) * min(0.5, 1 - 2 ** (-8 / self.num_classes)))
            least, most_bases, most_further = 2 * FOLDS, 2 * singles, singles - (self.bases + 1) // 2
        for name, low, high in (("bases", least, most_bases), ("untransformed", 0, most_further)):
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} is {getattr(self, name)}; it must be from {low} to {high:,}")
        return self

    @model_validator(mode="after")
    def _check_transforms(self) -> Self:
        natural = not self.is_of_tones
        valid = [name for name in list_transforms() if natural or not load_transform(name).natural_only]
        if not self.transforms or len(set(self.transforms)) < len(self.transforms):
            raise InputError(f"transforms is {self.transforms}; give some of {', '.join(valid)}, each once")
        for name in self.transforms:
            if load_transform(name).natural_only and not natural:
                raise InputError(f"the transform {name!r} is for recordings, not for scenes; {nearest(name, valid)}")
        for name, span in self.ranges:
            load_transform(name)
            if not (span.low < span.high and (span.scale == "linear" or span.low > 0)):
                raise InputError(
                    f"the range of {name} is {span}; low must be below high, and positive on the scale log"
                )
        for transform, span in self.spans:
            if not span.low < span.high:
                raise InputError(
                    f"clips at {self.clip_rate:,} Hz permit no {transform.name} from {span.low:g} {transform.unit}; "
                    "leave it out"
                )
        return self

    @property
    def clip_rate(self) -> int:
        """Return the sample rate of every clip in Hz."""
        return self.sample_rate if self.is_of_tones else self.heard.sample_rate or self.sample_rate

    @cached_property
    def spans(self) -> tuple[tuple[Transform, ParameterRange], ...]:
        """Return the transforms, each with its range of parameters."""
        stated = dict(self.ranges)
        spans = []
        for transform in map(load_transform, self.transforms):
            usual = ParameterRange(transform.low, transform.high, transform.scale)
            spans.append((transform, transform.limits(self.clip_rate, stated.get(transform.name, usual))))
        return tuple(spans)

    def values(self) -> dict[str, Any]:
        """Return the values as JSON, with everything about the transforms that determines a copy."""
        transforms = [
            [transform.name, transform.version, float(span.low), float(span.high), span.scale]
            for transform, span in self.spans
        ]
        values = {**super().values(), "transforms": transforms, "sample_rate": self.clip_rate}
        del values["ranges"]
        return values


@dataclass(frozen=True)
class Version:
    """A sound whose middle is used as a clip: a base, or a candidate for comparison with the copies of a base.

    Attributes:
        candidate: one of `CANDIDATES`; empty for a base.
        said: the columns that describe it.
        sound: returns the sound, at the rate of the clips.
    """

    candidate: str
    said: Row
    sound: Callable[[], Floats]


@dataclass(frozen=True)
class Base:
    """A clip before any transform.

    Attributes:
        name: e.g. ``transforms-00012``.
        key: key of the random numbers of its copies.
        fold: 0 to 4.
        title: name for messages.
        versions: the base, and the candidates for its copies if it has copies.
    """

    name: str
    key: int
    fold: int
    title: str
    versions: tuple[Version, ...]


_SOUNDLESS: Row = {"recording": "", "label": "", "number": None, "group": ""}
_TONELESS: Row = {"metadata": [], "levels": None, "values": None}
"""The columns of recordings in rows of scenes, and the columns of tones in rows of recordings."""


def drawn_bases(spec: TransformSpec) -> Iterator[Base]:
    """Return the clips of a spec: first clips with copies, then the further ones."""
    return _scenes_of(spec) if spec.is_of_tones else _sounds_of(spec)


def _scenes_of(spec: TransformSpec) -> Iterator[Base]:
    """Yield scenes; the candidates are the scene with other onsets, and a scene that differs in one factor of a source.

    The factors alternate, for single sources and mixtures alike. The other class is drawn uniformly, without a repeated
    source if possible.
    """
    bank = ToneBank(spec)
    for number, scene in enumerate(draw_bases(spec, spec.bases, spec.untransformed)):
        scenes = [("", scene.sources, scene.onsets)]
        if number < spec.bases:
            rng = random_generator(spec.seed, _DIFFERENT, number)
            first, rest = scene.sources[0], scene.sources[1:]
            factor = DIFFERING[number // 2 % len(DIFFERING)]
            others = [replace(first, **{factor: code}) for code in range(spec.num_classes)]
            others.remove(first)
            others = [source for source in others if source not in rest] or others
            different = (others[int(rng.integers(len(others)))], *rest)
            for candidate, sources in ((SAME, scene.sources), (factor, different)):
                # Onsets are at the same shares of the periods.
                onsets = draw_onsets(sources, spec, random_generator(spec.seed, _ONSETS_CANDIDATES, number))
                scenes.append((candidate, sources, onsets))
        versions = []
        for candidate, sources, onsets in scenes:
            single = sources[0] if len(sources) == 1 else None
            said = {
                **_SOUNDLESS,
                "metadata": labels_of(sources, spec),
                "levels": None if single is None else levels_of(single),
                "values": None if single is None else values_of(single, spec),
            }
            versions.append(Version(candidate, said, partial(bank.mix, sources, onsets)))
        name = f"transforms-{number:05d}"
        yield Base(name, number, scene.fold, f"base {name}", tuple(versions))


def _sounds_of(spec: TransformSpec) -> Iterator[Base]:
    """Yield whole sounds, drawn evenly over their labels; the candidates are the sound itself and another one."""
    sounds = spec.heard
    entries = sounds.entries
    transformed = select_recordings(entries, spec.bases, spec.seed)
    every = select_recordings(entries, spec.bases + spec.untransformed, spec.seed)
    selected = [*transformed, *sorted(set(every).difference(transformed))]
    folds = folds_of([entries[index] for index in selected], spec.seed, range(len(transformed)))
    for number, (index, fold) in enumerate(zip(selected, folds, strict=True)):
        heard = [("", index)]
        if number < len(transformed):
            heard += [(SAME, index), (RECORDING, other_recording(entries, index, transformed, spec.seed))]
        versions = []
        for candidate, place in heard:
            entry = entries[place]
            said = {"recording": entry.id, "label": entry.label, "number": entry.number, "group": entry.group}
            versions.append(Version(candidate, {**said, **_TONELESS}, partial(_heard, sounds, place, spec.clip_rate)))
        entry = entries[index]
        title = f"{sounds.source}: recording {entry.id}"
        yield Base(f"transforms-{number:05d}", int(entry.sha256[:8], 16), fold, title, tuple(versions))


def _heard(sounds: Sounds, index: int, rate: int) -> Signal:
    return resampled(*sounds.waveform(index), rate)


SHORTEST = 0.1
"""Least seconds of a clip: a model can detect nothing in a shorter one."""

FULL_UP_TO, HIGHEST = 6_500.0, 7_200.0
"""Hz: candidates keep everything below the first and nothing above the second; resampling to 16 kHz, the lowest rate of
any encoder here, preserves all of that."""

_COPIES = 13
"""Random stream."""

_KEPT = 3
"""Number of orbits that are cached: a build needs the clips of two or three at once."""


@dataclass(frozen=True)
class Copy:
    """One application of a transform.

    Attributes:
        transform: the transform.
        parameter: its parameter, in its unit.
        rng: returns the random generator of this copy after its parameter was drawn, the same each time.
        number: index among the copies by this transform, quarter by quarter.
        scaled: position of the parameter in its range, from 0 to 1.
    """

    transform: Transform
    parameter: float
    rng: Callable[[], np.random.Generator]
    number: int = 0
    scaled: float = 0.0


def base_length(source: Signal, sample_rate: int, duration: float, reach: float) -> int:
    """Return the number of samples of a clip from a longer sound.

    A clip has at most `duration` seconds, and the sound has `reach` times as many samples as the clip.

    Raises:
        DatasetError: the clip would be too short.
    """
    available = len(source) if reach == 1 else math.floor((len(source) - 2) / reach)
    length = min(round(duration * sample_rate), available)
    if length < SHORTEST * sample_rate:
        needed = f"it needs {SHORTEST * reach:g} s"
        raise DatasetError(f"lasts {len(source) / sample_rate:.3f} s; {needed}; leave it out")
    return length


def render_orbit(source: Signal, length: int, sample_rate: int, copies: Sequence[Copy], headroom: float) -> list[Pcm16]:
    """Return the middle of a sound as a clip, then its copies, all with one gain.

    The gain is `headroom` decibels below 1, or lower if a clip would exceed full scale. A copy by a transform that
    keeps the level has the root mean square of the clip.

    Args:
        source: float64 [samples], at least `length` of them.
        length: samples of each clip.
        sample_rate: Hz.
        copies: copies of the clip, in this order.
        headroom: in decibels.

    Returns:
        1 + copies clips, each int16 [length].

    Raises:
        DatasetError: the clip or a copy is silent.
    """
    base = middle_of(source, length)
    own_level = root_mean_square(base)
    if not own_level > 0:
        raise DatasetError("is silent in its middle, which would be the clip; leave it out")
    clips = [base]
    for copy in copies:
        share = copy.transform.reading(copy.parameter)
        read = middle_of(source, length if share == 1 else math.ceil(length * share) + 1)
        clip = copy.transform.apply(read, sample_rate, copy.parameter, copy.rng())[:length]
        if copy.transform.keeps_level:
            if not root_mean_square(clip) > 0:
                raise DatasetError(f"{copy.transform.name} at {copy.parameter:g} makes it silent; leave it out")
            clip = clip * (own_level / root_mean_square(clip))
        clips.append(clip)
    peak = max(float(np.abs(clip).max()) for clip in clips)
    gain = min(10 ** (-headroom / 20), 1 / peak)
    return [np.rint(clip * (gain * FULL_SCALE)).astype(np.int16) for clip in clips]


def reach_of(transforms: Sequence[tuple[Transform, ParameterRange]]) -> float:
    """Return the most seconds of sound in a second of any copy, at least 1."""
    return max([1.0, *(transform.reading(end) for transform, span in transforms for end in (span.low, span.high))])


def render_candidates(clips: Sequence[Signal], sample_rate: int, base: Pcm16, *, inverted: bool) -> list[Pcm16]:
    """Return clips [samples] of one length, all with exactly the root mean square of a base (int16).

    If one would exceed full scale, all are lowered by the same factor. `with_energy` defines "exactly". Frequencies
    above `HIGHEST` are removed first: otherwise clips that are equally loud at one rate would differ in level at a
    lower rate.

    Raises:
        DatasetError: a clip is silent.
    """
    if not all(root_mean_square(clip) > 0 for clip in clips):
        raise DatasetError("would be compared with a silent clip; leave it out")
    # A raised cosine; at a low rate nothing changes.
    share = (np.fft.rfftfreq(len(clips[0]), 1 / sample_rate) - FULL_UP_TO) / (HIGHEST - FULL_UP_TO)
    twice = 1 + np.cos(np.pi * np.clip(share, 0.0, 1.0))
    clips = [np.fft.irfft(np.fft.rfft(clip) * twice / 2, len(clip)) for clip in clips]
    loud = root_mean_square(base.astype(np.float64))
    softer = min([1.0, *(FULL_SCALE * root_mean_square(clip) / float(np.abs(clip).max()) / loud for clip in clips)])
    energy = round(softer**2 * int(np.square(base.astype(np.int64)).sum()) * (len(clips[0]) / len(base)))
    loud *= softer
    exact = [with_energy(np.rint(clip * (loud / root_mean_square(clip))).astype(np.int64), energy) for clip in clips]
    return [(-clip if inverted else clip).astype(np.int16) for clip in exact]


def with_energy(samples: NDArray[np.int64], energy: int) -> NDArray[np.int64]:
    """Return samples whose squares add up to `energy`, each changed by at most 1.

    Rounding to 16 bits leaves soft clips with levels that differ by about 1e-5: enough for a level meter to distinguish
    clips. The loudest samples are changed first: towards 0 until the sum is not too large, then away from 0 until it is
    not too small. A rest smaller than the step of any remaining sample is left: a few units, if no sample is near 0.

    >>> adjusted = with_energy(np.array([3, -5, 0, 1]), 47)
    >>> adjusted.tolist(), int((adjusted**2).sum())
    ([3, -6, 1, 1], 47)
    """
    adjusted = samples.copy()
    order = np.argsort(np.abs(samples), kind="stable")
    sizes = np.abs(samples)[order]
    missing, end = energy - int(np.square(samples).sum()), len(samples)
    while missing and end > 0:
        # A step away from 0 adds 2|s| + 1, and a step towards 0 subtracts 2|s| − 1.
        fits = end if missing < 0 else int(np.searchsorted(sizes[:end], (missing - 1) // 2, "right"))
        if not fits:
            break
        end = fits - 1
        place = order[end]
        adjusted[place] += (1 if missing > 0 else -1) * (-1 if samples[place] < 0 else 1)
        missing -= int(adjusted[place]) ** 2 - int(samples[place]) ** 2
    return adjusted


def draw_copies(base: Base, spec: TransformSpec) -> Iterator[Copy]:
    """Yield the copies of a base that has candidates: one in each quarter of the range of each transform, uniformly.

    The random numbers of a copy depend only on the seed, its base, transform and number.
    """
    for transform, span in spec.spans if len(base.versions) > 1 else ():
        key = int(hashlib.sha256(transform.name.encode()).hexdigest()[:8], 16)
        for number in range(QUARTERS * spec.per_quarter):
            generator = partial(random_generator, spec.seed, _COPIES, base.key, key, number)
            scaled = (number // spec.per_quarter + generator().random()) / QUARTERS
            yield Copy(transform, span.value(scaled), partial(_after_parameter, generator), number, scaled)


def _after_parameter(generator: Callable[[], np.random.Generator]) -> np.random.Generator:
    rng = generator()
    rng.random()
    return rng


def render_base(number: int, base: Base, spec: TransformSpec) -> list[Pcm16]:
    """Return the clips of a base, its copies (see `draw_copies`) and its candidates.

    The candidates of half of the bases have inverted polarity, for single sources and mixtures alike.

    Raises:
        DatasetError: a clip is silent or too short; names the base.
    """
    rate, reach = spec.clip_rate, reach_of(spec.spans)
    try:
        sounds = [np.asarray(version.sound(), np.float64) for version in base.versions]
        lengths = [base_length(sound, rate, spec.duration, reach) for sound in sounds]
        copies = list(draw_copies(base, spec))
        clips = render_orbit(sounds[0], lengths[0], rate, copies, spec.headroom)
        if not copies:
            return clips
        # Two sounds are cut to the shorter length; otherwise their lengths would distinguish them.
        candidates = [middle_of(sound, min(lengths[1:])) for sound in sounds[1:]]
        return clips + render_candidates(candidates, rate, clips[0], inverted=number // 2 % 2 == 1)
    except DatasetError as error:
        raise DatasetError(f"{base.title} {error}") from error


class RecentOrbits:
    """The clips of the last few bases, rendered once even if several threads ask for single clips."""

    def __init__(self) -> None:
        """Render nothing yet."""
        self._orbits: OrderedDict[int, Future[list[Pcm16]]] = OrderedDict()
        self._lock = threading.Lock()

    def clip(self, number: int, place: int, render: Callable[[], list[Pcm16]]) -> Sequence[Pcm16]:
        """Return one of the clips of a base, rendering them unless another thread does or has done so."""
        with self._lock:
            orbit = self._orbits.get(number)
            is_new = orbit is None
            if orbit is None:
                orbit = self._orbits[number] = Future()
                if len(self._orbits) > _KEPT:
                    self._orbits.popitem(last=False)
        if is_new:
            try:
                orbit.set_result(render())
            except BaseException as error:
                orbit.set_exception(error)
        return (orbit.result()[place],)
