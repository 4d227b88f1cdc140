"""A leaderboard's first results: what `push leaderboard` scores and adds, and what it leaves alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from board_entries import SECRET, below, folder, made_up

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions import submission
from audio_compositionality.evaluator.submissions.verification import verify_folder
from audio_compositionality.hub.client import Hub
from audio_compositionality.leaderboard.pull_requests import Checks
from audio_compositionality.push_scripts.baselines import missing_baselines
from audio_compositionality.tasks.registry import load_task

from .conftest import RESULTS, board, shorten
from .faults import Status
from .server import LoopbackHub
from .storage import Repository

BASELINES = ["random", "log-mel-statistics", "modulation-statistics"]
KNOWN = [listing for listing in list_models() if listing.name in (*BASELINES, "whisper-base")]
ENTRIES = {(name, task) for name in BASELINES for task in ("a_coat", "a_tre")}

pytestmark = pytest.mark.usefixtures("one_thread", "wheel")


@pytest.fixture(scope="module", autouse=True)
def _tiny_preset(tiny_data):
    """Three baselines, a preset `tiny`, and one fit of a few steps: how well a model is fitted matters elsewhere."""
    caches: tuple[Any, ...] = (submission._presets, submission._opened_preset)
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        patch.setattr("audio_compositionality.evaluator.run.planning.list_models", lambda: KNOWN)
        for name, settings in tiny_data.settings.items():
            recipe = load_recipe(name)
            presets = {**recipe.presets, "tiny": settings}
            patch.setattr(type(recipe), "presets", property(lambda self, presets=presets: presets))
        for cache in caches:
            cache.cache_clear()
        yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture(scope="module")
def scored(_tiny_preset, tmp_path_factory):
    """A folder with the baselines' results below `out`, and their embeddings in `store`. Not to be changed."""
    root = tmp_path_factory.mktemp("scored")
    options = RunOptions(out=root / "out" / "tiny", cache=root / "store", device="cpu", progress=False)
    evaluate_models([load_model(name) for name in BASELINES], rendered_preset("tiny"), None, options)
    return root


@pytest.fixture
def push(hub, scored):
    """The command, with the results that are there unless it is told otherwise."""

    def push(*arguments: str, out: Path = scored / "out", cache: Path = scored / "store") -> int:
        places = ["--presets", "tiny", "--out", str(out), "--cache", str(cache), "--device", "cpu"]
        return main(["push", "leaderboard", "--org", "lab", *places, *arguments])

    return push


def results(hub: LoopbackHub) -> Repository:
    return hub.repositories["dataset", RESULTS]


def entries(hub: LoopbackHub, revision: str = "main") -> set[str]:
    """The folders of the entries of a revision."""
    files = results(hub).files(revision)
    return {path.rpartition("/")[0] for path in files if path.startswith("results/")}


def shown() -> set[tuple[str, str, str]]:
    return {(entry.model, entry.result.task, entry.status) for entry in board().entries}


@pytest.fixture
def no_scores(monkeypatch):
    """Nothing may be scored."""
    monkeypatch.setattr("audio_compositionality.push_scripts.baselines.evaluate_models", pytest.fail)
    monkeypatch.setattr("audio_compositionality.push_scripts.submit.make_submission", pytest.fail)


@pytest.mark.slow
def test_no_board_is_empty(hub, push, tmp_path, capsys):
    out = tmp_path / "out"
    assert push(out=out, cache=tmp_path / "store") == 0
    printed = capsys.readouterr().out
    assert f"Scoring {', '.join(BASELINES)} on the preset tiny for the leaderboard" in printed
    assert "--no-baselines skips this" in printed
    assert printed.count("A-COAT: adjusted ") == len(BASELINES)
    assert (
        f"On the leaderboard, as reported until its Space has recomputed them: {hub.url}/datasets/{RESULTS}" in printed
    )
    assert len(list((out / "tiny").rglob("*.json"))) == len(ENTRIES)
    assert list((tmp_path / "store").rglob("*.safetensors"))
    # They are there at once, and the Space verifies them as it does all that maintainers add.
    assert shown() == {(*entry, "reported") for entry in ENTRIES}
    assert not results(hub).discussions
    outcomes = Checks(Hub(), "lab", SECRET, device="cpu", recompute=verify_folder).verify_merged()
    assert [outcome.action for outcome in outcomes] == ["verified"] * len(ENTRIES)
    assert shown() == {(*entry, "verified") for entry in ENTRIES}
    assert not board().rejected


