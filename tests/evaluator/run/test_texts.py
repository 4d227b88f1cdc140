"""Texts are embedded once, in shards that survive, and models are scored by the tasks that they can do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.encoders.base import ENCODER, Model, ModelCard, ModelError
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.run import evaluate as evaluation
from audio_compositionality.evaluator.run.embeddings import text_cache
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.base import TaskError

from .toys import Captions, ManyTexts, TextEncoder


class Hesitant(TextEncoder):
    """Fails at one text the first time, and keeps the sizes of its batches."""

    def __init__(self, fails_at: str = "", error: type[BaseException] = KeyboardInterrupt, most: int = 64) -> None:
        super().__init__()
        self.fails_at, self.error, self.most = fails_at, error, most
        self.sizes: list[int] = []

    def embed_text(self, texts):
        self.sizes.append(len(texts))
        if len(texts) > self.most:
            raise MemoryError("too many texts")
        if self.fails_at in texts:
            self.fails_at = ""
            raise self.error
        return super().embed_text(texts)


def run(model, data, tmp_path, **changes):
    task = Captions()
    options = RunOptions(**{"cache": tmp_path, "progress": False, **changes})
    (result,) = evaluate_models([model], data, [task], options)
    return result, task.seen.texts


def test_a_run_that_was_killed_goes_on_behind_the_last_whole_shard_of_texts(tmp_path):
    data = ManyTexts(150)
    opened = open_task(Captions(), data)
    store = text_cache(Hesitant.card, opened, RunOptions())
    order = [opened.unique_texts[number] for shard in range(3) for number in store.numbers(shard)]
    model = Hesitant(order[140])
    with pytest.raises(KeyboardInterrupt):
        run(model, data, tmp_path)
    embedded = len(model.texts)
    assert embedded == 128
    result, texts = run(model, data, tmp_path)
    assert model.texts[:128] == order[:128] != sorted(order[:128])
    assert model.texts[embedded : embedded + 22] == order[128:]
    assert len(model.texts) == 150 + 16
    assert "embed_rest" in result.seconds
    assert texts[:, 0].tolist() == [len(row["caption"]) for row in data.rows]
    again, _ = run(model, data, tmp_path)
    assert "read" in again.seconds
    assert len(model.texts) == 150 + 16


def test_a_text_that_cannot_be_embedded_costs_no_clips(tmp_path):
    model = Hesitant("caption r1", error=ModelError)
    with pytest.raises(ModelError):
        run(model, ManyTexts(2), tmp_path)
    assert not [file for file in tmp_path.rglob("*.safetensors")]


def test_too_many_texts_for_the_memory_are_embedded_in_halves(tmp_path):
    data, model = ManyTexts(70), Hesitant(most=40)
    with pytest.warns(UserWarning, match="out of memory"):
        _, texts = run(model, data, tmp_path)
    assert model.sizes[:2] == [64, 32]
    assert texts[:, 0].tolist() == [len(row["caption"]) for row in data.rows]


def test_tasks_that_ask_for_the_same_texts_share_them(tmp_path):
    class Backwards(Captions):
        """The same captions; those of a row twice."""

        def inputs(self, row, settings):
            inputs = super().inputs(row, settings)
            return replace(inputs, texts=inputs.texts * 2)

    data, model = ManyTexts(5), TextEncoder()
    tasks = [Captions(), Backwards(name="toy_2")]
    evaluate_models([model], data, tasks, RunOptions(cache=tmp_path, progress=False))
    assert len(model.texts) == 5 + 5
    assert (tasks[1].seen.texts == tasks[0].seen.texts.repeat(2, axis=0)).all()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((1, 3)), r"returned shape \(1, 3\) for texts, but must return \[1, 2\]"),
        (np.array([[1.0, np.nan]]), "returned values that are NaN or infinite for 'caption r0'"),
    ],
)
def test_what_is_no_embedding_of_a_text_is_refused_and_not_stored(tmp_path, value, message):
    class Wrong(TextEncoder):
        def embed_text(self, texts):
            return value

    with pytest.raises(ModelError, match=message):
        run(Wrong(), ManyTexts(1), tmp_path)
    assert not list(tmp_path.rglob("*-texts-*/*.safetensors"))


def test_a_layer_has_no_texts_and_is_refused_before_anything_is_embedded(tmp_path):
    class AtLayer(TextEncoder):
        card = ModelCard("text-encoder", "v1", 8, 2, options=EncoderOptions(layer=1))

    model = AtLayer()
    with pytest.raises(TaskError, match="'text-encoder' was loaded with a layer or a pooling"):
        run(model, ManyTexts(2), tmp_path)
    assert model.texts == []
    assert not list(tmp_path.iterdir())


def test_an_audio_encoder_is_refused_where_the_task_is_named_and_left_out_with_a_note_where_it_is_not(monkeypatch):
    class Deaf(Model):
        card = ModelCard("toy", "v1", 8, 2)

        def embed(self, waveforms, sample_rate):
            return np.zeros((len(waveforms), 2), np.float32)

    data, options = ManyTexts(3), RunOptions(progress=False)
    both = [Captions(), Captions(name="clips_only", needs=ENCODER)]
    models = [Deaf(), TextEncoder()]
    with pytest.raises(
        TaskError, match=r"'toy' cannot embed texts \(it has no embed_text\), and the task toy needs an audio–text"
    ):
        evaluate_models(models, data, both, options)
    results = evaluate_models(models, data, both, options, leave_out=True)
    expected = {("toy", "clips_only"), ("text-encoder", "toy"), ("text-encoder", "clips_only")}
    assert {(result.model.id, result.task) for result in results} == expected
    monkeypatch.setattr(evaluation, "default_tasks", lambda recipes: both)
    with pytest.warns(UserWarning, match="'toy' is left out of toy, which it cannot do"):
        unnamed = evaluate_models(models, data, None, options)
    assert {(result.model.id, result.task) for result in unnamed} == expected
    monkeypatch.setattr(evaluation, "default_tasks", lambda recipes: both[:1])
    with pytest.raises(InputError, match="have toy; 'toy' can do none of them"):
        evaluate_models(models, data, None, options)


def test_who_is_given_other_texts_shares_the_embeddings_of_clips(tmp_path):
    data, model, task = ManyTexts(6), TextEncoder(), Captions()
    models = [model, Controlled(model, CONTROLS["sorted-words"])]
    options = RunOptions(cache=tmp_path, progress=False)
    plain, sorted_words = evaluate_models(models, data, [task], options)
    assert model.clips == 6 + 6
    assert [set(result.seconds) for result in (plain, sorted_words)] == [{"embed", "score"}, {"embed_rest", "score"}]
    assert sorted_words.model.id == "sorted-words:text-encoder"
    evaluate_models([Controlled(model, CONTROLS["reversed-audio"])], data, [task], options)
    assert model.clips == 12 + 12
