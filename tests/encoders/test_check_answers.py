"""Checks of models that answer: a sound one passes, and each fault is told by its check."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from audio_compositionality.dataset_builder.texts.questions import annotation_of, check_question_row
from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.encoders.check import all_passed, check_model, check_table
from audio_compositionality.encoders.check_sounds import prompt_of, question_row, row_sound
from audio_compositionality.tasks.answerers.chooser import prompted
from audio_compositionality.tasks.answerers.symbolic import place_of_answer
from audio_compositionality.tasks.shapes.asking import direct_prompt


class Sound(Model):
    """Answers by the length and the level of a clip."""

    device, card = "cpu", ModelCard("sound", "v1", 8_000, None)

    def answer(self, clips, prompts):
        assert all(clip.sample_rate == 8_000 for (clip,) in clips)
        return ["AB"[int(len(clip.waveform) > 30_000 or not clip.waveform.any())] for (clip,) in clips]


class Wrong(Sound):
    def answer(self, clips, prompts):
        return self.given(super().answer(clips, prompts))


def statuses(model):
    return {check.name: check.status for check in check_model(model)}


def test_a_sound_one_passes():
    checks = check_model(Sound())
    assert all_passed(checks)
    assert {check.name: check.status for check in checks} == {
        "answers": "pass",
        "answers: letters": "pass",
        "answers: deterministic": "pass",
        "answers: batch": "pass",
        "answers: silence": "info",
        "answers: speed": "info",
        "memory": "info",
    }
    silence = next(check for check in checks if check.name == "answers: silence")
    assert re.match(r"[123] of 4 answers are other", silence.value)


@pytest.mark.parametrize(
    ("given", "failing", "words"),
    [
        (lambda answers: None, "answers", "a NoneType came back"),
        (lambda answers: "A" * len(answers), "answers", "a str came back"),
        (lambda answers: answers[:-1], "answers", "3 answers to 4 prompts"),
        (lambda answers: [0 for _ in answers], "answers", "a int is among the answers"),
        (lambda answers: answers[:1] * len(answers), "answers: batch", "of 4 answers differ"),
        (lambda answers: sorted(answers), "answers: batch", "of 4 answers differ"),
    ],
)
def test_each_fault_is_told(given, failing, words):
    model = Wrong()
    model.given = given
    checks = check_model(model)
    assert [check.name for check in checks if check.status == "fail"] == [failing]
    told = next(check for check in checks if check.name == failing)
    assert words in told.value
    assert told.hint in "\n".join(check_table(checks, "wrong").legend)


def test_chance_and_talk_are_told():
    model, counter = Wrong(), itertools.count()
    model.given = lambda answers: [f"I say {next(counter)}" for _ in answers]
    of = statuses(model)
    assert (of["answers: letters"], of["answers: deterministic"], of["answers: batch"]) == ("warn", "fail", "info")


@pytest.mark.parametrize("name", ["first", "majority", "statistics", "oracle", "present"])
def test_answerers_pass(name):
    checks = check_model(name, device="cpu")
    assert all_passed(checks)
    taught = name in {"majority", "statistics"}
    assert [check.value for check in checks if check.name == "answers"] == [
        "4 questions about clips of 3 to 5 s" + (", after 16 to learn from" if taught else "")
    ]


@pytest.mark.slow
def test_the_cascade_passes(monkeypatch):
    monkeypatch.setattr("audio_compositionality.tasks.answerers.detector.STEPS", 100)
    assert all_passed(check_model("cascade", device="cpu"))


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("number", range(16))
def test_the_questions_are_such_as_the_data_have(split, number):
    if split == "test" and number >= 4:
        return
    row = question_row(number, split)
    check_question_row(row)
    prompt = prompt_of(row)
    assert prompt == direct_prompt(row["question"], row["options"])
    asked = prompted(prompt)
    assert asked.wording is not None
    assert asked.wording.asked[:4] == (row["task"], row["variant"], row["anchor"], row["polarity"])
    place = place_of_answer(asked, annotation_of(row))
    assert place is not None
    sound = row_sound(row, 8_000)
    assert len(sound) == round(row["duration"] * 8_000)
    quiet = np.ones(len(sound), bool)
    for event in row["events"]:
        quiet[int(event["onset"] * 8_000) : int(event["offset"] * 8_000) + 1] = False
    assert not sound[quiet].any()
    assert row["options"][place] == row["answer"]
