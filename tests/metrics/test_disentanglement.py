"""Disentanglement against scikit-learn, SciPy, formulas by hand, and the properties that its definition implies."""

import itertools
import json
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from scipy.linalg import subspace_angles
from scipy.stats import entropy, pearsonr
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mutual_info_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from audio_compositionality.metrics import disentanglement as module
from audio_compositionality.metrics import factors as factors_module
from audio_compositionality.metrics import literature, probing
from audio_compositionality.metrics.disentanglement import disentanglement

from .contract import MetricContract, load_metric


def example() -> dict[str, Any]:
    """Return arguments of `disentanglement`: 48 clips of crossed factors in 8 dimensions, partly entangled."""
    rng = np.random.default_rng(0)
    clips = [(timbre, pitch, rate) for timbre in range(3) for pitch in range(4) for rate in range(4)]
    timbres = rng.normal(size=(3, 8))
    axes = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    z = [timbres[t] + p * axes[0] + r * axes[1] + 0.4 * p * r * axes[2] for t, p, r in clips]
    return {
        "embeddings": (np.array(z) + rng.normal(0, 0.2, (48, 8))).round(3),
        "factors": [{"timbre": ("bell", "horn", "reed")[t], "pitch": 60 + 2 * p, "rate": 2.0**r} for t, p, r in clips],
        "blocks": np.array([4 * t + p for t, p, _ in clips]),
    }


class TestContract(MetricContract):
    name = "disentanglement"
    embeddings = ("embeddings",)
    quick: ClassVar = {"probes": "ridge"}
    origin = ()
    at_constant: ClassVar = dict.fromkeys(("unseen", "seen", "unseen_r2", "seen_r2", "overlap"), 0)


def crossed(*counts, names=("tone", "pitch", "rate", "level")):
    """Codes of all combinations, and factors: the first is of classes, the others of numbers on scales of their own."""
    codes = np.stack([grid.ravel() for grid in np.meshgrid(*map(np.arange, counts), indexing="ij")], axis=1)
    scales = (None, lambda code: 60 + 3.0 * code, lambda code: 2.0**code, lambda code: -6.0 * code)
    columns = zip(names, codes.T, scales, strict=False)
    return codes, {
        name: [f"tone {code}" for code in column] if scale is None else scale(column) for name, column, scale in columns
    }


def additive(codes, dim, rng, orthogonal=False):
    """An encoder that adds a random vector for each level of each factor; orthogonal: in dimensions of its own."""
    z = np.zeros((len(codes), dim))
    start = 0
    for column in codes.T:
        count = column.max() + 1
        if orthogonal:
            z[:, start : start + count] += rng.normal(size=(count, count))[column]
            start += count
        else:
            z += rng.normal(size=(count, dim))[column]
    return z


def entangled(codes, rng, width=64):
    """Random quadratic forms of what an additive encoder gives."""
    plain = additive(codes, 3 * codes.shape[1], rng)
    first, second = rng.normal(size=(2, plain.shape[1], width))
    return (plain @ first) * (plain @ second)


def noisy(*counts, dim=10, noise=0.8, seed=0):
    """An encoder that is neither perfect nor at chance."""
    rng = np.random.default_rng(seed)
    codes, factors = crossed(*counts)
    z = additive(codes, dim, rng) + 0.5 * entangled(codes, rng, dim) / 4 + noise * rng.normal(size=(len(codes), dim))
    return codes, factors, z


# ----- probes of unseen and seen levels against scikit-learn


def targets_of(labels):
    labels = np.asarray(labels)
    if labels.dtype.kind != "U":
        return labels[:, None], False
    return (labels[:, None] == np.unique(labels)).astype(float), True


def ridge_answers(z, y, train, penalty, rows):
    """What scikit-learn's ridge regression says, less the mean that it was trained on."""
    mean = z[train].mean(axis=0)
    scale = np.sqrt((z[train] - mean).var(axis=0).mean())
    model = Ridge(alpha=penalty).fit((z[train] - mean) / scale, y[train])
    return model.predict((z[rows] - mean) / scale).reshape(len(rows), -1) - y[train].mean(axis=0)


