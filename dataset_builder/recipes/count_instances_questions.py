"""Questions of how often a sound is heard, about the clips of the ladders of `count_instances`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

from ..data import Pcm16
from ..scenes.mixing import Clip, EventSounds, mix
from ..scenes.slots import SlotPool
from ..sounds.entries import Sounds
from .base import Drawn
from .count_instances import CountSpec, draw_ladders
from .question_rows import QuestionRecipe, asked_row


class CountQuestions(QuestionRecipe[CountSpec]):
    """How many times is a sound heard? A question about each clip of a ladder."""

    name = "count_instances_questions"

    @cached_property
    def presets(self) -> Mapping[str, CountSpec]:
        """Specs by the name of a preset: of a ladder four or five questions."""
        return {"mini": CountSpec(ladders=40), "full": CountSpec(ladders=240)}

    def draw(self, spec: CountSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The questions; options are the counts of a ladder in ascending order, each right once."""
        pool, events = SlotPool(sounds), EventSounds(sounds, spec.sample_rate)
        for ladder in draw_ladders(spec, pool, events):
            for place, (count, clip) in enumerate(ladder.clips.items()):
                row = asked_row(
                    f"{ladder.id}-{count}",
                    f"How many times is {pool.said(ladder.entry)} heard?",
                    [str(number) for number in ladder.clips],
                    str(count),
                    kind=ladder.held,
                    group=ladder.id,
                    clips=[pool.heard(clip, spec.sample_rate)],
                    seconds=spec.duration,
                )
                clips = list(ladder.clips.values())
                yield Drawn(row, [clip], partial(_among, clips, place, events, spec.num_samples))


def _among(ladder: Sequence[Clip], place: int, events: EventSounds, length: int, _: Sequence[Clip]) -> list[Pcm16]:
    """A clip under the gain of its whole ladder, so that what is held stays held."""
    return [mix(ladder, events.samples, length)[place]]


RECIPE = CountQuestions()
