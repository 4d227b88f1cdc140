"""Zero-shot classification against scikit-learn and plain loops over all orders, and hand-computed cases."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import average_precision_score, balanced_accuracy_score, top_k_accuracy_score

from audio_compositionality.metrics.zero_shot_audio import zero_shot_audio

from .contract import MetricContract


def example() -> dict[str, Any]:
    """Return arguments of `zero_shot_audio`: a model that knows 6 classes, 40 clips in 8 dimensions."""
    rng = np.random.default_rng(0)
    text, labels = rng.normal(size=(6, 8)), np.arange(40) % 6
    audio = text[labels] + 1.2 * rng.normal(size=(40, 8))
    return {"audio": audio.round(3), "labels": labels, "text": text.round(3)}


class TestContract(MetricContract):
    name = "zero_shot_audio"
    embeddings = ("audio", "text")
    needed = ("audio", "text", "labels")

    def test_order_of_samples_does_not_matter(self) -> None:
        example, place = self.example(), np.random.default_rng(1).permutation(40)
        moved = {"audio": example["audio"][place], "labels": example["labels"][place]}
        assert self.numbers(**moved) == pytest.approx(self.numbers(), abs=1e-9)

    def test_metric_collects_lists_of_labels(self, tmp_path: Path) -> None:
        example = self.example()
        names = ["bell", "dog", "rain", "wind", "bird", "car"]
        lists = [[names[label], *(["rain"] if label == 1 else [])] for label in example["labels"]]
        given = {"text": example["text"], "class_of_text": names}
        metric = self.metric(tmp_path)
        metric.add_batch(audio=example["audio"][:39], labels=lists[:39])
        metric.add(audio=example["audio"][39], labels=lists[39])
        result = metric.compute(**given)
        assert result == zero_shot_audio(example["audio"], labels=lists, **given)
        assert result["macro_recall"] is None


def clips(n: int = 150, classes: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Similarities of a model that knows something, and labels of unequally many clips."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes) // 2])
    return rng.normal(size=(n, classes)) + 1.5 * np.eye(classes)[labels], labels


def several(labels: np.ndarray, classes: int, seed: int = 0) -> tuple[list[list[int]], np.ndarray]:
    """Labels with others beside them, as lists and as 0 and 1."""
    more = np.random.default_rng(seed).random((len(labels), classes)) < 0.15
    more[np.arange(len(labels)), labels] = True
    return [np.flatnonzero(row).tolist() for row in more], more


def test_one_label_equals_scikit_learn() -> None:
    s, labels = clips()
    result = zero_shot_audio(similarity=s, labels=labels)
    for k, name in ((1, "top1"), (5, "top5")):
        assert result[name] == pytest.approx(top_k_accuracy_score(labels, s, k=k))
    assert result["macro_recall"] == pytest.approx(balanced_accuracy_score(labels, s.argmax(axis=1)))
    assert result["map"] == pytest.approx(average_precision_score(np.eye(8)[labels], s, average="macro"))
    assert result["macro_recall"] != pytest.approx(result["top1"], abs=0.01)
    assert result["chance_macro_recall"] == result["chance_top1"] == 1 / 8
    assert result["chance_top5"] == 5 / 8


def test_several_labels_equal_scikit_learn() -> None:
    s, labels = clips()
    lists, indicator = several(labels, 8)
    result = zero_shot_audio(similarity=s, labels=lists)
    assert result["map"] == pytest.approx(average_precision_score(indicator, s, average="macro"))
    assert result["top1"] == pytest.approx(indicator[np.arange(150), s.argmax(axis=1)].mean())
    assert result["chance_top1"] == pytest.approx(indicator.mean())
    assert result["macro_recall"] is None


def test_classes_without_clips_are_answers_and_no_part_of_the_means() -> None:
    s, labels = clips()
    extra = np.concatenate([s, np.full((150, 2), -9.0)], axis=1)
    result, expected = (zero_shot_audio(similarity=x, labels=labels) for x in (extra, s))
    for name in ("top1", "top5", "macro_recall", "map", "chance_map"):
        assert result[name] == pytest.approx(expected[name])
    assert (result["chance_macro_recall"], result["classes"]) == (0.1, 10)


# ----- ties and chance


def test_ties_are_expectations_over_all_orders() -> None:
    rng = np.random.default_rng(2)
    labels = np.array([0, 1, 2, 0, 1, 0])
    s = rng.integers(3, size=(6, 3)) / 4
    result = zero_shot_audio(similarity=s, labels=labels)

    def orders(values: np.ndarray) -> list[tuple[int, ...]]:
        return [order for order in itertools.permutations(range(len(values)))
                if all(values[one] >= values[other] for one, other in itertools.pairwise(order))]  # fmt: skip

    first = [np.mean([order[0] == label for order in orders(row)]) for row, label in zip(s, labels, strict=True)]
    assert result["top1"] == pytest.approx(np.mean(first))
    assert result["macro_recall"] == pytest.approx(np.mean([np.mean(np.array(first)[labels == k]) for k in range(3)]))
    precisions = []
    for k in range(3):
        each = []
        for order in orders(s[:, k]):
            right = labels[list(order)] == k
            each.append((right.cumsum() / np.arange(1, 7))[right].mean())
        precisions.append(np.mean(each))
    assert result["map"] == pytest.approx(np.mean(precisions))
    assert len(np.unique(s[:, 0])) < 6


@pytest.mark.parametrize("noise", [1e-7])
def test_a_constant_model_is_at_chance(noise: float) -> None:
    rng = np.random.default_rng(3)
    audio, text = ((1 + noise * rng.normal(size=(n, 16))).astype(np.float32) for n in (90, 6))
    for labels in (np.arange(90) % 5, several(np.arange(90) % 5, 6)[0]):
        result = zero_shot_audio(audio, text, labels)
        for name in ("top1", "top5", "macro_recall", "map"):
            chance = result[f"chance_{name}"]
            assert result[name] == (None if chance is None else pytest.approx(chance, abs=1e-12)), name


# ----- texts


def test_texts_of_a_class_are_averaged_at_length_one() -> None:
    rng = np.random.default_rng(5)
    text, audio = rng.normal(size=(9, 12)) * rng.uniform(0.1, 10, size=(9, 1)), rng.normal(size=(40, 12))
    classes = ["bell", "dog", "rain"] * 3
    unit = text / np.linalg.norm(text, axis=1, keepdims=True)
    directions = np.stack([unit[k::3].mean(axis=0) for k in range(3)])
    labels = [["bell", "dog", "rain"][k] for k in rng.integers(3, size=40)]
    result = zero_shot_audio(audio, text, labels, class_of_text=classes, return_scores=True)
    expected = zero_shot_audio(audio, directions, labels, class_of_text=["bell", "dog", "rain"], return_scores=True)
    for name in ("scores", "scores_macro_recall", "scores_map"):
        assert result[name] == pytest.approx(expected[name], abs=1e-9)
    # Otherwise than where similarities are averaged: there a class whose texts disagree is nowhere near.
    averaged = zero_shot_audio(similarity=audio @ unit.T, labels=labels, class_of_text=classes, return_scores=True)
    means = np.stack([(audio @ unit.T)[:, k::3].mean(axis=1) for k in range(3)], axis=1)
    right = [["bell", "dog", "rain"][k] == label for k, label in zip(means.argmax(axis=1), labels, strict=True)]
    assert averaged["scores"] == [float(x) for x in right]


# ----- what clips contribute


@pytest.mark.parametrize("has_lists", [False, True])
def test_contributions_are_derivatives_by_the_weight_of_a_clip(has_lists: bool) -> None:
    s, labels = clips(60, 5)
    lists, indicator = several(labels, 5)
    truth = indicator if has_lists else np.eye(5)[labels] > 0
    result = zero_shot_audio(similarity=s, labels=lists if has_lists else labels, return_scores=True)

    def scores(weights: np.ndarray) -> list[float]:
        recalls = [np.average(s.argmax(axis=1)[labels == k] == k, weights=weights[labels == k]) for k in range(5)]
        return [average_precision_score(truth, s, average="macro", sample_weight=weights), float(np.mean(recalls))]

    step = 1e-5
    for clip in range(0, 60, 7):
        more, less = (scores(np.where(np.arange(60) == clip, weight, 1.0)) for weight in (1 + step, 1 - step))
        names = ["map"] if has_lists else ["map", "macro_recall"]
        for name, high, low in zip(names, more, less, strict=False):
            expected = result[name] + 60 * (high - low) / (2 * step)
            assert result[f"scores_{name}"][clip] == pytest.approx(expected, abs=1e-6), name


def test_intervals() -> None:
    """Of shares Wilson's; of others the mean of the contributions and 1.96 of its standard errors, or nearly."""
    s, labels = clips()
    result = zero_shot_audio(similarity=s, labels=labels, return_scores=True)
    expected = binomtest(round(150 * result["top1"]), 150).proportion_ci(method="wilson")
    assert result["intervals"]["top1"] == pytest.approx([expected.low, expected.high], abs=1e-9)
    for name in ("macro_recall", "map"):
        low, high = result["intervals"][name]
        error = np.std(result[f"scores_{name}"], ddof=1) / np.sqrt(150)
        assert (high - low) / (2 * 1.96) == pytest.approx(error, rel=0.1)
        assert low < result[name] < high


# ----- errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": np.ones((2, 4))}, "audio has 3 dimensions and text 4: the towers do not share a space"),
        ({"labels": ["bell", "dog", "bel"]}, "row 2 has 'bel', the nearest is 'bell'"),
        ({"labels": [["bell"], "dog", ["dog"]]}, "or a list per clip; row 1 is not a list"),
        ({"labels": [["bell"], ["dog", "dog"], ["dog"]]}, "different classes; row 1 has 'dog' twice"),
        ({"labels": [["bell"], [], ["dog"]]}, "Every clip needs a class; row 1 has none"),
        ({"labels": ["bell", "dog", None]}, "labels must be strings or integers; row 2 has None"),
        ({"labels": None}, "got audio, text without labels"),
        ({"similarity": np.ones((3, 2))}, "similarity is given together with audio, text"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    inputs = {"audio": np.ones((3, 3)), "text": np.ones((2, 3)), "labels": ["bell", "dog", "dog"]}
    with pytest.raises(ValueError, match=message):
        zero_shot_audio(**inputs | {"class_of_text": ["bell", "dog"]} | changes)
