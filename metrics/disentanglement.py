"""Disentanglement: can a factor be read as well if another factor takes values absent from training?

Published scores count the single dimensions that respond to a factor. This depends on the basis, which is arbitrary for
most encoders: a rotated embedding holds the same information but scores differently. So this score tests use instead.
For each ordered pair of factors, a probe of the first is trained where the second has a random half of its levels, and
tested where it has the other half. It is reported with the same probe tested on the training levels, the effect of the
second factor on the probe of the first, the angles between the directions of both, shares of variance, and, on request,
DCI, MIG, SAP, modularity and explicitness, each also after a random rotation and after PCA. If changed copies of the
clips are given, it measures the effect of a transform on the probes instead (arXiv 2505.06224, section III). All in
float64.

>>> rng = np.random.default_rng(0)
>>> pitch, rate, loudness = (grid.ravel() for grid in np.meshgrid(*[np.arange(4.0)] * 3))
>>> factors = {"pitch": pitch, "rate": rate, "loudness": loudness}
>>> axes = np.linalg.qr(rng.normal(size=(16, 3)))[0].T
>>> separate = np.column_stack([pitch, rate, loudness]) @ axes
>>> result = disentanglement(separate, factors)
>>> round(result["unseen"], 3), round(result["leak"], 3), round(result["overlap"], 3), round(result["main"], 3)
(1.0, 0.0, 0.0, 1.0)
>>> products = np.column_stack([pitch, rate, loudness, 1 + 0 * pitch]) @ rng.normal(size=(4, 16))
>>> entangled = disentanglement(products**2, factors)
>>> entangled["seen_r2"] > 0.99 > 0.9 > entangled["unseen_r2"]
True
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import ROUNDING, Floats, Ints, group_sums, read_matrix
from .columns import UNBOUNDED, check_copies, copy_parameters, owner_means, quarter_numbers, read_blocks, read_relations
from .evaluated import AXES as _CITATION
from .evaluated import MOST, count, measure, metric_class, ratio, share
from .factors import (
    Factor,
    ProbeAnswers,
    ProbeData,
    answers_across_folds,
    best_answers,
    combination_codes,
    fold_codes,
    joint_codes,
    linearised_ratios,
    pooled_r2,
    read_factors,
    seen_score,
    tested_score,
)
from .literature import LITERATURE_MEASURES, literature_scores
from .probing import (
    probe_names,
    standardised_rows,
)

HALVES = 5
"""Number of random halves of a factor's levels used for training; the other half is unseen."""

LEFT_OUT = 8
"""Largest number of parts of levels that are left out one after the other to choose a penalty."""

READ = 3.0
"""A factor counts as read if its probe scores above this many times 1/√n on n clips: shuffled labels give a correlation
(classes: an accuracy above chance) with a standard deviation of about 1/√n, so one in 700 passes."""

FAINTEST = 1e-12
"""The smallest share of a factor's own effect in the spread of a probe's answers over all clips: below, the effect is
squared rounding error of answers that follow other factors alone."""

DIRECTIONS = 3
"""Number of the strongest directions of a factor's main effects used for the angles of `overlap`."""


