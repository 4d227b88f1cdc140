"""A clip in frames of 10 ms: what is heard in the middle of each, without intervals.

It is the other way by which `check` comes to what is heard; nothing of `annotations.intervals` is used, and the numbers
that say what counts as an overlap are written down a second time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..annotations.base import Annotation

_SECOND = 1_000_000
_FRAME = 10_000

Mask = NDArray[np.bool_]
"""For each frame whether something is heard in it."""


@dataclass(frozen=True)
class Heard:
    """A clip, frame by frame.

    Attributes:
        masks: of each label, with silences filled that are none.
        wide: the same, each sound longer on both sides by what nobody hears.
        least_overlap, least_total, least_margin, least_onset: in frames.
        guard: by which `wide` is longer, frames.
        seconds: of the clip.
        resolution: seconds.
        sources: frames in which each source is heard; None where labels do not tell sources apart.
    """

    masks: Mapping[str, Mask]
    wide: Mapping[str, Mask]
    least_overlap: int
    least_total: int
    least_margin: int
    least_onset: int
    guard: int
    seconds: float
    resolution: float
    sources: tuple[int, ...] | None

    def overlap(self, one: str, other: str) -> bool:
        """Whether two labels are heard together for long enough."""
        return longest_run(self.masks[one] & self.masks[other]) >= self.least_overlap

    def apart(self, one: str, other: str) -> bool:
        """Whether nobody could hear two labels together."""
        return not np.any(self.wide[one] & self.wide[other])


def _distances(mask: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each frame how many frames ago the last was in which something is heard, and how many it is to the next."""
    frames, far = np.arange(len(mask)), 2 * len(mask) + 1_000_000
    before = frames - np.maximum.accumulate(np.where(mask, frames, -far))
    after = np.minimum.accumulate(np.where(mask, frames, far)[::-1])[::-1] - frames
    return before, after


def longest_run(mask: Mask) -> int:
    """Most frames in a row in which something is heard."""
    before, _ = _distances(~mask)
    frames = np.arange(len(mask))
    return int(np.where(mask, np.minimum(before, frames + 1), 0).max(initial=0))


def _filled(mask: Mask, most: int) -> Mask:
    """A mask without the gaps of at most so many frames."""
    before, after = _distances(mask)
    filled: Mask = before + after - 1 <= most
    return mask | filled


@lru_cache(maxsize=256)
def ways(annotation: Annotation) -> tuple[Heard, ...]:
    """The clip, once for each way to take what is heard perhaps: 0.3 to 0.7; the first way takes 0.5 and more."""
    certain = {event: 1.0 if event.confidence is None else event.confidence for event in annotation.events}
    doubtful = sorted({event.label for event, sure in certain.items() if 0.3 <= sure <= 0.7})
    ways = [{label: 0.5 for label in annotation.labels}]
    for several in ([], doubtful, *([label] for label in doubtful)):
        ways.append({label: 0.3 if label in several else 0.7 for label in annotation.labels})
        ways.append({label: 0.7 if label in several else 0.3 for label in annotation.labels})
    distinct = [way for number, way in enumerate(ways) if way not in ways[:number]] if doubtful else ways[:1]
    return tuple(_heard(annotation, way) for way in distinct)


def _heard(annotation: Annotation, thresholds: Mapping[str, float]) -> Heard:
    """The clip, of which each label is heard that is as certain as its threshold; of 0.7, what is more certain."""
    resolution = annotation.resolution
    frames = math.ceil(annotation.duration * 100) + 1
    middles = np.arange(frames) * _FRAME + _FRAME // 2
    most_silent, guard = frames_in(max(0.2, resolution)), frames_in(max(0.1, resolution))
    masks: dict[str, Mask] = {}
    sources: dict[tuple[str, str], Mask] = {}
    for event in annotation.events:
        sure, least = 1.0 if event.confidence is None else event.confidence, thresholds[event.label]
        if sure < least or (least == 0.7 and sure == 0.7):
            continue
        mask = (middles >= round(event.onset * _SECOND)) & (middles < round(event.offset * _SECOND))
        masks[event.label] = masks.get(event.label, np.zeros(frames, bool)) | mask
        by = (event.label, event.source or "")
        sources[by] = sources.get(by, np.zeros(frames, bool)) | mask
    masks = {label: _filled(mask, most_silent) for label, mask in masks.items()}
    wide = {label: _wide(mask, guard) for label, mask in masks.items()}
    tell = all(event.source is not None for event in annotation.events)
    return Heard(
        masks,
        wide,
        frames_in(max(0.5, resolution)),
        frames_in(max(0.25, resolution)),
        frames_in(max(0.5, 2 * resolution)),
        frames_in(max(0.5, resolution)),
        guard,
        annotation.duration,
        resolution,
        tuple(int(_filled(mask, most_silent).sum()) for mask in sources.values()) if tell else None,
    )


def frames_in(seconds: float) -> int:
    """Frames whose middle lies in the first so many seconds."""
    middles = np.arange(math.ceil(seconds * 100) + 1) * _FRAME + _FRAME // 2
    return int(np.count_nonzero(middles < round(seconds * _SECOND)))


def _wide(mask: Mask, guard: int) -> Mask:
    """A mask that is longer on both sides by `guard` frames; it begins so many frames before the clip."""
    room = np.zeros(guard, bool)
    before, after = _distances(np.concatenate((room, mask, room)))
    wide: Mask = np.minimum(before, after) <= guard
    return wide
