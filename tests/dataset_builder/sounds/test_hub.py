"""Recordings in data sets that `datasets` reads, on this machine, and in miniatures of those that have a name."""

import io
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from audio_compositionality.dataset_builder import stored
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.data_spec import DataSpec
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import changeable, recorded
from audio_compositionality.dataset_builder.sounds import hub
from audio_compositionality.dataset_builder.sounds.hub import (
    NamedSet,
    hub_recordings,
    list_named_sets,
    load_named_set,
    named_set_from,
)
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.dataset_builder.stored import LocalFolder
from audio_compositionality.support.spec import check_values

from . import miniatures
from .miniatures import CAPTIONS, FAMILIES, LEAVES, MINIATURES, URBAN, VIDEOS, VOCAL, WORDS, write_miniature
from .sounds import RATE, noise, write, write_labelled

CLASSES = ("cat", "dog")


def encoded(seed, **options):
    stream = io.BytesIO()
    soundfile.write(stream, noise(seed=seed), RATE, format="FLAC", **options)
    return stream.getvalue()


def columns(count=12):
    """What rows hold, and what they declare."""
    text, whole = datasets.Value("string"), datasets.Value("int64")
    of_column = {
        "audio": (datasets.Audio(), [{"bytes": encoded(n), "path": f"{n}.flac"} for n in range(count)]),
        "animal": (datasets.ClassLabel(names=list(CLASSES)), [n % 2 for n in range(count)]),
        "name": (text, [CLASSES[n % 2] for n in range(count)]),
        "words": (datasets.Value("float32"), [n / 4 for n in range(count)]),
        "year": (datasets.Value("int16"), [2_000 + n % 3 for n in range(count)]),
        "speaker": (whole, [n // 2 for n in range(count)]),
        "where": (datasets.List(whole), [[n] for n in range(count)]),
    }
    features = datasets.Features({name: feature for name, (feature, _) in of_column.items()})
    return {name: values for name, (_, values) in of_column.items()}, features


def save(folder, values, features, split="test"):
    path = folder / "data" / f"{split}-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pydict(values, schema=features.arrow_schema), path)
    return folder


@pytest.fixture
def folder(tmp_path, without_torchcodec):
    return save(tmp_path / "set", *columns())


def opened(folder, **fields):
    return open_recordings(f"dataset:{folder}", progress=False, **fields)


def described(folder, **fields):
    """A data set that is described, opened by its description."""
    facts = dict.fromkeys(("name", "title", "domain", "licence", "url", "citation"), "x")
    stated = {name: fields.pop(name) for name in ("audio", "files") if name in fields}
    named = NamedSet(dataset=str(folder), split="test", label="animal", **facts, **stated)
    return hub_recordings(folder, DataSpec(**fields), named, progress=False)


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
        prints = {opened(folder, label=label).fingerprint for label in ("animal", "name")}
        assert prints == {open_recordings(tmp_path / "files").fingerprint}

    def test_gives_numbers_where_labels_have_decimals(self, folder):
        assert sorted(entry.number for entry in opened(folder, label="words").entries) == [n / 4 for n in range(12)]
        years = opened(folder, label="year").entries
        assert {(entry.label, entry.number) for entry in years} == {(str(2_000 + n), None) for n in range(3)}
        assert {(entry.label, entry.number) for entry in opened(folder).entries} == {("", None)}

    def test_is_prepared_in_silence_where_nobody_watches(self, folder, capfd):
        opened(folder)
        assert not datasets.are_progress_bars_disabled()
        assert capfd.readouterr().err == ""

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"label": "animals"}, "has no column 'animals'; did you mean 'animal'"),
            ({"label": "where"}, "where is not a column of classes, texts or numbers"),
            ({"split": "test[0:"}, "cannot be read"),
            ({"config": "other"}, "cannot be read: .*other"),
        ],
    )
    def test_names_what_is_not_there(self, folder, options, message):
        with pytest.raises(DatasetError, match=message):
            opened(folder, **options)
        with pytest.raises(DatasetError, match="has no audio in a column 'name'"):
            described(folder, audio="name")

    def test_has_parts_and_splits(self, folder):
        assert len(opened(folder, split="test[:5]").entries) == 5
        for split, count in (("train", 6), ("more", 4)):
            save(folder, *columns(count), split=split)
        with pytest.raises(SoundError, match=r"has the splits .*train.*; name one with --set split=NAME"):
            opened(folder)
        assert len(opened(folder, split="test[6:]+train[:2]", label="animal").entries) == 8
        assert hub.splits_in("train[:1]+train[2:]+test") == ("train", "test")
        assert hub.splits_in("test[0:") == hub.splits_in(None) == ()
        with pytest.raises(SoundError, match="has no split 'tset'; did you mean 'test'"):
            opened(folder, split="train+tset")

    def test_needs_one_column_of_audio(self, folder, tmp_path):
        values, features = columns()
        more = {**values, "noisy": values["audio"]}, datasets.Features({**features, "noisy": datasets.Audio()})
        save(tmp_path / "two", *more)
        with pytest.raises(SoundError, match="audio in the columns audio, noisy; name one"):
            opened(tmp_path / "two")
        assert len(described(tmp_path / "two", audio="noisy").entries) == 12
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
        monkeypatch.setattr(stored, "place_of", Repository)
        assert len(opened(two, split="test").entries) == 12
        recordings = opened(two, split="test[:5]", label="animal")
        assert {entry.label for entry in recordings.entries} == set(CLASSES)
        assert len(recordings.entries) == 5
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(two, split="test+train")

    def test_that_are_small_may_lie_beside_large_ones(self, folder, monkeypatch):
        save(folder, *columns(6), split="train")
        (folder / "data" / "train-00001-of-00002.parquet").write_bytes(b"x" * 2**20)
        monkeypatch.setattr(stored, "place_of", Repository)
        monkeypatch.setattr(hub, "LARGEST_DOWNLOAD", 2**20)
        for split in (None, "train", "test+train[:5]"):
            with pytest.raises(SoundError, match=r"GB to download, more than .*; give another split or"):
                opened(folder, split=split)
        assert len(opened(folder, split="test").entries) == 12

    def test_may_be_the_files_of_a_pattern(self, tmp_path, without_torchcodec):
        save(tmp_path / "v2", *columns())
        (tmp_path / "v1").mkdir()
        (tmp_path / "v1" / "test.parquet").write_bytes(b"no Parquet")
        (tmp_path / "set.py").write_text("raise SystemExit('it ran')")
        files = {"files": "{config}/data/{split}-*.parquet", "config": "v2"}
        assert len(described(tmp_path, split="test", **files).entries) == 12
        assert len(described(tmp_path, split="test[3:]", **files).entries) == 9
        with pytest.raises(SoundError, match=r"files that it has on the Hub \(v2/data/train-\*\.parquet\)"):
            described(tmp_path, split="train", **files)
        save(tmp_path / "v2", *columns(6), split="train")
        assert len(described(tmp_path, split="test[3:]+train[:1]", **files).entries) == 10
        with pytest.raises(SoundError, match=r"the split is 'test\+'"):
            described(tmp_path, split="test+", **files)


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
        with pytest.raises(SoundError, match=r"'test/0' has [0-9,]+ bytes; the limit is 1,000"):
            opened(folder)
        monkeypatch.setattr(hub, "MOST_RECORDINGS", 11)
        with pytest.raises(SoundError, match=r"12 rows; the limit is 11: .* --set split=train\[:10000\]"):
            opened(folder)

    def test_no_other_reader_is_used_and_no_script_run(self, tmp_path, without_torchcodec):
        (tmp_path / "x.json").write_text('[{"a": 1}]')
        with pytest.raises(SoundError, match="is read by the reader 'json' of datasets; only parquet, arrow"):
            opened(tmp_path)
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "set.py").write_text("raise SystemExit('it ran')")
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(tmp_path / "set")

    def test_a_card_that_leads_elsewhere_is_refused(self, folder, tmp_path):
        save(tmp_path / "other", *columns())
        for files, message in (
            ("https://example.org/x.parquet", r"names https://example\.org/x\.parquet"),
            ("../other/data/*.parquet", r"names a file outside of it|cannot be read"),
        ):
            card = f"---\nconfigs:\n- config_name: default\n  data_files: {files}\n---\n"
            (folder / "README.md").write_text(card)
            with pytest.raises(DatasetError, match=message):
                opened(folder)

    def test_names_that_are_none(self):
        for name, message in (
            ("nowhere", "no data set 'nowhere': neither a folder nor a Hub id"),
            ("", "the data set is ''; give a Hub id, a folder"),
            (" ", "the data set is ' '"),
            ("lab/sounds", "offline"),
        ):
            with pytest.raises(DatasetError, match=message):
                opened(name)


