"""What a reader is, and data that were read: rows, and files with their sound."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from audio_compositionality.support.files import sha256_of, sha256_of_file
from audio_compositionality.support.text import nearest

from ..data import Clip, Data, DatasetError, Row, Waveform, check_range
from ..recordings.sound_files import RecordingError, SoundFile, read_header, read_samples

LONGEST_CLIP = 600
"""Seconds; a file that claims more is not decoded."""


class Reader(Protocol):
    """Reads a benchmark that others published from what a user has of it.

    Attributes:
        name: what stands before the colon of ``NAME:PATH``.
        meaning: what it reads, for help texts.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def meaning(self) -> str: ...  # noqa: D102

    def open(self, path: str) -> Data:
        """Open what lies at a path.

        Raises:
            DatasetError: it is not there, or cannot be read: lists everything that is missing.
        """
        ...


@dataclass(frozen=True)
class ReadClip:
    """A clip before it is decoded.

    Attributes:
        name: within its row: ``audio/0``.
        sound: gives the file, or its content; raises DatasetError where it must not be opened.
    """

    name: str
    sound: Callable[[], SoundFile]


class ReadConfiguration:
    """Rows that were read, and the files with their clips, as long and at the rate that they are; see `Configuration`.

    Attributes:
        recipe: name of the recipe that the rows are of.
        source: what they were opened from.
        rows: all rows without their audio.
    """

    def __init__(self, recipe: str, source: str, rows: Sequence[Row], clips: Sequence[Sequence[ReadClip]]) -> None:
        """Nothing is decoded.

        Args:
            recipe: name of the recipe.
            source: what they were opened from.
            rows: see above.
            clips: of each row.
        """
        self.recipe = recipe
        self.source = source
        self.rows: Sequence[Row] = tuple(rows)
        self._clips = [
            (f"{row['id']}/{clip.name}", clip) for row, of_row in zip(rows, clips, strict=True) for clip in of_row
        ]

    @property
    def clip_ids(self) -> Sequence[str]:
        """Ids of all clips, row by row."""
        return tuple(id for id, _ in self._clips)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the rows and the content of the files, wherever these lie."""
        digest = hashlib.sha256(f"{self.recipe}\n".encode())
        for row in self.rows:
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
        for id, clip in self._clips:
            file = clip.sound()
            content = sha256_of_file(file) if isinstance(file, Path) else sha256_of(file.getvalue())
            digest.update(f"{id} {content}\n".encode())
        return digest.hexdigest()

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Clips in the order of `clip_ids`, the mean of their channels; see `Configuration.clips`."""
        for place in check_range(wanted, len(self._clips)):
            id, clip = self._clips[place]
            try:
                waveform, rate = _decoded(clip.sound())
            except DatasetError as error:
                if not keep_invalid:
                    raise DatasetError(f"{self.source}: clip {id} {error}") from error
                yield Clip(id, np.full(1, np.nan, np.float32), 1, str(error))
            else:
                yield Clip(id, waveform, rate)


def _decoded(file: SoundFile) -> tuple[Waveform, int]:
    """Samples and rate of a file.

    Raises:
        RecordingError: it cannot be used: the end of a sentence that begins with its name.
    """
    header = read_header(file)
    if header.frames > LONGEST_CLIP * header.rate:
        raise RecordingError(f"claims {header.frames / header.rate:,.0f} s; a clip lasts {LONGEST_CLIP} s at most")
    if not header.frames:
        raise RecordingError("is empty; a clip has at least one sample")
    waveform = read_samples(file, header.frames, 0)
    if not waveform.any():
        raise RecordingError("is silent; a clip has something to hear")
    return waveform, header.rate


class ReadData:
    """Data that were read; see `Data`."""

    def __init__(self, source: str, configurations: Mapping[str, ReadConfiguration]) -> None:
        """Hold configurations by the name of their recipe."""
        self.source = source
        self._configurations = dict(configurations)

    @property
    def recipes(self) -> tuple[str, ...]:
        """Names of the recipes."""
        return tuple(self._configurations)

    def configuration(self, recipe: str) -> ReadConfiguration:
        """The configuration of a recipe; raises DatasetError where there is none."""
        if recipe not in self._configurations:
            raise DatasetError(f"{self.source} has no data of {recipe!r}; {nearest(recipe, self.recipes)}")
        return self._configurations[recipe]
