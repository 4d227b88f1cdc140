"""The verdict on one model beside a few results: the report's on the same samples, else from stated intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from board_entries import made_up

from audio_compositionality.evaluator.compare.beside import MOST_TESTED, order_beside, trimmed_samples, verdict_beside
from audio_compositionality.evaluator.compare.comparison import OpenedData
from audio_compositionality.evaluator.compare.stated import stated_verdict
from audio_compositionality.evaluator.compare.verdicts import Standing
from audio_compositionality.evaluator.results.result import CLUSTER, Result, ResultError, SampleTable
from audio_compositionality.tasks.base import Samples
from audio_compositionality.tasks.registry import load_task

ABOVE, BELOW, NOT_SHOWN = Standing.ABOVE, Standing.BELOW, Standing.NOT_SHOWN
CLOSED = OpenedData(None, None, "they cannot be opened")
INFO = load_task("a_coat").info

rng = np.random.default_rng(0)
HARD = 0.5 + 0.2 * rng.normal(size=60).clip(-2, 2)
"""What makes a sample hard for every model."""


def result(id, values, **changes):
    """A result with these scores by sample, by all measures; chance is 0.01."""
    paradigm = "baseline" if id in ("log-mel-statistics", "rms") else None
    files = made_up(id, values=values, measures={"top1_chance": 0.01}, model={"paradigm": paradigm}, **changes)
    return Result.loads(files["result.json"]).with_samples(SampleTable.loads(files["samples.csv"]))


def without(result):
    """The same without its samples."""
    return Result.loads(result.dumps())


def small(seed):
    return 0.005 * np.random.default_rng(seed).normal(size=60)


MODEL = result("org/one", HARD)
TWIN = result("untrained:org/one", HARD - 0.06 + small(1))
PLAIN = result("log-mel-statistics", HARD - 0.06 + small(2))


def test_a_small_difference_in_every_sample_shows_and_from_intervals_it_does_not():
    verdict = verdict_beside(INFO, MODEL, [TWIN, PLAIN], CLOSED)
    assert [bar.standing for bar in verdict.bars] == [ABOVE] * 3
    assert not verdict.is_stated
    assert not any(check.is_stated for bar in verdict.bars for check in bar.checks)
    stated = stated_verdict(INFO, MODEL, [TWIN, PLAIN])
    assert [bar.standing for bar in stated.bars] == [NOT_SHOWN, NOT_SHOWN, ABOVE]
    assert stated.is_stated


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (without(TWIN), "no samples"),
        (result("untrained:org/one", HARD, ids=[f"other-{k}" for k in range(60)]), "other samples"),
        (TWIN.with_samples(SampleTable(TWIN.samples.ids, {})), "no scores of these measures"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_only_what_has_other_samples_is_compared_by_what_it_states(other, why):
    verdict = verdict_beside(INFO, MODEL, [other, PLAIN], CLOSED)
    assert [(bar.name, bar.standing) for bar in verdict.bars] == [
        ("twin", NOT_SHOWN),
        ("description", ABOVE),
        ("floor", ABOVE),
    ]
    assert verdict.is_stated
    twin, plain, floor = verdict.bars
    assert {check.is_stated for check in twin.checks} == {True}
    assert {check.is_stated for check in (*plain.checks, *floor.checks)} == {False}
    assert twin.deciding.figure.endswith(", from stated intervals")


def test_of_two_twins_each_is_tested_as_far_as_it_can_be():
    twins = [TWIN, without(result("untrained:org/one", HARD + 0.3, ids=[f"q{k}" for k in range(60)]))]
    (twin, *_) = verdict_beside(INFO, MODEL, [*twins, PLAIN], CLOSED).bars
    assert [check.is_stated for check in twin.checks if check.decides] == [False, True]
    assert [check.standing for check in twin.checks if check.decides] == [ABOVE, BELOW]
    assert twin.standing is NOT_SHOWN


@pytest.mark.parametrize(
    ("model", "beside"), [(without(MODEL), [TWIN, PLAIN]), (MODEL, [TWIN, without(result("rms", HARD - 0.2))])]
)
def test_without_its_own_samples_or_those_of_a_level_all_is_from_intervals(model, beside):
    verdict = verdict_beside(INFO, model, beside, CLOSED)
    assert verdict == stated_verdict(INFO, model, beside)
    assert not any("no result of" in check.words for bar in verdict.bars for check in bar.checks)


def test_samples_that_the_data_do_not_have_are_not_tested():
    """A stranger's samples of a preset: their clusters are not known."""
    data = OpenedData(None, Samples(({"id": "other"},), np.zeros(1, np.int64)), None)
    assert verdict_beside(INFO, MODEL, [TWIN, PLAIN], data) == stated_verdict(INFO, MODEL, [TWIN, PLAIN])


def test_few_clusters_show_less_than_many_samples():
    groups = np.repeat(np.arange(12), 5)
    gap = np.repeat(0.1 + 0.25 * np.linspace(-1.6, 1.6, 12), 5)
    alone, grouped = (
        verdict_beside(
            INFO, result("org/one", HARD, clusters=of), [result("untrained:org/one", HARD - gap, clusters=of)], CLOSED
        )
        for of in (None, groups)
    )
    assert (alone.bars[0].standing, grouped.bars[0].standing) == (ABOVE, NOT_SHOWN)


def test_every_control_of_one_name_counts():
    beside = [TWIN, result("shuffled:org/one", HARD - 0.3), result("shuffled:org/one", HARD + 0.3)]
    for order in (beside, beside[::-1]):
        bar = verdict_beside(INFO, MODEL, order, CLOSED).bar("shuffled:")
        assert {check.standing for check in bar.checks if check.decides} == {ABOVE, BELOW}
        assert bar.standing is NOT_SHOWN


def test_models_that_cannot_be_told_apart():
    close = {"org/one": MODEL, "org/two": result("org/two", HARD + small(5)), "org/low": result("org/low", HARD - 0.2)}
    said = order_beside(INFO, close, set(close), CLOSED)
    first, second = sorted(("org/one", "org/two"), key=lambda name: -close[name].measures["adjusted"])
    assert said[0] == f"{first} cannot be told from {second}."
    assert said[1].startswith(f"{first} is higher than org/low, +0.2")
    assert order_beside(INFO, close, {"org/one"}, CLOSED) == ()
    two = {name: close[name] for name in ("org/one", "org/two")}
    assert "cannot be told apart, " in "".join(order_beside(INFO, two, set(), CLOSED))
    apart = {**two, "org/two": without(close["org/two"])}
    assert order_beside(INFO, apart, set(apart), CLOSED) == ()


def test_a_stranger_s_table_is_bounded_and_trimmed():
    table = replace(MODEL.samples, columns={**MODEL.samples.columns, "extra": HARD, CLUSTER: np.zeros(60)})
    assert set(trimmed_samples(INFO, table).columns) == {CLUSTER, *(measure.column for measure in INFO.recommended)}
    huge = SampleTable(table.ids, {name: column * 1e16 for name, column in table.columns.items()})
    with pytest.raises(ResultError, match="beyond 1e"):
        trimmed_samples(INFO, huge)
    many = SampleTable(tuple(map(str, range(MOST_TESTED + 1))), {})
    with pytest.raises(ResultError, match="at most 10,000"):
        trimmed_samples(INFO, many)
