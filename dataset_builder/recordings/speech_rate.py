"""Words a second of recordings of speech, from a transcript or from the times of its words (arXiv 2505.06224)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audio_compositionality.support.text import nearest

from .rows import Labels
from .sound_files import RecordingError, SoundFile, read_header

WORDS_PER_SECOND = "words_per_second"
"""The label that is counted, not read: ``words_per_second`` alone, or ``words_per_second=COLUMN``."""

TRANSCRIPTS = ("text", "transcript", "transcription", "sentence", "words")
"""Columns that are taken for what is said, where none is named."""

_SILENCES = ("", "<eps>", "sil", "sp")
"""What aligners write where nothing is said."""


def counted_column(source: str, label: str | None, columns: Sequence[str]) -> str | None:
    """The column in which words are counted; None where the label is a column itself, or none.

    Args:
        source: what the recordings are called, for messages.
        label: as it is asked for.
        columns: of the data.

    Raises:
        RecordingError: there is no such column, or none that is usually called so.
    """
    name, equals, column = (label or "").partition("=")
    if label in columns or name.strip() != WORDS_PER_SECOND:
        return None
    if equals and column.strip() in columns:
        return column.strip()
    if equals:
        raise RecordingError(f"{source} has no column {column.strip()!r}; {nearest(column.strip(), columns)}")
    usual = [one for one in TRANSCRIPTS if one in columns]
    if not usual:
        raise RecordingError(
            f"{source} has no column {', '.join(TRANSCRIPTS)} in which words can be counted; name one: "
            f"--label {WORDS_PER_SECOND}=COLUMN, of {', '.join(columns)}"
        )
    return usual[0]


def counted_labels(source: str, column: str, said: Sequence[Any], sound: Callable[[int], SoundFile]) -> Labels:
    """Words a second of each recording, as numbers.

    Args:
        source: what the recordings are called, for messages.
        column: where `said` stands, for messages.
        said: of each a transcript, whose words are counted over the seconds of the whole recording; or its words with
            times in seconds, ``[{"word", "start", "end"}, …]`` or lists by these names, from the first word's start
            to the last one's end. Who says nothing is left out.
        sound: gives the file of a recording, or its content.

    Raises:
        RecordingError: it is neither a text nor words with times.
    """
    numbers: list[float] = []
    left_out: dict[int, str] = {}
    for row, of_row in enumerate(said):
        words, seconds = _counted(source, column, row, of_row)
        if words and seconds is None:
            seconds = _seconds(sound, row)
        if not words:
            left_out[row] = f"has no words in {column}"
        elif seconds is not None and seconds <= 0:
            left_out[row] = f"has words that last {seconds:g} s in {column}"
        numbers.append(words / seconds if seconds and row not in left_out else 0.0)
    texts = [None if row in left_out else f"{number:.3f}" for row, number in enumerate(numbers)]
    return Labels(texts, numbers, (), left_out)


def _counted(source: str, column: str, row: int, said: Any) -> tuple[int, float | None]:
    """How many words, and in how many seconds where their times are given."""
    if said is None or isinstance(said, str):
        return len((said or "").split()), None
    if isinstance(said, Mapping) and {"start", "end"} <= set(said):
        said = [dict(zip(said, values, strict=True)) for values in zip(*said.values(), strict=True)]
    words: list[Any] = said if isinstance(said, list) else [None]
    if not all(isinstance(word, Mapping) and {"start", "end"} <= set(word) for word in words):
        raise RecordingError(
            f"{source}: {column} of row {row} is neither a text nor words with times (start and end of each in seconds)"
        )
    spoken = [word for word in words if str(word.get("word", "-") or "").strip().lower() not in _SILENCES]
    if not spoken:
        return 0, None
    return len(spoken), float(max(word["end"] for word in spoken) - min(word["start"] for word in spoken))


def _seconds(sound: Callable[[int], SoundFile], row: int) -> float | None:
    """How long a recording lasts; None where that cannot be known, of which its reading says why."""
    try:
        header = read_header(sound(row))
    except RecordingError:
        return None
    return header.frames / header.rate
