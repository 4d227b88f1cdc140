"""Run the real packages of HEAR with our adapter: our encoders in their validator, their baseline as our encoder.

Both packages ask for TensorFlow and for old versions of others, so they are installed without what they ask for:

    pip install -c constraints.txt .
    pip install --no-deps hearvalidator==2021.0.2 hearbaseline==2021.1.1
    python tests/references/hear_suite.py

Exits with 1 if anything is not as it should be. The validator asks TensorFlow only whether a model is one of its
modules; an empty stand-in says no. The baseline gives librosa's mel filters their rate by position, as librosa took it
up to 0.9; here it is passed on by name.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import types

import librosa
import numpy as np
import torch
from tiny_whisper import save_tiny_whisper

from audio_compositionality.encoders.check import check_model
from audio_compositionality.encoders.loading.registry import load_model


def import_validator() -> types.ModuleType:
    """The validator, with the stand-in for TensorFlow while it is imported."""
    module = types.ModuleType("tensorflow")
    module.Module = type("Module", (), {})
    sys.modules["tensorflow"] = module
    try:
        return importlib.import_module("hearvalidator.validate")
    finally:
        del sys.modules["tensorflow"]


def take_the_rate_by_position() -> None:
    mel = librosa.filters.mel
    librosa.filters.mel = lambda sr, **settings: mel(sr=sr, **settings)


def ours_in_theirs(folder: str) -> None:
    validate = import_validator()
    for id in (save_tiny_whisper(folder, window_seconds=5), "log-mel-statistics", "downsample"):
        # It raises where the API is not kept.
        validate.ValidateModel("audio_compositionality.encoders.adapters.hear", id, device="cpu")()


def theirs_in_ours() -> None:
    baseline = importlib.import_module("hearbaseline")
    encoder = load_model("hear:hearbaseline", device="cpu")
    clips = np.random.default_rng(0).normal(0, 0.1, (3, 2 * 44_100)).astype(np.float32)
    expected = baseline.get_scene_embeddings(torch.from_numpy(clips), baseline.load_model()).numpy()
    np.testing.assert_allclose(encoder.embed(clips, 44_100), expected, rtol=1e-5, atol=1e-5)
    assert encoder.card.revision.startswith("2021.1.1-weights-"), encoder.card.revision
    failed = [check for check in check_model(encoder) if check.status == "fail"]
    assert not failed, failed


def main() -> None:
    take_the_rate_by_position()
    with tempfile.TemporaryDirectory() as folder:
        ours_in_theirs(f"{folder}/whisper")
    theirs_in_ours()
    print("HEAR: our encoders pass hearvalidator 2021.0.2; hearbaseline 2021.1.1 runs as an encoder")


if __name__ == "__main__":
    main()
