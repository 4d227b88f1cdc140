"""What is known of samples that are whole recordings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from audio_compositionality.dataset_builder.data import Row

from .base import Samples


def whole_clip_samples(rows: Sequence[Row], texts: Sequence[str]) -> Samples:
    """All rows, each a clip; those of one group belong together, those without are their own.

    Args:
        rows: each with a clip ``audio``, and its ``group``.
        texts: what is said of each, for people.
    """
    groups = [row.get("group") or f"row {place}" for place, row in enumerate(rows)]
    codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    are_shared = len(set(groups)) < len(groups)
    return Samples(
        rows=tuple(rows),
        clusters=codes if are_shared else np.arange(len(rows)),
        clustered_by="the group of recordings" if are_shared else "",
        texts=tuple({"audio": text} for text in texts),
    )
