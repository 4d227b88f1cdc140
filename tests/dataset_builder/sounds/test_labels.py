"""Columns that describe recordings: labels, one or several, captions, words by attribute, and words a second."""

from __future__ import annotations

import io
from collections import Counter

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from datasets import Audio, ClassLabel, Features, List, Value

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.sounds.entries import related
from audio_compositionality.dataset_builder.sounds.labels import (
    caption_columns,
    counted_labels,
    specific_labels,
    split_labels,
    word_columns,
)
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.evaluator.run.evaluate import evaluate
from audio_compositionality.evaluator.run.options import RunOptions

from .miniatures import sound
from .sounds import RATE, noise, write
from .test_hub import save

TEXT = Value("string")

# ----- labels


@pytest.mark.parametrize(
    ("texts", "separator", "support", "expected"),
    [
        (
            ["Guitar,Strings,Music"] * 3 + ["Harp,Strings,Music"] * 3 + ["Drum,Music"] * 3,
            ",",
            3,
            ["Guitar"] * 3 + ["Harp"] * 3 + ["Drum"] * 3,
        ),
        # Only labels above, two at once, a label that is above neither, none.
        (
            ["a,top"] * 3 + ["b,top"] * 3 + ["top", "a,b,top", "a,top,rare", ""],
            ",",
            3,
            ["a"] * 3 + ["b"] * 3 + [None] * 4,
        ),
        # All of the one clip "rare" is also "a": that does not put "a" above it.
        ([" a ; top"] * 3 + ["rare;a;top", "top"], ";", 3, ["a"] * 3 + [None, None]),
        ([" a ; top"] * 3 + ["rare;a;top", "top"], ";", 1, [None] * 3 + ["rare", None]),
        # Labels that always come together.
        (["a,b"] * 4, ",", 2, [None] * 4),
    ],
)
def test_the_label_of_several_is_the_one_that_is_above_none(texts, separator, support, expected):
    assert specific_labels([split_labels(text, separator) for text in texts], support) == expected


@pytest.mark.parametrize(
    ("condition", "other", "expected"),
    [
        ("flite/awb", "flite/slt", True),
        ("flite/awb", "espeak-ng/awb", False),
        ("flite", "flite/awb", True),
        ("note48", "", False),
        ("/a", "/b", False),
    ],
)
def test_conditions_are_related_by_the_first_part_of_their_paths(condition, other, expected):
    assert related(condition, other) is related(other, condition) is expected


# ----- captions


def save_sounds(folder, columns, count=4, sounds=None):
    """A data set of so many sounds, with columns as (feature, values)."""
    features = datasets.Features({"audio": Audio(), **{name: feature for name, (feature, _) in columns.items()}})
    values = {name: list(of_column) for name, (_, of_column) in columns.items()}
    values["audio"] = [sound(number) for number in sounds or range(count)]
    (folder / "data").mkdir(parents=True)
    table = pa.Table.from_pydict(values, schema=features.arrow_schema)
    pq.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
    return folder


def of_data_set(folder, **options):
    return open_recordings(f"dataset:{folder}", progress=False, **options)


def captions_of(recordings):
    """Captions by the number of the row that comes first with a sound."""
    return {int(entry.id.partition("/")[2]): entry.captions for entry in recordings.entries}


