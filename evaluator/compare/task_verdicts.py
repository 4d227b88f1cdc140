"""The verdict table: models by tasks by baselines, each row a measure's standing with the difference behind it.

`_standing_of_difference` turns a difference into a standing. A task's verdict is the worst of its rows: one model in
one task, against its untrained twin, acoustic or text baselines of the input, the trivial baseline, and the further
baselines of the task. Text, report, board, JSON and LaTeX are views of these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy import stats

from audio_compositionality.encoders.loading.listing import find_model
from audio_compositionality.encoders.loading.twins import UNTRAINED
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.text import listed, number_text, shortened
from audio_compositionality.tasks.base import CHANCE, ENERGY, Measure, TaskInfo, least_of

from .comparison import Comparison, View, mostly_unread
from .loading import (
    ComparedResult,
    ModelKind,
    description_names,
    descriptions_in,
    descriptions_of,
    level_names,
    levels_in,
)
from .statistics import MIN_SAMPLES, SIGNIFICANT, Interval, mean_intervals, paired_t_test

LEAST_DIFFERENCE = 0.05
"""Smallest difference of means that counts, however significant: the scores of ten untrained networks that differed
only in the seed of their weights had a standard deviation of 0.02."""

TOO_FEW = "too few samples"
"""The beginning of the outcome of a comparison without a test."""

ASSUMED_SOURCES = 10
"""Number of sources that an encoder is assumed to distinguish, where the data cannot be opened to count them."""

LONGEST_NAME = 60
"""Characters of a third party's name in a sentence."""

TWIN, DESCRIPTION, TRIVIAL = "twin", "description", "trivial"
"""Names of the baselines that every task has."""


class Standing(Enum):
    """The outcome of a model against a baseline; the value is its text.

    `ABOVE`: significantly higher, by a difference that counts. `BELOW`: significantly lower. `NOT_SHOWN`: compared, and
    neither. `UNKNOWN`: there is nothing to compare with, or there are too few samples.
    `_standing_of_difference` decides which of them a difference has.
    """

    ABOVE = "above"
    BELOW = "below"
    NOT_SHOWN = "not shown"
    UNKNOWN = "cannot tell"

    @property
    def answer(self) -> str:
        """The answer to "Is it shown to be above?": yes, no or cannot tell."""
        return {Standing.ABOVE: "yes", Standing.UNKNOWN: "cannot tell"}.get(self, "no")


WORST_FIRST = (Standing.BELOW, Standing.NOT_SHOWN, Standing.UNKNOWN, Standing.ABOVE)


def worst(standings: Sequence[Standing]) -> Standing:
    """The worst of several standings, by `WORST_FIRST`; unknown of none."""
    return min(standings, key=WORST_FIRST.index, default=Standing.UNKNOWN)


def combined(standings: Sequence[Standing]) -> Standing:
    """One standing of several: above where all are, below where all are, unknown where one is and none is worse."""
    if standings and all(one is Standing.BELOW for one in standings):
        return Standing.BELOW
    if Standing.BELOW in standings or Standing.NOT_SHOWN in standings:
        return Standing.NOT_SHOWN
    return Standing.ABOVE if standings and Standing.UNKNOWN not in standings else Standing.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """A measure of a model in a task against a baseline, or a baseline that is missing.

    Attributes:
        model: label of the model.
        task: name of the task.
        baseline: ``twin``, ``description`` or ``trivial``; of a further twin or control its prefix (``shuffled:``), of
            a further baseline its name.
        words: the baseline, in words: "its untrained twin".
        reference: the other side, in words; several descriptions are several.
        standing: of the measure.
        measure: its heading; empty where the baseline is missing.
        difference: of the means, the model's less the reference's; None if there is none.
        low, high: ends of its 95 % interval; None if there are too few samples.
        p: of the paired test, corrected.
        outcome: without figures; of a missing baseline the missing result and the way to get it.
        is_missing: whether there is no result of the baseline.
        way: how to get the missing result, in words, as in the outcome.
        decides: whether the standing against the baseline depends on it; other trusted measures are reported with it.
        is_same: whether both sides have the same score in every sample.
    """

    model: str
    task: str
    baseline: str
    words: str
    reference: str
    standing: Standing
    measure: str = ""
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    outcome: str
    is_missing: bool = False
    way: str = ""
    decides: bool = True
    is_same: bool = False

    @property
    def sentence(self) -> str:
        """The outcome and the figure."""
        said = f"{self.outcome[:1].upper()}{self.outcome[1:]}"
        return f"{said}: {self.figure}." if self.figure else f"{said}."

    @property
    def figure(self) -> str:
        """The difference, with its interval and adjusted p: "−0.076 (95% CI −0.151 to −0.003; adjusted p = 0.058)";
        empty without a difference."""
        if self.difference is None:
            return ""
        difference = number_text(self.difference, minus="−")
        ends = [] if self.low is None or self.high is None else [self.low, self.high]
        parts = [f"95% CI {' to '.join(number_text(end, minus='−') for end in ends)}"] if ends else []
        if self.p is not None:
            parts.append("adjusted p < 0.001" if self.p < 0.001 else f"adjusted p = {self.p:.3f}")
        behind = f" ({'; '.join(parts)})" if parts else ""
        return f"{'' if self.difference < 0 else '+'}{difference}{behind}"


