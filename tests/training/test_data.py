"""What is learnt from: the same rows and clips whichever way data come, and no clip on two sides."""

import warnings
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.support.errors import InputError
from audio_compositionality.training.data import (
    TrainingTexts,
    open_training,
    published_training,
    read_training_texts,
    splits_of,
    training_recipes,
)
from audio_compositionality.training.settings import TrainingError

from ..dataset_builder.sounds.sounds import write

SMALL = {"sample_rate": 8_000, "train_rows": 24, "validation_rows": 6}

(RECIPE,) = training_recipes()


@pytest.fixture(scope="module")
def splits():
    return open_training(RECIPE, **SMALL)


def of_recordings(recordings, **changes):
    return open_training(recorded(recordings, recipes=[RECIPE], **changes))


def clip_of(data, row):
    (clip,) = data.clips(range(row.clip, row.clip + 1))
    return clip


class TestRendered:
    def test_rows_are_those_of_the_recipe(self, splits):
        assert (len(splits.train.rows), len(splits.validation.rows), splits.train.num_clips) == (24, 6, 30)
        rendered = rendered_preset("mini", recipes=[RECIPE], **SMALL).configuration(RECIPE)
        assert splits.train.fingerprint == rendered.fingerprint
        assert (splits.train.recipe, splits.train.split, splits.validation.split) == (RECIPE, "train", "validation")
        for row, known_row in zip([*splits.train.rows, *splits.validation.rows], rendered.rows, strict=True):
            assert (row.id, row.captions) == (known_row["id"], tuple(known_row["captions"]))
            assert row.negatives == tuple((one["text"], one["kind"]) for one in known_row["negatives"])
            assert row.expression == known_row["expression"]
            assert set(row.texts) == {*row.captions, *row.parts, *dict(row.negatives)}
        assert {row.clip for row in splits.validation.rows} == set(range(24, 30))
        assert clip_of(splits.train, splits.validation.rows[2]).id == f"{splits.validation.rows[2].id}/audio"

    def test_presets_have_their_sizes(self, splits):
        assert open_training(splits) is splits
        assert splits.train.take(3).rows == splits.train.rows[:3]
        assert len(open_training("full", train_rows=30, validation_rows=2).train.rows) == 30
        with pytest.raises(InputError, match="preset 'huge'"):
            open_training(RECIPE, preset="huge")
        with pytest.raises(InputError, match="train_rows is 0"):
            open_training(RECIPE, train_rows=0)

    def test_data_that_nobody_learns_from_are_refused(self):
        data = rendered_preset("mini", recipes=["a_coat"])
        with pytest.raises(
            TrainingError, match=rf"mini has no training rows; .* recipes are a_coat, and training recipes are {RECIPE}"
        ):
            open_training(data)
        with pytest.raises(TrainingError, match="row a_coat-test-00000 has 4 clips; it must have one"):
            splits_of(data.configuration("a_coat"))
        with pytest.raises(TrainingError, match="train_rows cannot be changed"):
            open_training(data, train_rows=3)


def test_a_built_folder_has_the_same(splits, tmp_path):
    data = rendered_preset("mini", recipes=[RECIPE], **SMALL)
    stored = open_training(build_dataset(data, tmp_path / "built", workers=1, progress=False))
    for one, other in ((stored.train, splits.train), (stored.validation, splits.validation)):
        assert list(one.rows) == list(other.rows)
        assert one.fingerprint == other.fingerprint
        assert np.array_equal(clip_of(one, one.rows[3]).waveform, clip_of(other, other.rows[3]).waveform)


