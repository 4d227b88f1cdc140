"""A-TRE with held-out combinations: can a scene be rebuilt whose sources combine attributes as none has in training?

The test scenes of A-TRE (arXiv 2603.13685) are drawn like its training scenes, so nearly every combination of two
classes, such as a bell at a low pitch, was heard in training. A model that had learnt by heart what each of them sounds
like would score as high as one that composes them. Here the combinations of two attributes are cut into sets, each of
which is held out once: the test scenes are those with a source that has such a combination, the training scenes all
others, in which every single class still occurs. Beside it stands a random split with as many scenes of each number of
sources in training and in test. What is lost between the two is the **gap**.

A set is a diagonal of a Latin square of the classes, whose rows and columns are permuted at random, or a part of one:
of 8 × 8 combinations 8 sets, each with every class of both attributes once. A scene is tested in each set that one of
its sources is in, so at least once; the random split has the same memberships, permuted among scenes with equally many
sources. Each scene thus has a mean score of either kind, and the gap is a mean of paired differences.

The composition model is in closed form by default: ridge regression on the number of sources, on counts and shares of
classes, and on counts of pairs of classes within a source. Without the pairs it can learn no combination by heart and
stands beside as "ridge". The Transformer of A-TRE can be had instead: on the benchmark's scenes it ordered encoders
alike, with gaps two thirds as large, at a hundred times the cost.

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

import contextvars
import difflib
import hashlib
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import datasets
import evaluate
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional
from tqdm.auto import tqdm

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Scenes = Sequence[Sequence[Mapping[str, str]]]

COMPOSITIONS = ("pairs", "transformer")

MOST_SETS = 8
"""Sets that combinations of two attributes are cut into, at most: with 8 classes each, the diagonals of a square."""

DRAWS = 100
"""Drawings of the sets until every class occurs in the training scenes of each."""

PAIRS_SHARE = 0.3
"""Variance of all counts of pairs, where that of all counts of classes is 1: a weaker prior for what is rarer."""

RELATIVE_PENALTIES = np.logspace(-5, 4, 28)
"""Of ridge regression, in units of the variance of all features together."""

LEAST_SHOWN = 0.05
"""Of what classes tell beyond the number of sources no share is stated as kept where it is less than this cosine."""

VALIDATION_SHARE = 1 / 8
"""Of the training scenes, by which a Transformer's best step is found."""

# Training of the Transformer, as in A-TRE.
BATCH = 64
FIRST_RATE, LAST_RATE = 1e-4, 1e-5
BETAS = (0.9, 0.999)
WEIGHT_DECAY = 1e-4
VALIDATE_EVERY = 125
PATIENCE = 4  # validations; in epochs where one is made an epoch
INIT_STD = 0.02  # of the token vectors, the usual choice for Transformer embeddings

DEGENERATE = 1e-6
"""A unit embedding nearer than this to the training mean has no direction of its own: centred score 0."""

_BLOCK = 1024  # rows predicted or compared at once
_LARGEST = 1e150  # beyond this a float64 norm overflows

_DESCRIPTION = """\
A-TRE with held-out combinations measures how well the embedding of a sound scene can be rebuilt from the attributes
of its sources where a source combines two of them as none does in training, beside the same for scenes that are split
at random: the gap between the two is what was learnt of combinations and not composed of classes.
"""

_CITATION = """\
@misc{a_coat_a_tre_2026,
  author = {Chen, Chuyang and Steers, Bea and McFee, Brian and Bello, Juan},
  title = {Evaluating Compositional Structure in Audio Representations},
  year = {2026},
  eprint = {2603.13685},
  archivePrefix = {arXiv},
  note = {ICASSP 2026}
}
"""

