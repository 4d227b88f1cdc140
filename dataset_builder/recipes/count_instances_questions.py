"""Questions about how often a sound is heard in the clips of the ladders of `count_instances`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import cast

from ..scenes.mixing import Clip, EventSounds
from ..sounds.entries import Sounds
from .base import Drawn
from .count_instances import RECIPE as COUNTED
from .count_instances import CountSpec
from .question_rows import QuestionRecipe, asked_row, under_one_gain


class CountQuestions(QuestionRecipe[CountSpec]):
    """How many times is a sound heard? A question about each clip of a ladder."""

    name = "count_instances_questions"
    suiting = COUNTED.suiting

    @cached_property
    def presets(self) -> Mapping[str, CountSpec]:
        """Return the settings of each preset, by name; each ladder has four or five questions."""
        return {"mini": CountSpec(ladders=40), "full": CountSpec(ladders=240)}

    def draw(self, spec: CountSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the questions; options are the counts of a ladder in ascending order, and each is right once."""
        events = EventSounds(sounds, spec.sample_rate)
        for number, ladder in enumerate(COUNTED.draw(spec, sounds)):
            of_ladder, clips = ladder.row, cast(Sequence[Clip], ladder.clips)
            counts = [str(count) for count in of_ladder["counts"]]
            # In random order, so that neither the position in the table nor a name reveals the count.
            for place, n in enumerate(self.random(spec, number).permutation(len(counts))):
                row = asked_row(
                    f"{of_ladder['id']}-{place}",
                    f"How many times is {of_ladder['label']} heard?",
                    counts,
                    counts[n],
                    kind=of_ladder["held"],
                    group=of_ladder["id"],
                    pair=of_ladder["pair"],
                    clips=[of_ladder["events"][n]],
                    seconds=spec.duration,
                )
                yield Drawn(row, [clips[n]], under_one_gain(clips, events, spec.num_samples, n))


RECIPE = CountQuestions()
