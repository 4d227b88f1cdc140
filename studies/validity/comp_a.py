"""Checks of order and attributes in captions: constructed models compared with theory, and dials."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.texts.captions import caption_templates
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task

from .checks import (
    Chapter,
    Check,
    DialTable,
    Part,
    at_least,
    at_most,
    chance_near,
    heading,
    moves,
    near,
    numbers,
    scored,
    thinned,
)

Floats = NDArray[np.float64]

ORDER, ATTRIBUTE = "comp_a_order", "comp_a_attribute"
"""The tasks."""

TASKS = (ORDER, ATTRIBUTE)

SPLITS = ("subset", "mention", "swapped", "template")
"""Fields of rows that define a split."""

_PHRASE = r"an? ([a-z ]+?)"
_SLACK = 0.1  # seconds that one event may still sound after the next has begun


@dataclass(frozen=True)
class CaptionPlan:
    """The amount of measurement.

    Attributes:
        items: numbers of items of order and of attributes.
        models: number of random models that are averaged.
        every: step between the measured levels of a dial, whose ends are always measured.
    """

    items: int = 400
    models: int = 12
    every: int = 1


FULL = CaptionPlan()
SMALL = CaptionPlan(items=100, models=8, every=2)

Facts = frozenset[tuple[str, ...]]
"""Facts: ("sounds", label), ("is", label, word), ("before", label, label), ("with", label, label)."""


def heard_facts(events: Sequence[Mapping[str, Any]]) -> Facts:
    """Return the facts of a clip, from its events."""
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
    """Return the facts that a caption states.

    Args:
        caption: caption from one of the templates.
        labels: all labels.
        as_named: take the sound named first for the first sound in time, whatever the words between.
    """
    for of_meaning in caption_templates().values():
        for template in of_meaning:
            places = re.findall(r"{(first|second)}", template.text)
            pattern = re.escape(template.text).replace(r"\{", "{").replace(r"\}", "}")
            match = re.fullmatch(pattern.format(first=_PHRASE, second=_PHRASE), caption)
            parts: dict[str, tuple[str, list[str]]] = {}
            for place, phrase in zip(places, match.groups(), strict=True) if match else ():
                label = next((one for one in labels if phrase == one or phrase.endswith(f" {one}")), None)
                words = [] if label is None else phrase[: len(phrase) - len(label)].split()
                if label is not None and not set(words) - _WORDS:
                    parts[place] = label, words
            if len(parts) == 2:
                order = places if as_named else ("first", "second")
                (one, words), (other, more) = (parts[place] for place in order)
                is_sequence = template.meaning == "sequence"
                relation = ("before", one, other) if is_sequence else ("with", *sorted((one, other)))
                facts = {("sounds", one), ("sounds", other), relation}
                return frozenset(facts | {("is", one, word) for word in words} | {("is", other, word) for word in more})
    raise AssertionError(f"no template reads {caption!r}")


_WORDS = frozenset(("low", "middle", "high", "slow", "steady", "fast", "quiet", "loud"))


@dataclass(frozen=True)
class Items:
    """The items of a task as facts.

    Attributes:
        task: name.
        rows: of the recipe.
        heard: facts of each clip, item by item.
        said: facts of each caption.
        named: facts of each caption for a model that takes the sound named first for the first sound in time.
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
        """Vectors of facts, 1 where a fact holds."""
        vectors = np.zeros((len(every), len(self.places)))
        for vector, facts in zip(vectors, every, strict=True):
            vector[[self.places[fact] for fact in facts]] = 1
        return vectors

    @cached_property
    def item(self) -> NDArray[np.int64]:
        """Number of the item of each clip."""
        return np.repeat(np.arange(len(self.rows)), [len(row["captions"]) for row in self.rows])

    def score(self, clips: Floats, texts: Floats) -> Scores:
        """Return the result of the task for embeddings of clips and captions."""
        return scored(self.task, self.rows, Outputs(clips=clips, texts=texts))

    def measures(self, clips: Floats, texts: Floats) -> dict[str, float]:
        """Return the result as numbers, without missing ones."""
        return numbers(self.score(clips, texts))

    def splits(self) -> dict[str, NDArray[np.bool_]]:
        """The items of each value of `SPLITS`; fields with one value are left out."""
        splits = {}
        for name in SPLITS:
            values = np.array([row[name] for row in self.rows])
            for value in sorted(set(values.tolist())):
                if len(set(values.tolist())) > 1:
                    splits[f"{name} {value}"] = values == value
        return splits


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


