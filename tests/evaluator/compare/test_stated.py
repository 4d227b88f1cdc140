"""Verdicts from stated scores: the unpaired test against SciPy and the paired one, and the rules of the bars."""

from __future__ import annotations

import numpy as np
import pytest
from board_entries import made_up
from scipy import stats

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.conclusions import tasks_sentence
from audio_compositionality.evaluator.compare.stated import (
    WITHIN,
    stated_check,
    stated_verdict,
    unpaired_test,
)
from audio_compositionality.evaluator.compare.verdicts import LEAST_DIFFERENCE, Standing, task_verdicts
from audio_compositionality.evaluator.results.result import Result, load_result
from audio_compositionality.tasks.registry import load_task

ABOVE, BELOW, NOT_SHOWN, UNKNOWN = Standing.ABOVE, Standing.BELOW, Standing.NOT_SHOWN, Standing.UNKNOWN


@pytest.fixture(scope="module")
def info():
    return load_task("a_coat").info


def stated(id, value, half=0.02, **changes):
    """A result whose trusted measures have this mean and half width of the interval; chance is 0.01."""
    measures = {"adjusted": value, "top1": value, "top1_chance": 0.01, **changes.pop("measures", {})}
    ends = None if half is None else [value - half, value + half]
    intervals = {"adjusted": ends, "top1": ends, **changes.pop("intervals", {})}
    files = made_up(id, changes.pop("number", 0), measures=measures, intervals=intervals, **changes)
    return Result.loads(files["result.json"])


def baseline(name, value):
    return stated(name, value, model={"paradigm": "baseline"}, number=7)


def bars(info, result, *beside):
    return stated_verdict(info, result, beside)


def test_the_unpaired_test_is_that_of_two_large_samples():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.3, 1, 4_000), rng.normal(0.25, 2, 4_000)
    means = []
    for values in (first, second):
        half = WITHIN * values.std(ddof=1) / np.sqrt(len(values))
        means.append((values.mean(), (values.mean() - half, values.mean() + half)))
    difference, interval, p = unpaired_test(*means)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert difference == pytest.approx(first.mean() - second.mean())
    assert p == pytest.approx(expected.pvalue, abs=1e-3)
    assert interval == pytest.approx(tuple(expected.confidence_interval()), abs=1e-3)
    back, (low, high), _ = unpaired_test(*means[::-1])
    assert (back, -high, -low) == pytest.approx((-difference, *interval))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0.5, (0.4, 0.6)), (0.5, None), (0.0, None, None)),
        ((0.5, (0.5, 0.5)), (0.5, (0.5, 0.5)), (0.0, (0.0, 0.0), 1.0)),
        ((1 / 3 - 1e-16, (1 / 3 - 1e-16, 1 / 3 - 1e-16)), (1 / 3, (1 / 3, 1 / 3)), (0.0, (0.0, 0.0), 1.0)),
        ((0.5, (0.5, 0.5)), (0.4, (0.4, 0.4)), (0.1, (0.1, 0.1), 0.0)),
        ((1e300, (-1e308, 1e308)), (0.0, (-1e308, 1e308)), (1e300, (1e300 - 2**0.5 * 1e308, 2**0.5 * 1e308), 1.0)),
        ((1e308, (-1e308, 1e308)), (-1e308, (0.0, 0.0)), (np.inf, None, None)),
    ],
)
def test_the_unpaired_test_at_its_edges(first, second, expected):
    difference, interval, p = unpaired_test(first, second)
    assert difference == pytest.approx(expected[0])
    assert interval == (None if expected[1] is None else pytest.approx(expected[1]))
    assert p == (None if expected[2] is None else pytest.approx(expected[2]))


@pytest.mark.parametrize(
    ("mean", "half", "expected"),
    [
        (0.5, 0.02, ABOVE),
        (0.3 + LEAST_DIFFERENCE / 2, 0.001, NOT_SHOWN),  # surely higher, by less than counts
        (0.3, 0.02, NOT_SHOWN),
        (0.4, 0.2, NOT_SHOWN),
        (0.1, 0.02, BELOW),
        (0.5, None, UNKNOWN),
    ],
)
def test_a_model_beside_its_twin(info, mean, half, expected):
    verdict = bars(info, stated("org/one", mean, half), stated("untrained:org/one", 0.3, number=1))
    assert verdict.bars[0].standing is expected
    ends = None if half is None else (mean - half, mean + half)
    check = stated_check(info.judge, (mean, ends), (0.3, (0.28, 0.32)), "its untrained twin")
    assert (check.standing, check.measure) == (expected, "adjusted")


