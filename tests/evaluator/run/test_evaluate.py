"""From a model to results."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import digest_of_rows
from audio_compositionality.dataset_builder.rendered import RenderedConfiguration, RenderedData, rendered_preset
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.encoders.base import ClipError, Model, ModelCard, ModelError, StagedEncoder
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.formats import write_comparisons
from audio_compositionality.evaluator.compare.summary import short_table
from audio_compositionality.evaluator.compare.tables import score_table
from audio_compositionality.evaluator.figures.catalogue import file_prefix
from audio_compositionality.evaluator.results.result import ResultError, load_result
from audio_compositionality.evaluator.run.evaluate import differences, evaluate, evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.metrics.a_coat import a_coat_scores
from audio_compositionality.metrics.a_tre import a_tre
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.tasks.base import TaskError
from audio_compositionality.tasks.registry import load_tasks

from .toys import BandEnergies, Linear

pytestmark = pytest.mark.usefixtures("one_thread")

FEW = {"seeds": 1, "max_steps": 20}


def run(model, data, *tasks, settings=None, **options):
    """Results of some tasks on the CPU."""
    if settings is None and (not tasks or "a_tre" in tasks):
        settings = FEW
    made = RunOptions(device="cpu", progress=False, settings=settings or {}, **options)
    return evaluate(model, data, tasks=tasks or None, options=made)


def waveforms(data, recipe):
    """All clips of a recipe, [clips, samples]."""
    return np.stack([clip.waveform for clip in data.configuration(recipe).clips()])


class Changed:
    """A configuration whose rows are other ones."""

    def __init__(self, configuration, rows):
        self.recipe, self.source, self.fingerprint = configuration.recipe, configuration.source, "0" * 64
        self.rows_digest = self.fingerprint
        self._configuration, self.rows = configuration, rows
        ids = {row["id"] for row in rows}
        self.clip_ids = [id for id in configuration.clip_ids if id.rpartition("/")[0] in ids]

    @property
    def recipes(self):
        return (self.recipe,)

    def configuration(self, recipe):
        return self

    def clips(self, wanted=None, *, keep_invalid=False):
        names = self.clip_ids if wanted is None else self.clip_ids[wanted.start : wanted.stop]
        for name in names:
            place = self._configuration.clip_ids.index(name)
            yield from self._configuration.clips(range(place, place + 1), keep_invalid=keep_invalid)


def changed(data, recipe, rows):
    return Changed(data.configuration(recipe), rows)


def test_downsample_is_additive_to_the_last_bit_and_random_is_not(small_data):
    """The paper's linear and random baselines."""
    (downsample,) = run("downsample", small_data, "a_coat")
    (random,) = run("random", small_data, "a_coat")
    assert downsample.score == pytest.approx(1, abs=1e-6)
    assert downsample.measures["top1"] == 1
    assert downsample.measures["matched_null"] < 0.2
    low, high = random.intervals["a_coat"]
    assert low < 0 < high


def test_a_task_on_request_is_scored_where_it_is_named_and_not_by_default(tiny_data, toy_on_request):
    pairs = rendered_preset("mini", recipes=["toy_pairs"], pairs=3)
    both = RenderedData("both", {**tiny_data.settings, **pairs.settings})
    model = load_model("log-mel-statistics")
    assert [result.task for result in run(model, both)] == ["a_coat", "a_tre"]
    assert [result.task for result in run(model, both, "toy_pairs")] == ["toy_pairs"]
    # Whoever brings data of it alone has asked for it.
    assert [result.task for result in evaluate(model, pairs, options=RunOptions(progress=False))] == ["toy_pairs"]


def test_a_constant_encoder_is_exposed_by_its_controls(small_data):
    coat, tre = run(BandEnergies(constant=True), small_data, "a_coat", "a_tre")
    assert coat.score == 0
    assert coat.measures["step_variance_1"] == coat.measures["step_variance_2"] == 0
    assert coat.measures["degenerate"] == coat.n == 12
    assert tre.score == pytest.approx(1, abs=1e-6)
    assert tre.measures["constant"] == pytest.approx(1, abs=1e-6)
    assert tre.measures["gain"] == 0
    assert tre.measures["a_tre_centred"] == 0
    assert tre.measures["collapsed"] is True
    assert tre.measures["top1"] == pytest.approx(tre.measures["top1_chance"])


