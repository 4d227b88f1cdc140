"""Recordings in data sets that `datasets` reads, on this machine: Parquet and folders of sound files."""

from __future__ import annotations

import io
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds import hub
from audio_compositionality.dataset_builder.sounds import hub as splits
from audio_compositionality.dataset_builder.sounds.folder import folder_recordings
from audio_compositionality.dataset_builder.sounds.hub import hub_recordings
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.dataset_builder.stored import LocalFolder

from .sounds import RATE, noise, write, write_labelled

CLASSES = ("cat", "dog")


def encoded(seed, **options):
    stream = io.BytesIO()
    soundfile.write(stream, noise(seed=seed), RATE, format="FLAC", **options)
    return stream.getvalue()


def columns(count=12):
    """What rows hold, and what they declare."""
    values = {
        "audio": [{"bytes": encoded(n), "path": f"{n}.flac"} for n in range(count)],
        "animal": [n % 2 for n in range(count)],
        "name": [CLASSES[n % 2] for n in range(count)],
        "words": [n / 4 for n in range(count)],
        "year": [2_000 + n % 3 for n in range(count)],
        "speaker": [n // 2 for n in range(count)],
        "where": [[n] for n in range(count)],
    }
    features = datasets.Features(
        {
            "audio": datasets.Audio(),
            "animal": datasets.ClassLabel(names=list(CLASSES)),
            "name": datasets.Value("string"),
            "words": datasets.Value("float32"),
            "year": datasets.Value("int16"),
            "speaker": datasets.Value("int64"),
            "where": datasets.List(datasets.Value("int64")),
        }
    )
    return values, features


def save(folder, values, features, split="test"):
    path = folder / "data" / f"{split}-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pydict(values, schema=features.arrow_schema), path)
    return folder


@pytest.fixture
def folder(tmp_path, without_torchcodec):
    return save(tmp_path / "set", *columns())


def opened(folder, **options):
    return hub_recordings(folder, progress=False, **options)


class TestParquet:
    def test_gives_samples_classes_and_groups(self, folder):
        recordings = opened(folder, label="animal", group="speaker")
        assert {(entry.id, entry.label, entry.group) for entry in recordings.entries} == {
            (f"test/{n}", CLASSES[n % 2], str(n // 2)) for n in range(12)
        }
        assert (recordings.source, recordings.sample_rate) == (str(folder), RATE)
        said = {(entry.id, entry.condition) for entry in opened(folder, condition="year").entries}
        assert said == {(f"test/{n}", str(2_000 + n % 3)) for n in range(12)}
        place = next(n for n, entry in enumerate(recordings.entries) if entry.id == "test/7")
        waveform, rate = recordings.waveform(place)
        assert rate == RATE
        np.testing.assert_allclose(waveform, noise(seed=7), atol=4e-5)

    def test_is_the_same_as_a_folder_with_the_same(self, folder, tmp_path):
        for n in range(12):
            path = tmp_path / "files" / CLASSES[n % 2] / f"{n}.flac"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(n))
        assert opened(folder, label="animal").fingerprint == opened(folder, label="name").fingerprint
        assert opened(folder, label="name").fingerprint == folder_recordings(tmp_path / "files").fingerprint

    def test_gives_numbers_where_labels_have_decimals(self, folder):
        assert sorted(entry.number for entry in opened(folder, label="words").entries) == [n / 4 for n in range(12)]
        years = opened(folder, label="year").entries
        assert {(entry.label, entry.number) for entry in years} == {(str(2_000 + n), None) for n in range(3)}
        assert {(entry.label, entry.number) for entry in opened(folder).entries} == {("", None)}

    def test_is_prepared_in_silence_where_nobody_watches(self, folder, capfd):
        before = datasets.are_progress_bars_disabled()
        opened(folder)
        assert datasets.are_progress_bars_disabled() == before
        assert capfd.readouterr().err == ""

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"label": "animals"}, "has no column 'animals'; did you mean 'animal'"),
            ({"group": "speakers"}, "has no column 'speakers'; did you mean 'speaker'"),
            ({"condition": "yaer"}, "has no column 'yaer'; did you mean 'year'"),
            ({"label": "where"}, "where is no column of classes, texts or numbers"),
            ({"label": "audio"}, "audio is no column of classes, texts or numbers"),
            ({"audio": "name"}, "has no audio in a column 'name'"),
            ({"split": "tset"}, "has no split 'tset'; did you mean 'test'"),
            ({"split": "test[0:"}, "cannot be read"),
            ({"config": "other"}, "cannot be read: .*other"),
        ],
    )
    def test_names_what_is_not_there(self, folder, options, message):
        with pytest.raises(DatasetError, match=message):
            opened(folder, **options)

    def test_has_parts_and_splits(self, folder):
        assert len(opened(folder, split="test[:5]").entries) == 5
        save(folder, *columns(6), split="train")
        with pytest.raises(SoundError, match=r"has the splits .*train.*; name one with --set split=NAME"):
            opened(folder)
        assert len(opened(folder, split="train").entries) == 6

    def test_needs_one_column_of_audio(self, folder, tmp_path):
        values, features = columns()
        more = {**values, "noisy": values["audio"]}, datasets.Features({**features, "noisy": datasets.Audio()})
        save(tmp_path / "two", *more)
        with pytest.raises(SoundError, match="audio in the columns audio, noisy; name one"):
            opened(tmp_path / "two")
        assert len(opened(tmp_path / "two", audio="noisy").entries) == 12
        del values["audio"]
        features = datasets.Features({name: feature for name, feature in features.items() if name != "audio"})
        save(tmp_path / "none", values, features)
        with pytest.raises(SoundError, match="has no column of audio; its columns are animal, name"):
            opened(tmp_path / "none")


