"""Expressions of events: a leaf is one kind of event; `Then` puts parts one after the other, `Together` at one time.

``x + y`` is x and then y, ``x * y`` is x and y at the same time, as in arXiv 2310.08753, section 3.4. An expression is
what a scene is made from and what a caption says; whether it is true of a clip is said in `truth`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise

import numpy as np

from audio_compositionality.support.errors import InputError

from ..data import Pcm16, Waveform
from ..sounds.intervals import STEPS
from .mixing import Event, EventSounds, mix


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


SILENCE = -60.0
"""Decibels below the loudest frame: what is softer at both ends of a sound is cut off."""

CROSSFADE = 0.1
"""Of the shortest sound of a row."""

SHORTEST = 1.2
"""Seconds that a sound lasts; one of less is repeated. Without half a crossfade at each end, more than one is left."""

LATEST_START = 0.5
"""Seconds: sounds that are heard at the same time begin at different times up to this."""

LEVEL = 0.1
"""Root mean square of a sound whose level is 0 dB, of full scale; less where a clip would pass full scale."""

PAIR_SHARES, MOST_RATIO = (0.4, 0.6), 1.15
"""Of the time of a sequence, the shares of two parts; and of more, the largest over the smallest."""

_WINDOWS, _QUIET = 5, 10.0
"""Parts of a long sound that are drawn, until one is not so many decibels softer than the whole."""


@dataclass(frozen=True)
class TimedClip:
    """A clip as it is drawn, before it is known how long its sounds last.

    Attributes:
        tree: of its sounds, each a leaf.
        entries: number of the sound of each leaf.
        spans: when each would be heard if all filled their share of the clip, first sample and the one after the last.
    """

    tree: Expression
    entries: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TimedRow:
    """The clips of a row on their time line.

    Attributes:
        clips: the events of each, in the order of its leaves.
        fade: samples at both ends of each event in which it rises and falls.
    """

    clips: tuple[tuple[Event, ...], ...]
    fade: int

    def heard(self, event: Event) -> tuple[int, int]:
        """The first sample of an event that counts as heard, and the one after the last: of a crossfade, half."""
        return event.start + self.fade // 2, event.stop - self.fade // 2


def least_share(count: int) -> float:
    """The least share of so many parts of a sequence."""
    return PAIR_SHARES[0] if count == 2 else 1 / (1 + (count - 1) * MOST_RATIO)


def draw_shares(count: int, rng: np.random.Generator) -> list[float]:
    """How parts of a sequence divide its time: two at 40 to 60 %, more nearly evenly."""
    if count == 2:
        cut = float(rng.uniform(*PAIR_SHARES))
        return [cut, 1 - cut]
    return [float(share) for share in rng.uniform(1, MOST_RATIO, count)]


def draw_spans(tree: Expression, length: int, gap: int, rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """When each leaf of a tree is heard if it fills its share of a clip of so many samples."""
    return tuple(time_line(tree, (0, length), gap, lambda count: draw_shares(count, rng)))


def is_overlay(tree: Expression) -> bool:
    """Whether all is heard at one time."""
    return isinstance(tree, Together) and all(isinstance(part, Leaf) for part in tree.operands)


def timed(
    clips: Sequence[TimedClip], gap: int, late: Sequence[float], sounds: EventSounds, rng: np.random.Generator
) -> TimedRow:
    """The clips of a row, all of which last equally long.

    Args:
        clips: of the row; a sound that several have is the same part of it in each.
        gap: samples of silence between two loops, one after the other.
        late: of each leaf of an overlay, the share of `LATEST_START` after which it begins.
        sounds: of the clips.
        rng: draws parts of long sounds.
    """
    shortest = round(SHORTEST * sounds.sample_rate)
    parts: dict[int, Event] = {}
    for clip in clips:
        for entry, (start, stop) in zip(clip.entries, clip.spans, strict=True):
            if entry not in parts:
                parts[entry] = _part(entry, stop - start, shortest, sounds, rng)
    is_looped = any(sounds.length(entry) is None for entry in parts)
    is_joined = any(not isinstance(clip.tree, Leaf) and not is_overlay(clip.tree) for clip in clips)
    fade = 0 if is_looped or not is_joined else 2 * round(CROSSFADE / 2 * min(part.length for part in parts.values()))
    joint = gap if is_looped else -fade
    sized = [_sized(clip.tree, iter([parts[entry].length for entry in clip.entries]), joint) for clip in clips]
    lasting = max(one.length for one in sized)
    rows = []
    for clip, one in zip(clips, sized, strict=True):
        spans = _fitted(one, 0, lasting, joint)
        events = [
            Event(entry, start, stop, offset=parts[entry].offset)
            for entry, (start, stop) in zip(clip.entries, spans, strict=True)
        ]
        if is_overlay(clip.tree):
            latest = max(0, min(round(LATEST_START * sounds.sample_rate), lasting - shortest))
            events = [
                Event(event.entry, int(share * latest), event.stop, offset=event.offset)
                for event, share in zip(events, late, strict=False)
            ]
        rows.append(tuple(events))
    return TimedRow(tuple(rows), fade)


def _part(entry: int, most: int, shortest: int, sounds: EventSounds, rng: np.random.Generator) -> Event:
    """A sound by itself: all of a loop's share; of what is longer than its share, a part that is not too soft."""
    length = sounds.length(entry)
    if length is None:
        return Event(entry, 0, most)
    if length <= most:
        return Event(entry, 0, max(length, shortest))
    hop = sounds.sample_rate // STEPS
    windows = [
        Event(entry, 0, most, offset=hop * int(rng.integers((length - most) // hop + 1))) for _ in range(_WINDOWS)
    ]
    powers = [float(sounds.powers(window).mean()) for window in windows]
    enough = float(sounds.powers(Event(entry, 0, length)).mean()) * 10 ** (-_QUIET / 10)
    loud = (window for window, power in zip(windows, powers, strict=True) if power >= enough)
    return next(loud, windows[int(np.argmax(powers))])


@dataclass(frozen=True)
class _Sized:
    """A tree and how long it lasts by itself, in samples: what is heard at one time as long as the longest of it."""

    tree: Expression
    length: int
    parts: tuple[_Sized, ...] = ()


def _sized(tree: Expression, lengths: Iterator[int], joint: int) -> _Sized:
    """A tree whose leaves last so long, with so many samples between two parts of a sequence."""
    if isinstance(tree, Leaf):
        return _Sized(tree, next(lengths))
    parts = tuple(_sized(part, lengths, joint) for part in tree.operands)
    every = [part.length for part in parts]
    return _Sized(tree, sum(every) + joint * (len(every) - 1) if isinstance(tree, Then) else max(every), parts)


def _fitted(sized: _Sized, start: int, length: int, joint: int) -> list[tuple[int, int]]:
    """When each leaf is heard if a tree lasts so long, which is not less than it lasts by itself: nothing is cut."""
    if not sized.parts:
        return [(start, start + length)]
    if not isinstance(sized.tree, Then):
        return [span for part in sized.parts for span in _fitted(part, start, length, joint)]
    sounding = length - joint * (len(sized.parts) - 1)
    ends = [0, *accumulate(part.length for part in sized.parts)]
    cuts = [round(sounding * end / ends[-1]) for end in ends]
    spans: list[tuple[int, int]] = []
    for place, part in enumerate(sized.parts):
        spans += _fitted(part, start + cuts[place] + joint * place, cuts[place + 1] - cuts[place], joint)
    return spans


def mixed(row: TimedRow, sounds: EventSounds, length: int) -> list[Pcm16]:
    """The clips of a row, int16 [length], under one gain, which is below 1 only where one would pass full scale."""
    rise = np.sin(np.pi / 2 * (np.arange(row.fade) + 0.5) / max(row.fade, 1)).astype(np.float32)

    def samples_of(event: Event) -> Waveform:
        samples = sounds.samples(event)
        if row.fade:
            samples[: row.fade] *= rise
            samples[len(samples) - row.fade :] *= rise[::-1]
        return samples

    return mix(row.clips, samples_of, length, most=LEVEL)
