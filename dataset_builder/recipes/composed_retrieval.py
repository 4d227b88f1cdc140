"""Composed queries: a source clip, a change in words, and candidates that include every single-aspect shortcut.

The candidates of a row are all combinations of right and wrong aspects, and each is the target equally often. The clips
alone therefore do not reveal the target, and the accuracy of trivial baselines is known exactly. A model that uses only
the source guesses among the candidates that keep it (accuracy 1/4, 1/3, 1/2 in the order of `KINDS`). A model that uses
only the text guesses among the candidates for which it is true (1/2, 1/3, 1/2). A model that uses both, but neither
order nor binding, guesses between two candidates if a sound is added or changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from pydantic import Field

from ..data import AUDIO, TEXT, DataColumn, DatasetError, Row
from ..scenes.pool import Use, least_drawn
from ..scenes.slots import EVENTS_COLUMN, SUITING, SlotPool, SlotSpec, in_slots
from ..sounds.entries import LOUDNESS, Sounds
from .base import Drawn, Recipe

KINDS = ("then", "without", "attribute")

TARGET = "target"
"""The role of the right candidate; the roles of others name their wrong aspects."""

TEXTS: Mapping[str, tuple[str, str]] = {
    # The same words in another order: sorted, they do not distinguish a sound added last from one added first.
    "last": ("the same, then {0}", "{0} after the same"),
    "first": ("{0}, then the same", "the same after {0}"),
    "without": ("the same without {0}", "the same, but no {0}"),
    "attribute": ("the same, but the {0} is {1}", "the same with {1} {0}"),
}
"""Two wordings of each change: {0} is a label, {1} a word."""

ROUND = 144
"""Number of successive queries that share their labels, so that a change recurs and its direction can be learnt."""

FEWEST_LABELS = 6
"""Least number of labels of a round."""

Cells = Mapping[str, Sequence[tuple[Sequence[int], Sequence[int]]]]
"""For each label, sounds with the first of two words and sounds with the second that agree in all other words."""


class ComposedSpec(SlotSpec):
    """Everything that determines the queries and their samples."""

    items: int = Field(576, ge=1, le=20_000, description="Number of queries.")

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip, which has three sounds."""
        return self.samples_of(3)


def _draw_labels(pool: SlotPool, first: Use, others: Use, count: int, rng: np.random.Generator) -> list[str]:
    """Draw `count` labels: the first, whose sound is changed, and the others are each used evenly in their own role."""
    changed = pool.draw_names(1, first, rng)
    return [*changed, *rng.permutation(pool.draw_names(count - 1, others, rng, changed)).tolist()]


