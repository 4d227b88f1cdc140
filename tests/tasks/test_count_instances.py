"""The tasks of counting: what models give is scored ladder by ladder, and folders with few labels."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import load_task

from ..dataset_builder.recipes.recorded import instances


def rendering_of(**changes):
    recipe = load_recipe("count_instances")
    return recipe.render(recipe.presets["mini"].changed(**changes))


def embedded(name: str, rendering) -> np.ndarray:
    """The embeddings of all clips, by a model that is loaded by name."""
    clips = [clip for place in range(len(rendering.rows)) for clip in rendering.clips(place)]
    model = load_model(name)
    return np.concatenate([model.embed(clip[None], rendering.sample_rate) for clip in clips])


def test_onsets_suffice_and_energy_does_not() -> None:
    rendering, task = rendering_of(ladders=32), load_task("count_instances")
    scores = task.score(rendering.rows, Outputs(clips=embedded("energy-onsets-span", rendering)), {}, "cpu", False)
    assert scores.measures["worst"] == 1
    level = task.score(rendering.rows, Outputs(clips=embedded("rms", rendering)), {}, "cpu", False)
    assert level.measures["order_span"] == level.measures["order_density"] == 1
    # At most three standard errors of 8 fair coins.
    assert abs(level.measures["order_energy"] - 0.5) < 3 * np.sqrt(0.25 / 8)
    assert scores.ids == task.samples(rendering.rows).ids == tuple(row["id"] for row in rendering.rows)
    for measure in task.info.sampled:
        assert scores.measures[measure.name] == pytest.approx(scores.columns[measure.column].mean())


def test_a_ladder_gives_clips_and_where_texts_are_needed_its_captions() -> None:
    row = rendering_of(ladders=1).rows[0]
    clips = tuple(f"audio/{place}" for place in range(5))
    assert load_task("count_instances").inputs(row, {}).texts == ()
    inputs = load_task("count_instances_text").inputs(row, {})
    assert (inputs.clips, inputs.texts) == (clips, tuple(row["captions"]))


def test_captions_are_matched_by_their_numbers() -> None:
    rows, task = rendering_of(ladders=8).rows, load_task("count_instances_text")
    vectors = np.eye(6)[[count for row in rows for count in row["counts"]]]
    measures = task.score(rows, Outputs(clips=vectors, texts=vectors), {}, "cpu", False).measures
    assert (measures["worst"], measures["exact"]) == (1, 1)
    assert measures["exact_chance"] == pytest.approx((2 / 5 + 6 / 4) / 8)
    same = task.score(rows, Outputs(clips=vectors, texts=np.ones_like(vectors)), {}, "cpu", False).measures
    assert (same["worst"], same["exact"]) == (0.5, pytest.approx(measures["exact_chance"]))


def test_two_labels_suffice_and_one_is_refused() -> None:
    task, few = load_task("count_instances"), {"ladders": 16, "sample_rate": 8_000}
    rendering = rendering_of(sounds=instances(2), **few)
    assert task.settings(rendering.rows, {}) == {}
    scores = task.score(rendering.rows, Outputs(clips=embedded("energy-onsets-span", rendering)), {}, "cpu", False)
    assert scores.measures["worst"] == 1
    with pytest.raises(TaskError, match=r"where energy is held, all ladders are of 'label 00'; a probe .* needs 2"):
        task.settings([row for row in rendering.rows if row["label"] == "label 00"], {})
    with pytest.raises(
        DatasetError, match="has 1 label; counts are tested on other labels than learnt, so 2 are needed"
    ):
        _ = rendering_of(sounds=instances(1), **few).rows


def test_questions_are_of_four_kinds_and_a_constant_answer_is_at_chance() -> None:
    recipe, task = load_recipe("count_instances_questions"), load_task("count_instances_questions")
    rows = recipe.render(recipe.presets["mini"].changed(ladders=8)).rows
    settings = task.settings(rows, {})
    answers = [inputs.options[0][0] for row in rows for inputs in [task.inputs(row, settings)] for _ in inputs.prompts]
    measures = task.score(rows, Outputs(answers=answers), settings, "cpu", False).measures
    assert measures["accuracy_energy"] == pytest.approx(1 / 5)
    assert [measures[f"accuracy_{kind}"] for kind in ("span", "density", "activity")] == [0.25] * 3
    right = task.score(rows, Outputs(answers=[row["answer"] for row in rows]), settings, "cpu", False).measures
    assert right["worst_kind"] == 1
