"""Data sets loaded from a loopback Hub by `datasets` and by our own reader."""

from __future__ import annotations

import datasets
import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data

from .conftest import DATASET
from .faults import CutDownload, Drop, Meanwhile, Status
from .test_push import expected, fingerprints


@pytest.fixture
def published(hub, built):
    """The built data set in a repository."""
    hub.repositories.create("dataset", DATASET).commit(expected(built))
    return DATASET


def _rows(data: datasets.Dataset | datasets.IterableDataset) -> list[dict[str, object]]:
    """The rows of quadruples with their clips as they are stored."""
    for column in "ABCD":
        data = data.cast_column(column, datasets.Audio(decode=False))
    return [dict(row) for row in data]


def test_a_built_data_set_loads_and_streams(published, built):
    local = _rows(datasets.load_dataset(str(built), "a_coat", split="test"))
    assert _rows(datasets.load_dataset(published, "a_coat", split="test")) == local
    assert _rows(datasets.load_dataset(published, "a_coat", split="test", streaming=True)) == local
    splits = datasets.load_dataset(published, "a_tre")
    assert {name: len(split) for name, split in splits.items()} == {"train": 20, "validation": 2, "test": 2}


def test_our_reader_opens_it(hub, published, built):
    remote, local = open_data(published), open_data(built)
    assert remote.recipes == local.recipes
    for recipe in local.recipes:
        one, other = remote.configuration(recipe), local.configuration(recipe)
        assert (one.fingerprint, one.rows) == (other.fingerprint, other.rows)
        for clip, other_clip in zip(one.clips(), other.clips(), strict=True):
            assert clip.id == other_clip.id
            np.testing.assert_array_equal(clip.waveform, other_clip.waveform)
    revision = hub.repositories["dataset", published].at().oid
    assert fingerprints(published, revision=revision) == fingerprints(built)


READS = {
    "head": ("GET", "/revision/main"),
    "manifest": ("HEAD", "/resolve/.*/manifest.json"),
    "shard": ("GET", "/resolve/.*parquet"),
}


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        ("head", Status(503, retry_after=2)),
        ("manifest", Drop(acts=False)),
        ("shard", CutDownload(after=100, reset=True)),
    ],
)
def test_our_reader_waits_for_what_passes(hub, published, built, waits, read, fault):
    hub.faults.order(*READS[read], fault)
    remote, local = (open_data(source).configuration("a_coat") for source in (published, built))
    assert (remote.fingerprint, remote.rows) == (local.fingerprint, local.rows)


@pytest.mark.parametrize(
    ("read", "fault", "message"),
    [
        ("head", Status(401), "settings/tokens"),
        ("manifest", Status(403), "must have the right to read"),
        ("shard", Status(503), "answered 503.*run the same command later"),
    ],
)
def test_our_reader_says_what_is_wrong(hub, published, waits, read, fault, message):
    hub.faults.order(*READS[read], fault, times=None)
    with pytest.raises(DatasetError, match=message):
        _ = open_data(published).configuration("a_coat").rows


@pytest.mark.parametrize("read", READS)
def test_an_outage_is_told_once_and_tries_do_not_multiply(hub, published, waits, caplog, read):
    hub.faults.order(*READS[read], Drop(acts=False), times=None)
    with pytest.raises(DatasetError, match="cannot be reached or broke the connection"):
        _ = open_data(published).configuration("a_coat").rows
    ours = [record for record in caplog.records if record.name.startswith("audio_compositionality")]
    assert [record.getMessage().endswith("trying again a few times") for record in ours] == [True]


def test_our_reader_reads_one_commit(hub, published, built):
    # A push of other data between the shards and the manifest must not be taken for damage, nor mixed in.
    repository = hub.repositories["dataset", published]
    hub.faults.order(
        "HEAD", "/resolve/.*/manifest.json", Meanwhile(lambda: repository.commit({"manifest.json": b"{}"}, "other"))
    )
    assert fingerprints(published) == fingerprints(built)


def test_a_data_set_that_is_not_there(hub):
    with pytest.raises(DatasetError, match="dataset lab/nothing does not exist, or the token of ada cannot see it"):
        open_data("lab/nothing")
