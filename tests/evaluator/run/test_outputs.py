"""Rows of any number of clips of any length, texts and answers: all are computed once, kept, and scored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Clip, check_range
from audio_compositionality.encoders.protocols import AudioLanguageModel, AudioTextEncoder, ModelCard
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.base import Inputs, Measure, Scores, TaskInfo, independent_samples

INFO = TaskInfo(
    name="toy",
    version=1,
    title="Toy",
    question="Does it work?",
    benchmark="toys",
    recipe="ragged",
    model=AudioTextEncoder,
    samples="rows",
    measures=(Measure("toy", "toy", "mean of what is scored", column="score"),),
    ranks_by="toy",
    warning="It is a toy.",
    citation="@misc{toy}",
)


class Ragged:
    """Rows of one, two, three clips …, each a second longer than the one before, at 8 kHz; each row has a caption."""

    recipe, source, fingerprint, recipes = "ragged", "ragged", "a" * 64, ("ragged",)

    def __init__(self, count: int) -> None:
        self.rows = [
            {"id": f"r{n}", "split": "test", "caption": f"{n % 2} tones", "clips": n + 1} for n in range(count)
        ]
        self.clip_ids = [f"{row['id']}/clip/{k}" for row in self.rows for k in range(row["clips"])]

    def configuration(self, recipe: str) -> Ragged:
        return self

    def clips(self, wanted=None, *, keep_invalid=False):
        for number in check_range(wanted, len(self.clip_ids)):
            yield Clip(self.clip_ids[number], np.full(8 * (number + 1), number / 100, np.float32), 8)


class Captions:
    """Every clip of a row and its caption; or a question about the first clip."""

    drawings = ()

    def __init__(self, info: TaskInfo, asks: bool = False) -> None:
        self.info, self.asks = info, asks
        self.seen: Any = None

    def inputs(self, row):
        clips = tuple(f"clip/{k}" for k in range(row["clips"]))
        if self.asks:
            return Inputs(clips=clips[:1], prompts=(f"How many tones are in {row['id']}?",))
        return Inputs(clips=clips, texts=(row["caption"],))

    def settings(self, rows, requested):
        return {}

    def score(self, rows, outputs, settings, device, progress):
        self.seen = outputs
        return Scores({"toy": 0.5}, tuple(row["id"] for row in rows), {"score": np.full(len(rows), 0.5)})

    def samples(self, rows):
        return independent_samples(rows)


class TextEncoder:
    """Embeds a clip as its number and its length, a text as the number of its characters."""

    device = "cpu"
    card = ModelCard("text-encoder", "v1", 8, 2)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, waveforms, sample_rate):
        return np.stack([waveforms[:, 0], np.full(len(waveforms), waveforms.shape[1])], axis=1).astype(np.float32)

    def embed_text(self, texts):
        self.texts += texts
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)


class Talker:
    device = "cpu"
    card = ModelCard("talker", "v1", 8, None)

    def __init__(self) -> None:
        self.batches: list[int] = []

    def answer(self, clips, prompts):
        self.batches.append(len(clips))
        return [f"{len(clip.waveform)} at {clip.sample_rate}: {p}" for clip, p in zip(clips, prompts, strict=True)]


def test_clips_of_all_lengths_and_texts_are_embedded_once_and_come_in_the_order_of_the_rows(tmp_path):
    data, model, task = Ragged(12), TextEncoder(), Captions(INFO)
    options = RunOptions(store=tmp_path, progress=False)
    (result,) = evaluate_models([model], data, [task], options)
    assert (result.n, result.score, result.intervals["toy"]) == (12, 0.5, (0.5, 0.5))
    count = len(data.clip_ids)
    np.testing.assert_allclose(task.seen.clips[:, 0], np.arange(count) / 100, atol=1e-6)
    assert task.seen.clips[:, 1].tolist() == [8 * (k + 1) for k in range(count)]
    assert task.seen.texts.tolist() == [[7, ord(row["caption"][0])] for row in data.rows]
    assert model.texts == ["0 tones", "1 tones"]
    evaluate_models([model], data, [task], options)
    assert len(model.texts) == 2
    evaluate_models([model], data, [task], replace(options, force=True))
    assert len(model.texts) == 4


def test_a_task_may_want_some_of_the_clips_in_another_order(tmp_path):
    class Backwards(Captions):
        def inputs(self, row):
            return Inputs(clips=("clip/0",) if row["clips"] < 3 else ("clip/2", "clip/1"))

    data, task = Ragged(4), Backwards(INFO)
    evaluate_models([TextEncoder()], data, [task], RunOptions(progress=False))
    numbers = [data.clip_ids.index(id) for id in ("r0/clip/0", "r1/clip/0", "r2/clip/2", "r2/clip/1", "r3/clip/2")]
    np.testing.assert_allclose(task.seen.clips[:5, 0], np.array(numbers) / 100, atol=1e-6)


@pytest.mark.parametrize("batch_size", [None, 3])
def test_answers_are_kept_and_come_in_the_order_of_the_rows(tmp_path, batch_size):
    data, model = Ragged(70), Talker()
    task = Captions(replace(INFO, model=AudioLanguageModel), asks=True)
    options = RunOptions(store=tmp_path, batch_size=batch_size, progress=False)
    evaluate_models([model], data, [task], options)
    firsts = [data.clip_ids.index(f"{row['id']}/clip/0") for row in data.rows]
    expected = [f"{8 * (k + 1)} at 8: How many tones are in r{n}?" for n, k in enumerate(firsts)]
    assert list(task.seen.answers) == expected
    assert max(model.batches) == (batch_size or 4)
    asked = len(model.batches)
    evaluate_models([model], data, [task], options)
    assert list(task.seen.answers) == expected
    assert len(model.batches) == asked


def test_a_batch_size_below_one_is_refused_for_answers_too():
    task = Captions(replace(INFO, model=AudioLanguageModel), asks=True)
    with pytest.raises(InputError, match="batch_size is 0; it must be 1 or more"):
        evaluate_models([Talker()], Ragged(4), [task], RunOptions(batch_size=0, progress=False))
