"""Submitting results: what the pull request holds, what is refused, and every fault at every step."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import HfApi

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.evaluator.results.result import Result, ResultError, SampleTable, load_result
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.hub.errors import HubError
from audio_compositionality.push_scripts.dataset import push_dataset
from audio_compositionality.push_scripts.submit import (
    Submitted,
    model_entries,
    result_repository,
    submit_results,
    variant_of,
)
from audio_compositionality.tasks.registry import load_tasks

from .conftest import StartClient
from .faults import CutUpload, Delay, Fault, Meanwhile, Status
from .server import LoopbackHub
from .test_push import PASSING

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # huggingface_hub's own

RESULTS = "lab/audio-compositionality-results"


NAMES = ["embeddings.safetensors", "result.json", "samples.csv"]
TASKS = ("a_coat", "a_tre")


class Energies(Model):
    """An encoder whose id is that of a model on the Hub: energies of a clip in short windows."""

    device = "cpu"

    def __init__(self, id: str = "lab/model") -> None:
        self.card = ModelCard(id, "v1", 32_000, 12, paradigm="by hand")

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        clips = np.asarray(waveforms)
        windows = clips[:, : clips.shape[1] // 12 * 12].reshape(len(clips), 12, -1)
        return np.asarray(np.log10((windows**2).mean(axis=2) + 1e-8), np.float32)


@pytest.fixture(scope="module", autouse=True)
def _short_fits() -> Iterator[None]:
    """How well a model is fitted matters elsewhere; a submission has the default settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audio_compositionality.tasks.shapes.fits.FEW_STEPS", 20)
        yield


@pytest.fixture(scope="module")
def opened_data(built: Path) -> Data:
    """The built data, opened once: that takes a third of a second."""
    return open_data(built)


