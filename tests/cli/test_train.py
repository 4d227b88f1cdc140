"""`train`, from arguments to a folder."""

import argparse
import json
import shlex
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from audio_compositionality.cli.train import _learnt_from, _lines, _settings, add_arguments
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.recipes.comp_a_order import RECIPE, OrderSpec
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.support.errors import InputError
from audio_compositionality.training.loop import TrainingRun
from audio_compositionality.training.state import Position

from ..dataset_builder.sounds.sounds import write

FEW = ("--stages", "contrastive:2,hard:2", "--batch-size", 4, "--set", "validation_items=0")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Twelve built rows to learn from."""
    data = rendered_preset("mini", recipes=["comp_a_train"], train_rows=12, validation_rows=1)
    return build_dataset(data, tmp_path_factory.mktemp("rows") / "built", progress=False)


@pytest.mark.slow
def test_train_makes_a_model_and_goes_on_only_with_the_same_settings(run, rows, tmp_path, capsys, monkeypatch, next_of):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "my-clap"
    train = ("train", "--data", rows, "--out", out, "--device", "cpu", *FEW)
    assert run(*train) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        f"{out} holds the model of step 4.",
        f"Next: audio-compositionality run {out} --benchmark comp_a --device cpu",
    ]
    next_of(captured.out)
    assert load_model(str(out), device="cpu").embed_text(["a bell"]).shape[0] == 1
    assert json.loads((out / "training.json").read_text())["finished"]
    # The same again does nothing, also where the state is gone, which nobody needs any more.
    shutil.rmtree(out / "checkpoint")
    before = (out / "model.safetensors").stat().st_mtime_ns
    assert run(*train) == 0
    assert (out / "model.safetensors").stat().st_mtime_ns == before
    capsys.readouterr()
    assert run(*train, "--seed", 3, "--set", "checkpoint_every=7") == 2
    assert "seed is 3 instead of 0" in capsys.readouterr().err
    # The settings of a file, and what is typed before them.
    again = tmp_path / "again"
    assert run("train", "--settings", out / "settings.yaml", "--seed", 3, "--out", again, "--device", "cpu") == 0
    values = yaml.safe_load((again / "settings.yaml").read_text())
    assert values == {**yaml.safe_load((out / "settings.yaml").read_text()), "seed": 3}


def ended(best_step, *arguments):
    """What is said last of a training of nine steps."""
    best = None if best_step is None else 0.5
    position = Position(2, total=9, best=best, best_step=best_step)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args(["--out", "my clap", *arguments])
    return _lines(TrainingRun(options.out, position, None), options, _learnt_from(options))[-1]


def test_what_is_scored_next_is_the_model_that_was_the_best_on_validation(sounds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = "Next: audio-compositionality run"
    assert ended(None) == f"{said} 'my clap' --benchmark comp_a"
    assert ended(9) == f"{said} 'my clap' --benchmark comp_a"
    assert ended(4) == f"{said} 'my clap/best' --benchmark comp_a"
    typed = ended(4, "--data", "my sounds", "--set", "train_rows=8", "--set", "group=label", "--skip-invalid")
    said += " 'my clap/best' --benchmark comp_a"
    assert typed == f"{said} --data 'my sounds' --set group=label --skip-invalid"


@pytest.fixture
def sounds(tmp_path):
    """Recordings of six labels, and published tables of texts that name some of them."""
    for place in range(6):
        for number in range(5):
            write(tmp_path / "my sounds" / f"label {place}" / f"{number}.wav", 2.5, seed=10 * place + number)
    lines = [f"label {place}/0.wav,caption {place},0,0,made,train" for place in range(6)]
    (tmp_path / "texts.csv").write_text("path,caption,num_of_pos,num_of_neg,dataset,split_name\n" + "\n".join(lines))


@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        (
            ("--data", "my sounds", "--set", "train_rows=8", "--set", "validation_rows=4"),
            "--data 'my sounds' --set train_rows=8 --set validation_rows=4",
        ),
        (
            ("--data", "texts.csv", "--set", "audio=my sounds", "--skip-invalid"),
            "--data texts.csv --set 'audio=my sounds' --skip-invalid",
        ),
    ],
)
def test_the_card_has_the_command_that_trains_it_again(run, sounds, tmp_path, monkeypatch, arguments, data):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    few = ("--stages", "contrastive:2", "--batch-size", 4, "--set", "validation_items=0", "--device", "cpu")
    assert run("train", *arguments, *few, "--out", "first") == 0
    command = f"audio-compositionality train --settings settings.yaml {data} --out DIR"
    assert f"\n```sh\n{command}\n```\n" in (tmp_path / "first" / "README.md").read_text("utf-8")
    shutil.copyfile("first/settings.yaml", "settings.yaml")
    assert run(*shlex.split(command)[1:], "--device", "cpu") == 0
    first, again = (load_file(tmp_path / name / "model.safetensors") for name in ("first", "DIR"))
    assert all(torch.equal(first[name], again[name]) for name in first.keys() | again.keys())


def test_tables_of_texts_are_those_that_a_data_yaml_names(sounds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.yaml").write_text("data: texts.csv\naudio: my sounds\n")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for data, tables in (("texts.yaml", ["texts.csv"]), ("texts.csv,more.csv", ["texts.csv", "more.csv"])):
        learnt = _learnt_from(parser.parse_args(["--out", "x", "--data", data]))
        assert (learnt.kind, [Path(table).name for table in learnt.tables]) == ("texts", tables)


def test_settings_of_recordings_say_which_these_were(sounds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    add_arguments(parser)

    def settings_of(*words):
        options = parser.parse_args(["--out", "x", *words])
        learnt = _learnt_from(options)
        return learnt, _settings(options, learnt)[-1]

    settings = settings_of("--data", "my sounds")[1]
    assert settings.data == "my sounds"
    (tmp_path / "settings.yaml").write_text(settings.to_yaml())
    learnt, again = settings_of("--settings", "settings.yaml")
    assert (learnt.kind, learnt.typed(), again) == ("recordings", ["--data", "my sounds"], settings)
    (tmp_path / "my sounds").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"settings\.yaml has the data 'my sounds': .*; --data SPEC says where"):
        settings_of("--settings", "settings.yaml")
    assert settings_of("--settings", "settings.yaml", "--data", "elsewhere")[0].kind == "recordings"


@pytest.mark.slow
def test_an_encoder_is_aligned_scored_and_its_training_told(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(RECIPE.__dict__, "presets", {**RECIPE.presets, "mini": OrderSpec(items=12)})
    out, results = tmp_path / "aligned", tmp_path / "results"
    settings = ("--stages", "contrastive:3,hard:3", "--rows", 24, "--batch-size", 8, "--set", "validation_items=2")
    assert run("train", "--align", "log-mel-statistics", *settings, "--device", "cpu", "--out", out) == 0
    assert load_model(str(out)).card.trained_on.startswith("24 rows of comp_a_train")
    assert "score" in json.loads((out / "training.json").read_text("utf-8"))["evaluations"][-1]["scores"]
    assert "--align untrained:log-mel-statistics" in (out / "README.md").read_text("utf-8")
    capsys.readouterr()
    names = (out, f"untrained:{out}", f"sorted-words:{out}")
    assert run("evaluate", *names, "--tasks", "comp_a_order", "--out", results) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "if both share sounds, its scores are not comparable" in printed
    measures = {path.parts[-3]: load_result(path)[0].measures for path in results.rglob("*.json")}
    assert len(measures) == 3
    (of_sorted,) = (values for name, values in measures.items() if name.startswith("sorted"))
    assert [of_sorted[name] for name in ("text", "audio", "group", "match")] == [0, 0, 0, 0.5]
