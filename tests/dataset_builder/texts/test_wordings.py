"""What a question asks is read back from its words, of every wording and of labels that look like wordings."""

from __future__ import annotations

import pytest

from audio_compositionality.dataset_builder.texts.question_tasks import ATOM_TASKS, ATOMS
from audio_compositionality.dataset_builder.texts.questions import (
    all_templates,
    in_sentence,
    question_templates,
    read_wording,
    template_of,
)

LABELS = (
    *("dog", "Electric piano", "brass section", "TV", "people talking", "car horn, honking"),
    *("alarm/bell", "a (very) loud bell?", "dog and the cat", "sound", "other sound", "the bell", "wind. Strong"),
    *("kitchen", "water tap", "Speech", "vacuum cleaner", "other kind of sound", "{a}", "moment of the bell", "ä"),
)

KINDS = {
    *(("counting", "kinds"), ("counting", "sources"), ("duration", "total"), ("concurrency", "anchor")),
    *(("counting", "together"), ("duration", "longest")),
    *(("presence", "heard"), ("sequence", "onsets")),
    *(("concurrency", "clip"), ("classification", "overlap"), ("detection", "first"), ("detection", "regions")),
}


def test_all_kinds_have_wordings():
    assert set(all_templates()) == KINDS
    assert all(len(wordings) == (12 if kind[0] in ATOMS else 20) for kind, wordings in all_templates().items())


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
    (variant,) = ATOM_TASKS[task].variants
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


def test_a_question_of_yes_and_no_has_these_options():
    question = "Is the dog always heard alone?"
    assert read_wording(question, ["Yes", "No"]).asked == ("concurrency", "anchor", "dog", "alone", "")
    assert read_wording(question, ["No", "Yes"]) == read_wording(question)
    assert read_wording(question, ["dog", "cat"]) is None
    assert read_wording(question, ["Yes", "No", "Perhaps"]) is None
