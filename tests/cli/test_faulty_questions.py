"""Questions of which some have a fault: left out on request, and by every later command that needs the data again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

LISTENER = """
class Listener:
    sample_rate = 8_000

    def answer(self, clips, prompts):
        return ["A" if clip.waveform.any() else "I hear nothing." for clip in clips]
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = []
    for number in range(16):
        soundfile.write(f"{number}.wav", np.sin(np.arange(1_600) * (0.05 + 0.01 * number)), 8_000)
        rows.append(f"q{number},{number}.wav,Which?,dog|{'dog' if number == 3 else 'cat'},{'ab'[number % 2]}")
    Path("questions.csv").write_text("\n".join(["id,audio,ask,options,answer", *rows]))
    Path("listener.py").write_text(LISTENER)
    return ["--set", "columns=question=ask", "--cache", "store", "--out", "results"]


@pytest.mark.slow
def test_later_commands_leave_them_out_too(table, run, refused, capsys):
    assert "--set columns=question=HEADING" in refused("run", "listener.py:Listener", "--data", "questions.csv")
    wanted = ("run", "listener.py:Listener", "--data", "questions.csv", *table)
    assert run(*wanted) == 2
    assert "1 of 16 questions are invalid: 1: an option is repeated (q3)" in " ".join(capsys.readouterr().err.split())
    assert run(*wanted, "--skip-invalid") == 0
    printed = capsys.readouterr()
    # The verdict and the report are about the opened data, whatever was said of them.
    assert "Tasks for audio language models: NOT SHOWN TO LISTEN" in " ".join(printed.out.split())
    assert "The report is results/report.html" in printed.out
    assert "the verdict covers only the results of this run" not in printed.err
    Path("data.yaml").write_text("data: questions.csv\ncolumns: [question=ask]\n")
    compared = ("compare", "results", "--table", "audio_questions-gain")
    assert "those that need the data are made with --data" in refused(*compared)
    assert run(*compared, "--data", "data.yaml") == 0
    printed = capsys.readouterr()
    assert "the audio gain" in printed.out
    assert "1 of 16 questions of questions.csv are left out" in printed.err
    assert run("verify", "results", "--data", "data.yaml", "--cache", "store") == 0
    assert "13 of 13 results are verified" in capsys.readouterr().out
