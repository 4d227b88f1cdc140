"""Columns beside embeddings, one entry per row: labels, blocks, folds, and copies of originals, read and checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import LARGEST, Floats, Ints, nearest_name

FEWEST_BLOCKS = 5
"""With fewer blocks, their mean says little about other blocks."""
UNBOUNDED = 1e15  # "no bound" in ranges


def read_entries(name: str, x: Any, n: int) -> list[Any]:
    """The n entries of an array, a tensor or a sequence, or ValueError."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    values = x.tolist() if hasattr(x, "tolist") else list(x)
    count = len(values) if isinstance(values, list) else 0
    if count != n:
        raise ValueError(f"{name} must have one entry for each of the {n} embeddings; got {count}.")
    return values


def read_column(name: str, x: Any, n: int) -> NDArray[Any]:
    """The entries as texts [n] where all are strings, as float64 [n] where all are finite numbers, or ValueError."""
    values = read_entries(name, x, n)
    # By the few types that there are: columns have thousands of entries, and are read again for each score.
    texts = {kind: issubclass(kind, str) for kind in set(map(type, values))}
    if all(texts.values()):
        return np.array(values, dtype=str)
    numbers = {kind: issubclass(kind, int | float) and kind is not bool for kind in texts}
    if not all(numbers.values()):
        wanted = texts if texts[type(values[0])] else numbers
        row = next(place for place, value in enumerate(values) if not wanted[type(value)])
        raise ValueError(f"{name} must be all numbers or all strings; row {row} has {values[row]!r}.")
    array = np.array(values, dtype=np.float64)
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST))
    if len(bad):
        raise ValueError(f"{name} must be finite; row {bad[0]} has {array[bad[0]]}.")
    return array


def read_codes(name: str, x: Any, n: int) -> tuple[Ints, list[Any]]:
    """The code of each string or integer [n], and the distinct entries in their order."""
    column = read_column(name, x, n)
    if column.dtype.kind != "U":
        broken = np.flatnonzero(column != np.round(column))
        if len(broken):
            raise ValueError(f"{name} must be strings or integers; row {broken[0]} has {column[broken[0]]:g}.")
        column = column.astype(np.int64)
    values, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.int64), values.tolist()


def read_blocks(x: Any, n: int) -> tuple[Ints, list[Any]]:
    """Return the number of each row's block and the blocks' names, or raise ValueError where they are too few."""
    block, names = read_codes("blocks", x, n)
    if len(names) < FEWEST_BLOCKS:
        raise ValueError(f"blocks has {len(names)} different values, {names}; at least {FEWEST_BLOCKS} are needed.")
    return block, names


def read_folds(x: Any, block: Ints, names: Sequence[Any]) -> tuple[Ints, list[Any]]:
    """The number of each row's fold and the folds; ValueError where they are too few, or a block is in two."""
    fold, folds = read_codes("folds", x, len(block))
    if isinstance(folds[0], str):
        raise ValueError(f"folds must be integers; row 0 has {folds[fold[0]]!r}.")
    if len(folds) < 3:
        raise ValueError(f"folds has {len(folds)} different values, {folds}; it needs 3, to train, validate and test.")
    check_within("block", names, block, "folds", fold, folds)
    return fold, folds


def fold_rotation(x: Any, block: Ints, names: Sequence[Any]) -> list[tuple[Ints, Ints, Ints]]:
    """Training, validation and test rows, each fold tested once; errors as of `read_folds`."""
    fold, folds = read_folds(x, block, names)
    following = [(fold == k, fold == (k + 1) % len(folds)) for k in range(len(folds))]
    return [
        (np.flatnonzero(~(test | validation)), np.flatnonzero(validation), np.flatnonzero(test))
        for test, validation in following
    ]


def check_within(kind: str, names: Sequence[Any], code: Ints, wholes: str, whole: Ints, values: Sequence[Any]) -> None:
    """Raise ValueError when rows of one code lie in two containers, such as a block in two folds."""
    first = np.zeros(len(names), dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    strayed = np.flatnonzero(whole != whole[first[code]])
    if len(strayed):
        row, other = strayed[0], first[code[strayed[0]]]
        raise ValueError(
            f"{kind.capitalize()} {names[code[row]]!r} lies in two {wholes}: row {other} in {values[whole[other]]!r}, "
            f"row {row} in {values[whole[row]]!r}; all rows of one {kind} must be in one."
        )


def check_varied(name: str, values: NDArray[Any]) -> None:
    """Raise ValueError where all values are the same."""
    if (values == values[0]).all():
        raise ValueError(f"{name} are all {values[0].item()!r}; there is nothing to predict unless they differ.")


def check_classes(
    name: str,
    classes: NDArray[Any],
    codes: Ints,
    block: Ints,
    names: Sequence[Any],
    rotation: Sequence[tuple[Ints, Ints, Ints]],
) -> None:
    """Raise ValueError where a class cannot be learnt: it is in one block only, or in no training row."""
    check_varied(name, classes[codes])
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
                f"{name} of row {row} is {classes[codes[row]].item()!r}, which is missing from the training rows when "
                f"that row is tested; their nearest is {nearest_name(classes[codes[row]].item(), learnt)!r}."
            )


