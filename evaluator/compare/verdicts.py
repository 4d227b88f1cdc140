"""Verdicts: where the score of a model stands against the bars of a task: its twin, plain descriptions, floors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy import stats

from audio_compositionality.encoders.loading.listing import named_models
from audio_compositionality.encoders.loading.twins import UNTRAINED
from audio_compositionality.support.text import listed, number_text, shortened
from audio_compositionality.tasks.base import ENERGY, Measure, Number, TaskInfo, least_of

from .comparison import Comparison, View
from .loading import ModelKind, description_names, descriptions_in, level_names, levels_in
from .statistics import MIN_SAMPLES, SIGNIFICANT, Interval, mean_intervals, paired_t_test

LEAST_DIFFERENCE = 0.05
"""Smallest difference of means that counts, however significant: the scores of ten untrained networks that differed
only in the seed of their weights had a standard deviation of 0.02."""

TOLD_APART = 10
"""Number of sources that an encoder is assumed to distinguish, where the data cannot be opened to count them."""

LONGEST_NAME = 60
"""Characters of a stranger's name in a sentence."""

FROM_STATED = "from stated intervals"
"""Said of a test of stated means and intervals, in place of the paired one."""


class Standing(Enum):
    """Where the score of a model stands against a bar; the value is for people.

    `ABOVE`: significantly higher, by a difference that counts. `BELOW`: significantly lower. `NOT_SHOWN`: compared, and
    neither. `UNKNOWN`: there is nothing to compare with, or there are too few samples.
    """

    ABOVE = "above"
    BELOW = "below"
    NOT_SHOWN = "not shown"
    UNKNOWN = "cannot tell"

    @property
    def answer(self) -> str:
        """The answer to "Is it shown to be above?": yes, no or cannot tell."""
        return {Standing.ABOVE: "yes", Standing.UNKNOWN: "cannot tell"}.get(self, "no")


@dataclass(frozen=True)
class BarCheck:
    """A measure of a model against a bar.

    Attributes:
        standing: of the measure.
        measure: its heading.
        reference: the other side, in words.
        difference: of the means, the model's less the reference's; None where there is none.
        interval: 95 %, of the difference; None where there are too few samples.
        p: of the paired test, corrected.
        words: the outcome without figures.
        decides: whether the standing against the bar depends on it; other trusted measures are shown beside it.
        is_same: whether both sides have the same score in every sample.
        is_stated: whether the test is of stated means and intervals, see `stated`, since samples are not at hand.
    """

    standing: Standing
    measure: str
    reference: str
    difference: float | None
    interval: Interval | None
    p: float | None
    words: str
    decides: bool = True
    is_same: bool = False
    is_stated: bool = False

    @property
    def sentence(self) -> str:
        """The words and the figure."""
        return f"{self.words[:1].upper()}{self.words[1:]}{f': {self.figure}' if self.difference is not None else ''}."

    @property
    def figure(self) -> str:
        """The difference with its interval and p, and whether they are from stated intervals; empty where there is
        none."""
        first = " ".join(filter(None, (self.difference_text, self.interval_text)))
        return ", ".join(filter(None, (first, self.p_text, FROM_STATED if self.is_stated and first else "")))

    @property
    def difference_text(self) -> str:
        """With its sign; empty where there is none."""
        if self.difference is None:
            return ""
        text = number_text(self.difference, minus="−")
        return text if self.difference < 0 else f"+{text}"

    @property
    def interval_text(self) -> str:
        """In brackets; empty where there is none."""
        if self.interval is None:
            return ""
        low, high = (number_text(end, minus="−") for end in self.interval)
        return f"[{low}, {high}]"

    @property
    def corrected_text(self) -> str:
        """The p in brackets where it says otherwise than the interval, which is of this comparison alone."""
        if self.interval is None or self.p is None or self.p <= SIGNIFICANT:
            return ""
        low, high = self.interval
        return "" if low <= 0 <= high else f"({self.p_text} among all comparisons)"

    @property
    def p_text(self) -> str:
        """Empty where there is none."""
        if self.p is None:
            return ""
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"