class TestOfDataSets:
    def test_stand_in_a_column_in_several_or_in_lists(self, tmp_path, without_torchcodec):
        columns = {
            "text": (TEXT, ["a dog", " a cat ", None, ""]),
            "caption_2": (TEXT, ["b0", None, "b2", "b3"]),
            "caption_1": (TEXT, ["a0", "a1", "a2", "b3"]),
            "many": (List(TEXT), [["x", "y", "x"], [], None, ["z", " "]]),
        }
        folder = save_sounds(tmp_path, columns)
        numbered = {0: ("a0", "b0"), 1: ("a1",), 2: ("a2", "b2"), 3: ("b3",)}
        assert captions_of(of_data_set(folder)) == numbered
        assert captions_of(of_data_set(folder, captions="caption_1, caption_2")) == numbered
        assert captions_of(of_data_set(folder, captions=["text"])) == {0: ("a dog",), 1: ("a cat",), 2: (), 3: ()}
        assert captions_of(of_data_set(folder, captions="many")) == {0: ("x", "y"), 1: (), 2: (), 3: ("z",)}

    def test_of_one_sound_in_several_rows_are_those_of_one_recording(self, tmp_path, without_torchcodec):
        columns = {"caption": (TEXT, ["a", "b", "c", "a", "d"]), "video": (TEXT, ["u", "v", "u", "u", "v"])}
        folder = save_sounds(tmp_path, columns, sounds=[1, 2, 1, 1, 2])
        for options in ({}, {"group": "video"}):
            recordings = of_data_set(folder, **options)
            assert recordings.skipped == ()
            assert {frozenset(captions) for captions in captions_of(recordings).values()} == {
                frozenset("ac"),
                frozenset("bd"),
            }
        with pytest.raises(SoundError, match="is the same recording as"):
            of_data_set(folder, label="caption")

    def test_are_in_the_fingerprint(self, tmp_path, without_torchcodec):
        folders = [save_sounds(tmp_path / last, {"caption": (TEXT, ["a", "b", "c", last])}) for last in "de"]
        assert len({of_data_set(folder).fingerprint for folder in folders}) == 2

    def test_are_no_numbers_and_no_column_that_there_is_not(self, tmp_path, without_torchcodec):
        folder = save_sounds(
            tmp_path, {"captions": (List(Value("float32")), [[0.5]] * 4), "caption": (TEXT, list("abcd"))}
        )
        assert captions_of(of_data_set(folder)) == {n: (text,) for n, text in enumerate("abcd")}
        with pytest.raises(DatasetError, match="captions is not a column of classes, texts or numbers"):
            of_data_set(folder, captions="captions")
        with pytest.raises(DatasetError, match="has no column 'captoin'; did you mean 'caption'"):
            of_data_set(folder, captions="caption,captoin")


class TestOfTables:
    @pytest.fixture
    def folder(self, tmp_path):
        for number in range(3):
            write(tmp_path / f"{number}.wav", seed=number)
        return tmp_path

    def table(self, folder, header, *lines):
        (folder / "metadata.csv").write_text("\n".join((header, *lines)) + "\n", "utf-8")

    def test_stand_in_columns(self, folder):
        lines = ('0.wav,"a dog, barking",twice', "1.wav,a cat,", "2.wav,,")
        self.table(folder, "file_name,caption_1,caption_2", *lines)
        said = {entry.id: entry.captions for entry in open_recordings(folder, progress=False).entries}
        assert said == {"0.wav": ("a dog, barking", "twice"), "1.wav": ("a cat",), "2.wav": ()}
        only = open_recordings(folder, captions="caption_2", progress=False).entries
        assert {entry.captions for entry in only} == {("twice",), ()}
        with pytest.raises(SoundError, match="has no column 'text'"):
            open_recordings(folder, captions="text", progress=False)

    def test_need_a_table(self, folder):
        for name in ("captions", "words"):
            with pytest.raises(SoundError, match=rf"has no metadata\.csv, whose columns .*{name}"):
                open_recordings(folder, **{name: "caption"}, progress=False)

    def test_have_several_labels(self, folder):
        self.table(folder, "file_name,label", "0.wav,dog;rain", "1.wav,dog", "2.wav, rain ;dog;rain")
        recordings = open_recordings(folder, separator=";", progress=False)
        assert {entry.id: entry.labels for entry in recordings.complete.entries} == {
            "0.wav": ("dog", "rain"),
            "1.wav": ("dog",),
            "2.wav": ("rain", "dog"),
        }


def test_columns_are_those_that_are_called_so():
    assert caption_columns("x", ["a", "caption", "captions"], None) == ("captions",)
    assert caption_columns("x", ["caption_1", "caption"], None) == ("caption",)
    assert caption_columns("x", ["caption_10", "caption_9", "captioner"], None) == ("caption_9", "caption_10")
    assert caption_columns("x", ["text"], None) == ()


NAMES = ("dog", "rain", "cat", "snow", "animal", "weather")
ABOVE = {"dog": "animal", "cat": "animal", "rain": "weather", "snow": "weather"}
ROWS = [[label, upper] for label, upper in ABOVE.items() for _ in range(10)] + [
    ["dog", "animal", "rain", "weather"]
] * 5


