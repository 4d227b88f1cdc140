"""Pushing the data set, the metrics and the leaderboard: what arrives, what a second push sends, what is refused."""

from __future__ import annotations

import shutil
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

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError, recipe_fingerprint
from audio_compositionality.dataset_builder.manifest import Manifest
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import dataset_of
from audio_compositionality.push_scripts.dataset import push_dataset, registered_tasks, registration
from audio_compositionality.push_scripts.spaces import metric_files, push_leaderboard, push_metrics
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.registry import list_tasks, load_task

from ..metrics.contract import example_of
from .conftest import DATASET, RESULTS, RIGHTS, use_rights
from .server import LoopbackHub


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


def test_a_data_set_arrives_as_it_was_built_and_loads(hub, built):
    push = push_dataset(built, "lab")
    arrived = pushed(hub)
    registration = yaml.safe_load(arrived.pop("eval.yaml"))
    assert arrived == expected(built)
    tasks = [task.info for task in list_tasks() if task.info.recipe in push.recipes]
    assert [(task["id"], task["config"], task["split"]) for task in registration["tasks"]] == [
        (task.name, task.recipe, "test") for task in tasks
    ]
    assert all(task.question in registration["description"] for task in tasks)
    assert registration["evaluation_framework"] == "mteb"
    assert push.recipes == fingerprints(built) == fingerprints(DATASET)
    assert len(datasets.load_dataset(DATASET, "a_coat", split="test")) == 2
    assert commits(hub) == 1
    assert push.commit.url == f"{hub.url}/datasets/{DATASET}/commit/{push.commit.oid}"


def test_data_are_registered_for_the_framework_that_runs_most_of_their_tasks(built):
    manifest = Manifest.load(built / "manifest.json")
    assert manifest is not None
    embeds = next(task.info for task in list_tasks() if task.info.recipe in manifest.recipes)
    asks = replace(load_task("polybench").info, recipe=embeds.recipe)
    assert registered_tasks(manifest, [embeds, asks, embeds]) == ("mteb", (embeds, embeds))
    mixed = yaml.safe_load(registration(manifest, [asks, asks, embeds]) or "")
    assert (mixed["evaluation_framework"], len(mixed["tasks"])) == ("inspect-ai", 2)
    assert f"Not registered, since inspect-ai does not run them: {embeds.title}." in mixed["description"]
    # A task that needs what no framework gives is left out, and the file with it.
    assert registration(manifest, [replace(asks, needs=frozenset({"frames"}))]) is None
    assert registration(manifest, [load_task("polybench").info]) is None


def test_a_push_after_another_sends_what_is_missing_and_removes_what_is_stale(hub, built):
    first, uploads = push_dataset(built, "lab"), len(hub.made("PUT"))
    again = push_dataset(built, "lab")
    assert not again.changes
    assert set(again.changes.same) == set(first.changes.send)
    assert (commits(hub), len(hub.made("PUT"))) == (1, uploads)
    assert again.commit.oid == first.commit.oid
    repository = hub.repositories["dataset", DATASET]
    shard = next(name for name in repository.files() if name.startswith("a_coat/"))
    repository.commit({shard: None, "a_tre/train-00007-of-00008.parquet": b"old", "notes.txt": b"mine"}, "by hand")
    push = push_dataset(built, "lab")
    assert list(push.changes.send) == [shard]
    assert push.changes.delete == ("a_tre/train-00007-of-00008.parquet",)
    assert pushed(hub).keys() == {*expected(built), "eval.yaml", "notes.txt"}


def test_other_data_replace_what_is_there_and_say_so(hub, built, tiny_data, tmp_path, capsys):
    push_dataset(built, "lab")
    other = build_dataset(other_data(tiny_data), tmp_path / "other", workers=1, progress=False)
    assert main(["push", "dataset", str(other), "--org", "lab"]) == 0
    printed = capsys.readouterr().out
    before = fingerprints(built)
    assert f"a_coat {before['a_coat'][:12]}" in printed
    # The other configuration is the same, and so are its shards.
    assert f"a_tre {before['a_tre'][:12]}" not in printed
    assert fingerprints(DATASET) == fingerprints(other)


def test_a_dry_run_lists_and_sends_nothing(hub, built, capsys):
    assert main(["push", "dataset", str(built), "--org", "lab", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in [*expected(built), "eval.yaml"])
    assert not hub.repositories
    assert not [*hub.made("POST"), *hub.made("PUT")]


def test_a_private_repository_stays_hidden(hub, built, act_as):
    push_dataset(built, "lab", private=True)
    assert hub.repositories["dataset", DATASET].private
    act_as("bob")
    with pytest.raises(HubError, match="does not exist, or the token of bob cannot see it"):
        Hub().head(dataset_of("lab"))


def test_a_pull_request_is_opened_once(hub, built):
    hub.repositories.create("dataset", DATASET)
    urls = {push_dataset(built, "lab", pull_request=True).commit.url for _ in range(2)}
    assert urls == {f"{hub.url}/datasets/{DATASET}/discussions/1"}
    assert len(hub.repositories["dataset", DATASET].discussions) == 1
    assert commits(hub) == 0
    assert fingerprints(DATASET, revision="refs/pr/1") == fingerprints(built)


# What is refused


def change_a_shard(folder: Path) -> None:
    shard = next(folder.glob("a_tre/train*.parquet"))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)