@dataclass(frozen=True)
class Bar:
    """A score that a model has to exceed before its own is evidence of learning.

    Attributes:
        name: ``twin``, ``description`` or ``floor``; of a further twin or control its prefix (``shuffled:``), of a
            further baseline its name.
        words: the bar, in words: "its untrained twin".
        standing: of the model, over all checks.
        checks: the comparisons behind it; empty where there is nothing to compare with.
        missing: the missing result and the way to get it, as a clause; empty where none is missing.
    """

    name: str
    words: str
    standing: Standing
    checks: tuple[BarCheck, ...]
    missing: str = ""

    @property
    def sentence(self) -> str:
        """The reason for the standing: the deciding comparisons, or the missing result."""
        if not self.checks:
            return f"{self.missing[:1].upper()}{self.missing[1:]}."
        telling = [check for check in self.checks if check.decides and check.standing is self.standing]
        return " ".join(check.sentence for check in telling or self.checks)

    @property
    def deciding(self) -> BarCheck | None:
        """The check whose figure stands for the bar; None where there is none."""
        deciding = [check for check in self.checks if check.decides]
        return min(deciding, key=lambda check: WORST_FIRST.index(check.standing), default=None)


@dataclass(frozen=True, kw_only=True)
class BarVerdict:
    """The verdict of one task on one model that is neither a baseline nor untrained: where it stands against the bars.

    Attributes:
        bars: the twin, plain descriptions and the floor; then the further ones of `TaskInfo.bars` that have results.
        flags: meanings of the flags that count against the model.
        unread: the number of answers that name no option, in words, where most do; else empty.
        ability: see `TaskInfo.ability`.
    """

    bars: tuple[Bar, ...]
    flags: tuple[str, ...]
    unread: str
    ability: str = ""

    @property
    def standing(self) -> Standing:
        """Against all bars, the worst of them; a flag shows nothing, and where most answers are unread nothing can be
        told."""
        if self.unread:
            return Standing.UNKNOWN
        return worst([*(bar.standing for bar in self.bars), *(Standing.NOT_SHOWN for _ in self.flags)])

    @property
    def is_evidence(self) -> bool:
        """Whether nothing that needs no learning explains the score."""
        return self.standing is Standing.ABOVE

    @property
    def is_stated(self) -> bool:
        """Whether a deciding comparison is from stated intervals."""
        return any(check.is_stated and check.decides for bar in self.bars for check in bar.checks)

    @property
    def is_same_as_twin(self) -> bool:
        """Whether the model and its twin have the same score in every sample."""
        return any(check.is_same for bar in self.bars if bar.name == TWIN for check in bar.checks)

    def bar(self, name: str) -> Bar | None:
        """A bar by its name; None where the task has none of that name."""
        return next((bar for bar in self.bars if bar.name == name), None)


@dataclass(frozen=True, kw_only=True)
class TaskVerdict(BarVerdict):
    """A `BarVerdict` from a comparison of results, sample by sample.

    Attributes:
        comparison: of the results of the task.
        label: of the model.
        place: of its result in the comparison.
    """

    comparison: Comparison
    label: str
    place: int


WORST_FIRST = (Standing.BELOW, Standing.NOT_SHOWN, Standing.UNKNOWN, Standing.ABOVE)


def worst(standings: Sequence[Standing]) -> Standing:
    """The worst of several standings, by `WORST_FIRST`; unknown of none."""
    return min(standings, key=WORST_FIRST.index, default=Standing.UNKNOWN)


TWIN, DESCRIPTION, FLOOR = "twin", "description", "floor"
"""Names of the bars that every task has."""

MOST_UNREAD = 0.5
"""Share of answers without a choice above which a score measures the format of answers, not perception."""


def bar_words(info: TaskInfo) -> dict[str, str]:
    """The bars that every task has, in words, by their names."""
    return {TWIN: info.twin[1], DESCRIPTION: description_names(info), FLOOR: info.floor}


