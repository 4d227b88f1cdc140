"""Atomic questions: two clips with other answers, both polarities, and a second algorithm that agrees."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.scenes.arrangements import atom_questions, draw_atoms
from audio_compositionality.dataset_builder.scenes.twin_scenes import AtomScenes, AtomSettings
from audio_compositionality.dataset_builder.sounds.formats.base import Annotation, LabelledEvent
from audio_compositionality.dataset_builder.texts.questions.base import QuestionError
from audio_compositionality.dataset_builder.texts.questions.check_atoms import check_atoms, fault_of_atom
from audio_compositionality.dataset_builder.texts.questions.controls import blind_accuracy
from audio_compositionality.dataset_builder.texts.questions.kinds import (
    ATOMS,
    STATES,
    atom_templates,
    atom_text,
    question_tasks,
    state_of,
)
from audio_compositionality.dataset_builder.texts.questions.rows import question_of
from audio_compositionality.support.errors import InputError

LABELS = ("bell", "reed", "organ", "brass", "pad", "bass")
RECIPE = load_recipe("polybench_atoms")
SMALL = AtomSettings(train_sets=1, test_sets=2, sample_rate=8_000)


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(RECIPE.presets["mini"]).rows


def heard(*events):
    return Annotation("clip", 10.0, tuple(LabelledEvent(*event) for event in events), 0.0, "scenes")


def test_they_are_no_part_of_the_five():
    assert not set(ATOMS) & set(question_tasks())


def test_twins_have_their_sounds_at_the_same_places_and_other_labels_there():
    for group in draw_atoms(LABELS, "test", 40, 0):
        one, other = ([(track.variant, track.level, track.spans) for track in clip.tracks] for clip in group.clips)
        assert one == other
        labels = [[track.label for track in clip.tracks] for clip in group.clips]
        assert labels[0] != labels[1]
        assert all(len(set(of_clip)) == 3 for of_clip in labels)
        assert (set(labels[0]) == set(labels[1])) == (group.task == "sequence")


def test_further_sets_change_none_before_and_seeds_do():
    first = list(draw_atoms(LABELS, "test", 3, 0))
    assert list(draw_atoms(LABELS, "test", 2, 0)) == first[:4]
    assert not {group.clips for group in draw_atoms(LABELS, "test", 3, 1)} & {group.clips for group in first}
    with pytest.raises(InputError, match="questions need 5 or more"):
        list(draw_atoms(LABELS[:4], "test", 1, 0))


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
        for template in atom_templates(task):
            for (anchor, other), state in zip(pairs, STATES[task], strict=True):
                answer = "Yes" if state == template.polarity else "No"
                asked = {"task": task, "anchor": anchor, "question": atom_text(template, anchor, other)}
                assert fault_of_atom({**row, **asked, "answer": answer}) is None, asked


@pytest.mark.parametrize(
    ("task", "events", "words"),
    [
        ("presence", [(1.0, 1.1, "bell")], "'bell' is heard for 0.10 s, too short"),
        ("sequence", [(1.0, 2.0, "bell"), (1.3, 2.0, "reed")], "'bell' and 'reed' begin within 0.30 s"),
        ("sequence", [(1.0, 2.0, "bell")], "'reed' is not heard"),
    ],
)
def test_what_cannot_be_said_for_certain(task, events, words):
    with pytest.raises(QuestionError, match=words):
        state_of(task, heard(*events), "bell", "reed")


def test_what_is_heard_has_to_bear_out_the_answers():
    scenes = AtomScenes.of(SMALL)
    for group in scenes.groups[:2]:
        annotations = [scenes.annotation(group, clip) for clip in group.clips]
        exchanged = [
            replace(one, events=other.events) for one, other in zip(annotations, annotations[::-1], strict=True)
        ]
        with pytest.raises(QuestionError, match="does not bear out the answer"):
            atom_questions(group, exchanged)


def test_rows_and_clips():
    scenes = RECIPE.render(SMALL)
    assert len(scenes.rows) == 24
    clips = [scenes.clips(index)[0] for index in range(len(scenes.rows))]
    assert {clip.shape for clip in clips} == {(80_000,)}
    for row in scenes.rows:
        RECIPE.check_row(row)
    with pytest.raises(DatasetError, match="polarity is 'before'; it is present or absent"):
        RECIPE.check_row({**scenes.rows[0], "polarity": "before"})
    with pytest.raises(DatasetError, match="task is 'counting'; it is presence or sequence"):
        RECIPE.check_row({**scenes.rows[0], "task": "counting"})
    with pytest.raises(InputError, match="there is no atomic question 'presense'"):
        atom_templates("presense")


def test_the_card_says_what_there_is():
    text = RECIPE.describe(RECIPE.presets["mini"])
    assert "192 questions about 96 clips" in text
    assert "`present` or `absent`, `before` or `after`" in text
    assert "`alone`" not in text
    for column in set(RECIPE.features(SMALL)):
        assert f"`{column}`" in text
