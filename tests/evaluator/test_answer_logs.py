"""Logs of answers. Those in `logs` were written by lmms-eval 0.7.3 (its tasks mmau and mmar on six made-up questions,
its model `dummy` with six texts) and inspect_ai 0.3.285 (mockllm); their sound, events and tracebacks were cut out."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from audio_compositionality.evaluator import answer_logs
from audio_compositionality.evaluator.answer_logs import LogError, lettered_options, options_of, read_logs

LOGS = Path(__file__).parent / "logs"


def read(name):
    (log,) = read_logs(LOGS / name)
    return log


def test_lmms_eval_logs_have_words_options_and_what_the_log_counts():
    first, second, *_, last = read("lmms_eval_mmau.jsonl").answers
    assert (first.id, first.place, first.text, first.reference, first.stated) == ("mmau-0", 0, "B", "rain", 1)
    assert first.options == ("dog", "rain", "bell", "car horn")
    assert second.stated == 0
    assert last.text == "The answer is A. footsteps"
    assert [answer.reference for answer in read("lmms_eval_mmar.jsonl").answers] == list("BBBCDA")


def test_inspect_ai_logs_of_both_forms_have_epochs_and_failures():
    answers = {(answer.id, answer.number): answer for answer in read("inspect_ai.eval").answers}
    assert len(answers) == 6
    assert answers["q2", "2"].text is None
    assert (answers["q3", "2"].text, answers["q3", "2"].stated) == ("", 0)
    assert answers["q1", "2"].options == ("dog", "rain", "bell")
    # Options in the prompt alone, beside a clip; and as they were shuffled before they were shown.
    assert read("inspect_ai_audio.json").answers[0].options == ("dog", "rain", "bell")
    assert read("inspect_ai_shuffled.json").answers[0].options == ("rain", "bell", "dog")


def test_an_answer_that_was_given_again_is_another_answer(tmp_path):
    line = {"doc_id": 3, "target": "A", "filtered_resps": "A", "resps": [["A", "no, B"]], "input": "?\nA. dog\nB. rain"}
    likelihoods = {**line, "resps": [[[-1.5, False]], [[-0.5, True]]]}
    (tmp_path / "x.jsonl").write_text(f"{json.dumps(line)}\n{json.dumps(likelihoods)}\n")
    (log,) = read_logs(tmp_path / "x.jsonl")
    assert [(answer.text, answer.number) for answer in log.answers] == [("A", "0"), ("no, B", "1"), (None, "")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "id,answer,model_output\nq1,rain,B. rain\n"),
        ("x.tsv", "\ufeffQuestion ID\tAnswer\tModel output\nq1\train\tB. rain\n"),
        (
            "x.json",
            '[{"id": "q1", "answer": "rain", "model_prediction": "B. rain", "choices": "[\\"dog\\", \\"rain\\"]"}]',
        ),
        (
            "x.jsonl",
            '{"id": "q1", "response": "B. rain", "answer": "rain", "question": "What?\\n(A) dog\\n(B) rain"}\n',
        ),
    ],
)
def test_tables_tell_the_answer_from_the_right_one(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (answer,) = read_logs(tmp_path / name)[0].answers
    assert (answer.id, answer.text, answer.reference) == ("q1", "B. rain", "rain")
    assert answer.options == (("dog", "rain") if "json" in name else ())


def test_options_lose_their_letters_only_where_all_have_them_in_order():
    assert options_of(["A. dog", "B. rain"]) == ("dog", "rain")
    assert options_of(["B. dog", "A. rain"]) == ("B. dog", "A. rain")
    assert options_of(["A. dog", "rain"]) == ("A. dog", "rain")
    assert options_of([1, 2]) == ("1", "2")
    # Of an example and the question, the question.
    assert lettered_options("A. x\nB. y\nAnswer: A\n\nA: dog\nB: rain\nC: bell") == ("dog", "rain", "bell")
    assert lettered_options("A. An answer alone") == ()


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"[" * 100_000, "nested too deep"),
            (b'{"a": 1', "no JSON"),
            (b'{"doc_id": 0, "target": "A"}\n{"doc_id"', "line 2"),
            (b'[{"id": 1, "result": 2}]', "name its column one of response"),
            (b"[1]", "no object"),
            (b'{"x": [\n1]}', "no list of answers"),
            (b"", "without a single answer"),
            (b"id,answer\nq1," + b"x" * 200_000, "no table"),
            (b"PK\x03\x04 and so on", "zip"),
        ],
    )
    def test_one_line_says_what_is_wrong(self, tmp_path, content, says):
        (tmp_path / "log").write_bytes(content)
        with pytest.raises(LogError, match=says):
            read_logs(tmp_path / "log")

    def test_values_of_other_types_count_as_missing(self, tmp_path):
        sample = {
            "id": {},
            "epoch": [1, 2],
            "output": 3,
            "scores": [],
            "messages": [7, {"content": 1}],
            "choices": [[]],
        }
        log = {"eval": {}, "samples": [sample, 5]}
        (tmp_path / "x.json").write_text(json.dumps(log))
        (answer,) = read_logs(tmp_path / "x.json")[0].answers
        assert (answer.id, answer.text, answer.options, answer.stated) == ("", None, (), None)
        line = {"doc_id": "x", "target": {"a": 1}, "resps": {"a": "B"}, "input": 5, "accuracy": {"id": [], "score": 2}}
        (tmp_path / "x.jsonl").write_text(json.dumps(line))
        (answer,) = read_logs(tmp_path / "x.jsonl")[0].answers
        assert (answer.place, answer.text, answer.reference, answer.stated) == (None, None, "", None)

    def test_an_archive_of_something_else_or_that_was_changed(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
            archive.writestr("notes.txt", "hello")
        with pytest.raises(LogError, match=r"holds notes\.txt, and no samples"):
            read_logs(tmp_path / "x.eval")
        content = bytearray((LOGS / "inspect_ai.eval").read_bytes())
        place = content.index(b"samples/q1_epoch_1.json") + 60
        content[place : place + 8] = bytes(8)
        (tmp_path / "y.eval").write_bytes(content)
        with pytest.raises(LogError, match=r"samples/q1_epoch_1.json (cannot be unpacked|has)"):
            read_logs(tmp_path / "y.eval")

    def test_lines_are_limited(self, tmp_path, monkeypatch):
        monkeypatch.setattr(answer_logs, "MOST_ANSWERS", 3)
        (tmp_path / "x.jsonl").write_text('{"id": 1, "answer": "B"}\n' * 4)
        with pytest.raises(LogError, match="more than 3 lines"):
            read_logs(tmp_path / "x.jsonl")