_INPUTS = """
Args:
    embeddings: [n, dim], one row for each scene.
    scenes: n lists of sources; a source is a dictionary of the strings timbre_label, pitch_label,
        rate_label and amplitude_label.
    pairs, composition, seed, max_steps, device, progress, return_scores: see `a_tre_held_out` in the module.
Returns:
    a dictionary, described at `a_tre_held_out` in the module: gap, held_out, random, kept, gap_single,
    interaction, ridge_gap, ridge_held_out, ridge_random, number_held_out, number_random, constant,
    constant_random, n, n_train, by_pair, steps.
Examples:
    >>> import evaluate
    >>> metric = evaluate.load("a_tre_held_out")
    >>> other = {"rate_label": "slow", "amplitude_label": "soft"}
    >>> labels = [(t, p) for t in ["bell", "reed", "brass"] for p in ["low", "mid", "high"]] * 4
    >>> scenes = [[{"timbre_label": t, "pitch_label": p, **other}] for t, p in labels]
    >>> embeddings = [[float(t == "bell"), float(t == "reed"), float(p == "low"), float(p == "mid")] for t, p in labels]
    >>> result = metric.compute(embeddings=embeddings, scenes=scenes)
    >>> result["n"], round(result["random"], 1), round(result["gap"], 1)
    (36, 1.0, 0.0)
"""


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
    """Return how well scenes are rebuilt with and without combinations that were heard in training, and the difference.

    - `embeddings` [n, dim]; `scenes`: n lists of at least one source, a source being a mapping of attribute to
      label, with the same attributes everywhere. All scenes are trained on and tested.
    - `pairs`: of attributes whose combinations are held out; by default all pairs of attributes that have two labels
      or more. `seed`: of the sets and splits; a pair is split alike whatever other pairs there are.
    - `composition`: "pairs", ridge regression with the penalty of least generalised cross-validation error; or
      "transformer", the model of A-TRE, fitted twice for each of up to 8 sets of each pair, of whose training scenes
      an eighth choose the step. `max_steps`, `device`, `progress`: of these fits, as in A-TRE.

    Results. Scores are centred cosines in −1…1 of the prediction and z/|z| − training mean, where a target shorter than
    1e-6 scores 0. A scene's score is the mean over the sets in which it is tested, then over pairs; numbers are
    means over scenes:

    - `gap` = random − held_out; `held_out`, `random`: of the composition model, from training scenes without the
      combinations of a set, tested on those with one; and from and on as many scenes drawn at random;
    - `kept`: 1 − gap/(random − number_random), the share of what classes tell beyond the number of sources that is left
      in new combinations; None where the denominator is below 0.05;
    - `gap_single`: the gap of scenes with a single source, the whole of which is a combination never heard; None
      where there are no such scenes;
    - `interaction`: what pairs of classes, of all attributes, add to ridge regression in the random split: a bound of
      what is learnt of combinations;
    - `ridge_gap`, `ridge_held_out`, `ridge_random`: of ridge regression without pairs of classes;
    - `number_held_out`, `number_random`: of the mean training scene with as many sources;
    - `constant`, `constant_random`: cosine, not centred, of z with the mean of the unit training embeddings;
    - `n`: number of scenes; `n_train`: least number of training scenes of a split;
    - `by_pair`: for each pair a dictionary of the numbers above, `pair`, and `sets`, their number;
    - `steps`: of the Transformer's best validation score, for each pair and set held out, then random; else empty;
    - with return_scores, here and in `by_pair`: `scores` (gap), `scores_held_out`, `scores_random`, lists of n.

    Sources: A-TRE is of arXiv 2603.13685, sections 3.3 and 4.4; splits by combinations are those of compositional
    generalisation (Keysers et al., ICLR 2020); generalised cross-validation is of Golub, Heath and Wahba (1979).

    Raises ValueError on embeddings that are not finite [n, dim], lengths that differ, an empty scene, attributes that
    differ, an unknown pair or option, no pair of attributes with two labels each, and scenes too few for every
    label to occur in training; FloatingPointError when a fit diverges.
    """
    z = _matrix("embeddings", embeddings)
    _check_length("scenes", scenes, len(z))
    if composition not in COMPOSITIONS:
        nearest = _nearest(str(composition), COMPOSITIONS)
        raise ValueError(f"composition is {composition!r}, not one of {COMPOSITIONS}. Did you mean {nearest!r}?")
    if max_steps < 1:
        raise ValueError(f"max_steps must be at least 1; got {max_steps}.")
    splits = draw_splits(scenes, pairs, seed)
    unit, described = _unit_rows(z), _Described.of(scenes)
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


class ATreHeldOut(evaluate.Metric):  # type: ignore[misc]
    """The metric of the `evaluate` library; `a_tre_held_out` in this module does the work."""

    def _info(self) -> Any:
        text = datasets.Value("string")
        names = ("timbre_label", "pitch_label", "rate_label", "amplitude_label")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "embeddings": datasets.List(datasets.Value("float64")),
                    "scenes": datasets.List({name: text for name in names}),
                }
            ),
            homepage="https://arxiv.org/abs/2603.13685",
            reference_urls=["https://arxiv.org/abs/2603.13685"],
        )

    def compute(self, **inputs: Any) -> dict[str, Any] | None:
        """Score the data given here, or those collected by `add` and `add_batch`."""
        needed = ("embeddings", "scenes")
        given = [name for name in needed if inputs.get(name) is not None]
        if given and len(given) < len(needed):
            missing = ", ".join(name for name in needed if name not in given)
            raise ValueError(f"compute() got {', '.join(given)} without {missing}; it needs both.")
        if given and self.writer is None and self.num_process == 1:
            # Nothing was collected before, so the detour through an Arrow file would only cost time.
            return a_tre_held_out(**inputs)
        result: dict[str, Any] | None = super().compute(**inputs)
        return result

    def _compute(self, **inputs: Any) -> dict[str, Any]:
        return a_tre_held_out(**inputs)