def change_the_manifest(folder: Path, recipe: str, change: Callable[[Any], dict[str, Any]]) -> None:
    manifest = Manifest.load(folder / "manifest.json")
    assert manifest is not None
    changed = replace(manifest.recipes[recipe], **change(manifest.recipes[recipe]))
    (folder / "manifest.json").write_text(Manifest({**manifest.recipes, recipe: changed}).dumps())


def other_settings(recipe: Any) -> dict[str, Any]:
    """A manifest that agrees with itself and with the digests, and that the shards were not built from."""
    settings = {**recipe.settings, "seed": 5}
    return {"settings": settings, "fingerprint": recipe_fingerprint("a_coat", recipe.version, settings)}


def more_rows(recipe: Any) -> dict[str, Any]:
    return {"shards": {name: replace(shard, rows=3) for name, shard in recipe.shards.items()}}


def link_a_shard(folder: Path) -> None:
    shard = next(folder.glob("a_coat/*"))
    shard.rename(folder / "elsewhere")
    shard.symlink_to(folder / "elsewhere")


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "a changed shard": (change_a_shard, r"train-.*parquet differs from the shard that was built"),
    "other data": (lambda folder: change_the_manifest(folder, "a_coat", other_settings), "was built for fingerprint"),
    "more rows": (lambda folder: change_the_manifest(folder, "a_coat", more_rows), "has 2 rows, manifest.json says 3"),
    "a link": (link_a_shard, "is a link"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), r"holds no manifest\.json"),
    "a shard is missing": (lambda folder: next(folder.glob("a_coat/*")).unlink(), "is missing"),
    "an unfinished build": (
        lambda folder: change_the_manifest(folder, "a_tre", lambda _: {"shards": {}}),
        "has not finished",
    ),
    "another card": (lambda folder: (folder / "README.md").write_text("# Another"), "is not the card of these data"),
    "nothing": (shutil.rmtree, "is not a folder"),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_is_not_whole_is_refused_before_anything_is_sent(hub, built, tmp_path, spoilt):
    spoil, message = SPOILT[spoilt]
    copy = Path(shutil.copytree(built, tmp_path / "copy"))
    spoil(copy)
    with pytest.raises(DatasetError, match=message):
        push_dataset(copy, "lab")
    assert not hub.requests


@pytest.mark.parametrize("org", ["", "a/b", "../x", "a--b", "-lab"])
def test_a_name_that_no_organisation_can_have(org):
    with pytest.raises(HubError, match="--org is"):
        dataset_of(org)


# Whose token, which right


@pytest.mark.parametrize("kind", RIGHTS)
def test_a_missing_right_is_named(hub, built, kind, monkeypatch, waits):
    use_rights(hub, kind, monkeypatch)
    with pytest.raises(HubError, match=RIGHTS[kind]):
        push_dataset(built, "lab")
    assert waits == []
    assert not hub.repositories
    hub.repositories.create("dataset", DATASET)
    with pytest.raises(HubError, match=RIGHTS[kind]):
        push_dataset(built, "lab")
    assert commits(hub) == 0


# Spaces


def ours(name: str) -> Callable[..., dict[str, Any]]:
    """The function of a metric."""
    function: Callable[..., dict[str, Any]] = getattr(import_module(f"audio_compositionality.metrics.{name}"), name)
    return function


@pytest.mark.usefixtures("two_metrics")
def test_metrics_are_pushed_as_they_are_and_load(hub):
    """Two of them; tests/metrics has the files of each loaded."""
    for push in push_metrics("lab"):
        name = push.repository.id.split("/")[1]
        arrived = hub.repositories["space", push.repository.id].files()
        assert {path: content for path, content in arrived.items() if path != ".gitattributes"} == metric_files(name)
        assert hub.repositories["space", push.repository.id].sdk == "static"
        page = arrived["index.html"].decode()
        assert f'metric = evaluate.load("ORG/{name}")' in page
        assert "$" not in page
        metric = evaluate.load(push.repository.id)
        given = example_of(name)
        options = {"max_steps": 2, "progress": False} if name == "a_tre" else {}
        assert metric.compute(**given, **options) == ours(name)(**given, **options)
    assert not any(push.changes for push in push_metrics("lab"))


def test_a_metric_of_others_is_pushed_from_its_folder(hub, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(InputError, match=r"has no mine.py, README.md, requirements.txt"):
        push_metrics("lab", folders=[folder])
    for name in ("mine.py", "README.md", "requirements.txt"):
        (folder / name).write_text("")
    (push,) = push_metrics("lab", folders=[folder])
    assert set(push.changes.send) == {"mine.py", "README.md", "requirements.txt"}
    assert push.repository.id == "lab/mine"


@pytest.mark.usefixtures("two_metrics")
def test_a_pull_request_on_a_space(hub, capsys):
    for _ in range(2):
        assert main(["push", "metrics", "--org", "lab", "--create-pr"]) == 0
        printed = capsys.readouterr().out
        assert f"{hub.url}/spaces/lab/a_coat/discussions/1" in printed
        assert "loads it" not in printed
    assert commits(hub, "space", "lab/a_coat") == 0
    assert len(hub.repositories["space", "lab/a_coat"].discussions) == 1


def test_the_leaderboard_and_its_results_are_pushed(hub, wheel):
    results, space = push_leaderboard("lab")
    assert results.repository.id == RESULTS
    assert list(results.changes.send) == ["README.md"]
    card = hub.repositories["dataset", RESULTS].read("README.md").decode()
    assert all(task.info.question in card for task in list_tasks())
    assert "$" not in card
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