DIM = 64
"""Dimensions of random embeddings."""

_NOISE, _RANDOM, _COUNTERPARTS, _FAVOUR = range(21, 25)  # independent random streams of one seed

Pair = tuple[Floats, Floats]
"""Embeddings of clips and of captions."""


def oracle(items: Items) -> Pair:
    """Return the model that reads events and captions."""
    return items.vectors(items.heard), items.vectors(items.said)


def first_named_first_heard(items: Items) -> Pair:
    """Return the model that reads events, but takes the sound named first in a caption for the first in time."""
    return items.vectors(items.heard), items.vectors(items.named)


def bag_of_words(items: Items, seed: int) -> Pair:
    """Return the model that reads events, and captions as the baseline `bag-of-words` does."""
    model = load_model("bag-of-words")
    texts = model.embed_text([caption for row in items.rows for caption in row["captions"]])
    clips = items.vectors(items.heard)
    turn = np.random.default_rng([seed, _RANDOM]).normal(size=(clips.shape[1], texts.shape[1]))
    return clips @ turn, texts.astype(np.float64)


def random_embeddings(items: Items, seed: int, number: int) -> Pair:
    """Return a model without knowledge: a random vector for every clip and caption."""
    clips, texts = np.random.default_rng([seed, _RANDOM, number]).normal(size=(2, len(items.item), DIM))
    return clips, texts


def near_counterparts(items: Items, distance: float, seed: int, number: int) -> Pair:
    """Return a model without knowledge that hardly distinguishes the clips, or the captions, of an item.

    Each has the random vector of its item, plus its own random vector, `distance` times as long.
    """
    rng = np.random.default_rng([seed, _COUNTERPARTS, number])
    common = rng.normal(size=(2, len(items.rows), DIM))[:, items.item]
    clips, texts = common + distance * rng.normal(size=common.shape)
    return clips, texts


def noisy(items: Items, sd: float, seed: int, number: int) -> Pair:
    """Return the oracle, with vectors of facts of length 1, plus noise of standard deviation `sd` in each
    coordinate."""
    rng = np.random.default_rng([seed, _NOISE, number])
    clips, texts = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True) + sd * rng.normal(size=vectors.shape)
        for vectors in oracle(items)
    )
    return clips, texts


def favouring(items: Items, strength: float, seed: int) -> Pair:
    """Return the oracle with some clips nearer to every caption than others: all captions share a direction, and
    each clip has a random amount of it."""
    clips, texts = oracle(items)
    more = strength * np.random.default_rng([seed, _FAVOUR]).uniform(size=(len(clips), 1))
    rest = np.sqrt(np.maximum(strength**2 - more**2, 0.0))
    # The second coordinate keeps all clips at one length.
    return np.hstack([clips, more, rest]), np.hstack([texts, np.ones((len(texts), 1)), np.zeros((len(texts), 1))])


PAPER = ("text", "audio", "group", "match")


def perfect(data: CaptionMaterial) -> list[Check]:
    """Check that a model that reads events and captions is right in everything, also in triplets."""
    checks = []
    for task, items in data.items.items():
        measures = items.measures(*oracle(items))
        prefixes = ("", "triplets_", "mixed_") if task == ORDER else ("",)
        for name in (f"{prefix}{name}" for prefix in prefixes for name in PAPER):
            checks.append(near("reads events and captions", heading(task, name), 1, measures[name]))
    return checks


def as_named(data: CaptionMaterial) -> list[Check]:
    """Check a model that takes the first named sound for the first: right for such captions and attributes, else
    wrong."""
    items, subject = data.items[ORDER], "first named is first in time"
    scores = items.score(*first_named_first_heard(items))
    checks = []
    for mention, expected in (("forward", 1.0), ("reverse", 0.0)):
        of_mention = items.splits()[f"mention {mention}"]
        for name in ("match", "group"):
            value = _mean(ORDER, scores, name, of_mention)
            checks.append(near(subject, f"{heading(ORDER, name)}, {mention}", expected, value))
    of_attributes = data.items[ATTRIBUTE]
    measures = of_attributes.measures(*first_named_first_heard(of_attributes))
    return [*checks, near(subject, heading(ATTRIBUTE, "group"), 1, measures["group"])]


