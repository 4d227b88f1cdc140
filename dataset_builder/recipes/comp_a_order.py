"""Two sounds in either order, and captions of the same words: who came first? (after arXiv 2310.08753)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from pydantic import Field

from ..data import DatasetError
from ..scenes.captioned import FEW_DRAWS, MOST_DRAWS, Expression, Leaf, Palette, TimedClip, draw_spans
from ..scenes.sources import dealt, random_generator
from ..texts.captions import CaptionWording
from .captioned_items import (
    CaptionedScene,
    ItemRecipe,
    SequenceSpec,
    draw_mentioned,
    draw_sounds,
    none_left,
    templates_for,
)

_ITEMS, _PAIRS, _TEMPLATES, _OVERLAYS = 31, 32, 33, 34
"""Random streams."""

MENTIONS = ("forward", "reverse")

_TWO, _BOTH = Leaf("") + Leaf(""), Leaf("") * Leaf("")
"""Structure of each clip."""


class OrderSpec(SequenceSpec):
    """Everything that determines the items and their samples. Defaults are the sizes of the preset ``full``."""

    items: int = Field(800, ge=1, le=20_000, description="Number of items; half of them have novel pairs of labels.")
    triplets: float = Field(
        0.25, ge=0, le=1, description="Share of items with a third clip, in which both sounds are simultaneous."
    )


class _Order(ItemRecipe[OrderSpec]):
    """The recipe; see `Recipe`."""

    name = "comp_a_order"
    version = 3
    suiting = MappingProxyType({"different_kinds": True, "repeats": True})

    @cached_property
    def presets(self) -> Mapping[str, OrderSpec]:
        """Return the settings of each preset, by name; the paper has no such clips, so ``paper-`` presets are equal."""
        mini, full = OrderSpec(items=100), OrderSpec()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def scenes(self, spec: OrderSpec, palette: Palette, split: str) -> Iterator[CaptionedScene]:
        """See `CaptionedRecipe.scenes`.

        Subsets, mentions, pairs of labels and templates are used equally often; which sound comes first is drawn.

        Raises:
            InputError: there are not enough different items.
            DatasetError: no two labels can occur together.
        """
        pairs = palette.pairs(split)
        if not pairs:
            raise DatasetError(
                f"{palette.source} has no two labels of different kinds of sounds; the order task needs two"
            )
        drawn: set[frozenset[int]] = set()
        for number in range(spec.items):
            turn, half = divmod(number, len(pairs))
            subset = list(pairs)[half]
            rng = random_generator(spec.seed, _ITEMS, number)
            gap, mentioned = spec.draw_gap(rng), draw_mentioned(palette.attributes, rng)
            spans = draw_spans(_TWO, spec.num_samples, gap, rng)
            pair = dealt(pairs[subset], turn, spec.seed, _PAIRS, half)
            names = [pair[place] for place in rng.permutation(2)]
            seconds = [(stop - start) / spec.sample_rate for start, stop in spans]
            for attempt in range(MOST_DRAWS):
                sounds = draw_sounds(palette, split, names, mentioned, seconds, rng)
                may_repeat = spec.repeats and attempt >= FEW_DRAWS
                if sounds is not None and (frozenset(sounds) not in drawn or may_repeat):
                    drawn.add(frozenset(sounds))
                    break
            else:
                raise none_left("items", spec.items, number, spec)
            x, y = sounds
            one, other = (palette.leaf(sound, mentioned) for sound in sounds)
            of_mention = templates_for("sequence", split, MENTIONS[turn % 2])
            template = dealt(of_mention, turn // 2, spec.seed, _TEMPLATES, half, turn % 2)
            clips = [TimedClip(_TWO, (x, y), spans), TimedClip(_TWO, (y, x), spans[::-1])]
            said: list[Expression] = [one + other, other + one]
            wordings = [CaptionWording(sequence=template)] * 2
            late = spec.draw_late(2, rng)
            together = one * other if rng.random() < 0.5 else other * one
            # Third clips are equally frequent for both mentions.
            before, after = (int((turn // 2 + later) * spec.triplets) for later in (0, 1))
            if after > before:
                template = dealt(templates_for("together", split), before, spec.seed, _OVERLAYS, half, turn % 2)
                clips.append(TimedClip(_BOTH, (x, y), spans))
                said.append(together)
                wordings.append(CaptionWording(together=template))
            facts = {"swapped": "order", "subset": subset, "pair": " | ".join(sorted(pair))}
            yield CaptionedScene(split, number, tuple(clips), tuple(said), tuple(wordings), gap, late, facts)


RECIPE = _Order()
