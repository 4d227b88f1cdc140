"""Answers scored anew: joined with their questions, by the matcher, by a rule and as their log counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audio_compositionality.dataset_builder.sounds.published import reader_of
from audio_compositionality.dataset_builder.sounds.published.question_tables import option_place
from audio_compositionality.evaluator.answer_logs import AnswerLog, LogError, StoredAnswer, read_logs
from audio_compositionality.evaluator.rescore import NUMBERS, every_answer, rescore, tables_of
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


def given(id, text, **more):
    return StoredAnswer({"texts": text}, id, **more)


def log_of(*answers):
    return AnswerLog("x.jsonl", answers, "a log")


def table(path, rows, **asked):
    """The log of rows in a file of JSON."""
    path = path / "x.json"
    path.write_text(json.dumps(rows))
    return read_logs(path, **asked)[0]


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
    accuracy, readings, differences = map(to_text, tables_of(rescored, most=2))
    assert "2 answers right in the log in which the matcher reads no option" in accuracy
    assert "1 empty answer" in accuracy
    assert "unparsed: refusal" in readings
    assert f"{len(by_id) - 2} more; --out" in differences


SOUNDS = ["dog", "a car horn", "a dog and rain", "rain"]
MUSIC = ["Piano", "Cello", "Flute", "Drums"]

MINIATURE = [
    ("The answer is a car horn.", SOUNDS, "a car horn", 1, 1, None),
    ("A car and a horn", SOUNDS, "a car horn", 0, 0, 0),
    ("dog", SOUNDS, "dog", 1, 1, None),
    ("A dog, no rain", SOUNDS, "a dog and rain", 0, 0, 0),
    ("a dog and rain", SOUNDS, "a dog and rain", 1, 0, None),
    ("", SOUNDS, "dog", 0, 0, 0),
    ("B", SOUNDS, "a car horn", 0, 1, 1),
    ("The correct answer is: B. Cello", MUSIC, "Cello", 1, 1, None),
    ("A cello plays, not a Drum", MUSIC, "Cello", 1, 1, 0),
    ("I think it is piano or cello", MUSIC, "Piano", 0, 1, None),
    ("the answer is C.", MUSIC, "Flute", 0, 1, 1),
    ("D) Drums", MUSIC, "Drums", 1, 1, 1),
    ("None", MUSIC, "Piano", 0, 0, 0),
    ("Not C but B!", MUSIC, "Cello", 0, 0, 1),
    ("Flute. The correct answer is: cello", MUSIC, "Cello", 0, 1, None),
]
"""Answers, and whether the scripts of MMAU and MMAR, of MuChoMusic and of MMSU, which were run on them, count them as
right; None where an answer is left out of the total. (MMSU's has no result of its own for "" and "None".)"""


@pytest.mark.parametrize(("name", "place"), [("mmau", 3), ("mmar", 3), ("muchomusic", 4), ("mmsu", 5)])
def test_a_published_rule_agrees_with_its_script_answer_by_answer(tmp_path, name, place):
    rows = [
        {"id": str(n), "question": "What?", "choices": options, "answer": right, "model_output": text}
        for n, (text, options, right, *_) in enumerate(MINIATURE)
    ]
    rescored = rescore(table(tmp_path, rows), rule=(name, reader_of(f"{name}:")[0].rule))
    assert [answer.by.get(name) for answer in rescored.answers] == [case[place] for case in MINIATURE]


def test_shuffled_options_are_scored_as_they_were_shown():
    (first, _, third) = rescore(logged("inspect_ai_shuffled.json"), ROWS).answers
    assert (first.options, first.taken, first.reference) == (("rain", "bell", "dog"), "bell", "rain")
    # There it was the third question, here it is the fourth.
    assert third.problem == "the log shows other options than the question of this id"


class TestQuestionsOfAnAnswer:
    def test_ids_with_an_order_turn_the_options(self):
        answers = [
            given("q1?0", "A"),
            given("q1?1", "A"),
            given("q2", "B"),
            given("x", "A"),
        ]
        rescored = rescore(log_of(*answers), ROWS)
        assert [answer.taken for answer in rescored.answers] == ["dog", "rain", "siren", None]
        table = tables_of(rescored)[0]
        assert table.rows[0].cells[1].value == pytest.approx((0.5 + 1) / 2)
        notes = " ".join(table.legend)
        assert "3 answers to 2 questions" in notes
        assert rescored.said[1] == "3 of 4 answers used; 1: no question of the data (x)."
        assert (
            "2 questions without a scored answer: q3, q4; with these as wrong, the accuracy by the matcher is 0.375"
            in (notes)
        )

    def test_a_log_without_ids_is_joined_by_its_words(self):
        def asked(row, place, extra=()):
            options = (*row["options"], *extra)
            return given("", "B", place=place, question=f"Listen. {row['question']}", options=options)

        answers = [asked(ROWS[2], 0), asked(ROWS[3], 1, ("none of these",)), asked(ROWS[3], 3, ("none of these",))]
        # An option more is shown, where the log's place says which question it is.
        assert [answer.id for answer in rescore(log_of(*answers), ROWS).answers] == ["q3", "question 1", "q4"]

    def test_an_answer_that_failed_is_no_answer(self):
        rescored = rescore(log_of(given("q1", None), given("q2", "")), ROWS)
        assert [answer.problem for answer in rescored.answers] == ["the model failed, by the log", ""]
        assert rescored.unanswered == ("q1", "q3", "q4")
        assert rescored.answers[1].how == "empty"

    def test_a_log_alone_says_what_it_lacks(self):
        shown = ("dog", "rain")
        answers = [
            given("1", "B", reference="B"),
            given("2", "B", options=shown),
            given("3", "B", options=shown, reference="bell"),
            given("4", "B", options=("dog", "Dog"), reference="A"),
            given("5", "B", options=shown, reference="(B) rain"),
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


@pytest.mark.parametrize(
    ("options", "reference", "place"),
    # Chords, letters and words that the matcher would not read, or would read as the letter of another option.
    [
        (["C#", "F#", "Bbm", "G"], "F#", 1),
        (["G", "D", "E", "C"], "E", 2),
        (["G", "D", "E", "C"], "C", 3),
        (["on", "said", "a", "hope"], "a", 2),
        (["PG", "R", "G"], "R", 1),
        (["B", "A"], "A", 1),
        (["a dog\N{RIGHT SINGLE QUOTATION MARK}s bark", "rain"], "A dog's bark.", 0),
    ],
)
def test_a_right_answer_is_compared_as_a_text_first(options, reference, place):
    assert option_place(reference, options) == place


def test_letters_are_letters_where_all_right_answers_are_and_some_are_no_option(tmp_path):
    chords = {"question": "Which?", "options": ["G", "D", "E", "C"], "answer": "D", "response": "G"}
    (alone,) = rescore(table(tmp_path, [chords])).answers
    assert alone.reference == "D"
    sounds = {"question": "What?", "options": ["dog", "rain"], "answer": "B", "response": "rain"}
    first, second = rescore(table(tmp_path, [chords, sounds])).answers
    assert (first.reference, second.reference) == ("C", "rain")


KEY = [row["answer"] for row in ROWS]
WRONG = ["dog", "car horn", "siren", "two"]
"""The second half is right."""


def rows_with(**columns):
    return [{"id": row["id"]} | {name: values[n] for name, values in columns.items()} for n, row in enumerate(ROWS)]


class TestTheKeyIsNeverScored:
    @pytest.mark.parametrize(
        "heading", ["model_output", "answer_prediction", "predicted_answer", "final_answer", "Response", "pred"]
    )
    def test_a_heading_of_answers_is_taken_beside_the_key(self, tmp_path, heading):
        rescored = rescore(table(tmp_path, rows_with(answer=KEY, **{heading: WRONG})), ROWS)
        assert [answer.by["matcher"] for answer in rescored.answers] == [0, 0, 1, 1]
        assert rescored.said == (
            f"{rescored.log.title} is a list in JSON: answers from {heading}; right answers from the data; ids from "
            "'id'; options from the data.",
            "4 of 4 answers used.",
        )

    def test_a_file_of_mmar_needs_no_data(self, tmp_path):
        rows = rows_with(
            question=["?"] * 4, choices=[row["options"] for row in ROWS], answer=KEY, answer_prediction=WRONG
        )
        assert [answer.by["matcher"] for answer in rescore(table(tmp_path, rows)).answers] == [0, 0, 1, 1]

    @pytest.mark.parametrize(
        ("columns", "says"),
        [
            # An unknown heading, beside the indices of pandas.
            (
                {"": WRONG, "Unnamed: 0": WRONG, "answer": KEY, "Qwen2-Audio": WRONG},
                "candidates: Qwen2-Audio .such as 'dog'. and answer .eq.*: --answers Qwen2",
            ),
            ({"answer": KEY}, "answer .equals the right answers.. Name it: --answers COLUMN"),
            ({"answer": KEY, "label": WRONG}, "answer .equals the right answers. and label .such as 'dog'"),
            ({"answer": WRONG, "options": ["dog|rain"] * 4}, "candidates: answer"),
            ({"answer": WRONG, "model": ["x"] * 4}, "model .such as 'x'. and answer .such as 'dog'."),
            ({"answer": WRONG, "note": KEY}, "candidates: note .equals the right answers. and answer .such as"),
            # The raw text of a model and what its authors cut out of it.
            (
                {"answer": KEY, "model_output": ["The dog barks"] * 4, "model_prediction": WRONG},
                "model_output .such as 'The dog barks'; scored by MMAU.* and model_prediction .*DeSTA2.5",
            ),
        ],
    )
    def test_what_cannot_be_told_is_asked(self, tmp_path, columns, says):
        with pytest.raises(LogError, match=says):
            rescore(table(tmp_path, rows_with(**columns)), ROWS)

    def test_a_named_column_is_taken(self, tmp_path):
        log = table(tmp_path, rows_with(model_output=KEY, model_prediction=WRONG), column="Model Prediction")
        assert [answer.text for answer in rescore(log, ROWS).answers] == WRONG
        with pytest.raises(LogError, match="no column 'outputs'; did you mean 'model_output'"):
            table(tmp_path, rows_with(model_output=KEY), column="outputs")
        with pytest.raises(LogError, match="--answers names one of a table"):
            read_logs(LOGS / "inspect_ai.eval", column="output")

    def test_of_two_candidates_the_key_is_none_and_equal_ones_are_one(self, tmp_path):
        for columns in ({"prediction": KEY, "response": WRONG}, {"prediction": WRONG, "response": WRONG}):
            assert [answer.text for answer in rescore(table(tmp_path, rows_with(**columns)), ROWS).answers] == WRONG

    @pytest.mark.parametrize("key", [KEY, ["B", "B", "B", "B"], ["(B) rain", "(B) siren", "b. siren", "B: two"]])
    def test_answers_that_all_equal_the_key_are_suspicious(self, tmp_path, key):
        said = rescore(table(tmp_path, rows_with(prediction=key)), ROWS).said
        assert said[2].startswith("SUSPICIOUS: 4 of 4 answers are the right answer letter for letter.")
        assert len(rescore(table(tmp_path, rows_with(prediction=[*key[:3], "It is siren"])), ROWS).said) == 2


class TestOptionNumbers:
    @pytest.mark.parametrize(
        ("numbers", "way"),
        # A negative number says that a program read no option.
        [([0, 1, 1, ""], "from 0"), (["1", "2", "2", ""], "from 1"), (["0", "1", "1.0", "-1"], "from 0")],
    )
    def test_are_read_where_they_are_certain(self, tmp_path, numbers, way):
        log = table(tmp_path, rows_with(prediction=numbers))
        rescored = rescore(log, ROWS, ("a rule", contains))
        assert [answer.taken for answer in rescored.answers] == ["dog", "siren", "siren", None]
        assert [answer.by["a rule"] for answer in rescored.answers] == [0, 1, 1, 0]
        assert f"answers from prediction, numbers of options {way};" in rescored.said[0]

    def test_are_asked_where_they_are_not(self, tmp_path):
        rows = [row | {"id": str(n)} for n, row in enumerate(ROWS[:3])]
        log = table(tmp_path, [{"id": str(n), "prediction": 1} for n in range(3)])
        with pytest.raises(LogError, match="--numbers from-0, from-1, text"):
            rescore(log, rows)
        taken = {way: [one.taken for one in rescore(log, rows, numbers=way).answers] for way in NUMBERS}
        assert taken == {"from-0": ["rain", "siren", "siren"], "from-1": ["dog", *["car horn"] * 2], "text": [None] * 3}

    def test_of_no_option_are_asked_and_beside_texts_are_none(self, tmp_path):
        with pytest.raises(LogError, match=r"numbers such as 7, .*--numbers from-0"):
            rescore(table(tmp_path, rows_with(prediction=[7, 0, 1, ""])), ROWS)
        answers = rescore(table(tmp_path, rows_with(prediction=["rain", "a siren", 1, 2])), ROWS).answers
        assert [answer.taken for answer in answers] == ["rain", "siren", None, "two"]

    def test_may_be_right_answers_of_a_log_alone(self, tmp_path):
        rows = [
            {"id": row["id"], "options": row["options"], "answer": row["options"].index(row["answer"]), "pred": text}
            for row, text in zip(ROWS, WRONG, strict=True)
        ]
        with pytest.raises(LogError, match=r"right answers are numbers such as 1, .*: --data"):
            rescore(table(tmp_path, [row | {"options": [*row["options"], "x"]} for row in rows]))
        rows.append({"id": "q5", "options": ["dog", "cat"], "answer": 0, "pred": "dog"})
        rescored = rescore(table(tmp_path, rows))
        assert [answer.reference for answer in rescored.answers] == [*KEY, "dog"]
        assert "right answers from 'answer', numbers of options from 0;" in rescored.said[0]

    def test_are_texts_where_options_are_numbers(self, tmp_path):
        rows = [{**ROWS[3], "options": ["1", "2", "3"], "answer": "2"}]
        (answer,) = rescore(table(tmp_path, [{"id": "q4", "prediction": 2}]), rows).answers
        assert answer.taken == "2"


def test_answers_without_ids_are_taken_in_order_where_it_is_said(tmp_path):
    log = table(tmp_path, WRONG)
    assert "4: no question of the data, by id or words: give --in-order" in rescore(log, ROWS).said[1]
    assert [answer.by["matcher"] for answer in rescore(log, ROWS, in_order=True).answers] == [0, 0, 1, 1]
    with pytest.raises(LogError, match="4 answers, 0 with the id of a question, and the data 3 questions"):
        rescore(log, ROWS[:3], in_order=True)
    with pytest.raises(LogError, match="4 answers, 4 with the id"):
        rescore(table(tmp_path, rows_with(pred=WRONG)), ROWS, in_order=True)


def test_several_answers_to_a_question_are_scored_each(tmp_path):
    rescored = rescore(table(tmp_path, rows_with(pred=[["rain", "dog"], ["siren"], [], None])), ROWS)
    assert [(answer.number, answer.taken) for answer in rescored.answers[:3]] == [
        ("0", "rain"),
        ("1", "dog"),
        ("", "siren"),
    ]
    assert [answer.problem for answer in rescored.answers[3:]] == ["the model failed, by the log"] * 2


def test_intervals_and_tests_where_there_are_enough_questions():
    rows = [{**ROWS[1], "id": str(k), "question": f"What is heard at {k}?"} for k in range(40)]
    answers = [given(str(k), "B" if k % 4 else "?", by={"log": float(k % 2)}) for k in range(40)]
    cells = tables_of(rescore(log_of(*answers), rows))[0].rows[1].cells
    assert cells[3].value == pytest.approx(0.25)
    assert cells[3].note.startswith("[0.")
    assert 0 < cells[4].value < 0.05


def test_a_file_of_all_answers_runs_no_formulas():
    text = to_csv(every_answer([rescore(log_of(given("q2", "=cmd()"), given("x", "B")), ROWS)]))
    assert "'=cmd()" in text
    assert "no question of the data" in text
