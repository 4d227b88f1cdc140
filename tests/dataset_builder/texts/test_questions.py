"""Rows and wordings of questions: from a question to a row or a text and back, and what is refused."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.texts.label_questions import draw_questions
from audio_compositionality.dataset_builder.texts.question_tasks import ATOM_KINDS, ATOMS
from audio_compositionality.dataset_builder.texts.questions import (
    QUESTION_COLUMNS,
    all_templates,
    annotation_of,
    check_question_row,
    in_sentence,
    question_of,
    question_templates,
    read_wording,
    row_of,
    template_of,
)

from .answer_check import answer_fault
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


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("options", ["1", "1"], "all different"),
        ("options", [str(number) for number in range(27)], "give two to 26 texts"),
        ("answer", "7 000", "not one of the options"),
        ("question", "", "is empty"),
        ("overlap", -1.0, "0 or more"),
        ("events", [{"onset": 3.0, "offset": 2.0, "label": "dog"}], "onset < offset"),
        ("events", [{"onset": 3.0, "offset": 99.0, "label": "dog"}], "after the end"),
    ],
)
def test_what_is_no_question_is_refused(rows, column, value, message):
    with pytest.raises(DatasetError, match=message) as error:
        check_question_row({**rows[0], column: value})
    assert rows[0]["id"] in str(error.value)


LABELS = (
    *("dog", "Electric piano", "brass section", "TV", "people talking", "car horn, honking"),
    *("alarm/bell", "a (very) loud bell?", "dog and the cat", "sound", "other sound", "the bell", "wind. Strong"),
    *("kitchen", "water tap", "Speech", "vacuum cleaner", "other kind of sound", "{a}", "moment of the bell", "ä"),
)


@pytest.mark.parametrize("label", LABELS)
def test_each_wording_is_read_back_with_each_label(label):
    for (task, variant), wordings in all_templates().items():
        for template in () if task in ATOMS else wordings:
            question = template.question(label)
            anchor = in_sentence(label) if "{a}" in template.text else ""
            options = ["No", "Yes"] if template.polarity else ["1", "2"]
            assert read_wording(question, options).asked == (task, variant, anchor, template.polarity, "")
            wording = read_wording(question)
            assert wording is not None
            assert wording.template is template_of(template.name)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("task", ATOMS)
def test_each_atomic_wording_is_read_back_with_each_label(task, label):
    (variant,) = (kind.variant for kind in ATOM_KINDS.values() if kind.task == task)
    for template in question_templates(task, variant):
        compared = "gong" if task == "sequence" else ""
        asked = read_wording(template.question(label, compared), ["Yes", "No"]).asked
        expected = (task, variant, in_sentence(label), template.polarity, compared)
        # That one has begun when another begins may be said of either: one is before the other, which is after it.
        turned = (task, variant, compared, "before", in_sentence(label))
        assert asked == expected or ("already begun" in template.text and asked == turned)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What is the capital of France?",
        "Which of these overlaps in time with the ?",
        "which of these overlaps in time with the dog?",
        "Which of these overlaps in time with the dog",
        "Which of these overlaps in time with the dog?\n",
        "Which of these overlaps in time with the dog\nand cat?",
    ],
)
def test_other_words_are_not_read(question):
    assert read_wording(question) is None
