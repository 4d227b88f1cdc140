"""Data sets and metrics loaded from a loopback Hub by `datasets`, by `evaluate` and by our own reader."""

from __future__ import annotations

from pathlib import Path

import datasets
import evaluate
import numpy as np
import pytest
from huggingface_hub import HfApi

from audio_compositionality import metrics
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data

from .conftest import RunClient
from .faults import CutDownload, Drop, Fault, Meanwhile, Status
from .server import LoopbackHub

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")  # huggingface_hub's own


def test_configurations_are_pushed_and_loaded(hub: LoopbackHub) -> None:
    for name, values in (("first", [1, 2, 3]), ("second", [4])):
        datasets.Dataset.from_dict({"x": values}).push_to_hub("lab/pushed", name, split="test")
    assert datasets.load_dataset("lab/pushed", "first", split="test")["x"] == [1, 2, 3]
    assert datasets.load_dataset("lab/pushed", "second")["test"]["x"] == [4]
    assert datasets.get_dataset_config_names("lab/pushed") == ["first", "second"]
    datasets.Dataset.from_dict({"x": [9]}).push_to_hub("lab/pushed", "first", split="test", create_pr=True)
    assert datasets.load_dataset("lab/pushed", "first", split="test", revision="refs/pr/1")["x"] == [9]


@pytest.fixture
def published(hub: LoopbackHub, built: Path) -> str:
    """The built data set in a repository."""
    api = HfApi()
    api.create_repo("lab/audio-compositionality", repo_type="dataset")
    api.upload_folder(repo_id="lab/audio-compositionality", repo_type="dataset", folder_path=built)
    return "lab/audio-compositionality"


def _rows(data: datasets.Dataset | datasets.IterableDataset) -> list[dict[str, object]]:
    """The rows of quadruples with their clips as they are stored."""
    for column in "ABCD":
        data = data.cast_column(column, datasets.Audio(decode=False))
    return [dict(row) for row in data]


def test_a_built_data_set_loads_and_streams(published: str, built: Path) -> None:
    local = _rows(datasets.load_dataset(str(built), "a_coat", split="test"))
    assert _rows(datasets.load_dataset(published, "a_coat", split="test")) == local
    assert _rows(datasets.load_dataset(published, "a_coat", split="test", streaming=True)) == local
    splits = datasets.load_dataset(published, "a_tre")
    assert {name: len(split) for name, split in splits.items()} == {"train": 20, "validation": 2, "test": 2}


def fingerprints(source: str | Path, **options: str) -> list[str]:
    """Of the configurations of data."""
    data = open_data(source, **options)
    return [data.configuration(recipe).fingerprint for recipe in data.recipes]


def test_our_reader_opens_it(hub: LoopbackHub, published: str, built: Path) -> None:
    remote, local = open_data(published), open_data(built)
    assert remote.recipes == local.recipes
    for recipe in local.recipes:
        one, other = remote.configuration(recipe), local.configuration(recipe)
        assert (one.fingerprint, one.rows) == (other.fingerprint, other.rows)
        for clip, expected in zip(one.clips(), other.clips(), strict=True):
            assert clip.id == expected.id
            np.testing.assert_array_equal(clip.waveform, expected.waveform)
    revision = hub.repositories["dataset", published].at().oid
    assert fingerprints(published, revision=revision) == fingerprints(built)


@pytest.fixture
def metric_space(hub: LoopbackHub) -> str:
    """A Space that holds the module of A-COAT and its siblings."""
    HfApi().create_repo("lab/a_coat", repo_type="space", space_sdk="gradio")
    for name, content in metrics.module_files(metrics.metric_file("a_coat")).items():
        HfApi().upload_file(path_or_fileobj=content, path_in_repo=name, repo_id="lab/a_coat", repo_type="space")
    return "lab/a_coat"


QUADRUPLE = {"a": [[0.0, 0.0]], "b": [[1.0, 0.0]], "c": [[5.0, 5.0]], "d": [[9.0, 5.0]]}


def test_a_metric_loads_from_its_space(hub: LoopbackHub, metric_space: str) -> None:
    assert evaluate.load(metric_space).compute(**QUADRUPLE)["a_coat"] == 1.0
    # The version of the library is asked for first, as a tag.
    files = metrics.module_files(metrics.metric_file("a_coat"))
    assert [made.status for made in hub.made("HEAD", "/spaces/lab/a_coat/resolve/")] == [404, *[200] * len(files)]


