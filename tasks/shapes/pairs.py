"""Pairs of clips and texts: captions with the same words, captions for retrieval, and classes as prompts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.sounds.entries import categories_in, category_of, spoken
from audio_compositionality.encoders.base import TEXT_ENCODER

from ..base import (
    CHANCE,
    Drawing,
    Floats,
    Inputs,
    Number,
    Outputs,
    PlainTask,
    Printed,
    Samples,
    Scores,
    TaskError,
    TaskInfo,
    groups_of,
    scores_from,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GROUPINGS = ("subset", "swapped", "mention", "template", "origin", "writer", "domain", "kind")
"""Fields of rows by which scores are grouped, if they have several values."""

_DIALS = {"gap": "gap in s", "overlap": "overlap in s", "distance": "distance in classes"}
"""Fields of rows against which scores are plotted, if they vary, and their names."""

_BARS = {"score_text": "text", "score_audio": "audio", "score": "group", "score_match": "match"}
"""Columns of the samples to draw, and the measures that are their means."""

_COLOUR, _CHANCE, _TRIVIAL, _PRINTED = "#0072B2", "#555555", "#D55E00", "#888888"
"""Colours of Okabe and Ito 2008, "Color universal design", and grey."""

FEWEST_CLIPS = 2
"""Smallest number of clips: retrieval from a single clip is meaningless."""

CATEGORY = "category"
BY_WORDS = "category by the words of captions"
FREQUENCY = "items that have the rarer sound"

LEAST_RATIO = 2
"""Smallest ratio of the most frequent to the rarest sound for which a set has frequent and rare groups."""

SPANS = 3
"""Number of groups of about equal size, from the rarest sounds to the most frequent."""


TEXTS: dict[str, Any] = {
    "benchmark": "comp_a",
    "needs": TEXT_ENCODER,
    "on_request": True,
    "is_level_matched": True,
    "trivial": CHANCE,  # energy alone has no text
}
"""Facts of the tasks of clips and texts; see `TaskInfo`."""

PAIRS: dict[str, Any] = TEXTS | {
    "samples": "items",
    "ranks_by": "group",
    # The group score must exceed the larger of chance and each model's own trivial baseline.
    "trusted": {"match": "chance_match", "group": "chance_group"},
    "judged_by": "match",  # its chance level is exactly 1/2
    "heard_by": "margin",
    "training": "comp_a_train",
    "captions": {
        "audio/0": "the first clip and its caption",
        "audio/1": "the second clip and its caption",
        "audio/2": "the third clip and its caption",
    },
}
"""Facts of the tasks of captions with the same words."""

PAIR_WARNING = (
    "Chance is not the trivial baseline of group. A model that embeds the two captions, or the two clips, almost "
    "equally falls below 1/6 without an error of its own; one that embeds them as opposites approaches 1/2 without any "
    "knowledge. Group must be above the larger of chance and its trivial baseline, and above the untrained twin. "
    "Match separates little knowledge from none, which is exactly 1/2; group alone shows only that single captions and "
    "clips are distinguished."
)

SHUFFLED, SORTED_WORDS, REVERSED_AUDIO = (
    {"shuffled:": "its weights shuffled"},
    {"sorted-words:": "itself on sorted words"},
    {"reversed-audio:": "itself on reversed clips"},
)
"""Optional baselines, in words: the model on input from which a control removes what a task is about."""

WHOLE_CLIPS: dict[str, Any] = TEXTS | {"samples": "clips", "shows_training": True}
"""Facts of the tasks in which each clip meets all texts; a model may have been trained on these clips or labels."""


class CaptionPairTask(PlainTask):
    """A task of clips and captions with the same words, scored by the metric `comp_a`; see `Task`."""

    def __init__(self, info: TaskInfo) -> None:
        """Store the facts; grey ticks in the figure show published values."""
        super().__init__(info)
        printed = info.printed
        marks = (
            "" if printed is None else f" Grey ticks: people and models as printed, not comparable. {printed.sentence}"
        )
        panel = partial(draw_scores, printed=printed)
        self.drawings: tuple[Drawing, ...] = (replace(_SCORES, title=_SCORES.title + marks, panel=panel),)

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clips and captions of an item, two or three of each."""
        return Inputs(
            clips=tuple(f"audio/{place}" for place in range(len(row["captions"]))), texts=tuple(row["captions"])
        )

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return no settings: the score depends only on the embeddings.

        Raises:
            TaskError: there are no items, or one does not have two or three captions.
        """
        settings = super().settings(rows, requested)
        wrong = next((row for row in rows if len(row["captions"]) not in (2, 3)), None)
        if wrong is not None:
            raise TaskError(
                f"{self.info.name}: the item {wrong['id']} has {len(wrong['captions'])} captions; 2 or 3 are needed"
            )
        return settings

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of n items."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.comp_a import comp_a

        counts = [len(row["captions"]) for row in rows]
        values = comp_a(
            outputs.clips,
            outputs.texts,
            np.repeat(np.arange(len(rows)), counts),
            clusters=[row["pair"] for row in rows],
            return_scores=True,
        )
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all items; items with the same two sources form a cluster."""
        # "–" if an item states none.
        stated = {name: [row.get(name) for row in rows] for name in _GROUPINGS}
        groups = {
            name: tuple("–" if value in (None, "") else str(value) for value in values)
            for name, values in stated.items()
        }
        groups["captions"] = tuple(str(len(row["captions"])) for row in rows)
        groups |= label_groupings(rows)
        dials = {}
        for name, title in _DIALS.items():
            values = [row.get(name) for row in rows]
            if all(value is not None and math.isfinite(value) for value in values) and len(set(values)) > 1:
                dials[title] = np.array(values, np.float64)
        return Samples(
            rows=tuple(rows),
            clusters=groups_of(rows, "pair"),
            clustered_by="the two sources",
            diversity=dials,
            groups={name: labels for name, labels in groups.items() if len(set(labels)) > 1},
            contents=tuple(_contents(row) for row in rows),
            texts=tuple({f"audio/{place}": text for place, text in enumerate(row["captions"])} for row in rows),
        )


