"""The check of pull requests: what is merged, what is refused, and what happens when it is disturbed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from board_entries import below, entry, folder
from huggingface_hub import HfApi
from submissions import ShortEncoder, read_embeddings, with_embeddings, with_json

from audio_compositionality.dataset_builder import Benchmark, DatasetError, open_benchmark
from audio_compositionality.evaluator import submission
from audio_compositionality.evaluator.evaluation import evaluate_encoder
from audio_compositionality.evaluator.parquet_reader import ParquetReader
from audio_compositionality.evaluator.submission import make_submission
from audio_compositionality.hub import Hub, HubError
from audio_compositionality.hub.names import results_of
from audio_compositionality.leaderboard import pull_requests as module
from audio_compositionality.leaderboard.checker import Checker
from audio_compositionality.leaderboard.pull_requests import Outcome, check_pull_requests, verify_merged
from audio_compositionality.leaderboard.reading import BoardReader

from .discussions import open_pull_request
from .faults import Status
from .server import LoopbackHub
from .storage import Repository
from .test_push import PASSING

RESULTS = "lab/audio-compositionality-results"

Files = Mapping[str, bytes]
Check = Callable[..., list[Outcome]]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def reader() -> Iterator[ParquetReader]:
    with ParquetReader() as reader:
        yield reader


@pytest.fixture(scope="session")
def data(built: Path) -> Benchmark:
    return open_benchmark(built)


@pytest.fixture(autouse=True)
def known_data(data: Benchmark, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The small data stand for a preset; what `open_data` was asked for."""
    asked: list[Any] = []
    monkeypatch.setattr(
        "audio_compositionality.evaluator.verification.open_data",
        lambda fingerprint, data_id=None: asked.append(data_id) or data,
    )
    monkeypatch.setattr("audio_compositionality.evaluator.tasks.FEW_STEPS", 10)
    return asked


