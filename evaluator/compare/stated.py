"""Verdicts from stated scores: means with their 95 % intervals, where the scores of single samples are not at hand.

A leaderboard may list a result whose samples it could not read, or that has others; see `beside`. The bars, their words
and the rules of a standing are those of `verdicts`, with another test: two models are compared by an unpaired z-test
from their intervals (Altman and Bland 2003, "Interaction revisited: the difference between two estimates", BMJ
326:219). The standard error of a mean is the width of its interval divided by 2 * 1.96, that of a difference the root
of the sum of the two squares. A sample that is hard for one model is mostly hard for the other, so that the standard
error of the paired test is mostly smaller. It is not always: where scores are opposed, or clusters few, this test
shows what the paired one does not. As there, a difference of less than `LEAST_DIFFERENCE` does not count, and p values
are corrected (Benjamini and Hochberg), over all checks of one model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scipy import special, stats

from audio_compositionality.evaluator.results.result import Result, SampleTable
from audio_compositionality.support.text import listed, number_text
from audio_compositionality.tasks.base import ENERGY, Measure, TaskInfo, least_of

from .loading import ComparedResult, description_names, descriptions_in, level_names, levels_in
from .statistics import SCORE_ROUNDING, Interval
from .verdicts import (
    DESCRIPTION,
    FLOOR,
    LEAST_DIFFERENCE,
    LONGEST_NAME,
    TOLD_APART,
    TWIN,
    Bar,
    BarCheck,
    BarVerdict,
    Standing,
    bar_check,
    bar_of,
    joined_checks,
    missing_bar,
    raised_flags,
    unread_answers,
)

WITHIN = float(special.ndtri(0.975))
"""Standard errors from a mean to an end of its 95 % interval: 1.96."""

Score = tuple[float, Interval | None]
"""A mean with its 95 % interval; None where there are too few samples."""


def unpaired_test(first: Score, second: Score) -> tuple[float, Interval | None, float | None]:
    """The difference of two means by their intervals alone; see this module.

    Args:
        first, second: means with their 95 % intervals.

    Returns:
        first less second, its 95 % interval, and the p value of a two-sided z-test; None for both where an interval is
        missing or no finite number comes out.
    """
    difference = first[0] - second[0]
    if first[1] is None or second[1] is None:
        return difference, None, None
    half = math.hypot(*(high / 2 - low / 2 for low, high in (first[1], second[1])))
    if not (math.isfinite(difference) and math.isfinite(half)):
        return difference, None, None
    if max(half, abs(difference)) <= SCORE_ROUNDING:
        # The same two scores, but for rounding.
        return difference, (difference - half, difference + half), 1.0
    z = difference * WITHIN / half if half else math.copysign(math.inf, difference)
    return difference, (difference - half, difference + half), 2 * float(special.ndtr(-abs(z)))


def stated_check(measure: Measure, first: Score, second: Score, words: str) -> BarCheck:
    """The standing of one stated score against another: `unpaired_test` by the rules of `verdicts`, uncorrected.

    Args:
        measure: of both scores.
        first: the model's mean with its 95 % interval.
        second: the other side's.
        words: the other side, in words.
    """
    return bar_check(measure, words, *unpaired_test(first, second), LEAST_DIFFERENCE)


@dataclass(frozen=True)
class _Draft:
    """A comparison before p values are corrected.

    Attributes:
        bar: name of the bar.
        other: number of the other side among those of the bar; the checks of one belong together.
        check: uncorrected.
        measure: of the check.
        margin: the smallest difference that counts.
        beside: words behind those of the check.
    """

    bar: str
    other: int
    check: BarCheck
    measure: Measure
    margin: float = LEAST_DIFFERENCE
    beside: str = ""

    def corrected(self, p: float | None) -> BarCheck:
        """The check with a corrected p value."""
        check = self.check
        if check.difference is None or check.p is None:
            return replace(check, words=check.words + self.beside, is_stated=True)
        new = bar_check(self.measure, check.reference, check.difference, check.interval, p, self.margin)
        words = new.words + self.beside
        return replace(new, words=words, decides=check.decides, is_same=check.is_same, is_stated=True)


def stated_verdict(info: TaskInfo, result: Result, beside: Sequence[Result], *, with_floor: bool = True) -> BarVerdict:
    """A verdict on a model by the stated scores of the results that count beside it.

    The rules are those of `task_verdicts`, but for the test and the correction of its p values; see this module. The
    chance of finding a sample among all is taken as where the data cannot be opened.

    Args:
        info: of the task, in the version of the results.
        result: of a model that is neither a baseline nor untrained.
        beside: the results that count beside it, of the same version of the task and data: of its twins and controls,
            of baselines. Others may be among them.
        with_floor: also against the known values of the floor.
    """
    compared = [_without_samples(one) for one in beside]
    drafts = [*_drafts(info, result, compared), *(_floor_drafts(info, result, compared) if with_floor else ())]
    checks: dict[str, dict[int, list[BarCheck]]] = {}
    for draft, check in zip(drafts, _corrected(drafts), strict=True):
        checks.setdefault(draft.bar, {}).setdefault(draft.other, []).append(check)
    return BarVerdict(
        bars=tuple(_bars(info, result, checks)),
        flags=raised_flags(info, result.measures),
        unread=unread_answers(info, result.measures),
        ability=info.ability,
    )


def _corrected(drafts: Sequence[_Draft]) -> Iterator[BarCheck]:
    """The checks of one model with p values corrected over all of them."""
    p_values = [draft.check.p for draft in drafts if draft.check.p is not None]
    adjusted = iter(stats.false_discovery_control(p_values).tolist() if p_values else [])
    for draft in drafts:
        yield draft.corrected(None if draft.check.p is None else next(adjusted))


def _drafts(info: TaskInfo, result: Result, beside: Sequence[ComparedResult]) -> Iterator[_Draft]:
    """All comparisons of a model with other results."""
    id = result.model.id
    by_id: dict[str, list[ComparedResult]] = {}
    for other in beside:
        by_id.setdefault(other.result.model.id, []).append(other)
    prefix, words = info.twin
    # By its name alone: its card is the submitter's word, and may not say that it is untrained.
    for number, twin in enumerate(by_id.get(prefix + id, ())):
        yield from _against(info, TWIN, number, result, twin.result, words)
    for number, at in enumerate(descriptions_in(beside, info)):
        name = beside[at].result.model.id
        yield from _against(info, DESCRIPTION, number, result, beside[at].result, name)
    levels = levels_in(beside) if info.floor == ENERGY else []
    for number, at in enumerate(levels):
        name = beside[at].result.model.id
        for draft in _against(info, FLOOR, number, result, beside[at].result, name):
            yield replace(draft, beside=f" ({info.floor}: {name})")
    for name, words in info.bars.items():
        results = by_id.get(f"{name}{id}" if name.endswith(":") else name, ())
        for number, other in enumerate(results):
            if other.result is not result:
                yield from _against(info, name, number, result, other.result, words)


def _without_samples(result: Result) -> ComparedResult:
    return ComparedResult(result.model.id, result, Path(), SampleTable((), {}))


def _score(result: Result, measure: Measure) -> Score | None:
    value = result.measures.get(measure.name)
    return None if value is None else (float(value), result.intervals.get(measure.name))


def _against(info: TaskInfo, bar: str, number: int, result: Result, other: Result, words: str) -> Iterator[_Draft]:
    """A model against another result: by the measure that the task judges by, which decides, and by the other trusted
    ones."""
    for measure in (info.judge, *(measure for measure in info.recommended if measure is not info.judge)):
        decides = measure is info.judge
        ours, theirs = _score(result, measure), _score(other, measure)
        if ours is not None and theirs is not None:
            check = stated_check(measure, ours, theirs, words)
            is_same = decides and result.samples_sha256 == other.samples_sha256
            yield _Draft(bar, number, replace(check, decides=decides, is_same=is_same), measure)
        elif decides:
            said = f"not both results state {measure.heading}, so nothing can be tested"
            check = BarCheck(Standing.UNKNOWN, measure.heading, words, None, None, None, said)
            yield _Draft(bar, number, check, measure)


def _floor_drafts(info: TaskInfo, result: Result, beside: Sequence[ComparedResult]) -> Iterator[_Draft]:
    """A model against the known values of the floor.

    Args:
        info: of the task.
        result: the model's.
        beside: without a baseline whose only input is the level among them, one is assumed to be at chance.
    """
    levels = len(levels_in(beside)) if info.floor == ENERGY else 0
    assumed = info.is_level_matched and info.floor == ENERGY and not levels
    for number, (name, level) in enumerate(info.trusted.items(), levels):
        measure, least = info.measure(name), _least(info, info.measure(name), level, result)
        score = _score(result, measure)
        if least is None or score is None:
            continue
        value, floor = number_text(least, minus="−"), info.floor
        floor = floor if measure.floor is None else f"the larger of {floor} and its floor"
        reached = f"reaches {value}{' by chance' if info.is_level_matched else ''}"
        if assumed:
            reached = f"is assumed to reach chance, {value}: no result of {level_names()}"
        margin = 0.0 if isinstance(level, str) else LEAST_DIFFERENCE
        decides = measure is info.judge or not info.judged_by
        # A constant is a mean without error.
        test = unpaired_test(score, (least, (least, least)))
        check = replace(bar_check(measure, f"the score of {floor}", *test, margin), decides=decides)
        yield _Draft(FLOOR, number, check, measure, margin, f" ({floor} {reached})")


def _least(info: TaskInfo, measure: Measure, level: float | str | None, result: Result) -> float | None:
    """The value of the floor for a model; None where none is known."""
    if level is None:
        return None
    if isinstance(level, str):
        chance = result.measures.get(level)
        if chance is None:
            return None
        least = float(chance) * (1 if info.is_level_matched else TOLD_APART)
    else:
        least = float(level)
    null = least_of(measure, info, result.measures)
    return least if null is None or measure.floor is None else max(least, null[1])


def _bars(info: TaskInfo, result: Result, checks: Mapping[str, Mapping[int, Sequence[BarCheck]]]) -> Iterator[Bar]:
    """The bars of one model: those that every task has, then the further ones with results."""
    said = {bar: [check for of in by_other.values() for check in joined_checks(of)] for bar, by_other in checks.items()}
    prefix, words = info.twin
    way = f"submit `{prefix}{result.model.id}` too"
    if len(way) > 2 * LONGEST_NAME:
        way = f"submit the model of this name with `{prefix}` before it too"
    yield bar_of(TWIN, words, said[TWIN]) if TWIN in said else missing_bar(TWIN, words, way)
    words = description_names(info)
    if DESCRIPTION in said:
        names = list(dict.fromkeys(check.reference for check in said[DESCRIPTION]))
        yield bar_of(DESCRIPTION, listed(names), said[DESCRIPTION])
    else:
        yield missing_bar(DESCRIPTION, words, f"score {words} beside it")
    words = info.floor
    if FLOOR in said:
        yield bar_of(FLOOR, words, said[FLOOR])
    else:
        energy = words == ENERGY
        none = "no measure of this result has a known value of it"
        yield missing_bar(FLOOR, words, f"score {level_names()} beside it" if energy else none)
    for name, words in info.bars.items():
        if name in said:
            yield bar_of(name, words, said[name])
