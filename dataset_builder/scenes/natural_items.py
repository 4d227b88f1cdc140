"""Items of two or three clips of recordings with a caption each: order, and attributes (after arXiv 2310.08753)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed

from ..data import DatasetError, Pcm16, Row
from ..texts.captions import Wording, caption, templates, wordings
from ..texts.expressions import Expression, Leaf, Then, Together, formula, joined, leaves, replaced
from ..texts.prompts import category_of, noun_of, recorded_phrase
from ..texts.truth import Event
from ..texts.variants import MOST_POSITIVES, negatives, true_parts, wholes
from .captioned import CITATION, Split, dealt, subsets_of, suiting
from .natural import (
    LONGEST_SLICE,
    SHORTEST_SLICE,
    NaturalRendering,
    NaturalSettings,
    Placed,
    Slice,
    heard,
    is_novel,
    place,
)
from .sources import LazyRows, random_generator

if TYPE_CHECKING:
    import numpy as np


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


_PAPER = """\
*CompA: Addressing the Gap in Compositional Reasoning in Audio-Language Models*
([arXiv 2310.08753](https://arxiv.org/abs/2310.08753), ICLR 2024)"""

_ITEM_COLUMNS = """\
| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clips |
| `captions` | as many; each is true of the clip in its place and false of the others |
| `events` | of each clip: `label`, `attributes`, `start`, `stop` (seconds), `file` |
| `swapped` | what the first two clips differ in |
| `mention` | of order, whether the first heard is named first (`forward`) or last (`reverse`); else empty |
| `template` | name of the template of the first two captions |
| `subset` | `seen`: the two labels meet in the training rows; `novel`: they never do |
| `pair` | the two labels or nouns, whichever is first: items of one pair are no independent samples |
| `origin`, `writer` | `recordings`, `template` |
| `domain` | what the recordings are |
| `gap`, `overlap`, `distance` | seconds between the two events, and of both at once; 0 |"""


def describe_order(settings: NaturalOrderSettings) -> str:
    """Markdown of the card of order items."""
    return f"""\
{settings.items:,} items of two labels x and y of recordings ({settings.domain_name}), after CompA-order of {_PAPER}:
the first clip is x and then y, the second y and then x, of the same slices; the two captions have the same words.
{settings.triplets:.0%} of the items are triplets: in a third clip, as long as the others, both sound at the same time.
Half of the items name the first heard first, half last.

{_ITEM_COLUMNS}

{_describe_sound(settings)}

{CITATION}"""


def describe_attributes(settings: NaturalItemSettings) -> str:
    """Markdown of the card of attribute items."""
    return f"""\
{settings.items:,} items of two recordings at the same time ({settings.domain_name}), after CompA-attribute of {_PAPER}:
who makes a sound, and how, are exchanged, such as a man speaking with a woman singing, and a man singing with a woman
speaking. The two captions have the same words; the clips are of four recordings, and as long as each other.

{_ITEM_COLUMNS}

{_describe_sound(settings)}

{CITATION}"""


def describe_training(settings: NaturalTrainingSettings) -> str:
    """Markdown of the card of training rows."""
    sizes = listed([f"{count} ({share:.0%})" for count, share in SIZES.items()])
    held_out = [template.name for of_one in templates().values() for template in of_one if template.held_out]
    return f"""\
{settings.train_rows:,} captioned clips of recordings for training ({settings.domain_name}), and up to
{settings.validation_rows:,} for validation, after the template-based creation of {_PAPER}: {sizes} events, one after
the other (`+` in `expression`) or at the same time (`*`), as often at every level. A program tests every text against
the events: parts are true of the clip, negatives are false.

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip |
| `captions` | what is heard, in several wordings |
| `parts` | true captions of parts |
| `negatives` | false texts near the first caption, each with its `kind` |
| `events` | `label`, `attributes`, `start`, `stop` (seconds), `file` |
| `expression` | what the captions say: equal for rows that say the same |

No file is in two splits or in the test items, and a fifth of the pairs of labels never meet here: the `novel` ones of
the test items. Neither do the templates {", ".join(held_out)} occur.

{_describe_sound(settings)}

{CITATION}"""


def _describe_sound(settings: NaturalSettings) -> str:
    return f"""\
A clip lasts {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit; behind what is heard it is silent. A
slice is a recording without the silence at its ends (60 dB below its loudest), of a long one a part: at most
{LONGEST_SLICE:g} s, and no more than its share of the clip; one of less than {SHORTEST_SLICE:g} s is repeated. All have
one root mean square. One after the other: a crossfade over a tenth of the shorter, of which each has half in `events`.
At the same time: as loud as each other (A-weighted, Tokozume et al., 2018), the shorter repeated with crossfades to
exactly the length of the longer; nothing is cut. Labels that meet are of different kinds of sounds. The
clips of a row share one gain. Of the files of a label two fifths are for test, a tenth for validation, whole groups."""
