"""Rows of questions: from a question to a row and back, and what is refused."""

import json

import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.texts.answer_check import answer_fault
from audio_compositionality.dataset_builder.texts.label_questions import draw_questions
from audio_compositionality.dataset_builder.texts.questions import (
    QUESTION_COLUMNS,
    annotation_of,
    check_question_row,
    question_of,
    row_of,
)

from .domestic import domestic

ANNOTATIONS = domestic(150)


@pytest.fixture(scope="module")
def rows():
    by_key = {annotation.key: annotation for annotation in ANNOTATIONS}
    questions = draw_questions(ANNOTATIONS)
    return [row_of(question, by_key[question.recording, question.start], "test", gap=0.5) for question in questions]


def test_a_row_has_all_that_its_question_and_its_clip_have(rows):
    columns = {column.name for column in QUESTION_COLUMNS} | {"split"}
    assert len(rows) > 50
    for row in rows:
        assert row.keys() | {"audio"} == columns
        check_question_row(row)
        assert json.loads(json.dumps(row)) == row
        assert answer_fault(question_of(row), annotation_of(row)) is None
    assert {row_of(question_of(row), annotation_of(row), "test", gap=0.5) == row for row in rows} == {True}


def test_polyphony_and_overlap_are_those_of_the_clip(rows):
    assert any(row["overlap"] > 0 for row in rows)
    for row in rows:
        assert (row["overlap"] > 0) == (row["polyphony"] > 1)
        assert row["polyphony"] <= len({event["label"] for event in row["events"]})


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("options", ["1"], "it is a list of 2 or more texts"),
        ("options", ["1", "1"], "all different"),
        ("options", [str(number) for number in range(27)], "26 at most"),
        ("options", "1 2", "it is a list of 2 or more texts"),
        ("answer", "7 000", "none of the options"),
        ("answer", None, "it is a text"),
        ("question", "", "is empty"),
        ("polarity", "both", "polarity is 'both'"),
        ("duration", float("nan"), "it is a number"),
        ("overlap", -1.0, "0 or more"),
        ("polyphony", True, "it is a whole number"),
        ("gap", "wide", "it is a number"),
        ("events", None, "it is a list of structures"),
        ("events", [{"onset": 3.0, "offset": 2.0, "label": "dog"}], "onset < offset"),
        ("events", [{"onset": 3.0, "offset": 99.0, "label": "dog"}], "after the end"),
        ("events", [{"onset": 3.0, "label": "dog"}], "a list of structures"),
        ("events", ["dog"], "a list of structures"),
    ],
)
def test_what_is_no_question_is_refused(rows, column, value, message):
    with pytest.raises(DatasetError, match=message) as error:
        check_question_row({**rows[0], column: value})
    assert rows[0]["id"] in str(error.value)
