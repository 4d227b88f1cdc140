"""The study of results: its choice names what there is, and its command scores, goes on and writes a page."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from audio_compositionality.cli.main import main
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.registry import task_names
from studies import results
from studies.sounds import MAKERS

SMALL = {"quadruples": 12, "quadruple_candidates": 500}


def test_every_run_names_tasks_sounds_and_models_that_there_are():
    names = {one.name for one in list_models()}
    for run in results.chosen_runs([], with_hub=True):
        assert set(run.tasks) <= set(task_names())
        assert run.sounds in {results.TONES, *MAKERS}
        for model in run.models:
            file, _, of_class = model.partition(":")
            assert model in names if not of_class else f"class {of_class}" in Path(file).read_text("utf-8")
    assert len({run.name for run in results.RUNS}) == len(results.RUNS)
    assert {run.sounds for run in results.RUNS} >= {"tones", "words", "spoken", "prompts", "creatures", "drums"}
    with pytest.raises(InputError, match="there is no run 'tone'; there are tones, "):
        results.chosen_runs(["tone"], with_hub=False)


def test_a_page_without_marks_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("no marks")
    with pytest.raises(InputError, match="has no lines"):
        results.write_tables(tmp_path / "page.md", "text")


@pytest.mark.slow
def test_the_command_scores_what_is_missing_and_writes_the_page(tmp_path, monkeypatch, capsys):
    runs = (
        results.Run("one", results.TONES, ("a_coat",), (results.BOX,), (0, 1), SMALL),
        results.Run("two", "words", ("a_coat",), (results.BOX,), (0,), SMALL),
    )
    monkeypatch.setattr(results, "RUNS", runs)
    # The reports of the runs, which nobody reads here, take most of the time of a run.
    monkeypatch.setattr("audio_compositionality.evaluator.report.sections.described_figures", lambda _: ())
    monkeypatch.setattr("audio_compositionality.evaluator.report.page.hear_samples", lambda *_: iter(()))
    commands = []

    def called(command, check):
        commands.append(command)
        if main([str(word) for word in command[3:]]) != 0:
            raise subprocess.CalledProcessError(1, command)

    def make(sounds, made):
        raise subprocess.CalledProcessError(2, ["python", "-m", "studies.sounds", sounds])

    monkeypatch.setattr(results.subprocess, "run", called)
    monkeypatch.setattr(results, "make", make)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    page, figure = tmp_path / "page.md", tmp_path / "figure.svg"
    page.write_text(f"before\n\n{results.BEGIN}\nold\n{results.END}\nafter\n")
    out = ["--out", str(tmp_path / "out")]
    results.main([*out, "--page", str(page), "--figure", str(figure)])
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    row = next(line for line in text.splitlines() if line.startswith(f"| {results.BOX} "))
    assert row.count(",") >= 1
    assert any(sign in row for sign in "▲▼○?")
    assert f"untrained:{results.BOX}" in text
    assert "two (`-m studies.sounds words …` ended with 2)" in text
    # Columns have two lines.
    assert "compa-clap-" in figure.read_text()
    assert "1 of 2: one, " in capsys.readouterr().out
    # Again, without scoring: the same tables, of which one run alone.
    results.main([*out, "--page", str(page), "--tables", "--only", "one"])
    assert row in page.read_text()
    assert len(commands) == 2
