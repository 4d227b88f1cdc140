"""The audio gain: a model's score with the sound minus the best score without it.

Scores without the sound are the same model's on silence, on noise and on another clip, those answerers' that read only
the texts, and chance. A control that answers most questions is scored on the questions that it answers, so a model
does not gain by refusing without the sound. A model that refuses most of them under every control cannot be judged, see
`TaskVerdict`. The same answers choose the best control, so the gain is the smallest of all differences, and its p the
largest of all paired tests: an intersection–union test, which needs no correction (Berger 1982, "Multiparameter
hypothesis testing and acceptance sampling").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from audio_compositionality.support.table import Cell, Column, Row, Table, rows_of
from audio_compositionality.support.text import number_text

from .comparison import Comparison
from .loading import ModelKind
from .statistics import Interval, compare_pairs, mean_intervals
from .tables import interval_text

SILENT = {"without-audio:": "silence", "noise-audio:": "noise", "other-audio:": "another clip"}
"""Controls without the sound that is asked about, with their columns."""

PARTS = {
    "fragment-audio:": "any quarter",
    "first-fragment-audio:": "first quarter",
    "loudest-fragment-audio:": "loudest quarter",
    "shuffled-audio:": "shuffled",
    "changed-audio:": "slower, 8 bits",
}
"""Controls with a part of it, or with all of it in other samples, with their columns."""

TEXTS = ("blind", "majority", "longest", "first")
"""Answerers that read the texts alone."""

CHANCE = "chance"

CHANGED = "Slower, in 8 bits: a model that listens keeps its answers, one that recognises its clips does not. "


@dataclass(frozen=True)
class Gain:
    """The gain of one model.

    Attributes:
        label: of the model.
        place: of its result in the comparison.
        score: with the sound.
        without: the scores without it, by the name of the control; chance is always among them.
        parts: the scores with a part of it, by the prefix of the control.
        best: the name of the best score without it.
        gain: the score minus the score of `best`.
        interval: 95 %, of the gain; None if there are too few samples.
        p: the largest of the paired tests; None if there are too few samples.
    """

    label: str
    place: int
    score: float
    without: dict[str, float]
    parts: dict[str, float]
    best: str
    gain: float
    interval: Interval | None
    p: float | None


def gains(comparison: Comparison) -> Iterator[Gain]:
    """Yield the audio gain of each model that has a result without the sound; none if the task has no `ability`."""
    view = comparison.views.get(comparison.info.ranks_by)
    if not comparison.info.ability or view is None or comparison.samples is None:
        return
    places = {one.result.model.id: place for place, one in enumerate(comparison.results)}
    chance = np.array([1 / len(asked.options) for asked in comparison.samples.asked], np.float64)
    for place, one in enumerate(comparison.results):
        id = one.result.model.id
        silent = {prefix: places[prefix + id] for prefix in SILENT if prefix + id in places}
        if one.kind is not ModelKind.TRAINED or not silent:
            continue
        texts = {name: places[name] for name in TEXTS if name in places}
        columns = {name: view.values[:, at] for name, at in (silent | texts).items()} | {CHANCE: chance}
        tests = {
            name: compare_pairs(
                np.stack([view.values[:, place], column], 1), view.clusters, bounds=view.measure.range
            ).between(0, 1)
            for name, column in columns.items()
        }
        best = max(columns, key=lambda name: columns[name].mean())
        # One-sided: of being higher.
        p_values = [
            None if test.p is None else test.p / 2 if test.difference > 0 else 1 - test.p / 2 for test in tests.values()
        ]
        yield Gain(
            label=comparison.labels[place],
            place=place,
            score=float(view.means[place]),
            without={name: float(column.mean()) for name, column in columns.items()},
            parts={prefix: float(view.means[places[prefix + id]]) for prefix in PARTS if prefix + id in places},
            best=best,
            gain=tests[best].difference,
            interval=tests[best].interval,
            p=None if None in p_values else max(p for p in p_values if p is not None),
        )


def gain_table(comparison: Comparison, *, with_ids: bool = True) -> Table | None:
    """Return a row per model: with the sound, without it, with a part of it, and the gain; None without a model.

    Args:
        comparison: of a task.
        with_ids: whether the legend names questions that are answerable without audio.
    """
    rows = list(gains(comparison))
    if not rows:
        return None
    silent = [name for name in SILENT if any(name in row.without for row in rows)]
    texts = [name for name in TEXTS if name in rows[0].without]
    parts = [name for name in PARTS if any(name in row.parts for row in rows)]
    view = comparison.views[comparison.info.ranks_by]
    intervals = mean_intervals(view.values, view.clusters, bounds=view.measure.range)
    columns = (
        Column("model", numeric=False),
        Column("with sound", digits=None),
        *(Column(SILENT[name], digits=None) for name in silent),
        *(Column(name, digits=None) for name in texts),
        Column(CHANCE, digits=None),
        *(Column(PARTS[name], digits=None) for name in parts),
        Column("audio gain", "with sound minus the best without", digits=None),
        Column("p", "largest p of the paired one-sided tests against each score without sound", digits=None),
    )
    legend = (
        "Silence, noise, another clip: the same model on these instead of the sound. "
        + (f"{', '.join(texts)}: answerers that read only the texts. " if texts else "")
        + ("Quarters, and stretches in disorder: how much of the sound is needed. " if parts else "")
        + (CHANGED if "changed-audio:" in parts else "")
        + "Audio gain: the score with the sound minus the best score without it, including chance, with its 95 % "
        "interval over independent samples. A control that answers most questions is scored on the answered ones.",
        answerable_sentence(comparison, rows[0].place) if with_ids else "",
    )
    lines = []
    for row in rows:
        of_silent = [row.without.get(name) for name in (*silent, *texts, CHANCE)]
        values = [*of_silent, *(row.parts.get(name) for name in parts)]
        cells = (
            Cell(row.label),
            Cell(row.score, number_text(row.score, 3), interval_text(intervals[row.place])),
            *(Cell("–") if value is None else Cell(value, number_text(value, 3)) for value in values),
            Cell(row.gain, number_text(row.gain, 3), interval_text(row.interval)),
            Cell("–") if row.p is None else Cell(row.p, "< 0.001" if row.p < 0.001 else number_text(row.p, 3)),
        )
        lines.append(Row(cells))
    title = f"{comparison.info.title}: with the sound, without it, and the audio gain"
    return Table(title, columns, tuple(lines), tuple(filter(None, legend)), f"{comparison.info.name}-gain")


def paper_table(comparison: Comparison) -> Table | None:
    """Return the audio gain in brief, narrow enough for one column of a two-column paper; None without a model."""
    rows = list(gains(comparison))
    if not rows:
        return None
    quarter = next((name for name in PARTS if any(name in row.parts for row in rows)), None)
    short = [row.label.rpartition("/")[2] for row in rows]
    columns = (
        Column("model", numeric=False),
        Column("with sound"),
        Column("best without"),
        *([Column(PARTS[quarter])] if quarter else []),
        Column("audio gain"),
    )
    legend = (
        f"Accuracy on {len(comparison.ids):,} questions; the best score without sound, with its control; and the audio "
        "gain, the score with sound minus the best without, with its 95 % interval.",
    )
    named = SILENT | {CHANCE: CHANCE}
    lines = []
    for name, row in zip(short, rows, strict=True):
        cells = (
            Cell(name if short.count(name) == 1 else row.label),
            Cell(row.score),
            Cell(row.without[row.best], note=named.get(row.best, row.best)),
            *([Cell(row.parts.get(quarter))] if quarter else []),
            Cell(row.gain, note=interval_text(row.interval)),
        )
        lines.append(Row(cells))
    title, name = f"{comparison.info.title}: audio gain", f"{comparison.info.name}-paper"
    return Table(title, columns, tuple(lines), legend, name, in_one_column=True)


def answerable_table(comparison: Comparison) -> Table | None:
    """Return the questions that are answerable without audio, a row each, with the models that show it; None without.

    See `answerable_without_audio`.
    """
    models: dict[str, list[str]] = {}
    for row in gains(comparison):
        for id in answerable_without_audio(comparison, row.place):
            models.setdefault(id, []).append(row.label)
    if not models:
        return None
    assert comparison.samples is not None
    asked = dict(zip(comparison.ids, comparison.samples.asked, strict=True))
    values = [
        (id, asked[id].question, asked[id].answer, ", ".join(models[id])) for id in comparison.ids if id in models
    ]
    headings = ("id", "question", "answer", "models whose controls without sound are all right")
    legend = "An answer to one of these does not show that the model listens."
    return Table(
        f"{len(values):,} of {len(asked):,} questions are answerable without audio",
        tuple(Column(heading, numeric=False) for heading in headings),
        rows_of(values),
        (legend,),
        f"{comparison.info.name}-answerable-without-audio",
    )


def answerable_without_audio(comparison: Comparison, place: int) -> tuple[str, ...]:
    """Return the ids of the questions that all controls without sound among the results answer correctly.

    These are the model on silence, on noise and on another clip, and `blind`; empty with fewer than two of them.

    Args:
        comparison: of a task that asks about listening.
        place: of the model's result.
    """
    view, samples = comparison.views.get(comparison.info.ranks_by), comparison.samples
    if not comparison.info.ability or view is None or samples is None:
        return ()
    id = comparison.results[place].result.model.id
    wanted = {TEXTS[0], *(prefix + id for prefix in SILENT)}
    deaf = [at for at, one in enumerate(comparison.results) if one.result.model.id in wanted]
    if len(deaf) < 2:
        return ()
    right = (view.values[:, deaf] == 1).all(axis=1)
    return tuple(id for id, is_right in zip(samples.ids, right, strict=True) if is_right)


MOST_LISTED = 20
"""Ids of questions in a legend."""


def answerable_sentence(comparison: Comparison, place: int) -> str:
    """Return a sentence on the questions that a model's controls answer without audio; empty if there are none."""
    ids = answerable_without_audio(comparison, place)
    if not ids:
        return ""
    more = f" and {len(ids) - MOST_LISTED:,} more" if len(ids) > MOST_LISTED else ""
    return (
        f"{len(ids):,} of {len(comparison.ids):,} questions are answerable without audio; all controls of "
        f"{comparison.labels[place]} without the sound answer them correctly: {', '.join(ids[:MOST_LISTED])}{more}."
    )
