"""The page of the first publication: its blocks in their order, and its wrong steps, which are seen and taken back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from audio_compositionality.evaluator.submissions.record import SECRET_VARIABLE
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.names import dataset_of, results_of
from audio_compositionality.leaderboard.reading import BoardReader
from audio_compositionality.push_scripts.dataset import push_dataset

from .walkthrough import ORG, OWNER, PAGE, SPACE, Block, Walk, page_blocks, walked


@pytest.fixture
def walk(hub, tmp_path) -> Iterator[Walk]:
    """The people of the page and their folders."""
    folder = tmp_path / "walk"
    folder.mkdir()
    with closing(Walk(hub, folder, 120)) as walk:
        yield walk
    assert not walk.attempts.exists()


@pytest.mark.slow
def test_the_page_leads_from_an_empty_organisation_to_a_strangers_verified_entry(hub, walk, built):
    replaced = {
        # The preset mini takes half an hour. These few rows are no preset's, so that they have to be named.
        "audio-compositionality build --preset mini --out": f"cp -r {shlex.quote(str(built))}",
        # On the preset mini as well; tests/hub/test_baselines.py has it on few rows.
        "push leaderboard --org my-lab": "push leaderboard --org my-lab --no-baselines",
        # A-TRE takes a minute of fits; A-COAT takes the same way.
        "--out results\n": "--out results --tasks a_coat\n",
        "submit results --org my-lab": "submit results --org my-lab --data my-lab/audio-compositionality",
    }
    blocks = page_blocks()
    for one, other in replaced.items():
        assert sum(block.code.count(one) for block in blocks) == 1
        blocks = [replace(block, code=block.code.replace(one, other)) for block in blocks]
    assert not hub.repositories
    printed, url = walked(walk, blocks)
    assert url
    first, last = [text.splitlines() for text in printed if "Nothing was sent." in text]
    assert first[0].startswith("done   token: of ada, role fineGrained (saved by hf auth login)")
    assert "done   organisation my-lab: ada has the role write; it has none of the repositories" in first
    assert [line for line in first if line.startswith("wrong")] == []
    # Without the baselines that were left out above.
    assert [line.split(":")[0] for line in last if line.startswith(("to do", "wrong"))] == ["to do  baselines"]
    assert "done   verified: 1 of the 1 entries on the board" in last
    space = hub.repositories["space", SPACE]
    board = BoardReader(Hub(), results_of(ORG), space.secrets[SECRET_VARIABLE])()
    entries = {(entry.model, entry.result.task, entry.status, entry.submitter) for entry in board.entries}
    assert entries == {("compa-clap-tiny", "a_coat", "verified", "eve")}
    assert not board.rejected
    data = hub.repositories["dataset", dataset_of(ORG).id].at().oid
    assert f"data {data}" in printed[-1]


@pytest.mark.slow
def test_wrong_steps_are_taken_back_by_the_commands_of_the_page(hub, walk, built):
    """The rows of its last table that have commands; tests/hub/test_rehearsal.py has what the others look like."""
    table = PAGE.read_text("utf-8").rpartition("| mistake | how it shows | how to undo it |\n")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    commands = {wrong: re.findall(r"`(hf repos [^`]+)`", back) for wrong, _, back in rows}

    def take_back(row: str) -> None:
        token = hub.token("ada", "fineGrained", OWNER)
        walk.run(Block("maintainer", "sh", f"export HF_TOKEN={token}\n{commands[row][0]}"))

    data = dataset_of(ORG).id
    push_dataset(built, ORG, private=True)
    assert hub.repositories["dataset", data].private
    take_back("`--private` was given")
    assert not hub.repositories["dataset", data].private
    entry = "compa-clap-tiny/1/a_coat-0123456789abcdef"
    wanted = {"results/other/1/a_coat-0123456789abcdef/result.json": b"{}"}
    board = hub.repositories.create("dataset", results_of(ORG).id)
    board.commit({f"results/{entry}/result.json": b"{}", f"verified/{entry}/verification.json": b"{}", **wanted})
    take_back("An entry should not be on the board")
    assert [path for path in board.files() if path.startswith(("results/", "verified/"))] == list(wanted)
    take_back("The wrong `--org` was pushed to")
    assert ("dataset", data) not in hub.repositories
