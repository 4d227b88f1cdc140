"""The page of the first publication: its blocks in their order, and its wrong steps, which are seen and taken back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from huggingface_hub import HfApi

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.evaluator.submissions.record import SECRET_VARIABLE
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.names import dataset_of, results_of
from audio_compositionality.leaderboard.reading import BoardReader
from audio_compositionality.push_scripts.dataset import push_dataset
from audio_compositionality.push_scripts.rehearsal import rehearsal_lines, rehearse
from audio_compositionality.push_scripts.spaces import push_leaderboard

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


def wrong_steps() -> dict[str, tuple[str, list[str]]]:
    """The rows of the page's last table: what it looks like, and the commands that take it back."""
    table = PAGE.read_text("utf-8").rpartition("| wrong | looks like | taken back by |\n")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    return {wrong: (looks, re.findall(r"`(hf repos [^`]+)`", back)) for wrong, looks, back in rows}


@pytest.fixture
def rehearsed(hub, built, monkeypatch) -> Callable[[str], str]:
    """`rehearsed(org)`: what the rehearsal prints."""
    hub.accounts.join("ada", ORG)
    monkeypatch.setattr("audio_compositionality.push_scripts.spaces.list_metrics", lambda: ["a_coat"])
    monkeypatch.setattr("audio_compositionality.push_scripts.rehearsal.list_metrics", lambda: ["a_coat"])
    return lambda org: "\n".join(rehearsal_lines(rehearse(built, org)))


@pytest.mark.slow
@pytest.mark.usefixtures("wheel")
def test_wrong_steps_look_as_the_page_says_and_are_taken_back_by_its_commands(
    hub, walk, built, tiny_data, tmp_path, rehearsed, monkeypatch
):
    rows = wrong_steps()
    data, results = dataset_of(ORG).id, results_of(ORG).id

    def seen(row: str, text: str) -> None:
        (quoted, *_) = re.findall(r"`([^`]+)`", rows[row][0])
        assert quoted in text

    def take_back(row: str) -> None:
        (command, *_) = rows[row][1]
        walk.run(Block("maintainer", "sh", f"export HF_TOKEN={hub.token('ada', 'fineGrained', OWNER)}\n{command}"))

    monkeypatch.setenv("HF_TOKEN", hub.token("ada", "read"))
    seen("Your token may only read, or lacks a right", rehearsed(ORG))
    monkeypatch.setenv("HF_TOKEN", hub.token("ada"))
    seen("`--org` is misspelt", rehearsed("my-lba"))
    push_dataset(built, ORG, private=True)
    seen("`--private` was given", rehearsed(ORG))
    take_back("`--private` was given")
    assert f"done   dataset {data}" in rehearsed(ORG)
    other = RenderedData("other", {"a_coat": tiny_data.settings["a_coat"].changed(quadruples=1)})
    push_dataset(build_dataset(other, tmp_path / "other", workers=1, progress=False), ORG)
    seen("Other data were pushed", rehearsed(ORG))
    push_dataset(built, ORG)
    assert f"done   dataset {data}" in rehearsed(ORG)
    push_leaderboard(ORG)
    HfApi().add_space_secret(SPACE, "HF_TOKEN", "x")
    seen("A secret is not set", rehearsed(ORG))
    entry = "compa-clap-tiny/1/a_coat-0123456789abcdef"
    wanted = {"results/other/1/a_coat-0123456789abcdef/result.json": b"{}"}
    board = hub.repositories["dataset", results]
    board.commit({f"results/{entry}/result.json": b"{}", f"verified/{entry}/verification.json": b"{}", **wanted})
    take_back("An entry should not be on the board")
    assert [path for path in board.files() if path.startswith(("results/", "verified/"))] == list(wanted)
    take_back("The wrong `--org` was pushed to")
    assert ("dataset", data) not in hub.repositories
