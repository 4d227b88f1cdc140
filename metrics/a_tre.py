"""A-TRE, the Audio Tree Reconstruction Error (arXiv 2603.13685, sections 3.3 and 4.4), with its controls.

A small composition model g is trained to rebuild the embedding z of a sound scene X from the attribute
labels of its sources; the score is the mean cos(z, g(X)) over held-out scenes. The token of a source is
the sum of learnable vectors, one for each of its labels. A learnable [CLS] token and the source tokens,
without positions, pass one pre-norm Transformer layer, and the [CLS] row is the prediction.

The score alone misleads: embeddings that share a large mean score 0.99 with a constant prediction. So it
is reported with the score of that constant, a second fit to centred targets, closed-form ridge regressions with
permuted metadata as their null, and retrieval of the correct scene. Fits are in float32 on one device, on a CPU in
parallel with one thread each; statistics are in float64. One seed gives one result per machine, whatever the number of
threads; the global random states do not change.

>>> rng = np.random.default_rng(0)
>>> low = rng.random((90, 2)) < 0.5
>>> scenes = [[{"pitch": "low" if p else "high", "rate": "low" if r else "high"}] for p, r in low]
>>> z = np.concatenate([low, ~low], axis=1).astype(float)
>>> splits = ["train"] * 50 + ["validation"] * 20 + ["test"] * 20
>>> result = a_tre(z, scenes, splits, max_steps=5, device="cpu", progress=False)
>>> result["n"], round(result["constant"], 1), round(result["ridge_r2"], 3)
(20, 0.7, 1.0)
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from .arrays import (
    Floats,
    check_length,
    cosines_with_unit,
    nearest_name,
    own_row_ranks,
    rank_rates,
    read_matrix,
    sample_std,
    unit_rows,
)
from .composition import (
    DEGENERATE,
    VALIDATE_EVERY,
    Curve,
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
from .evaluated import count, measure, metric_class, ratio, share

LAYERS = ("pre-norm", "post-norm")

SPLITS = ("train", "validation", "test")

PERMUTATIONS = 20
RIDGE_PENALTIES = np.logspace(-4, 4, 17)


def a_tre(
    embeddings: ArrayLike,
    scenes: Scenes,
    splits: Sequence[str],
    *,
    gains: Sequence[Sequence[float]] | None = None,
    seeds: Sequence[int] = (0,),
    max_steps: int = 2500,
    layer: str = "pre-norm",
    layers: int = 1,
    width: int | None = None,
    dropout: float = 0.0,
    validate_every: int | None = None,
    device: str | torch.device | None = None,
    progress: bool = True,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return the A-TRE score of an encoder's embeddings and its controls.

    - `embeddings` [n, dim]; `scenes`: n lists of at least one source, a source being a mapping of attribute to label,
      with the same attributes in every source; `splits`: n of "train", "validation" (or "val") or "test". The
      vocabulary comes from the training scenes.
    - `gains`: linear gain of each source, ragged as `scenes`; used by the ridge regressions only.
    - `seeds`: each seed gives one fit of each kind. `max_steps`: training steps of 64 scenes. `layers`: number of
      Transformer layers. `width`: of their feed-forward part, 4·dim by default. `layer`: "pre-norm", or "post-norm",
      whose `dropout` is a rate in 0…1; with width 2048 and dropout 0.1 it is PyTorch's default layer. `validate_every`:
      steps between validations, 125 by default; a fit ends after 4 without improvement. `device`: "cuda" if available,
      else "cpu". `progress`: a bar for each fit, if stderr is a terminal.

    Results. Cosines are in −1…1; means and std (n − 1 in the denominator, 0 when n = 1) are over test scenes:

    - `a_tre`, `std`, `n`: cos(z, g(X)), averaged over seeds; `steps`: for each seed the step of its best
      validation score;
    - `seed_std`, `a_tre_centred_seed_std`: standard deviation of the seeds' means, for this fit and for the centred
      one; None with a single seed;
    - `constant`: cos of z with the mean of the unit training embeddings; `gain` = (a_tre − constant)/(1 −
      constant), 0 when 1 − constant < 1e-6;
    - `a_tre_centred`, `a_tre_centred_std`, `steps_centred`: a second fit, to z/|z| − training mean; a target shorter
      than 1e-6 scores 0. If all training targets are, nothing is fitted: the centred score is 0, the raw prediction is
      the training mean, and both steps are 0;
    - `ridge_r2`, `ridge_centred`: R² = 1 − SSE/SST (0 when there is no variance) and mean cosine of a ridge regression
      from label counts, gain-weighted label counts if gains are given, and an intercept to the same targets, not
      normalised; penalty chosen on validation. `ridge_r2_null`, `ridge_centred_null`: their means over 20 permutations
      of the metadata among scenes of one split and one number of sources, refitted with that penalty;
    - `top1`, `mrr`: how often the scene's own centred target is the nearest of all test scenes' targets to the centred
      prediction by cosine, and the mean reciprocal of its rank; tied targets share their ranks equally. `top1_chance` =
      1/n, `mrr_chance` = H_n/n;
    - `collapsed`: the predictions hardly vary. With spread = 1 − |mean of unit vectors|, their spread is below 0.01 of
      the test embeddings' spread, or the latter is below 1e-6;
    - `scores`, `scores_centred` (with return_scores): lists of the n cosines, averaged over seeds;
    - `curves`, `curves_centred` (with return_scores): for each seed a dictionary of lists: the `steps` of the
      validations, `validation`, the mean cosine of the validation scenes, and `training`, the mean cosine of the
      batches since the previous validation, under dropout if there is any; empty lists if nothing was fitted.

    An embedding of zeros scores 0. Source: arXiv 2603.13685, sections 3.3 and 4.4; the controls are ours.

    Raises ValueError for embeddings that are not finite [n, dim], lengths that differ, an unknown or absent split,
    fewer than 2 training scenes, an empty scene, attributes that differ, a label that does not occur in the training
    scenes, or an option below 1; FloatingPointError if a fit diverges.
    """
    z = read_matrix("embeddings", embeddings)
    rows = _split_rows(splits, len(z))
    counts = _encode(scenes, rows, len(z))
    features = counts.sum(axis=1, dtype=np.float64)
    if gains is not None:
        features = np.hstack([features, np.einsum("nsv,ns->nv", counts, _ragged_gains(gains, scenes))])
    width = 4 * z.shape[1] if width is None else width
    options = _options(max_steps, layer, layers, width, dropout, validate_every)
    if not len(seeds) or min(seeds) < 0:
        raise ValueError(f"seeds must be one or more integers ≥ 0; got {seeds!r}.")
    seeds = [int(seed) for seed in seeds]
    unit = unit_rows(z)
    mean, test = unit[rows["train"]].mean(axis=0), rows["test"]
    offsets = unit - mean
    directions = centred_directions(unit, mean)
    if directions[rows["train"]].any():
        inputs = SceneTensors.of(counts, torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu")))
        targets = {"A-TRE": unit.astype(np.float32), "A-TRE centred": directions.astype(np.float32)}
        goals = [
            Goal(
                f"{title}, seed {seed}",
                partial(targets.__getitem__, title),
                rows["train"],
                rows["validation"],
                test,
                seed,
            )
            for title in targets
            for seed in seeds
        ]
        outcomes = fit_goals(inputs, goals, options, progress)
        raw, centred = (
            _Predictions(np.stack([values for _, values in group]), [fitted for fitted, _ in group])
            for group in (outcomes[: len(seeds)], outcomes[len(seeds) :])
        )
    else:
        # Nothing to fit: predict the training mean for every scene, and zero after centring.
        still = np.broadcast_to(mean, (len(seeds), len(test), len(mean)))
        nothing = [Fit(0, Curve()) for _ in seeds]
        raw, centred = _Predictions(still, nothing), _Predictions(0 * still, nothing)

    scores = np.stack([cosines_with_unit(p, unit[test]) for p in raw.values])
    fits_centred = np.stack([cosines_with_unit(p, directions[test]) for p in centred.values])
    scores_centred = fits_centred.mean(axis=0)
    score = float(scores.mean())
    constant = float(cosines_with_unit(np.broadcast_to(mean, unit[test].shape), unit[test]).mean())
    retrieval = np.mean([own_row_ranks(unit_rows(p), directions[test]) for p in centred.values], axis=0)
    result: dict[str, Any] = {
        "a_tre": score,
        "std": sample_std(scores.mean(axis=0)),
        "n": len(test),
        "seed_std": sample_std(scores.mean(axis=1)) if len(seeds) > 1 else None,
        "steps": [fitted.step for fitted in raw.fits],
        "constant": constant,
        "gain": (score - constant) / (1 - constant) if 1 - constant >= DEGENERATE else 0.0,
        "a_tre_centred": float(scores_centred.mean()),
        "a_tre_centred_std": sample_std(scores_centred),
        "a_tre_centred_seed_std": sample_std(fits_centred.mean(axis=1)) if len(seeds) > 1 else None,
        "steps_centred": [fitted.step for fitted in centred.fits],
        **_ridge(features, offsets, directions, rows, counts.any(axis=2).sum(axis=1)),
        **rank_rates(*retrieval),
        "collapsed": _collapsed(raw.values, unit[test]),
    }
    if return_scores:
        lists = {"scores": scores.mean(axis=0), "scores_centred": scores_centred, "scores_top1": retrieval[0]}
        result |= {name: values.tolist() for name, values in lists.items()}
        result |= {
            name: [asdict(fitted.curve) for fitted in predictions.fits]
            for name, predictions in (("curves", raw), ("curves_centred", centred))
        }
    return result


ATre = metric_class(
    a_tre,
    {"embeddings": "numbers", "scenes": "scene", "splits": "text"},
    citation=_CITATION,
)


@dataclass(frozen=True)
class _Predictions:
    values: Floats  # [seeds, test scenes, dim]
    fits: list[Fit]


# ----- closed-form controls and statistics, in float64
def _ridge(
    features: Floats,
    offsets: Floats,
    directions: Floats,
    rows: dict[str, NDArray[np.int64]],
    sizes: NDArray[np.int64],
) -> dict[str, float]:
    """Return R² and mean cosine on the test scenes, with the true and with permuted metadata.

    `features` [n, k]; `offsets` [n, dim] from the training mean, `directions` these at length 1 or 0; `sizes` [n], the
    number of sources.
    """
    train, held_out, test = (rows[name] for name in SPLITS)
    x = features - features[train].mean(axis=0)  # centred features and targets give an unpenalised intercept
    y_train, y_held_out, y_test = offsets[train], offsets[held_out], offsets[test]
    total = float((y_test**2).sum())
    # Permuting the training scenes leaves this matrix unchanged: one decomposition serves all fits.
    eigenvalues, basis = np.linalg.eigh(x[train].T @ x[train])

    def predict(x: Floats, projection: Floats, penalty: float) -> Floats:
        weights: Floats = basis @ (projection / (np.maximum(eigenvalues, 0) + penalty)[:, None])
        return x @ weights

    def scores(x: Floats, penalty: float) -> tuple[float, float]:
        prediction = predict(x[test], basis.T @ (x[train].T @ y_train), penalty)
        error = float(((y_test - prediction) ** 2).sum())
        r2 = 1 - error / total if total >= len(test) * DEGENERATE**2 else 0.0
        return r2, float(cosines_with_unit(prediction, directions[test]).mean())

    projection = basis.T @ (x[train].T @ y_train)
    errors = [((y_held_out - predict(x[held_out], projection, p)) ** 2).sum() for p in RIDGE_PENALTIES]
    penalty = float(RIDGE_PENALTIES[int(np.argmin(errors))])
    r2, cosine = scores(x, penalty)
    rng = np.random.default_rng(0)
    null = [scores(x[_permutation(rows, sizes, rng)], penalty) for _ in range(PERMUTATIONS)]
    r2_null, cosine_null = np.mean(null, axis=0)
    return {
        "ridge_r2": r2,
        "ridge_r2_null": float(r2_null),
        "ridge_centred": cosine,
        "ridge_centred_null": float(cosine_null),
    }


def _permutation(
    rows: dict[str, NDArray[np.int64]], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a random permutation [n] that moves scenes only within their split and number of sources."""
    split = np.empty(len(sizes), dtype=np.int64)
    for number, index in enumerate(rows.values()):
        split[index] = number
    permutation = np.empty(len(sizes), dtype=np.int64)
    permutation[np.lexsort((sizes, split))] = np.lexsort((rng.random(len(sizes)), sizes, split))
    return permutation


def _collapsed(predictions: Floats, unit_test: Floats) -> bool:
    spread = np.mean([_spread(unit_rows(p)) for p in predictions])
    available = _spread(unit_test)
    return bool(available < 1e-6 or spread < 0.01 * available)


def _spread(unit: Floats) -> float:
    return 1 - float(np.linalg.norm(unit.mean(axis=0)))


def _options(
    max_steps: int, layer: str, layers: int, width: int, dropout: float, validate_every: int | None
) -> FitOptions:
    every = VALIDATE_EVERY if validate_every is None else validate_every
    counts = {"max_steps": max_steps, "layers": layers, "width": width, "validate_every": every}
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value}.")
    if layer not in LAYERS:
        raise ValueError(f"layer must be one of {LAYERS}; got {layer!r}. Did you mean {nearest_name(layer, LAYERS)!r}?")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and less than 1; got {dropout}.")
    if dropout and layer != "post-norm":
        raise ValueError(f"dropout is {dropout}; a pre-norm layer has none. Give layer='post-norm' or dropout=0.")
    return FitOptions(max_steps, width, layer, layers, float(dropout), every)


def _split_rows(splits: Sequence[str], n: int) -> dict[str, NDArray[np.int64]]:
    """Return the row numbers of each split, in the order of SPLITS."""
    check_length("splits", splits, n)
    rows: dict[str, list[int]] = {name: [] for name in SPLITS}
    for row, given in enumerate(splits):
        name = "validation" if given == "val" else given
        if name not in rows:
            nearest = nearest_name(str(given), SPLITS)
            raise ValueError(f"splits[{row}] is {given!r}; it must be one of {SPLITS}. Did you mean {nearest!r}?")
        rows[name].append(row)
    for name, needed in (("train", 2), ("validation", 1), ("test", 1)):
        if len(rows[name]) < needed:
            raise ValueError(f"The {name} split has {len(rows[name])} scenes; it needs at least {needed}.")
    return {name: np.array(index, dtype=np.int64) for name, index in rows.items()}


def _encode(scenes: Scenes, rows: dict[str, NDArray[np.int64]], n: int) -> NDArray[np.float32]:
    """Return [n, sources, vocabulary], 1 if a source has a label of the training vocabulary, else 0."""
    check_scenes(scenes, n)
    attributes = sorted(scenes[0][0])
    seen = {(name, source[name]) for row in rows["train"] for source in scenes[row] for name in attributes}
    column = {pair: k for k, pair in enumerate(sorted(seen))}
    counts = np.zeros((n, max(len(scene) for scene in scenes), len(column)), dtype=np.float32)
    for split, index in rows.items():
        for row in index.tolist():
            for k, source in enumerate(scenes[row]):
                for name in attributes:
                    pair = (name, source[name])
                    if pair not in column:
                        nearest = nearest_name(source[name], [label for key, label in column if key == name])
                        raise ValueError(
                            f"scenes[{row}] ({split}) has {name} {source[name]!r}, which is in no training "
                            f"scene; the most similar training label is {nearest!r}."
                        )
                    counts[row, k, column[pair]] = 1
    return counts


def _ragged_gains(gains: Sequence[Sequence[float]], scenes: Scenes) -> Floats:
    """Return gains [n, sources], 0 for sources that a scene does not have."""
    check_length("gains", gains, len(scenes))
    array = np.zeros((len(scenes), max(len(scene) for scene in scenes)))
    for row, (values, scene) in enumerate(zip(gains, scenes, strict=True)):
        if len(values) != len(scene):
            raise ValueError(f"gains[{row}] has {len(values)} values; the scene has {len(scene)} sources.")
        array[row, : len(values)] = values
    bad = np.flatnonzero(~((array >= 0) & (array < np.inf)).all(axis=1))
    if len(bad):
        raise ValueError(f"gains must be finite and linear (≥ 0); gains[{bad[0]}] is {list(gains[bad[0]])}.")
    return array


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "a_tre": measure(
        "A-TRE",
        "mean cosine of embedding and prediction over the test scenes",
        null="constant",
        column="score",
        fitted=True,
        spread="seed_std",
    ),
    "std": measure(
        "sd", "standard deviation of the score over the test scenes", range=(0.0, 1.5), fitted=True, shown=False
    ),
    "n": count("n", "number of test scenes"),
    "seed_std": measure(
        "seed sd",
        "standard deviation of the mean score over fits with different seeds",
        range=(0.0, 1.5),
        digits=4,
        fitted=True,
    ),
    "constant": measure("constant", "score of predicting the mean training embedding for every scene"),
    "gain": ratio("gain", "(score − constant) / (1 − constant)", fitted=True),
    "a_tre_centred": measure(
        "centred",
        "score of a second fit, to the differences from the mean training embedding",
        column="score_centred",
        fitted=True,
        spread="a_tre_centred_seed_std",
    ),
    "a_tre_centred_std": measure(
        "centred sd",
        "standard deviation of the centred score over the test scenes",
        range=(0.0, 1.5),
        fitted=True,
        shown=False,
    ),
    "a_tre_centred_seed_std": measure(
        "centred seed sd",
        "standard deviation of the mean centred score over fits with different seeds",
        range=(0.0, 1.5),
        digits=4,
        fitted=True,
        shown=False,
    ),
    "ridge_r2": ratio(
        "ridge R²", "variance that a linear regression on counts of attributes explains", digits=2, null="ridge_r2_null"
    ),
    "ridge_r2_null": ratio(
        "ridge R² null",
        "ridge R² with the metadata permuted among scenes with the same number of sources",
        digits=2,
        shown=False,
    ),
    "ridge_centred": measure(
        "ridge centred",
        "mean cosine of that regression's predictions and the centred embeddings",
        digits=2,
        null="ridge_centred_null",
        shown=False,
    ),
    "ridge_centred_null": measure(
        "ridge centred null",
        "ridge centred with the metadata permuted among scenes with the same number of sources",
        digits=2,
        shown=False,
    ),
    "top1": share(
        "top-1",
        "how often the correct embedding is the nearest of all test scenes to the centred prediction",
        null="top1_chance",
        fitted=True,
        column="score_top1",
    ),
    "mrr": share(
        "MRR",
        "mean reciprocal rank of the correct embedding among all test scenes, nearest to the prediction first",
        null="mrr_chance",
        fitted=True,
        shown=False,
    ),
    "top1_chance": share("top-1 chance", "top-1 of a random order", shown=False),
    "mrr_chance": share("MRR chance", "MRR of a random order", shown=False),
    "collapsed": share(
        "collapsed", "whether the predictions of the raw score hardly vary", digits=0, fitted=True, shown=False
    ),
}
"""Description of each number that `a_tre` returns, by name, the score first."""