class RetrievalTask(PlainTask):
    """A task of clips and captions, scored by the metric `audio_text_retrieval`; see `Task`."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clip and its captions."""
        return Inputs(clips=("audio",), texts=tuple(row["captions"]))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return no settings: the score depends only on the embeddings.

        Raises:
            TaskError: there are too few clips, or one has no caption.
        """
        if len(rows) < FEWEST_CLIPS:
            raise TaskError(f"{self.info.name} has {len(rows)} clips; at least {FEWEST_CLIPS} are needed")
        empty = next((row for row in rows if not row["captions"]), None)
        if empty is not None:
            raise TaskError(f"{self.info.name}: the clip {empty['id']} has no caption")
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of n clips and their captions."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.audio_text_retrieval import audio_text_retrieval

        clip_of_text = np.repeat(np.arange(len(rows)), [len(row["captions"]) for row in rows])
        values = audio_text_retrieval(outputs.clips, outputs.texts, clip_of_text, return_scores=True)
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all clips; clips of a group, such as cuts of one recording, form a cluster."""
        return whole_clip_samples(rows, [" / ".join(row["captions"]) for row in rows])


class ZeroShotTask(PlainTask):
    """A task of clips and classes as prompts, scored by the metric `zero_shot_audio`; see `Task`."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clip, and the prompts of its classes; the rows together have the prompts of all classes."""
        return Inputs(clips=("audio",), texts=tuple(prompt for prompts in row["prompts"] for prompt in prompts))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return no settings: the score depends only on the embeddings and the classes.

        Raises:
            TaskError: there are fewer than two classes.
        """
        classes = {label for row in rows for label in row["labels"]}
        if len(classes) < 2:
            which = f" alone, {min(classes)!r}" if classes else ""
            raise TaskError(f"{self.info.name} has {len(classes)} class{which}; at least 2 are needed")
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of n clips and of the prompts of all classes."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.zero_shot_audio import zero_shot_audio

        places: dict[tuple[str, str], int] = {}
        prompts = (
            (label, text)
            for row in rows
            for label, texts in zip(row["labels"], row["prompts"], strict=True)
            for text in texts
        )
        for place, prompt in enumerate(prompts):
            places.setdefault(prompt, place)
        is_single = all(len(row["labels"]) == 1 for row in rows)
        values = zero_shot_audio(
            outputs.clips,
            outputs.texts[list(places.values())],
            [row["labels"][0] if is_single else list(row["labels"]) for row in rows],
            class_of_text=[label for label, _ in places],
            return_scores=True,
        )
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all clips; clips of a group, such as cuts of one recording, form a cluster."""
        return whole_clip_samples(rows, [", ".join(row["labels"]) for row in rows])


def whole_clip_samples(rows: Sequence[Row], texts: Sequence[str]) -> Samples:
    """Return all rows, each a clip; rows of one group form a cluster, and a row without a group is its own cluster.

    Args:
        rows: each with a clip ``audio``, and its ``group``.
        texts: text of each, as people read it.
    """
    groups = [row.get("group") or f"row {place}" for place, row in enumerate(rows)]
    codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    are_shared = len(set(groups)) < len(groups)
    return Samples(
        rows=tuple(rows),
        clusters=codes if are_shared else np.arange(len(rows)),
        clustered_by="the group of recordings" if are_shared else "",
        texts=tuple({"audio": text} for text in texts),
    )


