"""Informativeness against scikit-learn, formulas by hand and the properties that its definition implies."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.metrics import r2_score

from audio_compositionality.metrics import informativeness as module
from audio_compositionality.metrics import probing
from audio_compositionality.metrics.informativeness import informativeness

from .contract import MetricContract, load_metric
from .probes_by_hand import KERNELS, PENALTIES, best_of_folds, kernel_fit, ridge_fit


def example() -> dict[str, Any]:
    """Return arguments of `informativeness`: a noisy encoder of 60 clips in 20 blocks, and one number of each."""
    rng = np.random.default_rng(0)
    blocks = np.repeat(np.arange(20), 3)
    labels = rng.integers(0, 8, 60) * 1.5
    z = rng.normal(size=(60, 6)) + labels[:, None] * rng.normal(0, 0.3, 6)
    return {"embeddings": z.round(3), "labels": labels, "folds": blocks % 5, "blocks": [f"speaker-{b}" for b in blocks]}


class TestContract(MetricContract):
    name = "informativeness"
    embeddings = ("embeddings",)
    drawn = ("shuffled",)
    quick: ClassVar = {"probes": "ridge"}
    origin = ()
    at_constant: ClassVar = {"informativeness": 0, "ridge": 0, "shuffled": 0}


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
    fit, settings = (kernel_fit, KERNELS) if kernel else (ridge_fit, PENALTIES)
    z = probing.standardised_rows(data["embeddings"])
    return best_of_folds(fit, settings, z, targets, data["folds"])


@pytest.mark.parametrize("probe", ["ridge", "kernel"])
def test_numbers_and_classes_equal_scikit_learn(probe: str) -> None:
    data = clips()
    labels, folds = data["labels"], data["folds"]
    predictions = by_hand(data, labels[:, None], probe == "kernel")[:, 0]
    means = np.array([labels[parts(folds, fold)[0]].mean() for fold in folds])
    expected = 1 - np.square(labels - predictions).sum() / np.square(labels - means).sum()
    result = informativeness(**data, probes=probe)
    assert (result[probe], result["informativeness"]) == pytest.approx((expected, expected), abs=1e-7)
    assert result["rmse"] == pytest.approx(np.sqrt(np.square(labels - predictions).mean()), abs=1e-7)
    assert result["ridge" if probe == "kernel" else "kernel"] is None
    # The reference is the mean of each fold's training rows; scikit-learn's R² has the mean of all, which is as good.
    assert expected == pytest.approx(r2_score(labels, predictions), abs=0.01)
    data = named(data)
    _, codes = np.unique(data["labels"], return_inverse=True)
    answers = by_hand(data, np.eye(4)[codes], probe == "kernel").argmax(axis=1)
    common = np.array([np.bincount(codes[parts(folds, fold)[0]], minlength=4).argmax() for fold in folds])
    accuracy, chance = (answers == codes).mean(), (common == codes).mean()
    result = informativeness(**data, probes=[probe])
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


def test_shuffled_labels_of_a_perfect_encoder_score_nothing() -> None:
    # Each block has all levels in the same order: blocks that only change places would leave the labels as they are.
    block, labels = np.repeat(np.arange(128), 4), np.tile(np.arange(4.0), 128)
    z = np.random.default_rng(0).normal(size=(128, 32))[block]
    z[:, 0] = labels
    result = informativeness(z, labels, block % 5, block)
    assert result["informativeness"] == pytest.approx(1, abs=1e-6)
    assert abs(result["shuffled"]) < 0.05


def test_nystroem_is_near_to_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = clips(blocks=60, noise=0.2)
    whole = informativeness(**data, probes="kernel")["kernel"]
    monkeypatch.setattr(probing, "LANDMARKS", 60)
    assert informativeness(**data, probes="kernel")["kernel"] == pytest.approx(whole, abs=0.02)


# ----- probes by gradient descent


def few(seed: int = 0) -> dict[str, Any]:
    return clips(blocks=20, size=4, dim=6, noise=0.3, seed=seed)


def test_trained_probes_have_the_same_bits_twice_and_leave_the_global_state(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(probing, "EPOCHS", 5)
    before = torch.random.get_rng_state()
    first = informativeness(**few(), probes="slp")
    assert informativeness(**few(), probes="slp") == first
    assert torch.equal(torch.random.get_rng_state(), before)
    assert informativeness(**few(), probes="slp", seed=5)["slp"] != first["slp"]
    assert first["spread"] >= 0
    assert first["ridge"] is first["kernel"] is first["mlp"] is None
    assert informativeness(**few(), probes="ridge")["spread"] is None
    # Of features as they come, their scale decides what a layer learns.
    raw, large = (
        informativeness(**few() | {"embeddings": scale * few()["embeddings"]}, probes=("ridge", "slp"), scaled=False)
        for scale in (1, 14)
    )
    assert raw["ridge"] == pytest.approx(large["ridge"], abs=1e-9)
    assert abs(raw["slp"] - large["slp"]) > 0.1
    assert informativeness(**few(), probes="mlp")["mlp"] is not None


# ----- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [1.0] * 160}, r"labels are all 1\.0; at least two different values are needed"),
        ({"labels": [1.0] * 159 + [np.nan]}, "labels must be finite; row 159 has nan"),
        ({"labels": ["x", "y"] * 79 + ["x", "z"]}, "Class 'z' of labels is in one block only, 39; it needs two"),
        (
            {"labels": np.where(np.isin(np.arange(160) // 4, (0, 5)), "low", np.where(np.arange(160) % 2, "a", "lo"))},
            "labels of row 0 is 'low', a class missing from the training rows .* there is 'lo'",
        ),
        ({"folds": np.arange(160) // 4 % 2}, r"folds has 2 different values, \[0, 1\]; at least 3 are needed"),
        ({"folds": np.arange(160) % 5}, "Block 0 lies in two folds: row 0 in 0, row 1 in 1; all rows of a block"),
        ({"blocks": np.arange(160) // 40}, r"blocks has 4 different values, \[0, 1, 2, 3\]; at least 5 are needed"),
        ({"probes": ["rigde"]}, "probes has 'rigde'; it must be one of .* Did you mean 'ridge'"),
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
