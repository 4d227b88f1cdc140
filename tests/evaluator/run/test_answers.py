"""Models that answer: that learn before, that are told labels, that are asked about other clips, and their faults."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.base import ClipError, Model, ModelCard, ModelError
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.evaluator.run.answers import in_place_of
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.base import TaskError

from .toys import Hears, Questions, Task

OPTIONS = RunOptions(progress=False)


class Learns(Hears):
    """Says how many rows and clips it has learnt from, and of which answers."""

    card = ModelCard("learns", "v1", 8, None)

    def __init__(self, hears: bool = True) -> None:
        self.hears, self.lessons = hears, []

    def learn(self, rows, clips):
        numbers = [clip.waveform[0] for clip in clips] if self.hears else []
        self.lessons.append(([row["id"] for row in rows], numbers))
        self.text = f"{len(rows)} {len(numbers)} {sum(row['answer'] == 'a0' for row in rows)}"

    def answer(self, clips, prompts):
        return [self.text] * len(prompts)


class Told(Model):
    card = ModelCard("told", "v1", 8, None)

    @property
    def abilities(self):
        return super().abilities | {"labels"}

    def answer(self, clips, prompts):
        rows = self.rows_of(clips)
        assert not any(len(clip.waveform) for (clip,) in clips)
        return [f"{row['answer']} to {prompt}" for row, prompt in zip(rows, prompts, strict=True)]


def scored(model, data=None, options=OPTIONS, **how):
    task = Task()
    results = evaluate_models([model], Questions() if data is None else data, [task], options, **how)
    return results, task.answers


@pytest.mark.parametrize("hears", [True, False])
def test_a_model_learns_from_the_rows_of_train_before_it_is_asked_and_only_then(tmp_path, hears):
    data, model, options = Questions(), Learns(hears), OPTIONS.changed(cache=tmp_path)
    _, answers = scored(model, data, options)
    train = data.of("train")
    expected = f"70 {70 if hears else 0} {sum(row['answer'] == 'a0' for row in train)}"
    assert answers == [expected] * 8
    ((ids, numbers),) = model.lessons
    assert ids == [row["id"] for row in train]
    heard = [round(1000 * number) for number in numbers]
    assert heard == ([int(id[1:]) for id in ids] if hears else [])
    if not hears:
        read = {data.rows[number]["id"] for numbers in data.read for number in numbers}
        assert not read & set(ids)
    assert scored(model, data, options)[1] == answers
    assert len(model.lessons) == 1
    scored(model, data, options.changed(force=True))
    assert len(model.lessons) == 2


def test_stored_answers_are_not_those_after_another_training(tmp_path):
    model, options = Learns(), OPTIONS.changed(cache=tmp_path)
    answers = [scored(model, Questions(trained=n, fingerprint=f"{n}"), options)[1] for n in (4, 6, 4)]
    assert [texts[0][:3] for texts in answers] == ["4 4", "6 6", "4 4"]
    assert len(model.lessons) == 2


def test_a_model_that_learns_wants_something_to_learn_from():
    data, words = Questions(trained=0), r"'learns' learns from .* made by hand has no row of toy in the split 'train'"
    with pytest.raises(TaskError, match=words):
        scored(Learns(), data)
    with pytest.raises(TaskError, match=words):
        scored(Learns(), data, leave_out=True)
    with pytest.warns(UserWarning, match=f"left out: {words}"):
        results = evaluate_models([Learns(), Hears()], data, [Task()], OPTIONS, leave_out=True)
    assert [result.model.id for result in results] == ["hears"]


def test_a_damaged_clip_to_learn_from_is_an_error_unless_left_out():
    data = Questions()
    data.damaged = "r3/audio"
    with pytest.raises(ClipError, match=r"'r3/audio': is damaged; --skip-invalid leaves it out"):
        scored(Learns(), data)
    model = Learns()
    scored(model, data, OPTIONS.changed(skip_invalid=True))
    assert np.isnan(model.lessons[0][1][3])
    assert np.isfinite(model.lessons[0][1]).sum() == 69


def test_a_model_that_is_told_labels_is_given_the_rows_and_no_sound():
    data = Questions()
    _, answers = scored(Told(), data)
    assert answers == [f"{row['answer']} to What is {row['id']}?" for row in data.of("test")]
    assert data.read == []


class HearsShape(Hears):
    """Says the number of a clip of `shaped_questions`, however loud it is."""

    def answer(self, clips, prompts):
        return [f"{round(1_000 * clip.waveform[1] / clip.waveform[0])}" for (clip,) in clips]


def shaped_questions(**options):
    """Questions whose clips say their number by their second sample, as a part of the first."""
    data = Questions(**options)
    data.sound = lambda number: (np.tile(np.array([0.5, number / 2_000], np.float32), 4), 8)
    return data


class TestOtherAudio:
    def test_is_the_clip_of_another_group_whatever_the_batch(self):
        data = shaped_questions(asked=200)
        heard = {}
        for size in (1, 7, 64):
            model = Controlled(HearsShape(), CONTROLS["other-audio"])
            _, heard[size] = scored(model, data, OPTIONS.changed(batch_size=size))
        assert heard[1] == heard[7] == heard[64]
        asked = data.of("test")
        group_of = {row["id"][1:]: row["group"] for row in data.rows}
        assert all(group_of[other] != row["group"] for row, other in zip(asked, heard[1], strict=True))
        assert len(set(heard[1])) > 190
        assert set(heard[1]) <= {row["id"][1:] for row in asked}

    def test_has_the_rate_the_length_and_the_loudness_of_the_clip_whose_place_it_takes(self):
        own = Clip("own", 0.1 * np.sin(np.arange(3_000)).astype(np.float32), 8_000)
        other = Clip("other", 0.5 * np.sign(np.sin(np.arange(1_000) / 40)).astype(np.float32), 16_000)
        placed = in_place_of(own, other)
        assert (placed.id, placed.sample_rate, len(placed.waveform)) == ("other", 8_000, 3_000)
        assert np.mean(placed.waveform**2) == pytest.approx(np.mean(own.waveform**2), rel=1e-5)
        # As loud as full scale allows, where the other has peaks.
        click = Clip("click", np.eye(1, 3_000, dtype=np.float32)[0], 8_000)
        assert np.abs(in_place_of(own, click).waveform).max() == pytest.approx(1)
        assert not in_place_of(own, Clip("nothing", np.zeros(5, np.float32), 8_000)).waveform.any()

    def test_has_nothing_to_do_with_the_order_of_the_rows(self):
        """As an answer may have: distances between a question and its clip are as those by chance."""
        data = shaped_questions(asked=400)
        _, heard = scored(Controlled(HearsShape(), CONTROLS["other-audio"]), data)
        asked = [int(row["id"][1:]) for row in data.rows if row["split"] == "test"]
        distance = np.subtract([int(number) for number in heard], asked)
        assert 100 < np.abs(distance).mean() < 170
        assert abs(np.mean(distance % 2) - 0.5) < 0.1

    def test_wants_two_groups(self):
        with pytest.raises(TaskError, match="all clips are of one group"):
            scored(Controlled(HearsShape(), CONTROLS["other-audio"]), shaped_questions(asked=1))

    def test_a_damaged_clip_is_named_and_the_question_left_out(self):
        data = shaped_questions()
        _, heard = scored(Controlled(HearsShape(), CONTROLS["other-audio"]), data)
        data.damaged = f"r{heard[0]}/audio"
        model = Controlled(HearsShape(), CONTROLS["other-audio"])
        with pytest.raises(ClipError, match=data.damaged):
            scored(model, data)
        (result,), left = scored(model, data, OPTIONS.changed(skip_invalid=True))
        # The question about the damaged clip itself has no length or loudness to be asked at.
        own = [row["id"][1:] for row in data.of("test")]
        assert left == [number for number, asked in zip(heard, own, strict=True) if heard[0] not in (number, asked)]
        assert "r35/audio" in {clip.id for clip in result.skipped}


def test_a_model_under_control_learns_from_clips_as_they_are():
    model = Learns()
    _, answers = scored(Controlled(model, CONTROLS["without-audio"]))
    assert [round(1000 * number) for number in model.lessons[0][1][:3]] == [0, 1, 2]
    assert answers[0].startswith("70 70")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            lambda prompts: ["A"] * (len(prompts) + 1),
            r"'hears' returned \d answers to \d prompts; it must return one per prompt",
        ),
        (lambda prompts: [], "returned 0 answers"),
        (lambda prompts: [None] * len(prompts), r"returned a NoneType as an answer; each must be a text \(str\)"),
        (lambda prompts: ["A"] * (len(prompts) - 1) + [b"A"], "returned a bytes as an answer"),
        (lambda prompts: "A" * len(prompts), "returned a str; it must return a list of texts"),
        (lambda prompts: None, "returned a NoneType"),
    ],
)
def test_answers_that_are_none_are_refused(given, words, tmp_path):
    class Wrong(Hears):
        def answer(self, clips, prompts):
            return given(prompts)

    class WrongOfLabels(Told):
        card = Hears.card

        def answer(self, clips, prompts):
            return given(prompts)

    for model in (Wrong(), WrongOfLabels()):
        with pytest.raises(ModelError, match=words):
            scored(model, options=OPTIONS.changed(cache=tmp_path))
    assert not list(tmp_path.rglob("0*.json"))
