"""``--layer`` with several layers and ``twin_seeds`` with several draws: each a model of its own, side by side."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from audio_compositionality.cli.scoring import ModelSettings, model_settings
from audio_compositionality.encoders.families.whisper import WhisperEncoder
from audio_compositionality.encoders.loading.names import is_twin
from audio_compositionality.encoders.options import LanguageOptions
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.task_verdicts import task_verdicts
from audio_compositionality.evaluator.results.result import load_result

NAME = "small-whisper"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, ...]]:
    """The layers of each pass through a Whisper, as they are run."""
    made: list[tuple[int | None, ...]] = []
    encode = WhisperEncoder._encode_at

    def encode_at(self, features, layers):
        made.append(tuple(layers))
        return encode(self, features, layers)

    monkeypatch.setattr(WhisperEncoder, "_encode_at", encode_at)
    return made


@pytest.mark.slow
def test_each_layer_has_a_result_and_a_row_and_all_come_from_one_pass(whisper, folder, tmp_path, run, capsys, passes):
    results = tmp_path / "results"
    evaluate = ["evaluate", whisper, "--data", folder, "--out", results, "--tasks", "a_coat"]
    assert run(*evaluate, "--layer", "2,0") == 0
    assert set(passes) == {(0, 2)}
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in printed[:2]] == [f"{NAME}@layer=0", f"{NAME}@layer=2"]
    # What is there is used, of the result and of the embeddings.
    passes.clear()
    assert run(*evaluate, "--layer", "all") == 0
    assert set(passes) == {(1,)}
    assert run(*evaluate) == 0
    loaded = [load_result(path)[0] for path in sorted(results.rglob("*.json"))]
    assert {result.model.id for result in loaded} == {NAME, *(f"{NAME}@layer={layer}" for layer in (0, 1, 2))}
    by_layer = {result.model.options.layer: result for result in loaded}
    # The last layer of a Whisper is its output.
    assert by_layer[2].measures == by_layer[None].measures
    assert by_layer[0].measures != by_layer[1].measures
    capsys.readouterr()
    assert run("compare", results, "--data", folder, "--table", "layers", "--format", "csv") == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split(",")[:2] == ["model", "layer"]
    assert [row.split(",")[:2] for row in rows] == [[NAME, "0"], [NAME, "1"], [NAME, "2"], [NAME, ""]]
    assert run("compare", results, "--data", folder, "--table", "sizes") == 2
    assert "no two trained models differ" in capsys.readouterr().err


def test_embed_writes_a_folder_a_layer_and_evaluate_reads_them(whisper, folder, tmp_path, run, capsys, passes):
    out = tmp_path / "embeddings"
    assert run("embed", whisper, "--data", folder, "--tasks", "a_coat", "--out", out, "--layer", "0,1") == 0
    assert set(passes) == {(0, 1)}
    stores = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert len(set(stores)) == 2
    passes.clear()
    evaluate = ["evaluate", whisper, "--data", folder, "--cache", out, "--out", tmp_path / "results"]
    assert run(*evaluate, "--tasks", "a_coat", "--layer", "1") == 0
    assert not passes


@pytest.mark.slow
def test_each_draw_has_a_result_and_the_verdict_asks_for_all(whisper, folder, tmp_path, run, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    names = [whisper, f"untrained:{whisper}", f"reversed-audio:untrained:{whisper}", "log-mel-statistics"]
    command = ["evaluate", *names, "--set", "twin_seeds=0,1,2,1", "--data", folder, "--tasks", "a_coat"]
    assert run(*command, "--out", tmp_path / "results") == 0
    (comparison,) = compare_results([tmp_path / "results"])
    twin = f"untrained:{whisper.name}"
    labels = {label.partition(" (seed-")[0]: [] for label in comparison.labels}
    for label in comparison.labels:
        labels[label.partition(" (seed-")[0]].append(label)
    assert {name: len(of_name) for name, of_name in labels.items()} == {
        whisper.name: 1,
        twin: 3,
        f"reversed-audio:{twin}": 3,
        "log-mel-statistics": 1,
    }
    assert len(set(comparison.labels)) == 8
    scores = {result.label: result.result.measures["a_coat"] for result in comparison.results}
    assert len({scores[label] for label in labels[twin]}) == 3
    (verdict,) = task_verdicts(comparison)
    said = " ".join(row.outcome for row in verdict.baselines["twin"])
    assert all(label[:60] in said for label in labels[twin])


def test_only_names_of_twins_depend_on_the_seed():
    assert model_settings(Namespace(layer=None)) == ModelSettings(None, LanguageOptions(), (0,))
    assert is_twin("untrained:whisper-base")
    assert is_twin("reversed-audio:shuffled:whisper-base")
    assert not any(map(is_twin, ("whisper-base", "reversed-audio:whisper-base", "random", "mine.py:Mine")))