def read_relations(base: Any, n: int) -> tuple[Ints, Ints, Ints]:
    """Rows of the originals and of the copies, and for each copy the place of its original among the originals."""
    rows = np.asarray(base.detach().cpu() if hasattr(base, "detach") else base)
    if rows.shape != (n,):
        raise ValueError(f"base must have one entry for each of the {n} embeddings; got shape {rows.shape}.")
    if rows.dtype.kind not in "fiu" or not np.array_equal(rows, np.round(rows)):
        raise ValueError(f"base must hold row numbers, and −1 for originals; got an array of {rows.dtype}.")
    rows = rows.astype(np.int64)
    outside = np.flatnonzero((rows < -1) | (rows >= n))
    if len(outside):
        raise ValueError(f"base of row {outside[0]} is {rows[outside[0]]}; rows are 0 to {n - 1}, an original has −1.")
    originals, copies = np.flatnonzero(rows == -1), np.flatnonzero(rows >= 0)
    chained = copies[rows[rows[copies]] != -1]
    if len(chained):
        row, owner = chained[0], rows[chained[0]]
        raise ValueError(f"base of row {row} is {owner}, no original: that row is a copy of row {rows[owner]} itself.")
    if not len(copies):
        raise ValueError("base is −1 in all rows; it needs copies: of each the row of its original.")
    return originals, copies, np.searchsorted(originals, rows[copies])


def check_copies(block: Ints, names: Sequence[Any], copies: Ints, originals: Ints) -> None:
    """Raise ValueError where a copy is of another block than its original, whose row is given for each copy."""
    strayed = np.flatnonzero(block[copies] != block[originals])
    if len(strayed):
        copy, original = copies[strayed[0]], originals[strayed[0]]
        raise ValueError(
            f"Row {copy} is of block {names[block[copy]]!r}, but row {original}, its original, of "
            f"{names[block[original]]!r}; a copy must be of the block of its original."
        )


def result_of(
    measures: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Floats],
    numbers: Mapping[str, Any],
    return_scores: bool,
) -> dict[str, Any]:
    """Return the value of each of MEASURES: a number, or the mean of its column of the samples; None where there is
    neither. With return_scores, also the columns: lists ``scores``, ``scores_NAME`` by the names in MEASURES."""
    values = {name: float(column.mean()) for name, column in columns.items()} | dict(numbers)
    result = {name: values.get(name) for name in measures}
    for name, fields in measures.items() if return_scores else ():
        if "column" in fields:
            key = f"scores{fields['column'].removeprefix('score')}"
            result[key] = columns[name].tolist() if name in columns else None
    return result


def of_all(scores: Floats, counted: NDArray[np.bool_]) -> Floats:
    """Return scores [n] of all samples, from the scores of the samples that count, with the same mean: the others are
    set to that mean, and change nothing in any bootstrap draw.

    Args:
        scores: of the samples that count.
        counted: whether each sample counts, [n].
    """
    mean = scores.mean()
    every: Floats = np.full(len(counted), mean)
    every[counted] += len(counted) / len(scores) * (scores - mean)
    return every


def copy_parameters(parameters: Any, copies: Ints, n: int) -> Floats:
    """The parameters of the copies; those of originals may be None or NaN."""
    try:
        values = np.asarray(parameters, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"parameters must be numbers, one for each of the {n} embeddings: {error}.") from None
    if values.shape != (n,):
        raise ValueError(f"parameters must have one entry for each of the {n} embeddings; got shape {values.shape}.")
    bad = copies[~np.isfinite(values[copies])]
    if len(bad):
        raise ValueError(f"parameters of copies must be finite; row {bad[0]} has {values[bad[0]]}.")
    values = values[copies]
    if np.ptp(values) == 0:
        raise ValueError(
            f"All parameters are {values[0]:g}; they must differ. Leave them out where a change has no parameter."
        )
    return values


def quarter_numbers(values: Floats) -> Ints:
    """Quarter of each value in their order, 0 to 3; equal values stay together."""
    ordered = np.sort(values)
    middle = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    quarters: Ints = np.minimum(4 * middle / len(values), 3).astype(np.int64)
    return quarters


def owner_means(values: Floats, owners: Ints) -> Floats:
    """For each original the mean over its copies."""
    means: Floats = np.bincount(owners, values) / np.bincount(owners)
    return means
