"""Informativeness against scikit-learn, formulas by hand and the properties that its definition implies."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from audio_compositionality.metrics import informativeness as module
from audio_compositionality.metrics import probing
from audio_compositionality.metrics.informativeness import informativeness

from .contract import MetricContract, load_metric

CLOSED = ("informativeness", "ridge", "kernel", "shuffled", "rmse", "accuracy", "chance", "n", "blocks")


class TestContract(MetricContract):
    name = "informativeness"
    embeddings = ("embeddings",)
    drawn = ("shuffled",)


def clips(blocks: int = 40, size: int = 4, dim: int = 12, noise: float = 0.5, seed: int = 0) -> dict[str, Any]:
    """Arguments: embeddings that move along one direction with a number, and bend along another."""
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(blocks), size)
    labels = rng.uniform(-2, 2, len(block))
    directions = rng.normal(size=(2, dim))
    z = labels[:, None] * directions[0] + labels[:, None] ** 2 * directions[1] + 3
    z += noise * rng.normal(size=z.shape)
    return {"embeddings": z, "labels": labels, "folds": block % 5, "blocks": block}


def named(data: dict[str, Any]) -> dict[str, Any]:
    """The same with four classes in place of numbers."""
    words = np.array(["a", "b", "c", "d"])
    return data | {"labels": words[np.clip(np.floor(data["labels"] + 2), 0, 3).astype(int)]}


def parts(folds: np.ndarray, test: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    validation = (test + 1) % 5
    return (folds != test) & (folds != validation), folds == validation, folds == test


def by_hand(data: dict[str, Any], targets: np.ndarray, kernel: bool) -> np.ndarray:
    """Predictions of all rows by scikit-learn, with the penalty and width that are best on the next fold."""
    z, folds = data["embeddings"], data["folds"]
    predictions = np.empty((len(z), targets.shape[1]))
    for test in range(5):
        train, validation, tested = parts(folds, test)
        mean, offset = z[train].mean(axis=0), targets[train].mean(axis=0)
        x = (z - mean) / np.sqrt(z[train].var(axis=0).mean())
        fits = []
        if kernel:
            distances = np.square(x[:, None] - x[train]).sum(axis=2)
            median = np.median(distances[train][np.triu_indices(train.sum(), 1)])
            for width in (4, 1, 0.25):
                gram = np.exp(-distances / (2 * width * median))
                centred = gram - gram[train].mean(axis=0)
                centred -= centred[:, :].mean(axis=1, keepdims=True)
                fits += [(centred, penalty) for penalty in np.logspace(-6, 1, 15)]
            models = [
                (x, KernelRidge(alpha=p, kernel="precomputed").fit(x[train], targets[train] - offset)) for x, p in fits
            ]
        else:
            models = [(x, Ridge(alpha=p).fit(x[train], targets[train] - offset)) for p in np.logspace(-2, 6, 17)]
        answers = [model.predict(x).reshape(len(z), -1) + offset for x, model in models]
        losses = [np.square(answer - targets)[validation].mean() for answer in answers]
        predictions[tested] = answers[int(np.argmin(losses))][tested]
    return predictions


@pytest.mark.parametrize("kernel", [False, True])
def test_numbers_equal_scikit_learn(kernel: bool) -> None:
    data = clips()
    predictions = by_hand(data, data["labels"][:, None], kernel)[:, 0]
    means = np.array([data["labels"][parts(data["folds"], fold)[0]].mean() for fold in data["folds"]])
    expected = 1 - np.square(data["labels"] - predictions).sum() / np.square(data["labels"] - means).sum()
    result = informativeness(**data, probes="kernel" if kernel else "ridge")
    assert result["kernel" if kernel else "ridge"] == pytest.approx(expected, abs=1e-7)
    assert result["informativeness"] == pytest.approx(expected, abs=1e-7)
    assert result["rmse"] == pytest.approx(np.sqrt(np.square(data["labels"] - predictions).mean()), abs=1e-7)
    assert result["ridge" if kernel else "kernel"] is None
    # The reference is the mean of each fold's training rows; scikit-learn's R² has the mean of all, which is as good.
    assert expected == pytest.approx(r2_score(data["labels"], predictions), abs=0.01)


@pytest.mark.parametrize("kernel", [False, True])
def test_classes_equal_scikit_learn(kernel: bool) -> None:
    data = named(clips())
    _, codes = np.unique(data["labels"], return_inverse=True)
    answers = by_hand(data, np.eye(4)[codes], kernel).argmax(axis=1)
    common = np.array(
        [np.bincount(codes[parts(data["folds"], fold)[0]], minlength=4).argmax() for fold in data["folds"]]
    )
    accuracy, chance = (answers == codes).mean(), (common == codes).mean()
    result = informativeness(**data, probes=["kernel"] if kernel else ["ridge"])
    assert (result["accuracy"], result["chance"]) == pytest.approx((accuracy, chance))
    assert result["informativeness"] == pytest.approx((accuracy - chance) / (1 - chance))
    assert (result["rmse"], result["n"], result["blocks"]) == (None, 160, 40)
    assert 0.4 < accuracy < 1  # the case is neither chance nor trivial


def test_best_probe_is_that_which_validates_best_in_each_fold() -> None:
    data = clips()
    both = informativeness(**data, return_scores=True)
    target = data["labels"][:, None]
    errors = {}
    for name, kernel in (("ridge", False), ("kernel", True)):
        errors[name] = np.square(by_hand(data, target, kernel) - target)[:, 0]
    choices = set()
    expected = np.empty(len(target))
    for test in range(5):
        train, validation, tested = parts(data["folds"], test)
        z = module.standardised_rows(data["embeddings"])
        learnt, held = (z[train], target[train]), (z[validation], target[validation])
        losses = {name: probing.fit_probe(name, learnt, held, z[tested])[1][0] for name in errors}
        best = min(losses, key=losses.__getitem__)
        choices.add(best)
        expected[tested] = errors[best][tested]
    means = np.array([data["labels"][parts(data["folds"], fold)[0]].mean() for fold in data["folds"]])
    reference = np.square(data["labels"] - means)
    assert both["informativeness"] == pytest.approx(1 - expected.sum() / reference.sum(), abs=1e-7)
    ratio = expected.sum() / reference.sum()
    contributions = 1 - ratio - (expected - ratio * reference) / reference.mean()
    np.testing.assert_allclose(both["scores"], contributions, atol=1e-6)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_scale_shift_and_rotation_do_not_matter(kind: str) -> None:
    data = clips() if kind == "numbers" else named(clips())
    z, expected = data["embeddings"], informativeness(**data)
    rotation = ortho_group.rvs(12, random_state=1)
    for moved in (1000 * z, z + 50, z @ rotation, 1e-6 * z @ rotation - 3):
        result = informativeness(**data | {"embeddings": moved})
        for name in CLOSED:
            assert result[name] == pytest.approx(expected[name], abs=1e-6), name


def test_label_scale_and_shift_do_not_matter() -> None:
    data = clips()
    moved = informativeness(**data | {"labels": 1000 * data["labels"] + 2000})
    expected = informativeness(**data)
    assert moved["informativeness"] == pytest.approx(expected["informativeness"], abs=1e-9)
    assert moved["rmse"] == pytest.approx(1000 * expected["rmse"], abs=1e-6)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_constant_embeddings_tell_nothing(kind: str, value: float) -> None:
    data = clips() if kind == "numbers" else named(clips())
    result = informativeness(**data | {"embeddings": np.full((160, 7), value)}, return_scores=True)
    assert result["informativeness"] == pytest.approx(0, abs=1e-12)
    assert result["ridge"] == result["shuffled"] == pytest.approx(0, abs=1e-12)
    assert np.isfinite(result["scores"]).all()


def test_embeddings_that_are_constant_in_training_alone_tell_nothing_bad() -> None:
    data = clips()
    z = np.full((160, 3), 0.1)
    z[data["folds"] == 0] = np.random.default_rng(0).normal(size=(32, 3))
    result = informativeness(**data | {"embeddings": z})
    assert abs(result["informativeness"]) < 0.5


@pytest.mark.parametrize("levels", [4, 8])
def test_random_embeddings_score_nothing(levels: int) -> None:
    rng = np.random.default_rng(levels)
    block = np.repeat(np.arange(512 // levels), levels)
    labels = np.tile(np.arange(levels), 512 // levels)
    data = {"embeddings": rng.normal(size=(512, 64)), "folds": block % 5, "blocks": block}
    for given in (labels, labels.astype(str)):
        result = informativeness(**data, labels=given)
        assert abs(result["informativeness"]) < 0.05
        assert abs(result["shuffled"]) < 0.05


def test_shuffled_labels_of_a_perfect_encoder_score_nothing() -> None:
    # Each block has all levels in the same order: blocks that only change places would leave the labels as they are.
    block, labels = np.repeat(np.arange(128), 4), np.tile(np.arange(4.0), 128)
    z = np.random.default_rng(0).normal(size=(128, 32))[block]
    z[:, 0] = labels
    result = informativeness(z, labels, block % 5, block)
    assert result["informativeness"] == pytest.approx(1, abs=1e-6)
    assert abs(result["shuffled"]) < 0.05


def test_permutations_keep_blocks_together() -> None:
    sizes = np.array([3, 3, 3, 2, 2, 5, 1])
    block = np.random.default_rng(0).permutation(np.repeat(np.arange(7), sizes))
    orders = module.block_permutations(block, 200, 0)
    for order in orders:
        assert sorted(order) == list(range(len(block)))
    sources = [len(set(block[order][block == 5])) for order in orders]
    assert np.mean(sources) < 3.2  # five rows from few blocks: at random they would be from 3.8
    same = np.array([3, 3, 3, 3])
    block = np.repeat(np.arange(4), same)
    for order in module.block_permutations(block, 20, 1):
        assert all(len(set(block[order][block == k])) == 1 for k in range(4))
    inner = [order[:3] % 3 for order in module.block_permutations(block, 50, 1)]
    assert len({tuple(rows) for rows in inner}) > 3  # also within a block


def test_perfect_classes_score_one_and_strings_are_classes() -> None:
    block = np.arange(80) // 2
    labels = np.arange(80) % 8
    z = np.eye(8)[labels] @ np.random.default_rng(0).normal(size=(8, 20))
    result = informativeness(z, labels.astype(str), block % 5, block)
    assert result["informativeness"] == result["accuracy"] == 1
    assert result["chance"] == pytest.approx(0.125, abs=0.05)
    # As numbers they are a line, so that the score is another one.
    assert informativeness(z, labels, block % 5, block)["accuracy"] is None


def test_chance_is_of_the_commonest_class_in_training() -> None:
    # Blocks of one class each: the commonest class of the training rows is the rarer in the test.
    classes = np.random.default_rng(1).permutation(np.repeat(["a", "b"], 20))
    block = np.repeat(np.arange(40), 5)
    z = np.random.default_rng(0).normal(size=(200, 16))
    result = informativeness(z, classes[block], block % 5, block)
    hits = []
    for fold in range(5):
        train, _, test = parts(block % 5, fold)
        common = statistics.mode(sorted(classes[block[train]]))
        hits += list(classes[block[test]] == common)
    assert result["chance"] == pytest.approx(np.mean(hits))
    assert result["chance"] < 0.5
    # So what answers at random, as a probe of noise does, scores nothing here too.
    assert abs(result["informativeness"]) < 0.1


def test_the_same_bits_twice_and_other_permutations_with_another_seed() -> None:
    data = clips()
    assert informativeness(**data) == informativeness(**data)
    other = informativeness(**data, seed=1)
    assert other["shuffled"] != informativeness(**data)["shuffled"]
    assert other["informativeness"] == informativeness(**data)["informativeness"]


def test_blocks_and_folds_may_be_strings_and_any_integers() -> None:
    data = clips()
    expected = informativeness(**data)
    moved = data | {"blocks": [f"b{block:03}" for block in data["blocks"]], "folds": 10 * data["folds"] - 7}
    assert informativeness(**moved) == expected


def test_nystroem_is_near_to_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = clips(blocks=60, noise=0.2)
    whole = informativeness(**data, probes="kernel")["kernel"]
    monkeypatch.setattr(probing, "LANDMARKS", 60)
    assert informativeness(**data, probes="kernel")["kernel"] == pytest.approx(whole, abs=0.02)


# ----- probes by gradient descent


def few(seed: int = 0) -> dict[str, Any]:
    return clips(blocks=20, size=4, dim=6, noise=0.3, seed=seed)


@pytest.mark.slow
def test_trained_probes_are_told_alone_with_their_spread() -> None:
    result = informativeness(**few(), probes=("mlp", "ridge", "slp"))
    assert result["kernel"] is None
    assert result["ridge"] == pytest.approx(informativeness(**few())["ridge"])
    assert result["slp"] > 0.4
    assert result["mlp"] > 0.6
    assert result["spread"] >= 0
    assert informativeness(**few(), probes=("ridge",))["spread"] is None


def test_trained_probes_have_the_same_bits_twice_and_leave_the_global_state(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(probing, "EPOCHS", 5)
    before = torch.random.get_rng_state()
    first = informativeness(**few(), probes="slp")
    assert informativeness(**few(), probes="slp") == first
    assert torch.equal(torch.random.get_rng_state(), before)
    assert informativeness(**few(), probes="slp", seed=5)["slp"] != first["slp"]


@pytest.mark.slow
def test_a_linear_layer_falls_with_the_scale_of_raw_features_and_ridge_does_not() -> None:
    data = clips(blocks=40, size=4, dim=64, noise=0.5)
    large = data | {"embeddings": 14 * data["embeddings"]}
    scores = {
        (name, scaled): [informativeness(**given, probes=name, scaled=scaled)[name] for given in (data, large)]
        for name, scaled in (("ridge", False), ("slp", True), ("slp", False))
    }
    assert scores["ridge", False][0] == pytest.approx(scores["ridge", False][1], abs=1e-9)
    assert scores["slp", True][0] == pytest.approx(scores["slp", True][1], abs=1e-3)
    assert scores["slp", False][1] < scores["slp", False][0] - 0.3


def test_the_best_weights_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rate at which training diverges the first epochs are the best, and later ones must not alter them."""
    data = few()
    z = module.standardised_rows(data["embeddings"])
    train, validation, _ = parts(data["folds"], 0)
    y = data["labels"][:, None]
    monkeypatch.setattr(probing, "LEARNING_RATE", 0.5)
    given = (z[train], y[train]), (z[validation], y[validation])
    predictions, loss = probing.fit_probe("slp", *given, z[validation])
    assert np.square(predictions - y[validation]).mean() == pytest.approx(loss[0], rel=1e-5)
    monkeypatch.setattr(probing, "EPOCHS", 3)
    assert probing.fit_probe("slp", *given, z[validation])[1][0] >= loss[0]


