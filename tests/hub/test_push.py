"""Pushing the data set, the metrics and the leaderboard: what arrives, what a second push sends, and every fault."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import datasets
import evaluate
import httpx2
import pytest
import yaml
from huggingface_hub import HfApi

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError, fingerprint_of
from audio_compositionality.dataset_builder.manifest import Manifest
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.opening import RenderedData
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import dataset_of
from audio_compositionality.push_scripts.dataset import push_dataset
from audio_compositionality.push_scripts.spaces import metric_files, push_leaderboard, push_metrics
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.registry import list_tasks

from .conftest import ActAs, StartClient
from .faults import CutUpload, Delay, Drop, Fault, Meanwhile, Status
from .server import LoopbackHub

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # huggingface_hub's own

DATASET = "lab/audio-compositionality"


def pushed(hub: LoopbackHub) -> dict[str, bytes]:
    """The files of the data set's repository, without what the Hub itself puts there."""
    files = hub.repositories["dataset", DATASET].files()
    return {name: content for name, content in files.items() if name != ".gitattributes"}


def expected(folder: Path) -> dict[str, bytes]:
    """The files of a built folder, by their paths below it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fingerprints(source: Path | str, **options: str) -> dict[str, str]:
    """Of the configurations of data."""
    data = open_data(source, **options)
    return {recipe: data.configuration(recipe).fingerprint for recipe in data.recipes}


def other_data(tiny_data: RenderedData) -> RenderedData:
    """Data of which one configuration is another."""
    settings = tiny_data.settings
    return RenderedData("other", {**settings, "a_coat": settings["a_coat"].changed(seed=1)})


def commits(hub: LoopbackHub, kind: str = "dataset", name: str = DATASET) -> int:
    """Commits of a repository after its first."""
    return len(list(hub.repositories[kind, name].history())) - 1


# What is pushed


def test_a_data_set_arrives_as_it_was_built_and_loads(hub: LoopbackHub, built: Path) -> None:
    push = push_dataset(built, "lab", progress=False)
    arrived = pushed(hub)
    registration = yaml.safe_load(arrived.pop("eval.yaml"))
    assert arrived == expected(built)
    tasks = [task.info for task in list_tasks() if task.info.recipe in push.recipes]
    assert [(task["id"], task["config"], task["split"]) for task in registration["tasks"]] == [
        (task.name, task.recipe, "test") for task in tasks
    ]
    assert all(task.question in registration["description"] for task in tasks)
    assert push.recipes == fingerprints(built) == fingerprints(DATASET)
    assert len(datasets.load_dataset(DATASET, "a_coat", split="test")) == 2
    assert commits(hub) == 1
    assert push.commit is not None
    assert push.commit.url == f"{hub.url}/datasets/{DATASET}/commit/{push.commit.oid}"


def test_a_second_push_sends_and_commits_nothing(hub: LoopbackHub, built: Path) -> None:
    first = push_dataset(built, "lab", progress=False)
    uploads = len(hub.made("PUT"))
    again = push_dataset(built, "lab", progress=False)
    assert not again.changes
    assert set(again.changes.same) == set(first.changes.send)
    assert (commits(hub), len(hub.made("PUT"))) == (1, uploads)
    assert again.commit is not None
    assert first.commit is not None
    assert again.commit.oid == first.commit.oid


def test_a_push_after_another_sends_what_is_missing_and_removes_what_is_stale(hub: LoopbackHub, built: Path) -> None:
    push_dataset(built, "lab", progress=False)
    repository = hub.repositories["dataset", DATASET]
    shard = next(name for name in repository.files() if name.startswith("a_coat/"))
    repository.commit({shard: None, "a_tre/train-00007-of-00008.parquet": b"old", "notes.txt": b"mine"}, "by hand")
    push = push_dataset(built, "lab", progress=False)
    assert list(push.changes.send) == [shard]
    assert push.changes.delete == ("a_tre/train-00007-of-00008.parquet",)
    arrived = pushed(hub)
    assert arrived.pop("notes.txt") == b"mine"
    assert set(arrived) == {*expected(built), "eval.yaml"}


def test_other_data_replace_what_is_there_and_say_so(
    hub: LoopbackHub, built: Path, tiny_data: RenderedData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    push_dataset(built, "lab", progress=False)
    other = build_dataset(other_data(tiny_data), tmp_path / "other", workers=1, progress=False)
    assert main(["push", "dataset", str(other), "--org", "lab"]) == 0
    printed = capsys.readouterr().out
    before = fingerprints(built)
    assert f"a_coat {before['a_coat'][:12]}" in printed
    # The other configuration is the same, and so are its shards.
    assert f"a_tre {before['a_tre'][:12]}" not in printed
    assert fingerprints(DATASET) == fingerprints(other)


def test_a_dry_run_lists_and_sends_nothing(hub: LoopbackHub, built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", "dataset", str(built), "--org", "lab", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    for name in [*expected(built), "eval.yaml"]:
        assert name in printed
    assert ("dataset", DATASET) not in hub.repositories
    assert not hub.made("POST")
    assert not hub.made("PUT")
    push_dataset(built, "lab", progress=False)
    assert main(["push", "dataset", str(built), "--org", "lab", "--dry-run"]) == 0
    assert "0 files to send" in capsys.readouterr().out


def test_a_private_repository_stays_hidden(hub: LoopbackHub, built: Path, act_as: ActAs) -> None:
    push_dataset(built, "lab", private=True, progress=False)
    assert hub.repositories["dataset", DATASET].private
    act_as("bob")
    with pytest.raises(HubError, match="does not exist, or the token of bob does not see it"):
        Hub().head(dataset_of("lab"))


def test_a_pull_request_is_opened_once(hub: LoopbackHub, built: Path) -> None:
    HfApi().create_repo(DATASET, repo_type="dataset")
    one = push_dataset(built, "lab", pull_request=True, progress=False)
    other = push_dataset(built, "lab", pull_request=True, progress=False)
    assert one.commit is not None
    assert other.commit is not None
    assert one.commit.url == other.commit.url == f"{hub.url}/datasets/{DATASET}/discussions/1"
    assert len(hub.repositories["dataset", DATASET].discussions) == 1
    assert commits(hub) == 0
    assert fingerprints(DATASET, revision="refs/pr/1") == fingerprints(built)


# What is refused


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    """A copy of the built folder that may be spoilt."""
    return Path(shutil.copytree(built, tmp_path / "copy"))


def test_a_changed_shard_is_refused_before_anything_is_sent(hub: LoopbackHub, copy: Path) -> None:
    shard = next(copy.glob("a_tre/*.parquet"))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(DatasetError, match=f"{shard.name} is not the shard that was built"):
        push_dataset(copy, "lab", progress=False)
    assert not hub.requests


def test_shards_of_other_data_are_refused(hub: LoopbackHub, copy: Path, tiny_data: RenderedData) -> None:
    # A manifest that agrees with itself and with the digests, of a configuration that the shards were not built from.
    manifest = Manifest.load(copy / "manifest.json")
    assert manifest is not None
    recipe = manifest.recipes["a_coat"]
    settings = {**recipe.settings, "seed": 5}
    forged = replace(recipe, settings=settings, fingerprint=fingerprint_of("a_coat", recipe.version, settings))
    (copy / "manifest.json").write_text(Manifest({**manifest.recipes, "a_coat": forged}).dumps())
    with pytest.raises(DatasetError, match="was built for fingerprint"):
        push_dataset(copy, "lab", progress=False)
    assert not hub.requests


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "holds no manifest.json"),
        (lambda folder: next(folder.glob("a_coat/*")).unlink(), "is not there"),
        (lambda folder: (folder / "README.md").write_text("# Another"), "is not the card of these data"),
        (lambda folder: shutil.rmtree(folder), "is no folder"),
    ],
    ids=["no manifest", "a shard is missing", "another card", "nothing"],
)
def test_an_incomplete_folder_is_refused(hub: LoopbackHub, copy: Path, spoil: object, message: str) -> None:
    spoil(copy)  # type: ignore[operator]
    with pytest.raises(DatasetError, match=message):
        push_dataset(copy, "lab", progress=False)
    assert not hub.requests


def test_an_unfinished_build_is_refused(hub: LoopbackHub, copy: Path) -> None:
    manifest = Manifest.load(copy / "manifest.json")
    assert manifest is not None
    unfinished = {**manifest.recipes, "a_tre": replace(manifest.recipes["a_tre"], shards={})}
    (copy / "manifest.json").write_text(Manifest(unfinished).dumps())
    with pytest.raises(DatasetError, match="has not finished"):
        push_dataset(copy, "lab", progress=False)


@pytest.mark.parametrize("org", ["", "a/b", "../x", "x y", "a--b"])
def test_a_name_that_no_organisation_can_have(hub: LoopbackHub, built: Path, org: str) -> None:
    with pytest.raises(HubError, match="--org is"):
        push_dataset(built, org, progress=False)


# Whose token, which right


def rights(hub: LoopbackHub, kind: str) -> tuple[str | None, str]:
    """A token that does not suffice to push to `lab`, and what the error must say of it."""
    match kind:
        case "none":
            return None, "no token is set; make one at"
        case "wrong":
            return "hf_wrong", "does not accept the token"
        case "read":
            return hub.token("ada", "read"), "the token of ada may only read.*role write"
        case "fine-grained":
            return hub.token("ada", "fineGrained", ("repo.content.read",)), "lacks the permission repo.write for lab"
        case "stranger":
            return hub.token("eve"), "eve is no member of lab: ask to become one, or give --org one of eve"
        case _:
            hub.accounts.join("guest", "lab", "read")
            return hub.token("guest"), "guest is read in lab and needs the role write"


@pytest.mark.parametrize("exists", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize("kind", ["none", "wrong", "read", "fine-grained", "stranger", "guest"])
def test_a_missing_right_is_named(
    hub: LoopbackHub, built: Path, kind: str, exists: bool, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    if exists:
        HfApi().create_repo(DATASET, repo_type="dataset")
    token, message = rights(hub, kind)
    monkeypatch.delenv("HF_TOKEN")
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(HubError, match=message):
        push_dataset(built, "lab", progress=False)
    assert waits == []
    assert (("dataset", DATASET) in hub.repositories) == exists
    if exists:
        assert commits(hub) == 0


# Every fault at every step

STEPS = {
    "info": ("GET", f"/api/datasets/{DATASET}/revision/main"),
    "create": ("POST", "/api/repos/create"),
    "tree": ("GET", "/tree/"),
    "preupload": ("POST", "/preupload/"),
    "batch": ("POST", "/objects/batch"),
    "upload": ("PUT", "/lfs-storage/"),
    "verify": ("POST", "/objects/verify"),
    "card": ("POST", "/api/validate-yaml"),
    "commit": ("POST", "/commit/"),
}
"""The requests of a push to a new repository, in their order."""

PASSING: dict[str, Fault] = {
    "429": Status(429, retry_after=7),
    "500": Status(500),
    "503": Status(503, retry_after=3),
    "dropped before": Drop(acts=False),
    "dropped after": Drop(acts=True),
    "ended before": Drop(acts=False, reset=False),
    "ended after": Drop(acts=True, reset=False),
    "500 after": Status(500, acts=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_that_passes_costs_time_alone(
    hub: LoopbackHub, built: Path, waits: list[float], step: str, fault: str
) -> None:
    hub.faults.order(*STEPS[step], PASSING[fault])
    push_dataset(built, "lab", progress=False)
    assert pushed(hub).items() >= expected(built).items()
    assert commits(hub) == 1
    # huggingface_hub asks again at once after some broken requests; a commit that has taken effect need not
    # be waited for, but the pause comes before that is known.
    assert len(waits) <= 1
    if fault == "429":
        assert waits == [8]


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("step", STEPS)
def test_a_refusal_says_what_to_do_and_a_later_push_is_whole(
    hub: LoopbackHub, built: Path, waits: list[float], step: str, status: int
) -> None:
    hub.faults.order(*STEPS[step], Status(status, message="You may not"))
    with pytest.raises(HubError, match="You may not") as caught:
        push_dataset(built, "lab", progress=False)
    assert caught.value.status == status
    assert "settings/tokens" in str(caught.value)
    assert waits == []
    push_dataset(built, "lab", progress=False)
    assert pushed(hub).items() >= expected(built).items()
    assert commits(hub) == 1


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_that_stays_ends_with_advice(hub: LoopbackHub, built: Path, waits: list[float], step: str) -> None:
    order = hub.faults.order(*STEPS[step], Status(503), times=None)
    with pytest.raises(HubError, match="run the same command later: it goes on from there") as caught:
        push_dataset(built, "lab", progress=False)
    assert caught.value.status == 503
    assert order.fired >= 5
    assert sum(waits) < 200
    hub.faults.orders.clear()
    push_dataset(built, "lab", progress=False)
    assert pushed(hub).items() >= expected(built).items()
    assert commits(hub) == 1


def test_more_patience_than_anybody_has_is_not_shown(hub: LoopbackHub, built: Path, waits: list[float]) -> None:
    hub.faults.order(*STEPS["commit"], Status(429, retry_after=3600))
    with pytest.raises(HubError, match="it asks to wait 3600 s"):
        push_dataset(built, "lab", progress=False)
    assert waits == []


@pytest.mark.parametrize("step", ["upload", "commit"])
def test_what_is_cut_while_it_is_sent_is_sent_again(
    hub: LoopbackHub, built: Path, waits: list[float], step: str
) -> None:
    hub.faults.order(*STEPS[step], CutUpload(after=100))
    push_dataset(built, "lab", progress=False)
    assert pushed(hub).items() >= expected(built).items()
    assert commits(hub) == 1


@pytest.mark.parametrize("times", [1, 3])
def test_a_push_at_the_same_time_loses_nothing_of_either(
    hub: LoopbackHub, built: Path, waits: list[float], times: int
) -> None:
    numbers = iter(range(times))

    def commit() -> None:
        number = next(numbers)
        hub.repositories["dataset", DATASET].commit({f"other-{number}.txt": b"1"}, "other")

    hub.faults.order(*STEPS["commit"], Meanwhile(commit), times=times)
    push_dataset(built, "lab", progress=False)
    arrived = pushed(hub)
    assert arrived.items() >= expected(built).items()
    assert {f"other-{number}.txt" for number in range(times)} <= set(arrived)
    assert commits(hub) == 1 + times


def test_the_same_push_at_the_same_time_is_made_once(hub: LoopbackHub, built: Path, waits: list[float]) -> None:
    push_dataset(built, "ada", progress=False)
    content = hub.repositories["dataset", "ada/audio-compositionality"].files()
    del content[".gitattributes"]
    hub.faults.order(
        *STEPS["commit"], Meanwhile(lambda: hub.repositories["dataset", DATASET].commit(content, "the same"))
    )
    push_dataset(built, "lab", progress=False)
    assert pushed(hub) == content
    assert commits(hub) == 1


PUSH = """
import sys
from audio_compositionality.hub.names import dataset_of
from audio_compositionality.push_scripts.dataset import push_dataset
push_dataset(sys.argv[1], "lab", progress=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_push_that_was_killed_is_finished_by_the_same_command(
    hub: LoopbackHub, built: Path, start_client: StartClient, step: str
) -> None:
    order = hub.faults.order(*STEPS[step], Delay(60))
    process = start_client(PUSH, str(built))
    deadline = time.monotonic() + 60
    while not order.fired and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert order.fired
    process.kill()
    process.wait()
    sent = [made.target.split("?")[0] for made in hub.made("PUT") if made.status == 200]
    push_dataset(built, "lab", progress=False)
    assert pushed(hub).items() >= expected(built).items()
    assert commits(hub) == 1
    again = [made.target.split("?")[0] for made in hub.made("PUT") if made.status == 200][len(sent) :]
    # What had arrived whole is not sent a second time, but for files whose verification was under way.
    if step == "commit":
        assert not set(sent) & set(again)


# Spaces


def ours(name: str) -> Callable[..., dict[str, Any]]:
    """The function of a metric."""
    function: Callable[..., dict[str, Any]] = getattr(import_module(f"audio_compositionality.metrics.{name}"), name)
    return function


def test_metrics_are_pushed_as_they_are_and_load(hub: LoopbackHub) -> None:
    for push in push_metrics("lab"):
        assert push.commit is not None
        name = push.repository.id.split("/")[1]
        arrived = hub.repositories["space", push.repository.id].files()
        assert {path: content for path, content in arrived.items() if path != ".gitattributes"} == metric_files(name)
        metric = evaluate.load(push.repository.id)
        module = sys.modules[type(metric).__module__]
        options = {"max_steps": 2, "progress": False} if name == "a_tre" else {}
        assert metric.compute(**module.example(), **options) == ours(name)(**module.example(), **options)
    assert not any(push.changes for push in push_metrics("lab"))


def test_a_metric_of_others_is_pushed_from_its_folder(hub: LoopbackHub, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(InputError, match=r"has no mine.py, README.md, requirements.txt"):
        push_metrics("lab", folders=[folder])
    for name in ("mine.py", "README.md", "requirements.txt"):
        (folder / name).write_text("")
    (push,) = push_metrics("lab", folders=[folder])
    assert set(push.changes.send) == {"app.py", "mine.py", "README.md", "requirements.txt"}
    assert push.repository.id == "lab/mine"


def test_a_pull_request_on_a_space(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["push", "metrics", "--org", "lab", "--create-pr"]) == 0
        printed = capsys.readouterr().out
        assert f"{hub.url}/spaces/lab/a_coat/discussions/1" in printed
        assert "loads it" not in printed
    assert commits(hub, "space", "lab/a_coat") == 0
    assert len(hub.repositories["space", "lab/a_coat"].discussions) == 1


def test_the_leaderboard_and_its_results_are_pushed(hub: LoopbackHub, wheel: bytes) -> None:
    results, space = push_leaderboard("lab")
    assert results.repository.id == "lab/audio-compositionality-results"
    assert list(results.changes.send) == ["README.md"]
    arrived = hub.repositories["space", space.repository.id].files()
    name = next(path for path in arrived if path.endswith(".whl"))
    assert set(arrived) - {".gitattributes"} == {"app.py", "README.md", "requirements.txt", name}
    assert arrived[name] == wheel
    line = arrived["requirements.txt"].decode().splitlines()[-1]
    address = f"{hub.url}/spaces/{space.repository.id}/resolve/main/{name}#sha256={sha256(wheel).hexdigest()}"
    assert line == f"audio-compositionality[leaderboard] @ {address}"
    assert httpx2.get(address, follow_redirects=True).content == wheel
    assert not any(push.changes for push in push_leaderboard("lab"))
    # Results that are there are never touched by a push.
    repository = hub.repositories["dataset", results.repository.id]
    repository.commit({"results/x/v1/a_coat-0123456789abcdef/result.json": b"{}"}, "a result")
    old = hub.repositories["space", space.repository.id]
    old.commit({"audio_compositionality-0.9-py3-none-any.whl": b"", "mine.txt": b"mine"}, "by hand")
    assert push_leaderboard("lab")[1].changes.delete == ("audio_compositionality-0.9-py3-none-any.whl",)
    assert "results/x/v1/a_coat-0123456789abcdef/result.json" in repository.files()
    assert "mine.txt" in old.files()


def test_the_card_of_the_results_names_every_task(hub: LoopbackHub, wheel: bytes) -> None:
    push_leaderboard("lab")
    card = hub.repositories["dataset", "lab/audio-compositionality-results"].read("README.md").decode()
    assert all(task.info.question in card for task in list_tasks())
    assert "$" not in card


SPACE_STEPS = {**STEPS, "info": ("GET", "/api/spaces/lab/a_coat/revision/main")}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["503", "dropped after"])
@pytest.mark.parametrize("step", ["info", "create", "tree", "preupload", "card", "commit"])
def test_a_fault_while_the_leaderboard_is_pushed(
    hub: LoopbackHub, waits: list[float], wheel: bytes, step: str, fault: str
) -> None:
    method, path = STEPS[step]
    hub.faults.order(method, path.replace(DATASET, "lab/audio-compositionality-results"), PASSING[fault])
    push_leaderboard("lab")
    assert commits(hub, "dataset", "lab/audio-compositionality-results") == 1
    assert commits(hub, "space", "lab/audio-compositionality-leaderboard") == 1


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("batch", "upload", "verify")])
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_while_metrics_are_pushed(
    hub: LoopbackHub, waits: list[float], monkeypatch: pytest.MonkeyPatch, step: str, fault: str
) -> None:
    monkeypatch.setattr("audio_compositionality.push_scripts.spaces.list_metrics", lambda: ["a_coat", "a_tre"])
    hub.faults.order(*SPACE_STEPS[step], PASSING[fault])
    push_metrics("lab")
    for name in ("a_coat", "a_tre"):
        assert f"{name}.py" in hub.repositories["space", f"lab/{name}"].files()
        assert commits(hub, "space", f"lab/{name}") == 1
