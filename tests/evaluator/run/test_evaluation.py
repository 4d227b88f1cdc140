import dataclasses
import json

import numpy as np
import pytest
import torch

from audio_compositionality.dataset_builder import DatasetError, RenderedBenchmark, build_dataset, open_benchmark
from audio_compositionality.encoders import (ClipError, Encoder, EncoderOptions, Hidden, ModelEncoder, StagedEncoder, load_encoder)
from audio_compositionality.evaluator import ResultError, evaluate_encoder, load_result
from audio_compositionality.metrics.a_coat.a_coat import a_coat_scores
from audio_compositionality.metrics.a_tre.a_tre import a_tre


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
    a_coat, a_tre = evaluate_encoder(Toy(constant=True), small_benchmark, seeds=1, progress=False)
    assert a_coat.score == 0
    assert a_coat.controls["step_variance_1"] == a_coat.controls["step_variance_2"] == 0
    assert a_coat.controls["degenerate"] == a_coat.n == small_benchmark.config.quadruples
    assert a_tre.score == pytest.approx(1, abs=1e-6)
    assert a_tre.controls["constant"] == pytest.approx(1, abs=1e-6)
    assert a_tre.controls["gain"] == 0
    assert a_tre.controls["a_tre_centred"] == 0
    assert a_tre.controls["collapsed"] is True
    assert a_tre.controls["top1"] == pytest.approx(a_tre.controls["top1_chance"])


def test_results_are_written_read_back_and_not_computed_twice(small_benchmark, tmp_path):
    results = evaluate_encoder(Toy(), small_benchmark, seeds=1, out=tmp_path, progress=False)
    assert [result.task for result in results] == ["a_coat", "a_tre"]
    for result in results:
        stored, samples = load_result(tmp_path / "toy" / "v1" / f"{result.task}.json")
        assert stored == result
        assert samples.num_rows == result.n
        assert result.fingerprint == small_benchmark.fingerprint
    test_ids = [scene.id for scene in small_benchmark.scenes if scene.split == "test"]
    assert samples.column_names == ["id", "score", "score_centred"]
    assert samples["id"].to_pylist() == test_ids
    again = Toy()
    assert evaluate_encoder(again, small_benchmark, seeds=1, out=tmp_path, progress=False) == results
    assert again.calls == 0
    evaluate_encoder(again, small_benchmark, tasks=["a_coat"], out=tmp_path, force=True, progress=False)
    assert again.calls > 0


def test_the_samples_of_a_coat_have_their_steps_on_two_axes(small_benchmark, tmp_path):
    (result,) = evaluate_encoder(Toy(), small_benchmark, tasks=["a_coat"], out=tmp_path, progress=False)
    samples = load_result(tmp_path / "toy" / "v1" / "a_coat.json")[1]
    assert samples.column_names == ["id", "score", "score_centred", "ab_1", "ab_2", "cd_1", "cd_2"]
    clips = np.stack([small_benchmark.clips("a_coat", row) for row in range(result.n)]).astype(np.float32) / 32_768
    a, b, c, d = (Toy().embed(clips[:, place], 32_000).astype(float) for place in range(4))
    steps = np.concatenate([b - a, d - c])
    left, values, _ = np.linalg.svd(steps - steps.mean(axis=0), full_matrices=False)
    for axis in (1, 2):
        found = np.concatenate([samples[f"{name}_{axis}"].to_numpy() for name in ("ab", "cd")])
        expected = left[:, axis - 1] * values[axis - 1]
        np.testing.assert_allclose(found * np.sign(found[0] * expected[0]), expected, atol=1e-4)
        share = values[axis - 1] ** 2 / (values**2).sum()
        assert result.controls[f"step_variance_{axis}"] == pytest.approx(share, abs=1e-6)
    others = [np.arange(result.n) != row for row in range(result.n)]
    sides = np.stack([b - a, d - c])
    own = [sides[:, row] - sides[:, others[row]].mean(axis=1) for row in range(result.n)]
    centred = [cosine(p, q) for p, q in own]
    np.testing.assert_allclose(samples["score_centred"].to_numpy(), centred, atol=1e-5)


def cosine(u, v):
    return u @ v / np.linalg.norm(u) / np.linalg.norm(v)


