"""Read and check columns with one entry per embedding: labels, blocks, folds, and the originals of copies."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import LARGEST, Floats, Ints, nearest_name

FEWEST_BLOCKS = 5
"""With fewer blocks, their mean is a poor estimate for other blocks."""
UNBOUNDED = 1e15  # "no bound" in ranges


def read_entries(name: str, x: Any, n: int) -> list[Any]:
    """Return the n entries of an array, a tensor or a sequence. Raises ValueError for another length."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    values = x.tolist() if hasattr(x, "tolist") else list(x)
    count = len(values) if isinstance(values, list) else 0
    if count != n:
        raise ValueError(f"{name} must have one entry per embedding ({n}); got {count}.")
    return values


def read_column(name: str, x: Any, n: int) -> NDArray[Any]:
    """Return strings as an array [n], finite numbers as float64 [n]. Raises ValueError for anything else."""
    values = read_entries(name, x, n)
    # Check the few types instead of thousands of entries, since columns are read again for each score.
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
    """Return the code of each string or integer [n], and the sorted distinct entries."""
    column = read_column(name, x, n)
    if column.dtype.kind != "U":
        broken = np.flatnonzero(column != np.round(column))
        if len(broken):
            raise ValueError(f"{name} must be strings or integers; row {broken[0]} has {column[broken[0]]:g}.")
        column = column.astype(np.int64)
    values, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.int64), values.tolist()


def read_blocks(x: Any, n: int) -> tuple[Ints, list[Any]]:
    """Return the number of each row's block and the blocks' names. Raises ValueError for fewer than FEWEST_BLOCKS."""
    block, names = read_codes("blocks", x, n)
    if len(names) < FEWEST_BLOCKS:
        raise ValueError(f"blocks has {len(names)} different values, {names}; at least {FEWEST_BLOCKS} are needed.")
    return block, names


def read_folds(x: Any, block: Ints, names: Sequence[Any]) -> tuple[Ints, list[Any]]:
    """Return the number of each row's fold and the folds.

    Raises ValueError for fewer than 3 folds, or a block in two folds.
    """
    fold, folds = read_codes("folds", x, len(block))
    if isinstance(folds[0], str):
        raise ValueError(f"folds must be integers; row 0 has {folds[fold[0]]!r}.")
    if len(folds) < 3:
        raise ValueError(f"folds has {len(folds)} different values, {folds}; at least 3 are needed.")
    check_within("block", names, block, "folds", fold, folds)
    return fold, folds


def fold_rotation(x: Any, block: Ints, names: Sequence[Any]) -> list[tuple[Ints, Ints, Ints]]:
    """Return training, validation and test rows, each fold tested once. Raises the ValueErrors of `read_folds`."""
    fold, folds = read_folds(x, block, names)
    following = [(fold == k, fold == (k + 1) % len(folds)) for k in range(len(folds))]
    return [
        (np.flatnonzero(~(test | validation)), np.flatnonzero(validation), np.flatnonzero(test))
        for test, validation in following
    ]


