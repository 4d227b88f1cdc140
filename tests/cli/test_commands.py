"""The commands that evaluate, from arguments to files and what is printed."""

import argparse
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from audio_compositionality.cli.check_model import _next_line, add_arguments
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.base import language_options
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions, LanguageOptions
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.registry import list_tasks

LOG_MEL = "log-mel-statistics"
FEW = ("--seeds", "1", "--set", "max_steps=10")
EXAMPLE = f"{Path(__file__).parents[1] / 'examples' / 'my_encoder.py'}:my_encoder"


def test_evaluate_writes_results_and_prints_each_and_the_tables(folder, tmp_path, run, capsys, cache):
    assert run("evaluate", LOG_MEL, "--data", folder, "--out", tmp_path, *FEW) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith(f"{LOG_MEL}, A-COAT: adjusted ")
    assert lines[1].startswith(f"{LOG_MEL}, A-TRE: centred ")
    assert "A-TRE" in captured.out
    assert f"Results are in {tmp_path}, embeddings in {cache}" in " ".join(captured.out.split())
    # Bars are for people: nothing of them where the standard error is no terminal.
    assert captured.err == ""
    result, _ = load_result(next(tmp_path.rglob("a_tre.json")))
    assert result.dataset == str(folder)
    assert result.settings == {"seeds": [0], "max_steps": 10}
    assert run("evaluate", LOG_MEL, "--data", folder, "--out", tmp_path, *FEW) == 0


def test_a_copy_of_a_result_in_the_folder_does_not_cost_the_verdict(folder, tmp_path, run, capsys):
    words = ("evaluate", "rms", "--data", folder, "--tasks", "a_coat", "--out", tmp_path / "out")
    assert run(*words) == 0
    expected = capsys.readouterr().out
    shutil.copytree(tmp_path / "out" / "rms", tmp_path / "out" / "backup" / "rms")
    assert run(*words) == 0
    captured = capsys.readouterr()
    assert captured.out == expected
    assert captured.err.startswith("note: the verdict covers only the results of this run: ")


@pytest.mark.parametrize("command", ["run"])
def test_layer_pooling_and_precision_reach_the_model(command, folder, tmp_path, monkeypatch, run):
    asked = {}

    def load(name, *, device, options, seed=0):
        asked[name] = options
        if name == "whisper-tiny":
            raise InputError("enough")
        return load_model(name, device=device, options=options)

    monkeypatch.setattr("audio_compositionality.encoders.loading.registry.load_model", load)
    chosen = ["--layer", 2, "--set", "pooling=max", "--set", "precision=bfloat16", "--set", "compile=true"]
    assert run(command, "whisper-tiny", *chosen, "--out", tmp_path) == 2
    expected = LanguageOptions(layer=2, pooling="max", precision="bfloat16", compile=True)
    assert asked.pop("whisper-tiny") == expected
    assert expected.of_encoder == EncoderOptions(layer=2, pooling="max", precision="bfloat16", compile=True)
    # Of `run`, the baselines are loaded before: they have no model that could be run in another way.
    assert set(asked.values()) <= {LanguageOptions()}


@pytest.mark.parametrize("command", ["evaluate"])
def test_precision_and_batch_size_reach_a_model_that_answers_only_where_they_are_given(
    command, tmp_path, monkeypatch, run
):
    asked = {}

    def load(name, *, device, options, seed=0):
        asked[name] = language_options(options, name)
        if name == "org/answers":
            raise InputError("enough")
        return load_model(name, device=device, options=options)

    monkeypatch.setattr("audio_compositionality.encoders.loading.registry.load_model", load)
    cases = [
        ([], ("float32", "bfloat16"), None),
        (["--set", "precision=float32", "--batch-size", 64], ("float32", "float32"), 64),
        (["--set", "precision=float16"], ("float16", "float16"), None),
    ]
    for given, precisions, size in cases:
        assert run(command, "org/answers", "--tasks", "polybench", *given, "--out", tmp_path) == 2
        options = asked["org/answers"]
        # Where there is no GPU, its type says what would be chosen.
        assert tuple(options.precision_on(torch.device(kind).type) for kind in ("cpu", "cuda")) == precisions
        assert options.batch_size == size


