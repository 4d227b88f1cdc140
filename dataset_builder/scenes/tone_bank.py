"""The sound of sources, scenes and quadruples (paper, section 4.1).

A tone is one note of a voice, held for half its repetition period and cut with a short fade at the period; a source
is the tone repeated at its period from its onset, scaled by its amplitude; a scene is the sum of its sources. Three
attributes make the tone and the fourth only scales it, so K^3 tones rendered once are all the synthesis there is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..data import DatasetError, Pcm16, Waveform
from ..sounds.tones import render_tone
from .sources import Quadruple, Scene, SceneSpec, Source

FULL_SCALE = 32_766
"""The 16-bit value of a sample of 1.0: one below the largest, since A and T are rounded before they are added."""


Layer = tuple[Sequence[Source], Sequence[int]]
"""Sources and the onset of each."""


class Tones(dict[tuple[int, int, int], Waveform]):
    """Tones by their classes of timbre, pitch and rate, each float32 [period] with a peak of 1."""


_rendered: WeakValueDictionary[tuple[Any, ...], Tones] = WeakValueDictionary()
_rendering = threading.Lock()


@dataclass(frozen=True)
class ToneBank:
    """All K^3 tones of a spec, and how clips are mixed from them.

    Attributes:
        spec: of the scenes.
    """

    spec: SceneSpec

    @cached_property
    def tones(self) -> Tones:
        """Rendered when they are first asked for, on all cores; those of equal sound are shared while anybody has them.

        Raises:
            DatasetError: a voice makes no sound at one of the notes.
        """
        spec = self.spec
        sound = (spec.voices, spec.pitches, spec.periods, spec.velocity, spec.sample_rate)
        with _rendering:
            tones = _rendered.get(sound)
            if tones is None:
                tones = _rendered[sound] = _render_tones(spec)
        return tones

    def mix(self, sources: Sequence[Source], onsets: Sequence[int]) -> Waveform:
        """The sum of sources, float32 [num_samples], before any common gain."""
        clip = np.zeros(self.spec.num_samples, np.float32)
        for source, onset in zip(sources, onsets, strict=True):
            tone = self.tones[source.timbre, source.pitch, source.rate]
            tone = tone * np.float32(self.spec.gains[source.amplitude])
            for start in range(onset, len(clip), len(tone)):
                part = clip[start : start + len(tone)]
                part += tone[: len(part)]
        return clip

    def peak(self, sources: Sequence[Source], onsets: Sequence[int]) -> float:
        """Largest magnitude of the sum of sources, before any common gain."""
        return _peak(self.mix(sources, onsets))

    def layered_clip(self, layers: Sequence[Layer], gain: float) -> Pcm16:
        """The sum of two layers, each mixed with the gain and rounded to 16 bits before they are added.

        Args:
            layers: sources and their onsets, of each.
            gain: of both; it brings the peak of their sum within 1.

        Returns:
            int16 [num_samples]; two clips that have a layer in common differ by the samples of the others alone.
        """
        first, second = (_quantise(self.mix(*layer), gain) for layer in layers)
        return np.asarray(first + second)

    def scene_clip(self, scene: Scene) -> Pcm16:
        """The clip of a scene, int16 [num_samples]; a gain below 1 only where its peak would pass full scale."""
        clip = self.mix(scene.sources, scene.onsets)
        return _quantise(clip, _gain(clip))

    def quadruple_clips(self, quadruple: Quadruple, *, shared_gain: bool = True) -> Pcm16:
        """The clips A, B, C, D of a quadruple, int16 [4, num_samples].

        The four share the gain 1 / max(1, largest peak), and A, C and T are rounded to 16 bits before they are added:
        B - A and D - C are the same samples, so the two steps are one for a linear encoder. (Rounding B and D instead
        costs an encoder that keeps little of T's energy up to 0.003 in the mean.) Without
        ``shared_gain`` each clip has a gain of its own.
        """
        q = quadruple
        a, c, t = self.mix(q.a, q.a_onsets), self.mix(q.c, q.c_onsets), self.mix(q.t, q.t_onsets)
        if not shared_gain:
            return np.stack([_quantise(clip, _gain(clip)) for clip in (a, a + t, c, c + t)])
        gain = _gain(a, a + t, c, c + t)
        rounded_a, rounded_c, rounded_t = (_quantise(clip, gain) for clip in (a, c, t))
        return np.stack([rounded_a, rounded_a + rounded_t, rounded_c, rounded_c + rounded_t])


def _render_tones(spec: SceneSpec) -> Tones:
    every = range(spec.num_classes)
    classes = list(product(every, every, every))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tones = list(pool.map(lambda key: _render_tone(spec, *key), classes))
    return Tones(zip(classes, tones, strict=True))


def _render_tone(spec: SceneSpec, timbre: int, pitch: int, rate: int) -> Waveform:
    voice, note, period = spec.voices[timbre], spec.pitches[pitch], spec.periods[rate]
    try:
        return render_tone(voice, note, period, spec.velocity, spec.sample_rate)
    except DatasetError as error:
        span = f"MIDI {min(spec.pitches)} to {max(spec.pitches)}"
        raise DatasetError(f"{error}; choose voices that sound over {span}") from error


def _gain(*clips: Waveform) -> float:
    """The common gain that brings the largest peak of some clips within full scale; at most 1."""
    return 1 / max(1.0, *map(_peak, clips))


def _peak(clip: Waveform) -> float:
    return max(float(clip.max()), -float(clip.min()))


def _quantise(clip: Waveform, gain: float) -> Pcm16:
    scaled = clip * np.float32(gain * FULL_SCALE)
    return np.asarray(np.rint(scaled, out=scaled), np.int16)
