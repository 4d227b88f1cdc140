"""Checks of counting: models with and without counts and number words, compared with theory."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.base import Outputs
from audio_compositionality.tasks.registry import load_task

from .checks import Chapter, Check, Part, at_most, heading, near, numbers, scored

Floats = NDArray[np.float64]

TASK = "count_instances_text"

ASPECTS = ("energy", "span", "density", "activity")

SURE = 3.0
"""Standard errors by which a share may differ from its chance."""

LUCKY = 40
"""Models that do not know number words."""

NUMBER_WORDS = ("one", "two", "three", "four", "five")


class LadderMaterial:
    """Ladders of tones, which are not rendered.

    Attributes:
        rows: of the recipe.
        counts: how often the sound of each clip occurs, ladder by ladder.
        said: the number that each caption states, by its words.
    """

    def __init__(self, ladders: int, seed: int) -> None:
        recipe = load_recipe(load_task(TASK).info.recipe)
        self.rows = recipe.render(recipe.presets["mini"].changed(ladders=ladders, seed=seed)).rows
        self.counts = np.array([len(events) for row in self.rows for events in row["events"]])
        captions = [caption.split() for row in self.rows for caption in row["captions"]]
        self.said = np.array([next(n for n, word in enumerate(NUMBER_WORDS, 1) if word in words) for words in captions])
        self.rng = np.random.default_rng([seed, ladders])

    def captioned(self, clips: Floats, texts: Floats) -> dict[str, float]:
        """The measures of the embeddings of all clips and captions."""
        return numbers(scored(TASK, self.rows, Outputs(clips=clips, texts=texts)))


def captions(data: LadderMaterial) -> list[Check]:
    """Check models that know numbers, that know all words except numbers, and that prefer the largest number."""
    heard, read = np.eye(len(NUMBER_WORDS))[data.counts - 1], np.eye(len(NUMBER_WORDS))[data.said - 1]
    same = np.ones_like(read)
    turned = np.column_stack([np.cos(1 - data.said / 10), np.sin(1 - data.said / 10)])
    always = np.column_stack([np.ones(len(turned)), np.zeros(len(turned))])
    chance = float(np.mean([1 / len(row["counts"]) for row in data.rows]))
    checks = []
    for subject, order, exact, measures in (
        ("counts and number words", 1.0, 1.0, data.captioned(heard, read)),
        ("all words but numbers", 0.5, chance, data.captioned(heard, same)),
        ("always the largest number", 0.5, chance, data.captioned(always, turned)),
    ):
        checks += [near(subject, heading(TASK, f"order_{part}"), order, measures[f"order_{part}"]) for part in ASPECTS]
        checks.append(near(subject, heading(TASK, "exact"), exact, measures["exact"]))
    lucky = 0
    for _ in range(LUCKY):
        words = data.rng.normal(size=(len(NUMBER_WORDS), 64))
        measures = data.captioned(np.outer(data.counts, words[0] - words[1]), words[data.said - 1])
        lucky += measures["worst"] > measures["trivial"]
    # One of 24 orders of the words at most is above the second largest.
    share, error = 1 / 24, math.sqrt(1 / 24 * 23 / 24 / LUCKY)
    return [
        *checks,
        at_most(
            "unknown number words", "share of models above the trivial baseline", share + SURE * error, lucky / LUCKY
        ),
    ]


_part = Chapter("count_instances.yaml", "counting").part


def chapter(*, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
    """Check the scores of counting; see `dials.chapter`. Nothing is simulated, no sound is rendered."""
    data = LadderMaterial(120 if quick else 400, seed)
    return _part("chapter", level=2, ladders=len(data.rows)), _part("captions", captions(data))
