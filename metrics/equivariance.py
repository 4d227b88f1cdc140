"""Equivariance: can the change of a clip be read from two embeddings, and can the changed embedding be predicted?

Clips of one orbit differ in one factor or one parameter of a transform and in nothing else. For embeddings z and z′ of
two clips of an orbit, P-equivariance is how well a probe reads the parameter p from both, and R-equivariance how well a
probe predicts z′ from z and p (arXiv 2505.06224, section III).

Both mislead when read alone. The level of one clip gives half of the difference of two, and an untrained network whose
embeddings hardly move predicts them nearly perfectly by leaving them as they are. So P is reported with the score of z
or z′ alone, and R is scored against the best predictor without the parameter: z itself, z moved by the mean step, or
the same probe without the parameter. Its chance is 0, whatever the encoder. All in float64.

>>> rng = np.random.default_rng(0)
>>> contexts, direction = rng.normal(size=(30, 1, 8)), rng.normal(size=8)
>>> level = np.tile(np.arange(4.0), 30)
>>> z = np.repeat(contexts, 4, axis=1).reshape(120, 8) + level[:, None] * direction
>>> orbits = np.repeat(np.arange(30), 4)
>>> result = equivariance(z, orbits, level, orbits % 5, orbits)
>>> round(result["r_equivariance"], 3), round(result["p"], 3), result["pairs"]
(1.0, 1.0, 360)
>>> blind = np.repeat(contexts[:, 0], 4, axis=0) + rng.normal(size=(120, 8))
>>> abs(equivariance(blind, orbits, level, orbits % 5, orbits)["r_equivariance"]) < 0.05
True
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import ROUNDING, Floats, Ints, read_matrix, unit_rows
from .columns import check_classes, fold_rotation, read_blocks
from .evaluated import AXES as _CITATION
from .evaluated import MOST, Fields, count, measure, metric_class, ratio, share
from .orbits import Paired, PairFold, ProbeSettings, Starts, Trials, fitted_starts, pair_changes, read_pairs
from .probing import (
    PROBES,
    SHUFFLES,
    block_permutations,
    explained_share,
    fit_groups,
    probe_names,
    ratio_scores,
    state_spread,
)
from .steps import Foretold, foretell_steps


def equivariance(
    embeddings: ArrayLike,
    orbits: Any,
    parameters: Any,
    folds: ArrayLike,
    blocks: Any,
    *,
    base: ArrayLike | None = None,
    probes: Sequence[str] = ("ridge", "kernel"),
    scaled: bool = True,
    seed: int = 0,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how well a change of clips is read from their embeddings and predicted in them, with controls.

    - `embeddings` [n, dim]; `orbits` [n], strings or integers, each of two rows or more and in one fold; `parameters`
      [n], numbers or strings; strings are always classes;
    - `base` [n], booleans: true for the one original of each orbit, whose parameter is ignored (None or NaN). Pairs go
      from it to each copy, and P is the copy's parameter. Without `base` pairs go from each row of an orbit to each
      other row, and P is the difference of their numbers, or the class of the second;
    - `folds`, `blocks`, `probes`, `scaled`, `seed`: as in `informativeness`. With `scaled` False `slp` and `mlp` follow
      the text of arXiv 2505.06224: for P they see z and P unscaled. R then uses embeddings of length 1 throughout: a
      linear layer projects P (in 0…1, or the class) to 32 values, and the probe, whose `mlp` has hidden layers of 512
      and 512 units, is trained on the cosine with z′.

    Results over all pairs, each tested once; first R. A probe predicts the step z′ − z from z and features of the
    parameter. The weights of these features are part of the definition, since one penalty serves all of them (with
    `scaled` False `slp` and `mlp` see P in 0…1 unweighted). In each fold, from its training pairs:

    - c(P): one indicator for each class or, for numbers, each different P if there are at most MOST_VALUES; else P, P²
      and |P|, each divided by its standard deviation;
    - they are multiplied by one number w, so that their total variance equals the variance of z: w² = Σ var z / Σ var
      c, with sums over columns, variances over training pairs, and z the start of the pair;
    - `ridge` also sees products of ((P − mean)/sd) and of ((P² − mean)/sd) with the first COMPONENTS principal
      components of z over training rows, centred and in the units of z; none for classes;
    - all features are then centred and divided by one number, the root of their mean variance.

    Without w the penalty would remove the indicators if z has many dimensions: an additive encoder of eight classes in
    64 dimensions, which scores .60, would score .21 (tests/metrics/test_equivariance.py).

    - `r_equivariance` = 1 − SSE/min(SSE of z′ = z, of the mean training step, of the same probe without the parameter):
      the value of knowing the parameter. In each fold validation chooses the probe, possibly one without the parameter,
      so that a useless parameter costs nothing; `r_ridge`, `r_kernel`, `r_slp`, `r_mlp`: the score of each probe alone,
      which must use the parameter, None if it was not requested. If the parameter is useless, these are below 0, by
      about k/n with k of its features and n training clips, as with any useless features (7/307 of 8 classes and 512
      clips; measured −.02 with random embeddings); `spread`: standard deviation over the random states of slp and mlp;
    - `r_explained` = 1 − SSE/Σ|z′ − z|²: 0 for z itself, and .5 for random embeddings, whose mean halves the error;
    - `r_translate`: `r_equivariance` with one step for each parameter, independent of z. For classes without `base` it
      has one step for each pair of classes;
    - `r_level_top1`: how often the prediction is nearer to the true z′ than to the rest of its orbit (without z if
      there are other rows); `r_context_top1`: how often it is nearer to the true z′ than to the row of each other orbit
      of the fold with the nearest parameter (at most MOST_CONTEXTS). Ties are shared. `r_level_chance` and
      `r_context_chance` are the expectations under a random order;
    - `r_cosine`, `identity_cosine`: mean cosine with z′ of the prediction and of z (over the dimensions of raw
      embeddings: the only numbers that depend on their origin); `r_mse`, `identity_mse`: mean squared error, in units
      of the mean variance of an embedding's coordinates.

    Results for P, None if parameters are strings. All are R² = 1 − Σ(P − P̂)²/Σ(P − mean in training)²:

    - `p`, from z and z′, or from one of them alone if this validates better; `p_ridge`, `p_kernel`, `p_slp`,
    - `p_start`, `p_end`, `p_difference`: from z alone, z′ alone, and z′ − z. With K levels, and all pairs of different
      ones, z alone scores K/(2(K − 1)) in a perfect encoder: .667 for 4 levels, .571 for 8;
    - `p_from_labels`: f(z′) − f(z), where f reads the level of one clip; None with `base`, whose originals have no
      level;
    - `p_gain` = 1 − SSE/min(SSE of `p_start`, of `p_end`);
    - `shuffled_p`: mean `p` for permuted parameters, blocks of them among blocks, and rows within a block: over 5
      permutations, with slp or mlp over 1;

    and `pairs` (if there are more than MOST_PAIRS, an evenly drawn part), and `n`, rows in which a pair ends. With
    return_scores, `rows`: the numbers of these rows, and for each `scores`, `scores_p` and `scores_p_gain`: the
    linearised contribution of the pairs that end in it to `r_equivariance`, `p` and `p_gain`, which is exactly their
    mean (see `informativeness`).

    Sources: arXiv 2505.06224, section III, for the axes; scores against controls are ours.

    Raises ValueError if embeddings are not finite [n, dim], lengths differ, parameters are neither all numbers nor all
    strings or are all the same, an orbit has one row only, lies in two folds or does not have exactly one original, a
    class is in one block only, there are fewer than 3 folds or 5 blocks, a block lies in two folds, or a probe is
    unknown.

    >>> z, orbits = np.arange(40.0).reshape(20, 2) % 7, np.arange(20) // 2
    >>> result = equivariance(0 * z, orbits, np.arange(20) % 2, orbits % 5, orbits)
    >>> result["r_equivariance"], result["p"], result["r_level_top1"]
    (0.0, 0.0, 0.5)
    """
    raw = read_matrix("embeddings", embeddings)
    settings = ProbeSettings(probe_names(probes), scaled, seed)
    block, block_names = read_blocks(blocks, len(raw))
    rotation = fold_rotation(folds, block, block_names)
    # The text of arXiv 2505.06224 predicts embeddings of length 1, but reads P from raw ones.
    data = read_pairs(raw if scaled else unit_rows(raw), orbits, parameters, base, rotation, seed)
    if len(data.labels):
        check_classes("parameters", data.labels, data.level.astype(np.int64), block, block_names, rotation)
    parts, starts = fitted_starts(data, rotation, settings)
    foretold, scores = _foretold_numbers(data, foretell_steps(data, parts, starts, settings), settings)
    read: dict[str, Any] = {}
    scores_p = scores_p_gain = None
    if not len(data.labels):
        if not scaled:
            data = read_pairs(raw, orbits, parameters, base, rotation, seed)
            parts, starts = fitted_starts(data, rotation, settings)
        varied = np.arange(len(block)) if data.originals is None else np.flatnonzero(~data.originals)
        shuffled = []
        for order in block_permutations(block[varied], SHUFFLES if settings.states == 1 else 1, settings.seed):
            level = data.level.copy()
            level[varied] = level[varied[order]]
            shuffled.append(pair_changes(level, data.start, data.end, data.originals))
        read, scores_p, scores_p_gain = _read_numbers(data, *_read(data, parts, starts, shuffled, settings), settings)
    rows = np.unique(data.end)
    numbers = {**foretold, **read, "pairs": len(data.start), "n": len(rows)}
    result = {name: numbers.get(name) for name in MEASURES}
    if return_scores:
        lists = {"scores": scores, "scores_p": scores_p, "scores_p_gain": scores_p_gain, "rows": rows}
        result |= {name: None if values is None else values.tolist() for name, values in lists.items()}
    return result