@pytest.mark.slow
def test_results_are_written_read_back_and_not_computed_twice(small_data, tmp_path):
    told = []
    options = RunOptions(out=tmp_path, device="cpu", progress=False, settings=FEW)
    tasks = load_tasks(["a_coat", "a_tre"])
    results = evaluate_models([BandEnergies()], small_data, tasks, options, on_result=told.append)
    assert told == results
    for task, result in zip(tasks, results, strict=True):
        assert next(iter(result.measures)) == task.info.score.name
        assert set(result.measures) == {measure.name for measure in task.info.measures}
        assert set(result.intervals) == {measure.name for measure in task.info.sampled}
        assert (result.task_version, result.recipe) == (task.info.version, task.info.recipe)
        assert result.fingerprint == small_data.configuration(task.info.recipe).fingerprint
        stored, samples = load_result(tmp_path / "toy" / "v1" / f"{task.info.name}.json")
        assert stored == result
        assert len(samples.ids) == result.n
    assert list(samples.columns) == ["score", "score_centred", "score_top1"]
    rows = small_data.configuration("a_tre").rows
    assert samples.ids == tuple(row["id"] for row in rows if row["split"] == "test")
    again = BandEnergies()
    assert evaluate_models([again], small_data, tasks, options, on_result=told.append) == results
    assert told == [*results, *results]
    assert again.calls == 0
    run(again, small_data, "a_coat", out=tmp_path, force=True)
    assert again.calls > 0


def test_the_samples_of_a_coat_have_their_steps_on_two_axes(small_data, tmp_path):
    (result,) = run(BandEnergies(), small_data, "a_coat", out=tmp_path)
    columns = load_result(tmp_path / "toy" / "v1" / "a_coat.json")[1].columns
    scores = ["score", "score_centred", "score_adjusted", "score_top1"]
    assert list(columns) == [*scores, "ab_1", "ab_2", "cd_1", "cd_2"]
    clips = waveforms(small_data, "a_coat").reshape(result.n, 4, -1)
    a, b, c, d = (BandEnergies().embed(clips[:, place], 32_000).astype(float) for place in range(4))
    steps = np.concatenate([b - a, d - c])
    left, values, _ = np.linalg.svd(steps - steps.mean(axis=0), full_matrices=False)
    for axis in (1, 2):
        coordinates = np.concatenate([columns[f"{name}_{axis}"] for name in ("ab", "cd")])
        expected = left[:, axis - 1] * values[axis - 1]
        np.testing.assert_allclose(coordinates * np.sign(coordinates[0] * expected[0]), expected, atol=1e-4)
        share = values[axis - 1] ** 2 / (values**2).sum()
        assert result.measures[f"step_variance_{axis}"] == pytest.approx(share, abs=1e-6)
    sides = np.stack([b - a, d - c])
    rest = [np.arange(result.n) != row for row in range(result.n)]
    centred = [cosine(*(sides[:, row] - sides[:, rest[row]].mean(axis=1))) for row in range(result.n)]
    np.testing.assert_allclose(columns["score_centred"], centred, atol=1e-5)


def cosine(u, v):
    return u @ v / np.linalg.norm(u) / np.linalg.norm(v)


def test_a_single_quadruple_has_no_centred_score(small_data, tmp_path):
    one = changed(small_data, "a_coat", small_data.configuration("a_coat").rows[:1])
    run(BandEnergies(), one, "a_coat", out=tmp_path)
    result, samples = load_result(tmp_path / "toy" / "v1" / "a_coat.json")
    assert result.intervals == dict.fromkeys(["a_coat", "adjusted", "centred", "top1"])
    assert (result.n, result.measures["centred"]) == (1, None)
    assert list(samples.columns) == ["score", "score_top1", "ab_1", "ab_2", "cd_1", "cd_2"]


class Refused(StagedEncoder[np.ndarray]):
    card = ModelCard("refused", "v1", 32_000, 2)

    def _extract_features(self, clips):
        raise AssertionError("a clip was embedded")

    _run_model = _extract_features


