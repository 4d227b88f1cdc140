"""The tables of results and comparisons, made of what tasks say of their measures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import listed, number_text, shortened, shown
from audio_compositionality.tasks.base import Measure, Number, TaskInfo, nulls_of
from audio_compositionality.tasks.registry import load_task

from .baselines import fixed_by_construction
from .comparison import Comparison, View
from .loading import ComparedResult
from .statistics import MIN_SAMPLES, Interval

MOST_PAIRS = 45
"""Tables for people list the tests of up to so many pairs, those of ten models; CSV and JSON have all."""

MANY = 0.1
"""A share of answers that tells more of a model than its score does: of those that cannot be read, or refuse."""

LONGEST_NAME = 80
"""Characters of a stranger's name in a sentence."""

NOT_INCLUDED = (
    "Intervals and tests tell what other test samples would change. What other training data, other seeds of a fit or "
    "other random weights would change comes on top and is not in them."
)


# ----- Results as they are


def results_tables(results: Sequence[Result]) -> list[Table]:
    """What an evaluation prints: a table a task, version and data set, a row a model, with what the columns mean."""
    groups: dict[tuple[str, int, str], list[Result]] = {}
    for result in results:
        groups.setdefault(result.key, []).append(result)
    return [_results_table(load_task(name).info, members) for (name, _, _), members in sorted(groups.items())]


def _results_table(info: TaskInfo, results: Sequence[Result]) -> Table:
    measures = stated_measures(info.shown, [result.measures for result in results])
    fewest, most = min(result.n for result in results), max(result.n for result in results)
    n = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    rows = []
    for result in results:
        cells = []
        for measure in measures:
            interval = result.intervals.get(measure.name)
            notes = filter(None, (interval_text(interval, measure.digits), null_note(measure, result.measures, info)))
            cells.append(measure_cell(result.measures.get(measure.name), measure, "\n".join(notes)))
        rows.append(Row((Cell(result.model.id, note=training_note(result, info)), *cells)))
    legend = [measure_legend(measures)]
    if any(result.intervals.get(measure.name) for result in results for measure in measures):
        legend.append("Below a number: its 95 % interval, BCa bootstrap over independent samples.")
    legend += nulls_legend(measures, info)
    legend += [
        f"{shortened(result.model.id, LONGEST_NAME)}: {remark}."
        for result in results
        for remark in result_remarks(result, info)
    ]
    return Table(
        f"{versioned_title(info, results[0].task_version)} on {results[0].dataset}, n = {n}",
        (Column("model", numeric=False), *map(measure_column, measures)),
        tuple(rows),
        (*legend, info.warning),
        info.name,
    )


def training_note(result: Result, info: TaskInfo) -> str:
    """What the model of a result was trained on, else how, where the task wants that beside a score."""
    data, paradigm = result.model.trained_on, result.model.paradigm or "not stated"
    note = f"trained on: {data}" if data else f"trained by: {paradigm}"
    return note if info.shows_training or knows_training(result, info) else ""


def knows_training(result: Result, info: TaskInfo) -> bool:
    """Whether the model of a result was trained on rows of the training recipe of what the task scores."""
    data = result.model.trained_on or ""
    return bool(info.training) and re.search(rf"(?<!\w){re.escape(info.training)}(?!\w)", data) is not None


def stated_measures(measures: Sequence[Measure], stated: Sequence[Mapping[str, Number]]) -> list[Measure]:
    """The measures that one of some results states."""
    return [measure for measure in measures if any(values.get(measure.name) is not None for values in stated)]


def measure_column(measure: Measure, *, order: bool = False) -> Column:
    """The column of a measure."""
    return Column(measure.heading, measure.meaning, digits=measure.digits or None, order=order)


def measure_cell(value: Number, measure: Measure, note: str = "") -> Cell:
    """The cell of a measure; a flag shows yes or no."""
    return Cell(value if value is None or isinstance(value, bool) else float(value), note=note)


def measure_legend(measures: Sequence[Measure]) -> str:
    """What measures mean, one sentence."""
    return "; ".join(f"{measure.heading}: {measure.meaning.rstrip('.')}" for measure in measures) + "."


def versioned_title(info: TaskInfo, version: int) -> str:
    """The title of a task, with the version where it is not the installed one."""
    return info.title if version == info.version else f"{info.title} version {version}"


def null_note(measure: Measure, values: Mapping[str, Number], info: TaskInfo, *, shown_too: bool = False) -> str:
    """The null and the floor of a measure, a line each, the larger first; by default those that are not shown by
    themselves, and a floor where it is the larger."""
    nulls = nulls_of(measure, info, values)
    return "\n".join(
        f"{null_name(measure, null)} {number_text(value, null.digits, minus='−')}"
        for place, (null, value) in enumerate(nulls)
        if _is_beside(null, measure, shown_too, is_larger=place == 0)
    )


