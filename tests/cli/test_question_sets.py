"""Miniatures of each published benchmark go the whole way with a tiny language model: scored, resumed, reported,
verified and scored anew."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.cli.main import main

from ..dataset_builder.sounds.published.test_question_sets import SETS
from ..encoders.language_models.tiny import save_qwen2_audio

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "qwen2-audio"
    save_qwen2_audio(folder)
    return str(folder)


@pytest.mark.parametrize("name", ["mmau of the Hub", "muchomusic"])
def test_a_miniature_goes_the_whole_way(name, model, tmp_path, capsys):
    make, ids, _ = SETS[name]
    (tmp_path / "copy").mkdir()
    make(tmp_path / "copy")
    data, out = f"{name.partition(' ')[0]}:{tmp_path / 'copy'}", tmp_path / "results"
    kept = ["--data", data, "--out", str(out), "--cache", str(tmp_path / "store")]
    asked = ["evaluate", model, f"without-audio:{model}", "first", "longest", "--tasks", "audio_questions", *kept]
    assert main(asked) == 0
    results = sorted(out.rglob("audio_questions.json"))
    assert len(results) == 4
    contents = {path: path.read_bytes() for path in results}
    assert {json.loads(content)["n"] for content in contents.values()} == {len(ids)}
    # Resumed: nothing is asked or written again.
    assert main(asked) == 0
    assert {path: path.read_bytes() for path in results} == contents
    capsys.readouterr()
    kept_data = ["--data", data]
    assert main(["report", str(out), *kept_data, "--out", str(tmp_path / "report.html")]) == 0
    assert "Which?" in (tmp_path / "report.html").read_text("utf-8")
    assert main(["verify", str(out), *kept_data, "--cache", str(tmp_path / "store")]) == 0
    assert "4 of 4 results are verified" in capsys.readouterr().out
    assert main(["rescore", str(out), *kept_data, "--cache", str(tmp_path / "store")]) == 0
    assert "matcher" in capsys.readouterr().out
