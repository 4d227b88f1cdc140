"""Probes by scikit-learn, each with the setting that is best on the next fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge


def folds_of(fold: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows of training, validation and test of each of five folds."""
    return [((fold != k) & (fold != (k + 1) % 5), fold == (k + 1) % 5, fold == k) for k in range(5)]


def ridge_fit(x: np.ndarray, y: np.ndarray, train: np.ndarray, penalty: float) -> np.ndarray:
    mean, offset = x[train].mean(axis=0), y[train].mean(axis=0)
    scaled = (x - mean) / np.sqrt(x[train].var(axis=0).mean())
    answers: np.ndarray = Ridge(alpha=penalty).fit(scaled[train], y[train] - offset).predict(scaled)
    return answers.reshape(y.shape) + offset


def kernel_fit(x: np.ndarray, y: np.ndarray, train: np.ndarray, setting: tuple[float, float]) -> np.ndarray:
    """Kernel ridge regression with an intercept: that of the centred kernel."""
    width, penalty = setting
    offset = y[train].mean(axis=0)
    distances = np.square(x[:, None] - x[train]).sum(axis=2)
    median = np.median(distances[train][np.triu_indices(train.sum(), 1)])
    gram = np.exp(-distances / (2 * width * median))
    gram = gram - gram[train].mean(axis=0)
    gram = gram - gram.mean(axis=1, keepdims=True)
    answers = KernelRidge(alpha=penalty, kernel="precomputed").fit(gram[train], y[train] - offset).predict(gram)
    return np.asarray(answers).reshape(y.shape) + offset


def best_of_folds(
    fit: Any, settings: Any, x: np.ndarray, y: np.ndarray, fold: np.ndarray, only: int | None = None
) -> np.ndarray:
    """Predictions of all rows of x, each in its fold, or in one fold, with the setting that is best on the next."""
    predictions = np.empty_like(y)
    for train, validation, test in folds_of(fold) if only is None else [folds_of(fold)[only]]:
        answers = [fit(x, y, train, setting) for setting in settings]
        losses = [np.square(answer - y)[validation].mean() for answer in answers]
        predictions[test] = answers[int(np.argmin(losses))][test]
    return predictions


PENALTIES = np.logspace(-2, 6, 17)
KERNELS = [(width, penalty) for width in (4.0, 1.0, 0.25) for penalty in np.logspace(-6, 1, 15)]