Equivariance = metric_class(
    equivariance,
    [
        {"embeddings": "numbers", "orbits": orbit, "parameters": value, "folds": "number", "blocks": block}
        for orbit in ("text", "number")
        for value in ("text", "number")
        for block in ("text", "number")
    ],
    citation=_CITATION,
)


def _read(
    data: Paired,
    folds: Sequence[PairFold],
    starts: Sequence[dict[str, Starts]],
    shuffled: Sequence[Floats],
    settings: ProbeSettings,
) -> tuple[dict[str, Trials], list[Floats]]:
    """Read P of all pairs, each in the fold that tests it; return errors by source, and errors of the training mean.

    `shuffled` are P of permuted parameters. Reading from both embeddings is also tried on these, under the names
    "shuffled 1" and so on; their errors of the mean follow those for P.
    """
    count, targets = len(data.start), np.stack([data.values, *shuffled], axis=1)
    kinds = ["both", "start", "end", "difference", "labels", *(f"shuffled {k + 1}" for k in range(len(shuffled)))]
    trials = {kind: Trials(settings.probes, settings.states, count) for kind in kinds}
    references = [np.zeros(count) for _ in range(targets.shape[1])]
    for fold, start in zip(folds, starts, strict=True):
        train, _, tested = fold.parts
        y, means = targets[tested], targets[train].mean(axis=0)
        for k, reference in enumerate(references):
            reference[tested] = np.square(y[:, k] - means[k])
        for name in settings.probes:
            for kind, (values, loss) in _values_read(fold, name, targets, start.get(name), settings).items():
                k = kinds.index(kind) - 4 if kind.startswith("shuffled") else 0
                errors = np.square(values - y[:, k])
                trials[kind].enter(name, tested, errors, loss)
                if kind in ("start", "end"):
                    # A probe of both embeddings may ignore one of them.
                    trials["both"].choose(tested, errors, loss)
    return trials, references


