"""Which of three sounds is twice as loud? A recipe as the file of an installed package: tones, or a user's sounds."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from pydantic import Field

from audio_compositionality.dataset_builder.data import AUDIO, TEXT, WHOLE, DataColumn
from audio_compositionality.dataset_builder.recipes.base import Drawn, Recipe
from audio_compositionality.dataset_builder.scenes.mixing import Event
from audio_compositionality.dataset_builder.scenes.pool import SoundPool, SoundsSpec, Use
from audio_compositionality.dataset_builder.sounds.entries import Sounds


class LouderSpec(SoundsSpec):
    """Everything that decides the rows and their samples."""

    items: int = Field(200, ge=1, le=10_000, description="How many rows.")
    ratio: float = Field(2.0, gt=1, le=10, description="How much louder one of the three is, as an amplitude.")


class Louder(Recipe[LouderSpec]):
    """Three sounds of different labels, one after the other; one is louder than the others."""

    name = "louder"

    @cached_property
    def presets(self) -> Mapping[str, LouderSpec]:
        """Specs by the name of a preset."""
        return {"mini": LouderSpec(items=24), "full": LouderSpec()}

    def columns(self, spec: LouderSpec) -> Sequence[DataColumn]:
        """The clip and what is heard."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("audio", AUDIO, "the clip"),
            DataColumn("labels", [TEXT], "of the sounds, in the order in which they are heard", least=3),
            DataColumn("louder", WHOLE, "place of the louder one among them", choices=(0, 1, 2)),
        )

    def draw(self, spec: LouderSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Labels and sounds are used as evenly as they can be."""
        pool, use, third = SoundPool(sounds), Use(), spec.num_samples // 3
        for number in range(spec.items):
            rng = self.random(spec, number)
            labels = pool.draw_labels(3, (), use.labels, rng)
            louder = int(rng.integers(3))
            clip = [
                Event(entry, place * third, (place + 1) * third, gain=spec.ratio if place == louder else 1.0)
                for place, entry in enumerate(pool.draw_recordings(labels, use, rng))
            ]
            yield Drawn({"id": f"louder-{number:05d}", "labels": list(labels), "louder": louder}, [clip])


RECIPE = Louder()
