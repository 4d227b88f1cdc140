"""Informativeness: how well a label can be read from embeddings, with what reading the wrong label gives as its null.

A probe is trained on the embeddings z of labelled clips and tested on other clips (arXiv 2505.06224, section III). Of
numbers the score is R², of classes the share of what always giving the same answer gets wrong that the probe gets
right. Clips of one block, which share a context, are trained on or tested, never both.

The paper's probes, trained by gradient descent on features as they come, measure their own convergence beside what is
in the embeddings: features fourteen times as large make them fail. So by default probes are ridge regression and
kernel ridge regression in closed form, which depend on neither unit nor basis of the features and have no random
state. All in float64.

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

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import evaluate
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST_BLOCKS = 5
"""With fewer, means over blocks say little of others."""

SHUFFLES = 5
"""Permutations of the labels whose mean score is the null; 1 where probes are trained by gradient descent."""

_LARGEST = 1e150  # beyond this a float64 norm overflows

_DESCRIPTION = """\
Informativeness measures how well a label can be read from embeddings: R² of numbers, accuracy above chance of classes,
on blocks of clips that the probe was not trained on. Probes are ridge and kernel ridge regression, on request the
linear layer and the MLP of arXiv 2505.06224. It is reported with the score of shuffled labels.
"""

_CITATION = """\
@misc{representation_evaluation_2025,
  author = {Plachouras, Christos and Guinot, Julien and Fazekas, George and Quinton, Elio and Benetos, Emmanouil
            and Pauwels, Johan},
  title = {Towards a Unified Representation Evaluation Framework Beyond Downstream Tasks},
  year = {2025},
  eprint = {2505.06224},
  archivePrefix = {arXiv},
  note = {IJCNN 2025}
}
"""

_INPUTS = """
Args:
    embeddings: [n, dim], one row for each clip.
    labels: n numbers, or n strings, which are classes (also where they look like numbers).
    folds: n integers, at least 3 different: each fold is tested once, by probes that are trained without it.
    blocks: n strings or integers: what clips share, such as a recording or a speaker; no block is in two folds.
    probes: the probes to choose from in each fold, of "ridge", "kernel", "slp" and "mlp".
    scaled: False for slp and mlp on features and labels as they come.
    seed: of the permutations, and of slp and mlp.
    return_scores: also return `scores`, one for each clip, whose mean is the score.
Returns:
    a dictionary, described at `informativeness` in the module: informativeness, ridge, kernel, slp, mlp, spread,
    shuffled, rmse, accuracy, chance, n, blocks.