def baseline_standing(rows: Sequence[VerdictRow]) -> Standing:
    """The standing against one baseline: of each reference over the measures that decide, of all the worst."""
    by_reference: dict[str, list[Standing]] = {}
    for row in rows:
        if row.decides:
            by_reference.setdefault(row.reference, []).append(row.standing)
    return worst([combined(one) for one in by_reference.values()])


def deciding_row(rows: Sequence[VerdictRow]) -> VerdictRow:
    """Return the row that represents a baseline: the first deciding one with the worst standing."""
    return min((row for row in rows if row.decides), key=lambda row: WORST_FIRST.index(row.standing))


@dataclass(frozen=True, kw_only=True)
class TaskVerdict:
    """The verdict of one task on one model that is neither a baseline nor untrained.

    Attributes:
        label: of the model.
        info: of the task.
        rows: against the twin, acoustic or text baselines and the trivial baseline; then the further baselines that
            have results.
        flags: meanings of the flags that count against the model.
        unread: the number of answers that name no option, in words, where most do; else empty.
        refuses: whether most answers name no option under each control without the right sound.
        comparison: of the results of the task; None where it is not kept.
    """

    label: str
    info: TaskInfo
    rows: tuple[VerdictRow, ...]
    flags: tuple[str, ...] = ()
    unread: str = ""
    refuses: bool = False
    comparison: Comparison | None = None

    @property
    def baselines(self) -> dict[str, tuple[VerdictRow, ...]]:
        """The rows by the name of the baseline."""
        names = dict.fromkeys(row.baseline for row in self.rows)
        return {name: tuple(row for row in self.rows if row.baseline == name) for name in names}

    @property
    def standings(self) -> dict[str, Standing]:
        """The standing against each baseline, by its name."""
        return {name: baseline_standing(rows) for name, rows in self.baselines.items()}

    @property
    def standing(self) -> Standing:
        """Return the worst standing against all baselines. With a flag, *above* is not shown; if most answers are
        unread, or the model refuses whatever is not the right sound, *above* becomes unknown."""
        if self.unread:
            return Standing.UNKNOWN
        refused = [Standing.UNKNOWN] if self.refuses else []
        return worst([*self.standings.values(), *(Standing.NOT_SHOWN for _ in self.flags), *refused])

    @property
    def is_same_as_twin(self) -> bool:
        """Whether the model and its twin have the same score in every sample."""
        return any(row.is_same for row in self.rows if row.baseline == TWIN)


def baseline_words(info: TaskInfo) -> dict[str, str]:
    """The baselines that every task has, in words, by their names."""
    return {TWIN: info.twin[1], DESCRIPTION: description_names(info), TRIVIAL: info.trivial}


def twins_of(comparison: Comparison, place: int) -> list[int]:
    """Return the places of a model's twins, see `TaskInfo.twin`: the same architecture with random weights, or the
    model without the input that the task is about."""
    twin = comparison.info.twin[0] + comparison.results[place].result.model.id
    return [
        k
        for k, result in enumerate(comparison.results)
        if result.kind in (ModelKind.UNTRAINED, ModelKind.CONTROL) and result.result.model.id == twin
    ]


