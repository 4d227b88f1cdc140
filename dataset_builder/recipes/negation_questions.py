"""Which of two captions that differ in one word is true of a sound? A question about each clip of each item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import cast

from ..scenes.mixing import Clip, EventSounds
from ..scenes.slots import SUITING
from ..sounds.entries import Sounds
from .base import Drawn
from .negation import RECIPE as ITEMS
from .negation import NegationSpec
from .question_rows import QuestionRecipe, asked_row, under_one_gain

QUESTION = "Which description is true of the sound?"


class NegationQuestions(QuestionRecipe[NegationSpec]):
    """Two questions with the same words per item, one about each clip: the right option of one is wrong for the other.

    Both list their options in the same order, so a text-only model is right in exactly one of the two. The questions
    about the same two clips, of an item and its mirrored item, form a group.
    """

    name = "negation_questions"
    suiting = SUITING

    @cached_property
    def presets(self) -> Mapping[str, NegationSpec]:
        """Return the presets of the items."""
        return ITEMS.presets

    def draw(self, spec: NegationSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the questions of the items, which are the same items as with captions; see `Recipe.draw`."""
        events = EventSounds(sounds, spec.sample_rate)
        for first, mirrors in groupby(enumerate(ITEMS.draw(spec, sounds)), lambda numbered: numbered[0] // 2):
            asked = []
            for number, item in mirrors:
                options = [item.row["captions"][n] for n in self.random(spec, number).permutation(2)]
                asked += [(item.row, cast(Sequence[Clip], item.clips), options, place) for place in range(2)]
            # In random order, so that the position in the table does not reveal the answer.
            for turn, n in enumerate(self.random(spec, first, 1).permutation(len(asked))):
                item, clips, options, place = asked[n]
                row = asked_row(
                    f"{self.name}-{4 * first + turn:05d}",
                    QUESTION,
                    options,
                    item["captions"][place],
                    kind=item["kind"],
                    group=f"{self.name}-{first:05d}",
                    pair=item["pair"],
                    clips=[item["events"][place]],
                    seconds=spec.num_samples / spec.sample_rate,
                )
                yield Drawn(row, [clips[place]], under_one_gain(clips, events, spec.num_samples, place))


RECIPE = NegationQuestions()
