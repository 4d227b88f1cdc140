"""Results on the user's own copy of a benchmark on a Hub: the checker cannot make these data, who has a copy can."""

from __future__ import annotations

import pytest
from board_entries import SECRET

from audio_compositionality.cli.main import main
from audio_compositionality.evaluator.submissions.verification import verify_folder
from audio_compositionality.hub.client import Hub
from audio_compositionality.leaderboard.examination import check_claim
from audio_compositionality.leaderboard.pull_requests import Checks
from audio_compositionality.push_scripts.submit import submit_results

from ..dataset_builder.sounds.published.test_question_sets import SETS
from .conftest import board, rounds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.* is licensed:UserWarning"),
]


@pytest.mark.parametrize("name", list(SETS)[:1])
def test_a_stranger_is_told_and_maintainers_can_show_them_as_reported(name, results, act_as, tmp_path, capsys):
    (tmp_path / "copy").mkdir()
    SETS[name][0](tmp_path / "copy")
    data, store = f"{name.partition(' ')[0]}:{tmp_path / 'copy'}", tmp_path / "store"
    kept = ["--data", data, "--cache", str(store)]
    assert main(["evaluate", "longest", "--tasks", "audio_questions", *kept, "--out", str(tmp_path / "out")]) == 0
    how = {"data": data, "cache": store, "device": "cpu", "progress": False}
    act_as("eve")
    submit_results([tmp_path / "out"], "lab", **how)
    act_as("ada")
    (outcome,) = rounds(Checks(Hub(), "lab", SECRET, device="cpu", recompute=verify_folder, check_claim=check_claim))
    assert outcome.action == "refused"
    assert "name the data with --data" in outcome.reasons[0]
    sent = submit_results([tmp_path / "out"], "lab", pull_request=False, **how)
    (entry,) = board().entries
    assert entry.status == "reported"
    (made,) = sent.submissions
    clone = tmp_path / "clone" / made.folder
    clone.mkdir(parents=True)
    for file, content in made.files.items():
        (clone / file).write_bytes(content)
    capsys.readouterr()
    assert main(["verify", str(clone), *kept[:2]]) == 0
    assert "verified" in capsys.readouterr().out
