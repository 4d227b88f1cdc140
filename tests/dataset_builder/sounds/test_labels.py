"""Columns that describe recordings: labels, one or several, captions, words by attribute, and words a second."""

from __future__ import annotations

import io
import json
from collections import Counter

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Audio, ClassLabel, List, Value

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.sounds import labels as reading
from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from .sounds import flac, noise, write

TEXT, REAL = Value("string"), Value("float64")
FIRST = "data/test-00000-of-00001.parquet"


def save_set(folder, columns, sounds=None, path=FIRST):
    """A data set: sounds, of which there are four by default, and columns as (feature, values)."""
    columns = {"audio": (Audio(), sounds or [flac(number) for number in range(4)]), **columns}
    features = datasets.Features({name: feature for name, (feature, _) in columns.items()})
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    values = {name: list(of_column) for name, (_, of_column) in columns.items()}
    pq.write_table(pa.Table.from_pydict(values, schema=features.arrow_schema), folder / path)
    return folder


def of_set(folder, **options):
    return open_recordings(f"dataset:{folder}", progress=False, **options)


def table(folder, *lines, **options):
    """A folder with a table."""
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return open_recordings(folder, progress=False, **options)


def number_of(entry):
    return int(entry.id.partition("/")[2])


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
    assert reading.counted_hierarchy([reading.split_labels(text, separator) for text in texts], support) == expected


def test_labels_that_occur_together_are_no_hierarchy_until_one_is_stated(tmp_path):
    # DESED's weak labels: alarms, with and without speech.
    each = [["Alarm"]] * 3 + [["Alarm", "Speech"]] * 2 + [["Speech"]] * 2 + [["Dog", "Speech"]]
    single = ["Alarm"] * 3 + [None] * 2 + ["Speech"] * 2 + [None]
    assert reading.specific_labels(each) == single
    each = [["Plucked_string_instrument", "Music", "Guitar"], ["Music", "Wind_and_breeze"], ["Music"]]
    below = {"Music": ["Plucked string instrument"], "Plucked string instrument": ["Guitar"], "Wind, breeze": []}
    entries = [{"id": name, "name": name, "child_ids": below.get(name, [])} for name in (*below, "Guitar")]
    (tmp_path / "ontology.json").write_text(json.dumps(entries))
    assert reading.specific_labels(each, str(tmp_path / "ontology.json")) == ["Guitar", None, "Music"]


ABOVE = {"dog": "animal", "cat": "animal", "rain": "weather", "snow": "weather"}
NAMES = (*ABOVE, "animal", "weather")
ROWS = [[label, upper] for label, upper in ABOVE.items() for _ in range(10)]
ROWS += [["dog", "animal", "rain", "weather"]] * 5


@pytest.mark.parametrize("column", ["text", "list", "classes"])
def test_several_labels_are_kept_with_their_sound_for_those_who_do_not_need_one(column, tmp_path, without_torchcodec):
    columns = {
        "text": (TEXT, [",".join(labels) for labels in ROWS]),
        "list": (List(TEXT), ROWS),
        "classes": (List(ClassLabel(names=NAMES)), [[NAMES.index(name) for name in row] for row in ROWS]),
    }
    save_set(tmp_path, columns, [flac(number) for number in range(len(ROWS))])
    recordings = of_set(tmp_path, label=column, hierarchy="labels", separator="," if column == "text" else None)
    assert Counter(entry.label for entry in recordings.entries) == dict.fromkeys(ABOVE, 10)
    complete = recordings.complete
    assert {number_of(entry): list(entry.all_labels) for entry in complete.entries} == dict(enumerate(ROWS))
    assert complete.fingerprint != recordings.fingerprint
    for opened in (recordings, complete):
        for index, entry in enumerate(opened.entries):
            np.testing.assert_allclose(opened.waveform(index)[0], noise(0.3, seed=number_of(entry)), atol=4e-5)


# ----- captions


def captions_of(recordings):
    return {number_of(entry): entry.captions for entry in recordings.entries}


