"""The one place for calls to the Hub: what it adds to the clients, call by call."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys

import huggingface_hub
import pytest

from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.support.retries import LONGEST_WAIT

from .faults import CutDownload, Drop, Meanwhile, Status

SCENES = Repository("dataset", "lab/scenes")


@pytest.fixture
def scenes(hub):
    """A data set repository with a small file, a large one, and an open pull request."""
    repository = hub.repositories.create("dataset", SCENES.id)
    repository.commit({"a.txt": b"a", "folder/b.parquet": bytes(3000)}, "files")
    Hub().commit(SCENES, {"c.txt": b"c"}, "add c", pull_request=True)
    return SCENES


def test_files_are_told_by_size_and_hash(hub, scenes, tmp_path):
    files = Hub().files(scenes)
    assert files["a.txt"].digest == f"git:{hashlib.sha1(b'blob 1' + bytes(1) + b'a').hexdigest()}"
    large = files["folder/b.parquet"]
    assert (large.digest, large.size) == (f"sha256:{hashlib.sha256(bytes(3000)).hexdigest()}", 3000)
    path = tmp_path / "file"
    for content, same in ((bytes(3000), True), (bytes(2999) + b"1", False)):
        path.write_bytes(content)
        assert large.matches(path) == same
    assert not files["a.txt"].matches(b"b")


def test_what_is_too_large_or_leads_out_is_not_fetched(hub, scenes):
    with pytest.raises(HubError, match="it has 3,000 bytes; the limit is 2,999 bytes"):
        Hub().download(scenes, "folder/b.parquet", limit=2999)
    assert not hub.made("GET", "b.parquet")
    assert Hub().download(scenes, "folder/b.parquet", limit=3000).read_bytes() == bytes(3000)
    asked = len(hub.requests)
    with pytest.raises(HubError, match="a path must not leave the repository"):
        Hub().download(scenes, "../../secret", limit=100)
    assert len(hub.requests) == asked


def test_what_is_fetched_is_what_was_measured(hub, scenes):
    repository = hub.repositories["dataset", scenes.id]
    hub.faults.order("GET", "/resolve/.*a.txt", Meanwhile(lambda: repository.commit({"a.txt": bytes(5000)}, "larger")))
    assert Hub().download(scenes, "a.txt", limit=10).read_bytes() == b"a"


def test_what_a_pull_request_is(hub, scenes):
    request = Hub().pull_requests(scenes)[0]
    assert (request.number, request.title, request.author, request.revision) == (1, "add c", "ada", "refs/pr/1")
    assert Hub().pull_requests(scenes, author="eve") == []
    assert Hub().commits(scenes, "refs/pr/1")[1:] == Hub().commits(scenes)
    assert Hub().head(scenes, "refs/pr/1") == Hub().commits(scenes, "refs/pr/1")[0]


def test_ones_own_pull_request_is_brought_up_to_date_and_not_that_of_another(hub, scenes, act_as):
    act_as("eve")
    assert Hub().commit(scenes, {"c.txt": b"other"}, "add c", pull_request=True).pull_request == 2
    assert hub.repositories["dataset", scenes.id].files("refs/pr/1")["c.txt"] == b"c"
    act_as("ada")
    assert Hub().commit(scenes, {"c.txt": b"new"}, "add c", pull_request=True).pull_request == 1
    assert hub.repositories["dataset", scenes.id].files("refs/pr/1")["c.txt"] == b"new"


@pytest.mark.parametrize("fault", [Drop(acts=True), Status(500, acts=True), Drop(acts=False)], ids=str)
def test_a_comment_is_made_once_and_a_pull_request_closed_once(hub, scenes, waits, fault):
    hub.faults.order("POST", "/comment", fault)
    hub.faults.order("POST", "/status", fault)
    for _ in range(2):
        Hub().comment(scenes, 1, "Thank you")
    assert [comment.text for comment in Hub().comments(scenes, 1)].count("Thank you") == 1
    for _ in range(2):
        Hub().close(scenes, 1)
    assert Hub().status(scenes, 1) == "closed"
    events = hub.repositories["dataset", scenes.id].discussions[0].events
    assert [event["type"] for event in events].count("status-change") == 1
    assert Hub().pull_requests(scenes) == []


def test_a_download_that_is_cut_is_fetched_again(hub, scenes, waits):
    hub.faults.order("GET", "/resolve/.*b.parquet", CutDownload(after=1000))
    assert Hub().download(scenes, "folder/b.parquet", limit=3000).read_bytes() == bytes(3000)


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (Status(429, retry_after=int(LONGEST_WAIT)), LONGEST_WAIT + 1),
        (Status(429, rate_limit=120), 121),
        (Status(503, retry_after="soon"), 1),
    ],
    ids=str,
)
def test_the_wait_that_is_asked_for_is_kept_to(hub, scenes, waits, fault, seconds):
    hub.faults.order("GET", "/revision/main", fault)
    Hub().head(scenes)
    assert waits == [seconds]


def test_what_a_server_says_cannot_steer_the_terminal(hub, scenes):
    hub.faults.order("GET", "/revision/main", Status(403, message="x\x1b[2Jy" + "z" * 1000))
    with pytest.raises(HubError) as caught:
        Hub().head(scenes)
    assert str(caught.value).isprintable()
    assert f"(x%1B[2Jy{'z' * 191}…)" in str(caught.value)


def test_the_page_of_a_gateway_is_no_answer(hub, scenes, waits):
    card = b"---\nlicense: mit\n---\n"
    hub.faults.order("POST", "/api/validate-yaml", Status(502, html=True))
    Hub().commit(scenes, {"README.md": card}, "card")
    assert hub.repositories["dataset", scenes.id].read("README.md") == card
    assert waits == [1]
    hub.faults.order("POST", "/api/validate-yaml", Status(502, html=True), times=None)
    with pytest.raises(HubError, match="the Hub's answer is not JSON; run the same command later"):
        Hub().commit(scenes, {"README.md": card + b"x"}, "card")


def test_without_a_token(hub, scenes, waits, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    for ask in (
        lambda: Hub().user(),
        lambda: Hub().commit(scenes, {"x": b"1"}, "x", pull_request=True),
        lambda: Hub().comment(scenes, 1, "x"),
        lambda: Hub().create(Repository("dataset", "lab/other")),
    ):
        with pytest.raises(HubError, match=f"no token is set; make one at {hub.url}/settings/tokens"):
            ask()
    assert Hub().head(scenes)
    with pytest.raises(HubError, match="lab/nothing does not exist, or it is private and no token is set"):
        Hub().head(Repository("dataset", "lab/nothing"))
    assert waits == []


def test_offline_is_no_fault_that_passes(scenes, waits, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://hub.invalid")
    huggingface_hub.close_session()
    with pytest.raises(HubError, match="are offline; unset HF_HUB_OFFLINE"):
        Hub().head(scenes)
    assert waits == []


def test_a_gated_repository(hub, scenes, waits):
    hub.faults.order("GET", "/revision/main", Status(403, code="GatedRepo"))
    with pytest.raises(HubError, match=rf"it is gated.*ask for access at {hub.url}/datasets/lab/scenes"):
        Hub().head(scenes)


def test_a_name_that_the_hub_cannot_have(scenes, waits):
    with pytest.raises(HubError, match="the Hub does not allow this name"):
        Hub().head(Repository("dataset", "lab/a--b"))
    assert waits == []


def test_who_pushes_all_the_time_is_given_time(hub, scenes, waits):
    hub.faults.order("POST", "/commit/", Status(412), times=None)
    with pytest.raises(HubError, match=r"answered 412.*run the same command later"):
        Hub().commit(scenes, {"x": b"1"}, "x")
    assert waits[:3] == [0, 1, 2]
    assert sum(waits) < 120


def test_ones_own_pull_request_is_kept_where_somebody_else_adds_to_it(hub, scenes, waits):
    repository = hub.repositories["dataset", scenes.id]
    order = hub.faults.order(
        "POST", "/commit/", Meanwhile(lambda: repository.commit({"d.txt": b"d"}, "theirs", revision="refs/pr/1"))
    )
    assert Hub().commit(scenes, {"c.txt": b"new"}, "add c", pull_request=True).pull_request == 1
    assert order.seen == 2
    assert repository.files("refs/pr/1").items() >= {"c.txt": b"new", "d.txt": b"d"}.items()


def test_a_long_outage_is_told_once(hub, scenes, waits, caplog, monkeypatch):
    # The client asks a tree several times by itself, and so do we: 30 requests, each with two lines of the client's.
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
    order = hub.faults.order("GET", "/tree/", Status(503), times=None)
    with pytest.raises(HubError, match="answered 503"):
        Hub().files(scenes)
    assert order.fired > 5
    (line,) = [one.getMessage() for one in caplog.records if one.name.startswith(("huggingface", "audio_comp"))]
    assert line.startswith("could not list the files of the dataset lab/scenes")


SWITCH = """
import sys
for name in sys.argv[1:]:
    __import__(name)
from huggingface_hub import constants
print(constants.HF_HUB_DISABLE_XET)
"""


@pytest.mark.parametrize(
    ("modules", "setting", "disabled"),
    [
        (["audio_compositionality.hub"], None, True),
        (["huggingface_hub.constants", "audio_compositionality.hub"], None, True),
        (["audio_compositionality.hub"], "0", False),
    ],
    ids=["before the client", "after the client", "chosen by the user"],
)
def test_xet_is_switched_off_once_and_for_all(modules, setting, disabled):
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_DISABLE_XET"}
    chosen = {} if setting is None else {"HF_HUB_DISABLE_XET": setting}
    process = [sys.executable, "-c", SWITCH, *modules]
    printed = subprocess.run(process, env=environment | chosen, capture_output=True, text=True, check=True).stdout
    assert printed.split() == [str(disabled)]