def task_verdict(info: TaskInfo, result: ComparedResult, rows: Sequence[VerdictRow]) -> TaskVerdict:
    """The verdict from some rows, with what counts against a result whatever the rows are."""
    raised = [one for one in info.measures if result.result.measures.get(one.name) is True]
    flags = tuple(one.meaning.removeprefix("whether ") for one in raised)
    return TaskVerdict(label=result.label, info=info, rows=tuple(rows), flags=flags, unread=mostly_unread(info, result))


def task_verdicts(comparison: Comparison) -> tuple[TaskVerdict, ...]:
    """Return a verdict on each model that is neither a baseline nor untrained, in the order of the results.

    A model is above another if the measure of the verdict is significantly higher in the paired tests of all results,
    by `LEAST_DIFFERENCE` or more, and no other headline measure is significantly lower. It is above the trivial
    baseline, such as energy alone, if each headline measure with a known value of the trivial baseline is significantly
    above this value, with p values adjusted over all models. If the task names one measure for its verdict, that one
    decides and the others are reported with it. It is above energy only if it is also above every baseline among the
    results whose only input is the level, as above any other model. Without this value and this baseline, the
    standing is unknown."""
    info, results, labels = comparison.info, comparison.results, comparison.labels
    levels = levels_in(results) if info.trivial == ENERGY else []
    descriptions = descriptions_in(results, info)
    described = listed([labels[k] for k in descriptions]) if descriptions else ""
    trivial_rows = _trivial_rows(comparison, has_levels=bool(levels))
    verdicts = []
    for place, result in enumerate(results):
        if result.kind is not ModelKind.TRAINED:
            continue
        prefix, words = info.twin
        rows: list[VerdictRow] = []
        twins = twins_of(comparison, place)
        for k in twins:
            # With several draws of fresh weights, the label says which one.
            beside = "" if len(twins) == 1 else f" ({labels[k]})"
            rows += _paired_rows(comparison, place, k, TWIN, words, words, beside)
        if not twins:
            # An id ends with the options of the run, such as the layer, which are typed as options.
            card = result.result.model
            suffix = EncoderOptions(**card.options.model_dump()).suffix
            name = card.id.removesuffix(suffix)
            # A name to type is whole, unless it is longer than any of the Hub.
            way = f"to compare, score `{shortened(prefix + name, 3 * LONGEST_NAME)}`"
            # The id of a class of the user's own is its name: neither listed, nor one of the Hub, nor what was typed.
            if prefix == UNTRAINED and find_model(name) is None and "/" not in name:
                way = (
                    "to compare, score `untrained:NAME` for the NAME that you gave, as `run` does; the class names its "
                    'network, `network = "net"`, or defines `untrained`'
                )
            way += f" with the same options, {suffix[1:]}" if suffix else ""
            rows.append(missing_row(result.label, info, TWIN, way))
        for k in descriptions:
            rows += _paired_rows(comparison, place, k, DESCRIPTION, described, labels[k])
        # Above one of several descriptions is not above them all.
        scored = {results[k].result.model.id for k in descriptions}
        unscored = [name for name in descriptions_of(info) if name not in scored]
        if unscored or not descriptions:
            named = listed(unscored) if unscored else description_names(info)
            rows.append(missing_row(result.label, info, DESCRIPTION, f"to compare, score {named}", named))
        trivial = [
            row
            for k in levels
            for row in _paired_rows(
                comparison, place, k, TRIVIAL, info.trivial, labels[k], f" ({info.trivial}: {labels[k]})"
            )
        ]
        trivial += trivial_rows[place]
        if not trivial:
            way = "its value is known for no measure of these results"
            way = f"to compare, score {level_names()}" if info.trivial == ENERGY else way
            trivial.append(missing_row(result.label, info, TRIVIAL, way))
        rows += trivial
        # A missing further baseline is no reason to withhold a verdict.
        controls = [results[k] for k in twins] if prefix.endswith(":") else []
        for name, words in info.optional_baselines.items():
            wanted = name + result.result.model.id if name.endswith(":") else name
            for k, other in enumerate(results):
                if other.result.model.id == wanted and k != place:
                    rows += _paired_rows(comparison, place, k, name, words, words)
                    controls += [other] if name.endswith(":") else []
        refuses = bool(info.ability and controls) and all(mostly_unread(info, other) for other in controls)
        verdicts.append(replace(task_verdict(info, result, rows), refuses=refuses, comparison=comparison))
    return tuple(verdicts)


