"""Verdicts: what a difference says, over measures, bars, tasks and models."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.model_verdicts import (
    NOTHING_TO_JUDGE,
    leading_sentences,
    task_phrase,
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

MISSING = (
    "not compared with its untrained twin (to compare, score `untrained:NAME` for the NAME that you gave, as `run` "
    'does; the class names its network, `network = "net"`, or defines `untrained`)'
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
    assert (first.is_missing, first.outcome) == (True, MISSING)
    assert list(verdict.baselines) == ["twin", "description", "trivial", "shuffled:"]
    assert baseline_standing(verdict.baselines["shuffled:"]) is BELOW
    comparison = compared(untrained_one=scores(0.3, seed=3))
    assert [result.kind.value for result in comparison.results].count("untrained network") == 3
    assert standing(comparison) is ABOVE


def test_a_class_of_ones_own_gets_its_twin_by_a_method(compared):
    """The id of such a class is its name: neither listed, nor one of the Hub."""
    for name, is_own in (("Mine", True), ("whisper-base", False), ("openai/whisper-base", False)):
        verdict = next(one for one in task_verdicts(compared(**{name: scores(0.5)})) if one.label == name)
        assert ("`network = " in verdict.rows[0].outcome) is is_own
        assert f"to compare, score `untrained:{'NAME' if is_own else name}`" in verdict.rows[0].outcome


def test_the_twin_of_a_layer_is_scored_with_its_options(tmp_path, write_results):
    options = {"layer": 2, "pooling": None, "precision": "float32", "compile": False}
    card = {"id": "whisper-base@layer=2", "options": options}
    write_results(tmp_path, ["one"], tasks=["a_coat"], model=card)
    (comparison,) = compare_results([tmp_path])
    (verdict,) = task_verdicts(comparison)
    way = "(to compare, score `untrained:whisper-base` with the same options, layer=2)"
    assert verdict.rows[0].outcome == f"not compared with its untrained twin {way}"


def test_figures_are_signed_for_the_model(compared):
    comparison = compared(one=scores(0.1, seed=1), untrained_one=scores(0.3, seed=2))
    row, *beside = rows(comparison)
    assert (row.model, row.task, row.words, row.decides) == ("one", "a_coat", "its untrained twin", True)
    assert not any(one.decides for one in beside)
    assert row.low < row.difference < row.high < 0
    number = r"−0\.\d{3}"
    assert re.fullmatch(rf"{number} \(95% CI {number} to {number}; adjusted p < 0\.001\)", row.figure)


def test_energy_alone_is_what_the_task_says(compared):
    comparison = compared(one=scores(0.0, 0.02))
    adjusted, top1 = rows(comparison, "trivial")
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
    assert said.startswith("one: Below a baseline. A-TRE: worse than energy alone; not compared with ")
    assert said.endswith(f"; {flag}.")


def of_another_task(comparison, **changes):
    """The same comparison of a task whose information is another."""
    task = SimpleNamespace(info=replace(comparison.info, **changes), drawings=())
    return replace(comparison, dataset="recordings of words", task=task)


def of_a_headline(comparison):
    """The same comparison of a task by which the verdict is."""
    return of_another_task(comparison, title="the headline", is_headline=True)


def test_a_headline_decides_and_the_others_are_named_with_it(compared):
    low = compared(one=scores(0.1, seed=1), untrained_one=scores(0.3, seed=2))
    (before,) = verdicts_of([low]).models
    assert before.others == ()
    headline = of_a_headline(low)
    (model,) = verdicts_of([low, headline]).models
    assert [task.comparison.info.title for task in model.tasks] == ["the headline"]
    assert model.sentence.startswith("Below a baseline. The headline and A-COAT: ".replace("The", "the"))
    assert "; worse than its untrained twin; " in model.sentence
    assert model.standing is before.standing is BELOW
    *_, deciding, note, other = verdicts_of([low, headline]).text.splitlines()
    assert note == "    Other tasks, which do not affect this outcome:"
    assert other.startswith("    A-COAT: ")
    # How to get a missing result is said once.
    assert "to compare, score log-mel" in deciding
    assert "to compare, score log-mel" not in other
    (model,) = verdicts_of([low, replace(headline, data_name="birds")]).models
    assert "the headline on birds and A-COAT on mini: " in model.sentence
    (model,) = verdicts_of([low, replace(headline, dataset="mini")]).models
    assert model.others == ()


LOG_MEL, MODULATION = "log-mel-statistics", "modulation-statistics"
BETTER = f"better than its untrained twin, {LOG_MEL}, {MODULATION} and energy alone"
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
    """Each rule of the phrases, by one task."""
    loud = "mixed results against energy alone"
    for case, outcome, phrase in (
        ({}, "Above all baselines", BETTER),
        (
            {"one": 0.3, "twin": 0.6},
            "Below a baseline",
            f"better than {LOG_MEL} and {MODULATION}; {loud}; worse than its untrained twin",
        ),
        (
            {"one": 0.5, "twin": 0.51, "described": 0.5},
            "Not shown",
            f"better than energy alone; no significant difference from its untrained twin, {LOG_MEL} or {MODULATION}",
        ),
        (
            {"one": 0.5, "twin": 0.5},
            "Not shown",
            "identical to its untrained twin on every sample: its trained weights were not loaded, or this output "
            "uses none",
        ),
        (
            {"twin": None},
            "Cannot tell",
            f"better than {LOG_MEL}, {MODULATION} and energy alone; {MISSING}",
        ),
    ):
        said = sentence(cases("T", **case))
        assert said.removesuffix(".") == f"one: {outcome}. T: {phrase}", case


def test_above_one_of_two_descriptions_is_not_above_both(cases, compared):
    """A score that a modulation spectrum without weights explains, such as that of the binding of rates, needs no
    training."""
    comparison = compared(one=scores(0.7), untrained_one=scores(0.4, seed=1), **{LOG_MEL: PLAIN[LOG_MEL]})
    assert sentence(comparison) == (
        f"one: Cannot tell. A-COAT: better than its untrained twin, {LOG_MEL} and energy alone; not compared with "
        f"{MODULATION} (to compare, score {MODULATION})."
    )
    said = sentence(cases("T", **{MODULATION: 0.9}))
    assert said.endswith(f"better than its untrained twin, {LOG_MEL} and energy alone; worse than {MODULATION}.")


def test_the_phrase_names_what_a_significant_difference_may_hide(compared):
    """A difference that is significant but small is called so; of two measures that disagree, the results are mixed."""
    barely = task_of(row(NOT_SHOWN, "a", p=0.01))
    assert task_phrase(barely) == "better by less than 0.05 than a"
    mixed = task_of(row(ABOVE, "a", p=0.01), replace(row(BELOW, "a", p=0.01), difference=-0.1))
    assert task_phrase(mixed) == "mixed results against a"
    few = task_of(replace(row(UNKNOWN, "a"), outcome="too few samples to compare T with a"))
    assert task_phrase(few) == "too few samples to compare with a: a test needs 10"


def test_the_sentence_over_tasks(cases):
    """Tasks with the same phrase share it."""
    lower = {"one": 0.3, "twin": 0.6}
    assert sentence(cases("A"), cases("B")) == f"one: Above all baselines. A and B: {BETTER}."
    said = sentence(cases("A", **lower), cases("B"), cases("C", **lower))
    assert said.startswith("one: Below a baseline. A and C: ")
    assert f" B: {BETTER}." in said
    (model,) = verdicts_of([cases("A"), cases("B", **lower)]).models
    assert model.standing is BELOW
    (twin, *_) = model.lines
    assert twin.standing is NOT_SHOWN
    assert twin.text.startswith("A: above, +0.")
    assert "; B: below, −0." in twin.text


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
        "1 of 3 models is above all baselines (one); below at least one: two; cannot tell: three. Only models above "
        "all baselines are ranked."
    )
    assert [model.label for model in verdicts_of([several]).models if model.standing is ABOVE] == ["one"]
    text = verdicts_of([several]).text.splitlines()
    assert text[1:4] == ["one", "  Tasks for audio encoders: ABOVE ALL BASELINES", f"    A-COAT: {BETTER}"]


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

    assert told(0.7, 2) == "A-COAT: one does not differ significantly from two."
    assert told(0.55, 4).startswith("A-COAT: one is higher than two: +0.")


def test_a_model_of_our_generator_is_called_so(compared):
    comparison = compared(one=scores(0.7), untrained_one=scores(0.4, seed=1), **PLAIN)
    assert "trained on data from our generator" not in sentence(comparison)
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
        assert said.startswith("one (trained on data from our generator): Above all baselines. ") is is_ours


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
    said = tasks_sentence([("A", same), ("B", task_of(above))])
    doubt = "no evidence that it uses the sound"
    assert said == f"A: identical to {silent} on every sample: {doubt}. B: better than {silent}."
    unread = task_of(above, below, unread="9 of 10")
    assert unread.standing is UNKNOWN
    assert task_phrase(unread) == "not judged, since most answers name no option (9 of 10)"
    assert task_of(above, flags=("it is constant",)).standing is NOT_SHOWN


def test_of_many_baselines_the_terminal_has_the_worst(cases):
    (model,) = verdicts_of([cases("A")]).models
    standings = {"a": ABOVE, "b": ABOVE, "c": ABOVE, "d": ABOVE, "e": BELOW, "f": NOT_SHOWN}
    many = replace(model.tasks[0], rows=tuple(row(standing, name, name) for name, standing in standings.items()))
    verdicts = replace(verdicts_of([cases("B")]), models=(replace(model, tasks=(many,)),))
    lines = verdicts.details.splitlines()[3:]
    assert [line.partition(":")[0].strip() for line in lines] == [
        "vs. e",
        "vs. f",
        "vs. a",
        "vs. b",
        "vs. 2 other baselines",
    ]
    assert lines[-1].endswith("2 other baselines: above")


def test_records_have_every_bar_of_every_task(cases):
    (comparison,) = [cases("A", twin=None)]
    records = verdicts_of([comparison]).records()
    assert [(one["baseline"], one["standing"]) for one in records] == [
        ("twin", "cannot tell"),
        ("description", "above"),
        ("trivial", "above"),
    ]
    assert records[0]["difference"] is None
    assert records[0]["missing"]
    assert records[1]["low"] < records[1]["difference"] < records[1]["high"]


def test_where_all_is_as_loud_energy_alone_is_assumed_at_chance(compared):
    matched = of_another_task(compared(one=scores(0.0, 0.02)), is_level_matched=True)
    _, top1 = rows(matched, "trivial")
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
    energy = rows(of_another_task(comparison, **info), "trivial")
    assert baseline_standing(energy) is expected
    first, *beside = energy
    view = comparison.view("adjusted")
    means = dict(zip(view.labels, view.means, strict=True))
    assert first.measure == "adjusted"
    assert first.difference == pytest.approx(means["one"] - means[level])
    assert first.p == view.tests.between(0, 1).p_adjusted
    assert not any(row.decides for row in beside)
    assert f"(energy alone: {level})" in first.outcome
    # Where the chance is known too, a model has to be above both.
    outcomes = [row.outcome for row in rows(comparison, "trivial") if row.decides]
    assert sum(f"energy alone: {level}" in one for one in outcomes) == 1
    assert sum("energy alone reaches" in one for one in outcomes) == 2
    assert standing(comparison, "trivial") is expected


def test_without_who_hears_levels_alone_an_unknown_trivial_cannot_be_told(compared):
    comparison = of_another_task(compared(one=scores(0.9, seed=1)), trusted={"adjusted": None})
    (energy,) = rows(comparison, "trivial")
    assert (energy.standing, energy.is_missing) == (UNKNOWN, True)
    assert energy.sentence == "Not compared with energy alone (to compare, score level-statistics or rms)."


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
    assert sentence.startswith("one is higher than two: +0.")
    (sentence,) = leading_sentences(comparison, {"one", "three"})
    assert "does not differ significantly from" in sentence


def test_two_models_alike_are_told_so(compared):
    comparison = compared(one=scores(0.1, seed=1), other=scores(0.1, seed=3), untrained_one=scores(0.3, seed=2))
    (said,) = leading_sentences(comparison, [])
    assert "do not differ significantly" in said
