"""The tables of a first look: the scores to trust, verdicts, all tasks beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.tasks.base import Measure

from .baselines import fixed_by_construction
from .comparison import Comparison
from .conclusions import Judged, ModelVerdict, judged_by_kind
from .loading import ComparedResult
from .tables import interval_text, measure_cell, measure_column, null_note, nulls_legend, training_note, versioned_title

MOST_COLUMNS = 5
"""Of the table of the scores to trust."""

_GROUPS = "models that share a letter are not distinguishable by the measure before it"


def short_table(comparison: Comparison) -> Table:
    """The measures to trust with intervals and groups, and the score that the task is named for with its null."""
    info = comparison.info
    columns = [Column("model", numeric=False)]
    measures = [measure for measure in (*info.recommended, info.score) if _is_stated(comparison, measure)]
    view = comparison.views.get(info.ranks_by)
    has_groups = view is not None and len(comparison.results) > 1
    measures = list(dict.fromkeys(measures))[: MOST_COLUMNS - 1 - has_groups]
    for measure in measures:
        columns.append(measure_column(measure, order=measure.name == info.ranks_by))
        if has_groups and measure.name == info.ranks_by:
            columns.append(Column("groups", _GROUPS, numeric=False))
    rows = []
    for place, result in enumerate(comparison.results):
        kind = "" if result.kind.value == "model" else result.kind.value
        cells = [Cell(result.label, note="\n".join(filter(None, (kind, training_note(result.result, info)))))]
        for measure in measures:
            cells.append(_cell(comparison, place, result, measure))
            if view is not None and has_groups and measure.name == info.ranks_by:
                cells.append(Cell(view.letters[place]))
        rows.append(Row(tuple(cells)))
    caption = f"{versioned_title(info, comparison.version)} on {comparison.data_name}, n = {len(comparison.ids):,}"
    legend = ("Below a score: its 95 % interval.", *nulls_legend(measures, info, shown_too=True))
    return Table(caption, tuple(columns), tuple(rows), legend, f"{info.name}-short")


def summary_table(comparisons: Sequence[Comparison]) -> Table:
    """All models beside each other by the measures to trust of all tasks: the table that a paper prints."""
    columns, by_label, legend = trusted_measures(comparisons, order=True)
    rows = tuple(Row((Cell(label), *cells)) for label, cells in by_label.items())
    return Table(
        "The scores to trust, of all tasks", (Column("model", numeric=False), *columns), rows, legend, "summary"
    )


def trusted_measures(
    comparisons: Sequence[Comparison], *, order: bool = False
) -> tuple[list[Column], dict[str, list[Cell]], tuple[str, ...]]:
    """The measures to trust of all tasks.

    Args:
        comparisons: of the tasks.
        order: whether the first of the columns is that by which the rows come.

    Returns:
        a column a measure, the cells of each model by its label, and what is said below a table of them.
    """
    titles = Counter(comparison.info.title for comparison in comparisons)
    columns: list[Column] = []
    by_label: dict[str, list[Cell]] = {label: [] for comparison in comparisons for label in comparison.labels}
    for comparison in comparisons:
        title = versioned_title(comparison.info, comparison.version)
        if titles[comparison.info.title] > 1:
            title += f" ({comparison.fingerprint[:8]})"
        for measure in comparison.info.recommended:
            named_alike = comparison.info.title.startswith(measure.heading)
            heading, meaning = title if named_alike else f"{title}, {measure.heading}", measure.meaning
            columns.append(Column(heading, meaning, digits=measure.digits or None, order=order and not columns))
            cells = {
                result.label: _cell(comparison, place, result, measure)
                for place, result in enumerate(comparison.results)
            }
            for label, row in by_label.items():
                row.append(cells.get(label, Cell(None)))
    nulls = [
        sentence
        for comparison in comparisons
        for sentence in nulls_legend(comparison.info.recommended, comparison.info, shown_too=True)
    ]
    return (
        columns,
        by_label,
        ("Behind a score: its 95 % interval, BCa bootstrap over independent samples.", *dict.fromkeys(nulls)),
    )


def verdict_tables(comparisons: Sequence[Comparison], judged: Sequence[ModelVerdict]) -> list[Table]:
    """Whether each model is above what needs no learning: a table for each kind of model that tasks ask for."""
    groups = judged_by_kind(comparisons, judged)
    with_models = [group for group in groups if group.models] or groups[:1]
    return [_verdict_table(group, with_models) for group in with_models]


def _verdict_table(judged: Judged, groups: Sequence[Judged]) -> Table:
    columns = (
        Column("model", numeric=False),
        *(Column(f"above {words}?", numeric=False) for words in judged.words.values()),
        Column("so", numeric=False),
    )
    rows = []
    for model in judged.models:
        cells = [Cell(model.label)]
        for number, name in enumerate(model.questions):
            figures = [
                f"{task.comparison.info.title}, {check.measure}: {check.figure}"
                for task in (*model.tasks, *model.beside)
                for check in task.verdict.questions[number].checks
                if check.figure
            ]
            cells.append(Cell("; ".join(told.text for told in model.told(name)), note="\n".join(figures)))
        rows.append(Row((*cells, Cell(model.conclusion))))
    note = (
        "Behind an answer: the difference, its 95 % interval, and p of the paired test, corrected over all pairs; of "
        f"{judged.words['floor']}, where no result is of it, p of the test against what it reaches, corrected over all "
        "models."
    )
    which = f" By the tasks of {judged.kind}" if len(groups) > 1 else ""
    return Table(f"Is each model above what needs no learning?{which}", columns, tuple(rows), (note,), "verdicts")


def _is_stated(comparison: Comparison, measure: Measure) -> bool:
    return any(result.result.measures.get(measure.name) is not None for result in comparison.results)


def _cell(comparison: Comparison, place: int, result: ComparedResult, measure: Measure) -> Cell:
    interval = comparison.interval(place, measure)
    null = null_note(measure, result.result.measures, comparison.info, shown_too=True)
    fixed = fixed_by_construction(result, measure)
    return measure_cell(
        result.value(measure), measure, "\n".join(filter(None, (interval_text(interval, measure.digits), null, fixed)))
    )
