"""What the models of captions are scored on: rows of the recipes, and what words and events say of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.texts.captions import caption_templates
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task

Floats = NDArray[np.float64]

ORDER, ATTRIBUTE = "comp_a_order", "comp_a_attribute"
"""The tasks."""

TASKS = (ORDER, ATTRIBUTE)

SPLITS = ("subset", "mention", "swapped", "template")
"""Fields of rows by which a split is told."""

_PHRASE = r"an? ([a-z ]+?)"
_SLACK = 0.1  # seconds that one event may still sound after the next has begun


@dataclass(frozen=True)
class CaptionPlan:
    """How much is measured.

    Attributes:
        items: of order, and of attributes.
        models: random ones that are averaged.
        every: each how many levels of a dial are measured; the ends always are.
    """

    items: int = 400
    models: int = 12
    every: int = 1


FULL = CaptionPlan()
SMALL = CaptionPlan(items=100, models=8, every=2)

Facts = frozenset[tuple[str, ...]]
"""What is the case: ("sounds", label), ("is", label, word), ("before", label, label), ("with", label, label)."""


def heard_facts(events: Sequence[Mapping[str, Any]]) -> Facts:
    """What is the case in a clip, of its events."""
    facts: set[tuple[str, ...]] = set()
    for event in events:
        facts.add(("sounds", event["label"]))
        facts.update(("is", event["label"], word) for word in event["attributes"])
    for one, other in permutations(events, 2):
        if one["stop"] <= other["start"] + _SLACK:
            facts.add(("before", one["label"], other["label"]))
        elif other["stop"] > one["start"] + _SLACK:
            facts.add(("with", *sorted((one["label"], other["label"]))))
    return frozenset(facts)


def said_facts(caption: str, labels: Sequence[str], *, as_named: bool = False) -> Facts:
    """What a caption says to be the case.

    Args:
        caption: of one of the templates.
        labels: all that there are.
        as_named: take what is named first for what is heard first, whatever the words between.
    """
    for of_meaning in caption_templates().values():
        for template in of_meaning:
            places = re.findall(r"{(first|second)}", template.text)
            pattern = re.escape(template.text).replace(r"\{", "{").replace(r"\}", "}")
            match = re.fullmatch(pattern.format(first=_PHRASE, second=_PHRASE), caption)
            parts = {} if match is None else dict(zip(places, map(_split_at(labels), match.groups()), strict=True))
            if parts and all(parts.values()):
                first, second = ("first", "second") if not as_named else (places[0], places[1])
                return _facts_of(template.meaning, parts[first], parts[second])
    raise AssertionError(f"no template reads {caption!r}")


def _split_at(labels: Sequence[str]) -> Callable[[str], tuple[str, list[str]] | None]:
    """Splits a phrase into its label and the words before it; None of what has no label at its end."""

    def split(phrase: str) -> tuple[str, list[str]] | None:
        label = next((one for one in labels if phrase == one or phrase.endswith(f" {one}")), None)
        if label is None:
            return None
        words = phrase[: len(phrase) - len(label)].split()
        return None if set(words) - _WORDS else (label, words)

    return split


_WORDS = frozenset(("low", "middle", "high", "slow", "steady", "fast", "quiet", "loud"))


def _facts_of(meaning: str, first: Any, second: Any) -> Facts:
    (one, words), (other, more) = first, second
    relation = ("before", one, other) if meaning == "sequence" else ("with", *sorted((one, other)))
    facts = {("sounds", one), ("sounds", other), relation}
    facts |= {("is", one, word) for word in words} | {("is", other, word) for word in more}
    return frozenset(facts)


@dataclass(frozen=True)
class Items:
    """The items of a task as facts.

    Attributes:
        task: name.
        rows: of the recipe.
        heard: of each clip, item by item.
        said: of each caption.
        named: likewise, by who takes what is named first for what is heard first.
    """

    task: str
    rows: tuple[Row, ...]
    heard: tuple[Facts, ...]
    said: tuple[Facts, ...]
    named: tuple[Facts, ...]

    @classmethod
    def of(cls, task: str, rows: Sequence[Row]) -> Items:
        """Read rows of a task."""
        events = [of_clip for row in rows for of_clip in row["events"]]
        captions = [caption for row in rows for caption in row["captions"]]
        # The longest first: "electric piano" is no "piano".
        labels = sorted({event["label"] for of_clip in events for event in of_clip}, key=len, reverse=True)
        return cls(
            task,
            tuple(rows),
            tuple(map(heard_facts, events)),
            tuple(said_facts(caption, labels) for caption in captions),
            tuple(said_facts(caption, labels, as_named=True) for caption in captions),
        )

    @cached_property
    def places(self) -> Mapping[tuple[str, ...], int]:
        """A coordinate for every fact."""
        facts = sorted({fact for one in (*self.heard, *self.said, *self.named) for fact in one})
        return {fact: place for place, fact in enumerate(facts)}

    def vectors(self, every: Sequence[Facts]) -> Floats:
        """Vectors of facts, 1 where one is the case."""
        vectors = np.zeros((len(every), len(self.places)))
        for vector, facts in zip(vectors, every, strict=True):
            vector[[self.places[fact] for fact in facts]] = 1
        return vectors

    @cached_property
    def item(self) -> NDArray[np.int64]:
        """Number of the item of each clip."""
        return np.repeat(np.arange(len(self.rows)), [len(row["captions"]) for row in self.rows])

    def score(self, clips: Floats, texts: Floats) -> Scores:
        """What the task gives for the embeddings of clips and captions."""
        task = load_task(self.task)
        return task.score(self.rows, Outputs(clips=clips, texts=texts), task.settings(self.rows, {}), "cpu", False)

    def measures(self, clips: Floats, texts: Floats) -> dict[str, float]:
        """The same as numbers, those that there are."""
        return numbers(self.score(clips, texts))

    def splits(self) -> dict[str, NDArray[np.bool_]]:
        """Which items are of each value of `SPLITS`; fields with one value are left out."""
        splits = {}
        for name in SPLITS:
            values = np.array([row[name] for row in self.rows])
            for value in sorted(set(values.tolist())):
                if len(set(values.tolist())) > 1:
                    splits[f"{name} {value}"] = values == value
        return splits


def numbers(scores: Scores) -> dict[str, float]:
    """The measures that there are."""
    return {name: float(value) for name, value in scores.measures.items() if value is not None}


class CaptionMaterial:
    """Rows of both recipes; no sound is rendered."""

    def __init__(self, plan: CaptionPlan, seed: int) -> None:
        self.plan, self.seed = plan, seed

    @cached_property
    def items(self) -> Mapping[str, Items]:
        """The items of each task."""
        items = {}
        for name in TASKS:
            recipe = load_recipe(load_task(name).info.recipe)
            settings = recipe.presets["mini"].changed(seed=self.seed, items=self.plan.items)
            items[name] = Items.of(name, recipe.render(settings).rows)
        return items
