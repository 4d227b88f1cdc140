"""Items of two or three clips of recordings with a caption each: order, and attributes (after arXiv 2310.08753)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, Self, TypeVar

from ..data import DatasetError, Pcm16, Row
from ..language.captions import Wording, caption
from ..language.categories import noun_of, recorded_phrase
from ..language.expressions import Expression, Leaf, Then
from .captioned import Split, dealt
from .captioned_items import subsets_of, suiting
from .natural_pool import Slice
from .natural_scenes import NaturalRendering, NaturalSettings, Placed, heard, place
from .rows import random_generator

_ITEMS, _PAIRS, _TEMPLATES, _OVERLAYS, _BINDINGS, _NOUNS, _TOGETHER = 60, 61, 62, 63, 64, 65, 66
"""The random streams."""

MENTIONS = ("forward", "reverse")

EVENT_TEXTS = ("file",)
"""What an event of recordings says beside its label, words and times."""


@dataclass(frozen=True, kw_only=True)
class NaturalItemSettings(NaturalSettings):
    """What decides items of recordings.

    Attributes:
        items: how many.

    Raises:
        InputError: see `NaturalSettings`.
    """

    items: int = 400

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("items", self.items, 1, 20_000)


@dataclass(frozen=True, kw_only=True)
class NaturalOrderSettings(NaturalItemSettings):
    """What decides items of order.

    Attributes:
        triplets: share of the items that have a third clip, in which both sound at the same time.

    Raises:
        InputError: see `NaturalSettings`.
    """

    triplets: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("triplets", self.triplets, 0, 1)


@dataclass(frozen=True)
class NaturalClip:
    """A clip as it is drawn.

    Attributes:
        placed: what is heard when.
        leaves: what is said of each slice.
        slices: in the order of the leaves.
        said: what its caption says.
        wording: of the caption.
    """

    placed: Placed
    leaves: tuple[Leaf, ...]
    slices: tuple[Slice, ...]
    said: Expression
    wording: Wording


@dataclass(frozen=True)
class NaturalItem:
    """An item as it is drawn.

    Attributes:
        clips: two or three.
        pair: the cluster of statistics.
        subset: ``seen``, ``novel`` or empty.
    """

    clips: tuple[NaturalClip, ...]
    pair: str
    subset: str = ""


Settings = TypeVar("Settings", bound=NaturalItemSettings)


class NaturalItems(NaturalRendering[Settings]):
    """Items and their sound, see `Rendering`; a subclass draws them, and has the name of a recipe."""

    name = ""
    swapped = ""
    split: Split = "test"

    @classmethod
    def for_validation(cls, settings: Settings) -> Self:
        """Items to choose among models in training by: of the files of that split, pairs and templates of training."""
        rendering = cls(settings)
        rendering.split = "validation"
        return rendering

    @cached_property
    def items(self) -> tuple[NaturalItem, ...]:
        """The items, in the order of `rows`."""
        return tuple(self.draw())

    @abstractmethod
    def draw(self) -> Iterator[NaturalItem]:
        """The items of the settings, one after the other; further ones change none of those before."""

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(self._row(number, item) for number, item in enumerate(self.items))

    def _row(self, number: int, item: NaturalItem) -> Row:
        events = [self._events(clip) for clip in item.clips]
        first = item.clips[0]
        overlap = 0.0 if isinstance(first.placed.expression, Then) else events[0][0]["stop"]
        return {
            "id": f"{self.name}-{'' if self.split == 'test' else f'{self.split}-'}{number:05d}",
            "split": self.split,
            "captions": [caption(clip.said, clip.wording, phrase=recorded_phrase) for clip in item.clips],
            "events": events,
            "swapped": self.swapped,
            "mention": first.wording.mention,
            "template": first.wording.name,
            "subset": item.subset,
            "pair": item.pair,
            "origin": "recordings",
            "writer": "template",
            "domain": self.settings.domain_name,
            "gap": 0.0,
            "overlap": overlap,
            "distance": 0.0,
        }

    def _events(self, clip: NaturalClip) -> list[dict[str, Any]]:
        of_leaves = zip(clip.leaves, heard(clip.placed), clip.slices, strict=True)
        return [self.event(leaf.label, leaf.attributes, times, part) for leaf, times, part in of_leaves]

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips of an item, each int16 [samples], under one gain."""
        return self.mixed([(clip.placed, clip.slices) for clip in self.items[index].clips])


