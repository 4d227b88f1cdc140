"""Submitting results: what the pull request holds, what is refused, and what the page of the model gets."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np
import pytest
import yaml
from board_entries import below, folder
from submissions import with_json

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.manifest import Manifest
from audio_compositionality.evaluator.results.result import Result, ResultError, SampleTable, load_result
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.errors import Repository as Model
from audio_compositionality.push_scripts.submit import (
    model_entries,
    result_repository,
    submit_model_results,
    variant_of,
)

from .conftest import DATASET, MODEL, RESULTS, TASKS
from .server import LoopbackHub

NAMES = ["embeddings.safetensors", "result.json", "samples.csv"]
CARD = ".eval_results/audio_compositionality.yaml"


def opened(hub: LoopbackHub, kind: str = "dataset", name: str = RESULTS) -> dict[str, bytes]:
    """What the first pull request adds."""
    repository = hub.repositories[kind, name]
    main_files = repository.files()
    files = repository.files("refs/pr/1")
    return {path: content for path, content in files.items() if main_files.get(path) != content}


def is_whole(files: dict[str, bytes]) -> bool:
    """Whether the added files are one submission whose folder is named by its content, as `sha256sum` would tell."""
    folder = {path.rpartition("/")[0] for path in files}
    names = {path.rpartition("/")[2]: content for path, content in files.items()}
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(names.items()))
    place = f"results/org__short/1/a_coat-{hashlib.sha256(lines.encode()).hexdigest()[:16]}"
    return folder == {place} and sorted(names) == NAMES


# What is submitted


def test_a_stranger_submits_both_tasks(hub, results, evaluated, submit, act_as):
    act_as("eve")
    submitted = submit(data="of no use here")
    assert submitted.url == f"{hub.url}/datasets/{RESULTS}/discussions/1"
    files = opened(hub)
    assert sorted(path.split("/")[3].split("-")[0] + "/" + path.split("/")[4] for path in files) == [
        f"{task}/{name}" for task in TASKS for name in NAMES
    ]
    for made in submitted.submissions:
        result = Result.loads(files[f"{made.folder}/result.json"])
        assert result.score == pytest.approx(made.local.score, abs=1e-2)
        assert result.model.paradigm == "made up"
        samples = SampleTable.loads(files[f"{made.folder}/samples.csv"])
        assert np.mean(samples.columns["score"]) == pytest.approx(result.score, abs=1e-12)
        # Nothing of this machine is sent.
        assert str(evaluated.parent) not in files[f"{made.folder}/result.json"].decode()
    assert results.discussions[0].author == "eve"


def test_the_same_in_another_order_is_no_second_pull_request_and_other_options_are(hub, results, submit):
    bare = submit(*TASKS, with_outputs=False)
    assert {path.rpartition("/")[2] for path in opened(hub)} == set(NAMES[1:])
    assert all(made.result.score == made.local.score for made in bare.submissions)
    whole, again = submit(*TASKS), submit(*TASKS[::-1])
    assert (again.url, again.commit, again.submissions) == (whole.url, None, ())
    assert whole.url != bare.url
    assert len(results.discussions) == 2


def test_without_a_token_or_a_leaderboard_nothing_is_computed(hub, submit, monkeypatch):
    monkeypatch.setattr("audio_compositionality.push_scripts.submit.make_submission", pytest.fail)
    with pytest.raises(HubError, match=f"there is no dataset {RESULTS}: check --org") as caught:
        submit("a_coat")
    assert caught.value.status == 404
    hub.repositories.create("dataset", RESULTS)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="no token is set; make one at"):
        submit("a_coat")


def test_what_was_merged_cannot_be_submitted_again(hub, results, submit):
    submit("a_coat")
    results.commit(opened(hub))
    results.discussions[0].status = "merged"
    with pytest.raises(ResultError, match=r"already has this result: results/org__short/1/a_coat-"):
        submit("a_coat")
    assert len(results.discussions) == 1


def test_the_embeddings_of_another_encoder_are_noticed(results, submit, submitted):
    own, other = (with_json(submitted["a_coat"], model=model) for model in ({"revision": "2"}, {"id": "eve/mine"}))
    results.commit(below(folder(own), own))
    with warnings.catch_warnings(action="error"):
        submit("a_coat", dry_run=True)
    results.commit(below(folder(other), other))
    with pytest.warns(UserWarning, match=r"the same embeddings as results/eve__mine/1/a_coat-.*maintainers"):
        submit("a_coat")
    assert len(results.discussions) == 1


def test_a_dry_run_sends_nothing(hub, results, evaluated, submit, capsys):
    arguments = ["submit", str(evaluated / "results"), "--org", "lab", "--dry-run"]
    assert main([*arguments, "--cache", str(evaluated / "store")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("embeddings.safetensors") == 2
    assert "Nothing was sent" in printed
    assert not hub.made("POST")
    assert not results.discussions


# On the model's page


def entries(hub: LoopbackHub) -> list[dict[str, Any]]:
    """What a pull request on the model's repository adds to its page."""
    ((path, content),) = opened(hub, "model", MODEL).items()
    assert path == CARD
    read: list[dict[str, Any]] = yaml.safe_load(content)
    return read