def bag(data: CaptionMaterial) -> list[Check]:
    """Check words without their order: all assignments are tied, on every split."""
    checks, subject = [], "bag of words"
    expected = {"text": 0.0, "audio": 0.0, "group": 0.0, "match": 0.5, "text_pairwise": 0.5, "audio_pairwise": 0.5}
    for task, items in data.items.items():
        scores = items.score(*bag_of_words(items, data.seed))
        splits = {"all items": np.ones(len(items.rows), bool), **items.splits()}
        for name, value in expected.items():
            means = np.array([_mean(task, scores, name, split) for split in splits.values()])
            worst = float(means[np.abs(means - value).argmax()])
            checks.append(near(subject, f"{heading(task, name)}, farthest of {len(splits)} splits", value, worst))
        checks.append(near(subject, heading(task, "trivial_group"), 0, float(scores.measures["trivial_group"] or 0)))
    return checks


def random(data: CaptionMaterial) -> list[Check]:
    """Check that a model without knowledge, with distinct vectors, is at chance, and its trivial baseline too."""
    checks = []
    for task, items in data.items.items():
        runs = [items.measures(*random_embeddings(items, data.seed, number)) for number in range(data.plan.models)]
        counts = {"": "n", "triplets_": "triplets_n", "mixed_": "n"} if task == ORDER else {"": "n"}
        for prefix, count in counts.items():
            for name in PAPER:
                value = float(np.mean([run[f"{prefix}{name}"] for run in runs]))
                chance, of_items = runs[0][f"{prefix}chance_{name}"], round(runs[0][count]) * len(runs)
                checks.append(chance_near("random", heading(task, f"{prefix}{name}"), chance, value, of_items))
        trivial = float(np.mean([run["trivial_group"] for run in runs]))
        checks.append(near("random", heading(task, "trivial_group"), runs[0]["chance_group"], trivial, 0.01))
    return checks


def moved(data: CaptionMaterial) -> list[Check]:
    """Check rotated embeddings of other lengths: nothing changes."""
    checks = []
    for task, items in data.items.items():
        clips, texts = noisy(items, 0.2, data.seed, 0)
        rng = np.random.default_rng(data.seed)
        turn = np.linalg.qr(rng.normal(size=(clips.shape[1],) * 2))[0]
        lengths = np.exp(rng.normal(size=(2, len(clips), 1)))
        plain = items.measures(clips, texts)
        other = items.measures(1_000 * lengths[0] * clips @ turn, 0.001 * lengths[1] * texts @ turn)
        change = max(abs(other.get(name, math.nan) - value) for name, value in plain.items())
        checks.append(near("rotated, of other lengths", f"largest of {len(plain)} changes in {task}", 0, change, 1e-6))
    return checks


def _mean(task: str, scores: Scores, name: str, items: NDArray[np.bool_]) -> float:
    """Return the mean of a measure over some items."""
    column = str(load_task(task).info.measure(name).column)
    return float(scores.columns[column][items].mean())


NOISE = (0.0, 0.05, 0.1, 0.2, 0.4, 3.0)
"""Standard deviations of the noise in each coordinate."""

DISTANCES = (0.02, 0.1, 0.2, 0.5, 1.0, 10.0)
"""Lengths of the own part of a clip or a caption, where an item's common part has length 1."""

STRENGTHS = (0.0, 0.5, 1.0, 2.0, 8.0)
"""Strengths by which some clips are nearer to all captions."""

Runs = list[list[dict[str, float]]]


def _turn(
    items: Items, levels: tuple[float, ...], models: int, make_one: Callable[[float, int], Pair], progress: bool
) -> Runs:
    """Return, for each level, the results of the task for models that differ in their random numbers."""
    bar: Any = tqdm(levels, desc=f"captions: {items.task}", disable=not progress)
    return [[items.measures(*make_one(level, number)) for number in range(models)] for level in bar]


def _along(runs: Runs, name: str) -> tuple[float, ...]:
    return tuple(float(np.mean([run[name] for run in of_level])) for of_level in runs)


