"""Questions as other suites put them: the prompts, the sound and the scores are those of our own run."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.bridges.questions import pose, tasks_of_questions
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.encoders.base import ClipError, Model, ModelCard
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.evaluator.run.evaluate import evaluate
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.support.errors import InputError

from ..references.hashed import hashed_answer
from ..tasks.listeners import RATE, write_questions


class Reporting(Model):
    """Answers by a digest of prompt and sound; takes clips at the rate of the table."""

    card = ModelCard("reporting", "1", RATE, None)

    def answer(self, clips, prompts):
        return [
            hashed_answer(prompt, heard.waveform.astype(np.float32).tobytes())
            for (heard,), prompt in zip(clips, prompts, strict=True)
        ]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return str(write_questions(tmp_path_factory.mktemp("questions"), 40))


def answers_of(posed):
    return {
        id: hashed_answer(question.prompt, posed.sound(question).waveform.tobytes())
        for id, question in posed.questions.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("orders", [1, "cyclic"])
@pytest.mark.parametrize("control", ["", "without-audio", "shuffled-audio:", "other-audio"])
def test_scores_are_those_of_our_own_run(table, control, orders):
    posed = pose("audio_questions", table, control, "direct", orders)
    assert len(posed.questions) == 40 * (4 if orders == "cyclic" else 1)
    model = Reporting()
    if control == "other-audio":
        model = Controlled(model, CONTROLS[control])
    elif control:
        model = Controlled(model, CONTROLS[control.removesuffix(":")])
    options = RunOptions(progress=False, settings={"orders": orders})
    (result,) = evaluate(model, table, tasks=["audio_questions"], options=options)
    scores = posed.scores(answers_of(posed))
    assert "accuracy" in scores
    assert scores == {name: result.measures[name] for name in scores}


def test_a_question_counts_where_it_is_answered_in_all_orders(table):
    posed = pose("audio_questions", table, orders="cyclic")
    rows = list(dict.fromkeys(question.row["id"] for question in posed.questions.values()))[:2]
    answers = {id: one.row["answer"] for id, one in posed.questions.items() if one.row["id"] in rows}
    assert posed.scores(answers)["accuracy"] == 1
    wrong = {id: "?" if id == f"{rows[0]}?0" else text for id, text in answers.items()}
    assert posed.scores(wrong)["accuracy"] == 1 - 1 / 4 / 2
    without = {id: text for id, text in wrong.items() if id != f"{rows[0]}?1"}
    assert posed.scores(without)["accuracy"] == 1
    assert posed.scores({}) == {}


def test_single_answers_are_read_by_the_rules_of_the_metric():
    posed = pose("polybench")
    question = next(one for one in posed.questions.values() if one.kind == "counting")
    right = "ABCD"[question.options.index(question.row["answer"])]
    assert question.score(f"The answer is {right}.") == 1
    assert question.option_of("I cannot tell.") is None
    assert question.score("I cannot tell.") == 0


def test_every_task_of_questions_is_there_without_further_code():
    names = {task.info.name for task in tasks_of_questions()}
    assert {"polybench", "polybench_apart", "polybench_atoms", "audio_questions"} <= names
    posed = pose("polybench_apart")
    assert posed.measures[0] == "together"
    answers = {id: one.row["answer"] for id, one in posed.questions.items()}
    assert posed.scores(answers)["together"] == 1
    # One arrangement alone is not scored.
    assert posed.scores(dict(list(answers.items())[:1])) == {}
    assert len({one.group for one in posed.questions.values()}) < len(posed.questions) / 2


@pytest.mark.parametrize("control", ["without-text", "events-as-text", "quiet-audio"])
def test_what_changes_no_sound_is_refused(control):
    with pytest.raises(InputError, match="no control that changes sound"):
        pose("polybench", control=control)


def test_data_without_such_questions_are_refused():
    with pytest.raises(DatasetError, match="audio_questions"):
        pose("audio_questions")


def test_an_unusable_clip_is_named(table, monkeypatch):
    from audio_compositionality.bridges import questions

    posed = pose("audio_questions", table)
    question = next(iter(posed.questions.values()))
    broken = [questions.replace(posed.sound(question), problem="it is silent")]
    monkeypatch.setattr(questions, "clips_about", lambda *_, **__: broken)
    with pytest.raises(ClipError, match="it is silent"):
        posed.sound(question)


def test_free_answers_are_scored_by_their_task():
    posed = pose("when")
    answers = {id: one.answer for id, one in posed.questions.items()}
    assert {one.score(one.answer) for one in posed.questions.values()} == {1.0}
    assert posed.scores(answers)["iou"] == 1
    said = dict.fromkeys(answers, "from 2 to 4 seconds")
    scores = [one.score("from 2 to 4 seconds") for one in posed.questions.values()]
    assert posed.scores(said)["iou"] == pytest.approx(np.mean(scores))
    first = next(iter(posed.questions.values()))
    assert (first.options, first.option_of("from 2 to 4"), first.score("no idea")) == ((), None, 0)
    assert first.prompt == first.row["question"]
