"""Tables of how measures change with what is known of samples, and all tables of a comparison."""

from __future__ import annotations

from collections.abc import Iterator

from audio_compositionality.support.table import MISSING, Cell, Column, Row, Table
from audio_compositionality.support.text import listed, number_text

from .comparison import Comparison
from .diversity import Diversity, LineFit, diversity
from .perception import perception_tables
from .statistics import SIGNIFICANT, GroupMean
from .tables import interval_text, outside_sentence, p_cell, pair_table, score_table, view_title

MOST_GROUPS = 12
"""Groups that are columns of a table; more are rows."""

_NO_FIT = "–: too few independent samples for a fit, or a diversity that does not vary."


def comparison_tables(comparison: Comparison, *, brief: bool = False) -> list[Table]:
    """The tables of a comparison; `brief` leaves out what depends on single attributes and groups of samples."""
    tables = [score_table(comparison)]
    tables += [pair_table(comparison, view) for view in comparison.recommended]
    for view in comparison.told_apart:
        name = view.measure.name
        slopes = diversity(comparison, name)
        if slopes is not None and slopes.slopes:
            tables.append(slope_table(comparison, name, slopes))
            if not brief and len({slope.diversity for slope in slopes.slopes}) > 1:
                tables.append(attribute_table(comparison, name, slopes))
        if slopes is not None and not brief:
            tables += group_tables(comparison, name, slopes)
    return [*tables, *perception_tables(comparison)]


def slope_table(comparison: Comparison, measure: str, slopes: Diversity) -> Table:
    """Slopes of a measure against the diversity that figures show, as it is and with numbers held fixed."""
    samples = comparison.samples
    assert samples is not None
    first, held = slopes.slopes[0].diversity, listed(list(samples.held_fixed))
    columns = [Column("model", numeric=False), Column("slope"), Column("p")]
    if held:
        columns += [Column("slope within", f"with {held} held fixed"), Column("p within")]
    rows = tuple(
        Row(
            (
                Cell(slope.label),
                *_slope_cells(slope.fit, slope.p_adjusted),
                *(_slope_cells(slope.fit_within, slope.p_adjusted_within) if held else ()),
            )
        )
        for slope in slopes.slopes
        if slope.diversity == first
    )
    legend = [
        f"Slope: change of {comparison.info.measure(measure).heading} for a change of {samples.diversity_name} by 1."
    ]
    if held:
        legend.append(f"Within: with {held} held fixed, since diversity mostly counts them.")
    legend.append("p: corrected over models and kinds of diversity.")
    if any(cell.value is None for row in rows for cell in row.cells):
        legend.append(_NO_FIT)
    title = f"{view_title(comparison, measure)} against diversity {samples.diversity_name}"
    name = f"{comparison.info.name}-slopes-{measure}"
    return Table(f"{title}, n = {len(comparison.ids):,}", tuple(columns), rows, tuple(legend), name)


def attribute_table(comparison: Comparison, measure: str, slopes: Diversity) -> Table:
    """Slopes of a measure against each kind of diversity, with numbers held fixed where the task names such."""
    samples = comparison.samples
    assert samples is not None
    held = listed(list(samples.held_fixed))
    kinds = tuple(dict.fromkeys(slope.diversity for slope in slopes.slopes))
    by_place = {(slope.label, slope.diversity): slope for slope in slopes.slopes}
    rows = []
    for label in comparison.labels:
        cells = [Cell(label)]
        for kind in kinds:
            slope = by_place[label, kind]
            fit, p = (slope.fit_within, slope.p_adjusted_within) if held else (slope.fit, slope.p_adjusted)
            starred = fit is not None and p is not None and p <= SIGNIFICANT
            text = f"{number_text(fit.slope, minus='−')} *" if starred and fit is not None else None
            note = "" if fit is None else interval_text(fit.slope_interval)
            cells.append(Cell(None if fit is None else fit.slope, text, note))
        rows.append(Row(tuple(cells)))
    columns = (Column("model", numeric=False), *(Column(kind) for kind in kinds))
    legend = ["*: differs from 0 after correction."]
    if any(cell.value is None for row in rows for cell in row.cells):
        legend.append(_NO_FIT)
    title = f"{view_title(comparison, measure)}: slopes by attribute{f', {held} held fixed' if held else ''}"
    name = f"{comparison.info.name}-attributes-{measure}"
    return Table(title, columns, tuple(rows), tuple(legend), name)


def group_tables(comparison: Comparison, measure: str, slopes: Diversity) -> Iterator[Table]:
    """Means of a measure over groups of samples, a table a grouping."""
    for number, (grouping, by_label) in enumerate(slopes.groups.items(), 1):
        groups = next(iter(by_label.values()))
        headings = [f"{group.label} (n = {group.n:,})" for group in groups]
        cells = [list(map(_group_cell, means)) for means in by_label.values()]
        if len(groups) > MOST_GROUPS:
            # Many groups are read down a page, not across it.
            heads, names, cells = [grouping, *by_label], headings, [list(row) for row in zip(*cells, strict=True)]
        else:
            heads, names = ["model", *headings], list(by_label)
        columns = (Column(heads[0], numeric=False), *map(Column, heads[1:]))
        rows = tuple(Row((Cell(label), *row)) for label, row in zip(names, cells, strict=True))
        name = f"{comparison.info.name}-groups-{number}-{measure}"
        legend = tuple(filter(None, (outside_sentence(comparison.view(measure)).strip(),)))
        yield Table(f"{view_title(comparison, measure)} by {grouping}", columns, rows, legend, name)


def _slope_cells(fit: LineFit | None, p_adjusted: float | None) -> tuple[Cell, Cell]:
    if fit is None:
        return Cell(None, MISSING), Cell(None, MISSING)
    return Cell(fit.slope, note=interval_text(fit.slope_interval)), p_cell(p_adjusted)


def _group_cell(group: GroupMean) -> Cell:
    return Cell(group.mean, note=interval_text(group.interval) or "too few")