class TestSettings:
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            *(({name: value}, f"{name} ") for name, value in (("seeds", 0), ("seeds", [1, 1]), ("seeds", "x"))),
            ({"max_steps": 0}, "max_steps "),
            ({"seed": 1}, r"none of the tasks has the setting 'seed'; did you mean 'seeds'"),
        ],
    )
    def test_that_cannot_be_are_refused_before_anything_is_embedded(self, small_data, wrong, message):
        with pytest.raises(InputError, match=message):
            run(Refused(), small_data, "a_tre", settings=wrong)

    @pytest.mark.slow
    def test_seeds_are_fits_whose_spread_is_told_apart_from_that_of_the_scenes(self, tiny_data, tmp_path):
        (one,) = run(BandEnergies(), tiny_data, "a_tre", settings={"seeds": 1, "max_steps": 5})
        (three,) = run(BandEnergies(), tiny_data, "a_tre", settings={"max_steps": 5}, out=tmp_path)
        assert one.settings == {"seeds": [0], "max_steps": 5}
        assert three.settings == {"seeds": [0, 1, 2], "max_steps": 5}
        assert one.measures["seed_std"] is None
        assert len(three.training["steps"]) == len(three.training["steps_centred"]) == 3

        rows = tiny_data.configuration("a_tre").rows
        z = BandEnergies().embed(waveforms(tiny_data, "a_tre"), 32_000)
        scenes, splits = [row["metadata"] for row in rows], [row["split"] for row in rows]
        fits = [a_tre(z, scenes, splits, seeds=[s], max_steps=5, device="cpu", progress=False) for s in range(3)]
        assert one.score == pytest.approx(fits[0]["a_tre"], abs=1e-6)
        for spread, name in (("seed_std", "a_tre"), ("a_tre_centred_seed_std", "a_tre_centred")):
            expected = np.std([fit[name] for fit in fits], ddof=1)
            assert three.measures[spread] == pytest.approx(expected, rel=1e-3)
        samples = load_result(tmp_path / "toy" / "v1" / "a_tre.json")[1]
        assert three.measures["std"] == pytest.approx(np.std(samples.columns["score"], ddof=1))


def test_a_result_of_anything_else_is_not_replaced(small_data, tiny_data, tmp_path, monkeypatch):
    stated = {"parameters": 12, "paradigm": "by hand", "licence": "MIT", "trained_on": "tones"}
    model = Linear(EncoderOptions(pooling="max"), id="a/toy", **stated)
    (result,) = run(model, small_data, "a_coat", out=tmp_path)
    options = {"layer": None, "pooling": "max", "precision": "float32", "compile": False}
    assert result.model.options.model_dump() == options
    assert {name: getattr(result.model, name) for name in stated} == stated
    assert (result.model.weights_sha256, result.model.front_end_version) == ("0" * 64, 3)
    assert result.precision_deviation is None
    (path,) = tmp_path.rglob("a_coat.json")
    assert load_result(path)[0] == result

    (task,) = load_tasks(["a_coat"])
    opened, card = open_task(task, small_data), model.card
    for name, value, other in (
        *((name, None, []) for name in stated),
        ("weights_sha256", "1" * 64, ["weights_sha256"]),
        ("front_end_version", 4, ["front_end_version"]),
        ("revision", "v2", ["revision"]),
        # Its file has the same name.
        ("id", "a__toy", ["id"]),
    ):
        assert differences(result, dataclasses.replace(card, **{name: value}), opened) == other
    for name, value in (("settings", {"a": 1}), ("rows_digest", "0" * 64)):
        assert differences(result.model_copy(update={name: value}), card, opened) == [name]
    assert differences(result, card, open_task(task, tiny_data)) == ["fingerprint", "rows_digest"]
    with pytest.raises(ResultError, match=r"different: fingerprint, rows_digest\): give another --out, or --force"):
        run(model, tiny_data, "a_coat", out=tmp_path)
    assert load_result(path)[0] == result
    monkeypatch.setattr(task, "info", dataclasses.replace(task.info, version=task.info.version + 1))
    assert differences(result, card, open_task(task, small_data)) == ["task_version"]


