"""The tables of one task's results, as they are or compared, printed from the rows of `rows`."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.support.table import MISSING, Cell, Column, Row, Table, cell_text
from audio_compositionality.support.text import listed, number_text, shortened, shown
from audio_compositionality.tasks.base import Measure, Number, TaskInfo
from audio_compositionality.tasks.registry import load_task

from .comparison import Comparison, View
from .diversity import Diversity, diversity
from .loading import ComparedResult, ModelKind, fixed_by_construction
from .rows import ScoreRow, ScoresByMeasure, difference_rows, group_rows, model_scores, slope_rows, stated_scores
from .statistics import MIN_SAMPLES, SIGNIFICANT, Interval

MOST_LISTED_PAIRS = 45
"""Most pairs whose tests a table for people lists, the pairs of ten models; CSV and JSON have all."""

MANY = 0.1
"""A share of unreadable answers or refusals that says more about a model than its score does."""

LONGEST_LEGEND_NAME = 80
"""Characters of a third party's name in a sentence of a legend."""

NOT_INCLUDED = (
    "Intervals and tests cover the variation over test samples alone; other training data, other seeds of a fit and "
    "other random weights add to it."
)


# ----- Results as they are


def headline_table(results: Sequence[Result]) -> Table:
    """Return the models of a run by its tasks, each with the measure of the verdict and its 95 % interval; below them
    the remarks on single results."""
    infos = {result.task: load_task(result.task).info for result in results}
    rows: dict[str, dict[str, Cell]] = {}
    for result in results:
        info = infos[result.task]
        measure = info.judge
        score = stated_scores(result).get(measure.name)
        cell = Cell(None) if score is None else measure_cell(score.value)
        if score is not None and score.interval is not None:
            number = cell_text(cell, measure_column(measure), minus="−")
            cell = replace(cell, text=f"{number} {interval_text(score.interval, measure.digits)}")
        if score is not None:
            cell = replace(cell, note=fixed_by_construction(result.model, score.value, measure))
        rows.setdefault(result.model.id, {})[result.task] = cell
    columns = []
    for info in infos.values():
        column = measure_column(info.judge)
        is_named = info.title.startswith(column.heading)
        columns.append(replace(column, heading=info.title if is_named else f"{info.title}, {column.heading}"))
    remarks = [
        sentence
        for name, info in infos.items()
        for sentence in remark_sentences([(one.model.id, one) for one in results if one.task == name], info)
    ]
    cells = [Row((Cell(id), *(row.get(name, Cell(None)) for name in infos))) for id, row in rows.items()]
    title = f"Scores on {listed(list(dict.fromkeys(result.dataset for result in results)))}"
    if any(cell.text for row in rows.values() for cell in row.values()):
        title += ", with 95 % intervals"
    return Table(title, (MODEL, *columns), tuple(cells), tuple(dict.fromkeys(remarks)), "headlines")


def results_tables(results: Sequence[Result]) -> list[Table]:
    """The tables of an evaluation: one per task, version and data, a row per model, with a legend."""
    groups: dict[tuple[str, int, str, str], list[Result]] = {}
    for result in results:
        groups.setdefault(result.key, []).append(result)
    tables = []
    for (name, version, *_), members in sorted(groups.items()):
        info = load_task(name).info
        measures = stated_measures(info.shown, [result.measures for result in members])
        fewest, most = min(result.n for result in members), max(result.n for result in members)
        n = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        rows = []
        for result in members:
            label = Cell(result.model.id, note=training_note(result, info))
            rows.append(Row((label, *score_cells(stated_scores(result), measures, info))))
        bounded = any(result.intervals.get(measure.name) for result in members for measure in measures)
        below = "Below a number: its 95 % interval, BCa bootstrap over independent samples."
        legend = [measure_legend(measures), *([below] if bounded else []), *nulls_legend(measures, info)]
        legend += [*remark_sentences([(result.model.id, result) for result in members], info), info.warning]
        title = f"{versioned_title(info, version)} on {members[0].dataset}, n = {n}"
        columns = (MODEL, *score_columns(measures, info))
        tables.append(Table(title, columns, tuple(rows), tuple(legend), info.name))
    return tables


