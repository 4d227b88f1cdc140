"""Verdicts: whether the scores of a model are above those of its twin, of plain descriptions and of floors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy import stats

from audio_compositionality.encoders.loading.twins import UNTRAINED
from audio_compositionality.support.text import listed, number_text, shortened
from audio_compositionality.tasks.base import ENERGY, Measure, TaskInfo, least_of

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


class VerdictAnswer(Enum):
    """The answer to a question; the value is for people."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True)
class VerdictCheck:
    """A measure of a model against a reference.

    Attributes:
        answer: whether it is higher.
        measure: the measure.
        reference: the other side, in words.
        difference: of the means, the model's less the reference's; None where there is none.
        interval: 95 %, of the difference; None where there are too few samples.
        p: of the paired test, corrected.
        words: the outcome without figures.
        decides: whether the answer to its question depends on it; other trusted measures are shown beside it.
    """

    answer: VerdictAnswer
    measure: str
    reference: str
    difference: float | None
    interval: Interval | None
    p: float | None
    words: str
    decides: bool = True

    @property
    def is_lower(self) -> bool:
        """Whether the model is surely below the reference."""
        is_less = self.difference is not None and self.difference < 0
        return self.answer is VerdictAnswer.NO and is_less and self.p is not None and self.p <= SIGNIFICANT

    @property
    def sentence(self) -> str:
        """The words and the figure."""
        return f"{self.words[:1].upper()}{self.words[1:]}{f': {self.figure}' if self.difference is not None else ''}."

    @property
    def figure(self) -> str:
        """The difference with its interval and p; empty where there is none."""
        first = " ".join(filter(None, (self.difference_text, self.interval_text)))
        return ", ".join(filter(None, (first, self.p_text)))

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
    def p_text(self) -> str:
        """Empty where there is none."""
        if self.p is None:
            return ""
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"


@dataclass(frozen=True)
class VerdictQuestion:
    """Whether a model is above a reference.

    Attributes:
        name: ``twin``, ``description`` or ``floor``.
        words: the reference: "its untrained twin".
        answer: over all checks.
        sentence: why.
        checks: the comparisons behind it; empty where there is nothing to compare with.
    """

    name: str
    words: str
    answer: VerdictAnswer
    sentence: str
    checks: tuple[VerdictCheck, ...]

    @property
    def is_below(self) -> bool:
        """Whether the model is surely below the reference, and below each where there are several."""
        deciding = [check for check in self.checks if check.decides]
        return self.answer is VerdictAnswer.NO and all(check.is_lower for check in deciding)


@dataclass(frozen=True)
class Verdict:
    """The verdict of one task on one model that is neither a baseline nor untrained.

    Attributes:
        label: of the model.
        place: of its result in the comparison.
        questions: three, in the order of `QUESTIONS`.
        flags: meanings of the flags that count against the model.
    """

    label: str
    place: int
    questions: tuple[VerdictQuestion, ...]
    flags: tuple[str, ...]

    @property
    def is_evidence(self) -> bool:
        """Whether nothing that needs no learning explains the score."""
        return not self.flags and all(question.answer is VerdictAnswer.YES for question in self.questions)


QUESTIONS = ("twin", "description", "floor")
"""Names of the questions: is the model above this reference?"""


def question_words(info: TaskInfo) -> dict[str, str]:
    """The references of a task, in words, by the names of `QUESTIONS`."""
    return dict(zip(QUESTIONS, (info.twin[1], description_names(info), info.floor), strict=True))


def verdicts(comparison: Comparison) -> tuple[Verdict, ...]:
    """A verdict on each model that is neither a baseline nor untrained, in the order of the results.

    A model is above another where the measure that the task judges by is significantly higher in the paired tests of
    all results, by `LEAST_DIFFERENCE` or more, and no other trusted measure is significantly lower. It is above the
    floor, such as energy alone, where each trusted measure with a known value of the floor is significantly above that
    value, corrected over all models (where the task names a measure to judge by, that one decides, and the others are
    reported beside it). It is above energy only if it is also above every baseline among the results whose only input
    is the level, as above any other model. Where there is neither such a value nor such a baseline, the answer is
    unknown."""
    levels = levels_in(comparison.results) if comparison.info.floor == ENERGY else []
    floor = _floor_checks(comparison, levels)
    return tuple(
        Verdict(
            label=result.label,
            place=place,
            questions=(
                _twin_question(comparison, place),
                _description_question(comparison, place),
                _floor_question(comparison, [*_level_checks(comparison, place, levels), *floor[place]]),
            ),
            flags=tuple(
                measure.meaning.removeprefix("whether ")
                for measure in comparison.info.measures
                if result.result.measures.get(measure.name) is True
            ),
        )
        for place, result in enumerate(comparison.results)
        if result.kind is ModelKind.TRAINED
    )