# ----- the splits


@dataclass(frozen=True)
class Split:
    """Row numbers of the scenes that are learnt from, and of those that are tested."""

    train: Rows
    test: Rows


@dataclass(frozen=True)
class PairSplits:
    """The splits of two attributes: one a set of combinations, and beside each a random one of the same sizes."""

    attributes: tuple[str, str]
    held_out: tuple[Split, ...]
    random: tuple[Split, ...]


def draw_splits(scenes: Scenes, pairs: Sequence[Sequence[str]] | None = None, seed: int = 0) -> list[PairSplits]:
    """Return the splits that `a_tre_held_out` scores, one entry a pair of attributes, whose names are in order.

    They do not depend on the order of the scenes, unless two have the same sources. Raises ValueError as it does.
    """
    _check_scenes(scenes, len(scenes))
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
            raise ValueError(f"No two attributes have two labels or more, so none can be combined anew: {many}.")
    else:
        named = [_named_pair(pair, labels) for pair in pairs]
        if not named or len(set(named)) < len(named):
            raise ValueError(f"pairs must be one or more different pairs of attributes; got {list(pairs)!r}.")
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
            nearest = _nearest(str(name), list(labels))
            raise ValueError(f"No source has the attribute {name!r}. Did you mean {nearest!r}?")
        if len(labels[name]) < 2:
            raise ValueError(f"All sources have the {name} {labels[name][0]!r}, so it cannot be combined anew.")
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
    """Return the splits of a pair; `order` [n] of scenes, `has` [n, vocabulary] the labels that occur in each."""
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
        f"{len(scenes)} scenes are too few to hold out combinations of {pair[0]} and {pair[1]}: in {DRAWS} drawings "
        f"there was always a training set without some label, such as {attribute} {label!r}, which "
        f"{has[:, lost].sum()} scenes have."
    )


def combination_sets(first: int, second: int, rng: np.random.Generator) -> Rows:
    """Return the number of its set for each combination, [first, second], with labels in a random order.

    Sets are the diagonals of a Latin square as large as the larger number of labels. Up to `MOST_SETS`, diagonals are
    cut into parts, so that little is held out at once: of 2 × 2 combinations each by itself, or what is left
    would tie one attribute to the other; beyond it they are put together.
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
    """Return the column of a label that some set leaves no training scene with, or −1."""
    counts = (~tested).T.astype(np.int64) @ has.astype(np.int64)
    lost = np.flatnonzero((counts == 0).any(axis=0))
    return int(lost[0]) if len(lost) else -1


def _splits_of(tested: NDArray[np.bool_]) -> tuple[Split, ...]:
    return tuple(Split(np.flatnonzero(~column), np.flatnonzero(column)) for column in tested.T)


# ----- what scenes are described by, and the closed forms, in float64


@dataclass(frozen=True)
class _Described:
    """What is known of n scenes.

    Attributes:
        sizes: number of sources of each, [n].
        additive: features to which each source adds by itself, [n, features].
        paired: the same, and how often two labels occur in one source.
        labels: [n, sources, vocabulary], 1 where a source has a label, else 0; for the Transformer.
    """

    sizes: Rows
    additive: Floats
    paired: Floats
    labels: NDArray[np.float32]

    @classmethod
    def of(cls, scenes: Scenes) -> "_Described":
        """Count labels and pairs of labels; each kind of features has variance 1, that of pairs less."""
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
    """Return features so scaled that the variances of all columns add up to 1; where none varies, as they are."""
    variance = float(features.var(axis=0).sum())
    return features / math.sqrt(variance) if variance > 0 else features


def _pair_columns(
    unit: Floats, described: _Described, pair: PairSplits, predictions: Sequence[Floats] | None
) -> dict[str, Floats]:
    """Return the mean scores of each scene, [n] by name: ``held_out`` and ``random``, of other models with their name.

    `predictions`: of a Transformer for the test scenes of each split, held out and then random.
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
    """Return the score of each test scene by what stands before the kind of split in its name."""
    train, test = split.train, split.test
    mean = unit[train].mean(axis=0)
    goals = unit[train] - mean
    goals[_norms(goals) < DEGENERATE] = 0.0
    directions = _centred_directions(unit[test], mean)
    paired = ridge_prediction(described.paired, goals, split)
    predictions = {
        "": paired if prediction is None else prediction,
        "paired_": paired,
        "ridge_": ridge_prediction(described.additive, goals, split),
        "number_": _mean_of_size(described.sizes, goals, split),
    }
    scores = {name: _cosines_with_unit(values, directions) for name, values in predictions.items()}
    return scores | {"constant_": _cosines_with_unit(np.broadcast_to(mean, unit[test].shape), unit[test])}


