"""Recordings by name, and the data that are made of them."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.opening import open_data
from audio_compositionality.dataset_builder.recordings.opening import open_recordings, recorded
from audio_compositionality.support.errors import InputError

from .made import made_recordings
from .sounds import RATE, noise, write_labelled


@pytest.fixture
def folder(tmp_path):
    return write_labelled(tmp_path / "sounds", 8)


def settings_of(data):
    return data.settings["transforms"]


def test_a_folder_and_a_data_set_are_told_apart(folder, without_torchcodec):
    recordings = open_recordings(folder, progress=False)
    assert recordings.source == str(folder)
    (folder / "metadata.csv").write_text("file_name,label\n" + "".join(f"dog/{n}.wav,x{n % 2}\n" for n in range(8)))
    listed = open_recordings(folder, label="label", progress=False)
    same = open_recordings(dataset=folder, label="label", split="train", progress=False)
    assert recordings.fingerprint != listed.fingerprint == same.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give recordings as a folder or as a data set: one of the two"),
        ({"folder": "x", "dataset": "lab/x"}, "one of the two"),
        ({"folder": "x", "split": "test"}, "split is of a data set"),
        ({"folder": "x", "revision": "main"}, "revision is of a data set"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        open_recordings(**options)


def test_the_data_are_those_of_the_recipe(folder, tmp_path):
    recordings = open_recordings(folder, progress=False)
    data = recorded(recordings, transforms=["gain", "noise"], bases=5)
    assert data.source == f"recordings of {folder}"
    configuration = data.configuration("transforms")
    assert len(configuration.rows) == 5 * 9 + 11
    assert {row["label"] for row in configuration.rows} == {"cat", "dog"}
    clips = {clip.id: clip.waveform for clip in configuration.clips()}
    row = next(row for row in configuration.rows if row["recording"].startswith("dog/"))
    seed = int(row["recording"][4])
    gain = 10 ** (-settings_of(data).headroom / 20)
    np.testing.assert_allclose(clips[f"{row['id']}/audio"], noise(seed=seed) * gain, atol=1e-4)
    built = open_data(build_dataset(data, tmp_path / "built", workers=4, progress=False)).configuration("transforms")
    assert built.fingerprint == configuration.fingerprint
    assert list(built.rows) == list(configuration.rows)
    assert all((clip.waveform == clips[clip.id]).all() for clip in built.clips())
    assert {clip.sample_rate for clip in built.clips()} == {RATE}
    with pytest.raises(DatasetError, match="is a data set that was built, which --data takes"):
        open_recordings(tmp_path / "built", progress=False)


def test_presets_have_their_sizes_and_transforms():
    recordings = made_recordings(rate=32_000)
    sizes = {}
    for preset in ("mini", "full", "paper-mini", "paper-full"):
        settings = settings_of(recorded(recordings, preset=preset))
        sizes[preset] = settings.bases, settings.untransformed, settings.transforms
    ours, papers = ("gain", "noise", "lowpass", "reverb"), ("noise", "pitch", "reverb", "stretch")
    assert sizes == {
        "mini": (48, 208, ours),
        "full": (400, 1_600, ours),
        "paper-mini": (48, 208, papers),
        "paper-full": (400, 1_600, papers),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "ful"}, "unknown preset 'ful'; did you mean 'full'"),
        ({"transforms": ["nois"]}, "unknown transform 'nois'; did you mean 'noise'"),
        ({"base": 5}, "recordings have no setting 'base'; did you mean 'bases'"),
        ({"bases": 4}, "bases is 4; it must be from 5"),
    ],
)
def test_what_there_is_not_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        recorded(made_recordings(), **options)
