"""Factors of clips, their labels as classes and numbers, their folds, and what probes answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrays import ROUNDING, Floats, Ints
from .columns import FEWEST_BLOCKS, check_varied, check_within, read_codes, read_column, read_entries

FOLDS = 5
"""Into which blocks are dealt where folds are not given."""

LEVELS = 16
"""A factor with more different numbers is cut into BINS of equally many rows."""

BINS = 8


@dataclass(frozen=True)
class Factor:
    """A factor of n clips.

    Attributes:
        name: of the factor.
        levels: names of its levels in order, for messages.
        codes: the level of each clip, [n].
        targets: what a probe is to answer, [n, 1] numbers or [n, levels], 1 at the class and else 0.
        classes: whether it is the latter.
    """

    name: str
    levels: tuple[str, ...]
    codes: Ints
    targets: Floats
    classes: bool

    def at(self, rows: Ints) -> "Factor":
        """The factor of some of the clips."""
        return replace(self, codes=self.codes[rows], targets=self.targets[rows])


def read_factors(factors: Any, n: int) -> list[Factor]:
    """The factors, from labels by name or from a mapping for each clip, or ValueError."""
    if isinstance(factors, Mapping):
        columns = {str(name): labels for name, labels in factors.items()}
    else:
        clips = read_entries("factors", factors, n)
        columns = {}
        for row, clip in enumerate(clips):
            names = [str(name) for name in clip] if isinstance(clip, Mapping) else []
            if not names or (row and set(names) != set(columns)):
                raise ValueError(
                    f"factors must be labels by the factor's name, or such a mapping for each clip, all with the same "
                    f"names; row {row} is {clip!r:.80}."
                )
            for name, label in clip.items():
                columns.setdefault(str(name), []).append(label)
    if not columns:
        raise ValueError("factors are empty; give the labels of the clips by the factor's name.")
    return [read_factor(name, labels, n) for name, labels in columns.items()]


def read_factor(name: str, labels: Any, n: int) -> Factor:
    """A factor from its labels, or ValueError."""
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
    """Number of each clip's combination of codes, in order of these."""
    cells: Ints = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1)
    return cells


def combination_codes(factors: Sequence[Factor]) -> Ints:
    """Combination of levels of each clip, which stands for its block; ValueError where there are few."""
    # By name, so that the order in which factors are given does not matter.
    cells = joint_codes([factor.codes for factor in sorted(factors, key=lambda factor: factor.name)])
    count = int(cells.max()) + 1
    if count < FEWEST_BLOCKS:
        raise ValueError(
            f"There are {count} combinations of levels, which are the blocks where none are given; at least "
            f"{FEWEST_BLOCKS} are needed."
        )
    return cells


def fold_codes(folds: Any, block: Ints, names: Sequence[Any], seed: int) -> Ints:
    """The fold of each row, in which its block lies whole; blocks are dealt to FOLDS where folds are not given."""
    if folds is None:
        dealt = np.empty(len(names), dtype=np.int64)
        dealt[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % FOLDS
        codes: Ints = dealt[block]
        return codes
    fold, values = read_codes("folds", folds, len(block))
    if isinstance(values[0], str):
        raise ValueError(f"folds must be integers; row 0 has {values[fold[0]]!r}.")
    if len(values) < 3:
        raise ValueError(
            f"folds has {len(values)} different values, {values}; it needs 3, to train, validate and test."
        )
    check_within("block", names, block, "folds", fold, values)
    return fold


@dataclass(frozen=True)
class Answers:
    """What probes say of a factor.

    Attributes:
        factor: of the rows that were asked.
        deviations: answers less the mean that each probe was trained on, [states, rows, targets].
        means: that mean, [rows, targets].
    """

    factor: Factor
    deviations: Floats
    means: Floats

    def at(self, rows: Ints) -> "Answers":
        """The answers for some of the rows."""
        return replace(self, factor=self.factor.at(rows), deviations=self.deviations[:, rows], means=self.means[rows])

    def errors(self) -> tuple[Floats, Floats]:
        """Of the answers [states, rows], and of what knows nothing [rows], the errors.

        They are squares, against the mean trained on; of classes 1 where the class is wrong, else 0, against the
        class that is the commonest in training, which also stands for answers that say nothing.
        """
        truth = self.factor.targets
        if not self.factor.classes:
            return np.square(self.deviations + self.means - truth)[..., 0], np.square(self.means - truth)[:, 0]
        commonest = self.means.argmax(axis=1)
        silent = np.abs(self.deviations).max(axis=2) <= ROUNDING
        classes = np.where(silent, commonest, (self.deviations + self.means).argmax(axis=2))
        return (classes != self.factor.codes).astype(np.float64), (commonest != self.factor.codes).astype(np.float64)
