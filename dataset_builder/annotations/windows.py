"""Parts of long recordings, each with what is heard in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from audio_compositionality.support.errors import InputError

from .base import ROUNDING, Annotation

SECONDS = 25.0
"""Of a window (arXiv 2603.05128)."""


def windows(annotations: Iterable[Annotation], seconds: float = SECONDS) -> tuple[Annotation, ...]:
    """Long recordings cut into parts of one length that do not overlap; what is no longer than a part stays whole.

    A rest that is shorter than a part is left out. The name of the recording and its group stay, so that parts of one
    recording stay on one side of a split.

    Args:
        annotations: of recordings.
        seconds: of a part.

    Raises:
        InputError: `seconds` is not more than 0.
    """
    if not seconds > 0:
        raise InputError(f"windows last {seconds} s; expected is more than 0")
    return tuple(part for annotation in annotations for part in _parts(annotation, seconds))


def _parts(annotation: Annotation, seconds: float) -> tuple[Annotation, ...]:
    if annotation.duration <= seconds + ROUNDING:
        return (annotation,)
    count = int((annotation.duration + 1e-6) // seconds)
    return tuple(_part(annotation, number * seconds, seconds) for number in range(count))


def _part(annotation: Annotation, start: float, seconds: float) -> Annotation:
    spans = [(max(e.onset - start, 0.0), min(e.offset - start, seconds), e) for e in annotation.events]
    events = tuple(replace(event, onset=on, offset=off) for on, off, event in spans if on < off)
    return replace(annotation, duration=seconds, events=events, start=annotation.start + start)
