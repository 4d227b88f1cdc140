"""A-TRE with held-out combinations: can a scene be rebuilt from combinations of attributes absent from training?

The test scenes of A-TRE (arXiv 2603.13685) are drawn like its training scenes, so nearly every combination of two
classes, such as a bell at a low pitch, occurs in training. A model that memorises each combination would score as high
as one that composes them. Here the combinations of two attributes are split into sets, and each set is held out once:
the test scenes have a source with a held-out combination; the training scenes are all others, and still contain every
single class. The reference is a random split with as many scenes of each number of sources in training and in test. The
**gap** is the loss from the random to the held-out split.

A set is a diagonal of a Latin square of the classes, whose rows and columns are permuted at random, or a part of a
diagonal: 8 × 8 combinations make 8 sets, each with every class of both attributes once. A scene is tested in each set
that contains a combination of one of its sources, so at least once; the random split has the same memberships, permuted
among scenes with the same number of sources. Each scene thus has a mean score in both splits, and the gap is a mean of
paired differences.

The composition model is in closed form by default: ridge regression on the number of sources, on counts and shares of
classes, and on counts of pairs of classes within a source. Without the pairs it cannot memorise a combination; this
control is called "ridge". A-TRE's Transformer is an alternative: on the benchmark's scenes it ranked encoders in the
same order, with gaps two thirds as large, at a hundred times the cost.

>>> rng = np.random.default_rng(0)
>>> scenes = [[{"pitch": f"p{p}", "rate": f"r{r}"}] for p, r in rng.integers(4, size=(160, 2))]
>>> by_class = {label: rng.normal(size=8) for label in ["p0", "p1", "p2", "p3", "r0", "r1", "r2", "r3"]}
>>> additive = [by_class[s["pitch"]] + by_class[s["rate"]] for (s,) in scenes]
>>> by_pair = rng.normal(size=(4, 4, 8))
>>> by_heart = [by_pair[int(s["pitch"][1]), int(s["rate"][1])] for (s,) in scenes]
>>> [round(a_tre_held_out(z, scenes)["random"], 1) for z in (additive, by_heart)]
[1.0, 1.0]
>>> [round(a_tre_held_out(z, scenes)["held_out"], 1) for z in (additive, by_heart)]
[1.0, 0.1]
"""

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from .arrays import Floats, check_length, cosines_with_unit, nearest_name, read_matrix, row_norms, unit_rows
from .composition import (
    DEGENERATE,
    Fit,
    FitOptions,
    Goal,
    Scenes,
    SceneTensors,
    centred_directions,
    check_scenes,
    fit_goals,
)
from .evaluated import COAT as _CITATION
from .evaluated import MOST, count, measure, metric_class

Rows = NDArray[np.int64]

COMPOSITIONS = ("pairs", "transformer")

MOST_SETS = 8
"""Most sets for the combinations of two attributes: with 8 classes each, the diagonals of a square."""

DRAWS = 100
"""Attempts at drawing the sets such that every class occurs in the training scenes of each."""

PAIRS_SHARE = 0.3
"""Variance of all counts of pairs, relative to all counts of classes: a weaker prior for rarer features."""

RELATIVE_PENALTIES = np.logspace(-5, 4, 28)
"""Penalties of ridge regression, in units of the variance of all features together."""

LEAST_SHOWN = 0.05
"""`kept` is None if classes add less than this cosine beyond the number of sources."""

VALIDATION_SHARE = 1 / 8
"""Share of the training scenes used to choose a Transformer's best step."""


