"""Which of two captions that differ in one word is true of a sound? A question about either clip of each item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

from ..data import Pcm16
from ..scenes.mixing import Clip, EventSounds, mix
from ..sounds.entries import Sounds
from .base import Drawn
from .negation import RECIPE as ITEMS
from .negation import NegationSpec
from .question_rows import QuestionRecipe, asked_row

QUESTION = "Which description is true of the sound?"


class NegationQuestions(QuestionRecipe[NegationSpec]):
    """Two questions of the same words an item, one about each clip: what is right of one is wrong of the other.

    The options of both stand in one order, so that the words of a question tell nothing: whoever only reads is right in
    exactly one of the two. The questions about the same two clips, of an item and its mirror, are a group.
    """

    name = "negation_questions"

    @cached_property
    def presets(self) -> Mapping[str, NegationSpec]:
        """Those of the items."""
        return ITEMS.presets

    def draw(self, spec: NegationSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The questions of the items, which are the same as those with captions; see `Recipe.draw`."""
        sources = EventSounds(sounds, spec.sample_rate)
        for number, (item, clips) in enumerate(ITEMS.items(spec, sounds)):
            options = [item["captions"][n] for n in self.random(spec, number).permutation(2)]
            for place, clip in enumerate(clips):
                row = asked_row(
                    f"{self.name}-{2 * number + place:05d}",
                    QUESTION,
                    options,
                    item["captions"][place],
                    kind=item["kind"],
                    group=f"{self.name}-{number // 2:05d}",
                    clips=[item["events"][place]],
                    seconds=spec.num_samples / spec.sample_rate,
                )
                yield Drawn(row, [clip], partial(_one_of_two, clips, place, sources, spec.num_samples))


def _one_of_two(
    clips: Sequence[Clip], place: int, sources: EventSounds, length: int, _: Sequence[Clip]
) -> Sequence[Pcm16]:
    """One of the two clips of an item, under the gain of both: the level tells nothing."""
    return mix(clips, sources.samples, length)[place : place + 1]


RECIPE = NegationQuestions()
