"""Submitting results: what the pull request holds, what is refused, and every fault at every step."""

from __future__ import annotations

import hashlib
import io
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import HfApi

from audio_compositionality.cli.command_line import main
from audio_compositionality.dataset_builder import Benchmark, open_benchmark
from audio_compositionality.evaluator.results.result import Result, ResultError, load_result
from audio_compositionality.evaluator.run.evaluation import evaluate_encoder
from audio_compositionality.hub import HubError
from audio_compositionality.push_scripts.dataset import push_dataset
from audio_compositionality.push_scripts.model_results import model_entries, model_of, variant_of
from audio_compositionality.push_scripts.submit import Submitted, submit_results

from .conftest import StartClient
from .faults import CutUpload, Delay, Fault, Meanwhile, Status
from .server import LoopbackHub
from .test_push import PASSING

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # huggingface_hub's own

RESULTS = "lab/audio-compositionality-results"


class Energies:
    """An encoder whose id is that of a model on the Hub: energies of a clip in short windows."""

    id = "lab/model"
    revision = "v1"
    sample_rate = 32_000
    output_dim = 12
    paradigm = "by hand"

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        windows = waveforms[:, : waveforms.shape[1] // 12 * 12].reshape(len(waveforms), 12, -1)
        return np.asarray(np.log10((windows**2).mean(axis=2) + 1e-8), np.float32)


@pytest.fixture(scope="session")
def evaluated(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `results` of both tasks on the built data, and their `embeddings`. Not to be changed."""
    folder = tmp_path_factory.mktemp("evaluated")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audio_compositionality.tasks.scoring.FEW_STEPS", 20)
        evaluate_encoder(
            Energies(),  # type: ignore[arg-type]
            built,
            out=folder / "results",
            embeddings=folder / "embeddings",
            device="cpu",
            progress=False,
        )
    return folder


@pytest.fixture(scope="session")
def opened_data(built: Path) -> Benchmark:
    """The built data, opened once: that takes a third of a second."""
    return open_benchmark(built)


@pytest.fixture(autouse=True)
def same_data(opened_data: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audio_compositionality.push_scripts.submit.open_data", lambda fingerprint, data: opened_data)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """How well A-TRE is fitted matters elsewhere."""
    monkeypatch.setattr("audio_compositionality.tasks.scoring.FEW_STEPS", 20)


@pytest.fixture
def leaderboard(hub: LoopbackHub) -> str:
    """An organisation with a repository of results."""
    hub.repositories.create("dataset", RESULTS)
    return "lab"


def submit(evaluated: Path, built: Path, task: str | None = "a_coat", **options: Any) -> Submitted:
    path = evaluated / "results" / ("" if task is None else f"lab__model/v1/{task}.json")
    return submit_results(
        [path], "lab", data=str(built), embeddings=evaluated / "embeddings", device="cpu", progress=False, **options
    )


def opened(hub: LoopbackHub, number: int = 1, kind: str = "dataset", name: str = RESULTS) -> dict[str, bytes]:
    """What a pull request adds."""
    repository = hub.repositories[kind, name]
    main_files = repository.files()
    found = repository.files(f"refs/pr/{number}")
    return {path: content for path, content in found.items() if main_files.get(path) != content}


def requests(hub: LoopbackHub, kind: str = "dataset", name: str = RESULTS) -> int:
    return len(hub.repositories[kind, name].discussions)


def is_whole(files: dict[str, bytes]) -> bool:
    """Whether the added files are one submission whose folder is named by its content, as `sha256sum` would tell."""
    folder = {path.rpartition("/")[0] for path in files}
    names = {path.rpartition("/")[2]: content for path, content in files.items()}
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(names.items()))
    return folder == {f"results/lab__model/v1/a_coat-{hashlib.sha256(lines.encode()).hexdigest()[:16]}"} and set(
        names
    ) == {"result.json", "samples.parquet", "embeddings.parquet"}


# What is submitted


def test_a_stranger_submits_both_tasks(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token("eve"))
    submitted = submit(evaluated, built, None)
    assert submitted.url == f"{hub.url}/datasets/{RESULTS}/discussions/1"
    files = opened(hub)
    assert sorted(path.split("/")[3].split("-")[0] + "/" + path.split("/")[4] for path in files) == [
        f"{task}/{name}"
        for task in ("a_coat", "a_tre")
        for name in ("embeddings.parquet", "result.json", "samples.parquet")
    ]
    for made in submitted.submissions:
        result = Result.loads(files[f"{made.folder}/result.json"].decode())
        assert made.local is not None
        assert result.score == pytest.approx(made.local.score, abs=1e-2)
        assert result.paradigm == "by hand"
        samples = pq.read_table(io.BytesIO(files[f"{made.folder}/samples.parquet"]))
        assert np.mean(samples["score"].to_numpy()) == pytest.approx(result.score, abs=1e-12)
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
    paths = [evaluated / "results" / "lab__model" / "v1" / f"{task}.json" for task in ("a_coat", "a_tre")]
    options = {"embeddings": evaluated / "embeddings", "device": "cpu", "progress": False}
    bare = submit_results(paths, "lab", with_embeddings=False, **options)  # type: ignore[arg-type]
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
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, tmp_path: Path
) -> None:
    submit(evaluated, built)
    HfApi().merge_pull_request(RESULTS, 1, repo_type="dataset")
    other = Energies()
    other.id = "lab/mine"
    places = {"out": tmp_path / "results", "embeddings": tmp_path / "embeddings"}
    evaluate_encoder(other, built, tasks=["a_coat"], device="cpu", progress=False, **places)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match=r"the same embeddings as results/lab__model/v1/a_coat-.*maintainers"):
        submit_results([places["out"]], "lab", embeddings=places["embeddings"], progress=False)
    assert requests(hub) == 2


def test_without_embeddings(hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path) -> None:
    made = submit(evaluated, built, with_embeddings=False).submissions[0]
    assert sorted(path.rpartition("/")[2] for path in opened(hub)) == ["result.json", "samples.parquet"]
    assert made.result.score == made.local.score  # type: ignore[union-attr]


def test_a_dry_run_sends_nothing(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts = len(hub.made("POST"))
    arguments = ["submit", str(evaluated / "results"), "--org", "lab", "--data", str(built), "--dry-run"]
    assert main([*arguments, "--embeddings", str(evaluated / "embeddings")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("embeddings.parquet") == 2
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
    for task in ("a_coat", "a_tre"):
        submit(evaluated, built, task, model_card=True)
    assert requests(hub, "model", model) == 1
    entries = yaml.safe_load(opened(hub, kind="model", name=model)[".eval_results/audio_compositionality.yaml"])
    assert [entry["dataset"]["task_id"] for entry in entries] == ["a_coat", "a_tre"]


def test_a_result_on_other_data_is_not_shown_on_the_model(
    hub: LoopbackHub, leaderboard: str, evaluated: Path, built: Path
) -> None:
    hub.repositories.create("dataset", "lab/audio-compositionality")
    HfApi().create_repo("lab/model")
    with pytest.raises(HubError, match=r"benchmark.json"):
        submit(evaluated, built, model_card=True)
    assert requests(hub) == 0


@pytest.mark.parametrize("encoder", ["random", "untrained:whisper-base", "panns-cnn14", "my_encoder.py:Mine"])
def test_an_encoder_without_a_model_on_the_hub(evaluated: Path, encoder: str) -> None:
    result, _ = load_result(evaluated / "results" / "lab__model" / "v1" / "a_coat.json")
    with pytest.raises(ResultError, match=f"{encoder} has no model repository on the Hub"):
        model_of(replace(result, encoder_id=encoder))


def test_the_model_of_a_named_encoder(evaluated: Path) -> None:
    result, _ = load_result(evaluated / "results" / "lab__model" / "v1" / "a_coat.json")
    assert model_of(replace(result, encoder_id="whisper-tiny.en")).id == "openai/whisper-tiny.en"


def test_variants_of_an_encoder_have_files_of_their_own(evaluated: Path) -> None:
    result, _ = load_result(evaluated / "results" / "lab__model" / "v1" / "a_coat.json")
    assert variant_of(result) == ""
    other = replace(result, options={**result.options, "layer": 3, "pooling": "max"})
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
from audio_compositionality.push_scripts.model_results import model_entries, model_of, variant_of
from audio_compositionality.push_scripts.submit import submit_results
results, embeddings, data = sys.argv[1:]
submit_results([results], "lab", data=data, embeddings=embeddings, device="cpu", progress=False)
"""


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
        str(evaluated / "embeddings"),
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


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("step", MODEL_STEPS)
def test_a_fault_on_the_model(
    hub: LoopbackHub, model: str, evaluated: Path, built: Path, waits: list[float], step: str, fault: Fault
) -> None:
    hub.faults.order(*MODEL_STEPS[step], PASSING[str(fault)])
    submit(evaluated, built, model_card=True)
    assert list(opened(hub, kind="model", name=model)) == [".eval_results/audio_compositionality.yaml"]
    assert (requests(hub), requests(hub, "model", model)) == (1, 1)
