"""The way of a third party's task from its data to the leaderboard; `test_third_party.py` runs it in a fresh process.

    python third_party.py TOY

TOY is the folder with its three files, which the process knows by entry points alone. The working directory is empty.
"""

from __future__ import annotations

import sys
from pathlib import Path

TASK = "toy_pairs"
SECRET = "a secret of the Space that nobody else has"


def command(*words: str, status: int = 0) -> None:
    """Run a command line of ours in this process."""
    from audio_compositionality.cli.main import main

    print("+", *words, flush=True)
    answer = main(words)
    assert answer == status, f"exit status {answer}"


def build_and_push(toy: Path) -> None:
    """The data of the recipe alone, its metric's Space, and the leaderboard's repositories."""
    from audio_compositionality.dataset_builder.build import build_dataset
    from audio_compositionality.dataset_builder.rendered import rendered_preset
    from audio_compositionality.push_scripts.spaces import push_leaderboard, push_metrics

    build_dataset(rendered_preset("mini", recipes=[TASK]), Path("data"), workers=1, progress=False)
    command("push", "dataset", "data", "--org", "lab")
    push_metrics("lab", folders=[toy / TASK])
    push_leaderboard("lab")


def load() -> None:
    """What was pushed is there for everybody."""
    import evaluate
    from datasets import Audio, load_dataset

    rows = load_dataset("lab/audio-compositionality", TASK, split="test")
    for column in ("low", "high"):
        rows = rows.cast_column(column, Audio(decode=False))
    assert len(rows) == 12
    assert rows[0]["low"]["bytes"][:4] == b"fLaC"
    metric = evaluate.load(f"lab/{TASK}")
    assert metric.compute(low=[[1.0, 0.0], [0.0, 1.0]], high=[[2.0, 0.0], [0.0, 3.0]])["toy_pairs"] == 1


def check_pull_request() -> None:
    """The check of the Space verifies the result and adds it to the board."""
    from audio_compositionality.hub.client import Hub
    from audio_compositionality.hub.names import results_of
    from audio_compositionality.leaderboard.board import newest
    from audio_compositionality.leaderboard.pull_requests import Checks
    from audio_compositionality.leaderboard.reading import BoardReader
    from audio_compositionality.leaderboard.tables import board_csv, board_table
    from audio_compositionality.support.table import to_markdown
    from audio_compositionality.tasks.registry import load_task

    checks = Checks(Hub(), "lab", SECRET, device="cpu")
    outcomes = checks.check_pull_requests()
    assert [outcome.action for outcome in outcomes] == ["added"], [str(outcome) for outcome in outcomes]
    board = BoardReader(Hub(), results_of("lab"), SECRET)()
    assert not board.rejected
    assert [(entry.result.task, entry.status) for entry in board.entries] == [(TASK, "verified")]
    task = load_task(TASK).info
    table = board_table(task, newest(board.entries))
    assert "log-mel-statistics" in to_markdown(table)
    assert "adjusted similarity" in board_csv(task, newest(board.entries), "0" * 40)


def main() -> None:
    """All of it, one step after the other."""
    build_and_push(Path(sys.argv[1]))
    load()
    command("evaluate", "log-mel-statistics", "--data", "lab/audio-compositionality", "--tasks", TASK)
    command("compare", "results", "--data", "data")
    command("report", "results", "--data", "data", "--out", "report.html")
    assert "Octave-Similarity" in Path("report.html").read_text("utf-8")
    command("verify", "results", "--data", "data")
    command("submit", "results", "--org", "lab", "--data", "lab/audio-compositionality")
    check_pull_request()


if __name__ == "__main__":
    main()