class TestFolderOfSoundFiles:
    def test_is_read_without_torchcodec_and_may_have_a_table(self, tmp_path, without_torchcodec):
        before = datasets.Audio.encode_example
        write_labelled(tmp_path)
        recordings = opened(tmp_path, label="label")
        assert datasets.Audio.encode_example is before
        assert {entry.label for entry in recordings.entries} == set(CLASSES)
        lines = [f"dog/{n}.wav,{n}.5,s{n % 5}" for n in range(6)]
        (tmp_path / "metadata.csv").write_text("\n".join(["file_name,label,group", *lines]) + "\n")
        recordings = opened(tmp_path, label="label", group="group")
        assert recordings.fingerprint == open_recordings(tmp_path).fingerprint
        assert sorted(entry.number for entry in recordings.entries) == [n + 0.5 for n in range(6)]


LABELS = {
    "audiomnist": [str(digit) for digit in range(10)],
    "esc50": [f"category {n}" for n in range(13)],
    "fsd50k": LEAVES,
    "nsynth": FAMILIES,
    "speech-commands": WORDS[:-1],
    "urbansound8k": URBAN,
    "vggsound": VIDEOS,
    "vocalsound": VOCAL,
}

CAPTIONED = ("audiocaps", "clotho")

CONDITIONS = {"audiomnist": "speaker_id", "nsynth": "pitch", "speech-commands": "speaker_id", "vocalsound": "spk_id"}