class NaturalOrder(NaturalItems[NaturalOrderSettings]):
    """x and then y, y and then x, and of some both at once: the same slices."""

    swapped = "order"

    def draw(self) -> Iterator[NaturalItem]:
        """See `NaturalItems.draw`; pairs of labels, mentions and templates are dealt evenly.

        Raises:
            DatasetError: no two labels can meet.
        """
        settings, pool = self.settings, self.pool
        options = {subset: pool.pairs(self.split, novel=subset == "novel") for subset in subsets_of(self.split)}
        subsets = [subset for subset, pairs in options.items() if pairs]
        if not subsets:
            raise DatasetError(f"{pool.source} has no two labels of different kinds of sounds; order needs two")
        for number in range(settings.items):
            turn, half = divmod(number, len(subsets))
            subset = subsets[half]
            rng = random_generator(settings.seed, _ITEMS, number)
            pair = dealt(options[subset], turn, settings.seed, _PAIRS, half)
            x, y = (Leaf(pair[place]) for place in rng.permutation(2))
            budgets = self.budgets(x + y)
            slices = tuple(
                pool.draw(self.split, leaf.label, most, rng) for leaf, most in zip((x, y), budgets, strict=True)
            )
            one, other = self.lengths(slices)
            of_mention = suiting("sequence", self.split, MENTIONS[turn % 2])
            wording = Wording(sequence=dealt(of_mention, turn // 2, settings.seed, _TEMPLATES, half, turn % 2))
            first = NaturalClip(place(x + y, (one, other)), (x, y), slices, x + y, wording)
            second = NaturalClip(place(y + x, (other, one)), (y, x), slices[::-1], y + x, wording)
            clips = [first, second]
            # As many of either mention.
            before, after = (int((turn // 2 + later) * settings.triplets) for later in (0, 1))
            if after > before:
                # As long as the others: that both are heard at once is all that tells it.
                both = place(x * y, (one, other), first.placed.length)
                said = x * y if rng.random() < 0.5 else y * x
                template = dealt(suiting("together", self.split), before, settings.seed, _OVERLAYS, half, turn % 2)
                clips.append(NaturalClip(both, (x, y), slices, said, Wording(together=template)))
            yield NaturalItem(tuple(clips), " | ".join(sorted(pair)), subset)


class NaturalAttributes(NaturalItems[NaturalItemSettings]):
    """Two at once that have exchanged how they sound, such as a man speaking and a woman singing."""

    swapped = "attribute"

    @cached_property
    def bindings(self) -> tuple[tuple[tuple[str, str], tuple[str, str]], ...]:
        """Two nouns and two attributes of which all four combinations have files."""
        by_noun: dict[str, dict[str, str]] = {}
        for label in self.pool.by_split[self.split]:
            of_label = noun_of(label)
            if of_label is not None:
                by_noun.setdefault(of_label[0], {}).setdefault(of_label[1], label)
        return tuple(
            ((a, b), (u, v))
            for a, b in permutations(sorted(by_noun), 2)
            for u, v in permutations(sorted(set(by_noun[a]) & set(by_noun[b])), 2)
            if a < b
        )

    def draw(self) -> Iterator[NaturalItem]:
        """See `NaturalItems.draw`; nouns with their attributes and templates are dealt evenly.

        Raises:
            DatasetError: the labels do not say who makes a sound and how, in all four combinations.
        """
        settings, pool = self.settings, self.pool
        if not self.bindings:
            raise DatasetError(
                f"{pool.source} has no recordings of two who make two sounds each, in all four combinations: labels "
                "such as 'man speaking', 'man singing', 'woman speaking', 'woman singing'"
            )
        labels = {noun_of(label): label for label in pool.by_split[self.split]}
        for number in range(settings.items):
            rng = random_generator(settings.seed, _BINDINGS, number)
            nouns, (u, v) = dealt(self.bindings, number, settings.seed, _NOUNS)
            a, b = (nouns[one] for one in rng.permutation(2))
            scenes = [(Leaf(a, (u,)), Leaf(b, (v,))), (Leaf(a, (v,)), Leaf(b, (u,)))]
            most = self.budgets(scenes[0][0])[0]
            slices = [
                tuple(pool.draw(self.split, labels[leaf.label, leaf.attributes[0]], most, rng) for leaf in scene)
                for scene in scenes
            ]
            wording = Wording(together=dealt(suiting("together", self.split), number, settings.seed, _TOGETHER))
            longest = max(length for parts in slices for length in self.lengths(parts))
            clips = tuple(
                NaturalClip(place(x * y, self.lengths(parts), longest), (x, y), parts, x * y, wording)
                for (x, y), parts in zip(scenes, slices, strict=True)
            )
            yield NaturalItem(clips, " | ".join(sorted(nouns)))