@pytest.mark.usefixtures("no_scores")
def test_what_scores_nothing(hub, push, capsys):
    """An unknown preset, which is told before anything is sent, a dry run, and a push without baselines."""
    assert main(["push", "leaderboard", "--org", "lab", "--presets", "tiny,tinny"]) == 2
    assert "unknown preset 'tinny'; did you mean 'tiny'" in capsys.readouterr().err
    assert not hub.requests
    assert push("--dry-run") == 0
    printed = capsys.readouterr().out
    assert f"{len(ENTRIES)} results to score and send" in printed
    # Two quadruples of four clips, 256 numbers each, of two bytes.
    assert f"{2 * 4 * 256 * 2 / 1000:.1f} kB  log-mel-statistics/a_coat" in printed
    assert not hub.repositories
    assert not hub.made("POST")
    assert push("--no-baselines") == 0
    assert not entries(hub)


def test_named_tasks_get_the_baselines_by_which_they_judge(hub, monkeypatch):
    """Plain descriptions and controls too, each in the tasks that it can do; none is among the common ones."""
    monkeypatch.setattr("audio_compositionality.evaluator.run.planning.list_models", list_models)
    wanted = {"invariance": "level-statistics", "comp_a_order": "bag-of-words"}
    missing = missing_baselines("lab", "mini", [load_task(name) for name in wanted]).sizes
    assert {f"{name}/{task}" for task, name in wanted.items()} <= set(missing)
    # What describes texts describes no sound alone.
    assert "bag-of-words/invariance" not in missing


@pytest.mark.slow
def test_what_the_board_has_is_not_scored_again(hub, push, tmp_path, monkeypatch, capsys):
    assert push() == 0
    first, repository = entries(hub), results(hub)
    lost = {path: None for path in repository.files() if path.startswith("results/random/v1/a_tre-")}
    repository.commit(lost, "by hand")
    assert list(missing_baselines("lab", "tiny").sizes) == ["random/a_tre"]
    # The results of an earlier push are used where they are, so that the same entry comes back.
    assert push() == 0
    assert entries(hub) == first
    capsys.readouterr()
    monkeypatch.setattr("audio_compositionality.push_scripts.baselines.evaluate_models", pytest.fail)
    commit = repository.at().oid
    assert push(out=tmp_path / "elsewhere", cache=tmp_path / "empty") == 0
    assert "nothing to send, no result is missing" in capsys.readouterr().out
    assert repository.at().oid == commit


def test_results_of_other_data_and_damaged_ones_do_not_count(hub, push):
    assert push("--no-baselines") == 0
    other = made_up("random", model={"revision": "v1"})
    broken = "results/random/v1/a_coat-0123456789abcdef/result.json"
    results(hub).commit({**below(folder(other), other), broken: b"{"}, "by hand")
    assert set(missing_baselines("lab", "tiny").sizes) == {"/".join(entry) for entry in ENTRIES}


@pytest.mark.slow
def test_a_push_that_was_stopped_goes_on_from_the_results_that_are_there(hub, push, scored, waits):
    assert push("--no-baselines") == 0
    hub.faults.order("POST", f"/api/datasets/{RESULTS}/commit/", Status(403))
    dates = {path: path.stat().st_mtime_ns for path in scored.rglob("*") if path.is_file()}
    assert [push(), len(entries(hub)), push(), len(entries(hub))] == [2, 0, 0, len(ENTRIES)]
    assert {path: path.stat().st_mtime_ns for path in scored.rglob("*") if path.is_file()} == dates


@pytest.mark.slow
def test_they_can_be_a_pull_request(hub, push, capsys):
    assert push("--no-baselines") == 0
    for said in ("Submitted: ", "Already submitted: "):
        assert push("--create-pr") == 0
        assert f"{said}{hub.url}/datasets/{RESULTS}/discussions/1" in capsys.readouterr().out
    assert not entries(hub)
    assert len(entries(hub, "refs/pr/1")) == len(ENTRIES)
    assert len(results(hub).discussions) == 1


@pytest.mark.slow
def test_results_that_are_given_take_their_place(hub, push, scored, tmp_path):
    shutil.copytree(scored / "out" / "tiny" / "random", tmp_path / "given" / "random")
    for _ in range(2):
        assert push("--results", str(tmp_path / "given")) == 0
        assert shown() == {("random", task, "reported") for task in ("a_coat", "a_tre")}
