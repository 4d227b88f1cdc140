"""The published tables of training texts: counted, and nothing in them is run."""

import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.training.data import TrainingTexts, read_training_texts

COUNTED = "path,caption,num_of_pos,num_of_neg,dataset,split_name\n"


def rows(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    return list(read_training_texts(tmp_path / "x.csv"))


def test_texts_are_told_by_their_counts(tmp_path):
    text = f"{COUNTED}a.wav,x then y;x;y; y then x,2,1,synthetic,train\nb.wav,z,0.0,0,synthetic,train\n"
    assert rows(tmp_path, text) == [
        TrainingTexts("a.wav", ("x then y",), ("x", "y"), ("y then x",), "synthetic", "train"),
        TrainingTexts("b.wav", ("z",), (), (), "synthetic", "train"),
    ]


def test_without_counts_all_but_the_first_are_negatives(tmp_path):
    (row,) = rows(tmp_path, "path,caption,dataset,split_name\na.wav,x then y;y then x;x with y,clotho,dev\n")
    assert (row.captions, row.parts, row.negatives) == (("x then y",), (), ("y then x", "x with y"))


def test_lists_are_read_and_never_run(tmp_path):
    head = "path,caption,dataset,split_name\n"
    (row,) = rows(tmp_path, f"{head}a.wav,\"['x', 'y']\",clotho,dev\n")
    assert row.captions == ("x", "y")
    code = f"[open({str(tmp_path / 'ran')!r}, 'w')]"
    (row,) = rows(tmp_path, f'{head}a.wav,"{code}",clotho,dev\n')
    assert row.captions == (code,)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(DatasetError, match=r"x\.csv, row 2: the caption is '\[1\]'; a list has texts"):
        rows(tmp_path, f"{head}a.wav,[1],clotho,dev\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{COUNTED}a.wav,x;y;z,1,2,s,t\n", r"row 2: 2 texts behind the caption, and 1 positives and 2 negatives"),
        (f"{COUNTED}a.wav,x,-1,0,s,t\n", "row 2: num_of_pos is '-1'; it is a whole number"),
        (f"{COUNTED}a.wav,x,0,many,s,t\n", "row 2: num_of_neg is 'many'"),
        (f"{COUNTED}a.wav,,0,0,s,t\n", "row 2: the caption is empty"),
        ("path,text\n", "has no column 'caption'; it has path, text"),
        ("", "has no column 'path'; it has none"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, text, message):
    with pytest.raises(DatasetError, match=message):
        rows(tmp_path, text)
    with pytest.raises(DatasetError, match="is no file"):
        list(read_training_texts(tmp_path / "none.csv"))
