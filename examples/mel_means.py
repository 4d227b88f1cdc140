"""Three mean mel spectra, which differ only in their compression and have no weights.

audio-compositionality evaluate examples/mel_means.py:MelPower examples/mel_means.py:MelLog --tasks a_coat
"""

import librosa
import numpy as np


class MelPower:
    """The mean power of 96 mel bands over time, up to 8 kHz: the power of two sources that sound together is a sum."""

    id, paradigm, licence, sample_rate = "mel-power", "none (example)", "Apache-2.0", 16_000

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        """Embed clips [n, samples] as [n, 96]."""
        mel = librosa.feature.melspectrogram(y=waveforms, sr=sample_rate, n_fft=512, hop_length=256, n_mels=96)
        return self.compress(mel).mean(axis=2)

    def compress(self, power: np.ndarray) -> np.ndarray:
        """Return the power itself."""
        return power


class MelWeakLog(MelPower):
    """The same with the compression of musicnn's input: nearly linear below a power of 10⁻⁴."""

    id = "mel-weak-log"

    def compress(self, power: np.ndarray) -> np.ndarray:
        """Return log₁₀(1 + 10⁴ · power)."""
        return np.log10(1 + 10_000 * power)


class MelLog(MelPower):
    """The same with a logarithm of the power plus 10⁻⁶."""

    id = "mel-log"

    def compress(self, power: np.ndarray) -> np.ndarray:
        """Return log(power + 10⁻⁶)."""
        return np.log(power + 1e-6)