def _contrast(pool: SlotPool) -> tuple[tuple[str, str], Cells]:
    """Return two words of an attribute and the sounds that have them: shared by most labels, then first by alphabet.

    Words for loudness are left out, because all sounds are equally loud. Without words there are no labels.
    """
    by_pair: dict[tuple[str, str, str], dict[str, list[tuple[list[int], list[int]]]]] = {}
    for label, numbers in pool.by_label.items():
        alike: dict[tuple[Any, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number in numbers:
            for name, word in pool.entries[number].words.items():
                rest = sorted(item for item in pool.entries[number].words.items() if item[0] != name)
                alike[name, *rest][word].append(number)
        for (name, *_), of_word in alike.items():
            for one, other in combinations(sorted(of_word), 2) if name not in LOUDNESS else ():
                cells = by_pair.setdefault((name, one, other), {})
                cells.setdefault(label, []).append((of_word[one], of_word[other]))
    best = max(sorted(by_pair), key=lambda pair: len(by_pair[pair]), default=("", "", ""))
    return best[1:], by_pair.get(best, {})


def _role(**wrong: bool) -> str:
    """Return the role of a candidate, given its wrong aspects."""
    return ", ".join(f"other {name}" for name, is_wrong in wrong.items() if is_wrong) or TARGET


class ComposedQueries(Recipe[ComposedSpec]):
    """A source clip, a change in words, and candidates; one of them is the source with this change."""

    name = "composed_retrieval"
    suiting = SUITING

    @cached_property
    def presets(self) -> Mapping[str, ComposedSpec]:
        """Return the settings of each preset, by name."""
        return {"mini": ComposedSpec(items=144), "full": ComposedSpec()}

    def columns(self, spec: ComposedSpec) -> Sequence[DataColumn]:
        """Return the columns: the source, the candidates with their roles, and the change."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("source", AUDIO, "the source clip"),
            DataColumn("candidates", [AUDIO], "the candidates", per="roles"),
            DataColumn("change", TEXT, "the change in words"),
            DataColumn("roles", [TEXT], f"wrong aspects of each candidate; `{TARGET}` for the right one", least=2),
            DataColumn("kind", TEXT, "kind of change", choices=KINDS),
            DataColumn("key", TEXT, "the change, independent of source and wording"),
            DataColumn("pair", TEXT, "the labels of the source; rows with the same labels have the same sources"),
            EVENTS_COLUMN,
            DataColumn("domain", TEXT, "domain of the sounds"),
        )

    def draw(self, spec: ComposedSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield rows, alternating between kinds.

        Labels are used evenly in each role, and sounds evenly overall. The kind `attribute` is left out if fewer than
        four labels have sounds with both words.
        """
        every, in_rounds = SlotPool(sounds), Use()
        for number in range(spec.items):
            if not number % ROUND:
                pool = every.some(FEWEST_LABELS, in_rounds, self.random(spec, number // ROUND, 0))
                uses: dict[str, Use] = defaultdict(Use)
                words, cells = _contrast(pool)
                kinds = KINDS if len(cells) >= 4 else KINDS[:2]
            turn, place = divmod(number, len(kinds))
            kind, rng = kinds[place], self.random(spec, number)
            source: tuple[int, ...]
            said: tuple[str, ...]
            candidates: list[tuple[str, tuple[int, ...]]]
            if kind == "then":
                # A sound added last or first: {source kept, replaced} × {the sound, another} × {last, first}.
                wording = ("last", "first")[turn % 2]
                labels = _draw_labels(pool, uses[wording], uses[kind], 6, rng)
                z, w, x, y, u, v = pool.draw_recordings(labels, uses["sounds"], rng)
                source, said = (x, y), (pool.said(z),)
                candidates = [
                    (
                        _role(source=pair != (x, y), sound=added != z, order=position != wording),
                        (*pair, added) if position == "last" else (added, *pair),
                    )
                    for pair, added, position in product(((x, y), (u, v)), (z, w), ("last", "first"))
                ]
            elif kind == "without":
                # A sound left out and the gap closed: all pairs of the source's three sounds and a foreign one.
                wording = kind
                labels = _draw_labels(pool, uses[kind], uses["beside"], 4, rng)
                z, foreign, x, y = pool.draw_recordings(labels, uses["sounds"], rng)
                line = rng.permutation([z, foreign, x, y]).tolist()
                source, said = tuple(one for one in line if one != foreign), (pool.said(z),)
                candidates = [
                    (_role(source=foreign in pair, removal=z in pair), pair) for pair in combinations(line, 2)
                ]
            else:
                # Another word for one of two sounds that shared one: each sound kept or replaced, the word at either.
                wording = kind
                before_and_after = []
                for label in _draw_labels(pool.of_labels(cells), uses[words[turn % 2]], uses[kind], 4, rng):
                    options = cells[label][int(rng.integers(len(cells[label])))]
                    two = [least_drawn(cell, uses["sounds"].recordings, rng) for cell in options]
                    uses["sounds"].recordings.update(two)
                    before_and_after.append(two if turn % 2 else two[::-1])
                first, second, another, other = before_and_after
                step = int(rng.choice((1, -1)))
                source, said = (first[0], second[0])[::step], (pool.said(first[0]), words[turn % 2])
                candidates = [
                    (
                        _role(source=not (one is first and two is second), binding=not right),
                        (one[right], two[not right])[::step],
                    )
                    for one, two, right in product((first, another), (second, other), (True, False))
                ]
            candidates = [candidates[one] for one in rng.permutation(len(candidates))]
            clips = [in_slots(clip, spec) for clip in (source, *(clip for _, clip in candidates))]
            row = {
                "id": f"{self.name}-{number:05d}",
                "change": TEXTS[wording][int(rng.integers(2))].format(*said),
                "roles": [role for role, _ in candidates],
                "kind": kind,
                "key": " ".join((wording, *said)),
                "pair": " + ".join(sorted(map(pool.said, source))),
                "events": [pool.heard(clip, spec.sample_rate) for clip in clips],
                "domain": spec.domain_name,
            }
            yield Drawn(row, clips)

    def check_row(self, row: Row) -> None:
        """Raise an error if a row does not have exactly one target."""
        super().check_row(row)
        if row["roles"].count(TARGET) != 1:
            raise DatasetError(f"row {row['id']}: roles is {row['roles']!r}; exactly one must be {TARGET!r}")


RECIPE = ComposedQueries()