def check_within(kind: str, names: Sequence[Any], code: Ints, wholes: str, whole: Ints, values: Sequence[Any]) -> None:
    """Raise ValueError if rows of one code lie in two groups, such as a block in two folds."""
    first = np.zeros(len(names), dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    strayed = np.flatnonzero(whole != whole[first[code]])
    if len(strayed):
        row, other = strayed[0], first[code[strayed[0]]]
        raise ValueError(
            f"{kind.capitalize()} {names[code[row]]!r} lies in two {wholes}: row {other} in {values[whole[other]]!r}, "
            f"row {row} in {values[whole[row]]!r}; all rows of a {kind} must be in the same one."
        )


def check_varied(name: str, values: NDArray[Any]) -> None:
    """Raise ValueError if all values are the same."""
    if (values == values[0]).all():
        raise ValueError(f"{name} are all {values[0].item()!r}; at least two different values are needed.")


def check_classes(
    name: str,
    classes: NDArray[Any],
    codes: Ints,
    block: Ints,
    names: Sequence[Any],
    rotation: Sequence[tuple[Ints, Ints, Ints]],
) -> None:
    """Raise ValueError if a class cannot be learned: it is in one block only, or in no training row."""
    check_varied(name, classes[codes])
    for code, label in enumerate(classes.tolist()):
        places = np.unique(block[codes == code])
        if len(places) == 1:
            raise ValueError(
                f"Class {label!r} of {name} is in one block only, {names[places[0]]!r}; it needs two: one for training "
                "and one for the test."
            )
    for train, _, test in rotation:
        missing = np.flatnonzero(~np.isin(codes[test], codes[train]))
        if len(missing):
            row = test[missing[0]]
            learnt = classes[np.unique(codes[train])].tolist()
            raise ValueError(
                f"{name} of row {row} is {classes[codes[row]].item()!r}, a class missing from the training rows of its "
                f"fold; the most similar class there is {nearest_name(classes[codes[row]].item(), learnt)!r}."
            )


def read_relations(base: Any, n: int) -> tuple[Ints, Ints, Ints]:
    """Return the rows of the originals and of the copies, and each copy's original as an index into the originals."""
    rows = np.asarray(base.detach().cpu() if hasattr(base, "detach") else base)
    if rows.shape != (n,):
        raise ValueError(f"base must have one entry per embedding ({n}); got shape {rows.shape}.")
    if rows.dtype.kind not in "fiu" or not np.array_equal(rows, np.round(rows)):
        raise ValueError(f"base must hold row numbers, and −1 for originals; got an array of {rows.dtype}.")
    rows = rows.astype(np.int64)
    outside = np.flatnonzero((rows < -1) | (rows >= n))
    if len(outside):
        raise ValueError(
            f"base of row {outside[0]} is {rows[outside[0]]}; rows are 0 to {n - 1}, and −1 is an original."
        )
    originals, copies = np.flatnonzero(rows == -1), np.flatnonzero(rows >= 0)
    chained = copies[rows[rows[copies]] != -1]
    if len(chained):
        row, owner = chained[0], rows[chained[0]]
        raise ValueError(f"base of row {row} is {owner}, which is not an original but a copy of row {rows[owner]}.")
    if not len(copies):
        raise ValueError("base is −1 in all rows, so there are no copies. Give for each copy the row of its original.")
    return originals, copies, np.searchsorted(originals, rows[copies])


def check_copies(block: Ints, names: Sequence[Any], copies: Ints, originals: Ints) -> None:
    """Raise ValueError if a copy is in another block than its original, whose row is given for each copy."""
    strayed = np.flatnonzero(block[copies] != block[originals])
    if len(strayed):
        copy, original = copies[strayed[0]], originals[strayed[0]]
        raise ValueError(
            f"Row {copy} is in block {names[block[copy]]!r}, but its original, row {original}, is in "
            f"{names[block[original]]!r}; a copy must be in the same block as its original."
        )


def result_of(
    measures: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Floats],
    numbers: Mapping[str, Any],
    return_scores: bool,
) -> dict[str, Any]:
    """Return each of MEASURES: a number, or the mean of its column over samples; None without either.

    With return_scores, also return the columns as lists ``scores`` and ``scores_NAME``, named as in MEASURES.
    """
    values = {name: float(column.mean()) for name, column in columns.items()} | dict(numbers)
    result = {name: values.get(name) for name in measures}
    for name, fields in measures.items() if return_scores else ():
        if "column" in fields:
            key = f"scores{fields['column'].removeprefix('score')}"
            result[key] = columns[name].tolist() if name in columns else None
    return result


def of_all(scores: Floats, counted: NDArray[np.bool_]) -> Floats:
    """Return scores [n] of all samples, with the mean of the samples that count.

    The other samples get that mean, which leaves bootstrap draws unchanged.

    Args:
        scores: of the samples that count.
        counted: whether each sample counts, [n].
    """
    mean = scores.mean()
    every: Floats = np.full(len(counted), mean)
    every[counted] += len(counted) / len(scores) * (scores - mean)
    return every


def copy_parameters(parameters: Any, copies: Ints, n: int) -> Floats:
    """Return the parameters of the copies; parameters of originals may be None or NaN."""
    try:
        values = np.asarray(parameters, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"parameters must be numbers, one per embedding ({n}): {error}.") from None
    if values.shape != (n,):
        raise ValueError(f"parameters must have one entry per embedding ({n}); got shape {values.shape}.")
    bad = copies[~np.isfinite(values[copies])]
    if len(bad):
        raise ValueError(f"parameters of copies must be finite; row {bad[0]} has {values[bad[0]]}.")
    values = values[copies]
    if np.ptp(values) == 0:
        raise ValueError(
            f"All parameters are {values[0]:g}; they must differ. Leave them out if the change has no parameter."
        )
    return values


def quarter_numbers(values: Floats) -> Ints:
    """Return the quarter of each value in sorted order, 0 to 3; equal values are in the same quarter."""
    ordered = np.sort(values)
    middle = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    quarters: Ints = np.minimum(4 * middle / len(values), 3).astype(np.int64)
    return quarters


def owner_means(values: Floats, owners: Ints) -> Floats:
    """Return the mean over its copies for each original."""
    means: Floats = np.bincount(owners, values) / np.bincount(owners)
    return means
