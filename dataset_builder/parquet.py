"""Reading Parquet with the file's name in every error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from .data import DatasetError

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
