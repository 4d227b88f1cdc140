"""Rows and clips that cost nothing, for tests of what stands between data and a model."""

from collections.abc import Sequence

import numpy as np

from audio_compositionality.dataset_builder.data import Clip, check_range
from audio_compositionality.training.data import TrainingData, TrainingRow

RATE = 8_000


class MadeConfiguration:
    """So many clips of noise, another for each number; see `Configuration`."""

    recipe, source = "made", "made data"

    def __init__(self, count: int, rate: int = RATE, seconds: float = 0.1) -> None:
        self.rows = [{"id": str(number), "split": "train"} for number in range(count)]
        self.clip_ids = tuple(f"{number}/audio" for number in range(count))
        self.fingerprint = self.rows_digest = f"made {count} {rate} {seconds}"
        self.rate, self.samples = rate, round(rate * seconds)
        self.read: list[int] = []

    def clips(self, wanted=None, *, keep_invalid=False):
        for number in check_range(wanted, len(self.clip_ids)):
            self.read.append(number)
            waveform = np.random.default_rng(number).normal(0, 0.1, self.samples).astype(np.float32)
            yield Clip(self.clip_ids[number], waveform, self.rate)


def made_row(number: int, *, kinds: Sequence[str] = ("order", "attribute", "absent"), parts: int = 2) -> TrainingRow:
    return TrainingRow(
        id=f"row {number}",
        captions=tuple(f"caption {number} {letter}" for letter in "abcd"),
        parts=tuple(f"part {number} {place}" for place in range(parts)),
        negatives=tuple((f"{kind} {number} {place}", kind) for kind in kinds for place in range(3)),
        expression=f"{number} + {number}",
        clip=number,
    )


def made_data(count: int = 40, rows: Sequence[TrainingRow] | None = None, **options) -> TrainingData:
    made = [made_row(number) for number in range(count)] if rows is None else rows
    return TrainingData(MadeConfiguration(count, **options), "train", made)