def best_answers(z, y, train, parts, rows):
    """The same with the penalty that is best over parts that are left out one after the other."""
    errors = np.zeros(len(probing.PENALTIES))
    for part in parts:
        rest = np.setdiff1d(train, part)
        for place, penalty in enumerate(probing.PENALTIES):
            answers = ridge_answers(z, y, rest, penalty, part) + y[rest].mean(axis=0)
            errors[place] += np.square(answers - y[part]).mean(axis=1).sum()
    return ridge_answers(z, y, train, probing.PENALTIES[errors.argmin()], rows)


def above_chance(answers, means, y):
    """Accuracy of answers above that of the class that is the commonest in training."""
    right = (answers + means).argmax(axis=1) == y.argmax(axis=1)
    guess = means.argmax(axis=1) == y.argmax(axis=1)
    return (right.mean() - guess.mean()) / (1 - guess.mean())


def pair_by_hand(z, labels, over, folds, halves):
    """unseen, seen, unseen_r2 and seen_r2 of one pair of factors."""
    (y, classes), levels = targets_of(labels), np.unique(over)
    unseen, seen, weights, sums = [], [], [], np.zeros((2, 2))
    for met, new in halves:
        train, test = (np.flatnonzero(np.isin(over, levels[half])) for half in (met, new))
        parts = [train[np.asarray(over)[train] == levels[level]] for level in met]
        answers, means = best_answers(z, y, train, parts, test), np.tile(y[train].mean(axis=0), (len(test), 1))
        unseen.append(above_chance(answers, means, y[test]) if classes else pearsonr(answers[:, 0], y[test, 0])[0])
        sums[0] += [np.square(answers + means - y[test]).sum(), np.square(means - y[test]).sum()]
        answers, means, inner = np.zeros((len(z), y.shape[1])), np.zeros((len(z), y.shape[1])), []
        for fold in range(5):
            rest, rows = train[folds[train] != fold], train[folds[train] == fold]
            answers[rows] = best_answers(z, y, rest, [train[folds[train] == (fold + 1) % 5]], rows)
            means[rows] = y[rest].mean(axis=0)
            if not classes and len(rows) >= 3:
                inner.append((pearsonr(answers[rows, 0], y[rows, 0])[0], len(rows)))
        sums[1] += [np.square(answers + means - y)[train].sum(), np.square(means - y)[train].sum()]
        if classes:
            inner = [(above_chance(answers[train], means[train], y[train]), len(train))]
        seen.append(np.average([score for score, _ in inner], weights=[count for _, count in inner]))
        weights.append(sum(count for _, count in inner))
    r2 = [None, None] if classes else 1 - sums[:, 0] / sums[:, 1]
    return {"unseen": np.mean(unseen), "seen": np.average(seen, weights=weights), "unseen_r2": r2[0], "seen_r2": r2[1]}


@pytest.mark.slow
def test_pairs_equal_scikit_learn():
    _, factors, z = noisy(4, 3, 5, noise=0.3)
    folds = np.random.default_rng(1).permutation(len(z)) % 5
    result = disentanglement(z, factors, folds, range(len(z)), probes=("ridge",), return_scores=True)
    assert [(pair["factor"], pair["over"]) for pair in result["by_pair"]] == list(itertools.permutations(factors, 2))
    for pair in result["by_pair"]:
        halves = module._halves(len(np.unique(factors[pair["over"]])), 0)
        if any(len(met) == 1 for met, _ in halves):
            continue  # no level can be left out; below
        expected = pair_by_hand(z, factors[pair["factor"]], factors[pair["over"]], folds, halves)
        for name, value in expected.items():
            assert pair[name] == pytest.approx(value, abs=1e-9), (pair["factor"], pair["over"], name)
        assert np.mean(pair["scores"]) == pytest.approx(pair["unseen"], abs=1e-12)
    assert np.mean([pair["scores"] for pair in result["by_pair"]], axis=0) == pytest.approx(result["scores"], abs=1e-12)
    for name in ("unseen", "seen", "unseen_r2", "seen_r2"):
        values = [pair[name] for pair in result["by_pair"] if pair[name] is not None]
        assert result[name] == pytest.approx(np.mean(values), abs=1e-12)
    assert 0.1 < result["unseen"] < result["seen"] < 0.95  # the case is neither chance nor trivial


