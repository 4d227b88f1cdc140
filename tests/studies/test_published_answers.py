"""Published answers are scored by both rules, and compared, as worked by hand on small files."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from statsmodels.stats.contingency_tables import SquareTable

from studies import published_answers

OPTIONS = ["rain", "wind", "sea", "fire"]
KEY = "ABCDABCDABCD"
CAREFUL, HASTY = "ABCDABCDABBB", "ABCDAACCDDAB"


@pytest.fixture
def folder(tmp_path):
    """Files of two models and of three that cannot be used; the careful one answers the first question in words."""
    rows = [
        {
            "id": f"q{k}",
            "question": f"What is heard in clip {k}?",
            "choices": OPTIONS,
            "answer": OPTIONS["ABCD".index(a)],
        }
        for k, a in enumerate(KEY)
    ]
    questions = [{**row, "audio_id": f"{k}.wav", "task": "sound"} for k, row in enumerate(rows)]
    careful = [{**row, "model_output": OPTIONS["ABCD".index(a)]} for row, a in zip(rows, CAREFUL, strict=True)]
    careful[0]["model_output"] = "It is not wind, it is rain"
    hasty = [{"id": row["id"], "raw": f"({a})", "accuracy": 1.0} for row, a in zip(rows, HASTY, strict=True)]
    hasty[0]["raw"] = "I cannot tell"
    files = {"questions": questions, "careful": careful, "hasty": hasty}
    files["empty"] = [{**row, "model_output": ""} for row in rows]
    files["other"] = [{"id": "x1", "model_output": "A"}]
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    stated = [{"model": name, "path": f"{name}.json"} for name in ("careful", "hasty", "empty", "other", "missing")]
    stated[1] |= {"answers": "raw", "note": "in a hurry"}
    (tmp_path / "sources.yaml").write_text(
        yaml.safe_dump(
            {
                "sets": [{"name": "clips", "questions": "questions.json", "rule": "mmau", "files": stated}],
                "left_out": [{"path": "prose.log", "reason": "logs in running text"}],
            }
        ),
        "utf-8",
    )
    return tmp_path


def values(table):
    """The values of a table: by the first cell of each row, the others by heading."""
    names = [column.heading for column in table.columns]
    return {row.cells[0].value: dict(zip(names, (cell.value for cell in row.cells), strict=True)) for row in table.rows}


def test_scores_letters_and_agreement_are_as_worked_by_hand(folder):
    (stated,) = yaml.safe_load((folder / "sources.yaml").read_text("utf-8"))["sets"]
    rows, files, left_out = published_answers.read_set(folder, stated)
    assert [file.label for file in files] == ["careful", "hasty, in a hurry"]
    assert {path: reason.partition(":")[0] for path, reason in left_out.items()} == {
        "empty.json": "all answers are empty",
        "other.json": "no answer belongs to a question",
        "missing.json": "there is no such file",
    }
    blind = np.array([1.0, 0.0] * 6)
    by_file = values(published_answers.accuracy_table("clips", rows, files, blind))
    # The rule wants no word of a wrong option, and all words of the right one.
    assert by_file["careful"]["matcher"] == pytest.approx(10 / 12)
    assert by_file["careful"]["own rule"] == pytest.approx(9 / 12)
    assert by_file["careful"]["matcher less other"] == pytest.approx(1 / 12)
    assert (by_file["careful"]["log"], by_file["hasty, in a hurry"]["log"]) == (None, 1.0)
    assert by_file["careful"]["letters, %"] == "25 42 17 17"
    hasty = by_file["hasty, in a hurry"]
    assert (hasty["matcher"], hasty["own rule"]) == (pytest.approx(5 / 12), 0)
    assert hasty["unparsed"] == pytest.approx(1 / 12)
    # The careful one is right with the texts 5 times and wrong with them once: 6 of 12 agree, as by chance.
    assert by_file["careful"]["κ with texts"] == pytest.approx(0)
    ((pair,),) = [list(values(published_answers.pairs_table("clips", rows, files)).values())]
    # Both right: 5; both wrong: 2, one of them on the same option.
    assert (pair["agree"], pair["both wrong"], pair["same option"]) == (pytest.approx(7 / 12), 2, 0.5)
    chance = (10 * 5 + 2 * 7) / 144
    assert pair["κ"] == pytest.approx((7 / 12 - chance) / (1 - chance))
    assert pair["chance"] == pytest.approx(1 / 3)
    questions = published_answers.questions_table("clips", rows, files, blind)
    shared = values(published_answers.shared_table("clips", rows, files, questions))
    assert {name: row["questions"] for name, row in shared.items()} == {
        "right for all models": 5,
        "wrong for all models": 2,
    }
    assert shared["right for all models"]["if independent"] == pytest.approx(12 * 10 / 12 * 5 / 12)


def test_the_command_prints_the_tables_and_why_files_are_left_out(folder, capsys, monkeypatch):
    monkeypatch.setattr(published_answers, "LEAST_LEARNT", 12)
    out = folder / "questions.csv"
    published_answers.main([str(folder), "--sources", str(folder / "sources.yaml"), "--out", str(out)])
    printed = capsys.readouterr().out
    assert "Learnt from the texts of other questions" in printed
    assert "prose.log" in printed
    assert "logs in running text" in printed
    lines = out.read_text("utf-8").splitlines()
    assert lines[0].startswith("set,question,kind,right answer,right,models,")
    assert len(lines) == 13
    assert lines[12].startswith("clips,q11,sound,fire,0,2,wind,2")


def test_homogeneity_equals_that_of_statsmodels():
    drawn = np.random.default_rng(0).integers(0, 4, (2, 200))
    drawn[0, :40] = drawn[1, :40]
    table = np.zeros((4, 4))
    np.add.at(table, (drawn[0], drawn[1]), 1)
    expected = SquareTable(table, shift_zeros=False).homogeneity().pvalue
    assert published_answers.homogeneity(*drawn) == pytest.approx(expected)
    assert published_answers.homogeneity([0, 1, 1], [0, 1, 1]) == 1


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("B. wind", True),
        ("All of them? The answer is B", True),
        ("A or B", False),
        ("wind", False),
        ("Dear me: B", False),
    ],
)
def test_the_rule_of_sh_bench_takes_the_first_capital_after_the_last_opening(text, is_right):
    assert published_answers.by_first_capital(text, OPTIONS, "wind") is is_right


def test_the_page_names_each_repository_that_is_read():
    sources = yaml.safe_load(published_answers.SOURCES.read_text("utf-8"))
    page = Path(__file__).parents[2].joinpath("docs", "understand", "published-answers.md").read_text("utf-8")
    paths = [file["path"] for stated in sources["sets"] for file in stated["files"]]
    assert len(set(paths)) == len(paths)
    assert {path.partition("/")[0] for path in paths} <= set(re.findall(r"github\.com/[\w.-]+/([\w.-]+)", page))
    assert {stated["rule"] for stated in sources["sets"] if "rule" in stated} <= set(published_answers.RULES)
