"""Run the real mteb with our adapter: `mteb.evaluate` on our encoder, and its own Whisper as ours.

Its audio needs torchaudio, whose builds on PyPI need CUDA; without their libraries what is used of them runs in plain
torch:

    pip install -c constraints.txt . mteb==2.26.0
    pip install --no-deps torchaudio==2.11.0
    rm -f "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/torchaudio/lib/*.so
    python tests/references/mteb_suite.py          # --all: every task that embeds, else one of each recipe

Exits with 1 if anything is not as it should be. Its Whisper wrapper and ours are two implementations of the same
embedding, so their agreement is a check of ours, too.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from datasets import Dataset, DatasetDict
from tiny_whisper import save_tiny_whisper

sys.path.insert(0, str(Path(__file__).parents[2]))
from audio_compositionality.bridges import mteb as bridge
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.adapters.mteb import MtebModel
from audio_compositionality.encoders.base import ENCODER, TEXT_ENCODER
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import list_tasks
from audio_compositionality.tasks.shapes import fits
from tests.checkpoints import checkpoints_folder, make_checkpoints

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


class Foreign:
    """A model of ours of which only what mteb asks of any model is seen."""

    def __init__(self, inner: MtebModel) -> None:
        self.mteb_model_meta, self.sampling_rate = inner.mteb_model_meta, inner.sampling_rate
        self.encode, self.similarity = inner.encode, inner.similarity
        self.similarity_pairwise = inner.similarity_pairwise


SIZES = {
    **{"quadruples": 16, "quadruple_candidates": 500, "scene_candidates": 2_000, "train_scenes": 64},
    **{"validation_scenes": 16, "test_scenes": 16, "stars": 10, "bases": 10, "untransformed": 28, "blocks": 8},
    **{"trials": 24, "clips": 24, "items": 20},
}
"""Small data: the numbers are compared, not believed."""


CONTROLLED = ("a_coat", "comp_a_order")
"""Tasks that are scored with their controls, and on a model that is not seen to be ours."""


def tasks_in_theirs(folder: Path, every: bool) -> int:
    """Tasks that embed, by mteb's own evaluator, on the model of the package: as ours to 1e-9.

    Args:
        folder: for data.
        every: whether all tasks are scored, which takes minutes more; else the first of each recipe, without the
            axes, which are probes.

    Returns:
        the number of tasks.
    """
    mteb = importlib.import_module("mteb")
    recipes: list[str] = []
    count = 0
    for task in sorted(list_tasks(), key=lambda task: task.info.name not in CONTROLLED):
        info = task.info
        if info.needs not in (ENCODER, TEXT_ENCODER):
            continue
        recipes.append(info.recipe)
        if not every and (recipes.count(info.recipe) > 1 or info.benchmark == "axes"):
            continue
        fields = type(load_recipe(info.recipe).presets["mini"]).model_fields
        data = rendered_preset("mini", recipes=[info.recipe], **{k: v for k, v in SIZES.items() if k in fields})
        place = folder / info.name
        build_dataset(data, place, recipes=[info.recipe], workers=1, progress=False)
        theirs = bridge.task(info.name, str(place))
        assert theirs.metadata.is_filled(), info.name
        is_first = info.name in CONTROLLED
        if not is_first:
            # Their fits take minutes.
            bridge._baselines = bridge._twins = lambda *_: []
        for name in ("random", "compa-clap-tiny") if info.needs == ENCODER and is_first else ("compa-clap-tiny",):
            (ours,) = evaluate(name, place, tasks=[info.name], options=RunOptions(progress=False, device="cpu"))
            for model in (bridge.model(name), Foreign(bridge.model(name)))[: 1 + is_first]:
                # In batches as ours: of another size, the last digits of embeddings differ.
                result = mteb.evaluate(
                    model, theirs, cache=None, encode_kwargs={"batch_size": 4}, show_progress_bar=False
                )
                (scores,) = result.task_results[0].scores["test"]
                assert abs(scores["main_score"] - float(ours.measures[info.ranks_by] or 0)) < 1e-9, (info.name, name)
                read = bridge.from_mteb(result)[0]
                assert read.measures.keys() == ours.measures.keys()
                for measure, value in ours.measures.items():
                    if isinstance(value, float):
                        assert abs(float(read.measures[measure] or 0) - value) < 1e-9, (info.name, name, measure)
                assert read.model.id.endswith(name)
                assert bool(scores["controls"]) == is_first, info.name
        count += 1
    assert count >= 9
    return count


def whisper_in_theirs(folder: Path) -> None:
    """The smallest Whisper with its real weights, by mteb's evaluator and by ours."""
    mteb = importlib.import_module("mteb")
    name = str(make_checkpoints(checkpoints_folder()) / "whisper-tiny.en")
    (ours,) = evaluate(name, folder / "a_coat", tasks=["a_coat"], options=RunOptions(progress=False, device="cpu"))
    theirs = bridge.task("a_coat", str(folder / "a_coat"))
    result = mteb.evaluate(bridge.model(name), theirs, cache=None, encode_kwargs={"batch_size": 4})
    assert abs(result.task_results[0].get_score() - float(ours.measures["adjusted"] or 0)) < 1e-9


def contribution(folder: Path) -> None:
    """What a pull request needs, and what mteb reads of it."""
    results = importlib.import_module("mteb.results")
    given = ["--tasks", "a_coat", "--data", str(folder / "a_coat"), "--path", "o/d", "--revision", "0" * 40]
    bridge.main([str(folder / "contribution"), *given])
    (place,) = (folder / "contribution").iterdir()
    names = sorted(path.name for path in place.iterdir())
    assert names == ["compa-clap-tiny.json", "descriptive_stats.json", "log-mel-statistics.json", "metadata.json",
                     "random.json"], names  # fmt: skip
    read = results.TaskResult.from_disk(place / "log-mel-statistics.json")
    assert read.dataset_revision == "0" * 40
    assert bridge.from_mteb(read)[0].model.id == "log-mel-statistics"
    task = bridge.task("a_coat", str(folder / "a_coat"))
    types = importlib.import_module("mteb.types.statistics")
    statistics = task._calculate_descriptive_statistics_from_split("test")
    assert statistics["audio_statistics"].keys() == types.AudioStatistics.__annotations__.keys()


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    ours_in_theirs()
    # How well a model is fitted matters elsewhere.
    fits.FEW_STEPS, fits.SEEDS = 5, 1
    with tempfile.TemporaryDirectory() as name:
        count = tasks_in_theirs(Path(name), "--all" in sys.argv[1:])
        whisper_in_theirs(Path(name))
        contribution(Path(name))
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        (Path(name) / "local").mkdir()
        theirs_in_ours("local/whisper")
        os.chdir("/")
    print(
        f"mteb 2.26: {count} tasks of ours have our numbers in it, to 1e-9; it evaluates our encoder; its Whisper runs "
        "as ours and agrees with ours to 1e-4"
    )


if __name__ == "__main__":
    main()
