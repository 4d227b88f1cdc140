"""A named data set read from a loopback Hub: the files of its splits alone, and none that are too large."""

from __future__ import annotations

import pytest
from huggingface_hub import HfApi

from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.sounds import hub as splits
from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from ..dataset_builder.sounds.miniatures import write_miniature

DESCRIPTION = """\
title: Notes
dataset: lab/notes
files: "data/{split}/*.parquet"
split: test
label: instrument_family_str
audio: audio
domain: notes
licence: none
url: https://example.org
citation: nobody
"""


@pytest.fixture
def described(hub, tmp_path):
    """A description of a data set that is on the Hub, in two splits."""
    folder = tmp_path / "notes"
    write_miniature("nsynth", folder)
    train = folder / "data" / "train"
    train.mkdir()
    (folder / "data" / "test" / "test.parquet").rename(train / "0.parquet")
    write_miniature("nsynth", folder)
    (train / "1.parquet").write_bytes(b"no Parquet" * 100_000)
    api = HfApi()
    api.create_repo("lab/notes", repo_type="dataset")
    api.upload_folder(repo_id="lab/notes", repo_type="dataset", folder_path=folder)
    path = tmp_path / "notes.yaml"
    path.write_text(DESCRIPTION)
    return path


def test_the_files_of_a_split_are_weighed_and_read(described, without_torchcodec, monkeypatch):
    monkeypatch.setattr(splits, "LARGEST_DOWNLOAD", 1_000_000)
    recordings = open_recordings(f"dataset:{described}", progress=False)
    assert (recordings.source, len(recordings.entries)) == ("notes", 60)
    for split in ("train", "test[:5]+train[:5]"):
        with pytest.raises(SoundError, match=r"lab/notes has .* GB to download, more than"):
            open_recordings(f"dataset:{described}", split=split, progress=False)
