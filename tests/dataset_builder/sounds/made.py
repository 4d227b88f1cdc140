"""Recordings that are made up: a tone and some noise each, of their own lengths."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.sounds.entries import Sound


@dataclass(frozen=True)
class MadeRecordings:
    entries: tuple[Sound, ...]
    seconds: tuple[float, ...]
    rates: tuple[int, ...]
    source: str = "made up"
    suggested: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def sample_rate(self):
        return self.rates[0] if len(set(self.rates)) == 1 else None

    @property
    def fingerprint(self):
        return hashlib.sha256(repr([(e.sha256, e.label, e.group) for e in self.entries]).encode()).hexdigest()

    def waveform(self, index):
        rate = self.rates[index]
        number = int(self.entries[index].sha256, 16)
        times = np.arange(round(self.seconds[index] * rate)) / rate
        tone = 0.3 * np.sin(2 * np.pi * (300 + 40 * number) * times)
        return tone + 0.01 * np.random.default_rng(number).standard_normal(len(times)), rate

    def without(self, index):
        parts = (list(part) for part in (self.entries, self.seconds, self.rates))
        return replace(
            self,
            **{
                name: tuple(part[:index] + part[index + 1 :])
                for name, part in zip(("entries", "seconds", "rates"), parts, strict=True)
            },
        )


def made_recordings(count=12, *, seconds=1.0, rate=16_000, labels="ab", groups=("",), rates=None):
    """So many recordings; labels and groups in turns."""
    entries = tuple(
        Sound(f"{n}.wav", labels[n % len(labels)], groups[n % len(groups)], f"{n + 1:064x}") for n in range(count)
    )
    return MadeRecordings(entries, (seconds,) * count, tuple(rates or (rate,) * count))
