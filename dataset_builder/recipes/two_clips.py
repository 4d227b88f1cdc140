"""Questions about two clips played one after the other: which one contains a sound, and in what do they differ?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pydantic import Field

from ..scenes.mixing import Clip, EventSounds
from ..scenes.pool import Use
from ..scenes.slots import SUITING, SlotPool, SlotSpec, in_slots
from ..sounds.entries import Sounds
from .base import Drawn
from .question_rows import QuestionRecipe, asked_row, under_one_gain

PLAYED = "Two clips are played, one after the other."

SLOTS = 3
"""Slots of a clip; all are filled."""

WHICH = ("the first clip", "the second clip", "both clips", "neither clip")

DIFFERENCES = ("which sounds there are", "their order", "how many times each is heard", "nothing")


@dataclass(frozen=True)
class _Asked:
    """The questions of a group.

    Attributes:
        question: the question, shared by all, as are the options.
        options: each is right once.
        clips: the two clips of each question, in the order of the options.
    """

    question: str
    options: tuple[str, ...]
    clips: tuple[tuple[Clip, Clip], ...]


class TwoClipsSpec(SlotSpec):
    """Everything that determines the questions and their samples. Defaults are the sizes of the preset ``full``."""

    comparisons: int = Field(240, ge=1, le=5_000, description="Groups of four questions with the same words.")

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return self.samples_of(SLOTS)


class TwoClips(QuestionRecipe[TwoClipsSpec]):
    """Groups of four questions with the same words about two clips; each of the four options is right once.

    One of the two clips of a group has the property in question. They are played as first and second, as second and
    first, and each twice, so one clip alone does not suffice: a model that uses only the text, always answers the same,
    or uses one clip alone is right in no complete group.
    """

    name = "two_clips"
    suiting = SUITING

    @cached_property
    def presets(self) -> Mapping[str, TwoClipsSpec]:
        """Return the settings of each preset, by name."""
        return {"mini": TwoClipsSpec(comparisons=60), "full": TwoClipsSpec()}

    def draw(self, spec: TwoClipsSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the questions; kinds, labels and sounds are used equally often, in turn; see `Recipe.draw`."""
        pool, events = SlotPool(sounds), EventSounds(sounds, spec.sample_rate)
        uses: dict[str, Use] = defaultdict(Use)
        for number in range(spec.comparisons):
            rng = self.random(spec, number)
            kind = list(KINDS)[number % len(KINDS)]
            names = [str(name) for name in rng.permutation(pool.draw_names(3, uses[kind], rng))]
            sources = pool.draw_recordings(names, uses[kind], rng)
            asked = KINDS[kind](sources, [pool.said(source) for source in sources], spec, rng)
            options = [asked.options[n] for n in rng.permutation(len(asked.options))]
            every = [clip for pair in asked.clips for clip in pair]
            # In random order, so that the position in the table does not reveal the answer.
            for place, n in enumerate(rng.permutation(len(asked.options))):
                clips = asked.clips[n]
                row = asked_row(
                    f"{self.name}-{4 * number + place:05d}",
                    f"{PLAYED} {asked.question}",
                    options,
                    asked.options[n],
                    kind=kind,
                    group=f"{self.name}-{number:05d}",
                    pair=" | ".join(sorted(map(pool.said, sources))),
                    clips=[pool.heard(clip, spec.sample_rate) for clip in clips],
                    seconds=spec.num_samples / spec.sample_rate,
                )
                yield Drawn(row, clips, under_one_gain(every, events, spec.num_samples, 2 * n, 2 * n + 1))


def _in_every_way(question: str, one: Clip, other: Clip) -> _Asked:
    """Return four questions about which of two clips has something that only the first has."""
    return _Asked(question, WHICH, ((one, other), (other, one), (one, one), (other, other)))


def _which_has(sources: tuple[int, ...], said: list[str], spec: TwoClipsSpec, rng: np.random.Generator) -> _Asked:
    """Replace one sound in the second clip, in the same slot."""
    x, y, z = sources
    order = rng.permutation(SLOTS)
    one, other = (in_slots([(x, x, last)[n] for n in order], spec) for last in (z, y))
    return _in_every_way(f"In which of them is {said[2]} heard?", one, other)


def _which_order(sources: tuple[int, ...], said: list[str], spec: TwoClipsSpec, rng: np.random.Generator) -> _Asked:
    """Exchange two sounds in the second clip; the third is anywhere."""
    x, y, z = sources
    place = int(rng.integers(SLOTS))
    one, other = (in_slots([*pair[:place], z, *pair[place:]], spec) for pair in ((x, y), (y, x)))
    return _in_every_way(f"In which of them is {said[0]} heard before {said[1]}?", one, other)


def _what_differs(sources: tuple[int, ...], said: list[str], spec: TwoClipsSpec, rng: np.random.Generator) -> _Asked:
    """Draw a clip with two sounds, one of them twice, and four variants: another sound, order, number, or none."""
    x, y, z = sources
    single = int(rng.integers(SLOTS))
    moved, added = ((single + n) % SLOTS for n in rng.permutation((1, 2)))
    base = [y if slot == single else x for slot in range(SLOTS)]
    replaced = (x, y)[int(rng.integers(2))]
    variants = (
        [z if source == replaced else source for source in base],
        [y if slot == moved else x for slot in range(SLOTS)],
        [y if slot in (single, added) else x for slot in range(SLOTS)],
        base,
    )
    clip = in_slots(base, spec)
    pairs = [(clip, in_slots(variant, spec)) for variant in variants]
    return _Asked(
        "In what do they differ?",
        DIFFERENCES,
        tuple((pair[turned], pair[1 - turned]) for pair in pairs for turned in [int(rng.integers(2))]),
    )


KINDS = {"which_has": _which_has, "which_order": _which_order, "what_differs": _what_differs}
"""The function that draws the questions of each kind, about sounds x, y and z."""

RECIPE = TwoClips()