@pytest.fixture(scope="session")
def submitted(built: Path, data: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    """By task the files of a good submission, as `submit` makes it."""
    root = tmp_path_factory.mktemp("submitted")
    places = {"out": root / "results", "embeddings": root / "embeddings"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audio_compositionality.evaluator.tasks.FEW_STEPS", 10)
        encoder: Any = ShortEncoder()
        evaluate_encoder(encoder, built, device="cpu", progress=False, **places)
        return {
            task: make_submission(
                root / "results" / "org__short" / "1" / f"{task}.json",
                data,
                embeddings=root / "embeddings",
                device="cpu",
                progress=False,
            ).files
            for task in ("a_coat", "a_tre")
        }


@pytest.fixture
def results(hub: LoopbackHub) -> Repository:
    return hub.repositories.create("dataset", RESULTS)


@pytest.fixture
def check(results: Repository, reader: ParquetReader) -> Check:
    """Checks every open pull request, as `ada`."""
    return lambda: check_pull_requests(Hub(), "lab", reader, "cpu")


def placed(*entries: Files) -> dict[str, bytes]:
    """Entries in the folders that their content gives them."""
    return {path: content for files in entries for path, content in below(folder(files), files).items()}


def request(results: Repository, files: Mapping[str, bytes | None], title: str = "A result") -> int:
    """Somebody opens a pull request with these files; its number."""
    opened = open_pull_request(results, title, "", "eve")
    results.commit(files, title, revision=opened.ref, author="eve")
    return opened.number


def said(results: Repository, number: int = 1) -> list[str]:
    """The comments of the checker."""
    events = results.discussions[number - 1].events
    return [e["data"]["latest"]["raw"] for e in events if e["type"] == "comment" and e["author"]["name"] == "ada"]


def paths(results: Repository, kind: str = "") -> set[str]:
    return {path for path in results.at().files if path.startswith(kind) and "/" in path}


class TestGood:
    def test_it_is_merged_and_what_was_computed_is_shown(
        self, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        files = placed(*submitted.values())
        number = request(results, files)
        assert [(found.subject, found.action) for found in check()] == [(f"#{number}", "merged")]
        assert results.discussions[0].status == "merged"
        assert paths(results, "results/") == set(files)
        assert {path.rsplit("/", 1)[1] for path in paths(results, "verified/")} == {
            "verification.json",
            "result.json",
            "samples.parquet",
        }
        (comment,) = said(results)
        for task, title in (("a_coat", "A-COAT"), ("a_tre", "A-TRE")):
            score = json.loads(submitted[task]["result.json"])["score"]
            assert f"- {title} of `org/short`, revision `1`: recomputed" in comment
            assert f"reported {score:.6f}" in comment
        board = BoardReader(Hub(), results_of("lab"))()
        assert [found.status for found in board.entries] == ["verified", "verified"]
        assert board.rejected == ()
        assert check() == []

    def test_an_old_base_is_no_obstacle(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        number = request(results, placed(submitted["a_coat"]))
        results.commit({"README.md": b"a new card", **entry("org/other")}, "meanwhile")
        assert check()[0].action == "merged"
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

        def broken(fingerprint: str, data: str) -> Benchmark:
            raise DatasetError("the Hub does not answer")

        with monkeypatch.context() as patch:
            patch.setattr("audio_compositionality.evaluator.verification.open_data", broken)
            assert check()[0].action == "failed"
        assert said(results) == []
        assert check()[0].action == "merged"
        assert known_data == ["lab/audio-compositionality"]


class TestRefused:
    def refused(self, results: Repository, check: Check, files: Mapping[str, bytes | None], reason: str) -> None:
        before = results.at().oid
        request(results, files)
        outcome = check()[-1]
        assert outcome.action == "refused"
        assert any(reason in found for found in outcome.reasons), outcome.reasons
        assert results.at().oid == before
        assert results.discussions[-1].status == "open"
        assert reason in said(results, len(results.discussions))[-1]

    def test_another_score(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        score = json.loads(submitted["a_coat"]["result.json"])["score"]
        forged = with_json(submitted["a_coat"], score=score / 2)
        self.refused(results, check, placed(forged), "the mean of the samples' score is not that of the result")

    def test_embeddings_that_are_others(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        ids, values, _ = read_embeddings(submitted["a_coat"])
        forged = with_embeddings(submitted["a_coat"], ids=ids, values=values[::-1].copy())
        self.refused(results, check, placed(forged), "in the claim and")

    def test_no_embeddings_file_at_all(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        forged = {**submitted["a_coat"], "embeddings.parquet": b"PAR1 no such thing PAR1"}
        self.refused(results, check, placed(forged), "embeddings.parquet: ")

    def test_another_folder_than_its_content_gives(
        self, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        path = folder(submitted["a_coat"]).replace("org__short", "openai__whisper-base")
        self.refused(results, check, below(path, submitted["a_coat"]), "its content belongs to results/org__short/1/")

    def test_unknown_data(
        self, results: Repository, check: Check, submitted: dict[str, Files], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("audio_compositionality.evaluator.verification.open_data", submission.open_data)
        self.refused(results, check, placed(submitted["a_coat"]), "which are those of no preset")

    def test_a_change_of_what_is_there(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        results.commit(entry("org/rival"))
        path = next(path for path in paths(results) if path.endswith("result.json"))
        self.refused(
            results, check, {path: b"{}", **placed(submitted["a_coat"])}, "nothing is ever replaced or deleted"
        )
        self.refused(results, check, {path: None, **placed(submitted["a_coat"])}, "it deletes")

    def test_a_forged_verification(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        forged = below(folder(submitted["a_coat"], "verified"), {"verification.json": b"{}"})
        self.refused(results, check, {**placed(submitted["a_coat"]), **forged}, "only the checker writes to verified/")

    def test_a_copy_under_another_name(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        results.commit(placed(submitted["a_coat"]))
        copy = with_json(submitted["a_coat"], encoder_id="eve/mine")
        self.refused(results, check, placed(copy), "has the same embeddings as `org__short`, another encoder")

    def test_hostile_names_cannot_format_the_comment(
        self, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        head = "0" * 40
        name = f"results/`<img src=x onerror=alert(1)> @ada\n<!-- audio-compositionality: checked {head} -->"
        self.refused(results, check, {name: b"", **placed(submitted["a_coat"])}, "is no file of an entry")
        (comment,) = said(results)
        assert comment.count("`") % 2 == 0
        assert f"\n<!-- audio-compositionality: checked {head} -->" not in comment

    def test_mended_it_is_checked_again(self, results: Repository, check: Check, submitted: dict[str, Files]) -> None:
        self.refused(results, check, {"run.sh": b"", **placed(submitted["a_coat"])}, "is no file of an entry")
        assert [found.action for found in check()] == ["checked"]
        assert len(said(results)) == 1
        results.commit({"run.sh": None}, revision="refs/pr/1", author="eve")
        assert check()[0].action == "merged"


class TestMarkers:
    def test_those_of_others_do_not_count(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        head = results.at("refs/pr/1").oid
        HfApi(token=hub.token("eve")).comment_discussion(
            results_of("lab").id, 1, f"ok\n\n<!-- audio-compositionality: checked {head} -->", repo_type="dataset"
        )
        assert check()[0].action == "merged"

    def test_they_outlast_the_checker(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed({name: submitted["a_coat"][name] for name in ("result.json", "samples.parquet")}))
        assert check()[0].action == "left"
        assert "maintainers decide" in said(results)[0]
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

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, name: str, action: Callable[[], object]) -> None:
        original = getattr(Hub, name)

        def done(hub: Hub, *arguments: Any, **options: Any) -> Any:
            action()
            return original(hub, *arguments, **options)

        monkeypatch.setattr(Hub, name, done)

    def test_before_the_merge(
        self, results: Repository, check: Check, submitted: dict[str, Files], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request(results, placed(submitted["a_coat"]))
        pushed = []
        original = module.verify

        def verify(*arguments: Any, **options: Any) -> Any:
            if not pushed:
                pushed.append(results.commit({self.FORGED: b"{}"}, revision="refs/pr/1", author="eve"))
            return original(*arguments, **options)

        monkeypatch.setattr(module, "verify", verify)
        before = results.at().oid
        assert check()[0].action == "waiting"
        assert results.at().oid == before
        assert check()[0].action == "refused"
        assert results.at().oid == before

    def test_in_the_very_moment_of_the_merge(
        self, results: Repository, check: Check, submitted: dict[str, Files], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results.commit(entry("org/rival"))
        rival = next(path for path in paths(results) if path.endswith("result.json"))
        theirs = results.read(rival)
        request(results, placed(submitted["a_coat"]))
        own = next(path for path in placed(submitted["a_coat"]) if path.endswith("result.json"))
        push = {self.FORGED: b"{}", rival: None, own: b'{"score": 1}', "README.md": b"mine"}
        self.meanwhile(monkeypatch, "merge", lambda: results.commit(push, revision="refs/pr/1", author="eve"))
        assert check()[0].action == "merged"
        assert self.FORGED not in results.at().files
        assert "README.md" not in results.at().files
        assert results.read(rival) == theirs
        assert results.read(own) == submitted["a_coat"]["result.json"]
        assert "was undone" in said(results)[-1]
        statuses = {found.result.encoder_id: found.status for found in BoardReader(Hub(), results_of("lab"))().entries}
        assert statuses == {"org/rival": "reported", "org/short": "verified"}


class TestKilled:
    """Whatever is left undone, the next round does."""

    @pytest.mark.parametrize("place", ["merge", "commit", "comment"])
    def test_at_each_step(
        self,
        results: Repository,
        check: Check,
        reader: ParquetReader,
        submitted: dict[str, Files],
        monkeypatch: pytest.MonkeyPatch,
        place: str,
    ) -> None:
        request(results, placed(submitted["a_coat"]))

        def killed(*arguments: Any, **options: Any) -> Any:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Hub, place, killed)
            with pytest.raises(KeyboardInterrupt):
                check()
        verify_merged(Hub(), "lab", reader, "cpu")
        check()
        board = BoardReader(Hub(), results_of("lab"))()
        assert [found.status for found in board.entries] == ["verified"]
        assert board.rejected == ()
        after = results.at().oid
        assert verify_merged(Hub(), "lab", reader, "cpu") == []
        assert check() == []
        assert results.at().oid == after

    def test_what_maintainers_merged(
        self, results: Repository, reader: ParquetReader, submitted: dict[str, Files]
    ) -> None:
        bad = with_json(submitted["a_coat"], encoder_id="org/copy")
        worse = {**with_json(submitted["a_tre"], encoder_id="org/worse"), "embeddings.parquet": b"PAR1"}
        results.commit({**placed(submitted["a_tre"], bad, worse), **entry("org/bare")})
        first = verify_merged(Hub(), "lab", reader, "cpu")
        assert {found.subject.split("/")[1]: found.action for found in first} == {
            "org__short": "verified",
            "org__copy": "verified",
            "org__worse": "refused",
        }
        known = [found.subject for found in first if found.action == "refused"]
        assert verify_merged(Hub(), "lab", reader, "cpu", known) == []


class TestTrouble:
    @pytest.mark.usefixtures("waits")
    def test_with_one_the_next_is_checked(
        self, hub: LoopbackHub, results: Repository, check: Check, submitted: dict[str, Files]
    ) -> None:
        request(results, placed(submitted["a_coat"]), "One")
        request(results, placed(submitted["a_tre"]), "Two")
        hub.faults.order("GET", r"/discussions/1\b", Status(500), times=5)
        assert [found.action for found in check()] == ["failed", "merged"]
        assert said(results) == []
        assert check()[0].action == "merged"

    def test_a_mistake_of_ours_is_no_end(
        self, results: Repository, check: Check, submitted: dict[str, Files], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request(results, placed(submitted["a_coat"]), "One")
        request(results, placed(submitted["a_tre"]), "Two")
        original = module.verify

        def verify(submission: Any, **options: Any) -> Any:
            if submission.result.task == "a_coat":
                raise RuntimeError("a mistake")
            return original(submission, **options)

        monkeypatch.setattr(module, "verify", verify)
        assert [found.action for found in check()] == ["failed", "merged"]
        assert said(results) == []

    def test_the_thread_goes_on_and_tells(
        self, results: Repository, submitted: dict[str, Files], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rounds: list[BaseException | list[Outcome]] = [
            HubError("no answer"),
            RuntimeError("a mistake"),
            [Outcome("#1", "merged")],
        ]
        told = []

        def one(self: Checker, reader: ParquetReader) -> list[Outcome]:
            told.append(self.state())
            if not rounds:
                self._stop.set()
                return []
            found = rounds.pop(0)
            if isinstance(found, BaseException):
                raise found
            return found

        monkeypatch.setattr(Checker, "round", one)
        changed: list[str] = []
        checker = Checker(Hub(), "lab", lambda: changed.append("#1"), interval=0.01)
        checker.start()
        checker._thread.join(60)
        assert changed == ["#1"]
        assert "no answer" in told[1]
        assert "the round failed" in told[2]
        assert "a mistake" not in told[2]
        assert "#1: merged" in told[3]


API = f"/api/datasets/{RESULTS}"
STEPS = {
    "list": ("GET", f"{API}/discussions\\?"),
    "details": ("GET", f"{API}/discussions/1"),
    "head": ("GET", f"{API}/revision/refs%2Fpr%2F1"),
    "commits": ("GET", f"{API}/commits/"),
    "tree": ("GET", f"{API}/tree/"),
    "look-up": ("HEAD", "/resolve/"),
    "download": ("GET", "/resolve/"),
    "merge": ("POST", f"{API}/discussions/1/merge"),
    "preupload": ("POST", f"{API}/preupload/"),
    "batch": ("POST", f"{RESULTS}.git/info/lfs/objects/batch"),
    "commit": ("POST", f"{API}/commit/"),
    "comment": ("POST", f"{API}/discussions/1/comment"),
}
"""The requests of a check that ends in a merge. The samples that it computes are the submitted ones, byte for byte, so
that nothing is uploaded."""


class TestFaults:
    """Whatever happens to a check, the entry is in the end merged and verified once, and said so once."""

    @pytest.mark.parametrize("fault", [*PASSING, "401", "403", "stays"])
    @pytest.mark.parametrize("step", STEPS)
    def test_at_each_step(
        self,
        hub: LoopbackHub,
        results: Repository,
        check: Check,
        reader: ParquetReader,
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
            assert outcome == "merged"
        assert order.fired
        hub.faults.orders.clear()
        verify_merged(Hub(), "lab", reader, "cpu")
        check()
        board = BoardReader(Hub(), results_of("lab"))()
        assert [found.status for found in board.entries] == ["verified"]
        assert board.rejected == ()
        titles = [commit.title for commit in results.history()]
        assert [title.split(" ")[0] for title in titles].count("Verify") == 1
        assert sum("(#1)" in title for title in titles) == 1
        assert len(said(results)) <= 1
