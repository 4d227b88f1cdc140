"""The sound of sources, scenes and quadruples (paper, section 4.1).

A tone is one note of a voice, held for half its repetition period and cut with a short fade at the period; a source
is the tone repeated at its period from its onset, scaled by its amplitude; a scene is the sum of its sources. Three
attributes make the tone and the fourth only scales it, so K^3 tones rendered once are all the synthesis there is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from .config import BenchmarkConfig
from .dx7 import render
from audio_compositionality.dataset_builder.messages import DatasetError
from .scenes import Quadruple, Scene, Source

FADE_SECONDS = 0.005
"""Length of the half-cosine fade that ends a tone at its period: short against the shortest default period (0.39 s),
long enough to leave no click."""

SILENT_PEAK = 1e-4
"""A tone whose peak is below -80 dB re one full-level carrier is no sound that could be scaled to unit peak."""

FULL_SCALE = 32_766
"""The 16-bit value of a sample of 1.0: one below the largest, since A and T are rounded before they are added."""

Waveform = NDArray[np.float32]
Samples = NDArray[np.int16]


@dataclass(frozen=True)
class ToneBank:
    """All K^3 tones of a configuration, each float32 [period] with a peak of 1."""

    config: BenchmarkConfig
    tones: dict[tuple[int, int, int], Waveform]

    def mix(self, sources: Sequence[Source], onsets: Sequence[int]) -> Waveform:
        """The sum of sources, float32 [num_samples], before any common gain."""
        clip = np.zeros(self.config.num_samples, np.float32)
        for source, onset in zip(sources, onsets, strict=True):
            tone = self.tones[source.timbre, source.pitch, source.rate]
            tone = tone * np.float32(self.config.gains[source.amplitude])
            for start in range(onset, len(clip), len(tone)):
                part = clip[start : start + len(tone)]
                part += tone[: len(part)]
        return clip

    def scene_clip(self, scene: Scene) -> Samples:
        """The clip of a scene, int16 [num_samples]; a gain below 1 only where its peak would pass full scale."""
        clip = self.mix(scene.sources, scene.onsets)
        return _quantise(clip, _gain(clip))

    def quadruple_clips(self, quadruple: Quadruple) -> Samples:
        """The clips A, B, C, D of a quadruple, int16 [4, num_samples].

        The four share the gain 1 / max(1, largest peak), and A, C and T are rounded to 16 bits before they are added:
        B - A and D - C are the same samples, so a linear encoder scores A-COAT = 1 exactly. (Rounding B and D instead
        costs an encoder that keeps little of T's energy up to 0.003 in the mean.) With ``level="clip"`` each clip has
        its own gain.
        """
        q = quadruple
        a, c, t = self.mix(q.a, q.a_onsets), self.mix(q.c, q.c_onsets), self.mix(q.t, q.t_onsets)
        if self.config.level == "clip":
            return np.stack([_quantise(clip, _gain(clip)) for clip in (a, a + t, c, c + t)])
        gain = _gain(a, a + t, c, c + t)
        rounded_a, rounded_c, rounded_t = (_quantise(clip, gain) for clip in (a, c, t))
        return np.stack([rounded_a, rounded_a + rounded_t, rounded_c, rounded_c + rounded_t])


def render_tone_bank(config: BenchmarkConfig) -> ToneBank:
    """Render the K^3 tones of a configuration, on all cores.

    Raises:
        DatasetError: a voice makes no sound at one of the notes.
    """
    every = range(config.num_classes)
    classes = list(product(every, every, every))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tones = list(pool.map(lambda key: _render_tone(config, *key), classes))
    return ToneBank(config, dict(zip(classes, tones, strict=True)))


def _render_tone(config: BenchmarkConfig, timbre: int, pitch: int, rate: int) -> Waveform:
    period = config.periods[rate]
    seconds = period / config.sample_rate
    voice, note = config.voices[timbre], config.pitches[pitch]
    tone = render(voice, note, config.velocity, duration=seconds, key_up=seconds / 2, sample_rate=config.sample_rate)
    fade = min(round(FADE_SECONDS * config.sample_rate), period)
    tone[period - fade :] *= (0.5 + 0.5 * np.cos(np.pi * (np.arange(fade) + 1) / fade)).astype(np.float32)
    peak = np.abs(tone).max()
    if not peak > SILENT_PEAK:
        raise DatasetError(
            f"voice {voice.name!r} is silent at MIDI note {note} (peak {peak:.1e}); choose voices that sound over "
            f"MIDI {min(config.pitches)} to {max(config.pitches)}"
        )
    return np.asarray(tone / peak, np.float32)


def _gain(*clips: Waveform) -> float:
    """The common gain that brings the largest peak of some clips within full scale; at most 1."""
    peak = max(max(float(clip.max()), -float(clip.min())) for clip in clips)
    return 1 / max(1.0, peak)


def _quantise(clip: Waveform, gain: float) -> Samples:
    scaled = clip * np.float32(gain * FULL_SCALE)
    return np.asarray(np.rint(scaled, out=scaled), np.int16)


def to_waveforms(samples: Samples) -> Waveform:
    """16-bit samples as float32 in [-1, 1), value / 32,768 as audio readers give them."""
    return samples.astype(np.float32) * np.float32(1 / 32_768)
