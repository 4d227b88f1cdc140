"""The commands of docs/hub.md, with the weights of the package: build, push, evaluate, submit, verify, rank."""

from __future__ import annotations

import shlex

import pytest

from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.names import results_of
from audio_compositionality.leaderboard.board import BoardReader

from .walkthrough import SECRET, environment, leaderboard, page_commands, run, wait_until_verified


@pytest.mark.slow
def test_the_commands_of_the_page_lead_to_the_leaderboard(hub, built, tmp_path):
    commands = page_commands()
    replaced = {
        # The preset mini takes half an hour. These few rows are no preset's, so that they have to be named.
        "audio-compositionality build --preset mini --out": f"cp -r {shlex.quote(str(built))}",
        # On the preset mini as well; tests/hub/test_baselines.py has it on few rows.
        "push leaderboard --org lab": "push leaderboard --org lab --no-baselines",
        # A-TRE takes a minute of fits; A-COAT takes the same way.
        "--out results-hub": "--out results-hub --tasks a_coat",
        "results-hub --org lab": "results-hub --org lab --data lab/audio-compositionality",
        "verify results-hub": "verify results-hub --data lab/audio-compositionality",
    }
    text = "\n".join(commands).replace("$ORG", "lab")
    for one, other in replaced.items():
        assert text.count(one) == 1
        text = text.replace(one, other)
    small = text.splitlines()
    folder = tmp_path / "walkthrough"
    folder.mkdir()
    variables = environment(hub, folder)
    run(small, folder / "work", variables)
    with leaderboard(hub, folder, variables):
        assert len(wait_until_verified(hub, 1, 300)) == 1
    board = BoardReader(Hub(), results_of("lab"), SECRET)()
    assert {(entry.model, entry.result.task, entry.status) for entry in board.entries} == {
        ("compa-clap-tiny", "a_coat", "verified"),
    }
    assert not board.rejected
    assert not (folder / "attempts.txt").exists()