class Repository:
    """What of a repository of the Hub is asked for, answered from a folder."""

    def __init__(self, source, revision):
        place = LocalFolder(source)
        self.source, self.revision = source, revision
        self.path, self.names_of, self.ask = place.path, place.names_of, place.ask

    def size_of(self, names):
        return sum((Path(self.source) / name).stat().st_size for name in names)


class TestSplits:
    @pytest.fixture
    def two(self, folder):
        """A data set of which one split could not be read."""
        (folder / "data" / "train-00000-of-00001.parquet").write_bytes(b"no Parquet")
        return folder

    def test_that_are_not_asked_for_are_not_downloaded(self, two, monkeypatch):
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(two, split="test")
        monkeypatch.setattr(hub, "place_of", Repository)
        assert len(opened(two, split="test").entries) == 12
        recordings = opened(two, split="test[:5]", label="animal")
        assert {entry.label for entry in recordings.entries} == set(CLASSES)
        assert len(recordings.entries) == 5
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(two, split="test+train")

    def test_may_be_several(self, folder):
        for split, count in (("train", 6), ("more", 4)):
            save(folder, *columns(count), split=split)
        recordings = opened(folder, split="test[6:]+train[:2]", label="animal")
        assert len(recordings.entries) == 8
        assert splits.splits_in("train[:1]+train[2:]+test") == ("train", "test")
        assert splits.splits_in("test[0:") == splits.splits_in(None) == ()
        with pytest.raises(SoundError, match="has no split 'tset'; did you mean 'test'"):
            opened(folder, split="train+tset")

    def test_that_are_small_may_lie_beside_large_ones(self, folder, monkeypatch):
        save(folder, *columns(6), split="train")
        (folder / "data" / "train-00001-of-00002.parquet").write_bytes(b"x" * 2**20)
        monkeypatch.setattr(hub, "place_of", Repository)
        monkeypatch.setattr(splits, "LARGEST_DOWNLOAD", 2**20)
        for split in (None, "train", "test+train[:5]"):
            with pytest.raises(SoundError, match="GB to download, more than"):
                opened(folder, split=split)
        assert len(opened(folder, split="test").entries) == 12

    def test_may_be_the_files_of_a_pattern(self, tmp_path, without_torchcodec):
        save(tmp_path / "v2", *columns())
        (tmp_path / "v1").mkdir()
        (tmp_path / "v1" / "test.parquet").write_bytes(b"no Parquet")
        (tmp_path / "set.py").write_text("raise SystemExit('it ran')")
        files = {"files": "{config}/data/{split}-*.parquet", "config": "v2"}
        assert len(opened(tmp_path, split="test", **files).entries) == 12
        assert len(opened(tmp_path, split="test[3:]", **files).entries) == 9
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(tmp_path, split="train", **files)
        save(tmp_path / "v2", *columns(6), split="train")
        assert len(opened(tmp_path, split="test[3:]+train[:1]", **files).entries) == 10
        for split in ("test+", None):
            with pytest.raises(SoundError, match=rf"the split is '{split}'".replace("+", r"\+")):
                opened(tmp_path, split=split, **files)