# ----- Scores of any results: columns and cells from the rows of `rows`


MODEL = Column("model", numeric=False)
"""The column that names the rows of most tables."""

GROUPS = "models that share a letter do not differ significantly in the measure to the left"
"""The meaning of a column of letters."""


def score_columns(measures: Sequence[Measure], info: TaskInfo, grouped: Container[str] = ()) -> list[Column]:
    """The columns of some measures, each of the `grouped` ones followed by its letters; the measure that the task ranks
    by is marked."""
    columns = []
    for measure in measures:
        ranks = measure.name == info.ranks_by
        columns.append(measure_column(measure, order=ranks))
        if measure.name in grouped:
            columns.append(Column("groups" if ranks else f"groups, {measure.heading}", GROUPS, numeric=False))
    return columns


def score_cells(
    scores: ScoresByMeasure,
    measures: Sequence[Measure],
    info: TaskInfo,
    grouped: Container[str] = (),
    *,
    shown_too: bool = False,
    shared: Mapping[str, Container[str]] | None = None,
    signs: Mapping[str, str] | None = None,
) -> list[Cell]:
    """The cells of one model for `score_columns`: below a number its interval, null and trivial baseline (see
    `null_note`), and why construction fixes it.

    Args:
        scores: of the model.
        measures: of the columns.
        info: of the task.
        grouped: names of the measures with a column of letters.
        shown_too: see `null_note`.
        shared: by measure, the nulls that the legend states once (`shared_nulls`).
        signs: by measure, the sign of a verdict before its number.
    """
    cells = []
    for measure in measures:
        row = scores.get(measure.name)
        if row is None:
            cells.append(Cell(None))
            continue
        told = () if shared is None else shared.get(measure.name, ())
        nulls = [line for line in null_note(row, measure, info, shown_too=shown_too).split("\n") if line not in told]
        notes = filter(None, (interval_text(row.interval, measure.digits), *nulls, row.fixed))
        cell = measure_cell(row.value, "\n".join(notes))
        sign = "" if signs is None else signs.get(measure.name, "")
        text = f"{sign} {cell_text(cell, measure_column(measure), minus='−')}" if sign else None
        cells.append(replace(cell, text=text))
        if measure.name in grouped:
            cells.append(Cell(row.group))
    return cells


def training_note(result: Result, info: TaskInfo) -> str:
    """The training data of a result's model, else its paradigm, where the task wants these beside a score."""
    data, paradigm = result.model.trained_on, result.model.paradigm or "not stated"
    note = f"trained on: {data}" if data else f"trained by: {paradigm}"
    return note if info.shows_training or knows_training(result, info) else ""


def knows_training(result: Result, info: TaskInfo) -> bool:
    """Whether the model of a result was trained on rows of the training recipe that belongs to the task."""
    data = result.model.trained_on or ""
    return bool(info.training) and re.search(rf"(?<!\w){re.escape(info.training)}(?!\w)", data) is not None


def stated_measures(measures: Sequence[Measure], stated: Sequence[Mapping[str, Number]]) -> list[Measure]:
    """The measures that at least one of the results states."""
    return [measure for measure in measures if any(values.get(measure.name) is not None for values in stated)]


def measure_column(measure: Measure, *, order: bool = False) -> Column:
    """The column of a measure."""
    return Column(measure.heading, measure.meaning, digits=measure.digits or None, order=order)


def measure_cell(value: Number, note: str = "") -> Cell:
    """The cell of a measure; a flag shows yes or no."""
    return Cell(value if value is None or isinstance(value, bool) else float(value), note=note)


def measure_legend(measures: Sequence[Measure]) -> str:
    """The definitions of measures in one sentence."""
    return "; ".join(f"{measure.heading}: {measure.meaning.rstrip('.')}" for measure in measures) + "."


def versioned_title(info: TaskInfo, version: int) -> str:
    """The title of a task, with the version where it is not the installed one."""
    return info.title if version == info.version else f"{info.title} version {version}"


