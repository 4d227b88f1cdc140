"""The protocol of opened data: what the rest of the project knows of them, whatever recipe they are of.

Data hold configurations, one a recipe. A configuration has rows, and each row any number of clips, of any length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.spec import fingerprint_of as digest_of
from audio_compositionality.support.text import nearest

Waveform = NDArray[np.float32]
Pcm16 = NDArray[np.int16]
Row = dict[str, Any]


class DatasetError(AudioCompositionalityError):
    """Data that cannot be used as they are: says which file, row or value, what is wrong, and what is expected."""


@dataclass(frozen=True)
class Clip:
    """One clip.

    Attributes:
        id: ``<row id>/<name of the clip in its row>``.
        waveform: float32 [samples] in [-1, 1]; NaN where the clip cannot be used.
        sample_rate: Hz.
        problem: why the clip cannot be used; None where it can.
    """

    id: str
    waveform: Waveform
    sample_rate: int
    problem: str | None = None


@dataclass(frozen=True)
class ClipBatch:
    """Consecutive clips of one length and rate.

    Attributes:
        ids: of the clips.
        waveforms: float32 [clips, samples] in [-1, 1].
        sample_rate: Hz.
        errors: by place in the batch, why a clip cannot be used; its samples are NaN.
    """

    ids: tuple[str, ...]
    waveforms: Waveform
    sample_rate: int
    errors: Mapping[int, str] = field(default_factory=dict)


class Configuration(Protocol):
    """The data of one recipe, in a fixed order.

    Attributes:
        recipe: name of the recipe.
        source: what the data were opened from: a preset, a folder, a Hub id.
        fingerprint: names the samples; equal fingerprints mean equal samples.
        rows: all rows without their audio: ``id``, ``split``, and what else the recipe's features name.
        clip_ids: of all clips, row by row.
    """

    recipe: str
    source: str

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    @property
    def rows(self) -> Sequence[Row]: ...  # noqa: D102

    @property
    def clip_ids(self) -> Sequence[str]: ...  # noqa: D102

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Clips in the order of `clip_ids`.

        Args:
            wanted: their numbers in `clip_ids`, consecutive; by default all.
            keep_invalid: give a clip that cannot be used with its `Clip.problem` instead of raising an error.

        Raises:
            DatasetError: a clip cannot be used, and ``keep_invalid`` is not given.
        """
        ...


AnyConfiguration = TypeVar("AnyConfiguration", bound=Configuration)


class Data(Protocol):
    """Opened data.

    Attributes:
        source: what they were opened from.
        recipes: names of the recipes that they hold configurations of.
    """

    source: str

    @property
    def recipes(self) -> tuple[str, ...]: ...  # noqa: D102

    def configuration(self, recipe: str) -> Configuration:
        """The configuration of a recipe.

        Raises:
            DatasetError: the data hold none; says which they hold.
        """
        ...


class HeldData(Generic[AnyConfiguration]):
    """Data whose configurations are at hand; see `Data`."""

    def __init__(self, source: str, configurations: Mapping[str, AnyConfiguration]) -> None:
        """Hold configurations by the name of their recipe."""
        self.source = source
        self._configurations = dict(configurations)

    @property
    def recipes(self) -> tuple[str, ...]:
        """Names of the recipes."""
        return tuple(self._configurations)

    def configuration(self, recipe: str) -> AnyConfiguration:
        """The configuration of a recipe; raises DatasetError where there is none."""
        if recipe not in self._configurations:
            raise DatasetError(f"{self.source} has no data of {recipe!r}; {nearest(recipe, self.recipes)}")
        return self._configurations[recipe]


def to_waveform(samples: Pcm16) -> Waveform:
    """16-bit samples as float32 in [-1, 1), value / 32,768 as audio readers give them."""
    # In one pass: blocks of clips go through here.
    waveform: Waveform = np.multiply(samples, np.float32(1 / 32_768), dtype=np.float32)
    return waveform


def in_batches(clips: Iterable[Clip], batch_size: int) -> Iterator[ClipBatch]:
    """Group consecutive clips of one length and rate into batches of at most `batch_size`.

    Raises:
        InputError: `batch_size` is less than 1.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be 1 or more")
    batch: list[Clip] = []
    for clip in clips:
        if batch and (len(batch) == batch_size or _shape(clip) != _shape(batch[0])):
            yield _batch(batch)
            batch = []
        batch.append(clip)
    if batch:
        yield _batch(batch)


def _shape(clip: Clip) -> tuple[int, int]:
    return len(clip.waveform), clip.sample_rate


def _batch(clips: Sequence[Clip]) -> ClipBatch:
    errors = {place: clip.problem for place, clip in enumerate(clips) if clip.problem is not None}
    waveforms = np.stack([clip.waveform for clip in clips])
    return ClipBatch(tuple(clip.id for clip in clips), waveforms, clips[0].sample_rate, errors)


def check_range(wanted: range | None, count: int) -> range:
    """The numbers that are asked for, of `count`; all for None.

    Raises:
        InputError: they are not consecutive, or do not lie within the range.
    """
    if wanted is None:
        return range(count)
    if wanted.step != 1 or not 0 <= wanted.start <= wanted.stop <= count:
        raise InputError(f"clips are {wanted}; they must be consecutive and lie within range(0, {count})")
    return wanted


def fingerprint_of(recipe: str, version: int, values: Mapping[str, Any]) -> str:
    """SHA-256 over a recipe's name, its version and its settings as JSON: equal fingerprints mean equal samples."""
    return digest_of(recipe=recipe, version=version, settings=values)
