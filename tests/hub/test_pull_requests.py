"""The check of pull requests: what is added, what is refused, and what happens when it is disturbed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from board_entries import SECRET, below, entry, folder
from huggingface_hub import HfApi, constants
from submissions import read_embeddings, with_embeddings, with_json, with_sample_bytes

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.evaluator.submissions import making, submission
from audio_compositionality.evaluator.submissions.verification import Verification, verify_folder
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError
from audio_compositionality.hub.names import results_of
from audio_compositionality.leaderboard import pull_requests
from audio_compositionality.leaderboard.examination import OverdueError, check_claim, in_own_process
from audio_compositionality.leaderboard.pull_requests import Budget, Checker, CheckOutcome, Checks
from audio_compositionality.leaderboard.tables import notes, origin_rows
from audio_compositionality.tasks.registry import load_task

from .conftest import RESULTS, TASKS, Files, board, rounds
from .discussions import open_pull_request
from .faults import PASSING, Status, steps_of
from .storage import Repository

Submitted = Mapping[str, Files]

pytestmark = pytest.mark.usefixtures("one_thread", "short_fits")


@pytest.fixture(autouse=True)
def known_data(built_data, monkeypatch):
    """The small data stand for a preset; what else was given as their place."""
    asked: list[Any] = []
    monkeypatch.setattr(submission, "data_with", lambda _, fingerprint, source=None: asked.append(source) or built_data)
    return asked


def new_checks(**options: Any) -> Checks:
    """A checker that was just started, as `ada`. It recomputes in this process, which is quicker."""
    return Checks(
        Hub(), "lab", SECRET, device="cpu", **{"recompute": verify_folder, "check_claim": check_claim} | options
    )


def check(**options: Any) -> list[CheckOutcome]:
    """Checks open pull requests, to their end."""
    return rounds(new_checks(**options))


def verify_merged(**options: Any) -> list[CheckOutcome]:
    """Verifies what main has."""
    return new_checks(**options).verify_merged()


def placed(*entries: Files) -> dict[str, bytes]:
    """Entries in the folders that their content gives them."""
    return {path: content for files in entries for path, content in below(folder(files), files).items()}


def request(results: Repository, files: Mapping[str, bytes | None], author: str = "eve") -> int:
    """Somebody opens a pull request with these files; its number."""
    opened = open_pull_request(results, "A result", "", author)
    results.commit(files, "A result", revision=opened.ref, author=author)
    return opened.number


def bare(files: Files) -> dict[str, bytes]:
    """A submission without embeddings."""
    return {name: files[name] for name in ("result.json", "samples.csv")}


def rescored(files: Files) -> dict[str, bytes]:
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


def is_added_once(results: Repository, entries: int) -> None:
    """The first pull request is closed, and its entries are on the board, verified."""
    assert results.discussions[0].status == "closed"
    shown = board()
    assert [(entry.status, entry.submitter) for entry in shown.entries] == [("verified", "eve")] * entries
    assert shown.rejected == ()
    assert sum("(#1 by eve)" in commit.title for commit in results.history()) == entries
    assert len(said(results)) == 1


class TestGood:
    def test_it_is_added_and_what_was_computed_is_shown(self, hub, results, submitted):
        files = placed(*submitted.values())
        number = request(results, files)
        # An old base is no obstacle.
        before = results.commit({"README.md": b"a new card"}, "meanwhile").oid
        hub.requests.clear()
        assert [(outcome.subject, outcome.action) for outcome in check()] == [(f"#{number}", "added")]
        # What the pull request has uploaded is not sent again.
        assert not hub.made("PUT")
        assert results.read("README.md") == b"a new card"
        assert {path: results.read(path) for path in paths(results, "results/")} == files
        names = {path.rsplit("/", 1)[1] for path in paths(results, "verified/")}
        assert names == {"verification.json", "result.json", "samples.csv"}
        made = list(takewhile(lambda commit: commit.oid != before, results.history()))
        assert {commit.title for commit in made} == {f"Add {task} of org/short (#{number} by eve)" for task in TASKS}
        (comment,) = said(results)
        for commit in made:
            assert f"[{commit.oid[:8]}]({hub.url}/datasets/{RESULTS}/commit/{commit.oid})" in comment
        for task, title in (("a_coat", "A-COAT"), ("a_tre", "A-TRE")):
            score = json.loads(submitted[task]["result.json"])["measures"][task]
            assert f"- {title} of `org/short`, revision `1`: recomputed" in comment
            assert f"reported {score:.6f}" in comment
        is_added_once(results, 2)
        assert check() == []

    def test_nothing_that_was_fetched_stays(self, hub, results, submitted):
        request(results, placed(with_sample_bytes(submitted["a_coat"], b"?")))
        request(results, placed(submitted["a_tre"]), "mallory")
        assert [outcome.action for outcome in check()] == ["refused", "added"]
        cache = Path(constants.HF_HUB_CACHE)
        assert (cache / f"datasets--{RESULTS.replace('/', '--')}").is_dir()
        assert [path for path in cache.rglob("*") if path.is_file() and path.parent.name == "blobs"] == []

    def test_the_data_of_the_organisation(self, hub, results, submitted, known_data, monkeypatch):
        request(results, placed(submitted["a_coat"]))
        hub.repositories.create("dataset", "lab/audio-compositionality")

        def broken(*_: Any, **__: Any) -> Verification:
            raise DatasetError("the Hub does not answer")

        assert check(recompute=broken)[0].action == "failed"
        assert said(results) == []
        assert check()[0].action == "added"
        assert known_data == ["lab/audio-compositionality"]


def of_embeddings(files: Files) -> dict[str, bytes]:
    """With the embeddings in another order."""
    return with_embeddings(files, values=read_embeddings(files)["values"][::-1].copy())


def of_score(files: Files) -> dict[str, bytes]:
    """With half the score."""
    measures = json.loads(files["result.json"])["measures"]
    return with_json(files, measures={**measures, "a_coat": measures["a_coat"] / 2})


def named(part: str) -> Callable[[Files], dict[str, bytes]]:
    """In the folder of another model."""
    return lambda files: below(folder(files).replace("org__short", part), files)


HEAD = "0" * 40
IMAGE = f"results/`<img src=x onerror=alert(1)> @ada\n<!-- audio-compositionality: checked {HEAD} -->"
OCTOCAT = {"@octocat [Verified](https://evil.example)": 1}

FORGED: dict[str, tuple[Callable[[Files], Mapping[str, bytes | None]], str]] = {
    "another score": (lambda files: placed(of_score(files)), "a_coat"),
    "embeddings that are others": (lambda files: placed(of_embeddings(files)), "in the claim and"),
    "another folder": (named("openai__whisper-base"), "its content belongs to results/org__short/1/"),
    "a name of 202 bytes": (named("ä" * 101), "is too long: it has 202 bytes; at most 200 are allowed"),
    "a verification": (
        lambda files: {**placed(files), **below(folder(files, "verified"), {"verification.json": b"{}"})},
        "only the checker writes to verified/",
    ),
    "a name that formats": (lambda files: {IMAGE: b"", **placed(files)}, "is not a file of an entry"),
    "settings that format": (lambda files: placed(with_json(files, settings=OCTOCAT)), "@octocat"),
}
"""What somebody may send, made of a good submission -> a part of the reason for which it is refused."""


class TestRefused:
    def refused(self, results: Repository, files: Mapping[str, bytes | None], reason: str) -> str:
        """The comment."""
        before = results.at().oid
        request(results, files)
        outcome = check()[-1]
        assert outcome.action == "refused"
        assert any(reason in line for line in outcome.reasons), outcome.reasons
        assert results.at().oid == before
        assert results.discussions[-1].status == "open"
        comment = said(results, len(results.discussions))[-1]
        assert reason in comment
        return comment

    @pytest.mark.parametrize("forged", FORGED)
    def test_what_is_forged(self, results, submitted, forged):
        forge, reason = FORGED[forged]
        comment = self.refused(results, forge(submitted["a_coat"]), reason)
        # Hostile names cannot format the comment: what is not code is formatted.
        assert comment.count("`") % 2 == 0
        assert f"\n<!-- audio-compositionality: checked {HEAD} -->" not in comment
        assert "octocat" not in "".join(comment.split("`")[::2])

    def test_a_change_of_what_is_there(self, results, submitted):
        results.commit(entry("org/rival"))
        path = next(path for path in paths(results) if path.endswith("result.json"))
        for content, reason in ((b"{}", "nothing is ever replaced or deleted"), (None, "it deletes")):
            self.refused(results, {path: content, **placed(submitted["a_coat"])}, reason)

    def test_mended_it_is_checked_again(self, results, submitted):
        self.refused(results, {"run.sh": b"", **placed(submitted["a_coat"])}, "is not a file of an entry")
        assert [outcome.action for outcome in check()] == ["checked"]
        assert len(said(results)) == 1
        results.commit({"run.sh": None}, revision="refs/pr/1", author="eve")
        assert check()[0].action == "added"


class TestLeft:
    """What the checker does not decide."""

    def left(self, results: Repository, files: Mapping[str, bytes | None], reason: str, **options: Any) -> None:
        before = results.at().oid
        number = request(results, files)
        outcome = next(one for one in check(**options) if one.subject == f"#{number}")
        assert outcome.action == "left"
        assert any(reason in line for line in outcome.reasons), outcome.reasons
        assert results.at().oid == before
        assert results.discussions[number - 1].status == "open"
        (comment,) = said(results, number)
        assert reason in comment
        assert "\n\n\n" not in comment
        assert [outcome.action for outcome in check() if outcome.subject == f"#{number}"] == ["checked"]

    def test_without_embeddings(self, hub, results, submitted):
        self.left(results, placed(bare(submitted["a_coat"]), submitted["a_tre"]), "it has no embeddings")
        assert "maintainers decide" in said(results)[0]
        assert "- A-TRE of `org/short`" in said(results)[0]
        # The comment's marker outlasts the checker: nothing is fetched or said again.
        hub.requests.clear()
        assert check()[0].action == "checked"
        assert not hub.made("GET", "resolve")
        assert not hub.made("POST")

    @pytest.mark.slow
    def test_a_claim_that_takes_too_long(self, results, submitted):
        hangs = partial(in_own_process, time.sleep, 600, seconds=1)
        reason = "it could not be checked here: it was ended after"
        self.left(results, placed(bare(submitted["a_coat"])), reason, check_claim=lambda *_: hangs())

    @pytest.mark.parametrize("same", ["the same outputs, byte for byte", "the same digest of the weights"])
    def test_the_same_outputs_or_weights_are_labelled_as_a_reproduction(self, results, submitted, same):
        owner = with_json(submitted["a_coat"], model={"weights_sha256": "a" * 64})
        results.commit(placed(owner))
        verify_merged()
        again = with_json(submitted["a_coat"], model={"id": "eve/again"})
        if "weights" in same:
            values = read_embeddings(owner)["values"]
            again = rescored(with_embeddings(owner, values=np.nextafter(values, np.float16(0))))
            again = with_json(again, model={"id": "eve/again"})
        # In one pull request with another one, which reproduces the same first entry.
        third = with_json(again, model={"id": "eve/third"})
        request(results, placed(again, third))
        assert check()[0].action == "added"
        assert said(results)[0].count("is a reproduction of `results/org__short/1/a_coat-") == 2
        assert same in said(results)[0]
        (again,) = board().of_model("eve/again")
        assert again.reproduces.startswith("results/org__short/1/a_coat-")
        assert ["reproduction of", again.reproduces] in origin_rows(again)
        assert "a reproduction of an earlier entry" in notes(again, load_task("a_coat").info)

    def test_what_takes_too_long(self, results, submitted):
        def slow(*_: Any, **__: Any) -> Verification:
            raise OverdueError("it was ended after 1800 s")

        files = placed(submitted["a_tre"])
        self.left(results, files, "it could not be recomputed here: it was ended after", recompute=slow)
        results.commit(files, author="ada")
        assert [outcome.action for outcome in verify_merged(recompute=slow)] == ["left"]

    def test_markers_of_others_do_not_count(self, hub, results, submitted):
        request(results, placed(submitted["a_coat"]))
        head = results.at("refs/pr/1").oid
        HfApi(token=hub.token("eve")).comment_discussion(
            results_of("lab").id, 1, f"ok\n\n<!-- audio-compositionality: checked {head} -->", repo_type="dataset"
        )
        assert check()[0].action == "added"


class TestMoving:
    """Somebody pushes while the check is going on."""

    FORGED = "verified/eve__mine/1/a_coat-0123456789abcdef/verification.json"

    @pytest.mark.parametrize("how", ["pushed", "withdrawn"])
    def test_during_the_check(self, results, submitted, how):
        request(results, placed(submitted["a_coat"]))
        before = results.at().oid

        def recompute(*arguments: Any, **options: Any) -> Verification:
            if how == "pushed":
                results.commit({self.FORGED: b"{}"}, revision="refs/pr/1", author="eve")
            else:
                results.discussions[0].status = "closed"
            return verify_folder(*arguments, **options)

        assert check(recompute=recompute)[0].action == "waiting"
        assert results.at().oid == before
        assert said(results) == []
        assert [outcome.action for outcome in check()] == ["refused"] * (how == "pushed")
        assert results.at().oid == before

    @pytest.mark.parametrize("moment", ["commit", "comment", "close"])
    def test_in_the_very_moment(self, results, submitted, monkeypatch, moment):
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
    @pytest.mark.parametrize(("place", "k"), [("commit", 2), ("comment", 2), ("close", 1)])
    def test_at_each_step(self, results, submitted, monkeypatch, place, k, done):
        request(results, placed(*submitted.values()))
        original, calls = getattr(Hub, place), []

        def killed(*arguments: Any, **options: Any) -> Any:
            calls.append(place)
            answer = original(*arguments, **options) if len(calls) < k or done else None
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
        is_added_once(results, 2)
        assert verify_merged() == check() == []


class TestMerged:
    """What maintainers have added to main by hand."""

    def test_it_is_verified(self, results, submitted):
        copy = with_json(submitted["a_coat"], model={"id": "org/copy"})
        worse = {**with_json(submitted["a_tre"], model={"id": "org/worse"}), "embeddings.safetensors": b"?"}
        # What is no record of the checker does not count.
        forged = below(folder(copy, "verified"), {"verification.json": b"{}", "result.json": copy["result.json"]})
        results.commit({**placed(*submitted.values(), copy, worse), **entry("org/bare"), **forged})
        checks = new_checks()
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
        assert shown.rejected == ()

    @pytest.mark.usefixtures("waits")
    def test_trouble_with_one_is_no_end(self, hub, results, submitted):
        results.commit(placed(*submitted.values()))
        hub.faults.order("GET", "/resolve/.*/a_coat-.*/samples.csv", Status(500), times=5)
        assert [outcome.action for outcome in verify_merged()] == ["failed", "verified"]
        assert [outcome.action for outcome in verify_merged()] == ["verified"]

    def test_the_pull_requests_do_not_wait_for_it(self, hub, results, submitted):
        request(results, placed(submitted["a_coat"]))
        hub.faults.order("GET", f"/api/datasets/{RESULTS}/tree/", Status(403))
        outcomes = Checker(new_checks()).round()
        assert [(outcome.subject, outcome.action) for outcome in outcomes] == [("main", "failed"), ("#1", "added")]


class TestMany:
    def test_one_of_an_author_in_a_round_and_no_more_than_its_limit(self, results, monkeypatch):
        monkeypatch.setattr(pull_requests, "MAX_CHECKS", 2)
        for author in ("eve", "eve", "mallory", "trudy"):
            request(results, {"run.sh": author.encode()}, author)
        checks = new_checks()
        rounds = [[outcome.action for outcome in checks.check_pull_requests()] for _ in range(3)]
        assert rounds[0] == ["refused", "waiting", "refused", "waiting"]
        assert rounds[1][1:] == ["refused", "waiting", "refused"]
        assert rounds[2][2] == "checked"

    def test_all_have_their_turn(self, results, monkeypatch):
        monkeypatch.setattr(pull_requests, "MAX_LOOKS", 2)
        for number in range(5):
            request(results, {"run.sh": b""}, f"user{number}")
        # Drafts are looked at again and again, and must not keep others from it.
        for discussion in results.discussions[:2]:
            discussion.status = "draft"
        checks = new_checks()
        assert [outcome.action for outcome in checks.check_pull_requests()][:2] == ["waiting"] * 2
        for _ in range(2):
            checks.check_pull_requests()
        assert [len(said(results, number)) for number in range(1, 6)] == [0, 0, 1, 1, 1]
        results.commit({"other.sh": b""}, revision="refs/pr/5", author="user4")
        for _ in range(3):
            checks.check_pull_requests()
        assert [len(said(results, number)) for number in range(1, 6)] == [0, 0, 1, 1, 2]

    def test_many_of_an_author_who_has_to_wait_take_no_turn_of_others(self, results, submitted, monkeypatch):
        monkeypatch.setattr(pull_requests, "MAX_LOOKS", 2)
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

    def test_what_was_checked_costs_one_call(self, hub, results):
        for number in range(3):
            request(results, {"run.sh": b""}, f"user{number}")
        checks = new_checks()
        checks.check_pull_requests()
        hub.requests.clear()
        assert [outcome.action for outcome in checks.check_pull_requests()] == ["checked"] * 3
        # The list, the commits of main, and each head.
        assert len(hub.requests) == 5


class TestTurns:
    """Of each author an entry, and then of the next: nobody waits for all that another has sent."""

    @staticmethod
    def entries_of(submitted: Submitted, author: str, count: int) -> dict[str, bytes]:
        """Results of so many revisions of a model of an author."""
        models = [{"id": f"{author}/m", "revision": str(number)} for number in range(count)]
        return placed(*(with_json(submitted["a_coat"], model=model) for model in models))

    @pytest.fixture
    def turns(self, results):
        """The authors of the entries that were recomputed, in that order."""
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

    def test_many_entries_of_one_keep_another_waiting_for_one(self, results, submitted, turns):
        request(results, self.entries_of(submitted, "eve", 4))
        request(results, self.entries_of(submitted, "mallory", 2), "mallory")
        checks = self.new_checks(turns, [0.0], lambda: None)
        assert checks.check_pull_requests()[0].reasons == ("1 of 4 entries checked, continues in the next round",)
        rounds(checks)
        assert turns == ["eve", "mallory", "eve", "mallory", "eve", "eve"]
        assert [discussion.status for discussion in results.discussions] == ["closed"] * 2
        first, last = comments(results)
        head = results.at("refs/pr/1").oid
        assert first == f"1 of 4 entries checked of commit {head[:8]}; continues in the next round."
        assert last.startswith("Added to main")
        assert len(board().entries) == 6

    def test_who_comes_while_an_entry_is_checked_waits_for_this_one(self, results, submitted, turns):
        request(results, self.entries_of(submitted, "eve", 4))
        mallorys = self.entries_of(submitted, "mallory", 1)
        come = [partial(request, results, mallorys, "mallory")]
        rounds(self.new_checks(turns, [0.0], lambda: come and come.pop()()))
        assert turns == ["eve", "mallory", "eve", "eve", "eve"]

    def test_the_budget_is_looked_at_for_each_entry(self, results, submitted, turns):
        request(results, self.entries_of(submitted, "eve", 5))
        now = [0.0]
        checks = self.new_checks(turns, now, lambda: None, seconds=8)
        rounds(checks)
        assert (len(turns), now[0]) == (2, 8.0)
        (outcome,) = checks.check_pull_requests()
        assert outcome.reasons == ("2 of 5 entries checked", "today's time for the checks of its author is used up")
        assert "continues when there is time again" in comments(results)[-1]
        for _ in range(2):
            assert results.discussions[0].status == "open"
            now[0] += 200
            rounds(checks)
        # None is checked twice.
        assert len(turns) == 5
        assert results.discussions[0].status == "closed"

    def test_trouble_with_one_entry_repeats_none_of_the_others(self, results, submitted, turns):
        request(results, self.entries_of(submitted, "eve", 3))
        trouble = [HubError("the Hub does not answer")]

        def during() -> None:
            if len(turns) == 2 and trouble:
                raise trouble.pop()

        checks = self.new_checks(turns, [0.0], during)
        assert [rounds(checks)[0].action for _ in range(2)] == ["failed", "added"]
        assert len(turns) == 4

    def test_a_new_commit_is_checked_from_its_first_entry(self, results, submitted, turns):
        request(results, self.entries_of(submitted, "eve", 2))
        checks = self.new_checks(turns, [0.0], lambda: None)
        checks.check_pull_requests()
        results.commit({"run.sh": b""}, revision="refs/pr/1", author="eve")
        assert rounds(checks)[0].action == "refused"
        assert len(turns) == 1

    def test_what_came_to_main_meanwhile_is_the_original(self, results, submitted):
        request(results, placed(submitted["a_tre"], submitted["a_coat"]))
        request(results, placed(with_json(submitted["a_coat"], model={"id": "mallory/m"})), "mallory")
        assert [outcome.action for outcome in rounds(new_checks())] == ["added"]
        assert "is a reproduction of `results/mallory__m/1/a_coat-" in said(results)[0]

    def test_of_main_one_a_round(self, results, submitted, turns):
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
    @pytest.mark.parametrize("trouble", ["of the Hub", "a mistake of ours"])
    def test_with_one_the_next_is_checked(self, hub, results, submitted, trouble):
        request(results, placed(submitted["a_coat"]))
        request(results, placed(submitted["a_tre"]), "mallory")

        def recompute(place: Path, name: str, **options: Any) -> Verification:
            if "/a_coat-" in name:
                raise RuntimeError("a mistake")
            return verify_folder(place, name=name, **options)

        if trouble == "of the Hub":
            hub.faults.order("GET", r"/discussions/1\b", Status(500), times=5)
        options = {} if trouble == "of the Hub" else {"recompute": recompute}
        assert [outcome.action for outcome in check(**options)] == ["failed", "added"]
        assert said(results) == []
        assert check()[0].action == "added"

    def test_the_thread_goes_on_and_tells(self, results, monkeypatch):
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


READS = ("discussions", "details", "head", "commits", "tree", "look-up", "download", "preupload", "batch")
CASES = [
    *(
        (step, fault)
        for step in ("commit", "comment", "close")
        for fault in ("dropped after", "500 after", "403", "stays")
    ),
    *((step, fault) for step in READS for fault in ("403", "stays")),
    ("download", "dropped before"),
]
"""The requests of a check whose entry is added, and their faults. The samples that it computes are the submitted ones,
byte for byte, so that nothing is uploaded."""


@pytest.mark.slow
@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize(("step", "fault"), CASES)
def test_whatever_happens_the_entry_is_in_the_end_added_and_verified_once(hub, results, submitted, step, fault):
    request(results, placed(submitted["a_coat"]))
    kinds = {"403": Status(403), "stays": Status(503)}
    times = None if fault == "stays" else 1
    order = hub.faults.order(*steps_of("dataset", RESULTS)[step], kinds.get(fault) or PASSING[fault], times=times)
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
    is_added_once(results, 1)
