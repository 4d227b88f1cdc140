"""Two sounds that exchange an attribute, and captions of the same words: which one is high? (arXiv 2310.08753)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..data import DatasetError
from ..scenes.captioned import ACTION, FEW_DRAWS, Leaf, Palette, TimedClip, subsets_of
from ..scenes.sources import dealt, random_generator
from ..texts.captions import CaptionWording
from .captioned_items import CaptionedScene, CaptionedSpec, ItemRecipe, none_left, templates_for

if TYPE_CHECKING:
    import numpy as np

_ITEMS, _PAIRS, _TEMPLATES, _SWAPPED = 35, 36, 37, 38
"""Random streams."""

_DRAWS = 1_000
"""Draws of sounds for one pair of labels."""

_BOTH = Leaf("") * Leaf("")
"""Structure of a clip."""

Pairs = Mapping[str, Mapping[str, Sequence[tuple[str, str]]]]
"""Pairs of names by subset and by the exchanged attributes."""


class AttributeSpec(CaptionedSpec):
    """Everything that determines the items and their samples. Defaults are the sizes of the preset ``full``."""

    items: int = Field(400, ge=1, le=20_000, description="Number of items; half of them have novel pairs of labels.")
    swapped: tuple[str, ...] = Field(
        ("pitch", "rate", "amplitude", "pitch+rate"),
        description=(
            "Attributes that the two sounds exchange, each equally often; join several with plus signs. If "
            "none is given, every attribute for which sounds have words."
        ),
    )

    @model_validator(mode="after")
    def _check_swapped(self) -> Self:
        kinds = [frozenset(swapped.split("+")) for swapped in self.swapped]
        twice = len(set(kinds)) < len(kinds)
        if twice or any(len(kind) <= swapped.count("+") for kind, swapped in zip(kinds, self.swapped, strict=True)):
            raise InputError(f"swapped is {', '.join(self.swapped)}; give different attributes, each combination once")
        return self


class _Attribute(ItemRecipe[AttributeSpec]):
    """The recipe; see `Recipe`."""

    name = "comp_a_attribute"
    version = 3
    by_noun = True
    suiting = MappingProxyType({"different_kinds": True, "repeats": True, "swapped": ()})

    @cached_property
    def presets(self) -> Mapping[str, AttributeSpec]:
        """Return the settings of each preset, by name; the paper has no such clips, so ``paper-`` presets are equal."""
        mini, full = AttributeSpec(items=100), AttributeSpec()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def scenes(self, spec: AttributeSpec, palette: Palette, split: str) -> Iterator[CaptionedScene]:
        """See `CaptionedRecipe.scenes`.

        Subsets, exchanged attributes, pairs of labels and templates are used equally often; which clip comes first is
        drawn.

        Raises:
            InputError: there are not enough different items.
            DatasetError: no two labels have sounds with all four combinations of two words.
        """
        options = pairs_by_exchange(spec, palette, split)
        drawn: set[frozenset[int]] = set()
        seconds = spec.shortest_event / spec.sample_rate
        for number in range(spec.items):
            turn, half = divmod(number, len(options))
            subset = list(options)[half]
            rng = random_generator(spec.seed, _ITEMS, number)
            swapped = dealt(list(options[subset]), turn, spec.seed, _SWAPPED, half)
            pairs = options[subset][swapped]
            first = pairs.index(dealt(pairs, turn, spec.seed, _PAIRS, half))
            order = rng.permutation(2)
            template = dealt(templates_for("together", split), turn, spec.seed, _TEMPLATES, half)
            exchanged = swapped.split("+")
            further = [one for one in palette.attributes if one not in (*exchanged, ACTION)]
            mentioned = [*exchanged, *(rng.choice(further, 1) if further and rng.random() < 0.5 else ()), ACTION]
            # If a pair has no sounds left, the next pair may have some, or this pair with no other attribute
            # mentioned.
            said, alone = mentioned, [*exchanged, ACTION]
            for mentioned, pair in product((said, alone), (*pairs[first:], *pairs[:first])):
                names = [pair[place] for place in order]
                twins = None
                for attempt in range(_DRAWS):
                    two = _draw_twins(palette, split, names, exchanged, mentioned, seconds, rng)
                    may_repeat = spec.repeats and attempt >= FEW_DRAWS
                    if two is not None and (drawn.isdisjoint(map(frozenset, two)) or may_repeat):
                        twins = two
                        break
                if twins is not None:
                    drawn.update(map(frozenset, twins))
                    break
            else:
                raise none_left("items", spec.items, number, spec)
            leaves = [[palette.leaf(sound, mentioned) for sound in sounds] for sounds in twins]
            yield CaptionedScene(
                split,
                number,
                tuple(TimedClip(_BOTH, sounds, ((0, spec.num_samples),) * 2) for sounds in twins),
                tuple(one * other for one, other in leaves),
                (CaptionWording(together=template),) * 2,
                late=spec.draw_late(2, rng),
                facts={
                    "swapped": swapped,
                    "subset": subset,
                    "pair": " | ".join(sorted(pair)),
                    "distance": palette.distance(*twins[0], exchanged),
                },
            )


def pairs_by_exchange(spec: AttributeSpec, palette: Palette, split: str) -> Pairs:
    """Return pairs of names that both have two words of each exchanged attribute.

    Raises:
        InputError: tones have no words for an attribute.
        DatasetError: the sounds have none, or there is no pair of this kind.
    """
    for name in (name for swapped in spec.swapped for name in swapped.split("+")):
        if name not in palette.attributes:
            raise DatasetError(f"swapped has {name!r}; {nearest(name, palette.attributes)}")
    options: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for pair in combinations(palette.by_split[split], 2):
        subset = palette.subset(pair)
        if subset and subset not in subsets_of(split):
            continue
        for swapped in spec.swapped or palette.attributes:
            if all(len(_common(palette, split, pair, one)) > 1 for one in swapped.split("+")):
                options.setdefault(subset, {}).setdefault(swapped, []).append(pair)
    if not options:
        raise DatasetError(
            f"{palette.source} has no recordings of two sources that make two sounds each, in all four "
            "combinations. Give labels "
            "like 'man speaking', 'man singing', 'woman speaking', 'woman singing', or words in a table"
        )
    return {subset: options[subset] for subset in sorted(options, reverse=True)}


def _common(palette: Palette, split: str, names: Sequence[str], attribute: str) -> tuple[str, ...]:
    """Return the words of an attribute that sounds of both names have."""
    first, second = (palette.said(split, name, attribute) for name in names)
    return tuple(word for word in first if word in second)


def _draw_twins(
    palette: Palette,
    split: str,
    names: Sequence[str],
    exchanged: Sequence[str],
    mentioned: Sequence[str],
    seconds: float,
    rng: np.random.Generator,
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Draw the sounds of two clips; the second clip's sounds have some attributes of the first's exchanged."""
    words = [palette.draw_words(split, name, mentioned, rng) for name in names]
    for attribute in exchanged:
        common = _common(palette, split, names, attribute)
        for of_sound, place in zip(words, rng.permutation(len(common))[:2], strict=True):
            of_sound[attribute] = common[place]
    options = [palette.numbers(split, name, said, seconds) for name, said in zip(names, words, strict=True)]
    if not all(map(len, options)):
        return None
    first, second = (int(rng.choice(numbers)) for numbers in options)
    twins = []
    for one, other in ((0, 1), (1, 0)):
        wanted = {**words[one], **{attribute: words[other][attribute] for attribute in exchanged}}
        fitting = palette.exchanged(split, (first, second)[one], (first, second)[other], exchanged, wanted)
        if not fitting:
            return None
        twins.append(int(rng.choice(fitting)))
    return (first, second), (twins[0], twins[1])


RECIPE = _Attribute()