def test_a_single_quadruple_has_no_centred_score(small_benchmark, tmp_path, monkeypatch):
    monkeypatch.setattr(small_benchmark, "quadruples", small_benchmark.quadruples[:1])
    monkeypatch.setattr(small_benchmark, "config", dataclasses.replace(small_benchmark.config, quadruples=1))
    evaluate_encoder(Toy(), small_benchmark, tasks=["a_coat"], out=tmp_path, progress=False)
    result, samples = load_result(tmp_path / "toy" / "v1" / "a_coat.json")
    assert (result.n, result.interval, result.controls["centred"]) == (1, None, None)
    assert samples.column_names == ["id", "score", "ab_1", "ab_2", "cd_1", "cd_2"]


class TestSeeds:
    @pytest.fixture(autouse=True)
    def few_steps(self, monkeypatch):
        monkeypatch.setattr("audio_compositionality.tasks.scoring.FEW_STEPS", 20)

    def test_are_fits_whose_spread_is_told_apart_from_that_of_the_scenes(self, small_benchmark, tmp_path):
        options = {"tasks": ["a_tre"], "device": "cpu", "progress": False}
        (one,) = evaluate_encoder(Toy(), small_benchmark, seeds=1, **options)
        (three,) = evaluate_encoder(Toy(), small_benchmark, out=tmp_path, **options)
        assert one.settings["seeds"] == [0]
        assert three.settings["seeds"] == [0, 1, 2]
        assert "seed_std" not in one.controls
        assert len(three.training["steps"]) == len(three.training["steps_centred"]) == 3

        rows = small_benchmark.rows("a_tre")
        clips = np.concatenate([small_benchmark.clips("a_tre", row) for row in range(len(rows))])
        z = Toy().embed(clips.astype(np.float32) / 32_768, 32_000)
        scenes, splits = [row["metadata"] for row in rows], [row["split"] for row in rows]
        fits = [a_tre(z, scenes, splits, seeds=[s], max_steps=20, device="cpu", progress=False) for s in range(3)]
        assert one.score == pytest.approx(fits[0]["a_tre"], abs=1e-6)
        for found, name in (("seed_std", "a_tre"), ("a_tre_centred_seed_std", "a_tre_centred")):
            expected = np.std([fit[name] for fit in fits], ddof=1)
            assert three.controls[found] == pytest.approx(expected, rel=1e-3)
        samples = load_result(tmp_path / "toy" / "v1" / "a_tre.json")[1]
        assert three.std == pytest.approx(np.std(samples["score"].to_numpy(), ddof=1))

    def test_of_another_number_are_other_settings(self, small_benchmark, tmp_path):
        options = {"tasks": ["a_tre"], "out": tmp_path, "progress": False}
        evaluate_encoder(Toy(), small_benchmark, seeds=1, **options)
        with pytest.raises(ResultError, match=r"other are settings\)"):
            evaluate_encoder(Toy(), small_benchmark, seeds=2, **options)

    def test_must_be_one_at_least(self, small_benchmark):
        with pytest.raises(ValueError, match="seeds is 0; A-TRE has to be fitted once or more"):
            evaluate_encoder(Toy(), small_benchmark, seeds=0, progress=False)


def test_embeddings_that_are_stored_are_not_computed_twice_but_with_force(small_benchmark, tmp_path):
    first, second, third = Toy(), Toy(), Toy()
    options = {"tasks": ["a_coat"], "embeddings": tmp_path, "progress": False}
    (one,) = evaluate_encoder(first, small_benchmark, **options)
    (two,) = evaluate_encoder(second, small_benchmark, **options)
    assert first.calls > second.calls == 0
    assert (two.score, two.controls) == (one.score, one.controls)
    evaluate_encoder(third, small_benchmark, force=True, **options)
    assert third.calls == first.calls


