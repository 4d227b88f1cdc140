"""Factors of clips: labels as classes and numbers, folds, and the answers of probes with their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrays import ROUNDING, Floats, Ints
from .columns import FEWEST_BLOCKS, check_varied, read_column, read_entries, read_folds
from .probing import (
    KERNEL_PENALTIES,
    KERNEL_WIDTHS,
    LANDMARKS,
    PENALTIES,
    STATES,
    Kernel,
    Ridge,
    fit_probe,
    squared_distances,
)

FOLDS = 5
"""Number of folds if folds are not given."""

LEVELS = 16
"""A factor with more distinct numbers is cut into BINS levels with equally many rows."""

BINS = 8

FEWEST_ROWS = 3
"""The smallest number of rows of a fold for which a correlation counts."""


@dataclass(frozen=True)
class Factor:
    """A factor of n clips.

    Attributes:
        name: name of the factor.
        levels: names of its sorted levels, for messages.
        codes: the level of each clip, [n].
        targets: the targets of probes, [n, 1] numbers or [n, levels], 1 at the class and else 0.
        classes: whether targets are classes.
    """

    name: str
    levels: tuple[str, ...]
    codes: Ints
    targets: Floats
    classes: bool

    def at(self, rows: Ints) -> "Factor":
        """Return the factor restricted to some clips."""
        return replace(self, codes=self.codes[rows], targets=self.targets[rows])


def read_factors(factors: Any, n: int) -> list[Factor]:
    """Return the factors, from labels by name or from a mapping for each clip, or raise ValueError."""
    if isinstance(factors, Mapping):
        columns = {str(name): labels for name, labels in factors.items()}
    else:
        clips = read_entries("factors", factors, n)
        columns = {}
        for row, clip in enumerate(clips):
            names = [str(name) for name in clip] if isinstance(clip, Mapping) else []
            if not names or (row and set(names) != set(columns)):
                raise ValueError(
                    f"factors must map factor names to labels, or be one such mapping per clip, with the same names; "
                    f"row {row} is {clip!r:.80}."
                )
            for name, label in clip.items():
                columns.setdefault(str(name), []).append(label)
    if not columns:
        raise ValueError("factors are empty. Give a mapping of factor name to the labels of the clips.")
    return [read_factor(name, labels, n) for name, labels in columns.items()]


def read_factor(name: str, labels: Any, n: int) -> Factor:
    """Return a factor from its labels, or raise ValueError."""
    column = read_column(f"factor {name!r}", labels, n)
    check_varied(f"factor {name!r}", column)
    levels, codes = np.unique(column, return_inverse=True)
    if column.dtype.kind == "U":
        return Factor(name, tuple(levels.tolist()), codes, np.eye(len(levels))[codes], True)
    if len(levels) > LEVELS:
        edges = np.unique(np.quantile(column, np.arange(1, BINS) / BINS, method="higher"))
        codes = np.unique(np.searchsorted(edges, column, "right"), return_inverse=True)[1]
        levels = np.array([column[codes == code].min() for code in range(int(codes.max()) + 1)])
    return Factor(name, tuple(f"{level:g}" for level in levels), codes, column[:, None], False)


def joint_codes(codes: Sequence[Ints]) -> Ints:
    """Return the number of each clip's combination of codes, in sorted order."""
    cells: Ints = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1)
    return cells


def combination_codes(factors: Sequence[Factor]) -> Ints:
    """Return each clip's combination of levels, used as its block; raise ValueError if there are too few."""
    # Sorted by name, so that the order of the factors does not matter.
    cells = joint_codes([factor.codes for factor in sorted(factors, key=lambda factor: factor.name)])
    count = int(cells.max()) + 1
    if count < FEWEST_BLOCKS:
        raise ValueError(
            f"There are {count} combinations of levels, which serve as blocks if none are given; at least "
            f"{FEWEST_BLOCKS} are needed."
        )
    return cells


