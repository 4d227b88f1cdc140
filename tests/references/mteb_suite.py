"""Run the real mteb with our adapter: `mteb.evaluate` on our encoder, and its own Whisper as ours.

Its audio needs torchaudio, whose builds on PyPI need CUDA; without their libraries what is used of them runs in plain
torch:

    pip install -c constraints.txt . mteb==2.26.0
    pip install --no-deps torchaudio==2.11.0
    rm -f "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/torchaudio/lib/*.so
    python tests/references/mteb_suite.py

Exits with 1 if anything is not as it should be. Its Whisper wrapper and ours are two implementations of the same
embedding, so their agreement is a check of ours, too.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from datasets import Dataset, DatasetDict
from tiny_whisper import save_tiny_whisper

from audio_compositionality.encoders.adapters.mteb import MtebModel
from audio_compositionality.encoders.loading.registry import load_model

FREQUENCIES = (180, 700, 1_400)


def rows(count: int, seed: int) -> Dataset:
    """Noisy tones of three classes, of several rates and lengths."""
    generator = np.random.default_rng(seed)
    data: dict[str, list[Any]] = {"audio": [], "label": []}
    for clip in range(count):
        rate, label = (16_000, 22_050, 44_100)[clip % 4 % 3], clip % len(FREQUENCIES)
        time = np.arange(round(rate * generator.uniform(0.5, 1.0))) / rate
        frequency = FREQUENCIES[label] * generator.uniform(0.95, 1.05)
        audio = 0.3 * np.sin(2 * np.pi * frequency * time) + generator.normal(0, 0.02, len(time))
        data["audio"].append({"array": audio.astype(np.float32), "sampling_rate": rate})
        data["label"].append(label)
    return Dataset.from_dict(data)


def make_task() -> Any:
    """A classification of mteb with data of ours."""
    base = importlib.import_module("mteb.abstasks.classification").AbsTaskClassification
    metadata = importlib.import_module("mteb.abstasks.task_metadata").TaskMetadata(
        name="Tones",
        description="Three classes of tones.",
        dataset={"path": "none/none", "revision": "1"},
        type="AudioClassification",
        category="a2c",
        modalities=["audio"],
        eval_splits=["test"],
        eval_langs=["zxx-Zxxx"],
        main_score="accuracy",
    )

    class Tones(base):  # type: ignore[misc, valid-type]
        input_column_name = "audio"
        label_column_name = "label"

        def load_data(self, *_: object, **__: object) -> None:
            self.dataset = DatasetDict(train=rows(48, 0), test=rows(24, 1))
            self.data_loaded = True

    Tones.metadata = metadata
    return Tones()


def ours_in_theirs() -> None:
    mteb = importlib.import_module("mteb")
    protocols = importlib.import_module("mteb.models.models_protocols")
    model = MtebModel("log-mel-statistics")
    assert isinstance(model, protocols.EncoderProtocol)
    result = mteb.evaluate(model, [make_task()], cache=None, show_progress_bar=False)
    score = result.task_results[0].get_score()
    assert score > 0.95, f"accuracy {score}, where three tones should be told apart"
    assert result.model_name == "audio-compositionality/log-mel-statistics", result.model_name
    assert result.model_revision == "v1", result.model_revision
    cosine = model.similarity(np.eye(2, 3), np.ones((1, 3)))
    np.testing.assert_allclose(np.asarray(cosine), np.full((2, 1), 3**-0.5), rtol=1e-6)


def theirs_in_ours(folder: str) -> None:
    registry = importlib.import_module("mteb.models.model_implementations").MODEL_REGISTRY
    wrapper = importlib.import_module("mteb.models.model_implementations.whisper_models").WhisperAudioWrapper
    save_tiny_whisper(folder)
    # Its processor wants a tokenizer, which embedding sound does not need.
    transformers.WhisperProcessor.from_pretrained = lambda name, **_: FeaturesOnly(name)
    registry[folder] = registry["openai/whisper-tiny"].model_copy(
        update={"name": folder, "revision": None, "loader": wrapper}
    )
    theirs, ours = load_model(f"mteb:{folder}", device="cpu"), load_model(folder, device="cpu")
    assert (theirs.card.sample_rate, theirs.card.output_dim) == (16_000, 32)
    for rate in (16_000, 32_000):
        clips = np.random.default_rng(0).normal(0, 0.1, (3, 10 * rate)).astype(np.float32)
        expected = ours.embed(clips, rate)
        error = np.linalg.norm(theirs.embed(clips, rate) - expected, axis=1) / np.linalg.norm(expected, axis=1)
        assert error.max() < 1e-4, f"mteb's Whisper and ours differ by {error.max():.1e}"


class FeaturesOnly:
    """A Whisper processor without its tokenizer."""

    def __init__(self, name: str) -> None:
        self.feature_extractor = transformers.WhisperFeatureExtractor.from_pretrained(name)

    def __call__(self, audio: Any, **settings: Any) -> Any:
        return self.feature_extractor(audio, **settings)


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    ours_in_theirs()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        (Path(name) / "local").mkdir()
        theirs_in_ours("local/whisper")
        os.chdir("/")
    print("mteb 2.26: it evaluates our encoder; its Whisper runs as ours and agrees with ours to 1e-4")


if __name__ == "__main__":
    main()