GROUPS = {**CONDITIONS, "esc50": "src_file", "nsynth": "instrument_str", "urbansound8k": "fsID"}


@pytest.fixture(params=sorted(LABELS))
def named(request, tmp_path, without_torchcodec):
    """The name of a data set, its rows and what is read of it."""
    rows = write_miniature(request.param, tmp_path)
    return request.param, rows, open_recordings(f"dataset:{request.param}={tmp_path}", progress=False)


def row_of(entry, rows):
    return rows[int(entry.id.partition("/")[2])]


def test_each_has_a_miniature():
    assert sorted(MINIATURES) == sorted((*LABELS, *CAPTIONED)) == list(list_named_sets())


class TestMiniatures:
    def test_give_labels_conditions_groups_and_blocks_with_the_settings_that_they_state(self, named):
        name, rows, recordings = named
        stated = load_named_set(name)
        split = stated.split
        assert {entry.label for entry in recordings.entries} == set(LABELS[name])
        assert recordings.source == name
        for entry in recordings.entries:
            row = row_of(entry, rows)
            assert entry.id.startswith(f"{split}/")
            assert entry.condition == str(row[CONDITIONS[name]] if name in CONDITIONS else "")
            assert entry.group == str(row[GROUPS[name]] if name in GROUPS else "")
        index, entry = next((n, e) for n, e in enumerate(recordings.entries) if e.id == f"{split}/5")
        np.testing.assert_allclose(recordings.waveform(index)[0], noise(0.3, seed=5), atol=4e-5)
        assert entry.label in str(row_of(entry, rows).values())
        data = recorded(recordings, recipes=["a_coat_instances"], blocks=2)
        row = data.configuration("a_coat_instances").rows[0]
        assert len(row["labels"]) == stated.settings.get("classes", 8)
        assert len(row["context_a"]) == stated.settings.get("context_sources", 2)
        assert row["domain"] == stated.domain

    def test_are_read_where_files_do_not_say_what_is_sound(self, tmp_path, without_torchcodec):
        write_miniature("nsynth", tmp_path, declared=False)
        assert len(open_recordings(f"dataset:nsynth={tmp_path}", progress=False).entries) == 60


