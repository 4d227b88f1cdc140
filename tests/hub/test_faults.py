"""What the real clients do when the Hub or the way to it fails: what a push of ours has to add, and what it has not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import datasets
import evaluate
import httpx2
import pytest
from huggingface_hub import CommitOperationAdd, HfApi, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from audio_compositionality import metrics

from .conftest import RunClient, StartClient
from .faults import CutDownload, CutUpload, Delay, Drop, Fault, Meanwhile, Status
from .server import LoopbackHub
from .storage import Repository

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # huggingface_hub's own

RETRIED = {
    "preupload": ("POST", "/preupload/"),
    "batch": ("POST", "/objects/batch"),
    "upload": ("PUT", "/lfs-storage/"),
    "verify": ("POST", "/objects/verify"),
    "tree": ("GET", "/tree/"),
}
"""Steps of a push that `huggingface_hub` tries again by itself."""

NOT_RETRIED = {
    "whoami": ("GET", "/api/whoami-v2"),
    "create": ("POST", "/api/repos/create"),
    "info": ("GET", "/api/datasets/lab/scenes"),
    "card": ("POST", "/api/validate-yaml"),
    "commit": ("POST", "/commit/"),
}
"""Steps at which it gives up at once."""

STEPS = {**RETRIED, **NOT_RETRIED}

FILES = {"README.md": b"---\nlicense: mit\n---\n", "table.parquet": bytes(5000)}


def push() -> None:
    """Every step of a push."""
    api = HfApi()
    api.whoami()
    api.create_repo("lab/scenes", repo_type="dataset", exist_ok=True)
    api.dataset_info("lab/scenes")
    changes = [CommitOperationAdd(name, content) for name, content in FILES.items()]
    api.create_commit("lab/scenes", changes, commit_message="push", repo_type="dataset")
    list(api.list_repo_tree("lab/scenes", repo_type="dataset", recursive=True))


def pushed(hub: LoopbackHub) -> Repository:
    return hub.repositories["dataset", "lab/scenes"]


def commits(hub: LoopbackHub) -> list[str]:
    return [commit.title for commit in pushed(hub).history()]


def status_of(error: BaseException) -> int:
    """What the Hub answered; an error of an upload comes within another one."""
    while not isinstance(error, HfHubHTTPError):
        assert error.__cause__ is not None
        error = error.__cause__
    return int(error.response.status_code)


@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        (Status(429, retry_after=7), 8),
        (Status(500), 1),
        (Status(503, retry_after=7), 8),
        (Drop(acts=False), 1),
        (Drop(acts=False, reset=False), 1),
        (Drop(acts=True), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("step", RETRIED)
def test_a_step_that_the_client_tries_again(
    hub: LoopbackHub, waits: list[float], step: str, fault: Fault, waited: float
) -> None:
    hub.faults.order(*STEPS[step], fault)
    push()
    assert waits == [waited]
    assert commits(hub) == ["push", "initial commit"]
    assert pushed(hub).files().items() > FILES.items()


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("step", NOT_RETRIED)
def test_a_step_that_the_client_gives_up(hub: LoopbackHub, waits: list[float], step: str, status: int) -> None:
    order = hub.faults.order(*STEPS[step], Status(status, retry_after=7))
    with pytest.raises(HfHubHTTPError) as caught:
        push()
    assert status_of(caught.value) == status
    assert (order.fired, order.seen, waits) == (1, 1, [])
    push()
    assert commits(hub) == ["push", "initial commit"]


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("step", STEPS)
def test_a_refusal_is_final(hub: LoopbackHub, waits: list[float], step: str, status: int) -> None:
    order = hub.faults.order(*STEPS[step], Status(status))
    with pytest.raises((HfHubHTTPError, RuntimeError)) as caught:
        push()
    assert status_of(caught.value) == status
    # Only from the storage and its verification, which are in threads, the error comes wrapped.
    assert isinstance(caught.value, RuntimeError) == (step in ("upload", "verify"))
    assert (order.seen, waits) == (1, [])


def test_the_client_tries_five_times_more(hub: LoopbackHub, waits: list[float]) -> None:
    order = hub.faults.order(*RETRIED["upload"], Status(503), times=None)
    with pytest.raises(RuntimeError) as caught:
        push()
    assert status_of(caught.value) == 503
    assert (order.seen, waits) == (6, [1, 2, 4, 8, 8])
    assert commits(hub) == ["initial commit"]


@pytest.mark.parametrize(
    ("fault", "error", "committed"),
    [
        (Drop(acts=False), httpx2.ReadError, False),
        (Drop(acts=False, reset=False), httpx2.RemoteProtocolError, False),
        (CutUpload(after=50), httpx2.NetworkError, False),
        (Drop(acts=True), httpx2.ReadError, True),
        (Drop(acts=True, reset=False), httpx2.RemoteProtocolError, True),
        (Status(500, acts=True), HfHubHTTPError, True),
    ],
    ids=str,
)
def test_a_lost_answer_does_not_tell_whether_it_was_committed(
    hub: LoopbackHub, waits: list[float], fault: Fault, error: type[Exception], committed: bool
) -> None:
    hub.faults.order(*STEPS["commit"], fault)
    with pytest.raises(error):
        push()
    assert commits(hub) == ["push"] * committed + ["initial commit"]
    assert waits == []
    push()
    assert commits(hub) == ["push", "initial commit"]


def test_a_repository_whose_creation_was_not_confirmed_exists(hub: LoopbackHub) -> None:
    hub.faults.order(*STEPS["create"], Drop(acts=True))
    with pytest.raises(httpx2.ReadError):
        push()
    assert commits(hub) == ["initial commit"]


def test_an_upload_that_is_cut_is_sent_again(hub: LoopbackHub, waits: list[float]) -> None:
    hub.faults.order(*RETRIED["upload"], CutUpload(after=2000))
    push()
    assert [made.status for made in hub.made("PUT")] == [None, 200]
    assert waits == [1]
    assert pushed(hub).read("table.parquet") == FILES["table.parquet"]


def test_a_commit_on_a_head_that_has_moved_is_refused(hub: LoopbackHub) -> None:
    repository = hub.repositories.create("dataset", "lab/scenes")
    hub.faults.order(*STEPS["commit"], Meanwhile(lambda: repository.commit({"other.txt": b"1"}, "other")))
    change, head = CommitOperationAdd("x.txt", b"1"), repository.at().oid
    with pytest.raises(HfHubHTTPError) as caught:
        HfApi().create_commit("lab/scenes", [change], commit_message="x", repo_type="dataset", parent_commit=head)
    assert status_of(caught.value) == 412
    # Without a parent there is no such check.
    HfApi().create_commit("lab/scenes", [CommitOperationAdd("x.txt", b"1")], commit_message="x", repo_type="dataset")
    assert commits(hub) == ["x", "other", "initial commit"]


def test_datasets_does_not_push_again_when_the_head_has_moved(hub: LoopbackHub, waits: list[float]) -> None:
    repository = hub.repositories.create("dataset", "lab/scenes")
    hub.faults.order(*STEPS["commit"], Meanwhile(lambda: repository.commit({"other.txt": b"1"}, "other")))
    with pytest.raises(HfHubHTTPError) as caught:
        datasets.Dataset.from_dict({"x": [1]}).push_to_hub("lab/scenes", "first", split="test")
    assert status_of(caught.value) == 412
    assert waits == []
    assert commits(hub) == ["other", "initial commit"]


@pytest.mark.parametrize(
    ("method", "fault", "error", "requests"),
    [
        ("GET", Status(500), HfHubHTTPError, 1),
        ("GET", Status(503, retry_after=7), HfHubHTTPError, 1),
        ("GET", Status(429, retry_after=7), None, 2),
        ("GET", Drop(acts=False), httpx2.ReadError, 1),
        ("GET", CutDownload(after=100, reset=True), httpx2.ReadError, 1),
        ("GET", Drop(acts=False, reset=False), None, 2),
        ("GET", CutDownload(after=100), None, 2),
        ("HEAD", Status(500), None, 2),
        ("HEAD", Status(503, retry_after=7), None, 2),
        ("HEAD", Status(429, retry_after=7), None, 2),
        ("HEAD", Status(401), HfHubHTTPError, 1),
        ("HEAD", Status(403), LocalEntryNotFoundError, 1),
        ("HEAD", Drop(acts=False), httpx2.ReadError, 1),
    ],
    ids=str,
)
def test_a_download(
    hub: LoopbackHub,
    waits: list[float],
    method: str,
    fault: Fault,
    error: type[Exception] | None,
    requests: int,
) -> None:
    repository = hub.repositories.create("dataset", "lab/scenes")
    repository.commit(dict(FILES))
    hub.faults.order(method, "/resolve/", fault)
    if error is None:
        path = Path(hf_hub_download("lab/scenes", "table.parquet", repo_type="dataset"))
        assert path.read_bytes() == FILES["table.parquet"]
    else:
        with pytest.raises(error):
            hf_hub_download("lab/scenes", "table.parquet", repo_type="dataset")
    assert len(hub.made(method, "/resolve/")) == requests
    assert not waits or method == "GET"


def test_an_answer_that_does_not_come(hub: LoopbackHub) -> None:
    hub.repositories.create("dataset", "lab/scenes")
    hub.faults.order(*STEPS["info"], Delay(3600))
    with pytest.raises(httpx2.ReadTimeout):
        HfApi().dataset_info("lab/scenes", timeout=0.1)


def _chunks(lines: list[bytes], whole: bool) -> Iterator[bytes]:
    yield from lines
    if not whole:
        raise KeyboardInterrupt


@pytest.mark.parametrize("whole", [True, False])
def test_a_request_counts_when_it_is_whole(hub: LoopbackHub, whole: bool) -> None:
    """Sent in chunks, as the clients send what they cannot measure, and given up between two of them."""
    repository = hub.repositories.create("dataset", "lab/scenes")
    lines = [
        b'{"key": "header", "value": {"summary": "x"}}\n',
        b'{"key": "file", "value": {"path": "x", "content": "MQ==", "encoding": "base64"}}\n',
    ]
    with httpx2.Client(trust_env=False) as client, suppress(KeyboardInterrupt):
        client.post(
            f"{hub.url}/api/datasets/lab/scenes/commit/main",
            content=_chunks(lines, whole),
            headers={"Authorization": f"Bearer {hub.token('ada')}"},
        )
    hub.close()
    assert len(list(repository.history())) == (2 if whole else 1)


def test_faults_come_when_they_are_due(hub: LoopbackHub) -> None:
    hub.repositories.create("dataset", "lab/scenes")
    hub.faults.order("GET", "/api/datasets/", Status(503), k=2, times=2)
    hub.faults.order("GET", "/lab/scenes$", Status(500), k=3)
    hub.faults.order("POST", "/lab/scenes$", Status(400), times=None)

    def status() -> int:
        return httpx2.get(f"{hub.url}/api/datasets/lab/scenes", trust_env=False).status_code

    assert [status() for _ in range(5)] == [200, 503, 503, 200, 200]
    assert [order.fired for order in hub.faults.orders] == [2, 0, 0]
    assert hub.faults.idle() == hub.faults.orders[1:]
    hub.faults.orders.clear()


def test_evaluate_keeps_an_error_for_the_metric(hub: LoopbackHub) -> None:
    files = metrics.module_files(metrics.metric_file("a_coat"))
    hub.repositories.create("space", "lab/a_coat").commit(files)
    hub.faults.order("GET", "/resolve/", Status(500))
    for _ in range(2):
        with pytest.raises(TypeError, match="NoneType"):
            evaluate.load("lab/a_coat")
    assert [made.status for made in hub.made("GET", "/resolve/")] == [500]
    metric = evaluate.load("lab/a_coat", download_config=datasets.DownloadConfig(force_download=True))
    assert metric.compute(a=[[0, 0]], b=[[1, 0]], c=[[5, 5]], d=[[5, 9]])["a_coat"] == 0.0


FOUR_FILES = """
from huggingface_hub import CommitOperationAdd, HfApi

changes = [CommitOperationAdd(f"{number}.bin", bytes([number]) * 1000) for number in range(4)]
HfApi().create_commit("lab/scenes", changes, commit_message="four", repo_type="dataset", num_threads=1)
"""


def test_what_was_uploaded_before_a_kill_is_not_sent_again(
    hub: LoopbackHub, start_client: StartClient, run_client: RunClient
) -> None:
    hub.repositories.create("dataset", "lab/scenes")
    hub.faults.order(*STEPS["upload"], Delay(3600), k=3)
    process = start_client(FOUR_FILES)
    while len(hub.made("PUT")) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert commits(hub) == ["initial commit"]
    run_client(FOUR_FILES)
    assert [made.status for made in hub.made("PUT")] == [200, 200, None, 200, 200]
    assert commits(hub) == ["four", "initial commit"]
    assert pushed(hub).read("3.bin") == bytes([3]) * 1000