def _values_read(
    fold: PairFold, name: str, targets: Floats, start: Starts | None, settings: ProbeSettings
) -> dict[str, tuple[Floats, float]]:
    """Return predictions [states, m] of P of tested pairs and their losses, by the source of the probe."""
    data = fold.data
    if start is None:
        # dim 0: `slp` and `mlp` do not rescale features.
        z = data.z if settings.scaled else data.raw
        inputs: dict[str, tuple[Callable[[Ints], Floats], int]] = {
            "both": (lambda pairs: np.hstack([z[data.start[pairs]], z[data.end[pairs]]]), 0),
            "start": (lambda pairs: z[data.start[pairs]], 0),
            "end": (lambda pairs: z[data.end[pairs]], 0),
            "difference": (lambda pairs: z[data.end[pairs]] - z[data.start[pairs]], 0),
        }
        y = targets if settings.scaled else targets - data.values.min()
    else:
        inputs, y = {"both": (fold.both, 2 * fold.dim), "difference": (fold.difference, fold.dim)}, targets
        if data.originals is not None:
            inputs["end"] = (lambda pairs: fold.x[data.end[pairs]], fold.dim)
    offset = y[0, 0] - targets[0, 0]
    values: dict[str, tuple[Floats, float]] = {}
    for kind, (features, dim) in inputs.items():
        wanted = y if kind == "both" else y[:, :1]
        train, held = ((features(pairs), wanted[pairs]) for pairs in fold.parts[:2])
        groups = (1,) * wanted.shape[1]
        parts, losses = fit_groups(
            name, train, held, features(fold.parts[2]), groups, settings.scaled, settings.seed, dim
        )
        values[kind] = (parts[0][:, :, 0] - offset, float(losses[0]))
        for k, part in enumerate(parts[1:], 1):
            values[f"shuffled {k}"] = (part[:, :, 0] - offset, float(losses[k]))
    if start is not None:
        values["start"] = (start.values[0][None, start.start], start.values[1])
        if data.originals is None:
            # P of (z′, z) is minus P of (z, z′).
            values["end"] = (-start.values[0][None, start.end], start.values[1])
            values["labels"] = ((start.levels[0][start.end] - start.levels[0][start.start])[None], start.levels[1])
    elif data.originals is None:
        values["labels"] = _trained_levels(fold, name, settings)
    return values


