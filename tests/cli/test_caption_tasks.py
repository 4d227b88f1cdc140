"""`run` and `evaluate` with tasks of captions: our own, and the published benchmark as a user has it."""

from __future__ import annotations

import json
import os

import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.evaluator.results.result import load_result

from ..dataset_builder.sounds.published.published import attribute_files, order_files, write_files


@pytest.fixture
def few(monkeypatch):
    """The preset `mini` has few items, at a low rate."""
    every = ["comp_a_order", "comp_a_attribute", "audio_text_retrieval", "zero_shot_audio"]

    def preset(name="mini", *, recipes=None, **changes):
        recipes = every if recipes is None else recipes
        data = rendered_preset("mini", recipes=recipes, **({"items": 12} if "comp_a_order" in recipes else {}))
        settings = {
            one: spec.changed(clips=24) if "clips" in type(spec).model_fields else spec
            for one, spec in data.settings.items()
        }
        return RenderedData("mini", settings)

    monkeypatch.setattr("audio_compositionality.dataset_builder.rendered.rendered_preset", preset)


@pytest.mark.slow
def test_run_of_the_benchmark_needs_nothing_and_ends_in_a_report(few, run, tmp_path, capsys):
    out = tmp_path / "results"
    assert run("run", "--benchmark", "comp_a", "--out", out) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Scoring random, bag-of-words and tiny-clap on the preset mini")
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"random", "bag-of-words", "tiny-clap"}
    results = {path.stem: load_result(path)[0] for path in out.glob("bag-of-words/*/*.json")}
    assert set(results) == {"comp_a_order", "comp_a_attribute", "audio_text_retrieval", "zero_shot_audio"}
    for name in ("comp_a_order", "comp_a_attribute"):
        measures = results[name].measures
        assert [measures[one] for one in ("text", "audio", "group", "match")] == [0, 0, 0, 0.5]
    page = (out / "report.html").read_text("utf-8")
    assert "chance" in page
    assert page.count('class="said"') >= 8
    assert os.stat(out / "report.html").st_size < 5_000_000


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
    assert f"on compa:{compa}. Results go" in told
    # Sounds of the items can be listened to, and stand with their captions.
    page = (out / "report.html").read_text()
    assert "data:audio/" in page
    assert "x0 then y0" in page
