"""The README's commands for the Hub, with real weights, on a few rows: build, push, evaluate, submit, verify, rank."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from audio_compositionality.hub import Hub
from audio_compositionality.hub.names import results_of
from audio_compositionality.leaderboard.reading import BoardReader

from .server import LoopbackHub
from .walkthrough import environment, leaderboard, readme_commands, run, wait_until_verified, with_weights


@pytest.mark.weights
def test_the_commands_of_the_readme_lead_to_the_leaderboard(
    hub: LoopbackHub, checkpoints: Path, built: Path, tmp_path: Path
) -> None:
    commands = with_weights(readme_commands(), checkpoints)
    small = [
        # The preset mini takes half an hour; the same commands on a few rows.
        f"cp -r {shlex.quote(str(built))} audio-compositionality" if " build " in line else line
        for line in commands
    ]
    assert small != commands
    # Data that are no preset's have to be named.
    data = "--data lab/audio-compositionality"
    small = [f"{line} {data}" if " submit " in line or " verify " in line else line for line in small]
    folder = tmp_path / "walkthrough"
    folder.mkdir()
    variables = environment(hub, folder)
    run(small, folder / "work", variables)
    with leaderboard(hub, folder, variables):
        assert len(wait_until_verified(hub, 4, 600)) == 4
    board = BoardReader(Hub(), results_of("lab"))()
    assert {(entry.result.encoder_id, entry.result.task, entry.status) for entry in board.entries} == {
        (encoder, task, "verified")
        for encoder in ("log-mel-statistics", "whisper-tiny.en")
        for task in ("a_coat", "a_tre")
    }
    assert not board.rejected
    assert not (folder / "attempts.txt").exists()
