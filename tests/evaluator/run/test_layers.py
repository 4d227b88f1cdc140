"""Several layers of a model: a store and a result each, from as few passes as there are batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.model_encoder import Hidden, LayeredEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.evaluator.run.embeddings import embed_at_layers, embed_configuration, models_by_pass
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_tasks

from .toys import BandEnergies, Numbered

pytestmark = pytest.mark.usefixtures("one_thread")


class Powers(LayeredEncoder[torch.Tensor]):
    """Layer k is the k-th power of a clip's spectrum in 8 bands; notes the layers of each pass."""

    def __init__(self, rate: int = 32_000) -> None:
        options = EncoderOptions(layer=3)
        card = ModelCard("powers@layer=3", "v1", rate, 8, weights_sha256="0" * 64, options=options)
        super().__init__(card, num_layers=3, device=torch.device("cpu"))
        self.passes: list[tuple[int | None, ...]] = []

    def _extract_features(self, clips):
        spectrum = np.abs(np.fft.rfft(np.repeat(clips, 4, axis=1)))[:, 1:]
        bands = spectrum[:, : spectrum.shape[1] // 8 * 8].reshape(len(clips), 8, -1)
        return torch.from_numpy(np.log1p(bands.mean(axis=2) + clips[:, :1]).astype(np.float32))

    def _encode_at(self, features: torch.Tensor, layers: Sequence[int | None]) -> list[Hidden]:
        self.passes.append(tuple(layers))
        return [Hidden((features ** (layer or 0))[:, None], 1.0) for layer in layers]


def shards(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.safetensors")}


def test_layers_of_one_model_are_one_group():
    first, second = Powers().at_layers([1, 2]), Powers().at_layers([1, 3])
    toy = BandEnergies()
    models = [toy, first[0], second[0], first[1], second[1], toy]
    assert models_by_pass(models) == [[toy], first, second, [toy]]


def test_one_pass_fills_a_store_a_layer(tmp_path):
    options = RunOptions(cache=tmp_path / "together", progress=False)
    encoder = Powers(16_000)
    layers = encoder.at_layers([0, 2, 3])
    stores = embed_at_layers(layers, Numbered(150), options)
    # Of 150 clips in three shards, and of 16 a second time.
    assert encoder.passes == [(0, 2, 3)] * (16 + 16 + 6 + 4)
    assert len({store.folder for store in stores}) == 3
    for layer, store in zip(layers, stores, strict=True):
        alone = RunOptions(cache=tmp_path / "alone", progress=False)
        expected = embed_configuration(layer, Numbered(150), alone)
        np.testing.assert_array_equal(store.load().embeddings, expected.load().embeddings)
    assert shards(tmp_path / "together") == shards(tmp_path / "alone")


def test_what_is_there_is_not_computed_again(tmp_path):
    options = RunOptions(cache=tmp_path, progress=False)
    encoder = Powers(16_000)
    layers = encoder.at_layers([0, 1, 3])
    stores = embed_at_layers(layers, Numbered(150), options)
    before = shards(tmp_path)
    stores[0].discard(1)
    stores[1].discard(2)
    encoder.passes.clear()
    embed_at_layers(layers, Numbered(150), options)
    assert encoder.passes == [(0, 1)] * (16 + 6 + 4)
    assert shards(tmp_path) == before
    encoder.passes.clear()
    embed_at_layers(layers, Numbered(150), options)
    assert not encoder.passes


@pytest.mark.slow
def test_each_layer_has_a_result_and_says_whether_a_pass_was_shared(tiny_data, tmp_path):
    encoder, tasks = Powers(), load_tasks(["a_coat"])
    layers = encoder.at_layers([1, 2, 3])
    options = RunOptions(device="cpu", progress=False, out=tmp_path / "results")
    results = evaluate_models(layers, tiny_data, tasks, options)
    assert [result.model.id for result in results] == [f"powers@layer={layer}" for layer in (1, 2, 3)]
    assert [result.model.options.layer for result in results] == [1, 2, 3]
    # One pass for all, which every result tells of; all clips are embedded a second time.
    assert set(encoder.passes) == {(1, 2, 3)}
    assert len(encoder.passes) <= 2 * len(tiny_data.configuration("a_coat").clip_ids) // 4 + 2
    assert [set(result.seconds) for result in results] == [{"embed_layers", "score"}] * 3
    assert len({result.seconds["embed_layers"] for result in results}) == 1
    # What is there is passed over, and the others are computed without it.
    paths = sorted((tmp_path / "results").rglob("*.json"))
    assert [load_result(path)[0] for path in paths] == results
    for path in paths[1:]:
        path.unlink()
    encoder.passes.clear()
    again = evaluate_models(layers, tiny_data, tasks, options)
    assert set(encoder.passes) == {(2, 3)}
    assert [one.measures for one in again] == [one.measures for one in results]
    # A layer alone gives the same, and one that is stored is read.
    stored = options.changed(out=None, cache=tmp_path / "store")
    (alone,) = evaluate_models(layers[1:2], tiny_data, tasks, stored)
    assert alone.measures == results[1].measures
    assert set(alone.seconds) == {"embed", "score"}
    every = evaluate_models(layers, tiny_data, tasks, stored)
    assert [next(iter(result.seconds)) for result in every] == ["embed_layers", "read", "embed_layers"]
    assert [one.measures for one in every] == [one.measures for one in results]