def _trained_levels(fold: PairFold, name: str, settings: ProbeSettings) -> tuple[Floats, float]:
    """Return P of tested pairs as the difference of the levels that `slp` or `mlp` reads from single embeddings."""
    data = fold.data
    z = data.z if settings.scaled else data.raw
    level = data.level[:, None] - (0.0 if settings.scaled else data.level.min())
    train, held, tested = (np.unique(data.start[pairs]) for pairs in fold.parts)
    first, second = ((z[rows], level[rows]) for rows in (train, held))
    (levels,), losses = fit_groups(name, first, second, z[tested], (1,), settings.scaled, settings.seed)
    start, end = (np.searchsorted(tested, rows[fold.parts[2]]) for rows in (data.start, data.end))
    return (levels[:, end] - levels[:, start])[:, :, 0], float(losses[0])


# ----- the numbers
def _ends(data: Paired, errors: Floats) -> Floats:
    """Return sums of errors [pairs] over the pairs that end in a row, for the rows in which a pair ends."""
    sums: Floats = np.bincount(data.end, errors).astype(np.float64)[np.unique(data.end)]
    return sums


def _reference(candidates: Sequence[Floats], least: float) -> Floats:
    """Return the errors [pairs] with the smallest mean; zeros if this mean is at most `least`."""
    means = [float(errors.mean()) for errors in candidates]
    best = candidates[int(np.argmin(means))]
    return best if min(means) > least else np.zeros_like(best)


def _foretold_numbers(data: Paired, foretold: Foretold, settings: ProbeSettings) -> tuple[dict[str, Any], Floats]:
    """Return the numbers of R, and the scores of the rows."""
    controls, dim = foretold.controls, data.z.shape[1]
    # If no step exceeds rounding, there is nothing to predict.
    still = _reference([controls["still"]], ROUNDING**2 * dim)
    references = {
        name: _reference([still, controls["mean"], errors.mean(axis=0)], ROUNDING * float(still.mean()))
        for name, errors in foretold.blind.errors.items()
    }
    best, reference = foretold.knowing.errors["best"], references["best"]
    scores = ratio_scores(_ends(data, best.mean(axis=0)), _ends(data, reference))
    by_probe = {name: explained_share(foretold.knowing.errors[name], references[name]) for name in settings.probes}
    return {
        "r_equivariance": explained_share(best, reference),
        **{f"r_{name}": by_probe.get(name) for name in PROBES},
        "spread": state_spread(best, reference) if settings.states > 1 else None,
        "r_explained": explained_share(best, still),
        "r_translate": explained_share(controls["translate"], reference),
        "r_level_top1": float(controls["level"].mean()),
        "r_level_chance": float(controls["level_chance"].mean()),
        "r_context_top1": float(controls["context"].mean()),
        "r_context_chance": float(controls["context_chance"].mean()),
        "r_cosine": float(controls["cosine"].mean()),
        "identity_cosine": float(controls["identity_cosine"].mean()),
        "r_mse": float(best.mean()) / dim,
        "identity_mse": float(still.mean()) / dim,
    }, scores


def _read_numbers(
    data: Paired, trials: dict[str, Trials], references: Sequence[Floats], settings: ProbeSettings
) -> tuple[dict[str, Any], Floats, Floats]:
    """Return the numbers of P, and the scores of the rows in `p` and in `p_gain`."""
    best = {kind: trial.errors["best"] for kind, trial in trials.items()}
    reference = references[0]
    scores = ratio_scores(_ends(data, best["both"].mean(axis=0)), _ends(data, reference))
    alone = _reference([best[kind].mean(axis=0) for kind in ("start", "end")], ROUNDING * float(reference.mean()))
    gains = ratio_scores(_ends(data, best["both"].mean(axis=0)), _ends(data, alone))
    by_probe = {name: explained_share(trials["both"].errors[name], reference) for name in settings.probes}
    shuffled = [explained_share(best[f"shuffled {k}"], references[k]) for k in range(1, len(references))]
    return (
        {
            "p": explained_share(best["both"], reference),
            **{f"p_{name}": by_probe.get(name) for name in PROBES},
            "p_spread": state_spread(best["both"], reference) if settings.states > 1 else None,
            "p_start": explained_share(best["start"], reference),
            "p_end": explained_share(best["end"], reference),
            "p_difference": explained_share(best["difference"], reference),
            "p_from_labels": None if data.originals is not None else explained_share(best["labels"], reference),
            "p_gain": explained_share(best["both"], alone),
            "shuffled_p": float(np.mean(shuffled)),
        },
        scores,
        gains,
    )