def _centred_directions(unit: Floats, mean: Floats) -> Floats:
    """Return what differs from the mean at length 1, or 0 where it is too short to have a direction."""
    offsets = unit - mean
    return _unit_rows(np.where(_norms(offsets)[:, None] < DEGENERATE, 0.0, offsets))


def ridge_prediction(features: Floats, goals: Floats, split: Split) -> Floats:
    """Return ridge regression's prediction for the test scenes, [test, dim].

    `features` [n, k] of all scenes, `goals` [train, dim]. There is an intercept; the penalty is that of
    `RELATIVE_PENALTIES` with the least error of generalised cross-validation.
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
        # What is left of an exact fit is rounding, and must not be weighed against the freedom that it took.
        errors.append(max(error, 1e-12 * total) / (1 - freedom / n) ** 2 if freedom < n else math.inf)
    penalty = float(scale * RELATIVE_PENALTIES[int(np.argmin(errors))])
    weights = basis @ (projection / (eigenvalues + penalty)[:, None])
    prediction: Floats = middle + (x_test @ (x.T @ weights) if is_wide else x_test @ weights)
    return prediction


def _mean_of_size(sizes: Rows, goals: Floats, split: Split) -> Floats:
    """Return for each test scene the mean of the training scenes with as many sources; zeros where there are none."""
    prediction = np.zeros((len(split.test), goals.shape[1]))
    for size in np.unique(sizes[split.test]):
        alike = goals[sizes[split.train] == size]
        if len(alike):
            prediction[sizes[split.test] == size] = alike.mean(axis=0)
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


# ----- the composition model and its training: each definition is that of A-TRE, word for word


class CompositionModel(nn.Module):
    """The composition function g of arXiv 2603.13685, section 3.3: attribute labels to an embedding."""

    def __init__(
        self, vocabulary: int, dim: int, *, layer: str = "pre-norm", layers: int = 1, width: int | None = None
    ) -> None:
        super().__init__()
        self.pre_norm = layer == "pre-norm"
        self.labels = nn.Parameter(INIT_STD * torch.randn(vocabulary, dim, dtype=torch.float32))
        self.cls = nn.Parameter(INIT_STD * torch.randn(1, dim, dtype=torch.float32))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim,
                nhead=1,
                dim_feedforward=width or 4 * dim,
                dropout=0.0,
                norm_first=self.pre_norm,
                batch_first=True,
                dtype=torch.float32,
            )
            for _ in range(layers)
        )

    def forward(self, counts: Tensor, padding: Tensor, drop: "Drop | None" = None) -> Tensor:
        """Return the predictions [batch, dim].

        `counts` [batch, sources, vocabulary] is 1 where a source has a label, else 0; `padding` [batch,
        sources] is True where a scene has no such source. `drop` is the dropout of post-norm layers in training.
        """
        # A product with the 0/1 matrix, unlike a gather, has a deterministic gradient on CUDA too.
        sources = counts @ self.labels
        cls = self.cls
        if not self.pre_norm:
            tokens = torch.cat([cls.expand(len(sources), -1)[:, None], sources], dim=1)
            padding = functional.pad(padding, (1, 0))
            for layer in self.layers[:-1]:
                tokens = post_norm_rows(layer, tokens, tokens, padding, drop)
            return post_norm_rows(self.layers[-1], tokens[:, :1], tokens, padding, drop)[:, 0]
        *earlier, last = self.layers
        for layer in earlier:
            tokens = torch.cat([cls.expand(len(sources), -1)[:, None], sources], dim=1)
            tokens = layer(tokens, src_key_padding_mask=functional.pad(padding, (1, 0)))
            cls, sources = tokens[:, 0], tokens[:, 1:]
        assert isinstance(last, nn.TransformerEncoderLayer)
        return cls_row(last, cls, sources, padding)


def cls_row(layer: nn.TransformerEncoderLayer, cls: Tensor, sources: Tensor, padding: Tensor) -> Tensor:
    """Return only the [CLS] row [batch, dim] of a one-head, pre-norm `nn.TransformerEncoderLayer` with ReLU.

    `cls` [batch, dim], or [1, dim] for all scenes; `sources` [batch, sources, dim]; `padding` [batch,
    sources]. Equal to the layer's own first output row, gradients included, up to rounding. With one query a
    scene, keys and values are not needed: q·(W_k x + b_k) is (W_kᵀ q)·x plus a constant that the softmax
    cancels, and the value and output maps commute with the weighted sum. So no dim × dim product is made
    for a source token.
    """
    attention, dim = layer.self_attn, cls.shape[-1]
    w_query, w_key, w_value = attention.in_proj_weight.view(3, dim, dim).unbind(0)
    b_query, _, b_value = attention.in_proj_bias.view(3, dim).unbind(0)
    cls_token, tokens = layer.norm1(cls), layer.norm1(sources)
    query = functional.linear(cls_token, w_query, b_query) @ w_key / math.sqrt(dim)
    cls_score = (cls_token * query).sum(dim=-1, keepdim=True).expand(len(sources), 1)
    token_scores = (tokens @ query[..., None])[..., 0].masked_fill(padding, -math.inf)
    weights = torch.cat([cls_score, token_scores], dim=1).softmax(dim=1)
    mixed = weights[:, :1] * cls_token + (weights[:, None, 1:] @ tokens)[:, 0]
    x = cls + attention.out_proj(functional.linear(mixed, w_value, b_value))
    output: Tensor = x + layer.linear2(layer.linear1(layer.norm2(x)).relu())
    return output


Drop = Callable[[Tensor], Tensor]


def post_norm_rows(
    layer: nn.Module, queries: Tensor, tokens: Tensor, padding: Tensor, drop: Drop | None = None
) -> Tensor:
    """Return rows [batch, queries, dim] of a one-head, post-norm `nn.TransformerEncoderLayer` with ReLU.

    `queries` [batch, queries, dim] are the input rows whose output is wanted, of `tokens` [batch, tokens, dim];
    `padding` [batch, tokens]. Equal to the layer's own rows up to rounding. The layer's own dropout is not used, since
    it would draw from the global random state: `drop`, if given, is called in the same four places, in its order.
    """
    assert isinstance(layer, nn.TransformerEncoderLayer)
    drop = drop or (lambda x: x)
    attention, dim = layer.self_attn, tokens.shape[-1]
    w_query, w_key, w_value = attention.in_proj_weight.view(3, dim, dim).unbind(0)
    b_query, b_key, b_value = attention.in_proj_bias.view(3, dim).unbind(0)
    query, key = functional.linear(queries, w_query, b_query), functional.linear(tokens, w_key, b_key)
    scores = (query @ key.transpose(1, 2) / math.sqrt(dim)).masked_fill(padding[:, None], -math.inf)
    mixed = drop(scores.softmax(dim=2)) @ functional.linear(tokens, w_value, b_value)
    x = layer.norm1(queries + drop(attention.out_proj(mixed)))
    output: Tensor = layer.norm2(x + drop(layer.linear2(drop(layer.linear1(x).relu()))))
    return output


def dropout_of(rate: float, seed: int, device: torch.device) -> Drop | None:
    """Return dropout that draws from a generator of its own; None for a rate of 0."""
    if rate == 0:
        return None
    generator = torch.Generator(device).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        return x * (torch.rand(x.shape, generator=generator, device=device) >= rate) / (1 - rate)

    return drop


@dataclass(frozen=True)
class Inputs:
    """The metadata of scenes as tensors: what `CompositionModel` takes."""

    counts: Tensor
    padding: Tensor

    @classmethod
    def of(cls, counts: NDArray[np.float32], device: torch.device) -> "Inputs":
        """Move `counts` [n, sources, vocabulary] to `device`; a source without any label is padding."""
        tensor = torch.from_numpy(counts).to(device)
        return cls(tensor, ~tensor.any(dim=2))

    def __getitem__(self, index: Tensor) -> "Inputs":
        return Inputs(self.counts[index], self.padding[index])


@dataclass(frozen=True)
class _Options:
    seeds: tuple[int, ...]
    max_steps: int
    layer: str
    layers: int
    width: int
    dropout: float
    validate_every: int


@dataclass(frozen=True)
class Curve:
    """How a fit went: at each of `steps` the mean cosine in `validation`, and in `training` since the step before."""

    steps: list[int] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Fit:
    """The step of the best validation score, and how the fit went."""

    step: int
    curve: Curve


def learning_rate(step: int, max_steps: int) -> float:
    """Return the rate of a step, counted from 0: half a cosine from 1e-4 at 0 to 1e-5 at max_steps."""
    return LAST_RATE + (FIRST_RATE - LAST_RATE) * (1 + math.cos(math.pi * step / max_steps)) / 2


def _side_by_side(
    function: Callable[..., tuple[Fit, Floats]], jobs: Sequence[tuple[Any, ...]], stop: threading.Event
) -> list[tuple[Fit, Floats]]:
    """Call a function with the arguments of each job, on one thread each, as many at once as torch has threads.

    Threads within a fit gain little, as its products are small, and cost much where processors are shared: the
    threads of one product wait for each other. They would also make the result depend on their number. When a
    job fails, or the user interrupts, `stop` is set, so that the others end.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        return [function(*job) for job in jobs]

    def call(context: contextvars.Context, job: tuple[Any, ...]) -> tuple[Fit, Floats]:
        try:
            return context.run(function, *job)
        except BaseException:
            stop.set()
            raise

    # The caller's number of threads stays as it is: the setting is the thread's own, apart from the number that
    # threads begin with, which is set back.
    pool = ThreadPoolExecutor(min(len(jobs), threads), initializer=torch.set_num_threads, initargs=(1,))
    try:
        futures = [pool.submit(call, contextvars.copy_context(), job) for job in jobs]
        errors = [error for future in futures if (error := future.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, _Stopped)):
            raise error
        return [future.result() for future in futures]
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