def turn_noise(data: CaptionMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Move from full knowledge to none: all scores fall from 1 to chance."""
    items, levels = data.items[ATTRIBUTE], thinned(NOISE, data.plan.every)
    models, count = data.plan.models, data.plan.models * len(items.rows)
    runs = _turn(items, levels, models, lambda sd, number: noisy(items, sd, data.seed, number), progress)
    names, subject, checks = ("text", "audio", "group", "match"), "as noise grows", []
    for name in names:
        score, values = heading(ATTRIBUTE, name), _along(runs, name)
        checks += [
            near(subject, f"{score}, at the start", 1, values[0]),
            moves(subject, score, levels, values, falls=True),
            chance_near(subject, f"{score}, at the end", runs[-1][0][f"chance_{name}"], values[-1], count),
        ]
    scores = {heading(ATTRIBUTE, name): _along(runs, name) for name in (*names, "trivial_group")}
    return DialTable("sd of noise", levels, scores), checks


def turn_counterparts(data: CaptionMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Move the counterparts of a model without knowledge: if they are nearer, scores and trivial baselines are lower;
    match stays at one half."""
    items, levels = data.items[ORDER], thinned(DISTANCES, data.plan.every)
    models, count = data.plan.models, data.plan.models * len(items.rows)
    runs = _turn(
        items, levels, models, lambda apart, number: near_counterparts(items, apart, data.seed, number), progress
    )
    checks = []
    for level, of_level in zip(levels, runs, strict=True):
        subject, means = f"counterparts {level:g} apart", {name: _along([of_level], name)[0] for name in of_level[0]}
        checks.append(chance_near(subject, heading(ORDER, "match"), 0.5, means["match"], count))
        for name in ("text", "audio", "group"):
            score = f"{heading(ORDER, name)} and its trivial baseline"
            checks.append(chance_near(subject, score, means[f"trivial_{name}"], means[name], count))
    trivial = _along(runs, "trivial_group")
    subject = "as counterparts differ more"
    checks += [
        at_most(subject, f"{heading(ORDER, 'trivial_group')}, at the start", 0.01, trivial[0]),
        moves(subject, heading(ORDER, "trivial_group"), levels, trivial),
        near(subject, f"{heading(ORDER, 'trivial_group')}, at the end", 1 / 6, trivial[-1], 0.02),
    ]
    names = ("text", "audio", "group", "match", "trivial_text", "trivial_audio", "trivial_group")
    return DialTable(
        "distance of counterparts", levels, {heading(ORDER, name): _along(runs, name) for name in names}
    ), checks


def turn_favour(data: CaptionMaterial, progress: bool) -> tuple[DialTable, list[Check]]:
    """Move some clips of a model with full knowledge near to all captions: match stays, the choices of clips are
    lost."""
    items, levels = data.items[ORDER], thinned(STRENGTHS, data.plan.every)
    runs = _turn(items, levels, 1, lambda strength, _: favouring(items, strength, data.seed), progress)
    names, subject = ("text", "audio", "group", "match"), "as clips are favoured"
    values = {name: _along(runs, name) for name in names}
    checks = [
        *(near(subject, f"{heading(ORDER, name)}, least", 1, min(values[name])) for name in ("text", "match")),
        *(moves(subject, heading(ORDER, name), levels, values[name], falls=True) for name in ("audio", "group")),
        at_most(subject, f"{heading(ORDER, 'group')}, at the end", 0.5, values["group"][-1]),
        at_least(subject, f"{heading(ORDER, 'group')}, at the start", 1, values["group"][0]),
    ]
    return DialTable("strength", levels, {heading(ORDER, name): values[name] for name in names}), checks


def chapter(*, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
    """Check the scores of captions; see `dials.chapter`. Nothing is simulated."""
    data, page = CaptionMaterial(SMALL if quick else FULL, seed), Chapter("comp_a.yaml", "captions")
    order = data.items[ORDER].rows
    head = page.part(
        "chapter",
        level=2,
        order=len(order),
        triplets=sum(len(row["captions"]) == 3 for row in order),
        attribute=len(data.items[ATTRIBUTE].rows),
        models=data.plan.models,
    )
    checks = {"oracle": perfect, "named": as_named, "bag": bag, "random": random, "space": moved}
    along = {"noise": turn_noise, "counterparts": turn_counterparts, "favour": turn_favour}
    return (head, *page.parts(checks, along, data, progress))