def missing_row(model: str, info: TaskInfo, baseline: str, way: str, named: str = "") -> VerdictRow:
    """The row of a missing result, with the way to get it; `named` are the missing ones of several baselines."""
    words = baseline_words(info)[baseline]
    return VerdictRow(
        model=model,
        task=info.name,
        baseline=baseline,
        words=words,
        reference=words,
        standing=Standing.UNKNOWN,
        outcome=f"not compared with {named or words} ({way})",
        is_missing=True,
        way=way,
    )


def _paired_rows(
    comparison: Comparison, place: int, other: int, baseline: str, words: str, reference: str, beside: str = ""
) -> list[VerdictRow]:
    """Return the rows of a model against another one: the measure of the verdict decides; if another headline measure
    is lower, *above* is not shown. `beside` follows the words of each outcome."""
    info = comparison.info
    first, view = info.judge, comparison.views.get(info.judge.name)
    if view is None:
        row = VerdictRow(
            model=comparison.labels[place],
            task=info.name,
            baseline=baseline,
            words=words,
            reference=reference,
            standing=Standing.UNKNOWN,
            measure=first.heading,
            outcome=f"without {first.heading} by sample in all results, no comparison with {reference}",
        )
        return [replace(row, outcome=row.outcome + beside)]
    is_same = bool(np.array_equal(view.values[:, place], view.values[:, other]))
    rows = [replace(paired_row(comparison, view, place, other, baseline, words, reference), is_same=is_same)]
    for measure in info.recommended:
        view = comparison.views.get(measure.name)
        if measure is first or view is None:
            continue
        row = replace(paired_row(comparison, view, place, other, baseline, words, reference), decides=False)
        # A measure with a trivial baseline is higher only where the model is also above its trivial baseline.
        least = least_of(measure, info, comparison.results[place].result.measures)
        if row.standing is Standing.ABOVE and measure.trivial is not None and least is not None:
            interval, _ = _above(view, place, least[1])
            if interval is None or interval[0] <= 0:
                reached = f"{least[0].heading} ({number_text(least[1], minus='−')})"
                outcome = f"{row.outcome}, but is not shown to be above its own {reached}"
                row = replace(row, standing=Standing.NOT_SHOWN, outcome=outcome)
        rows.append(row)
    lower = next((row for row in rows[1:] if row.standing is Standing.BELOW), None)
    if rows[0].standing is Standing.ABOVE and lower is not None:
        outcome = f"{rows[0].outcome}, but {lower.outcome}"
        rows = [replace(lower, standing=Standing.NOT_SHOWN, outcome=outcome, decides=True)]
    return [replace(row, outcome=row.outcome + beside) for row in rows]


def paired_row(
    comparison: Comparison, view: View, place: int, other: int, baseline: str, words: str, reference: str
) -> VerdictRow:
    """Return one result against another by a measure; "higher" and "lower" refer to the first."""
    test = view.tests.between(min(place, other), max(place, other))
    sign = 1 if test.first == place else -1
    interval = test.interval if sign == 1 or test.interval is None else (-test.interval[1], -test.interval[0])
    names = (comparison.labels[place], comparison.info.name, baseline, words, reference)
    return _standing_of_difference(
        names, view.measure, sign * test.difference, interval, test.p_adjusted, LEAST_DIFFERENCE
    )


