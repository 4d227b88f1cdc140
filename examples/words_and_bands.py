"""Your own audio–text encoder; nothing in it is trained: band energies for sound, hashed words for text.

audio-compositionality check-model examples/words_and_bands.py:WordsAndBands
"""

import zlib

import numpy as np


class WordsAndBands:
    """64 values: for a clip the log energies of 64 bands, for a text a sign and a position for each word."""

    id, paradigm, licence, sample_rate = "words-and-bands", "none (example)", "Apache-2.0", 16_000

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        """Embed clips [n, samples] as [n, 64]."""
        power = np.abs(np.fft.rfft(waveforms, axis=1)) ** 2 / waveforms.shape[1] ** 2
        edges = np.geomspace(0.002, 1, 65)[:-1] * power.shape[1]
        return np.log10(np.add.reduceat(power, edges.astype(int), axis=1) + 1e-9)

    def embed_text(self, texts: list[str]) -> np.ndarray:
        """Embed texts as [n, 64], in the space of the clips."""
        rows = np.zeros((len(texts), 64))
        for row, text in enumerate(texts):
            for number, word in enumerate(text.lower().split()):
                digest = zlib.crc32(word.encode())
                rows[row, digest % 64] += (1 if digest & 64 else -1) / (1 + number)
        return rows