def a_tre_held_out(
    embeddings: ArrayLike,
    scenes: Scenes,
    *,
    pairs: Sequence[Sequence[str]] | None = None,
    composition: str = "pairs",
    seed: int = 0,
    max_steps: int = 2500,
    device: str | torch.device | None = None,
    progress: bool = True,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how well scenes are rebuilt from seen and from unseen combinations of attributes, and the difference.

    - `embeddings` [n, dim]; `scenes`: n lists of at least one source, a source being a mapping of attribute to label,
      with the same attributes in every source. All scenes serve for training and for testing.
    - `pairs`: pairs of attributes whose combinations are held out; by default all pairs of attributes with at least two
      labels. `seed`: for the sets and splits; the splits of a pair do not depend on the other pairs.
    - `composition`: "pairs", ridge regression, with the penalty chosen by generalised cross-validation; or
      "transformer", the model of A-TRE, fitted twice for each of up to 8 sets of each pair; an eighth of the training
      scenes choose the step. `max_steps`, `device`, `progress`: options of these fits, as in A-TRE.

    Results. Scores are centred cosines in −1…1 of the prediction and z/|z| − training mean; a target shorter than 1e-6
    scores 0. A scene's score is the mean over the sets in which it is tested, then over pairs; numbers are means over
    scenes:

    - `gap` = random − held_out. `held_out`: score of the composition model trained without the combinations of a set
      and tested on the scenes that have one; `random`: trained and tested on as many scenes drawn at random;
    - `kept`: 1 − gap/(random − number_random), the share of the gain of classes over the number of sources that remains
      on new combinations; None if the denominator is below 0.05;
    - `gap_single`: the gap of scenes with a single source, which consist of one unseen combination; None if there are
      no such scenes;
    - `interaction`: how much pairs of classes, of all attributes, add to ridge regression in the random split: a bound
      on the learning of combinations;
    - `ridge_gap`, `ridge_held_out`, `ridge_random`: for ridge regression without pairs of classes;
    - `number_held_out`, `number_random`: for predicting the mean training scene with as many sources;
    - `constant`, `constant_random`: cosine, not centred, of z with the mean of the unit training embeddings;
    - `n`: number of scenes; `n_train`: smallest number of training scenes of a split;
    - `by_pair`: for each pair a dictionary of the numbers above, `pair`, and `sets`, their number;
    - `steps`: the Transformer's best step by validation, for each pair and set, held out then random; else empty;
    - with return_scores, here and in `by_pair`: `scores` (gap), `scores_held_out`, `scores_random`, lists of n.

    Sources: A-TRE, arXiv 2603.13685, sections 3.3 and 4.4; splits by combinations, as in compositional generalisation
    (Keysers et al., ICLR 2020); generalised cross-validation, Golub, Heath and Wahba (1979).

    Raises ValueError for embeddings that are not finite [n, dim], lengths that differ, an empty scene, attributes that
    differ, an unknown pair or option, no pair of attributes with two labels each, and too few scenes for every label to
    occur in training; FloatingPointError if a fit diverges.
    """
    z = read_matrix("embeddings", embeddings)
    check_length("scenes", scenes, len(z))
    if composition not in COMPOSITIONS:
        nearest = nearest_name(str(composition), COMPOSITIONS)
        raise ValueError(f"composition is {composition!r}; it must be one of {COMPOSITIONS}. Did you mean {nearest!r}?")
    if max_steps < 1:
        raise ValueError(f"max_steps must be at least 1; got {max_steps}.")
    splits = draw_splits(scenes, pairs, seed)
    unit, described = unit_rows(z), _Described.of(scenes)
    results, steps = [], []
    for pair in splits:
        predictions: list[Floats] | None = None
        if composition == "transformer":
            at = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
            fits, predictions = _fit_splits(unit, described, pair, seed, max_steps, at, progress)
            steps += [fitted.step for fitted in fits]
        results.append(_pair_columns(unit, described, pair, predictions))
    mean = {name: np.mean([columns[name] for columns in results], axis=0) for name in results[0]}
    smallest = [min(len(one.train) for one in (*pair.held_out, *pair.random)) for pair in splits]
    by_pair = [
        {"pair": list(pair.attributes), "sets": len(pair.held_out)}
        | _numbers(columns, described.sizes, least)
        | (_lists(columns) if return_scores else {})
        for pair, columns, least in zip(splits, results, smallest, strict=True)
    ]
    result = _numbers(mean, described.sizes, min(smallest)) | {"by_pair": by_pair, "steps": steps}
    return result | (_lists(mean) if return_scores else {})


ATreHeldOut = metric_class(
    a_tre_held_out,
    {"embeddings": "numbers", "scenes": "scene"},
    citation=_CITATION,
)


# ----- the splits
@dataclass(frozen=True)
class Split:
    """Row numbers of the training scenes and of the test scenes."""

    train: Rows
    test: Rows


@dataclass(frozen=True)
class PairSplits:
    """The splits for two attributes: one per set of combinations, each with a random split of the same sizes."""

    attributes: tuple[str, str]
    held_out: tuple[Split, ...]
    random: tuple[Split, ...]


def draw_splits(scenes: Scenes, pairs: Sequence[Sequence[str]] | None = None, seed: int = 0) -> list[PairSplits]:
    """Return the splits that `a_tre_held_out` scores, one entry per pair of attributes, with sorted names.

    They do not depend on the order of the scenes, unless two have the same sources. Raises its ValueErrors.
    """
    check_scenes(scenes, len(scenes))
    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be an integer ≥ 0; got {seed!r}.")
    sources = [(row, source) for row, scene in enumerate(scenes) for source in scene]
    attributes = sorted(scenes[0][0]) if len(scenes) else []
    labels = {name: sorted({source[name] for _, source in sources}) for name in attributes}
    varied = [name for name in attributes if len(labels[name]) > 1]
    if pairs is None:
        named = list(itertools.combinations(varied, 2))
        if not named:
            many = ", ".join(f"{name} has {len(labels[name])}" for name in attributes) or "there are no scenes"
            raise ValueError(f"At least two attributes need two labels or more, to make new combinations: {many}.")
    else:
        named = [_named_pair(pair, labels) for pair in pairs]
        if not named or len(set(named)) < len(named):
            raise ValueError(f"pairs must hold one or more different pairs of attributes; got {list(pairs)!r}.")
    canonical = [sorted(tuple(sorted(source.items())) for source in scene) for scene in scenes]
    order = np.array(sorted(range(len(scenes)), key=canonical.__getitem__), np.int64)
    present = [{item for source in scene for item in source.items()} for scene in scenes]
    vocabulary = sorted(set().union(*present))
    has = np.array([[item in items for item in vocabulary] for items in present])
    return [_draw_pair(scenes, pair, labels, order, has, vocabulary, seed) for pair in named]


def _named_pair(pair: Sequence[str], labels: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"a pair must be two different attributes; got {pair!r}.")
    for name in pair:
        if name not in labels:
            nearest = nearest_name(str(name), list(labels))
            raise ValueError(f"No source has the attribute {name!r}. Did you mean {nearest!r}?")
        if len(labels[name]) < 2:
            raise ValueError(f"All sources have the {name} {labels[name][0]!r}; each attribute needs two labels.")
    first, second = sorted(pair)
    return first, second


def _draw_pair(
    scenes: Scenes,
    pair: tuple[str, str],
    labels: Mapping[str, Sequence[str]],
    order: Rows,
    has: NDArray[np.bool_],
    vocabulary: Sequence[tuple[str, str]],
    seed: int,
) -> PairSplits:
    """Return the splits of a pair; `order` [n] sorts the scenes, `has` [n, vocabulary] marks the labels in each."""
    name = int.from_bytes(hashlib.sha256("\n".join(pair).encode()).digest()[:8], "big")
    rng = np.random.default_rng([seed, name])
    sizes = np.array([len(scene) for scene in scenes])
    codes = [{label: code for code, label in enumerate(labels[attribute])} for attribute in pair]
    rows = np.repeat(np.arange(len(scenes)), sizes)
    first, second = (
        np.array([code[source[attribute]] for scene in scenes for source in scene])
        for attribute, code in zip(pair, codes, strict=True)
    )
    lost = -1
    for _ in range(DRAWS):
        sets = combination_sets(len(codes[0]), len(codes[1]), rng)
        tested = np.zeros((len(scenes), sets.max() + 1), dtype=bool)
        tested[rows, sets[first, second]] = True
        tested = tested[:, tested.any(axis=0)]
        shuffled = np.empty_like(tested)
        for size in np.unique(sizes):
            alike = order[sizes[order] == size]
            shuffled[alike] = tested[rng.permutation(alike)]
        lost = _lost_label(tested, has)
        lost = _lost_label(shuffled, has) if lost < 0 else lost
        if lost < 0:
            return PairSplits(pair, _splits_of(tested), _splits_of(shuffled))
    attribute, label = vocabulary[lost]
    raise ValueError(
        f"{len(scenes)} scenes are too few to hold out combinations of {pair[0]} and {pair[1]}: in each of {DRAWS} "
        f"draws, some label was missing from a training set, such as {attribute} {label!r}, which is in "
        f"{has[:, lost].sum()} scenes. Add scenes."
    )


def combination_sets(first: int, second: int, rng: np.random.Generator) -> Rows:
    """Return the set number of each combination, [first, second], with labels in a random order.

    Sets are the diagonals of a Latin square as large as the larger number of labels. Up to `MOST_SETS`, diagonals are
    split into parts, to hold out little at once (2 × 2 combinations one by one, since otherwise the training scenes
    would tie one attribute to the other); beyond that they are merged.
    """
    side, shorter = max(first, second), min(first, second)
    rows, columns = rng.permutation(first)[:, None], rng.permutation(second)[None, :]
    # The labels of the shorter side are spread over the longer one, so that neighbouring diagonals do not share them.
    diagonal = (rows * side // first + columns * side // second) % side
    if side > MOST_SETS:
        return np.asarray(diagonal * MOST_SETS // side, np.int64)
    parts = min(MOST_SETS // side, shorter)
    place = rows if first <= second else columns
    return np.asarray(diagonal * parts + place * parts // shorter, np.int64)


def _lost_label(tested: NDArray[np.bool_], has: NDArray[np.bool_]) -> int:
    """Return the column of a label that is missing from some set's training scenes, or −1."""
    counts = (~tested).T.astype(np.int64) @ has.astype(np.int64)
    lost = np.flatnonzero((counts == 0).any(axis=0))
    return int(lost[0]) if len(lost) else -1


def _splits_of(tested: NDArray[np.bool_]) -> tuple[Split, ...]:
    return tuple(Split(np.flatnonzero(~column), np.flatnonzero(column)) for column in tested.T)


# ----- features of scenes, and the closed forms, in float64
@dataclass(frozen=True)
class _Described:
    """Features of n scenes.

    Attributes:
        sizes: number of sources of each, [n].
        additive: features summed over sources, [n, features].
        paired: these, and how often two labels occur in one source.
        labels: [n, sources, vocabulary], 1 if a source has a label, else 0; for the Transformer.
    """

    sizes: Rows
    additive: Floats
    paired: Floats
    labels: NDArray[np.float32]

    @classmethod
    def of(cls, scenes: Scenes) -> "_Described":
        """Count labels and pairs of labels; each kind of features has variance 1, pairs less."""
        sizes = np.array([len(scene) for scene in scenes], np.int64)
        items = [[sorted(source.items()) for source in scene] for scene in scenes]
        single = _places_of(item for scene in items for source in scene for item in source)
        double = _places_of(pair for scene in items for source in scene for pair in itertools.combinations(source, 2))
        labels = np.zeros((len(scenes), int(sizes.max()), len(single)), dtype=np.float32)
        pairs = np.zeros((len(scenes), len(double)))
        for row, scene in enumerate(items):
            for place, source in enumerate(scene):
                labels[row, place, [single[item] for item in source]] = 1
                for pair in itertools.combinations(source, 2):
                    pairs[row, double[pair]] += 1
        counts = labels.sum(axis=1, dtype=np.float64)
        numbers = (sizes[:, None] == np.unique(sizes)).astype(np.float64)
        additive = np.hstack([_scaled(counts), _scaled(counts / sizes[:, None]), _scaled(numbers)])
        return cls(sizes, additive, np.hstack([additive, math.sqrt(PAIRS_SHARE) * _scaled(pairs)]), labels)


def _places_of(things: Iterator[Any]) -> dict[Any, int]:
    return {thing: number for number, thing in enumerate(sorted(set(things)))}


def _scaled(features: Floats) -> Floats:
    """Return features scaled so that the variances of all columns add up to 1; unchanged if none varies."""
    variance = float(features.var(axis=0).sum())
    return features / math.sqrt(variance) if variance > 0 else features


def _pair_columns(
    unit: Floats, described: _Described, pair: PairSplits, predictions: Sequence[Floats] | None
) -> dict[str, Floats]:
    """Return the mean scores of each scene, [n] by name: ``held_out`` and ``random``, prefixed for the other models.

    `predictions`: a Transformer's predictions for the test scenes of each split, held out and then random.
    """
    columns: dict[str, Floats] = {}
    given = iter(predictions if predictions is not None else [])
    for kind, splits in (("held_out", pair.held_out), ("random", pair.random)):
        sums: dict[str, Floats] = {}
        times = np.zeros(len(unit))
        for split in splits:
            times[split.test] += 1
            for name, scores in _split_scores(unit, described, split, next(given, None)).items():
                sums.setdefault(name, np.zeros(len(unit)))[split.test] += scores
        columns |= {f"{name}{kind}": total / times for name, total in sums.items()}
    return columns


def _split_scores(unit: Floats, described: _Described, split: Split, prediction: Floats | None) -> dict[str, Floats]:
    """Return the scores of the test scenes, by the model's prefix in their names."""
    train, test = split.train, split.test
    mean = unit[train].mean(axis=0)
    goals = unit[train] - mean
    goals[row_norms(goals) < DEGENERATE] = 0.0
    directions = centred_directions(unit[test], mean)
    paired = ridge_prediction(described.paired, goals, split)
    # The mean of the training scenes with as many sources; zeros if there are none.
    of_size = np.zeros((len(test), goals.shape[1]))
    for size in np.unique(described.sizes[test]):
        alike = goals[described.sizes[train] == size]
        if len(alike):
            of_size[described.sizes[test] == size] = alike.mean(axis=0)
    predictions = {
        "": paired if prediction is None else prediction,
        "paired_": paired,
        "ridge_": ridge_prediction(described.additive, goals, split),
        "number_": of_size,
    }
    scores = {name: cosines_with_unit(values, directions) for name, values in predictions.items()}
    return scores | {"constant_": cosines_with_unit(np.broadcast_to(mean, unit[test].shape), unit[test])}


def ridge_prediction(features: Floats, goals: Floats, split: Split) -> Floats:
    """Return the predictions of ridge regression for the test scenes, [test, dim].

    `features` [n, k] of all scenes, `goals` [train, dim]. An intercept is included; generalised cross-validation
    chooses the penalty from `RELATIVE_PENALTIES`.
    """
    centre = features[split.train].mean(axis=0)
    x, x_test = features[split.train] - centre, features[split.test] - centre
    middle = goals.mean(axis=0)
    y = goals - middle
    n, total = len(x), float((y**2).sum())
    is_wide = x.shape[1] > n
    eigenvalues, basis = np.linalg.eigh(x @ x.T if is_wide else x.T @ x)
    eigenvalues = np.maximum(eigenvalues, 0)
    scale = float(eigenvalues.sum()) / n
    if scale == 0 or total == 0:
        return np.broadcast_to(middle, (len(x_test), y.shape[1]))
    projection = basis.T @ (y if is_wide else x.T @ y)
    energy = (projection**2).sum(axis=1)
    errors = []
    for penalty in scale * RELATIVE_PENALTIES:
        if is_wide:
            error = float((energy * (penalty / (eigenvalues + penalty)) ** 2).sum())
        else:
            error = total - float((energy * (eigenvalues + 2 * penalty) / (eigenvalues + penalty) ** 2).sum())
        freedom = 1 + float((eigenvalues / (eigenvalues + penalty)).sum())
        # The residual of an exact fit is rounding error; dividing it by the degrees of freedom would be meaningless.
        errors.append(max(error, 1e-12 * total) / (1 - freedom / n) ** 2 if freedom < n else math.inf)
    penalty = float(scale * RELATIVE_PENALTIES[int(np.argmin(errors))])
    weights = basis @ (projection / (eigenvalues + penalty)[:, None])
    prediction: Floats = middle + (x_test @ (x.T @ weights) if is_wide else x_test @ weights)
    return prediction


def _numbers(columns: Mapping[str, Floats], sizes: Rows, n_train: int) -> dict[str, Any]:
    """Return the measures from the scores of scenes, in their order."""
    mean = {name: float(values.mean()) for name, values in columns.items()}
    single = (columns["random"] - columns["held_out"])[sizes == 1]
    told = mean["random"] - mean["number_random"]
    return {
        "gap": mean["random"] - mean["held_out"],
        "held_out": mean["held_out"],
        "random": mean["random"],
        "kept": (mean["held_out"] - mean["number_random"]) / told if told >= LEAST_SHOWN else None,
        "gap_single": float(single.mean()) if len(single) else None,
        "interaction": mean["paired_random"] - mean["ridge_random"],
        "ridge_gap": mean["ridge_random"] - mean["ridge_held_out"],
        "ridge_held_out": mean["ridge_held_out"],
        "ridge_random": mean["ridge_random"],
        "number_held_out": mean["number_held_out"],
        "number_random": mean["number_random"],
        "constant": mean["constant_held_out"],
        "constant_random": mean["constant_random"],
        "n": len(sizes),
        "n_train": n_train,
    }


def _lists(columns: Mapping[str, Floats]) -> dict[str, list[float]]:
    held_out, random = columns["held_out"], columns["random"]
    lists = {"scores": random - held_out, "scores_held_out": held_out, "scores_random": random}
    return {name: values.tolist() for name, values in lists.items()}


# ----- fits of the Transformer
def _fit_splits(
    unit: Floats,
    described: _Described,
    pair: PairSplits,
    seed: int,
    max_steps: int,
    device: torch.device,
    progress: bool,
) -> tuple[list[Fit], list[Floats]]:
    """Fit a Transformer to the centred targets of each split, held out and then random, and predict its test scenes."""

    def goal(title: str, split: Split) -> Goal:
        order = np.random.default_rng(seed).permutation(split.train)
        held_back = max(1, round(VALIDATION_SHARE * len(order)))
        mean = unit[split.train].mean(axis=0)
        # Computed when needed: the targets of all splits together are many times the embeddings.
        return Goal(
            title,
            lambda: centred_directions(unit, mean).astype(np.float32),
            train=order[held_back:],
            validation=order[:held_back],
            test=split.test,
            seed=seed,
        )

    name = " × ".join(pair.attributes)
    goals = [
        goal(f"{name}, {kind} {number}", split)
        for kind, splits in (("held out", pair.held_out), ("random", pair.random))
        for number, split in enumerate(splits, 1)
    ]
    options = FitOptions(max_steps, width=4 * unit.shape[1])
    outcomes = fit_goals(SceneTensors.of(described.labels, device), goals, options, progress)
    return [fitted for fitted, _ in outcomes], [values for _, values in outcomes]


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "gap": measure(
        "A-TRE gap",
        "loss of centred cosine on combinations of two classes absent from training; 0 is best",
        range=(-2.0, 2.0),
        column="score",
    ),
    "held_out": measure(
        "held out",
        "centred cosine of embedding and prediction on combinations absent from training",
        null="number_held_out",
        column="score_held_out",
    ),
    "random": measure(
        "random split",
        "centred cosine on as many random scenes, whose combinations occur in training",
        null="number_random",
        column="score_random",
    ),
    "kept": measure(
        "kept",
        "share of the gain of classes over the number of sources that remains on unseen combinations",
        range=(-MOST, MOST),
        digits=2,
    ),
    "gap_single": measure("gap, one source", "the gap of scenes with a single source", range=(-2.0, 2.0)),
    "interaction": measure(
        "interaction",
        "gain of ridge regression from pairs of classes in the random split: a bound on memorised combinations",
        range=(-2.0, 2.0),
    ),
    "ridge_gap": measure(
        "ridge gap", "the gap of ridge regression on classes alone, which cannot learn a combination", range=(-2.0, 2.0)
    ),
    "ridge_held_out": measure(
        "ridge, held out",
        "centred cosine of that regression on combinations absent from training",
        null="number_held_out",
        shown=False,
    ),
    "ridge_random": measure(
        "ridge, random split",
        "centred cosine of that regression in the random split",
        null="number_random",
        shown=False,
    ),
    "number_held_out": measure(
        "number, held out",
        "centred cosine of the mean training scene with as many sources, with combinations held out",
        shown=False,
    ),
    "number_random": measure(
        "number, random split",
        "centred cosine of the mean training scene with as many sources, in the random split",
        shown=False,
    ),
    "constant": measure(
        "constant", "cosine, not centred, with the mean training embedding, with combinations held out"
    ),
    "constant_random": measure(
        "constant, random split",
        "cosine, not centred, with the mean training embedding, in the random split",
        shown=False,
    ),
    "n": count("n", "number of scenes"),
    "n_train": count("training scenes", "smallest number of training scenes of a split"),
}
"""Description of each number that `a_tre_held_out` returns, by name, the score first."""
