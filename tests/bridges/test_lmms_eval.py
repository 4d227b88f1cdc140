"""The folder for lmms-eval: what its files say, and what they call."""

from __future__ import annotations

import json
import math
import re

import pytest
import yaml

from audio_compositionality.bridges.lmms_eval import __main__ as command
from audio_compositionality.bridges.lmms_eval import utils
from audio_compositionality.bridges.questions import pose
from audio_compositionality.support.errors import InputError

from ..tasks.listeners import RATE, write_questions


class Loader(yaml.SafeLoader):
    """Reads a function as its place."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "questions").mkdir()
    return str(write_questions(tmp_path / "questions", 20))


def written(capsys, *arguments):
    """The configuration and the docs of the only task that the command writes."""
    assert command.main(arguments) == 0
    folder = command.Path(capsys.readouterr().out.strip())
    (path,) = folder.glob("*.yaml")
    config = yaml.load(path.read_text("utf-8"), Loader)
    file = folder / config["dataset_kwargs"]["data_files"]["test"]
    return config, [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def called(place):
    module, _, name = place.rpartition(".")
    assert module == utils.__name__
    return getattr(utils, name)


def test_the_files_lead_to_the_scores_of_the_task(table, capsys):
    config, docs = written(capsys, table, "--control", "reversed-audio", "--orders", "cyclic")
    assert config["task"] == "audio_compositionality_audio_questions"
    assert len(docs) == 80
    posed = pose("audio_questions", table, "reversed-audio", "direct", "cyclic")
    (sound,) = called(config["doc_to_visual"])(docs[5])
    assert sound["sampling_rate"] == RATE
    plain = pose("audio_questions", table)
    assert (sound["array"] == plain.sound(plain.questions[docs[5]["id"].partition("?")[0]]).waveform[::-1]).all()
    assert docs[0][config["doc_to_text"]] == posed.questions[docs[0]["id"]].prompt
    # The right option in words where the place is even.
    for no_text in ([], None, [None], [["A"]], 0.5):
        with pytest.raises(InputError, match=f"lmms-eval gives no text as the answer to {re.escape(docs[0]['id'])}"):
            utils.process_results(docs[0], no_text)
    answers = {doc["id"]: doc[config["doc_to_target"]] if n % 2 else "none" for n, doc in enumerate(docs)}
    results = [called(config["process_results"])(doc, [answers[doc["id"]]]) for doc in docs]
    measured = {
        metric["metric"]: called(metric["aggregation"])([result[metric["metric"]] for result in results])
        for metric in config["metric_list"]
    }
    assert measured.pop("answers_right") == 0.5
    expected = posed.scores(answers)
    assert {name: value for name, value in measured.items() if not math.isnan(value)} == expected
    assert {item["score"] for item in (result["answers_right"] for result in results)} == {0.0, 1.0}
    assert {metric["metric"]: metric["higher_is_better"] for metric in config["metric_list"]} | {
        "answers_right": True,
        "accuracy": True,
        "unparsed": None,
    } == {metric["metric"]: metric["higher_is_better"] for metric in config["metric_list"]}


@pytest.mark.slow
def test_a_yaml_is_written_for_each_recipe_of_questions(table, capsys):
    assert command.main([]) == 0
    folder = command.Path(capsys.readouterr().out.strip())
    assert {path.stem for path in folder.glob("*.yaml")} >= {"polybench", "polybench_apart", "polybench_atoms", "when"}
    docs = [json.loads(line) for line in (folder / "when.jsonl").read_text("utf-8").splitlines()]
    results = [utils.process_results(doc, [doc["answer"]]) for doc in docs[:6]]
    assert utils.mean_score([result[utils.ANSWERS_RIGHT] for result in results]) == 1
    assert utils.task_measure([result["iou"] for result in results]) == 1


def test_what_cannot_be_asked_is_one_line(capsys, table):
    assert command.main(["a_coat"]) == 1
    streams = capsys.readouterr()
    assert (streams.out, streams.err.startswith("error: 'a_coat' has no questions, but")) == ("", True)
    assert command.main([table, "--control", "without-text"]) == 1
    assert "no control that changes sound" in capsys.readouterr().err
