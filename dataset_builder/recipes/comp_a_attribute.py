"""Two sources that exchange an attribute, and captions of the same words: which is the high one? (arXiv 2310.08753)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..scenes.captioned import (
    CITATION,
    ITEM_COLUMNS,
    CaptionedItem,
    CaptionedSettings,
    RenderedItems,
    Speaker,
    Split,
    dealt,
    describe_words,
    draw_until,
    pairs_of,
    split_of,
    subset_of,
    suiting,
)
from ..scenes.item_recipes import ItemRecipe
from ..scenes.natural_items import NaturalAttributes, NaturalItemSettings, describe_attributes
from ..scenes.sources import Source, random_generator
from ..scenes.timeline import SourceEvent
from ..texts.captions import Wording
from ..texts.lexicon import attributes

if TYPE_CHECKING:
    import numpy as np

_ITEMS, _PAIRS, _TEMPLATES, _SWAPPED = 35, 36, 37, 38
"""The random streams."""

Scene = tuple[Source, Source]


@dataclass(frozen=True, kw_only=True)
class AttributeSettings(CaptionedSettings):
    """Everything that decides the items and their samples. Defaults are the sizes of the preset ``full``.

    Attributes:
        items: how many, half of them of pairs of timbres that are seen in training, half of novel ones.
        swapped: what the twins exchange, each equally often: attributes, or several with a plus sign between them.

    Raises:
        InputError: see `CaptionedSettings`.
    """

    items: int = 400
    swapped: tuple[str, ...] = ("pitch", "rate", "amplitude", "pitch+rate")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "swapped", tuple(self.swapped))
        self._check("items", self.items, 1, 20_000)
        if not self.swapped:
            raise InputError("swapped is empty; the twins of an item exchange something")
        for name in (name for swapped in self.swapped for name in swapped.split("+")):
            if name not in attributes():
                raise InputError(f"swapped has {name!r}; {nearest(name, attributes())}")

    def values(self) -> dict[str, object]:
        """The settings as JSON values."""
        return {**super().values(), "swapped": list(self.swapped)}


class RenderedAttributes(RenderedItems[AttributeSettings]):
    """The items of some settings and their sound; see `Rendering`."""

    name = "comp_a_attribute"

    def draw(self) -> Iterator[CaptionedItem]:
        """See `draw_items`."""
        return draw_items(self.settings, self.split)


class RecordedAttributes(NaturalAttributes):
    """The items of settings of recordings and their sound; see `Rendering`."""

    name = RenderedAttributes.name


def draw_items(settings: AttributeSettings, split: Split = "test") -> Iterator[CaptionedItem]:
    """The items of some settings, one after the other; further ones change none of those before.

    Subsets, exchanged attributes, pairs of timbres and templates are dealt evenly; which clip is first is drawn.

    Raises:
        InputError: there are not as many different items.
    """
    speaker = Speaker(settings)
    drawn: set[frozenset[Source]] = set()
    for number in range(settings.items):
        rng = random_generator(settings.seed, _ITEMS, number)
        half = number % 2
        swapped = dealt(settings.swapped, number // 2, settings.seed, _SWAPPED, half)
        options = pairs_of(subset_of(number, split), settings.num_classes)
        timbres = rng.permutation(dealt(options, number // 2, settings.seed, _PAIRS, half)).tolist()
        template = dealt(suiting("together", split), number // 2, settings.seed, _TEMPLATES, half)
        exchanged = swapped.split("+")
        further = [attribute for attribute in attributes() if attribute not in exchanged]
        mentioned = [*exchanged, *(rng.choice(further, 1) if further and rng.random() < 0.5 else ())]
        draw = partial(_draw_twins, timbres, exchanged, mentioned, speaker, rng)
        serve = partial(_serve, drawn=drawn, split=split, settings=settings)
        twins = draw_until(draw, serve, number, ("items", settings.items), settings.num_classes)
        drawn.update(map(frozenset, twins))
        starts = [speaker.draw_start(rng) for _ in timbres]
        end = settings.num_samples
        leaves = [[speaker.leaf(source, mentioned) for source in scene] for scene in twins]
        first, second = twins[0]
        yield CaptionedItem(
            number,
            tuple(one * other for one, other in leaves),
            (Wording(together=template),) * 2,
            tuple(tuple(SourceEvent(*one, end) for one in zip(scene, starts, strict=True)) for scene in twins),
            swapped=swapped,
            overlap=(end - max(starts)) / settings.sample_rate,
            distance=float(max(abs(getattr(first, one) - getattr(second, one)) for one in exchanged)),
        )


def _serve(twins: Sequence[Scene], drawn: set[frozenset[Source]], split: Split, settings: AttributeSettings) -> bool:
    return all(frozenset(scene) not in drawn and split_of(scene, settings.num_classes) == split for scene in twins)


def _draw_twins(
    timbres: Sequence[int],
    exchanged: Sequence[str],
    mentioned: Sequence[str],
    speaker: Speaker,
    rng: np.random.Generator,
) -> list[Scene]:
    """Two scenes of the same timbres that have exchanged some attributes, which have different words."""
    length = speaker.settings.num_samples - speaker.settings.latest_start
    words: list[dict[str, str]] = [speaker.draw_words(mentioned, rng) for _ in timbres]
    for attribute in exchanged:
        two = rng.choice(speaker.words(attribute), 2, replace=False)
        for of_source, word in zip(words, two, strict=True):
            of_source[attribute] = str(word)
    first, second = (
        speaker.draw_source(timbre, said, length, rng) for timbre, said in zip(timbres, words, strict=True)
    )
    return [
        (first, second),
        (
            replace(first, **{attribute: getattr(second, attribute) for attribute in exchanged}),
            replace(second, **{attribute: getattr(first, attribute) for attribute in exchanged}),
        ),
    ]


class _Attribute(ItemRecipe[AttributeSettings, NaturalItemSettings]):
    """The recipe; see `Recipe`."""

    version = 1
    of_scenes, of_natural, natural = RenderedAttributes, RecordedAttributes, NaturalItemSettings

    @cached_property
    def presets(self) -> Mapping[str, AttributeSettings]:
        """Settings by the name of a preset; those of ``paper-`` are the same, since the paper has no such clips."""
        mini, full = AttributeSettings(items=100), AttributeSettings()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def describe(self, settings: AttributeSettings | NaturalItemSettings) -> str:
        """Markdown of the card."""
        if isinstance(settings, NaturalItemSettings):
            return describe_attributes(settings)
        return f"""\
{settings.items:,} items of two sound sources at the same time, after CompA-attribute of *CompA: Addressing the Gap in
Compositional Reasoning in Audio-Language Models* ([arXiv 2310.08753](https://arxiv.org/abs/2310.08753), ICLR 2024): in
the second clip they have exchanged {", ".join(settings.swapped)}. The two clips have the same classes of every
attribute and the two captions the same words: only what belongs to whom is different. The clips of an item share one
gain, below 1 only where one of them would pass full scale; the two sources begin within half a second of each other, at
the same times in both clips. Half of the items are of pairs of timbres that meet in the training rows, half of pairs
that never do.

{ITEM_COLUMNS}

A clip lasts {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit.

{describe_words(settings)}

{CITATION}"""


RECIPE = _Attribute()