class TestCaptions:
    @pytest.mark.parametrize("name", CAPTIONED)
    def test_are_those_of_a_clip(self, name, tmp_path, without_torchcodec):
        write_miniature(name, tmp_path)
        recordings = open_recordings(f"dataset:{name}={tmp_path}", progress=False)
        assert {frozenset(entry.captions) for entry in recordings.entries} == set(map(frozenset, CAPTIONS))
        assert recordings.skipped == ()
        rows = recorded(recordings, recipes=["audio_text_retrieval"]).configuration("audio_text_retrieval").rows
        assert sorted(caption for row in rows for caption in row["captions"]) == sorted(
            caption for captions in CAPTIONS for caption in captions
        )
        assert {row["group"] for row in rows} == ({f"video{n}" for n in range(6)} if name == "audiocaps" else {""})
        assert {row["domain"] for row in rows} == {load_named_set(name).domain}

    def test_are_whole_where_others_are_asked_for(self, tmp_path, without_torchcodec):
        write_miniature("clotho", tmp_path)
        recordings = open_recordings(f"dataset:clotho={tmp_path}", captions="text", progress=False)
        assert {entry.captions for entry in recordings.entries} == {(". ".join(c),) for c in CAPTIONS}


class TestWhatIsLeftOut:
    def test_labels_that_are_none(self, tmp_path, without_torchcodec):
        rows = write_miniature("speech-commands", tmp_path)
        recordings = open_recordings(f"dataset:speech-commands={tmp_path}", progress=False)
        entries = recordings.entries
        assert dict(recordings.skipped) == {
            f"validation/{n}": f"is called {row['label']!r}, which is not a class"
            for n, row in enumerate(rows)
            if row["label"].startswith("_")
        }
        assert len(entries) == len(rows) - 5
        named = load_named_set("speech-commands")
        assert set(named.without) == {"_silence_", "_unknown_"}

    def test_clips_of_several_labels(self, tmp_path, without_torchcodec):
        write_miniature("fsd50k", tmp_path)
        recordings = open_recordings(f"dataset:fsd50k={tmp_path}", progress=False)
        assert Counter(entry.label for entry in recordings.entries) == dict.fromkeys(LEAVES, 10)
        several = [f"test/{number}" for number in (130, 131, 132)]
        assert [id for id, _ in recordings.skipped] == several
        assert all(reason.startswith("holds several sounds, or unknown ones") for _, reason in recordings.skipped)
        assert recordings.complete.skipped == ()
        rows = recorded(recordings, recipes=["zero_shot_audio"]).configuration("zero_shot_audio").rows
        assert {row["recording"] for row in rows} == {*several, *(entry.id for entry in recordings.entries)}
        assert max(len(row["labels"]) for row in rows) > 2

    def test_recordings_that_cannot_be_used(self, tmp_path, without_torchcodec, monkeypatch):
        monkeypatch.setattr(miniatures, "noise", lambda seconds, seed: noise(seconds, seed=max(seed, 1)))
        write_miniature("vocalsound", tmp_path)
        skipped = open_recordings(f"dataset:vocalsound={tmp_path}", progress=False).skipped
        assert [(id, reason.partition(" as")[0]) for id, reason in skipped] == [
            (f"test/{n}", "is the same recording") for n in range(2)
        ]