def test_nothing_is_written_where_no_folder_is_named(small_benchmark, tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluate_encoder(Toy(), small_benchmark, tasks=["a_coat"], progress=False)
    assert not [*tmp_path.iterdir(), *cache.iterdir()]


def test_a_result_for_other_data_is_not_replaced(small_benchmark, tiny_config, tmp_path):
    evaluate_encoder(Toy(), small_benchmark, tasks=["a_coat"], out=tmp_path, progress=False)
    other = RenderedBenchmark("tiny", tiny_config)
    with pytest.raises(ResultError, match="give another --out, or --force"):
        evaluate_encoder(Toy(), other, tasks=["a_coat"], out=tmp_path, progress=False)
    stored, _ = load_result(tmp_path / "toy" / "v1" / "a_coat.json")
    assert stored.fingerprint == small_benchmark.fingerprint


def test_a_built_folder_gives_the_same_scores(small_benchmark, small_config, tmp_path):
    folder = build_dataset(small_config, tmp_path / "x", progress=False)
    rendered = evaluate_encoder(Toy(), small_benchmark, seeds=1, progress=False)
    built = evaluate_encoder(Toy(), folder, seeds=1, device="cpu", progress=False)
    for one, other in zip(rendered, built, strict=True):
        assert one.fingerprint == other.fingerprint
        assert one.score == other.score
        assert one.controls == other.controls


def test_an_unknown_task_is_refused(small_benchmark):
    with pytest.raises(ValueError, match="unknown task 'a_cot'"):
        evaluate_encoder(Toy(), small_benchmark, tasks=["a_cot"], progress=False)


def test_what_an_encoder_says_of_itself_is_in_the_result(small_benchmark):
    def said(encoder):
        (result,) = evaluate_encoder(encoder, small_benchmark, tasks=["a_coat"], progress=False)
        return result.parameters, result.paradigm, result.licence

    assert said(Toy()) == (None, None, None)
    assert said("log-mel-statistics") == (None, "none (baseline)", "Apache-2.0")
    stating = Toy()
    stating.num_parameters, stating.paradigm, stating.licence = 12, "by hand", "MIT"
    assert said(stating) == (12, "by hand", "MIT")
    stating.num_parameters, stating.paradigm, stating.licence = "12", ["by hand"], ""
    assert said(stating) == (None, None, None)
    network = Linear(EncoderOptions())
    network.layer = torch.nn.Linear(3, 2)
    assert said(network) == (8, None, None)


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


class TestInvalidClips:
    class Broken(Toy):
        """Cannot embed some clips of a task, given by their number."""

        id = "broken"

        def __init__(self, benchmark, task, *numbers):
            super().__init__()
            self.refused = set()
            columns = benchmark.num_clips(task) // len(benchmark.rows(task))
            for number in numbers:
                clip = benchmark.clips(task, number // columns)[number % columns]
                self.refused.add((clip / np.float32(32_768)).tobytes())

        def embed(self, waveforms, sample_rate):
            found = super().embed(waveforms, sample_rate)
            found[[clip.tobytes() in self.refused for clip in waveforms]] = np.nan
            return found

    def test_stop_with_the_clips_id(self, small_benchmark, tmp_path):
        name = f"{small_benchmark.quadruples[2].id}/B"
        broken = self.Broken(small_benchmark, "a_coat", 9)
        with pytest.raises(ClipError, match=f"clip '{name}': encoder 'broken' returned 16 of 16 values"):
            evaluate_encoder(broken, small_benchmark, tasks=["a_coat"], embeddings=tmp_path, progress=False)
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]

    def test_are_left_out_of_a_coat_with_their_quadruple(self, small_benchmark):
        """The score is that of the other quadruples, each embedded as if nothing were wrong."""
        options = {"tasks": ["a_coat"], "skip_invalid": True, "batch_size": 4, "progress": False}
        (result,) = evaluate_encoder(self.Broken(small_benchmark, "a_coat", 9, 11, 30), small_benchmark, **options)
        ids = [quadruple.id for quadruple in small_benchmark.quadruples]
        assert [item["id"] for item in result.skipped] == [f"{ids[2]}/B", f"{ids[2]}/D", f"{ids[7]}/C"]
        assert "16 of 16 values that are NaN" in result.skipped[0]["reason"]
        kept = [index for index in range(len(ids)) if index not in (2, 7)]
        clips = np.stack([small_benchmark.clips("a_coat", index) for index in kept]).astype(np.float32) / 32_768
        a, b, c, d = (Toy().embed(clips[:, place], 32_000) for place in range(4))
        assert result.n == len(kept)
        assert result.score == pytest.approx(a_coat_scores(a, b, c, d).mean(), abs=1e-6)

    def test_are_left_out_of_a_tre_with_their_scene(self, small_benchmark, tmp_path, monkeypatch):
        monkeypatch.setattr("audio_compositionality.tasks.scoring.FEW_STEPS", 20)
        test = next(i for i, scene in enumerate(small_benchmark.scenes) if scene.split == "test")
        options = {"tasks": ["a_tre"], "seeds": 1, "skip_invalid": True, "out": tmp_path, "progress": False}
        (result,) = evaluate_encoder(self.Broken(small_benchmark, "a_tre", 3, test), small_benchmark, **options)
        assert result.n == small_benchmark.config.test_scenes - 1
        assert [item["id"] for item in result.skipped] == [f"{small_benchmark.scenes[i].id}/audio" for i in (3, test)]
        stored, samples = load_result(tmp_path / "broken" / "v1" / "a_tre.json")
        assert stored == result
        assert small_benchmark.scenes[test].id not in samples["id"].to_pylist()

    def test_stop_again_where_they_are_stored(self, small_benchmark, tmp_path):
        options = {"tasks": ["a_coat"], "embeddings": tmp_path / "store", "out": tmp_path / "out", "progress": False}
        broken = self.Broken(small_benchmark, "a_coat", 9)
        (one,) = evaluate_encoder(broken, small_benchmark, skip_invalid=True, **options)
        broken.refused.clear()
        with pytest.raises(ResultError, match="is a result without 1 clips"):
            evaluate_encoder(broken, small_benchmark, **options)
        options["out"] = None
        with pytest.raises(ClipError, match="--skip-invalid leaves it out, --force computes it again"):
            evaluate_encoder(broken, small_benchmark, **options)
        (two,) = evaluate_encoder(broken, small_benchmark, skip_invalid=True, **options)
        assert (two.score, two.skipped) == (one.score, one.skipped)
        (whole,) = evaluate_encoder(broken, small_benchmark, force=True, **options)
        assert whole.skipped == []

    @pytest.mark.parametrize(("task", "message"), [("a_coat", "a_coat has no quadruple"), ("a_tre", "0 scenes in the")])
    def test_that_leave_too_little_are_an_error(self, small_benchmark, task, message):
        encoder = self.Broken(small_benchmark, task, *range(small_benchmark.num_clips(task)))
        with pytest.raises(DatasetError, match=rf"without the \d+ clips that could not be embedded, .*{message}"):
            evaluate_encoder(encoder, small_benchmark, tasks=[task], skip_invalid=True, progress=False)


class Linear(ModelEncoder[torch.Tensor]):
    """A fixed random projection of the power spectrum, run by torch."""

    output_dim, revision, weights_sha256, front_end_version = 8, "v1", "0" * 64, 3

    def __init__(self, options: EncoderOptions) -> None:
        super().__init__("linear", sample_rate=32_000, num_layers=1, options=options, device=torch.device("cpu"))
        self._weights = torch.from_numpy(np.random.default_rng(0).normal(size=(256, 8)).astype(np.float32))

    def _extract_features(self, clips):
        spectrum = np.abs(np.fft.rfft(clips))[:, 1:].reshape(len(clips), 256, -1)
        return torch.from_numpy(np.log1p(spectrum.mean(axis=2)).astype(np.float32))

    def _encode(self, features):
        return Hidden((features @ self._weights)[:, None], frame_seconds=1.0)


class TestPrecision:
    def test_what_was_run_is_in_the_result(self, small_benchmark, tmp_path):
        (result,) = evaluate_encoder(
            Linear(EncoderOptions(pooling="max")), small_benchmark, tasks=["a_coat"], out=tmp_path, progress=False
        )
        assert result.options == {"layer": None, "pooling": "max", "precision": "float32", "compile": False}
        assert (result.weights_sha256, result.front_end_version) == ("0" * 64, 3)
        assert result.precision_deviation is None
        assert load_result(next(tmp_path.rglob("a_coat.json")))[0] == result

    def test_the_deviation_from_float32_is_stated(self, small_benchmark):
        exact, rounded = Linear(EncoderOptions()), Linear(EncoderOptions(precision="bfloat16"))
        (result,) = evaluate_encoder(rounded, small_benchmark, tasks=["a_coat"], progress=False)
        clips = np.concatenate([small_benchmark.clips("a_coat", row) for row in range(4)])
        z, reference = (encoder.embed(clips, 32_000).astype(float) for encoder in (rounded, exact))
        relative = np.linalg.norm(z - reference, axis=1) / np.linalg.norm(reference, axis=1)
        found = result.precision_deviation
        assert found["clips"] == 16
        assert found["relative_mean"] == pytest.approx(relative.mean())
        # bfloat16 has 8 bits of mantissa: rounding errors of 2^-9 in what is multiplied.
        assert 2**-12 < found["relative_max"] < 2**-5
        assert result.encoder_id == "linear@bfloat16"

    def test_clips_that_were_skipped_do_not_count(self, small_benchmark, monkeypatch):
        class Half(Linear):
            def _run_model(self, features):
                found = super()._run_model(features)
                found[np.isclose(features.sum(axis=1), first)] = np.nan
                return found

        encoder = Half(EncoderOptions(precision="bfloat16"))
        clips = small_benchmark.clips("a_coat", 0)
        first = float(encoder.prepare(clips, 32_000)[0].sum())
        monkeypatch.setattr(small_benchmark, "quadruples", small_benchmark.quadruples[:3])
        small = dataclasses.replace(small_benchmark.config, quadruples=3)
        monkeypatch.setattr(small_benchmark, "config", small)
        (result,) = evaluate_encoder(encoder, small_benchmark, tasks=["a_coat"], skip_invalid=True, progress=False)
        assert result.n == 2
        assert result.precision_deviation["clips"] == 11


class TestOtherResults:
    @pytest.mark.parametrize("attribute", ["weights_sha256", "front_end_version"])
    def test_of_other_weights_or_another_front_end_are_not_taken(self, small_benchmark, tmp_path, attribute):
        options = {"tasks": ["a_coat"], "out": tmp_path, "progress": False}
        evaluate_encoder(Linear(EncoderOptions()), small_benchmark, **options)
        other = Linear(EncoderOptions())
        setattr(other, attribute, {"weights_sha256": "1" * 64, "front_end_version": 4}[attribute])
        with pytest.raises(ResultError, match="is a result for other data, settings or weights"):
            evaluate_encoder(other, small_benchmark, **options)

    def test_of_an_encoder_whose_files_have_the_same_name_are_not_taken(self, small_benchmark, tmp_path):
        options = {"tasks": ["a_coat"], "out": tmp_path, "progress": False}
        first, second = Toy(), Toy()
        first.id, second.id = "a/toy", "a__toy"
        evaluate_encoder(first, small_benchmark, **options)
        with pytest.raises(ResultError, match=r"other are encoder_id\)"):
            evaluate_encoder(second, small_benchmark, **options)

    def test_of_the_schema_before_are_taken(self, small_benchmark, tmp_path):
        options = {"tasks": ["a_coat"], "out": tmp_path, "progress": False}
        (result,) = evaluate_encoder(Toy(), small_benchmark, **options)
        path = tmp_path / "toy" / "v1" / "a_coat.json"
        values = {**json.loads(path.read_text()), "schema_version": 3}
        for name in ("parameters", "paradigm", "licence"):
            del values[name]
        path.write_text(json.dumps(values))
        again = Toy()
        assert evaluate_encoder(again, small_benchmark, **options) == [result]
        assert again.calls == 0

    @pytest.mark.parametrize("version", [1, 2])
    def test_of_an_older_schema_are_refused(self, small_benchmark, tmp_path, version):
        evaluate_encoder(Toy(), small_benchmark, tasks=["a_coat"], out=tmp_path, progress=False)
        path = tmp_path / "toy" / "v1" / "a_coat.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": version}))
        with pytest.raises(ResultError, match=rf"schema version {version}, .* compute it again with --force"):
            evaluate_encoder(Toy(), small_benchmark, tasks=["a_coat"], out=tmp_path, progress=False)