class TestCaptionsOfDataSets:
    def test_stand_in_a_column_in_several_or_in_lists(self, tmp_path, without_torchcodec):
        columns = {
            "text": (TEXT, ["a dog", " a cat ", None, ""]),
            "caption_2": (TEXT, ["b0", None, "b2", "b3"]),
            "caption_1": (TEXT, ["a0", "a1", "a2", "b3"]),
            "many": (List(TEXT), [["x", "y", "x"], [], None, ["z", " "]]),
            "captions": (List(Value("float32")), [[0.5]] * 4),
        }
        save_set(tmp_path, columns)
        numbered = {0: ("a0", "b0"), 1: ("a1",), 2: ("a2", "b2"), 3: ("b3",)}
        for options, expected in (
            # Lists of numbers are no captions, whatever they are called.
            ({}, numbered),
            ({"captions": "caption_1, caption_2"}, numbered),
            ({"captions": ["text"]}, {0: ("a dog",), 1: ("a cat",), 2: (), 3: ()}),
            ({"captions": "many"}, {0: ("x", "y"), 1: (), 2: (), 3: ("z",)}),
        ):
            assert captions_of(of_set(tmp_path, **options)) == expected
        for captions, message in (
            ("captions", "captions is not a column of classes, texts or numbers"),
            ("text,txt", "has no column 'txt'; did you mean 'text'"),
        ):
            with pytest.raises(DatasetError, match=message):
                of_set(tmp_path, captions=captions)

    def test_of_one_sound_in_several_rows_are_those_of_one_recording(self, tmp_path, without_torchcodec):
        columns = {"caption": (TEXT, ["a", "b", "c", "a", "d"]), "video": (TEXT, ["u", "v", "u", "u", "v"])}
        save_set(tmp_path, columns, [flac(number) for number in (1, 2, 1, 1, 2)])
        for options in ({}, {"group": "video"}):
            recordings = of_set(tmp_path, **options)
            assert recordings.skipped == ()
            assert set(map(frozenset, captions_of(recordings).values())) == {frozenset("ac"), frozenset("bd")}
        with pytest.raises(SoundError, match="is the same recording as"):
            of_set(tmp_path, label="caption")


