"""The check of pull requests: what is added, what is refused, and what happens when it is disturbed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from board_entries import SECRET, below, entry, folder
from huggingface_hub import HfApi, constants
from submissions import ShortEncoder, read_embeddings, with_embeddings, with_json, with_sample_bytes, with_samples

from audio_compositionality.dataset_builder.data import Data, DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions import making, submission
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.verification import Verification, verify_folder
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import results_of
from audio_compositionality.leaderboard import pull_requests
from audio_compositionality.leaderboard.board import Board, BoardReader
from audio_compositionality.leaderboard.examination import Examiner, OverdueError, check_claim, in_own_process
from audio_compositionality.leaderboard.pull_requests import Budget, Checker, CheckOutcome, Checks
from audio_compositionality.leaderboard.tables import notes, origin_rows
from audio_compositionality.tasks.registry import load_task, load_tasks

from .discussions import open_pull_request
from .faults import Status
from .rounds import rounds
from .server import LoopbackHub
from .storage import Repository
from .test_push import PASSING

RESULTS = "lab/audio-compositionality-results"

DATA_WITH = submission.data_with

TASKS = ("a_coat", "a_tre")

Files = Mapping[str, bytes]
Check = Callable[..., list[CheckOutcome]]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", autouse=True)
def _short_fits() -> Iterator[None]:
    """How well a model is fitted matters elsewhere; a submission has the default settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audio_compositionality.tasks.shapes.fits.FEW_STEPS", 10)
        yield


@pytest.fixture(scope="module")
def data(built: Path) -> Data:
    return open_data(built)


