"""`run --data`: the main job on data that are there, with what stands beside the tasks that they serve."""

import json

import pytest

from ..dataset_builder.sounds.published.published import attribute_files, order_files, write_files


@pytest.fixture
def compa(tmp_path):
    """A miniature of the published benchmark, as a user has it."""
    write_files(tmp_path / "CompA" / "attribute", attribute_files(4))
    return write_files(tmp_path / "CompA" / "order", order_files(6)).parent


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:compa:UserWarning")
def test_the_published_benchmark_is_scored_and_reported(compa, run, tmp_path, capsys):
    out = tmp_path / "results"
    assert run("run", "padded-audio:tiny-clap", "--data", f"compa:{compa}", "--out", out) == 0
    results = [json.loads(path.read_text()) for path in out.rglob("comp_a_*.json")]
    assert {result["task"] for result in results} == {"comp_a_order", "comp_a_attribute"}
    models = {result["model"]["id"] for result in results}
    assert {"random", "bag-of-words", "padded-audio:tiny-clap"} <= models
    told = capsys.readouterr().out
    assert f"on compa:{compa}, which takes" in told
    # Sounds of the items can be listened to, and stand with their captions.
    page = (out / "report.html").read_text()
    assert "data:audio/" in page
    assert "x0 then y0" in page