def test_results_of_other_data_in_the_folder_are_told_of_and_kept_apart(small_data, tmp_path, recwarn):
    """Another model on other data under the same name, in one folder."""
    settings = small_data.settings["a_coat"]
    fewer = RenderedData(small_data.source, {"a_coat": settings.changed(quadruples=8)})
    (first,) = run("level-statistics", small_data, "a_coat", out=tmp_path)
    assert not [warning for warning in recwarn if "other data" in str(warning.message)]
    with pytest.warns(UserWarning, match=r"results of A-COAT on other data, 1 on .*; this run is on .* separately"):
        (second,) = run("log-mel-statistics", fewer, "a_coat", out=tmp_path)
    names = [f"{one.dataset} (data {one.fingerprint[:8]})" for one in (first, second)]
    comparisons = compare_results([tmp_path])
    assert {one.data_name for one in comparisons} == set(names)
    captions = [table.caption for one in comparisons for table in (score_table(one), short_table(one))]
    assert sorted(captions) == sorted(
        f"A-COAT on {name}, n = {one.n}" for name, one in zip(names, (first, second), strict=True) for _ in range(2)
    )


def test_results_of_rows_that_were_drawn_otherwise_are_never_paired(small_data, tmp_path, monkeypatch):
    """Another model after a changed draw under an unchanged version: same fingerprint, ids and settings."""
    (first,) = run("level-statistics", small_data, "a_coat", out=tmp_path)
    changed = RenderedData(small_data.source, dict(small_data.settings))
    digest = digest_of_rows([{"drawn": "otherwise"}])
    monkeypatch.setattr(RenderedConfiguration, "rows_digest", digest)
    names = [f"{first.fingerprint[:8]}-{rows[:8]}" for rows in (first.rows_digest, digest)]
    with pytest.warns(
        UserWarning, match=rf"on other data, 1 on small \({names[0]}\); this run is on small \({names[1]}\)"
    ):
        (second,) = run("log-mel-statistics", changed, "a_coat", out=tmp_path)
    assert (first.fingerprint, digest) == (second.fingerprint, second.rows_digest)
    comparisons = compare_results([tmp_path], data=changed)
    assert {one.data_name for one in comparisons} == {f"small (data {name})" for name in names}
    assert {file_prefix(one, comparisons) for one in comparisons} == {f"a_coat-{name}" for name in names}
    # The data are those of the second result alone.
    assert {one.rows_digest: one.samples is None for one in comparisons} == {first.rows_digest: True, digest: False}
    written = json.loads(write_comparisons(comparisons, "json"))
    assert [(len(one["models"]), len(one["verdicts"])) for one in written] == [(1, 0), (1, 0)]
    assert {one["rows_digest"] for one in written} == {first.rows_digest, digest}


def test_a_task_that_is_not_for_this_kind_of_model_is_refused_before_anything_is_embedded(small_data):
    class Talker(Model):
        card = ModelCard("talker", "v1", 16_000, None)

        def answer(self, clips, prompts):
            return ["(A)"] * len(prompts)

    with pytest.raises(
        TaskError, match=r"'talker' cannot embed clips \(it has no embed\), and the task a_coat needs an"
    ):
        run(Talker(), small_data, "a_coat")
    with pytest.raises(InputError, match=r"the data 'small' have .*a_coat.*; 'talker' can do none of them"):
        evaluate_models([Talker()], small_data, None, RunOptions(progress=False))


class Spread:
    """An object with the spread of the first seconds of a clip."""

    sample_rate = 8_000

    def __init__(self, seconds=1):
        self.seconds, self.seen = seconds, []

    def embed(self, waveforms, sample_rate):
        self.seen.append(len(waveforms))
        clips = waveforms[:, : sample_rate * self.seconds]
        return np.stack([clips.std(axis=1), clips.mean(axis=1), np.abs(clips).mean(axis=1)], axis=1)