class TestBeforeAnythingIsEmbedded:
    class Refused(StagedEncoder[np.ndarray]):
        id, sample_rate, output_dim, revision = "refused", 32_000, 2, "v1"

        def _extract_features(self, clips):
            raise AssertionError("a clip was embedded")

        _run_model = _extract_features

    def test_a_label_that_no_training_scene_has_is_found(self, small_benchmark, monkeypatch):
        rows = small_benchmark.rows("a_tre")
        last = next(row for row in rows if row["split"] == "test")
        last["metadata"][0]["pitch_label"] = "unheard of"
        monkeypatch.setattr(small_benchmark, "rows", lambda task: rows)
        with pytest.raises(DatasetError, match=rf"row {last['id']} \(test\) has pitch_label 'unheard of'"):
            evaluate_encoder(self.Refused(), small_benchmark, tasks=["a_tre"], progress=False)

    def test_a_device_that_is_not_there_is_found(self, small_benchmark):
        with pytest.raises(ValueError, match="cannot use device 'cuda:99'"):
            evaluate_encoder(self.Refused(), small_benchmark, device="cuda:99", progress=False)

    def test_a_split_without_scenes_is_found(self, small_benchmark, monkeypatch):
        rows = [row for row in small_benchmark.rows("a_tre") if row["split"] != "validation"]
        monkeypatch.setattr(small_benchmark, "rows", lambda task: rows)
        with pytest.raises(DatasetError, match="0 scenes in the split validation; it needs at least 1"):
            evaluate_encoder(self.Refused(), small_benchmark, tasks=["a_tre"], progress=False)