def task_verdicts(comparison: Comparison) -> tuple[TaskVerdict, ...]:
    """A verdict on each model that is neither a baseline nor untrained, in the order of the results.

    A model is above another where the measure that the task judges by is significantly higher in the paired tests of
    all results, by `LEAST_DIFFERENCE` or more, and no other trusted measure is significantly lower. It is above the
    floor, such as energy alone, where each trusted measure with a known value of the floor is significantly above that
    value, corrected over all models (where the task names a measure to judge by, that one decides, and the others are
    reported beside it). It is above energy only if it is also above every baseline among the results whose only input
    is the level, as above any other model. Where there is neither such a value nor such a baseline, nothing can be
    told."""
    levels = levels_in(comparison.results) if comparison.info.floor == ENERGY else []
    floor = _floor_checks(comparison, levels)
    return tuple(
        TaskVerdict(
            comparison=comparison,
            label=result.label,
            place=place,
            bars=(
                _twin_bar(comparison, place),
                _description_bar(comparison, place),
                _floor_bar(comparison, [*_level_checks(comparison, place, levels), *floor[place]]),
                *_further_bars(comparison, place),
            ),
            flags=raised_flags(comparison.info, result.result.measures),
            unread=unread_answers(comparison.info, result.result.measures),
            ability=comparison.info.ability,
        )
        for place, result in enumerate(comparison.results)
        if result.kind is ModelKind.TRAINED
    )


def raised_flags(info: TaskInfo, measures: Mapping[str, Number]) -> tuple[str, ...]:
    """Meanings of the flags among the measures of a result that count against its model."""
    return tuple(m.meaning.removeprefix("whether ") for m in info.measures if measures.get(m.name) is True)


def unread_answers(info: TaskInfo, measures: Mapping[str, Number]) -> str:
    """The number of a model's answers that name no option, where most do; else empty."""
    # The first share counts all answers that name no option, refusals among them.
    for name, total in () if info.profile is None else info.profile.shares[:1]:
        part, every = measures.get(name), measures.get(total)
        if part and every and part > every * MOST_UNREAD:
            return f"{part:,.0f} of {every:,.0f}"
    return ""


def twins_of(comparison: Comparison, place: int) -> list[int]:
    """Places of the twins of a model, see `TaskInfo.twin`: the same architecture with fresh weights, or the same model
    without the input that the task is about."""
    twin = comparison.info.twin[0] + comparison.results[place].result.model.id
    return [
        k
        for k, result in enumerate(comparison.results)
        if result.kind in (ModelKind.UNTRAINED, ModelKind.CONTROL) and result.result.model.id == twin
    ]


def combined(standings: Sequence[Standing]) -> Standing:
    """One standing of several: above where all are, below where all are, unknown where one is and none is worse."""
    if standings and all(one is Standing.BELOW for one in standings):
        return Standing.BELOW
    if Standing.BELOW in standings or Standing.NOT_SHOWN in standings:
        return Standing.NOT_SHOWN
    return Standing.ABOVE if standings and Standing.UNKNOWN not in standings else Standing.UNKNOWN


def _twin_bar(comparison: Comparison, place: int) -> Bar:
    twins, words = twins_of(comparison, place), comparison.info.twin[1]
    if not twins:
        return missing_bar(TWIN, words, _way_to_twin(comparison, place))
    return bar_of(
        TWIN,
        words,
        [
            # With several draws of fresh weights, the label says which one.
            check if len(twins) == 1 else replace(check, words=f"{check.words} ({comparison.labels[twin]})")
            for twin in twins
            for check in _against(comparison, place, twin, words)
        ],
    )


def _way_to_twin(comparison: Comparison, place: int) -> str:
    """The way to the missing twin of a model: the name to score; of a class of the user's also its method.

    The id of such a class is its own, by default its name: neither listed, nor one of the Hub.
    """
    prefix, model = comparison.info.twin[0], comparison.results[place].result.model.id
    beside = f"score `{shortened(prefix + model, LONGEST_NAME)}` beside it"
    if prefix != UNTRAINED or model in named_models() or "/" in model:
        return beside
    return f"{beside}, as `run` does where a class of your own has the method `def untrained(self)`"


def _description_bar(comparison: Comparison, place: int) -> Bar:
    references = descriptions_in(comparison.results, comparison.info)
    if not references:
        words = description_names(comparison.info)
        return missing_bar(DESCRIPTION, words, f"score {words} beside it")
    words = listed([comparison.labels[k] for k in references])
    checks = [check for k in references for check in _against(comparison, place, k, comparison.labels[k])]
    return bar_of(DESCRIPTION, words, checks)


def _floor_bar(comparison: Comparison, checks: Sequence[BarCheck]) -> Bar:
    words = comparison.info.floor
    if checks:
        return bar_of(FLOOR, words, checks)
    way = (
        f"score {level_names()} beside it" if words == ENERGY else "no measure of these results has a known value of it"
    )
    return missing_bar(FLOOR, words, way)