def disentanglement(
    embeddings: ArrayLike,
    factors: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    folds: Sequence[int] | None = None,
    blocks: Sequence[Any] | None = None,
    *,
    base: ArrayLike | None = None,
    parameters: Any = None,
    probes: Sequence[str] = ("ridge", "kernel"),
    scaled: bool = True,
    literature: bool = False,
    seed: int = 0,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how separately embeddings represent the factors of n clips, with controls.

    - `embeddings` [n, dim]. `factors`: for each factor's name n labels, numbers or strings (which are classes); or n
      mappings, each clip's labels by those names. Levels are the different labels; a factor with more than 16 different
      numbers is cut into 8 levels of about equally many clips. Best are crossed factors, where every combination of
      levels occurs.
    - `blocks` [n], strings or integers: a block is never both trained on and tested, except for `unseen`; the default
      is the combinations of levels (with `base`, an original with its copies). `folds` [n], integers, at least 3
      different, no block in two; by default blocks are divided into 5 folds by `seed`.
    - `probes`: one or more of PROBES; each time the one that validates best is used. `slp` and `mlp` are means over 3
      random states; with `scaled` False they see unscaled features and numbers, as the probes of arXiv 2505.06224 do.
    - `base` [n], integers: for a changed copy the row of its original, for an original −1. Then only the effect of the
      change on the probes (`shift…`) is measured; originals without copies are used for training only. Labels of copies
      are the labels *after* the change. `parameters` [n], numbers: how strongly copies were changed (None or NaN for
      originals), for the quarters.
    - `literature`: also compute published scores; slow. `seed`: of halves, folds, random states and rotation.

    Results are means over ordered pairs of factors (F1, F2), or over factors; None if they do not apply:

    - `unseen`: the probe of F1 is trained on the clips whose F2 has a level of a random half, and tested on the others:
      r of answers and labels, for classes (accuracy − chance)/(1 − chance), with chance the accuracy of always giving
      the most common class in training. Mean over 5 halves, drawn in complementary pairs, so that each level is tested.
      The penalty is the best one when the seen levels are left out one after the other (if a half is one level: one
      fold). `unseen_r2`: R² against the training mean, for factors of numbers;
    - `seen`, `seen_r2`: unseen and unseen_r2 for the clips of the seen half, each by a probe trained on the other folds
      of that half, the penalty chosen on the next fold. r is computed within folds (of 3 clips or more), since r over
      folds has a mean below 0 without knowledge;
    - `spread`: standard deviation of `unseen` over random states; None with closed forms alone, which have none;
    - `leak` = E(f(z′) − f(z))² over clips that differ in F2 alone, divided by its value over clips that differ in F1
      alone, where f is the probe of F1 trained on other folds. 0 is best; at 1 F2 moves the answer as much as F1. None
      if F1 is not read or has no effect to compare with: if `seen` of its probes over all folds is not above 3/√n
      (READ), or the effect of F1 is rounding error (FAINTEST); such pairs are left out of the mean;
    - `overlap`: mean squared cosine of the principal angles between the 3 strongest directions of the main effects of
      F1 and of F2, by least squares; `overlap_chance`: its value for random directions, 3/dim;
    - `main`, `pairs_share`, `rest`: shares of variance of the main effects of all factors, of the interactions of two,
      and of everything else; only if each combination of levels occurs equally often;
    - `shift_before`, `shift_after`: R² (classes: accuracy above chance) of originals and of their copies, by probes
      trained on the originals of other folds; `shift`: RMSE of copies minus RMSE of originals (arXiv 2505.06224,
      section III), in standard deviations of the label; for classes the difference of error rates. `shift_quarter_1` to
      `_4`: shift for the copies in each quarter of the order of their parameters. Each original counts equally;
    - `n`: number of clips, with `base`, of originals that have copies;
    - with `literature`, defined as in disentanglement_lib, on arrays: `dci_disentanglement`, `dci_completeness` and
      `dci_informativeness` (Eastwood and Williams 2018; by lasso on standardised dimensions; the last is R² or accuracy
      above chance on the first fold, on which nothing is trained), `mig` (Chen et al. 2018; histograms of 20 bins),
      `sap` (Kumar et al. 2018), `modularity` and `explicitness` (Ridgeway and Mozer 2018; the latter is an area under
      the ROC curve, chance ½). `…_rotated`: after a random rotation; `…_pca`: on principal components;
    - with return_scores: `scores` [n], linearised contributions of the clips to `unseen`, which is exactly their mean
      (for r and standardised answers u and labels v: r + u·v − r (u² + v²)/2); `scores_shift_before` and
      `scores_shift_after`: contributions of originals to R² in the order of rows; `by_pair`, a list of dictionaries
      with the numbers of each pair, its `factor`, `over`, which is "copies" with `base`, and without it `scores`,
      contributions to its `unseen`. None if they do not apply.

    Embeddings that are all the same score 0. With closed forms only the published scores depend on the unit, origin or
    rotation of the embeddings.

    Sources: arXiv 2505.06224, section III, for `shift`; unseen levels, leak, overlap and shares are ours.

    Raises ValueError if embeddings are not finite [n, dim], lengths differ, labels of a factor are neither all numbers
    nor all strings or are all the same, there are fewer than 2 factors (1 with `base`), 3 folds or 5 blocks, a block
    lies in two folds, a class is in one fold alone or does not occur with the levels used for training, `base` names no
    original, or a probe is unknown.

    >>> clips = [(tone, level) for tone in "abcd" for level in range(4)]
    >>> z = np.array([[tone == "a", tone == "b", tone == "c", level] for tone, level in clips], dtype=float)
    >>> tones, levels = zip(*clips, strict=True)
    >>> result = disentanglement(z, {"tone": tones, "level": levels}, return_scores=True)
    >>> [(pair["factor"], pair["over"], round(pair["unseen"], 3)) for pair in result["by_pair"]]
    [('tone', 'level', 1.0), ('level', 'tone', 1.0)]
    """
    z = read_matrix("embeddings", embeddings)
    table = read_factors(factors, len(z))
    options: dict[str, Any] = {"probes": probe_names(probes), "scaled": scaled, "seed": seed}
    if base is not None:
        if literature:
            raise ValueError("literature=True needs clips without base. Give the originals alone.")
        result = _shift_numbers(z, table, base, parameters, folds, blocks, options)
    else:
        if parameters is not None:
            raise ValueError("parameters are given without base. Give base too: the row of each copy's original.")
        if len(table) < 2:
            raise ValueError(f"Without base at least 2 factors are needed; got only {table[0].name!r}.")
        fold = fold_codes(folds, *read_blocks(combination_codes(table) if blocks is None else blocks, len(z)), seed)
        data = ProbeData(standardised_rows(z), z, fold, **options)
        result = _pair_numbers(data, table)
        if literature:
            result |= literature_scores(z, table, fold, seed)
    lists = ("scores", "scores_shift_before", "scores_shift_after", "by_pair")
    names = [*MEASURES, *(lists if return_scores else ())]
    return {name: result.get(name) for name in names}


Disentanglement = metric_class(
    disentanglement,
    {"embeddings": "numbers", "factors": "json"},
    citation=_CITATION,
)


# ----- pairs of factors
def _pair_numbers(data: ProbeData, factors: Sequence[Factor]) -> dict[str, Any]:
    """Return all numbers of ordered pairs of factors."""
    n, everything = len(data.x), np.arange(len(data.x))
    _check_learnt(factors, data.folds)
    pairs: dict[tuple[str, str], dict[str, Any]] = {
        (one, other): {"factor": one, "over": other} for one, other in _ordered(factors)
    }
    columns, states = np.zeros(n), np.zeros(data.states)
    for over in factors:
        rest = [factor for factor in factors if factor is not over]
        for factor, unseen, seen in zip(rest, *_transfers(data, rest, over), strict=True):
            # Deviations of the rows' contributions from the mean over halves, which average to 0, plus that mean.
            column, of_halves = np.zeros(n), []
            for rows, answers in unseen:
                scores, contributions = tested_score(answers)
                column[rows] += (contributions - scores.mean()) * n / len(rows) / len(unseen)
                of_halves.append(scores)
            values = np.mean(of_halves, axis=0)
            columns += column / len(pairs)
            states += values / len(pairs)
            met = [seen_score(part, data.folds[rows]) for rows, part in seen]
            weights = [weight for _, weight in met]
            pairs[factor.name, over.name] |= {
                "unseen": float(values.mean()),
                "seen": float(np.average([value for value, _ in met], weights=weights)) if any(weights) else None,
                "unseen_r2": pooled_r2([part for _, part in unseen]),
                "seen_r2": pooled_r2([part for _, part in seen]),
                "scores": (column + float(values.mean())).tolist(),
            }
    everywhere = answers_across_folds(data, factors, everything, everything)
    for (one, other), leak in _leaks(factors, everywhere, data.folds).items():
        pairs[one, other]["leak"] = leak
    shares = _shares(data.x, factors)
    for key, overlap in _overlaps(data.x, factors).items():
        pairs[key] |= overlap | {"main": shares.get(key[:1]), "pairs_share": shares.get(tuple(sorted(key)))}
    main, crossed = (float(sum(share for key, share in shares.items() if len(key) == size)) for size in (1, 2))
    return {
        **{name: _average([pair[name] for pair in pairs.values()]) for name in PAIR_NUMBERS},
        "spread": float(states.std(ddof=1)) if data.states > 1 else None,
        "main": main if shares else None,
        "pairs_share": crossed if shares else None,
        # If all embeddings are equal, nothing varies.
        "rest": max(float(data.x.any()) - main - crossed, 0.0) if shares else None,
        "n": n,
        "scores": (columns + float(states.mean())).tolist(),
        "by_pair": list(pairs.values()),
    }


PAIR_NUMBERS = ("unseen", "seen", "unseen_r2", "seen_r2", "leak", "overlap", "overlap_chance")
"""The numbers averaged over pairs."""

Tested = list[tuple[Ints, ProbeAnswers]]
"""The rows of each half, and the answers for them."""


def _transfers(data: ProbeData, factors: Sequence[Factor], over: Factor) -> tuple[list[Tested], list[Tested]]:
    """Return for each factor the answers on unseen levels of `over`, and on seen levels."""
    unseen: list[Tested] = [[] for _ in factors]
    seen: list[Tested] = [[] for _ in factors]
    for turn, (met, new) in enumerate(_halves(len(over.levels), data.seed)):
        train, test = (np.flatnonzero(np.isin(over.codes, half)) for half in (met, new))
        for factor in factors:
            missing = np.setdiff1d(factor.codes, factor.codes[train])
            if factor.classes and len(missing):
                levels = ", ".join(over.levels[level] for level in met)
                raise ValueError(
                    f"Class {factor.levels[missing[0]]!r} of factor {factor.name!r} never occurs with {over.name} "
                    f"{levels}, so it would be tested without training; a class must occur with more than half of "
                    f"the levels of {over.name!r}."
                )
        groups = np.array_split(met, min(len(met), LEFT_OUT)) if len(met) > 1 else []
        left_out = [train[np.isin(over.codes[train], group)] for group in groups]
        left_out = left_out or [train[data.folds[train] == fold] for fold in np.unique(data.folds[train])]
        if len(left_out) < 2:
            raise ValueError(f"All clips whose {over.name} is {over.levels[met[0]]} are in one fold; two are needed.")
        answers = best_answers(data, factors, train, left_out, test, turn)
        for number, (factor, deviations) in enumerate(zip(factors, answers, strict=True)):
            means = np.broadcast_to(factor.targets[train].mean(axis=0), deviations.shape[1:])
            unseen[number].append((test, ProbeAnswers(factor.at(test), deviations, means)))
        for number, part in enumerate(answers_across_folds(data, factors, train, train, turn) or []):
            seen[number].append((train, part))
    return unseen, seen


def _halves(count: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return random halves of levels and their complements, in complementary pairs, none twice."""
    rng, halves = np.random.default_rng(seed), dict[tuple[int, ...], tuple[Ints, Ints]]()
    for _ in range(20 * HALVES):
        order = rng.permutation(count)
        first, second = np.sort(order[: count // 2]), np.sort(order[count // 2 :])
        for half, rest in ((second, first), (first, second)):
            if len(halves) < HALVES:
                halves.setdefault(tuple(half.tolist()), (half, rest))
    return list(halves.values())


def _check_learnt(factors: Sequence[Factor], folds: Ints) -> None:
    """Raise ValueError if a class has no training rows when it is tested."""
    for factor in factors:
        for level in range(len(factor.levels) if factor.classes else 0):
            where = np.unique(folds[factor.codes == level])
            if len(where) < 2:
                raise ValueError(
                    f"Class {factor.levels[level]!r} of factor {factor.name!r} is only in fold {where[0]}, so no probe "
                    "can learn it before the test. It needs two blocks in different folds."
                )


def _leaks(
    factors: Sequence[Factor], answers: Sequence[ProbeAnswers] | None, folds: Ints
) -> dict[tuple[str, str], float | None]:
    """Return for pairs of factors how much the second moves the answer for the first, relative to the first."""
    leaks: dict[tuple[str, str], float | None] = dict.fromkeys(_ordered(factors))
    for one, part in zip(factors, answers or (), strict=bool(answers)):
        moves = {factor.name: _moved(part.deviations, factor, factors, folds) for factor in factors}
        unit = moves.pop(one.name)
        if unit is None:
            continue
        # Check that answers predict the factor, and change with it by more than rounding.
        score, count = seen_score(part, folds)
        centred = part.deviations - part.deviations.mean(axis=1, keepdims=True)
        spread = float(np.square(centred).sum(axis=(0, 2)).mean())
        if not count or score <= READ / np.sqrt(count) or unit <= FAINTEST * spread:
            continue
        for name, move in moves.items():
            leaks[one.name, name] = None if move is None else min(move / unit, UNBOUNDED)
    return leaks


def _ordered(factors: Sequence[Factor]) -> list[tuple[str, str]]:
    return list(permutations((factor.name for factor in factors), 2))


def _moved(answers: Floats, changed: Factor, factors: Sequence[Factor], folds: Ints) -> float | None:
    """Return the mean squared distance of the answers for two clips of a fold that differ in one factor alone.

    Returns None if no two clips do.
    """
    rest = [factor.codes for factor in factors if factor is not changed]
    flat = np.moveaxis(answers, 0, 1).reshape(len(folds), -1)
    near, pairs = _pair_squares(flat, joint_codes([*rest, folds]))
    same, twins = _pair_squares(flat, joint_codes([*rest, changed.codes, folds]))
    return max(near - same, 0.0) / (pairs - twins) if pairs > twins else None


def _pair_squares(x: Floats, groups: Ints) -> tuple[float, int]:
    """Return the sum of |x_i − x_j|² over pairs of rows of one group, and the number of pairs."""
    counts = np.bincount(groups)
    squares = counts @ np.bincount(groups, np.square(x).sum(axis=1)) - float(np.square(group_sums(x, groups)).sum())
    return float(squares), int((counts * (counts - 1) // 2).sum())


def _shares(x: Floats, factors: Sequence[Factor]) -> dict[tuple[str, ...], float]:
    """Return shares of variance of main effects and of interactions of two, by sorted names; empty if not crossed."""
    cells = np.bincount(joint_codes([factor.codes for factor in factors]))
    if len(cells) != np.prod([len(factor.levels) for factor in factors]) or np.ptp(cells):
        return {}
    total = float(np.square(x).sum()) or 1.0
    shares: dict[tuple[str, ...], float] = {
        (factor.name,): _mean_squares(x, factor.codes) / total for factor in factors
    }
    for one, other in combinations(factors, 2):
        both = _mean_squares(x, joint_codes([one.codes, other.codes])) / total
        key = tuple(sorted((one.name, other.name)))
        shares[key] = max(both - shares[one.name,] - shares[other.name,], 0.0)
    return shares


def _mean_squares(x: Floats, groups: Ints) -> float:
    """Return the sum over rows of the squared length of the mean of the row's group."""
    return float((np.square(group_sums(x, groups)).sum(axis=1) / np.bincount(groups)).sum())


def _overlaps(x: Floats, factors: Sequence[Factor]) -> dict[tuple[str, str], dict[str, float]]:
    """Return the overlap of the main effects' directions for pairs of factors, and the overlap of random directions."""
    designs = [np.eye(len(factor.levels))[factor.codes] for factor in factors]
    design = np.hstack(designs)
    effects = np.linalg.lstsq(design - design.mean(axis=0), x, rcond=ROUNDING)[0]
    # For each factor the strongest orthonormal directions of its main effects, [at most DIRECTIONS, dim].
    directions, spread, start = {}, float(np.sqrt(np.square(x).sum())), 0
    for factor, columns in zip(factors, designs, strict=True):
        levels, counts = effects[start : start + columns.shape[1]], columns.sum(axis=0)
        start += columns.shape[1]
        weighted = (levels - counts @ levels / counts.sum()) * np.sqrt(counts)[:, None]
        _, sizes, axes = np.linalg.svd(weighted, full_matrices=False)
        directions[factor.name] = axes[:DIRECTIONS][sizes[:DIRECTIONS] > ROUNDING * spread]
    overlaps = {}
    for one, other in _ordered(factors):
        u, v = directions[one], directions[other]
        least, most = sorted((len(u), len(v)))
        overlaps[one, other] = {
            "overlap": float(np.square(u @ v.T).sum()) / least if least else 0.0,
            "overlap_chance": most / x.shape[1] if least else 0.0,
        }
    return overlaps


def _average(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


# ----- a change of clips
def _shift_numbers(
    z: Floats,
    factors: Sequence[Factor],
    base: Any,
    parameters: Any,
    folds: Any,
    blocks: Any,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return all numbers of originals and their copies."""
    originals, copies, owners = read_relations(base, len(z))
    quarters = None if parameters is None else quarter_numbers(copy_parameters(parameters, copies, len(z)))
    rows = np.arange(len(z))
    rows[copies] = originals[owners]
    block, names = read_blocks(rows if blocks is None else blocks, len(z))
    check_copies(block, names, copies, originals[owners])
    data = ProbeData(standardised_rows(z), z, fold_codes(folds, block, names, options["seed"]), **options)
    for factor in factors:
        levels = np.unique(factor.codes[originals])
        if len(levels) < 2:
            raise ValueError(
                f"All originals have the label {factor.levels[levels[0]]} of factor {factor.name!r}; two levels are "
                "needed."
            )
        new = copies[~np.isin(factor.codes[copies], levels)]
        if factor.classes and len(new):
            raise ValueError(
                f"Row {new[0]}, a copy, has the label {factor.levels[factor.codes[new[0]]]!r} of factor "
                f"{factor.name!r}, which no original has, so it would be tested without training."
            )
    _check_learnt([factor.at(originals) for factor in factors], data.folds[originals])
    answers = answers_across_folds(data, factors, originals, np.arange(len(z)))
    # The other originals are used for training only.
    copied, owners = np.unique(owners, return_inverse=True)
    shifts = [_shift(part, originals[copied], copies, owners, quarters) for part in answers or ()]
    pairs: list[dict[str, Any]] = [
        {"factor": factor.name, "over": "copies", **numbers}
        for factor, (numbers, _) in zip(factors, shifts, strict=True)
    ]
    columns = np.mean([contributions for _, contributions in shifts], axis=0)
    return {
        **{name: _average([pair[name] for pair in pairs]) for name in shifts[0][0]},
        "n": len(copied),
        "scores_shift_before": columns[0].tolist(),
        "scores_shift_after": columns[1].tolist(),
        "by_pair": pairs,
    }


def _shift(
    answers: ProbeAnswers, originals: Ints, copies: Ints, owners: Ints, quarters: Ints | None
) -> tuple[dict[str, float | None], Floats]:
    """Return the numbers of a factor, and the originals' contributions before and after, [2, originals]."""
    errors, room = answers.errors()
    before, unit = errors[:, originals], room[originals]
    after = np.stack([owner_means(row, owners) for row in errors[:, copies]])
    (first, start), (last, end) = (
        linearised_ratios(before, np.broadcast_to(unit, before.shape)),
        linearised_ratios(after, np.broadcast_to(owner_means(room[copies], owners), after.shape)),
    )

    def distance(values: Floats) -> float:
        """Return how far errors exceed the errors before the change."""
        if answers.factor.classes:
            return float(values.mean() - before.mean())
        roots = np.sqrt(values.mean(axis=1)) - np.sqrt(before.mean(axis=1))
        return float(roots.mean() / (np.sqrt(unit.mean()) or 1.0))

    parts = [copies[quarters == number] if quarters is not None else copies[:0] for number in range(4)]
    numbers = {
        "shift_before": float(1 - first.mean()),
        "shift_after": float(1 - last.mean()),
        "shift": distance(after),
        **{
            f"shift_quarter_{place}": distance(errors[:, part]) if len(part) else None
            for place, part in enumerate(parts, 1)
        },
    }
    return numbers, 1 - np.stack([start, end])


VERSION = 2
"""Increases with every change of code or constants that can change a number."""

_BASES = {"rotated": ("rotated", "after a random rotation"), "pca": ("PCA", "on principal components")}
"""Further bases of the embeddings for the published scores."""

_QUARTERS = (
    ("first", "with the smallest parameters"),
    ("second", "in the second quarter by parameter"),
    ("third", "in the third quarter by parameter"),
    ("last", "with the largest parameters"),
)

MEASURES = {
    "unseen": ratio(
        "Disentanglement",
        "r (classes: accuracy above chance) of a factor's probe at levels of another factor absent from training",
        column="score",
        outside="Scores of single clips can lie outside the range: they are contributions to a "
        "correlation, and a clip far from the mean on both sides contributes more than 1.",
    ),
    "seen": ratio("seen", "r (classes: accuracy above chance) at levels of the other factor used for training"),
    "unseen_r2": ratio("unseen R²", "R² of numeric factors at levels of another factor absent from training"),
    "seen_r2": ratio("seen R²", "R² of numeric factors at levels of the other factor used for training", shown=False),
    "spread": measure(
        "sd of fits",
        "standard deviation of the score over random states of the probes slp and mlp",
        range=(0.0, MOST),
        shown=False,
    ),
    "leak": measure(
        "leak",
        "how much another factor moves a factor's probe, relative to the factor itself; best 0; none if not read",
        range=(0.0, MOST),
    ),
    "overlap": share(
        "overlap",
        "mean squared cosine of the angles between directions of two factors; 0 where orthogonal",
        null="overlap_chance",
        less_is_better=True,
    ),
    "overlap_chance": share("overlap chance", "overlap of random directions", shown=False),
    "main": share("main effects", "share of variance of the main effects of all factors"),
    "pairs_share": share("interactions", "share of variance of interactions of two factors"),
    "rest": share("rest", "share of variance of interactions of more factors and of everything else", shown=False),
    "shift_before": ratio(
        "before",
        "R² (classes: accuracy above chance) of the factors' probes on originals",
        column="score_shift_before",
        outside="Scores of single originals are contributions to a ratio, which can lie above 1.",
    ),
    "shift_after": ratio(
        "after",
        "R² (classes: accuracy above chance) of the same probes on changed copies",
        column="score_shift_after",
        outside="Scores of single originals are contributions to a ratio, which can lie above 1.",
    ),
    "shift": measure(
        "shift",
        "RMSE of probes on changed copies minus RMSE on originals, in standard deviations of the label",
        range=(-MOST, MOST),
    ),
    **{
        f"shift_quarter_{number}": measure(
            f"{ordinal} quarter", f"shift of the quarter of copies {which}", range=(-MOST, MOST), shown=number in (1, 4)
        )
        for number, (ordinal, which) in enumerate(_QUARTERS, 1)
    },
    "n": count("n", "number of clips; of originals if there are copies", 2.0),
    **LITERATURE_MEASURES,
    **{
        f"{name}_{basis}": fields
        | {"heading": f"{fields['heading']}, {short}", "meaning": f"{fields['heading']} {where}"}
        for basis, (short, where) in _BASES.items()
        for name, fields in LITERATURE_MEASURES.items()
    },
}
"""Description of each number that `disentanglement` returns, by name, the score first."""