class TestSeveralLabels:
    """Ten recordings of each of four things, the label above them beside, and five of two at once."""

    @pytest.fixture(params=["text", "list", "classes"])
    def recordings(self, request, tmp_path, without_torchcodec):
        columns = {
            "text": (TEXT, [",".join(labels) for labels in ROWS]),
            "list": (List(TEXT), ROWS),
            "classes": (List(ClassLabel(names=NAMES)), [[NAMES.index(n) for n in row] for row in ROWS]),
        }
        folder = save_sounds(tmp_path, columns, len(ROWS))
        return of_data_set(folder, label=request.param, separator="," if request.param == "text" else None)

    def test_are_left_out_by_those_who_need_one_and_kept_with_their_sound_for_others(self, recordings):
        assert Counter(entry.label for entry in recordings.entries) == dict.fromkeys(ABOVE, 10)
        complete = recordings.complete
        assert len(complete.entries) == 45
        labels = {int(entry.id.partition("/")[2]): list(entry.all_labels) for entry in complete.entries}
        assert labels == dict(enumerate(ROWS))
        assert complete.fingerprint != recordings.fingerprint
        for opened in (recordings, complete):
            for place, entry in enumerate(opened.entries):
                number = int(entry.id.partition("/")[2])
                np.testing.assert_allclose(opened.waveform(place)[0], noise(0.3, seed=number), atol=4e-5)

    def test_are_none_where_each_has_one(self, tmp_path, without_torchcodec):
        recordings = of_data_set(save_sounds(tmp_path, {"kind": (TEXT, list("aabb"))}), label="kind")
        assert recordings.complete is recordings
        assert {entry.all_labels for entry in recordings.entries} == {("a",), ("b",)}


# ----- words by attribute


PIANO = (("piano", "Soft", -20.0), ("piano", "loud", 0.0), ("flute", "soft", -6.0), ("flute", "loud", -30.0))


def made(folder, heading="word:dynamics", rows=PIANO, extra=""):
    lines = [f"file_name,label,{heading}"]
    for number, (label, word, level) in enumerate(rows):
        name = f"{number}.wav"
        write(folder / name, samples=noise(1.0, seed=number) * 10 ** (level / 20), subtype="FLOAT")
        lines.append(f"{name},{label},{word}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n" + extra)
    return folder


def by_words(recordings):
    return {(entry.label, entry.words.get("dynamics")): entry for entry in recordings.entries}


def test_words_of_loudness_keep_the_level_beside_the_loudest_of_the_label(tmp_path):
    entries = by_words(open_recordings(made(tmp_path), progress=False))
    assert {called: entry.level for called, entry in entries.items()} == {
        ("piano", "soft"): -20.0,
        ("piano", "loud"): 0.0,
        ("flute", "soft"): 0.0,
        ("flute", "loud"): -24.0,
    }


def test_silence_around_a_sound_does_not_count_for_its_level(tmp_path):
    made(tmp_path, rows=PIANO[:2])
    quiet = np.concatenate([np.zeros(8_000), noise(1.0, seed=0) * 0.1, np.zeros(16_000)])
    write(tmp_path / "0.wav", samples=quiet, subtype="FLOAT")
    assert by_words(open_recordings(tmp_path, progress=False))["piano", "soft"].level == -20.0


def test_other_words_and_empty_fields_have_no_level(tmp_path):
    entries = open_recordings(made(tmp_path, "word:pitch"), progress=False).entries
    assert {(entry.words["pitch"], entry.level) for entry in entries} == {("soft", 0.0), ("loud", 0.0)}
    rows = [*PIANO, ("bell", "", -3.0)]
    bell = by_words(open_recordings(made(tmp_path, rows=rows), progress=False))["bell", None]
    assert (bell.words, bell.level) == ({}, 0.0)


def test_a_word_of_loudness_beside_none_is_left_out(tmp_path):
    rows = [("piano", "soft", -20.0), ("piano", "", 0.0), ("bell", "loud", 0.0), *PIANO[2:]]
    with pytest.warns(
        UserWarning, match=r"left out: '(soft|loud)' of '(piano|bell)', '(soft|loud)' of '(piano|bell)'$"
    ):
        entries = open_recordings(made(tmp_path, rows=rows), progress=False).entries
    assert [(entry.words, entry.level) for entry in entries if entry.label != "flute"] == [({}, 0.0)] * 3
    assert sorted(entry.level for entry in entries if entry.label == "flute") == pytest.approx([-24, 0], abs=0.2)


@pytest.mark.parametrize(("heading", "words"), [("how", "how=dynamics"), ("dynamics", ["dynamics"])])
def test_other_columns_are_named(tmp_path, heading, words):
    plain = open_recordings(made(tmp_path, heading), progress=False)
    named = open_recordings(tmp_path, words=words, progress=False)
    assert {entry.words["dynamics"] for entry in named.entries} == {"soft", "loud"}
    assert not any(entry.words for entry in plain.entries)
    assert plain.fingerprint != named.fingerprint
    assert named.fingerprint == open_recordings(made(tmp_path / "by name"), progress=False).fingerprint


