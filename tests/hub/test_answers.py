"""Answers on a Hub: submitted from the store, checked, shown as verified; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from board_entries import SECRET, below, folder
from submissions import with_json

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions import submission
from audio_compositionality.evaluator.submissions.verification import verify_folder
from audio_compositionality.hub.client import Hub
from audio_compositionality.leaderboard.examination import check_claim
from audio_compositionality.leaderboard.pull_requests import CheckOutcome, Checks
from audio_compositionality.leaderboard.tables import board_csv, board_table, number_rows, origin_rows
from audio_compositionality.push_scripts.reports import submission_lines
from audio_compositionality.push_scripts.submit import Submitted, submit_results
from audio_compositionality.tasks.registry import load_task

from .conftest import Files, board, rounds
from .discussions import open_pull_request
from .storage import Repository

pytestmark = pytest.mark.usefixtures("one_thread")

NAME = "answers.jsonl"


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A folder with `results` of answerers, their `store`, and the `data`. Not to be changed."""
    place = tmp_path_factory.mktemp("answered")
    data = rendered_preset("mini", recipes=["polybench"], train_sets=2, test_sets=2)
    build_dataset(data, place / "data", recipes=["polybench"], workers=1, progress=False)
    options = RunOptions(out=place / "results", cache=place / "store", device="cpu", progress=False)
    evaluate_models([load_model(name) for name in ("blind", "oracle")], data, [load_task("polybench")], options)
    return place


@pytest.fixture(scope="module")
def data(evaluated):
    return open_data(evaluated / "data")


@pytest.fixture(autouse=True)
def known_data(data, monkeypatch):
    """The small data stand for a preset."""
    monkeypatch.setattr(submission, "data_with", lambda recipe, fingerprint, source=None: data)


def submit(evaluated: Path, model: str = "", **options: Any) -> Submitted:
    how: dict[str, Any] = {"data": str(evaluated / "data"), "cache": evaluated / "store", "device": "cpu"}
    return submit_results([evaluated / "results" / model], "lab", progress=False, **{**how, **options})


def check() -> list[CheckOutcome]:
    return rounds(Checks(Hub(), "lab", SECRET, device="cpu", recompute=verify_folder, check_claim=check_claim))


def request(results: Repository, files: Files) -> None:
    """Somebody opens a pull request with an entry, in the folder that its content gives it."""
    opened = open_pull_request(results, "A result", "", "eve")
    results.commit(below(folder(files), files), "A result", revision=opened.ref, author="eve")


def test_they_are_submitted_checked_and_shown_as_verified(results, evaluated, act_as, monkeypatch):
    """Also where the answers are in large file storage."""
    monkeypatch.setattr("tests.hub.storage.LARGEST_REGULAR", 100)
    act_as("eve")
    sent = submit(evaluated)
    assert {name for made in sent.submissions for name in made.files} == {NAME, "result.json", "samples.csv"}
    act_as("ada")
    assert [outcome.action for outcome in check()] == ["added"]
    assert all(file.lfs for path, file in results.at().files.items() if path.endswith(NAME))
    shown = board()
    assert shown.rejected == ()
    assert sorted((entry.model, entry.status, entry.submitter) for entry in shown.entries) == [
        ("blind", "verified", "eve"),
        ("oracle", "verified", "eve"),
    ]
    assert check() == []
    assert Checks(Hub(), "lab", SECRET, device="cpu", recompute=verify_folder).verify_merged() == []
    info = load_task("polybench").info
    ((key,),) = (shown.data[info.name],)
    rows = shown.rows(info.name, key)
    texts = [[cell.value for cell in row.cells] for row in board_table(info, rows).rows]
    # Both are baselines, which are not judged.
    assert sorted(row[:3] for row in texts)[1] == ["oracle", "not judged", 1.0]
    assert board_csv(info, rows, shown.commit).count("\n") >= 3
    for row in rows:
        assert len(number_rows(row.entry)) >= len(info.measures)
        assert ["status", "verified"] in origin_rows(row.entry)


def test_the_answers_of_another_model_are_labelled_as_a_reproduction(results, evaluated):
    first = submit(evaluated, "blind").submissions[0]
    assert check()[0].action == "added"
    request(results, with_json(first.files, model={"id": "lab/other"}))
    assert check()[0].action == "added"
    (other,) = board().of_model("lab/other")
    assert other.reproduces == first.folder


def test_what_is_wrong_is_refused_and_said(results, evaluated):
    made = submit(evaluated, "oracle", dry_run=True)
    said = submission_lines(made)
    assert said[0] == "oracle, PolyBench: 1.000000"
    assert any(line.endswith(f"/{NAME}") for line in said)
    files = made.submissions[0].files
    first, *lines = files[NAME].splitlines(keepends=True)
    other = json.dumps({**json.loads(first), "answer": "I cannot tell."}).encode() + b"\n"
    for wrong, reason in (
        ({**files, NAME: b"".join([other, *lines])}, "accuracy_micro is 1 in the claim and 0.9"),
        ({**files, NAME: b"\xff\xfe"}, "answers.jsonl: byte 1 is not ASCII"),
        ({**files, "embeddings.safetensors": b"\0" * 100}, "a submission has one of them"),
    ):
        before = results.at().oid
        request(results, wrong)
        outcome = check()[-1]
        assert outcome.action == "refused", outcome
        assert any(reason in line for line in outcome.reasons), (reason, outcome.reasons)
        assert results.at().oid == before