@pytest.mark.slow
def test_clips_that_cannot_be_embedded_are_told_of(folder, tmp_path, run, capsys):
    path = tmp_path / "half.py"
    path.write_text(
        "import numpy as np\n"
        "class Half:\n"
        "    sample_rate, output_dim = 32_000, 1\n"
        "    def embed(self, waveforms, sample_rate):\n"
        "        return np.where(waveforms[:, 16_000:16_001] > 0, np.nan, 1)\n"
    )
    clips = np.stack([clip.waveform for clip in open_data(folder).configuration("a_tre").clips()])
    refused = int((clips[:, 16_000] > 0).sum())
    assert 0 < refused < len(clips) == 24
    embed = ["embed", f"{path}:Half", "--data", folder, "--out", tmp_path / "out"]
    assert run(*embed) == 2
    assert "--skip-invalid" in capsys.readouterr().err
    assert run(*embed, "--skip-invalid") == 0
    assert f"note: {refused} of 24 clips of a_tre could not be embedded" in capsys.readouterr().err


def test_models_lists_every_name_with_licence_paradigm_and_source(run, capsys):
    assert run("models") == 0
    printed = " ".join(capsys.readouterr().out.split())
    for listing in list_models():
        assert listing.name in printed
    for words in ("CC-BY-NC-4.0", "Noncommercial", "self-supervised", "zenodo", "microsoft/msclap", "2,048", "44,100"):
        assert words in printed


def test_tasks_lists_every_task_with_its_question_and_its_warning(run, capsys):
    assert run("tasks") == 0
    printed = " ".join(capsys.readouterr().out.split())
    for task in list_tasks():
        for words in (task.info.name, task.info.title, task.info.benchmark, task.info.warning):
            assert words in printed


@pytest.mark.slow
def test_check_model_passes_a_sound_one_and_fails_a_broken_one(tmp_path, run, capsys, next_of):
    assert run("check-model", EXAMPLE) == 0
    printed = capsys.readouterr().out
    assert " fail " not in printed
    assert next_of(printed) == f"run {EXAMPLE}"
    (tmp_path / "broken.py").write_text(
        "import numpy as np\n"
        "class Broken:\n"
        "    sample_rate = 16_000\n"
        "    def embed(self, waveforms, sample_rate):\n"
        "        return np.full((len(waveforms), 4), np.nan)\n"
    )
    assert run("check-model", f"{tmp_path / 'broken.py'}:Broken") == 1
    assert " fail " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("checked", "typed", "expected"),
    [
        ({"embeds", "texts"}, (), "run my.py:M --benchmark comp_a"),
        ({"embeds", "texts"}, ("--layer", "4", "--device", "cpu"), "run my.py:M --layer 4 --device cpu"),
        ({"embeds", "texts"}, ("--set", "pooling=max"), "run my.py:M --set pooling=max"),
        ({"answers"}, (), "run my.py:M --benchmark polybench"),
    ],
)
def test_check_model_ends_with_the_command_for_the_abilities(checked, typed, expected):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    line = _next_line(parser.parse_args(["my.py:M", *typed]), checked)
    assert line == f"Next: audio-compositionality {expected}"


def test_verify_prints_no_legend_below_an_error_alone(tmp_path, run, capsys):
    path = tmp_path / "a_coat.json"
    path.write_text("{")
    assert run("verify", path) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: {path}: not JSON")


def test_results_are_compared_reported_and_verified(folder, tmp_path, run, capsys):
    results = tmp_path / "results"
    assert run("evaluate", LOG_MEL, "random", "--data", folder, "--out", results, "--tasks", "a_coat") == 0
    capsys.readouterr()
    assert run("compare", results) == 0
    assert LOG_MEL in capsys.readouterr().out
    assert run("compare", results, "--format", "csv", "--out", tmp_path / "table.csv") == 0
    assert run("compare", results, "--format", "latex", "--table", "summary", "--out", tmp_path / "table.tex") == 0
    assert (tmp_path / "table.tex").read_text().count(r"\begin{table}") == 1
    assert (tmp_path / "table.csv").read_text("utf-8").startswith("task,")
    assert run("report", results, "--format", "markdown") == 0
    assert "| " in capsys.readouterr().out
    assert run("verify", next(results.glob("random/*/a_coat.json")), "--data", folder) == 0
    (line, how) = capsys.readouterr().out.splitlines()
    assert line.startswith("verified: A-COAT of random, adjusted ")
    assert how == "--explain prints every number with its tolerance."
    assert run("verify", results, "--data", folder, "--explain") == 0
    explained = capsys.readouterr().out
    assert "claimed" in explained
    assert "cannot be seen in them" in explained
