"""Questions of any benchmark: models that read, hear a quarter or hear all are told apart by their controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.texts.polyphony import PolyphonySpec
from audio_compositionality.encoders.base import LETTERS, Model, ModelCard
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.gain import PARTS, SILENT, answerable_without_audio, gain_table, gains
from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
from audio_compositionality.evaluator.run.answers import PAUSE, put_together
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.answerers.chooser import drawn
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.asking import read_prompt

from .listeners import ASKED, EARS, LEAK, PATIENT, QUICK, RATE, READER, WORDS, Listener, write_questions

TASK = load_task("audio_questions")
OPTIONS = RunOptions(progress=False, batch_size=64)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_questions(tmp_path_factory.mktemp("questions"))


@pytest.fixture(scope="module")
def comparison(table):
    listeners = [READER, QUICK, PATIENT, EARS]
    kinds = [CONTROLS[name.removesuffix(":")] for name in TASK.info.controls if name.endswith(":")]
    models = [load_model(name) for name in TASK.info.controls if not name.endswith(":")]
    models += [one for model in listeners for one in (model, *(Controlled(model, kind) for kind in kinds))]
    out = table.parent / "results"
    evaluate_models(models, open_data(table), [TASK], OPTIONS.changed(out=out))
    (comparison,) = compare_results([out], data=table)
    return comparison


EXPECTED = {
    "reader": (0.55, 0.55, 0.55),
    "quick": (0.775, 0.55, 0.775),
    "patient": (1, 0.55, 0.775),
    "ears": (0.7, 0.25, 0.475),
}
"""With the sound, without it, and with a quarter: 40 % are answered by words, 30 % by a quarter, 30 % by all alone,
and a quarter of what a model cannot do by chance."""


@pytest.mark.slow
def test_each_ability_is_told_apart_as_arithmetic_says(comparison):
    told = {gain.label: gain for gain in gains(comparison)}
    assert set(told) == set(EXPECTED)
    three_errors = 3 * 0.5 / np.sqrt(len(comparison.ids))
    for name, (heard, unheard, part) in EXPECTED.items():
        gain = told[name]
        assert gain.score == pytest.approx(heard, abs=three_errors)
        assert [gain.without[one] for one in SILENT] == pytest.approx([unheard] * len(SILENT), abs=three_errors)
        fragments = [gain.parts[one] for one in PARTS if "fragment" in one]
        assert fragments == pytest.approx([part] * 3, abs=three_errors)
        assert gain.parts["shuffled-audio:"] == pytest.approx(heard, abs=three_errors)  # a sum has no order
        assert gain.gain == pytest.approx(gain.score - max(gain.without.values()))
    assert told["reader"].without["blind"] == pytest.approx(0.55, abs=three_errors)
    assert [told[name].p < 0.05 for name in EXPECTED] == [False, True, True, True]
    words = {model.label: model.word for model in verdicts_of([comparison]).models}
    assert words == {"reader": "not shown to listen", "quick": "listens", "patient": "listens", "ears": "listens"}
    assert "patient is higher than quick" in verdicts_of([comparison]).text


@pytest.mark.slow
def test_questions_answerable_without_audio_are_those_with_telling_words(comparison):
    place = next(gain.place for gain in gains(comparison) if gain.label == "patient")
    kind_of = dict(zip(comparison.ids, comparison.samples.groups["kind"], strict=True))
    kinds = [kind_of[id] for id in answerable_without_audio(comparison, place)]
    assert kinds.count(WORDS) > 50
    assert kinds.count(WORDS) / len(kinds) > 0.95
    table = gain_table(comparison)
    assert [row.cells[0].value for row in table.rows] == [gain.label for gain in gains(comparison)]
    assert any("questions are answerable without audio" in line for line in table.legend)
    assert any("Quarters, and stretches in disorder: how much" in line for line in table.legend)


class Memory(Model):
    """Learns every answer by heart."""

    card = ModelCard("memory", "1", RATE, None)

    def __init__(self):
        self.known: dict[tuple[str, ...], str] = {}

    def learn(self, rows, clips):
        self.known = {tuple(sorted(row["options"])): row["id"] + row["answer"] for row in rows}
        self.count = len(rows)
        for clip, row in zip(clips, rows, strict=True):
            assert clip.id.startswith(row["id"])

    def answer(self, clips, prompts):
        return [LETTERS[0] if not self.known else f"{self.count}" for _ in prompts]


def test_who_learns_never_learns_the_question_that_it_answers(table, monkeypatch):
    seen = []

    class Watched(Memory):
        def answer(self, clips, prompts):
            seen.extend(self.known and [(clip.row["id"], dict(self.known)) for (clip,) in clips])
            return super().answer(clips, prompts)

    evaluate_models([Watched()], open_data(table), [TASK], OPTIONS)
    assert len(seen) == 200
    for id, known in seen:
        assert known
        assert not any(text.startswith(id) for text in known.values())


def test_several_clips_are_heard_one_behind_the_other():
    one, other = Clip("q/audio/0", np.ones(800, np.float32), 8_000), Clip("q/audio/1", np.ones(400, np.float32), 4_000)
    made = put_together([one, other])
    assert (made.id, made.sample_rate, len(made.waveform)) == ("q/audio/0", 8_000, round(1_600 + PAUSE * 8_000))
    np.testing.assert_array_equal(made.waveform[800:-800], 0)
    assert put_together([one]) is one
    assert put_together([one, replace(other, problem="is empty")]).problem == "is empty"


def test_longer_sound_than_a_model_hears_is_cut_and_said(table):
    class Short(Listener):
        limit_seconds = 0.5

        def answer(self, clips, prompts):
            assert {len(clip.waveform) for (clip,) in clips} == {RATE // 2}
            return super().answer(clips, prompts)

    with pytest.warns(UserWarning, match=r"takes 0\.5 s at most: for 200 of 200 questions"):
        (result,) = evaluate_models([Short("short", ())], open_data(table), [TASK], OPTIONS)
    assert result.cut_clips == 200


def test_the_silence_between_clips_counts_where_they_are_cut(table, tmp_path):
    rows = [f"{n},000.wav;001.wav,{ASKED[WORDS]},{LEAK} a|b,b" for n in range(2)]
    (tmp_path / "two.csv").write_text("\n".join(["id,audio,question,options,answer", *rows]))
    data = open_data(tmp_path / "two.csv", audio=str(table.parent))

    class Short(Listener):
        limit_seconds = data.configuration("audio_questions").rows[0]["duration"] + PAUSE / 2

        def answer(self, clips, prompts):
            return ["A"] * len(prompts)

    with pytest.warns(UserWarning, match=r"for 2 of 2 questions"):
        (result,) = evaluate_models([Short("short", ())], data, [TASK], OPTIONS)
    assert result.cut_clips == 2


class Draws(Model):
    """Draws a letter for each prompt, and now and then has no answer."""

    card = ModelCard("draws", "1", RATE, None)

    def answer(self, clips, prompts):
        letters = [[*LETTERS[: len(read_prompt(prompt)[1])], "I cannot tell."] for prompt in prompts]
        return [some[drawn(len(some), prompt)] for some, prompt in zip(letters, prompts, strict=True)]


@pytest.mark.slow
def test_polybench_through_this_door_has_the_scores_of_its_task_digit_for_digit(tmp_path):
    spec = PolyphonySpec(train_sets=0, test_sets=2, sample_rate=8_000)
    build_dataset(RenderedData("few", {"polybench": spec}), tmp_path / "built", workers=1, progress=False)
    stored = open_data(f"polybench_stored:{tmp_path / 'built'}")
    models = [load_model("first"), load_model("longest"), Draws()]
    for model in models:
        options = OPTIONS.changed(settings={"orders": "cyclic"})
        (ours,) = evaluate_models([model], stored, [TASK], options)
        (theirs,) = evaluate_models([model], open_data(tmp_path / "built"), [load_task("polybench")], options)
        same = ("n", "answers", "unparsed", "refused", "consistency", "all_orders_right", "position_distance")
        assert {name: ours.measures[name] for name in same} == {name: theirs.measures[name] for name in same}
        assert ours.measures["accuracy"] == theirs.measures["accuracy_micro"]
        one, other = ours.samples.columns, theirs.samples.columns
        np.testing.assert_array_equal(one["score"], other["score_correct"])
        np.testing.assert_array_equal(one["choice"], other["choice"])
