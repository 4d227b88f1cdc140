"""What a command hands to the evaluator: models, tasks by default and on request, options, the paper's protocol."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from audio_compositionality.dataset_builder import build, rendered
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.tasks.registry import load_task, scored_recipes

LOG_MEL = "log-mel-statistics"
POST_NORM = {"block": "post-norm"}


def given(calls):
    """Where each call's data come from, and its settings."""
    return [(call.data.source, call.settings) for call in calls]


def test_run_takes_the_baselines_and_each_model_once_beside_its_twin(evaluated, run, tmp_path, capsys):
    names = ("whisper-base", "random", "untrained:whisper-tiny", "shuffled:whisper-tiny", "whisper-base")
    assert run("run", *names, "--out", tmp_path) == 0
    (call,) = evaluated
    baselines = [listing.name for listing in list_models() if listing.is_baseline]
    assert call.models == ["whisper-base", "untrained:whisper-base", *names[2:4], *baselines]
    assert set(baselines) >= {"random", "downsample", LOG_MEL}
    assert (call.data.source, call.tasks) == ("mini", ["a_coat", "a_tre"])
    opening = capsys.readouterr().out.splitlines()[0]
    for words in ("minutes", str(tmp_path), "untrained:whisper-base"):
        assert words in opening


def test_run_fits_once_unless_asked_and_its_arguments_become_options(evaluated, run, tmp_path):
    assert run("run", "--out", tmp_path) == 0
    assert run("run", "--out", tmp_path, "--tasks", "a_coat") == 0
    arguments = ["--batch-size", 64, "--cache", tmp_path / "kept", "--skip-invalid", "--force", "--device", "cpu"]
    assert run("run", *arguments, "--seeds", 2, "--set", "max_steps=5", "--out", tmp_path) == 0
    assert [call.settings for call in evaluated] == [{"seeds": [0]}, {}, {"seeds": "2", "max_steps": 5}]
    options = evaluated[-1].options
    assert (options.batch_size, options.cache, options.out) == (64, tmp_path / "kept", tmp_path)
    assert (options.skip_invalid, options.force, options.device) == (True, True, "cpu")
    assert options.progress


class TestOnRequest:
    """Tasks on request are left out where neither tasks nor a benchmark are named."""

    @pytest.mark.parametrize("command", [("run",), ("evaluate", LOG_MEL)])
    def test_such_a_task_and_its_data_are_taken_where_it_is_named(
        self, command, toy_on_request, evaluated, run, tmp_path
    ):
        for words in ((), ("--benchmark", "toy"), ("--tasks", "toy_pairs")):
            assert run(*command, *words, "--out", tmp_path) == 0
        assert [call.tasks for call in evaluated] == [["a_coat", "a_tre"], ["toy_pairs"], ["toy_pairs"]]
        by_default, *named = [call.data.recipes for call in evaluated]
        assert {"a_coat", "a_tre"} <= set(by_default)
        assert "toy_pairs" not in by_default
        assert named == [("toy_pairs",)] * 2

    def test_embed_embeds_its_clips_and_tasks_says_which_are_scored_by_default(
        self, toy_on_request, run, tmp_path, capsys
    ):
        assert run("embed", LOG_MEL, "--tasks", "toy_pairs", "--out", tmp_path) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert "toy_pairs" in line
        assert run("tasks") == 0
        printed = capsys.readouterr().out
        assert all(words in printed for words in ("Octave-Similarity", "on request", "by default"))

    def test_the_card_of_results_tells_it_from_the_others(self, toy_on_request):
        from audio_compositionality.push_scripts.spaces import results_card

        lines = [line for line in results_card("lab").splitlines() if line.startswith("- **")]
        assert lines[-1] == f"- **Octave-Similarity** (`toy_pairs`, on request): {toy_on_request.info.question}"
        assert not any("on request" in line for line in lines if "(`a_coat`" in line or "(`a_tre`" in line)


class TestProtocol:
    def test_run_takes_the_preset_and_the_settings_of_the_paper(self, evaluated, run, tmp_path, capsys):
        assert run("run", "--data", "paper-mini", "--out", tmp_path) == 0
        assert "on the preset paper-mini" in capsys.readouterr().out
        assert run("run", "--data", "paper-mini", "--tasks", "a_coat", "--out", tmp_path) == 0
        assert given(evaluated) == [("paper-mini", {"seeds": [0], **POST_NORM}), ("paper-mini", {})]

    def test_a_preset_of_the_paper_has_its_settings_and_other_data_where_they_are_asked_for(
        self, evaluated, run, tmp_path, folder
    ):
        cases = [
            (("--data", "paper-mini"), ("paper-mini", POST_NORM)),
            (("--preset", "paper-mini", "--seeds", 2), ("paper-mini", {"seeds": "2", **POST_NORM})),
            (("--data", "paper-mini", "--set", "block=pre-norm"), ("paper-mini", {"block": "pre-norm"})),
            (("--data", "mini", "--set", "protocol=paper"), ("mini", POST_NORM)),
            (("--data", "mini"), ("mini", {})),
            (("--data", folder, "--set", "protocol=paper"), (str(folder), POST_NORM)),
        ]
        for words, _ in cases:
            assert run("evaluate", LOG_MEL, *words, "--out", tmp_path) == 0
        assert given(evaluated) == [expected for _, expected in cases]

    def test_a_protocol_that_no_task_has_is_refused(self, evaluated, run, folder, tmp_path, capsys, monkeypatch):
        assert run("evaluate", LOG_MEL, "--data", folder, "--set", "protocol=papr", "--out", tmp_path) == 2
        assert "did you mean 'paper'" in capsys.readouterr().err
        bare = SimpleNamespace(info=replace(load_task("a_coat").info, protocols={}))
        monkeypatch.setattr("audio_compositionality.tasks.registry.load_tasks", lambda names: [bare])
        assert run("evaluate", LOG_MEL, "--tasks", "a_coat", "--set", "protocol=paper", "--out", tmp_path) == 2
        assert capsys.readouterr().err.strip().endswith("none of the tasks has a protocol")
        assert evaluated == []

    def test_build_writes_the_preset_of_the_protocol(self, run, tmp_path, monkeypatch):
        built = []
        monkeypatch.setattr(build, "build_dataset", lambda data, out, **_: built.append(data) or out)
        assert run("build", "--data", "paper-mini", "--out", tmp_path / "x") == 0
        (data,) = built
        preset = rendered.rendered_preset("paper-mini").settings
        assert data.settings == {recipe: preset[recipe] for recipe in preset if recipe in scored_recipes()}
        assert {data.settings[recipe].onset for recipe in ("a_coat", "a_tre")} == {"locked"}

    def test_its_settings_are_not_those_of_a_submission(self, small_data):
        """The board has the project's own settings alone."""
        task = load_task("a_tre")
        rows = small_data.configuration("a_tre").rows
        assert task.settings(rows, task.info.protocols["paper"]) != task.settings(rows, {})