def null_note(row: ScoreRow, measure: Measure, info: TaskInfo, *, shown_too: bool = False) -> str:
    """The null and the trivial baseline of a measure, a line each, the larger first; by default without the nulls that
    have columns of their own, but with a trivial baseline where it is the larger."""
    return "\n".join(
        f"{null_name(measure, null)} {number_text(value, null.digits, minus='−')}"
        for place, (null, value) in enumerate(row.nulls(measure, info))
        if _is_beside(null, measure, shown_too, is_larger=place == 0)
    )


def shared_nulls(
    models: Sequence[ScoresByMeasure], measures: Sequence[Measure], info: TaskInfo
) -> dict[str, tuple[str, ...]]:
    """Return by measure the lines of `null_note` that all models share, such as chance."""
    shared: dict[str, tuple[str, ...]] = {}
    for measure in measures:
        rows = [scores[measure.name] for scores in models if scores.get(measure.name) is not None]
        notes = [null_note(row, measure, info, shown_too=True).split("\n") for row in rows]
        lines = tuple(line for line in (notes[0] if notes else ()) if line and all(line in note for note in notes))
        if lines:
            shared[measure.name] = lines
    return shared


def shared_legend(shared: Mapping[str, Sequence[str]]) -> list[str]:
    """One sentence about the nulls that all models share, by the heading of their column."""
    said = [f"{heading}: {', '.join(lines)}" for heading, lines in shared.items()]
    return [f"Equal for all models: {'; '.join(said)}."] if said else []


def _is_beside(null: Measure, measure: Measure, shown_too: bool, *, is_larger: bool) -> bool:
    """Whether a null is printed below a measure; a trivial baseline that is larger than chance always is."""
    return shown_too or not null.shown or (is_larger and null.name == measure.trivial)


def null_name(measure: Measure, null: Measure) -> str:
    """Return the short name of a measure's null or trivial baseline: null, chance, matched null."""
    return null.heading.removeprefix(f"{measure.heading} ")


def nulls_legend(measures: Sequence[Measure], info: TaskInfo, *, shown_too: bool = False) -> list[str]:
    """Definitions of the nulls beside measures, one sentence for those that a model should exceed and one for those
    that it should stay below; see `null_note`."""
    sentences = []
    for place in ("above", "below"):
        placed = [one for one in measures if one.less_is_better == (place == "below")]
        meant: dict[str, str] = {}
        for one in placed:
            for null in (info.measure(name) for name in (one.null, one.trivial) if name is not None):
                if _is_beside(null, one, shown_too, is_larger=one.trivial is not None):
                    name = null_name(one, null)
                    is_same = meant.setdefault(name, null.meaning) == null.meaning
                    # Where the meaning has several parts, the definition of the null comes after the last semicolon.
                    meant[name] = null.meaning if is_same else null.meaning.rpartition("; ")[0] or null.meaning
        texts = "; ".join(f"{name}, {words}" for name, words in meant.items())
        several = ", the larger if there are two" if any(one.trivial for one in placed) else ""
        sentences += [f"Below it, the value that it has to be {place}{several}: {texts}."] if meant else []
    return sentences


def outside_sentence(view: View) -> str:
    """Why samples lie outside the range of a measure, after a space; empty where none does."""
    low, high = view.measure.range
    is_outside = bool(view.values.size and (view.values.min() < low or view.values.max() > high))
    return f" {view.measure.outside}" if is_outside and view.measure.outside else ""


def kinds_there(result: Result, info: TaskInfo) -> str:
    """The kinds of samples in a score, and the missing kinds, in words; empty where none is missing or named."""
    parts = [] if info.profile is None else [info.measure(name) for name in info.profile.parts]
    there = [part.heading for part in parts if result.measures.get(part.name) is not None]
    missing = [part.heading for part in parts if part.heading not in there]
    if not there or not missing:
        return ""
    return f"of {listed(there)} alone: no {info.samples} of {listed(missing)} are there"


