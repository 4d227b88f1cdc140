"""Captions of recordings, one or several each, and recordings with several labels."""

from collections import Counter

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Audio, ClassLabel, List, Value

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recorded import open_recordings
from audio_compositionality.dataset_builder.sounds.labels import caption_columns
from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from .miniatures import sound
from .sounds import noise, write

TEXT = Value("string")


def save(folder, columns, count=4, sounds=None):
    """A data set of so many sounds, with columns as (feature, values)."""
    features = datasets.Features({"audio": Audio(), **{name: feature for name, (feature, _) in columns.items()}})
    values = {name: list(of_column) for name, (_, of_column) in columns.items()}
    values["audio"] = [sound(number) for number in sounds or range(count)]
    (folder / "data").mkdir(parents=True)
    table = pa.Table.from_pydict(values, schema=features.arrow_schema)
    pq.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
    return folder


def of_data_set(folder, **options):
    return open_recordings(dataset=folder, progress=False, **options)


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
        folder = save(tmp_path, columns)
        numbered = {0: ("a0", "b0"), 1: ("a1",), 2: ("a2", "b2"), 3: ("b3",)}
        assert captions_of(of_data_set(folder)) == numbered
        assert captions_of(of_data_set(folder, captions="caption_1, caption_2")) == numbered
        assert captions_of(of_data_set(folder, captions=["text"])) == {0: ("a dog",), 1: ("a cat",), 2: (), 3: ()}
        assert captions_of(of_data_set(folder, captions="many")) == {0: ("x", "y"), 1: (), 2: (), 3: ("z",)}

    def test_of_one_sound_in_several_rows_are_those_of_one_recording(self, tmp_path, without_torchcodec):
        columns = {"caption": (TEXT, ["a", "b", "c", "a", "d"]), "video": (TEXT, ["u", "v", "u", "u", "v"])}
        folder = save(tmp_path, columns, sounds=[1, 2, 1, 1, 2])
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
        folders = [save(tmp_path / last, {"caption": (TEXT, ["a", "b", "c", last])}) for last in "de"]
        assert len({of_data_set(folder).fingerprint for folder in folders}) == 2

    def test_are_no_numbers_and_no_column_that_there_is_not(self, tmp_path, without_torchcodec):
        folder = save(tmp_path, {"captions": (List(Value("float32")), [[0.5]] * 4), "caption": (TEXT, list("abcd"))})
        assert captions_of(of_data_set(folder)) == {n: (text,) for n, text in enumerate("abcd")}
        with pytest.raises(DatasetError, match="captions is no column of classes, texts or numbers"):
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
        folder = save(tmp_path, columns, len(ROWS))
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
        recordings = of_data_set(save(tmp_path, {"kind": (TEXT, list("aabb"))}), label="kind")
        assert recordings.complete is recordings
        assert {entry.all_labels for entry in recordings.entries} == {("a",), ("b",)}
