"""From labels to answers: the rules by hand, the second algorithm on all questions, and what labels alone allow."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent
from audio_compositionality.dataset_builder.texts.question_controls import present_share
from audio_compositionality.encoders.base import LETTERS, GivenClip, ModelError
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.tasks.answerers.chooser import UNPARSED, asked_in
from audio_compositionality.tasks.answerers.symbolic import place_of_answer
from audio_compositionality.tasks.shapes.asking import direct_prompt

from ...clips import each
from ...dataset_builder.texts.answer_check import answer_fault
from .asked import KINDS, SILENCE, asked, prompts_of, right


def told(rows):
    """The clips of rows, to a model that reads labels."""
    return each(GivenClip(np.zeros(0, np.float32), 32_000, row) for row in rows)


def heard(*events):
    return Annotation("r", 10.0, tuple(LabelledEvent(*event) for event in events), 0.0, "x")


SCENE = heard((1, 4, "Dog"), (3.4, 5, "TV"), (6, 9.5, "rain"), (7, 7.2, "car horn"), (8, 8.6, "TV"))

HOW_MANY, LONGEST = "How many different kinds of sound can be heard?", "Which of these is heard longest in total?"
OVERLAPS, ALONE = "Does the {} overlap with any other sound?", "Is the {} always heard alone?"
WHAT, WHEN = "What overlaps with the {}?", "When do two kinds of sound first overlap?"
ANY, OFTEN = "Do any two different sounds overlap?", "How many times do different sounds overlap?"


@pytest.mark.parametrize(
    ("events", "question", "options", "answer"),
    [
        (SCENE, HOW_MANY, ["2", "3", "4"], "3"),  # the horn is heard for less than a quarter of a second
        (SCENE, HOW_MANY, ["1", "2"], "2"),
        (SCENE, LONGEST, ["TV", "dog", "rain"], "rain"),
        (SCENE, OVERLAPS.format("dog"), ["Yes", "No"], "Yes"),
        (SCENE, ALONE.format("dog"), ["Yes", "No"], "No"),
        (heard((1, 3, "Dog"), (2.8, 5, "TV")), OVERLAPS.format("dog"), ["Yes", "No"], "No"),  # 0.2 s is less than 0.25
        (heard((1, 3, "Dog"), (3.5, 5, "TV")), ALONE.format("TV"), ["Yes", "No"], "Yes"),
        (heard((1, 3, "Dog"), (2, 2.2, "TV")), ALONE.format("dog"), ["Yes", "No"], "Yes"),  # a blip is no sound
        (heard((1, 3, "Dog")), OVERLAPS.format("owl"), ["Yes", "No"], "No"),
        (SCENE, ANY, ["Yes", "No"], "Yes"),
        (SCENE, WHAT.format("TV"), ["dog", "owl"], "dog"),
        (SCENE, WHAT.format("dog"), ["rain", "TV", "owl"], "TV"),
        (heard((1, 3, "Dog"), (3.5, 5, "TV"), (8, 9, "rain")), WHAT.format("dog"), ["rain", "TV"], "TV"),
        (heard((8, 9, "rain")), WHAT.format("dog"), ["owl", "rain"], "rain"),
        (SCENE, WHEN, ["0.0 to 1.0 s", "5.0 to 6.0 s"], "5.0 to 6.0 s"),  # 3.4 is nearer to 5.5 than to 0.5
        (heard((1, 3, "Dog"), (3.5, 5, "TV")), WHEN, ["0.0 to 1.0 s", "3.0 to 4.0 s"], "3.0 to 4.0 s"),
        (SCENE, OFTEN, ["1", "2", "3"], "2"),
        (heard(), OFTEN, ["1", "2"], "1"),
    ],
)
def test_rules_by_hand(events, question, options, answer):
    for order in (options, options[::-1]):
        place = place_of_answer(asked_in(question, order), events)
        assert place is not None
        assert order[place] == answer


def test_silences_up_to_a_fifth_of_a_second_are_none():
    events = heard((1, 2, "Dog"), (2.2, 3, "Dog"), (4, 5, "TV"), (5.3, 6.15, "TV"))
    assert place_of_answer(asked_in(LONGEST, ["TV", "dog"]), events) == 1


def test_a_question_that_cannot_be_read_is_answered_with_unparsed():
    prompts = [direct_prompt("Who is it?", ["dog", "TV"])]
    row = {**asked(20)[0][2]}
    assert load_model("oracle").answer(told([row]), prompts) == [UNPARSED]
    assert load_model("present").answer(told([row]), prompts) == [UNPARSED]
    assert place_of_answer(asked_in(WHEN, ["early", "late"]), SCENE) is None
    assert UNPARSED not in LETTERS


@pytest.fixture(scope="module")
def questions():
    return asked(450)


@pytest.mark.slow
def test_the_oracle_is_right_wherever_the_second_algorithm_says_what_is(questions):
    rows = [row for _, _, row in questions]
    assert {f"{row['task']}/{row['variant']}" for row in rows} == set(KINDS)
    assert len(rows) > 250
    assert not any(answer_fault(question, annotation) for question, annotation, _ in questions)
    oracle = load_model("oracle")
    assert right(rows, oracle.answer(told(rows), prompts_of(rows))).all()
    turned = [{**row, "options": row["options"][::-1]} for row in rows]
    assert right(turned, oracle.answer(told(rows), prompts_of(turned))).all()


def test_the_oracle_reads_what_is_heard_and_not_the_answer(questions):
    rows = [row for _, _, row in questions[:200]]
    blank = [{**row, "answer": "?", "question": "?", "options": [], "template": ""} for row in rows]
    oracle = load_model("oracle")
    assert right(rows, oracle.answer(told(blank), prompts_of(rows))).all()
    moved = [{**row, "events": []} for row in rows]
    assert not right(rows, oracle.answer(told(moved), prompts_of(rows))).all()


def test_present_gets_what_labels_without_times_allow(questions):
    rows = [row for _, _, row in questions]
    expected = np.array([present_share(question, annotation) for question, annotation, _ in questions])
    given = right(rows, load_model("present").answer(told(rows), prompts_of(rows)))
    for kind in KINDS:
        places = [place for place, row in enumerate(rows) if f"{row['task']}/{row['variant']}" == kind]
        error = np.sqrt((expected[places] * (1 - expected[places])).sum()) / len(places)
        assert abs(given[places].mean() - expected[places].mean()) <= 4 * error + 1e-9, kind
    shifted = [{**row, "events": [{**e, "onset": 0.0, "offset": 1.0} for e in row["events"]]} for row in rows]
    again = load_model("present").answer(told(shifted), prompts_of(rows))
    assert (right(rows, again) == given).all()


@pytest.mark.parametrize("name", ["oracle", "present"])
def test_who_is_told_labels_hears_nothing(name):
    model = load_model(name)
    with pytest.raises(ModelError, match=f"'{name}' reads no sound; each clip needs its labels"):
        model.answer(each([SILENCE]), [direct_prompt(HOW_MANY, ["1", "2"])])
    with pytest.raises(ModelError, match=f"'{name}' reads labels, not sound, so there is no input to change"):
        load_model(f"without-audio:{name}")
