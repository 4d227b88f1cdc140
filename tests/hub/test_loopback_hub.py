"""The real clients at work on a loopback Hub: nothing of theirs is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, HfApi, HfFileSystem, snapshot_download
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

from . import clients

CONTENT = {"README.md": b"---\nlicense: mit\n---\n", "a/table.parquet": b"\0" * 3000, "a/b/notes.txt": b"notes"}


@pytest.fixture
def dataset(hub, tmp_path):
    """A data set repository with three files, one of them in large file storage, as the client uploads a folder."""
    for name, content in CONTENT.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    HfApi().create_repo("lab/scenes", repo_type="dataset")
    HfApi().upload_folder(repo_id="lab/scenes", repo_type="dataset", folder_path=tmp_path / "folder")
    return "lab/scenes"


def test_a_folder_is_uploaded_listed_and_downloaded(hub, dataset, tmp_path):
    api, repository = HfApi(), hub.repositories["dataset", dataset]
    stored = repository.files()
    assert {name: content for name, content in stored.items() if name != ".gitattributes"} == CONTENT
    info = api.dataset_info(dataset, files_metadata=True)
    table = next(file for file in info.siblings or [] if file.rfilename == "a/table.parquet")
    assert info.sha == repository.at().oid
    assert table.lfs is not None
    assert (table.size, table.lfs.size) == (3000, 3000)
    local = Path(snapshot_download(dataset, repo_type="dataset"))
    assert {path: (local / path).read_bytes() for path in CONTENT} == CONTENT
    hub.page_size = 2
    entries = [entry.path for entry in api.list_repo_tree(dataset, repo_type="dataset", recursive=True)]
    assert entries == [".gitattributes", "README.md", "a", "a/b", *sorted(CONTENT)[1:]]
    with HfFileSystem().open(f"datasets/{dataset}/a/b/notes.txt", "rb", block_size=2) as file:
        file.seek(1)
        assert file.read(3) == b"ote"
    # What is there is not sent again.
    before, sent = repository.at().oid, len(hub.made("PUT"))
    assert api.upload_folder(repo_id=dataset, repo_type="dataset", folder_path=tmp_path / "folder").oid == before
    assert len(hub.made("PUT")) == sent


def test_a_stranger_may_propose_a_change_and_not_make_it(hub, dataset):
    stranger = HfApi(token=hub.token("eve"))
    change = CommitOperationAdd("result.json", b"{}\n")
    with pytest.raises(HfHubHTTPError, match="create_pr"):
        stranger.create_commit(dataset, [change], commit_message="mine", repo_type="dataset")
    proposed = stranger.create_commit(dataset, [change], commit_message="mine", repo_type="dataset", create_pr=True)
    assert (proposed.pr_num, proposed.pr_revision) == (1, "refs/pr/1")
    details = HfApi().get_discussion_details(dataset, 1, repo_type="dataset")
    assert (details.author, details.status, [event.type for event in details.events]) == (
        ("eve", "open", ["comment", "commit"])
    )
    assert "result.json" not in hub.repositories["dataset", dataset].files()


@pytest.mark.parametrize("path", ["a/../b.txt", "/absolute.txt", ".git/config"])
def test_a_commit_that_no_repository_can_take_is_refused(hub, dataset, path):
    change = CommitOperationAdd("x", b"1")
    change.path_in_repo = path
    with pytest.raises(HfHubHTTPError, match="Invalid path"):
        HfApi().create_commit(dataset, [change], commit_message="x", repo_type="dataset")
    with pytest.raises(EntryNotFoundError, match="doesn't exist"):
        HfApi().delete_file("missing.txt", dataset, repo_type="dataset", create_pr=True)
    assert not hub.repositories["dataset", dataset].discussions
    change, head = CommitOperationAdd("x.txt", b"1"), hub.repositories["dataset", dataset].at().oid
    hub.repositories["dataset", dataset].commit({"other.txt": b"1"}, "other")
    with pytest.raises(HfHubHTTPError, match="A commit has happened since"):
        HfApi().create_commit(dataset, [change], commit_message="x", repo_type="dataset", parent_commit=head)


_OFFLINE = """if True:
    import sys
    from pathlib import Path
    from audio_compositionality.dataset_builder.open_data import open_data
    from audio_compositionality.encoders.loading.downloads import download_from_hub
    from audio_compositionality.hub.client import Hub
    from audio_compositionality.hub.errors import HubError, Repository
    from audio_compositionality.push_scripts.dataset import push_dataset

    print(Hub().user())
    print(push_dataset(sys.argv[1], "lab").repository.id)
    data = open_data("lab/audio-compositionality").configuration("a_coat")
    print(len(data.rows), next(iter(data.clips())).sample_rate)
    print(download_from_hub("org/model", "config.json").read_text())
    # A Hub on this machine does not open the way to another one.
    from huggingface_hub import get_session
    try:
        get_session().get("https://hub.invalid/config.json")
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.mark.slow
def test_a_hub_on_this_machine_is_reached_offline(hub, start_client, built, monkeypatch):
    """A fresh process: what the clients read from the environment is not ours to change."""
    hub.repositories.create("model", "org/model").commit({"config.json": b"{}"})
    monkeypatch.setattr(
        clients,
        "client_environment",
        lambda *given, _of=clients.client_environment: {**_of(*given), "HF_HUB_OFFLINE": "1"},
    )
    process = start_client(_OFFLINE, str(built))
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert said.splitlines() == ["ada", "lab/audio-compositionality", "2 32000", "{}", "OfflineModeIsEnabled"]