def _standing_of_difference(
    names: tuple[str, str, str, str, str],
    measure: Measure,
    difference: float,
    interval: Interval | None,
    p: float | None,
    margin: float,
) -> VerdictRow:
    """Return the row of a difference, with its standing and outcome: `names` are the first five fields, `margin` is the
    smallest difference that counts."""
    heading = measure.heading
    if interval is None or p is None:
        standing, outcome = Standing.UNKNOWN, f"{TOO_FEW} to compare {heading} with {names[4]}"
    elif p <= SIGNIFICANT and difference >= margin and difference > 0:
        standing, outcome = Standing.ABOVE, f"{heading} is higher"
    elif p <= SIGNIFICANT and difference < 0:
        standing, outcome = Standing.BELOW, f"{heading} is lower"
    elif p <= SIGNIFICANT:
        standing, outcome = Standing.NOT_SHOWN, f"{heading} is higher, but by less than {margin:g}"
    elif interval[1] <= margin:
        standing, outcome = Standing.NOT_SHOWN, f"{heading} is not higher"
    else:
        standing, outcome = Standing.NOT_SHOWN, f"{heading} does not differ significantly"
    low, high = interval or (None, None)
    model, task, baseline, words, reference = names
    return VerdictRow(
        model=model,
        task=task,
        baseline=baseline,
        words=words,
        reference=shortened(reference, LONGEST_NAME),
        standing=standing,
        measure=heading,
        difference=difference,
        low=low,
        high=high,
        p=p,
        outcome=outcome,
    )


def _trivial_rows(comparison: Comparison, *, has_levels: bool) -> list[list[VerdictRow]]:
    """Return for each result its rows against the known values of the trivial baseline; p values are adjusted over all.

    Args:
        comparison: of the results.
        has_levels: whether there are baselines whose only input is the level; without any, they are assumed to be at
            chance.
    """
    info = comparison.info
    tested: list[tuple[int, Measure, float, Interval | None, float | None, float, float]] = []
    for name, value in info.trusted.items():
        view = comparison.views.get(name)
        if value is None or view is None:
            continue
        for place, result in enumerate(comparison.results):
            least: float | None = value if isinstance(value, float | int) else None
            if isinstance(value, str) and (chance := result.result.measures.get(value)) is not None:
                # The trivial baseline of retrieval: an encoder that knows only one of the numbers held fixed in slopes
                # against diversity, such as the number of sources.
                known = ASSUMED_SOURCES
                if info.is_level_matched:
                    known = 1
                elif comparison.samples is not None:
                    held = comparison.samples.held_fixed.values()
                    known = max((len(np.unique(numbers)) for numbers in held), default=1)
                least = float(chance) * known
            if least is None:
                continue
            null = least_of(view.measure, info, result.result.measures)
            least = max(least, null[1]) if view.measure.trivial is not None and null is not None else least
            margin = 0.0 if isinstance(value, str) else LEAST_DIFFERENCE
            interval, p = _above(view, place, least, result.kind is ModelKind.TRAINED)
            tested.append((place, view.measure, float(view.means[place]) - least, interval, p, margin, least))
    if info.trivial == CHANCE:
        reaches = "is {}"
    elif info.is_level_matched and info.trivial == ENERGY and not has_levels:
        reaches = f"is assumed to reach chance, {{}}: no result of {level_names()}"
    else:
        reaches = "reaches {} by chance" if info.is_level_matched else "reaches {}"
    p_values = [p for *_, p, _, _ in tested if p is not None]
    corrected = iter(stats.false_discovery_control(p_values).tolist() if p_values else [])
    rows: list[list[VerdictRow]] = [[] for _ in comparison.results]
    for place, measure, difference, interval, p, margin, least in tested:
        trivial = info.trivial if measure.trivial is None else f"the larger of {info.trivial} and its trivial baseline"
        names = (comparison.labels[place], info.name, TRIVIAL, info.trivial, f"the score of {trivial}")
        row = _standing_of_difference(
            names, measure, difference, interval, None if p is None else next(corrected), margin
        )
        outcome = f"{row.outcome} ({trivial} {reaches.format(number_text(least, minus='−'))})"
        rows[place].append(replace(row, outcome=outcome, decides=measure is info.judge or not info.judged_by))
    return rows


def _above(view: View, place: int, least: float, has_interval: bool = True) -> tuple[Interval | None, float | None]:
    """Return the interval of a mean minus a number, if it is wanted, and the p value of their difference."""
    values = view.values[:, place] - least
    if len(np.unique(view.clusters)) < MIN_SAMPLES:
        return None, None
    p = paired_t_test(values, view.clusters)[1]
    if not has_interval:
        return None, p
    low, high = view.measure.range
    (interval,) = mean_intervals(values[:, None], view.clusters, bounds=(low - least, high - least))
    return interval, p