def result_remarks(result: Result, info: TaskInfo) -> list[str]:
    """Remarks on a result beside its numbers: flags that are set, a lower precision, truncated answers, clips left
    out."""
    remarks = [
        f"{measure.heading}: {measure.meaning.removeprefix('whether ')}"
        for measure in info.measures
        if result.measures.get(measure.name) is True
    ]
    if knows_training(result, info):
        remarks.append(
            f"trained on {shortened(result.model.trained_on or '', 120)}, and scored on {result.dataset}: if both "
            "share sounds, its scores are not comparable"
        )
    there = kinds_there(result, info)
    if there:
        remarks.append(f"its scores are {there}")
    deviation = result.precision_deviation
    if deviation is not None:
        remarks.append(
            f"computed in {shortened(result.model.options.precision, LONGEST_LEGEND_NAME)}; the embeddings of "
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
            f"{result.cut_answers:,} answers were cut at the limit of tokens for an answer; those without a "
            "choice count as wrong"
        )
    if result.cut_clips:
        remarks.append(
            f"{result.cut_clips:,} questions are about clips longer than the model's input: it got their beginning"
        )
    if result.skipped:
        names = shown([shortened(clip.id, LONGEST_LEGEND_NAME) for clip in result.skipped], 3)
        remarks.append(f"n = {result.n:,}, without the clips that could not be embedded: {names}")
    return remarks


def remark_sentences(results: Iterable[tuple[str, Result]], info: TaskInfo) -> list[str]:
    """`result_remarks` of several results, each with its label, as sentences of a legend."""
    return [
        f"{shortened(label, LONGEST_LEGEND_NAME)}: {remark}."
        for label, result in results
        for remark in result_remarks(result, info)
    ]


# ----- Results compared


def score_table(comparison: Comparison) -> Table:
    """The shown measures of all results: means over the common samples with intervals and groups, where a measure is
    known by sample, else the number that each result states for all its own samples."""
    info = comparison.info
    measures = stated_measures(info.shown, [result.result.measures for result in comparison.results])
    several = len(comparison.results) > 1
    grouped = {view.measure.name for view in comparison.recommended if view.letters} if several else set()
    rows = []
    for place, result in enumerate(comparison.results):
        scores = model_scores(comparison, place, measures, grouped)
        rows.append(Row((Cell(result.label, note=kind_note(result)), *score_cells(scores, measures, info, grouped))))
    legend = [measure_legend(measures), *nulls_legend(measures, info)]
    if comparison.views:
        drawn = comparison.samples.clustered_by if comparison.samples is not None else ""
        legend.append(
            f"Intervals: 95 %, BCa bootstrap of {drawn or info.samples}. Groups: models that share a letter do not "
            "differ significantly (paired t-tests, false discovery rate 5 %)."
        )
        if any(view.letters is None for view in comparison.recommended):
            legend.append("Without groups: they take more than 52 letters. The formats csv and json list all tests.")
        if any(measure.fitted for measure in measures):
            legend.append(NOT_INCLUDED)
        if next(iter(comparison.views.values())).intervals[0] is None:
            legend.append(too_few(comparison))
    if any(len(result.ids) < result.result.n for result in comparison.results):
        legend.append("A number without an interval covers all samples of its result.")
    if comparison.missing is not None:
        legend.append(f"Samples are taken as independent, and their diversity is unknown: {comparison.missing}.")
    legend += [f"{note[:1].upper()}{note[1:]}." for note in comparison.notes]
    legend += remark_sentences([(result.label, result.result) for result in comparison.results], info)
    columns = (MODEL, *score_columns(measures, info, grouped))
    return Table(comparison_caption(comparison), columns, tuple(rows), tuple(legend), f"{info.name}-scores")


def kind_note(result: ComparedResult) -> str:
    """The kind of a model, in words; empty for trained models."""
    return "" if result.kind is ModelKind.TRAINED else result.kind.value


def comparison_caption(comparison: Comparison) -> str:
    """Task, data and number of samples."""
    title = versioned_title(comparison.info, comparison.version)
    return f"{title} on {comparison.data_name}, n = {len(comparison.ids):,}"