def test_a_data_set_has_them_too(tmp_path, without_torchcodec):
    folder = made(tmp_path / "folder")
    rows = {"animal": [label for label, _, _ in PIANO], "word:dynamics": [word for _, word, _ in PIANO]}
    features = Features({"audio": Audio(), "animal": Value("string"), "word:dynamics": Value("string")})
    embedded = [{"bytes": (folder / f"{n}.wav").read_bytes(), "path": None} for n in range(4)]
    save(tmp_path / "set", {**rows, "audio": embedded}, features, "train")
    read = open_recordings(f"dataset:{tmp_path / 'set'}", label="animal", progress=False)
    assert read.fingerprint == open_recordings(folder, progress=False).fingerprint
    text = "title: x\ndataset: set\nsplit: train\nlabel: animal\ndomain: x\nlicence: x\nurl: x\ncitation: x\n"
    (tmp_path / "described.yaml").write_text(text + "words: ['word:dynamics=loudness']\n")
    described = open_recordings(f"dataset:{tmp_path / 'described.yaml'}", progress=False)
    assert {entry.words["loudness"] for entry in described.entries} == {"soft", "loud"}
    assert sorted(entry.level for entry in described.entries) == [-24.0, -20.0, 0.0, 0.0]


def test_one_sound_under_two_words_is_refused(tmp_path):
    made(tmp_path)
    write(tmp_path / "9.wav", samples=noise(1.0, seed=1), subtype="FLOAT")
    with (tmp_path / "metadata.csv").open("a") as stream:
        stream.write("9.wav,piano,soft\n")
    with pytest.raises(SoundError, match=r"is the same recording as '\d\.wav', which is called 'piano, (loud|soft)'"):
        open_recordings(tmp_path, progress=False)


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (["dynamic"], "x has no column 'dynamic'; did you mean 'dynamics'"),
        (["dynamics=a", "pitch=a"], "the column 'pitch' is of the attribute 'a'; each column has its own"),
        (["word:"], "the column 'word:' is of the attribute ''"),
    ],
)
def test_columns_that_are_none_are_refused(requested, message):
    with pytest.raises(SoundError, match=message):
        word_columns("x", ["dynamics", "pitch", "word:"], requested)


# ----- words a second of speech


LIBRISPEECH = {"file": TEXT, "audio": Audio(sampling_rate=16_000), "text": TEXT, "speaker_id": Value("int64")}
LIBRISPEECH |= {"chapter_id": Value("int64"), "id": TEXT}
"""The columns of openslr/librispeech_asr."""

SPLITS = ("train.100", "validation", "test")
FILES = "".join(f"  - split: {split}\n    path: clean/{split}/*.parquet\n" for split in SPLITS)
CARD = f"---\nconfigs:\n- config_name: clean\n  data_files:\n{FILES}---\n"


def flac(seconds, seed):
    stream = io.BytesIO()
    soundfile.write(stream, noise(seconds, seed=seed), RATE, format="FLAC")
    return {"bytes": stream.getvalue(), "path": "x.flac"}


def utterance(speaker, number):
    """2 s, 2.5 s or 3 s of as many words as the number says, and one."""
    said = {"text": " ".join(["WORD"] * (number + 1)), "speaker_id": speaker, "chapter_id": 1}
    name = f"{speaker}-1-{number:04d}"
    return {**said, "audio": flac(2 + 0.5 * (number % 3), 100 * speaker + number), "file": f"{name}.flac", "id": name}


def save_rows(folder, rows, features, split="test"):
    path = folder / "clean" / split / "0000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {name: [row[name] for row in rows] for name in features}
    pq.write_table(pa.Table.from_pydict(table, schema=datasets.Features(features).arrow_schema), path)


@pytest.fixture
def librispeech(tmp_path, without_torchcodec):
    """A miniature of LibriSpeech: three splits, speakers in one each."""
    for place, split in enumerate(SPLITS):
        rows = [utterance(10 * place + speaker, number) for speaker in range(3) for number in range(3)]
        save_rows(tmp_path, rows, LIBRISPEECH, split=split)
    (tmp_path / "README.md").write_text(CARD)
    return tmp_path


def opened_set(folder, **options):
    return of_data_set(folder, **options)


