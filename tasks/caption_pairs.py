"""What the tasks of captions with the same words have in common: their inputs, score, samples and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import TEXT_ENCODER
from audio_compositionality.support.spec import Spec

from .base import Drawing, Floats, Inputs, Number, Outputs, Samples, Scores, TaskError, TaskInfo
from .label_groups import label_groupings
from .metric_files import describe_metric
from .printed import Printed, printed_figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_METRIC = describe_metric("comp_a")

_GROUPINGS = ("subset", "swapped", "mention", "template", "origin", "writer", "domain")
"""Fields of rows by which scores are told apart, where they have several values."""

_DIALS = {"gap": "gap in s", "overlap": "overlap in s", "distance": "distance in classes"}
"""Fields of rows that scores are set against, where they vary, and what they are called."""

_BARS = {"score_text": "text", "score_audio": "audio", "score": "group", "score_match": "match"}
"""Columns of the samples that are drawn, and the measures that are their means."""

_COLOUR, _CHANCE, _FLOOR, _PRINTED = "#0072B2", "#555555", "#D55E00", "#888888"
"""Of Okabe and Ito 2008, "Color universal design", and grey."""

CAPTIONS = {
    "audio/0": "the first clip and its caption",
    "audio/1": "the second clip and its caption",
    "audio/2": "the third clip and its caption",
}


def draw_scores(
    axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number], printed: Printed | None = None
) -> None:
    """Draw one model's scores with 95 % intervals by the normal distribution, each beside its chance and its floor.

    Args:
        axes: an empty panel.
        columns: those of `_BARS`, each [n].
        measures: with their ``chance_`` and ``floor_``.
        printed: what is marked in grey beside them.
    """
    places = range(len(_BARS))
    means = np.array([columns[name].mean() for name in _BARS])
    n = len(columns["score"])
    halves = [1.96 * float(columns[name].std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0 for name in _BARS]
    axes.bar(places, means, width=0.6, color="#80B9D9", edgecolor=_COLOUR, linewidth=0.6)
    axes.errorbar(places, means, halves, color=_COLOUR, linestyle="", capsize=2, linewidth=0.8)
    for prefix, colour, style in (("chance", _CHANCE, "--"), ("floor", _FLOOR, ":")):
        for place, name in zip(places, _BARS.values(), strict=True):
            value = measures.get(f"{prefix}_{name}")
            if value is not None:
                axes.hlines(float(value), place - 0.42, place + 0.42, color=colour, linestyle=style, linewidth=1.2)
    for place, name in zip(places, _BARS.values(), strict=True):
        marks = () if printed is None else printed.of_measure(name)
        axes.plot([place + 0.36] * len(marks), marks, "_", color=_PRINTED, markersize=4, markeredgewidth=0.9)
    axes.set_xticks(places, list(_BARS.values()))
    axes.set(xlim=(-0.6, len(_BARS) - 0.4), ylim=(0, 1.02))


def _drawing(printed: Printed | None) -> Drawing:
    """The bars of a task, with grey marks of what somebody printed of it."""
    marks = "" if printed is None else f" Grey ticks: people and models as printed, not comparable. {printed.sentence}"
    return replace(_SCORES, title=_SCORES.title + marks, panel=partial(draw_scores, printed=printed))


_SCORES = Drawing(
    name="scores",
    title=(
        "Text, audio, group and match with 95 % intervals by the normal distribution. Dashed: chance, that of "
        "independent similarities. Dotted: the floor, what captions and clips as near as this model has them leave of "
        "chance without knowledge; that of match is its chance. A score has to be above the higher of both."
    ),
    alternative="Bars of text, audio, group and match with chance and floor, a panel a model.",
    columns=tuple(_BARS),
    panel=draw_scores,
    y="share of items",
)


def pair_info(name: str, title: str, question: str, recipe: str, controls: tuple[str, ...]) -> TaskInfo:
    """What such a task is."""
    return TaskInfo(
        name=name,
        version=_METRIC.version,
        title=title,
        question=question,
        benchmark="comp_a",
        recipe=recipe,
        needs=TEXT_ENCODER,
        samples="items",
        measures=_METRIC.measures,
        ranks_by="group",
        # Group has a floor beside its chance, which is each model's own: it has to be above the larger.
        trusted={"match": "chance_match", "group": "chance_group"},
        judged_by="match",
        floor="chance",
        captions=CAPTIONS,
        heard_by="margin",
        warning=(
            "Chance is not the floor of group: a model that takes the two captions, or the two clips, for nearly one "
            "falls below 1/6 without hearing anything the wrong way round, and one that takes them for opposites "
            "reaches nearly 1/2 without knowing anything. Group has to be above the larger of chance and its floor, "
            "and above the untrained twin. Match tells no knowledge, 1/2 exactly, from little; group alone says that "
            "captions and clips are told apart one by one."
        ),
        citation=_METRIC.citation,
        on_request=True,
        training="comp_a_train",
        controls=("bag-of-words", "tiny-clap", *controls),
        is_level_matched=True,
        printed=printed_figures(name),
    )


class CaptionPairs:
    """Such a task; see `Task`."""

    spec = Spec

    def __init__(self, info: TaskInfo) -> None:
        """Give `info` by `pair_info`."""
        self.info = info
        self.drawings: tuple[Drawing, ...] = (_drawing(info.printed),)

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clips and captions of an item, two or three of each."""
        return Inputs(
            clips=tuple(f"audio/{place}" for place in range(len(row["captions"]))), texts=tuple(row["captions"])
        )

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings alone.

        Raises:
            TaskError: there are no items, or one has not two or three captions.
        """
        if not rows:
            raise TaskError(f"{self.info.name} has no items; it needs at least one")
        wrong = next((row for row in rows if len(row["captions"]) not in (2, 3)), None)
        if wrong is not None:
            raise TaskError(
                f"{self.info.name}: the item {wrong['id']} has {len(wrong['captions'])} captions; it must have 2 or 3"
            )
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of n items."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.comp_a import comp_a

        counts = [len(row["captions"]) for row in rows]
        values = comp_a(
            outputs.clips,
            outputs.texts,
            np.repeat(np.arange(len(rows)), counts),
            clusters=[row["pair"] for row in rows],
            return_scores=True,
        )
        columns: dict[str, Floats] = {}
        for measure in self.info.sampled:
            scores = values[f"scores{str(measure.column).removeprefix('score')}"]
            if scores is not None:
                columns[str(measure.column)] = np.array(scores, np.float64)
        measures = {measure.name: values[measure.name] for measure in self.info.measures}
        return Scores(measures, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All items; those of the same two sources belong together."""
        groups = {name: tuple(_named(row.get(name)) for row in rows) for name in _GROUPINGS}
        groups["captions"] = tuple(str(len(row["captions"])) for row in rows)
        groups |= label_groupings(rows)
        dials = {title: _numbers(rows, name) for name, title in _DIALS.items()}
        return Samples(
            rows=tuple(rows),
            clusters=np.unique([row["pair"] for row in rows], return_inverse=True)[1].astype(np.int64),
            clustered_by="the two sources",
            diversity={title: values for title, values in dials.items() if values is not None},
            groups={name: labels for name, labels in groups.items() if len(set(labels)) > 1},
            contents=tuple(_contents(row) for row in rows),
            texts=tuple({f"audio/{place}": text for place, text in enumerate(row["captions"])} for row in rows),
        )


def _named(value: Any) -> str:
    """A value of a grouping; "–" where an item has none."""
    return str(value) if value not in (None, "") else "–"


def _numbers(rows: Sequence[Row], name: str) -> Floats | None:
    """A field of all rows; None where one has none, or it does not vary."""
    values = [row.get(name) for row in rows]
    if any(value is None or not math.isfinite(value) for value in values) or len(set(values)) < 2:
        return None
    return np.array(values, np.float64)


def _contents(row: Row) -> dict[str, list[dict[str, str]]]:
    """What sounds in each clip and when, for people; clips of which nothing is known are left out."""
    return {
        f"audio/{place}": [{name: _shown(value) for name, value in event.items()} for event in events]
        for place, events in enumerate(row["events"])
        if events
    }


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.2f}" if isinstance(value, float) else "" if value is None else str(value)