def view_title(comparison: Comparison, measure: str) -> str:
    """The task and the measure, in words."""
    title, view = versioned_title(comparison.info, comparison.version), comparison.info.measure(measure)
    return title if view is comparison.info.score else f"{title}, {view.heading}"


def pair_table(comparison: Comparison, view: View, most: int = MOST_LISTED_PAIRS) -> Table:
    """The paired tests of every two results by a measure; without rows if there are more than `most`."""
    n, tests = len(comparison.ids), view.tests
    count = "1 pair" if len(tests) == 1 else f"{len(tests):,} pairs"
    columns = (
        Column("models", numeric=False),
        Column("difference", "of the means, first less second", digits=view.measure.digits),
        Column("t", "of the paired t-test", digits=2),
        Column("p", "two-sided"),
        Column("p, corrected", f"over {count}, Benjamini and Hochberg"),
        Column("effect d_z", "mean difference divided by the standard deviation of the differences", digits=2),
    )
    rows: tuple[Row, ...] = ()
    if not tests:
        note = "One model: there is nothing to compare it with."
    elif len(tests) > most:
        note = f"{count}: the formats csv and json list them."
    else:
        note = too_few(comparison) if tests.p is None else f"p: two-sided, adjusted over {count} (Benjamini and "
        note += "" if tests.p is None else "Hochberg)."
        rows = tuple(
            Row(
                (
                    Cell(f"{row.model} − {row.other}"),
                    Cell(row.value, note=interval_text(row.interval, view.measure.digits) or "too few samples"),
                    Cell(row.t),
                    p_cell(row.p),
                    p_cell(row.p_adjusted),
                    Cell(row.effect_size),
                )
            )
            for row in difference_rows(comparison, view)
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


def score_words(value: Number, interval: Interval | None, digits: int, interval_digits: int | None = None) -> str:
    """A number with its interval after it, where it has one; the interval may have fewer or more digits."""
    ends = interval_text(interval, digits if interval_digits is None else interval_digits)
    return f"{number_text(value, digits, minus='−')} {ends}".strip()


def p_cell(value: float | None) -> Cell:
    """The cell of a p value."""
    return Cell(value, "< 0.001" if value is not None and value < 0.001 else None)


def printed_table(info: TaskInfo) -> Table | None:
    """Published figures of a task, a row per model; None where it has none."""
    printed = info.printed
    if printed is None:
        return None
    measures = [info.measure(name) for name in printed.measures]
    columns = (
        Column("model, as printed", numeric=False),
        *(Column(measure.heading, digits=measure.digits) for measure in measures),
    )
    rows = tuple(
        Row((Cell(model), *(Cell(values.get(measure.name)) for measure in measures)))
        for model, values in printed.figures.items()
    )
    legend = (printed.caveat, *printed.remarks.values())
    return Table(f"Not comparable: {printed.source}", columns, rows, legend, f"{info.name}-printed")


# ----- Facts about the samples


MOST_GROUPS = 12
"""Most groups that are columns of a table; more are rows."""

_NO_FIT = "–: too few independent samples for a fit, or no variation in diversity."


def diversity_tables(comparison: Comparison, *, brief: bool = False) -> Iterator[Table]:
    """Measures against facts about the samples; `brief` leaves out slopes by single attributes and means of groups."""
    for view in comparison.broken_down:
        name = view.measure.name
        slopes = diversity(comparison, name)
        if slopes is None:
            continue
        if slopes.slopes and comparison.samples is not None and comparison.samples.diversity_name:
            yield slope_table(comparison, name, slopes)
            if not brief and len({slope.diversity for slope in slopes.slopes}) > 1:
                yield attribute_table(comparison, name, slopes)
        if not brief:
            yield from group_tables(comparison, name, slopes)


def slope_table(comparison: Comparison, measure: str, slopes: Diversity) -> Table:
    """Slopes of a measure against the diversity that figures show, without and with numbers held fixed."""
    samples = comparison.samples
    assert samples is not None
    first, held = slopes.slopes[0].diversity, listed(list(samples.held_fixed))
    columns = [MODEL, Column("slope"), Column("p")]
    if held:
        columns += [Column("slope within", f"with {held} held fixed"), Column("p within")]
    fits = {(row.quantity, row.model): row for row in slope_rows(comparison, measure, slopes) if row.other == first}
    quantities = ("slope", "slope within") if held else ("slope",)
    rows = []
    for label in comparison.labels:
        cells = [Cell(label)]
        for quantity in quantities:
            row = fits.get((quantity, label))
            if row is None:
                cells += [Cell(None, MISSING), Cell(None, MISSING)]
            else:
                cells += [Cell(row.value, note=interval_text(row.interval)), p_cell(row.p_adjusted)]
        rows.append(Row(tuple(cells)))
    legend = [
        f"Slope: change of {comparison.info.measure(measure).heading} for a change of {samples.diversity_name} by 1."
    ]
    if held:
        legend.append(f"Within: with {held} held fixed, since diversity mostly counts them.")
    legend.append("p: adjusted over models and kinds of diversity.")
    if any(cell.value is None for row in rows for cell in row.cells):
        legend.append(_NO_FIT)
    title = f"{view_title(comparison, measure)} against diversity {samples.diversity_name}"
    name = f"{comparison.info.name}-slopes-{measure}"
    return Table(f"{title}, n = {len(comparison.ids):,}", tuple(columns), tuple(rows), tuple(legend), name)


def attribute_table(comparison: Comparison, measure: str, slopes: Diversity) -> Table:
    """Slopes of a measure against each kind of diversity, with numbers held fixed where the task names some."""
    samples = comparison.samples
    assert samples is not None
    held = listed(list(samples.held_fixed))
    kinds = tuple(dict.fromkeys(slope.diversity for slope in slopes.slopes))
    quantity = "slope within" if held else "slope"
    fits = {(row.model, row.other): row for row in slope_rows(comparison, measure, slopes) if row.quantity == quantity}
    rows = []
    for label in comparison.labels:
        cells = [Cell(label)]
        for kind in kinds:
            row = fits.get((label, kind))
            if row is None:
                cells.append(Cell(None))
                continue
            is_sure = row.p_adjusted is not None and row.p_adjusted <= SIGNIFICANT
            text = f"{number_text(row.value, minus='−')} *" if is_sure else None
            cells.append(Cell(row.value, text, interval_text(row.interval)))
        rows.append(Row(tuple(cells)))
    legend = ["*: differs from 0 by the adjusted p."]
    if any(cell.value is None for row in rows for cell in row.cells):
        legend.append(_NO_FIT)
    title = f"{view_title(comparison, measure)}: slopes by attribute{f', {held} held fixed' if held else ''}"
    name = f"{comparison.info.name}-attributes-{measure}"
    return Table(title, (MODEL, *map(Column, kinds)), tuple(rows), tuple(legend), name)


def group_tables(comparison: Comparison, measure: str, slopes: Diversity) -> Iterator[Table]:
    """Means of a measure over groups of samples, a table per grouping."""
    for number, (grouping, by_label) in enumerate(slopes.groups.items(), 1):
        headings = [f"{group.label} (n = {group.n:,})" for group in next(iter(by_label.values()))]
        means: dict[str, list[Cell]] = {label: [] for label in by_label}
        for row in group_rows(comparison, measure, slopes, grouping):
            means[row.model].append(Cell(row.value, note=interval_text(row.interval) or "too few"))
        if len(headings) > MOST_GROUPS:
            # Many groups are read down a page, not across it.
            heads, lines = [grouping, *by_label], dict(zip(headings, zip(*means.values(), strict=True), strict=True))
        else:
            heads, lines = ["model", *headings], {label: tuple(cells) for label, cells in means.items()}
        columns = (Column(heads[0], numeric=False), *map(Column, heads[1:]))
        rows = tuple(Row((Cell(label), *cells)) for label, cells in lines.items())
        name = f"{comparison.info.name}-groups-{number}-{measure}"
        legend = tuple(filter(None, (outside_sentence(comparison.view(measure)).strip(),)))
        yield Table(f"{view_title(comparison, measure)} by {grouping}", columns, rows, legend, name)
