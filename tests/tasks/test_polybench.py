"""PolyBench: what is asked, how each way to answer shows in the numbers, and what cannot be scored."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.base import Inputs, Outputs, TaskError
from audio_compositionality.tasks.polybench import TASK
from audio_compositionality.tasks.shapes.questions import (
    all_right,
    constant_answers,
    mean_of_parts,
)

from .questions import Row, answered, first, knowing, mumbling, question_row, refusing, scored, twin_rows


def drawing(seed: int):
    """Who draws an option, and sometimes says nothing of use."""
    rng = np.random.default_rng(seed)
    return lambda row: "Hm." if rng.random() < 0.1 else "ABCD"[rng.integers(len(row["options"]))]


PAPER = ("counting", "duration", "concurrency", "classification", "detection")


def test_only_questions_to_test_by_are_asked():
    (row,) = [row for row in twin_rows() if row["id"] == "test-0-l-1"]
    assert TASK.inputs(row, {}) == Inputs(
        clips=("audio",),
        prompts=("Which is heard longest?\nA. organ\nB. reed\nC. brass\nAnswer with one letter only.",),
        options=(("organ", "reed", "brass"),),
    )
    assert TASK.inputs(row | {"split": "train"}, {}) == Inputs()


CHANCES = {"counting": 1 / 4, "duration": 1 / 3, "concurrency": 1 / 2, "classification": 1 / 4, "detection": 1 / 4}


class TestHowAnAnswererShows:
    def test_always_right(self):
        rows = [*twin_rows(1, "train"), *twin_rows(2)]
        scores = scored(rows, knowing)
        rows = rows[19:]  # those to learn from change nothing
        assert scores.ids == TASK.samples(rows).ids == tuple(row["id"] for row in rows)
        names = ("accuracy", "accuracy_micro", "groups_right", *PAPER, *(f"groups_right_{task}" for task in PAPER))
        assert [scores.measures[name] for name in names] == [1] * len(names)
        assert scores.measures["consistency"] is None
        assert scores.columns["choice"].tolist() == [row["options"].index(row["answer"]) for row in rows]
        for name in ("score", "score_group", "score_group_in_task"):
            assert scores.columns[name].tolist() == [1] * 38
        for who, choice, refused in ((refusing, -2, 38), (mumbling, -1, 0)):
            none = scored(rows, who)
            assert [none.measures[name] for name in ("accuracy", "refused", "unparsed")] == [0, refused, 38]
            assert none.columns["choice"].tolist() == [choice] * 38


def test_answers_belong_to_their_questions():
    rows = twin_rows(2)
    answers = answered(rows, drawing(0))
    settings = TASK.settings(rows, {})
    plain = TASK.score(rows, Outputs(answers=answers), settings, "cpu", False)
    order = np.random.default_rng(1).permutation(len(rows))
    moved = [rows[place] for place in order]
    turned = TASK.score(moved, Outputs(answers=[answers[place] for place in order]), settings, "cpu", False)
    assert turned.ids == tuple(row["id"] for row in moved)
    for name, column in plain.columns.items():
        np.testing.assert_allclose(turned.columns[name], column[order], atol=1e-12)
    assert turned.measures == pytest.approx(plain.measures)
    right = answered(rows, knowing)
    right[0], right[1] = right[1], right[0]
    assert TASK.score(rows, Outputs(answers=right), settings, "cpu", False).measures["counting"] == 6 / 8


def uneven_rows() -> list[Row]:
    """Questions about recordings: groups of several sizes, over several tasks."""
    rows = twin_rows(7)
    rng = np.random.default_rng(3)
    kept = [row for row in rows if rng.random() < {"counting": 0.9, "duration": 0.4}.get(row["task"], 0.7)]
    return [row | {"group": f"recording {rng.integers(9)}"} for row in kept]


@pytest.mark.parametrize(
    ("rows", "who", "requested"),
    [
        (twin_rows(3), drawing(1), {}),
        (uneven_rows(), drawing(1), {"orders": "cyclic"}),
        (uneven_rows(), refusing, {}),
    ],
)
def test_measures_are_the_means_of_their_columns(rows, who, requested):
    scores = scored(rows, who, requested)
    assert all(np.isfinite(column).all() and len(column) == len(rows) for column in scores.columns.values())
    for measure in TASK.info.with_intervals:
        column, places = scores.columns[measure.column], measure.places(scores.columns)
        if not len(column[places]):
            assert scores.measures[measure.name] is None
            continue
        assert scores.measures[measure.name] == pytest.approx(column[places].mean(), abs=1e-12), measure.name


def test_tasks_that_are_not_asked_have_no_numbers():
    rows = [row for row in twin_rows(2) if row["task"] in ("counting", "duration")]
    values = scored(rows, knowing).measures
    assert set(values) == {measure.name for measure in TASK.info.measures}
    assert (values["accuracy"], values["counting"], values["concurrency"], values["tp"]) == (1, 1, None, None)
    assert values["groups_right_chance_detection"] is None


def test_questions_of_one_group_are_drawn_together():
    rows = twin_rows(12)
    samples = TASK.samples(rows)
    assert len(set(samples.clusters.tolist())) == 60
    scores = scored(rows, lambda row: knowing(row) if row["group"].startswith(("test-0", "test-1")) else refusing(row))
    column = scores.columns["score_correct"][:, None]
    together, alone = (mean_intervals(column, c)[0] for c in (samples.clusters, np.arange(len(rows))))
    assert together[1] - together[0] > 1.3 * (alone[1] - alone[0])
    score = scored(rows, knowing).columns["score"][:, None]
    assert mean_intervals(score, samples.clusters) == [(1, 1)]


class TestWhatIsKnownOfQuestions:
    def test_groupings(self):
        samples = TASK.samples(twin_rows(3))
        assert set(samples.groups) == {"task", "polyphony", "overlap", "wording"}
        assert samples.groups["task"][:5] == ("counting", "counting", "counting", "counting", "duration")
        assert set(samples.groups["polyphony"]) == {"2", "3", "4"}
        many = [row | {"template": row["id"]} for row in twin_rows(3)]
        assert "wording" not in TASK.samples(many).groups
        some = samples.at([5, 2])
        assert [asked.answer for asked in some.asked] == ["reed", "3"]
        assert [some.without_listening["chance"](np.array([place])) for place in (0, 1)] == [1 / 3, 1 / 4]
        several = [
            row | {"variant": str(number % 2), "source": str(number % 3)} for number, row in enumerate(twin_rows())
        ]
        assert {"variant", "source"} <= set(TASK.samples(several).groups)
        assert TASK.samples(several).groups["variant"][:2] == ("counting, 0", "counting, 1")

    def test_the_question_and_what_sounds_when(self):
        samples = TASK.samples(twin_rows())
        assert samples.asked[4].question == "Which is heard longest?"
        assert (samples.asked[4].options, samples.asked[4].answer) == (("organ", "reed", "brass"), "organ")
        assert samples.contents[0]["audio"][0] == {"sound": "organ", "from (s)": "1.00", "to (s)": "4.00"}

    def test_what_is_reached_without_listening(self):
        rows = twin_rows(2)
        samples = TASK.samples(rows)
        chance, constant = samples.without_listening["chance"], samples.without_listening["the best constant answer"]
        assert chance(np.arange(38)) == pytest.approx((2 + 2 + 4 + 2 + 2) / 38)
        assert constant(np.arange(38)) >= chance(np.arange(38)) - 1e-12
        # Of clips with one sound each, who always says so is always right.
        alone = np.array([place for place, row in enumerate(rows) if row["answer"] == "1"])
        assert len(alone) == 2
        assert (chance(alone), constant(alone)) == (0.25, 1)


def test_the_best_constant_answer_is_a_text_or_a_position():
    texts = [question_row(f"a-{k}", "duration", "?", ["x", "y"][:: 1 - 2 * (k % 2)], "x") for k in range(4)]
    assert constant_answers(texts) == 1
    places = [question_row(f"b-{k}", "detection", "?", [f"{k} s", f"{k + 1} s"], f"{k + k // 3} s") for k in range(4)]
    assert constant_answers(places) == 0.75
    assert constant_answers([*texts, *places]) == 7 / 8


def test_scores_of_parts_and_of_groups_by_hand():
    parts = np.array([0, 0, 0, 2])
    # Shares 2/3 and 1: the mean is 5/6; a question of the first part is off it by 1/3, times 4 / (2 · 3).
    expected = [5 / 6 + 2 / 9, 5 / 6 + 2 / 9, 5 / 6 - 4 / 9, 5 / 6]
    np.testing.assert_allclose(mean_of_parts(np.array([1.0, 1.0, 0.0, 1.0]), parts), expected)
    # Groups of three and one; the second is right: the mean is 1/2, weights are 4 / (2 · 3) and 4 / 2.
    right = all_right(np.array([1.0, 1.0, 0.0, 1.0]), np.array([7, 7, 7, 9]), np.zeros(4, np.int64))
    np.testing.assert_allclose(right, [1 / 2 - 1 / 3] * 3 + [1 / 2 + 1])


def test_settings_say_how_questions_were_put():
    rows = twin_rows()
    settings = {"prompt": "direct", "prompt_version": 1, "orders": 1, "scoring": "generate"}
    assert TASK.settings(rows, {}) == TASK.settings(rows, {"prompt": "direct"}) == settings
    assert TASK.settings(rows, TASK.settings(rows, {"orders": "cyclic"})) == settings | {"orders": "cyclic"}
    by_text = TASK.settings(rows, {"scoring": "options"})
    assert (by_text["prompt"], by_text["scoring"]) == ("text", "options")
    assert TASK.settings(rows, by_text) == by_text
    (prompt,) = TASK.inputs(rows[0], by_text).prompts
    assert prompt.endswith("text of one option only, without its letter.")
    for requested, words in (
        ({"orders": "cylic"}, "orders is 'cylic'; it must be one of 1, cyclic: did you mean 'cyclic'"),
        ({"orders": True}, "orders is true"),
        ({"scoring": "letters", "prompt": "reason"}, ".* asks for reasoning first"),
        (
            {"scoring": "options", "prompt": "direct"},
            ".*set the prompt to 'text', or the scoring to 'generate' or 'letters'",
        ),
        (
            {"scoring": "letters", "prompt": "text"},
            ".*set the prompt to 'direct', or the scoring to 'generate' or 'options'",
        ),
    ):
        with pytest.raises(InputError, match=words):
            TASK.settings(rows, requested)


CYCLIC = {"orders": "cyclic"}


class TestSeveralOrders:
    def test_every_question_is_asked_once_an_order_of_its_options(self):
        (row,) = [row for row in twin_rows() if row["id"] == "test-0-l-1"]
        inputs = TASK.inputs(row, CYCLIC | {"prompt": "reason"})
        assert inputs.clips == ("audio",) * 3
        assert inputs.options == (("organ", "reed", "brass"), ("reed", "brass", "organ"), ("brass", "organ", "reed"))
        assert [prompt.split("\n")[1] for prompt in inputs.prompts] == ["A. organ", "A. reed", "A. brass"]
        assert all(prompt.endswith("\nExplain, then <answer>letter</answer>.") for prompt in inputs.prompts)
        assert (inputs.scoring, inputs.new_tokens) == ("generate", 1024)
        assert TASK.inputs(row, {"scoring": "options"}).scoring == "options"

    def test_one_wrong_order_makes_its_group_wrong_and_counts_by_its_share(self):
        def who(row):
            is_it = row["id"] == "test-1-n-3" and row["options"][0] == "1"
            return "A" if is_it else knowing(row)

        scores = scored(twin_rows(2), who, CYCLIC)
        assert scores.measures["counting"] == pytest.approx((7 + 3 / 4) / 8)
        assert scores.measures["groups_right_counting"] == 1 / 2
        # Of its six pairs of orders three are alike.
        assert scores.measures["consistency"] == pytest.approx((37 + 1 / 2) / 38)
        assert scores.columns["choice"].tolist() == scored(twin_rows(2), knowing).columns["choice"].tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "five"}, "test-0-n-0 .*not one of the options"),
        ({"options": ["1", "1"]}, "all different"),
        ({"options": ["1", "B. 2"]}, "a letter of its own"),
        ({"task": "counts"}, "of the kind 'counts'; did you mean 'counting'"),
        ({"task": "concurrency"}, "Yes and No"),
        ({"group": ""}, "group is empty"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_by_name(changes, message):
    rows = twin_rows()
    with pytest.raises(TaskError, match=message):
        TASK.settings([rows[0] | changes, *rows[1:]], {})


def test_without_questions_to_test_by_there_is_nothing_to_score():
    for rows in ([], twin_rows(1, "train")):
        with pytest.raises(TaskError, match="no questions in the split test"):
            TASK.settings(rows, {})


def test_the_figure_shows_all_tasks_with_chance_and_groups():
    scores = scored(twin_rows(2), first)
    (drawn,) = TASK.drawings
    figure, axes = plt.subplots()
    intervals = {name: np.array([0.1, 0.6]) for name in drawn.intervals} | {"detection": np.array([np.nan, np.nan])}
    drawn.panel(axes, {**scores.columns, **intervals}, scores.measures)
    assert [text.get_text() for text in axes.texts] == list(PAPER)
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], list(CHANCES.values()))
    lines = [segment for lines in axes.collections for segment in lines.get_segments()]
    # A line of chance and one of the best constant text a task, and an interval where there is one.
    assert len(lines) == 5 + 5 + 4
    plt.close(figure)


def test_the_embedding_match_stands_beside_the_score_on_request(monkeypatch: pytest.MonkeyPatch):
    """It never abstains: what the rules leave unread is given an option, and the score stays what it is."""
    texts: list[str] = []

    def embedder(source: str, device: str):
        assert (source, device) == ("an/encoder", "cpu")

        def embed(sentences):
            texts.extend(sentences)
            return np.array([[len(text), 1] for text in sentences], float)

        return embed

    monkeypatch.setattr("audio_compositionality.encoders.text_towers.SentenceEncoder", embedder)
    rows = tuple(twin_rows())
    settings = TASK.settings(rows, {"embedding_match": "an/encoder"})
    assert settings["embedding_match"] == "an/encoder"
    tested = [row for row in rows if row["split"] == "test"]
    outputs = Outputs(answers=tuple(row["answer"] for row in tested))
    with_match = TASK.score(rows, outputs, settings, "cpu", False).measures
    without = TASK.score(rows, outputs, TASK.settings(rows, {}), "cpu", False).measures
    assert without["embedding_match"] is None
    assert with_match["accuracy"] == without["accuracy"] == 1
    assert 0 < with_match["embedding_match"] <= 1
    assert set(texts) >= {row["answer"] for row in tested}
    refused = Outputs(answers=("I cannot hear anything.",) * len(tested))
    values = TASK.score(rows, refused, settings, "cpu", False).measures
    assert values["accuracy"] == 0 < values["embedding_match"]
    with pytest.raises(InputError, match="embedding_match compares the texts that a model writes"):
        TASK.settings(rows, {"embedding_match": "an/encoder", "scoring": "letters"})
