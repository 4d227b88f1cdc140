"""`run --dry-run`, and what a run leaves out or refuses."""

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
    assert "Scored would be a_coat, a_tre" in printed
    assert f"{mine}:Plain" in printed
    assert not out.exists()


def test_a_model_that_answers_is_asked_and_not_timed(mine, run, tmp_path, capsys):
    words = ("--tasks", "polybench_atoms", "--set", "train_sets=0", "--set", "test_sets=1")
    assert run("run", f"{mine}:Answers", *words, "--dry-run", "--out", tmp_path / "x") == 0
    printed = capsys.readouterr().out
    assert f"without-audio:{mine}:Answers" in printed
    assert "Questions would be" in printed
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "protocol=nope"), "has the protocol 'nope'"),
        (("--tasks", "polybench"), "is no audio language model"),
        (("--layer", "4"), "layer"),
    ],
)
def test_refuses_what_the_run_would(words, message, mine, run, tmp_path, capsys):
    assert run("run", f"{mine}:Plain", *words, "--dry-run", "--out", tmp_path / "x") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "deadline=3"), "deadline is about models that answer questions"),
        (("--set", "max_questions=3"), "max_questions is about models that answer questions"),
        (("--set", "twin_seeds=0,1"), "twin_seeds is about twins"),
        (("--out", "FILE"), "is a file; give a folder"),
        (("--out", "FILE/below"), "is a file; give a folder"),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(words, message, mine, folder, run, tmp_path, capsys):
    words = [str(mine) + word.removeprefix("FILE") if word.startswith("FILE") else word for word in words]
    out = () if "--out" in words else ("--out", tmp_path / "x")
    assert run("evaluate", "rms", "--data", folder, "--tasks", "a_coat", *words, *out) == 2
    assert message in capsys.readouterr().err


def test_a_twin_that_cannot_be_made_is_left_out_with_a_note(mine, folder, run, tmp_path, capsys):
    words = ("--data", folder, "--tasks", "a_coat", "--out", tmp_path / "results")
    assert run("run", f"{mine}:NoTwin", *words) == 0
    assert f"untrained:{mine}:NoTwin is left out" in capsys.readouterr().err
    assert (tmp_path / "results" / "report.html").is_file()


@pytest.mark.parametrize("command", ["evaluate", "run", "embed", "coral", "check-model", "train", "data", "build"])
def test_settings_are_listed_without_anything_else(command, run, capsys):
    assert run(command, "--set", "help") == 0
    assert "--set NAME=VALUE" in capsys.readouterr().out
