from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.front_ends.whisper import WhisperLogMel

MakeClips = Callable[[int, float], np.ndarray]


@pytest.mark.parametrize("samples", [1, 159, 160, 161, 200, 201, 4_321, 16_000, 47_599, 47_600, 47_840, 48_000])
def test_log_mel_is_that_of_transformers_to_the_bit(samples: int) -> None:
    extractor = transformers.WhisperFeatureExtractor(chunk_length=3)
    rng = np.random.default_rng(samples)
    clips = (rng.normal(size=(3, samples)) * [[0.3], [1e-3], [0.0]]).astype(np.float32)
    expected = extractor(list(clips), sampling_rate=16_000, return_tensors="pt").input_features
    # Equal on the machines it was tried on; another one may sum a shorter matrix in another order.
    torch.testing.assert_close(WhisperLogMel(extractor)(torch.from_numpy(clips)), expected, rtol=0, atol=1e-6)
