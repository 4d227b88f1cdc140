"""Questions on the command line: who answers them beside a model, and from data to a result."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.cli.scoring import ModelSettings, kept_outputs, loaded_models
from audio_compositionality.encoders.options import LanguageOptions
from audio_compositionality.evaluator.run.processes import Processes
from audio_compositionality.tasks.registry import load_task


def test_controls_of_a_model_that_answers_share_it():
    settings = ModelSettings(None, LanguageOptions(precision="float32"))
    names = ["first", "without-audio:first", "events-as-text:first", "cascade", "noise-audio:cascade"]
    first, silent, told, cascade, noise = loaded_models(names, settings, None, Processes())
    assert (silent.model, told.model) == (first, first)
    assert noise.model is not cascade
    (again,) = loaded_models(["other-audio:first"], settings, None, Processes(), {"first": first})
    assert again.model is first


def test_what_is_kept_is_said():
    questions, quadruples = load_task("polybench"), load_task("a_coat")
    assert kept_outputs([questions]) == "answers"
    assert kept_outputs([quadruples]) == "embeddings"
    assert kept_outputs([questions, quadruples]) == "embeddings and answers"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_answerers_that_need_no_training_on_sound_answer_the_preset(run, tmp_path, capsys):
    names = ["random", "first", "longest", "majority", "blind", "present", "oracle", "other-audio:first"]
    out = tmp_path / "results"
    few = ("--set", "train_sets=6", "--set", "test_sets=6", "--cache", tmp_path / "store")
    assert run("evaluate", *names, "--tasks", "polybench", "--out", out, *few) == 0
    measures = {}
    for path in out.rglob("polybench.json"):
        result = json.loads(path.read_text())
        measures[result["model"]["id"]] = result["measures"]
    assert set(measures) == set(names)
    assert measures["oracle"]["accuracy"] == measures["oracle"]["groups_right"] == 1
    for name in ("first", "longest", "majority", "blind", "other-audio:first"):
        assert measures[name]["groups_right"] == 0
        assert measures[name]["accuracy"] <= measures[name]["without_listening"] + 0.1
    assert measures["present"]["counting"] == 1
    assert measures["present"]["classification"] < 0.6
    assert all(measures[name]["unparsed"] == 0 for name in names)


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """A built data set of the questions of a few scenes."""
    from audio_compositionality.dataset_builder.build import build_dataset
    from audio_compositionality.dataset_builder.rendered import RenderedData
    from audio_compositionality.dataset_builder.texts.polyphony import PolyphonySpec

    data = RenderedData("few", {"polybench": PolyphonySpec(train_sets=1, test_sets=2, sample_rate=8_000)})
    return build_dataset(data, tmp_path_factory.mktemp("questions") / "data", progress=False)


class TestHowQuestionsArePut:
    @pytest.mark.filterwarnings("ignore")
    def test_every_way_reaches_the_result(self, run, tmp_path, questions):
        how = ("--set", "orders=cyclic", "--set", "scoring=letters", "--cache", tmp_path / "store")
        out = tmp_path / "out"
        assert (
            run(
                "evaluate", "first", "random", "oracle", "--data", questions, "--out", out, "--tasks", "polybench", *how
            )
            == 0
        )
        results = {path.parts[-3]: json.loads(path.read_text()) for path in out.rglob("polybench.json")}
        settings = {"prompt": "direct", "prompt_version": 1, "orders": "cyclic", "scoring": "letters"}
        assert all(result["settings"] == settings for result in results.values())
        first, oracle = results["first"]["measures"], results["oracle"]["measures"]
        assert (first["consistency"], first["accuracy"]) == (0, pytest.approx(first["chance"]))
        assert (oracle["consistency"], oracle["accuracy"], oracle["groups_right"]) == (1, 1, 1)
        assert first["position_distance"] > 0.5 > oracle["position_distance"] + 0.49
