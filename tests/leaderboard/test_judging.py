"""The verdict on one model by the entries that count beside it: that of a report on the same samples, else none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from board_entries import made_up

from audio_compositionality.evaluator.compare.comparison import OpenedData
from audio_compositionality.evaluator.compare.model_verdicts import task_phrase
from audio_compositionality.evaluator.compare.task_verdicts import Standing
from audio_compositionality.evaluator.results.result import CLUSTER, Result, ResultError, SampleTable
from audio_compositionality.leaderboard.board import MOST_TESTED, Order, order_among, trimmed_samples, verdict_among
from audio_compositionality.tasks.base import Samples
from audio_compositionality.tasks.registry import load_task

ABOVE, BELOW, NOT_SHOWN, UNKNOWN = Standing
CLOSED = OpenedData(None, None, "they cannot be opened")
INFO = load_task("a_coat").info

rng = np.random.default_rng(0)
HARD = 0.5 + 0.2 * rng.normal(size=60).clip(-2, 2)
"""What makes a sample hard for every model."""


DESCRIPTIONS = ("log-mel-statistics", "modulation-statistics")


def result(id, values, **changes):
    """A result with these scores by sample, by all measures; chance is 0.01."""
    paradigm = "baseline" if id in (*DESCRIPTIONS, "rms") else None
    files = made_up(id, values=values, measures={"top1_chance": 0.01}, model={"paradigm": paradigm}, **changes)
    return Result.loads(files["result.json"]).with_samples(SampleTable.loads(files["samples.csv"]))


def without(result):
    """The same without its samples."""
    return Result.loads(result.dumps())


def small(seed):
    return 0.005 * np.random.default_rng(seed).normal(size=60)


MODEL = result("org/one", HARD)
TWIN = result("untrained:org/one", HARD - 0.06 + small(1))
PLAIN = [result(name, HARD - 0.06 + small(2)) for name in DESCRIPTIONS]


def test_a_small_difference_in_every_sample_shows():
    verdict = verdict_among(INFO, MODEL, [TWIN, *PLAIN], CLOSED)
    assert verdict.standings == {"twin": ABOVE, "description": ABOVE, "trivial": ABOVE}
    assert verdict.comparison is None, "it holds the scores of all samples"


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (without(TWIN), "no samples"),
        (result("untrained:org/one", HARD, ids=[f"other-{k}" for k in range(60)]), "other samples"),
        (TWIN.with_samples(SampleTable(TWIN.samples.ids, {})), "no scores of these measures"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_with_an_entry_of_other_samples_or_without_any_nothing_can_be_told(other, why):
    outcome = "the samples of untrained:org/one cannot be read, or are others"
    for twins in ([other], [TWIN, other]):
        verdict = verdict_among(INFO, MODEL, [*twins, *PLAIN], CLOSED)
        assert list(verdict.standings.items()) == [("twin", UNKNOWN), ("description", ABOVE), ("trivial", ABOVE)]
        assert verdict.baselines["twin"][-1].outcome == outcome
        assert task_phrase(verdict).endswith(f"; {outcome}")


def test_a_description_and_a_level_without_samples_cannot_be_told_either():
    beside = [TWIN, *(without(result(id, HARD - 0.2)) for id in (*DESCRIPTIONS, "rms", "shuffled:org/one"))]
    verdict = verdict_among(INFO, MODEL, beside, CLOSED)
    expected = {"twin": ABOVE, "description": UNKNOWN, "trivial": UNKNOWN, "shuffled:": UNKNOWN}
    assert list(verdict.standings.items()) == list(expected.items())
    assert not any(row.is_missing for row in verdict.rows)


def test_without_its_own_samples_or_with_those_that_the_data_do_not_have_nothing_can_be_told():
    """A stranger's samples of a preset: their clusters are not known."""
    data = OpenedData(None, Samples(({"id": "other"},), np.zeros(1, np.int64)), None)
    for model, opened in ((without(MODEL), CLOSED), (MODEL, data)):
        verdict = verdict_among(INFO, model, [TWIN, *PLAIN], opened)
        assert verdict.standings == {"twin": UNKNOWN, "description": UNKNOWN, "trivial": UNKNOWN}
        assert {row.outcome for row in verdict.rows} == {
            "the samples of this entry cannot be read, or belong to other data"
        }


def test_few_clusters_show_less_than_many_samples():
    groups = np.repeat(np.arange(12), 5)
    gap = np.repeat(0.1 + 0.25 * np.linspace(-1.6, 1.6, 12), 5)
    alone, grouped = (
        verdict_among(
            INFO, result("org/one", HARD, clusters=of), [result("untrained:org/one", HARD - gap, clusters=of)], CLOSED
        )
        for of in (None, groups)
    )
    assert (alone.standings["twin"], grouped.standings["twin"]) == (ABOVE, NOT_SHOWN)


def test_every_control_of_one_name_counts():
    beside = [TWIN, result("shuffled:org/one", HARD - 0.3), result("shuffled:org/one", HARD + 0.3)]
    for order in (beside, beside[::-1]):
        verdict = verdict_among(INFO, MODEL, order, CLOSED)
        assert {row.standing for row in verdict.baselines["shuffled:"] if row.decides} == {ABOVE, BELOW}
        assert verdict.standings["shuffled:"] is NOT_SHOWN


def test_models_that_cannot_be_told_apart():
    close = {"org/one": MODEL, "org/two": result("org/two", HARD + small(5)), "org/low": result("org/low", HARD - 0.2)}
    order = order_among(INFO, close, set(close), CLOSED)
    said = order.sentences
    assert order.ranks == {"org/one": 1, "org/two": 1, "org/low": 3}
    first, second = sorted(("org/one", "org/two"), key=lambda name: -close[name].measures["adjusted"])
    assert said[0] == f"{first} does not differ significantly from {second}."
    assert said[1].startswith(f"{first} is higher than org/low: +0.2")
    assert order_among(INFO, close, {"org/one"}, CLOSED) == Order()
    two = {name: close[name] for name in ("org/one", "org/two")}
    assert "do not differ significantly: " in "".join(order_among(INFO, two, set(), CLOSED).sentences)
    apart = {**two, "org/two": without(close["org/two"])}
    assert order_among(INFO, apart, set(apart), CLOSED) == Order()


def test_a_stranger_s_table_is_bounded_and_trimmed():
    table = replace(MODEL.samples, columns={**MODEL.samples.columns, "extra": HARD, CLUSTER: np.zeros(60)})
    assert set(trimmed_samples(INFO, table).columns) == {CLUSTER, *(measure.column for measure in INFO.recommended)}
    huge = SampleTable(table.ids, {name: column * 1e16 for name, column in table.columns.items()})
    with pytest.raises(ResultError, match="beyond 1e"):
        trimmed_samples(INFO, huge)
    many = SampleTable(tuple(map(str, range(MOST_TESTED + 1))), {})
    with pytest.raises(ResultError, match="at most 10,000"):
        trimmed_samples(INFO, many)
