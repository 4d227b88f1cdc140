"""Run the example encoder around a pretrained model of a package: Resemblyzer's speaker encoder.

Resemblyzer asks for packages that it does not need here, so it is installed without them:

    pip install -c constraints.txt .
    pip install --no-deps resemblyzer==0.1.4 webrtcvad-wheels
    python tests/references/examples_suite.py

Exits with 1 if an embedding is not the package's own, or a check of `check-model` fails.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import soxr

from audio_compositionality.encoders.check import all_passed, check_model, check_table
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.support.table import print_table

EXAMPLE = f"{Path(__file__).resolve().parents[1] / 'examples' / 'speaker_embedding.py'}:SpeakerEmbedding"


def main() -> None:
    clips = np.random.default_rng(0).normal(0, 0.1, (3, 4 * 32_000)).astype(np.float32)
    model = importlib.import_module("resemblyzer").VoiceEncoder("cpu", verbose=False)
    expected = [model.embed_utterance(soxr.resample(clip, 32_000, 16_000)) for clip in clips]
    np.testing.assert_allclose(load_model(EXAMPLE).embed(clips, 32_000), np.stack(expected), atol=1e-5)
    checks = check_model(EXAMPLE)
    print_table(check_table(checks, "the example"))
    if not all_passed(checks):
        raise SystemExit(1)
    print("the example's embeddings are those of Resemblyzer 0.1.4")


if __name__ == "__main__":
    main()
