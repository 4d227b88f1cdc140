"""Three files of a third party make a task that goes all the way, without an edit of the product."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .clients import process_environment

TOY = Path(__file__).parents[1] / "examples" / "toy_task"

ENTRY_POINTS = """\
[audio_compositionality.recipes]
toy_pairs = toy_recipe:RECIPE

[audio_compositionality.tasks]
toy_pairs = toy_task:TASK
"""

SCRIPT = """if __name__ == "__main__":
    import sys
    from pathlib import Path

    import evaluate
    from datasets import Audio, load_dataset

    from audio_compositionality.cli.main import main
    from audio_compositionality.dataset_builder.build import build_dataset
    from audio_compositionality.dataset_builder.rendered import rendered_preset
    from audio_compositionality.hub.client import Hub
    from audio_compositionality.hub.names import results_of
    from audio_compositionality.leaderboard.board import newest
    from audio_compositionality.leaderboard.pull_requests import Checks
    from audio_compositionality.leaderboard.reading import BoardReader
    from audio_compositionality.leaderboard.tables import board_csv, board_table
    from audio_compositionality.push_scripts import spaces
    from audio_compositionality.support.table import to_markdown
    from audio_compositionality.tasks.registry import load_task

    TASK, SECRET = "toy_pairs", "a secret of the Space that nobody else has"

    def command(*words):
        print("+", *words, flush=True)
        assert main(words) == 0

    build_dataset(rendered_preset("mini", recipes=[TASK]), Path("data"), workers=1, progress=False)
    command("push", "dataset", "data", "--org", "lab")
    spaces.push_metrics("lab", folders=[Path(sys.argv[1]) / TASK])
    spaces.build_wheel = lambda root: ("audio_compositionality-1.0-py3-none-any.whl", b"a wheel")
    spaces.push_leaderboard("lab")
    rows = load_dataset("lab/audio-compositionality", TASK, split="test").select_columns("low")
    rows = rows.cast_column("low", Audio(decode=False))
    assert (len(rows), rows[0]["low"]["bytes"][:4]) == (12, b"fLaC")
    values = {"low": [[1.0, 0.0], [0.0, 1.0]], "high": [[2.0, 0.0], [0.0, 3.0]]}
    assert evaluate.load(f"lab/{TASK}").compute(**values)["toy_pairs"] == 1
    command("evaluate", "log-mel-statistics", "--data", "lab/audio-compositionality", "--tasks", TASK)
    command("report", "results", "--data", "data", "--out", "report.html")
    assert "Octave-Similarity" in Path("report.html").read_text("utf-8")
    wanted = ("--data", "lab/audio-compositionality", "--model", "log-mel-statistics")
    command("submit", "results", "--org", "lab", *wanted)
    outcomes = Checks(Hub(), "lab", SECRET, device="cpu").check_pull_requests()
    assert [outcome.action for outcome in outcomes] == ["added"], [str(outcome) for outcome in outcomes]
    board = BoardReader(Hub(), results_of("lab"), SECRET)()
    assert not board.rejected
    assert [(entry.result.task, entry.status) for entry in board.entries] == [(TASK, "verified")]
    info = load_task(TASK).info
    assert "log-mel-statistics" in to_markdown(board_table(info, newest(board.entries)))
    assert "adjusted similarity" in board_csv(info, newest(board.entries), "0" * 40)
"""


@pytest.mark.slow
def test_a_task_of_a_third_party_goes_all_the_way(hub, tmp_path):
    """Its files are known by the entry points of an installed package alone, in a fresh process."""
    metadata, work = tmp_path / "packages" / "toy_pairs-1.0.dist-info", tmp_path / "work"
    metadata.mkdir(parents=True)
    work.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-pairs\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    variables = process_environment(hub.url, tmp_path / "home", tmp_path / "attempts.txt", hub.token("ada"))
    variables["PYTHONPATH"] = os.pathsep.join((variables["PYTHONPATH"], str(metadata.parent), str(TOY)))
    variables["AUDIO_COMPOSITIONALITY_CACHE"] = str(tmp_path / "cache")
    command = [sys.executable, script, TOY]
    answer = subprocess.run(
        command, cwd=work, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert answer.returncode == 0, answer.stdout
    assert not (tmp_path / "attempts.txt").exists()
