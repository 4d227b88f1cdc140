"""The page of results comes by one command, which is resumed."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree

import pytest

from audio_compositionality.cli.main import main
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.tasks.registry import load_tasks
from studies import results
from studies.results import BEGIN, END, Run


def test_the_declared_choice_has_every_kind_of_sound_and_known_tasks():
    assert {run.sounds for run in results.RUNS} == {
        "tones", "words", "spoken", "prompts", "creatures", "instruments", "drums",
    }  # fmt: skip
    assert all(load_tasks(run.tasks) for run in results.RUNS)
    assert all(run.draws[0] == 0 for run in results.RUNS)
    names = {one.name: one for one in list_models()}
    assert len(results.OF_THE_HUB) >= 8
    assert not any(names[name].is_baseline for name in results.OF_THE_HUB)


def test_a_command_line_has_the_weights_the_sounds_and_the_draw(tmp_path):
    run = Run("words", ("whisper-base", "compa-clap-tiny"), ("binding",), (0, 2))
    command = results.command_of(run, 2, tmp_path, {"whisper-base": "copy"})
    assert command[2:] == [
        "audio_compositionality", "run", "whisper-base=copy", "compa-clap-tiny",
        "--data", str(tmp_path / "sounds" / "words"),
        "--tasks", "binding", "--set", "seed=2", "--out", str(tmp_path / "words" / "draw-2"),
    ]  # fmt: skip


@pytest.mark.slow
def test_the_page_has_a_table_a_kind_of_sound_the_verdict_and_its_figure(tmp_path, monkeypatch):
    page, figure = tmp_path / "results.md", tmp_path / "results.svg"
    page.write_text(f"# Results\n\n{BEGIN}\nold\n{END}\n\nWords of ours.\n", "utf-8")
    runs = (Run("tones", ("compa-clap-tiny",), ("a_coat_instances",)),)
    monkeypatch.setattr(results, "RUNS", runs)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    write_page, ran = results.write_page, []
    monkeypatch.setattr(results, "write_page", lambda out, sounds: write_page(out, sounds, page, figure))

    def few(command, **_):
        typed = [str(word) for word in command]
        ran.append(typed)
        assert main([*typed[typed.index("run") :], "--set", "blocks=12"]) == 0

    monkeypatch.setattr(results.subprocess, "run", few)
    for more in ([], ["--tables"]):
        results.main(["--out", str(tmp_path / "out"), *more])
        text = page.read_text("utf-8")
        assert text.startswith("# Results\n")
        assert text.endswith("Words of ours.\n")
        assert "old" not in text
        (row,) = [line for line in text.splitlines() if line.startswith("| compa-clap-tiny |")]
        assert any(sign in row for sign in "▲▼○?")
        assert "compa-clap-tiny is trained on our generator" in text
        assert ("Tones, by draw" in text) is bool(more)
        shutil.copytree(
            tmp_path / "out" / "tones" / "draw-0", tmp_path / "out" / "tones" / "draw-1", dirs_exist_ok=True
        )
    assert len(ran) == 1
    assert ElementTree.parse(figure).getroot().tag.endswith("svg")