class TestArguments:
    def test_go_before_what_is_stated(self, tmp_path, without_torchcodec):
        write_miniature("speech-commands", tmp_path)
        own = {"label": "is_unknown", "group": "utterance_id", "condition": "label", "split": "validation[:10]"}
        entries = open_recordings(f"dataset:speech-commands={tmp_path}", progress=False, **own).entries
        assert [(e.label, e.group, e.condition) for e in sorted(entries, key=lambda e: int(e.id.split("/")[1]))] == [
            ("False", "0", word) for word in WORDS[:10]
        ]
        for options, message in (
            ({"config": "v0.01"}, r"\(v0\.01/validation/\*\.parquet\); .* holds v0\.02/\. A folder"),
            ({"group": "speaker"}, r"has no column 'speaker'; did you mean 'speaker_id'"),
        ):
            with pytest.raises(DatasetError, match=message):
                open_recordings(f"dataset:speech-commands={tmp_path}", progress=False, **options)

    def test_name_what_there_is(self, tmp_path, monkeypatch):
        with pytest.raises(SoundError, match="unknown data set 'esc51'; did you mean 'esc50'"):
            load_named_set("esc51")
        with pytest.raises(SoundError, match=r"no data set 'esc51': neither .* nor the name of one; .*'esc50'"):
            open_recordings("dataset:esc51")
        with pytest.raises(DatasetError, match="offline"):
            open_recordings("dataset:esc50")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "esc50").mkdir()
        note = "'esc50' is taken as the name of a data set; ./esc50 is the folder of that name"
        with pytest.warns(UserWarning, match=note), pytest.raises(DatasetError, match="offline"):
            open_recordings("dataset:esc50")
        with pytest.raises(DatasetError, match="esc50 cannot be read"):
            open_recordings("dataset:./esc50")


class TestCopies:
    def test_lie_in_folders(self):
        for text, fault in (
            ("esc50=", "there is no folder after the ="),
            ("esc50=nowhere", "'nowhere' is not a folder"),
        ):
            with pytest.raises(SoundError, match=f"the data set is '{text}', and {fault}: esc50=FOLDER reads a copy"):
                open_recordings(f"dataset:{text}")

    def test_have_the_files_of_the_hub(self, tmp_path):
        write_labelled(tmp_path)
        for name, expected in (
            ("speech-commands", r"v0\.02/validation/\*\.parquet"),
            ("esc50", r"Parquet files, or sound files with a metadata\.csv that has the column category"),
        ):
            message = rf"{name} is read from the files that it has on the Hub \({expected}\); .* holds cat/, dog/\. A"
            with pytest.raises(SoundError, match=rf"{message} folder of LABEL/file\.wav is data by itself"):
                open_recordings(f"dataset:{name}={tmp_path}")

    def test_may_be_sound_files_with_a_table(self, tmp_path, without_torchcodec):
        write_labelled(tmp_path)
        lines = [f"dog/{number}.wav,dog,{number % 3}" for number in range(6)]
        (tmp_path / "metadata.csv").write_text("\n".join(["file_name,category,src_file", *lines]) + "\n")
        entries = open_recordings(f"dataset:esc50={tmp_path}", progress=False).entries
        assert {(entry.label, entry.group) for entry in entries} == {("dog", str(n)) for n in range(3)}


DESCRIPTION = """\
title: Kitchen sounds
dataset: copy
split: test
label: answer
group: spk_id
without: [Sneeze]
domain: kitchen
settings: {classes: 2, context_sources: 1}
licence: none
url: https://example.org
citation: nobody
"""


