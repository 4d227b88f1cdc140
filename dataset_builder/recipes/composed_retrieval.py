"""Composed queries: a source clip and a change in words, and candidates that hold every single-aspect shortcut.

Of the clips of a row alone, nothing tells which is the target: the candidates are all combinations of right and wrong
aspects, and each of them is the target equally often. So floors are exact. A reader of the source alone is left with
the candidates that keep the source (1/4, 1/3 and 1/2 in the order of `KINDS`), a reader of the text alone with those
that it is true of (1/2, 1/3, 1/2), a reader of both without order or binding with two (1/2) of a sound added or an
attribute, and with one of a sound left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product

import numpy as np
from pydantic import Field

from ..data import AUDIO, TEXT, DataColumn, DatasetError, Row
from ..scenes.pool import Use, least_drawn
from ..scenes.slots import EVENTS_COLUMN, SlotPool, SlotSpec, in_slots
from ..sounds.entries import LOUDNESS, Sounds
from .base import Drawn, Recipe

KINDS = ("then", "without", "attribute")

TARGET = "target"
"""The role of the right candidate; the others name their wrong aspects."""

LEAST_CONTRASTED = 4
"""Labels of sounds with either of two words that a change of attribute needs."""

TEXTS: Mapping[str, tuple[str, str]] = {
    # The same words in another order, so that sorted words cannot tell a sound added last from one added first.
    "last": ("the same, then {0}", "{0} after the same"),
    "first": ("{0}, then the same", "the same after {0}"),
    "without": ("the same without {0}", "the same, but no {0}"),
    "attribute": ("the same, but {0} {1}", "the same with {1} {0}"),
}
"""Two wordings of each change: {0} is a label, {1} a word."""


class ComposedSpec(SlotSpec):
    """Everything that decides the queries and their samples."""

    items: int = Field(576, ge=1, le=100_000, description="How many queries.")

    @property
    def num_samples(self) -> int:
        """Samples of a clip: of three sounds."""
        return 2 * self.slot_samples + self.event_samples


@dataclass(frozen=True)
class Query:
    """A source, and candidates by their wrong aspects; clips are numbers of sounds in their order.

    Attributes:
        source: a clip.
        candidates: pairs of wrong aspects and a clip; the one without any is the target.
        change: the change independent of the source.
        wording: key of `TEXTS`.
        words: what the wording names.
    """

    source: tuple[int, ...]
    candidates: list[tuple[tuple[str, ...], tuple[int, ...]]]
    change: str
    wording: str
    words: tuple[str, ...]


@dataclass
class QueryDraws:
    """Draws of queries, as evenly over labels and sounds as they can be, from earlier draws.

    Attributes:
        pool: the sounds.
        use: counts of draws, of sounds and by the role of labels.
    """

    pool: SlotPool
    use: dict[str, Use] = field(default_factory=lambda: defaultdict(Use))

    def labels(self, role: str, count: int, rng: np.random.Generator, pool: SlotPool) -> list[str]:
        """So many labels, the first drawn evenly in a role of its own, the others in any order."""
        first = pool.draw_names(1, self.use[role], rng)
        others = pool.draw_names(count - 1, self.use[f"beside {role.split()[0]}"], rng, first)
        return [*first, *(others[place] for place in rng.permutation(count - 1))]

    def recordings(self, labels: Sequence[str], rng: np.random.Generator) -> tuple[int, ...]:
        """A sound of each label."""
        return self.pool.draw_recordings(labels, self.use["sounds"], rng)

    def then(self, turn: int, rng: np.random.Generator) -> Query:
        """A sound added last or first: {source kept, replaced} × {right sound, other} × {last, first}."""
        wording = ("last", "first")[turn]
        labels = self.labels(f"then {wording}", 6, rng, self.pool)
        z, w, x, y, u, v = self.recordings(labels, rng)
        candidates = [
            (
                _faults(source=pair != (x, y), sound=sound != z, order=place != wording),
                (*pair, sound) if place == "last" else (sound, *pair),
            )
            for pair, sound, place in product(((x, y), (u, v)), (z, w), ("last", "first"))
        ]
        said = self.pool.said(z)
        return Query((x, y), candidates, f"{wording} {said}", wording, (said,))

    def without(self, turn: int, rng: np.random.Generator) -> Query:
        """A sound left out, the others closed up: all pairs, in order, of the source's three sounds and a foreign one.

        Each sound is in half of the pairs, so that none stands out.
        """
        numbers = self.recordings(self.labels("without", 4, rng, self.pool), rng)
        z, foreign = numbers[:2]
        line = [numbers[place] for place in rng.permutation(4)]
        candidates = [(_faults(removal=z in pair, sound=foreign in pair), pair) for pair in combinations(line, 2)]
        source = tuple(number for number in line if number != foreign)
        return Query(source, candidates, f"without {self.pool.said(z)}", "without", (self.pool.said(z),))

    def attribute(self, turn: int, rng: np.random.Generator) -> Query:
        """One of two sounds with another word: either sound kept or replaced × the word at the one or the other."""
        words, by_label = self.contrasts or ((), {})
        some = copy(self.pool)
        some.by_label = {label: self.pool.by_label[label] for label in by_label}
        labels = self.labels(f"attribute {turn}", 4, rng, some)
        pairs = []
        for label in labels:
            cells = by_label[label][int(rng.integers(len(by_label[label])))]
            pairs.append([least_drawn(cell, self.use["sounds"].recordings, rng) for cell in cells])
            self.use["sounds"].recordings.update(pairs[-1])
        # Of each sound first the one before the change, then the one after it; the changed one is heard first or last.
        x, y, u, v = (pair[::-1] if turn else pair for pair in pairs)
        is_last = bool(rng.integers(2))
        candidates = [
            (_faults(source=one is not x or other is not y, binding=not right), _turned((one[right], other[not right]), is_last))
            for one, other, right in product((x, u), (y, v), (True, False))
        ]
        said = self.pool.said(x[0]), words[1 - turn]
        return Query(_turned((x[0], y[0]), is_last), candidates, " ".join(said), "attribute", said)

    @cached_property
    def contrasts(self) -> tuple[tuple[str, ...], dict[str, list[tuple[list[int], list[int]]]]] | None:
        """Two words of an attribute, and of each label the sounds with the one and with the other, alike in their other
        words; the pair that most labels have, of these the farthest apart. None where too few labels have any.

        Words for loudness are left out: all sounds are equally loud.
        """
        pairs: dict[tuple[str, ...], dict[str, list[tuple[list[int], list[int]]]]] = defaultdict(lambda: defaultdict(list))
        apart: dict[tuple[str, ...], float] = {}
        for label, numbers in self.pool.by_label.items():
            cells: dict[tuple[object, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
            for number in numbers:
                words = self.pool.entries[number].words
                for name, word in words.items():
                    rest = sorted((name, word) for name, word in words.items() if name != word)
                    cells[name, *rest][word].append(number)
        return None


def _faults(**wrong: bool) -> tuple[str, ...]:
    """The names of the aspects that are wrong."""
    return tuple(name for name, is_wrong in wrong.items() if is_wrong)