@pytest.fixture(scope="module")
def evaluated(opened_data: Data, _short_fits: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `results` of both tasks on the built data, and their `store`. Not to be changed."""
    return evaluate_in(tmp_path_factory.mktemp("evaluated"), Energies(), opened_data, TASKS)


def evaluate_in(folder: Path, model: Energies, data: Data, tasks: Sequence[str]) -> Path:
    """Write results and store of a model to a folder."""
    options = RunOptions(out=folder / "results", store=folder / "store", device="cpu", progress=False)
    evaluate_models([model], data, load_tasks(tasks), options)
    return folder


@pytest.fixture(autouse=True)
def _same_data(opened_data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "audio_compositionality.push_scripts.submit.data_with", lambda recipe, fingerprint, data: opened_data
    )


@pytest.fixture
def leaderboard(hub: LoopbackHub) -> str:
    """An organisation with a repository of results."""
    hub.repositories.create("dataset", RESULTS)
    return "lab"


def submit(evaluated: Path, built: Path, task: str | None = "a_coat", **options: Any) -> Submitted:
    path = evaluated / "results" / ("" if task is None else f"lab__model/v1/{task}.json")
    return submit_results(
        [path], "lab", data=str(built), store=evaluated / "store", device="cpu", progress=False, **options
    )


def opened(hub: LoopbackHub, number: int = 1, kind: str = "dataset", name: str = RESULTS) -> dict[str, bytes]:
    """What a pull request adds."""
    repository = hub.repositories[kind, name]
    main_files = repository.files()
    files = repository.files(f"refs/pr/{number}")
    return {path: content for path, content in files.items() if main_files.get(path) != content}


def requests(hub: LoopbackHub, kind: str = "dataset", name: str = RESULTS) -> int:
    return len(hub.repositories[kind, name].discussions)


def is_whole(files: dict[str, bytes]) -> bool:
    """Whether the added files are one submission whose folder is named by its content, as `sha256sum` would tell."""
    folder = {path.rpartition("/")[0] for path in files}
    names = {path.rpartition("/")[2]: content for path, content in files.items()}
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(names.items()))
    place = f"results/lab__model/v1/a_coat-{hashlib.sha256(lines.encode()).hexdigest()[:16]}"
    return folder == {place} and sorted(names) == NAMES


# What is submitted


def test_a_stranger_submits_both_tasks(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token("eve"))
    submitted = submit(evaluated, built, None)
    assert submitted.url == f"{hub.url}/datasets/{RESULTS}/discussions/1"
    files = opened(hub)
    assert sorted(path.split("/")[3].split("-")[0] + "/" + path.split("/")[4] for path in files) == [
        f"{task}/{name}" for task in TASKS for name in NAMES
    ]
    for made in submitted.submissions:
        result = Result.loads(files[f"{made.folder}/result.json"])
        assert made.local is not None
        assert result.score == pytest.approx(made.local.score, abs=1e-2)
        assert result.model.paradigm == "by hand"
        samples = SampleTable.loads(files[f"{made.folder}/samples.csv"])
        assert np.mean(samples.columns["score"]) == pytest.approx(result.score, abs=1e-12)
        # Nothing of this machine is sent.
        assert str(evaluated.parent) not in files[f"{made.folder}/result.json"].decode()
    assert hub.repositories["dataset", RESULTS].discussions[0].author == "eve"


def test_the_same_again_is_no_second_pull_request(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path
) -> None:
    first = submit(evaluated, built)
    again = submit(evaluated, built)
    assert (again.url, again.commit, again.submissions) == (first.url, None, ())
    assert requests(hub) == 1


def test_the_order_of_the_results_does_not_matter_and_options_do(
    hub: LoopbackHub, leaderboard: str, evaluated: Path
) -> None:
    paths = [evaluated / "results" / "lab__model" / "v1" / f"{task}.json" for task in TASKS]
    options = {"store": evaluated / "store", "device": "cpu", "progress": False}
    bare = submit_results(paths, "lab", with_outputs=False, **options)  # type: ignore[arg-type]
    whole = submit_results(paths, "lab", **options)  # type: ignore[arg-type]
    assert submit_results(paths[::-1], "lab", **options).url == whole.url != bare.url  # type: ignore[arg-type]
    assert requests(hub) == 2


def test_without_a_token_nothing_is_computed(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("audio_compositionality.push_scripts.submit.make_submission", pytest.fail)
    with pytest.raises(HubError, match="no token is set; make one at"):
        submit(evaluated, built)


def test_what_was_merged_cannot_be_submitted_again(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path
) -> None:
    submit(evaluated, built)
    HfApi().merge_pull_request(RESULTS, 1, repo_type="dataset")
    with pytest.raises(ResultError, match=r"has this result already: results/lab__model/v1/a_coat-"):
        submit(evaluated, built)
    assert requests(hub) == 1


def test_the_embeddings_of_another_encoder_are_noticed(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, opened_data: Data, tmp_path: Path
) -> None:
    submit(evaluated, built)
    HfApi().merge_pull_request(RESULTS, 1, repo_type="dataset")
    folder = evaluate_in(tmp_path, Energies("lab/mine"), opened_data, ["a_coat"])
    with pytest.warns(UserWarning, match=r"the same embeddings as results/lab__model/v1/a_coat-.*maintainers"):
        submit_results([folder / "results"], "lab", store=folder / "store", progress=False)
    assert requests(hub) == 2


def test_without_embeddings(hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path) -> None:
    made = submit(evaluated, built, with_outputs=False).submissions[0]
    assert sorted(path.rpartition("/")[2] for path in opened(hub)) == NAMES[1:]
    assert made.result.score == made.local.score  # type: ignore[union-attr]


def test_a_dry_run_sends_nothing(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts = len(hub.made("POST"))
    arguments = ["submit", str(evaluated / "results"), "--org", "lab", "--data", str(built), "--dry-run"]
    assert main([*arguments, "--store", str(evaluated / "store")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("embeddings.safetensors") == 2
    assert "Nothing was sent" in printed
    assert len(hub.made("POST")) == posts
    assert requests(hub) == 0


def test_a_leaderboard_that_is_not_there(hub: LoopbackHub, evaluated: Path, built: Path) -> None:
    with pytest.raises(HubError, match="there is no dataset lab/audio-compositionality-results: check --org"):
        submit(evaluated, built)


# On the model's page


@pytest.fixture
def model(hub: LoopbackHub, leaderboard: str, built: Path) -> str:
    """A model's repository and the data set, so that its page can show results on it."""
    push_dataset(built, "lab", progress=False)
    HfApi().create_repo("lab/model")
    return "lab/model"


def test_the_models_own_results(hub: LoopbackHub, model: str, evaluated: Path, built: Path) -> None:
    submitted = submit(evaluated, built, None, model_card=True)
    assert [commit.url for commit in submitted.models.values() if commit] == [f"{hub.url}/lab/model/discussions/1"]
    files = opened(hub, kind="model", name=model)
    assert list(files) == [".eval_results/audio_compositionality.yaml"]
    entries = yaml.safe_load(files[".eval_results/audio_compositionality.yaml"])
    # The page of the model has the score of the embeddings as they are, not of the rounded ones.
    scores = {made.result.task: made.local.score for made in submitted.submissions if made.local}
    assert {entry["dataset"]["task_id"]: entry["value"] for entry in entries} == pytest.approx(scores, abs=1e-6)
    head = hub.repositories["dataset", "lab/audio-compositionality"].at().oid
    assert {(entry["dataset"]["id"], entry["dataset"]["revision"]) for entry in entries} == {
        ("lab/audio-compositionality", head)
    }
    # Again: the pull requests that are there.
    again = submit(evaluated, built, None, model_card=True)
    assert [commit.url for commit in again.models.values() if commit] == [f"{hub.url}/lab/model/discussions/1"]
    assert (requests(hub), requests(hub, "model", model)) == (1, 1)


def test_other_entries_of_the_model_stay(hub: LoopbackHub, model: str, evaluated: Path, built: Path) -> None:
    there = [
        {"dataset": {"id": "x/y", "task_id": "z"}, "value": 1},
        {"dataset": {"id": "lab/audio-compositionality", "task_id": "a_coat"}, "value": -1},
    ]
    path = ".eval_results/audio_compositionality.yaml"
    hub.repositories["model", model].commit({path: yaml.safe_dump(there).encode()}, "by hand")
    submit(evaluated, built, model_card=True)
    entries = yaml.safe_load(opened(hub, kind="model", name=model)[path])
    assert entries[0] == there[0]
    assert [entry["dataset"]["task_id"] for entry in entries[1:]] == ["a_coat"]
    assert entries[1]["value"] != -1


def test_tasks_that_are_submitted_one_after_the_other_share_the_models_file(
    hub: LoopbackHub, model: str, evaluated: Path, built: Path
) -> None:
    for task in TASKS:
        submit(evaluated, built, task, model_card=True)
    assert requests(hub, "model", model) == 1
    entries = yaml.safe_load(opened(hub, kind="model", name=model)[".eval_results/audio_compositionality.yaml"])
    assert [entry["dataset"]["task_id"] for entry in entries] == ["a_coat", "a_tre"]


def test_a_result_on_other_data_is_not_shown_on_the_model(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path
) -> None:
    hub.repositories.create("dataset", "lab/audio-compositionality")
    HfApi().create_repo("lab/model")
    with pytest.raises(HubError, match=r"manifest.json"):
        submit(evaluated, built, model_card=True)
    assert requests(hub) == 0


@pytest.fixture(scope="module")
def result(evaluated: Path) -> Result:
    return load_result(evaluated / "results" / "lab__model" / "v1" / "a_coat.json")[0]


def changed(result: Result, **changes: Any) -> Result:
    """The result of another model, or of the same one run otherwise."""
    return result.model_copy(update={"model": result.model.model_copy(update=changes)})


@pytest.mark.parametrize("model_id", ["random", "untrained:whisper-base", "panns-cnn14", "my_encoder.py:Mine"])
def test_a_model_without_a_repository_on_the_hub(result: Result, model_id: str) -> None:
    with pytest.raises(ResultError, match=f"{model_id} has no model repository on the Hub"):
        result_repository(changed(result, id=model_id))


def test_the_repository_of_a_named_model(result: Result) -> None:
    assert result_repository(changed(result, id="whisper-tiny.en")).id == "openai/whisper-tiny.en"


def test_variants_of_a_model_have_files_of_their_own(result: Result) -> None:
    assert variant_of(result) == ""
    other = changed(result, options=result.model.options.model_copy(update={"layer": 3, "pooling": "max"}))
    assert variant_of(other) == "layer 3, max pooling"
    assert model_entries("lab", [other], "0" * 40)[0]["notes"] == "layer 3, max pooling"
    assert "notes" not in model_entries("lab", [result], "0" * 40)[0]


# Every fault at every step

API = f"/api/datasets/{RESULTS}"
STEPS = {
    "info": ("GET", f"{API}/revision/main"),
    "tree": ("GET", f"{API}/tree/"),
    "whoami": ("GET", "/api/whoami-v2"),
    "discussions": ("GET", f"{API}/discussions"),
    "preupload": ("POST", f"{API}/preupload/"),
    "batch": ("POST", f"{RESULTS}.git/info/lfs/objects/batch"),
    "upload": ("PUT", "/lfs-storage/"),
    "verify": ("POST", f"{RESULTS}.git/info/lfs/objects/verify"),
    "commit": ("POST", f"{API}/commit/"),
}
"""The requests of a submission, in their order."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_that_passes_costs_time_alone(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, waits: list[float], step: str, fault: str
) -> None:
    hub.faults.order(*STEPS[step], PASSING[fault])
    submitted = submit(evaluated, built)
    assert is_whole(opened(hub))
    assert requests(hub) == 1
    assert submitted.url == f"{hub.url}/datasets/{RESULTS}/discussions/1"
    assert len(waits) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("step", STEPS)
def test_a_refusal_says_what_to_do_and_the_next_submission_is_whole(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, waits: list[float], step: str, status: int
) -> None:
    hub.faults.order(*STEPS[step], Status(status, message="You may not"))
    # Of a 401 to `whoami`, huggingface_hub has words of its own.
    with pytest.raises(HubError, match=r"You may not|Invalid user token") as caught:
        submit(evaluated, built)
    assert caught.value.status == status
    assert "settings/tokens" in str(caught.value)
    assert requests(hub) == 0
    assert waits == []
    submit(evaluated, built)
    assert is_whole(opened(hub))
    assert requests(hub) == 1


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_that_stays_ends_with_advice(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, waits: list[float], step: str
) -> None:
    hub.faults.order(*STEPS[step], Status(503), times=None)
    with pytest.raises(HubError, match="run the same command later"):
        submit(evaluated, built)
    hub.faults.orders.clear()
    submit(evaluated, built)
    assert is_whole(opened(hub))
    assert requests(hub) == 1


@pytest.mark.parametrize("step", ["upload", "commit"])
def test_what_is_cut_while_it_is_sent_is_sent_again(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, waits: list[float], step: str
) -> None:
    hub.faults.order(*STEPS[step], CutUpload(after=100))
    submit(evaluated, built)
    assert is_whole(opened(hub))
    assert requests(hub) == 1


def test_another_merge_at_the_same_time(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, waits: list[float]
) -> None:
    repository = hub.repositories["dataset", RESULTS]
    hub.faults.order(*STEPS["commit"], Meanwhile(lambda: repository.commit({"results/other.json": b"1"}, "other")))
    submit(evaluated, built)
    assert is_whole(opened(hub))
    assert requests(hub) == 1
    HfApi().merge_pull_request(RESULTS, 1, repo_type="dataset")
    assert "results/other.json" in repository.files()


SUBMIT = """
import sys
from audio_compositionality.push_scripts.submit import submit_results
results, store, data = sys.argv[1:]
submit_results([results], "lab", data=data, store=store, device="cpu", progress=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_submission_that_was_killed_is_finished_by_the_same_command(
    hub: LoopbackHub,
    leaderboard: str,
    evaluated: Path,
    built: Path,
    start_client: StartClient,
    step: str,
) -> None:
    arguments = (
        str(evaluated / "results" / "lab__model" / "v1" / "a_coat.json"),
        str(evaluated / "store"),
        str(built),
    )
    order = hub.faults.order(*STEPS[step], Delay(60))
    process = start_client(SUBMIT, *arguments)
    deadline = time.monotonic() + 60
    while not order.fired and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert order.fired
    process.kill()
    process.wait()
    submit(evaluated, built)
    assert is_whole(opened(hub))
    assert requests(hub) == 1


MODEL_STEPS = {
    "info": ("GET", "/api/models/lab/model/revision/main"),
    "tree": ("GET", "/api/models/lab/model/tree/"),
    "discussions": ("GET", "/api/models/lab/model/discussions"),
    "preupload": ("POST", "/api/models/lab/model/preupload/"),
    "commit": ("POST", "/api/models/lab/model/commit/"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("step", MODEL_STEPS)
def test_a_fault_on_the_model(
    hub: LoopbackHub, model: str, evaluated: Path, built: Path, waits: list[float], step: str, fault: Fault
) -> None:
    hub.faults.order(*MODEL_STEPS[step], PASSING[str(fault)])
    submit(evaluated, built, model_card=True)
    assert list(opened(hub, kind="model", name=model)) == [".eval_results/audio_compositionality.yaml"]
    assert (requests(hub), requests(hub, "model", model)) == (1, 1)
