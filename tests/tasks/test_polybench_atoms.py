"""Atomic questions: how each way to answer shows in the numbers, and what cannot be scored."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.texts.polyphony import PolyphonySpec
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.polybench_atoms import TASK

from .questions import always_yes, first, knowing

RECIPE = load_recipe("polybench_atoms")
SETTINGS = PolyphonySpec(train_sets=6, test_sets=6, sample_rate=8_000)


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(SETTINGS).rows


def scored(rows, who, **requested):
    settings = TASK.settings(rows, requested)
    answers = []
    for row in rows:
        for options in TASK.inputs(row, settings).options:
            answers.append(who({**row, "options": list(options)}))
    return TASK.score(rows, Outputs(answers=answers), settings, "cpu", False)


@pytest.mark.parametrize("orders", [1, "cyclic"])
def test_who_knows_is_right(rows, orders):
    scores = scored(rows, knowing, orders=orders)
    values = scores.measures
    assert set(values) >= {measure.name for measure in TASK.info.measures}
    names = ("accuracy", "presence", "sequence", "groups_right", "yes_rate", "chance")
    assert [values[name] for name in names] == [1, 1, 1, 1, 0.5, 0.5]
    assert values["groups_right_chance"] == pytest.approx(0.5 ** (4 if orders == 1 else 8))
    assert (len(scores.ids), values["answers"]) == (48, 48 if orders == 1 else 96)


def test_samples_are_questions_and_twins_belong_together(rows):
    samples = TASK.samples(rows)
    assert samples.ids == scored(rows, first).ids
    assert len(set(samples.clusters.tolist())) == 12
    assert set(samples.groups["task"]) == {"presence", "sequence"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "counting"}, "is of the kind 'counting'; Valid: presence, sequence"),
        ({"options": ["Yes", "No", "Maybe"]}, "they must be Yes and No"),
        ({"answer": "Maybe"}, "cannot be asked"),
        ({"split": "train"}, "no questions in the split test"),
    ],
)
def test_what_cannot_be_scored(rows, change, words):
    with pytest.raises(TaskError, match=words):
        TASK.settings([{**rows[-1], **change}], {})


@pytest.mark.filterwarnings("ignore")
def test_who_knows_what_is_heard_when_answers_all_and_who_knows_what_half_of_the_sequences(tmp_path):
    data = RenderedData("small", {RECIPE.name: SETTINGS})
    oracle, present = evaluate_models(
        [load_model("oracle"), load_model("present")], data, [TASK], RunOptions(out=tmp_path, progress=False)
    )
    assert (oracle.measures["accuracy"], oracle.measures["groups_right"]) == (1, 1)
    assert present.measures["presence"] == 1
    assert abs(present.measures["sequence"] - 0.5) <= 3 * (0.25 / 24) ** 0.5
    assert oracle.measures["unparsed"] == present.measures["unparsed"] == 0


def test_it_is_drawn(rows):
    scores = scored(rows, always_yes)
    ends = {name: np.array([0.2, 0.8]) for name in TASK.drawings[0].intervals}
    axes = Figure().subplots()
    TASK.drawings[0].panel(axes, {**scores.columns, **ends}, scores.measures)
    assert [round(bar.get_height(), 6) for bar in axes.patches] == [0.5, 0.5, 0.0, 1.0]
