"""The one place for calls to the Hub: what it adds to the clients, call by call."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from audio_compositionality.hub import Hub, HubError, Repository
from audio_compositionality.hub.calls import LONGEST_WAIT

from .faults import CutDownload, Drop, Fault, Status
from .server import LoopbackHub

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # huggingface_hub's own

SCENES = Repository("dataset", "lab/scenes")


@pytest.fixture
def scenes(hub: LoopbackHub) -> Repository:
    """A data set repository with a small file, a large one, and an open pull request."""
    repository = hub.repositories.create("dataset", SCENES.id)
    repository.commit({"a.txt": b"a", "folder/b.parquet": bytes(3000)}, "files")
    Hub().commit(SCENES, {"c.txt": b"c"}, "add c", pull_request=True)
    return SCENES


def test_files_are_told_by_size_and_hash(scenes: Repository, tmp_path: Path) -> None:
    files = Hub().files(scenes)
    assert files["a.txt"].digest == f"git:{hashlib.sha1(b'blob 1' + bytes(1) + b'a').hexdigest()}"
    assert files["folder/b.parquet"].digest == f"sha256:{hashlib.sha256(bytes(3000)).hexdigest()}"
    assert files["folder/b.parquet"].size == 3000
    same, other = tmp_path / "same", tmp_path / "other"
    same.write_bytes(bytes(3000))
    other.write_bytes(bytes(2999) + b"1")
    assert files["folder/b.parquet"].matches(same)
    assert not files["folder/b.parquet"].matches(other)
    assert not files["a.txt"].matches(b"b")


def test_a_file_that_is_too_large_is_not_fetched(hub: LoopbackHub, scenes: Repository) -> None:
    with pytest.raises(HubError, match="it has 3,000 bytes, and 2,999 bytes are the most"):
        Hub().download(scenes, "folder/b.parquet", limit=2999)
    assert not hub.made("GET", "b.parquet")
    assert Hub().download(scenes, "folder/b.parquet", limit=3000).read_bytes() == bytes(3000)


def test_a_name_with_dots_leads_nowhere(scenes: Repository) -> None:
    with pytest.raises((HubError, ValueError)):
        Hub().download(scenes, "../../secret", limit=100)


def test_what_a_pull_request_is(hub: LoopbackHub, scenes: Repository) -> None:
    request = Hub().pull_requests(scenes)[0]
    assert (request.number, request.title, request.author, request.revision) == (1, "add c", "ada", "refs/pr/1")
    assert Hub().pull_requests(scenes, author="eve") == []
    assert Hub().commits(scenes, "refs/pr/1")[1:] == Hub().commits(scenes)
    assert Hub().head(scenes, "refs/pr/1") == Hub().commits(scenes, "refs/pr/1")[0]


def test_a_pull_request_of_somebody_else_is_not_taken_for_ones_own(hub: LoopbackHub, scenes: Repository) -> None:
    eve = Hub(hub.token("eve"))
    assert eve.commit(scenes, {"c.txt": b"other"}, "add c", pull_request=True).pull_request == 2
    assert hub.repositories["dataset", scenes.id].files("refs/pr/1")["c.txt"] == b"c"


def test_ones_own_pull_request_is_brought_up_to_date(hub: LoopbackHub, scenes: Repository) -> None:
    assert Hub().commit(scenes, {"c.txt": b"new"}, "add c", pull_request=True).pull_request == 1
    assert hub.repositories["dataset", scenes.id].files("refs/pr/1")["c.txt"] == b"new"


LOSSES: list[Fault] = [
    Drop(acts=True),
    Drop(acts=True, reset=False),
    Status(500, acts=True),
    Drop(acts=False),
    Status(503),
]


@pytest.mark.parametrize("fault", LOSSES, ids=str)
def test_a_comment_is_made_once(hub: LoopbackHub, scenes: Repository, waits: list[float], fault: Fault) -> None:
    hub.faults.order("POST", "/comment", fault)
    Hub().comment(scenes, 1, "Thank you")
    Hub().comment(scenes, 1, "Thank you")
    assert [comment.text for comment in Hub().comments(scenes, 1)].count("Thank you") == 1


@pytest.mark.parametrize("fault", LOSSES, ids=str)
def test_a_merge_is_made_once(hub: LoopbackHub, scenes: Repository, waits: list[float], fault: Fault) -> None:
    hub.faults.order("POST", "/merge", fault)
    Hub().merge(scenes, 1)
    Hub().merge(scenes, 1)
    titles = [commit.title for commit in hub.repositories["dataset", scenes.id].history()]
    assert titles == ["add c (#1)", "files", "initial commit"]
    assert Hub().status(scenes, 1) == "merged"


@pytest.mark.parametrize("reset", [False, True])
def test_a_download_that_is_cut_is_fetched_again(
    hub: LoopbackHub, scenes: Repository, waits: list[float], reset: bool
) -> None:
    hub.faults.order("GET", "/resolve/.*b.parquet", CutDownload(after=1000, reset=reset))
    assert Hub().download(scenes, "folder/b.parquet", limit=3000).read_bytes() == bytes(3000)


def test_a_date_to_wait_for(hub: LoopbackHub, scenes: Repository, waits: list[float]) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    hub.faults.order("GET", "/revision/main", Status(503, retry_after=moment))  # type: ignore[arg-type]
    Hub().head(scenes)
    assert len(waits) == 1
    assert 30 < waits[0] <= 41


def test_the_longest_wait_is_kept_to(hub: LoopbackHub, scenes: Repository, waits: list[float]) -> None:
    hub.faults.order("GET", "/revision/main", Status(429, retry_after=int(LONGEST_WAIT)))
    Hub().head(scenes)
    assert waits == [LONGEST_WAIT + 1]


def test_what_a_server_says_cannot_steer_the_terminal(hub: LoopbackHub, scenes: Repository) -> None:
    hub.faults.order("GET", "/revision/main", Status(403, message="x\x1b[2Jy" + "z" * 1000))
    with pytest.raises(HubError) as caught:
        Hub().head(scenes)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_a_mistake_of_ours_is_no_trouble_with_the_hub(monkeypatch: pytest.MonkeyPatch, scenes: Repository) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(HfApi, "repo_info", broken)
    with pytest.raises(KeyError, match="ours"):
        Hub().head(scenes)
