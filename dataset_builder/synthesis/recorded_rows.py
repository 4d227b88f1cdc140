"""Columns and cards of recipes of several recordings a clip."""

from __future__ import annotations

from collections.abc import Sequence

from ..data import DatasetError, Row
from .instances import HIGHEST, KNOTS, LOWEST, PAUSES
from .recorded_settings import RecordedSettings


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
