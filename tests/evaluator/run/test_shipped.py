"""Results of baselines that come with the package: used where they fit exactly, and those of a fresh run."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.evaluator.run import evaluate as evaluate_module
from audio_compositionality.evaluator.run import shipped
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task


def names() -> list[str]:
    with zipfile.ZipFile(shipped.ARCHIVE) as archive:
        return archive.namelist()


def test_they_are_small_and_of_the_installed_versions_and_of_the_preset():
    assert shipped.ARCHIVE.stat().st_size < 200_000
    models = {name.split("/")[0] for name in names()}
    assert models >= {"random", "downsample", "log-mel-statistics", "modulation-statistics", "bag-of-words"}
    data = open_data("mini")
    for model, revision, file in (name.split("/") for name in names() if name.endswith(".json")):
        result, samples = shipped.shipped_result(model, revision, file.removesuffix(".json"))
        info = load_task(result.task).info
        configuration = data.configuration(info.recipe)
        assert (result.task_version, result.fingerprint, result.rows_digest) == (
            info.version,
            configuration.fingerprint,
            configuration.rows_digest,
        ), f"{model}, {file}: run python -m studies.shipped"
        assert len(samples.ids) == result.n


def test_they_are_taken_where_all_fits_and_computed_where_not(tmp_path, monkeypatch):
    data, task, model = open_data("mini"), load_task("a_coat"), load_model("random")
    options = RunOptions(out=tmp_path / "a", cache=tmp_path / "store", progress=False)
    monkeypatch.setattr(evaluate_module, "compute_outputs", lambda *_: pytest.fail("the model is run"))
    with pytest.warns(UserWarning, match="the results of random come with the package; to compute them, use --force"):
        (taken,) = evaluate_models([model], data, [task], options, shipped=True)
    (path,) = (tmp_path / "a").rglob("a_coat.json")
    assert load_result(path)[0].measures == taken.measures
    assert taken.samples is not None
    # From here on it is one of the folder.
    assert evaluate_models([model], data, [task], options)[0].measures == taken.measures
    for changed in (options.changed(force=True), options.changed(out=None)):
        with pytest.raises(pytest.fail.Exception, match="the model is run"):
            evaluate_models([model], data, [task], changed, shipped=True)
    other = open_data("mini with seed=7")
    with pytest.raises(pytest.fail.Exception, match="the model is run"):
        evaluate_models([model], other, [task], options.changed(out=tmp_path / "b"), shipped=True)
    with pytest.raises(pytest.fail.Exception, match="the model is run"):
        evaluate_models([model], data, [task], options.changed(out=tmp_path / "c"))
    assert shipped.shipped_result("random", "another", "a_coat") is None
    apart = options.changed(out=tmp_path / "d")
    assert evaluate_models([model], data, [task], apart, apart={("random", "a_coat")}, shipped=True) == []
    assert not (tmp_path / "d").exists()


@pytest.mark.slow
def test_they_are_those_of_a_fresh_run(tmp_path):
    """A-COAT of three, and A-TRE, whose fits take from 20 s to a minute, of one: these depend on the processor in the
    last digits."""
    options = RunOptions(out=tmp_path, force=True, progress=False, device="cpu")
    models = [load_model(name) for name in ("downsample", "log-mel-statistics", "modulation-statistics")]
    results = evaluate_models(models, open_data("mini"), [load_task("a_coat")], options)
    fitted = options.changed(settings={"seeds": [0]}, force=False)
    results += evaluate_models(models[1:2], open_data("mini"), [load_task("a_tre")], fitted)
    for result in results:
        there, samples = shipped.shipped_result(result.model.id, result.model.revision, result.task)
        tolerance = 1e-4 if result.task == "a_tre" else 1e-6
        assert json.dumps(result.settings) == json.dumps(there.settings)
        for name, value in result.measures.items():
            assert value == there.measures[name] or np.isclose(value, there.measures[name], atol=tolerance), name
        for name, column in result.samples.columns.items():
            np.testing.assert_allclose(column, samples.columns[name], atol=100 * tolerance)
