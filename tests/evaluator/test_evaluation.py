import numpy as np
import pytest
import torch

from audio_compositionality.dataset_builder import RenderedBenchmark, build_dataset, open_benchmark
from audio_compositionality.encoders import Encoder, load_encoder
from audio_compositionality.evaluator import ResultError, evaluate_encoder, load_result
from audio_compositionality.evaluator.evaluation import embed_task


class Toy:
    """Sixteen band energies, or with ``constant`` always the same vector."""

    id = "toy"
    revision = "v1"
    sample_rate = 32_000
    output_dim = 16

    def __init__(self, constant: bool = False) -> None:
        self.constant = constant
        self.calls = 0

    def embed(self, waveforms, sample_rate):
        self.calls += 1
        if self.constant:
            return np.ones((len(waveforms), 16), np.float32)
        power = np.abs(np.fft.rfft(waveforms)) ** 2
        return np.log1p(power[:, 1:].reshape(len(power), 16, -1).sum(axis=2)).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_the_toy_follows_the_protocol():
    assert isinstance(Toy(), Encoder)


def test_embeddings_keep_the_order_of_the_clips(small_benchmark):
    found = embed_task(Toy(), small_benchmark, "a_coat", batch_size=7, progress=False)
    index = 5
    clips = small_benchmark.clips("a_coat", index).astype(np.float32) / 32_768
    assert found.shape == (4 * small_benchmark.config.quadruples, 16)
    assert found[4 * index : 4 * index + 4] == pytest.approx(Toy().embed(clips, 32_000), rel=1e-5)


def test_downsample_is_additive_to_the_last_bit_and_random_is_not(small_benchmark):
    (downsample,) = evaluate_encoder("downsample", small_benchmark, tasks=["a_coat"], progress=False)
    (random,) = evaluate_encoder("random", small_benchmark, tasks=["a_coat"], progress=False)
    assert downsample.score == pytest.approx(1, abs=1e-6)
    low, high = random.interval
    assert low < 0 < high


def test_the_paper_s_linear_and_random_baselines_on_the_mini_preset():
    benchmark = open_benchmark("mini")
    (downsample,) = evaluate_encoder("downsample", benchmark, tasks=["a_coat"], progress=False)
    (random,) = evaluate_encoder("random", benchmark, tasks=["a_coat"], progress=False)
    assert downsample.n == 64
    assert downsample.score >= 0.999
    assert downsample.controls["top1"] == 1
    assert downsample.controls["matched_null"] < 0.2
    low, high = random.interval
    assert low < 0 < high


def test_a_constant_encoder_is_exposed_by_its_controls(small_benchmark):
    a_coat, a_tre = evaluate_encoder(Toy(constant=True), small_benchmark, progress=False)
    assert a_coat.score == 0
    assert a_coat.controls["degenerate"] == a_coat.n == small_benchmark.config.quadruples
    assert a_tre.score == pytest.approx(1, abs=1e-6)
    assert a_tre.controls["constant"] == pytest.approx(1, abs=1e-6)
    assert a_tre.controls["gain"] == 0
    assert a_tre.controls["a_tre_centred"] == 0
    assert a_tre.controls["collapsed"] is True
    assert a_tre.controls["top1"] == pytest.approx(a_tre.controls["top1_chance"])


def test_results_are_written_read_back_and_not_computed_twice(small_benchmark, tmp_path):
    results = evaluate_encoder(Toy(), small_benchmark, out=tmp_path, progress=False)
    assert [result.task for result in results] == ["a_coat", "a_tre"]
    for result in results:
        stored, samples = load_result(tmp_path / "toy" / "v1" / f"{result.task}.json")
        assert stored == result
        assert samples.num_rows == result.n
        assert result.fingerprint == small_benchmark.fingerprint
    test_ids = [scene.id for scene in small_benchmark.scenes if scene.split == "test"]
    assert samples["id"].to_pylist() == test_ids
    assert "score_centred" in samples.column_names
    again = Toy()
    assert evaluate_encoder(again, small_benchmark, out=tmp_path, progress=False) == results
    assert again.calls == 0
    evaluate_encoder(again, small_benchmark, tasks=["a_coat"], out=tmp_path, force=True, progress=False)
    assert again.calls > 0


def test_a_result_for_other_data_is_not_replaced(small_benchmark, tiny_config, tmp_path):
    evaluate_encoder(Toy(), small_benchmark, tasks=["a_coat"], out=tmp_path, progress=False)
    other = RenderedBenchmark("tiny", tiny_config)
    with pytest.raises(ResultError, match="give another --out, or --force"):
        evaluate_encoder(Toy(), other, tasks=["a_coat"], out=tmp_path, progress=False)
    stored, _ = load_result(tmp_path / "toy" / "v1" / "a_coat.json")
    assert stored.fingerprint == small_benchmark.fingerprint


def test_a_built_folder_gives_the_same_scores(small_benchmark, small_config, tmp_path):
    folder = build_dataset(small_config, tmp_path / "x", progress=False)
    rendered = evaluate_encoder(Toy(), small_benchmark, progress=False)
    built = evaluate_encoder(Toy(), folder, device="cpu", progress=False)
    for one, other in zip(rendered, built, strict=True):
        assert one.fingerprint == other.fingerprint
        assert one.score == other.score
        assert one.controls == other.controls


def test_an_unknown_task_is_refused(small_benchmark):
    with pytest.raises(ValueError, match="unknown task 'a_cot'"):
        evaluate_encoder(Toy(), small_benchmark, tasks=["a_cot"], progress=False)


@pytest.mark.weights
def test_a_pretrained_whisper_and_its_untrained_twin(checkpoints, small_benchmark):
    """What the controls must show (first seen in an independent study): training takes away the shared direction."""
    folder = str(checkpoints / "whisper-tiny.en")
    (trained,) = evaluate_encoder(load_encoder(folder), small_benchmark, tasks=["a_coat"], progress=False)
    (untrained,) = evaluate_encoder(f"untrained:{folder}", small_benchmark, tasks=["a_coat"], progress=False)
    assert trained.encoder_id == "whisper-tiny.en"
    assert untrained.encoder_id == "untrained:whisper-tiny.en"
    assert untrained.score > trained.score
    assert untrained.controls["null"] > trained.controls["null"]
