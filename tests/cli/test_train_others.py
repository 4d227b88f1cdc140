"""`train` of what is no CLAP, and of several trainings: encoders aligned with text, ablations."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.dataset_builder.recipes.comp_a_order import OrderSpec
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import load_result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--align", "whisper-tiny.en", "--init", "tiny"], "so --init tiny cannot be"),
        (["--align", "no-such-encoder"], "unknown model 'no-such-encoder'"),
        (["--align", "random", "--set", "train=last"], "a map and a text tower, which are both trained"),
        (["--align", "./mine", "--push", "org/name"], "'./mine' as its encoder, which others do not have"),
        (["--align", "mine.py:Encoder", "--push", "org/name"], "must be aligned with a listed name or a Hub id"),
        (["--seeds", "0,1"], "--seeds are of --ablations"),
        (["--ablations", "--seeds", "two"], "give whole numbers with commas"),
        (["--ablations", "--push", "org/name"], "publishes none"),
        (["--ablations", "--stages", "hard:2"], "the only stage is hard"),
    ],
)
def test_what_cannot_be_is_said(run, tmp_path, capsys, arguments, message):
    stages = [] if "--stages" in arguments else ["--stages", "contrastive:2,hard:2"]
    assert run("train", *arguments, *stages, "--out", tmp_path / "out", "--device", "cpu") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_encoder_is_aligned_scored_and_its_training_told(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    order = "audio_compositionality.dataset_builder.recipes.comp_a_order.RECIPE"
    monkeypatch.setitem(_presets(order), "mini", OrderSpec(items=12))
    out, results = tmp_path / "aligned", tmp_path / "results"
    settings = ("--stages", "contrastive:20,hard:20", "--rows", 60, "--set", "validation_items=2", "--device", "cpu")
    assert run("train", "--align", "log-mel-statistics", *settings, "--out", out) == 0
    assert load_model(str(out)).card.trained_on.startswith("60 rows of comp_a_train")
    assert "score" in json.loads((out / "training.json").read_text("utf-8"))["evaluations"][-1]["scores"]
    assert "--align untrained:log-mel-statistics" in (out / "README.md").read_text("utf-8")
    capsys.readouterr()
    names = (out, f"untrained:{out}", f"sorted-words:{out}")
    assert run("evaluate", *names, "--tasks", "comp_a_order", "--out", results) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "where both are made of the same sounds, its scores do not compare" in printed
    measures = {path.parts[-3]: load_result(path)[0].measures for path in results.rglob("*.json")}
    assert len(measures) == 3
    (of_sorted,) = (values for name, values in measures.items() if name.startswith("sorted"))
    assert [of_sorted[name] for name in ("text", "audio", "group", "match")] == [0, 0, 0, 0.5]


def _presets(path):
    """The presets of a recipe, which are made once."""
    from importlib import import_module

    module, _, name = path.rpartition(".")
    presets = dict(getattr(import_module(module), name).presets)
    getattr(import_module(module), name).__dict__["presets"] = presets
    return presets
