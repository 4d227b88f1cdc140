"""Checks of composed retrieval: models with exactly one ability, compared with theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.base import Outputs

from .checks import Chapter, Check, Part, at_most, near, numbers, scored

TASK = "composed_retrieval"

KINDS = ("then", "without", "attribute")

Floats = NDArray[np.float64]
Reader = Callable[[Row], Sequence[Sequence[tuple[Any, ...]]]]
"""The facts of the clips of a row, source first."""

_SURE = 4.0
"""Standard errors by which a share may differ from its expectation."""


def labels_heard(row: Row) -> list[list[tuple[Any, ...]]]:
    """Return the labels and, if words are changed, how many have a word: no order, no binding."""
    return [
        [("sounds", event["label"]) for event in clip]
        + [("word", word) for event in clip for word in _words(row, event)]
        for clip in row["events"]
    ]


def bound_heard(row: Row) -> list[list[tuple[Any, ...]]]:
    """Return the labels (with their words, if words are changed), and which is first and which is last."""
    return [
        [("sounds", event["label"]) for event in clip]
        + [("is", event["label"], word) for event in clip for word in _words(row, event)]
        + [("first", clip[0]["label"]), ("last", clip[-1]["label"])]
        for clip in row["events"]
    ]


def placed_heard(row: Row) -> list[list[tuple[Any, ...]]]:
    """Return the label at each place, and nothing else."""
    return [[(place, event["label"]) for place, event in enumerate(clip)] for clip in row["events"]]


def _words(row: Row, event: Mapping[str, Any]) -> list[str]:
    """Return the word for pitch; none if no words are changed, since not all sounds have one."""
    words = zip(event["dimensions"], event["attributes"], strict=True)
    return [word for name, word in words if name == "pitch" and row["kind"] == "attribute"]


def said(row: Row) -> dict[tuple[Any, ...], float]:
    """Return the facts that a change states, from its key; negative if it denies them."""
    wording, _, rest = row["key"].partition(" ")
    if wording == "without":
        return {("sounds", rest): -1.0}
    if wording == "attribute":
        label, _, word = rest.rpartition(" ")
        return {("is", label, word): 1.0, ("sounds", label): 1.0, ("word", word): 1.0}
    return {("sounds", rest): 1.0, (wording, rest): 1.0}


@dataclass(frozen=True)
class Composed:
    """Rows, whose clips are never rendered.

    Attributes:
        items: number of items of the recipe.
        seed: seed of the rows and of random models.
    """

    items: int
    seed: int

    @cached_property
    def rows(self) -> Sequence[Row]:
        """The rows of tones."""
        recipe = load_recipe(TASK)
        return recipe.render(recipe.presets["mini"].changed(seed=self.seed, items=self.items)).rows

    def measures(self, clips: Floats, texts: Floats) -> dict[str, float]:
        """The measures of the embeddings of all clips and texts."""
        return numbers(scored(TASK, self.rows, Outputs(clips=clips, texts=texts)))

    def vectors(self, heard: Reader, told: Callable[[Row], Mapping[tuple[Any, ...], float]]) -> tuple[Floats, Floats]:
        """Embeddings of clips, how often each fact holds, and of texts."""
        clips = [{fact: float(facts.count(fact)) for fact in facts} for row in self.rows for facts in heard(row)]
        texts = [told(row) for row in self.rows]
        names = {fact: place for place, fact in enumerate(dict.fromkeys(fact for one in clips for fact in one))}
        tables = []
        for every in (clips, texts):
            table = np.zeros((len(every), len(names)))
            for vector, facts in zip(table, every, strict=True):
                for fact, value in facts.items():
                    if fact in names:
                        vector[names[fact]] = value
            tables.append(table)
        return tables[0], tables[1]

    def near_kinds(
        self, subject: str, expected: Sequence[float], values: Mapping[str, float], sure: bool
    ) -> list[Check]:
        """Check R@1 of each kind: exactly, or within standard errors over independent rows."""
        checks = []
        for kind, value in zip(KINDS, expected, strict=True):
            count = sum(row["kind"] == kind for row in self.rows)
            tolerance = _SURE * math.sqrt(value * (1 - value) / count) if sure else 1e-9
            checks.append(near(subject, f"R@1 {kind}", value, values[f"r1_{kind}"], tolerance))
        return checks


def silent(row: Row) -> dict[tuple[Any, ...], float]:
    """No facts."""
    return {}


def abilities(data: Composed) -> list[Check]:
    """Check models that represent everything, ignore order and binding, or take a denial for a mention."""
    checks = data.near_kinds("reads all", (1, 1, 1), data.measures(*data.vectors(bound_heard, said)), False)
    bag = data.measures(*data.vectors(labels_heard, said))
    checks += data.near_kinds("no order, no binding", (1 / 2, 1, 1 / 2), bag, False)
    mention = data.vectors(labels_heard, lambda row: {fact: abs(value) for fact, value in said(row).items()})
    checks += data.near_kinds("takes without for with", (1 / 2, 0, 1 / 2), data.measures(*mention), False)
    return checks


def shortcuts(data: Composed) -> list[Check]:
    """Check one half of the query, or neither: the score equals its trivial baseline, without gain."""
    checks = []
    of_labels = data.measures(*data.vectors(labels_heard, silent))
    checks += data.near_kinds("source alone", (1 / 4, 1 / 3, 1 / 2), of_labels, False)
    checks.append(near("source alone", "gain", 0, of_labels["gain"]))
    placed = data.measures(*data.vectors(placed_heard, silent))
    checks += data.near_kinds("source alone, by place", (1 / 4, 1 / 3, 1 / 2), placed, True)
    clips, texts = data.vectors(bound_heard, said)
    sources = np.cumsum([0, *(len(row["events"]) for row in data.rows[:-1])])
    deaf = clips.copy()
    deaf[sources] = 0
    alone = data.measures(deaf, texts)
    checks += data.near_kinds("text alone", (1 / 2, 1 / 3, 1 / 2), alone, False)
    checks.append(near("text alone", "gain", 0, alone["gain"]))
    for subject, heard in (("candidates alone", labels_heard), ("candidates alone, by place", bound_heard)):
        table, _ = data.vectors(heard, silent)
        for start, row in zip(sources, data.rows, strict=True):
            table[start] = table[start + 1 : start + len(row["events"])].mean(axis=0)
        values = data.measures(table, np.zeros((len(data.rows), table.shape[1])))
        checks += data.near_kinds(subject, (1 / 8, 1 / 6, 1 / 8), values, True)
    return checks


def without_knowledge(data: Composed) -> list[Check]:
    """Check that random embeddings are at chance, and that a text of noise adds nothing to the source."""
    rng = np.random.default_rng([data.seed, 61])
    clips, _ = data.vectors(bound_heard, silent)
    random = data.measures(rng.normal(size=(len(clips), 32)), rng.normal(size=(len(data.rows), 32)))
    checks = data.near_kinds("random", (1 / 8, 1 / 6, 1 / 8), random, True)
    noise = data.measures(clips, rng.normal(size=(len(data.rows), clips.shape[1])))
    checks.append(at_most("text of noise", "gain", _SURE * math.sqrt(0.25 / data.items), noise["gain"]))
    return checks


_part = Chapter("composed.yaml", "composed retrieval").part


def chapter(*, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
    """Check the scores of composed retrieval; see `dials.chapter`. Nothing is simulated, no sound is rendered."""
    data = Composed(144 if quick else 1_152, seed)
    return (
        _part("chapter", level=2, items=data.items),
        _part("abilities", abilities(data)),
        _part("shortcuts", shortcuts(data)),
        _part("nothing", without_knowledge(data)),
    )
