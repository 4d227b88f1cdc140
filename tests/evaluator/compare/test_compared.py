"""Comparison and report from Python: of folders, and of results that were never written."""

from __future__ import annotations

import pickle

import pandas
import pytest

import audio_compositionality as ac
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.loading import load_results
from audio_compositionality.evaluator.report import listening, sections
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.run.options import RunOptions


def evaluated(data, out=None):
    names = ("log-mel-statistics", "rms")
    how = {"tasks": ["a_coat"], "options": RunOptions(out=out, progress=False)}
    return [one for name in names for one in ac.evaluate(load_model(name), data=data, **how)]


@pytest.mark.slow
def test_results_in_memory_compare_as_their_files(tiny_data, tmp_path, one_thread, monkeypatch):
    # Figures and spectrograms take most of the time of a report.
    monkeypatch.setattr(sections, "described_figures", lambda _: ())
    monkeypatch.setattr(listening, "spectrogram_png", lambda *_: b"")
    first = evaluated(tiny_data, tmp_path / "results")
    again = evaluated(tiny_data, tmp_path / "results")
    assert again == first
    frame = ac.compare(str(tmp_path / "results"), data=tiny_data)
    for results in (first, again):
        in_memory = ac.compare(results, data=tiny_data)
        assert in_memory.equals(frame)
        assert in_memory.verdicts.text == frame.verdicts.text
    assert set(frame["model"]) == {"log-mel-statistics", "rms"}
    # On a part of the table there is no verdict.
    assert not hasattr(frame[frame["model"] == "rms"], "verdicts")
    # A pickle is the plain table.
    plain = pickle.loads(pickle.dumps(frame))
    assert type(plain) is pandas.DataFrame
    assert plain.equals(frame)
    monkeypatch.chdir(tmp_path)
    report = ac.report(first, "page.html", data=tiny_data)
    monkeypatch.chdir(tmp_path / "results")
    assert report.path.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert "<!DOCTYPE html>" not in report._repr_html_()
    assert 'srcdoc="&lt;!DOCTYPE html&gt;' in report._repr_html_()


def test_a_result_without_its_samples_is_refused(tiny_data, tmp_path, one_thread):
    evaluated(tiny_data, tmp_path / "results")
    result, _ = load_result(next((tmp_path / "results").rglob("a_coat.json")))
    with pytest.raises(ResultError, match="was read without its samples: give the folder that holds its file"):
        ac.compare(result)


def test_a_result_prints_in_three_lines_and_is_a_table_in_a_notebook(tiny_data, one_thread):
    result, _ = evaluated(tiny_data)
    lines = str(result).splitlines()
    assert len(lines) == 3
    assert "log-mel-statistics" in lines[0]
    assert "adjusted" in lines[1]
    html = result._repr_html_()
    assert html.count("<tr>") > 3
    assert "log-mel-statistics" in html


def test_of_a_class_in_a_file_the_newest_version_counts_with_its_twin_and_the_others_are_named(tmp_path, write_results):
    old, new, weights = "source-" + "a" * 16, "source-" + "b" * 16, "-weights-" + "c" * 16
    dates = ("2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00")
    for revision, date, tasks in ((old, dates[0], ("a_coat", "a_tre")), (new, dates[1], ("a_coat",))):
        write_results(tmp_path, ["Mine"], tasks=tasks, date=date, model={"revision": revision})
        write_results(tmp_path, ["untrained:Mine"], tasks=tasks, date=date, model={"revision": f"seed-0-{revision}"})
    with pytest.warns(
        UserWarning, match="4 results of earlier versions of the file of Mine left out; score a_tre again"
    ):
        loaded = load_results([tmp_path])
    assert sorted((one.label, one.result.task) for one in loaded) == [("Mine", "a_coat"), ("untrained:Mine", "a_coat")]
    # Other weights are another model, and so is another revision of a published one.
    write_results(tmp_path / "x", ["Mine"], tasks=["a_coat"], model={"revision": new + weights})
    write_results(tmp_path / "x", ["Mine"], tasks=["a_coat"], model={"revision": new + weights.replace("c", "d")})
    write_results(tmp_path / "x", ["org/model"], tasks=["a_coat"], model={"revision": "1" * 40})
    write_results(tmp_path / "x", ["org/model"], tasks=["a_coat"], model={"revision": "2" * 40})
    assert len(load_results([tmp_path / "x"])) == 4