def test_words_of_a_transcript_are_counted_over_the_whole_recording(librispeech):
    for label in ("words_per_second", "words_per_second=text"):
        entries = opened_set(librispeech, config="clean", split="test", label=label, group="speaker_id").entries
        assert sorted({entry.number for entry in entries}) == pytest.approx([1 / 2, 2 / 2.5, 3 / 3])
        assert {entry.label for entry in entries} == {"0.500", "0.800", "1.000"}
        assert {entry.group for entry in entries} == {"20", "21", "22"}
    # Splits of LibriSpeech have names with dots.
    split = "train.100[:6]+validation+test"
    assert len(opened_set(librispeech, config="clean", split=split, label="words_per_second").entries) == 6 + 9 + 9
    for options, message in (
        ({"split": "train.10"}, r"has no split 'train\.10'; did you mean 'train\.100'"),
        ({"label": "words_per_second=txt"}, "has no column 'txt'; did you mean 'text'"),
        ({"label": "words_per_secnd"}, "has no column 'words_per_secnd'"),
        ({"label": "words_per_second=speaker_id"}, "speaker_id of row 0 is neither a text nor words with times"),
    ):
        with pytest.raises(SoundError, match=message):
            opened_set(librispeech, **{"config": "clean", "split": "test", **options})


def test_the_labels_are_regressed_by_the_task_that_reads_them(tmp_path, without_torchcodec):
    rows = [{**utterance(speaker, 0), "text": "WORD " * (speaker + 1)} for speaker in range(18)]
    save_rows(tmp_path / "set", rows, LIBRISPEECH)
    recordings = opened_set(tmp_path / "set", label="words_per_second", group="speaker_id")
    data = recorded(recordings, recipes=["transforms"], transforms=["noise"], bases=18, untransformed=1)
    assert {row["number"] for row in data.configuration("transforms").rows} == {n / 2 for n in range(1, 19)}
    options = RunOptions(store=tmp_path / "store", settings={"probes": ["ridge"]})
    (result,) = evaluate("log-mel-statistics", data, tasks=["transform_disentanglement"], options=options)
    # As classes, of which each is in one recording only, they would be refused.
    assert result.measures["label_under_noise_shift_before"] is not None


def test_words_with_times_are_counted_from_the_first_to_the_last(tmp_path, without_torchcodec):
    times = {"word": TEXT, "start": Value("float64"), "end": Value("float64")}
    words = [
        [("", 0.0, 0.5), ("a", 0.5, 0.7), ("b", 0.8, 1.0), ("<eps>", 1.0, 2.0)],
        [("a", 0.0, 0.25), ("b", 0.25, 0.5), ("c", 0.5, 1.0)],
        [("", 0.0, 2.0)],
    ]
    said = [[dict(zip(times, word, strict=True)) for word in of_row] for of_row in words]
    rows = [{"audio": flac(2, n), "words": of_row} for n, of_row in enumerate(said)]
    save_rows(tmp_path, rows, {"audio": Audio(), "words": List(times)})
    recordings = opened_set(tmp_path, label="words_per_second", skip_invalid=True)
    assert sorted(entry.number for entry in recordings.entries) == pytest.approx([3.0, 4.0])
    assert [reason for _, reason in recordings.skipped] == ["has no words in words"]
    # They may be lists by name, too.
    lists = [{"word": ["a", "b"], "start": [0.0, 0.5], "end": [0.5, 1.0]}]
    assert list(counted_labels("set", "words", lists, lambda row: io.BytesIO()).numbers) == [2.0]


def test_a_table_of_a_folder_has_transcripts_too(tmp_path):
    lines = ["file_name,said"]
    for number in range(4):
        write(tmp_path / f"{number}.wav", seconds=2, seed=number)
        lines.append(f"{number}.wav,{'word ' * (number + 1)}")
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    recordings = open_recordings(tmp_path, label="words_per_second=said", progress=False)
    assert sorted(entry.number for entry in recordings.entries) == [0.5, 1.0, 1.5, 2.0]
    with pytest.raises(SoundError, match=r"metadata\.csv has no column text, transcript"):
        open_recordings(tmp_path, label="words_per_second", progress=False)


def test_a_column_of_that_name_is_taken_as_it_is(tmp_path, without_torchcodec):
    rows = [{"audio": flac(1, n), "text": "a b", "words_per_second": 0.5 + n} for n in range(3)]
    save_rows(tmp_path, rows, {"audio": Audio(), "text": TEXT, "words_per_second": Value("float64")})
    recordings = opened_set(tmp_path, label="words_per_second")
    assert sorted(entry.number for entry in recordings.entries) == [0.5, 1.5, 2.5]
