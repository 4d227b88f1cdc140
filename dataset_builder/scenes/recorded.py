"""What recipes of several recordings a clip have in common: settings, rendering, columns and cards."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar, cast

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..data import DatasetError, Row
from ..sounds.entries import Sounds
from .placing import HIGHEST, KNOTS, LOWEST, PAUSES, mix_together, place_recording
from .pool import RecordingPool
from .rendering import SharedRendering
from .sources import LONGEST_DURATION, random_generator
from .transforms.base import Samples

SHORTEST_DURATION = 0.25
"""Seconds of a clip."""


Settings = TypeVar("Settings")


def check_setting(name: str, value: float, low: float, high: float) -> None:
    """Refuse a setting of what is made of recordings that is out of its range.

    Raises:
        InputError: says the value and the range.
    """
    if not low <= value <= high:
        raise InputError(f"{name} is {value:,}; it must be from {low:,} to {high:,}")


def settings_of_recordings(
    settings: type[Settings], preset: Any, recordings: Sounds, requested: Mapping[str, Any], *, what: str
) -> Settings:
    """Settings of what is made of recordings, as large as a preset of what is made of tones.

    Args:
        settings: what they are, a dataclass with ``recordings`` and ``domain``.
        preset: settings of tones; what both have is taken from it, but for the sound.
        recordings: what clips are made of.
        requested: as `RecordedRecipe.of_recordings` has it.
        what: is made of them, in words and the plural.

    Raises:
        InputError: there is no such setting, or a value out of its range.
    """
    names = [field_.name for field_ in fields(cast(Any, settings)) if field_.name != "recordings"]
    for name in requested:
        if name not in names:
            raise InputError(f"{what} have no setting {name!r}; {nearest(name, names)}")
    sizes = {name: getattr(preset, name) for name in names if hasattr(preset, name)}
    domain = str(recordings.suggested.get("domain", ""))
    return settings(**{"domain": domain, **sizes, **requested, "recordings": recordings})


@dataclass(frozen=True, kw_only=True)
class RecordedSettings:
    """Everything that decides clips of several recordings, whatever the recipe.

    Attributes:
        seed: seed of every random choice, from 0 to 2^63 - 1.
        duration: seconds of a clip.
        sample_rate: Hz of every clip; recordings are brought to it.
        eq_db: standard deviation, in decibels, of the random smooth filter that each source passes, at its knots.
        domain: what the recordings are, in a word, for the rows: ``words``. See `domain_name`.
        recordings: what clips are made of; by default the timbres of the project's own voices.

    Raises:
        InputError: a value out of its range.
    """

    seed: int = 0
    duration: float = 2.5
    sample_rate: int = 16_000
    eq_db: float = 4.0
    domain: str = ""
    recordings: Sounds | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for field_ in fields(self):
            if field_.type == "int":
                object.__setattr__(self, field_.name, operator.index(getattr(self, field_.name)))
            elif field_.type == "float":
                object.__setattr__(self, field_.name, float(getattr(self, field_.name)))
        self._check("seed", self.seed, 0, 2**63 - 1)
        self._check("sample_rate", self.sample_rate, 8_000, 192_000)
        self._check("duration", self.duration, SHORTEST_DURATION, LONGEST_DURATION)
        self._check("eq_db", self.eq_db, 0, 20)

    _check = staticmethod(check_setting)

    @property
    def num_samples(self) -> int:
        """Samples of a clip."""
        return round(self.duration * self.sample_rate)

    @property
    def domain_name(self) -> str:
        """The domain; where none is given ``recordings``, or ``timbres`` where they are ours."""
        return self.domain or ("timbres" if self.recordings is None else "recordings")

    @property
    def sources(self) -> Sounds:
        """The recordings that clips are made of."""
        if self.recordings is not None:
            return self.recordings
        from ..sounds.tones import default_timbres

        return default_timbres()

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; of the recordings, or of the timbres in their place, the fingerprint."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recordings"}
        return {**values, "timbres" if self.recordings is None else "recordings": self.sources.fingerprint}


@dataclass(frozen=True, kw_only=True)
class BlockSettings(RecordedSettings):
    """Everything that decides the blocks and their samples. Defaults are for recordings.

    Attributes:
        blocks: how many.
        classes: K, labels of a block that are told from each other.
        context_sources: sources of each of the two contexts.
        snr_db: level of the added source over that of its whole context, in decibels.
        unrelated: whether the conditions of the two sides are not related, as two voices of one synthesiser are; see
            `related`. Where they may be, a linear map can tell classes by what such conditions have in common.

    Raises:
        InputError: see `RecordedSettings`.
    """

    blocks: int = 96
    classes: int = 8
    context_sources: int = 2
    snr_db: float = 0.0
    unrelated: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("blocks", self.blocks, 1, 100_000)
        self._check("classes", self.classes, 2, 64)
        self._check("context_sources", self.context_sources, 1, 8)
        self._check("snr_db", self.snr_db, -40, 40)


SettingsRecorded = TypeVar("SettingsRecorded", bound=RecordedSettings)


class RecordedRendering(SharedRendering[SettingsRecorded]):
    """A rendering of recordings; a subclass adds rows and clips, see `Rendering`."""

    @cached_property
    def recordings(self) -> Sounds:
        """What clips are made of."""
        return self.settings.sources

    @cached_property
    def pool(self) -> RecordingPool:
        """The recordings by label and condition."""
        return RecordingPool(self.recordings)

    def ids(self, numbers: tuple[int, ...]) -> list[str]:
        """The names of recordings."""
        return [self.recordings.entries[number].id for number in numbers]

    def labels(self, numbers: tuple[int, ...]) -> list[str]:
        """The labels of recordings."""
        return [self.recordings.entries[number].label for number in numbers]

    def placed(self, number: int, stream: int, *place: int) -> Samples:
        """A recording as a source over a clip, float64 [samples], at a level of 1.

        Args:
            number: of the recording.
            stream: of random numbers; see `random_generator`.
            place: of the source, which has random numbers of its own.

        Raises:
            DatasetError: it is silent.
        """
        settings = self.settings
        waveform, rate = self.recordings.waveform(number)
        rng = random_generator(settings.seed, stream, *place)
        try:
            return place_recording(waveform, rate, settings.num_samples, self.sample_rate, settings.eq_db, rng)
        except DatasetError as error:
            name = self.recordings.entries[number].id
            raise DatasetError(f"{self.recordings.source}: recording {name!r} {error}") from error

    def together(self, numbers: tuple[int, ...], stream: int, *place: int) -> Samples:
        """Recordings together, at a level of 1: the n-th has the random numbers of `place` and n."""
        sources = [self.placed(number, stream, *place, n) for n, number in enumerate(numbers)]
        try:
            return mix_together(sources)
        except DatasetError as error:
            raise DatasetError(f"{self.recordings.source}: {', '.join(self.ids(numbers))} {error}") from error


def check_texts(row: Row, columns: Sequence[str]) -> None:
    """Refuse a row in which one of some columns is no text.

    Raises:
        DatasetError: names the row and the column.
    """
    for column in columns:
        if not isinstance(row.get(column), str):
            raise DatasetError(f"row {row['id']}: {column} is {row.get(column)!r}; it is a text")


def check_lists(row: Row, columns: Sequence[str], *, count: int | None = None, least: int = 0) -> None:
    """Refuse a row in which one of some columns is no list of texts, or one of another length.

    Raises:
        DatasetError: names the row and the column.
    """
    for column in columns:
        texts = row.get(column)
        expected = f"{least} texts or more" if count is None else f"{count} texts"
        if (
            not isinstance(texts, list)
            or not all(isinstance(text, str) for text in texts)
            or (len(texts) < least if count is None else len(texts) != count)
        ):
            raise DatasetError(f"row {row['id']}: {column} is {texts!r}; it lists {expected}")


def describe_recordings(settings: RecordedSettings) -> str:
    """What the sound is made from."""
    if settings.recordings is not None:
        return f"The sound is that of recordings ({settings.domain_name})."
    return "The sound is that of FM voices (nothing was recorded): timbres are the classes."


def describe_placing(settings: RecordedSettings) -> str:
    """How a recording becomes a source of a clip."""
    low, high = PAUSES
    filtered = (
        f"passes a random smooth filter of its own ({KNOTS} knots from {LOWEST:g} Hz to {HIGHEST / 1000:g} kHz, on a "
        f"logarithmic scale, standard deviation {settings.eq_db:g} dB), and "
        if settings.eq_db
        else ""
    )
    return (
        "Each source lasts the whole clip: a window, drawn at random, of its recording repeated again and again after "
        f"{low:g} to {high:g} s of silence; where a clip does not hold a whole repetition, of the windows in which its "
        f"loudest part, of half a clip, is whole. It {filtered}gets one gain to a common root mean square"
        " and a random polarity."
    )
