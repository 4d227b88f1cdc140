"""Recordings in data sets that `datasets` reads, on this machine, and in miniatures of those that have a name."""

from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder import stored
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.data_spec import DataSpec, recognised
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import changeable, recorded
from audio_compositionality.dataset_builder.sounds import hub
from audio_compositionality.dataset_builder.sounds.hub import (
    NamedSet,
    hub_recordings,
    list_named_sets,
    load_named_set,
)
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.dataset_builder.stored import LocalFolder
from audio_compositionality.support.spec import check_values

from .miniatures import CAPTIONS, FAMILIES, LEAVES, MINIATURES, URBAN, VIDEOS, VOCAL, WORDS, write_miniature
from .sounds import RATE, flac, noise, write, write_labelled

CLASSES = ("cat", "dog")


def columns(count=12):
    """What rows hold, and what they declare."""
    text, whole = datasets.Value("string"), datasets.Value("int64")
    of_column = {
        "audio": (datasets.Audio(), [flac(n, 1.0, f"{n}.flac") for n in range(count)]),
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
    def test_gives_samples_classes_groups_and_numbers(self, folder, capfd):
        recordings = opened(folder, label="Animal", group="speaker", condition="year")
        used = {"audio": "file", "animal": "label", "speaker": "group", "year": "condition"}
        assert recordings.account.columns == {name: used.get(name, "") for name in columns()[0]}
        assert {(entry.id, entry.label, entry.group, entry.condition) for entry in recordings.entries} == {
            (f"test/{n}", CLASSES[n % 2], str(n // 2), str(2_000 + n % 3)) for n in range(12)
        }
        assert (recordings.source, recordings.sample_rate) == (str(folder), RATE)
        index = next(n for n, entry in enumerate(recordings.entries) if entry.id == "test/7")
        waveform, rate = recordings.waveform(index)
        assert rate == RATE
        np.testing.assert_allclose(waveform, noise(seed=7), atol=4e-5)
        # Numbers with decimals are no classes.
        assert sorted(entry.number for entry in opened(folder, label="words").entries) == [n / 4 for n in range(12)]
        years = opened(folder, label="year").entries
        assert {(entry.label, entry.number) for entry in years} == {(str(2_000 + n), None) for n in range(3)}
        assert {(entry.label, entry.number) for entry in opened(folder).entries} == {("", None)}
        # Prepared without a bar where nobody watches.
        assert not datasets.are_progress_bars_disabled()
        assert capfd.readouterr().err == ""

    def test_is_the_same_as_a_folder_with_the_same(self, folder, tmp_path):
        for n in range(12):
            path = tmp_path / "files" / CLASSES[n % 2] / f"{n}.flac"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(flac(n, 1.0)["bytes"])
        prints = {opened(folder, label=label).fingerprint for label in ("animal", "name")}
        assert prints == {open_recordings(tmp_path / "files").fingerprint}

    def test_names_what_is_not_there(self, folder):
        for options, message in (
            ({"label": "animals"}, "has no column 'animals'; did you mean 'animal'"),
            ({"label": "where"}, "where is not a column of classes, texts or numbers"),
            ({"split": "test[0:"}, "cannot be read"),
            ({"config": "other"}, "cannot be read: .*other"),
        ):
            with pytest.raises(DatasetError, match=message):
                opened(folder, **options)

    def test_has_parts_and_splits(self, folder):
        assert len(opened(folder, split="test[:5]").entries) == 5
        for split, count in (("train", 6), ("more", 4)):
            save(folder, *columns(count), split=split)
        with pytest.raises(SoundError, match=r"has the splits .*train.*; give one with --set split=NAME"):
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
        with pytest.raises(SoundError, match="audio in the columns audio, noisy; choose one"):
            opened(tmp_path / "two")
        assert len(described(tmp_path / "two", audio="noisy").entries) == 12
        with pytest.raises(DatasetError, match="has no audio column 'name'"):
            described(folder, audio="name")
        del values["audio"], features["audio"]
        save(tmp_path / "none", values, features)
        with pytest.raises(SoundError, match="has no audio column; its columns are animal, name"):
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
    def test_that_are_not_asked_for_are_not_downloaded(self, folder, monkeypatch):
        (folder / "data" / "train-00000-of-00001.parquet").write_bytes(b"no Parquet")
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(folder, split="test")
        monkeypatch.setattr(stored, "place_of", Repository)
        assert len(opened(folder, split="test").entries) == 12
        recordings = opened(folder, split="test[:5]", label="animal")
        assert {entry.label for entry in recordings.entries} == set(CLASSES)
        assert len(recordings.entries) == 5
        with pytest.raises(DatasetError, match="cannot be read"):
            opened(folder, split="test+train")

    def test_that_are_small_may_lie_beside_large_ones(self, folder, monkeypatch):
        save(folder, *columns(6), split="train")
        (folder / "data" / "train-00001-of-00002.parquet").write_bytes(b"x" * 2**20)
        monkeypatch.setattr(stored, "place_of", Repository)
        monkeypatch.setattr(hub, "LARGEST_DOWNLOAD", 2**20)
        for split in (None, "test+train[:5]"):
            with pytest.raises(SoundError, match=r"GB to download, more than .*; give another split or"):
                opened(folder, split=split)
        assert len(opened(folder, split="test").entries) == 12

    def test_may_be_the_files_of_a_pattern(self, tmp_path, without_torchcodec):
        save(tmp_path / "v2", *columns())
        (tmp_path / "v1").mkdir()
        (tmp_path / "v1" / "test.parquet").write_bytes(b"no Parquet")
        (tmp_path / "set.py").write_text("raise SystemExit('it ran')")
        files = {"files": "{config}/data/{split}-*.parquet", "config": "v2"}
        assert len(described(tmp_path, split="test[3:]", **files).entries) == 9
        with pytest.raises(SoundError, match=r"files that it has on the Hub \(v2/data/train-\*\.parquet\)"):
            described(tmp_path, split="train", **files)
        save(tmp_path / "v2", *columns(6), split="train")
        assert len(described(tmp_path, split="test[3:]+train[:1]", **files).entries) == 10
        with pytest.raises(SoundError, match=r"the split is 'test\+'"):
            described(tmp_path, split="test+", **files)


class TestWhatCannotBeUsed:
    def test_a_row_without_a_label_is_named(self, folder):
        for column, value, message in (
            ("animal", -1, "row 3 has no animal"),
            ("name", " ", "row 3 has no name"),
            ("words", None, "row 3 has no words"),
            ("words", float("nan"), "words of row 3 is nan"),
        ):
            values, features = columns()
            values[column][3] = value
            save(folder, values, features)
            with pytest.raises(SoundError, match=message):
                opened(folder, label=column)

    @pytest.mark.parametrize(
        ("audio", "message"),
        [
            (None, "contains no audio"),
            ({"bytes": b"no sound", "path": "3.flac"}, "cannot be read"),
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
        for row, path in ((3, outside), (4, folder / "link.wav"), (5, write(folder / "own.wav", seed=51))):
            values["audio"][row] = {"bytes": None, "path": str(path)}
        save(folder, values, features)
        assert [id for id, _ in opened(folder, skip_invalid=True).skipped] == ["test/3", "test/4"]

    def test_what_is_too_large_is_said(self, folder, monkeypatch):
        monkeypatch.setattr(hub, "LARGEST_FILE", 1_000)
        with pytest.raises(SoundError, match=r"'test/0' has [0-9,]+ bytes; the limit is 1,000"):
            opened(folder)
        monkeypatch.setattr(hub, "MOST_RECORDINGS", 11)
        with pytest.raises(SoundError, match=r"12 rows; the limit is 11; .* --set split=train\[:10000\]"):
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
            ("nowhere", "no data set 'nowhere': not a folder, not a Hub id"),
            (" ", "the data set is ' '; give a Hub id, a folder"),
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
        (tmp_path / "metadata.jsonl").write_text('{"file_name": "dog/0.wav"}\n')
        assert recognised(tmp_path).kind == "dataset"
        (tmp_path / "metadata.jsonl").unlink()
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


def of_copy(name, folder, **options):
    return open_recordings(f"dataset:{name}={folder}", progress=False, **options)


def test_each_has_a_miniature():
    assert sorted(MINIATURES) == sorted((*LABELS, *CAPTIONED)) == list(list_named_sets())


@pytest.mark.parametrize("name", LABELS)
def test_a_miniature_gives_labels_conditions_groups_and_blocks_with_the_settings_that_it_states(
    name, tmp_path, without_torchcodec
):
    # Of one the files do not say which column is sound.
    rows = write_miniature(name, tmp_path, declared=name != "nsynth")
    recordings, stated = of_copy(name, tmp_path), load_named_set(name)
    assert {entry.label for entry in recordings.entries} == set(LABELS[name])
    assert recordings.source == name
    for entry in recordings.entries:
        split, _, number = entry.id.partition("/")
        row = rows[int(number)]
        assert split == stated.split
        assert entry.condition == str(row[CONDITIONS[name]] if name in CONDITIONS else "")
        assert entry.group == str(row[GROUPS[name]] if name in GROUPS else "")
        assert entry.label in str(row.values())
    index = next(n for n, entry in enumerate(recordings.entries) if entry.id.endswith("/5"))
    np.testing.assert_allclose(recordings.waveform(index)[0], noise(0.3, seed=5), atol=4e-5)
    data = recorded(recordings, recipes=["a_coat_instances"], blocks=2)
    row = data.configuration("a_coat_instances").rows[0]
    assert len(row["labels"]) == stated.settings.get("classes", 8)
    assert len(row["context_a"]) == stated.settings.get("context_sources", 2)
    assert row["domain"] == stated.domain


@pytest.mark.parametrize("name", CAPTIONED)
def test_captions_are_those_of_a_clip(name, tmp_path, without_torchcodec):
    write_miniature(name, tmp_path)
    recordings = of_copy(name, tmp_path)
    assert {frozenset(entry.captions) for entry in recordings.entries} == set(map(frozenset, CAPTIONS))
    assert recordings.skipped == ()
    rows = recorded(recordings, recipes=["audio_text_retrieval"]).configuration("audio_text_retrieval").rows
    assert sorted(caption for row in rows for caption in row["captions"]) == sorted(
        caption for captions in CAPTIONS for caption in captions
    )
    assert {row["group"] for row in rows} == ({f"video{n}" for n in range(6)} if name == "audiocaps" else {""})
    assert {row["domain"] for row in rows} == {load_named_set(name).domain}
    if name == "clotho":
        # The separator is that of the stated column.
        whole = of_copy(name, tmp_path, captions="text").entries
        assert {entry.captions for entry in whole} == {(". ".join(captions),) for captions in CAPTIONS}


class TestWhatIsLeftOut:
    def test_labels_that_are_none(self, tmp_path, without_torchcodec):
        rows = write_miniature("speech-commands", tmp_path)
        recordings = of_copy("speech-commands", tmp_path)
        assert dict(recordings.skipped) == {
            f"validation/{n}": f"has the label {row['label']!r}, which is not a class"
            for n, row in enumerate(rows)
            if row["label"].startswith("_")
        }
        assert len(recordings.entries) == len(rows) - 5

    def test_clips_of_several_labels(self, tmp_path, without_torchcodec):
        write_miniature("fsd50k", tmp_path)
        recordings = of_copy("fsd50k", tmp_path)
        assert Counter(entry.label for entry in recordings.entries) == dict.fromkeys(LEAVES, 10)
        several = [f"test/{number}" for number in (130, 131, 132)]
        assert [id for id, _ in recordings.skipped] == several
        assert all(reason.startswith("contains several sounds, or unknown ones") for _, reason in recordings.skipped)
        assert recordings.complete.skipped == ()
        rows = recorded(recordings, recipes=["zero_shot_audio"]).configuration("zero_shot_audio").rows
        assert {row["recording"] for row in rows} == {*several, *(entry.id for entry in recordings.entries)}
        assert max(len(row["labels"]) for row in rows) > 2


class TestArguments:
    def test_go_before_what_is_stated(self, tmp_path, without_torchcodec):
        write_miniature("speech-commands", tmp_path)
        own = {"label": "is_unknown", "group": "utterance_id", "condition": "label", "split": "validation[:10]"}
        entries = of_copy("speech-commands", tmp_path, **own).entries
        assert {(entry.label, entry.group, entry.condition) for entry in entries} == {
            ("False", "0", word) for word in WORDS[:10]
        }
        for options, message in (
            ({"config": "v0.01"}, r"\(v0\.01/validation/\*\.parquet\); .* contains v0\.02/\. Give a folder"),
            ({"group": "speaker"}, r"has no column 'speaker'; did you mean 'speaker_id'"),
        ):
            with pytest.raises(DatasetError, match=message):
                of_copy("speech-commands", tmp_path, **options)

    def test_name_what_there_is(self, tmp_path, monkeypatch):
        with pytest.raises(SoundError, match="unknown data set 'esc51'; did you mean 'esc50'"):
            load_named_set("esc51")
        for name, message in (
            ("esc51", r"no data set 'esc51': not .* and not a known name; .*'esc50'"),
            ("esc50", "offline"),
            ("esc50=", "the data set is 'esc50=', but there is no folder after the =; esc50=FOLDER reads a copy"),
            ("esc50=nowhere", "but 'nowhere' is not a folder; esc50=FOLDER reads a copy"),
            ("nowhere.yaml", r"cannot read the settings in nowhere\.yaml: No such file"),
        ):
            with pytest.raises(DatasetError, match=message):
                open_recordings(f"dataset:{name}")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "esc50").mkdir()
        note = "'esc50' is read as the name of a data set; to read the folder of that name, give ./esc50"
        with pytest.warns(UserWarning, match=note), pytest.raises(DatasetError, match="offline"):
            open_recordings("dataset:esc50")
        with pytest.raises(DatasetError, match="esc50 cannot be read"):
            open_recordings("dataset:./esc50")

    def test_a_copy_has_the_files_of_the_hub_or_sound_files_with_a_table(self, tmp_path, without_torchcodec):
        write_labelled(tmp_path)
        for name, expected in (
            ("speech-commands", r"v0\.02/validation/\*\.parquet"),
            ("esc50", r"Parquet files, or sound files with a metadata\.csv that has the column category"),
        ):
            message = (
                rf"{name} is read from the files that it has on the Hub \({expected}\); .* contains cat/, dog/\. Give a"
            )
            with pytest.raises(SoundError, match=rf"{message} folder of LABEL/file\.wav without the name"):
                of_copy(name, tmp_path)
        lines = [f"dog/{number}.wav,dog,{number % 3}" for number in range(6)]
        (tmp_path / "metadata.csv").write_text("\n".join(["file_name,category,src_file", *lines]) + "\n")
        entries = of_copy("esc50", tmp_path).entries
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

    def test_describe_a_data_set(self, tmp_path, without_torchcodec):
        write_miniature("vocalsound", tmp_path / "copy")
        file = tmp_path / "kitchen.yaml"
        file.write_text(DESCRIPTION)
        recordings = open_recordings(f"dataset:{file}", progress=False)
        assert recordings.source == "kitchen"
        assert {entry.label for entry in recordings.entries} == set(VOCAL) - {"Sneeze"}
        assert len(recordings.skipped) == 5
        row = recorded(recordings, recipes=["a_coat_instances"], blocks=1).configuration("a_coat_instances").rows[0]
        assert (row["domain"], len(row["labels"])) == ("kitchen", 2)
        file.write_text(DESCRIPTION.replace("dataset: copy", "dataset: ORG/NAME"))
        assert of_copy(file, tmp_path / "copy").fingerprint == recordings.fingerprint
        file.write_text("#" * 2**21)
        with pytest.raises(SoundError, match="has more than 1,048,576 bytes"):
            open_recordings(f"dataset:{file}")

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ("[Sneeze]", "[false]", r"without is False; it must be names .*; put quotes around texts"),
            ("group: spk_id", "captions: ['']", "captions is .*; it must be a text"),
            ("group: spk_id", "grup: spk_id", r"kitchen\.yaml: there is no setting 'grup'; did you mean 'group'"),
            ("group: spk_id", "name: other", "has the key 'name'; a data set is named after its file"),
            ("{classes: 2, context", "{clases: 2, context", r"settings: .* no setting 'clases'; did you mean 'class"),
            ("label: answer", "", "label or captions is missing"),
            ("title: Kitchen sounds", "title: !!python/name:os.system x", r"kitchen\.yaml is not YAML"),
        ],
    )
    def test_that_describe_none_name_the_key(self, before, after, message, tmp_path):
        assert before in DESCRIPTION
        (tmp_path / "copy").mkdir()
        (tmp_path / "kitchen.yaml").write_text(DESCRIPTION.replace(before, after))
        with pytest.raises(SoundError, match=message):
            open_recordings(f"dataset:{tmp_path / 'kitchen.yaml'}")

    @pytest.mark.parametrize("captions", ["text", "[text]"])
    def test_name_their_columns_of_captions(self, captions, tmp_path, without_torchcodec):
        write_miniature("clotho", tmp_path / "copy")
        said = f"captions: {captions}\ncaption_separator: '. '"
        (tmp_path / "said.yaml").write_text(DESCRIPTION.replace("label: answer\ngroup: spk_id", said))
        recordings = open_recordings(f"dataset:{tmp_path / 'said.yaml'}", progress=False)
        assert {frozenset(entry.captions) for entry in recordings.entries} == set(map(frozenset, CAPTIONS))


@pytest.mark.parametrize("name", list_named_sets())
def test_a_file_says_what_whoever_uses_the_set_has_to_know(name):
    named = load_named_set(name)
    assert named.name == name
    for text in (named.title, named.licence, named.url, named.citation):
        assert text in named.terms
    assert named.url.startswith("https://")
    check_values(named.settings, changeable(), named.name)
