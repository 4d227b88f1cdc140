"""Published scores of disentanglement: DCI, MIG, SAP, modularity and explicitness."""

import warnings
from collections.abc import Sequence

import numpy as np

from .arrays import ROUNDING, Floats, Ints
from .evaluated import ratio, share
from .factors import Factor, ProbeAnswers
from .probing import standardised_rows

HISTOGRAM = 20
"""Bins per dimension for mutual information (Chen et al. 2018, as in disentanglement_lib)."""

LASSO_PENALTIES = np.logspace(0, -3, 20)
"""Candidates for cross-validation, relative to the smallest penalty that removes every dimension."""

SMALLEST = 1e-11
"""Added to importances before their entropy, as disentanglement_lib does."""


# ----- the scores of the literature
def literature_scores(z: Floats, factors: Sequence[Factor], folds: Ints, seed: int) -> dict[str, float]:
    """Return the published scores in the given basis, after a random rotation, and on principal components."""
    x = standardised_rows(z)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(x.shape[1], x.shape[1])))[0]
    _, sizes, axes = np.linalg.svd(x, full_matrices=False)
    components = x @ axes[sizes > ROUNDING * max(float(sizes[0]), ROUNDING)].T
    forms = {"": x, "_rotated": x @ rotation, "_pca": components if components.size else x[:, :1]}
    return {
        name + form: score
        for form, dimensions in forms.items()
        for name, score in _literature_scores(dimensions, factors, folds).items()
    }


def _literature_scores(x: Floats, factors: Sequence[Factor], folds: Ints) -> dict[str, float]:
    train, test = np.flatnonzero(folds != folds.min()), np.flatnonzero(folds == folds.min())
    scale = x[train].std(axis=0)
    standard = np.where(scale > ROUNDING, (x - x[train].mean(axis=0)) / np.where(scale > ROUNDING, scale, 1.0), 0.0)
    informations = _informations(x, [factor.codes for factor in factors])
    entropies = np.array([_entropy(np.bincount(factor.codes) / len(x)) for factor in factors])
    importances, answers = zip(*(_lasso(standard, factor, train, test, folds) for factor in factors), strict=True)
    importance = np.column_stack(importances)
    separate, complete = _separations(importance)
    attribute = np.column_stack([_attribute_scores(standard, factor, train, test) for factor in factors])
    return {
        "dci_disentanglement": separate,
        "dci_completeness": complete,
        "dci_informativeness": float(np.mean(answers)),
        "mig": float(np.mean(_gaps(informations) / entropies)),
        "sap": float(_gaps(attribute).mean()),
        "modularity": _modularity(informations),
        "explicitness": float(np.mean([_explicitness(standard, factor, train, test) for factor in factors])),
    }


def _informations(x: Floats, codes: Sequence[Ints]) -> Floats:
    """Return the mutual information in nats of each dimension, in HISTOGRAM bins, with each factor, [dim, factors]."""
    informations = np.zeros((x.shape[1], len(codes)))
    for dimension, values in enumerate(x.T):
        bins = np.digitize(values, np.histogram(values, HISTOGRAM)[1][:-1]) - 1
        for number, levels in enumerate(codes):
            joint = np.bincount(bins * (levels.max() + 1) + levels, minlength=HISTOGRAM * (levels.max() + 1)) / len(x)
            table = joint.reshape(HISTOGRAM, -1)
            information = _entropy(table.sum(axis=0)) + _entropy(table.sum(axis=1)) - _entropy(joint)
            informations[dimension, number] = max(information, 0.0)
    return informations


def _entropy(shares: Floats) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def _gaps(scores: Floats) -> Floats:
    """Return the difference of the two largest numbers of each column, [factors]."""
    ordered = np.sort(np.vstack([scores, np.zeros((1, scores.shape[1]))]) if len(scores) == 1 else scores, axis=0)
    gaps: Floats = ordered[-1] - ordered[-2]
    return gaps


def _modularity(informations: Floats) -> float:
    """Return 1 − the mean square information about other factors than a dimension's own.

    Ridgeway and Mozer 2018, section 3.
    """
    squares = np.square(informations)
    greatest = squares.max(axis=1)
    rest = (squares.sum(axis=1) - greatest) / (squares.shape[1] - 1)
    dead = greatest < SMALLEST
    return float(np.where(dead, 0.0, 1 - rest / np.where(dead, 1.0, greatest)).mean())


def _separations(importance: Floats) -> tuple[float, float]:
    """Return disentanglement and completeness (Eastwood and Williams 2018, section 2) of importances [dim, factors]."""
    total = float(importance.sum())
    if total == 0:
        return 0.0, 0.0

    def certainty(rows: Floats) -> Floats:
        shares = (rows + SMALLEST) / (rows + SMALLEST).sum(axis=1, keepdims=True)
        certainties: Floats = 1 + (shares * np.log(shares)).sum(axis=1) / np.log(max(rows.shape[1], 2))
        return certainties

    dimensions, factors = importance.sum(axis=1) / total, importance.sum(axis=0) / total
    return float(certainty(importance) @ dimensions), float(certainty(importance.T) @ factors)


