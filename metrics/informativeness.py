"""Informativeness: how well a label can be read from embeddings, compared with shuffled labels.

A probe is trained on the embeddings z of labelled clips and tested on other clips (arXiv 2505.06224, section III). For
numbers the score is R², for classes the share of a constant answer's errors that the probe removes. Clips of one block,
which share a context, serve for training or for the test, never both.

The paper's probes, trained by gradient descent on raw features, measure their own convergence as much as the
embeddings: they fail if features are scaled up by fourteen. So by default probes are ridge regression and kernel ridge
regression in closed form, which depend on neither unit nor basis of the features and have no random state. All in
float64.

>>> rng = np.random.default_rng(0)
>>> z = rng.normal(size=(100, 8))
>>> folds, blocks = np.arange(100) % 5, np.arange(100)
>>> result = informativeness(z, z[:, 0] + z[:, 1], folds, blocks)
>>> round(result["informativeness"], 3), result["n"]
(1.0, 100)
>>> abs(result["shuffled"]) < 0.1
True
>>> informativeness(0 * z, z[:, 0], folds, blocks)["informativeness"]
0.0
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import ROUNDING, Floats, read_matrix
from .columns import check_classes, check_varied, fold_rotation, read_blocks, read_column
from .evaluated import AXES as _CITATION
from .evaluated import MOST, count, measure, metric_class, ratio, share
from .probing import (
    PROBES,
    SHUFFLES,
    STATES,
    block_permutations,
    explained_share,
    fit_groups,
    probe_names,
    ratio_scores,
    standardised_rows,
    state_spread,
)


def informativeness(
    embeddings: ArrayLike,
    labels: Any,
    folds: ArrayLike,
    blocks: Any,
    *,
    probes: Sequence[str] = ("ridge", "kernel"),
    scaled: bool = True,
    seed: int = 0,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how well labels can be read from embeddings, with controls.

    - `embeddings` [n, dim]; `labels` [n], numbers or strings; strings are always classes;
    - `folds` [n], integers, at least 3 different: in sorted order each is tested once, the next one validates, the
      others train; `blocks` [n], strings or integers, at least 5: no block lies in two folds;
    - `probes`: one or more of PROBES. Numbers are regressed, classes as one 0/1 variable each, with the largest
      prediction as the answer. Validation chooses each probe's penalty, and in each fold one of the probes. `slp` and
      `mlp` are means over 3 random states; with `scaled` False they see unscaled features and numbers, as the probes of
      arXiv 2505.06224 do. `seed`: for these states and the permutations.

    Results over all n rows, each tested once:

    - `informativeness`: for numbers R² = 1 − Σ(y − ŷ)²/Σ(y − ȳ)², with ȳ the mean of the fold's training rows; for
      classes (accuracy − chance)/(1 − chance), with chance the accuracy of always giving the most common training
      class. 0 without knowledge; it can be below 0;
    - `ridge`, `kernel`, `slp`, `mlp`: the score of each probe alone, None if it was not requested;
    - `spread`: standard deviation of the score over the random states, None with closed forms alone;
    - `shuffled`: mean score for permuted labels, blocks of them among blocks, and rows within a block: over 5
      permutations, with slp or mlp over 1;
    - `rmse` for numbers, in their unit; `accuracy` and `chance` for classes; None if they do not apply;
    - `n` rows, `blocks`;
    - `scores` (with return_scores): for each row its linearised contribution to the score, which is exactly their mean.
      For θ = ΣE/ΣR, with E_i a row's error and R_i the reference's, it is 1 − θ − (E_i − θ·R_i)/mean(R): so an interval
      from these scores accounts for the estimated denominator.

    Sources: arXiv 2505.06224, section III, for the axis; closed forms, folds by block and controls are ours.

    Raises ValueError if embeddings are not finite [n, dim], lengths differ, labels are neither all numbers nor all
    strings or are all the same, a class is in one block only or absent from training when it is tested, there are fewer
    than 3 folds or 5 blocks, a block lies in two folds, or a probe is unknown.

    >>> z = np.eye(2)[np.arange(40) % 2]
    >>> informativeness(z, ["a", "b"] * 20, np.arange(40) // 8, np.arange(40) // 2)["accuracy"]
    1.0
    """
    z = read_matrix("embeddings", embeddings)
    names, values = probe_names(probes), read_column("labels", labels, len(z))
    block, block_names = read_blocks(blocks, len(z))
    rotation = fold_rotation(folds, block, block_names)
    is_class = values.dtype.kind == "U"
    if is_class:
        classes, codes = np.unique(values, return_inverse=True)
        check_classes("labels", classes, codes, block, block_names, rotation)
        labels_learnt = np.eye(len(classes))[codes]
    else:
        check_varied("labels", values)
        labels_learnt = values.astype(np.float64)[:, None]

    # The labels, then their permutations; all share one decomposition.
    gradient = bool({"slp", "mlp"} & set(names))
    orders = block_permutations(block, 1 if gradient else SHUFFLES, seed)
    targets = [labels_learnt, *(labels_learnt[order] for order in orders)]
    y, groups = np.hstack(targets), [target.shape[1] for target in targets]
    # The errors [states, n] of each probe, of the one that validates best ("best"), and of a constant.
    states = STATES if gradient else 1
    errors = {name: [np.zeros((states, len(z))) for _ in targets] for name in (*names, "best")}
    references = [np.zeros(len(z)) for _ in targets]
    standard = standardised_rows(z)
    for train, validation, test in rotation:
        least = np.full(len(targets), np.inf)
        means = [target[train].mean(axis=0) for target in targets]
        for name in names:
            x = z if name in ("slp", "mlp") and not scaled else standard
            learnt, held = (x[train], y[train]), (x[validation], y[validation])
            parts, losses = fit_groups(name, learnt, held, x[test], groups, scaled, seed)
            for k, (prediction, target) in enumerate(zip(parts, targets, strict=True)):
                wrong = _errors(prediction, target[test], means[k], is_class)
                errors[name][k][:, test] = wrong
                if losses[k] < least[k]:
                    least[k] = losses[k]
                    errors["best"][k][:, test] = wrong
        for k, target in enumerate(targets):
            references[k][test] = _errors(means[k][None, None], target[test], means[k], is_class)[0]
    best = errors["best"]
    error, guess = float(best[0].mean()), float(references[0].mean())
    result: dict[str, Any] = {
        "informativeness": explained_share(best[0], references[0]),
        **{name: explained_share(errors[name][0], references[0]) if name in names else None for name in PROBES},
        "spread": state_spread(best[0], references[0]) if gradient else None,
        "shuffled": float(np.mean([explained_share(*pair) for pair in zip(best[1:], references[1:], strict=True)])),
        "rmse": None if is_class else float(np.sqrt(error)),
        "accuracy": 1 - error if is_class else None,
        "chance": 1 - guess if is_class else None,
        "n": len(z),
        "blocks": len(block_names),
    }
    if return_scores:
        result["scores"] = ratio_scores(best[0].mean(axis=0), references[0]).tolist()
    return result