FRESH = """
import sys
import datasets, evaluate, huggingface_hub
from audio_compositionality.dataset_builder.open_data import open_data

data, metric = sys.argv[1:]
huggingface_hub.create_repo("lab/copy", repo_type="dataset")
folder = huggingface_hub.snapshot_download(data, repo_type="dataset")
huggingface_hub.upload_folder(repo_id="lab/copy", repo_type="dataset", folder_path=folder)
assert len(datasets.load_dataset("lab/copy", "a_coat", split="test")) == 2
assert next(iter(datasets.load_dataset("lab/copy", "a_coat", split="test", streaming=True).select_columns("id")))["id"]
print(open_data("lab/copy").configuration("a_coat").fingerprint)
print(evaluate.load(metric).compute(a=[[0, 0]], b=[[1, 0]], c=[[5, 5]], d=[[5, 9]])["a_coat"])
"""


@pytest.mark.slow
def test_a_fresh_process_needs_the_environment_alone(
    hub: LoopbackHub, run_client: RunClient, published: str, metric_space: str, built: Path
) -> None:
    fingerprint, score = run_client(FRESH, published, metric_space).split()
    assert fingerprint == open_data(built).configuration("a_coat").fingerprint
    assert float(score) == 0.0
    assert hub.repositories["dataset", "lab/copy"].files() == hub.repositories["dataset", published].files()


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        ("GET", "/revision/main", Status(503, retry_after=2)),
        ("HEAD", "/resolve/.*/manifest.json", Drop(acts=False)),
        ("GET", "/resolve/.*/manifest.json", Status(500)),
        ("GET", "/resolve/.*parquet", Status(503)),
        ("GET", "/resolve/.*parquet", CutDownload(after=100, reset=True)),
        ("GET", "/resolve/.*parquet", Drop(acts=False)),
    ],
    ids=str,
)
def test_our_reader_waits_for_what_passes(
    hub: LoopbackHub, published: str, built: Path, waits: list[float], method: str, path: str, fault: Fault
) -> None:
    hub.faults.order(method, path, fault)
    remote, local = (open_data(source).configuration("a_coat") for source in (published, built))
    assert (remote.fingerprint, remote.rows) == (local.fingerprint, local.rows)


@pytest.mark.parametrize(
    ("method", "path", "fault", "message"),
    [
        ("GET", "/revision/main", Status(401), "settings/tokens"),
        ("HEAD", "/resolve/.*/manifest.json", Status(403), "must have the right to read"),
        ("GET", "/resolve/.*parquet", Status(503), "answered 503.*run the same command later"),
        ("GET", "/resolve/.*parquet", Drop(acts=False), "cannot be reached or broke the connection"),
    ],
    ids=str,
)
def test_our_reader_says_what_is_wrong(
    hub: LoopbackHub, published: str, waits: list[float], method: str, path: str, fault: Fault, message: str
) -> None:
    hub.faults.order(method, path, fault, times=None)
    with pytest.raises(DatasetError, match=message):
        _ = open_data(published).configuration("a_coat").rows


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/revision/main"), ("HEAD", "/resolve/.*/manifest.json"), ("GET", "/resolve/.*parquet")],
)
def test_an_outage_is_told_once_and_tries_do_not_multiply(
    hub: LoopbackHub, published: str, waits: list[float], caplog: pytest.LogCaptureFixture, method: str, path: str
) -> None:
    hub.faults.order(method, path, Drop(acts=False), times=None)
    with pytest.raises(DatasetError, match="cannot be reached or broke the connection"):
        _ = open_data(published).configuration("a_coat").rows
    ours = [record for record in caplog.records if record.name.startswith("audio_compositionality")]
    assert [record.getMessage().endswith("trying again a few times") for record in ours] == [True]


def test_our_reader_reads_one_commit(hub: LoopbackHub, published: str, built: Path) -> None:
    # A push of other data between the shards and the manifest must not be taken for damage, nor mixed in.
    repository = hub.repositories["dataset", published]
    hub.faults.order(
        "HEAD", "/resolve/.*/manifest.json", Meanwhile(lambda: repository.commit({"manifest.json": b"{}"}, "other"))
    )
    assert fingerprints(published) == fingerprints(built)


def test_a_data_set_that_is_not_there(hub: LoopbackHub) -> None:
    with pytest.raises(DatasetError, match="dataset lab/nothing does not exist, or the token of ada does not see it"):
        open_data("lab/nothing")
