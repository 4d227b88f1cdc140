"""Log-mels on the disk: those of evaluation, computed once, whoever is killed and however many ask."""

import errno
import os
import shutil
import signal
import warnings

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.base import resample
from audio_compositionality.encoders.networks.small_networks import tiny_extractor
from audio_compositionality.support.files import CACHE_VARIABLE
from audio_compositionality.training import features
from audio_compositionality.training.features import ClapFrontEnd, features_folder, prepare_features
from audio_compositionality.training.settings import TrainingError

from .made_data import made_data

FULL = (
    r"the log-mels of 10 clips take 0.00 GB in .*, but 0.00 GB are free; free some space, or set .* to another folder"
)


class CountingFrontEnd:
    """The first samples of a clip; each one that is computed is noted in a file."""

    sample_rate, shape = 8_000, (2, 3)

    def __init__(self, notes, *, killed_at=None, name="counting"):
        self.notes, self.killed_at = notes, killed_at
        self.settings = {"front_end": name}

    def __call__(self, waveform):
        if self.killed_at is not None and self.count >= self.killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        with self.notes.open("ab") as stream:
            stream.write(b".")
        return waveform[:6].reshape(self.shape)

    @property
    def count(self):
        return self.notes.stat().st_size if self.notes.is_file() else 0


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(features, "CHUNK", 4)
    return tmp_path / "cache"


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "notes"


def expected(data):
    return np.stack([clip.waveform[:6].reshape(2, 3) for clip in data.clips()])


def forked(function):
    """A process that runs a function, and ends without a word to pytest."""
    process = os.fork()
    if not process:
        try:
            function()
        finally:
            os._exit(0)
    return process


def test_features_are_computed_once(notes, cache):
    data = made_data(42)
    front_end = CountingFrontEnd(notes)
    stored = prepare_features(data, front_end)
    assert stored.folder.is_relative_to(cache)
    assert front_end.count == 42
    numbers = np.array([41, 0, 7])
    gathered = stored.gather(numbers)
    assert gathered.shape == (3, 2, 3)
    assert np.abs(gathered.numpy() - expected(data)[numbers]).max() < 1e-3
    again = prepare_features(data, front_end)
    assert front_end.count == 42
    assert np.array_equal(again.values, stored.values)
    assert prepare_features(data, front_end, workers=1, folder=cache / "one").values.tobytes() == again.values.tobytes()


def test_other_data_or_front_ends_have_a_folder_of_their_own(notes):
    data, front_end = made_data(42), CountingFrontEnd(notes)
    others = (CountingFrontEnd(notes, name="other"), ClapFrontEnd(tiny_extractor(), "tiny"))
    folders = {features_folder(data, one) for one in (front_end, *others)} | {features_folder(made_data(41), front_end)}
    assert len(folders) == 4
    assert features_folder(data.take(3), front_end) in folders


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
class TestProcesses:
    def test_what_a_killed_process_has_done_is_kept(self, notes):
        data = made_data(42)
        process = forked(lambda: prepare_features(data, CountingFrontEnd(notes, killed_at=30), workers=1))
        assert os.waitpid(process, 0)[1] == signal.SIGKILL
        front_end = CountingFrontEnd(notes)
        done = int(np.load(features_folder(data, front_end) / "digests.npy").any(axis=1).sum())
        assert 4 <= done < 42
        stored = prepare_features(data, front_end)
        assert front_end.count == 30 + 42 - done
        assert np.abs(stored.values - expected(data)).max() < 1e-3

    def test_processes_share_what_one_prepares(self, notes):
        data = made_data(42)
        processes = [forked(lambda: prepare_features(data, CountingFrontEnd(notes))) for _ in range(3)]
        for process in processes:
            assert os.waitpid(process, 0)[1] == 0
        front_end = CountingFrontEnd(notes)
        assert np.abs(prepare_features(data, front_end).values - expected(data)).max() < 1e-3
        assert front_end.count == 42

    def test_what_another_ends_before_the_lock_is_had_is_not_computed_again(self, notes, monkeypatch):
        data, front_end, lock = made_data(42), CountingFrontEnd(notes), features.locked

        def late(path):
            monkeypatch.setattr(features, "locked", lock)
            prepare_features(data, front_end)
            return lock(path)

        monkeypatch.setattr(features, "locked", late)
        prepare_features(data, front_end)
        assert front_end.count == 42


