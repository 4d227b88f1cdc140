"""`run --dry-run`, and what a run leaves out or refuses."""

import re
import textwrap

import pytest

from ..dataset_builder.sounds.sounds import write_labelled

ENCODER = """
    import numpy as np

    class Plain:
        sample_rate = 16_000

        def embed(self, waveforms, sample_rate):
            return np.stack([waveforms.std(axis=1), abs(waveforms).max(axis=1)], axis=1)

    class Answers:
        sample_rate = 16_000

        def answer(self, clips, prompts):
            return ["A" for _ in prompts]

    class Counted(Plain):
        def __init__(self):
            with open("made.txt", "a") as stream:
                stream.write("once ")

    class NoTwin(Plain):
        def untrained(self):
            raise ValueError("no way")
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(textwrap.dedent(ENCODER))
    return "mine.py"


def test_says_what_would_be_scored_asked_and_written_and_writes_nothing(mine, folder, run, tmp_path, capsys):
    out = tmp_path / "results"
    assert run("run", f"{mine}:Plain", "--data", folder, "--dry-run", "--out", out) == 0
    printed = capsys.readouterr().out
    assert "Would score a_coat, a_tre" in printed
    assert f"{mine}:Plain" in printed
    assert not out.exists()


def test_a_model_that_answers_is_asked_and_not_timed(mine, run, tmp_path, capsys):
    words = ("--tasks", "polybench_atoms", "--set", "train_sets=0", "--set", "test_sets=1")
    assert run("run", f"{mine}:Answers", *words, "--dry-run", "--out", tmp_path / "x") == 0
    printed = capsys.readouterr().out
    assert f"without-audio:{mine}:Answers" in printed
    assert re.search(r"Would ask ([\d,]+) questions, (?!\1)[\d,]+ of them of the named models", printed)
    assert "Embedding takes" not in printed


def test_a_model_is_made_once(mine, run, tmp_path):
    write_labelled(tmp_path / "sounds", 8)
    words = ("--data", tmp_path / "sounds", "--set", "transforms=gain", "--dry-run", "--out", tmp_path / "x")
    assert run("run", f"{mine}:Counted", *words) == 0
    assert (tmp_path / "made.txt").read_text() == "once "


def test_no_server_is_asked(run, tmp_path, capsys):
    words = ("--tasks", "polybench_atoms", "--set", "train_sets=0", "--set", "test_sets=1")
    assert run("run", "endpoint:m@http://localhost:9/v1", *words, "--dry-run", "--out", tmp_path / "x") == 0
    assert "endpoint:m@http://localhost:9/v1" in capsys.readouterr().out


def test_a_dry_run_leaves_out_a_twin_that_cannot_be_made(mine, folder, run, tmp_path, capsys):
    assert run("run", f"{mine}:NoTwin", "--data", folder, "--dry-run", "--out", tmp_path / "x") == 0
    printed = capsys.readouterr()
    assert f"untrained:{mine}:NoTwin is left out" in printed.err
    assert f"untrained:{mine}:NoTwin" not in printed.out


@pytest.mark.slow
def test_a_twin_that_cannot_be_made_is_left_out_with_a_note(mine, folder, run, tmp_path, capsys):
    words = ("--data", folder, "--tasks", "a_coat", "--out", tmp_path / "results")
    assert run("run", f"{mine}:NoTwin", *words) == 0
    assert f"untrained:{mine}:NoTwin is left out" in capsys.readouterr().err
