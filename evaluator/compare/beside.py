"""The verdict on one model by the results that count beside it, and the order of several, as a leaderboard gives them.

The verdict is that of `task_verdicts` on these results alone: whoever compares them, in the terminal or in a report,
is told the same. P values are corrected over their pairs, not over all models of a leaderboard: anybody can add
entries, and nobody's may change the verdict on the model of another. A result without samples, or of other samples, is
compared by what it states, see `stated`, and each such check says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from audio_compositionality.evaluator.results.result import CLUSTER, Result, ResultError, SampleTable
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.base import TaskInfo

from .comparison import Comparison, OpenedData, compare_loaded
from .conclusions import leading_sentences
from .loading import ComparedResult, levels_in
from .stated import stated_verdict
from .statistics import UNBOUNDED
from .verdicts import DESCRIPTION, Bar, BarVerdict, bar_of, task_verdicts

MOST_TESTED = 10_000
"""Most samples of a paired test: those of MMAU, the largest set of questions; the bootstrap takes a second a measure
then."""


def trimmed_samples(info: TaskInfo, samples: SampleTable) -> SampleTable:
    """The columns that a verdict depends on, of a stranger's table.

    Raises:
        ResultError: they cannot be tested: too many samples, or numbers too large to be squared.
    """
    if len(samples.ids) > MOST_TESTED:
        raise ResultError(f"it has {len(samples.ids):,} samples; at most {MOST_TESTED:,} are tested")
    columns = {name: samples.columns[name] for name in (*_scores(info, samples), CLUSTER) if name in samples.columns}
    if any(abs(column).max() > UNBOUNDED for column in columns.values()):
        raise ResultError(f"it has scores beyond {UNBOUNDED:g}")
    return SampleTable(samples.ids, columns)


def verdict_beside(info: TaskInfo, result: Result, beside: Sequence[Result], data: OpenedData) -> BarVerdict:
    """A verdict on a model by the results that count beside it.

    Args:
        info: of the task, in the version of the results.
        result: of a model that is neither a baseline nor untrained; with its samples, where they are at hand.
        beside: the results that count beside it, of the same version of the task and data: of its twins, controls and
            baselines, with their samples, where they are at hand.
        data: theirs, opened where they can be.
    """
    alike = [one for one in beside if _is_paired(info, result, one)]
    rest = [one for one in beside if not _is_paired(info, result, one)]
    comparison = _comparison([(one.model.id, one) for one in (result, *alike)], data)
    # The words about a level name it among the results: either all levels are tested by samples, or none.
    if comparison is None or levels_in([_compared(one.model.id, one) for one in rest]):
        return stated_verdict(info, result, beside)
    (paired,) = (one for one in task_verdicts(comparison) if comparison.results[one.place].result is result)
    bars = {bar.name: bar for bar in paired.bars}
    if rest:
        for bar in stated_verdict(info, result, rest, with_floor=False).bars:
            bars[bar.name] = _joined(bars.get(bar.name), bar)
    # Without the comparison, which holds all scores.
    return BarVerdict(bars=tuple(bars.values()), flags=paired.flags, unread=paired.unread, ability=paired.ability)


def order_beside(
    info: TaskInfo, results: Mapping[str, Result], evident: Collection[str], data: OpenedData
) -> tuple[str, ...]:
    """The order of models, as far as a paired test tells them apart; see `leading_sentences`.

    Args:
        info: of the task, in the version of the results.
        results: of models that are neither baselines nor untrained, by the labels to name them by; those of other
            samples than the one with the highest score, or without samples, are left out.
        evident: labels of the models that are above every bar: no others are put in order.
        data: of the results.
    """
    named = {label: one for label, one in results.items() if label in evident}
    every = sorted((named if len(named) > 1 else results).items(), key=lambda item: -_rank(info, item[1]))
    sampled = [(label, one) for label, one in every if one.samples is not None]
    alike = [(label, one) for label, one in sampled if _is_paired(info, sampled[0][1], one)]
    comparison = _comparison(alike, data) if len(alike) > 1 else None
    return () if comparison is None else tuple(leading_sentences(comparison, evident))


def _rank(info: TaskInfo, result: Result) -> float:
    return float(result.measures.get(info.ranks_by) or 0.0)


def _is_paired(info: TaskInfo, one: Result, other: Result) -> bool:
    """Whether two results have scores of the same samples by the measures that a verdict depends on."""
    if one.samples is None or other.samples is None:
        return False
    has_same_scores = _scores(info, one.samples) == _scores(info, other.samples)
    return has_same_scores and set(one.samples.ids) == set(other.samples.ids)


def _scores(info: TaskInfo, samples: SampleTable) -> list[str]:
    """The columns behind the measures that a verdict depends on, as far as a table has them."""
    names = {measure.column for measure in (info.judge, *info.recommended)}
    return sorted(name for name in samples.columns if name in names)


def _comparison(results: Sequence[tuple[str, Result]], data: OpenedData) -> Comparison | None:
    """The comparison of results, with their labels; None where one has no samples, or not those of the data."""
    try:
        return compare_loaded([_compared(label, one) for label, one in results], data)
    except ResultError:
        return None


def _compared(label: str, result: Result) -> ComparedResult:
    return ComparedResult(label, result, Path(), result.samples or SampleTable((), {}))


def _joined(paired: Bar | None, stated: Bar) -> Bar:
    """The bar of the checks of two bars, those by samples first."""
    if paired is None or not stated.checks:
        return paired or stated
    checks = [*paired.checks, *stated.checks]
    names = listed(list(dict.fromkeys(check.reference for check in checks)))
    return bar_of(paired.name, names if paired.name == DESCRIPTION else paired.words, checks)
