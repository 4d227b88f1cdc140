"""The numbers of results: a row for each number of a model, with its interval, test, chance level and trivial baseline.

Terminal, Markdown, LaTeX, CSV, JSON, report and leaderboard are printed from these rows. They come from single results
(`stated_rows`) or from a comparison: means over the samples that all results have (`score_rows`), paired
differences, slopes and means of groups. `tidy_frame` is all of them in pandas.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.tasks.base import Measure, Number, TaskInfo, least_of, nulls_of
from audio_compositionality.tasks.registry import load_task

from .comparison import Comparison, View
from .diversity import Diversity, diversity
from .loading import fixed_by_construction, model_kind
from .statistics import Interval

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """A number of a model.

    Attributes:
        task, task_version, fingerprint, rows_digest: of the results.
        measure: name of the measure.
        quantity: ``mean`` over the samples that all results have; ``stated`` by the result, of all its own; or
            ``difference`` of two models, ``slope``, ``slope within`` (with numbers held fixed), ``group mean``.
        model: its label.
        other: the other side: another model, a kind of diversity, a group as ``grouping = label``.
        n: number of samples.
        value: the number; None if there is none.
        low, high: ends of its 95 % interval.
        p, p_adjusted, t, effect_size: of its test.
        group: letters; models that share one do not differ significantly. None if there are not enough letters.
        null, trivial: chance and the control's score, as the result states them; the number should be above both.
        kind: of the model, see `ModelKind`.
        fixed: in words, why construction fixes the number; None where it does not.
    """

    task: str
    task_version: int
    fingerprint: str
    rows_digest: str
    measure: str
    quantity: str
    model: str
    other: str | None = None
    n: int
    value: Number = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    t: float | None = None
    effect_size: float | None = None
    group: str | None = None
    null: float | None = None
    trivial: float | None = None
    kind: str | None = None
    fixed: str | None = None

    @property
    def interval(self) -> Interval | None:
        """Its 95 % interval; None if there is none."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def nulls(self, measure: Measure, info: TaskInfo) -> list[tuple[Measure, float]]:
        """Null and trivial baseline, the larger first; see `nulls_of`."""
        return nulls_of(measure, info, self._beside(measure))

    def least(self, measure: Measure, info: TaskInfo) -> float | None:
        """The larger of null and trivial baseline; None where neither is stated."""
        least = least_of(measure, info, self._beside(measure))
        return None if least is None else least[1]

    def _beside(self, measure: Measure) -> dict[str, Number]:
        pairs = ((measure.null, self.null), (measure.trivial, self.trivial))
        return {name: value for name, value in pairs if name is not None}


SCORE_COLUMNS = tuple(ScoreRow.__dataclass_fields__)
"""The columns of `tidy_frame`."""

ScoresByMeasure = Mapping[str, ScoreRow]
"""The rows of one model's scores, by the name of the measure."""


def _bounds(interval: Interval | None) -> dict[str, Any]:
    return dict(zip(("low", "high"), interval or (None, None), strict=True))


def _null_and_trivial(measure: Measure | None, stated: Mapping[str, Number]) -> dict[str, Any]:
    """The null and the trivial baseline of a measure, as a result states them; empty for an unknown measure."""
    names = {} if measure is None else {"null": measure.null, "trivial": measure.trivial}
    values = {column: stated.get(name) for column, name in names.items() if name is not None}
    return {column: float(value) for column, value in values.items() if value is not None}


# ----- Results as they are


def stated_rows(result: Result, label: str | None = None) -> Iterator[ScoreRow]:
    """Every measure that a result states, also one that its task does not know.

    Args:
        result: the result.
        label: of its model; by default its id.
    """
    described = {measure.name: measure for measure in load_task(result.task).info.measures}
    first = ScoreRow(
        task=result.task,
        task_version=result.task_version,
        fingerprint=result.fingerprint,
        rows_digest=result.rows_digest,
        measure="",
        quantity="stated",
        model=result.model.id if label is None else label,
        n=result.n,
        kind=model_kind(result.model).value,
    )
    for name, value in result.measures.items():
        beside = _null_and_trivial(described.get(name), result.measures)
        yield replace(first, measure=name, value=value, **_bounds(result.intervals.get(name)), **beside)


def stated_scores(result: Result) -> ScoresByMeasure:
    """`stated_rows` by the names of the measures."""
    return {row.measure: row for row in stated_rows(result)}


# ----- Results compared


def _first(comparison: Comparison) -> ScoreRow:
    """The fields that all rows of a comparison share."""
    return ScoreRow(
        task=comparison.info.name,
        task_version=comparison.version,
        fingerprint=comparison.fingerprint,
        rows_digest=comparison.rows_digest,
        measure="",
        quantity="",
        model="",
        n=len(comparison.ids),
    )


