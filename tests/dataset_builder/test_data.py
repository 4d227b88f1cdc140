"""Columns are declared once: their features, the check of a stored row and the table of the card agree."""

import base64
import io

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.data import (
    AUDIO,
    NUMBER,
    TEXT,
    WHOLE,
    Clip,
    DataColumn,
    DatasetError,
    check_columns,
    column_table,
    features_of,
)

COLUMNS = (
    DataColumn("id", TEXT, "name of the row"),
    DataColumn("audio", AUDIO, "the clip"),
    DataColumn("more", [AUDIO], "further clips"),
    DataColumn("side", TEXT, "where", choices=("left", "right")),
    DataColumn("fold", WHOLE, "of five", choices=tuple(range(5))),
    DataColumn("gap", NUMBER, "seconds", optional=True),
    DataColumn("texts", [TEXT], "what is said", least=1),
    DataColumn("events", [{"label": TEXT, "start": NUMBER}], "when what is heard"),
    DataColumn("levels", {"pitch": WHOLE}, "classes"),
    DataColumn("two", [WHOLE], "of both", count=2),
    DataColumn("parts", {"A": [TEXT], "C": [TEXT]}, "of each", least=1),
)

ROW = {
    "id": "a", "side": "left", "fold": 3, "gap": None, "texts": ["x"], "events": [{"label": "b", "start": 1.0}],
    "levels": {"pitch": 2}, "two": [1, 2], "parts": {"A": ["x"], "C": ["y", "z"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("id", None, "it is a text"),
        ("side", "up", "it is one of 'left', 'right'"),
        ("fold", 5, "it is one of 0, 1, 2, 3, 4"),
        ("gap", "0.5", "it is a number"),
        ("gap", float("nan"), "it is a number"),
        ("texts", [], "it is a list of 1 or more texts"),
        ("texts", ["x", 1], "it is a list of 1 or more texts"),
        ("events", [{"label": "b"}], "it is a list of structures"),
        ("levels", {"pitch": 2.5}, "it has pitch"),
        ("two", [1], "it is a list of 2 whole numbers"),
        ("parts", {"A": ["x"], "C": []}, r"it has A \(a list of 1 or more texts\), C \(a list of 1 or more texts\)"),
    ],
)
def test_a_row_that_fits_passes_and_any_other_value_is_refused_with_the_rule(column, value, rule):
    check_columns(ROW, COLUMNS)
    check_columns({**ROW, "gap": 0.5, "events": []}, COLUMNS)
    with pytest.raises(DatasetError, match=rf"row .*: {column} is .*; {rule}"):
        check_columns({**ROW, column: value}, COLUMNS)


def test_features_are_those_that_datasets_reads():
    from datasets import Audio, Dataset, List, Value

    features = features_of(COLUMNS, 8_000)
    assert list(features) == [column.name for column in COLUMNS]
    assert features["audio"] == Audio(sampling_rate=8_000)
    assert features["more"] == List(Audio(sampling_rate=8_000))
    assert features["levels"] == {"pitch": Value("int32")}
    written = Dataset.from_list([{**ROW, "audio": None, "more": []}], features=features).remove_columns(
        ["audio", "more"]
    )[0]
    check_columns(written, COLUMNS)
    assert [line.split("`")[1] for line in column_table(COLUMNS).splitlines()[2:]] == list(features)


def test_a_list_that_has_one_for_each_of_another_is_as_long():
    columns = (DataColumn("labels", [TEXT], "of the sounds"), DataColumn("notes", [WHOLE], "of each", per="labels"))
    check_columns({"id": "x", "labels": ["a", "b"], "notes": [1, 2]}, columns)
    with pytest.raises(
        DatasetError, match=r"row x: notes is \[1\]; it must have one value for each of labels, \['a', 'b'\]"
    ):
        check_columns({"id": "x", "labels": ["a", "b"], "notes": [1]}, columns)
    with pytest.raises(DatasetError, match="row x: labels is None; it is a list of texts"):
        check_columns({"id": "x", "labels": None, "notes": [1]}, columns)


def test_a_clip_plays_in_a_notebook_and_an_unusable_one_says_why():
    waveform = np.linspace(-0.5, 0.5, 800, dtype=np.float32)
    shown = Clip("row/<A>", waveform, 8_000)._repr_html_()
    assert "row/&lt;A&gt;" in shown
    sound = base64.b64decode(shown.partition("base64,")[2].partition('"')[0])
    read, rate = soundfile.read(io.BytesIO(sound), dtype="float32")
    assert rate == 8_000
    np.testing.assert_allclose(read, waveform, atol=1 / 32_768)
    assert Clip("row/B", waveform * np.nan, 8_000, "it is silent")._repr_html_() == "<p>row/B: it is silent</p>"