def test_halves_of_one_level_leave_folds_out():
    _, factors, z = noisy(3, 2, 4)
    folds = np.random.default_rng(1).permutation(len(z)) % 5
    result = disentanglement(z, factors, folds, range(len(z)), probes=("ridge",), return_scores=True)
    (pair,) = [pair for pair in result["by_pair"] if (pair["factor"], pair["over"]) == ("rate", "pitch")]
    values = []
    for level in np.unique(factors["pitch"]):
        train, test = (np.flatnonzero((factors["pitch"] == level) == met) for met in (True, False))
        parts = [train[folds[train] == fold] for fold in np.unique(folds[train])]
        answers = best_answers(z, factors["rate"][:, None], train, parts, test)
        values.append(pearsonr(answers[:, 0], factors["rate"][test])[0])
    assert pair["unseen"] == pytest.approx(np.mean(values), abs=1e-9)


def test_kernel_probe_equals_scikit_learn(monkeypatch):
    monkeypatch.setattr(factors_module, "KERNEL_WIDTHS", (1.0,))
    monkeypatch.setattr(factors_module, "KERNEL_PENALTIES", np.array([0.03]))
    monkeypatch.setattr(probing, "KERNEL_PENALTIES", np.array([0.03]))
    codes, factors, z = noisy(4, 4, 4)
    (met, new), *_ = module._halves(4, 0)
    train, test = (np.flatnonzero(np.isin(codes[:, 0], half)) for half in (met, new))
    y = factors["pitch"][:, None]
    distances = np.square(z[train][:, None] - z[train]).sum(axis=2)
    gamma = 1 / (2 * np.median(distances[np.triu_indices(len(train), 1)]))
    # Functions of the kernel are centred on training rows.
    kernels = [np.exp(-gamma * np.square(z[rows][:, None] - z[train]).sum(axis=2)) for rows in (train, test)]
    columns, mean = kernels[0].mean(axis=0), kernels[0].mean()
    inner, outer = (kernel - kernel.mean(axis=1, keepdims=True) - columns + mean for kernel in kernels)
    expected = KernelRidge(alpha=0.03, kernel="precomputed").fit(inner, y[train] - y[train].mean()).predict(outer)
    data = factors_module.ProbeData(probing.standardised_rows(z), z, np.arange(64) % 5, ("kernel",), True, 0)
    factor = factors_module.read_factor("pitch", factors["pitch"], 64)
    parts = [train[codes[train, 0] == level] for level in met]
    (answers,) = factors_module.best_answers(data, [factor], train, parts, test, 0)
    np.testing.assert_allclose(answers[0], expected, atol=1e-7)