class TestWhatCannotBeUsed:
    @pytest.mark.parametrize(
        ("column", "value", "message"),
        [
            ("animal", None, "row 3 has no animal"),
            ("animal", -1, "row 3 has no animal"),
            ("name", " ", "row 3 has no name"),
            ("words", None, "row 3 has no words"),
            ("words", float("nan"), "words of row 3 is nan"),
        ],
    )
    def test_a_row_without_a_label_is_named(self, folder, column, value, message):
        values, features = columns()
        values[column][3] = value
        save(folder, values, features)
        with pytest.raises(SoundError, match=message):
            opened(folder, label=column)

    @pytest.mark.parametrize(
        ("audio", "message"),
        [
            (None, "holds no audio"),
            ({"bytes": b"no sound", "path": "3.flac"}, "cannot be read"),
            ({"bytes": None, "path": None}, "holds no audio"),
            ({"bytes": None, "path": "3.flac"}, "names the file 3.flac, which is not in the data set"),
            ({"bytes": None, "path": "https://example.org/3.flac"}, "which is not in the data set"),
            ({"bytes": None, "path": "\0"}, "cannot be read"),
        ],
    )
    def test_a_recording_is_named_or_left_out(self, folder, audio, message):
        values, features = columns()
        values["audio"][3] = audio
        save(folder, values, features)
        with pytest.raises(SoundError, match=rf"'test/3' .*{message}.*--skip-invalid"):
            opened(folder)
        recordings = opened(folder, skip_invalid=True)
        assert len(recordings.entries) == 11
        assert [id for id, _ in recordings.skipped] == ["test/3"]

    def test_files_elsewhere_are_not_read(self, folder, tmp_path):
        values, features = columns()
        outside = write(tmp_path / "private.wav", seed=50)
        (folder / "link.wav").symlink_to(outside)
        values["audio"][3] = {"bytes": None, "path": str(outside)}
        values["audio"][4] = {"bytes": None, "path": str(folder / "link.wav")}
        values["audio"][5] = {"bytes": None, "path": str(write(folder / "own.wav", seed=51))}
        save(folder, values, features)
        assert [id for id, _ in opened(folder, skip_invalid=True).skipped] == ["test/3", "test/4"]

    def test_what_is_too_large_is_said(self, folder, monkeypatch):
        monkeypatch.setattr(hub, "LARGEST_FILE", 1_000)
        with pytest.raises(SoundError, match=r"'test/0' has [0-9,]+ bytes; 1,000 are the most"):
            opened(folder)
        monkeypatch.setattr(hub, "MOST_RECORDINGS", 11)
        with pytest.raises(SoundError, match=r"12 rows; 11 recordings are the most .* --set split=train\[:10000\]"):
            opened(folder)

    def test_what_is_too_much_to_download_is_refused_before(self, folder, monkeypatch):
        monkeypatch.setattr(hub, "place_of", Repository)
        assert len(opened(folder).entries) == 12
        monkeypatch.setattr(Repository, "size_of", lambda *_: 123_456_789_012)
        with pytest.raises(SoundError, match=r"has 123 GB to download, more than 100; give another split or"):
            opened(folder)

    def test_no_other_reader_is_used(self, tmp_path, without_torchcodec):
        (tmp_path / "x.json").write_text('[{"a": 1}]')
        with pytest.raises(SoundError, match="is read by the reader 'json' of datasets; only parquet, arrow"):
            opened(tmp_path)

    def test_a_script_is_not_run(self, tmp_path, without_torchcodec):
        (tmp_path / f"{tmp_path.name}.py").write_text("raise SystemExit('it ran')")
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(tmp_path)

    def test_a_card_that_leads_elsewhere_is_refused(self, folder, tmp_path):
        (folder / "README.md").write_text(
            "---\nconfigs:\n- config_name: default\n  data_files: https://example.org/x.parquet\n---\n"
        )
        with pytest.raises(DatasetError, match=r"names https://example\.org/x\.parquet"):
            opened(folder)
        save(tmp_path / "other", *columns())
        (folder / "README.md").write_text(
            "---\nconfigs:\n- config_name: default\n  data_files: ../other/data/*.parquet\n---\n"
        )
        with pytest.raises(DatasetError, match=r"names a file outside of it|cannot be read"):
            opened(folder)

    def test_names_that_are_none(self):
        with pytest.raises(SoundError, match="no data set 'nowhere': neither a folder nor a Hub id"):
            opened("nowhere")
        with pytest.raises(SoundError, match="the data set is ''; give a Hub id, a folder"):
            opened("")
        with pytest.raises(DatasetError, match="offline"):
            opened("lab/sounds")


class TestFolderOfSoundFiles:
    def test_is_read_without_torchcodec(self, tmp_path, without_torchcodec):
        before = datasets.Audio.encode_example
        for n in range(6):
            for label in CLASSES:
                write(tmp_path / label / f"{n}.wav", seed=10 * n + len(label) + CLASSES.index(label))
        recordings = opened(tmp_path, label="label")
        assert datasets.Audio.encode_example is before
        assert {entry.label for entry in recordings.entries} == set(CLASSES)
        assert recordings.fingerprint == folder_recordings(tmp_path).fingerprint

    def test_may_have_a_table(self, tmp_path, without_torchcodec):
        write_labelled(tmp_path)
        lines = [f"dog/{n}.wav,{n}.5,s{n % 5}" for n in range(6)]
        (tmp_path / "metadata.csv").write_text("\n".join(["file_name,label,group", *lines]) + "\n")
        recordings = opened(tmp_path, label="label", group="group")
        assert recordings.fingerprint == folder_recordings(tmp_path).fingerprint
        assert sorted(entry.number for entry in recordings.entries) == [n + 0.5 for n in range(6)]