Examples:
    >>> import evaluate
    >>> metric = evaluate.load("informativeness")
    >>> embeddings = [[float(i % 2), float(i % 7)] for i in range(40)]
    >>> labels = ["low" if i % 2 else "high" for i in range(40)]
    >>> blocks = [i // 2 for i in range(40)]
    >>> folds = [block % 5 for block in blocks]
    >>> result = metric.compute(embeddings=embeddings, labels=labels, folds=folds, blocks=blocks)
    >>> round(result["informativeness"], 3), result["accuracy"], result["chance"]
    (1.0, 1.0, 0.5)
"""


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
    """Return how well labels can be read from embeddings, and the controls of that.

    - `embeddings` [n, dim]; `labels` [n], numbers or strings; strings are classes, whatever they say;
    - `folds` [n], integers, at least 3 different: in their order each is tested once, the next one validates, the
      others train; `blocks` [n], strings or integers: no block lies in two folds, and there are at least 5;
    - `probes`: one or more of PROBES. Numbers are regressed on, of classes one 0/1 variable each, of which the largest
      prediction is the answer. Validation chooses each probe's penalty, and in each fold one of the probes. `slp` and
      `mlp` are means over 3 random states; with `scaled` False they see features and numbers as they come, as the
      probes of arXiv 2505.06224 do. `seed` is of these states and of the permutations.

    Results, all over all n rows, each tested once:

    - `informativeness`: of numbers R² = 1 − Σ(y − ŷ)²/Σ(y − ȳ)², ȳ being the mean of the fold's training rows; of
      classes (accuracy − chance)/(1 − chance), chance being the accuracy of always giving the answer that is the
      commonest in training. 0 for what knows nothing; it can be below 0;
    - `ridge`, `kernel`, `slp`, `mlp`: the score of each probe alone, None where it was not asked for;
    - `spread`: standard deviation of the score over the random states, None with closed forms alone;
    - `shuffled`: mean score where labels are permuted, blocks of them among blocks, and rows within a block: over 5
      permutations, with slp or mlp over 1;
    - `rmse` of numbers, in their unit; `accuracy` and `chance` of classes; None where they do not apply;
    - `n` rows, `blocks`;
    - `scores` (with return_scores): for each row its linearised contribution to the score, which is exactly their
      mean. For θ = ΣE/ΣR, E_i being a row's error and R_i that of the reference, it is 1 − θ − (E_i − θ·R_i)/mean(R):
      so an interval from these scores takes into account that the denominator is estimated too.

    Sources: arXiv 2505.06224, section III, for the axis; closed forms, folds by block and controls are ours.

    Raises ValueError when embeddings are not finite [n, dim], lengths differ, labels are neither all numbers nor all
    strings or are all the same, a class is in one block only or none of its rows is trained on where it is tested,
    there are fewer than 3 folds or 5 blocks, a block lies in two folds, or a probe is unknown.

    >>> z = np.eye(2)[np.arange(40) % 2]
    >>> informativeness(z, ["a", "b"] * 20, np.arange(40) // 8, np.arange(40) // 2)["accuracy"]
    1.0
    """
    z = _matrix("embeddings", embeddings)
    names, values = _probe_names(probes), _column("labels", labels, len(z))
    block, block_names = _block_codes(blocks, len(z))
    rotation = _rotation(folds, block, block_names)
    if values.dtype.kind == "U":
        classes, codes = np.unique(values, return_inverse=True)
        _check_classes("labels", classes, codes, block, block_names, rotation)
        targets, errors = np.eye(len(classes))[codes], _misses
    else:
        _check_varied("labels", values)
        targets, errors = values.astype(np.float64)[:, None], _squared_errors

    gradient = bool({"slp", "mlp"} & set(names))
    orders = _permutations(block, 1 if gradient else SHUFFLES, seed)
    inputs = {name: z if name in ("slp", "mlp") and not scaled else _standardised(z) for name in names}
    table = _tested(inputs, [targets, *(targets[order] for order in orders)], rotation, errors, scaled, seed)
    best, references = table.errors["best"], table.references
    scores = _ratio_scores(best[0].mean(axis=0), references[0])
    error, guess = float(best[0].mean()), float(references[0].mean())
    kind = values.dtype.kind
    result: dict[str, Any] = {
        "informativeness": _score(best[0], references[0]),
        **{name: _score(table.errors[name][0], references[0]) if name in names else None for name in PROBES},
        "spread": _state_spread(best[0], references[0]) if gradient else None,
        "shuffled": float(np.mean([_score(*pair) for pair in zip(best[1:], references[1:], strict=True)])),
        "rmse": None if kind == "U" else float(np.sqrt(error)),
        "accuracy": 1 - error if kind == "U" else None,
        "chance": 1 - guess if kind == "U" else None,
        "n": len(z),
        "blocks": len(block_names),
    }
    return {**result, "scores": scores.tolist()} if return_scores else result


class Informativeness(evaluate.Metric):  # type: ignore[misc]
    """Informativeness as a metric of the `evaluate` library; `informativeness` in this module does the work."""

    def _info(self) -> Any:
        vectors, number = datasets.Sequence(datasets.Value("float64")), datasets.Value("float64")
        # `evaluate` takes the first that fits: strings stay strings, also where they look like numbers.
        kinds = [datasets.Value("string"), number]
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"embeddings": vectors, "labels": label, "folds": number, "blocks": block})
                for label in kinds
                for block in kinds
            ],
            homepage="https://arxiv.org/abs/2505.06224",
            reference_urls=["https://arxiv.org/abs/2505.06224"],
        )

    def compute(self, **inputs: Any) -> dict[str, Any] | None:
        """Score the data given here, or those collected by `add` and `add_batch`."""
        needed = ("embeddings", "labels", "folds", "blocks")
        given = [name for name in needed if inputs.get(name) is not None]
        if given and len(given) < len(needed):
            missing = ", ".join(name for name in needed if name not in given)
            raise ValueError(f"compute() got {', '.join(given)} without {missing}; it needs all four.")
        if given and self.writer is None and self.num_process == 1:
            # Nothing was collected before, so the detour through an Arrow file would only cost time.
            return informativeness(**inputs)
        result: dict[str, Any] | None = super().compute(**inputs)
        return result

    def _compute(self, **inputs: Any) -> dict[str, Any]:
        return informativeness(**inputs)


# ----- what is measured


@dataclass(frozen=True)
class _Table:
    """Errors of all rows, each tested once, for the labels and then for each of their permutations.

    Attributes:
        errors: [states, n] of each probe, and as "best" of that which validated best in the row's fold.
        references: [n], of what always gives the same answer.
    """

    errors: dict[str, list[Floats]]
    references: list[Floats]


def _tested(
    inputs: dict[str, Floats],
    targets: Sequence[Floats],
    rotation: Sequence[tuple[Ints, Ints, Ints]],
    errors: Callable[[Floats, Floats, Floats], Floats],
    scaled: bool,
    seed: int,
) -> _Table:
    """Fit and test each probe on its inputs [n, dim] in each fold; all targets share a decomposition."""
    n, groups, y = len(targets[0]), [target.shape[1] for target in targets], np.hstack(targets)
    states = STATES if {"slp", "mlp"} & set(inputs) else 1
    table = _Table(
        {name: [np.zeros((states, n)) for _ in targets] for name in (*inputs, "best")}, [np.zeros(n) for _ in targets]
    )
    for train, validation, test in rotation:
        least = np.full(len(targets), np.inf)
        means = [target[train].mean(axis=0) for target in targets]
        for name, x in inputs.items():
            parts, losses = _fitted(
                name, (x[train], y[train]), (x[validation], y[validation]), x[test], groups, scaled, seed
            )
            for k, (prediction, target) in enumerate(zip(parts, targets, strict=True)):
                wrong = errors(prediction, target[test], means[k])
                table.errors[name][k][:, test] = wrong
                if losses[k] < least[k]:
                    least[k] = losses[k]
                    table.errors["best"][k][:, test] = wrong
        for k, target in enumerate(targets):
            table.references[k][test] = errors(means[k][None, None], target[test], means[k])[0]
    return table


def _squared_errors(predictions: Floats, targets: Floats, mean: Floats) -> Floats:
    """Of predictions [states, m, 1] of numbers the squared errors [states, m]."""
    errors: Floats = np.square(predictions - targets)[:, :, 0]
    return errors


def _misses(predictions: Floats, targets: Floats, mean: Floats) -> Floats:
    """Of predictions [states, m, classes] 1 where the largest is not that of the own class, else 0, [states, m].

    Where they are the shares of the classes in training but for rounding, the answer is the commonest class.
    """
    silent = np.abs(predictions - mean).max(axis=2) <= ROUNDING
    answers = np.where(silent, mean.argmax(), predictions.argmax(axis=2))
    misses: Floats = (answers != targets.argmax(axis=1)).astype(np.float64)
    return misses


# ----- what is given


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


def _entries(name: str, x: Any, n: int) -> list[Any]:
    """The n entries of an array, a tensor or a sequence, or ValueError."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    values = x.tolist() if hasattr(x, "tolist") else list(x)
    count = len(values) if isinstance(values, list) else 0
    if count != n:
        raise ValueError(f"{name} must have one entry for each of the {n} embeddings; got {count}.")
    return values


def _column(name: str, x: Any, n: int) -> NDArray[Any]:
    """The entries as texts [n] where all are strings, as float64 [n] where all are finite numbers, or ValueError."""
    values = _entries(name, x, n)
    texts = [isinstance(value, str) for value in values]
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in values]
    if all(texts):
        return np.array(values, dtype=str)
    if not all(numbers):
        row = numbers.index(False) if not any(texts) else texts.index(not texts[0])
        raise ValueError(f"{name} must be all numbers or all strings; row {row} has {values[row]!r}.")
    array = np.array(values, dtype=np.float64)
    bad = np.flatnonzero(~(np.abs(array) <= _LARGEST))
    if len(bad):
        raise ValueError(f"{name} must be finite; row {bad[0]} has {array[bad[0]]}.")
    return array


def _codes(name: str, x: Any, n: int) -> tuple[Ints, list[Any]]:
    """Of strings or integers [n] their numbers in the order of the different ones, and these."""
    column = _column(name, x, n)
    if column.dtype.kind != "U":
        broken = np.flatnonzero(column != np.round(column))
        if len(broken):
            raise ValueError(f"{name} must be strings or integers; row {broken[0]} has {column[broken[0]]:g}.")
        column = column.astype(np.int64)
    values, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.int64), values.tolist()


