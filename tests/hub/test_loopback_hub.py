"""The real clients at work on a loopback Hub: nothing of theirs is replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    HfFileSystem,
    hf_hub_download,
    snapshot_download,
)
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from .faults import CutDownload
from .server import LoopbackHub

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # huggingface_hub's own

CONTENT = {"README.md": b"---\nlicense: mit\n---\n", "a/table.parquet": b"\0" * 3000, "a/b/notes.txt": b"notes"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in CONTENT.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "folder"


@pytest.fixture
def dataset(hub: LoopbackHub, folder: Path) -> str:
    """A data set repository with three files, one of them in large file storage."""
    api = HfApi()
    api.create_repo("lab/scenes", repo_type="dataset")
    api.upload_folder(repo_id="lab/scenes", repo_type="dataset", folder_path=folder)
    return "lab/scenes"


def test_a_folder_is_uploaded_listed_and_downloaded(hub: LoopbackHub, dataset: str) -> None:
    api = HfApi()
    stored = hub.repositories["dataset", dataset].files()
    assert {name: content for name, content in stored.items() if name != ".gitattributes"} == CONTENT
    assert api.list_repo_files(dataset, repo_type="dataset") == sorted([".gitattributes", *CONTENT])
    info = api.dataset_info(dataset, files_metadata=True)
    table = next(file for file in info.siblings or [] if file.rfilename == "a/table.parquet")
    assert info.sha == hub.repositories["dataset", dataset].at().oid
    assert table.lfs is not None
    assert (table.size, table.lfs.size) == (3000, 3000)
    local = Path(snapshot_download(dataset, repo_type="dataset"))
    assert local.name == info.sha
    assert {path: (local / path).read_bytes() for path in CONTENT} == CONTENT
    assert Path(hf_hub_download(dataset, "a/b/notes.txt", repo_type="dataset")).read_bytes() == b"notes"
    commits = api.list_repo_commits(dataset, repo_type="dataset")
    assert [commit.title for commit in commits] == ["Upload folder using huggingface_hub", "initial commit"]
    assert commits[0].authors == ["ada"]


def test_what_is_there_is_not_sent_again(hub: LoopbackHub, dataset: str, folder: Path) -> None:
    api = HfApi()
    head = hub.repositories["dataset", dataset].at().oid
    before = len(hub.requests)
    assert api.upload_folder(repo_id=dataset, repo_type="dataset", folder_path=folder).oid == head
    api.upload_file(
        path_or_fileobj=folder / "a/table.parquet", path_in_repo="copy.parquet", repo_id=dataset, repo_type="dataset"
    )
    assert not [made for made in hub.requests[before:] if made.method == "PUT"]
    assert hub.repositories["dataset", dataset].read("copy.parquet") == CONTENT["a/table.parquet"]
    assert len(list(hub.repositories["dataset", dataset].history())) == 3


def test_trees_come_in_pages_with_folders_and_last_commits(hub: LoopbackHub, dataset: str) -> None:
    api = HfApi()
    hub.page_size = 2
    entries = list(api.list_repo_tree(dataset, repo_type="dataset", recursive=True))
    assert [entry.path for entry in entries] == [".gitattributes", "README.md", "a", "a/b", *sorted(CONTENT)[1:]]
    assert len(hub.made("GET", "/tree/main")) == 3
    assert [entry.path for entry in api.list_repo_tree(dataset, "a", repo_type="dataset")] == ["a/b", "a/table.parquet"]
    first, last = api.get_paths_info(dataset, [".gitattributes", "a"], repo_type="dataset", expand=True)
    assert [entry.last_commit and entry.last_commit.title for entry in (first, last)] == [
        "initial commit",
        "Upload folder using huggingface_hub",
    ]
    assert api.get_paths_info(dataset, ["missing"], repo_type="dataset") == []
    with pytest.raises(EntryNotFoundError):
        list(api.list_repo_tree(dataset, "missing", repo_type="dataset"))


def test_parts_of_a_file_are_read(dataset: str) -> None:
    with HfFileSystem().open(f"datasets/{dataset}/a/b/notes.txt", "rb", block_size=2) as file:
        file.seek(1)
        assert file.read(3) == b"ote"
    with pytest.raises(FileNotFoundError):
        HfFileSystem().open(f"datasets/{dataset}/missing.txt", "rb")


def test_an_interrupted_download_goes_on_where_it_ended(
    hub: LoopbackHub, dataset: str, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What has arrived counts in pieces of this size, 10 MiB: a smaller file would begin anew.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 400)
    hub.faults.order("GET", "/resolve/", CutDownload(after=1000))
    path = hf_hub_download(dataset, "a/table.parquet", repo_type="dataset")
    assert Path(path).read_bytes() == CONTENT["a/table.parquet"]
    assert [made.status for made in hub.made("GET", "/resolve/")] == [200, 206]
    assert [made.range for made in hub.made("GET", "/resolve/")] == [None, "bytes=800-"]
    assert waits == [1]


def test_an_existing_repository_is_taken_or_refused(hub: LoopbackHub) -> None:
    api = HfApi()
    for kind in ("model", "dataset", "space"):
        sdk = "gradio" if kind == "space" else None
        made = api.create_repo("lab/one", repo_type=kind, space_sdk=sdk)
        assert (made.repo_id, made.repo_type) == ("lab/one", kind)
        assert api.create_repo("lab/one", repo_type=kind, space_sdk=sdk, exist_ok=True) == made
        with pytest.raises(HfHubHTTPError) as caught:
            api.create_repo("lab/one", repo_type=kind, space_sdk=sdk)
        assert caught.value.response.status_code == 409
        assert api.repo_exists("lab/one", repo_type=kind)
        api.delete_repo("lab/one", repo_type=kind)
        assert not api.repo_exists("lab/one", repo_type=kind)


def test_branches_tags_and_commit_ids(hub: LoopbackHub, dataset: str) -> None:
    api = HfApi()
    api.create_branch(dataset, branch="next", repo_type="dataset")
    api.create_branch(dataset, branch="next", repo_type="dataset", exist_ok=True)
    api.create_tag(dataset, tag="v1", repo_type="dataset")
    made = [
        api.upload_file(
            path_or_fileobj=content, path_in_repo="x", repo_id=dataset, repo_type="dataset", revision="next"
        )
        for content in (b"1", b"2")
    ]
    refs = api.list_repo_refs(dataset, repo_type="dataset")
    assert {ref.name for ref in refs.branches} == {"main", "next"}
    assert refs.tags[0].target_commit == hub.repositories["dataset", dataset].at("main").oid
    assert len({made[0].oid, made[1].oid, refs.tags[0].target_commit}) == 3
    assert Path(hf_hub_download(dataset, "x", repo_type="dataset", revision=made[0].oid)).read_bytes() == b"1"
    with pytest.raises(EntryNotFoundError):
        hf_hub_download(dataset, "x", repo_type="dataset", revision="v1")
    with pytest.raises(RevisionNotFoundError):
        api.dataset_info(dataset, revision="v2")
    api.delete_branch(dataset, branch="next", repo_type="dataset")
    api.delete_tag(dataset, tag="v1", repo_type="dataset")
    assert set(hub.repositories["dataset", dataset].refs) == {"refs/heads/main"}


def test_commits_at_the_same_time_all_count(hub: LoopbackHub, dataset: str) -> None:
    def upload(number: int) -> str:
        commit = HfApi().upload_file(
            path_or_fileobj=bytes([number]), path_in_repo=f"{number}.bin", repo_id=dataset, repo_type="dataset"
        )
        return commit.oid

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(upload, range(8)))
    history = [commit.oid for commit in hub.repositories["dataset", dataset].history()]
    assert set(history[:8]) == set(made)
    assert len(history) == 10
    assert {f"{number}.bin" for number in range(8)} <= set(hub.repositories["dataset", dataset].files())


def test_a_commit_deletes_what_is_there(hub: LoopbackHub, dataset: str) -> None:
    api = HfApi()
    api.create_commit(dataset, [CommitOperationDelete("a/")], commit_message="less", repo_type="dataset")
    assert set(hub.repositories["dataset", dataset].files()) == {".gitattributes", "README.md"}
    for create_pr in (False, True):
        with pytest.raises(EntryNotFoundError, match="doesn't exist"):
            api.delete_file("missing.txt", dataset, repo_type="dataset", create_pr=create_pr)
    assert not hub.repositories["dataset", dataset].discussions


def test_a_stranger_proposes_and_an_owner_merges(hub: LoopbackHub, dataset: str) -> None:
    stranger, owner = HfApi(token=hub.token("eve")), HfApi()
    change = CommitOperationAdd("result.json", b"{}\n")
    with pytest.raises(HfHubHTTPError, match="create_pr"):
        stranger.create_commit(dataset, [change], commit_message="mine", repo_type="dataset")
    proposed = stranger.create_commit(dataset, [change], commit_message="mine", repo_type="dataset", create_pr=True)
    assert (proposed.pr_num, proposed.pr_revision) == (1, "refs/pr/1")
    stranger.upload_file(
        path_or_fileobj=bytes(20), path_in_repo="x.npz", repo_id=dataset, repo_type="dataset", revision="refs/pr/1"
    )
    repository = hub.repositories["dataset", dataset]
    assert "result.json" not in repository.files()
    assert set(repository.files("refs/pr/1")) - set(repository.files()) == {"result.json", "x.npz"}
    assert Path(hf_hub_download(dataset, "result.json", repo_type="dataset", revision="refs/pr/1")).exists()
    refs = owner.list_repo_refs(dataset, repo_type="dataset", include_pull_requests=True)
    assert [ref.ref for ref in refs.pull_requests or []] == ["refs/pr/1"]

    assert stranger.comment_discussion(dataset, 1, "please", repo_type="dataset").content == "please"
    details = owner.get_discussion_details(dataset, 1, repo_type="dataset")
    assert (details.author, details.status, details.conflicting_files) == ("eve", "open", [])
    assert details.target_branch == "refs/heads/main"
    assert sorted(event.type for event in details.events) == ["comment", "comment", "commit", "commit"]
    assert "+++ b/result.json" in str(details.diff)
    assert "+oid sha256:" in str(details.diff)

    with pytest.raises(HfHubHTTPError, match="403"):
        stranger.merge_pull_request(dataset, 1, repo_type="dataset")
    stranger.change_discussion_status(dataset, 1, "closed", repo_type="dataset")
    owner.change_discussion_status(dataset, 1, "open", repo_type="dataset", comment="after all")
    owner.merge_pull_request(dataset, 1, repo_type="dataset", comment="thanks")
    assert repository.read("result.json") == b"{}\n"
    assert repository.at().title == "mine (#1)"
    details = owner.get_discussion_details(dataset, 1, repo_type="dataset")
    assert (details.status, details.merge_commit_oid) == ("merged", repository.at().oid)
    with pytest.raises(HfHubHTTPError, match="no open pull request"):
        owner.merge_pull_request(dataset, 1, repo_type="dataset")


def test_pull_requests_that_touch_the_same_file_conflict(hub: LoopbackHub, dataset: str) -> None:
    api = HfApi()
    for name, content in (("same.txt", b"1"), ("same.txt", b"2"), ("other.txt", b"3")):
        change = CommitOperationAdd(name, content)
        api.create_commit(dataset, [change], commit_message=name, repo_type="dataset", create_pr=True)
    api.merge_pull_request(dataset, 1, repo_type="dataset")
    assert api.get_discussion_details(dataset, 2, repo_type="dataset").conflicting_files == ["same.txt"]
    with pytest.raises(HfHubHTTPError, match=r"conflicts: same\.txt"):
        api.merge_pull_request(dataset, 2, repo_type="dataset")
    api.merge_pull_request(dataset, 3, repo_type="dataset")
    files = hub.repositories["dataset", dataset].files()
    assert (files["same.txt"], files["other.txt"]) == (b"1", b"3")


def test_discussions_are_listed_page_by_page(dataset: str) -> None:
    api = HfApi()
    for number in range(12):
        api.create_discussion(dataset, f"question {number}", repo_type="dataset")
    api.create_pull_request(dataset, "a draft", repo_type="dataset")
    listed = list(api.get_repo_discussions(dataset, repo_type="dataset"))
    assert [discussion.num for discussion in listed] == list(range(13, 0, -1))
    drafts = list(api.get_repo_discussions(dataset, repo_type="dataset", discussion_type="pull_request"))
    assert [(draft.title, draft.status) for draft in drafts] == [("a draft", "draft")]
    assert not list(api.get_repo_discussions(dataset, repo_type="dataset", author="eve"))


def test_rights(hub: LoopbackHub, dataset: str) -> None:
    hub.accounts.join("bob", "lab", "read")
    tokens = {
        "reader": hub.token("ada", "read"),
        "narrow": hub.token("ada", "fineGrained", ("repo.content.read",)),
        "member": hub.token("bob"),
        "stranger": hub.token("eve"),
    }
    for who, token in tokens.items():
        api = HfApi(token=token)
        assert api.whoami()["auth"]["accessToken"]["role"] in ("read", "write", "fineGrained")
        assert api.dataset_info(dataset).sha
        with pytest.raises(HfHubHTTPError) as caught:
            api.upload_file(path_or_fileobj=b"", path_in_repo="x", repo_id=dataset, repo_type="dataset")
        assert caught.value.response.status_code == 403, who
        with pytest.raises(HfHubHTTPError, match="rights to create a model"):
            api.create_repo("lab/new")
    with pytest.raises(HfHubHTTPError, match=r"repo\.write"):
        HfApi(token=tokens["narrow"]).auth_check(dataset, repo_type="dataset", write=True)
    writer = HfApi(token=hub.token("ada", "fineGrained", ("repo.content.read", "repo.write")))
    for name in ("x.txt", "x.bin"):
        writer.upload_file(path_or_fileobj=b"1", path_in_repo=name, repo_id=dataset, repo_type="dataset")
        assert hub.repositories["dataset", dataset].read(name) == b"1"
    with pytest.raises(HfHubHTTPError, match="Invalid user token"):
        HfApi(token="hf_nobody").whoami()


def test_a_private_repository_exists_for_its_owners_alone(hub: LoopbackHub) -> None:
    hub.accounts.join("bob", "lab", "read")
    HfApi().create_repo("lab/secret", repo_type="dataset", private=True)
    assert HfApi(token=hub.token("bob")).dataset_info("lab/secret").private
    for token in (hub.token("eve"), False):
        with pytest.raises(RepositoryNotFoundError):
            HfApi(token=token).dataset_info("lab/secret")
    HfApi().update_repo_settings("lab/secret", repo_type="dataset", private=False)
    assert not HfApi(token=False).dataset_info("lab/secret").private


def test_cards_are_looked_at_before_a_commit(hub: LoopbackHub) -> None:
    api = HfApi()
    api.create_repo("lab/card")
    with pytest.warns(UserWarning, match="empty or missing yaml"):
        api.upload_file(path_or_fileobj=b"# no header\n", path_in_repo="README.md", repo_id="lab/card")
    with pytest.raises(ValueError, match="has no end"):
        api.upload_file(path_or_fileobj=b"---\na: 1\n", path_in_repo="README.md", repo_id="lab/card")
    assert len(hub.made("POST", "/commit/")) == 1


@pytest.mark.parametrize("path", ["../up.txt", "a/../b.txt", "/absolute.txt", ".git/config"])
def test_paths_stay_within_the_repository(hub: LoopbackHub, dataset: str, path: str) -> None:
    change = CommitOperationAdd("x", b"1")
    change.path_in_repo = path
    with pytest.raises(HfHubHTTPError, match="Invalid path"):
        HfApi().create_commit(dataset, [change], commit_message="x", repo_type="dataset")