def test_the_three_bars_and_the_sentence(info):
    model, twin = stated("org/one", 0.5), stated("untrained:org/one", 0.3, number=1)
    alone = bars(info, model, stated("untrained:org/two", 0.1), baseline("log-mel-statistics", 0.2))
    assert (alone.bars[0].standing, alone.standing) == (UNKNOWN, UNKNOWN)
    assert alone.bars[0].missing == "no result of its untrained twin: submit `untrained:org/one` too"
    assert tasks_sentence(["T"], [alone]).startswith("not to be judged yet by T: no result of its untrained twin")
    verdict = bars(info, model, twin, baseline("log-mel-statistics", 0.2))
    assert [bar.standing for bar in verdict.bars] == [ABOVE] * 3
    assert tasks_sentence(["T"], [verdict]) == "above its untrained twin, log-mel-statistics and energy alone by T."
    below = bars(info, model, twin, baseline("log-mel-statistics", 0.7), baseline("rms", 0.48))
    assert [bar.standing for bar in below.bars] == [ABOVE, BELOW, NOT_SHOWN]
    shuffled = stated("shuffled:org/one", 0.6, number=2)
    assert [(bar.name, bar.standing) for bar in bars(info, model, twin, shuffled).bars[3:]] == [("shuffled:", BELOW)]


def test_every_twin_counts_and_the_same_samples_are_the_same_weights(info):
    model, low = stated("org/one", 0.5), stated("untrained:org/one", 0.1, number=1)
    assert bars(info, model, low, stated("untrained:org/one", 0.5, number=2)).bars[0].standing is NOT_SHOWN
    copied = replace_id(model, "untrained:org/one")
    assert bars(info, model, copied).is_same_as_twin
    assert not bars(info, model, low).is_same_as_twin


def replace_id(result, id):
    return result.model_copy(update={"model": result.model.model_copy(update={"id": id})})


def test_another_trusted_measure_that_is_lower_is_held_against_it(info):
    twin = stated("untrained:org/one", 0.3, number=1)
    lower = {"measures": {"top1": 0.1}, "intervals": {"top1": [0.08, 0.12]}}
    (check, *_) = bars(info, stated("org/one", 0.5, **lower), twin).bars[0].checks
    assert (check.standing, check.words) == (NOT_SHOWN, "adjusted is higher, but top-1 is lower")


def test_p_values_are_corrected_over_all_checks_of_a_model(info):
    """A model that is barely above one of several is not shown to be, as by chance one in forty is."""
    half = 0.05 * WITHIN / 2**0.5 / 2.1  # z = 2.1 for a difference of 0.05
    model, twin = stated("org/one", 0.351, half), stated("untrained:org/one", 0.3, half, number=1)
    ties = [
        stated(name, 0.351, half, number=2, model={"paradigm": "baseline"}) for name in ("log-mel-statistics", "rms")
    ]
    alone, beside = bars(info, model, twin), bars(info, model, twin, *ties)
    assert (alone.bars[0].standing, beside.bars[0].standing) == (ABOVE, NOT_SHOWN)
    for verdict in (alone, beside):
        checks = [check for bar in verdict.bars for check in bar.checks]
        raw = [unpaired_p(check) for check in checks]
        assert [check.p for check in checks] == pytest.approx(stats.false_discovery_control(raw), abs=1e-9)


def unpaired_p(check):
    """The p value that belongs to a difference and its interval."""
    low, high = check.interval
    return 2 * stats.norm.sf(abs(check.difference) * 2 * WITHIN / (high - low))


@pytest.mark.parametrize("name", ["a_tre", "comp_a_order", "polybench", "audio_text_retrieval"])
def test_any_task_is_judged(name):
    info = load_task(name).info
    prefix, _ = info.twin
    results = [Result.loads(made_up(id, number, name)["result.json"]) for number, id in enumerate(("x", f"{prefix}x"))]
    verdict = stated_verdict(info, results[0], results[1:])
    assert verdict.bars[0].deciding.measure == info.judge.heading
    assert verdict.bars[0].standing is not UNKNOWN
    assert verdict.bar("floor").checks or info.floor == "energy alone"


def test_it_says_no_more_than_the_paired_test(tmp_path, write_results):
    """With samples that are hard for both, whatever is shown by stated scores is also shown sample by sample."""
    shared, rng = np.random.default_rng(0).normal(size=64), np.random.default_rng(1)
    shown = []
    for place in range(12):
        gap = place / 40
        folder = tmp_path / str(place)
        for model, mean in (("one", gap), ("untrained:one", 0.0)):
            noise = 0.25 * shared + 0.05 * rng.normal(size=64)
            write_results(folder, [model], tasks=["a_coat"], scores=mean + noise - noise.mean())
        (comparison,) = compare_results([folder])
        (paired,) = task_verdicts(comparison)
        results = {path.parts[-3]: load_result(path)[0] for path in folder.rglob("a_coat.json")}
        other = stated_verdict(comparison.info, results["one"], [one for key, one in results.items() if key != "one"])
        shown.append((other.bars[0].standing, paired.bars[0].standing))
    assert (ABOVE, ABOVE) in shown
    assert (NOT_SHOWN, ABOVE) in shown
    assert set(shown) <= {(ABOVE, ABOVE), (NOT_SHOWN, ABOVE), (NOT_SHOWN, NOT_SHOWN)}