@pytest.fixture(autouse=True)
def known_data(data: Data, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The small data stand for a preset; what else was given as their place."""
    asked: list[Any] = []
    monkeypatch.setattr(submission, "data_with", lambda recipe, fingerprint, source=None: asked.append(source) or data)
    return asked


@pytest.fixture(scope="module")
def submitted(data: Data, _short_fits: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    """By task the files of a good submission, as `submit` makes it."""
    root = tmp_path_factory.mktemp("submitted")
    options = RunOptions(out=root / "results", store=root / "store", device="cpu", progress=False)
    evaluate_models([ShortEncoder()], data, load_tasks(TASKS), options)
    place = root / "results" / "org__short" / "1"
    how: dict[str, Any] = {"store": root / "store", "device": "cpu", "progress": False}
    return {task: make_submission(place / f"{task}.json", data, **how).files for task in TASKS}


@pytest.fixture
def results(hub: LoopbackHub) -> Repository:
    return hub.repositories.create("dataset", RESULTS)


def new_checks(**options: Any) -> Checks:
    """A checker that was just started, as `ada`. It recomputes in this process, which is quicker."""
    return Checks(
        Hub(), "lab", SECRET, device="cpu", **{"recompute": verify_folder, "check_claim": check_claim} | options
    )


@pytest.fixture
def check(results: Repository) -> Check:
    """Checks open pull requests, to their end."""
    return lambda **options: rounds(new_checks(**options))


@pytest.fixture
def verify_merged(results: Repository) -> Check:
    """Verifies what main has."""
    return lambda **options: new_checks(**options).verify_merged()


def board() -> Board:
    """What a board shows."""
    return BoardReader(Hub(), results_of("lab"), SECRET)()


def placed(*entries: Files) -> dict[str, bytes]:
    """Entries in the folders that their content gives them."""
    return {path: content for files in entries for path, content in below(folder(files), files).items()}


def request(results: Repository, files: Mapping[str, bytes | None], author: str = "eve") -> int:
    """Somebody opens a pull request with these files; its number."""
    opened = open_pull_request(results, "A result", "", author)
    results.commit(files, "A result", revision=opened.ref, author=author)
    return opened.number


def rescored(files: Files, data: Data) -> dict[str, bytes]:
    """A submission whose scores are those of its embeddings, as somebody would send it who has changed them."""
    made = submission.parse_submission(files, None)
    opened = submission.open_result_task(made.result)
    outputs = submission.submitted_outputs(made, opened)
    assert outputs is not None
    computed, samples = making.rescored(made.result, opened, outputs, "cpu", False)
    return {**files, "result.json": computed.dumps().encode(), "samples.csv": samples.dumps().encode()}


def said(results: Repository, number: int = 1) -> list[str]:
    """The comments of the checker that settle a pull request."""
    return [text for text in comments(results, number) if "<!-- audio-compositionality: checked " in text]


def comments(results: Repository, number: int = 1) -> list[str]:
    """All comments of the checker."""
    events = results.discussions[number - 1].events
    return [e["data"]["latest"]["raw"] for e in events if e["type"] == "comment" and e["author"]["name"] == "ada"]


def paths(results: Repository, kind: str = "") -> set[str]:
    return {path for path in results.at().files if path.startswith(kind) and "/" in path}


class TestGood:
    def test_it_is_added_and_what_was_computed_is_shown(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        files = placed(*submitted.values())
        number = request(results, files)
        before = results.at().oid
        assert [(outcome.subject, outcome.action) for outcome in check()] == [(f"#{number}", "added")]
        assert results.discussions[0].status == "closed"
        assert {path: results.read(path) for path in paths(results, "results/")} == files
        assert {path.rsplit("/", 1)[1] for path in paths(results, "verified/")} == {
            "verification.json",
            "result.json",
            "samples.csv",
        }
        history = list(results.history())
        made = history[: [commit.oid for commit in history].index(before)]
        assert {commit.title for commit in made} == {f"Add {task} of org/short (#{number} by eve)" for task in TASKS}
        (comment,) = said(results)
        for commit in made:
            assert f"[{commit.oid[:8]}]({hub.url}/datasets/{RESULTS}/commit/{commit.oid})" in comment
        for task, title in (("a_coat", "A-COAT"), ("a_tre", "A-TRE")):
            score = json.loads(submitted[task]["result.json"])["measures"][task]
            assert f"- {title} of `org/short`, revision `1`: recomputed" in comment
            assert f"reported {score:.6f}" in comment
        shown = board()
        assert [(entry.status, entry.submitter) for entry in shown.entries] == [("verified", "eve")] * 2
        assert shown.rejected == ()
        assert check() == []

    def test_what_the_pull_request_has_uploaded_is_not_sent_again(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        hub.requests.clear()
        assert check()[0].action == "added"
        assert not hub.made("PUT")

    def test_nothing_that_was_fetched_stays(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(with_sample_bytes(submitted["a_coat"], b"?")))
        request(results, placed(submitted["a_tre"]), "mallory")
        assert [outcome.action for outcome in check()] == ["refused", "added"]
        cache = Path(constants.HF_HUB_CACHE)
        assert (cache / f"datasets--{RESULTS.replace('/', '--')}").is_dir()
        assert [path for path in cache.rglob("*") if path.is_file() and path.parent.name == "blobs"] == []

    def test_an_old_base_is_no_obstacle(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        number = request(results, placed(submitted["a_coat"]))
        results.commit({"README.md": b"a new card", **entry("org/other")}, "meanwhile")
        assert check()[0].action == "added"
        assert results.read("README.md") == b"a new card"
        assert len(said(results, number)) == 1

    def test_the_data_of_the_organisation(
        self,
        hub: LoopbackHub,
        results: Repository,
        check: Check,
        submitted: dict[str, Files],
        known_data: list[Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        hub.repositories.create("dataset", "lab/audio-compositionality")

        def broken(*_: Any, **__: Any) -> Verification:
            raise DatasetError("the Hub does not answer")

        assert check(recompute=broken)[0].action == "failed"
        assert said(results) == []
        assert check()[0].action == "added"
        assert known_data == ["lab/audio-compositionality"]


class TestRefused:
    def refused(self, results: Repository, check: Check, files: Mapping[str, bytes | None], reason: str) -> None:
        before = results.at().oid
        request(results, files)
        outcome = check()[-1]
        assert outcome.action == "refused"
        assert any(reason in line for line in outcome.reasons), outcome.reasons
        assert results.at().oid == before
        assert results.discussions[-1].status == "open"
        assert reason in said(results, len(results.discussions))[-1]

    def test_another_score(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        measures = json.loads(submitted["a_coat"]["result.json"])["measures"]
        forged = with_json(submitted["a_coat"], measures={**measures, "a_coat": measures["a_coat"] / 2})
        self.refused(results, check, placed(forged), "a_coat")

    def test_embeddings_that_are_others(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        tensors, _ = read_embeddings(submitted["a_coat"])
        forged = with_embeddings(submitted["a_coat"], values=tensors["values"][::-1].copy())
        self.refused(results, check, placed(forged), "in the claim and")

    def test_no_embeddings_file_at_all(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        forged = {**submitted["a_coat"], "embeddings.safetensors": b"no such thing"}
        self.refused(results, check, placed(forged), "embeddings.safetensors: ")

    def test_another_folder_than_its_content_gives(
        self, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        path = folder(submitted["a_coat"]).replace("org__short", "openai__whisper-base")
        self.refused(results, check, below(path, submitted["a_coat"]), "its content belongs to results/org__short/1/")

    def test_unknown_data(
        self, results: Repository, check: Check, submitted: dict[str, Files], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(submission, "data_with", DATA_WITH)
        self.refused(results, check, placed(submitted["a_coat"]), "which no preset has")

    def test_a_change_of_what_is_there(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        results.commit(entry("org/rival"))
        path = next(path for path in paths(results) if path.endswith("result.json"))
        self.refused(
            results, check, {path: b"{}", **placed(submitted["a_coat"])}, "nothing is ever replaced or deleted"
        )
        self.refused(results, check, {path: None, **placed(submitted["a_coat"])}, "it deletes")

    @pytest.mark.parametrize("part", ["a" * 201, "a" * 301, "ä" * 101], ids=["201", "301", "202 bytes"])
    def test_a_part_of_a_path_that_is_too_long(
        self, results: Repository, check: Check, submitted: dict[str, Files], part: str
    ) -> None:
        path = folder(submitted["a_coat"]).replace("org__short", part)
        reason = f"is too long: it has {len(part.encode())} bytes; at most 200 are allowed"
        self.refused(results, check, below(path, submitted["a_coat"]), reason)

    def test_a_forged_verification(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        forged = below(folder(submitted["a_coat"], "verified"), {"verification.json": b"{}"})
        self.refused(results, check, {**placed(submitted["a_coat"]), **forged}, "only the checker writes to verified/")

    def test_hostile_names_cannot_format_the_comment(
        self, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        head = "0" * 40
        name = f"results/`<img src=x onerror=alert(1)> @ada\n<!-- audio-compositionality: checked {head} -->"
        self.refused(results, check, {name: b"", **placed(submitted["a_coat"])}, "is no file of an entry")
        (comment,) = said(results)
        assert comment.count("`") % 2 == 0
        assert f"\n<!-- audio-compositionality: checked {head} -->" not in comment

    def test_hostile_settings_cannot_format_the_comment(
        self, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        forged = with_json(submitted["a_coat"], settings={"@octocat [Verified](https://evil.example)": 1})
        self.refused(results, check, placed(forged), "@octocat")
        (comment,) = said(results)
        assert comment.count("`") % 2 == 0
        # What is not code is formatted.
        assert "octocat" not in "".join(comment.split("`")[::2])

    def test_mended_it_is_checked_again(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        self.refused(results, check, {"run.sh": b"", **placed(submitted["a_coat"])}, "is no file of an entry")
        assert [outcome.action for outcome in check()] == ["checked"]
        assert len(said(results)) == 1
        results.commit({"run.sh": None}, revision="refs/pr/1", author="eve")
        assert check()[0].action == "added"


class TestLeft:
    """What the checker does not decide."""

    def left(self, results: Repository, check: Check, files: Mapping[str, bytes | None], reason: str) -> None:
        before = results.at().oid
        number = request(results, files)
        outcome = next(one for one in check() if one.subject == f"#{number}")
        assert outcome.action == "left"
        assert any(reason in line for line in outcome.reasons), outcome.reasons
        assert results.at().oid == before
        assert results.discussions[number - 1].status == "open"
        (comment,) = said(results, number)
        assert reason in comment
        assert "\n\n\n" not in comment
        assert [outcome.action for outcome in check() if outcome.subject == f"#{number}"] == ["checked"]

    def test_without_embeddings(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        bare = {name: submitted["a_coat"][name] for name in ("result.json", "samples.csv")}
        self.left(results, check, placed(bare, submitted["a_tre"]), "it has no embeddings")
        assert "- A-TRE of `org/short`" in said(results)[0]

    @pytest.mark.parametrize("field", ["settings", "ids"])
    def test_without_embeddings_the_rest_is_checked(
        self, results: Repository, check: Check, submitted: dict[str, Files], field: str
    ) -> None:
        bare = {name: submitted["a_coat"][name] for name in ("result.json", "samples.csv")}
        if field == "settings":
            forged, reason = with_json(bare, settings={"other": 1}), "its settings are"
        else:
            count = json.loads(bare["result.json"])["n"]
            forged, reason = with_samples(bare, id=[f"q{k}" for k in range(count)]), "its samples are not those"
        request(results, placed(forged))
        (outcome,) = check()
        assert outcome.action == "refused"
        assert reason in outcome.reasons[0]

    @pytest.mark.parametrize("how", ["as it is", "scaled", "shifted", "rotated", "another date"])
    def test_a_copy_under_another_name(
        self, results: Repository, check: Check, verify_merged: Check, submitted: dict[str, Files], how: str, data: Data
    ) -> None:
        results.commit(placed(submitted["a_coat"]))
        assert [outcome.action for outcome in verify_merged()] == ["verified"]
        copy = with_json(submitted["a_coat"], model={"id": "eve/mine"})
        tensors, _ = read_embeddings(copy)
        if how == "another date":
            copy = with_json(copy, date="2026-01-02T00:00:00+00:00")
        elif how != "as it is":
            values = tensors["values"].astype(np.float64)
            changed = {
                "scaled": lambda: tensors | {"scale": np.asarray(tensors["scale"] * 2)},
                "shifted": lambda: tensors | {"offset": tensors["offset"] + 1},
                "rotated": lambda: tensors | {"values": (values[:, ::-1] * -1).astype(np.float16)},
            }[how]()
            copy = rescored(with_embeddings(copy, **changed), data)
        self.left(results, check, placed(copy), "`its embeddings are")
        assert "org/short, results/org__short/1/a_coat-" in said(results)[0]

    def test_a_copy_in_the_same_pull_request(
        self, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        copy = with_json(submitted["a_coat"], model={"id": "org__short"})
        self.left(results, check, placed(submitted["a_coat"], copy), "its embeddings are those of org")

    def test_another_result_of_the_same_model_is_no_copy(
        self, results: Repository, check: Check, verify_merged: Check, submitted: dict[str, Files]
    ) -> None:
        results.commit(placed(submitted["a_coat"]))
        verify_merged()
        request(results, placed(with_json(submitted["a_coat"], model={"revision": "2"})))
        assert check()[0].action == "added"

    @pytest.mark.slow
    def test_a_claim_that_takes_too_long(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        bare = {name: submitted["a_coat"][name] for name in ("result.json", "samples.csv")}
        hangs = partial(in_own_process, time.sleep, 600, seconds=1)
        slow = {"check_claim": lambda *_: hangs()}
        self.left(results, lambda: check(**slow), placed(bare), "it could not be checked here: it was ended after")

    def test_the_same_weights_under_another_name_are_a_reproduction(
        self, results: Repository, check: Check, verify_merged: Check, submitted: dict[str, Files]
    ) -> None:
        owner = with_json(submitted["a_coat"], model={"weights_sha256": "a" * 64})
        results.commit(placed(owner))
        verify_merged()
        request(results, placed(with_json(owner, model={"id": "eve/again"})))
        assert check()[0].action == "added"
        assert (
            "is a reproduction: `its embeddings are those of org/short, results/org__short/1/a_coat-"
            in said(results)[0]
        )
        assert "which states the same weights" in said(results)[0]
        (again,) = board().of_model("eve/again")
        assert again.reproduces.startswith("results/org__short/1/a_coat-")
        assert ["reproduction of", again.reproduces] in origin_rows(again)
        assert "a reproduction of an earlier entry" in notes(again, load_task("a_coat").info)

    def test_what_takes_too_long(
        self, results: Repository, check: Check, verify_merged: Check, submitted: dict[str, Files]
    ) -> None:
        def slow(*_: Any, **__: Any) -> Verification:
            raise OverdueError("it was ended after 1800 s")

        files = placed(submitted["a_tre"])
        self.left(results, lambda: check(recompute=slow), files, "it could not be recomputed here: it was ended after")
        results.commit(files, author="ada")
        assert [outcome.action for outcome in verify_merged(recompute=slow)] == ["left"]


class TestMarkers:
    def test_those_of_others_do_not_count(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        head = results.at("refs/pr/1").oid
        HfApi(token=hub.token("eve")).comment_discussion(
            results_of("lab").id, 1, f"ok\n\n<!-- audio-compositionality: checked {head} -->", repo_type="dataset"
        )
        assert check()[0].action == "added"

    def test_they_outlast_the_checker(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed({name: submitted["a_coat"][name] for name in ("result.json", "samples.csv")}))
        assert check()[0].action == "left"
        assert "Maintainers decide" in said(results)[0]
        assert results.discussions[0].status == "open"
        hub.requests.clear()
        assert check()[0].action == "checked"
        assert not hub.made("GET", "resolve")
        assert not hub.made("POST")

    def test_drafts_wait(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        request(results, placed(submitted["a_coat"]))
        results.discussions[0].status = "draft"
        assert check()[0].action == "waiting"
        assert said(results) == []


class TestMoving:
    """Somebody pushes while the check is going on."""

    FORGED = "verified/eve__mine/1/a_coat-0123456789abcdef/verification.json"

    @pytest.fixture
    def disturbed(self, check: Check) -> Callable[[Callable[[], object]], list[CheckOutcome]]:
        """`disturbed(action)`: a round in which something is done while an entry is recomputed."""

        def round_of(action: Callable[[], object]) -> list[CheckOutcome]:
            def recompute(*arguments: Any, **options: Any) -> Verification:
                action()
                return verify_folder(*arguments, **options)

            return check(recompute=recompute)

        return round_of

    def test_during_the_check(
        self,
        results: Repository,
        check: Check,
        submitted: dict[str, Files],
        disturbed: Callable[..., list[CheckOutcome]],
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        before = results.at().oid
        outcomes = disturbed(lambda: results.commit({self.FORGED: b"{}"}, revision="refs/pr/1", author="eve"))
        assert outcomes[0].action == "waiting"
        assert results.at().oid == before
        assert check()[0].action == "refused"
        assert results.at().oid == before

    def test_withdrawn_during_the_check(
        self, results: Repository, submitted: dict[str, Files], disturbed: Callable[..., list[CheckOutcome]]
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        before = results.at().oid
        assert disturbed(lambda: setattr(results.discussions[0], "status", "closed"))[0].action == "waiting"
        assert results.at().oid == before
        assert said(results) == []

    @pytest.mark.parametrize("moment", ["commit", "comment", "close"])
    def test_in_the_very_moment(
        self,
        results: Repository,
        check: Check,
        verify_merged: Check,
        submitted: dict[str, Files],
        monkeypatch: pytest.MonkeyPatch,
        moment: str,
    ) -> None:
        results.commit(entry("org/rival"))
        there = {path: results.read(path) for path in paths(results)}
        rival = next(path for path in there if path.endswith("result.json"))
        files = placed(submitted["a_coat"])
        request(results, files)
        own = next(path for path in files if path.endswith("result.json"))
        push = {self.FORGED: b"{}", rival: None, own: b'{"score": 1}', "README.md": b"mine"}
        original = getattr(Hub, moment)

        def done(hub: Hub, *arguments: Any, **options: Any) -> Any:
            results.commit(push, revision="refs/pr/1", author="eve")
            return original(hub, *arguments, **options)

        monkeypatch.setattr(Hub, moment, done)
        assert check()[0].action == "added"
        assert results.discussions[0].status == "closed"
        assert check() == []
        assert verify_merged() == []
        assert "README.md" not in results.at().files
        assert {path: results.read(path) for path in paths(results, "results/")} == {**there, **files}
        assert {path.rsplit("/", 1)[0] for path in paths(results, "verified/")} == {
            folder(submitted["a_coat"], "verified")
        }
        statuses = {entry.model: entry.status for entry in board().entries}
        assert statuses == {"org/rival": "reported", "org/short": "verified"}


class TestKilled:
    """Whatever is left undone, the next round does."""

    @pytest.mark.parametrize("done", [False, True])
    @pytest.mark.parametrize(
        ("place", "k"), [("commit", 1), ("commit", 2), ("comment", 1), ("comment", 2), ("close", 1)]
    )
    def test_at_each_step(
        self,
        results: Repository,
        check: Check,
        verify_merged: Check,
        submitted: dict[str, Files],
        monkeypatch: pytest.MonkeyPatch,
        place: str,
        k: int,
        done: bool,
    ) -> None:
        request(results, placed(*submitted.values()))
        original = getattr(Hub, place)
        calls = []

        def killed(*arguments: Any, **options: Any) -> Any:
            calls.append(place)
            if len(calls) < k or done:
                answer = original(*arguments, **options)
            if len(calls) == k:
                raise KeyboardInterrupt
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(Hub, place, killed)
            with pytest.raises(KeyboardInterrupt):
                check()
        # An entry and its verification come together.
        assert verify_merged() == []
        assert [outcome.action for outcome in check()] == ([] if (place, done) == ("close", True) else ["added"])
        assert results.discussions[0].status == "closed"
        shown = board()
        assert [(entry.status, entry.submitter) for entry in shown.entries] == [("verified", "eve")] * 2
        assert shown.rejected == ()
        assert sum("(#1 by eve)" in commit.title for commit in results.history()) == 2
        assert len(said(results)) == 1
        after = results.at().oid
        assert verify_merged() == []
        assert check() == []
        assert results.at().oid == after


class TestMerged:
    """What maintainers have added to main by hand."""

    def test_it_is_verified(self, results: Repository, submitted: dict[str, Files]) -> None:
        copy = with_json(submitted["a_coat"], model={"id": "org/copy"})
        worse = {**with_json(submitted["a_tre"], model={"id": "org/worse"}), "embeddings.safetensors": b"?"}
        results.commit({**placed(*submitted.values(), copy, worse), **entry("org/bare")})
        checks = new_checks()
        # Of two encoders with the same embeddings both: that was the maintainers' decision.
        assert sorted((outcome.subject.split("/")[1], outcome.action) for outcome in checks.verify_merged()) == [
            ("org__copy", "verified"),
            ("org__short", "verified"),
            ("org__short", "verified"),
            ("org__worse", "refused"),
        ]
        assert checks.verify_merged() == []
        shown = board()
        assert {(entry.model, entry.status, entry.submitter) for entry in shown.entries} == {
            ("org/short", "verified", None),
            ("org/copy", "verified", None),
            ("org/worse", "reported", None),
            ("org/bare", "reported", None),
        }

    def test_what_is_no_record_does_not_count(
        self, results: Repository, verify_merged: Check, submitted: dict[str, Files]
    ) -> None:
        files = submitted["a_coat"]
        forged = below(folder(files, "verified"), {"verification.json": b"{}", "result.json": files["result.json"]})
        results.commit({**placed(files), **forged})
        assert [outcome.action for outcome in verify_merged()] == ["verified"]
        shown = board()
        assert [entry.status for entry in shown.entries] == ["verified"]
        assert shown.rejected == ()
        assert verify_merged() == []

    @pytest.mark.usefixtures("waits")
    def test_trouble_with_one_is_no_end(
        self, hub: LoopbackHub, results: Repository, verify_merged: Check, submitted: dict[str, Files]
    ) -> None:
        results.commit(placed(*submitted.values()))
        hub.faults.order("GET", "/resolve/.*/a_coat-.*/samples.csv", Status(500), times=5)
        assert [outcome.action for outcome in verify_merged()] == ["failed", "verified"]
        assert [outcome.action for outcome in verify_merged()] == ["verified"]

    def test_the_pull_requests_do_not_wait_for_it(
        self, hub: LoopbackHub, results: Repository, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        hub.faults.order("GET", f"{API}/tree/", Status(403))
        outcomes = Checker(new_checks()).round()
        assert [(outcome.subject, outcome.action) for outcome in outcomes] == [("main", "failed"), ("#1", "added")]


class TestMany:
    def test_one_of_an_author_in_a_round(self, results: Repository, submitted: dict[str, Files]) -> None:
        for author in ("eve", "eve", "mallory"):
            request(results, placed(with_sample_bytes(submitted["a_coat"], author.encode())), author)
        checks = new_checks()
        assert [outcome.action for outcome in checks.check_pull_requests()] == ["refused", "waiting", "refused"]
        assert [outcome.action for outcome in checks.check_pull_requests()] == ["waiting", "refused", "checked"]
        assert [outcome.action for outcome in checks.check_pull_requests()] == ["checked"] * 3

    def test_the_limit_of_a_round(self, results: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pull_requests, "MAX_CHECKS", 2)
        for number in range(5):
            request(results, {"run.sh": b""}, f"user{number}")
        checks = new_checks()
        rounds = [[outcome.action for outcome in checks.check_pull_requests()] for _ in range(3)]
        assert rounds[0] == ["refused", "refused", "waiting", "waiting", "waiting"]
        assert rounds[1][2:] == ["refused", "refused", "waiting"]
        assert rounds[2][4] == "refused"

    def test_all_have_their_turn(self, results: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pull_requests, "MAX_LOOKS", 2)
        for number in range(5):
            request(results, {"run.sh": b""}, f"user{number}")
        # Drafts are looked at again and again, and must not keep others from it.
        for discussion in results.discussions[:2]:
            discussion.status = "draft"
        checks = new_checks()
        for _ in range(3):
            checks.check_pull_requests()
        assert [len(said(results, number)) for number in range(1, 6)] == [0, 0, 1, 1, 1]
        results.commit({"other.sh": b""}, revision="refs/pr/5", author="user4")
        for _ in range(3):
            checks.check_pull_requests()
        assert [len(said(results, number)) for number in range(1, 6)] == [0, 0, 1, 1, 2]

    def test_many_of_an_author_who_has_to_wait_take_no_turn_of_others(
        self, results: Repository, submitted: dict[str, Files], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pull_requests, "MAX_LOOKS", 2)
        monkeypatch.setattr(Examiner, "compared", lambda _, examined, earlier: examined)
        now = [0.0]

        def slow(*arguments: Any, **options: Any) -> Verification:
            now[0] += 10
            return verify_folder(*arguments, **options)

        checks = new_checks(recompute=slow, budget=Budget(seconds=15, window=100, clock=lambda: now[0]))
        request(results, TestTurns.entries_of(submitted, "eve", 4))
        checks.check_pull_requests()
        # While a pull request of its author goes on, and when there is no time left.
        for _ in range(3):
            request(results, {"run.sh": b""})
        for number in (5, 6):
            request(results, {"run.sh": b""}, f"user{number}")
            outcomes = {outcome.subject: outcome for outcome in checks.check_pull_requests()}
            assert outcomes[f"#{number}"].action == "refused"
            assert outcomes["#1"].reasons[0].startswith("2 of 4 entries checked")

    def test_what_was_checked_costs_one_call(self, hub: LoopbackHub, results: Repository) -> None:
        for number in range(3):
            request(results, {"run.sh": b""}, f"user{number}")
        checks = new_checks()
        checks.check_pull_requests()
        hub.requests.clear()
        assert [outcome.action for outcome in checks.check_pull_requests()] == ["checked"] * 3
        # The list, the commits of main, and each head.
        assert len(hub.requests) == 5

    def test_an_author_whose_checks_take_long_waits_and_others_do_not(
        self, results: Repository, submitted: dict[str, Files]
    ) -> None:
        now = [0.0]

        def slow(*arguments: Any, **options: Any) -> Verification:
            now[0] += 3_600
            return verify_folder(*arguments, **options)

        checks = new_checks(recompute=slow, budget=Budget(seconds=3_000, window=86_400, clock=lambda: now[0]))
        request(results, placed(submitted["a_coat"]))
        assert [outcome.action for outcome in checks.check_pull_requests()] == ["added"]
        request(results, placed(submitted["a_tre"]))
        request(results, {"run.sh": b""}, "mallory")
        waiting, refused = checks.check_pull_requests()
        assert (waiting.action, refused.action) == ("waiting", "refused")
        assert "is used up" in waiting.reasons[0]
        now[0] += 90_000
        assert checks.check_pull_requests()[0].action == "added"


class TestTurns:
    """Of each author an entry, and then of the next: nobody waits for all that another has sent."""

    @staticmethod
    def entries_of(submitted: Mapping[str, Files], author: str, count: int) -> dict[str, bytes]:
        """Results of so many revisions of a model of an author."""
        models = [{"id": f"{author}/m", "revision": str(number)} for number in range(count)]
        return placed(*(with_json(submitted["a_coat"], model=model) for model in models))

    @pytest.fixture
    def turns(self, results: Repository, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The authors of the entries that were recomputed, in that order. Copies are another matter."""
        monkeypatch.setattr(Examiner, "compared", lambda _, examined, earlier: examined)
        return []

    def new_checks(self, turns: list[str], now: list[float], during: Callable[[], object], **options: Any) -> Checks:
        """Checks of which each entry takes four seconds of a clock, while something is done."""

        def recompute(place: Path, name: str, **rest: Any) -> Verification:
            turns.append(name.split("/")[1].removesuffix("__m"))
            during()
            now[0] += 4
            return verify_folder(place, name=name, **rest)

        budget = Budget(window=100, clock=lambda: now[0], **{"seconds": 1_000, **options})
        return new_checks(recompute=recompute, budget=budget)

    @pytest.mark.slow
    def test_ten_entries_of_one_keep_another_waiting_for_one(
        self, results: Repository, submitted: dict[str, Files], turns: list[str]
    ) -> None:
        request(results, self.entries_of(submitted, "eve", 10))
        request(results, self.entries_of(submitted, "mallory", 2), "mallory")
        checks = self.new_checks(turns, [0.0], lambda: None)
        assert checks.check_pull_requests()[0].reasons == ("1 of 10 entries checked, goes on in the next round",)
        rounds(checks)
        assert turns == ["eve", "mallory", "eve", "mallory", *["eve"] * 8]
        assert [discussion.status for discussion in results.discussions] == ["closed"] * 2
        first, last = comments(results)
        head = results.at("refs/pr/1").oid
        assert first == f"1 of 10 entries checked of commit {head[:8]}; goes on in the next round."
        assert last.startswith("Added to main")
        assert len(board().entries) == 12

    def test_who_comes_while_an_entry_is_checked_waits_for_this_one(
        self, results: Repository, submitted: dict[str, Files], turns: list[str]
    ) -> None:
        request(results, self.entries_of(submitted, "eve", 4))
        mallorys = self.entries_of(submitted, "mallory", 1)
        come = [partial(request, results, mallorys, "mallory")]
        rounds(self.new_checks(turns, [0.0], lambda: come and come.pop()()))
        assert turns == ["eve", "mallory", "eve", "eve", "eve"]

    def test_the_budget_is_looked_at_for_each_entry(
        self, results: Repository, submitted: dict[str, Files], turns: list[str]
    ) -> None:
        request(results, self.entries_of(submitted, "eve", 5))
        now = [0.0]
        checks = self.new_checks(turns, now, lambda: None, seconds=8)
        rounds(checks)
        assert (len(turns), now[0]) == (2, 8.0)
        (outcome,) = checks.check_pull_requests()
        assert outcome.reasons == ("2 of 5 entries checked", "today's time for the checks of its author is used up")
        assert "goes on when there is time again" in comments(results)[-1]
        for _ in range(2):
            assert results.discussions[0].status == "open"
            now[0] += 200
            rounds(checks)
        # None is checked twice.
        assert len(turns) == 5
        assert results.discussions[0].status == "closed"

    def test_trouble_with_one_entry_repeats_none_of_the_others(
        self, results: Repository, submitted: dict[str, Files], turns: list[str]
    ) -> None:
        request(results, self.entries_of(submitted, "eve", 3))
        trouble = [HubError("the Hub does not answer")]

        def during() -> None:
            if len(turns) == 2 and trouble:
                raise trouble.pop()

        checks = self.new_checks(turns, [0.0], during)
        assert rounds(checks)[0].action == "failed"
        assert rounds(checks)[0].action == "added"
        assert len(turns) == 4

    def test_a_new_commit_is_checked_from_its_first_entry(
        self, results: Repository, submitted: dict[str, Files], turns: list[str]
    ) -> None:
        request(results, self.entries_of(submitted, "eve", 2))
        checks = self.new_checks(turns, [0.0], lambda: None)
        checks.check_pull_requests()
        results.commit({"run.sh": b""}, revision="refs/pr/1", author="eve")
        assert rounds(checks)[0].action == "refused"
        assert len(turns) == 1

    def test_a_copy_of_what_came_to_main_meanwhile_is_left(
        self, results: Repository, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(submitted["a_tre"], submitted["a_coat"]))
        request(results, placed(with_json(submitted["a_coat"], model={"id": "mallory/m"})), "mallory")
        assert [outcome.action for outcome in rounds(new_checks())] == ["left"]
        assert {entry.model for entry in board().entries} == {"mallory/m"}

    def test_of_main_one_a_round(self, results: Repository, submitted: dict[str, Files], turns: list[str]) -> None:
        results.commit(self.entries_of(submitted, "ada", 3))
        request(results, self.entries_of(submitted, "eve", 2))
        checks = self.new_checks(turns, [0.0], lambda: None)
        checker = Checker(checks, interval=3_600)
        checker.start()
        for _ in range(600):
            if len(turns) == 5 and results.discussions[0].status == "closed":
                break
            time.sleep(0.1)
        checker.stop()
        assert turns == ["ada", "eve", "ada", "eve", "ada"]


class TestTrouble:
    @pytest.mark.usefixtures("waits")
    def test_with_one_the_next_is_checked(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        request(results, placed(submitted["a_tre"]), "mallory")
        hub.faults.order("GET", r"/discussions/1\b", Status(500), times=5)
        assert [outcome.action for outcome in check()] == ["failed", "added"]
        assert said(results) == []
        assert check()[0].action == "added"

    def test_a_mistake_of_ours_is_no_end(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        request(results, placed(submitted["a_coat"]))
        request(results, placed(submitted["a_tre"]), "mallory")

        def recompute(place: Path, name: str, **options: Any) -> Verification:
            if "/a_coat-" in name:
                raise RuntimeError("a mistake")
            return verify_folder(place, name=name, **options)

        assert [outcome.action for outcome in check(recompute=recompute)] == ["failed", "added"]
        assert said(results) == []

    def test_the_thread_goes_on_and_tells(self, results: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        rounds: list[BaseException | list[CheckOutcome]] = [
            HubError("no answer"),
            RuntimeError("a mistake"),
            [CheckOutcome("#1", "added")],
        ]
        told = []

        def one(self: Checker) -> list[CheckOutcome]:
            told.append(self.state())
            if not rounds:
                self._stop.set()
                return []
            made = rounds.pop(0)
            if isinstance(made, BaseException):
                raise made
            return made

        monkeypatch.setattr(Checker, "round", one)
        changed: list[str] = []
        checker = Checker(new_checks(), lambda: changed.append("#1"), interval=0.01)
        checker.start()
        checker._thread.join(60)
        assert changed == ["#1"]
        assert "no answer" in told[1]
        assert "the round failed" in told[2]
        assert "a mistake" not in told[2]
        assert "#1: added" in told[3]


API = f"/api/datasets/{RESULTS}"
STEPS = {
    "list": ("GET", f"{API}/discussions\\?"),
    "details": ("GET", f"{API}/discussions/1"),
    "head": ("GET", f"{API}/revision/refs%2Fpr%2F1"),
    "commits": ("GET", f"{API}/commits/"),
    "tree": ("GET", f"{API}/tree/"),
    "look-up": ("HEAD", "/resolve/"),
    "download": ("GET", "/resolve/"),
    "preupload": ("POST", f"{API}/preupload/"),
    "batch": ("POST", f"{RESULTS}.git/info/lfs/objects/batch"),
    "commit": ("POST", f"{API}/commit/"),
    "comment": ("POST", f"{API}/discussions/1/comment"),
    "close": ("POST", f"{API}/discussions/1/status"),
}
"""The requests of a check whose entry is added. The samples that it computes are the submitted ones, byte for byte, so
that nothing is uploaded."""


class TestFaults:
    """Whatever happens to a check, the entry is in the end added and verified once, and said so once."""

    @pytest.mark.slow
    @pytest.mark.parametrize("fault", [*PASSING, "401", "403", "stays"])
    @pytest.mark.parametrize("step", STEPS)
    def test_at_each_step(
        self,
        hub: LoopbackHub,
        results: Repository,
        check: Check,
        verify_merged: Check,
        submitted: dict[str, Files],
        waits: list[float],
        step: str,
        fault: str,
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        kinds = {"401": Status(401), "403": Status(403), "stays": Status(503)}
        order = hub.faults.order(
            *STEPS[step], kinds.get(fault) or PASSING[fault], times=None if fault == "stays" else 1
        )
        outcome = ""
        try:
            outcome = check()[0].action
        except HubError:
            # Only what concerns all of them ends a round.
            assert fault not in PASSING
        if fault in PASSING:
            assert outcome == "added"
        assert order.fired
        hub.faults.orders.clear()
        # An entry and its verification come together.
        assert verify_merged() == []
        check()
        assert results.discussions[0].status == "closed"
        shown = board()
        assert [(entry.status, entry.submitter) for entry in shown.entries] == [("verified", "eve")]
        assert shown.rejected == ()
        assert sum("(#1 by eve)" in commit.title for commit in results.history()) == 1
        assert len(said(results)) == 1