def test_a_table_has_captions_and_several_labels(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.wav", seed=number)
    for name in ("captions", "words"):
        with pytest.raises(SoundError, match=rf"has no metadata\.csv, to which .*{name}"):
            open_recordings(tmp_path, **{name: "caption"}, progress=False)
    lines = ("file_name,caption_1,caption_2", '0.wav,"a dog, barking",twice', "1.wav,a cat,", "2.wav,,")
    said = {entry.id: entry.captions for entry in table(tmp_path, *lines).entries}
    assert said == {"0.wav": ("a dog, barking", "twice"), "1.wav": ("a cat",), "2.wav": ()}
    assert {entry.captions for entry in table(tmp_path, *lines, captions="caption_2").entries} == {("twice",), ()}
    with pytest.raises(SoundError, match="has no column 'text'"):
        table(tmp_path, *lines, captions="text")
    lines = ("file_name,label", "0.wav,dog;rain", "1.wav,dog", "2.wav, rain ;dog;rain")
    entries = table(tmp_path, *lines, separator=";").complete.entries
    assert {entry.id: entry.labels for entry in entries} == {
        "0.wav": ("dog", "rain"),
        "1.wav": ("dog",),
        "2.wav": ("rain", "dog"),
    }


def test_columns_are_those_that_are_called_so():
    for columns, expected in (
        (["a", "caption", "captions"], ("captions",)),
        (["caption_1", "caption"], ("caption",)),
        (["caption_10", "caption_9", "captioner"], ("caption_9", "caption_10")),
        (["text"], ()),
    ):
        assert reading.caption_columns("x", columns, None) == expected
    for requested, message in (
        (["dynamic"], "x has no column 'dynamic'; did you mean 'dynamics'"),
        (
            ["dynamics=a", "pitch=a"],
            "the column 'pitch' has the attribute 'a'; it must be a name",
        ),
        (["word:"], "the column 'word:' has the attribute ''"),
    ):
        with pytest.raises(SoundError, match=message):
            reading.word_columns("x", ["dynamics", "pitch", "word:"], requested)


# ----- words by attribute


PIANO = (("piano", "Soft", -20.0), ("piano", "loud", 0.0), ("flute", "soft", -6.0), ("flute", "loud", -30.0))


def made(folder, heading="word:dynamics", rows=PIANO, **options):
    """Sounds of some levels in dB, with a label and a word each."""
    lines = [f"file_name,label,{heading}"]
    for number, (label, word, level) in enumerate(rows):
        samples = noise(1.0, seed=number) * 10 ** (level / 20)
        # Silence around a sound does not count for its level.
        samples = np.concatenate([np.zeros(8_000), samples, np.zeros(16_000)]) if number == 0 else samples
        write(folder / f"{number}.wav", samples=samples, subtype="FLOAT")
        lines.append(f"{number}.wav,{label},{word}")
    return table(folder, *lines, **options)


def by_words(recordings):
    return {(entry.label, entry.words.get("dynamics")): entry for entry in recordings.entries}


def test_words_of_loudness_keep_the_level_beside_the_loudest_of_the_label(tmp_path):
    recordings = made(tmp_path, rows=[*PIANO, ("bell", "", -3.0)])
    assert {called: entry.level for called, entry in by_words(recordings).items()} == {
        ("piano", "soft"): -20.0,
        ("piano", "loud"): 0.0,
        ("flute", "soft"): 0.0,
        ("flute", "loud"): -24.0,
        ("bell", None): 0.0,
    }
    assert by_words(recordings)["bell", None].words == {}
    # A louder recording of the label without a word of loudness is none of those that are set beside each other.
    others = made(tmp_path, rows=[(*PIANO[0][:2], -20.0), ("piano", "loud", -12.0), ("piano", "", 0.0)])
    levels = {called: entry.level for called, entry in by_words(others).items()}
    assert levels == {("piano", "soft"): -8.0, ("piano", "loud"): 0.0, ("piano", None): 0.0}
    entries = made(tmp_path, "word:pitch").entries
    assert {(entry.words["pitch"], entry.level) for entry in entries} == {("soft", 0.0), ("loud", 0.0)}


def test_a_word_of_loudness_beside_none_is_left_out(tmp_path):
    rows = [("piano", "soft", -20.0), ("piano", "", 0.0), ("bell", "loud", 0.0), *PIANO[2:]]
    with pytest.warns(
        UserWarning, match=r"only one: '(soft|loud)' of '(piano|bell)', '(soft|loud)' of '(piano|bell)'$"
    ):
        entries = made(tmp_path, rows=rows).entries
    assert [(entry.words, entry.level) for entry in entries if entry.label != "flute"] == [({}, 0.0)] * 3
    assert sorted(entry.level for entry in entries if entry.label == "flute") == pytest.approx([-24, 0], abs=0.2)


@pytest.mark.parametrize(("heading", "words"), [("how", "how=dynamics"), ("dynamics", ["dynamics"])])
def test_other_columns_are_named(tmp_path, heading, words):
    plain, named = made(tmp_path, heading), made(tmp_path, heading, words=words)
    assert {entry.words["dynamics"] for entry in named.entries} == {"soft", "loud"}
    assert not any(entry.words for entry in plain.entries)
    assert plain.fingerprint != named.fingerprint == made(tmp_path / "by name").fingerprint


def test_a_data_set_has_them_too(tmp_path, without_torchcodec):
    folder = tmp_path / "folder"
    fingerprint = made(folder).fingerprint
    columns = {"animal": (TEXT, [row[0] for row in PIANO]), "word:dynamics": (TEXT, [row[1] for row in PIANO])}
    embedded = [{"bytes": (folder / f"{n}.wav").read_bytes(), "path": None} for n in range(4)]
    save_set(tmp_path / "set", columns, embedded)
    assert of_set(tmp_path / "set", label="animal").fingerprint == fingerprint
    text = "title: x\ndataset: set\nsplit: test\nlabel: animal\ndomain: x\nlicence: x\nurl: x\ncitation: x\n"
    (tmp_path / "described.yaml").write_text(text + "words: ['word:dynamics=loudness']\n")
    described = of_set(tmp_path / "described.yaml")
    assert {entry.words["loudness"] for entry in described.entries} == {"soft", "loud"}
    assert sorted(entry.level for entry in described.entries) == [-24.0, -20.0, 0.0, 0.0]


def test_one_sound_under_two_words_is_refused(tmp_path):
    made(tmp_path)
    write(tmp_path / "9.wav", samples=noise(1.0, seed=1), subtype="FLOAT")
    lines = (tmp_path / "metadata.csv").read_text().splitlines()
    with pytest.raises(
        SoundError, match=r"is the same recording as '\d\.wav', which has the label 'piano, (loud|soft)'"
    ):
        table(tmp_path, *lines, "9.wav,piano,soft")


# ----- words a second of speech


SPLITS = ("train.100", "validation", "test")
FILES = "".join(f"  - split: {split}\n    path: clean/{split}/*.parquet\n" for split in SPLITS)
CARD = f"---\nconfigs:\n- config_name: clean\n  data_files:\n{FILES}---\n"


def test_words_of_a_transcript_are_counted_over_the_whole_recording(tmp_path, without_torchcodec):
    # A miniature of LibriSpeech, with its columns: three speakers in each split, who say 1 to 3 words in 2 to 3 s.
    for first, split in zip((0, 10, 20), SPLITS, strict=True):
        said = [(first + speaker, number) for speaker in range(3) for number in range(3)]
        columns = {
            "file": (TEXT, [f"{speaker}-1-{number:04d}.flac" for speaker, number in said]),
            "text": (TEXT, [" ".join(["WORD"] * (number + 1)) for _, number in said]),
            "speaker_id": (Value("int64"), [speaker for speaker, _ in said]),
            "chapter_id": (Value("int64"), [1] * 9),
            "id": (TEXT, [f"{speaker}-1-{number:04d}" for speaker, number in said]),
        }
        sounds = [flac(100 * speaker + number, 2 + 0.5 * number) for speaker, number in said]
        save_set(tmp_path, columns, sounds, f"clean/{split}/0000.parquet")
    (tmp_path / "README.md").write_text(CARD)
    for label in ("words_per_second", "words_per_second=text"):
        entries = of_set(tmp_path, config="clean", split="test", label=label, group="speaker_id").entries
        assert sorted({entry.number for entry in entries}) == pytest.approx([1 / 2, 2 / 2.5, 3 / 3])
        assert {entry.label for entry in entries} == {"0.500", "0.800", "1.000"}
        assert {entry.group for entry in entries} == {"20", "21", "22"}
    # Splits of LibriSpeech have names with dots.
    split = "train.100[:6]+validation+test"
    assert len(of_set(tmp_path, config="clean", split=split, label="words_per_second").entries) == 6 + 9 + 9
    for options, message in (
        ({"split": "train.10"}, r"has no split 'train\.10'; did you mean 'train\.100'"),
        ({"label": "words_per_second=txt"}, "has no column 'txt'; did you mean 'text'"),
        ({"label": "words_per_secnd"}, "has no column 'words_per_secnd'"),
        ({"label": "words_per_second=speaker_id"}, "speaker_id of row 0 is neither a text nor words with times"),
    ):
        with pytest.raises(SoundError, match=message):
            of_set(tmp_path, **{"config": "clean", "split": "test", **options})


def test_words_with_times_are_counted_from_the_first_to_the_last(tmp_path, without_torchcodec):
    times = {"word": TEXT, "start": REAL, "end": REAL}
    words = [
        [("", 0.0, 0.5), ("a", 0.5, 0.7), ("b", 0.8, 1.0), ("<eps>", 1.0, 2.0)],
        [("a", 0.0, 0.25), ("b", 0.25, 0.5), ("c", 0.5, 1.0)],
        [("", 0.0, 2.0)],
        [("a", 1.0, 1.0)],
    ]
    said = [[dict(zip(times, word, strict=True)) for word in of_row] for of_row in words]
    save_set(tmp_path, {"words": (List(times), said)})
    recordings = of_set(tmp_path, label="words_per_second", skip_invalid=True)
    assert sorted(entry.number for entry in recordings.entries) == pytest.approx([3.0, 4.0])
    assert [why for _, why in recordings.skipped] == ["has no words in words", "has words that last 0 s in words"]
    # They may be lists by name, too.
    lists = [{"word": ["a", "b"], "start": [0.0, 0.5], "end": [0.5, 1.0]}]
    assert list(reading.counted_labels("set", "words", lists, lambda row: io.BytesIO()).numbers) == [2.0]


def test_the_labels_are_regressed_by_the_task_that_reads_them(tmp_path, without_torchcodec):
    from audio_compositionality.evaluator.run.evaluate import evaluate
    from audio_compositionality.evaluator.run.options import RunOptions

    said = [" ".join(["WORD"] * (number + 1)) for number in range(18)]
    save_set(tmp_path / "set", {"text": (TEXT, said)}, [flac(number, 0.5) for number in range(18)])
    recordings = of_set(tmp_path / "set", label="words_per_second")
    data = recorded(recordings, recipes=["transforms"], transforms=["noise"], bases=18, untransformed=1)
    options = RunOptions(cache=tmp_path / "store", settings={"probes": ["ridge"]})
    (result,) = evaluate("log-mel-statistics", data, tasks=["transform_disentanglement"], options=options)
    # As classes, of which each is in one recording only, they would be refused.
    assert result.measures["label_under_noise_shift_before"] is not None


def test_a_table_of_a_folder_has_transcripts_too(tmp_path):
    for number in range(4):
        write(tmp_path / f"{number}.wav", seconds=2, seed=number)
    lines = ["file_name,said", *(f"{number}.wav,{'word ' * (number + 1)}" for number in range(4))]
    recordings = table(tmp_path, *lines, label="words_per_second=said")
    assert sorted(entry.number for entry in recordings.entries) == [0.5, 1.0, 1.5, 2.0]
    with pytest.raises(SoundError, match=r"metadata\.csv has no column text, transcript"):
        table(tmp_path, *lines, label="words_per_second")


def test_a_column_of_that_name_is_taken_as_it_is(tmp_path, without_torchcodec):
    save_set(tmp_path, {"text": (TEXT, ["a b"] * 4), "words_per_second": (REAL, [0.5, 1.5, 2.5, 3.5])})
    entries = of_set(tmp_path, label="words_per_second").entries
    assert sorted(entry.number for entry in entries) == [0.5, 1.5, 2.5, 3.5]
