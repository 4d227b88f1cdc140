"""Atomic questions: two clips with other answers, both polarities, and a second algorithm that agrees."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.scenes.polyphony import PolyphonySpec
from audio_compositionality.dataset_builder.scenes.twins import ATOMIC, BLOCK, draw_groups, questions_of
from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent
from audio_compositionality.dataset_builder.texts.question_controls import blind_accuracy
from audio_compositionality.dataset_builder.texts.question_tasks import ATOM_TASKS, ATOMS, STATES, question_tasks
from audio_compositionality.dataset_builder.texts.questions import (
    QuestionError,
    QuestionSettings,
    annotation_of,
    question_of,
    question_templates,
)
from audio_compositionality.support.errors import InputError

from .atom_checks import check_atoms, fault_of_atom

LABELS = ("bell", "reed", "organ", "brass", "pad", "bass")
RECIPE = load_recipe("polybench_atoms")
SMALL = PolyphonySpec(train_sets=1, test_sets=2, sample_rate=8_000)


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(RECIPE.presets["mini"]).rows


def drawn(labels, split, sets, seed):
    """All groups of a split."""
    return [group for groups in draw_groups(ATOMIC, labels, split, sets, seed, block=BLOCK) for group in groups]


def heard(*events):
    return Annotation("clip", 10.0, tuple(LabelledEvent(*event) for event in events), 0.0, "scenes")


def test_they_are_no_part_of_the_five():
    assert not set(ATOMS) & set(question_tasks())


def test_twins_have_their_sounds_at_the_same_places_and_other_labels_there():
    for group in drawn(LABELS, "test", 40, 0):
        one, other = ([(track.variant, track.level, track.spans) for track in clip.tracks] for clip in group.clips)
        assert one == other
        labels = [[track.label for track in clip.tracks] for clip in group.clips]
        assert labels[0] != labels[1]
        assert all(len(set(of_clip)) == 3 for of_clip in labels)
        assert (set(labels[0]) == set(labels[1])) == (group.task == "sequence")


def test_further_sets_change_none_before_and_seeds_do():
    first = drawn(LABELS, "test", 3, 0)
    assert drawn(LABELS, "test", 2, 0) == first[:4]
    assert not {group.clips for group in drawn(LABELS, "test", 3, 1)} & {group.clips for group in first}
    with pytest.raises(InputError, match="questions need 5 or more"):
        drawn(LABELS[:4], "test", 1, 0)


def test_the_second_algorithm_agrees_and_text_alone_is_at_chance(rows):
    assert check_atoms(rows) == len(rows) == 8 * (30 + 24)
    assert len({row["id"] for row in rows}) == len(rows)
    for task in ATOMS:
        tested = [row for row in rows if (row["split"], row["task"]) == ("test", task)]
        assert len(tested) == 4 * 24
        assert blind_accuracy([question_of(row) for row in tested]) <= 0.5 + 3 * np.sqrt(0.25 / len(tested))
        by_state = Counter((row["polarity"], row["answer"]) for row in tested)
        assert len(set(by_state.values())) == 1
        assert len(by_state) == 4


def test_wrong_answers_are_all_noticed(rows):
    for row in rows[::3]:
        wrong = {**row, "answer": "No" if row["answer"] == "Yes" else "Yes"}
        assert "right is" in fault_of_atom(wrong)
    with pytest.raises(QuestionError, match="1 of 1 questions are wrong"):
        check_atoms([wrong])


def test_the_second_algorithm_reads_every_wording():
    events = [{"onset": 1.0, "offset": 2.0, "label": "bell"}, {"onset": 3.0, "offset": 4.0, "label": "reed"}]
    row = {"id": "x", "duration": 10.0, "events": events, "options": ["Yes", "No"]}
    for task, pairs in {
        "presence": [("bell", ""), ("pad", "")],
        "sequence": [("bell", "reed"), ("reed", "bell")],
    }.items():
        for template in question_templates(task, ATOM_TASKS[task].variants[0]):
            for (anchor, other), state in zip(pairs, STATES[task], strict=True):
                answer = "Yes" if state == template.polarity else "No"
                asked = {"task": task, "anchor": anchor, "question": template.question(anchor, other)}
                assert fault_of_atom({**row, **asked, "answer": answer}) is None, asked


@pytest.mark.parametrize(
    ("task", "events", "said"),
    [
        ("presence", [(1.0, 1.1, "bell")], {("reed", "absent")}),
        ("presence", [(1.0, 1.3, "bell")], {("bell", "present"), ("reed", "absent")}),
        ("sequence", [(1.0, 2.0, "bell"), (1.3, 2.0, "reed")], set()),
        ("sequence", [(1.0, 2.0, "bell"), (1.5, 2.0, "reed")], {("bell", "before"), ("reed", "after")}),
        ("sequence", [(1.0, 2.0, "bell")], set()),
    ],
)
def test_what_is_said_is_certain(task, events, said):
    facts = ATOM_TASKS[task].facts(
        heard(*events), ATOM_TASKS[task].variants[0], frozenset(("bell", "reed")), QuestionSettings()
    )
    assert {(fact.anchor, fact.answer) for fact in facts} == said


def test_what_is_heard_has_to_bear_out_the_answers(rows):
    annotations = {row["recording"]: annotation_of(row) for row in rows}
    labels = sorted({event["label"] for row in rows for event in row["events"]})
    groups = drawn(labels, "test", 2, 0)
    for group in groups:
        of_group = [annotations[clip.name] for clip in group.clips]
        assert len(questions_of(group, of_group)) == 4
        exchanged = [replace(one, events=other.events) for one, other in zip(of_group, of_group[::-1], strict=True)]
        with pytest.raises(QuestionError, match="does not bear out the answer"):
            questions_of(group, exchanged)


def test_rows_and_clips():
    scenes = RECIPE.render(SMALL)
    assert len(scenes.rows) == 24
    clips = [scenes.clips(index)[0] for index in range(len(scenes.rows))]
    assert {clip.shape for clip in clips} == {(80_000,)}
    for row in scenes.rows:
        RECIPE.check_row(row)
    with pytest.raises(DatasetError, match="polarity is 'before'; it is present or absent"):
        RECIPE.check_row({**scenes.rows[0], "polarity": "before"})
    with pytest.raises(DatasetError, match="task is 'counting'; it is one of 'presence', 'sequence'"):
        RECIPE.check_row({**scenes.rows[0], "task": "counting"})
    with pytest.raises(InputError, match="there are no questions 'presense/heard'"):
        question_templates("presense", "heard")


def test_the_card_says_what_there_is():
    text = RECIPE.describe(RECIPE.presets["mini"])
    assert "192 questions about 96 clips" in text
    assert "what Yes says: `present`, `absent`, `before`, `after` |" in text
    assert "`alone`" not in text
    for column in set(RECIPE.features(SMALL)):
        assert f"`{column}`" in text