def twins_of(comparison: Comparison, place: int) -> list[int]:
    """Places of the twins of a model, see `TaskInfo.twin`: the same architecture with fresh weights, or the same model
    without the input that the task is about."""
    twin = comparison.info.twin[0] + comparison.results[place].result.model.id
    return [
        k
        for k, result in enumerate(comparison.results)
        if result.kind in (ModelKind.UNTRAINED, ModelKind.CONTROL) and result.result.model.id == twin
    ]


def combined(answers: Sequence[VerdictAnswer]) -> VerdictAnswer:
    """Yes where all answers are yes, no where one is no."""
    if VerdictAnswer.NO in answers:
        return VerdictAnswer.NO
    return VerdictAnswer.YES if answers and set(answers) == {VerdictAnswer.YES} else VerdictAnswer.UNKNOWN


def _twin_question(comparison: Comparison, place: int) -> VerdictQuestion:
    twins, words = twins_of(comparison, place), question_words(comparison.info)["twin"]
    if not twins:
        missing = f"The results of {words} are missing: it may score as high."
        untrained = "No untrained twin is among the results: an untrained network may score as high."
        sentence = untrained if comparison.info.twin[0] == UNTRAINED else missing
        return VerdictQuestion("twin", words, VerdictAnswer.UNKNOWN, sentence, ())
    return _of_checks(
        "twin",
        words,
        [
            # With several draws of fresh weights, the label says which one.
            check if len(twins) == 1 else replace(check, words=f"{check.words} ({comparison.labels[twin]})")
            for twin in twins
            for check in _against(comparison, place, twin, words)
        ],
    )


def _description_question(comparison: Comparison, place: int) -> VerdictQuestion:
    references = descriptions_in(comparison.results, comparison.info)
    if not references:
        words = question_words(comparison.info)["description"]
        sentence = f"The results of {words} are missing: it may score as high."
        return VerdictQuestion("description", words, VerdictAnswer.UNKNOWN, sentence, ())
    words = listed([comparison.labels[k] for k in references])
    checks = [check for k in references for check in _against(comparison, place, k, comparison.labels[k])]
    return _of_checks("description", words, checks)


def _floor_question(comparison: Comparison, checks: Sequence[VerdictCheck]) -> VerdictQuestion:
    words = comparison.info.floor
    if not checks:
        sentence = f"The score of {words} is unknown by every measure of these results."
        if words == ENERGY:
            sentence = (
                f"The score of {words} is unknown: no result of {level_names()} is here; score one beside the model."
            )
        return VerdictQuestion("floor", words, VerdictAnswer.UNKNOWN, sentence, ())
    return _of_checks("floor", words, checks)


def _level_checks(comparison: Comparison, place: int, levels: Sequence[int]) -> list[VerdictCheck]:
    """Checks against the baselines whose only input is the level of a clip."""
    return [
        replace(check, words=f"{check.words} ({comparison.info.floor}: {comparison.labels[k]})")
        for k in levels
        for check in _against(comparison, place, k, comparison.labels[k])
    ]


def _of_checks(name: str, words: str, checks: Sequence[VerdictCheck]) -> VerdictQuestion:
    answer = combined([check.answer for check in checks if check.decides])
    telling = [check for check in checks if check.decides and check.answer is answer]
    return VerdictQuestion(name, words, answer, " ".join(check.sentence for check in telling), tuple(checks))


def _against(comparison: Comparison, place: int, other: int, words: str) -> list[VerdictCheck]:
    """A model against another one: by the measure that the task judges by, which decides, and by the other trusted
    measures, which can turn a yes into a no."""
    info = comparison.info
    first = info.judge
    more = [measure for measure in info.recommended if measure is not first]
    view = comparison.views.get(first.name)
    if view is None:
        said = f"not all results have {first.heading} by sample, so nothing can be tested"
        return [VerdictCheck(VerdictAnswer.UNKNOWN, first.heading, words, None, None, None, said)]
    check = paired_check(view, place, other, words)
    views = [comparison.views[measure.name] for measure in more if measure.name in comparison.views]
    beside = [_unless_a_floor_explains(comparison, another, place, other, words) for another in views]
    lower = next((one for one in beside if one.is_lower), None)
    if check.answer is VerdictAnswer.YES and lower is not None:
        return [replace(lower, words=f"{check.words}, but {lower.words}")]
    return [check, *(replace(one, decides=False) for one in beside)]


