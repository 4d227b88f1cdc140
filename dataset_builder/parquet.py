"""Parquet files: reading with the name in every error, and which of their columns have sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Audio, Features, LargeList, List

from .data import DatasetError


@dataclass(frozen=True)
class AudioColumn:
    """A column of clips.

    Attributes:
        name: of the column.
        is_list: whether a row has a list of clips in it, ``name/0``, ``name/1`` …; else it has one, ``name``.
        sample_rate: Hz; None where each clip has its own.
    """

    name: str
    is_list: bool
    sample_rate: int | None

    def clip_names(self, count: int) -> tuple[str, ...]:
        """The names of a row's clips in this column, of which there are so many."""
        return tuple(f"{self.name}/{number}" for number in range(count)) if self.is_list else (self.name,)


def audio_columns(features: Features) -> tuple[AudioColumn, ...]:
    """The columns with sound, in the order of the features."""
    columns = []
    for name, feature in features.items():
        is_list = isinstance(feature, (List, LargeList))
        audio = feature.feature if is_list else feature
        if isinstance(audio, Audio):
            columns.append(AudioColumn(name, is_list, audio.sampling_rate))
    return tuple(columns)


Answer = TypeVar("Answer")


def open_parquet(name: str, path: Path) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        DatasetError: it is none.
    """
    return naming(name, lambda: pq.ParquetFile(path))


def naming(name: str, read: Callable[[], Answer]) -> Answer:
    """What a function of pyarrow returns, whose errors do not say which file they are about.

    Raises:
        DatasetError: the file's data are damaged; one that `read` raises says so itself.
    """
    try:
        return read()
    except DatasetError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DatasetError(f"{name} cannot be read as Parquet, its data are damaged: {error}") from error