VERSION = 2
"""Increases with every change of code or constants that can change a number."""


def _of_probes(score: str) -> dict[str, Fields]:
    """Return the measures of R or P by each probe alone."""
    closed = {"ridge": "ridge regression alone", "kernel": "kernel ridge regression alone"}
    trained = {"slp": "a linear layer", "mlp": "a network of two hidden layers"}
    measures = {name: ratio(f"{score} {name}", f"{score} of {words}", shown=False) for name, words in closed.items()}
    for name, words in trained.items():
        meaning = f"{score} of {words} that is trained by gradient descent"
        measures[name] = ratio(f"{score} {name.upper()}", meaning, fitted=True, shown=False)
    return {f"{score.lower()}_{name}": fields for name, fields in measures.items()}


def _spread(score: str) -> Fields:
    """Return the measure of the spread of R or P over random states."""
    meaning = f"standard deviation of {score} over random states of probes that are trained by gradient descent"
    return measure(f"{score} spread", meaning, range=(0.0, MOST), digits=4, fitted=True, shown=False)


MEASURES = {
    "r_equivariance": ratio(
        "Equivariance",
        "R: gain from knowing the parameter when predicting the changed embedding",
        column="score",
        outside="Scores of single samples can lie above 1: they are contributions to a "
        "ratio, and a sample that is hard to predict raises its denominator.",
    ),
    **_of_probes("R"),
    "spread": _spread("R"),
    "r_explained": ratio(
        "R explained", "share of the squared step from z to z′ that is predicted; half for random embeddings"
    ),
    "r_translate": ratio("R translation", "R with one step for each parameter, independent of z"),
    "r_level_top1": share(
        "R level top-1",
        "how often the prediction is nearer to the true z′ than to the other levels of its orbit",
        null="r_level_chance",
    ),
    "r_level_chance": share("R level chance", "level top-1 of a random order", shown=False),
    "r_context_top1": share(
        "R context top-1",
        "how often the prediction is nearer to the true z′ than to the same level in other contexts",
        null="r_context_chance",
    ),
    "r_context_chance": share("R context chance", "context top-1 of a random order", shown=False),
    "r_cosine": measure("R cosine", "mean cosine of the prediction and z′", null="identity_cosine", shown=False),
    "identity_cosine": measure(
        "identity cosine", "mean cosine of z and z′: the score without any prediction", shown=False
    ),
    "r_mse": measure(
        "R MSE",
        "mean squared error of the prediction, in units of the mean variance of an embedding's coordinates",
        range=(0.0, MOST),
        shown=False,
    ),
    "identity_mse": measure(
        "identity MSE", "the same error of z as the prediction of z′", range=(0.0, MOST), shown=False
    ),
    "p": ratio(
        "P",
        "R² of the parameter as read from z and z′",
        null="shuffled_p",
        column="score_p",
        outside="Scores of single samples can lie above 1: they are contributions to a ratio.",
    ),
    **_of_probes("P"),
    "p_spread": _spread("P"),
    "p_start": ratio("P from z", "R² of the parameter as read from z alone"),
    "p_end": ratio("P from z′", "R² of the parameter as read from z′ alone", shown=False),
    "p_difference": ratio("P from z′ − z", "R² of the parameter as read from the step z′ − z", shown=False),
    "p_from_labels": ratio(
        "P from levels",
        "R² of the parameter as the difference of levels read from z′ and z separately",
    ),
    "p_gain": ratio(
        "P gain",
        "gain of reading the parameter from both embeddings over reading it from the better one alone",
        column="score_p_gain",
        outside="Scores of single samples can lie above 1: they are contributions to a ratio.",
    ),
    "shuffled_p": ratio("P shuffled", "P of parameters permuted among blocks of samples", shown=False),
    "pairs": count("pairs", "number of pairs, each tested once"),
    "n": count("n", "number of samples in which a pair ends"),
}
"""Description of each number that `equivariance` returns, by name, the score first."""