def _block_codes(x: Any, n: int) -> tuple[Ints, list[Any]]:
    block, names = _codes("blocks", x, n)
    if len(names) < FEWEST_BLOCKS:
        raise ValueError(f"blocks has {len(names)} different values, {names}; at least {FEWEST_BLOCKS} are needed.")
    return block, names


def _rotation(x: Any, block: Ints, names: Sequence[Any]) -> list[tuple[Ints, Ints, Ints]]:
    """Rows that train, validate and test, each fold tested once; ValueError where a block is in two folds."""
    fold, folds = _codes("folds", x, len(block))
    if isinstance(folds[0], str):
        raise ValueError(f"folds must be integers; row 0 has {folds[fold[0]]!r}.")
    if len(folds) < 3:
        raise ValueError(f"folds has {len(folds)} different values, {folds}; it needs 3, to train, validate and test.")
    _check_within("block", names, block, "folds", fold, folds)
    following = [(fold == k, fold == (k + 1) % len(folds)) for k in range(len(folds))]
    return [
        (np.flatnonzero(~(test | validation)), np.flatnonzero(validation), np.flatnonzero(test))
        for test, validation in following
    ]


def _check_within(kind: str, names: Sequence[Any], code: Ints, wholes: str, whole: Ints, values: Sequence[Any]) -> None:
    """Raise ValueError when what has one code lies in two of the wholes."""
    first = np.zeros(len(names), dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    strayed = np.flatnonzero(whole != whole[first[code]])
    if len(strayed):
        row, other = strayed[0], first[code[strayed[0]]]
        raise ValueError(
            f"{kind.capitalize()} {names[code[row]]!r} lies in two {wholes}: row {other} in {values[whole[other]]!r}, "
            f"row {row} in {values[whole[row]]!r}; all rows of one {kind} must be in one."
        )


def _probe_names(probes: str | Sequence[str]) -> tuple[str, ...]:
    """The probes in the order of PROBES, or ValueError."""
    names = (probes,) if isinstance(probes, str) else tuple(probes)
    for name in names:
        if name not in PROBES:
            raise ValueError(f"probes has {name!r}, not one of {PROBES}. Did you mean {_nearest(str(name), PROBES)!r}?")
    if not names:
        raise ValueError(f"probes must name one or more of {PROBES}; it is empty.")
    return tuple(name for name in PROBES if name in names)


def _nearest(word: str, choices: Sequence[str]) -> str:
    return (difflib.get_close_matches(word, choices, n=1, cutoff=0.0) or list(choices))[0]


def _check_varied(name: str, values: NDArray[Any]) -> None:
    if (values == values[0]).all():
        raise ValueError(f"{name} are all {values[0].item()!r}; there is nothing to predict unless they differ.")


def _check_classes(
    name: str,
    classes: NDArray[Any],
    codes: Ints,
    block: Ints,
    names: Sequence[Any],
    rotation: Sequence[tuple[Ints, Ints, Ints]],
) -> None:
    """Raise ValueError where a class cannot be learnt: it is in one block only, or in no row that trains."""
    _check_varied(name, classes[codes])
    for code, label in enumerate(classes.tolist()):
        places = np.unique(block[codes == code])
        if len(places) == 1:
            raise ValueError(
                f"Class {label!r} of {name} is in one block only, {names[places[0]]!r}; it needs two, to be trained on "
                "in one and tested in the other."
            )
    for train, _, test in rotation:
        missing = np.flatnonzero(~np.isin(codes[test], codes[train]))
        if len(missing):
            row = test[missing[0]]
            learnt = classes[np.unique(codes[train])].tolist()
            raise ValueError(
                f"{name} of row {row} is {classes[codes[row]].item()!r}, which no row has that is trained on when that "
                f"row is tested; the nearest that one has is {_nearest(classes[codes[row]].item(), learnt)!r}."
            )


# ----- probes: the same lines stand in each metric that uses them, since metrics cannot import each other

PROBES = ("ridge", "kernel", "slp", "mlp")
"""`ridge` and `kernel` are closed forms; `slp`, one linear layer, and `mlp` are the probes of arXiv 2505.06224."""

PENALTIES = np.logspace(-2, 6, 17)
"""Of ridge, of which validation chooses one; features have a mean variance of 1."""

KERNEL_PENALTIES = np.logspace(-6, 1, 15)
KERNEL_WIDTHS = (4.0, 1.0, 0.25)
"""Squared widths of the Gaussian kernel, in median squared distances of training rows."""

LANDMARKS = 512
"""Training rows that span the functions of the kernel probe (Nyström's method): with no more rows than that it is
kernel ridge regression itself, with more its cost stays linear in them."""

HIDDEN = (512, 256)
EPOCHS, PATIENT_EPOCHS, BATCH_ROWS, LEARNING_RATE, DECAY = 100, 10, 32, 1e-3, 1e-3
STATES = 3
"""Layers of the MLP, and how `slp` and `mlp` are trained: Adam, early stop by validation, means of three random states
(arXiv 2505.06224, section IV; its code for epochs and patience)."""

ROWS_AT_ONCE = 4_096
"""Rows that are centred at a time."""

ROUNDING = 1e-9
"""Features that differ by less than this times the largest of them are equal: float32 resolves 6e-8."""


def _standardised(z: Floats) -> Floats:
    """Embeddings [n, dim] centred, and divided by the root of their mean variance; zeros where all are equal.

    No score of a closed form depends on it: it keeps a large mean from costing digits, and rounding from passing for
    what an encoder that always answers the same knows.
    """
    centred = z - z.mean(axis=0)
    if np.abs(centred).max() <= ROUNDING * np.abs(z).max():
        return np.zeros_like(z)
    standardised: Floats = centred / np.sqrt(centred.var(axis=0).mean())
    return standardised


def _row_parts(count: int) -> list[slice]:
    """Rows in parts: of all of very many at once a copy would be the largest of all arrays."""
    return [slice(row, row + ROWS_AT_ONCE) for row in range(0, count, ROWS_AT_ONCE)]


class _Ridge:
    """Ridge regression of y [n, targets] on x [n, dim] for all penalties, from one eigendecomposition.

    Features are centred, and divided by one number, the root of their mean variance over `dim` dimensions (0: they are
    not divided): so the fit depends on neither their unit nor their basis.
    """

    def __init__(self, x: Floats, y: Floats, penalties: Floats, dim: int) -> None:
        self.penalties = penalties
        self._mean, self._offset, self._scale = x.mean(axis=0), y.mean(axis=0), 1.0
        if dim:
            centred = (self._scaled(x[part]) for part in _row_parts(len(x)))
            self._scale = float(np.sqrt(sum(np.einsum("ij,ij->", rows, rows) for rows in centred) / (len(x) * dim)))
        if self._scale <= ROUNDING * max(x.max(), -x.min()):
            self._scale = np.inf  # makes zeros of what does not differ
        if len(x) < x.shape[1]:
            # Eigenvectors of the rows stand for those of the columns times the root of their value.
            rows = self._scaled(x)
            values, vectors = np.linalg.eigh(rows @ rows.T)
            self._basis = rows.T @ vectors
            self._coefficients = vectors.T @ (y - self._offset)
        else:
            gram, crossed = np.zeros((x.shape[1], x.shape[1])), np.zeros((x.shape[1], y.shape[1]))
            for part in _row_parts(len(x)):
                rows = self._scaled(x[part])
                gram += rows.T @ rows
                # The columns sum to 0, so that y need not be centred.
                crossed += rows.T @ y[part]
            values, self._basis = np.linalg.eigh(gram)
            self._coefficients = self._basis.T @ crossed
        self._divisors = np.clip(values, 0.0, None)

    def predict(self, x: Floats, penalties: Floats) -> Floats:
        """Predictions [m, targets] with a penalty for each target."""
        weights: Floats = self._coefficients / (self._divisors[:, None] + penalties)
        predictions: Floats = self._projected(x) @ weights + self._offset
        return predictions

    def losses(self, x: Floats, y: Floats, groups: Sequence[int]) -> Floats:
        """Mean squared error on other rows, [penalties, groups], of groups of so many targets each."""
        projected, residual = self._projected(x), y - self._offset
        # |A D C − Y|² for each diagonal D, from products that do not depend on D.
        gram, crossed = projected.T @ projected, projected.T @ residual
        weights = 1 / (self._divisors + self.penalties[:, None])
        losses = np.empty((len(self.penalties), len(groups)))
        for group, end in enumerate(np.cumsum(groups)):
            columns = slice(end - groups[group], end)
            coefficients = self._coefficients[:, columns]
            squares = ((weights @ (gram * (coefficients @ coefficients.T))) * weights).sum(axis=1)
            products = weights @ (coefficients * crossed[:, columns]).sum(axis=1)
            error = squares - 2 * products + float(np.square(residual[:, columns]).sum())
            losses[:, group] = np.maximum(error, 0.0) / (len(y) * groups[group])
        return losses

    def _scaled(self, x: Floats) -> Floats:
        scaled: Floats = x - self._mean
        scaled /= self._scale
        return scaled

    def _projected(self, x: Floats) -> Floats:
        projected: Floats = self._scaled(x) @ self._basis
        return projected


class _Kernel(_Ridge):
    """The same on the functions of a Gaussian kernel that some training rows, the landmarks, span.

    In place of features it takes squared distances from the landmarks [n, landmarks], which serve all widths.
    """

    def __init__(self, between: Floats, distances: Floats, y: Floats, width: float) -> None:
        median = float(np.median(between[np.triu_indices(len(between), 1)])) if len(between) > 1 else 0.0
        self._width = 2 * width * (median or 1.0)
        kernel = np.exp(-between / self._width)
        if len(distances) > len(between):
            # Nyström's method is no exact one, so that the little that makes the kernel invertible does not matter.
            self._map = np.linalg.inv(np.linalg.cholesky(kernel + 1e-8 * np.eye(len(kernel)))).T
        else:
            values, vectors = np.linalg.eigh(kernel)
            large = values > 1e-10 * values[-1]
            self._map = vectors[:, large] / np.sqrt(values[large])
        super().__init__(self._features(distances), y, KERNEL_PENALTIES, 0)

    def _features(self, distances: Floats) -> Floats:
        features = np.empty((len(distances), self._map.shape[1]))
        for part in _row_parts(len(distances)):
            kernel = distances[part] / -self._width
            np.matmul(np.exp(kernel, out=kernel), self._map, out=features[part])
        return features

    def _projected(self, x: Floats) -> Floats:
        return super()._projected(self._features(x))


def _squared_distances(x: Floats, y: Floats) -> Floats:
    distances: Floats = x @ (-2 * y).T
    distances += np.einsum("ij,ij->i", x, x)[:, None]
    distances += np.einsum("ij,ij->i", y, y)
    return np.maximum(distances, 0.0, out=distances)


Part = tuple[Floats, Floats]
"""Features [n, dim] and targets [n, targets]."""


def _probe(
    name: str,
    train: Part,
    validation: Part,
    x: Floats,
    seed: int = 0,
    scaled: bool = True,
    groups: Sequence[int] = (),
    dim: int = 0,
) -> tuple[Floats, Floats]:
    """Fit a probe; return its predictions for x, [m, targets], and its mean squared errors on the validation rows.

    `groups` of so many targets each are fitted each for itself, with its own penalty, and have an error each,
    [groups]; by default all targets are one group. `dim` is the number of dimensions of the features, where they stand
    for more than they have. `seed` and `scaled` are of `slp` and `mlp`.
    """
    groups = groups or (train[1].shape[1],)
    if name in ("slp", "mlp"):
        return _trained(HIDDEN if name == "mlp" else (), train, validation, x, seed, scaled, groups)
    if name == "ridge":
        fits = [_Ridge(*train, PENALTIES, dim or train[0].shape[1])]
    else:
        landmarks = train[0][np.linspace(0, len(train[0]) - 1, min(len(train[0]), LANDMARKS)).astype(int)]
        between, distances = _squared_distances(landmarks, landmarks), _squared_distances(train[0], landmarks)
        fits = [_Kernel(between, distances, train[1], width) for width in KERNEL_WIDTHS]
        validation = (_squared_distances(validation[0], landmarks), validation[1])
        x = _squared_distances(x, landmarks)
    losses = np.stack([fit.losses(*validation, groups) for fit in fits])
    width, penalty = np.unravel_index(losses.reshape(-1, len(groups)).argmin(axis=0), losses.shape[:2])
    penalties, widths = np.repeat(fits[0].penalties[penalty], groups), np.repeat(width, groups)
    predictions = np.empty((len(x), len(widths)))
    for place in np.unique(width):
        predictions[:, widths == place] = fits[place].predict(x, penalties)[:, widths == place]
    return predictions, losses.min(axis=(0, 1))


def _trained(
    hidden: Sequence[int], train: Part, validation: Part, x: Floats, seed: int, scaled: bool, groups: Sequence[int]
) -> tuple[Floats, Floats]:
    """The paper's probes by gradient descent on the squared error; with `scaled`, of features and targets scaled as
    the features of `_Ridge` are."""
    if len(groups) > 1:
        ends = np.cumsum(groups)[:-1]
        parts = zip(np.split(train[1], ends, axis=1), np.split(validation[1], ends, axis=1), strict=True)
        fits = [
            _trained(hidden, (train[0], y), (validation[0], other), x, seed, scaled, (y.shape[1],))
            for y, other in parts
        ]
        return np.hstack([fit[0] for fit in fits]), np.concatenate([fit[1] for fit in fits])
    import torch

    mean, offset = train[0].mean(axis=0), train[1].mean(axis=0)
    scale = float(np.sqrt(train[0].var(axis=0).mean())) or 1.0
    spread = float(np.sqrt(train[1].var(axis=0).mean())) or 1.0
    if not scaled:
        mean, offset, scale, spread = np.zeros_like(mean), np.zeros_like(offset), 1.0, 1.0
    (inputs, targets), (held_inputs, held_targets) = (
        (
            torch.tensor((a - mean) / scale, dtype=torch.float32),
            torch.tensor((b - offset) / spread, dtype=torch.float32),
        )
        for a, b in (train, validation)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _layers((inputs.shape[1], *hidden, targets.shape[1]))
    best = _descend(network, torch.nn.functional.mse_loss, (inputs, targets), (held_inputs, held_targets), seed)
    with torch.no_grad():
        predictions = network(torch.tensor((x - mean) / scale, dtype=torch.float32)).double().numpy()
    return predictions * spread + offset, np.array([best * spread**2])


def _layers(widths: Sequence[int]) -> Any:
    """Linear layers from each width to the next, ReLU between them, as a module of torch."""
    import torch

    layers: list[torch.nn.Module] = []
    for layer, width in enumerate(widths[1:]):
        layers += [torch.nn.Linear(widths[layer], width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def _descend(network: Any, loss: Callable[[Any, Any], Any], train: Any, held: Any, seed: int) -> float:
    """Train a module of torch on inputs and targets; returns its least mean loss on those that are held out.

    The weights of the epoch that validates best are copied, and are the module's at the end: later ones cannot alter
    them.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(network.parameters(), LEARNING_RATE, weight_decay=DECAY)
    best, waited = np.inf, 0
    state: dict[str, Any] = {}
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(train[0]), generator=generator), BATCH_ROWS):
            adam.zero_grad()
            torch.autograd.backward(loss(network(train[0][rows]), train[1][rows]))
            adam.step()
        with torch.no_grad():
            error = float(loss(network(held[0]), held[1]))
        if error < best:
            best, waited = error, 0
            state = {name: value.clone() for name, value in network.state_dict().items()}
        else:
            waited += 1
            if waited == PATIENT_EPOCHS:
                break
    if state:
        network.load_state_dict(state)
    return best


# ----- end of the probes


# ----- how probes are fitted and scored


def _permutations(block: Ints, count: int, seed: int) -> list[Ints]:
    """Rows whose labels take the place of those of each row: blocks among blocks, and in random order within one.

    Rows that share a block have labels of one block, or, where the blocks differ in size, of few.
    """
    rng, place = np.random.default_rng(seed), np.argsort(block, kind="stable")
    orders = []
    for _ in range(count):
        order = np.empty(len(block), dtype=np.int64)
        order[place] = np.lexsort((rng.random(len(block)), rng.permutation(int(block.max()) + 1)[block]))
        orders.append(order)
    return orders


def _fitted(
    name: str, train: Part, validation: Part, x: Floats, groups: Sequence[int], scaled: bool, seed: int, dim: int = 0
) -> tuple[list[Floats], Floats]:
    """Predictions [states, m, targets] of each group of targets, and their errors on the validation rows [groups].

    Closed forms have one state. `slp` and `mlp` have STATES, but groups after the first, the shuffled ones, one.
    """
    predictions, losses = _probe(name, train, validation, x, seed, scaled, groups, dim)
    parts = [part[None] for part in np.split(predictions, np.cumsum(groups)[:-1], axis=1)]
    if name in ("slp", "mlp"):
        first, held = ((features, targets[:, : groups[0]]) for features, targets in (train, validation))
        more = [_probe(name, first, held, x, seed + state, scaled) for state in range(1, STATES)]
        parts[0] = np.concatenate([parts[0], *(fit[0][None] for fit in more)])
        losses[0] = np.mean([losses[0], *(fit[1][0] for fit in more)])
    return parts, losses


def _ratio_scores(errors: Floats, reference: Floats) -> Floats:
    """Linearised contributions to 1 − Σ errors/Σ reference, whose mean is exactly that; zeros without reference."""
    mean = float(reference.mean())
    if mean == 0:
        return np.zeros(len(errors))
    ratio = float(errors.mean()) / mean
    scores: Floats = 1 - ratio - (errors - ratio * reference) / mean
    return scores


def _score(errors: Floats, reference: Floats) -> float:
    """1 − the mean of errors [states, n] over that of the reference [n]; 0 without reference."""
    mean = float(reference.mean())
    return 1 - float(errors.mean()) / mean if mean else 0.0


def _state_spread(errors: Floats, reference: Floats) -> float:
    """Standard deviation of the score over the states of errors [states, n]."""
    return float(np.std([_score(state, reference) for state in errors], ddof=1))


VERSION = 1
"""It rises with every change of code or constants that can change a number."""

# Read without importing the module, so it is one literal; ±1e15 stands for "no bound".
MEASURES = {
    "informativeness": {
        "heading": "Informativeness",
        "meaning": "R² of numbers, or accuracy above chance of classes, by the probe that validates best",
        "range": (-1e15, 1.0),
        "null": "shuffled",
        "column": "score",
        "outside": (
            "Scores of single samples can lie above 1: they are contributions to a "
            "ratio, and a sample that is far from the mean raises its denominator."
        ),
    },
    "ridge": {
        "heading": "ridge",
        "meaning": "the score of ridge regression",
        "range": (-1e15, 1.0),
        "null": "shuffled",
    },
    "kernel": {
        "heading": "kernel",
        "meaning": "the score of kernel ridge regression",
        "range": (-1e15, 1.0),
        "null": "shuffled",
    },
    "slp": {
        "heading": "SLP",
        "meaning": "the score of a linear layer that is trained by gradient descent",
        "range": (-1e15, 1.0),
        "fitted": True,
        "shown": False,
    },
    "mlp": {
        "heading": "MLP",
        "meaning": "the score of a network of two hidden layers that is trained by gradient descent",
        "range": (-1e15, 1.0),
        "fitted": True,
        "shown": False,
    },
    "spread": {
        "heading": "spread",
        "meaning": "standard deviation of the score over random states of probes that are trained by gradient descent",
        "digits": 4,
        "range": (0.0, 1e15),
        "fitted": True,
        "shown": False,
    },
    "shuffled": {
        "heading": "shuffled",
        "meaning": "the score of labels that are permuted among blocks of samples",
        "range": (-1e15, 1.0),
    },
    "rmse": {
        "heading": "RMSE",
        "meaning": "root of the mean squared error of numbers, in their own unit",
        "range": (0.0, 1e15),
        "shown": False,
    },
    "accuracy": {
        "heading": "accuracy",
        "meaning": "how often the class is right",
        "range": (0.0, 1.0),
        "null": "chance",
        "shown": False,
    },
    "chance": {
        "heading": "chance",
        "meaning": "how often the commonest class of the training samples is right",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "n": {
        "heading": "n",
        "meaning": "number of samples, each of which is tested once",
        "digits": 0,
        "range": (1.0, 1e15),
        "shown": False,
    },
    "blocks": {
        "heading": "blocks",
        "meaning": "number of blocks, none of which is both trained on and tested",
        "digits": 0,
        "range": (1.0, 1e15),
        "shown": False,
    },
}
"""What each number of `informativeness` is: fields by name, the score first."""

PAGE = {
    "introduction": """\
# Informativeness: can the label be read from the embedding?

A probe is trained on embeddings of labelled clips and tested on others
([arXiv 2505.06224](https://arxiv.org/abs/2505.06224)); here it is ridge or kernel ridge regression, whichever validates
better. The score is R² where the labels are numbers, and accuracy above chance where they are words.

Paste embeddings, a line for each clip, numbers separated by commas or spaces. Beside them, line by line, go the label,
the fold in which the clip is tested (an integer), and its block: what it shares with other clips, such as the speaker.
""",
    "warning": """\
**A high score alone is no evidence of learning.** Untrained networks and statistics of a spectrogram reach .9 and more
for pitch, loudness and timbre: put one beside your encoder. And where clips of one speaker or one recording are in two
blocks, the probe may know the speaker instead of the label.
""",
    "inputs": {
        "embeddings": "Embeddings, a clip a line",
        "labels": "Labels, a clip a line: all numbers, or words",
        "folds": "Folds, a clip a line: integers, at least 3 different",
        "blocks": "Blocks, a clip a line: words or integers, no block in two folds",
    },
    # So that a page with the largest input answers within a minute on two processors.
    "limits": {"columns": 1024},
}
"""What the metric's page says, and how many columns of a matrix it takes."""


def example() -> dict[str, Any]:
    """Return arguments of `informativeness`: a noisy encoder of 60 clips in 20 blocks, and one number of each."""
    rng = np.random.default_rng(0)
    blocks = np.repeat(np.arange(20), 3)
    labels = rng.integers(0, 8, 60) * 1.5
    z = rng.normal(size=(60, 6)) + labels[:, None] * rng.normal(0, 0.3, 6)
    return {"embeddings": z.round(3), "labels": labels, "folds": blocks % 5, "blocks": [f"speaker-{b}" for b in blocks]}