def _is_beside(null: Measure, measure: Measure, shown_too: bool, *, is_larger: bool) -> bool:
    """Whether a null stands beside a measure: a floor that is larger than chance does so in any case."""
    return shown_too or not null.shown or (is_larger and null.name == measure.floor)


def null_name(measure: Measure, null: Measure) -> str:
    """What the null of a measure is called beside it: null, chance, matched null; so is its floor."""
    return null.heading.removeprefix(f"{measure.heading} ")


def nulls_legend(measures: Sequence[Measure], info: TaskInfo, *, shown_too: bool = False) -> list[str]:
    """What the nulls beside measures are, a sentence for those to be above and one for those to be below; see
    `null_note`."""
    sentences = []
    for place in ("above", "below"):
        placed = [one for one in measures if one.less_is_better == (place == "below")]
        meant: dict[str, str] = {}
        for one in placed:
            for null in (info.measure(name) for name in (one.null, one.floor) if name is not None):
                if _is_beside(null, one, shown_too, is_larger=one.floor is not None):
                    name = null_name(one, null)
                    is_same = meant.setdefault(name, null.meaning) == null.meaning
                    # Of several parts, what a null is of stands behind the last semicolon.
                    meant[name] = null.meaning if is_same else null.meaning.rpartition("; ")[0] or null.meaning
        texts = "; ".join(f"{name}, {words}" for name, words in meant.items())
        several = ", the larger where there are two" if any(one.floor for one in placed) else ""
        sentences += [f"Beside it, what it has to be {place}{several}: {texts}."] if meant else []
    return sentences


def outside_sentence(view: View) -> str:
    """Why samples lie outside of the range of a measure, after a space; empty where none does."""
    low, high = view.measure.range
    is_outside = bool(view.values.size and (view.values.min() < low or view.values.max() > high))
    return f" {view.measure.outside}" if is_outside and view.measure.outside else ""


def kinds_there(result: Result, info: TaskInfo) -> str:
    """Of which kinds of samples a score is, and which are not there, in words; empty where all are, or none is told."""
    parts = [] if info.profile is None else [info.measure(name) for name in info.profile.parts]
    there = [part.heading for part in parts if result.measures.get(part.name) is not None]
    missing = [part.heading for part in parts if part.heading not in there]
    if not there or not missing:
        return ""
    return f"of {listed(there)} alone: no {info.samples} of {listed(missing)} are there"


def result_remarks(result: Result, info: TaskInfo) -> list[str]:
    """What has to be said of a result beside its numbers: flags that are set, a lower precision, answers that were cut,
    clips left out."""
    remarks = [
        f"{measure.heading}: {measure.meaning.removeprefix('whether ')}"
        for measure in info.measures
        if result.measures.get(measure.name) is True
    ]
    if knows_training(result, info):
        remarks.append(
            f"trained on {shortened(result.model.trained_on or '', 120)}, and scored on {result.dataset}: where both "
            "are made of the same sounds, its scores do not compare with those of models that never met such clips and "
            "captions"
        )
    there = kinds_there(result, info)
    if there:
        remarks.append(f"its scores are {there}")
    deviation = result.precision_deviation
    if deviation is not None:
        remarks.append(
            f"computed in {shortened(result.model.options.precision, LONGEST_NAME)}; the embeddings of "
            f"{deviation.clips:,} clips are "
            f"{deviation.relative_mean:.2%} (at most {deviation.relative_max:.2%}) from those in float32, "
            f"{deviation.spread_ratio:.2%} of what clips differ by"
        )
    for name, whole in () if info.profile is None else info.profile.shares:
        part, every = result.measures.get(name), result.measures.get(whole)
        if part and every and part / every >= MANY:
            measure = info.measure(name)
            remarks.append(f"{measure.heading}: {part:,.0f} of {every:,.0f} {info.measure(whole).heading}")
    if result.cut_answers:
        remarks.append(
            f"{result.cut_answers:,} answers were cut at the most tokens that an answer may have; those without a "
            "choice count as wrong"
        )
    if result.skipped:
        names = shown([shortened(clip.id, LONGEST_NAME) for clip in result.skipped], 3)
        remarks.append(f"n = {result.n:,}, without the clips that could not be embedded: {names}")
    return remarks


# ----- Results compared


def score_table(comparison: Comparison) -> Table:
    """The shown measures of all results: means over the common samples with intervals and groups, where a measure is
    known by sample, else what each result states of all its own."""
    info = comparison.info
    measures = stated_measures(info.shown, [result.result.measures for result in comparison.results])
    columns = [Column("model", numeric=False)]
    for measure in measures:
        columns.append(measure_column(measure, order=measure.name == info.ranks_by))
        if _has_groups(comparison, measure):
            heading = "groups" if measure.name == info.ranks_by else f"groups, {measure.heading}"
            columns.append(Column(heading, "models that share a letter are not distinguishable", numeric=False))
    rows = tuple(
        Row(
            (
                Cell(result.label, note="" if result.kind.value == "model" else result.kind.value),
                *(cell for measure in measures for cell in _score_cells(comparison, place, result, measure)),
            )
        )
        for place, result in enumerate(comparison.results)
    )
    caption = f"{versioned_title(info, comparison.version)} on {comparison.data_name}, n = {len(comparison.ids):,}"
    return Table(caption, tuple(columns), rows, tuple(_score_legend(comparison, measures)), f"{info.name}-scores")