class _Stopped(Exception):  # noqa: N818 it is no error
    """A fit has ended because another one failed or the user interrupted."""


_DRAWING = threading.Lock()
"""Held while the global random state is borrowed."""


def _new_model(vocabulary: int, dim: int, seed: int, options: _Options) -> CompositionModel:
    # Drawn on the CPU, so that every device starts alike; torch.manual_seed would also reseed CUDA.
    with _DRAWING, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return CompositionModel(vocabulary, dim, layer=options.layer, layers=options.layers, width=options.width)


def fit(
    model: CompositionModel,
    train: tuple[Inputs, Tensor],
    validation: tuple[Inputs, Tensor],
    *,
    max_steps: int,
    seed: int,
    bar: Any,
    stop: threading.Event | None = None,
    dropout: float = 0.0,
    validate_every: int = VALIDATE_EVERY,
) -> Fit:
    """Train `model` in place on 1 − cos and leave it at its best validation score; return that step and the curve.

    `train` and `validation` are inputs and unit targets [n, dim] on the model's device (a target of zeros
    has no influence). `bar` is a tqdm bar. `stop`, once set, ends the fit with an exception. `dropout` is the rate
    of post-norm layers. Raises FloatingPointError when the validation score is not finite.
    """
    inputs, targets = train
    # The fused step is the same arithmetic up to rounding, and about 6 times as fast as the plain loop.
    optimizer = torch.optim.Adam(model.parameters(), lr=FIRST_RATE, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True)
    best, best_step, best_state = -math.inf, 0, _copy_of_state(model)
    waited, curve, losses = 0, Curve(), []
    drop = dropout_of(dropout, seed, targets.device)
    for step, index in zip(range(1, max_steps + 1), _batches(targets, seed), strict=False):
        optimizer.param_groups[0]["lr"] = learning_rate(step - 1, max_steps)
        batch = inputs[index]
        loss = 1 - _cosines(model(batch.counts, batch.padding, drop), targets[index]).mean()
        losses.append(loss.detach())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        bar.update()
        if stop is not None and stop.is_set():
            raise _Stopped
        if step % validate_every and step != max_steps:
            continue
        score = _validation_score(model, *validation)
        curve.steps.append(step)
        curve.training.append(1 - float(torch.stack(losses).double().mean()))
        curve.validation.append(score)
        losses.clear()
        if not math.isfinite(score):
            raise FloatingPointError(f"The fit diverged: validation score {score} at step {step}.")
        if score > best:
            best, best_step, best_state, waited = score, step, _copy_of_state(model), 0
        else:
            waited += 1
        bar.set_postfix(validation=f"{score:.4f}", best=f"{best:.4f}")
        if waited == PATIENCE:
            break
    model.load_state_dict(best_state)
    return Fit(best_step, curve)