def draw_scores(
    axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number], printed: Printed | None = None
) -> None:
    """Draw one model's scores with 95 % intervals by the normal distribution, with chance and trivial baseline.

    Args:
        axes: an empty panel.
        columns: the columns of `_BARS`, each [n].
        measures: with their ``chance_`` and ``trivial_``.
        printed: published figures, marked in grey next to them.
    """
    places = range(len(_BARS))
    means = np.array([columns[name].mean() for name in _BARS])
    n = len(columns["score"])
    halves = [1.96 * float(columns[name].std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0 for name in _BARS]
    axes.bar(places, means, width=0.6, color="#80B9D9", edgecolor=_COLOUR, linewidth=0.6)
    axes.errorbar(places, means, halves, color=_COLOUR, linestyle="", capsize=2, linewidth=0.8)
    for prefix, colour, style in (("chance", _CHANCE, "--"), ("trivial", _TRIVIAL, ":")):
        for place, name in zip(places, _BARS.values(), strict=True):
            value = measures.get(f"{prefix}_{name}")
            if value is not None:
                axes.hlines(float(value), place - 0.42, place + 0.42, color=colour, linestyle=style, linewidth=1.2)
    for place, name in zip(places, _BARS.values(), strict=True):
        marks = () if printed is None else printed.of_measure(name)
        axes.plot([place + 0.36] * len(marks), marks, "_", color=_PRINTED, markersize=4, markeredgewidth=0.9)
    axes.set_xticks(places, list(_BARS.values()))
    axes.set(xlim=(-0.6, len(_BARS) - 0.4), ylim=(0, 1.02))


_SCORES = Drawing(
    name="scores",
    title=(
        "Text, audio, group and match with 95 % intervals by the normal distribution. Dashed: chance for "
        "independent similarities. Dotted: the trivial baseline, the chance level given the distances between this "
        "model's captions and between its clips; for match it equals chance. A score must be above the higher of both."
    ),
    alternative="Bar chart of text, audio, group and match with chance and trivial baseline, one panel per model.",
    columns=tuple(_BARS),
    panel=draw_scores,
    y="share of items",
)


def heard_labels(row: Row) -> tuple[str, ...]:
    """Return the labels of the events in the clips of a row, each once; empty if its events are not known."""
    clips = row.get("events") or ()
    return tuple(dict.fromkeys(event["label"] for events in clips for event in events if event.get("label")))


def label_groupings(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Return groupings of samples by their labels; published items without labels are grouped by the words of captions.

    Args:
        rows: rows of the samples.

    Returns:
        the group of each sample by the name of a grouping: the kinds of sounds in it, and the number of these samples
        with the rarer of its labels, if these numbers differ by a factor of at least `LEAST_RATIO`. Empty if the labels
        of a sample are not known.
    """
    labels = [heard_labels(row) for row in rows]
    if rows and all(labels):
        counts = Counter(label for of_row in labels for label in of_row)
        groupings = {CATEGORY: tuple(_joined(sorted(map(category_of, of_row))) for of_row in labels)}
        if max(counts.values()) >= LEAST_RATIO * min(counts.values()):
            groupings[FREQUENCY] = spans([min(counts[label] for label in of_row) for of_row in labels], "items")
        return groupings
    if rows and all(row.get("origin") == "published" for row in rows):
        # Captions of an item have the same words, except for the preposition of a third caption.
        return {BY_WORDS: tuple(_joined(categories_in(row["captions"][0])) for row in rows)}
    return {}


def frequency_groups(rows: Sequence[Row], captions: Sequence[str]) -> tuple[str, ...]:
    """Return the group of each sample by the frequency of the rarer of its labels in some captions.

    Args:
        rows: rows of the samples; empty groups if one has no label.
        captions: training captions; each text counts once per label that it names.
    """
    labels = [heard_labels(row) for row in rows]
    if not all(labels):
        return ()
    counts = said_in({label for of_row in labels for label in of_row}, captions)
    return spans([min(counts[label] for label in of_row) for of_row in labels], "captions")


def said_in(labels: set[str], captions: Sequence[str]) -> Mapping[str, int]:
    """Return the number of captions that contain each label, as whole words in sequence."""
    words = {label: f" {spoken(label)} " for label in labels}
    counts = dict.fromkeys(labels, 0)
    for caption in captions:
        text = f" {spoken(caption)} "
        for label in labels:
            counts[label] += words[label] in text
    return counts


def spans(counts: Sequence[int], unit: str) -> tuple[str, ...]:
    """Return names of up to `SPANS` groups of numbers by their range, ``3 to 9 captions``; equal numbers share a group.

    Args:
        counts: [n].
        unit: the counted things, in the plural.
    """
    values = np.asarray(counts, np.int64)
    different = np.unique(values)
    edges = different[:-1] if len(different) <= SPANS else np.quantile(values, np.arange(1, SPANS) / SPANS)
    parts = np.searchsorted(edges, values)
    names = {}
    for part in np.unique(parts).tolist():
        low, high = values[parts == part].min(), values[parts == part].max()
        units = unit.removesuffix("s") if high == 1 else unit
        names[part] = f"{low} {units}" if low == high else f"{low} to {high} {units}"
    return tuple(names[part] for part in parts.tolist())


def _joined(names: Sequence[str]) -> str:
    return " + ".join(names) or "–"


def _contents(row: Row) -> dict[str, list[dict[str, str]]]:
    """Return the events of each clip as people read them; clips without known events are left out."""
    return {
        f"audio/{place}": [{name: _shown(value) for name, value in event.items()} for event in events]
        for place, events in enumerate(row["events"])
        if events
    }


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.2f}" if isinstance(value, float) else "" if value is None else str(value)
