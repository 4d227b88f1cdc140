"""Your own detector that answers questions about when sounds occur; nothing in it is trained.

audio-compositionality run examples/own_detector.py:OwnDetector --benchmark polybench
"""

import numpy as np

from audio_compositionality.tasks.answerers.detector import DetectorAnswerer

BANDS = {"plucked bass": (40, 160), "electric piano": (200, 800), "organ": (800, 2000), "bell": (3000, 7000)}


class OwnDetector(DetectorAnswerer):
    """Detects each sound if its band is loud, relative to the loudest moment of the band in the clip."""

    id, paradigm, licence = "own-detector", "none (example)", "Apache-2.0"
    sample_rate, frame_rate = 16_000, 50
    labels = tuple(BANDS)

    def detect(self, waveforms: np.ndarray, rate: int) -> np.ndarray:
        """Return how likely each label is active in each fiftieth of a second: [n, frames, labels], 0 to 1."""
        hop = rate // self.frame_rate
        frames = np.lib.stride_tricks.sliding_window_view(np.pad(waveforms, ((0, 0), (0, 3 * hop))), 4 * hop, axis=1)
        power = np.abs(np.fft.rfft(frames[:, ::hop] * np.hanning(4 * hop))) ** 2
        hertz = np.fft.rfftfreq(4 * hop, 1 / rate)
        levels = [power[..., (hertz >= low) & (hertz < high)].mean(axis=-1) for low, high in BANDS.values()]
        decibels = 10 * np.log10(np.stack(levels, axis=-1) + 1e-9)
        return 1 / (1 + np.exp(decibels.max(axis=1, keepdims=True) - 20 - decibels))
