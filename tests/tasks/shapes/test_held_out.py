"""The task of held-out combinations, on embeddings that are made from what the scenes hold."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.evaluator.run.evaluate import intervals_of
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.a_tre_held_out import TASK
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import default_tasks, load_task
from audio_compositionality.tasks.shapes.fits import ATTRIBUTE_PAIRS

from ..described import check_described


@pytest.fixture(scope="module")
def rows():
    """Scenes of four classes an attribute, without sound."""
    recipe = load_recipe("a_tre")
    mini = recipe.presets["mini"]
    few = mini.changed(
        scene_candidates=4_000,
        train_scenes=200,
        validation_scenes=30,
        test_scenes=30,
        num_classes=4,
        voices=mini.voices[:4],
    )
    return recipe.render(few).rows


def embeddings_of(rows, names, dim=32, seed=0):
    """Sums of one vector for each combination of some attributes' labels."""
    rng = np.random.default_rng(seed)
    vectors: dict = {}
    z = [
        sum(
            vectors.setdefault((k, tuple(source[name] for name in part)), rng.normal(size=dim))
            for source in row["metadata"]
            for k, part in enumerate(names)
        )
        for row in rows
    ]
    return Outputs(clips=np.array(z, np.float32))


ADDED = (("timbre_label",), ("pitch_label",), ("rate_label",), ("amplitude_label",))
BY_HEART = (("timbre_label", "pitch_label"),)


def scored(rows, names, **requested):
    settings = TASK.settings(rows, requested)
    return TASK.score(rows, embeddings_of(rows, names), settings, "cpu", False)


def test_is_scored_on_request_alone_from_the_clips_of_a_tre():
    assert TASK is load_task("a_tre_held_out")
    assert TASK not in default_tasks(["a_tre"])
    assert TASK.info.recipe == load_task("a_tre").info.recipe
    assert TASK.inputs({}, {}) == load_task("a_tre").inputs({}, {})


def test_gives_what_it_describes(rows):
    scores = scored(rows, BY_HEART + ADDED)
    check_described(TASK, scores, rows)
    assert scores.training == {}
    for name in ("gap", "held_out", "ridge_gap", "interaction", "gap_single"):
        parts = [scores.measures[f"{pair}_{name}"] for pair in ATTRIBUTE_PAIRS]
        assert scores.measures[name] == pytest.approx(np.mean(parts), abs=1e-12), name


def test_what_was_learnt_by_heart_is_lost_in_its_pair_alone(rows):
    learnt, added = scored(rows, BY_HEART).measures, scored(rows, ADDED).measures
    assert learnt["timbre_pitch_gap"] > 0.2
    low, high = intervals_of(TASK, scored(rows, BY_HEART), TASK.samples(rows))["timbre_pitch_gap"]
    assert 0.1 < low < learnt["timbre_pitch_gap"] < high
    assert all(abs(learnt[f"{pair}_gap"]) < 0.03 for pair in ATTRIBUTE_PAIRS if pair != "timbre_pitch")
    assert abs(added["gap"]) < 0.005
    assert added["held_out"] > 0.97


def test_settings_say_all_that_is_scored(rows):
    settings = TASK.settings(rows, {})
    assert settings == {"pairs": list(ATTRIBUTE_PAIRS), "split_seed": 0, "composition": "pairs"}
    assert TASK.settings(rows, settings) == settings
    # Of default settings alone results are verified, so nothing that depends on a fit's random numbers ever is.
    assert not any(measure.fitted for measure in TASK.info.measures)
    fitted = TASK.settings(rows, {"composition": "transformer"})
    assert fitted == {"pairs": ["timbre_pitch"], "split_seed": 0, "composition": "transformer", "max_steps": 600}
    assert TASK.settings(rows, fitted) == fitted


def test_attributes_that_do_not_vary_are_left_out(rows):
    dull = [{**row, "metadata": [{**source, "rate_label": "slow"} for source in row["metadata"]]} for row in rows]
    settings = TASK.settings(dull, {})
    assert settings["pairs"] == ["timbre_pitch", "timbre_amplitude", "pitch_amplitude"]
    scores = scored(dull, ADDED)
    assert scores.measures["timbre_rate_gap"] is None
    assert scores.measures["timbre_pitch_gap"] is not None
    assert "timbre_rate_score" not in scores.columns
    duller = [{**row, "metadata": [{name: "x" for name in row["metadata"][0]}]} for row in rows]
    with pytest.raises(TaskError, match="two labels each, to be combined; the scenes have 1 of timbre, 1 of pitch"):
        TASK.settings(duller, {})


def test_the_transformer_of_one_pair(rows):
    requested = {"composition": "transformer", "pairs": ["rate_amplitude"], "max_steps": 1}
    scores = scored(rows, ADDED, **requested)
    assert scores.training == {"steps": [1] * 16}
    assert scores.measures["gap"] == scores.measures["rate_amplitude_gap"]
    assert scores.measures["timbre_pitch_gap"] is None


def test_rows_and_settings_that_cannot_be_scored_are_refused_before_anything_is_embedded(rows):
    samples = TASK.samples(rows)
    assert len(samples.rows) == len(set(samples.clusters)) == 260
    assert list(samples.contents[0]["scene"][0]) == ["timbre", "pitch", "rate", "amplitude"]
    for pairs, message in (
        (["timbre_pich"], "unknown pair of attributes 'timbre_pich'; did you mean 'timbre_pitch'"),
        (["timbre_pitch", "timbre_pitch"], "list different ones"),
    ):
        with pytest.raises(InputError, match=message):
            TASK.settings(rows, {"pairs": pairs})
    with pytest.raises(TaskError, match="4 scenes are too few to hold out combinations of"):
        TASK.settings(rows[:4], {})
    with pytest.raises(DatasetError, match=f"row {rows[3]['id']}: metadata is None"):
        TASK.settings([*rows[:3], {**rows[3], "metadata": None}, *rows[4:]], {})
