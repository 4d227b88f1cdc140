"""A-TRE with held-out combinations against scikit-learn, formulas by hand, and encoders whose gap is known."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from audio_compositionality.metrics import a_tre_held_out as module
from audio_compositionality.metrics.a_tre_held_out import (
    Split,
    a_tre_held_out,
    combination_sets,
    draw_splits,
    ridge_prediction,
)

from .contract import MetricContract
from .scenes import NAMES, additive
from .scenes import make_scenes as scenes_of

QUICK = {"composition": "transformer", "max_steps": 2, "progress": False, "device": "cpu"}


def example() -> dict[str, Any]:
    """Return arguments of `a_tre_held_out`: 200 different scenes of one to three sources in 8 dimensions, of an encoder
    that is additive in classes, except for timbre and pitch, with one vector per combination."""
    rng = np.random.default_rng(0)
    labels: dict[str, Sequence[str]] = {"timbre_label": ("bell", "brass", "reed"), "rate_label": ("slow", "fast")}
    labels |= {"pitch_label": ("low", "mid", "high"), "amplitude_label": ("soft", "loud")}
    vectors = {(name, label): rng.normal(size=8) for name, choices in labels.items() for label in choices}
    combined = {pair: rng.normal(size=8) for pair in itertools.product(labels["timbre_label"], labels["pitch_label"])}
    mean = rng.normal(size=8)
    embeddings: list[np.ndarray] = []
    scenes: list[list[dict[str, str]]] = []
    while len(scenes) < 200:
        sources = [{name: str(rng.choice(labels[name])) for name in labels} for _ in range(rng.integers(1, 4))]
        sources.sort(key=lambda source: list(source.values()))
        if sources in scenes:
            continue
        parts = [vectors[pair] for source in sources for pair in source.items()]
        parts += [combined[source["timbre_label"], source["pitch_label"]] for source in sources]
        embeddings.append((mean + np.sum(parts, axis=0) + rng.normal(0, 0.5, 8)).round(3))
        scenes.append(sources)
    return {"embeddings": np.array(embeddings), "scenes": scenes}


class TestContract(MetricContract):
    name = "a_tre_held_out"
    embeddings = ("embeddings",)
    at_constant: ClassVar = {"gap": 0, "held_out": 0, "random": 0, "kept": None, "constant": 1, "constant_random": 1}


def make_scenes(n, classes=(4, 4, 3, 2), **options):
    return scenes_of(n, classes, **options)


def different(scenes):
    """Without those whose sources occur in an earlier one."""
    return list({tuple(sorted(tuple(source.items()) for source in scene)): scene for scene in scenes}.values())


def by_heart(scenes, first=NAMES[0], second=NAMES[1], dim=24, seed=0):
    """Embeddings that are sums of one random vector for each combination of two attributes."""
    rng = np.random.default_rng(seed)
    vectors: dict = {}
    return np.array(
        [
            sum(vectors.setdefault((source[first], source[second]), rng.normal(size=dim)) for source in scene)
            for scene in scenes
        ]
    )


# ----- the sets and the splits


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [(2, 2, 4), (3, 3, 6), (5, 2, 5), (12, 12, 8)],
)
def test_sets_are_each_combination_once_and_leave_both_attributes_apart(first, second, count):
    sets = combination_sets(first, second, np.random.default_rng(3))
    assert sets.shape == (first, second)
    assert sorted(np.unique(sets)) == list(range(count))
    for number in range(count):
        left = sets != number
        # A graph of labels, joined where a combination is left: in one piece, both attributes' effects are told apart.
        reached, seen = {("first", 0)}, set()
        while reached:
            side, label = reached.pop()
            seen.add((side, label))
            other = left[label] if side == "first" else left[:, label]
            joined = {("second" if side == "first" else "first", int(place)) for place in np.flatnonzero(other)}
            reached |= joined - seen
        assert len(seen) == first + second, number


@pytest.mark.parametrize("scenes", [make_scenes(150), make_scenes(150, (9, 3, 2, 2))])
def test_no_training_scene_has_a_combination_of_the_tested_sources(scenes):
    sizes = np.array([len(scene) for scene in scenes])
    vocabulary = {item for scene in scenes for source in scene for item in source.items()}
    for pair in draw_splits(scenes):
        combined = [{tuple(source[name] for name in pair.attributes) for source in scene} for scene in scenes]
        held: list = []
        for split in pair.held_out:
            trained = set().union(*(combined[row] for row in split.train))
            out = set().union(*combined) - trained
            held += sorted(out)
            assert all(combined[row] & out for row in split.test)
        assert len(held) == len(set(held)), "each combination is held out once"
        assert set(held) == set().union(*combined)
        for kind in (pair.held_out, pair.random):
            tests = Counter(row for split in kind for row in split.test.tolist())
            assert set(tests) == set(range(len(scenes))), "each scene is tested"
            for split in kind:
                assert sorted([*split.train, *split.test]) == list(range(len(scenes)))
                labels = {item for row in split.train for source in scenes[row] for item in source.items()}
                assert labels == vocabulary
        for split, drawn in zip(pair.held_out, pair.random, strict=True):
            assert np.bincount(sizes[split.test]).tolist() == np.bincount(sizes[drawn.test]).tolist()
            assert np.bincount(sizes[split.train]).tolist() == np.bincount(sizes[drawn.train]).tolist()


def test_splits_depend_on_scenes_pair_and_seed_alone():
    scenes = different(make_scenes(100))
    every = {pair.attributes: pair for pair in draw_splits(scenes)}
    (alone,) = draw_splits(scenes, [NAMES[:2]])
    (turned,) = draw_splits(scenes, [NAMES[1::-1]])
    other = draw_splits(scenes, [NAMES[:2]], seed=1)[0]

    def tests(pair):
        return [split.test.tolist() for split in (*pair.held_out, *pair.random)]

    assert tests(alone) == tests(every[tuple(sorted(NAMES[:2]))]) == tests(turned)
    assert tests(alone) != tests(other)
    place = np.random.default_rng(0).permutation(len(scenes))
    moved = draw_splits([scenes[row] for row in place], [NAMES[:2]])[0]
    assert [sorted(place[rows].tolist()) for rows in tests(moved)] == tests(alone)


# ----- the numbers against scikit-learn


def gcv(features, goals, penalty):
    """Error of generalised cross-validation by the whole hat matrix, intercept included."""
    x = features - features.mean(axis=0)
    hat = x @ np.linalg.inv(x.T @ x + penalty * np.eye(x.shape[1])) @ x.T + 1 / len(x)
    return ((goals - hat @ goals) ** 2).sum() / (1 - np.trace(hat) / len(x)) ** 2


@pytest.mark.parametrize("columns", [6, 70])
def test_ridge_is_scikit_learn_s_at_the_penalty_of_least_gcv(columns):
    rng = np.random.default_rng(0)
    features, z = rng.normal(size=(60, columns)), rng.normal(size=(60, 5))
    z[:, 0] += 2 * features[:, 0]
    order = rng.permutation(60)
    split = Split(order[:45], order[45:])
    x = features[split.train]
    penalties = x.var(axis=0).sum() * module.RELATIVE_PENALTIES
    best = min(penalties, key=lambda penalty: gcv(x, z[split.train], penalty))
    assert penalties[0] < best < penalties[-1]
    expected = Ridge(alpha=best).fit(x, z[split.train]).predict(features[split.test])
    np.testing.assert_allclose(ridge_prediction(features, z[split.train], split), expected, atol=1e-9)


def counted(scenes, width):
    """How often each thing of `width` labels of one source occurs in each scene."""
    things = [
        Counter(thing for source in scene for thing in itertools.combinations(sorted(source.items()), width))
        for scene in scenes
    ]
    names = sorted(set().union(*things))
    return np.array([[counter[name] for name in names] for counter in things], float)


def spread_to_one(x):
    return x / np.sqrt(x.var(axis=0).sum())


def test_numbers_are_those_of_scikit_learn_s_ridge_on_features_counted_by_hand():
    scenes = make_scenes(90)
    rng = np.random.default_rng(1)
    z = additive(scenes) + by_heart(scenes) + rng.normal(size=(90, 24))
    z[7] = 0
    result = a_tre_held_out(z, scenes, pairs=[NAMES[:2]], return_scores=True)
    sizes = np.array([[len(scene)] for scene in scenes])
    labels = counted(scenes, 1)
    plain = np.hstack([spread_to_one(x) for x in (labels, labels / sizes, (sizes == [1, 2, 3]).astype(float))])
    paired = np.hstack([plain, np.sqrt(0.3) * spread_to_one(counted(scenes, 2))])
    unit = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300)
    (pair,) = draw_splits(scenes, [NAMES[:2]])
    columns = {}
    for kind, splits in (("held_out", pair.held_out), ("random", pair.random)):
        for name, x in (("", paired), ("ridge_", plain)):
            sums, times = np.zeros(90), np.zeros(90)
            for split in splits:
                mean = unit[split.train].mean(axis=0)
                y = unit - mean
                penalties = x[split.train].var(axis=0).sum() * module.RELATIVE_PENALTIES
                best = min(penalties, key=lambda p: gcv(x[split.train], y[split.train], p))
                says = Ridge(alpha=best).fit(x[split.train], y[split.train]).predict(x[split.test])
                goal = y[split.test]
                cosines = (says * goal).sum(axis=1) / np.linalg.norm(says, axis=1) / np.linalg.norm(goal, axis=1)
                sums[split.test] += cosines
                times[split.test] += 1
            columns[name + kind] = sums / times
        sums, times, raw = np.zeros(90), np.zeros(90), np.zeros(90)
        for split in splits:
            mean = unit[split.train].mean(axis=0)
            for row in split.test:
                alike = [other for other in split.train if len(scenes[other]) == len(scenes[row])]
                says, goal = unit[alike].mean(axis=0) - mean, unit[row] - mean
                sums[row] += says @ goal / np.linalg.norm(says) / np.linalg.norm(goal)
                raw[row] += unit[row] @ mean / np.linalg.norm(mean)
                times[row] += 1
        columns[f"number_{kind}"], columns[f"constant_{kind}"] = sums / times, raw / times
    expected = {name: values.mean() for name, values in columns.items()}
    expected["constant"] = expected.pop("constant_held_out")
    for name, value in expected.items():
        assert result[name] == pytest.approx(value, abs=1e-7), name
    np.testing.assert_allclose(result["scores_held_out"], columns["held_out"], atol=1e-6)
    np.testing.assert_allclose(result["scores_random"], columns["random"], atol=1e-6)
    np.testing.assert_allclose(result["scores"], columns["random"] - columns["held_out"], atol=1e-6)
    assert result["gap"] == pytest.approx(expected["random"] - expected["held_out"], abs=1e-7)
    assert result["ridge_gap"] == pytest.approx(expected["ridge_random"] - expected["ridge_held_out"], abs=1e-7)
    assert result["interaction"] == pytest.approx(expected["random"] - expected["ridge_random"], abs=1e-7)
    told = expected["random"] - expected["number_random"]
    assert result["kept"] == pytest.approx(1 - result["gap"] / told, abs=1e-6)
    single = np.array(result["scores"])[(sizes == 1)[:, 0]]
    assert result["gap_single"] == pytest.approx(single.mean(), abs=1e-12)
    assert result["n"] == 90
    assert result["n_train"] == min(len(split.train) for split in (*pair.held_out, *pair.random))


# ----- what is known of encoders


@pytest.fixture(scope="module")
def many():
    return make_scenes(400, (6, 6, 4, 2))


def test_an_encoder_that_counts_sources_has_nothing_to_keep(many):
    sizes = [len(scene) for scene in many]
    z = np.random.default_rng(0).normal(size=(4, 8))[sizes]
    result = a_tre_held_out(z, many)
    assert result["number_held_out"] == pytest.approx(1)
    assert abs(result["gap"]) < 1e-4
    assert result["kept"] is None
    pairs = result["by_pair"]
    assert [set(one["pair"]) for one in pairs] == [set(two) for two in itertools.combinations(sorted(NAMES), 2)]
    for name in ("gap", "held_out", "random", "ridge_gap", "number_random", "constant", "interaction"):
        assert result[name] == pytest.approx(np.mean([one[name] for one in pairs]), abs=1e-12), name
    several = [scene for scene in many if len(scene) > 1]
    assert a_tre_held_out(additive(several), several, pairs=[NAMES[:2]])["gap_single"] is None


# ----- the Transformer


def test_the_transformer_is_fitted_to_both_kinds_of_each_set():
    scenes = make_scenes(60, (2, 2, 1, 1))
    result = a_tre_held_out(additive(scenes, 4), scenes, **QUICK, return_scores=True)
    assert result["steps"] == [2] * 8
    assert np.isfinite(result["scores"]).all()
    closed = a_tre_held_out(additive(scenes, 4), scenes)
    assert closed["steps"] == []
    assert result["held_out"] != closed["held_out"]
    for name in ("ridge_gap", "interaction", "number_random", "constant"):
        assert result[name] == closed[name], name
    assert result == a_tre_held_out(additive(scenes, 4), scenes, **QUICK, return_scores=True)
    constant = a_tre_held_out(np.ones((60, 4)), scenes, **QUICK)
    assert constant["steps"] == [0] * 8
    assert constant["gap"] == constant["held_out"] == 0


# ----- errors

RARE = make_scenes(60, (3, 3, 1, 1))
RARE[5][0]["pitch_label"] = "rare"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": [("timbre_label", "pich_label")]}, "attribute 'pich_label'. Did you mean 'pitch_label'"),
        ({"pairs": [("timbre_label", "rate_label")]}, "All sources have the rate_label 'r0'"),
        ({"pairs": [("timbre_label", "timbre_label")]}, "two different attributes"),
        ({"pairs": []}, "one or more different pairs"),
        ({"composition": "pair"}, "composition is 'pair'.*Did you mean 'pairs'"),
        ({"seed": -1}, "seed must be an integer ≥ 0; got -1"),
        ({"scenes": [[{"timbre_label": 3}]] * 60}, "a label must be a string"),
        (
            {"scenes": make_scenes(60, (3, 1, 1, 1))},
            r"two attributes need two labels.*pitch_label has 1, .*timbre_label has 3",
        ),
        (
            {"scenes": RARE},
            r"60 scenes are too few .*missing .*, such as pitch_label 'rare', which is in 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    scenes = make_scenes(60, (3, 3, 1, 1))
    with pytest.raises(ValueError, match=message):
        a_tre_held_out(**{"embeddings": additive(scenes), "scenes": scenes} | changes)