def _unless_a_floor_explains(comparison: Comparison, view: View, place: int, other: int, words: str) -> VerdictCheck:
    """`paired_check`, but a measure with a floor is higher only where the model is also above its floor."""
    check, measure = paired_check(view, place, other, words), view.measure
    least = least_of(measure, comparison.info, comparison.results[place].result.measures)
    if check.answer is not VerdictAnswer.YES or measure.floor is None or least is None:
        return check
    interval, _ = _above(view, place, least[1])
    if interval is not None and interval[0] > 0:
        return check
    reached = f"{least[0].heading} ({number_text(least[1], minus='−')})"
    return replace(
        check, answer=VerdictAnswer.NO, words=f"{check.words}, but is not shown to be above its own {reached}"
    )


def paired_check(view: View, place: int, other: int, words: str) -> VerdictCheck:
    """One result against another by a measure; "higher" and "lower" are said of the first."""
    (test,) = (t for t in view.tests if {t.first, t.second} == {place, other})
    sign = 1 if test.first == place else -1
    interval = test.interval if sign == 1 or test.interval is None else (-test.interval[1], -test.interval[0])
    return _check(view.measure, words, sign * test.difference, interval, test.p_adjusted, LEAST_DIFFERENCE)


def _floor_checks(comparison: Comparison, levels: Sequence[int]) -> list[list[VerdictCheck]]:
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
                interval, p = _above(view, place, least)
                drawn.append((place, view.measure, float(view.means[place]) - least, interval, p, margin, least))
    assumed = f"is assumed to reach chance, {{}}: no result of {level_names()}"
    of_levels = comparison.info.is_level_matched and comparison.info.floor == ENERGY and not levels
    by_chance = "reaches {} by chance" if comparison.info.is_level_matched else "reaches {}"
    reaches = assumed if of_levels else by_chance
    p_values = [p for *_, p, _, _ in drawn if p is not None]
    corrected = iter(stats.false_discovery_control(p_values).tolist() if p_values else [])
    checks: list[list[VerdictCheck]] = [[] for _ in comparison.results]
    for place, measure, difference, interval, p, margin, least in drawn:
        adjusted = None if p is None else next(corrected)
        floor, reached = comparison.info.floor, reaches.format(number_text(least, minus="−"))
        floor = floor if measure.floor is None else f"the larger of {floor} and its floor"
        check = _check(measure, f"the score of {floor}", difference, interval, adjusted, margin)
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


def _above(view: View, place: int, least: float) -> tuple[Interval | None, float | None]:
    """The interval of a mean less a number, and the p value of their difference."""
    values = view.values[:, place] - least
    if len(np.unique(view.clusters)) < MIN_SAMPLES:
        return None, None
    low, high = view.measure.range
    (interval,) = mean_intervals(values[:, None], view.clusters, bounds=(low - least, high - least))
    return interval, paired_t_test(values, view.clusters)[1]


def _check(
    measure: Measure, words: str, difference: float, interval: Interval | None, p: float | None, margin: float
) -> VerdictCheck:
    """The check of a difference. `margin`: the smallest difference that counts."""
    heading = measure.heading
    if interval is None or p is None:
        answer, said = VerdictAnswer.UNKNOWN, f"{heading} has too few samples to tell"
    elif p <= SIGNIFICANT and difference >= margin and difference > 0:
        answer, said = VerdictAnswer.YES, f"{heading} is higher"
    elif p <= SIGNIFICANT and difference < 0:
        answer, said = VerdictAnswer.NO, f"{heading} is lower"
    elif p <= SIGNIFICANT:
        answer = VerdictAnswer.NO if interval[1] <= margin else VerdictAnswer.UNKNOWN
        said = f"{heading} is higher, but by less than the {margin:g} that counts"
    elif interval[1] <= margin:
        answer, said = VerdictAnswer.NO, f"{heading} is no higher"
    else:
        answer, said = VerdictAnswer.UNKNOWN, f"{heading} cannot be told apart"
    return VerdictCheck(answer, heading, shortened(words, LONGEST_NAME), difference, interval, p, said)