def _further_bars(comparison: Comparison, place: int) -> list[Bar]:
    """The bars of `TaskInfo.bars` that have results; a missing one is no reason to withhold a verdict."""
    info, model = comparison.info, comparison.results[place].result.model.id
    ids = [result.result.model.id for result in comparison.results]
    bars = []
    for name, words in info.bars.items():
        wanted = f"{name}{model}" if name.endswith(":") else name
        places = [k for k, id in enumerate(ids) if id == wanted and k != place]
        if places:
            checks = [check for k in places for check in _against(comparison, place, k, words)]
            bars.append(bar_of(name, words, checks))
    return bars


def missing_bar(name: str, words: str, way: str) -> Bar:
    """The bar of a missing result, with the way to get it."""
    return Bar(name, words, Standing.UNKNOWN, (), f"no result of {words}: {way}")


def bar_of(name: str, words: str, checks: Sequence[BarCheck]) -> Bar:
    """The bar of some comparisons: of each reference the standing over the measures that decide, of all the worst."""
    by_reference: dict[str, list[Standing]] = {}
    for check in checks:
        if check.decides:
            by_reference.setdefault(check.reference, []).append(check.standing)
    return Bar(name, words, worst([combined(one) for one in by_reference.values()]), tuple(checks))


def _level_checks(comparison: Comparison, place: int, levels: Sequence[int]) -> list[BarCheck]:
    """Checks against the baselines whose only input is the level of a clip."""
    return [
        replace(check, words=f"{check.words} ({comparison.info.floor}: {comparison.labels[k]})")
        for k in levels
        for check in _against(comparison, place, k, comparison.labels[k])
    ]


def _against(comparison: Comparison, place: int, other: int, words: str) -> list[BarCheck]:
    """A model against another one: by the measure that the task judges by, which decides, and by the other trusted
    measures: where one is lower, being above is not shown."""
    info = comparison.info
    first = info.judge
    more = [measure for measure in info.recommended if measure is not first]
    view = comparison.views.get(first.name)
    if view is None:
        said = f"not all results have {first.heading} by sample, so nothing can be tested"
        return [BarCheck(Standing.UNKNOWN, first.heading, words, None, None, None, said)]
    check = paired_check(view, place, other, words)
    views = [comparison.views[measure.name] for measure in more if measure.name in comparison.views]
    beside = [_unless_a_floor_explains(comparison, another, place, other, words) for another in views]
    is_same = bool(np.array_equal(view.values[:, place], view.values[:, other]))
    return joined_checks([replace(check, is_same=is_same), *(replace(one, decides=False) for one in beside)])


def joined_checks(checks: Sequence[BarCheck]) -> list[BarCheck]:
    """The checks of one reference, the deciding measure first: where it is above and another trusted measure is lower,
    being above is not shown."""
    first, *beside = checks
    lower = next((one for one in beside if not one.decides and one.standing is Standing.BELOW), None)
    if first.decides and first.standing is Standing.ABOVE and lower is not None:
        words = f"{first.words}, but {lower.words}"
        return [replace(lower, standing=Standing.NOT_SHOWN, words=words, decides=True)]
    return list(checks)


def _unless_a_floor_explains(comparison: Comparison, view: View, place: int, other: int, words: str) -> BarCheck:
    """`paired_check`, but a measure with a floor is higher only where the model is also above its floor."""
    check, measure = paired_check(view, place, other, words), view.measure
    least = least_of(measure, comparison.info, comparison.results[place].result.measures)
    if check.standing is not Standing.ABOVE or measure.floor is None or least is None:
        return check
    interval, _ = _above(view, place, least[1])
    if interval is not None and interval[0] > 0:
        return check
    reached = f"{least[0].heading} ({number_text(least[1], minus='−')})"
    words = f"{check.words}, but is not shown to be above its own {reached}"
    return replace(check, standing=Standing.NOT_SHOWN, words=words)


def paired_check(view: View, place: int, other: int, words: str) -> BarCheck:
    """One result against another by a measure; "higher" and "lower" are said of the first."""
    (test,) = (t for t in view.tests if {t.first, t.second} == {place, other})
    sign = 1 if test.first == place else -1
    interval = test.interval if sign == 1 or test.interval is None else (-test.interval[1], -test.interval[0])
    return bar_check(view.measure, words, sign * test.difference, interval, test.p_adjusted, LEAST_DIFFERENCE)