class TestRecordings:
    LABELS = ("dog bark", "Rain", "church bells", "car horn", "violin", "rooster")

    def test_a_folder_of_labels(self, tmp_path):
        for place, label in enumerate(self.LABELS):
            for number in range(5):
                write(tmp_path / label / f"{number}.wav", 2.5, seed=10 * place + number)
        opened = open_recordings(tmp_path, progress=False)
        splits = of_recordings(opened, train_rows=12, validation_rows=4, sample_rate=8_000)
        assert (len(splits.train.rows), len(splits.validation.rows)) == (12, 4)
        assert all(row.negatives and row.parts and row.expression for row in splits.train.rows)
        files = {split: {event["entry"] for row in splits.train.configuration.rows if row["split"] == split
                         for event in row["events"]} for split in ("train", "validation")}  # fmt: skip
        assert files["train"].isdisjoint(files["validation"])
        assert clip_of(splits.train, splits.train.rows[0]).waveform.any()

    def test_too_few_are_told(self, tmp_path):
        write(tmp_path / "dog" / "0.wav")
        with pytest.raises(DatasetError, match="has 0 labels with two or more recordings"):
            of_recordings(open_recordings(tmp_path, progress=False))


class TestPublished:
    def table(self, tmp_path, lines, name="texts.csv"):
        (tmp_path / name).write_text(COUNTED + "".join(f"{line}\n" for line in lines))
        return tmp_path / name

    @pytest.fixture
    def sounds(self, tmp_path):
        for number in range(6):
            write(tmp_path / "sounds" / "clips" / f"{number}.wav", 0.2, seed=number, rate=8_000 + 1_000 * number)
        return tmp_path / "sounds"

    def test_rows_have_their_texts_and_clips(self, tmp_path, sounds):
        lines = [
            '/theirs/clips/0.wav,"x, then y;x;y;y, then x",2,1,made,train',
            "/theirs/clips/1.wav,x with y;z,0,1,made,train",
            "\"C:\\theirs\\2.wav\",\"['A dog.', 'a bark']\",0,0,made,val",
            "3.wav,x,0,0,made,test",
        ]
        with pytest.warns(UserWarning, match="1 rows of the test split are left out"):
            splits = published_training(self.table(tmp_path, lines), sounds)
        first, second = splits.train.rows
        assert (first.parts, first.negatives, second.negatives) == (("x", "y"), (("y, then x", ""),), (("z", ""),))
        (third,) = splits.validation.rows
        assert third.captions == ("A dog.", "a bark")
        assert splits.train.num_clips == 3
        assert [clip.sample_rate for clip in splits.train.clips()] == [8_000, 9_000, 10_000]
        assert clip_of(splits.train, third).id == "clips/2.wav/audio"

    @pytest.mark.filterwarnings("ignore:.*of the test split")
    def test_rows_of_one_clip_or_caption_say_the_same(self, tmp_path, sounds):
        lines = [
            "0.wav,A dog barks.,0,0,made,train",
            "0.wav,a bark,0,0,made,train",
            "1.wav,a dog  barks,0,0,made,train",
            "2.wav,rain,0,0,made,train",
            "3.wav,rain falls,0,0,made,val",
        ]
        splits = published_training(self.table(tmp_path, lines), sounds)
        says = Counter(row.expression for row in splits.train.rows)
        assert sorted(says.values()) == [1, 3]
        assert [row.clip for row in splits.train.rows] == [0, 0, 1, 2]
        assert len({row.id for row in splits.train.rows}) == 4
        with pytest.raises(TrainingError, match=r"texts\.csv has no training row"):
            published_training(self.table(tmp_path, ["1.wav,x,0,0,clotho,evaluation"]), sounds)

    def test_files_are_held_out_where_no_split_is(self, tmp_path, sounds):
        lines = [f"{number}.wav,caption {number} {other},0,0,made,train" for number in range(6) for other in range(2)]
        splits = published_training([self.table(tmp_path, lines[:6]), self.table(tmp_path, lines[6:], "b.csv")], sounds)
        assert (len(splits.train.rows), len(splits.validation.rows)) == (10, 2)
        assert {row.clip for row in splits.train.rows}.isdisjoint(row.clip for row in splits.validation.rows)

    def test_what_is_missing_is_told(self, tmp_path, sounds):
        table = self.table(tmp_path, ["0.wav,x,0,0,m,train", "gone.wav,y,0,0,m,train", ",z,0,0,m,train"])
        with pytest.raises(
            DatasetError, match=r"texts.csv: 2 files are not in .*: gone.wav, ; to leave out their rows"
        ):
            published_training(table, sounds)
        with pytest.warns(UserWarning, match="their rows are left out"):
            assert len(published_training(table, sounds, skip_missing=True).train.rows) == 1
        write(sounds / "other" / "0.wav")
        with pytest.raises(DatasetError, match=r"'0.wav' may be clips/0.wav or other/0.wav"):
            published_training(table, sounds)
        nearer = self.table(tmp_path, ["/a/other/0.wav,x,0,0,m,train"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert published_training(nearer, sounds).train.configuration.clip_ids == ("other/0.wav/audio",)
        outside = self.table(tmp_path, ["../../texts.csv,x,0,0,m,train"])
        with pytest.raises(DatasetError, match="1 files are not in"):
            published_training(outside, sounds)


def test_rows_without_texts_are_told(splits):
    rows = [{**row, "split": "train"} for row in splits.train.configuration.rows]
    ids = splits.train.configuration.clip_ids

    def opened(**changes):
        changed = [*rows[:-1], {**rows[-1], **changes}]
        return splits_of(SimpleNamespace(source="theirs", rows=changed, clip_ids=ids))

    assert opened(expression=None, captions=["A bell."]).train.rows[-1].expression == "a bell"
    with pytest.raises(TrainingError, match=r"row .* has no caption$"):
        opened(captions=[])
    with pytest.raises(TrainingError, match="has no captions, parts and negatives, which training rows need"):
        opened(negatives=None)
    with pytest.raises(TrainingError, match="theirs has no row of the split 'train'"):
        splits_of(SimpleNamespace(source="theirs", rows=[{**row, "split": "test"} for row in rows], clip_ids=ids))


COUNTED = "path,caption,num_of_pos,num_of_neg,dataset,split_name\n"
PLAIN = "path,caption,dataset,split_name\n"


def rows_of_table(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    return list(read_training_texts(tmp_path / "x.csv"))


def test_texts_are_told_by_their_counts_and_without_counts_are_negatives(tmp_path):
    text = f"{COUNTED}a.wav,x then y;x;y; y then x,2,1,synthetic,train\nb.wav,z,0.0,0,synthetic,train\n"
    assert rows_of_table(tmp_path, text) == [
        TrainingTexts("a.wav", ("x then y",), ("x", "y"), ("y then x",), "synthetic", "train"),
        TrainingTexts("b.wav", ("z",), (), (), "synthetic", "train"),
    ]
    (row,) = rows_of_table(tmp_path, f"{PLAIN}a.wav,x then y;y then x;x with y,clotho,dev\n")
    assert (row.captions, row.parts, row.negatives) == (("x then y",), (), ("y then x", "x with y"))


def test_lists_are_read_and_never_run(tmp_path):
    (row,) = rows_of_table(tmp_path, f"{PLAIN}a.wav,\"['x', 'y']\",clotho,dev\n")
    assert row.captions == ("x", "y")
    code = f"[open({str(tmp_path / 'ran')!r}, 'w')]"
    (row,) = rows_of_table(tmp_path, f'{PLAIN}a.wav,"{code}",clotho,dev\n')
    assert row.captions == (code,)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(DatasetError, match=r"x\.csv:2: the caption is '\[1\]'; a list must hold texts"):
        rows_of_table(tmp_path, f"{PLAIN}a.wav,[1],clotho,dev\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{COUNTED}a.wav,x;y;z,1,2,s,t\n",
            r":2: 2 texts follow the caption, but the row counts 1 positives and 2 negatives",
        ),
        (f"{COUNTED}a.wav,x,-1,0,s,t\n", ":2: num_of_pos is '-1'; it must be a whole number"),
        (f"{COUNTED}a.wav,x,0,many,s,t\n", ":2: num_of_neg is 'many'"),
        (f"{COUNTED}a.wav,,0,0,s,t\n", ":2: the caption is empty"),
        ("path,text\n", "has no column 'caption'; .*Valid: path, text"),
        ("", "is empty; the first line of a table must name its columns"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, text, message):
    with pytest.raises(DatasetError, match=message):
        rows_of_table(tmp_path, text)
    with pytest.raises(DatasetError, match="is not a file"):
        list(read_training_texts(tmp_path / "none.csv"))
