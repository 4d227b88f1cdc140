"""``--layer`` with several layers, from arguments to tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from audio_compositionality.encoders.families.whisper import WhisperEncoder
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
    evaluate = ["evaluate", whisper, "--data", folder, "--store", out, "--out", tmp_path / "results"]
    assert run(*evaluate, "--tasks", "a_coat", "--layer", "1") == 0
    assert not passes