def _floor_checks(comparison: Comparison, levels: Sequence[int]) -> list[list[BarCheck]]:
    """For each result its checks against the known values of the floor; all p are corrected together.

    Args:
        comparison: of the results.
        levels: places of the baselines whose only input is the level; without any, they are assumed to be at chance.
    """
    drawn: list[tuple[int, Measure, float, Interval | None, float | None, float, float]] = []
    for name, value in comparison.info.trusted.items():
        view = comparison.views.get(name)
        if value is None or view is None:
            continue
        for place in range(len(comparison.results)):
            least = value if isinstance(value, float | int) else _chance(comparison, place, value)
            if least is not None:
                null = least_of(view.measure, comparison.info, comparison.results[place].result.measures)
                least = max(least, null[1]) if view.measure.floor is not None and null is not None else least
                margin = 0.0 if isinstance(value, str) else LEAST_DIFFERENCE
                interval, p = _above(view, place, least, comparison.results[place].kind is ModelKind.TRAINED)
                drawn.append((place, view.measure, float(view.means[place]) - least, interval, p, margin, least))
    assumed = f"is assumed to reach chance, {{}}: no result of {level_names()}"
    of_levels = comparison.info.is_level_matched and comparison.info.floor == ENERGY and not levels
    by_chance = "reaches {} by chance" if comparison.info.is_level_matched else "reaches {}"
    reaches = assumed if of_levels else by_chance
    p_values = [p for *_, p, _, _ in drawn if p is not None]
    corrected = iter(stats.false_discovery_control(p_values).tolist() if p_values else [])
    checks: list[list[BarCheck]] = [[] for _ in comparison.results]
    for place, measure, difference, interval, p, margin, least in drawn:
        adjusted = None if p is None else next(corrected)
        floor, reached = comparison.info.floor, reaches.format(number_text(least, minus="−"))
        floor = floor if measure.floor is None else f"the larger of {floor} and its floor"
        check = bar_check(measure, f"the score of {floor}", difference, interval, adjusted, margin)
        decides = measure is comparison.info.judge or not comparison.info.judged_by
        checks[place].append(replace(check, words=f"{check.words} ({floor} {reached})", decides=decides))
    return checks


def _chance(comparison: Comparison, place: int, name: str) -> float | None:
    """The chance of finding a sample among all, for an encoder that knows nothing but one of the numbers held fixed in
    slopes against diversity, such as the number of sources."""
    stated = comparison.results[place].result.measures.get(name)
    if stated is None:
        return None
    if comparison.info.is_level_matched:
        return float(stated)
    if comparison.samples is None:
        return float(stated) * TOLD_APART
    held = comparison.samples.held_fixed.values()
    return float(stated) * max((len(np.unique(numbers)) for numbers in held), default=1)


def _above(view: View, place: int, least: float, has_interval: bool = True) -> tuple[Interval | None, float | None]:
    """The interval of a mean less a number, where it is wanted, and the p value of their difference."""
    values = view.values[:, place] - least
    if len(np.unique(view.clusters)) < MIN_SAMPLES:
        return None, None
    p = paired_t_test(values, view.clusters)[1]
    if not has_interval:
        return None, p
    low, high = view.measure.range
    (interval,) = mean_intervals(values[:, None], view.clusters, bounds=(low - least, high - least))
    return interval, p


def bar_check(
    measure: Measure, words: str, difference: float, interval: Interval | None, p: float | None, margin: float
) -> BarCheck:
    """The check of a difference. `margin`: the smallest difference that counts."""
    heading = measure.heading
    if interval is None or p is None:
        standing, said = Standing.UNKNOWN, f"{heading} has too few samples to tell"
    elif p <= SIGNIFICANT and difference >= margin and difference > 0:
        standing, said = Standing.ABOVE, f"{heading} is higher"
    elif p <= SIGNIFICANT and difference < 0:
        standing, said = Standing.BELOW, f"{heading} is lower"
    elif p <= SIGNIFICANT:
        standing, said = Standing.NOT_SHOWN, f"{heading} is higher, but by less than the {margin:g} that counts"
    elif interval[1] <= margin:
        standing, said = Standing.NOT_SHOWN, f"{heading} is no higher"
    else:
        standing, said = Standing.NOT_SHOWN, f"{heading} cannot be told apart"
    return BarCheck(standing, heading, shortened(words, LONGEST_NAME), difference, interval, p, said)