def test_nothing_of_an_object_without_a_revision_is_kept_or_reused(small_data, tmp_path):
    how = RunOptions(progress=False, cache=tmp_path / "store", out=tmp_path / "out")
    spread = Spread()
    model = load_model(spread)
    with pytest.warns(UserWarning, match="'Spread' is an object without a revision: its embeddings are not cached"):
        (first,) = evaluate(model, small_data, tasks=["a_coat"], options=how)
    embedded = sum(spread.seen)
    with pytest.warns(UserWarning, match="existing results are computed again"):
        (again,) = evaluate(model, small_data, tasks=["a_coat"], options=how)
    assert sum(spread.seen) > 1.9 * embedded
    assert again.model == first.model
    assert not (tmp_path / "store").exists()
    # A change to the object is seen although it was loaded before.
    spread.seconds = 4
    with pytest.warns(UserWarning, match="not cached"):
        (longer,) = evaluate(model, small_data, tasks=["a_coat"], options=how)
    assert longer.model.revision != first.model.revision
    assert longer.measures["a_coat"] != first.measures["a_coat"]
    with pytest.raises(ResultError, match=r"an object of a Python session.*file\.py:NAME, or give the object"):
        make_submission(next((tmp_path / "out").rglob("a_coat.json")), small_data, cache=tmp_path / "store")
    # With a revision it is kept as any other model.
    spread.revision = "1"
    (kept,) = evaluate(spread, small_data, tasks=["a_coat"], options=how)
    embedded = sum(spread.seen)
    evaluate(spread, small_data, tasks=["a_coat"], options=how)
    assert sum(spread.seen) == embedded + 1
    assert (kept.model.revision, kept.measures) == ("1", longer.measures)
    assert (tmp_path / "store").exists()


def test_an_object_that_is_no_model_is_refused_with_what_to_do(small_data):
    with pytest.raises(ModelError, match="'dict' has no sample_rate; an encoder needs sample_rate and embed"):
        evaluate({}, small_data)


@pytest.mark.weights
def test_a_pretrained_whisper_and_its_untrained_twin(checkpoints):
    """What the controls must show (first seen in an independent study): training takes away the shared direction."""
    folder = str(checkpoints / "whisper-tiny.en")
    few = {"quadruples": 2, "quadruple_candidates": 500, "num_classes": 3, "voices": default_voices()[:3]}
    data = rendered_preset("mini", recipes=["a_coat"], **few)
    (trained,) = run(load_model(folder), data, "a_coat")
    (untrained,) = run(f"untrained:{folder}", data, "a_coat")
    assert trained.model.id == "whisper-tiny.en"
    assert untrained.model.id == "untrained:whisper-tiny.en"
    assert untrained.score > trained.score
    assert untrained.measures["null"] > trained.measures["null"]


class Broken(BandEnergies):
    """Cannot embed some clips of a recipe, given by their number."""

    def __init__(self, data, recipe, *numbers):
        super().__init__(id="broken")
        clips = [clip.waveform for clip in data.configuration(recipe).clips()]
        self.refused = {clips[number].tobytes() for number in numbers}

    def embed(self, waveforms, sample_rate):
        embeddings = super().embed(waveforms, sample_rate)
        embeddings[[clip.tobytes() in self.refused for clip in waveforms]] = np.nan
        return embeddings


