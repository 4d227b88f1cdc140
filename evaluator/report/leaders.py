"""Who has the highest mean, and what that is worth."""

from __future__ import annotations

from dataclasses import dataclass

from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.kinds import ModelKind
from audio_compositionality.evaluator.compare.tables import view_title
from audio_compositionality.support.text import listed, number_text, shortened

from .facts import LONGEST_TEXT


@dataclass(frozen=True)
class Leader:
    """The model with the highest mean of a measure: of those that are trained, where there are such.

    Attributes:
        measure: which one, in words.
        label: of the model.
        score: its mean, and the interval of that where there is one.
        is_trained: whether it is neither a baseline nor untrained.
        rivals: how many more there are of which that can be said.
        alike: in words, those of them that it is not distinguishable from; empty where there are none.
        tested: whether there are enough samples for tests.
        above: in words, the baselines and untrained networks whose mean is significantly higher.
        flags: in words, what speaks against its score.
    """

    measure: str
    label: str
    score: str
    is_trained: bool
    rivals: int
    alike: str
    tested: bool
    above: str
    flags: str


def leaders(comparison: Comparison) -> tuple[Leader, ...]:
    """One for each measure by sample; that which the task ranks by is the first."""
    return tuple(_leader(comparison, view) for view in comparison.views.values())


def _leader(comparison: Comparison, view: View) -> Leader:
    trained = [k for k, result in enumerate(comparison.results) if result.kind is ModelKind.TRAINED]
    rivals = trained or list(range(len(comparison.results)))
    first = max(rivals, key=lambda k: float(view.means[k]))
    tests = {t.second if t.first == first else t.first: t for t in view.tests if first in (t.first, t.second)}
    above = [
        k for k, test in tests.items() if k not in rivals and view.means[k] > view.means[first] and test.significant
    ]
    measures = comparison.results[first].result.measures
    flags = [measure.meaning for measure in comparison.info.measures if measures.get(measure.name) is True]
    interval, digits = view.intervals[first], view.measure.digits
    score = number_text(float(view.means[first]), digits, minus="−")
    if interval is not None:
        low, high = (number_text(bound, digits, minus="−") for bound in interval)
        score += f" (95 % interval {low} to {high})"
    return Leader(
        measure=view_title(comparison, view.measure.name),
        label=shortened(view.labels[first], LONGEST_TEXT),
        score=score,
        is_trained=bool(trained),
        rivals=len(rivals) - 1,
        alike=_names(view, [k for k in rivals if k in tests and not tests[k].significant]),
        tested=all(test.p is not None for test in tests.values()),
        above=_names(view, above),
        flags=listed(flags),
    )


def _names(view: View, places: list[int]) -> str:
    return listed([shortened(view.labels[place], LONGEST_TEXT) for place in places])