def _has_groups(comparison: Comparison, measure: Measure) -> bool:
    return len(comparison.results) > 1 and any(view.measure is measure for view in comparison.recommended)


def _score_cells(comparison: Comparison, place: int, result: ComparedResult, measure: Measure) -> Iterator[Cell]:
    view = comparison.views.get(measure.name)
    interval = comparison.interval(place, measure)
    null = null_note(measure, result.result.measures, comparison.info)
    fixed = fixed_by_construction(result, measure)
    notes = filter(None, (interval_text(interval, measure.digits), null, fixed))
    yield measure_cell(result.value(measure), measure, "\n".join(notes))
    if view is not None and _has_groups(comparison, measure):
        yield Cell(view.letters[place])


def _score_legend(comparison: Comparison, measures: Sequence[Measure]) -> Iterator[str]:
    info = comparison.info
    yield measure_legend(measures)
    yield from nulls_legend(measures, info)
    drawn = comparison.samples.clustered_by if comparison.samples is not None else ""
    if comparison.views:
        yield (
            f"Intervals: 95 %, BCa bootstrap of {drawn or info.samples}. Groups: models that share a letter are not "
            "distinguishable (paired t-tests, false discovery rate 5 %)."
        )
        if any(measure.fitted for measure in measures):
            yield NOT_INCLUDED
        if next(iter(comparison.views.values())).intervals[0] is None:
            yield too_few(comparison)
    if any(len(result.ids) < result.result.n for result in comparison.results):
        yield "What has no interval is of all samples of its own result."
    if comparison.missing is not None:
        yield f"Samples are taken as independent, and nothing is told of diversity: {comparison.missing}."
    yield from (f"{note[:1].upper()}{note[1:]}." for note in comparison.notes)
    for result in comparison.results:
        yield from (
            f"{shortened(result.label, LONGEST_NAME)}: {remark}." for remark in result_remarks(result.result, info)
        )


def view_title(comparison: Comparison, measure: str) -> str:
    """The task and the measure, in words."""
    title, view = versioned_title(comparison.info, comparison.version), comparison.info.measure(measure)
    return title if view is comparison.info.score else f"{title}, {view.heading}"


def pair_table(comparison: Comparison, view: View, most: int = MOST_PAIRS) -> Table:
    """The paired tests of every two results by a measure; without rows where there are more than `most`."""
    n, tests = len(comparison.ids), view.tests
    count = "1 pair" if len(tests) == 1 else f"{len(tests):,} pairs"
    columns = (
        Column("models", numeric=False),
        Column("difference", "of the means, first less second", digits=view.measure.digits),
        Column("t", "of the paired t-test", digits=2),
        Column("p", "two-sided"),
        Column("p, corrected", f"over {count}, Benjamini and Hochberg"),
        Column("effect d_z", "mean difference by the standard deviation of the differences", digits=2),
    )
    rows: tuple[Row, ...] = ()
    if not tests:
        note = "One model: there is nothing to compare it with."
    elif len(tests) > most:
        note = f"{count}: the formats csv and json list them."
    else:
        note = too_few(comparison) if tests[0].p is None else f"p: two-sided, corrected over {count} (Benjamini and "
        note += "" if tests[0].p is None else "Hochberg)."
        rows = tuple(
            Row(
                (
                    Cell(f"{view.labels[test.first]} − {view.labels[test.second]}"),
                    Cell(test.difference, note=interval_text(test.interval, view.measure.digits) or "too few samples"),
                    Cell(test.t),
                    p_cell(test.p),
                    p_cell(test.p_adjusted),
                    Cell(test.effect_size),
                )
            )
            for test in tests
        )
    title = f"{view_title(comparison, view.measure.name)}: paired differences, n = {n:,}"
    return Table(title, columns, rows, (note,), f"{comparison.info.name}-pairs-{view.measure.name}")


def too_few(comparison: Comparison) -> str:
    """That there are too few samples for intervals and tests."""
    independent = len(set(comparison.clusters.tolist()))
    return (
        f"n = {len(comparison.ids)}, {independent} of them independent: too few samples for an interval or a test, "
        f"which need {MIN_SAMPLES}."
    )


def interval_text(interval: Interval | None, digits: int = 3) -> str:
    """An interval in brackets; nothing for None."""
    if interval is None:
        return ""
    return f"[{number_text(interval[0], digits, minus='−')}, {number_text(interval[1], digits, minus='−')}]"


def p_cell(value: float | None) -> Cell:
    """The cell of a p value."""
    return Cell(value, "< 0.001" if value is not None and value < 0.001 else None)