def fold_codes(folds: Any, block: Ints, names: Sequence[Any], seed: int) -> Ints:
    """Return the fold of each row, never splitting a block; blocks are divided into FOLDS if folds are not given."""
    if folds is None:
        dealt = np.empty(len(names), dtype=np.int64)
        dealt[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % FOLDS
        codes: Ints = dealt[block]
        return codes
    return read_folds(folds, block, names)[0]


@dataclass(frozen=True)
class ProbeAnswers:
    """The answers of probes for a factor.

    Attributes:
        factor: the factor for the rows answered.
        deviations: answers minus the mean of each probe's training targets, [states, rows, targets].
        means: that mean, [rows, targets].
    """

    factor: Factor
    deviations: Floats
    means: Floats

    def at(self, rows: Ints) -> "ProbeAnswers":
        """Return the answers for some of the rows."""
        return replace(self, factor=self.factor.at(rows), deviations=self.deviations[:, rows], means=self.means[rows])

    def errors(self) -> tuple[Floats, Floats]:
        """Return the errors of the answers [states, rows], and the errors of the reference without knowledge [rows].

        For numbers, errors are squared, and the reference is the training mean; for classes, an error is 1 if the class
        is wrong, else 0, and the reference is the most common training class, which also replaces empty answers.
        """
        truth = self.factor.targets
        if not self.factor.classes:
            return np.square(self.deviations + self.means - truth)[..., 0], np.square(self.means - truth)[:, 0]
        commonest = self.means.argmax(axis=1)
        silent = np.abs(self.deviations).max(axis=2) <= ROUNDING
        classes = np.where(silent, commonest, (self.deviations + self.means).argmax(axis=2))
        return (classes != self.factor.codes).astype(np.float64), (commonest != self.factor.codes).astype(np.float64)


# ----- answers of probes
@dataclass(frozen=True)
class ProbeData:
    """Embeddings and the settings of probes fitted to them.

    Attributes:
        x: embeddings, standardised.
        raw: embeddings as given, for `slp` and `mlp`.
        folds: fold of each row.
        probes, scaled, seed: as given.
    """

    x: Floats
    raw: Floats
    folds: Ints
    probes: tuple[str, ...]
    scaled: bool
    seed: int

    @property
    def trained(self) -> tuple[str, ...]:
        """Return the probes with random states."""
        return tuple(name for name in self.probes if name in ("slp", "mlp"))

    @property
    def states(self) -> int:
        """Return the number of random states that scores are averaged over."""
        return STATES if self.trained else 1


Closed = tuple[Ridge, Ints | None]
"""A probe in closed form, and the landmarks of a kernel; squared distances from these replace embeddings as input."""


def _closed_fits(data: ProbeData, train: Ints, y: Floats, kinds: Sequence[int]) -> list[Closed]:
    """Return closed forms fitted to the targets of some rows: kind 0 is ridge, others are kernels of KERNEL_WIDTHS."""
    x, fits = data.x[train], list[Closed]()
    landmarks = train[np.linspace(0, len(train) - 1, min(len(train), LANDMARKS)).astype(int)]
    if any(kinds):
        between = squared_distances(data.x[landmarks], data.x[landmarks])
        distances = between if len(landmarks) == len(train) else squared_distances(x, data.x[landmarks])
    for kind in kinds:
        if kind == 0:
            fits.append((Ridge(x, y, PENALTIES, x.shape[1]), None))
        else:
            fits.append((Kernel(between, distances, y, KERNEL_WIDTHS[kind - 1]), landmarks))
    return fits


def _inputs(data: ProbeData, rows: Ints, fits: Sequence[Closed]) -> list[Floats]:
    """Return the inputs on other rows for some closed forms that are fitted to the same rows."""
    landmarks = next((landmarks for _, landmarks in fits if landmarks is not None), None)
    distances = None if landmarks is None else squared_distances(data.x[rows], data.x[landmarks])
    return [data.x[rows] if landmarks is None or distances is None else distances for _, landmarks in fits]


def _closed_answers(
    data: ProbeData, targets: Floats, groups: Sequence[int], train: Ints, left_out: Sequence[Ints], test: Ints
) -> tuple[Floats, Floats]:
    """Return answers to groups of targets minus the training mean, [rows, targets], and errors, [groups].

    Kind and penalty minimise the mean squared error over the parts `left_out` of `train`, each after training on the
    rest; then the probe is trained on all of `train`.
    """
    kinds = [0] if "ridge" in data.probes else []
    kinds += range(1, len(KERNEL_WIDTHS) + 1) if "kernel" in data.probes else []
    if not kinds:
        return np.zeros((len(test), targets.shape[1])), np.full(len(groups), np.inf)
    losses = np.full((len(kinds), max(len(PENALTIES), len(KERNEL_PENALTIES)), len(groups)), np.inf)
    for number, part in enumerate(left_out):
        rest = np.setdiff1d(train, part)
        # Subtract the mean, whose rounding would look like knowledge.
        mean = targets[rest].mean(axis=0)
        fits = _closed_fits(data, rest, targets[rest] - mean, kinds)
        for loss, (fit, _), x in zip(losses, fits, _inputs(data, part, fits), strict=True):
            error = fit.losses(x, targets[part] - mean, groups) * len(part)
            loss[: len(error)] = error if number == 0 else loss[: len(error)] + error
    losses /= sum(map(len, left_out))
    kind, penalty = (np.repeat(places, groups) for places in _least(losses, targets[train], groups))
    used = np.unique(kind)
    fits = _closed_fits(data, train, targets[train] - targets[train].mean(axis=0), [kinds[place] for place in used])
    answers = np.zeros((len(test), targets.shape[1]))
    for place, (fit, _), x in zip(used, fits, _inputs(data, test, fits), strict=True):
        columns = kind == place
        # The other columns belong to another kind and are not used.
        predictions = fit.predict(x, fit.penalties[np.where(columns, penalty, 0)]) - fit._offset
        answers[:, columns] = predictions[:, columns]
    return answers, losses.min(axis=(0, 1))


def _least(losses: Floats, targets: Floats, groups: Sequence[int]) -> tuple[Ints, Ints]:
    """Return kind and penalty of the smallest loss of [kinds, penalties, groups], [groups] each; the largest of equal
    ones.

    Losses that differ by rounding are equal: this happens if nothing was learned because all training rows have the
    same label.
    """
    spreads = [part.var(axis=0).mean() for part in np.split(targets, np.cumsum(groups)[:-1], axis=1)]
    least = losses.min(axis=(0, 1))
    tied = losses[:, ::-1] <= least + ROUNDING * (least + spreads)
    kind, place = np.unravel_index(tied.reshape(-1, len(groups)).argmax(axis=0), losses.shape[:2])
    return kind, losses.shape[1] - 1 - place


def best_answers(
    data: ProbeData, factors: Sequence[Factor], train: Ints, left_out: Sequence[Ints], test: Ints, turn: int
) -> list[Floats]:
    """Return each factor's answers by the best probe, minus the training mean: [states, rows, targets].

    `slp` and `mlp`, which cost a thousand times as much as closed forms, are trained once: on `train` without the part
    of `left_out` with the number `turn`.
    """
    targets, groups = np.hstack([factor.targets for factor in factors]), [factor.targets.shape[1] for factor in factors]
    closed, errors = _closed_answers(data, targets, groups, train, left_out, test)
    answers = []
    for factor, columns, error in zip(factors, np.split(closed, np.cumsum(groups)[:-1], axis=1), errors, strict=True):
        least, best = error, np.broadcast_to(columns, (data.states, *columns.shape))
        for name in data.trained:
            values, loss = _trained_answers(data, name, factor, train, left_out[turn % len(left_out)], test)
            if loss < least:
                least, best = loss, values
        answers.append(best)
    return answers


def _trained_answers(
    data: ProbeData, name: str, factor: Factor, train: Ints, part: Ints, test: Ints
) -> tuple[Floats, float]:
    """Return the answers of `slp` or `mlp` minus the training mean, [states, rows, targets], and the validation
    error."""
    rest = np.setdiff1d(train, part)
    fits = [
        fit_probe(
            name,
            (data.raw[rest], factor.targets[rest]),
            (data.raw[part], factor.targets[part]),
            data.raw[test],
            data.seed + state,
            data.scaled,
        )
        for state in range(STATES)
    ]
    answers = np.stack([values for values, _ in fits]) - factor.targets[train].mean(axis=0)
    return answers, float(np.mean([loss[0] for _, loss in fits]))


def answers_across_folds(
    data: ProbeData, factors: Sequence[Factor], trained: Ints, asked: Ints, turn: int = 0
) -> list[ProbeAnswers] | None:
    """Return answers for the rows `asked`, each by a probe trained on rows of `trained` in other folds.

    Returns None for fewer than 3 folds.
    """
    names = np.unique(data.folds[trained])
    if len(names) < 3:
        return None
    deviations = [np.zeros((data.states, len(asked), factor.targets.shape[1])) for factor in factors]
    means = [np.zeros((len(asked), factor.targets.shape[1])) for factor in factors]
    for place, name in enumerate(names):
        train = trained[data.folds[trained] != name]
        held = trained[data.folds[trained] == names[(place + 1) % len(names)]]
        rows = np.flatnonzero(data.folds[asked] == name)
        for number, answers in enumerate(best_answers(data, factors, train, [held], asked[rows], turn)):
            deviations[number][:, rows] = answers
            means[number][rows] = factors[number].targets[train].mean(axis=0)
    return [
        ProbeAnswers(*parts) for parts in zip([factor.at(asked) for factor in factors], deviations, means, strict=True)
    ]


def tested_score(answers: ProbeAnswers) -> tuple[Floats, Floats]:
    """Return each random state's correlation, or accuracy above chance, and each row's contribution to their mean."""
    if answers.factor.classes:
        wrong, room = answers.errors()
        ratios, contributions = linearised_ratios(wrong, np.broadcast_to(room, wrong.shape))
        return 1 - ratios, 1 - contributions
    x, y = answers.deviations[..., 0], answers.factor.targets[:, 0]
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean()
    sizes, size = np.sqrt(np.square(x).mean(axis=1, keepdims=True)), float(np.sqrt(np.square(y).mean()))
    flat = sizes <= ROUNDING * size
    u, v = np.where(flat, 0.0, x / np.where(flat, 1.0, sizes)), y / (size or 1.0)
    r = np.clip((u * v).mean(axis=1, keepdims=True), -1.0, 1.0)
    contributions = r + u * v - r * (np.square(u) + np.square(v)) / 2
    return r[:, 0], contributions.mean(axis=0)


def seen_score(answers: ProbeAnswers, folds: Ints) -> tuple[float, int]:
    """Return the score of answers by probes of several folds, and the number of rows; r is taken within folds.

    Without knowledge, r over all folds would be below 0 on average: the larger the training rows happen to be, the
    larger the answers, and the smaller the rows left out.
    """
    if answers.factor.classes:
        return float(tested_score(answers)[0].mean()), len(folds)
    parts = [answers.at(np.flatnonzero(folds == fold)) for fold in np.unique(folds)]
    parts = [part for part in parts if len(part.means) >= FEWEST_ROWS and np.ptp(part.factor.targets) > 0]
    counts = [len(part.means) for part in parts]
    scores = [float(tested_score(part)[0].mean()) for part in parts]
    return (float(np.average(scores, weights=counts)), sum(counts)) if parts else (0.0, 0)


def linearised_ratios(numerators: Floats, denominators: Floats) -> tuple[Floats, Floats]:
    """Return ratios of sums along rows [states], and contributions [rows] whose mean is the mean of the ratios."""
    means = denominators.mean(axis=1)
    if not means.all():
        return np.ones(len(means)), np.ones(numerators.shape[1])
    ratios = numerators.mean(axis=1) / means
    contributions = ratios[:, None] + (numerators - ratios[:, None] * denominators) / means[:, None]
    return ratios, contributions.mean(axis=0)


def pooled_r2(answers: Sequence[ProbeAnswers]) -> float | None:
    """Return R² over all rows; None for classes."""
    if not answers or answers[0].factor.classes:
        return None
    sums = np.sum(
        [[errors.mean(axis=0).sum(), room.sum()] for errors, room in (part.errors() for part in answers)], axis=0
    )
    return float(1 - sums[0] / sums[1]) if sums[1] else 0.0