def score_rows(
    comparison: Comparison, place: int, measures: Iterable[Measure], grouped: Container[str] = ()
) -> Iterator[ScoreRow]:
    """Measures of one model: means over the samples that all results have, where the result has the measure by sample,
    else the number that it states for all its own samples.

    Args:
        comparison: with the results.
        place: of the result.
        measures: of the task.
        grouped: names of the measures whose letters are wanted, which takes all paired tests.
    """
    result = comparison.results[place]
    first = replace(_first(comparison), model=result.label, kind=result.kind.value)
    for measure in measures:
        view, count = comparison.views.get(measure.name), len(result.scores(measure))
        yield replace(
            first,
            measure=measure.name,
            quantity="mean" if count else "stated",
            n=count or result.result.n,
            value=result.value(measure) if view is None else float(view.means[place]),
            **_bounds(comparison.interval(place, measure)),
            group=view.letters[place] if view is not None and measure.name in grouped and view.letters else None,
            **_null_and_trivial(measure, result.result.measures),
            fixed=fixed_by_construction(result.result.model, result.value(measure), measure) or None,
        )


def model_scores(
    comparison: Comparison, place: int, measures: Iterable[Measure], grouped: Container[str] = ()
) -> ScoresByMeasure:
    """`score_rows` by the names of the measures."""
    return {row.measure: row for row in score_rows(comparison, place, measures, grouped)}


def difference_rows(comparison: Comparison, view: View) -> Iterator[ScoreRow]:
    """The paired differences of every two models by a measure; the first of the two is `ScoreRow.model`."""
    first = replace(_first(comparison), measure=view.measure.name, quantity="difference")
    for test in view.tests:
        yield replace(
            first,
            model=view.labels[test.first],
            other=view.labels[test.second],
            value=test.difference,
            **_bounds(test.interval),
            p=test.p,
            p_adjusted=test.p_adjusted,
            t=test.t,
            effect_size=test.effect_size,
        )


def slope_rows(comparison: Comparison, measure: str, slopes: Diversity) -> Iterator[ScoreRow]:
    """Slopes of a measure against diversity: a row per model, kind of diversity and fit; none if there is no fit."""
    first = replace(_first(comparison), measure=measure)
    for slope in slopes.slopes:
        fits = (("slope", slope.fit, slope.p_adjusted), ("slope within", slope.fit_within, slope.p_adjusted_within))
        for quantity, fit, p_adjusted in fits:
            if fit is not None:
                yield replace(
                    first,
                    quantity=quantity,
                    model=slope.label,
                    other=slope.diversity,
                    value=fit.slope,
                    **_bounds(fit.slope_interval),
                    p=fit.p,
                    p_adjusted=p_adjusted,
                )


def group_rows(comparison: Comparison, measure: str, slopes: Diversity, grouping: str) -> Iterator[ScoreRow]:
    """Means of a measure over the groups of one grouping, model by model."""
    first = replace(_first(comparison), measure=measure, quantity="group mean")
    for label, groups in slopes.groups[grouping].items():
        for group in groups:
            other = f"{grouping} = {group.label}"
            yield replace(first, model=label, other=other, n=group.n, value=group.mean, **_bounds(group.interval))


def comparison_rows(comparison: Comparison) -> Iterator[ScoreRow]:
    """All numbers of a comparison: means, differences, slopes and groups of each measure by sample; means over some
    of the samples; and every measure that a result states."""
    places = range(len(comparison.results))
    for name, view in comparison.views.items():
        yield from (row for place in places for row in score_rows(comparison, place, [view.measure], (name,)))
        yield from difference_rows(comparison, view)
        slopes = diversity(comparison, name)
        if slopes is not None:
            yield from slope_rows(comparison, name, slopes)
            yield from (row for grouping in slopes.groups for row in group_rows(comparison, name, slopes, grouping))
    parts = [measure for measure in comparison.info.measures if measure.within is not None]
    for place in places:
        yield from (row for row in score_rows(comparison, place, parts) if row.quantity == "mean")
    for result in comparison.results:
        yield from stated_rows(result.result, result.label)


def tidy_frame(comparisons: Sequence[Comparison]) -> pandas.DataFrame:
    """One table of all numbers of some comparisons, with the columns `SCORE_COLUMNS`; flags are 0 and 1."""
    import pandas

    rows = (row for comparison in comparisons for row in comparison_rows(comparison))
    values = [{**vars(row), "value": None if row.value is None else float(row.value)} for row in rows]
    return pandas.DataFrame(values, columns=list(SCORE_COLUMNS))
