"""Captioned clips of recordings for training: trees of two to four events (after arXiv 2310.08753, section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING

from audio_compositionality.support.errors import InputError

from ..data import DatasetError, Pcm16, Row
from ..language.captions import wordings
from ..language.categories import category_of, recorded_phrase
from ..language.expressions import Expression, Leaf, Then, Together, formula, joined, leaves, replaced
from ..language.truth import Event
from ..language.variants import MOST_POSITIVES, negatives, true_parts, wholes
from .natural_pool import Slice, is_novel
from .natural_scenes import NaturalRendering, NaturalSettings, Placed, heard, place
from .rows import LazyRows, random_generator

if TYPE_CHECKING:
    import numpy as np

_SCENES, _TEXTS = 67, 68
"""The random streams."""

_SPLITS = ("train", "validation")

SIZES: Mapping[int, float] = MappingProxyType({2: 0.3, 3: 0.6, 4: 0.1})
"""How often a clip has so many events (the authors' release)."""

_CAPTIONS, _NEGATIVES, _ABSENT, _ATTEMPTS = 4, 8, 2, 50
"""Most captions and negatives of a row, labels drawn that are not heard, draws of labels until they can meet."""


@dataclass(frozen=True, kw_only=True)
class NaturalTrainingSettings(NaturalSettings):
    """What decides training rows of recordings.

    Attributes:
        train_rows: rows of the split ``train``.
        validation_rows: rows of the split ``validation``; none where too few labels have a third file.

    Raises:
        InputError: see `NaturalSettings`.
    """

    train_rows: int = 20_000
    validation_rows: int = 1_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("train_rows", self.train_rows, 1, 1_000_000)
        self._check("validation_rows", self.validation_rows, 0, 100_000)


@dataclass(frozen=True)
class NaturalScene:
    """A row as it is drawn.

    Attributes:
        split: train or validation.
        number: of the row in its split.
        placed: what is heard when.
        slices: in the order of the leaves.
    """

    split: str
    number: int
    placed: Placed
    slices: tuple[Slice, ...]


class NaturalTraining(NaturalRendering[NaturalTrainingSettings]):
    """Rows and their sound, see `Rendering`; a subclass has the name of a recipe."""

    name = ""

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Rows of each split that has labels which can meet.

        Raises:
            DatasetError: training has none.
        """
        counts = {}
        for split, count in zip(_SPLITS, (self.settings.train_rows, self.settings.validation_rows), strict=True):
            labels = list(self.pool.by_split[split])
            counts[split] = count if any(map(_meet, combinations(labels, 2))) else 0
        if not counts[_SPLITS[0]]:
            raise DatasetError(f"{self.pool.source} has no two labels for training that can meet in a clip")
        return counts

    def scene(self, index: int) -> NaturalScene:
        """The scene of a row: the others change nothing in it."""
        train = self.counts[_SPLITS[0]]
        split, number = (_SPLITS[0], index) if index < train else (_SPLITS[1], index - train)
        rng = random_generator(self.settings.seed, _SCENES, _SPLITS.index(split), number)
        expression = self._expression(list(self.pool.by_split[split]), rng)
        budgets = zip(leaves(expression), self.budgets(expression), strict=True)
        slices = tuple(self.pool.draw(split, leaf.label, most, rng) for leaf, most in budgets)
        return NaturalScene(split, number, place(expression, self.lengths(slices)), slices)

    def _expression(self, labels: Sequence[str], rng: np.random.Generator) -> Expression:
        """A tree over labels that can meet, of as many as are drawn or, where so many cannot, fewer."""
        size = int(rng.choice(list(SIZES), p=list(SIZES.values())))
        while True:
            for _ in range(_ATTEMPTS):
                drawn = [labels[number] for number in rng.permutation(len(labels))[:size]]
                if len(drawn) == size and _meet(drawn):
                    return replaced(_tree(size, rng), [Leaf(label) for label in drawn])
            size = max(size - 1, 2)

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Rows without their audio, each made when it is first asked for: their texts take longer than their scenes."""
        return LazyRows(sum(self.counts.values()), lambda index: self._row(self.scene(index)))

    def _row(self, scene: NaturalScene) -> Row:
        settings, expression = self.settings, scene.placed.expression
        rng = random_generator(settings.seed, _TEXTS, _SPLITS.index(scene.split), scene.number)
        said = leaves(expression)
        of_leaves = zip(said, heard(scene.placed), scene.slices, strict=True)
        rows = [self.event(leaf.label, (), times, part) for leaf, times, part in of_leaves]
        events = [Event.of(row) for row in rows]
        kinds = {category_of(leaf.label) for leaf in said}
        unheard = [label for label in self.pool.by_split[scene.split] if category_of(label) not in kinds]
        absent = rng.permutation(unheard)[:_ABSENT].tolist() if unheard else []
        captions = wholes(expression, rng, most=_CAPTIONS, held_out=False, phrase=recorded_phrase)
        whole, wording, _ = captions[0]
        false = negatives(
            whole, wording, events, rng, most=_NEGATIVES, absent=absent, held_out=False, phrase=recorded_phrase
        )
        true = true_parts(expression, events, rng, most=MOST_POSITIVES, held_out=False, phrase=recorded_phrase)
        return {
            "id": f"{self.name}-{scene.split}-{scene.number:05d}",
            "split": scene.split,
            "captions": [text for *_, text in captions],
            "parts": [text for _, text in true],
            "negatives": [{"text": negative.text, "kind": negative.kind} for negative in false],
            "events": rows,
            "expression": formula(expression),
        }

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip, int16 [samples]."""
        scene = self.scene(index)
        return self.mixed([(scene.placed, scene.slices)])


def _meet(labels: Sequence[str]) -> bool:
    """Whether labels may be in one clip for training: of different kinds, and no pair among them that is novel."""
    kinds = {category_of(label) for label in labels}
    pairs = ((one, other) for place, one in enumerate(labels) for other in labels[:place])
    return len(labels) > 1 and len(kinds) == len(labels) and not any(is_novel(*pair) for pair in pairs)


def _tree(size: int, rng: np.random.Generator) -> Expression:
    """A tree of so many leaves, ``+`` and ``*`` as often at every level, that a caption can say in one way."""
    while True:
        tree = _drawn_tree(size, rng)
        try:
            if wordings(tree, held_out=False):
                return tree
        except InputError:
            continue


def _drawn_tree(size: int, rng: np.random.Generator) -> Expression:
    if size == 1:
        return Leaf("")
    cut = int(rng.integers(1, size))
    kind = (Then, Together)[int(rng.integers(2))]
    return joined(kind, [_drawn_tree(cut, rng), _drawn_tree(size - cut, rng)])
