"""Events on a time line: sources that begin and end, in clips that have the same samples in other places.

An event repeats its source's tone from its start and is cut at its stop, so that it sounds alike wherever it stands.
Any number of events may overlap, and a source may have several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..data import Pcm16, Waveform
from .sources import Source
from .tone_bank import ToneBank

CUT_SECONDS = 0.01
"""Length of the half-cosine fade where an event cuts a tone short; the fade that ends a tone by itself is shorter."""


@dataclass(frozen=True)
class SourceEvent:
    """A source from one sample of a clip to another.

    Attributes:
        source: what is heard.
        start: its first sample, with which a tone begins.
        stop: the sample after its last.
    """

    source: Source
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise InputError(
                f"an event is from sample {self.start} to {self.stop}; start is less than stop, and not negative"
            )

    @property
    def length(self) -> int:
        """Samples."""
        return self.stop - self.start

    def moved(self, start: int) -> SourceEvent:
        """The same event, of the same length, from another sample on."""
        return replace(self, start=start, stop=start + self.length)


def event_samples(bank: ToneBank, source: Source, length: int) -> Waveform:
    """An event by itself, float32 [length], before any common gain: tones, the last of them cut short with a fade."""
    tone = bank.tones[source.timbre, source.pitch, source.rate]
    samples = np.resize(tone, length) * np.float32(bank.spec.gains[source.amplitude])
    if length % len(tone):
        fade = min(round(CUT_SECONDS * bank.spec.sample_rate), length)
        samples[length - fade :] *= (0.5 + 0.5 * np.cos(np.pi * (np.arange(fade) + 1) / fade)).astype(np.float32)
    return np.asarray(samples, np.float32)


def event_clips(bank: ToneBank, clips: Sequence[Sequence[SourceEvent]]) -> list[Pcm16]:
    """Clips of one item under one gain, which is below 1 only where the peak of one of them would pass full scale.

    An event of one source and length is rounded to 16 bits once, then placed and added: clips that share events differ
    by whole events, sample by sample.

    Args:
        bank: the tones.
        clips: the events of each; none is an empty clip.

    Returns:
        int16 [num_samples] each.

    Raises:
        InputError: an event ends after the clip.
    """
    total = bank.spec.num_samples
    for event in (event for events in clips for event in events):
        if event.stop > total:
            raise InputError(f"an event ends at sample {event.stop:,} of a clip that has {total:,}")
    lengths = dict.fromkeys((event.source, event.length) for events in clips for event in events)
    layers = {key: event_samples(bank, *key) for key in lengths}
    peak = max((float(np.abs(_placed(events, layers, total, np.float32)).max()) for events in clips), default=0.0)
    # Each rounded event is within half a step of what the peak was measured of.
    full_scale = np.iinfo(np.int16).max - max(1.0, max(map(len, clips), default=0) / 2)
    scale = np.float32(full_scale / max(1.0, peak))
    rounded = {key: np.rint(samples * scale).astype(np.int32) for key, samples in layers.items()}
    return [_placed(events, rounded, total, np.int32).astype(np.int16) for events in clips]


def _placed(
    events: Sequence[SourceEvent],
    layers: Mapping[tuple[Source, int], NDArray[Any]],
    total: int,
    dtype: type[np.float32] | type[np.int32],
) -> NDArray[Any]:
    clip = np.zeros(total, dtype)
    for event in events:
        clip[event.start : event.stop] += layers[event.source, event.length]
    return clip
