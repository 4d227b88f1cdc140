"""Questions of how often a sound is heard, about the clips of the ladders of `count_instances`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from ..scenes.mixing import EventSounds
from ..scenes.slots import SlotPool
from ..sounds.entries import Sounds
from .base import Drawn
from .count_instances import RECIPE as COUNTED
from .count_instances import CountSpec, draw_ladders
from .question_rows import QuestionRecipe, asked_row, under_one_gain


class CountQuestions(QuestionRecipe[CountSpec]):
    """How many times is a sound heard? A question about each clip of a ladder."""

    name = "count_instances_questions"
    suiting = COUNTED.suiting

    @cached_property
    def presets(self) -> Mapping[str, CountSpec]:
        """Specs by the name of a preset: of a ladder four or five questions."""
        return {"mini": CountSpec(ladders=40), "full": CountSpec(ladders=240)}

    def draw(self, spec: CountSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The questions; options are the counts of a ladder in ascending order, each right once."""
        pool, events = SlotPool(sounds), EventSounds(sounds, spec.sample_rate)
        for ladder in draw_ladders(spec, pool, events):
            counts, clips = list(ladder.clips), list(ladder.clips.values())
            # In a drawn order, so that neither the place in the table nor a name tells the count.
            for place, n in enumerate(self.random(spec, ladder.number).permutation(len(counts))):
                row = asked_row(
                    f"{ladder.id}-{place}",
                    f"How many times is {pool.said(ladder.entry)} heard?",
                    [str(number) for number in counts],
                    str(counts[n]),
                    kind=ladder.held,
                    group=ladder.id,
                    pair=pool.entries[ladder.entry].id,
                    clips=[pool.heard(clips[n], spec.sample_rate)],
                    seconds=spec.duration,
                )
                yield Drawn(row, [clips[n]], under_one_gain(clips, events, spec.num_samples, n))


RECIPE = CountQuestions()