class TestInvalidClips:
    @pytest.mark.parametrize("recipe", ["a_coat", "a_tre"])
    def test_stop_with_the_clips_id(self, tiny_data, tmp_path, monkeypatch, recipe, cache):
        """Nothing is written, to no folder either."""
        monkeypatch.chdir(tmp_path)
        configuration = tiny_data.configuration(recipe)
        place = next(place for place, row in enumerate(configuration.rows) if row["split"] == "test")
        broken = Broken(tiny_data, recipe, place)
        with pytest.raises(
            ClipError, match=f"clip '{configuration.clip_ids[place]}': encoder 'broken' returned 16 of 16"
        ):
            run(broken, tiny_data, recipe)
        (result,) = run(broken, tiny_data, recipe, skip_invalid=True)
        assert [clip.id for clip in result.skipped] == [configuration.clip_ids[place]]
        assert result.n == 1
        assert not [*tmp_path.iterdir(), *cache.iterdir()]

    def test_are_left_out_of_a_coat_with_their_quadruple(self, small_data):
        """The score is that of the other quadruples, each embedded as if nothing were wrong."""
        broken = Broken(small_data, "a_coat", 9, 11, 30)
        (result,) = run(broken, small_data, "a_coat", skip_invalid=True, batch_size=4)
        names = small_data.configuration("a_coat").clip_ids
        assert [clip.id for clip in result.skipped] == [names[9], names[11], names[30]]
        assert "16 of 16 values that are NaN" in result.skipped[0].reason
        kept = [index for index in range(12) if index not in (2, 7)]
        clips = waveforms(small_data, "a_coat").reshape(12, 4, -1)[kept]
        a, b, c, d = (BandEnergies().embed(clips[:, place], 32_000) for place in range(4))
        assert result.n == len(kept)
        assert result.score == pytest.approx(a_coat_scores(a, b, c, d).mean(), abs=1e-6)

    def test_stop_again_where_they_are_stored(self, small_data, tmp_path):
        folders = {"cache": tmp_path / "store", "out": tmp_path / "out"}
        broken = Broken(small_data, "a_coat", 9)
        (one,) = run(broken, small_data, "a_coat", skip_invalid=True, **folders)
        broken.refused.clear()
        with pytest.raises(ResultError, match="lacks 1 clips"):
            run(broken, small_data, "a_coat", **folders)
        folders["out"] = None
        with pytest.raises(ClipError, match="--skip-invalid leaves it out, --force computes it again"):
            run(broken, small_data, "a_coat", **folders)
        (two,) = run(broken, small_data, "a_coat", skip_invalid=True, **folders)
        assert (two.measures, two.skipped) == (one.measures, one.skipped)
        (whole,) = run(broken, small_data, "a_coat", force=True, **folders)
        assert whole.skipped == []

    @pytest.mark.parametrize(("task", "message"), [("a_coat", "a_coat has no quadruple"), ("a_tre", "0 scenes in the")])
    def test_that_leave_too_little_are_an_error(self, tiny_data, task, message):
        model = Broken(tiny_data, task, *range(len(tiny_data.configuration(task).clip_ids)))
        with pytest.raises(TaskError, match=rf"without the \d+ clips that could not be embedded, .*{message}"):
            run(model, tiny_data, task, skip_invalid=True)


def test_the_deviation_from_float32_is_of_16_clips_that_could_be_embedded(small_data):
    few = changed(small_data, "a_coat", small_data.configuration("a_coat").rows[:5])
    first = float(Linear().prepare(next(few.clips()).waveform[None], 32_000)[0].sum())

    class Half(Linear):
        def _run_model(self, features):
            embeddings = super()._run_model(features)
            embeddings[np.isclose(features.sum(axis=1), first)] = np.nan
            return embeddings

    rounded = Half(EncoderOptions(precision="bfloat16"))
    (result,) = run(rounded, few, "a_coat", skip_invalid=True)
    clips = waveforms(few, "a_coat")[1:17]
    z, reference = (model.embed(clips, 32_000).astype(float) for model in (rounded, Linear()))
    relative = np.linalg.norm(z - reference, axis=1) / np.linalg.norm(reference, axis=1)
    deviation = result.precision_deviation
    assert (result.n, deviation.clips) == (4, 16)
    assert deviation.relative_mean == pytest.approx(relative.mean())
    # bfloat16 has 8 bits of mantissa: rounding errors of 2^-9 in what is multiplied.
    assert 2**-12 < deviation.relative_max < 2**-5


class TestBeforeAnythingIsEmbedded:
    def test_a_label_that_no_training_scene_has_is_found(self, small_data):
        rows = [
            {**row, "metadata": [dict(s) for s in row["metadata"]]} for row in small_data.configuration("a_tre").rows
        ]
        last = next(row for row in rows if row["split"] == "test")
        last["metadata"][0]["pitch_label"] = "unheard of"
        with pytest.raises(TaskError, match=rf"row {last['id']} \(test\) has pitch_label 'unheard of'"):
            run(Refused(), changed(small_data, "a_tre", rows), "a_tre")

    def test_a_device_that_is_not_there_is_found(self, small_data):
        with pytest.raises(AudioCompositionalityError, match="cannot use device 'cuda:99'"):
            evaluate(Refused(), small_data, options=RunOptions(device="cuda:99", progress=False))

    def test_a_split_without_scenes_is_found(self, small_data):
        rows = [row for row in small_data.configuration("a_tre").rows if row["split"] != "validation"]
        with pytest.raises(TaskError, match="0 scenes in the split validation; at least 1 are needed"):
            run(Refused(), changed(small_data, "a_tre", rows), "a_tre")