class TestFilesOfUsers:
    """`--dataset FILE.yaml`."""

    @pytest.fixture
    def file(self, tmp_path):
        write_miniature("vocalsound", tmp_path / "copy")
        (tmp_path / "kitchen.yaml").write_text(DESCRIPTION)
        return tmp_path / "kitchen.yaml"

    def test_describe_a_data_set(self, file, without_torchcodec):
        recordings = open_recordings(f"dataset:{file}", progress=False)
        assert recordings.source == "kitchen"
        assert {entry.label for entry in recordings.entries} == set(VOCAL) - {"Sneeze"}
        assert len(recordings.skipped) == 5
        row = recorded(recordings, recipes=["a_coat_instances"], blocks=1).configuration("a_coat_instances").rows[0]
        assert (row["domain"], len(row["labels"])) == ("kitchen", 2)
        file.write_text(DESCRIPTION.replace("dataset: copy", "dataset: ORG/NAME"))
        same = open_recordings(f"dataset:{file}={file.parent / 'copy'}", progress=False)
        assert same.fingerprint == recordings.fingerprint

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ("[Sneeze]", "[no]", r"without is False; it must be names .*; write a text such as .* in quotes"),
            ("group: spk_id", "captions: [1]", "captions is 1; it must be names with commas between them"),
            ("group: spk_id", "captions: ['']", "captions is .*; it must be a text"),
            ("group: spk_id", "revision: 1.0", r"revision is 1\.0; it must be a text; write a text such as .* in"),
            ("group: spk_id", "files: '{label}/*'", r"files is .*; it is a pattern of files with \{config\} and"),
            ("group: spk_id", "grup: spk_id", r"kitchen\.yaml: there is no setting 'grup'; did you mean 'group'"),
            ("group: spk_id", "name: other", "has the key 'name'; the name of a data set is that of its file"),
            ("{classes: 2, context_sources: 1}", "2", "settings is 2; it must be values by their names"),
            ("{classes: 2, context", "{clases: 2, context", r"settings: .* no setting 'clases'; did you mean 'class"),
            ("{classes: 2, context_sources: 1}", "{classes: two}", r"settings: classes is 'two'; it is a whole number"),
            ("url: https://example.org", "", "url is missing; it is a text"),
            ("label: answer", "", "label or captions is missing"),
            ("title: Kitchen sounds", "title: !!python/name:os.system x", r"kitchen\.yaml is not YAML"),
        ],
    )
    def test_that_describe_none_name_the_key(self, before, after, message, file):
        assert before in DESCRIPTION
        file.write_text(DESCRIPTION.replace(before, after))
        with pytest.raises(SoundError, match=message):
            open_recordings(f"dataset:{file!s}")

    def test_may_be_absent_or_large(self, file):
        with pytest.raises(SoundError, match=r"cannot read the settings in nowhere\.yaml: No such file"):
            open_recordings("dataset:nowhere.yaml")
        file.write_text("#" * 2**21)
        with pytest.raises(SoundError, match="has more than 1,048,576 bytes"):
            open_recordings(f"dataset:{file}")

    @pytest.mark.parametrize("captions", ["text", "[text]"])
    def test_name_their_columns_of_captions(self, captions, tmp_path, without_torchcodec):
        write_miniature("clotho", tmp_path / "copy")
        said = f"captions: {captions}\ncaption_separator: '. '"
        (tmp_path / "said.yaml").write_text(DESCRIPTION.replace("label: answer\ngroup: spk_id", said))
        recordings = open_recordings(f"dataset:{tmp_path / 'said.yaml'}", progress=False)
        assert {frozenset(entry.captions) for entry in recordings.entries} == set(map(frozenset, CAPTIONS))
        named = named_set_from("x", DESCRIPTION.replace("label: answer", "captions: said_1, said_2"))
        assert (named.label, named.captions) == (None, ("said_1", "said_2"))


class TestFiles:
    @pytest.mark.parametrize("name", list_named_sets())
    def test_say_what_whoever_uses_one_has_to_know(self, name):
        named = load_named_set(name)
        assert named.name == name
        for text in (named.title, named.licence, named.url, named.citation):
            assert text in named.terms
        assert named.url.startswith("https://")
        assert set(named.settings) <= {"classes", "context_sources"}
        check_values(named.settings, changeable(), named.name)

    def test_that_are_none_are_refused(self):
        for text, message in (
            ("title: x", r"x\.yaml: dataset, split, domain, licence, url and citation are missing"),
            ("", r"x\.yaml must have lines such as"),
        ):
            with pytest.raises(SoundError, match=message):
                named_set_from("x", text)