def test_halves_are_halves_and_test_every_level():
    for count, seed in itertools.product(range(2, 17), range(5)):
        halves = module._halves(count, seed)
        assert len(halves) == {2: 2}.get(count, 5)
        assert len({tuple(met) for met, _ in halves}) == len(halves)
        for met, new in halves:
            assert sorted([*met, *new]) == list(range(count))
            assert abs(len(met) - len(new)) <= 1
        tested = np.bincount(np.concatenate([new for _, new in halves]), minlength=count)
        assert tested.min() >= min(2, len(halves) // 2)


def test_contributions_are_those_of_the_jackknife():
    rng = np.random.default_rng(0)
    y = rng.gamma(2.0, size=500)
    answers = 0.7 * y + rng.normal(size=500) * (1 + 0.3 * y)
    factor = factors_module.read_factor("y", y, 500)
    scores, contributions = factors_module.tested_score(
        factors_module.ProbeAnswers(factor, (answers - y.mean())[None, :, None], np.full((500, 1), y.mean()))
    )
    assert scores[0] == pytest.approx(pearsonr(answers, y)[0], abs=1e-12)
    assert contributions.mean() == pytest.approx(scores[0], abs=1e-12)
    left = [pearsonr(np.delete(answers, row), np.delete(y, row))[0] for row in range(500)]
    jackknife = np.sqrt(499 / 500 * np.square(left - np.mean(left)).sum())
    assert contributions.std(ddof=1) / np.sqrt(500) == pytest.approx(jackknife, rel=0.03)


def test_many_numbers_are_cut_into_levels():
    rng = np.random.default_rng(0)
    numbers = rng.gamma(1.0, size=200)
    factor = factors_module.read_factor("x", numbers, 200)
    assert np.bincount(factor.codes).tolist() == [25] * 8
    assert (np.diff(factor.codes[np.argsort(numbers)]) >= 0).all()
    assert len(factors_module.read_factor("x", np.repeat([0.0, *range(1, 20)], [100, *[5] * 19]), 195).levels) <= 8
    assert len(factors_module.read_factor("x", np.arange(160) % 16, 160).levels) == 16
    assert len(factors_module.read_factor("x", np.arange(170) % 17, 170).levels) == 8
    other = rng.normal(size=200)
    result = disentanglement(np.column_stack([numbers, other]), {"one": numbers, "other": other}, blocks=range(200))
    assert result["unseen"] > 0.95
    assert result["main"] is None


# ----- what factors do to probes and to directions


def test_leak_equals_a_double_loop():
    codes, factors, z = noisy(4, 4, 3, noise=0.2)
    folds = np.random.default_rng(1).permutation(len(z)) % 3
    result = disentanglement(z, factors, folds, range(len(z)), probes=("ridge",), return_scores=True)
    names = list(factors)
    for pair in result["by_pair"]:
        y, _ = targets_of(factors[pair["factor"]])
        answers = np.zeros_like(y)
        for fold in range(3):
            rest, rows = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            answers[rows] = best_answers(z, y, rest, [np.flatnonzero(folds == (fold + 1) % 3)], rows)
        moves = {
            name: np.mean(
                [
                    np.square(answers[i] - answers[j]).sum()
                    for i, j in itertools.combinations(range(len(z)), 2)
                    if folds[i] == folds[j] and [*(codes[i] != codes[j])] == [other == name for other in names]
                ]
            )
            for name in (pair["factor"], pair["over"])
        }
        assert pair["leak"] == pytest.approx(moves[pair["over"]] / moves[pair["factor"]], abs=1e-9)


def test_leak_of_a_factor_that_is_not_read_is_none():
    """A level meter hears one of three factors: ratios to what the others move were up to 3e14."""
    codes, factors = crossed(6, 4, 4, names=("one", "two", "three"))
    rng = np.random.default_rng(0)
    for heard in (codes[:, :1] * 1.0, np.hstack([codes[:, :1], 1e-7 * rng.normal(size=(len(codes), 1))])):
        result = disentanglement(heard, factors, return_scores=True)
        leaks = {(pair["factor"], pair["over"]): pair["leak"] for pair in result["by_pair"]}
        read = {pair: leak for pair, leak in leaks.items() if leak is not None}
        assert set(read) == {("one", "two"), ("one", "three")}
        assert result["leak"] == pytest.approx(np.mean(list(read.values())))
        assert max(read.values()) < 0.01


def test_overlap_equals_subspace_angles():
    codes, factors, z = noisy(4, 5, 3, dim=7)
    result = disentanglement(z, factors, probes=("ridge",), return_scores=True)
    directions = {}
    for name, column in zip(factors, codes.T, strict=True):
        means = np.array([z[column == level].mean(axis=0) for level in range(column.max() + 1)])
        directions[name] = np.linalg.svd(means - means.mean(axis=0))[2][: min(3, len(means) - 1)].T
    for pair in result["by_pair"]:
        one, other = directions[pair["factor"]], directions[pair["over"]]
        assert pair["overlap"] == pytest.approx(np.square(np.cos(subspace_angles(one, other))).mean(), abs=1e-10)
        assert pair["overlap_chance"] == max(one.shape[1], other.shape[1]) / 7


def test_overlap_of_factors_that_are_not_crossed_is_of_an_additive_model():
    rng = np.random.default_rng(0)
    codes, factors = crossed(4, 4, 4)
    kept = rng.random(64) < 0.7
    kept[(codes == 0).any(axis=1)] = True
    z = additive(codes, 16, rng, orthogonal=True)
    some = {name: np.asarray(labels)[kept] for name, labels in factors.items()}
    result = disentanglement(z[kept], some, probes=("ridge",))
    assert result["overlap"] == pytest.approx(0, abs=1e-12)
    assert result["main"] is result["pairs_share"] is result["rest"] is None


def test_shares_equal_an_analysis_of_variance_by_hand():
    codes, factors, z = noisy(4, 3, 5)
    result = disentanglement(z, factors, probes=("ridge",), return_scores=True)
    total = sum(np.square(row - z.mean(axis=0)).sum() for row in z)

    def mean(**levels):
        return z[[all(row[int(key[1])] == level for key, level in levels.items()) for row in codes]].mean(axis=0)

    effects = {(f, a): mean(**{f"f{f}": a}) - z.mean(axis=0) for f, count in enumerate((4, 3, 5)) for a in range(count)}
    main = [sum(np.square(effects[f, row[f]]).sum() for row in codes) / total for f in range(3)]
    crossings = {}
    for f, g in itertools.combinations(range(3), 2):
        squares = [
            np.square(
                mean(**{f"f{f}": row[f], f"f{g}": row[g]}) - effects[f, row[f]] - effects[g, row[g]] - z.mean(axis=0)
            )
            for row in codes
        ]
        crossings[f, g] = np.sum(squares) / total
    assert result["main"] == pytest.approx(sum(main), abs=1e-12)
    assert result["pairs_share"] == pytest.approx(sum(crossings.values()), abs=1e-12)
    assert result["rest"] == pytest.approx(1 - sum(main) - sum(crossings.values()), abs=1e-12)
    names = list(factors)
    for pair in result["by_pair"]:
        f, g = names.index(pair["factor"]), names.index(pair["over"])
        assert pair["main"] == pytest.approx(main[f], abs=1e-12)
        assert pair["pairs_share"] == pytest.approx(crossings[min(f, g), max(f, g)], abs=1e-12)


# ----- encoders whose scores are known


def test_constant_embeddings_score_0_without_nan_in_the_literature_and_of_copies():
    _, factors = crossed(4, 4, 4)
    vector = np.random.default_rng(6).normal(size=16).astype(np.float32)
    result = disentanglement(np.broadcast_to(vector, (64, 16)), factors, literature=True, return_scores=True)
    assert json.dumps(result, allow_nan=False)
    numbers = {name: value for name, value in result.items() if isinstance(value, float)}
    assert {name for name, value in numbers.items() if value != 0} <= {f"explicitness{form}" for form in FORMS}
    base, doubled = [-1] * 64 + list(range(64)), {name: [*labels, *labels] for name, labels in factors.items()}
    shifted = disentanglement(np.broadcast_to(vector, (128, 16)), doubled, base=base)
    assert shifted["shift_before"] == shifted["shift_after"] == shifted["shift"] == 0
    assert shifted["shift_quarter_1"] is None


def test_blocks_are_never_trained_on_and_tested_among_seen_levels():
    """Where nothing but the block can be heard, it tells the factors only if blocks are cut by folds."""
    codes, factors = crossed(4, 4, 4, names=("tone", "pitch", "rate"))
    codes, numbers = np.repeat(codes, 4, axis=0), {name: np.repeat(factors[name], 4) for name in ("pitch", "rate")}
    blocks = np.repeat(np.arange(64), 4)
    z = np.random.default_rng(0).normal(size=(64, 256))[blocks]
    assert disentanglement(z, numbers, blocks=range(256), probes=("ridge",))["seen"] > 0.8
    assert abs(disentanglement(z, numbers, blocks=blocks, probes=("ridge",))["seen"]) < 0.2


# ----- probes by gradient descent


@pytest.mark.slow
def test_trained_probes_have_a_spread(monkeypatch):
    monkeypatch.setattr(probing, "EPOCHS", 2)
    codes, factors = crossed(3, 3, 3)
    numbers = {name: factors[name] for name in ("pitch", "rate")}
    z = additive(codes, 6, np.random.default_rng(0))
    result = disentanglement(z, numbers, probes=("slp",), return_scores=True)
    assert result["spread"] > 0
    assert np.mean(result["scores"]) == pytest.approx(result["unseen"], abs=1e-12)
    closed = disentanglement(z, numbers, probes=("ridge", "slp"))
    assert closed["unseen"] > result["unseen"]
    assert disentanglement(z, numbers, probes=("ridge",))["spread"] is None


# ----- changes of clips


def changed(copies=4, originals=40, seed=0):
    """Arguments: originals with axes for pitch and tone, and copies that move along the first by their parameter."""
    rng = np.random.default_rng(seed)
    pitch, tone = rng.integers(0, 6, originals) * 2.0, rng.integers(0, 3, originals)
    z = np.column_stack([pitch, *(tone == level for level in range(3)), rng.normal(size=(originals, 2))])
    z = z + 0.1 * rng.normal(size=z.shape)
    owners = rng.permutation(np.repeat(np.arange(originals), copies))
    parameters = rng.uniform(size=len(owners))
    moved = z[owners]
    moved[:, 0] += 3 * parameters
    rows = np.concatenate([np.arange(originals), owners])
    return {
        "embeddings": np.vstack([z, moved]),
        "factors": {"pitch": pitch[rows], "tone": [f"tone {tone[row]}" for row in rows]},
        "base": [-1] * originals + owners.tolist(),
        "parameters": [None] * originals + parameters.tolist(),
        "blocks": rows // 2,
    }


def test_shift_equals_scikit_learn():
    given = changed()
    z, base = given["embeddings"], np.array(given["base"])
    folds = given["blocks"] % 4
    result = disentanglement(**given, folds=folds, probes=("ridge",), return_scores=True)
    y = given["factors"]["pitch"][:, None]
    answers, means = np.zeros_like(y), np.zeros_like(y)
    originals, copies = np.flatnonzero(base == -1), np.flatnonzero(base >= 0)
    for fold in range(4):
        train = originals[folds[originals] != fold]
        held, rows = originals[folds[originals] == (fold + 1) % 4], np.flatnonzero(folds == fold)
        answers[rows] = best_answers(z, y, train, [held], rows) + y[train].mean()
        means[rows] = y[train].mean()
    errors, room = np.square(answers - y)[:, 0], np.square(means - y)[:, 0]
    before, after = errors[originals].mean(), errors[copies].mean()  # each original has as many copies
    (pitch, tone) = result["by_pair"]
    assert (pitch["factor"], pitch["over"]) == ("pitch", "copies")
    assert pitch["shift_before"] == pytest.approx(1 - before / room[originals].mean(), abs=1e-9)
    assert pitch["shift_after"] == pytest.approx(1 - after / room[copies].mean(), abs=1e-9)
    unit = np.sqrt(room[originals].mean())
    assert pitch["shift"] == pytest.approx((np.sqrt(after) - np.sqrt(before)) / unit, abs=1e-9)
    order = copies[np.argsort(np.array(given["parameters"], dtype=float)[copies])]
    for number, rows in enumerate(np.split(order, 4), 1):
        expected = (np.sqrt(errors[rows].mean()) - np.sqrt(before)) / unit
        assert pitch[f"shift_quarter_{number}"] == pytest.approx(expected, abs=1e-9)
    assert pitch["shift_after"] < 0.9 < pitch["shift_before"]
    assert tone["shift_after"] == pytest.approx(tone["shift_before"], abs=0.1)
    for name in ("shift_before", "shift_after"):
        assert result[name] == pytest.approx(np.mean([pitch[name], tone[name]]), abs=1e-12)
        assert np.mean(result[f"scores_{name}"]) == pytest.approx(result[name], abs=1e-12)
        assert len(result[f"scores_{name}"]) == result["n"] == 40
    assert result["unseen"] is result["scores"] is result["mig"] is None


# ----- the scores of the literature

FORMS = ("", "_rotated", "_pca")


@pytest.fixture(scope="module")
def studied():
    codes, factors, z = noisy(4, 5, 3, dim=6, noise=0.4)
    folds = np.random.default_rng(1).permutation(len(z)) % 5
    result = disentanglement(z, factors, folds, range(len(z)), probes=("ridge",), literature=True)
    return codes, factors, z, folds, result


def test_mutual_information_gap_and_modularity_equal_scikit_learn(studied):
    codes, _, z, _, result = studied
    bins = [np.digitize(column, np.histogram(column, 20)[1][:-1]) for column in z.T]
    information = np.array([[mutual_info_score(column, factor) for factor in codes.T] for column in bins])
    ordered = np.sort(information, axis=0)
    entropies = [entropy(np.bincount(factor)) for factor in codes.T]
    assert result["mig"] == pytest.approx(np.mean((ordered[-1] - ordered[-2]) / entropies), abs=1e-12)
    squares = np.square(information)
    others = squares.sum(axis=1) - squares.max(axis=1)
    assert result["modularity"] == pytest.approx(np.mean(1 - others / (squares.max(axis=1) * 2)), abs=1e-12)


def test_attribute_predictability_equals_numpy_and_scikit_learn(studied):
    codes, factors, z, folds, result = studied
    train, test = folds != 0, folds == 0
    scaled = StandardScaler().fit(z[train]).transform(z)
    gaps = []
    for name, labels in factors.items():
        if name == "tone":
            scores = [
                LinearSVC(C=0.01, class_weight="balanced", dual=False)
                .fit(column[train, None], codes[train, 0])
                .score(column[test, None], codes[test, 0])
                for column in scaled.T
            ]
        else:
            scores = [np.corrcoef(column, labels)[0, 1] ** 2 for column in z.T]
        gaps.append(np.diff(np.sort(scores)[-2:])[0])
    assert result["sap"] == pytest.approx(np.mean(gaps), abs=1e-12)


def test_explicitness_equals_scikit_learn(studied):
    codes, _, z, folds, result = studied
    train, test = folds != 0, folds == 0
    scaled = StandardScaler().fit(z[train]).transform(z)
    areas = []
    for column in codes.T:
        model = LogisticRegression(max_iter=1000).fit(scaled[train], column[train])
        hits = column[test, None] == np.unique(column)
        areas.append(roc_auc_score(hits, model.predict_proba(scaled[test]), average="macro"))
    assert result["explicitness"] == pytest.approx(np.mean(areas), abs=1e-9)


def test_separations_equal_entropies_of_scipy():
    importance = np.abs(np.random.default_rng(0).normal(size=(7, 3))) ** 3
    dimensions, factors = importance.sum(axis=1) / importance.sum(), importance.sum(axis=0) / importance.sum()
    separate = sum(d * (1 - entropy(row + 1e-11, base=3)) for d, row in zip(dimensions, importance, strict=True))
    complete = sum(f * (1 - entropy(column + 1e-11, base=7)) for f, column in zip(factors, importance.T, strict=True))
    assert literature._separations(importance) == pytest.approx((separate, complete), abs=1e-12)
    assert literature._separations(np.eye(3)) == pytest.approx((1, 1), abs=1e-8)
    assert literature._separations(np.ones((3, 3))) == pytest.approx((0, 0), abs=1e-12)
    assert literature._separations(np.zeros((3, 3))) == (0, 0)


def test_literature_depends_on_the_basis():
    codes, _ = crossed(4, 4, 4)
    factors = {name: codes[:, place] * 1.0 for place, name in enumerate(("pitch", "rate", "level"))}
    z = codes + 0.01 * np.random.default_rng(0).normal(size=codes.shape)
    ideal = disentanglement(z, factors, literature=True, probes=("ridge",))
    for name in ("dci_disentanglement", "dci_completeness", "mig", "sap", "modularity"):
        assert ideal[name] > 0.95, name
        assert ideal[f"{name}_rotated"] < ideal[name] - 0.05, name
    assert ideal["dci_informativeness"] > 0.95
    without = disentanglement(z, factors, probes=("ridge",))
    assert all(without[f"{name}{form}"] is None for name in ("mig", "sap", "explicitness") for form in FORMS)
    assert {name: value for name, value in ideal.items() if without[name] is not None} == {
        name: value for name, value in without.items() if value is not None
    }


def test_rotated_and_pca_are_the_scores_of_those_embeddings(studied):
    _, factors, z, folds, result = studied
    centred = z - z.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    again = disentanglement(centred @ axes.T, factors, folds, range(len(z)), probes=("ridge",), literature=True)
    for name in ("dci_disentanglement", "mig", "sap", "modularity", "explicitness"):
        assert result[f"{name}_pca"] == pytest.approx(again[name], abs=1e-6)
        assert again[f"{name}_pca"] == pytest.approx(again[name], abs=1e-6)


# ----- what is refused

COPIES = {"base": [-1] * 32 + list(range(32))}
CHANGED = changed()
HALF = [1.0, 2.0] * 32
UNCROSSED = crossed(4, 4, 4)[1]
UNCROSSED["tone"] = [
    "tone 1" if tone == "tone 0" and pitch > 63 else tone
    for tone, pitch in zip(UNCROSSED["tone"], UNCROSSED["pitch"], strict=True)
]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"factors": {}}, "factors are empty"),
        ({"factors": {"pitch": HALF}}, "at least 2 factors are needed; got only 'pitch'"),
        ({"factors": {"pitch": [1.0] * 63, "rate": HALF}}, r"'pitch' must have one entry per embedding \(64\); got 63"),
        ({"factors": [3] * 64}, "one such mapping per clip, .* row 0 is 3"),
        ({"factors": {"pitch": [1.0] * 64, "rate": HALF}}, "'pitch' are all 1.0; at least two different"),
        ({"factors": {"pitch": HALF, "rate": [1.0] * 32 + [2.0] * 32}}, "There are 4 combinations of levels"),
        ({"folds": np.arange(64) // 16}, "Class 'tone 0' of factor 'tone' is only in fold 0"),
        ({"blocks": np.arange(64) // 2, "folds": np.arange(64) % 5}, "Block 0 lies in two folds"),
        ({"probes": ("ridg",)}, "probes has 'ridg'; .* Did you mean 'ridge'"),
        ({"parameters": [1.0] * 64}, "parameters are given without base"),
        (COPIES, "Row 32, a copy, has the label 'tone 2' of factor 'tone', which no orig"),
        (CHANGED | {"parameters": [None] * 40 + [2.0] * 160}, "All parameters are 2"),
        (
            CHANGED | {"blocks": np.arange(200) // 2},
            "Row 40 is in block 20, but its original, row .*, is in .*; a copy must be",
        ),
        ({"factors": UNCROSSED}, "Class 'tone 0' of factor 'tone' never occurs with pitch 66, 69, "),
    ],
)
def test_refuses_what_does_not_fit(changes, message):
    _, factors = crossed(4, 4, 4)
    given = {"embeddings": np.random.default_rng(0).normal(size=(64, 3)), "factors": factors}
    with pytest.raises(ValueError, match=message):
        disentanglement(**given | changes)


def test_metric_collects_factors_of_clips_and_takes_lists_of_labels(tmp_path):
    _, factors, z = noisy(4, 3, 3)
    metric, ridge = load_metric("disentanglement", tmp_path), {"probes": ["ridge"]}
    expected = disentanglement(z, factors, **ridge)
    assert metric.compute(embeddings=z, factors=factors, **ridge) == expected
    tensors = {name: labels if name == "tone" else torch.tensor(labels) for name, labels in factors.items()}
    assert disentanglement(torch.tensor(z), tensors, **ridge) == expected
    turned = disentanglement(z, dict(reversed(factors.items())), **ridge)
    assert [turned["unseen"], turned["seen"]] == pytest.approx([expected["unseen"], expected["seen"]], abs=1e-12)
    rows = [dict(zip(factors, labels, strict=True)) for labels in zip(*factors.values(), strict=True)]
    metric.add_batch(embeddings=z[:20], factors=rows[:20])
    assert metric.compute(embeddings=z[20:], factors=rows[20:], **ridge) == expected
