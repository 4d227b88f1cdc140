"""What overlap costs: pairs of questions, and how who hears worse where sounds overlap shows in the numbers."""

from __future__ import annotations

import pytest

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.texts.polyphony import PolyphonySpec
from audio_compositionality.evaluator.run.answers import other_clips
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.tasks.base import Inputs, Outputs, TaskError
from audio_compositionality.tasks.polybench_apart import TASK

from .questions import first, knowing

RECIPE = load_recipe("polybench_apart")
SETTINGS = PolyphonySpec(train_sets=1, test_sets=6, sample_rate=8_000)


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(SETTINGS).rows


def scored(rows, who):
    answers = [who(row) for row in rows if row["split"] == "test"]
    return TASK.score(rows, Outputs(answers=answers), TASK.settings(rows, {}), "cpu", False)


def test_both_arrangements_are_asked_alike(rows):
    tested = [row for row in rows if row["split"] == "test"]
    prompts = {}
    for row in tested:
        inputs = TASK.inputs(row, {})
        prompts.setdefault(row["pair"], []).append(inputs.prompts)
    assert all(len(both) == 2 and both[0] == both[1] for both in prompts.values())
    assert TASK.inputs(rows[0], {}) == Inputs()


def test_another_clip_is_of_other_sounds_in_either_arrangement():
    data = RenderedData("few", {"polybench_apart": PolyphonySpec(train_sets=0, test_sets=3, sample_rate=8_000)})
    opened = open_task(TASK, data)
    scene = {f"{row['id']}/audio": row["pair"].rpartition("-")[0] for row in opened.rows}
    assert len(set(scene.values())) == 6
    pairs = list(zip(opened.asked_about, other_clips(opened), strict=True))
    assert len(pairs) == 42
    assert [pair for pair in pairs if scene[pair[0][0]] == scene[pair[1][0]]] == []


def test_who_knows_loses_nothing_and_who_hears_worse_together_loses_that(rows):
    every = scored(rows, knowing).measures
    assert (every["together"], every["apart"], every["change"]) == (1.0, 1.0, 0.0)

    def muddled(row):
        return "Hm." if row["arrangement"] == "together" and row["task"] == "duration" else knowing(row)

    scores = scored(rows, muddled)
    values = scores.measures
    assert len(scores.ids) == 6 * 7
    assert (values["together_counting"], values["together_duration"]) == (1.0, 0.0)
    assert (values["apart_counting"], values["apart_duration"]) == (1.0, 1.0)
    assert values["change"] == pytest.approx(-3 / 7)
    assert values["change_duration"] == -1.0
    assert (values["unparsed"], values["answers"]) == (18, 84)
    assert set(values) >= {measure.name for measure in TASK.info.measures}
    assert all(len(column) == 42 for column in scores.columns.values())


def test_samples_are_pairs_and_twins_belong_together(rows):
    samples = TASK.samples(rows)
    assert samples.ids == scored(rows, first).ids
    assert {row["arrangement"] for row in samples.rows} == {"together"}
    assert len(set(samples.clusters.tolist())) == 12
    assert set(samples.groups) >= {"task", "polyphony"}


def test_a_question_without_its_pair_is_left_out(rows):
    lone = [row for row in rows if row["split"] == "test"][1:]
    assert len(scored(lone, knowing).ids) == len(TASK.samples(lone).ids) == 41


def test_what_cannot_be_scored(rows):
    together = [row for row in rows if row["arrangement"] == "together"]
    with pytest.raises(TaskError, match="no question asked in both arrangements"):
        TASK.settings(together, {})
    with pytest.raises(TaskError, match="is of the kind 'detection'"):
        TASK.settings([*rows, {**rows[-1], "id": "x", "task": "detection"}], {})