def _batches(targets: Tensor, seed: int) -> Iterator[Tensor]:
    """Yield the indices of batches for ever, every scene once an epoch."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(targets), generator=generator).to(targets.device)
        yield from torch.split(order, BATCH)


def _copy_of_state(model: nn.Module) -> dict[str, Tensor]:
    # state_dict() alone holds the live parameters, which the next step would overwrite.
    return {name: value.clone() for name, value in model.state_dict().items()}


def _validation_score(model: CompositionModel, inputs: Inputs, targets: Tensor) -> float:
    return float(_cosines(_predict(model, inputs), targets).double().mean())


def _cosines(predictions: Tensor, unit_targets: Tensor) -> Tensor:
    return (functional.normalize(predictions, dim=-1) * unit_targets).sum(dim=-1)


@torch.no_grad()
def _predict(model: CompositionModel, inputs: Inputs) -> Tensor:
    parts = zip(torch.split(inputs.counts, _BLOCK), torch.split(inputs.padding, _BLOCK), strict=True)
    return torch.cat([model(counts, padding) for counts, padding in parts])


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
    inputs = Inputs.of(described.labels, device)
    options = _Options((seed,), max_steps, "pre-norm", 1, 4 * unit.shape[1], 0.0, VALIDATE_EVERY)
    stop = threading.Event()

    def fit_one(title: str, split: Split) -> tuple[Fit, Floats]:
        directions = _centred_directions(unit, unit[split.train].mean(axis=0))
        if not directions[split.train].any():
            return Fit(0, Curve()), np.zeros((len(split.test), unit.shape[1]))
        order = np.random.default_rng(seed).permutation(split.train)
        held_back = max(1, round(VALIDATION_SHARE * len(order)))
        goal = torch.from_numpy(directions.astype(np.float32)).to(device)
        validation, train, test = (
            torch.from_numpy(rows).to(device) for rows in (order[:held_back], order[held_back:], split.test)
        )
        model = _new_model(described.labels.shape[2], unit.shape[1], seed, options).to(device)
        with tqdm(total=max_steps, desc=title, disable=None if progress else True, leave=None) as bar:
            fitted = fit(
                model,
                (inputs[train], goal[train]),
                (inputs[validation], goal[validation]),
                max_steps=max_steps,
                seed=seed,
                bar=bar,
                stop=stop,
            )
        return fitted, _predict(model, inputs[test]).double().cpu().numpy()

    name = " × ".join(pair.attributes)
    jobs = [
        (f"{name}, {kind} {number}", split)
        for kind, splits in (("held out", pair.held_out), ("random", pair.random))
        for number, split in enumerate(splits, 1)
    ]
    outcomes = _side_by_side(fit_one, jobs, stop) if device.type == "cpu" else [fit_one(*job) for job in jobs]
    return [fitted for fitted, _ in outcomes], [values for _, values in outcomes]


# ----- reading and checking the input, and lengths


def _norms(x: Floats) -> Floats:
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", x, x))
    return norms


def _unit_rows(x: Floats) -> Floats:
    """Return the rows at length 1; rows of zeros stay zero, so that every cosine with them is 0."""
    norm = _norms(x)[:, None]
    return x / np.where(norm > 0, norm, 1.0)


def _cosines_with_unit(x: Floats, unit: Floats) -> Floats:
    cosines: Floats = np.clip(np.einsum("ij,ij->i", _unit_rows(x), unit), -1.0, 1.0)
    return cosines


def _matrix(name: str, x: Any) -> Floats:
    if hasattr(x, "detach"):  # a torch tensor, perhaps on a device, with a gradient, or in bfloat16
        x = x.detach().cpu().double()
    try:
        raw = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be an array [n, dim] with rows of equal length: {error}") from None
    if raw.dtype.kind not in "fiu" and raw.size:
        raise ValueError(f"{name} must hold real numbers; got an array of {raw.dtype}, shape {raw.shape}.")
    if raw.ndim != 2 or 0 in raw.shape:
        raise ValueError(f"{name} must be [n, dim] with n ≥ 1 and dim ≥ 1; got shape {raw.shape}.")
    array = raw.astype(np.float64, copy=False)
    if not (float(raw.max()) <= _LARGEST and float(raw.min()) >= -_LARGEST):  # so written that NaN fails
        bad = ~(np.abs(array) <= _LARGEST)
        rows = np.flatnonzero(bad.any(axis=1))
        value = array[rows[0]][bad[rows[0]]][0]
        raise ValueError(
            f"{name} must be finite (at most {_LARGEST:g}); {len(rows)} of {len(array)} rows are not, "
            f"the first is row {rows[0]} with {value}."
        )
    return array


def _check_length(name: str, values: Any, n: int) -> None:
    if len(values) != n:
        raise ValueError(f"{name} must have one entry for each of the {n} embeddings; got {len(values)}.")


def _nearest(word: str, choices: Sequence[str]) -> str:
    return (difflib.get_close_matches(word, choices, n=1, cutoff=0.0) or list(choices))[0]


def _check_scenes(scenes: Any, n: int) -> None:
    _check_length("scenes", scenes, n)
    expected: set[str] | None = None
    for row, scene in enumerate(scenes):
        if isinstance(scene, str | Mapping) or not len(scene):
            raise ValueError(f"scenes[{row}] must be a list of one or more sources; got {scene!r}.")
        for k, source in enumerate(scene):
            if not isinstance(source, Mapping) or not source:
                raise ValueError(f"scenes[{row}][{k}] must map attributes to labels; got {source!r}.")
            if expected is None:
                expected = set(source)
            if set(source) != expected:
                raise ValueError(
                    f"scenes[{row}][{k}] has the attributes {sorted(source)}; all sources must have those of "
                    f"the first, {sorted(expected)}."
                )
            for name, label in source.items():
                if not isinstance(label, str):
                    raise ValueError(f"scenes[{row}][{k}] has {name} {label!r}; a label must be a string.")


VERSION = 1
"""It rises with every change of code or constants that can change a number."""

# Read without importing the module, so it is one literal; ±1e15 stands for "no bound".
MEASURES = {
    "gap": {
        "heading": "A-TRE gap",
        "meaning": "centred cosine lost where a combination of two classes was never heard in training; 0 is best",
        "range": (-2.0, 2.0),
        "column": "score",
    },
    "held_out": {
        "heading": "held out",
        "meaning": "centred cosine of embedding and prediction where a combination was never heard in training",
        "null": "number_held_out",
        "column": "score_held_out",
    },
    "random": {
        "heading": "random split",
        "meaning": "the same with as many scenes drawn at random, whose combinations were heard",
        "null": "number_random",
        "column": "score_random",
    },
    "kept": {
        "heading": "kept",
        "meaning": "share of what classes tell beyond the number of sources that is left in combinations never heard",
        "digits": 2,
        "range": (-1e15, 1e15),
    },
    "gap_single": {
        "heading": "gap, one source",
        "meaning": "the gap of scenes with a single source",
        "range": (-2.0, 2.0),
    },
    "interaction": {
        "heading": "interaction",
        "meaning": "what pairs of classes add to ridge regression in the random split, of all that is learnt by heart",
        "range": (-2.0, 2.0),
    },
    "ridge_gap": {
        "heading": "ridge gap",
        "meaning": "the gap of ridge regression on classes alone, which cannot learn a combination",
        "range": (-2.0, 2.0),
    },
    "ridge_held_out": {
        "heading": "ridge, held out",
        "meaning": "centred cosine of that regression where a combination was never heard in training",
        "null": "number_held_out",
        "shown": False,
    },
    "ridge_random": {
        "heading": "ridge, random split",
        "meaning": "centred cosine of that regression in the random split",
        "null": "number_random",
        "shown": False,
    },
    "number_held_out": {
        "heading": "number, held out",
        "meaning": "centred cosine of the mean training scene with as many sources, with combinations held out",
        "shown": False,
    },
    "number_random": {
        "heading": "number, random split",
        "meaning": "centred cosine of the mean training scene with as many sources, in the random split",
        "shown": False,
    },
    "constant": {
        "heading": "constant",
        "meaning": "cosine, not centred, with the mean training embedding, with combinations held out",
    },
    "constant_random": {
        "heading": "constant, random split",
        "meaning": "cosine, not centred, with the mean training embedding, in the random split",
        "shown": False,
    },
    "n": {
        "heading": "n",
        "meaning": "number of scenes",
        "digits": 0,
        "range": (1.0, 1e15),
        "shown": False,
    },
    "n_train": {
        "heading": "training scenes",
        "meaning": "least number of training scenes of a split",
        "digits": 0,
        "range": (1.0, 1e15),
        "shown": False,
    },
}
"""What each number of `a_tre_held_out` is: fields by name, the score first."""

PAGE = {
    "introduction": """\