Informativeness = metric_class(
    informativeness,
    [
        {"embeddings": "numbers", "labels": label, "folds": "number", "blocks": block}
        for label in ("text", "number")
        for block in ("text", "number")
    ],
    citation=_CITATION,
)


def _errors(predictions: Floats, targets: Floats, mean: Floats, is_class: bool) -> Floats:
    """Return the squared errors [states, m] of predictions [states, m, 1] of numbers.

    For classes, predictions are [states, m, classes], and an error is 1 if the largest is not the right class, else 0.
    If predictions equal the classes' training shares up to rounding, the answer is the most common class.
    """
    if not is_class:
        squares: Floats = np.square(predictions - targets)[:, :, 0]
        return squares
    silent = np.abs(predictions - mean).max(axis=2) <= ROUNDING
    answers = np.where(silent, mean.argmax(), predictions.argmax(axis=2))
    misses: Floats = (answers != targets.argmax(axis=1)).astype(np.float64)
    return misses


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "informativeness": ratio(
        "Informativeness",
        "R² for numbers, accuracy above chance for classes, by the probe that validates best",
        null="shuffled",
        column="score",
        outside="Scores of single samples can lie above 1: they are contributions to a "
        "ratio, and a sample that is far from the mean raises its denominator.",
    ),
    "ridge": ratio("ridge", "the score of ridge regression", null="shuffled"),
    "kernel": ratio("kernel", "the score of kernel ridge regression", null="shuffled"),
    "slp": ratio("SLP", "the score of a linear layer that is trained by gradient descent", fitted=True, shown=False),
    "mlp": ratio(
        "MLP",
        "the score of a network of two hidden layers that is trained by gradient descent",
        fitted=True,
        shown=False,
    ),
    "spread": measure(
        "spread",
        "standard deviation of the score over random states of probes that are trained by gradient descent",
        range=(0.0, MOST),
        digits=4,
        fitted=True,
        shown=False,
    ),
    "shuffled": ratio("shuffled", "the score for labels permuted among blocks of samples"),
    "rmse": measure(
        "RMSE", "root of the mean squared error of numbers, in their own unit", range=(0.0, MOST), shown=False
    ),
    "accuracy": share("accuracy", "how often the class is right", null="chance", shown=False),
    "chance": share("chance", "how often the most common class of the training samples is right", shown=False),
    "n": count("n", "number of samples, each tested once"),
    "blocks": count("blocks", "number of blocks; no block is in both training and test"),
}
"""Description of each number that `informativeness` returns, by name, the score first."""
