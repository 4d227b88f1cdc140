"""Which recordings are for training and which for test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping

from audio_compositionality.support.errors import InputError

from ..annotations.base import Annotation


def split_by_recording(
    annotations: Iterable[Annotation], shares: Mapping[str, float], *, seed: int = 0
) -> dict[str, tuple[Annotation, ...]]:
    """Recordings in parts of given shares; what is of one recording or group stays together.

    A recording is drawn by its name: another one that comes or goes moves no more than the borders between the parts.

    Args:
        annotations: of recordings.
        shares: of the groups, by name of the part; together 1.
        seed: another one draws otherwise.

    Raises:
        InputError: a share is not more than 0, or they are not 1 together.
    """
    if not shares or min(shares.values()) <= 0 or not math.isclose(sum(shares.values()), 1):
        raise InputError(f"shares are {dict(shares)}; each has to be more than 0, and they have to be 1 together")
    ordered = sorted(annotations, key=lambda annotation: (annotation.source_name, *annotation.key))
    parts: dict[str, list[Annotation]] = {name: [] for name in shares}
    for source in sorted({annotation.source_name for annotation in ordered}):
        of_source = [annotation for annotation in ordered if annotation.source_name == source]
        groups = sorted({annotation.split_group for annotation in of_source}, key=lambda group: _draw(group, seed))
        part_of: dict[str, str] = {}
        first, share = 0, 0.0
        for name in shares:
            share += shares[name]
            last = round(share * len(groups))
            part_of |= dict.fromkeys(groups[first:last], name)
            first = last
        for annotation in of_source:
            parts[part_of[annotation.split_group]].append(annotation)
    return {name: tuple(members) for name, members in parts.items()}


def _draw(group: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()
