"""Verdicts: what a difference says, over measures, references and tasks."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.conclusions import judged_by_kind, leading_sentences, model_verdicts
from audio_compositionality.evaluator.compare.verdicts import (
    LEAST_DIFFERENCE,
    VerdictAnswer,
    VerdictCheck,
    combined,
    verdicts,
)
from audio_compositionality.tasks.base import TaskInfo

YES, NO, UNKNOWN = VerdictAnswer.YES, VerdictAnswer.NO, VerdictAnswer.UNKNOWN


@pytest.fixture
def compared(tmp_path, write_results):
    """A comparison of A-COAT, of scores by model."""

    def compare(**scores):
        for label, values in scores.items():
            write_results(tmp_path, [label.replace("ed_", "ed:")], tasks=["a_coat"], scores=values)
        (comparison,) = compare_results([tmp_path])
        return comparison

    return compare


def scores(mean, spread=0.1, seed=0):
    noise = np.random.default_rng(seed).normal(size=64)
    return mean + spread * (noise - noise.mean())


def answer(comparison, question=0):
    (verdict,) = verdicts(comparison)
    return verdict.questions[question].answer


@pytest.mark.parametrize(
    ("mean", "spread", "expected"),
    [
        (0.5, 0.1, YES),
        (0.3 + LEAST_DIFFERENCE / 2, 0.01, NO),  # surely higher, by less than counts
        (0.3, 0.01, NO),
        (0.1, 0.1, NO),
        (0.3, 0.8, UNKNOWN),
    ],
)
def test_a_model_beside_its_twin(compared, mean, spread, expected):
    comparison = compared(one=scores(mean, spread, seed=1), untrained_one=scores(0.3, spread, seed=2))
    assert answer(comparison) is expected


def test_the_twin_of_another_is_none_nor_is_a_shuffled_one(compared):
    (verdict,) = verdicts(
        compared(one=scores(0.5, seed=1), untrained_two=scores(0.1), shuffled_one=scores(0.1, seed=2))
    )
    assert (verdict.label, verdict.questions[0].answer) == ("one", UNKNOWN)
    assert verdict.questions[0].sentence.startswith("No untrained twin is among the results")
    comparison = compared(untrained_one=scores(0.3, seed=3))
    assert [result.kind.value for result in comparison.results].count("untrained network") == 3
    assert answer(comparison) is YES


def test_figures_are_signed_for_the_model(compared):
    comparison = compared(one=scores(0.1, seed=1), untrained_one=scores(0.3, seed=2))
    (verdict,) = verdicts(comparison)
    check, *beside = verdict.questions[0].checks
    assert check.decides
    assert not any(one.decides for one in beside)
    assert check.difference < 0
    assert check.interval[0] < check.difference < check.interval[1] < 0
    assert check.figure.startswith("−0.")
    assert "-" not in check.figure
    assert check.figure.endswith("p < 0.001")


def test_energy_alone_is_what_the_task_says(compared):
    comparison = compared(one=scores(0.0, 0.02))
    (verdict,) = verdicts(comparison)
    (adjusted, top1) = verdict.questions[2].checks
    assert (adjusted.measure, top1.measure) == ("adjusted", "top-1")
    assert adjusted.answer is NO
    # Chance is that of an encoder that hears how many sources there are.
    numbers = max(len(np.unique(values)) for values in comparison.samples.held_fixed.values())
    mean = float(comparison.view("top1").means[0])
    assert top1.difference == pytest.approx(mean - numbers / 64)


def test_a_flag_is_no_evidence(tmp_path, write_results):
    write_results(tmp_path, ["one"], tasks=["a_tre"], measures={"collapsed": True})
    (model,) = model_verdicts(compare_results([tmp_path]))
    reasons = "it is below energy alone; the predictions of the raw score hardly vary"
    assert model.conclusion == f"No evidence of learning in these scores: {reasons}."


class Headline(TaskInfo):
    """A task by which the verdict is."""

    is_headline = True


def of_another_task(comparison, **changes):
    """The same comparison of a task whose information is another."""
    task = SimpleNamespace(info=replace(comparison.info, **changes), drawings=())
    return replace(comparison, dataset="recordings of words", task=task)


def of_a_headline(comparison):
    """The same comparison of a task by which the verdict is."""
    known = {one.name: getattr(comparison.info, one.name) for one in fields(comparison.info)}
    info = Headline(**known | {"title": "the headline"})
    return replace(of_another_task(comparison), task=SimpleNamespace(info=info, drawings=()))


def test_a_headline_decides_and_the_others_are_told_beside(compared):
    low = compared(one=scores(0.1, seed=1), untrained_one=scores(0.3, seed=2))
    (before,) = model_verdicts([low])
    assert before.beside == ()
    headline = of_a_headline(low)
    (model,) = model_verdicts([low, headline])
    assert [task.comparison.info.title for task in model.tasks] == ["the headline"]
    assert model.conclusion == (
        f"By the headline: {before.conclusion} Beside it: by A-COAT it is not shown to have learnt anything."
    )
    assert model.questions == before.questions
    (model,) = model_verdicts([low, replace(headline, dataset="mini")])
    assert model.beside == ()


LOG_MEL = "log-mel-statistics"


def headline(comparisons):
    """What is said of all models at first."""
    (group,) = judged_by_kind(comparisons, model_verdicts(comparisons))
    return group.headline


def test_facts_of_two_tasks_are_not_joined(tmp_path, write_results):
    """Far above log-mel statistics by A-COAT, below them by A-TRE, and no twin."""
    for task, high in (("a_coat", "one"), ("a_tre", LOG_MEL)):
        for seed, label in enumerate(("one", LOG_MEL)):
            means = scores(0.6 if label == high else 0.2, 0.05, seed)
            write_results(tmp_path, [label], tasks=[task], scores=means)
    comparisons = compare_results([tmp_path])
    (model,) = model_verdicts(comparisons)
    assert [told.text for told in model.told("description")] == ["yes (A-COAT)", "no, below (A-TRE)"]
    assert headline(comparisons) == (
        f"The score of the one model here is no evidence of learning. It is significantly below {LOG_MEL} by A-TRE."
    )
    coat, tre = model.conclusion.removeprefix("No evidence of learning in these scores. By A-COAT: ").split(
        " By A-TRE: "
    )
    assert coat == "whether it is above its untrained twin cannot be told."
    assert tre.startswith(f"it is below {LOG_MEL}")
    assert "twin" not in tre


def test_what_models_are_below_is_named_or_counted(compared):
    """Surely below the description, and as high as its twin; then of two models."""
    comparison = compared(one=scores(0.3), untrained_one=scores(0.3), **{LOG_MEL: scores(0.6, seed=1)})
    (model,) = model_verdicts([comparison])
    assert [told.text for told in model.told("twin")] == ["no"]
    assert headline([comparison]).endswith(f" It is significantly below {LOG_MEL}.")
    found = model.conclusion.removeprefix("No evidence of learning in these scores: ")
    assert found.startswith(f"it is below {LOG_MEL} and not above its untrained twin")
    comparison = compared(
        one=scores(0.3), untrained_one=scores(0.5, seed=1), two=scores(0.3, seed=2), **{LOG_MEL: scores(0.3, seed=3)}
    )
    another = replace(of_another_task(comparison, title="another"), dataset=comparison.dataset)
    assert headline([comparison, another]) == (
        "None of the 2 models is shown to be above what needs no learning, so no order among them says that one is "
        "better. Significantly below its untrained twin: 1 of 2 by A-COAT, 1 of 2 by another."
    )


def test_a_task_that_alone_shows_something_is_named(compared):
    low = {"one": scores(0.5), "untrained_one": scores(0.5), LOG_MEL: scores(0.2, seed=2)}
    high = compared(one=scores(0.7), untrained_one=scores(0.4, seed=1), **{LOG_MEL: scores(0.2, seed=2)})
    low = replace(of_another_task(compared(**low), title="another"), dataset=high.dataset)
    assert model_verdicts([high])[0].is_evidence
    assert headline([high, low]) == (
        "Not by all of A-COAT and another the one model here is shown to be above what needs no learning. "
        "By A-COAT alone one is."
    )
    (model,) = model_verdicts([high, low])
    assert model.conclusion == (
        f"By A-COAT: above all three: neither its untrained twin, nor {LOG_MEL}, nor energy alone explains its scores. "
        "By another: no evidence of learning in these scores: it is not above its untrained twin."
    )


def test_what_is_above_names_the_floors_and_the_others_say_so_too_only_where_they_do(compared):
    high = compared(one=scores(0.7), untrained_one=scores(0.4, seed=1), **{LOG_MEL: scores(0.2, seed=2)})
    assert headline([high]) == f"is above its untrained twin, {LOG_MEL} and energy alone."
    both = headline([high, replace(high, data_name="full")])
    assert both == f"is above its untrained twin, {LOG_MEL} and energy alone by A-COAT on mini and A-COAT on full."
    (model,) = model_verdicts([high, of_a_headline(high)])
    assert model.conclusion.endswith("Beside it: A-COAT says so too.")
    low = compared(one=scores(0.4, seed=1))
    (model,) = model_verdicts([high, of_a_headline(low)])
    assert model.conclusion.endswith("Beside it: by A-COAT it is above all three.")


def test_where_all_is_as_loud_energy_alone_is_assumed_at_chance(compared):
    matched = of_another_task(compared(one=scores(0.0, 0.02)), is_level_matched=True)
    (verdict,) = verdicts(matched)
    (_, top1) = verdict.questions[2].checks
    assert top1.difference == pytest.approx(float(matched.view("top1").means[0]) - 1 / 64)
    assert top1.words.endswith("(energy alone is assumed to reach chance, 0.016: no result of level-statistics or rms)")


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("level", ["level-statistics", "rms"])
@pytest.mark.parametrize(("mean", "expected"), [(0.5, YES), (0.3, NO)])
def test_energy_alone_is_who_hears_levels_alone(compared, mean, expected, level, matched):
    comparison = compared(one=scores(mean, seed=1), **{level: scores(0.3, seed=2)})
    info = {"trusted": {"adjusted": None, "top1": None}, "is_level_matched": matched}
    (verdict,) = verdicts(of_another_task(comparison, **info))
    energy = verdict.questions[2]
    assert energy.answer is expected
    first, *beside = energy.checks
    view = comparison.view("adjusted")
    means = dict(zip(view.labels, view.means, strict=True))
    assert first.measure == "adjusted"
    assert first.difference == pytest.approx(means["one"] - means[level])
    assert first.p == view.tests[0].p_adjusted
    assert not any(check.decides for check in beside)
    assert f"(energy alone: {level})" in energy.sentence
    # Where the chance is known too, a model has to be above both.
    (verdict,) = verdicts(comparison)
    words = [check.words for check in verdict.questions[2].checks if check.decides]
    assert sum(f"energy alone: {level}" in one for one in words) == 1
    assert sum("energy alone reaches" in one for one in words) == 2
    assert verdict.questions[2].answer is expected


def test_without_who_hears_levels_alone_an_unknown_floor_cannot_be_told(compared):
    comparison = of_another_task(compared(one=scores(0.9, seed=1)), trusted={"adjusted": None})
    (verdict,) = verdicts(comparison)
    energy = verdict.questions[2]
    assert energy.answer is UNKNOWN
    assert energy.sentence.startswith("The score of energy alone is unknown: no result of level-statistics or rms is")


def test_a_model_has_to_be_above_every_draw_of_its_twin(tmp_path, write_results):
    for seed, mean in enumerate((0.1, 0.6, 0.1)):
        draw = {"scores": scores(mean, seed=seed), "model": {"revision": f"seed-{seed}"}}
        write_results(tmp_path, ["untrained:one"], tasks=["a_coat"], **draw)
    write_results(tmp_path, ["one"], tasks=["a_coat"], scores=scores(0.5, seed=9))
    (comparison,) = compare_results([tmp_path])
    assert {f"untrained:one (seed-{seed})" for seed in range(3)} < set(comparison.labels)
    (verdict,) = verdicts(comparison)
    twin = verdict.questions[0]
    assert twin.answer is NO
    assert "untrained:one (seed-1)" in twin.sentence
    assert sorted(check.answer.value for check in twin.checks if check.decides) == ["no", "yes", "yes"]


def test_too_few_samples_tell_nothing(tmp_path, write_results, small_data):
    write_results(tmp_path, ["one", "untrained:one"], small_data, tasks=["a_tre"])
    (model,) = model_verdicts(compare_results([tmp_path], data=small_data))
    assert set(model.questions.values()) == {UNKNOWN}
    assert not model.is_evidence


@pytest.mark.parametrize(
    ("answers", "expected"),
    [([YES, YES], YES), ([YES, NO], NO), ([UNKNOWN, NO], NO), ([YES, UNKNOWN], UNKNOWN), ([], UNKNOWN)],
)
def test_tasks_are_combined(answers, expected):
    assert combined(answers) is expected


def test_no_order_is_told_of_what_is_no_evidence(compared):
    comparison = compared(one=scores(0.5, seed=1), two=scores(0.2, seed=2), three=scores(0.5, seed=3))
    assert list(leading_sentences(comparison, set())) == []
    assert list(leading_sentences(comparison, {"one"})) == []
    (sentence,) = leading_sentences(comparison, {"one", "two"})
    assert sentence.startswith("one is higher than two, +0.")
    (sentence,) = leading_sentences(comparison, {"one", "three"})
    assert "cannot be told from" in sentence


def test_what_is_surely_lower_is_below_and_two_models_alike_are_told_so(compared):
    comparison = compared(one=scores(0.1, seed=1), other=scores(0.1, seed=3), untrained_one=scores(0.3, seed=2))
    one, other = model_verdicts([comparison])
    assert [told.text for told in one.told("twin")] == ["no, below"]
    assert [told.text for told in other.told("twin")] == ["cannot tell"]
    (sentence,) = leading_sentences(comparison, [])
    assert "cannot be told apart" in sentence


def test_a_difference_without_any_spread_is_sure():
    """Its p is 0, as of a model that is wrong everywhere."""
    interval, words = (-0.2, -0.2), "higher"
    check = VerdictCheck(NO, "A-COAT", "its twin", -0.2, interval, 0.0, words)
    assert check.is_lower
    assert not replace(check, difference=0.0).is_lower
    assert not replace(check, p=None).is_lower
