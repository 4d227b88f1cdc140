"""What an evaluation costs before it is begun: clips, seconds of sound, minutes and MB, from rates measured here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from audio_compositionality.dataset_builder.data import Configuration

if TYPE_CHECKING:
    from audio_compositionality.encoders.base import Model

TRIED = 4
"""Clips that a rate is measured by; one more is embedded before, so that what is done once does not count."""

_BYTES = 4
"""Of a number of an embedding in the store."""


@dataclass(frozen=True)
class Cost:
    """What embedding or asking about the clips of a configuration takes.

    Attributes:
        recipe: of the configuration.
        rows: how many.
        clips: how many.
        seconds: of sound, as long as the first few clips are on average.
    """

    recipe: str
    rows: int
    clips: int
    seconds: float


def cost_of(configuration: Configuration) -> Cost:
    """The cost of a configuration; a few clips of it are rendered or read.

    Raises:
        DatasetError: the data cannot be used.
    """
    count = len(configuration.clip_ids)
    first = list(configuration.clips(range(min(count, TRIED)), keep_invalid=True))
    mean = sum(len(clip.waveform) / clip.sample_rate for clip in first) / max(len(first), 1)
    return Cost(configuration.recipe, len(configuration.rows), count, mean * count)


def seconds_per_clip(model: Model, configuration: Configuration) -> float:
    """Seconds that one clip takes on this machine, rendered or read and embedded by itself.

    Raises:
        DatasetError: the data cannot be used.
        ModelError: the model cannot embed these clips.
    """
    clips = configuration.clips(range(min(len(configuration.clip_ids), TRIED + 1)), keep_invalid=True)
    taken: list[float] = []
    started = time.perf_counter()
    for clip in islice(clips, TRIED + 1):
        if clip.problem is None:
            model.embed(clip.waveform[None], clip.sample_rate)
        taken.append(time.perf_counter() - started)
        started = time.perf_counter()
    return sum(taken[1:] or taken) / max(len(taken[1:] or taken), 1)


def stored_megabytes(model: Model, costs: Sequence[Cost]) -> float:
    """MB that the embeddings take in the store."""
    return sum(cost.clips for cost in costs) * (model.card.output_dim or 0) * _BYTES / 1e6