def _lasso(x: Floats, factor: Factor, train: Ints, test: Ints, folds: Ints) -> tuple[Floats, float]:
    """Return each dimension's importance to a factor (the size of its weight), and R² or accuracy above chance in test.

    The penalty is the largest with an error over folds within a standard error of the smallest: without information no
    dimension has a weight. The penalty with the smallest error would keep a dimension of noise, which is important to
    one factor alone.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso, LassoCV, MultiTaskLasso, MultiTaskLassoCV
    from sklearn.model_selection import PredefinedSplit

    mean = factor.targets[train].mean(axis=0)
    targets = factor.targets[train] - mean
    most = float(np.sqrt(np.square(x[train].T @ targets).sum(axis=1)).max()) / len(train)
    if most <= SMALLEST:
        return np.zeros(x.shape[1]), 0.0
    search, final = (MultiTaskLassoCV, MultiTaskLasso) if factor.classes else (LassoCV, Lasso)
    targets = targets if factor.classes else targets[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = search(alphas=most * LASSO_PENALTIES, cv=PredefinedSplit(folds[train])).fit(x[train], targets)
        errors = path.mse_path_.mean(axis=1)
        margin = path.mse_path_.std(axis=1, ddof=1)[errors.argmin()] / np.sqrt(path.mse_path_.shape[1])
        model = final(alpha=path.alphas_[errors <= errors.min() + margin].max()).fit(x[train], targets)
    weights = np.atleast_2d(model.coef_)
    deviations = (x[test] @ weights.T + model.intercept_)[None]
    means = np.broadcast_to(mean, deviations.shape[1:])
    wrong, room = ProbeAnswers(factor.at(test), deviations, means).errors()
    importance: Floats = np.sqrt(np.square(weights).sum(axis=0))
    return importance, float(1 - wrong.mean() / (room.mean() or 1.0))


def _attribute_scores(x: Floats, factor: Factor, train: Ints, test: Ints) -> Floats:
    """Return how well each dimension alone predicts the factor, [dim] (Kumar et al. 2018, section 3).

    It is the squared correlation, or for classes the accuracy of a linear support vector machine.
    """
    if not factor.classes:
        y = factor.targets[:, 0] - factor.targets.mean()
        centred = x - x.mean(axis=0)
        sizes = np.square(centred).sum(axis=0) * np.square(y).sum()
        squares: Floats = np.square(y @ centred) / np.where(sizes > 0, sizes, 1.0)
        return squares
    from sklearn.svm import LinearSVC

    scores = np.zeros(x.shape[1])
    for dimension in np.flatnonzero(x.any(axis=0)):
        values = x[:, dimension, None]
        model = LinearSVC(C=0.01, class_weight="balanced", dual=False).fit(values[train], factor.codes[train])
        scores[dimension] = (model.predict(values[test]) == factor.codes[test]).mean()
    return scores


def _explicitness(x: Floats, factor: Factor, train: Ints, test: Ints) -> float:
    """Return the mean area under the ROC curve of each level against the rest, by logistic regression on all of x."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=1000).fit(x[train], factor.codes[train])
    chances = model.predict_proba(x[test])
    truth = factor.codes[test][:, None] == model.classes_
    if truth.shape[1] == 2:
        truth, chances = truth[:, 1:], chances[:, 1:]
    areas = [
        roc_auc_score(hits, answers)
        for hits, answers in zip(truth.T, chances.T, strict=True)
        if 0 < hits.sum() < len(hits)
    ]
    return float(np.mean(areas)) if areas else 0.5


LITERATURE_MEASURES = {
    "dci_disentanglement": share(
        "DCI disentanglement",
        "how far each dimension is important to one factor alone, by lasso (Eastwood and Williams 2018)",
        shown=False,
    ),
    "dci_completeness": share(
        "DCI completeness",
        "how far one dimension alone is important to each factor, by lasso (Eastwood and Williams 2018)",
        shown=False,
    ),
    "dci_informativeness": ratio(
        "DCI informativeness",
        "R² or accuracy above chance of the lasso on held-out clips, mean over factors",
        shown=False,
    ),
    "mig": share(
        "MIG",
        "mutual information gap of a factor's two most informative dimensions (Chen et al. 2018)",
        shown=False,
    ),
    "sap": share("SAP", "gap of the two dimensions that predict a factor best (Kumar et al. 2018)", shown=False),
    "modularity": share(
        "modularity", "how far each dimension informs about one factor alone (Ridgeway and Mozer 2018)", shown=False
    ),
    "explicitness": share(
        "explicitness",
        "area under the ROC curve of levels by logistic regression, chance ½ (Ridgeway and Mozer 2018)",
        shown=False,
    ),
}
"""Published scores, in the basis of the embeddings."""
