"""Verdicts: what a difference says, over measures, bars, tasks and models."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.model_verdicts import (
    NOTHING_TO_JUDGE,
    leading_sentences,
    tasks_sentence,
    verdicts_of,
)
from audio_compositionality.evaluator.compare.task_verdicts import (
    LEAST_DIFFERENCE,
    Standing,
    TaskVerdict,
    VerdictRow,
    baseline_standing,
    combined,
    deciding_row,
    task_verdicts,
    worst,
)
from audio_compositionality.tasks.registry import load_task

ABOVE, BELOW, NOT_SHOWN, UNKNOWN = Standing

WAY = (
    "score `untrained:one` beside it, as `run` does where your class names the attribute of its network, "
    '`network = "net"`'
)


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


def rows(comparison, baseline="twin"):
    (verdict,) = task_verdicts(comparison)
    return verdict.baselines[baseline]


def standing(comparison, baseline="twin"):
    return baseline_standing(rows(comparison, baseline))


def sentence(*comparisons):
    """The conclusion on all models."""
    (said,) = verdicts_of(comparisons).sentences
    return said


@pytest.mark.parametrize(
    ("mean", "spread", "expected"),
    [
        (0.5, 0.1, ABOVE),
        (0.3 + LEAST_DIFFERENCE / 2, 0.01, NOT_SHOWN),  # surely higher, by less than counts
        (0.3, 0.01, NOT_SHOWN),
        (0.1, 0.1, BELOW),
        (0.3, 0.8, NOT_SHOWN),
    ],
)
def test_a_model_beside_its_twin(compared, mean, spread, expected):
    comparison = compared(one=scores(mean, spread, seed=1), untrained_one=scores(0.3, spread, seed=2))
    assert standing(comparison) is expected
    assert expected.answer == ("yes" if expected is ABOVE else "no")


def test_the_twin_of_another_is_none_and_a_shuffled_one_is_a_further_bar(compared):
    (verdict,) = task_verdicts(
        compared(one=scores(0.5, seed=1), untrained_two=scores(0.1), shuffled_one=scores(0.6, seed=2))
    )
    first = verdict.rows[0]
    assert (verdict.label, first.baseline, first.standing) == ("one", "twin", UNKNOWN)
    assert (first.is_missing, first.outcome) == (True, f"no result of its untrained twin: {WAY}")
    assert list(verdict.baselines) == ["twin", "description", "floor", "shuffled:"]
    assert baseline_standing(verdict.baselines["shuffled:"]) is BELOW
    comparison = compared(untrained_one=scores(0.3, seed=3))
    assert [result.kind.value for result in comparison.results].count("untrained network") == 3
    assert standing(comparison) is ABOVE


def test_a_class_of_ones_own_gets_its_twin_by_a_method(compared):
    """The id of such a class is its name: neither listed, nor one of the Hub."""
    for name, is_own in (("Mine", True), ("whisper-base", False), ("openai/whisper-base", False)):
        verdict = next(one for one in task_verdicts(compared(**{name: scores(0.5)})) if one.label == name)
        assert ("`network = " in verdict.rows[0].outcome) is is_own
        assert f"score `untrained:{name}` beside it" in verdict.rows[0].outcome


def test_figures_are_signed_for_the_model(compared):
    comparison = compared(one=scores(0.1, seed=1), untrained_one=scores(0.3, seed=2))
    row, *beside = rows(comparison)
    assert (row.model, row.task, row.words, row.decides) == ("one", "a_coat", "its untrained twin", True)
    assert not any(one.decides for one in beside)
    assert row.low < row.difference < row.high < 0
    assert row.figure.startswith("−0.")
    assert "-" not in row.figure
    assert row.figure.endswith("p < 0.001")


def test_energy_alone_is_what_the_task_says(compared):
    comparison = compared(one=scores(0.0, 0.02))
    adjusted, top1 = rows(comparison, "floor")
    assert (adjusted.measure, top1.measure) == ("adjusted", "top-1")
    assert adjusted.standing is not ABOVE
    # Chance is that of an encoder that hears how many sources there are.
    numbers = max(len(np.unique(values)) for values in comparison.samples.held_fixed.values())
    mean = float(comparison.view("top1").means[0])
    assert top1.difference == pytest.approx(mean - numbers / 64)


def test_a_flag_is_no_evidence(tmp_path, write_results):
    write_results(tmp_path, ["one"], tasks=["a_tre"], measures={"collapsed": True})
    said = sentence(*compare_results([tmp_path]))
    flag = "the predictions of the raw score hardly vary"
    assert said == f"one is below energy alone and not compared with its untrained twin by A-TRE ({flag})."


def of_another_task(comparison, **changes):
    """The same comparison of a task whose information is another."""
    task = SimpleNamespace(info=replace(comparison.info, **changes), drawings=())
    return replace(comparison, dataset="recordings of words", task=task)


def of_a_headline(comparison):
    """The same comparison of a task by which the verdict is."""
    return of_another_task(comparison, title="the headline", is_headline=True)


def test_a_headline_decides_and_the_others_are_told_beside(compared):
    low = compared(one=scores(0.1, seed=1), untrained_one=scores(0.3, seed=2))
    (before,) = verdicts_of([low]).models
    assert before.beside == ()
    headline = of_a_headline(low)
    (model,) = verdicts_of([low, headline]).models
    assert [task.comparison.info.title for task in model.tasks] == ["the headline"]
    assert model.sentence == (
        "below its untrained twin and not shown to be above energy alone by the headline. Beside that, it is below its "
        "untrained twin and not shown to be above energy alone by A-COAT."
    )
    assert model.standing is before.standing is BELOW
    (model,) = verdicts_of([low, replace(headline, data_name="birds")]).models
    assert " by the headline on birds. Beside that, it is below " in model.sentence
    assert model.sentence.endswith(" by A-COAT on mini.")
    (model,) = verdicts_of([low, replace(headline, dataset="mini")]).models
    assert model.beside == ()


LOG_MEL, MODULATION = "log-mel-statistics", "modulation-statistics"
BOTH = f"{LOG_MEL}, {MODULATION}"
PLAIN = {LOG_MEL: scores(0.3, seed=5), MODULATION: scores(0.3, seed=6)}


@pytest.fixture
def cases(compared, tmp_path_factory, write_results):
    """Comparisons by title, each of the model *one* with what stands beside it."""

    def case(title, one=0.7, twin=0.4, described=0.2, **more):
        named = {"one": one, "untrained:one": twin, LOG_MEL: described, MODULATION: described, **more}
        folder = tmp_path_factory.mktemp(title.replace(" ", "-"))
        for seed, (label, mean) in enumerate(named.items()):
            if mean is not None:
                # A twin with the very scores of its model has its noise too.
                noise = 0 if label == "untrained:one" and mean == one else seed
                write_results(folder, [label], tasks=["a_coat"], scores=scores(mean, seed=noise))
        (comparison,) = compare_results([folder])
        return replace(of_another_task(comparison, title=title), dataset="mini")

    return case


def test_the_sentence_about_one_model(cases):
    """Each rule of the conclusions, by one task."""
    above = f"above its untrained twin, {BOTH} and energy alone"
    for case, said in (
        ({}, f"{above} by T."),
        ({"one": 0.3, "twin": 0.6}, "below its untrained twin and not shown to be above energy alone by T."),
        ({"one": 0.5, "twin": 0.2, "described": 0.6}, f"below {LOG_MEL} and {MODULATION} by T."),
        (
            {"one": 0.5, "twin": 0.51, "described": 0.5},
            f"not shown to be above its untrained twin nor above {LOG_MEL} nor above {MODULATION} by T.",
        ),
        (
            {"one": 0.5, "twin": 0.5},
            "equal to its untrained twin by T in every sample: are these weights trained?",
        ),
        (
            {"twin": None},
            f"not to be judged yet by T: no result of its untrained twin: {WAY}.",
        ),
        (
            {"one": 0.3, "twin": None, "described": 0.6},
            f"below {LOG_MEL} and {MODULATION}, not shown to be above energy alone and not compared with its untrained "
            "twin by T.",
        ),
    ):
        assert sentence(cases("T", **case)) == f"one is {said}", case


def test_above_one_of_two_descriptions_is_not_above_both(cases, compared):
    """What a modulation spectrum without weights reaches, such as the binding of rates, no training is needed for."""
    comparison = compared(one=scores(0.7), untrained_one=scores(0.4, seed=1), **{LOG_MEL: PLAIN[LOG_MEL]})
    assert sentence(comparison) == (
        f"one is not to be judged yet by A-COAT: no result of {MODULATION}: score {MODULATION} beside it."
    )
    said = sentence(cases("T", **{MODULATION: 0.9}))
    assert said == f"one is below {MODULATION} by T."


def test_the_sentence_over_tasks(cases):
    """Tasks of which the same is said stand together; those above all bars come first."""
    above = f"above its untrained twin, {BOTH} and energy alone"
    lower = {"one": 0.3, "twin": 0.6}
    below = "below its untrained twin and not shown to be above energy alone"
    for tasks, said in (
        ([cases("A"), cases("B")], f"{above} by A and B."),
        ([cases("A", **lower), cases("B"), cases("C", **lower)], f"{above} by B; {below} by A and C."),
        (
            [cases("A"), cases("B", twin=None)],
            f"{above} by A; not to be judged yet by B: no result of its untrained twin: {WAY}.",
        ),
    ):
        assert sentence(*tasks) == f"one is {said}"
    (model,) = verdicts_of([cases("A"), cases("B", **lower)]).models
    assert model.standing is BELOW
    (twin, *_) = model.lines
    assert twin.standing is NOT_SHOWN
    assert twin.text.startswith("above by A +0.")
    assert "; below by B −0." in twin.text


def test_the_sentence_over_models(compared):
    several = compared(
        one=scores(0.7),
        untrained_one=scores(0.4, seed=1),
        two=scores(0.2, seed=2),
        untrained_two=scores(0.5, seed=3),
        three=scores(0.6, seed=4),
        **PLAIN,
    )
    assert sentence(several) == (
        "1 of 3 models is above every bar: one; below one at least: two; not to be judged yet: three. Among models "
        "that are not above every bar, order says nothing."
    )
    assert [model.label for model in verdicts_of([several]).models if model.standing is ABOVE] == ["one"]
    text = verdicts_of([several]).text.splitlines()
    assert text[1] == "one: above"
    assert len(text) <= 1 + 5 * 3


def test_models_above_every_bar_are_ordered_as_far_as_they_can_be_told_apart(compared):
    def told(second, seed):
        comparison = compared(
            one=scores(0.7),
            untrained_one=scores(0.4, seed=1),
            two=scores(second, seed=seed),
            untrained_two=scores(0.4, seed=3),
            **PLAIN,
        )
        verdicts = verdicts_of([comparison])
        assert verdicts.order(comparison) == tuple(order.partition(": ")[2] for order in verdicts.orders)
        (order,) = verdicts.orders
        assert order in verdicts.text.splitlines()
        return order

    assert told(0.7, 2) == "By A-COAT: one cannot be told from two."
    assert told(0.55, 4).startswith("By A-COAT: one is higher than two, +0.")


def test_a_model_of_our_generator_is_called_so(compared):
    comparison = compared(one=scores(0.7), untrained_one=scores(0.4, seed=1), **PLAIN)
    assert "trained on our generator" not in sentence(comparison)
    for stated, is_ours in (
        ("400 rows of comp_a_train", True),
        ("comp_a_training of others", False),
        ("AudioSet, augmented with random transforms", False),
    ):
        told = [
            one.result.model_copy(update={"model": one.result.model.model_copy(update={"trained_on": stated})})
            for one in comparison.results
        ]
        results = [replace(one, result=result) for one, result in zip(comparison.results, told, strict=True)]
        said = sentence(replace(comparison, results=results))
        assert said.startswith("one is trained on our generator, and above its untrained twin") is is_ours


def test_without_a_model_there_is_nothing_to_judge(compared):
    comparison = compared(untrained_one=scores(0.4), **PLAIN)
    assert sentence(comparison) == NOTHING_TO_JUDGE


def row(standing, reference="a", baseline="twin", **values):
    names = {"model": "one", "task": "T", "baseline": baseline, "words": reference, "reference": reference}
    outcome = f"it is {standing.value} {reference}"
    return VerdictRow(**names, standing=standing, measure="T", difference=0.1, outcome=outcome, **values)


def test_a_baseline_of_several_references_has_the_worst_of_them():
    several = [row(ABOVE, "a"), row(BELOW, "b"), row(ABOVE, "c"), row(NOT_SHOWN, "d")]
    assert baseline_standing(several) is BELOW
    assert (deciding_row(several).reference, deciding_row(several).sentence) == ("b", "It is below b: +0.100.")
    # Of measures of one reference, one that is lower is not enough.
    assert baseline_standing([row(ABOVE), row(BELOW)]) is NOT_SHOWN
    assert baseline_standing([row(ABOVE), row(BELOW, decides=False)]) is ABOVE
    assert worst([]) is UNKNOWN


def task_of(*rows, flags=(), unread=""):
    return TaskVerdict(label="one", info=load_task("a_coat").info, rows=rows, flags=flags, unread=unread)


def test_words_of_answers():
    silent = "the same model without sound"
    same = task_of(row(NOT_SHOWN, silent, is_same=True))
    above, below = row(ABOVE, silent), row(BELOW, "blind", "description")
    said = tasks_sentence(["A", "B"], [same, task_of(above)])
    assert said == f"above {silent} by B; equal to {silent} by A in every sample: nothing shows that it uses the sound."
    unread = task_of(above, below, unread="9 of 10")
    assert unread.standing is UNKNOWN
    assert tasks_sentence(["A"], [unread]) == "not to be judged by A, where most answers name no option (9 of 10)."
    assert task_of(above, flags=("it is constant",)).standing is NOT_SHOWN


def test_of_many_baselines_the_terminal_has_the_worst(cases):
    (model,) = verdicts_of([cases("A")]).models
    standings = {"a": ABOVE, "b": ABOVE, "c": ABOVE, "d": ABOVE, "e": BELOW, "f": NOT_SHOWN}
    many = replace(model.tasks[0], rows=tuple(row(standing, name, name) for name, standing in standings.items()))
    verdicts = replace(verdicts_of([cases("B")]), models=(replace(model, tasks=(many,)),))
    lines = verdicts.text.splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["e", "f", "a", "3 other bars"]
    assert lines[-1] == "  3 other bars: above"


def test_records_have_every_bar_of_every_task(cases):
    (comparison,) = [cases("A", twin=None)]
    records = verdicts_of([comparison]).records()
    assert [(one["bar"], one["standing"]) for one in records] == [
        ("twin", "cannot tell"),
        ("description", "above"),
        ("floor", "above"),
    ]
    assert records[0]["difference"] is None
    assert records[0]["missing"]
    assert records[1]["low"] < records[1]["difference"] < records[1]["high"]


def test_where_all_is_as_loud_energy_alone_is_assumed_at_chance(compared):
    matched = of_another_task(compared(one=scores(0.0, 0.02)), is_level_matched=True)
    _, top1 = rows(matched, "floor")
    assert top1.difference == pytest.approx(float(matched.view("top1").means[0]) - 1 / 64)
    assert top1.outcome.endswith(
        "(energy alone is assumed to reach chance, 0.016: no result of level-statistics or rms)"
    )


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("level", ["level-statistics", "rms"])
@pytest.mark.parametrize(("mean", "expected"), [(0.5, ABOVE), (0.3, NOT_SHOWN)])
def test_energy_alone_is_who_hears_levels_alone(compared, mean, expected, level, matched):
    comparison = compared(one=scores(mean, seed=1), **{level: scores(0.3, seed=2)})
    info = {"trusted": {"adjusted": None, "top1": None}, "is_level_matched": matched}
    energy = rows(of_another_task(comparison, **info), "floor")
    assert baseline_standing(energy) is expected
    first, *beside = energy
    view = comparison.view("adjusted")
    means = dict(zip(view.labels, view.means, strict=True))
    assert first.measure == "adjusted"
    assert first.difference == pytest.approx(means["one"] - means[level])
    assert first.p == view.tests[0].p_adjusted
    assert not any(row.decides for row in beside)
    assert f"(energy alone: {level})" in first.outcome
    # Where the chance is known too, a model has to be above both.
    outcomes = [row.outcome for row in rows(comparison, "floor") if row.decides]
    assert sum(f"energy alone: {level}" in one for one in outcomes) == 1
    assert sum("energy alone reaches" in one for one in outcomes) == 2
    assert standing(comparison, "floor") is expected


def test_without_who_hears_levels_alone_an_unknown_floor_cannot_be_told(compared):
    comparison = of_another_task(compared(one=scores(0.9, seed=1)), trusted={"adjusted": None})
    (energy,) = rows(comparison, "floor")
    assert (energy.standing, energy.is_missing) == (UNKNOWN, True)
    assert energy.sentence == "No result of energy alone: score level-statistics or rms beside it."


def test_a_model_has_to_be_above_every_draw_of_its_twin(tmp_path, write_results):
    for seed, mean in enumerate((0.1, 0.6, 0.1)):
        draw = {"scores": scores(mean, seed=seed), "model": {"revision": f"seed-{seed}"}}
        write_results(tmp_path, ["untrained:one"], tasks=["a_coat"], **draw)
    write_results(tmp_path, ["one"], tasks=["a_coat"], scores=scores(0.5, seed=9))
    (comparison,) = compare_results([tmp_path])
    assert {f"untrained:one (seed-{seed})" for seed in range(3)} < set(comparison.labels)
    assert standing(comparison) is NOT_SHOWN
    deciding = [row for row in rows(comparison) if row.decides]
    assert "untrained:one (seed-1)" in deciding_row(deciding).sentence
    assert sorted(row.standing.answer for row in deciding) == ["no", "yes", "yes"]


def test_too_few_samples_tell_nothing(tmp_path, write_results, small_data):
    write_results(tmp_path, ["one", "untrained:one"], small_data, tasks=["a_tre"])
    (model,) = verdicts_of(compare_results([tmp_path], data=small_data)).models
    assert {row.standing for task in model.tasks for row in task.rows} == {UNKNOWN}
    assert model.standing is UNKNOWN


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        ([ABOVE, ABOVE], ABOVE),
        ([ABOVE, BELOW], NOT_SHOWN),
        ([BELOW, BELOW], BELOW),
        ([UNKNOWN, NOT_SHOWN], NOT_SHOWN),
        ([ABOVE, UNKNOWN], UNKNOWN),
        ([], UNKNOWN),
    ],
)
def test_standings_are_combined(standings, expected):
    assert combined(standings) is expected


def test_no_order_is_told_of_what_is_no_evidence(compared):
    comparison = compared(one=scores(0.5, seed=1), two=scores(0.2, seed=2), three=scores(0.5, seed=3))
    assert list(leading_sentences(comparison, set())) == []
    assert list(leading_sentences(comparison, {"one"})) == []
    (sentence,) = leading_sentences(comparison, {"one", "two"})
    assert sentence.startswith("one is higher than two, +0.")
    (sentence,) = leading_sentences(comparison, {"one", "three"})
    assert "cannot be told from" in sentence


def test_two_models_alike_are_told_so(compared):
    comparison = compared(one=scores(0.1, seed=1), other=scores(0.1, seed=3), untrained_one=scores(0.3, seed=2))
    (said,) = leading_sentences(comparison, [])
    assert "cannot be told apart" in said


@pytest.mark.parametrize(
    ("interval", "p", "text"),
    [
        ((-0.4, -0.05), 0.07, "(p = 0.070 among all comparisons)"),
        ((-0.4, -0.05), 0.04, ""),
        ((-0.4, 0.05), 0.3, ""),
        (None, None, ""),
    ],
)
def test_p_stands_beside_an_interval_that_says_otherwise(interval, p, text):
    low, high = interval or (None, None)
    assert row(NOT_SHOWN, low=low, high=high, p=p).corrected_text == text
