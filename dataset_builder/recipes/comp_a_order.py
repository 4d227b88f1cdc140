"""Two sources in either order, and captions of the same words: who came first? (after arXiv 2310.08753)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

from ..scenes.captioned import (
    CITATION,
    ITEM_COLUMNS,
    CaptionedItem,
    RenderedItems,
    SequenceSettings,
    Speaker,
    Split,
    dealt,
    describe_words,
    draw_mentioned,
    draw_shares,
    draw_until,
    pairs_of,
    split_of,
    subset_of,
    suiting,
)
from ..scenes.item_recipes import ItemRecipe
from ..scenes.natural_items import NaturalOrder, NaturalOrderSettings, describe_order
from ..scenes.sources import Source, random_generator
from ..scenes.timeline import SourceEvent
from ..texts.captions import Wording, templates
from ..texts.expressions import Expression, Leaf, time_line

if TYPE_CHECKING:
    import numpy as np

_ITEMS, _PAIRS, _TEMPLATES, _OVERLAYS = 31, 32, 33, 34
"""The random streams."""

MENTIONS = ("forward", "reverse")

_TWO = Leaf("") + Leaf("")
"""What the time line of an item is of."""


@dataclass(frozen=True, kw_only=True)
class OrderSettings(SequenceSettings):
    """Everything that decides the items and their samples. Defaults are the sizes of the preset ``full``.

    Attributes:
        items: how many, half of them of pairs of timbres that are seen in training, half of novel ones.
        triplets: share of the items that have a third clip, in which both sound at the same time.

    Raises:
        InputError: see `SequenceSettings`.
    """

    items: int = 800
    triplets: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("items", self.items, 1, 20_000)
        self._check("triplets", self.triplets, 0, 1)


class RenderedOrder(RenderedItems[OrderSettings]):
    """The items of some settings and their sound; see `Rendering`."""

    name = "comp_a_order"

    def draw(self) -> Iterator[CaptionedItem]:
        """See `draw_items`."""
        return draw_items(self.settings, self.split)


class RecordedOrder(NaturalOrder):
    """The items of settings of recordings and their sound; see `Rendering`."""

    name = RenderedOrder.name


def draw_items(settings: OrderSettings, split: Split = "test") -> Iterator[CaptionedItem]:
    """The items of some settings, one after the other; further ones change none of those before.

    Subsets, mentions, pairs of timbres and templates are dealt evenly; which source is first is drawn.

    Raises:
        InputError: there are not as many different items.
    """
    speaker = Speaker(settings)
    drawn: set[frozenset[Source]] = set()
    for number in range(settings.items):
        rng = random_generator(settings.seed, _ITEMS, number)
        gap, mentioned = settings.draw_gap(rng), draw_mentioned(rng)
        spans = time_line(_TWO, (0, settings.num_samples), gap, partial(draw_shares, rng=rng))
        lengths = [stop - start for start, stop in spans]
        options = pairs_of(subset_of(number, split), settings.num_classes)
        timbres = rng.permutation(dealt(options, number // 2, settings.seed, _PAIRS, number % 2)).tolist()
        draw = partial(_draw_sources, timbres, lengths, mentioned, speaker, rng)
        serves = partial(_serves, drawn=drawn, split=split, settings=settings)
        sources = draw_until(draw, serves, number, ("items", settings.items), settings.num_classes)
        drawn.add(frozenset(sources))
        yield _item(number, sources, lengths, gap, mentioned, speaker, split, rng)


def _draw_sources(
    timbres: Sequence[int],
    lengths: Sequence[int],
    mentioned: Sequence[str],
    speaker: Speaker,
    rng: np.random.Generator,
) -> list[Source]:
    words = [speaker.draw_words(mentioned, rng) for _ in timbres]
    return [speaker.draw_source(*one, rng) for one in zip(timbres, words, lengths, strict=True)]


def _serves(sources: Sequence[Source], drawn: set[frozenset[Source]], split: Split, settings: OrderSettings) -> bool:
    return frozenset(sources) not in drawn and split_of(sources, settings.num_classes) == split


def _item(
    number: int,
    sources: Sequence[Source],
    lengths: Sequence[int],
    gap: int,
    mentioned: Sequence[str],
    speaker: Speaker,
    split: Split,
    rng: np.random.Generator,
) -> CaptionedItem:
    settings = cast(OrderSettings, speaker.settings)
    first, second = (SourceEvent(source, 0, length) for source, length in zip(sources, lengths, strict=True))
    one, other = (speaker.leaf(source, mentioned) for source in sources)
    clips = [(first, second.moved(first.length + gap)), (second, first.moved(second.length + gap))]
    expressions: list[Expression] = [one + other, other + one]
    of_mention = suiting("sequence", split, MENTIONS[number // 2 % 2])
    template = dealt(of_mention, number // 4, settings.seed, _TEMPLATES, number % 4)
    wordings = [Wording(sequence=template)] * 2
    starts = [speaker.draw_start(rng) for _ in sources]
    together = one * other if rng.random() < 0.5 else other * one
    before, after = (int((number // 4 + later) * settings.triplets) for later in (0, 1))
    if after > before:
        end = settings.num_samples
        clips.append((SourceEvent(first.source, starts[0], end), SourceEvent(second.source, starts[1], end)))
        expressions.append(together)
        template = dealt(suiting("together", split), before, settings.seed, _OVERLAYS, number % 4)
        wordings.append(Wording(together=template))
    seconds = gap / settings.sample_rate
    return CaptionedItem(number, tuple(expressions), tuple(wordings), tuple(clips), swapped="order", gap=seconds)


class _Order(ItemRecipe[OrderSettings, NaturalOrderSettings]):
    """The recipe; see `Recipe`."""

    version = 1
    of_scenes, of_natural, natural = RenderedOrder, RecordedOrder, NaturalOrderSettings

    @cached_property
    def presets(self) -> Mapping[str, OrderSettings]:
        """Settings by the name of a preset; those of ``paper-`` are the same, since the paper has no such clips."""
        mini, full = OrderSettings(items=100), OrderSettings()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def describe(self, settings: OrderSettings | NaturalOrderSettings) -> str:
        """Markdown of the card."""
        if isinstance(settings, NaturalOrderSettings):
            return describe_order(settings)
        gaps = ", ".join(f"{gap:g}" for gap in settings.gaps)
        of_meaning = templates()
        kept = [template.name for one in of_meaning.values() for template in one if template.held_out]
        return f"""\
{settings.items:,} items of two sound sources x and y, after CompA-order of *CompA: Addressing the Gap in Compositional
Reasoning in Audio-Language Models* ([arXiv 2310.08753](https://arxiv.org/abs/2310.08753), ICLR 2024): the first clip is
x and then y, the second y and then x, each event the same samples, moved whole, and the two captions have the same
words. {settings.triplets:.0%} of the items are triplets: in a third clip both sound at the same time. The clips of an
item share one gain, below 1 only where one of them would pass full scale.

Half of the items name the first heard first ("x followed by y"), half last ("y after x"), so that nobody is right by
taking what is named first for what is heard first. Half are of pairs of timbres that meet in the training rows, half of
pairs that never do. Templates that training rows lack: {", ".join(kept)}.

{ITEM_COLUMNS}

A clip lasts {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit. The events are cut at 40 to 60 % of it,
with {gaps} s of silence between them.

{describe_words(settings)}

{CITATION}"""


RECIPE = _Order()