# A-TRE gap: is a scene rebuilt from combinations that were never heard?

A-TRE ([arXiv 2603.13685](https://arxiv.org/abs/2603.13685)) rebuilds the embedding of a scene from the labels of its
sources. Here combinations of two attributes, such as a bell at a low pitch, are held out of training in turn, and the
score is what is lost against scenes that are split at random.

Paste the embeddings of an encoder, a line for each scene, numbers separated by commas or spaces. Beside them, line by
line, go the scenes' sources as JSON, such as `[{"pitch_label": "low", "timbre_label": "bell"}]`.
""",
    "warning": """\
**A gap of 0 alone is no merit.** Noise has none, since nothing can be rebuilt: read it beside *held_out*, and
*held_out* beside *number_held_out*, which knows nothing but how many sources there are. Log-mel statistics and networks
that were never trained have high scores and small gaps too.
""",
    "inputs": {
        "embeddings": "Embeddings, a scene a line",
        "scenes": "Sources in JSON, a scene a line",
    },
    # So that a page with the largest input answers within minutes on two processors.
    "limits": {"columns": 256, "items": 8, "words": 64},
}
"""What the metric's page says, and how much it takes: columns of a matrix, sources of a scene, different labels."""


def example() -> dict[str, Any]:
    """Return arguments of `a_tre_held_out`: 200 different scenes of one to three sources in 8 dimensions, of an encoder
    that adds up classes but for timbre and pitch, of which it has a vector for each combination."""
    rng = np.random.default_rng(0)
    labels: dict[str, Sequence[str]] = {"timbre_label": ("bell", "brass", "reed"), "rate_label": ("slow", "fast")}
    labels |= {"pitch_label": ("low", "mid", "high"), "amplitude_label": ("soft", "loud")}
    vectors = {(name, label): rng.normal(size=8) for name, choices in labels.items() for label in choices}
    combined = {pair: rng.normal(size=8) for pair in itertools.product(labels["timbre_label"], labels["pitch_label"])}
    mean = rng.normal(size=8)
    embeddings: list[Floats] = []
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
