"""What else is true of a clip, and what is nearly true: positives and hard negatives by rule (arXiv 2310.08753, 3.4).

The rules only propose; the truth test decides: no positive is kept that is not true of the clip's events, no negative
that is not false of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest
from typing import Any, Literal

import numpy as np

from ..scenes.expressions import Expression, Leaf, Then, Together, joined, leaves, parts, replaced
from ..sounds.words import dimension_of
from .captions import Wording, bag_of_words, caption, wordings
from .truth import Event, dimensions, is_false, is_true

Kind = Literal["order", "relation", "attribute", "absent"]

SAME_WORDS: tuple[Kind, ...] = ("order", "attribute")
"""Kinds whose text has the same words as the caption: nobody can tell them who does not hear how parts are joined."""

MOST_POSITIVES = 7
"""Of a clip (arXiv 2310.08753)."""

Events = Sequence[Event | Mapping[str, Any]]


@dataclass(frozen=True)
class Negative:
    """A text that is false of a clip.

    Attributes:
        text: the caption after one change.
        kind: what was changed. ``order``: two parts of a sequence exchanged; ``relation``: one after the other instead
            of at the same time, or the other way round; ``attribute``: a word or a noun exchanged between two leaves;
            ``absent``: one replaced by what is not heard.
        expression: what the text says.
    """

    text: str
    kind: Kind
    expression: Expression


def false_variants(
    expression: Expression, absent: Iterable[str] = (), dimension: Callable[[str], str] = dimension_of
) -> Iterator[tuple[Expression, Kind]]:
    """What an expression becomes by one change; whether that is false of a clip is not asked here.

    Args:
        expression: any.
        absent: labels that are not heard, for the kind ``absent``.
        dimension: the attribute that a word is of.
    """
    for variant in _reordered(expression):
        yield variant, "order"
    for variant in _related_otherwise(expression):
        yield variant, "relation"
    every = leaves(expression)
    for one, other in combinations(range(len(every)), 2):
        for first, second in _exchanged(every[one], every[other], dimension):
            new = [first if place == one else second if place == other else leaf for place, leaf in enumerate(every)]
            yield replaced(expression, new), "attribute"
    for label in absent:
        for place, leaf in enumerate(every):
            yield replaced(expression, [*every[:place], replace(leaf, label=label), *every[place + 1 :]]), "absent"


def _within(expression: Then | Together, vary: Any) -> Iterator[Expression]:
    """The variants of one operand at a time, in place."""
    for place, operand in enumerate(expression.operands):
        for variant in vary(operand):
            yield joined(type(expression), [*expression.operands[:place], variant, *expression.operands[place + 1 :]])


def _reordered(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Leaf):
        return
    if isinstance(expression, Then):
        for one, other in combinations(range(len(expression.operands)), 2):
            operands = list(expression.operands)
            operands[one], operands[other] = operands[other], operands[one]
            yield Then(tuple(operands))
    yield from _within(expression, _reordered)


def _related_otherwise(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Leaf):
        return
    yield joined(Together if isinstance(expression, Then) else Then, expression.operands)
    yield from _within(expression, _related_otherwise)


def _exchanged(one: Leaf, other: Leaf, dimension: Callable[[str], str]) -> Iterator[tuple[Leaf, Leaf]]:
    """Two leaves that have exchanged their nouns, or their words of one attribute that both have."""
    if one.label != other.label:
        yield replace(one, label=other.label), replace(other, label=one.label)
    for place, word in enumerate(one.attributes):
        for opposite, its_word in enumerate(other.attributes):
            if word != its_word and dimension(word) == dimension(its_word):
                yield _with_word(one, place, its_word), _with_word(other, opposite, word)


def _with_word(leaf: Leaf, place: int, word: str) -> Leaf:
    return replace(leaf, attributes=(*leaf.attributes[:place], word, *leaf.attributes[place + 1 :]))


def negatives(
    expression: Expression,
    wording: Wording,
    events: Events,
    rng: np.random.Generator,
    *,
    most: int,
    absent: Iterable[str] = (),
    held_out: bool | None = None,
) -> list[Negative]:
    """False texts near a caption: each kind in turn, so that few are of as many kinds as there are.

    Those of `SAME_WORDS` have the wording and the words of the caption, the others any wording where it does not suit.

    Args:
        expression: what the caption says, and its ``wording``.
        wording: see `captions.wordings`.
        events: of the clip; each text is false of them by `truth.is_false`.
        rng: draws which are taken.
        most: how many at most.
        absent: labels that are not heard.
        held_out: of wordings, as `captions.wordings` has it.
    """
    text = caption(expression, wording)
    proposed: dict[Kind, dict[str, Negative]] = {"order": {}, "attribute": {}, "relation": {}, "absent": {}}
    heard = [Event.of(event) for event in events]
    for variant, kind in false_variants(expression, absent, dimensions(heard)):
        if not is_false(variant, heard):
            continue
        suits = wording in wordings(variant)
        of_variant = wording if suits else draw_wording(variant, rng, held_out=held_out)
        other = caption(variant, of_variant)
        if kind not in SAME_WORDS or bag_of_words(other) == bag_of_words(text):
            proposed[kind][other] = Negative(other, kind, variant)
    return _by_turns([list(of_kind.values()) for of_kind in proposed.values()], most, rng)


def _by_turns(lists: Sequence[Sequence[Negative]], most: int, rng: np.random.Generator) -> list[Negative]:
    """Of each list one after the other, each list in an order that is drawn, and no text twice."""
    drawn = [[of_kind[place] for place in rng.permutation(len(of_kind))] for of_kind in lists]
    turns = [of_kind[turn] for turn in range(max(map(len, drawn))) for of_kind in drawn if turn < len(of_kind)]
    return list({negative.text: negative for negative in turns}.values())[:most]


def draw_wording(expression: Expression, rng: np.random.Generator, *, held_out: bool | None = None) -> Wording:
    """One of `captions.wordings`; of those with a sequence, as often one that names the first heard last as not."""
    return _in_drawn_order(expression, rng, held_out)[0]


def _in_drawn_order(expression: Expression, rng: np.random.Generator, held_out: bool | None) -> list[Wording]:
    """All wordings, those that name the first heard first and those that name it last by turns."""
    suiting = wordings(expression, held_out=held_out)
    drawn = [suiting[place] for place in rng.permutation(len(suiting))]
    forward, reverse = (
        [one for one in drawn if (one.mention == "reverse") == is_reverse] for is_reverse in (False, True)
    )
    lists = (forward, reverse) if rng.random() < 0.5 else (reverse, forward)
    return [one for turn in zip_longest(*lists) for one in turn if one is not None]


def wholes(
    expression: Expression,
    rng: np.random.Generator,
    *,
    most: int,
    held_out: bool | None = None,
) -> list[tuple[Expression, Wording, str]]:
    """Equivalent captions of an expression in different wordings, of a sequence half of them in reverse.

    Returns:
        of each what it says, in which what is heard together stands in an order that is drawn; its wording; its text.
    """
    texts = []
    for wording in _in_drawn_order(expression, rng, held_out)[:most]:
        said = _shuffled(expression, rng)
        texts.append((said, wording, caption(said, wording)))
    return texts


def _shuffled(expression: Expression, rng: np.random.Generator) -> Expression:
    if isinstance(expression, Leaf):
        return expression
    operands = [_shuffled(operand, rng) for operand in expression.operands]
    if isinstance(expression, Then):
        return Then(tuple(operands))
    return Together(tuple(operands[place] for place in rng.permutation(len(operands))))


def true_parts(
    expression: Expression,
    events: Events,
    rng: np.random.Generator,
    *,
    most: int = MOST_POSITIVES,
    held_out: bool | None = None,
) -> list[tuple[Expression, str]]:
    """Captions of parts of an expression, each true of the clip's events and in a wording that is drawn."""
    true = [part for part in parts(expression) if is_true(part, events)]
    drawn = []
    for place in sorted(rng.permutation(len(true))[:most]):
        wording = draw_wording(true[place], rng, held_out=held_out)
        drawn.append((true[place], caption(_shuffled(true[place], rng), wording)))
    return drawn
