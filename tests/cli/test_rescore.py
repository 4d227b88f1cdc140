"""`rescore` on the command line: results of this project, their submitted form, and logs of others."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from audio_compositionality.dataset_builder.sounds.published import register_reader

LOGS = Path(__file__).parents[1] / "evaluator" / "logs"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    from audio_compositionality.dataset_builder.build import build_dataset
    from audio_compositionality.dataset_builder.rendered import RenderedData
    from audio_compositionality.dataset_builder.texts.polyphony import PolyphonySpec

    rendered = RenderedData("few", {"polybench": PolyphonySpec(train_sets=1, test_sets=1, sample_rate=8_000)})
    return build_dataset(rendered, tmp_path_factory.mktemp("rescore") / "data", progress=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_results_score_as_their_task_does_and_so_do_their_answers_alone(run, tmp_path, data, capsys):
    where = ("--data", data, "--cache", tmp_path / "store")
    out = tmp_path / "out"
    assert run("evaluate", "random", *where, "--tasks", "polybench", "--out", out, "--set", "orders=cyclic") == 0
    assert run("rescore", out, *where, "--out", tmp_path / "all.csv") == 0
    assert "a result of this project" in capsys.readouterr().out
    with (tmp_path / "all.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    scores = {}
    for row in rows:
        scores.setdefault(row["question"], []).append(float(row["matcher"]))
    with next(out.rglob("*.csv")).open() as stream:
        stated = {row["id"]: float(row["score_correct"]) for row in csv.DictReader(stream)}
    assert {id: sum(right) / len(right) for id, right in scores.items()} == pytest.approx(stated)

    lines = [json.dumps({"id": f"{row['question']}?{row['number']}", "answer": row["answer"]}) for row in rows]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    assert run("rescore", tmp_path / "answers.jsonl", "--data", data, "--out", tmp_path / "again.csv") == 0
    with (tmp_path / "again.csv").open() as stream:
        again = list(csv.DictReader(stream))
    assert [(row["question"], row["matcher"]) for row in again] == [(row["question"], row["matcher"]) for row in rows]


def test_a_published_rule_stands_beside_the_matcher(run, tmp_path, capsys):
    register_reader(
        SimpleNamespace(name="spoken", meaning="spoken words", rule=lambda text, options, answer: answer in text)
    )
    out = tmp_path / "x.json"
    assert run("rescore", LOGS / "lmms_eval_mmau.jsonl", "--rule", "spoken", "--out", out) == 0
    assert "rule of spoken" in capsys.readouterr().out
    (table,) = json.loads(out.read_text())
    assert [row["spoken"] for row in table["rows"]] == [0, 1, 0, 0, 0, 1]


def test_what_cannot_be_scored(run, refused, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("answers.csv").write_text("id,answer\nq1,B\n")
    assert run("rescore", "answers.csv") == 1
    assert "--data gives them (q1)" in capsys.readouterr().out
    assert "no answers at nowhere" in refused("rescore", "nowhere")
    assert "ends in .csv or .json" in refused("rescore", "answers.csv", "--out", "x.txt")
    assert "rule" in refused("rescore", "answers.csv", "--rule", "nobody")
    assert "holds no results" in refused("rescore", ".")


def test_the_first_lines_state_what_was_read_and_options_say_what_cannot_be_told(run, refused, tmp_path, capsys):
    rows = [f"q{n},{n}.wav,What is heard at {n}?,dog|cat,{'dog' if n else 'cat'}" for n in range(3)]
    (tmp_path / "questions.csv").write_text("\n".join(["id,audio,question,options,answer", *rows]))
    (tmp_path / "two.csv").write_text(
        "id,answer,model_output,model_prediction\nq0,cat,Dogs,A\nq1,dog,Dogs,1\nq7,dog,,1\n"
    )
    (tmp_path / "numbers.csv").write_text("prediction\n1\n1\n1\n")
    given = (tmp_path / "two.csv", "--data", tmp_path / "questions.csv")
    assert "Name it: --answers model_output" in refused("rescore", *given)
    assert run("rescore", *given, "--answers", "model_output") == 0
    account, used, first, second, *_ = capsys.readouterr().out.splitlines()
    assert account.endswith(": 3 found, 3 read, 0 left out.")
    assert used == "  columns used: id, audio, question, options and answer; not used: none"
    assert first.endswith(
        "is a table: answers from model_output; right answers from the data; ids from 'id'; options from the data."
    )
    assert second == "2 of 3 answers used; 1: no question of the data (q7)."
    numbers = (tmp_path / "numbers.csv", *given[1:], "--in-order")
    assert "--numbers from-0, from-1, text" in refused("rescore", *numbers)
    assert run("rescore", *numbers, "--numbers", "from-1", "--out", tmp_path / "all.csv") == 0
    with open(tmp_path / "all.csv") as stream:
        assert [(row["read as"], row["matcher"]) for row in csv.DictReader(stream)] == [
            ("dog", "0.0"),
            ("dog", "1.0"),
            ("dog", "1.0"),
        ]
    assert "--in-order needs --data" in refused("rescore", numbers[0], "--in-order")


def test_questions_need_no_sound_to_score_their_answers(run, refused, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"q{n},{n}.wav,What is heard?,dog|cat,{'dog' if n else 'bird'}" for n in range(3)]
    Path("questions.csv").write_text("\n".join(["id,audio,question,options,answer", *rows]))
    Path("answers.csv").write_text("id,answer\nq1,A\nq2,(b)\n")
    message = refused("rescore", "answers.csv", "--data", "questions.csv")
    assert "1 of 3 questions are invalid: 1: the answer is not one of the options (q0: 'bird')" in message
    assert run("rescore", "answers.csv", "--data", "questions.csv", "--skip-invalid", "--out", "all.csv") == 0
    with open("all.csv") as stream:
        assert [row["matcher"] for row in csv.DictReader(stream)] == ["1.0", "0.0"]
