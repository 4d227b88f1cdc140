"""Expressions of events: a leaf is one kind of event; `Then` puts parts one after the other, `Together` at one time.

``x + y`` is x and then y, ``x * y`` is x and y at the same time, as in arXiv 2310.08753, section 3.4. An expression is
what a scene is made from and what a caption says; whether it is true of a clip is said in `truth`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from audio_compositionality.support.errors import InputError


class _Combining:
    """``+`` and ``*`` of expressions."""

    def __add__(self: Expression, other: Expression) -> Then:  # type: ignore[misc]
        return Then((*_operands(self, Then), *_operands(other, Then)))

    def __mul__(self: Expression, other: Expression) -> Together:  # type: ignore[misc]
        return Together((*_operands(self, Together), *_operands(other, Together)))


@dataclass(frozen=True)
class Leaf(_Combining):
    """One kind of event.

    Attributes:
        label: what sounds: the noun of a timbre (``bell``), or a label of recordings (``dog``).
        attributes: words that are said of it, in the order in which they are read; none is needed.
    """

    label: str
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Then(_Combining):
    """Two or more parts, one after the other, none of which is a `Then` itself."""

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check(self, Then)


@dataclass(frozen=True)
class Together(_Combining):
    """Two or more parts at the same time, none of which is a `Together` itself; their order means nothing."""

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check(self, Together)


Expression = Leaf | Then | Together


def _operands(expression: Expression, kind: type[Then] | type[Together]) -> tuple[Expression, ...]:
    return expression.operands if isinstance(expression, kind) else (expression,)


def _check(expression: Then | Together, kind: type) -> None:
    name = kind.__name__
    if len(expression.operands) < 2:
        raise InputError(f"{name} has {len(expression.operands)} operands; it has two or more")
    if any(isinstance(operand, kind) for operand in expression.operands):
        raise InputError(f"an operand of {name} is a {name}; give its operands instead, or join them by an operator")


def joined(kind: type[Then] | type[Together], operands: Sequence[Expression]) -> Expression:
    """Parts joined to one expression without a `Then` right within a `Then`; a single part is itself.

    Raises:
        InputError: there is none.
    """
    parts = tuple(part for operand in operands for part in _operands(operand, kind))
    return parts[0] if len(parts) == 1 else kind(parts)


def leaves(expression: Expression) -> tuple[Leaf, ...]:
    """The leaves, in the order in which they stand."""
    if isinstance(expression, Leaf):
        return (expression,)
    return tuple(leaf for operand in expression.operands for leaf in leaves(operand))


def canonical(expression: Expression) -> Expression:
    """The same expression with the operands of every `Together` sorted: equal for two that say the same."""
    if isinstance(expression, Leaf):
        return expression
    operands = [canonical(operand) for operand in expression.operands]
    return Then(tuple(operands)) if isinstance(expression, Then) else Together(tuple(sorted(operands, key=repr)))


def formula(expression: Expression) -> str:
    """An expression with ``+``, ``*`` and parentheses, equal for two that say the same."""
    return _formula(canonical(expression))


def _formula(expression: Expression) -> str:
    if isinstance(expression, Leaf):
        return " ".join((*expression.attributes, expression.label))
    texts = [_formula(part) if isinstance(part, Leaf) else f"({_formula(part)})" for part in expression.operands]
    return (" + " if isinstance(expression, Then) else " * ").join(texts)


def kept(expression: Expression, places: Collection[int]) -> Expression | None:
    """What is left of an expression if only some leaves are kept.

    Args:
        expression: any.
        places: of the leaves that are kept, as `leaves` counts them.

    Returns:
        the expression; None where no leaf is left.
    """
    return _kept(expression, iter(range(len(leaves(expression)))), places)


def _kept(expression: Expression, numbers: Iterator[int], places: Collection[int]) -> Expression | None:
    if isinstance(expression, Leaf):
        return expression if next(numbers) in places else None
    operands = [_kept(operand, numbers, places) for operand in expression.operands]
    remaining = [operand for operand in operands if operand is not None]
    return joined(type(expression), remaining) if remaining else None


def time_line(
    expression: Expression, span: tuple[int, int], gap: int, shares: Callable[[int], Sequence[float]]
) -> list[tuple[int, int]]:
    """When each leaf sounds if an expression fills a span of time: start and stop, in the order of `leaves`.

    A `Then` divides its span among its parts, a `Together` gives it to each.

    Args:
        expression: any.
        span: start and stop, in samples.
        gap: samples of silence between two parts of a `Then`.
        shares: how a number of parts divide what is left of their span, by positive numbers.
    """
    if isinstance(expression, Leaf):
        return [span]
    start, stop = span
    spans = [span] * len(expression.operands)
    if isinstance(expression, Then):
        sizes = list(shares(len(spans)))
        sounding = stop - start - gap * (len(spans) - 1)
        cuts = [round(sounding * sum(sizes[:place]) / sum(sizes)) for place in range(len(spans) + 1)]
        spans = [
            (start + first + gap * place, start + last + gap * place)
            for place, (first, last) in enumerate(pairwise(cuts))
        ]
    of_parts = zip(expression.operands, spans, strict=True)
    return [leaf for part, its_span in of_parts for leaf in time_line(part, its_span, gap, shares)]


def parts(expression: Expression) -> tuple[Expression, ...]:
    """All that is left of an expression if some but not all of its leaves are taken away, the largest first.

    They are its sub-trees, its single leaves, and also ``x * z`` and ``y * z`` of ``(x + y) * z``.
    """
    count = len(leaves(expression))
    every = (
        kept(expression, places) for size in range(count - 1, 0, -1) for places in combinations(range(count), size)
    )
    return tuple(dict.fromkeys(part for part in every if part is not None))


def replaced(expression: Expression, new: Sequence[Leaf]) -> Expression:
    """The same tree over other leaves, as many as it has."""
    if len(new) != len(leaves(expression)):
        raise InputError(f"{len(new)} leaves for an expression of {len(leaves(expression))}")
    return _replaced(expression, iter(new))


def _replaced(expression: Expression, new: Iterator[Leaf]) -> Expression:
    if isinstance(expression, Leaf):
        return next(new)
    return type(expression)(tuple(_replaced(operand, new) for operand in expression.operands))
