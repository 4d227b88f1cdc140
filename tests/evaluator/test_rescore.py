"""Answers scored anew: joined with their questions, by the matcher, by a rule and as their log counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from audio_compositionality.evaluator.answer_logs import AnswerLog, LoggedAnswer, read_logs
from audio_compositionality.evaluator.rescore import every_answer, option_place, rescore, tables_of
from audio_compositionality.support.table import frame, to_csv, to_text

LOGS = Path(__file__).parent / "logs"

ROWS = [
    {"id": "q1", "question": "Which sound is heard last?", "options": ["dog", "rain", "bell"], "answer": "rain"},
    {"id": "q2", "question": "What is heard?", "options": ["car horn", "siren"], "answer": "siren"},
    {"id": "q3", "question": "What is heard first?", "options": ["car horn", "siren"], "answer": "siren"},
    {"id": "q4", "question": "How many sounds?", "options": ["one", "two", "three", "four"], "answer": "two"},
]


def contains(text, options, answer):
    """A rule as benchmarks publish it: the right option's text occurs in the answer."""
    return answer in text.lower()


def log_of(*answers):
    return AnswerLog("x.jsonl", "a table of answers", answers)


def logged(name):
    return read_logs(LOGS / name)[0]


@pytest.mark.parametrize(
    ("name", "headline"),
    # As the hosts printed them.
    [("lmms_eval_mmau.jsonl", 4 / 6), ("lmms_eval_mmar.jsonl", 0.5), ("inspect_ai.eval", 1 / 6)],
)
def test_what_the_log_counts_is_the_headline_of_its_host(name, headline):
    table = frame(tables_of(rescore(logged(name)))[0])
    assert table["accuracy"].tolist() == pytest.approx([2 / 3 if "inspect" in name else 0.5, headline])


def test_differences_say_which_reading_decided():
    rescored = rescore(logged("lmms_eval_mmau.jsonl"), rule=("mmau", contains))
    assert rescored.scorings == ("matcher", "mmau", "log")
    by_id = {answer.id: (answer.how, *answer.by.values()) for answer in rescored.differences}
    # The host draws at random where nothing parses, and took "I" of no letter for the first option.
    assert by_id["mmau-3"] == ("refusal", 0, 0, 1)
    assert by_id["mmau-4"] == ("empty", 0, 0, 1)
    assert by_id["mmau-1"] == ("conclusion", 1, 1, 0)
    assert by_id["mmau-0"] == ("letter", 1, 0, 1)
    accuracy, readings, differences = map(to_text, tables_of(rescored, listed=2))
    assert "2 answers right in the log in which the matcher reads no option" in accuracy
    assert "1 empty answer" in accuracy
    assert "unparsed: refusal" in readings
    assert f"{len(by_id) - 2} more; --out" in differences


def test_shuffled_options_are_scored_as_they_were_shown():
    (first, _, third) = rescore(logged("inspect_ai_shuffled.json"), ROWS).answers
    assert (first.options, first.taken, first.reference) == (("rain", "bell", "dog"), "bell", "rain")
    # There it was the third question, here it is the fourth.
    assert third.problem == "the log shows other options than the question of this id"


class TestQuestionsOfAnAnswer:
    def test_ids_with_an_order_turn_the_options(self):
        answers = [
            LoggedAnswer("q1?0", "A"),
            LoggedAnswer("q1?1", "A"),
            LoggedAnswer("q2", "B"),
            LoggedAnswer("x", "A"),
        ]
        rescored = rescore(log_of(*answers), ROWS)
        assert [answer.taken for answer in rescored.answers] == ["dog", "rain", "siren", None]
        table = tables_of(rescored)[0]
        assert table.rows[0].cells[1].value == pytest.approx((0.5 + 1) / 2)
        notes = " ".join(table.legend)
        assert "3 answers to 2 questions" in notes
        assert "1 answer not scored, no question of the data: x." in notes
        assert (
            "2 questions without a scored answer: q3, q4; with these as wrong, the accuracy by the matcher is 0.375"
            in (notes)
        )

    def test_a_log_without_ids_is_joined_by_its_words(self):
        def asked(row, place, extra=()):
            options = (*row["options"], *extra)
            return LoggedAnswer("", "B", place=place, prompt=f"Listen. {row['question']}", options=options)

        answers = [asked(ROWS[2], 0), asked(ROWS[3], 1, ("none of these",)), asked(ROWS[3], 3, ("none of these",))]
        # An option more is shown, where the log's place says which question it is.
        assert [answer.id for answer in rescore(log_of(*answers), ROWS).answers] == ["q3", "question 1", "q4"]

    def test_an_answer_that_failed_is_no_answer(self):
        rescored = rescore(log_of(LoggedAnswer("q1", None), LoggedAnswer("q2", "")), ROWS)
        assert [answer.problem for answer in rescored.answers] == ["the model failed, by the log", ""]
        assert rescored.unanswered == ("q1", "q3", "q4")
        assert rescored.answers[1].how == "empty"

    def test_a_log_alone_says_what_it_lacks(self):
        shown = ("dog", "rain")
        answers = [
            LoggedAnswer("1", "B", reference="B"),
            LoggedAnswer("2", "B", options=shown),
            LoggedAnswer("3", "B", options=shown, reference="bell"),
            LoggedAnswer("4", "B", options=("dog", "Dog"), reference="A"),
            LoggedAnswer("5", "B", options=shown, reference="(B) rain"),
        ]
        problems = [answer.problem for answer in rescore(log_of(*answers)).answers]
        assert [bool(problem) for problem in problems] == [True] * 4 + [False]
        assert len(set(problems)) == 5


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        ("B", 1),
        ("(b)", 1),
        ("rain", 1),
        ("B. rain", 1),
        ("A. rain", None),
        ("D", None),
        ("it rains a lot", None),
        ("", None),
    ],
)
def test_a_right_answer_is_a_letter_or_a_text_and_never_guessed(reference, place):
    assert option_place(reference, ["dog", "rain", "bell"]) == place


def test_letters_that_are_options_too_are_told_apart_or_refused():
    assert option_place("A", ["A", "B"]) == 0
    assert option_place("A", ["B", "A"]) is None


def test_intervals_and_tests_where_there_are_enough_questions():
    rows = [{**ROWS[1], "id": str(k), "question": f"What is heard at {k}?"} for k in range(40)]
    answers = [LoggedAnswer(str(k), "B" if k % 4 else "?", stated=float(k % 2)) for k in range(40)]
    cells = tables_of(rescore(log_of(*answers), rows))[0].rows[1].cells
    assert cells[3].value == pytest.approx(0.25)
    assert cells[3].note.startswith("[0.")
    assert 0 < cells[4].value < 0.05


def test_a_file_of_all_answers_runs_no_formulas():
    text = to_csv(every_answer([rescore(log_of(LoggedAnswer("q2", "=cmd()"), LoggedAnswer("x", "B")), ROWS)]))
    assert "'=cmd()" in text
    assert "no question of the data" in text
