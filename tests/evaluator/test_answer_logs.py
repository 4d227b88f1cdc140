"""Logs of answers. Those in `logs` were written by lmms-eval 0.7.3 (its tasks mmau and mmar on six made-up questions,
its model `dummy` with six texts) and inspect_ai 0.3.285 (mockllm); their sound, events and tracebacks were cut out. The
workbook has VLMEvalKit's columns, and was written as it does, by pandas 3.1.1 with XlsxWriter."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path

import pytest

from audio_compositionality.dataset_builder.sounds.published.question_tables import lettered_options, options_of
from audio_compositionality.evaluator import answer_logs
from audio_compositionality.evaluator.answer_logs import LogError, read_logs, texts_of

LOGS = Path(__file__).parent / "logs"


def read(name):
    """The answers of a log, with their values."""
    (log,) = read_logs(LOGS / name)
    return [(answer, *answer.values.values()) for answer in log.answers]


def values_of(log):
    """The values of all answers under each heading that could be that of answers."""
    return {name: [answer.values[name] for answer in log.answers] for name in log.answers[0].values}


def table(path, content, name="x.json"):
    (path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return read_logs(path / name)[0]


def test_lmms_eval_logs_have_words_options_and_what_the_log_counts():
    (first, given), (second, _), *_, (_, last) = read("lmms_eval_mmau.jsonl")
    assert (first.id, first.place, first.reference, first.by) == ("mmau-0", 0, "rain", {"log": 1})
    assert first.options == ("dog", "rain", "bell", "car horn")
    assert second.by == {"log": 0}
    assert (texts_of(given), texts_of(last)) == (["B"], ["The answer is A. footsteps"])
    assert [answer.reference for answer, _ in read("lmms_eval_mmar.jsonl")] == list("BBBCDA")


def test_inspect_ai_logs_of_both_forms_have_epochs_and_failures():
    answers = {(answer.id, answer.number): (answer, value) for answer, value in read("inspect_ai.eval")}
    assert len(answers) == 6
    assert answers["q2", "2"][1] is None
    assert (answers["q3", "2"][1], answers["q3", "2"][0].by) == ("", {"log": 0})
    assert answers["q1", "2"][0].options == ("dog", "rain", "bell")
    # Options in the prompt alone, beside a clip; and as they were shuffled before they were shown.
    assert read("inspect_ai_audio.json")[0][0].options == ("dog", "rain", "bell")
    assert read("inspect_ai_shuffled.json")[0][0].options == ("rain", "bell", "dog")


def test_a_workbook_is_a_table(tmp_path):
    answers = read("vlmevalkit.xlsx")
    assert [(answer.id, answer.reference, given) for answer, given in answers] == [
        ("0", "B", "B. rain & wind"),
        ("1", "C", "The sound is a <car>.\nC"),
        ("2", "B", "A"),
        ("3", "A", "2"),
    ]
    assert [answer.options for answer, _ in answers[1:3]] == [("dog", 'a "bell"', "<car>"), ("C#", "F#")]
    # Texts in the cells themselves, as openpyxl writes them.
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        rows = [("id", "reply"), ("q1", "rain")]
        texts = [
            f'<c r="{"AB"[n]}1" t="inlineStr"><is><t>{text}</t></is></c>' for row in rows for n, text in enumerate(row)
        ]
        sheet = f"<row>{''.join(texts[:2])}</row><row>{''.join(texts[2:])}</row>"
        namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        archive.writestr("xl/worksheets/sheet1.xml", f'<worksheet xmlns="{namespace}">{sheet}</worksheet>')
    assert values_of(read_logs(tmp_path / "x.xlsx")[0]) == {"reply": ["rain"]}


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("B", ["B"]),
        (2, ["2"]),
        ([["A", "no, B"]], ["A", "no, B"]),
        # Likelihoods of options are no text, and a score beside a text is none.
        ([[[-1.5, False]], [[-0.5, True]]], []),
        (["rain", 0.93], ["rain"]),
        (
            [{"type": "thinking", "text": "a dog?"}, {"type": "text", "text": "It is"}, {"text": "rain"}],
            ["It is\nrain"],
        ),
        ({"reasoning": "a dog?", "answer": {"content": [{"text": "rain"}]}}, ["rain"]),
        ({"logprobs": 1}, []),
        (None, []),
        ([[[[[[["too deep"]]]]]]], []),
    ],
)
def test_structured_answers_have_their_texts(value, texts):
    assert texts_of(value) == texts


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "id,answer,model_output\nq1,rain,B. rain\n"),
        ("x.csv", "id;answer;response\nq1;rain;B. rain\n"),
        ("x.tsv", "\ufeffQuestion ID\tAnswer\tModel output\nq1\train\tB. rain\n"),
        # VLMEvalKit's predictions, and MMSU's answers.
        ("x.tsv", "index\tquestion\tB\tA\tanswer\tcategory\tprediction\nq1\tWhat?\train\tdog\train\tx\tB. rain\n"),
        (
            "x.jsonl",
            '{"id": "q1", "question": "What?", "choice_a": "dog", "choice_b": "rain", "answer_gt": "rain", '
            '"response": "B. rain", "category": "x"}',
        ),
        (
            "x.json",
            '[{"id": "q1", "answer": "rain", "model_prediction": "B. rain", "choices": "[\\"dog\\", \\"rain\\"]"}]',
        ),
        (
            "x.jsonl",
            '{"id": "q1", "response": "B. rain", "answer": "rain", "question": "What?\\n(A) dog\\n(B) rain"}\n',
        ),
        # AudioBench's logs, rows and answers by id, and one row.
        (
            "x.json",
            '{"results": {"x": {"a": 1}}, "details": [{"id": "q1", "question": "What?\\n Choices:\\n(A) dog (B) rain", '
            '"reference": "rain", "model_prediction": "B. rain", "judge_response": "Rating: 1", "rate_score": 1.0}]}',
        ),
        (
            "x.json",
            '{"config": {"a": 1}, "results": {"q1": {"pred": "B. rain", "gold": "rain", "options": "dog|rain", "a": 1, '
            '"b": 2}}}',
        ),
        ("x.json", '{"q1": {"pred": "B. rain", "gold": "rain", "options": {"A": "dog", "B": "rain"}}}'),
        ("x.json", '{"id": "q1", "pred": "B. rain", "target": "rain", "choices": "(A) dog (B) rain"}'),
    ],
)
def test_tables_tell_the_answer_from_the_right_one(tmp_path, name, text):
    log = table(tmp_path, text, name)
    (answer,) = log.answers
    assert (answer.id, *answer.values.values(), answer.reference, log.why) == ("q1", "B. rain", "rain", "heading")
    assert answer.options == (() if name == "x.csv" or "Model" in text else ("dog", "rain"))


def test_a_mapping_and_a_list_of_texts_are_answers(tmp_path):
    log = table(tmp_path, {"q1": "dog", "q2": ["rain", "dog"], "q3": 2})
    assert [answer.id for answer in log.answers] == ["q1", "q2", "q3"]
    assert values_of(log) == {"response": ["dog", ["rain", "dog"], 2]}
    assert values_of(table(tmp_path, ["dog", "rain"])) == {"response": ["dog", "rain"]}


def test_options_lose_their_letters_only_where_all_have_them_in_order():
    assert options_of(["A. dog", "B. rain"]) == ("dog", "rain")
    assert options_of(["B. dog", "A. rain"]) == ("B. dog", "A. rain")
    assert options_of(["A. dog", "rain"]) == ("A. dog", "rain")
    assert options_of([1, 2]) == ("1", "2")
    # Of an example and the question, the question.
    assert lettered_options("A. x\nB. y\nAnswer: A\n\nA: dog\nB: rain\nC: bell") == ("dog", "rain", "bell")
    assert lettered_options("A. An answer alone") == ()


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("What is heard? A. dog B. rain", ("dog", "rain")),
        ("What?\nChoices: (A) A dog (B) Plan B. (C) rain \nAnswer:", ("A dog", "Plan B.", "rain")),
        ("A) dog B) rain\nC) a bell\nAnswer with A, B or C.", ("dog", "rain", "a bell")),
        ("What? [A] dog, [B] a cat, or not, [C] rain", ("dog", "a cat, or not", "rain")),
        ("What? <A> dog <B> rain", ("dog", "rain")),
        ("What? a: dog b: rain", ("dog", "rain")),
        ("What?\n- **A.** dog\n- **B.** rain", ("dog", "rain")),
        ("What?\n<A>: dog\n<B>: rain\n", ("dog", "rain")),
        # Chords in their order are no letters before options.
        ("Which?\nA:min\nB:min", ()),
        # Joined without a blank, as some programs do.
        ("Name it.Choose from:A. It's a dogB. rainC. a bell", ("It's a dog", "rain", "a bell")),
        # Two ways to divide: none is guessed.
        ("A. vitamin B. rich food B. rain", ()),
        ("A. dog B. rain Or rather: A. bell B. car", ()),
        ("Listen to A. and tell", ()),
    ],
)
def test_options_that_share_a_line_are_divided_where_it_is_certain(prompt, options):
    assert lettered_options(prompt) == options


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"[" * 100_000, "nested too deep"),
            (b'{"a": 1', "no JSON"),
            (b'{"doc_id": 0, "target": "A"}\n{"doc_id"', "line 2"),
            (b'[{"id": 1, "split": "test"}]', "and no column of answers"),
            (b"[1]", "no object"),
            (b'{"x": [\n[]]}', "no list of answers"),
            (b'{"x": [{"id": 1}],\n"y": [{"id": 1}]}', "several lists: x, y"),
            (b"", "is empty; the first line of a table must name its columns"),
            (b"id,answer\nq1," + b"x" * 200_000, "field larger than field limit"),
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
        }
        log = {"eval": {}, "samples": [sample, 5]}
        (tmp_path / "x.json").write_text(json.dumps(log))
        log = read_logs(tmp_path / "x.json")[0]
        assert values_of(log) == {"output.completion": [None, None]}
        assert (log.answers[0].id, log.answers[0].options, log.answers[0].by) == ("", (), {})
        line = {"doc_id": "x", "target": {"a": 1}, "resps": {"a": "B"}, "input": 5, "accuracy": {"id": [], "score": 2}}
        (tmp_path / "x.jsonl").write_text(json.dumps(line))
        log = read_logs(tmp_path / "x.jsonl")[0]
        assert values_of(log) == {"resps": [None]}
        assert (log.answers[0].place, log.answers[0].reference, log.answers[0].by) == (None, "", {})

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
        monkeypatch.setattr(answer_logs, "LARGEST_LOG", 20)
        with pytest.raises(LogError, match="has 100 bytes; JSON is"):
            read_logs(tmp_path / "x.jsonl")
        with pytest.raises(LogError, match="samples of more than 20 bytes"):
            read_logs(LOGS / "inspect_ai.eval")

    def test_a_clip_in_a_table_is_no_answer(self, tmp_path, monkeypatch):
        monkeypatch.setattr(answer_logs, "LONGEST_VALUE", 10)
        log = table(tmp_path, [{"id": "1", "response": "B", "output": "x" * 11}])
        assert values_of(log) == {"response": ["B"]}

    @pytest.mark.parametrize(
        ("sheet", "says"),
        [
            ("<!DOCTYPE x [<!ENTITY a 'b'>]><x/>", "contains entity declarations"),
            ("<x", "not a readable workbook"),
            ('<x xmlns="{}"><row><c r="A1" t="s"><v>7</v></c></row></x>', "not a readable workbook"),
        ],
    )
    def test_a_workbook_that_is_none(self, tmp_path, sheet, says):
        with zipfile.ZipFile(tmp_path / "x.xlsx", "w") as archive:
            archive.writestr("[Content_Types].xml", "")
            namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
            archive.writestr("xl/worksheets/sheet1.xml", sheet.replace("{}", namespace))
        with pytest.raises(LogError, match=says):
            read_logs(tmp_path / "x.xlsx")

    @pytest.mark.parametrize(
        "text", ["A. " * 7_000, "(A) dog (B) " * 2_000, "A) " + " " * 20_000 + "B", "A. x\n" * 4_000]
    )
    def test_a_long_prompt_is_read_at_once(self, text):
        start = time.perf_counter()
        lettered_options(text)
        options_of(text)
        assert time.perf_counter() - start < 0.5