def test_the_models_own_results(hub, model, results, submit):
    head = hub.repositories["dataset", DATASET].at().oid
    # Tasks that are submitted one after the other share the file of the model; so do those of a second try.
    for count, task in enumerate((*TASKS, TASKS[1]), 1):
        submitted = submit(task, model_card=True)
        assert [commit.url for commit in submitted.models.values() if commit] == [f"{hub.url}/{MODEL}/discussions/1"]
        # The page of the model has the score of the embeddings as they are, not of the rounded ones.
        for made in submitted.submissions:
            scores = {entry["dataset"]["task_id"]: entry["value"] for entry in entries(hub)}
            assert list(scores) == list(TASKS[:count])
            assert scores[task] == pytest.approx(made.local.score, abs=1e-6)
        assert (len(results.discussions), len(model.discussions)) == (min(count, 2), 1)
    assert {(entry["dataset"]["id"], entry["dataset"]["revision"]) for entry in entries(hub)} == {(DATASET, head)}


def test_other_entries_of_the_model_stay(hub, model, results, submit):
    there = [
        {"dataset": {"id": "x/y", "task_id": "z"}, "value": 1},
        {"dataset": {"id": DATASET, "task_id": "a_coat"}, "value": -1},
    ]
    model.commit({CARD: yaml.safe_dump(there).encode()}, "by hand")
    submit("a_coat", model_card=True)
    first, second = entries(hub)
    assert first == there[0]
    assert second["dataset"]["task_id"] == "a_coat"
    assert second["value"] != -1
    model.commit({CARD: b"[" * 1_200}, "broken", revision="refs/pr/1")
    with pytest.raises(ResultError, match="is not valid YAML"):
        submit("a_tre", model_card=True)


def test_a_result_on_other_data_is_not_shown_on_the_model(hub, results, model, built, submit, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("audio_compositionality.push_scripts.submit.registered_tasks", lambda *_: ("inspect-ai", ()))
        with pytest.raises(ResultError, match=r"show no a_coat .* inspect-ai, which does not run it"):
            submit("a_coat", model_card=True)
    manifest = Manifest.load(built / "manifest.json")
    others = Manifest({"a_tre": manifest.recipes["a_tre"]}).dumps().encode()
    for content, reason in ((others, "has no such data"), (None, r"manifest\.json")):
        hub.repositories["dataset", DATASET].commit({"manifest.json": content}, "other data")
        with pytest.raises((ResultError, HubError), match=reason):
            submit("a_coat", model_card=True)
    assert not results.discussions


@pytest.fixture(scope="module")
def result(evaluated):
    return load_result(evaluated / "results" / "org__short" / "1" / "a_coat.json")[0]


def changed(result: Result, **changes: Any) -> Result:
    """The result of another model, or of the same one run otherwise."""
    return result.model_copy(update={"model": result.model.model_copy(update=changes)})


def test_the_repository_of_a_model(result):
    assert result_repository(changed(result, id="whisper-tiny.en")).id == "openai/whisper-tiny.en"
    for id in ("random", "untrained:whisper-base", "panns-cnn14", "my_encoder.py:Mine"):
        with pytest.raises(ResultError, match=f"{id} has no model repository on the Hub"):
            result_repository(changed(result, id=id))


def test_variants_of_a_model_have_files_of_their_own(result):
    assert variant_of(result) == ""
    options = result.model.options.model_copy(update={"layer": 3, "pooling": "max", "precision": "float16"})
    other = changed(result, options=options)
    assert variant_of(other) == "layer 3, max pooling, float16"
    assert model_entries("lab", [other], "0" * 40)[0]["notes"] == "layer 3, max pooling, float16"
    assert "notes" not in model_entries("lab", [result], "0" * 40)[0]
    with pytest.raises(ResultError, match="results of 2 variants"):
        submit_model_results(Hub(), "lab", Model("model", "lab/model"), [result, other], "0" * 40)