def test_damaged_files_are_computed_again(notes):
    data, front_end = made_data(10), CountingFrontEnd(notes)
    stored = prepare_features(data, front_end)
    whole = np.array(stored.values)
    with (stored.folder / "values.npy").open("r+b") as stream:
        stream.truncate(50)
    with pytest.warns(UserWarning, match=r"values\.npy or digests\.npy next to it has the wrong size: all features"):
        assert np.array_equal(prepare_features(data, front_end).values, whole)
    assert front_end.count == 20
    # A header may claim any shape.
    header = b"{'descr': '<f2', 'fortran_order': False, 'shape': (10000000000000000000000000,), }\n"
    (stored.folder / "values.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.warns(UserWarning, match="has the wrong size: all features"):
        assert np.array_equal(prepare_features(data, front_end).values, whole)


@pytest.mark.parametrize("name", ["values.npy", "digests.npy"])
def test_a_changed_bit_makes_the_features_of_one_clip_anew_and_a_line_says_so(notes, name):
    data, front_end, every = made_data(10), CountingFrontEnd(notes), np.arange(10)
    whole = prepare_features(data, front_end).gather(every)
    path = features_folder(data, front_end) / name
    content = bytearray(path.read_bytes())
    before = bytes(content)
    # In the exponent of a value of the fourth clip, behind the 128 bytes of the header.
    content[128 + (len(content) - 128) // 10 * 3 + 1] ^= 0x40
    path.write_bytes(content)
    stored = prepare_features(data, front_end)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stored.gather(every[4:])
    with pytest.warns(UserWarning, match=r"values\.npy or digests\.npy next to it is damaged: the features of clip 3"):
        assert torch.equal(stored.gather(every[[9, 3, 3]]), whole[[9, 3, 3]])
    assert front_end.count == 11
    assert path.read_bytes() == before
    # It was put right on the disk, too, and what was compared once is not compared again.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(stored.gather(every), whole)
        assert torch.equal(prepare_features(data, front_end).gather(every), whole)


def test_features_of_other_data_are_computed_again(notes):
    data, other, front_end, every = made_data(10), made_data(10, seconds=0.2), CountingFrontEnd(notes), np.arange(10)
    whole = prepare_features(data, front_end).gather(every)
    prepare_features(other, front_end)
    for name in ("values.npy", "digests.npy"):
        shutil.copy(features_folder(other, front_end) / name, features_folder(data, front_end) / name)
    with pytest.warns(UserWarning, match="do not match their digest and are computed again"):
        assert torch.equal(prepare_features(data, front_end).gather(every), whole)


def test_a_full_disk_is_told(notes, monkeypatch):
    data, front_end = made_data(10), CountingFrontEnd(notes)
    usage = features.shutil.disk_usage(notes.parent)._replace(free=2_000)
    with monkeypatch.context() as patched:
        patched.setattr(features.shutil, "disk_usage", lambda folder: usage)
        with pytest.raises(TrainingError, match=FULL):
            prepare_features(data, front_end)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(features.os, "posix_fallocate", full, raising=False)
        with pytest.raises(TrainingError, match="10 clips take"):
            prepare_features(data, front_end)
    assert len(prepare_features(data, front_end).values) == 10


class TestClapFrontEnd:
    def test_features_are_those_of_the_extractor(self, cache):
        extractor = tiny_extractor()
        front_end = ClapFrontEnd(extractor, "tiny")
        data = made_data(2, rate=16_000, seconds=1.5)
        assert front_end.shape == (1, 501, 32)
        clips = [clip.waveform for clip in data.clips()]
        own = np.stack([front_end(clip) for clip in clips])
        reference = extractor(clips, sampling_rate=16_000, return_tensors="np")["input_features"]
        assert np.abs(own - reference).max() < 1e-3
        stored = prepare_features(data, front_end)
        # Half precision is off by the half of 1/16 dB, and silence by nothing.
        assert np.abs(stored.gather(np.arange(2)).numpy() - own).max() <= 1 / 32
        assert (stored.values.min(), own.min()) == (-100, -100)

    def test_clips_are_resampled_as_encoders_do_and_long_ones_begin(self):
        front_end = ClapFrontEnd(tiny_extractor(), "tiny")
        data = made_data(1, rate=32_000, seconds=12)
        (clip,) = data.clips()
        values = prepare_features(data, front_end).read(np.array([0]))[0]
        begun = front_end(resample(clip.waveform[None], 32_000, 16_000)[0, :160_000])
        assert np.array_equal(values, begun.astype(np.float16))
