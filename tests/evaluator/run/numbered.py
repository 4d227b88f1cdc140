"""Data without sound: clips that are numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from audio_compositionality.dataset_builder.data import Clip, check_range


class Numbered:
    """A configuration of clips of 8 samples, each of which is the number of its clip; not one is rendered."""

    recipe, source, fingerprint = "numbers", "numbered", "f" * 64

    def __init__(self, count: int) -> None:
        self.rows = [{"id": f"s{number}", "split": "test"} for number in range(count)]
        self.clip_ids = [f"s{number}/audio" for number in range(count)]

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        for number in check_range(wanted, len(self.rows)):
            yield Clip(f"s{number}/audio", np.full(8, number, np.float32), 16_000)