# ----- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [1.0] * 160}, r"labels are all 1\.0; there is nothing to predict unless they differ"),
        ({"labels": ["x"] * 160}, "labels are all 'x'"),
        ({"labels": [1.0] * 159 + ["x"]}, "labels must be all numbers or all strings; row 159 has 'x'"),
        ({"labels": ["x"] * 159 + [1]}, "labels must be all numbers or all strings; row 159 has 1"),
        ({"labels": [1.0] * 159 + [None]}, "labels must be all numbers or all strings; row 159 has None"),
        ({"labels": [True, False] * 80}, "labels must be all numbers or all strings; row 0 has True"),
        ({"labels": [1.0] * 159 + [np.nan]}, "labels must be finite; row 159 has nan"),
        ({"labels": np.ones((160, 1))}, r"labels must be all numbers or all strings; row 0 has \[1.0\]"),
        ({"labels": [1.0] * 9}, "labels must have one entry for each of the 160 embeddings; got 9"),
        ({"labels": ["x", "y"] * 79 + ["x", "z"]}, "Class 'z' of labels is in one block only, 39; it needs two"),
        (
            {"labels": np.where(np.isin(np.arange(160) // 4, (0, 5)), "low", np.where(np.arange(160) % 2, "a", "lo"))},
            "labels of row 0 is 'low', which no row has that is trained on .* the nearest that one has is 'lo'",
        ),
        ({"folds": np.arange(160) // 4 % 2}, r"folds has 2 different values, \[0, 1\]; it needs 3"),
        ({"folds": ["a", "b", "c", "d"] * 40}, "folds must be integers; row 0 has 'a'"),
        ({"folds": np.arange(160) / 2}, r"folds must be strings or integers; row 1 has 0\.5"),
        ({"folds": np.arange(160) % 5}, "Block 0 lies in two folds: row 0 in 0, row 1 in 1; all rows of one block"),
        ({"blocks": np.arange(160) // 40}, r"blocks has 4 different values, \[0, 1, 2, 3\]; at least 5 are needed"),
        ({"blocks": np.arange(160) / 4}, r"blocks must be strings or integers; row 1 has 0\.25"),
        ({"probes": ["rigde"]}, "probes has 'rigde', not one of .* Did you mean 'ridge'"),
        ({"probes": "svm"}, "probes has 'svm', not one of"),
        ({"probes": ()}, "probes must name one or more of"),
    ],
)
def test_refuses_bad_input(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        informativeness(**clips() | changes)


# ----- as a metric


def test_metric_collects_strings_that_look_like_numbers_as_strings(tmp_path: Any) -> None:
    data = named(clips())
    data["labels"] = np.array([str("abcd".index(label)) for label in data["labels"]])
    metric = load_metric("informativeness", tmp_path)
    for rows in (slice(0, 90), slice(90, None)):
        metric.add_batch(**{name: values[rows] for name, values in data.items()})
    result = metric.compute()
    assert result["accuracy"] is not None
    assert result == informativeness(**data)


def test_metric_collects_numbers_and_names_of_blocks(tmp_path: Any) -> None:
    data = clips()
    data["blocks"] = [f"b{block}" for block in data["blocks"]]
    metric = load_metric("informativeness", tmp_path)
    metric.add_batch(**data)
    assert metric.compute() == informativeness(**data)
